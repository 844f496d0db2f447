"""Pictures for RViz: latched messages that are costly to make, made only where someone looks."""

from collections.abc import Callable
from typing import Any

from rclpy.node import Node

from .diagnostics import steady_clock
from .qos import LATCHED


class Pictures:
    """Topics of a node whose latest message is made on the worker, once somebody has subscribed.

    topics: {name: type of its messages}; do: queues a job for the worker; period_s: between two looks for subscribers
    """

    def __init__(self, node: Node, topics: dict[str, Any], do: Callable[..., None], period_s: float) -> None:
        self._publishers = {name: node.create_publisher(kind, f"~/{name}", LATCHED) for name, kind in topics.items()}
        self._pending: dict[str, Callable[[], Any]] = {}  # by name: makes the message that nobody has asked for yet
        self._do = do
        self._timer = node.create_timer(period_s, self._look, clock=steady_clock())

    def look_every(self, period_s: float) -> None:
        """Look for subscribers so often from now on."""
        self._timer.timer_period_ns = round(1e9 * period_s)

    def show(self, name: str, make: Callable[[], Any]) -> None:
        """Have `make` called for the message of a topic, in place of what it shows or would show."""
        self._pending[name] = make

    def _wanted(self):
        return [name for name in list(self._pending) if self._publishers[name].get_subscription_count()]

    def _look(self):
        if self._wanted():
            self._do(self._publish)

    def _publish(self):
        for name in self._wanted():
            self._publishers[name].publish(self._pending.pop(name)())
