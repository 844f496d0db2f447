"""The state of a node, told on /diagnostics: once a second, and at once when it changes."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


class Diagnostics:
    """One status of a node. A node that is ready but has a problem is reported with WARN and the problem's text.

    facts: called for {key: printable}
    """

    def __init__(self, node: Node, text: str, facts: Callable[[], dict[str, Any]]) -> None:
        self._node, self._facts = node, facts
        self._level, self._text = WARN, text
        self._problems: dict[str, str] = {}
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        node.create_timer(1.0, self.publish, clock=steady_clock())

    def say(self, level: bytes, text: str) -> None:
        """Set level and text."""
        self._level, self._text = level, text
        self.publish()

    @contextlib.contextmanager
    def saying(self, level: bytes, text: str) -> Iterator[None]:
        """Set level and text for a block; where that raises, those before it hold again."""
        before = self._level, self._text
        self.say(level, text)
        try:
            yield
        except Exception:
            self.say(*before)
            raise

    @property
    def problem(self) -> str:
        """The texts of all problems that there are now."""
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
        """Say and log an error."""
        self._node.get_logger().error(text)
        self.say(ERROR, text)

    def publish(self) -> None:
        """Publish what is known now, unless ROS has been shut down."""
        if not self._node.context.ok():
            return
        level, text, problem = self._level, self._text, self.problem
        if level == OK and problem:
            level, text = WARN, problem
        name, stamp = self._node.get_fully_qualified_name(), self._node.get_clock().now().to_msg()
        facts = self._facts() | {"problem": problem}
        self._publisher.publish(diagnostics_message(name, stamp, level, text, facts))


def steady_clock() -> Clock:
    """For timers that run once in so many seconds with use_sim_time too."""
    return Clock(clock_type=ClockType.STEADY_TIME)


def diagnostics_message(name: str, stamp: Any, level: bytes, text: str, values: dict[str, Any]) -> DiagnosticArray:
    """DiagnosticArray with one status.

    level: OK, WARN or ERROR; values: {key: printable}
    """
    status = DiagnosticStatus(level=level, name=name, message=text, hardware_id=str(values.get("device", "")))
    status.values = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
    message = DiagnosticArray(status=[status])
    message.header.stamp = stamp
    return message
