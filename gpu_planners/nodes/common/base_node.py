"""What all nodes of the package are: parameters that are checked, diagnostics, an end that leaves nothing behind."""

from typing import Any

from rclpy.action import ActionClient, ActionServer
from rclpy.node import Node

from ...settings import Described
from .diagnostics import Diagnostics
from .parameters import check_changes, declare


class BaseNode(Node):
    """Base of the nodes.

    name: of the node; parameters: its settings class; waiting_for: what it needs first
    file: the parameter that may name a file with it
    options: as rclpy.node.Node takes them
    """

    _closed = False

    def __init__(self, name: str, parameters: type[Described], waiting_for: str, file: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._values: Any = declare(self, parameters)
        check_changes(self, parameters, self._change_parameters)
        path = getattr(self._values, file)
        text = f"loading {path}" if path else f"waiting for {waiting_for}"
        self._state = Diagnostics(self, text, self._facts)
        self.get_logger().info(text)

    @property
    def values(self) -> Any:
        """The parameters as they are."""
        return self._values

    def destroy_node(self) -> None:
        """End the node and its actions: the garbage collector, to which rclpy leaves those, may free the clock before
        a server that uses it: a crash."""
        for one in list(self.waitables):
            if isinstance(one, ActionClient | ActionServer):
                one.destroy()
        super().destroy_node()

    def finish(self, patience_s: float = -1.0) -> bool:
        """End what is under way, and answer who waits for it, while the executor still spins -> has all ended within
        patience_s seconds (negative: wait for it)?"""
        return True

    def close(self, patience_s: float = -1.0) -> bool:
        """Finish as `finish` does, and leave ROS if all has ended."""
        if not self._closed and self.finish(patience_s):
            self.destroy_node()
            self._closed = True
        return self._closed

    def _change_parameters(self, values: Any) -> None:
        """Take new values of the parameters, which are right."""
        self._values = values

    def _facts(self) -> dict[str, Any]:
        """{key: printable} for diagnostics."""
        raise NotImplementedError

    def now(self) -> float:
        """Seconds on the node's clock. From any thread."""
        return self.get_clock().now().nanoseconds * 1e-9
