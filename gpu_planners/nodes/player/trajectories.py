"""Trajectory messages as a joint trajectory controller takes them: checked by its rules, and made a curve.

The rules are those of ros2_controllers' joint_trajectory_controller with its default parameters. Beyond them the first
point must lie where the robot is, where it has to be there at once: a robot cannot jump.
"""

from collections.abc import Sequence

import numpy as np
from trajectory_msgs.msg import JointTrajectory

from ...arm.control.spline import Spline, State
from ...errors import ConfigurationError
from ..common.ros import seconds

SOON_S = 1e-6
SPEED_AT_END = 1.2e-7  # as float32 tells it from 0


def check_trajectory(message: JointTrajectory, names: Sequence[str], now: float) -> None:
    """ConfigurationError says which rule a trajectory breaks. names: of the joints; now: seconds on the node's clock"""
    if sorted(message.joint_names) != sorted(names):
        raise ConfigurationError(
            f"the trajectory is for the joints {', '.join(message.joint_names) or 'none'}; allowed: {', '.join(names)}"
        )
    if not message.points:
        raise ConfigurationError("the trajectory has no points")
    last, count = -1.0, len(names)
    for number, point in enumerate(message.points):
        for name in ("positions", "velocities", "accelerations"):
            values = getattr(point, name)
            if len(values) != count and (name == "positions" or len(values)):
                raise ConfigurationError(f"point {number} has {len(values)} {name}; there are {count} joints")
            if not np.isfinite(values).all():
                raise ConfigurationError(f"point {number}: {name} must be finite numbers")
        if len(point.accelerations) and not len(point.velocities):
            raise ConfigurationError(f"point {number} has accelerations but no velocities")
        if len(point.effort):
            raise ConfigurationError(f"point {number} has efforts; this controller commands positions")
        time = seconds(point.time_from_start)
        if number and time <= last:
            raise ConfigurationError(f"the time of point {number} is {time} s, after {last} s of the one before")
        last = time
    fast = np.abs(np.asarray(message.points[-1].velocities, dtype=float)) > SPEED_AT_END
    if fast.any():
        raise ConfigurationError(f"the last velocity of joint '{message.joint_names[int(np.argmax(fast))]}' is not 0")
    stamp = seconds(message.header.stamp)
    if stamp and stamp + last < now:
        raise ConfigurationError(f"the trajectory ended {now - stamp - last:.3g} s ago, by its stamp")


def curve_of(message: JointTrajectory, names: Sequence[str], state: State, now: float, tolerance: float) -> Spline:
    """The curve of a checked trajectory over the node's clock, in seconds.

    state: of the joints `names` now; where the first point comes later, the curve goes there from it
    tolerance: how far the first point may otherwise lie from the state, rad or m
    """
    order = [list(message.joint_names).index(name) for name in names]
    begin = seconds(message.header.stamp) or now
    times = [begin + seconds(point.time_from_start) for point in message.points]
    columns = [
        [_ordered(getattr(point, name), order) for point in message.points]
        for name in ("positions", "velocities", "accelerations")
    ]
    if times[0] > now + SOON_S:
        for rows, values in zip(columns, state, strict=True):
            rows.insert(0, values if np.isfinite(rows[0]).all() else np.full(len(order), np.nan))
        columns[0][0] = state.positions
        times.insert(0, now)
    curve = Spline(times, *columns)
    off = np.abs(curve.at(now).positions - state.positions)
    if off.max() > tolerance:
        name = names[int(np.argmax(off))]
        raise ConfigurationError(
            f"the trajectory would begin {off.max():.3g} from where joint '{name}' is; allowed: {tolerance:g} rad or m"
        )
    return curve


def point_at(message: JointTrajectory, elapsed: float) -> int:
    """Index of the last point whose time, in seconds from the begin, has come; 0 before the first one's."""
    times = [seconds(point.time_from_start) for point in message.points]
    return max(int(np.searchsorted(times, elapsed, side="right")) - 1, 0)


def _ordered(values, order):
    return np.asarray(values, dtype=float)[order] if len(values) else np.full(len(order), np.nan)
