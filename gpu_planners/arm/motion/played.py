"""Motions along legs, with stops or rounded corners between them, as the points of a trajectory.

A controller joins a trajectory's points by straight lines, cubics or quintics, as they carry velocities and
accelerations or not. Where the motion bends, points lie so densely that all three stay in a tube around the points'
chords: no point of the robot is farther than TUBE metres from where it would be on the chord.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...errors import SettingsError
from ..collision.reach import joint_reach
from .curve import Curve, aside, at, bernstein, cubic_bernstein, is_straight, joined, part, turn
from .loads import Load
from .optimal import Bounds, Pace
from .pacing import Limits, Phases, Stretch, eased, line_stretches, phases, turn_stretch
from .tool import ToolLimits

TUBE = 5e-4  # metres
BENT = 0.01  # rad or m that a joint leaves a chord at most where nothing is to be proven
STRAIGHT = 1e-8  # rad or m by which float64 misses a straight line
SHORTEST_STEP_S = 1e-6  # points closer than this are one point
MISSED = 60 * 2.2e-16 / 0.01  # of a place: a quintic whose ends float64 misses by 2.2e-16 misses 0.01 of its jerk
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
    fitted: of a curve that was fitted to straight legs, from rest to rest
    load: limits of the torques on it; None: there are none
    tool: limits of a link on it
    """

    curve: Curve
    limits: Limits
    rows: np.ndarray = np.zeros((0, 0))
    fitted: "FittedLeg | None" = None
    load: Load | None = None
    tool: ToolLimits | None = None


class FittedLeg(NamedTuple):
    """pace: along the curve; bounds: of the joints on its pieces; leaves: (pieces,) bool: do they leave a straight leg?
    ends: (legs - 1,) where, by the curve's s, the legs inside end; replaced: the straight legs
    """

    pace: Pace
    bounds: Bounds
    leaves: np.ndarray
    ends: np.ndarray
    replaced: list


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


def stretches_of(legs, cuts):
    """Of legs whose corners take these cuts -> their curves, their stretches, the owner of each as in Timed, and the
    numbers of the stretches before which it stops."""
    curves, stretches, owners, stops, s = [], [], [], set(), 0.0
    for i, leg in enumerate(legs):
        first, last = cuts[i - 1] if i else 0.0, cuts[i] if i < len(cuts) else 0.0
        if leg.fitted is not None:
            curves.append(leg.curve)
            stops |= {len(stretches), len(stretches) + 1}
            stretches.append(Stretch(s, s + leg.curve.length, 0.0, 0.0, 0.0, True, leg.fitted.pace))
            owners.append(i)
            s += leg.curve.length
        elif leg.curve.length - first - last > STRAIGHT:
            curves.append(part(leg.curve, leg.curve.s[0] + first, leg.curve.s[-1] - last))
            more = line_stretches(curves[-1], s, leg.limits, [leg.tool])
            stretches += [eased(each, curves[-1], s, leg.load) for each in more]
            owners += [i] * len(more)
            s += curves[-1].length
        if i < len(cuts):
            if cuts[i] > 0:
                curves.append(turn(leg.curve, legs[i + 1].curve, cuts[i]))
                both = Limits(*map(np.minimum, leg.limits, legs[i + 1].limits))
                load = leg.load and min(leg.load, legs[i + 1].load, key=lambda each: each.share)
                turned = turn_stretch(curves[-1], s, both, [leg.tool, legs[i + 1].tool])
                stretches.append(eased(turned, curves[-1], s, load))
                owners.append(-1 - i)
                s += curves[-1].length
            else:
                stops.add(len(stretches))
    return curves, stretches, np.array(owners), stops


