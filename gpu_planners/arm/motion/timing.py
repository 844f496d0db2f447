"""Legs of a motion with stops or rounded corners between them, their timing, and the proof of what a controller plays.

A controller plays a trajectory's points joined by straight lines, cubics or quintics, by what it is told of
them. So points are put so densely where the motion bends that all three stay in a tube around the chords of the points:
no point of the robot is farther than TUBE metres from where it would be on the chord. The chords are then proven free
for a robot that is thicker by TUBE. A corner whose chords are not proven is rounded less, and in the end not at all.
Chords that lie on a straight leg have been proven with the leg.
"""

from typing import Any, NamedTuple

import numpy as np

from ...errors import SettingsError
from ..collision.reach import joint_reach
from .curve import Curve, aside, at, bernstein, cubic_bernstein, is_straight, joined, part, turn
from .pacing import Limits, Phases, line_stretches, phases, turn_stretch

TUBE = 5e-4  # metres
BENT = 0.01  # rad or m that a joint leaves a chord at most where nothing is to be proven
STRAIGHT = 1e-8  # rad or m by which float64 misses a straight line
LEAST_CUT = 1e-3  # rad or m: a corner that would be rounded less is a stop
LESS = (1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.05, 0.03, 0.02)  # of a cut, where it is not free
TRIES = 4  # that a corner is rounded less, by half each time, where other points find it not free after all
SHORTEST_STEP_S = 1e-6  # points closer than this are one point: message times are whole nanoseconds
LONGEST_S = 1e6  # of a trajectory, twelve days: beyond, seconds in float64 no longer tell nanoseconds apart
MOST_POINTS = 100_000


class Leg(NamedTuple):
    """A part of a motion without corners.

    curve: Curve, proven free for a robot thicker by TUBE where it is not straight; limits: of the joints on it
    """

    curve: Curve
    limits: Limits


class Timed(NamedTuple):
    """Points of a timed motion.

    times: (T,) seconds; rows: (T, 3, dof) position, velocity, acceleration; aside: (T - 1, dof) how far each joint
    leaves the chord between two points at most
    owner: (T - 1,) what an interval belongs to: leg i, or the corner after leg i as -1 - i
    bent: (T - 1,) bool: does it belong to a corner, or to a leg that is not straight?
    cuts: (legs - 1,) how much the corners take off each of their legs
    ends_s: (legs,) seconds when the legs end, in the middle of rounded corners
    """

    times: np.ndarray
    rows: np.ndarray
    aside: np.ndarray
    owner: np.ndarray
    bent: np.ndarray
    cuts: np.ndarray
    ends_s: np.ndarray


def timed(legs: list[Leg], cuts: np.ndarray, checker: Any = None) -> Timed:
    """The fastest motion along the legs under their limits, whose corners are rounded.

    cuts: (legs - 1,) how much of its two legs a corner may take, rad or m; 0: stop there
    checker: CollisionChecker: corners are proven free, or rounded less. None: they are as they are asked for

    Raises SettingsError where a leg that is not straight cannot be proven free, or limits that lie too far apart.
    """
    cuts = room_for(legs, np.asarray(cuts, dtype=float))
    if checker is None:
        return _timed_once(legs, np.where(cuts < LEAST_CUT, 0.0, cuts), None)
    reach = joint_reach(checker.robot)
    cuts = provable(legs, cuts, checker, reach)
    for left in range(TRIES, -1, -1):
        motion = _timed_once(legs, np.where(cuts < LEAST_CUT, 0.0, cuts), reach)
        owners = np.unique(motion.owner[unproven(motion, checker)])
        if not len(owners):
            return motion
        corners = -1 - owners[owners < 0]
        if not len(corners):
            break
        cuts[corners] *= 0.5 if left > 1 else 0.0
    raise SettingsError(
        f"leg {owners.max()} of the motion is not straight in joint space, and is not proven free within "
        f"{1e3 * TUBE:g} mm"
    )


def provable(legs: list[Leg], cuts: np.ndarray, checker: Any, reach: np.ndarray) -> np.ndarray:
    """(legs - 1,) for each corner the largest of LESS times its cut with which it is free, or 0."""
    asked = [(i, share * cuts[i]) for i in np.flatnonzero(cuts >= LEAST_CUT) for share in LESS]
    asked = [(i, cut) for i, cut in asked if cut >= LEAST_CUT]
    found = np.zeros(len(cuts))
    if not asked:
        return found
    turns = [turn(legs[i].curve, legs[i + 1].curve, cut) for i, cut in asked]
    starts, ends = (np.concatenate([getattr(each, side) for each in turns]) for side in ("starts", "ends"))
    off = aside(bernstein(np.array([each.length for each in turns]), starts, ends)) @ reach.T
    counts = np.maximum(np.ceil(np.sqrt(off.max(axis=1, initial=0.0) / TUBE)), 1).astype(int)
    points = [at(each, np.linspace(0, each.length, n + 1))[:, 0] for each, n in zip(turns, counts, strict=True)]
    free = checker.thickened(TUBE).motions_valid(
        np.concatenate([q[:-1] for q in points]), np.concatenate([q[1:] for q in points])
    )
    whole = np.logical_and.reduceat(free, np.r_[0, np.cumsum(counts)[:-1]])
    for (i, cut), proven in zip(asked, whole, strict=True):
        if proven:
            found[i] = max(found[i], cut)
    return found


