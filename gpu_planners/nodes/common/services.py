"""Services and actions whose requests wait in the worker's queue, so that no thread of the executor waits for them.

The executor takes a request, and the worker sends the response when it has one: any executor does, also one of a single
thread, which costs a third of what several threads do. Queues of the middleware are deep, for requests that come at
once: with ROS's own depth of 10, half of 20 were lost.
"""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from rclpy.action import ActionServer, CancelResponse
from rclpy.node import Node
from rclpy.qos import QoSProfile

from .request_error import NotBegunError
from .worker import Worker

DEPTH = QoSProfile(depth=1000)


def action_server(node: Node, kind: Any, name: str, finish: Callable[[Any], Any], **callbacks: Any) -> ActionServer:
    """rclpy's server of an action, with deep queues.

    finish: called on the executor's thread with a goal that `execute` was called of, for the result
    callbacks: others that rclpy's ActionServer takes
    """
    deep = {f"{of}_service_qos_profile": DEPTH for of in ("goal", "result", "cancel")}
    return ActionServer(node, kind, name, finish, **callbacks, **deep)


class QueuedService:
    """A service of a node.

    answer: called on the worker with request and response for the response; may raise
    refused: called with what was raised for the response
    beside: may requests be answered beside each other, on several threads of the worker?
    """

    def __init__(
        self,
        node: Node,
        worker: Worker,
        kind: Any,
        name: str,
        answer: Callable[[Any, Any], Any],
        refused: Callable[[Exception], Any],
        beside: bool = False,
    ) -> None:
        self._worker, self._name, self._answer, self._refused = worker, name, answer, refused
        self._beside = beside
        self._logger, self._kind = node.get_logger(), kind
        self._service = node.create_service(kind, name, lambda request, _: request, qos_profile=DEPTH)
        self._send = self._service.send_response
        # the executor calls it with what the callback returned
        self._service.send_response = self._queue  # type: ignore[method-assign]

    def _queue(self, request, header):
        unanswered = threading.Lock()

        def respond(response):
            if unanswered.acquire(blocking=False):
                self._respond(response, header)

        def refuse(error: NotBegunError) -> None:
            respond(self._refused(error))

        self._worker.ask(self._name, lambda: respond(self._response(request)), refuse, self._beside)

    def _response(self, request):
        try:
            return self._answer(request, self._kind.Response())
        except Exception as error:  # a client must get an answer whatever goes wrong
            return self._refused(error)

    def _respond(self, response, header):
        try:
            self._send(response, header)
        except Exception as error:  # the client is gone, or ROS is shut down
            self._logger.warning(f"{self._name}: the response could not be sent: {error}")


class Longer(NamedTuple):
    """The answer to a goal that goes on after the worker's part, until QueuedAction.end is called.

    begin: called on the worker; cancel: called when a client cancels the goal, which ends it some time later
    """

    begin: Callable[[], Any]
    cancel: Callable[[], Any]


class QueuedAction:
    """An action of a node. A goal that is cancelled ends at once: it leaves the queue, or what comes out is not used.

    kind: of the action; name: relative
    answer: called on the worker with the goal's handle for (result, whether it succeeded), or Longer; may raise
    refused: called with what was raised for the result; its text is logged by whoever makes it
    cancelled: the result of a goal that was cancelled
    beside: as of QueuedService
    """

    def __init__(
        self,
        node: Node,
        worker: Worker,
        kind: Any,
        name: str,
        answer: Callable[[Any], tuple[Any, bool] | Longer],
        refused: Callable[[Exception], Any],
        cancelled: Callable[[], Any],
        beside: bool = False,
    ) -> None:
        self._worker, self._name, self._answer, self._beside = worker, name, answer, beside
        self._refused, self._cancelled = refused, cancelled
        self._open: dict[bytes, Any] = {}  # by goal: its Request, or Longer, while it is not answered
        self._outcomes: dict[bytes, tuple[Any, bool]] = {}
        self._lock = threading.Lock()
        self._server = action_server(
            node, kind, name, self._finish, handle_accepted_callback=self._accept, cancel_callback=self._cancel
        )

    def end(self, goal: Any, result: Any, succeeded: bool) -> None:
        """End a goal that was answered with Longer; from any thread."""
        self._end(goal, (result, succeeded))

    def _accept(self, goal):
        key = bytes(goal.goal_id.uuid)
        with self._lock:
            self._open[key] = None
        request = self._worker.ask(
            self._name,
            lambda: self._run(goal),
            lambda error: self._end(goal, (self._refused(error), False)),
            self._beside,
        )
        with self._lock:
            if key in self._open and self._open[key] is None:
                self._open[key] = request

    def _run(self, goal):
        try:
            outcome = self._answer(goal)
        except Exception as error:  # an action that raises is aborted without a reason
            outcome = self._refused(error), False
        if not isinstance(outcome, Longer):
            self._end(goal, outcome)
            return
        key = bytes(goal.goal_id.uuid)
        with self._lock:
            if key not in self._open:  # it was cancelled
                return
            self._open[key] = outcome
        outcome.begin()

    def _cancel(self, goal):
        with self._lock:
            longer = self._open.get(bytes(goal.goal_id.uuid))
        if isinstance(longer, Longer):
            longer.cancel()
            return CancelResponse.ACCEPT
        request = self._end(goal, None)
        if request is not None:
            self._worker.cancel(request)
        return CancelResponse.ACCEPT

    def _end(self, goal, outcome):
        """Have the executor send the outcome, unless another was sent -> the goal's Request, where it was open"""
        key = bytes(goal.goal_id.uuid)
        with self._lock:
            if key not in self._open:
                return None
            request = self._open.pop(key)
            self._outcomes[key] = outcome
        goal.execute()
        return request

    def _finish(self, goal):
        with self._lock:
            outcome = self._outcomes.pop(bytes(goal.goal_id.uuid))
        if outcome is None or goal.is_cancel_requested:
            (goal.canceled if goal.is_cancel_requested else goal.abort)()
            return self._cancelled()
        result, succeeded = outcome
        (goal.succeed if succeeded else goal.abort)()
        return result
