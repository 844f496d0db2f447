"""Motions of several parts as one trajectory: free motions, straight ones of the joints, lines and arcs of the tool,
with rounded corners.

Below, a line may be an arc; approach and retreat along the tool are lines. A free motion before lines goes to a goal
from which all of them can be done.
"""

import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked, numbers
from ..errors import ConfigurationError, GpuPlannersError, SettingsError, shown
from ..settings import Setting
from . import cartesian
from .cartesian import End, Line
from .collision.reach import shape_levers
from .dynamics.torques import TorqueLimits
from .geometry.shapes import ConvexShape
from .motion.curve import Curve, at, bernstein, smooth_parts, straight, through, turn
from .motion.fitted_legs import LEAST_CUT
from .motion.pacing import Limits
from .motion.played import Leg, room, within
from .motion.timing import LESS, body_checker, room_for
from .motion.tool import ToolLimits
from .planners.result import Status
from .planners.settings import LEAST_TIME_S, PlannerSettings
from .robot import inverse_kinematics
from .robot.tip import Tip
from .segments import LINES, Circular, Direct, Free, Segment, check_segments, kind_of, made
from .segments import Later as Later
from .segments import Straight as Straight
from .trajectory import DEVIATION, Trajectory, corners_of, cuts_of, joint_limits, load_along, standing, timed_trajectory

SOLUTIONS = 16  # wanted postures for each pose of a free motion
GOALS = 4  # enough goals of a free motion from which the lines after it can be done
POINT = 1e-6  # metres: radius of a ball that stands for the tip
PLACES = np.linspace(0.0, 1.0, 9)  # fractions of a rounded corner or a piece of a curve, where the tip is looked at
MANY_PLACES = np.linspace(0.0, 1.0, 65)  # where all of a corner between them counts
TIME_LIMIT = Setting(10.0, "Longest time for all segments", 0.0, math.inf, unit="seconds")
BLEND_INSIDE = Setting(False, "The tip leaves the segments only within blend_radius of their common end")


@dataclass(frozen=True)
class SequenceResult:
    """Answer of `solve`.

    failed: number of the segment that could not be done, or -1
    status: of the planner, where a free segment failed; end: of the line, where a straight one failed or ended early
    text: one sentence that names the segment and what was wrong; empty where all is well
    trajectory: None where there is none; path: (K, dof) its corners, and the steps of its lines
    ends_s: (segments planned,) when they end, seconds from the start; for a rounded corner, its middle
    ends: (segments planned, dof) where they end, before corners are rounded
    fraction: how much of the last segment that was planned the motion goes
    time_s: wall time of all of it, seconds
    """

    failed: int
    status: Status | None
    end: End | None
    text: str
    trajectory: Trajectory | None
    path: np.ndarray
    ends_s: np.ndarray
    ends: np.ndarray
    fraction: float
    time_s: float

    @property
    def solved(self) -> bool:
        """Is there a motion, be it partial?"""
        return self.trajectory is not None


