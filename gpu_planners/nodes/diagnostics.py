"""The state of a node, told once a second on /diagnostics."""

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


class Diagnostics:
    """One status of a node.

    facts: called for {key: printable}
    problem: while there is one, a node that is ready otherwise is reported with WARN and this text
    """

    def __init__(self, node, text, facts):
        self._node, self._facts = node, facts
        self.level, self.text, self._problems = WARN, text, {}
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        node.create_timer(1.0, self._publish, clock=steady_clock())

    def say(self, level, text):
        self.level, self.text = level, text

    @property
    def problem(self):
        return "; ".join(text for text in list(self._problems.values()) if text)

    def set_problem(self, what, text):
        """Report and log a problem with something until it is set to "". """
        if text and text != self._problems.get(what):
            self._node.get_logger().error(text)
        self._problems[what] = text

    def fail(self, text):
        """Say and log an error."""
        self.say(ERROR, text)
        self._node.get_logger().error(text)

    def _publish(self):
        level, text = self.level, self.text
        if level == OK and self.problem:
            level, text = WARN, self.problem
        stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(diagnostics_message(self._node.get_fully_qualified_name(), stamp, level, text, self._facts()))


def steady_clock():
    """For timers that run once in so many seconds with use_sim_time too."""
    return Clock(clock_type=ClockType.STEADY_TIME)


def diagnostics_message(name, stamp, level, text, values):
    """DiagnosticArray with one status.

    level: DiagnosticStatus.OK, WARN or ERROR; values: {key: printable}
    """
    status = DiagnosticStatus(level=level, name=name, message=text, hardware_id=str(values.get("device", "")))
    status.values = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
    message = DiagnosticArray(status=[status])
    message.header.stamp = stamp
    return message
