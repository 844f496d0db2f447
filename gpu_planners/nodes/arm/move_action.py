"""The action ~/move: plans as ~/plan_motion does, and has the motion executed."""

from collections.abc import Callable
from typing import Any

from gpu_planners_msgs.action import Move
from gpu_planners_msgs.srv import PlanMotion

from ..common.services import LongAction
from . import codes as error_codes
from .arm_services import ArmServices
from .move_run import TaskPlan

PLAN_FIELDS = (
    "planner",
    "joint_goals",
    "pose_goals",
    "margin",
    "time_limit_s",
    "seed",
    "velocity_scaling",
    "acceleration_scaling",
)


class MoveAction:
    """The action of the arm node."""

    def __init__(self, arm: ArmServices) -> None:
        self._arm = arm
        self._tasks: dict[bytes, MoveTask] = {}  # by goal
        self._action = LongAction(arm.node, Move, "~/move", self._accept, self._cancel)

    def _accept(self, goal):
        key = bytes(goal.goal_id.uuid)
        self._tasks[key] = MoveTask(goal, self._arm.plan_to_move, self._end)
        self._arm.execute(self._tasks[key])

    def _cancel(self, goal):
        task = self._tasks.get(bytes(goal.goal_id.uuid))
        if task is not None:
            self._arm.cancel_execution(task)

    def _end(self, goal, result):
        del self._tasks[bytes(goal.goal_id.uuid)]
        self._action.end(goal, result, result.code == error_codes.SUCCESS)


class MoveTask:
    """A goal of ~/move as a Task."""

    line = "~/move"

    def __init__(
        self, goal: Any, plan: Callable[[PlanMotion.Request], TaskPlan], end: Callable[[Any, Move.Result], None]
    ) -> None:
        self.replans = int(goal.request.replans)
        self._goal, self._plan, self._end = goal, plan, end

    def plan(self) -> TaskPlan:
        return self._plan(PlanMotion.Request(**{name: getattr(self._goal.request, name) for name in PLAN_FIELDS}))

    def feed_back(self, state: str, plans: int, progress: float, remaining_s: float) -> None:
        self._goal.publish_feedback(Move.Feedback(state=state, plans=plans, progress=progress, remaining_s=remaining_s))

    def end(self, code: int, message: str, goal_index: int, plans: int) -> None:
        self._end(self._goal, Move.Result(code=code, message=message, goal_index=goal_index, plans=plans))
