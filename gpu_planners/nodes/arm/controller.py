"""The controller that executes motions: a client of the action follow_joint_trajectory of control_msgs."""

from collections.abc import Callable
from typing import Any

from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from ..common.ros import optional_module

ENDINGS = {
    GoalStatus.STATUS_SUCCEEDED: "succeeded",
    GoalStatus.STATUS_CANCELED: "was cancelled",
    GoalStatus.STATUS_ABORTED: "was aborted",
}


class Execution:
    """A trajectory that was sent.

    answered: called with whether the controller takes it; ended: with what went wrong, "" when nothing did
    """

    def __init__(self, answered: Callable[[bool], None], ended: Callable[[str], None]) -> None:
        self._answered, self._ended = answered, ended
        self._handle: Any = None
        self._cancelling = False

    def cancel(self) -> None:
        """Have the controller end it, as soon as it has taken it."""
        self._cancelling = True
        if self._handle is not None:
            self._handle.cancel_goal_async()

    def _take_answer(self, future):
        if future.exception() is not None or not future.result().accepted:
            self._answered(False)
            return
        self._handle = future.result()
        self._handle.get_result_async().add_done_callback(self._take_result)
        if self._cancelling:
            self._handle.cancel_goal_async()
        self._answered(True)

    def _take_result(self, future):
        if future.exception() is not None:
            self._ended(str(future.exception()))
            return
        answer, result = future.result(), future.result().result
        ending = ENDINGS.get(answer.status, "ended")
        if answer.status == GoalStatus.STATUS_SUCCEEDED and result.error_code == 0:
            self._ended("")
        else:
            why = f": {result.error_string}" if result.error_string else ""
            self._ended(f"the motion {ending} by the controller, error code {result.error_code}{why}")


class Controller:
    """All calls and callbacks are on the executor's thread.

    name: of the action; missing: why motions cannot be executed at all; "" when they can
    """

    def __init__(self, node: Node, name: str) -> None:
        self.name = name
        actions, self.missing = optional_module("control_msgs.action", "execution of motions")
        self._kind = None if self.missing else actions.FollowJointTrajectory
        self._client = None if self.missing else ActionClient(node, self._kind, name)

    @property
    def problem(self) -> str:
        """Why no motion can be sent now; "" when one can."""
        if self._client is not None and not self._client.server_is_ready():
            return f"no controller serves the action '{self.name}' (parameter controller_action)"
        return self.missing

    def send(
        self,
        trajectory: JointTrajectory,
        answered: Callable[[bool], None],
        ended: Callable[[str], None],
        heard: Callable[[], None] = lambda: None,
    ) -> Execution:
        """Send a trajectory; it takes the place of the one before. There must be no `problem`.

        heard: called when the controller says that it still executes it; others as of Execution
        """
        execution = Execution(answered, ended)
        assert self._client is not None and self._kind is not None
        goal = self._kind.Goal(trajectory=trajectory)
        self._client.send_goal_async(goal, lambda _: heard()).add_done_callback(execution._take_answer)
        return execution