def unproven(motion: Timed, checker: Any) -> np.ndarray:
    """Numbers of the intervals on rounded corners and legs that are not straight, and that are not proven free."""
    bent = np.flatnonzero(motion.bent)
    if not len(bent):
        return bent
    q = motion.rows[:, 0]
    robot, points = checker.robot, np.stack([q[bent], q[bent + 1]])
    slack = motion.aside[bent].max() + STRAIGHT
    inside = (points >= robot.lower - slack) & (points <= robot.upper + slack) | robot.continuous
    return bent[~(checker.thickened(TUBE).motions_valid(*points) & inside.all(axis=(0, 2)))]


def room_for(legs: list[Leg], cuts: np.ndarray) -> np.ndarray:
    """The cuts, none more than half of what it cuts."""
    lengths = np.array([leg.curve.length for leg in legs])
    return np.minimum(cuts, 0.5 * np.minimum(lengths[:-1], lengths[1:]))


def _timed_once(legs, cuts, reach):
    """Timed of legs whose corners take these cuts."""
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
        times, rows, off = _sampled(joined(curves), along, reach)
    owners = np.array(owners)
    owner = owners[along.at((times[:-1] + times[1:]) / 2)[3]]
    bent = (owner < 0) | np.array([not is_straight(leg.curve) for leg in legs])[owner]
    return Timed(times, rows, off, owner, bent, cuts, _leg_ends(along, owners, len(legs)))


def _sampled(curve: Curve, along: Phases, reach):
    """Points at the ends of all phases, and between them where the motion leaves a chord too far.

    -> times, rows, aside of Timed
    """
    if not along.time[-1] <= LONGEST_S:
        raise SettingsError(
            f"the motion would take {along.time[-1]:.3g} s under these velocity and acceleration limits; "
            f"allowed: up to {LONGEST_S:g} s"
        )
    keep = np.r_[True, np.diff(along.time) >= SHORTEST_STEP_S]
    keep[-1] = True
    times = along.time[keep]
    if len(times) > 2 and times[-1] - times[-2] < SHORTEST_STEP_S:
        times = np.delete(times, -2)
    while True:
        rows = _rows(curve, along, times)
        lengths = np.diff(times)
        off = np.maximum(
            aside(bernstein(lengths, rows[:-1], rows[1:])), aside(cubic_bernstein(lengths, rows[:-1], rows[1:]))
        )
        if not np.isfinite(rows).all():
            raise SettingsError("the path and its velocity, acceleration and jerk limits lie too far apart for float64")
        far = off.max(axis=1) > BENT
        if reach is not None:
            far |= (off @ reach.T).max(axis=1, initial=0.0) > TUBE
        far &= lengths > 2 * SHORTEST_STEP_S
        if not far.any():
            break
        times = np.sort(np.r_[times, (times[:-1] + times[1:])[far] / 2])
        if len(times) > MOST_POINTS:
            raise SettingsError(f"the motion takes more than {MOST_POINTS} points")
    rows[0, 1:] = rows[-1, 1:] = 0.0
    return times, rows, off


def _rows(curve, along, times):
    """(T, 3, dof) position, velocity, acceleration."""
    s, v, a, _ = along.at(times)
    q = at(curve, np.clip(s, curve.s[0], curve.s[-1]))
    v, a = v[:, None], a[:, None]
    return np.stack([q[:, 0], q[:, 1] * v, q[:, 2] * v**2 + q[:, 1] * a], axis=1)


def _leg_ends(along, owners, legs):
    """(legs,) seconds."""
    of_phase, ends = owners[along.stretch], np.empty(legs)
    for i in range(legs - 1):
        turning = np.flatnonzero(of_phase == -1 - i)
        if len(turning):
            ends[i] = (along.time[turning[0]] + along.time[turning[-1] + 1]) / 2
        else:
            before = np.flatnonzero((of_phase == i) | ((of_phase < 0) & (of_phase > -1 - i)))
            ends[i] = along.time[before[-1] + 1]
    ends[-1] = along.time[-1]
    return ends
