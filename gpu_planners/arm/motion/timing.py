"""Legs of a motion with stops or rounded corners between them, their timing, and the proof of what a controller plays.

A controller joins a trajectory's points by straight lines, cubics or quintics, as they carry velocities and
accelerations or not. Where the motion bends, points lie so densely that all three stay in a tube around the points'
chords: no point of the robot is farther than TUBE metres from where it would be on the chord. Then the checker proves
the chords free for a robot that is thicker by TUBE; and the curves stay within the joints' limits, since their control
points do. A corner for which that fails is rounded less, at last not at all; a smooth leg becomes the straight motions
that it was made from. Chords on a straight leg are as free as the leg.
"""

import itertools
from typing import Any, NamedTuple

import numpy as np

from ...errors import SettingsError, shown
from ..collision.reach import joint_reach
from .curve import Curve, aside, at, bernstein, cubic_bernstein, is_straight, joined, part, straight, turn
from .pacing import Limits, Phases, line_stretches, phases, turn_stretch

TUBE = 5e-4  # metres
BENT = 0.01  # rad or m that a joint leaves a chord at most where nothing is to be proven
STRAIGHT = 1e-8  # rad or m by which float64 misses a straight line
LEAST_CUT = 1e-3  # rad or m: a corner that would be rounded less is a stop
LESS = (1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.05, 0.03, 0.02)  # shares of a cut that are tried
TRIES = 4  # after which a corner, halved each time that the motion's own points find it not free, becomes a stop
SHORTEST_STEP_S = 1e-6  # points closer than this are one point
DIGITS = 9  # of seconds: times are whole nanoseconds, as those of messages are
FINEST_S = 1e-3  # least spacing of points that are added where a curve between them may leave the limits
ROUNDING = 1e-12  # of a limit, or of 1 rad or m: positions stay within it by so much, whoever evaluates the curves
LONGEST_S = 1e6  # of a trajectory, twelve days: beyond, seconds in float64 no longer tell nanoseconds apart
MOST_POINTS = 100_000


class Leg(NamedTuple):
    """A part of a motion without corners.

    curve: Curve; limits: of the joints on it
    rows: (K, dof) of a curve that is not straight, from its start to its end: the straight motions between them are
        proven free
    """

    curve: Curve
    limits: Limits
    rows: np.ndarray = np.zeros((0, 0))


class Timed(NamedTuple):
    """Points of a timed motion.

    times: (T,) seconds; rows: (T, 3, dof) position, velocity, acceleration
    inside: (T - 1,) bool, are cubic and quintic between two points within the joints' limits?
    owner: (T - 1,) what an interval belongs to: leg i, or the corner after leg i as -1 - i
    bent: (T - 1,) bool: does it belong to a corner, or to a leg that is not straight?
    ends_s: (legs,) seconds when the legs end, in the middle of rounded corners
    """

    times: np.ndarray
    rows: np.ndarray
    inside: np.ndarray
    owner: np.ndarray
    bent: np.ndarray
    ends_s: np.ndarray


def timed(legs: list[Leg], cuts: np.ndarray, checker: Any = None) -> Timed:
    """The fastest motion along the legs under their limits, whose corners are rounded.

    cuts: (legs - 1,) how much of its two legs a corner may take, rad or m; 0: stop there
    checker: CollisionChecker that proves corners free and within the joints' limits, or they are rounded less; None:
        nothing is proven

    Raises SettingsError for limits that lie too far apart.
    """
    cuts = room_for(legs, np.asarray(cuts, dtype=float))
    if checker is None:
        return _timed_once(legs, np.where(cuts < LEAST_CUT, 0.0, cuts), None)
    cuts, last = _provable(legs, cuts, checker), np.arange(len(legs))
    tries = np.zeros(len(cuts), dtype=int)
    while True:
        motion = _timed_once(legs, np.where(cuts < LEAST_CUT, 0.0, cuts), checker.robot)
        owners = np.unique(motion.owner[_unproven(motion, checker)])
        if not len(owners):
            return motion._replace(ends_s=motion.ends_s[last])
        corners = -1 - owners[owners < 0]
        tries[corners] += 1
        cuts[corners] *= np.where(tries[corners] < TRIES, 0.5, 0.0)
        if len(corners) < len(owners):
            legs, cuts, new = _straightened(legs, cuts, owners[owners >= 0])
            last, tries = new[last], np.zeros(len(cuts), dtype=int)


