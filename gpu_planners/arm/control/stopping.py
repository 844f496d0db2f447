"""Stops along a path: the robot brakes on the motion that it executes, so that what was proven of the path still holds.

The time along the motion, s, passes ever slower: over a stop of D seconds its rate is 1 - 3 x^2 + 2 x^3 with x from 0
to 1, so that velocities and accelerations are continuous, and s gains D / 2. The joints' accelerations are then
q' s'' + q'' s'^2. The shortest D is taken that keeps them within their limits; where the motion itself comes to rest
earlier, at a corner or at its end, it goes on until there instead.
"""

import numpy as np
from numpy.typing import ArrayLike

from ..trajectory import Trajectory
from .spline import Spline

SHORTEST_S, LONGEST_S = 0.02, 30.0  # of stops that are tried
TRIED = 80
SAMPLES = np.linspace(0.0, 1.0, 161)  # with 41, one stop in a thousand passed a limit by 5 to 8 % between them
SLACK = 1.02  # of the limits: a motion that brakes at its limit anyway can be followed nearly as it is
KNOT_S = 0.02


def stop_along(motion: Spline, time: float, acceleration: ArrayLike) -> Trajectory:
    """The stop that begins at a time of a motion, and stays on its curve.

    time: seconds on the motion's clock; acceleration: (dof,) limits, rad/s^2 or m/s^2
    -> Trajectory; its first row is the motion's state at that time, its last one is at rest
    """
    limits = np.asarray(acceleration, dtype=float)
    rest = motion.until_rest(time)
    durations = np.geomspace(SHORTEST_S, LONGEST_S, TRIED)
    earlier = durations[time + durations / 2 < rest]
    for duration in earlier:
        _, _, accelerations = _states(motion, time, duration, SAMPLES)
        if (np.abs(accelerations) <= SLACK * limits).all():
            return _braked(motion, time, duration)
    return _as_it_is(motion, time, rest)


def _states(motion, time, duration, x):
    """States (N, dof) of a stop at its fractions x (N,)."""
    q, v, a = motion.at(time + duration * (x - x**3 + x**4 / 2))
    rate, change = (1 - 3 * x**2 + 2 * x**3)[:, None], ((6 * x**2 - 6 * x) / duration)[:, None]
    return q, v * rate, v * change + a * rate**2


def _braked(motion, time, duration):
    x = np.linspace(0.0, 1.0, max(int(np.ceil(duration / KNOT_S)), 8) + 1)
    q, v, a = _states(motion, time, duration, x)
    v[-1], a[-1] = 0.0, 0.0
    return Trajectory(x * duration, q, v, a)


def _as_it_is(motion, time, rest):
    later = motion.times[(motion.times > time) & (motion.times <= rest)]
    fine = np.linspace(time, rest, max(int(np.ceil((rest - time) / KNOT_S)), 1) + 1) if rest > time else [time]
    at = np.unique(np.r_[fine, later])
    at = at[np.r_[True, np.diff(at) > 1e-4]]
    q, v, a = motion.at(at)
    v[-1], a[-1] = 0.0, 0.0
    return Trajectory(at - time, q, v, a)
