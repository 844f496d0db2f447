"""The limits of joints, and what controllers of them refuse."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import ConfigurationError

SLACK = 1e-6  # rad, m, or either a second: rounding of files


class Limits(Protocol):
    """What has the limits of joints: a CoalScene, a RobotModel."""

    joint_names: Sequence[str]
    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray


@checked(ConfigurationError)
def broken_rules(
    limits: Limits, positions: ArrayLike, times: ArrayLike | None = None, velocities: ArrayLike | None = None
) -> tuple[str, ...]:
    """What a controller would refuse about a motion, as texts; empty when all is well.

    limits: CoalScene or RobotModel; positions: (K, dof) rad or m; times: (K,) s, without them only positions are looked
    at; velocities: (K, dof), without them the mean ones between rows are
    """
    positions, broken = np.atleast_2d(positions), []
    speeds = None if velocities is None else np.asarray(velocities)
    wanted = len(positions), len(limits.joint_names)
    if positions.shape != wanted or not positions.size or (speeds is not None and speeds.shape != wanted):
        raise ConfigurationError(f"positions has the shape {positions.shape}; allowed, as of velocities: {wanted}")
    if times is not None and np.shape(times) != wanted[:1]:
        raise ConfigurationError(f"times has the shape {np.shape(times)}; allowed: {wanted[:1]}")
    beyond = np.maximum(limits.lower - positions, positions - limits.upper)
    if (beyond > SLACK).any():
        broken.append(f"a joint limit is exceeded: {_worst(limits, beyond, positions, limits.lower, limits.upper)}")
    if times is None:
        return tuple(broken)
    steps = np.diff(np.asarray(times))
    if (steps <= 0).any():
        broken.append(f"times do not increase after row {np.argmax(steps <= 0)}")
    elif speeds is None:
        speeds = np.diff(positions, axis=0) / steps[:, None]
    elif speeds[-1].any():
        broken.append("it does not end at rest")
    beyond = np.zeros((0, 1)) if speeds is None else np.abs(speeds) - limits.velocity
    if (beyond > SLACK).any():
        told = _worst(limits, beyond, speeds, -limits.velocity, limits.velocity)
        broken.append(f"a velocity limit is exceeded: {told}")
    return tuple(broken)


def _worst(limits, beyond, values, low, high):
    row, joint = np.unravel_index(np.argmax(beyond), beyond.shape)
    allowed = f"{low[joint]:.4g} to {high[joint]:.4g}"
    return f"{limits.joint_names[joint]} is {values[row, joint]:.4g} in row {row}; allowed: {allowed}"