def timed_once(legs, cuts, robot):
    """Timed of legs whose corners take these cuts; robot: RobotModel, or None where nothing is to be proven."""
    curves, stretches, owners, stops = stretches_of(legs, cuts)
    with np.errstate(over="ignore", invalid="ignore"):
        along = phases(stretches, stops)
        times, rows, inside = _sampled(joined(curves), along, robot)
    number = along.at((times[:-1] + times[1:]) / 2)[3]
    owner = owners[number]
    bent = (owner < 0) | np.array([not is_straight(leg.curve) for leg in legs])[owner]
    for k, stretch in enumerate(stretches):
        if stretch.pace is not None:
            mine = np.flatnonzero(number == k)
            bent[mine] = _leaves(legs[owners[k]], along.at(times[np.r_[mine, mine[-1] + 1]])[0] - stretch.first)
    return Timed(times, rows, inside, owner, bent, _leg_ends(along, owners, legs, stretches))


def _leaves(leg, s):
    """(N,) bool: does the fitted curve leave its straight legs between s (N + 1,)?"""
    begin, end = np.floor(s[:-1] + SHORTEST_STEP_S), np.ceil(s[1:] - SHORTEST_STEP_S)
    sums = np.r_[0, np.cumsum(leg.fitted.leaves)]
    begin, end = (np.clip(each.astype(int), 0, len(sums) - 1) for each in (begin, end))
    return sums[np.maximum(begin, end)] > sums[begin]


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
    keep = np.r_[True, np.diff(along.time) >= _shortest(along)]
    keep[-1] = True
    times = np.round(along.time[keep], DIGITS)
    if len(times) > 2 and times[-1] - times[-2] < SHORTEST_STEP_S:
        times = np.delete(times, -2)
    times[-1] = max(times[-1], SHORTEST_STEP_S)
    times, rows, inside = refined(times, lambda times: _rows(curve, along, times), robot)
    rows[0, 1:] = rows[-1, 1:] = 0.0
    return times, rows, inside


def refined(times: np.ndarray, rows_at: Callable[[np.ndarray], np.ndarray], robot: Any) -> tuple[np.ndarray, ...]:
    """Points between those at given times, wherever the motion leaves a chord too far, or may leave the joints' limits.

    times: (T,) seconds; rows_at: times (N,) -> (N, 3, dof) position, velocity, acceleration
    robot: RobotModel, or None where nothing is to be proven
    -> times, rows, inside of Timed
    """
    while True:
        rows = rows_at(times)
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
    return times, rows, inside


def _shortest(along):
    """(P,) seconds that phases must last to end in a point of their own: in less, float64 does not tell the jerk of the
    quintic between their ends. Where the motion stops it has a point."""
    missed = MISSED * (along.s[-1] + along.speed * along.time[-1])
    around = np.abs(np.r_[0.0, along.jerk, 0.0])
    jerk = np.max([around[:-2], around[1:-1], around[2:]], axis=0)
    stops = np.r_[along.speed[1:] == 0, True]
    shortest = np.cbrt(np.divide(missed, jerk, out=np.zeros_like(jerk), where=(jerk > 0) & ~stops))
    return np.maximum(shortest, SHORTEST_STEP_S)


def _rows(curve, along, times):
    """(T, 3, dof) position, velocity, acceleration."""
    s, v, a, _ = along.at(times)
    q = at(curve, np.clip(s, curve.s[0], curve.s[-1]))
    v, a = v[:, None], a[:, None]
    return np.stack([q[:, 0], q[:, 1] * v, q[:, 2] * v**2 + q[:, 1] * a], axis=1)


def _leg_ends(along, owners, legs, stretches):
    """(legs that were given,) seconds."""
    places = np.where(owners < 0, -1 - 2 * owners, 2 * owners)  # of leg i 2 i, of the corner after it 2 i + 1
    corners = np.arange(1, 2 * len(legs) - 1, 2)
    begin, end = (np.searchsorted(places[along.stretch], corners, side) for side in ("left", "right"))
    ends = np.append((along.time[begin] + along.time[end]) / 2, along.time[-1])
    inner = {owners[k]: each.first for k, each in enumerate(stretches) if each.pace is not None}
    return np.concatenate(
        [
            [end] if leg.fitted is None else [*np.interp(inner[i] + leg.fitted.ends, along.s, along.time[:-1]), end]
            for i, (leg, end) in enumerate(zip(legs, ends, strict=True))
        ]
    )
