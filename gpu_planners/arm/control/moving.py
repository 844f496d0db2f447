"""Obstacles that move: a timed motion is judged by where they will be.

Each obstacle has a velocity and does not turn. A stretch of the motion, from one time to another, is proven free of
what the obstacle passes over between these times (`geometry.sweeps`), by the proof that planners use of straight
motions; the robot is thicker in it by what controllers play beside the chords (`motion.played`). A stretch that is not
free is cut in two and judged again, until it is free, or in its middle the robot meets the obstacle, or it is so short
that it counts as not free. So nothing is called free between samples.

    cart = MovingObstacle("cart", world.pieces_of("cart"), velocity=(0.0, 0.3, 0.0))
    world.remove("cart")
    found = solve(start, goals, checker, [cart], lambda path: time_parameterize(path, ..., checker=checker))
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import checked, instance, numbers
from ...errors import ObstacleError, SettingsError, shown
from ...ranges import GREATEST_LENGTH
from ..collision.checker import CollisionChecker
from ..collision.world import CollisionWorld, Piece
from ..constraints import Constraint
from ..geometry.sweeps import moved_by, swept
from ..motion.played import TUBE, refined
from ..motion.timing import body_checker
from ..planners import rrt_connect
from ..planners.result import PlanningResult
from ..planners.settings import LEAST_TIME_S, PlannerSettings
from ..planners.table import PLANNERS
from ..trajectory import Trajectory
from .spline import Spline
from .spline import first_contact as contact_on_path

SHORTEST_S = 5e-3  # a stretch that is not proven free and is no longer counts as not free
THICKER = 2 * TUBE  # by which the robot is thicker, so that this checker's packed obstacles are its own
SHARE, LATEST = 0.5, 0.8  # of the time limit: for the search among what stands, and when the last search ends
LONGER = 1.1  # times what a motion took, for which the next one keeps clear of obstacles
ROUNDS = 3  # of searches among what obstacles pass over while a motion lasts
WAITS_S = 0.25 * 1.5 ** np.arange(12)  # at the start, that are tried: up to 22 s


@checked(ObstacleError)
@dataclass(frozen=True, eq=False)
class MovingObstacle:
    """An obstacle that moves evenly and does not turn.

    name: what texts call it
    pieces: ConvexShapes and Bricks, where they are at the time `since`, in the root frame of the robot
    velocity: (3,) m/s in the root frame
    since: seconds on whatever clock
    horizon: seconds after which it stands where it has got to
    """

    name: str
    pieces: tuple[Piece, ...]
    velocity: ArrayLike
    since: float = 0.0
    horizon: float = 10.0

    def __post_init__(self) -> None:
        velocity = numbers(f"'{self.name}': velocity", self.velocity, (3,), ObstacleError).astype(float)
        if not (np.isfinite(self.since) and 0 <= self.horizon and np.isfinite(self.horizon)):
            text = f"since {self.since} and horizon {self.horizon}; allowed: finite seconds, the horizon from 0"
            raise ObstacleError(f"'{self.name}': {text}")
        if not np.abs(velocity * self.horizon).max() <= GREATEST_LENGTH:
            text = f"velocity {shown(velocity.tolist())} m/s for {self.horizon:g} s; allowed: {GREATEST_LENGTH:g} m"
            raise ObstacleError(f"'{self.name}': {text}")
        object.__setattr__(self, "velocity", velocity)

    @property
    def ends(self) -> float:
        """Seconds when it stands."""
        return self.since + self.horizon

    def during(self, begin: float, end: float) -> tuple[Piece, ...]:
        """What it passes over from one time to another."""
        first, last = (
            np.asarray(self.velocity) * (min(seconds, self.ends) - self.since) for seconds in (begin, max(begin, end))
        )
        return tuple(part for piece in self.pieces for part in swept(moved_by(piece, first), last - first))


class Found(NamedTuple):
    """result: of the search; trajectory: that is proven free of everything, None where there is none
    message: why the path of a search counts for nothing; or what was done beside planning; else ""
    """

    result: PlanningResult
    trajectory: Trajectory | None
    message: str = ""


@checked()
def world_during(
    obstacles: Sequence[MovingObstacle], begin: float, end: float, standing: CollisionWorld | None = None
) -> CollisionWorld:
    """A world of what obstacles pass over from one time to another, and of what stands."""
    world = CollisionWorld() if standing is None else standing.copy()
    for one in obstacles:
        world.add_shapes(one.name, one.during(begin, end))
    return world


@checked()
def first_contact(
    checker: Any,
    curve: Spline,
    obstacles: Sequence[MovingObstacle],
    begin: float = 0.0,
    time: float = 0.0,
    slack: float = 0.0,
) -> str:
    """Which obstacle the rest of a timed motion meets first, as a text; "" when it is proven free of them all.

    checker: CollisionChecker, whose world does not count; its margin does
    begin: seconds on the obstacles' clock when the curve's is at 0; time: seconds on the curve, where the rest begins
    slack: seconds by which the robot, or an obstacle, may be earlier or later than told

    The robot is where the quintics through the points have it. A curve whose points lack accelerations may be played in
    any way: it must be free of all that obstacles pass over from its beginning on.
    """
    instance("checker", checker, CollisionChecker, "a CollisionChecker")
    return _contact(checker, curve, obstacles, begin, time, slack)


def _contact(checker, curve, obstacles, begin, time, slack, late=lambda: False):
    """As first_contact. late: is there no time for further proofs?"""
    if not obstacles:
        return ""
    probe = body_checker(checker).thickened(THICKER)

    def pass_over(first, last):
        return world_during(obstacles, begin + first - slack, begin + last + slack)

    start, end = max(time, curve.start), max(time, curve.start, curve.end)
    if not np.isfinite(curve.accelerations).all() or end <= start:
        probe.world = pass_over(start, max(start, end))
        if len(curve.times) > 1 and end > start:
            probe.world = pass_over(start, max(one.ends for one in obstacles) - begin)
        return contact_on_path(probe, curve.remaining_path(time))

    def rows_at(times):
        return np.stack(curve.at(times), axis=1)

    stretches = [(start, end)]  # to be judged, the earliest last
    while stretches:
        first, last = stretches.pop()
        if late():
            return "there was no time to prove it free of what moves"
        inner = curve.times[(curve.times > first) & (curve.times < last)]
        times, rows, _ = refined(np.r_[first, inner, last], rows_at, probe.robot)
        q = rows[:, 0]
        probe.world = pass_over(first, last)
        free = probe.motions_valid(q[:-1], q[1:])
        if free.all():
            continue
        blocked = np.flatnonzero(~free)
        first, last = times[blocked[0]], times[blocked[-1] + 1]
        middle = (first + last) / 2
        probe.world = pass_over(middle, middle)
        pairs = probe.colliding_pairs(curve.at(middle).positions)
        if pairs:
            return f"'{pairs[0][0]}' would meet '{pairs[0][1]}', which moves, after {middle - start:.2f} s"
        if last - first <= SHORTEST_S:
            return f"it is not proven free of what moves, after {first - start:.2f} s"
        stretches += [(middle, last), (first, middle)]
    return ""


@checked()
def solve(
    start: ArrayLike,
    goals: ArrayLike,
    checker: Any,
    obstacles: Sequence[MovingObstacle],
    timed: Callable[[np.ndarray], Trajectory],
    settings: Any = rrt_connect.Settings(),
    seed: int = 0,
    slack: float = 0.0,
    clock: Callable[[], float] = lambda: 0.0,
    planner: str = "rrt_connect",
    constraints: Constraint | None = None,
) -> Found:
    """Plan a timed motion among obstacles that stand, those of the checker's world, and others that move.

    start, goals, seed: as of the planners; planner: name of one; settings: its own, whose time limit all searches share
    constraints: as of rrt_connect, the only planner that takes them
    timed: path (K, dof) -> Trajectory, by the same checker
    clock: -> seconds on the obstacles' clock when the motion begins, if it begins now; slack: as of first_contact

    Tried in this order, and the first motion that is proven free counts: a path among what stands; paths clear of what
    the obstacles pass over while such a motion lasts; and the first one after a wait at the start. What is found is
    proven for when it was found.
    """
    if planner not in PLANNERS:
        raise SettingsError(f"planner is {shown(planner)}; allowed: {', '.join(PLANNERS)}")
    if constraints is not None and planner != "rrt_connect":
        raise SettingsError(f"planner is {shown(planner)}; allowed: 'rrt_connect', where there are constraints")
    kept: dict[str, Any] = {} if constraints is None else {"constraints": constraints}
    instance("settings", settings, PlannerSettings, "Settings of a planner")
    instance("checker", checker, CollisionChecker, "a CollisionChecker")
    began, standing = time.monotonic(), checker.world
    until, latest = began + settings.time_limit_s, began + LATEST * settings.time_limit_s

    def search(share=1.0):
        left = max(share * (latest - time.monotonic()), LEAST_TIME_S)
        return PLANNERS[planner].solve(start, goals, checker, replace(settings, time_limit_s=left), seed=seed, **kept)

    def now():
        return float(numbers("clock()", clock(), ()))

    def timed_motion(path):
        return instance("timed(path)", timed(path), Trajectory, "a Trajectory")

    def contact(motion):
        return _contact(checker, Spline.of(motion), obstacles, now(), 0.0, slack, lambda: time.monotonic() > until)

    direct = search(SHARE)
    if not direct.solved:
        return Found(direct, None)
    first = motion = timed_motion(direct.path)
    why = contact(first)
    if not why:
        return Found(direct, first)
    try:
        for _ in range(ROUNDS):
            if time.monotonic() + LEAST_TIME_S > latest:
                break
            begin = now()
            last = begin + LONGER * motion.duration + slack
            checker.world = world_during(obstacles, begin - slack, last, standing)
            result = search()
            if not result.solved:
                break
            motion = timed_motion(result.path)
            if not contact(motion):
                return Found(result, motion)
    finally:
        checker.world = standing
    for wait in WAITS_S.tolist():
        waits = after_waiting(first, wait)
        text = contact(waits)
        if not text:
            return Found(direct, waits, f"it waits {wait:g} s for what moves")
        if now() + wait > max(one.ends for one in obstacles) or time.monotonic() > until:
            break
    return Found(direct, None, f"no motion is proven free of what moves: at once, {why}; after a wait, {text}")


@checked()
def after_waiting(motion: Trajectory, wait: float) -> Trajectory:
    """The motion after some seconds at its start."""
    if not wait > 0:
        raise SettingsError(f"wait is {wait}; allowed: above 0 s")
    rows = (np.concatenate([each[:1], each]) for each in (motion.positions, motion.velocities, motion.accelerations))
    return Trajectory(np.r_[0.0, motion.times + wait], *rows)
