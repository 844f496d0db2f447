"""The action follow_joint_trajectory of control_msgs, as a joint trajectory controller serves it."""

from typing import Any

from ..common.actions import LongAction
from ..common.ros import seconds

GOAL_TOLERANCE = 0.01  # rad or m, where a goal gives none
SETTLE_S = 1.0  # how long the joints may take to get there, where a goal gives no time


class FollowAction:
    """One goal at a time; another takes its place, and the first one is aborted.

    node: TrajectoryPlayer; kind: control_msgs' FollowJointTrajectory
    """

    def __init__(self, node: Any, kind: Any) -> None:
        self._kind, self._node = kind, node
        self._goal: Any = None
        self._stopping = False
        name = f"{node.values.controller}/follow_joint_trajectory"
        self._action = LongAction(node, kind, name, self._accept, lambda goal: node.why_not(goal.trajectory))

    def end(self, text: str) -> None:
        """Abort the goal that is played, if there is one."""
        if self._goal is not None:
            self._end(self._kind.Result.INVALID_GOAL, text)

    def tick(self, now: float, ends: float, error: float) -> None:
        """End the goal when its motion has. now, ends: seconds on one clock, of the motion's end
        error: greatest distance of a joint from where it should be, rad or m"""
        if self._goal is None or now < ends:
            return
        goal = self._goal.request
        if self._stopping:
            self._end(self._kind.Result.SUCCESSFUL, "cancelled")
        elif error <= max((one.position for one in goal.goal_tolerance if one.position > 0), default=GOAL_TOLERANCE):
            self._end(self._kind.Result.SUCCESSFUL, "", succeeded=True)
        elif now > ends + (max(seconds(goal.goal_time_tolerance), 0.0) or SETTLE_S):
            text = f"a joint is {error:.3g} rad or m from its goal"
            self._end(self._kind.Result.GOAL_TOLERANCE_VIOLATED, text)

    def feed_back(self, header: Any, wanted: Any, actual: Any) -> None:
        """Publish feedback. header: of now; wanted, actual: States"""
        if self._goal is None:
            return
        feedback = self._kind.Feedback(header=header, joint_names=list(self._node.player.joints.names))
        for point, state in ((feedback.desired, wanted), (feedback.actual, actual)):
            point.positions, point.velocities = state.positions.tolist(), state.velocities.tolist()
        feedback.error.positions = (wanted.positions - actual.positions).tolist()
        self._goal.publish_feedback(feedback)

    def _accept(self, goal):
        self.end("another trajectory came")
        self._goal, self._stopping = goal, False
        text = self._node.begin(goal.request.trajectory)
        if text:
            self.end(text)
        return lambda: self._cancel(goal)

    def _cancel(self, goal):
        if goal is self._goal and not self._stopping:
            self._stopping = True
            self._node.player.stop(self._node.now())

    def _end(self, code, text, succeeded=False):
        goal, self._goal = self._goal, None
        self._action.end(goal, self._kind.Result(error_code=code, error_string=text), succeeded)
