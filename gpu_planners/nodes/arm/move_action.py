"""The action ~/move: a request of ~/plan_motion whose motion is executed."""

from contextlib import suppress

from gpu_planners_msgs.action import Move
from gpu_planners_msgs.srv import PlanMotion

from ...errors import GpuPlannersError
from ..common.actions import LongAction
from . import codes
from .arm_services import ArmServices
from .kept import constraints_of
from .move_run import Task
from .plan_service import group_of

PLAN_FIELDS = Move.Goal.get_fields_and_field_types().keys() - {"replans"}  # of a PlanMotion request


def offer_move(arm: ArmServices) -> None:
    """Offer the action ~/move, which plans as ~/plan_motion does, and has the motion executed."""

    def accept(goal):
        fields = {name: getattr(goal.request, name) for name in PLAN_FIELDS}

        def feed_back(state, plans, progress, remaining_s):
            goal.publish_feedback(Move.Feedback(state=state, plans=plans, progress=progress, remaining_s=remaining_s))

        def end(code, message, goal_index, plans):
            result = Move.Result(code=code, message=message, goal_index=goal_index, plans=plans)
            action.end(goal, result, code == codes.SUCCESS)

        def plan(start=None):
            given = {} if start is None else {"start": start}
            return arm.plan_to_move(PlanMotion.Request(**fields, **given))

        replans, replaces = int(goal.request.replans), arm.values.goals_while_moving != "none"
        group = group_of(goal.request)
        # the way from a motion under way keeps none
        bound = constraints_of(goal.request) or _in_several_hands(arm, group)
        plan_from = None if bound else plan
        task = Task("~/move", replans, plan, feed_back, end, group=group, plan_from=plan_from, replaces=replaces)
        arm.executing.start(task)
        return lambda: arm.executing.cancel(task)

    action = LongAction(arm.node, Move, "~/move", accept)
    arm.executing.on_stop(action.cancel_all)


def _in_several_hands(arm, group):
    """Does the group hold an object in several hands? An unknown one is refused when it is planned."""
    with suppress(GpuPlannersError):
        return arm.scene.in_several_hands(arm.scene.group_named(group))
    return False
