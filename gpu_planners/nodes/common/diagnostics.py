"""The state of a node, told on /diagnostics: once a second, and at once when it changes."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from .ros import steady_clock

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


class Diagnostics:
    """One status of a node: WARN and the problem's text while it is ready but has a problem.

    facts: called for {key: printable}
    """

    def __init__(self, node: Node, text: str, facts: Callable[[], dict[str, Any]]) -> None:
        self._node, self._facts = node, facts
        self._level, self._text = WARN, text
        self._problems: dict[str, str] = {}
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        node.create_timer(1.0, self.publish, clock=steady_clock())

    def say(self, level: bytes, text: str) -> None:
        self._level, self._text = level, text
        self.publish()

    @contextlib.contextmanager
    def saying(self, level: bytes, text: str) -> Iterator[None]:
        """Set level and text for a block, and back where the block raises."""
        before = self._level, self._text
        self.say(level, text)
        try:
            yield
        except Exception:
            self.say(*before)
            raise

    @property
    def problem(self) -> str:
        return "; ".join(text for text in list(self._problems.values()) if text)

    def set_problem(self, what: str, text: str) -> None:
        """Report and log a problem with something until it is set to ""."""
        if text == self._problems.get(what, ""):
            return
        self._problems[what] = text
        if text:
            self._node.get_logger().error(text)
        self.publish()

    def fail(self, text: str) -> None:
        self._node.get_logger().error(text)
        self.say(ERROR, text)

    def publish(self) -> None:
        """Publish what is known now, unless ROS has been shut down."""
        if not self._node.context.ok():
            return
        level, text, problem = self._level, self._text, self.problem
        if level == OK and problem:
            level, text = WARN, problem
        facts = self._facts() | {"problem": problem}
        status = DiagnosticStatus(level=level, name=self._node.get_fully_qualified_name(), message=text)
        status.hardware_id = str(facts.get("device", ""))
        status.values = [KeyValue(key=key, value=str(value)) for key, value in facts.items()]
        message = DiagnosticArray(status=[status])
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)
