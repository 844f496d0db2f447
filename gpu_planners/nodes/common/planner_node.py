"""What the planning nodes are: one worker that plans, services and actions that it answers, compiling."""

import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

from .base_node import BaseNode
from .compiling import Background, is_compiled
from .diagnostics import OK, WARN
from .parameters import NodeParameters
from .request_error import NotBegunError
from .services import QueuedAction, QueuedService
from .worker import Worker

PATIENCE_S = 5.0  # of requests with what is compiled or loaded; loading takes less


class PlannerNode(BaseNode):
    """Base of the planning nodes. Callbacks only hand on what arrives; the worker's threads own what is planned on, and
    start when the node is complete. first_apart: as Worker takes it"""

    first_apart: ClassVar[bool] = False

    def __init__(
        self, name: str, parameters: type[NodeParameters], waiting_for: str, file: str, **options: Any
    ) -> None:
        super().__init__(name, parameters, waiting_for, file, **options)
        self._requests, self._last_answer = 0, ""
        self._worker = Worker(
            self._state.fail, lambda: self._values.max_waiting, lambda: len(self._values.devices), self.first_apart
        )
        self._lock = threading.RLock()  # of what requests that are answered beside each other share; not for refusals
        self._counting = threading.Lock()
        self._background = Background(self._take_compiled)
        self._settled: set[str] = set()  # what was compiled in the background, or could not be

    @property
    def worker(self) -> Worker:
        """Makes changes of what is planned on, and answers requests."""
        return self._worker

    def finish(self, patience_s: float = -1.0) -> bool:
        self._background.stop()
        return self._worker.stop(patience_s)

    def serve(self, kind: Any, name: str, answer: Callable[..., Any], *more: Any, **options: Any) -> None:
        """Offer a service; arguments as of QueuedService."""
        QueuedService(self, self._worker, kind, name, answer, *more, **options)

    def act(self, kind: Any, name: str, answer: Callable[..., Any], *more: Any, **options: Any) -> QueuedAction:
        """Offer an action; arguments as of QueuedAction."""
        return QueuedAction(self, self._worker, kind, name, answer, *more, **options)

    def _count(self) -> None:
        """Count a request. From any thread."""
        with self._counting:
            self._requests += 1

    def log(self, text: str, succeeded: bool) -> None:
        """Log how something ended. From any thread."""
        if succeeded:  # rclpy wants a call of its own for each severity
            self.get_logger().info(text)
        else:
            self.get_logger().warning(text)

    def _tell(self, what: str, answer: str, succeeded: bool) -> None:
        """Log what a request was answered, and keep it for diagnostics; from any thread."""
        self._last_answer = answer
        self.log(f"{what}: {answer}", succeeded)

    def _get_ready(self, compile_it: Callable[[], str]) -> tuple[str, float]:
        """Compile or load what requests need, by a function that returns the device -> the device, seconds taken"""
        text = "compiling, once on this machine; ask again when /diagnostics says that the node is ready"
        started = time.monotonic()
        with self._state.saying(WARN, "compiling"), self._worker.refusing(text, PATIENCE_S):
            device = compile_it()
        self._state.say(OK, "ready")
        return device, time.monotonic() - started

    def _unless_compiled(self, what: str, compile_it: Callable[..., Any], *arguments: Any) -> None:
        """Have something compiled in the background that no process has used on this machine; NotBegunError meanwhile.

        What could not be compiled there, or not be kept, is compiled by the request that comes next.
        """
        if what in self._settled or is_compiled(what):
            return
        self.get_logger().info(f"compiling {what} in the background, once on this machine")
        self._background.start(what, compile_it, *arguments)
        raise NotBegunError(f"{what}: it is being compiled, once on this machine; ask again in a minute")

    def _take_compiled(self, what: str, succeeded: bool) -> None:
        """Called on a thread of its own when something was compiled in the background."""
        self._settled.add(what)
        self.log(f"{what}: {'compiled' if succeeded else 'compiling it failed in a process of its own'}", succeeded)
