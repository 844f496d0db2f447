"""Actions for which no callback waits: goals wait in the worker's queue, and end when they are told."""

import collections
from collections.abc import Callable
from typing import Any, NamedTuple

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node

from ...errors import StoppedError
from .ros import DEEP


class Inbox:
    """Calls from other threads that wait for the executor of a node."""

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


class LongAction:
    """An action whose goals end when the node says so. What becomes of them is decided on the executor's thread alone,
    which makes all calls.

    kind: of the action; name: relative
    accepted: called with the handle of a goal that begins, for what to call when a client cancels it
    refused: called with a goal for the text why it is rejected; empty: it is not
    """

    def __init__(
        self,
        node: Node,
        kind: Any,
        name: str,
        accepted: Callable[[Any], Callable[[], Any]],
        refused: Callable[[Any], str] = lambda goal: "",
    ) -> None:
        self._accepted, self._refused, self._inbox = accepted, refused, Inbox(node)
        self._logger, self._name = node.get_logger(), name
        # goals that have not ended, and what is called when one is cancelled
        self._open: dict[bytes, tuple[Any, Callable[[], Any]]] = {}
        self._outcomes: dict[bytes, tuple[Any, bool]] = {}
        deep = {f"{of}_service_qos_profile": DEEP for of in ("goal", "result", "cancel")}
        self._server = ActionServer(
            node,
            kind,
            name,
            self._finish,
            goal_callback=self._judge,
            handle_accepted_callback=self._accept,
            cancel_callback=self._cancel,
            **deep,
        )

    def end(self, goal: Any, result: Any, succeeded: bool) -> None:
        """End a goal that has not ended yet; from any thread. One that a client has cancelled ends as cancelled, unless
        it succeeded."""
        self._inbox.put(self._end, goal, result, succeeded)

    def cancel_all(self, chosen: Callable[[Any], bool] = lambda goal: True) -> None:
        """Do what a client's cancel does for every goal that has not ended. On the executor's thread.

        chosen: called with a goal's handle for whether it is meant
        """
        for goal, cancel in list(self._open.values()):
            if chosen(goal):
                cancel()

    def _judge(self, goal):
        text = self._refused(goal)
        if text:
            self._logger.error(f"{self._name}: rejected: {text}")
        return GoalResponse.REJECT if text else GoalResponse.ACCEPT

    def _accept(self, goal):
        self._open[bytes(goal.goal_id.uuid)] = goal, self._accepted(goal)

    def _cancel(self, goal):
        if known := self._open.get(bytes(goal.goal_id.uuid)):
            known[1]()
        return CancelResponse.ACCEPT

    def _end(self, goal, *outcome):
        key = bytes(goal.goal_id.uuid)
        if self._open.pop(key, None):
            self._outcomes[key] = outcome
            goal.execute()

    def _finish(self, goal):
        result, succeeded = self._outcomes.pop(bytes(goal.goal_id.uuid))
        if succeeded:
            goal.succeed()
        elif goal.is_cancel_requested:
            goal.canceled()
        else:
            goal.abort()
        return result


class Longer(NamedTuple):
    """The answer to a goal that goes on after the worker's part, until QueuedAction.end is called.

    begin: called on the executor's thread; cancel: called there when a client cancels the goal, which ends it later
    """

    begin: Callable[[], Any]
    cancel: Callable[[], Any]


class QueuedAction(LongAction):
    """An action of a node. A goal that is cancelled while it waits, or while the worker has it, ends at once: it leaves
    the queue, or what comes out is not used.

    node: PlannerNode; kind, name: as of LongAction; beside: as of PlannerNode.serve
    answer: called on the worker with the goal's handle for (result, whether it succeeded), or Longer; may raise
    refused: called with what was raised for the result; its text is logged by whoever makes it
    cancelled: called for the result of a goal that was cancelled
    """

    def __init__(
        self,
        node: Any,
        kind: Any,
        name: str,
        answer: Callable[[Any], tuple[Any, bool] | Longer],
        refused: Callable[[Exception], Any],
        cancelled: Callable[[], Any],
        beside: bool = False,
    ) -> None:
        super().__init__(node, kind, name, self._queue)
        self._worker, self._answer, self._beside = node.worker, answer, beside
        self._failed, self._cancelled, self._notice = refused, cancelled, node.notice

    def _queue(self, goal):
        request = self._worker.ask(
            self._name,
            lambda: self._inbox.put(self._take, goal, self._outcome(goal)),
            lambda error: self.end(goal, self._failed(error), False),
            self._beside,
        )

        def cancel():
            self._worker.cancel(request)
            self._end(goal, self._cancelled(), False)

        return cancel

    def _outcome(self, goal):
        try:
            return self._answer(goal)
        except StoppedError:
            return self._cancelled(), False
        except Exception as error:  # an action that raises is aborted without a reason
            self._notice(error)
            return self._failed(error), False

    def _take(self, goal, outcome):
        key = bytes(goal.goal_id.uuid)
        if not isinstance(outcome, Longer):
            self._end(goal, *outcome)
        elif key in self._open:  # else it was cancelled, or refused
            self._open[key] = goal, outcome.cancel
            outcome.begin()
