"""Path constraints that can be kept: one orientation constraint that lets a link turn freely about one axis.

So a cup is kept upright. Its axis may tilt by the least angle that the constraint allows in any direction.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from moveit_msgs.msg import Constraints

from ...arm.upright import Upright
from ..arm import codes
from ..common.request_error import RequestError
from . import constraints as constraint_messages
from .constraints import OrientationRegion, Region, read_constraints
from .reference import Reference

FREE = 3.1  # rad: an axis with such a tolerance, or a larger one, is free
LEAST_TILT = 1e-3  # rad
OF_VECTOR = (
    2 / math.pi
)  # with half a turn about the axis, a tilt t gives a rotation vector with components up to t pi / 2
OF_CONE = 0.7  # tolerances of this part of a tilt about both axes keep it below the tilt
ONLY = "allowed: one orientation constraint whose tolerance about one axis, x or z, is 3.1 rad or more"


@dataclass(frozen=True, eq=False)
class KeptUpright:
    """A link whose axis keeps a direction.

    axis: (3,) in the link's frame; direction: (3,) in the root frame; tolerance: rad
    region: OrientationRegion whose configurations keep it
    """

    link: str
    axis: np.ndarray
    direction: np.ndarray
    tolerance: float
    region: OrientationRegion

    def rule(self, robot) -> Upright:
        """The constraint of a robot."""
        return Upright(robot, self.link, self.axis, self.direction, self.tolerance)

    def within(self, region: Region) -> Region:
        """A goal region with the constraint."""
        return replace(
            region,
            orientations=(*region.orientations, self.region),
            names=(*region.names, f"path constraint of link '{self.link}'"),
        )


def read_path_constraints(message: Constraints, reference: Reference) -> KeptUpright | None:
    """What path_constraints ask for, None where they ask for nothing; RequestError where that cannot be kept."""
    if constraint_messages.is_empty(message):
        return None
    others = message.joint_constraints or message.position_constraints or message.visibility_constraints
    if others or len(message.orientation_constraints) != 1:
        raise RequestError(codes.PLANNING_FAILED, f"the path_constraints are of a kind that cannot be kept; {ONLY}")
    (asked,) = read_constraints(message, reference, "the path_constraints").orientations
    free = np.flatnonzero(asked.tolerance >= FREE)
    if len(free) != 1 or (free[0] == 1 and not asked.rotation_vector):
        about = f"{asked.tolerance.tolist()} rad about x, y and z"
        text = f"the path_constraints limit link '{asked.link}' to {about}, which cannot be kept; {ONLY}"
        raise RequestError(codes.PLANNING_FAILED, text)
    tilt = float(np.delete(asked.tolerance, free[0]).min()) * (OF_VECTOR if asked.rotation_vector else 1.0)
    if not LEAST_TILT <= tilt < math.pi / 2:
        text = f"tilt by {tilt:g} rad; allowed: from {LEAST_TILT:g} rad to a quarter turn"
        raise RequestError(codes.PLANNING_FAILED, f"the path_constraints let link '{asked.link}' {text}")
    along = np.eye(3)[free[0]]
    region = replace(asked, tolerance=np.where(along > 0, asked.tolerance, OF_CONE * tilt))
    return KeptUpright(asked.link, asked.R_link_frame @ along, asked.wanted @ along, tilt, region)
