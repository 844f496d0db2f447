"""A Solution of MoveIt Task Constructor, executed: its sub trajectories in order, each with its scene_diff after it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from moveit_msgs.msg import PlanningScene
from sensor_msgs.msg import JointState, MultiDOFJointState

from ...errors import ConfigurationError, error_text
from ..arm import codes
from ..arm.arm_services import ArmServices
from ..arm.move_run import TaskPlan
from ..common.request_error import RequestError, answered_with
from ..player.trajectories import check_trajectory
from . import scene_messages as scenes
from .given_motion import given_motion, without_followers


class SolutionRun:
    """Executes a Solution. Its `plan` is a Task's whose `goes_on` is set.

    margin: metres that motions keep from obstacles, when each begins
    take_scene: changes the scene by a PlanningScene
    feed_back: called with the number of each sub trajectory that has ended and how many there are
    """

    def __init__(
        self,
        arm: ArmServices,
        parts: Sequence[Any],
        margin: Callable[[], float],
        take_scene: Callable[[PlanningScene], None],
        feed_back: Callable[[int, int], None],
    ) -> None:
        self._arm, self._parts, self._margin = arm, parts, margin
        self._take_scene, self._feed_back = take_scene, feed_back
        self._next, self._under_way = 0, False

    def check(self, check_controllers: Callable[[Sequence[str], str], None]) -> str:
        """Refuse what controllers cannot do, before anything moves; RequestError names the sub trajectory -> the group
        of the first one that moves, as of PlanningScene.group_named.

        check_controllers: raises RequestError for names of other controllers than a group's
        """
        scene, first = self._arm.scene, None
        for number, part in enumerate(self._parts):
            with self._of_part(number):
                trajectory = without_followers(part.trajectory.joint_trajectory, scene.require_robot())
                group = scene.group_of_joints(trajectory.joint_names)
                check_controllers(part.execution_info.controller_names, group)
                if _moves(part):
                    first = group if first is None else first
                    with answered_with(codes.INVALID_MOTION_PLAN, ConfigurationError):
                        check_trajectory(trajectory, scene.described(group).joint_names, 0.0)
        return first or ""

    def plan(self) -> TaskPlan:
        """The next motion, checked as ExecuteTrajectory checks it; none where all is done. The one before has ended."""
        if self._under_way:
            self._end_part()
        while self._next < len(self._parts):
            part = self._parts[self._next]
            if _moves(part):
                with self._of_part(self._next):
                    plan = given_motion(self._arm, part.trajectory, self._margin())
                self._under_way = True
                return plan
            self._end_part()
        return TaskPlan(codes.SUCCESS, f"{len(self._parts)} sub trajectories executed")

    def _end_part(self):
        """Apply the scene_diff of the sub trajectory that has ended. As in MoveIt it changes no joints."""
        number, diff = self._next, self._parts[self._next].scene_diff
        self._next, self._under_way = number + 1, False
        self._feed_back(number, len(self._parts))
        diff.robot_state.joint_state, diff.robot_state.multi_dof_joint_state = JointState(), MultiDOFJointState()
        diff.robot_state.is_diff = True
        if not scenes.is_empty(diff):
            with self._of_part(number, ", which was executed: its scene_diff was refused"):
                self._take_scene(diff)

    @contextmanager
    def _of_part(self, number: int, more: str = "") -> Iterator[None]:
        """Have errors name the sub trajectory."""
        try:
            yield
        except Exception as error:
            text = f"sub_trajectory {number} of {len(self._parts)}{more}: {error_text(error)}"
            raise RequestError(codes.code_of(error), text) from error


def _moves(part):
    return bool(part.trajectory.joint_trajectory.points or part.trajectory.multi_dof_joint_trajectory.points)
