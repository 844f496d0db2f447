"""Motions of several parts as one trajectory: free motions, lines and arcs of the tool, with rounded corners.

Below, a line may be an arc; approach and retreat along the tool are lines. A free motion before lines goes to a goal
from which all of them can be done.
"""

import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked, numbers
from ..errors import ConfigurationError, SettingsError, shown
from ..settings import Setting
from . import cartesian
from .cartesian import Arc, End, Line
from .collision.reach import shape_levers
from .geometry.shapes import ConvexShape
from .motion.curve import at, bernstein, smooth_parts, straight, through, turn
from .motion.fitted_legs import LEAST_CUT
from .motion.pacing import Limits
from .motion.played import Leg, room, within
from .motion.timing import LESS, body_checker, room_for
from .planners.result import Status
from .planners.settings import LEAST_TIME_S, PlannerSettings
from .robot import inverse_kinematics
from .robot.tip import Tip
from .trajectory import DEVIATION, Trajectory, corners_of, cuts_of, joint_limits, standing, timed_trajectory

SOLUTIONS = 16  # wanted postures for each pose of a free motion
GOALS = 4  # enough goals of a free motion from which the lines after it can be done
POINT = 1e-6  # metres: radius of a ball that stands for the tip
PLACES = np.linspace(0.0, 1.0, 9)  # fractions of a rounded corner or a piece of a curve, where the tip is looked at
SCALING = Setting(1.0, "Fraction of the joints' limits", 1e-3, 1.0)
TIME_LIMIT = Setting(10.0, "Longest time for all segments", 0.0, math.inf, unit="seconds")
ALONG_TOOL = Setting(False, "The translation is in the link's own axes")
BLEND = Setting(0.0, "How far the tip may leave the end of a segment", 0.0, 10.0, unit="metres")


@dataclass(frozen=True)
class Segment:
    """What all parts of a motion have.

    blend_radius: metres within which the tip passes the part's end without a stop; 0: it stops there, as it does where
        no rounded corner is free
    velocity_scaling, acceleration_scaling: fractions of the joints' limits
    """

    blend_radius: float = field(default=0.0, kw_only=True)
    velocity_scaling: float = field(default=1.0, kw_only=True)
    acceleration_scaling: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        BLEND.checked("blend_radius", self.blend_radius)
        SCALING.checked("velocity_scaling", self.velocity_scaling)
        SCALING.checked("acceleration_scaling", self.acceleration_scaling)


@dataclass(frozen=True)
class Free(Segment):
    """Any collision-free motion to one of the goals (G, dof), or to one of the poses (N, 4, 4) of the link."""

    goals: ArrayLike = ()
    poses: ArrayLike = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, one in (("goals", (None,)), ("poses", (4, 4))):
            given = numbers(name, getattr(self, name), finite=False)
            if given.size:
                numbers(name, given, one if given.ndim == len(one) else (None, *one), finite=False)
            object.__setattr__(self, name, given.astype(float))


@dataclass(frozen=True)
class Straight(Segment):
    """The link moves on a straight line and turns evenly: to a pose (4, 4), or by a translation (3,) in metres.

    along_tool: the translation is in the link's own axes, as for an approach along the tool
    """

    pose: ArrayLike | None = None
    translation: ArrayLike | None = None
    along_tool: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        ALONG_TOOL.checked("along_tool", self.along_tool)
        for name, shape in (("pose", (4, 4)), ("translation", (3,))):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, numbers(name, getattr(self, name), shape).astype(float))


@dataclass(frozen=True)
class Circular(Segment):
    """The link moves on an arc and turns evenly, to a pose (4, 4)."""

    pose: ArrayLike
    arc: Arc

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "pose", numbers("pose", self.pose, (4, 4)).astype(float))
        if not isinstance(self.arc, Arc):
            raise SettingsError(f"arc is {shown(self.arc)}; allowed: a cartesian.Arc")