def _straightened(legs, cuts, which):
    """Put straight motions, and stops between them, in place of some smooth legs -> legs, cuts, and (legs,) the number
    of each old leg's last part."""
    parts = [
        [Leg(straight(a, b), leg.limits) for a, b in itertools.pairwise(leg.rows)] if i in which else [leg]
        for i, leg in enumerate(legs)
    ]
    last = np.cumsum([len(each) for each in parts]) - 1
    new = np.zeros(last[-1])
    new[last[:-1]] = np.where(np.isin(np.arange(len(cuts)), which) | np.isin(np.arange(1, len(legs)), which), 0.0, cuts)
    return [leg for each in parts for leg in each], new, last


def body_checker(checker: Any) -> Any:
    """The checker; SettingsError where it is no CollisionChecker."""
    if isinstance(checker, type) or not callable(getattr(checker, "thickened", None)):
        raise SettingsError(f"checker is {shown(checker)}; allowed: a CollisionChecker")
    return checker


def room(robot: Any, share: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """(dof,) lower, upper: the joints' limits, drawn in by a share of ROUNDING; infinite for continuous joints."""
    return drawn_in(
        np.where(robot.continuous, -np.inf, robot.lower), np.where(robot.continuous, np.inf, robot.upper), share
    )


def drawn_in(lower: np.ndarray, upper: np.ndarray, share: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """`room` of limits (dof,), infinite where there are none."""
    size = np.minimum(ROUNDING * np.maximum(1.0, np.maximum(np.abs(lower), np.abs(upper))), (upper - lower) / 2)
    size = np.where(np.isfinite(lower) & np.isfinite(upper), share * size, 0.0)
    return lower + size, upper - size


def within(robot: Any, points: np.ndarray) -> np.ndarray:
    """(N,) bool: do curves with these control points (N, n, dof) stay within the joints' limits?"""
    lower, upper = room(robot, 0.5)
    return np.all((points >= lower) & (points <= upper), axis=(1, 2))


def _provable(legs, cuts, checker):
    """(legs - 1,) for each corner the largest of LESS times its cut with which it is free, or 0."""
    asked = [(i, share * cuts[i]) for i in range(len(cuts)) for share in LESS if share * cuts[i] >= LEAST_CUT]
    found = np.zeros(len(cuts))
    if not asked:
        return found
    turns = [turn(legs[i].curve, legs[i + 1].curve, cut) for i, cut in asked]
    starts, ends = (np.concatenate([getattr(each, side) for each in turns]) for side in ("starts", "ends"))
    hulls = bernstein(np.array([each.length for each in turns]), starts, ends)
    off = aside(hulls) @ joint_reach(checker.robot).T
    counts = np.maximum(np.ceil(np.sqrt(off.max(axis=1, initial=0.0) / TUBE)), 1).astype(int)
    points = [at(each, np.linspace(0, each.length, n + 1))[:, 0] for each, n in zip(turns, counts, strict=True)]
    free = checker.thickened(TUBE).motions_valid(
        np.concatenate([q[:-1] for q in points]), np.concatenate([q[1:] for q in points])
    )
    whole = np.logical_and.reduceat(free, np.r_[0, np.cumsum(counts)[:-1]]) & within(checker.robot, hulls)
    for (i, cut), proven in zip(asked, whole, strict=True):
        if proven:
            found[i] = max(found[i], cut)
    return found


def _unproven(motion, checker):
    """Numbers of the bent intervals that are not proven free and within the joints' limits."""
    bent = np.flatnonzero(motion.bent)
    if not len(bent):
        return bent
    q = motion.rows[:, 0]
    return bent[~(checker.thickened(TUBE).motions_valid(q[bent], q[bent + 1]) & motion.inside[bent])]


def room_for(legs: list[Leg], cuts: np.ndarray) -> np.ndarray:
    """The cuts, none more than half of what it cuts."""
    lengths = np.array([leg.curve.length for leg in legs])
    return np.minimum(cuts, 0.5 * np.minimum(lengths[:-1], lengths[1:]))


def _timed_once(legs, cuts, robot):
    """Timed of legs whose corners take these cuts; robot: RobotModel, or None where nothing is to be proven."""
    curves, stretches, owners, stops, s = [], [], [], set(), 0.0
    for i, leg in enumerate(legs):
        first, last = cuts[i - 1] if i else 0.0, cuts[i] if i < len(cuts) else 0.0
        if leg.curve.length - first - last > STRAIGHT:
            curves.append(part(leg.curve, leg.curve.s[0] + first, leg.curve.s[-1] - last))
            stretches += (more := line_stretches(curves[-1], s, leg.limits))
            owners += [i] * len(more)
            s += curves[-1].length
        if i < len(cuts):
            if cuts[i] > 0:
                curves.append(turn(leg.curve, legs[i + 1].curve, cuts[i]))
                both = Limits(*map(np.minimum, leg.limits, legs[i + 1].limits))
                stretches.append(turn_stretch(curves[-1], s, both))
                owners.append(-1 - i)
                s += curves[-1].length
            else:
                stops.add(len(stretches))
    with np.errstate(over="ignore", invalid="ignore"):
        along = phases(stretches, stops)
        times, rows, inside = _sampled(joined(curves), along, robot)
    owners = np.array(owners)
    owner = owners[along.at((times[:-1] + times[1:]) / 2)[3]]
    bent = (owner < 0) | np.array([not is_straight(leg.curve) for leg in legs])[owner]
    return Timed(times, rows, inside, owner, bent, _leg_ends(along, owners, len(legs)))


def _sampled(curve: Curve, along: Phases, robot):
    """Points at the ends of all phases, and between them where the motion leaves a chord too far, or may leave the
    joints' limits.

    -> times, rows, inside of Timed
    """
    if not along.time[-1] <= LONGEST_S:
        raise SettingsError(
            f"the motion would take {along.time[-1]:.3g} s under these velocity and acceleration limits; "
            f"allowed: up to {LONGEST_S:g} s"
        )
    keep = np.r_[True, np.diff(along.time) >= SHORTEST_STEP_S]
    keep[-1] = True
    times = np.round(along.time[keep], DIGITS)
    if len(times) > 2 and times[-1] - times[-2] < SHORTEST_STEP_S:
        times = np.delete(times, -2)
    times[-1] = max(times[-1], SHORTEST_STEP_S)
    while True:
        rows = _rows(curve, along, times)
        lengths = np.diff(times)
        hulls = [each(lengths, rows[:-1], rows[1:]) for each in (bernstein, cubic_bernstein)]
        off = np.maximum(*map(aside, hulls))
        if not np.isfinite(rows).all():
            raise SettingsError("the path and its velocity, acceleration and jerk limits lie too far apart for float64")
        far, inside = off.max(axis=1) > BENT, np.ones(len(off), dtype=bool)
        if robot is not None:
            inside = within(robot, hulls[0]) & within(robot, hulls[1])
            far |= (off @ joint_reach(robot).T).max(axis=1, initial=0.0) > TUBE
            far |= ~inside & (lengths > FINEST_S)
        far &= lengths > 2 * SHORTEST_STEP_S
        if not far.any():
            break
        times = np.sort(np.r_[times, np.round((times[:-1] + times[1:])[far] / 2, DIGITS)])
        if len(times) > MOST_POINTS:
            raise SettingsError(f"the motion takes more than {MOST_POINTS} points")
    rows[0, 1:] = rows[-1, 1:] = 0.0
    return times, rows, inside


def _rows(curve, along, times):
    """(T, 3, dof) position, velocity, acceleration."""
    s, v, a, _ = along.at(times)
    q = at(curve, np.clip(s, curve.s[0], curve.s[-1]))
    v, a = v[:, None], a[:, None]
    return np.stack([q[:, 0], q[:, 1] * v, q[:, 2] * v**2 + q[:, 1] * a], axis=1)


def _leg_ends(along, owners, legs):
    """(legs,) seconds."""
    places = np.where(owners < 0, -1 - 2 * owners, 2 * owners)  # of leg i 2 i, of the corner after it 2 i + 1
    corners = np.arange(1, 2 * legs - 1, 2)
    begin, end = (np.searchsorted(places[along.stretch], corners, side) for side in ("left", "right"))
    return np.append((along.time[begin] + along.time[end]) / 2, along.time[-1])
