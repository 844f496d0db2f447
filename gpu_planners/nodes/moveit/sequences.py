"""Plans a MotionSequenceRequest by Pilz's rules: one motion through all items, each from where the one before it ends.

An item is PTP, LIN or CIRC, or a free motion of one of PLANNERS. Where it has a blend_radius, the tip goes on to the
next one without a stop, and leaves the two only within that radius of the goal between them. Where no such corner is
proven free, or fits, the robot stops there, and the answer says so.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from moveit_msgs.msg import MotionPlanRequest, MotionSequenceItem, RobotTrajectory

from ...arm import sequence
from ...arm.robot.tip import Tip
from ...arm.segments import BLEND, Direct, Free, Later
from ...errors import RobotDescriptionError, SettingsError, one_line
from ..arm import codes
from ..arm.conversions import trajectory_message
from ..arm.parameters import PLANNERS, ArmParameters, settings_on
from ..arm.payload import torque_limits
from ..arm.sequence_service import code_of_failure, inside_limits
from ..common.request_error import RequestError, answered_with, check_count
from . import industrial, planning
from .constraints import is_empty, read_constraints
from .goals import goals_in
from .requests import INDUSTRIAL, MotionQuery, PlannedMotion, check_start, kind_of
from .scene_messages import STATE
from .scene_messages import is_empty as says_nothing

STANDING = 1e-9  # rad/s or m/s: below it the robot stands
GOAL_TIME = 0.5  # part of an item's time that its goals may take


def group_of(items: Sequence[MotionSequenceItem]) -> str:
    """The one group that items name, or ""; RequestError where they name several."""
    groups = list(dict.fromkeys(item.req.group_name for item in items if item.req.group_name))
    if len(groups) > 1:
        named = ", ".join(f"'{one}'" for one in groups)
        raise RequestError(codes.INVALID_GROUP_NAME, f"a sequence is of one group; its items name {named}")
    return next(iter(groups), "")


def check_items(items: Sequence[MotionSequenceItem], values: ArmParameters) -> None:
    """Refuse what no plan can honour, before anything is made of it; RequestError with a code and a text."""
    check_count("items", len(items), "max_segments", values, codes.FAILURE)
    planners: dict[str, int] = {}  # of free motions, and the first item that has it
    for i, item in enumerate(items):
        with _of_item(i):
            planning.check_request(item.req, values)
            if i and not says_nothing(item.req.start_state, STATE):
                text = "it has a start_state; allowed: in item 0 only, for each begins where the one before it ends"
                raise RequestError(codes.INVALID_ROBOT_STATE, text)
            with answered_with(codes.INVALID_MOTION_PLAN, SettingsError):
                BLEND.checked("blend_radius", item.blend_radius)
            if i == len(items) - 1 and item.blend_radius:
                text = f"blend_radius is {item.blend_radius}; allowed: 0, for it is the last item"
                raise RequestError(codes.INVALID_MOTION_PLAN, text)
            kind = kind_of(item.req, values)
            if kind in PLANNERS:
                planners.setdefault(kind, i)
                if not is_empty(item.req.path_constraints):
                    text = "a free motion of a sequence keeps no path_constraints; allowed: none"
                    raise RequestError(codes.PLANNING_FAILED, text)
    if len(planners) > 1:
        named = ", ".join(f"item {i} {planner}" for planner, i in planners.items())
        raise RequestError(codes.PLANNING_FAILED, f"free motions of a sequence have one planner; they name {named}")


def first_request(items: Sequence[MotionSequenceItem], values: ArmParameters) -> tuple[MotionPlanRequest, str]:
    """The request that says where the sequence begins, and the planner of its free motions."""
    kinds = [kind_of(item.req, values) for item in items]
    return items[0].req, next((kind for kind in kinds if kind in PLANNERS), values.planner)


def plan(query: MotionQuery, items: Sequence[MotionSequenceItem]) -> PlannedMotion:
    """The motion; RequestError where there is none. query: of first_request"""
    began, values, checker = time.monotonic(), query.values, query.checker
    robot, (_, planner) = checker.robot, first_request(items, values)
    settings = getattr(values, planner)
    check_start(checker, query.start)
    start = inside_limits(robot, query.start, settings)
    limits = [item.req.allowed_planning_time or settings.time_limit_s for item in items]
    asked = [_Item(i, item, query, max(limit, 0.0)) for i, (item, limit) in enumerate(zip(items, limits, strict=True))]
    link = _link_of(asked, start) or robot.tip_link
    how = sequence.Settings(
        planning=replace(settings_on(checker.device, settings), time_limit_s=max(limits)),
        line=values.line,
        deviation=values.corner_deviation,
        tool=industrial.tool_speeds(query),
        jerk=robot.jerk_limits(time_s=values.jerk_time_s),
        torques=torque_limits(robot, values),
        time_limit_s=sum(limits),
        blend_inside=True,
    )
    with (
        answered_with(codes.INVALID_MOTION_PLAN, SettingsError),
        answered_with(codes.INVALID_LINK_NAME, RobotDescriptionError),
    ):
        result = sequence.solve(start, [one.segment for one in asked], checker, PLANNERS[planner], how, link)
    if result.trajectory is None:
        raise RequestError(code_of_failure(result), one_line(result.text).replace("segment", "item", 1))
    _check_overlaps(Tip(robot, link), result.ends, items)
    spent = time.monotonic() - began
    text = (
        f"solved: {len(items)} items, link '{link}', {result.trajectory.duration:.2f} s long, on {checker.device} in "
        f"{1e3 * spent:.1f} ms{_stops(result, items)}"
    )
    trajectory = RobotTrajectory(joint_trajectory=trajectory_message(robot, result.trajectory))
    return PlannedMotion(result.path, trajectory, spent, text)


class _Item:
    """One item of a sequence. number: its own; query: of the sequence; limit: seconds"""

    def __init__(self, number: int, item: MotionSequenceItem, query: MotionQuery, limit: float) -> None:
        self.number, self._query, self._limit = number, query._replace(request=item.req), limit
        self.kind = kind_of(item.req, query.values)
        velocity, acceleration = self._query.scaling
        self._more = {
            "blend_radius": item.blend_radius,
            "velocity_scaling": velocity,
            "acceleration_scaling": acceleration,
        }

    @property
    def segment(self) -> Later:
        """What begins where the item before it ends."""
        kinds: dict[str, Any] = {"PTP": Direct, "LIN": sequence.Straight, "CIRC": sequence.Circular}
        return Later(kinds.get(self.kind, Free), self._made)

    def line(self, q: np.ndarray) -> tuple[Any, str]:
        """Of LIN and CIRC the segment from q (dof,), and the link that it moves."""
        with _of_item(self.number), answered_with(codes.INVALID_MOTION_PLAN, SettingsError, f"{self.kind}: "):
            query = self._from(q)
            return industrial.line(self.kind, industrial.read_goal(self.kind, query), query, **self._more)

    def read(self, q: np.ndarray) -> list[Any]:
        """Its goal regions as they are from q (dof,)."""
        with _of_item(self.number):
            query = self._from(q)
            if self.kind in INDUSTRIAL:
                return [industrial.read_goal(self.kind, query)]
            return [read_constraints(one, query.reference, "the goal") for one in query.request.goal_constraints]

    def _made(self, q):
        if self.kind in ("LIN", "CIRC"):
            return self.line(q)[0]
        query, regions = self._from(q), self.read(q)
        with _of_item(self.number):
            if self.kind == "PTP":
                return Direct(industrial.target(regions[0], query, self._limit), **self._more)
            return Free(goals=self._goals(regions, query), **self._more)

    def _goals(self, regions, query):
        """(G, dof) what each region asks for most of all; a region without any counts only where all are."""
        goals, failures = [], []
        until = time.monotonic() + GOAL_TIME * self._limit
        for region in regions:
            try:
                found, first = goals_in(
                    region, query.checker, query.start, query.values.ik_solutions, until, self.number
                )
                goals.append(found[:first])
            except RequestError as failure:
                failures.append(failure)
        if not goals:
            raise failures[0]
        return np.concatenate(goals)

    def _from(self, q):
        return self._query._replace(start=q, reference=self._query.reference.at(q))


def _link_of(asked, start):
    """The link that lines and arcs move, "" without any; RequestError where they move several. This reads all goals, so
    that what is malformed is refused before anything is planned."""
    links = {}
    for one in asked:
        if one.kind in ("LIN", "CIRC"):
            links.setdefault(one.line(start)[1], one.number)
        else:
            one.read(start)
    if len(links) > 1:
        named = ", ".join(f"item {i} '{link}'" for link, i in links.items())
        raise RequestError(codes.INVALID_LINK_NAME, f"lines and arcs of a sequence move one link; they name {named}")
    return next(iter(links), "")


def _check_overlaps(tip, ends, items):
    """RequestError where the blends of neighbours meet. ends: (items, dof)"""
    apart = np.linalg.norm(np.diff(tip.pose(ends)[:, :3, 3], axis=0), axis=1)
    radii = [item.blend_radius for item in items]
    for i, (far, r, after) in enumerate(zip(apart, radii, radii[1:])):
        if r + after > far:
            text = (
                f"item {i} and item {i + 1} have blend radii of {r:g} and {after:g} m, and goals that are {far:.4g} m "
                "apart; allowed: radii that are together no more than that"
            )
            raise RequestError(codes.INVALID_MOTION_PLAN, text)


def _stops(result, items):
    """What is said about items that should be blended, and are not."""
    speeds = np.abs(result.trajectory.at(result.ends_s)[1]).max(axis=1)
    stop = [f"{i}" for i, (item, v) in enumerate(zip(items, speeds)) if item.blend_radius and v < STANDING]
    if not stop:
        return ""
    return f"; it stops at the goal of item {', '.join(stop)}: no corner within the blend_radius is proven free"


@contextmanager
def _of_item(number: int) -> Iterator[None]:
    """Have errors name the item."""
    try:
        yield
    except RequestError as error:
        text = str(error)
        raise RequestError(error.code, text if text.startswith("item ") else f"item {number}: {text}") from error