@dataclass(frozen=True)
class SequenceResult:
    """Answer of `solve`.

    failed: number of the segment that could not be done, or -1
    status: of the planner, where a free segment failed; end: of the line, where a straight one failed or ended early
    text: one sentence that names the segment and what was wrong; empty where all is well
    trajectory: None where there is none; path: (K, dof) its corners, and the steps of its lines
    ends_s: (segments planned,) when they end, seconds from the start; for a rounded corner, its middle
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
    velocity, acceleration, jerk: (dof,) limits; None: the robot's, and jerk as in time_parameterize
    time_limit_s: seconds for all segments, without the timing
    allow_partial: a line that ends early ends the motion there, at its start too unless it is the first segment
    """

    planning: PlannerSettings | None = None
    line: cartesian.Settings = cartesian.Settings()
    deviation: float = 0.1
    velocity: ArrayLike | None = None
    acceleration: ArrayLike | None = None
    jerk: ArrayLike | None = None
    time_limit_s: float = 10.0
    allow_partial: bool = False

    def __post_init__(self) -> None:
        DEVIATION.checked("deviation", self.deviation)
        TIME_LIMIT.checked("time_limit_s", self.time_limit_s)


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

    start: (dof,) rad or m
    segments: Free, Straight or Circular, one or more
    planner: a module of PLANNERS, for free segments
    link: what poses and lines are of; default: the robot's tip link

    Every part of the motion is proven free: paths by their planner, lines by `cartesian`, rounded corners as in
    `motion.timing`. Raises SettingsError and ConfigurationError for arguments that are wrong.
    """
    robot = body_checker(checker).robot
    q = numbers("start", start, (robot.dof,), ConfigurationError).astype(float)
    _check_segments(segments, robot.dof)
    if not (callable(getattr(planner, "solve", None)) and hasattr(planner, "Settings")):
        raise SettingsError(f"planner is {shown(planner)}; allowed: a module of PLANNERS")
    if settings.planning is None:
        settings = replace(settings, planning=planner.Settings())
    limits = joint_limits(
        robot.velocity if settings.velocity is None else settings.velocity,
        robot.acceleration if settings.acceleration is None else settings.acceleration,
        settings.jerk,
        robot.dof,
    )
    checker.warm_up()
    inverse_kinematics.warm_up()
    began = time.monotonic()
    tip = Tip(robot, robot.tip_link if link is None else link)
    work = _Work(checker, tip, planner, settings, limits, seed, began + settings.time_limit_s)
    joined, part, failed = work.planned(q, segments)
    if failed >= 0 and len(joined.paths) <= failed:  # not even a part of the segment counts
        motion, path, ends_s = None, np.zeros((0, robot.dof)), np.zeros(0)
    else:
        motion, path, ends_s = joined.timed(checker)
    spent = time.monotonic() - began
    return SequenceResult(failed, part.status, part.end, part.text, motion, path, ends_s, part.fraction, spent)


def _check_segments(segments, dof):
    if not len(segments):
        raise SettingsError("segments is empty; allowed: at least one Free, Straight or Circular")
    for number, segment in enumerate(segments):
        if isinstance(segment, Free):
            goals = segment.goals
            if not goals.size and not segment.poses.size:
                raise SettingsError(f"segment {number} has no goal; allowed: goals or poses")
            if goals.size and (goals.ndim > 2 or goals.shape[-1] != dof):
                raise SettingsError(f"segment {number}: goals has shape {goals.shape}; allowed: ({dof},) or (G, {dof})")
        elif isinstance(segment, Straight):
            if (segment.pose is None) == (segment.translation is None):
                raise SettingsError(f"segment {number}: allowed are either a pose or a translation")
        elif not isinstance(segment, Circular):
            raise SettingsError(f"segment {number} is {shown(segment)}; allowed: Free, Straight or Circular")


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

    def timed(self, checker):
        """Trajectory, path (K, dof), (segments,) seconds when they end."""
        path = np.concatenate(self.paths)
        if not self.legs:
            still = np.clip(path[:1], *room(checker.robot))
            return standing(still), path[:1], np.zeros(len(self.paths))
        trajectory, ends_s = timed_trajectory(self.legs, self.cuts, checker, self.away)
        return trajectory, path, np.r_[0.0, ends_s][self.counts]


@dataclass(frozen=True)
class _Work:
    """Plans segments until a time, of time.monotonic. limits: of the joints"""

    checker: Any
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
        joined = _Joined([], [], [], [], [])
        for number, segment in enumerate(segments):
            part = self.part(q, segment, segments[number + 1 :])
            if part.text:
                part = part._replace(text=f"segment {number}: {part.text}")
                partial = self.settings.allow_partial and not isinstance(segment, Free)
                if not (partial and len(part.path) > (number == 0)):
                    return joined, part, number
            legs, inner = self.legs(part, self.limits.scaled(segment.velocity_scaling, segment.acceleration_scaling))
            if legs:
                if joined.legs:
                    radius = segments[number - 1].blend_radius
                    joined.cuts.append(_blend_cut(joined.legs[-1], legs[0], radius, self.tip))
                    joined.away.append(radius / self.reach)
                joined.cuts.extend(inner)
                joined.away.extend([self.settings.deviation if part.misses is None else 0.0] * len(inner))
                joined.legs.extend(legs)
                q = legs[-1].curve.ends[-1, 0]
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
        line = self.line(q, segment)
        text = "" if line.solved else f"{line.end.value}: {line.text}"
        return _Part(line.path, line.fraction, None, line.end, text, line.misses)

    def legs(self, part: _Part, limits: Limits) -> tuple[list[Leg], list[float]]:
        """Legs of a part, straight for a free motion, smooth along a line; and what corners between them may take."""
        path = np.clip(part.path, *room(self.checker.robot))
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
            return within(self.checker.robot, hulls) & near(q.reshape(*s.shape, -1))

        legs = [Leg(through(rows), limits, rows) for rows in smooth_parts(moving, fits)]
        # the other half is left to change the speed on
        return legs, [_largest_cut(a, b, near, 0.5) for a, b in itertools.pairwise(legs)]

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
        lines = list(itertools.takewhile(lambda each: not isinstance(each, Free), following))
        if lines and len(goals) > 1:
            goals = self.followed(goals, lines, time.monotonic() + left / 4)
        settings = _limited(self.settings.planning, self.until)
        result = self.planner.solve(q, goals, self.checker, settings, seed=self.seed)
        text = "" if result.solved else result.message or result.status.value
        return _Part(result.path, float(result.solved), result.status, None, text)

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
                answer = self.line(q, line)
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


def _blend_cut(before: Leg, after: Leg, radius: float, tip: Tip) -> float:
    """What a corner between two segments may take of its legs, so that the tip passes it within `radius` metres."""
    if not radius > 0:
        return 0.0
    end = tip.pose(before.curve.ends[-1:, 0])[0, :3, 3]

    def near(q):
        places = tip.pose(q.reshape(-1, q.shape[-1]))[:, :3, 3]
        return np.linalg.norm(places - end, axis=1).reshape(len(q), -1).min(axis=1) <= radius

    return _largest_cut(before, after, near)


def _largest_cut(before: Leg, after: Leg, near: Callable[[np.ndarray], np.ndarray], share: float = 1.0) -> float:
    """What a corner may take of its legs, up to a share of what they have room for.

    near: configurations (N, PLACES, dof) on N rounded corners -> (N,) bool, are they allowed?
    """
    most = share * room_for([before, after], np.array([np.inf]))[0]
    cuts = [most * less for less in LESS if most * less >= LEAST_CUT]
    if not cuts:
        return 0.0
    turns = [turn(before.curve, after.curve, cut) for cut in cuts]
    allowed = np.flatnonzero(near(np.stack([at(each, PLACES * each.length)[:, 0] for each in turns])))
    return cuts[allowed[0]] if len(allowed) else 0.0
