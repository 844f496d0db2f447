"""An action whose goals take long, and end when the node says so: no callback waits for them."""

from collections.abc import Callable
from typing import Any

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node

from .qos import DEEP


class LongAction:
    """An action of a node. All calls are made on the executor's thread.

    kind: of the action; name: relative
    accepted: called with the handle of a goal that begins
    cancelled: called with the handle of a goal that a client wants to end
    refused: called with a goal for the text why it is rejected; empty: it is not
    """

    def __init__(
        self,
        node: Node,
        kind: Any,
        name: str,
        accepted: Callable[[Any], None],
        cancelled: Callable[[Any], None],
        refused: Callable[[Any], str] = lambda goal: "",
    ) -> None:
        self._cancelled, self._refused = cancelled, refused
        self._logger, self._name = node.get_logger(), name
        self._outcomes: dict[bytes, tuple[Any, bool]] = {}
        deep = {f"{of}_service_qos_profile": DEEP for of in ("goal", "result", "cancel")}
        self._server = ActionServer(
            node,
            kind,
            name,
            self._finish,
            goal_callback=self._judge,
            handle_accepted_callback=accepted,
            cancel_callback=self._cancel,
            **deep,
        )

    def end(self, goal: Any, result: Any, succeeded: bool) -> None:
        """End a goal, once. One that a client has cancelled ends as cancelled, unless it succeeded."""
        self._outcomes[bytes(goal.goal_id.uuid)] = result, succeeded
        goal.execute()

    def _judge(self, goal):
        text = self._refused(goal)
        if text:
            self._logger.error(f"{self._name}: rejected: {text}")
        return GoalResponse.REJECT if text else GoalResponse.ACCEPT

    def _cancel(self, goal):
        self._cancelled(goal)
        return CancelResponse.ACCEPT

    def _finish(self, goal):
        result, succeeded = self._outcomes.pop(bytes(goal.goal_id.uuid))
        if succeeded:
            goal.succeed()
        elif goal.is_cancel_requested:
            goal.canceled()
        else:
            goal.abort()
        return result
