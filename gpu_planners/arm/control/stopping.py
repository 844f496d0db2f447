"""Stops along a path: the robot brakes on the motion that it executes, so that what was proven of the path still holds.

The time along the motion, s, passes ever slower: over a stop of D seconds its rate is 1 - 3 x^2 + 2 x^3 with x from 0
to 1, so velocities and accelerations are continuous, and s gains D / 2. The joints' accelerations are then
q' s'' + q'' s'^2. `stop_along` takes the shortest D that keeps them within their limits. Where the motion itself comes
to rest earlier, at a corner or at its end, it goes on until there instead.

A stop has points of its own, and the curves between them miss the motion by micrometres. Where they would pass a
joint's limit, the point's velocity and acceleration of that joint become smaller.
"""

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import checked, numbers
from ...errors import SettingsError
from ..motion.played import DIGITS, drawn_in
from ..trajectory import Trajectory, check_limit
from .spline import Spline

SHORTEST_S = 0.02  # of the stops that are tried
LONGEST_S = 30.0
TRIED = 80  # durations, at most
SAMPLES = np.linspace(0.0, 1.0, 161)  # with 41, one stop in a thousand passed a limit by 5 to 8 % between them
SLACK = 1.02  # of the limits: so a motion that brakes at its limit is followed nearly as it is
KNOT_S = 0.02


@checked()
def stop_along(
    motion: Spline, time: float, acceleration: ArrayLike, lower: ArrayLike = -np.inf, upper: ArrayLike = np.inf
) -> Trajectory:
    """The stop that begins at a time of a motion, and stays on its curve.

    time: seconds on the motion's clock; acceleration: (dof,) limits, rad/s^2 or m/s^2
    lower, upper: (dof,) limits of the positions, infinite where there are none. The stop does not leave them where the
        motion does not
    -> Trajectory; its first row is the motion's state at that time, its last one is at rest
    """
    dof = motion.positions.shape[1]
    limits = check_limit("acceleration", acceleration, dof)
    if not np.isfinite(time):
        raise SettingsError(f"time is {time}; allowed: a finite number")
    lower, upper = (_position_limits(name, each, dof) for name, each in (("lower", lower), ("upper", upper)))
    rest = motion.until_rest(time)
    for duration in np.geomspace(SHORTEST_S, LONGEST_S, TRIED):
        if time + duration / 2 >= rest:
            break
        if (np.abs(_states(motion, time, duration, SAMPLES)[2]) <= SLACK * limits).all():
            return _inside(lower, upper, *_braked(motion, time, duration))
    return _inside(lower, upper, *_as_it_is(motion, time, rest))


def _position_limits(name, limits, dof):
    limits = numbers(name, limits, () if np.ndim(limits) == 0 else (dof,), finite=False).astype(float)
    if np.isnan(limits).any():
        raise SettingsError(f"{name} is {limits.tolist()}; allowed: numbers")
    return limits


def _inside(lower, upper, times, q, v, a):
    """The Trajectory of a stop, at rest at its end, with smaller velocities and accelerations where a quintic or a
    cubic between its points would pass a limit: they say how far each control point lies from one of its points."""
    v[-1], a[-1] = 0.0, 0.0
    lower, upper = drawn_in(*np.broadcast_arrays(lower, upper, q[0])[:2], 0.5)
    low, high = np.minimum(lower, q.min(axis=0)) - q, np.maximum(upper, q.max(axis=0)) - q
    share = np.ones_like(q)
    for h in (np.diff(times, append=times[-1])[:, None], -np.diff(times, prepend=0.0)[:, None]):
        for aside in (h * v / 5, 2 * h * v / 5 + h**2 * a / 20, h * v / 3):
            most = np.where(aside > 0, high, low)
            share = np.minimum(share, np.divide(most, aside, out=np.ones_like(q), where=aside != 0))
    return Trajectory(times, q, v * share, a * share)


def _states(motion, time, duration, x):
    """States (N, dof) of a stop at its fractions x (N,)."""
    q, v, a = motion.at(time + duration * (x - x**3 + x**4 / 2))
    rate, change = (1 - 3 * x**2 + 2 * x**3)[:, None], ((6 * x**2 - 6 * x) / duration)[:, None]
    return q, v * rate, v * change + a * rate**2


def _braked(motion, time, duration):
    times = np.round(np.linspace(0.0, duration, max(int(np.ceil(duration / KNOT_S)), 8) + 1), DIGITS)
    return times, *_states(motion, time, duration, times / duration)


def _as_it_is(motion, time, rest):
    later = motion.times[(motion.times > time) & (motion.times <= rest)]
    fine = np.linspace(time, rest, max(int(np.ceil((rest - time) / KNOT_S)), 1) + 1) if rest > time else [time]
    at = np.round(np.unique(np.r_[fine, later]) - time, DIGITS)
    at = at[np.r_[True, np.diff(at) > 1e-4]]
    return at, *motion.at(time + at)
