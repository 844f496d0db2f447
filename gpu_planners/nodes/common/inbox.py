"""Calls from other threads, made on the executor's."""

import collections
from collections.abc import Callable
from typing import Any

from rclpy.node import Node


class Inbox:
    """Calls that wait for the executor of a node."""

    def __init__(self, node: Node) -> None:
        self._calls: collections.deque[tuple[Callable[..., Any], tuple]] = collections.deque()
        self._condition = node.create_guard_condition(self._empty)

    def put(self, call: Callable[..., Any], *arguments: Any) -> None:
        """Have the executor make a call, soon and in order; from any thread."""
        self._calls.append((call, arguments))
        self._condition.trigger()

    def _empty(self):
        while self._calls:
            call, arguments = self._calls.popleft()
            call(*arguments)
