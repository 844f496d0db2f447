"""From one motion to another while the robot moves: without a stop where that is proven, else with one.

The motion under way brakes at some time, so that it ends at rest, and the next one begins there: that is one trajectory
already, and free where both are. `switch` looks for a shorter one. It leaves the motion at that time, with position,
velocity and acceleration as they are then, by a quintic of each joint to a later state of the next motion. It counts
where the quintics keep the limits, those of jerk too where a joint has one, at all their extrema, and where the proof
of what controllers play between the points of smooth motions (`motion.played`) calls it free.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import checked, numbers
from ...errors import SettingsError
from ..motion.curve import POWERS, Curve, at, bernstein
from ..motion.played import DIGITS, TUBE, refined
from ..motion.timing import body_checker
from ..trajectory import Trajectory, check_limit
from .spline import STILL, Spline

PLACES = 32  # on the next motion, that are tried
PLACES_S = 0.5  # they lie within so long, and STOPS times what the stop takes
STOPS = 3.0
DURATIONS = 48  # of the connection, that are tried for each place
SHORTEST_S = 0.04  # of them
LOOKS = np.linspace(0.0, 1.0, 25)[1:-1]  # at a connection, before its extrema are known
_RATES = [  # (looks, 6) each: its first three derivatives by LOOKS, from its Bernstein coefficients
    np.array([[math.perm(k, order) * x ** max(k - order, 0) for k in range(6)] for x in LOOKS]) @ POWERS
    for order in (1, 2, 3)
]
NEARLY = 0.99  # of the limits: what keeps so much where it is looked at keeps them everywhere, nearly always
ROUNDED = 1e-6  # share of a limit
PROOFS = 16  # connections of which one is to be proven free, the quickest first
SAME = 1e-2  # rad or m between the end of the one motion and the beginning of the next, at most
KNOT_S = 1e-3  # a place so near to a point of the next motion is that point


class Switched(NamedTuple):
    """trajectory: from the state at the switch, which moves, to the end of the next motion
    blended: False: it stops in between
    """

    trajectory: Trajectory
    blended: bool


@checked()
def switch(
    curve: Spline,
    time: float,
    motion: Trajectory,
    velocity: ArrayLike,
    acceleration: ArrayLike,
    checker: Any,
    jerk: ArrayLike | None = None,
) -> Switched:
    """The trajectory that leaves a motion under way at a time for the next motion.

    curve: of the motion under way, all points with accelerations; it ends at rest where the next motion begins, as by
        `curve.then(time, stop_along(curve, time, ...))`
    time: seconds on the curve's clock
    motion: from rest to rest, free and within the limits
    velocity, acceleration: (dof,) limits of the connection. Where the robot is faster at that time, it may stay so
    checker: CollisionChecker that proves the connection free
    jerk: (dof,) limits of the connection, infinite where a joint has none; None: none has one
    -> Switched. Nothing here checks `curve` and `motion`

    SettingsError names what is wrong.
    """
    dof, robot = curve.positions.shape[1], body_checker(checker).robot
    limits = check_limit("velocity", velocity, dof), check_limit("acceleration", acceleration, dof)
    if motion.positions.shape[1] != dof or robot.dof != dof:
        counts = f"{motion.positions.shape[1]} joints, and the checker's robot {robot.dof}"
        raise SettingsError(f"the next motion has {counts}; allowed: the {dof} of the curve")
    off = float(np.abs(motion.positions[0] - curve.positions[-1]).max())
    if not off <= SAME:
        raise SettingsError(f"the next motion begins {off:.3g} from the end of the curve; allowed: {SAME:g} rad or m")
    if not (np.isfinite(time) and np.isfinite(curve.accelerations).all()):
        raise SettingsError(f"time is {time}; allowed: a finite number; the curve's points need accelerations")
    time = float(np.clip(time, curve.start, curve.end))
    start = np.stack(curve.at(time))
    if np.abs(start[1]).max() > STILL and len(motion.times) > 1:
        limits = tuple(
            np.maximum(most, (1 + ROUNDED) * np.abs(now)) for most, now in zip(limits, start[1:], strict=True)
        )
        if jerk is not None:
            limits += (numbers("jerk", jerk, (dof,), finite=False),)
        for duration, place in _connections(start, motion, limits, curve.end - time)[:PROOFS]:
            found = _proven(start, duration, motion, place, limits, checker)
            if found is not None:
                return Switched(found, True)
    return Switched(curve.then(curve.end, motion, time).rest(time), False)


def _connections(start, motion, limits, stop_s):
    """[(seconds of the connection, seconds of the next motion where it ends)] that may keep the limits and take less
    time than the stop of so many seconds; the quickest first."""
    last = min(motion.duration, PLACES_S + STOPS * stop_s)
    places = np.linspace(0.0, last, PLACES + 1)[1:]
    knots = motion.times[np.clip(np.searchsorted(motion.times, places - KNOT_S), 0, len(motion.times) - 1)]
    places = np.unique(np.round(np.where(np.abs(knots - places) <= KNOT_S, knots, places), DIGITS))
    durations = np.round(np.geomspace(SHORTEST_S, SHORTEST_S + stop_s + last, DURATIONS), DIGITS)
    ends = np.stack(motion.at(places), axis=1)
    place, length = (each.ravel() for each in np.meshgrid(np.arange(len(places)), durations, indexing="ij"))
    controls = bernstein(length, np.broadcast_to(start, (len(length), *start.shape)), ends[place])
    kept = length - places[place] < stop_s
    for order, (rates, most) in enumerate(zip(_RATES, limits, strict=False), start=1):
        inner = np.abs(rates @ controls).max(axis=1) / length[:, None] ** order
        kept &= (inner <= NEARLY * most).all(axis=1)
    kept = kept.reshape(len(places), len(durations))
    best = [(durations[row.argmax()], at) for row, at in zip(kept, places, strict=True) if row.any()]
    return sorted(best, key=lambda each: each[0] - each[1])


def _proven(start, duration, motion, place, limits, checker):
    """The Trajectory of a connection and the rest of the next motion; None where it does not keep the limits, or is not
    proven free."""
    end = np.stack(motion.at(place), axis=1)[0]
    quintic = Curve(np.array([0.0, duration]), start[None], end[None])
    ends = Spline(quintic.s, *np.stack([start, end], axis=1))
    if any((rate > (1 + ROUNDED) * most).any() for rate, most in zip(ends.rates(len(limits)), limits, strict=True)):
        return None
    later = motion.times > place
    after = duration + motion.times[later] - place

    def rows_at(times):
        connecting = at(quintic, np.minimum(times, duration))
        following = np.stack(motion.at(place + np.maximum(times - duration, 0.0)), axis=1)
        return np.where((times < duration)[:, None, None], connecting, following)

    # what controllers play between the place and the next point is another curve than the motion's own
    times, rows, inside = refined(np.r_[0.0, duration, after[:1]], rows_at, checker.robot)
    q = rows[:, 0]
    if not (inside.all() and checker.thickened(TUBE).motions_valid(q[:-1], q[1:]).all()):
        return None
    if np.count_nonzero(later) < 2:  # the last row is the motion's end
        rows[-1] = motion.positions[-1], np.zeros_like(q[-1]), np.zeros_like(q[-1])
    rest = (getattr(motion, name)[later][1:] for name in ("positions", "velocities", "accelerations"))
    columns = (np.concatenate([rows[:, k], each]) for k, each in enumerate(rest))
    return Trajectory(np.round(np.r_[times, after[1:]], DIGITS), *columns)
