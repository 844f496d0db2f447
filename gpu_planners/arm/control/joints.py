"""The joints of a URDF and their limits, without its shapes: what a controller knows of a robot."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import RobotDescriptionError
from ..urdf.loader import DEFAULT_ACCELERATION_TIME
from ..urdf.urdf_xml import read_urdf


@dataclass(frozen=True)
class Joints:
    """Joints that move and mimic no other.

    names: (n,) in the URDF's order, or as they were asked for
    lower, upper: (n,) rad or m; infinite for continuous joints
    velocity, acceleration: (n,) limits, rad/s or m/s, rad/s^2 or m/s^2
    """

    names: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray

    def nearest_to_zero(self) -> np.ndarray:
        """(n,) the positions within the limits that are nearest to 0."""
        return np.clip(0.0, self.lower, self.upper)


def read_joints(urdf: str, names: Sequence[str] = ()) -> Joints:
    """Joints of a URDF's text. names: those to take; none: all

    RobotDescriptionError names a joint that is not there, or one without a velocity limit.
    """
    description = read_urdf(urdf)
    movable = {joint.name: joint for joint in description.joints.values() if joint.kind.plannable and not joint.mimic}
    if unknown := [name for name in names if name not in movable]:
        raise RobotDescriptionError(
            f"robot '{description.name}' has no joint '{unknown[0]}' that moves by itself; "
            f"it has {', '.join(movable) or 'none'}"
        )
    joints = [movable[name] for name in (names or movable)]
    for joint in joints:
        if not joint.velocity or not joint.velocity > 0:
            raise RobotDescriptionError(f"joint '{joint.name}' has no velocity limit above 0")
    limits = [joint.limits if joint.kind.limited and joint.limits else (-np.inf, np.inf) for joint in joints]
    velocity = np.array([joint.velocity for joint in joints], dtype=float)
    return Joints(
        tuple(joint.name for joint in joints),
        np.array([low for low, _ in limits]),
        np.array([high for _, high in limits]),
        velocity,
        velocity / DEFAULT_ACCELERATION_TIME,
    )