@checked()
@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a motion of several parts.

    planning: of the planner of free segments; None: its defaults
    line: of lines and arcs
    deviation: how far, in the joint-space L2 norm, free motions may leave their own corners
    tool: limits of the tool along lines and arcs, beside those of the joints; segments scale both
    velocity, acceleration, jerk: (dof,) limits; None: the robot's, and jerk as in time_parameterize
    torques: limits of what the motors give, as `time_parameterize` takes them
    time_limit_s: seconds for all segments, without the timing
    allow_partial: a line that ends early ends the motion there, at its start too unless it is the first segment
    blend_inside: the tip leaves the segments only within blend_radius of their common end, as in Pilz's planner. Else
        it passes that end within blend_radius, and may leave them earlier
    """

    planning: PlannerSettings | None = None
    line: cartesian.Settings = cartesian.Settings()
    tool: cartesian.Speeds = cartesian.Speeds()
    deviation: float = 0.1
    velocity: ArrayLike | None = None
    acceleration: ArrayLike | None = None
    jerk: ArrayLike | None = None
    torques: TorqueLimits | None = None
    time_limit_s: float = 10.0
    allow_partial: bool = False
    blend_inside: bool = False

    def __post_init__(self) -> None:
        DEVIATION.checked("deviation", self.deviation)
        TIME_LIMIT.checked("time_limit_s", self.time_limit_s)
        BLEND_INSIDE.checked("blend_inside", self.blend_inside)


@checked()
def solve(
    start: Annotated[ArrayLike, ConfigurationError],
    segments: Sequence,
    checker: Any,
    planner: Any,
    settings: Settings = Settings(),
    link: str | None = None,
    seed: int = 0,
) -> SequenceResult:
    """Plan a motion through all segments, each from where the one before it ends, and time it as one.

    start: (dof,) rad or m; beyond the limits, but where the robot may stand (`RobotModel.hard_limits`), the first
        segment is Free or Direct
    segments: Free, Direct, Straight or Circular, or Later, one or more
    planner: a module of PLANNERS, for free segments
    link: what poses and lines are of; default: the robot's tip link

    Every part of the motion is proven free: paths by their planner, lines by `cartesian`, rounded corners as in
    `motion.timing`. Raises SettingsError and ConfigurationError for arguments that are wrong, and SettingsError where
    a motor of `Settings.torques` cannot hold the robot still somewhere on the path.
    """
    robot = body_checker(checker).robot
    q = numbers("start", start, (robot.dof,), ConfigurationError).astype(float)
    check_segments(segments, robot.dof)
    if not (callable(getattr(planner, "solve", None)) and hasattr(planner, "Settings")):
        raise SettingsError(f"planner is {shown(planner)}; allowed: a module of PLANNERS")
    if settings.planning is None:
        settings = replace(settings, planning=planner.Settings())
    limits = joint_limits(
        robot.velocity if settings.velocity is None else settings.velocity,
        robot.acceleration if settings.acceleration is None else settings.acceleration,
        settings.jerk,
        robot.dof,
        robot,
    )
    checker.warm_up()
    inverse_kinematics.warm_up()
    began = time.monotonic()
    tip = Tip(robot, robot.tip_link if link is None else link)
    wide = checker.around(q)
    work = _Work(checker, wide, tip, planner, settings, limits, seed, began + settings.time_limit_s)
    joined, part, failed = work.planned(q, segments)
    if failed >= 0 and len(joined.paths) <= failed:  # not even a part of the segment counts
        motion, path, ends_s, ends = None, np.zeros((0, robot.dof)), np.zeros(0), np.zeros((0, robot.dof))
    else:
        motion, path, ends_s = joined.timed(wide, settings.torques)
        ends = np.stack([each[-1] for each in joined.paths])
    spent = time.monotonic() - began
    return SequenceResult(failed, part.status, part.end, part.text, motion, path, ends_s, ends, part.fraction, spent)


class _Part(NamedTuple):
    """What was planned of a segment, its fields as in SequenceResult. path: (K, dof); misses: as in cartesian.Line"""

    path: np.ndarray
    fraction: float
    status: Status | None
    end: End | None
    text: str
    misses: Any = None


class _Joined(NamedTuple):
    """legs: of all segments so far; cuts: what the corners between them may take; away: how far a smooth leg in place
    of straight ones may leave these corners; counts: of legs up to each segment's end; paths: of the segments"""

    legs: list[Leg]
    cuts: list[float]
    away: list[float]
    counts: list[int]
    paths: list[np.ndarray]

    def timed(self, checker, torques):
        """Trajectory, path (K, dof), (segments,) seconds when they end."""
        path = np.concatenate(self.paths)
        load = load_along(path, torques, checker)
        if not self.legs:
            still = np.clip(path[:1], *room(checker.robot))
            return standing(still), path[:1], np.zeros(len(self.paths))
        trajectory, ends_s = timed_trajectory(
            [leg._replace(load=load) for leg in self.legs], self.cuts, checker, self.away
        )
        return trajectory, path, np.r_[0.0, ends_s][self.counts]


