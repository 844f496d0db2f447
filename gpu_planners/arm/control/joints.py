"""The joints of a URDF and their limits, without its shapes: what a controller knows of a robot."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...arguments import checked
from ...errors import RobotDescriptionError
from ..urdf.limits import acceleration_limits, speed_limits
from ..urdf.loader import planning_joints
from ..urdf.srdf_xml import NO_SRDF, read_srdf
from ..urdf.urdf_xml import read_urdf


@dataclass(frozen=True)
class Joints:
    """Joints that move and mimic no other.

    names: (n,) in the URDF's order, or as they were asked for
    lower, upper: (n,) rad or m, where a controller may have them; infinite for continuous joints
    soft: (2, n) the same within soft limits, where planners have them
    velocity, acceleration: (n,) limits, rad/s or m/s, rad/s^2 or m/s^2
    states: {state of the SRDF: {joint: rad or m}}, which may name other joints too
    """

    names: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    states: dict[str, dict[str, float]]
    soft: np.ndarray

    def nearest_to_zero(self) -> np.ndarray:
        """(n,) the positions within the limits that are nearest to 0."""
        return np.clip(0.0, *self.soft)


@checked(RobotDescriptionError)
def read_joints(urdf: str, names: Sequence[str] = (), group: str = "", srdf: str = "") -> Joints:
    """Joints of a URDF, its text given: those that load_urdf would plan for the same arguments.

    names: or else `group` of the SRDF, or else its only group, or else all that move and mimic none
    srdf: text of an SRDF; "": none
    RobotDescriptionError names a joint that is not there.
    """
    description = read_urdf(urdf)
    semantics = read_srdf(srdf, description) if srdf else NO_SRDF
    planned = planning_joints(description, semantics, names or None, group or None)
    joints = [description.joints[name] for name in planned]
    lower, upper = np.array([joint.range for joint in joints]).T.copy()
    velocity = np.array(speed_limits(description.name, joints))
    acceleration = np.array(acceleration_limits(joints, velocity))
    soft = np.array([joint.planned_range for joint in joints]).T.copy()
    return Joints(planned, lower, upper, velocity, acceleration, dict(semantics.states), soft)
