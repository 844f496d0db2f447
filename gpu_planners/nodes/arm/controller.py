"""A controller that executes motions: a client of the action follow_joint_trajectory of control_msgs."""

from collections.abc import Callable

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


class Controller:
    """The client. All is done on the executor's thread.

    name: of the action; source: who names it
    missing: why motions cannot be executed at all; "" when they can
    """

    def __init__(
        self, node: Node, name: str, source: str = "parameter controller_action or group_controllers", missing: str = ""
    ) -> None:
        self.name, self.source = name, source
        actions, absent = optional_module("control_msgs.action", "execution of motions")
        self.missing = missing or absent
        self._kind = None if self.missing else actions.FollowJointTrajectory
        self._client = None if self.missing else ActionClient(node, self._kind, name)

    @property
    def problem(self) -> str:
        """Why no motion can be sent now; "" when one can."""
        if self._client is not None and not self._client.server_is_ready():
            return f"no controller serves the action '{self.name}' ({self.source})"
        return self.missing

    def send(
        self,
        trajectory: JointTrajectory,
        answered: Callable[[bool], None],
        ended: Callable[[str], None],
        heard: Callable[[], None] = lambda: None,
    ) -> Callable[[], None]:
        """Send a trajectory, which takes the place of the one before -> what has the controller end it, as soon as it
        has taken it. There must be no `problem`.

        answered: called with whether the controller takes it; ended: with what went wrong, "" when nothing did
        heard: called when the controller says that it still executes it
        """
        assert self._client is not None and self._kind is not None
        sent = self._client.send_goal_async(self._kind.Goal(trajectory=trajectory), lambda _: heard())

        def taken():
            return sent.exception() is None and sent.result().accepted

        def take_answer(_):
            if taken():
                sent.result().get_result_async().add_done_callback(lambda result: ended(_what_went_wrong(result)))
            answered(taken())

        sent.add_done_callback(take_answer)
        return lambda: sent.add_done_callback(lambda _: taken() and sent.result().cancel_goal_async())


def _what_went_wrong(future):
    if future.exception() is not None:
        return str(future.exception())
    answer, result = future.result(), future.result().result
    if answer.status == GoalStatus.STATUS_SUCCEEDED and result.error_code == 0:
        return ""
    why = f": {result.error_string}" if result.error_string else ""
    ending = ENDINGS.get(answer.status, "ended")
    return f"the motion {ending} by the controller, error code {result.error_code}{why}"