@dataclass(frozen=True)
class _Work:
    """Plans segments until a time, of time.monotonic. wide: the checker around the start; limits: of the joints"""

    checker: Any
    wide: Any
    tip: Tip
    planner: Any
    settings: Settings
    limits: Limits
    seed: int
    until: float

    @cached_property
    def reach(self) -> float:
        """Metres that the tip moves at most for a distance of 1 in joint space."""
        robot, index = self.tip.robot, self.tip.robot.link_index(self.tip.link)
        point = ConvexShape.sphere(self.tip.link, POINT, robot.T_frame_link[index])
        levers = shape_levers(robot, int(robot.link_frame[index]), point)
        rows = robot.frames[levers.frames]
        rates = np.zeros(robot.dof)
        np.add.at(rates, rows["joint"], levers.lever * np.abs(rows["multiplier"]))
        return float(np.linalg.norm(rates))

    def planned(self, q: np.ndarray, segments: Sequence) -> tuple[_Joined, _Part, int]:
        """-> what could be done from q; the part of the last segment tried; its number if it failed, else -1."""
        joined, before = _Joined([], [], [], [], []), Segment()
        for number, given in enumerate(segments):
            segment = made(number, given, q)
            part = self.part(q, segment, segments[number + 1 :])
            if part.text:
                part = part._replace(text=f"segment {number}: {part.text}")
                partial = self.settings.allow_partial and not isinstance(segment, Free)
                if not (partial and len(part.path) > (number == 0)):
                    return joined, part, number
            legs, inner = self.legs(part, segment.velocity_scaling, segment.acceleration_scaling)
            if legs:
                if joined.legs:
                    radius = before.blend_radius
                    joined.cuts.append(self.blend_cut(joined.legs[-1], legs[0], radius))
                    joined.away.append(0.0 if self.settings.blend_inside else radius / self.reach)
                joined.cuts.extend(inner)
                joined.away.extend([self.settings.deviation if part.misses is None else 0.0] * len(inner))
                joined.legs.extend(legs)
                q = legs[-1].curve.ends[-1, 0]
            before = segment
            joined.counts.append(len(joined.legs))
            joined.paths.append(part.path)
            if part.text:
                return joined, part, number
        return joined, part, -1

    def part(self, q: np.ndarray, segment: Segment, following: Sequence) -> _Part:
        """Plan one segment from q."""
        left = self.until - time.monotonic()
        if left < LEAST_TIME_S:
            return _Part(q[None], 0.0, Status.TIMED_OUT, End.TIMED_OUT, "the time limit was reached before it")
        if isinstance(segment, Free):
            return self.free(q, segment, following, left)
        if isinstance(segment, Direct):
            return self.direct(q, segment)
        line = self.line(q, segment)
        text = "" if line.solved else f"{line.end.value}: {line.text}"
        return _Part(line.path, line.fraction, None, line.end, text, line.misses)

    def legs(self, part: _Part, velocity: float, acceleration: float) -> tuple[list[Leg], list[float]]:
        """Legs of a part, straight for a free motion, smooth along a line; and what corners between them may take.
        velocity, acceleration: shares of the limits"""
        limits = self.limits.scaled(velocity, acceleration)
        path = np.clip(part.path, *room(self.wide.robot))
        moving = path[np.r_[True, np.linalg.norm(np.diff(path, axis=0), axis=1) > 1e-9]]
        if len(moving) < 2:
            return [], []
        if part.misses is None:
            legs = [Leg(straight(a, b), limits) for a, b in itertools.pairwise(corners_of(moving))]
            return legs, cuts_of(legs, self.settings.deviation).tolist()
        most = self.settings.line.tolerance, self.settings.line.angle_tolerance

        def near(q):
            """(N,) bool of configurations (N, n, dof): is the tip on the line?"""
            misses = part.misses(self.tip.pose(q.reshape(-1, q.shape[-1])))
            return np.all([miss.reshape(len(q), -1).max(axis=1) <= m for miss, m in zip(misses, most)], axis=0)

        def fits(curve):
            """(pieces,) bool: does a curve stay on the line, and within the limits?"""
            s = curve.s[:-1, None] + PLACES * np.diff(curve.s)[:, None]
            q = at(curve, s.ravel(), np.repeat(np.arange(len(s)), len(PLACES)))[:, 0]
            hulls = bernstein(np.diff(curve.s), curve.starts, curve.ends)
            return within(self.wide.robot, hulls) & near(q.reshape(*s.shape, -1))

        asked = self.settings.tool
        speeds = asked.velocity, asked.acceleration, asked.turning, asked.turning_rate
        limited = min(speeds) < math.inf
        tool = ToolLimits(self.tip, *speeds).scaled(velocity, acceleration) if limited else None
        legs = [Leg(through(rows), limits, rows, tool=tool) for rows in smooth_parts(moving, fits)]
        # the other half is left to change the speed on
        return legs, [
            _largest_cut(a, b, lambda turns: near(_at_places(turns, PLACES)), 0.5) for a, b in itertools.pairwise(legs)
        ]

    def blend_cut(self, before: Leg, after: Leg, radius: float) -> float:
        """What a corner between two segments may take of its legs by their blend_radius, metres."""
        if not radius > 0:
            return 0.0
        end = self.tip.pose(before.curve.ends[-1:, 0])[0, :3, 3]

        def away(turns, places):
            """(N, places) metres of the tip from the end."""
            q = _at_places(turns, places)
            tips = self.tip.pose(q.reshape(-1, q.shape[-1]))[:, :3, 3]
            return np.linalg.norm(tips - end, axis=1).reshape(q.shape[:2])

        def passes(turns):
            return away(turns, PLACES).min(axis=1) <= radius

        def stays_inside(turns):
            """Is all of it within the radius? Between two places the tip moves no farther than its greatest speed."""
            lengths = np.array([each.length for each in turns])
            hulls = bernstein(lengths, *(np.concatenate([each[k] for each in turns]) for k in (1, 2)))
            speed = 5 * np.linalg.norm(np.diff(hulls, axis=1), axis=2).max(axis=1)
            return away(turns, MANY_PLACES).max(axis=1) + self.reach * speed / (2 * (len(MANY_PLACES) - 1)) <= radius

        return _largest_cut(before, after, stays_inside if self.settings.blend_inside else passes)

    def free(self, q, segment, following, left) -> _Part:
        """The planner's path to the goals, or, where lines follow, to those goals from which they can be done."""
        goals = np.atleast_2d(segment.goals) if segment.goals.size else np.zeros((0, len(q)))
        if segment.poses.size:
            poses, asked = segment.poses.reshape(-1, 4, 4), {"solutions": SOLUTIONS, "time_limit_s": left / 4}
            find = self.checker.robot.inverse_kinematics
            found = find(poses, self.checker, link=self.tip.link, seed_q=q, seed=self.seed, **asked)
            goals = np.concatenate([goals, *(each.q for each in found)])
            if not len(goals):
                return self.no_goals(q, [each.colliding[0] for each in found if len(each.colliding)])
        lines = list(itertools.takewhile(lambda each: issubclass(kind_of(each), LINES), following))
        if lines and len(goals) > 1:
            goals = self.followed(goals, lines, time.monotonic() + left / 4)
        settings = _limited(self.settings.planning, self.until)
        result = self.planner.solve(q, goals, self.checker, settings, seed=self.seed)
        text = "" if result.solved else result.message or result.status.value
        return _Part(result.path, float(result.solved), result.status, None, text)

    def direct(self, q, segment) -> _Part:
        """The straight joint motion to the goal, if it is free."""
        robot, asked = self.checker.robot, np.asarray(segment.goal)
        planning: Any = self.settings.planning
        goal = np.where(robot.continuous, asked, np.clip(asked, robot.lower, robot.upper))
        k = int(np.argmax(np.abs(goal - asked)))
        if not abs(goal[k] - asked[k]) <= planning.limit_tolerance:
            text = f"the goal has {robot.joint_names[k]} = {asked[k]:.6g}, outside its limits"
            return _Part(q[None], 0.0, Status.GOAL_OUT_OF_LIMITS, None, text)
        path = np.stack([q, goal])
        if bool(self.checker.motions_valid(q[None], goal[None])[0]):
            return _Part(path, 1.0, Status.SOLVED, None, "")
        met = next(iter(self.checker.colliding_pairs(goal)), None)
        if met is not None:
            text = f"at the goal '{met[0]}' meets '{met[1]}'"
            return _Part(path[:1], 0.0, Status.GOAL_IN_COLLISION, None, text)
        return _Part(path[:1], 0.0, None, End.COLLISION, "the straight joint motion to the goal is not free")

    def no_goals(self, q, refused) -> _Part:
        """The failed part where inverse kinematics found no goal; refused: the configurations that collide, if any."""
        if not refused:
            text = f"no joint configuration inside the limits places '{self.tip.link}' there"
            return _Part(q[None], 0.0, None, End.UNREACHABLE, text)
        pair = self.checker.colliding_pairs(refused[0])[0]
        text = f"all joint configurations found for its pose collide: '{pair[0]}' meets '{pair[1]}'"
        return _Part(q[None], 0.0, Status.GOAL_IN_COLLISION, None, text)

    def followed(self, goals, lines, until):
        """The goals from which all the lines can be done, GOALS of them at most; without any, the best one."""
        able, best, most = [], goals[:1], -1.0
        for goal in goals:
            q, done = goal, 0.0
            for line in lines:
                try:
                    answer = self.line(q, made(0, line, q))
                except GpuPlannersError:  # it cannot be made there; where it is made it says why
                    break
                done += answer.fraction
                if not answer.solved:
                    break
                q = answer.path[-1]
            else:
                able.append(goal)
            if done > most:
                best, most = goal[None], done
            if len(able) == GOALS or time.monotonic() > until:
                break
        return np.array(able) if able else best

    def line(self, q, segment) -> Line:
        """The line or arc from q."""
        goal, arc = segment.pose, segment.arc if isinstance(segment, Circular) else None
        if goal is None:
            goal = cartesian.shifted(self.tip.robot, q, segment.translation, self.tip.link, segment.along_tool)
        settings = _limited(self.settings.line, self.until)
        return cartesian.solve(q, goal, self.checker, settings, self.tip.link, arc=arc)


def _limited(settings, until):
    """The settings with no more time than is left until a time."""
    left = max(until - time.monotonic(), LEAST_TIME_S)
    return replace(settings, time_limit_s=min(left, settings.time_limit_s))


def _at_places(turns: list[Curve], places: np.ndarray) -> np.ndarray:
    """(N, places, dof) on rounded corners."""
    return np.stack([at(each, places * each.length)[:, 0] for each in turns])


def _largest_cut(before: Leg, after: Leg, allows: Callable[[list[Curve]], np.ndarray], share: float = 1.0) -> float:
    """What a corner may take of its legs, up to a share of what they have room for.

    allows: called with N rounded corners for (N,) bool
    """
    most = share * room_for([before, after], np.array([np.inf]))[0]
    cuts = [most * less for less in LESS if most * less >= LEAST_CUT]
    if not cuts:
        return 0.0
    allowed = np.flatnonzero(allows([turn(before.curve, after.curve, cut) for cut in cuts]))
    return cuts[allowed[0]] if len(allowed) else 0.0
