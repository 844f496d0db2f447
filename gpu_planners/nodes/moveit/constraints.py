"""moveit_msgs/Constraints to regions of configurations: what they ask for, and whether a configuration satisfies it.

A region asks for all of its parts. Joints lie in bands, points of links in volumes, and links are turned from an
orientation by no more than the tolerances.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from moveit_msgs.msg import Constraints, JointConstraint, OrientationConstraint, PositionConstraint
from scipy.spatial.transform import Rotation

from ...arm import RobotModel
from ...arm.constraints import Constraint, JointRange, Orientation, Within, all_of
from ...arm.robot.inverse_kinematics import nearest_turn
from ...arm.robot.model import attached
from ...errors import GpuPlannersError, ObstacleError
from ..arm import codes
from ..common.request_error import RequestError, answered_with
from .reference import Reference
from .shapes import LEAST, Volume, read_volumes

PARTS = ("joint_constraints", "position_constraints", "orientation_constraints", "visibility_constraints")
LEAST_ANGLE = 1e-6  # rad: no tolerance is taken to be smaller


@dataclass(frozen=True)
class JointBand:
    """A joint between two values. name: what texts call it; joint: its index; position, lower, upper: rad or m"""

    name: str
    joint: int
    position: float
    lower: float
    upper: float

    def error(self, robot: RobotModel, q: np.ndarray) -> np.ndarray:
        """(N, 1) rad or m by which configurations (N, dof) are below (negative) or above the band."""
        off = q[:, self.joint, None] - self.position
        off = nearest_turn(off) if robot.continuous[self.joint] else off
        return off - np.clip(off, self.lower - self.position, self.upper - self.position)

    def excess(self, robot: RobotModel, q: np.ndarray) -> np.ndarray:
        """(N,) rad or m by which configurations (N, dof) are outside, 0 inside."""
        return np.abs(self.error(robot, q))[:, 0]


@dataclass(frozen=True, eq=False)
class PositionRegion:
    """A point of a link in a union of volumes. name: what texts call it; offset: (3,) in the link's frame, metres"""

    name: str
    link: str
    offset: np.ndarray
    volumes: tuple[Volume, ...]

    def points(self, robot: RobotModel, q: np.ndarray) -> np.ndarray:
        """(N, 3) the point at configurations (N, dof), root frame."""
        T = link_poses(robot, self.link, q)
        return T[:, :3, :3] @ self.offset + T[:, :3, 3]

    def contains(self, points: np.ndarray) -> np.ndarray:
        """(N,) bool of points (N, 3) in the root frame."""
        return np.any([volume.contains(points) for volume in self.volumes], axis=0)

    def excess(self, robot: RobotModel, q: np.ndarray) -> np.ndarray:
        """(N,) 0 inside; outside metres to the nearest centre of a volume."""
        points = self.points(robot, q)
        far = np.min([np.linalg.norm(points - volume.centre, axis=1) for volume in self.volumes], axis=0)
        return np.where(self.contains(points), 0.0, np.maximum(far, LEAST))


@dataclass(frozen=True, eq=False)
class OrientationRegion:
    """A link turned as wanted, within tolerances. name: what texts call it

    R_link_frame: (3, 3) of what the constraint names in the link's frame; wanted: (3, 3) its rotation in the root frame
    tolerance: (3,) rad about x, y and z of the wanted rotation's frame
    rotation_vector: they limit the rotation vector of the error, else its intrinsic x, y, z Euler angles
    """

    name: str
    link: str
    R_link_frame: np.ndarray
    wanted: np.ndarray
    tolerance: np.ndarray
    rotation_vector: bool

    def error(self, robot: RobotModel, q: np.ndarray, share: float = 1.0) -> np.ndarray:
        """(N, 3) rad by which configurations (N, dof) are beyond a share of the tolerance."""
        R = link_poses(robot, self.link, q)[:, :3, :3] @ self.R_link_frame
        turned = Rotation.from_matrix(self.wanted.T @ R)
        off = turned.as_rotvec() if self.rotation_vector else turned.as_euler("XYZ")
        return off - np.clip(off, -share * self.tolerance, share * self.tolerance)

    def excess(self, robot: RobotModel, q: np.ndarray) -> np.ndarray:
        """(N,) rad by which the error is outside, in the worst direction; 0 inside."""
        return np.abs(self.error(robot, q)).max(axis=1)

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """(count, 3, 3) rotations of the link within the tolerances, the wanted one first."""
        reach = np.minimum(self.tolerance, [np.pi, np.pi if self.rotation_vector else np.pi / 2, np.pi])
        off = rng.uniform(-reach, reach, (count, 3))
        off[0] = 0.0
        error = Rotation.from_rotvec(off) if self.rotation_vector else Rotation.from_euler("XYZ", off)
        return self.wanted @ error.as_matrix() @ self.R_link_frame.T


@dataclass(frozen=True, eq=False)
class Region:
    """All that one Constraints message asks for. what: what texts call it"""

    what: str
    joints: tuple[JointBand, ...] = ()
    positions: tuple[PositionRegion, ...] = ()
    orientations: tuple[OrientationRegion, ...] = ()

    @property
    def parts(self) -> tuple[JointBand | PositionRegion | OrientationRegion, ...]:
        return (*self.joints, *self.positions, *self.orientations)

    @property
    def links(self) -> tuple[str, ...]:
        parts: tuple[Any, ...] = (*self.positions, *self.orientations)
        return tuple(dict.fromkeys(part.link for part in parts))

    def excesses(self, robot: RobotModel, q: np.ndarray) -> np.ndarray:
        """(N, parts) of configurations (N, dof): 0 where a part is satisfied, else by how much it is not (m or rad)."""
        q = robot.as_configurations(q)
        return np.stack([part.excess(robot, q) for part in self.parts], axis=1) if self.parts else np.zeros((len(q), 0))

    def satisfied(self, robot: RobotModel, q: np.ndarray) -> np.ndarray:
        """(N,) bool of configurations (N, dof)."""
        return np.all(self.excesses(robot, q) <= LEAST_ANGLE, axis=1)


def is_empty(message: Constraints) -> bool:
    return not any(getattr(message, part) for part in PARTS)


def read_constraints(message: Constraints, reference: Reference, what: str) -> Region:
    """Region of a Constraints message. Frames that move are taken where the reference's state has them.

    RequestError with INVALID_GOAL_CONSTRAINTS, INVALID_LINK_NAME, FRAME_TRANSFORM_FAILURE; what: for its text
    """

    def read(kind: str, read_one: Any) -> tuple:
        given = enumerate(getattr(message, f"{kind}_constraints"))
        return tuple(read_one(one, reference, f"{what}, {kind} constraint {i}") for i, one in given)

    if message.visibility_constraints:
        raise _wrong(f"{what} has visibility constraints; allowed: joint, position and orientation constraints")
    if is_empty(message):
        raise _wrong(f"{what} constrains nothing: give joint, position or orientation constraints")
    return Region(what, read("joint", _joint), read("position", _position), read("orientation", _orientation))


def link_poses(robot: RobotModel, link: str, q: np.ndarray) -> np.ndarray:
    """(N, 4, 4) root_T_link of configurations (N, dof)."""
    i = robot.link_index(link)
    return attached(robot.frame_poses(q), robot.link_frame[i], robot.T_frame_link[i])


def _joint(message: JointConstraint, reference: Reference, what: str) -> JointBand:
    robot = reference.robot
    message = _of_leader(message, robot)
    name = message.joint_name
    if name not in robot.joint_names:
        raise _wrong(f"{what} names the joint '{name}'; the planner plans {', '.join(robot.joint_names)}")
    below, above = message.tolerance_below, message.tolerance_above
    if not math.isfinite(message.position) or not (0 <= below < math.inf and 0 <= above < math.inf):
        raise _wrong(
            f"{what}, '{name}': position {message.position}, tolerance_below {below}, tolerance_above {above}; "
            "allowed: finite numbers, tolerances from 0"
        )
    joint = robot.joint_names.index(name)
    band = JointBand(f"joint '{name}'", joint, message.position, message.position - below, message.position + above)
    lower, upper = robot.lower[joint], robot.upper[joint]
    if not robot.continuous[joint] and (band.upper < lower - LEAST_ANGLE or band.lower > upper + LEAST_ANGLE):
        asked = f"joint '{name}' between {band.lower:g} and {band.upper:g}"
        text = f"{what} asks for {asked}, outside its limits {lower:g} to {upper:g}"
        raise RequestError(codes.GOAL_STATE_INVALID, text)
    return band


def _of_leader(message: JointConstraint, robot: RobotModel) -> JointConstraint:
    """A constraint of a joint that mimics a planned one, as one of that joint; others as they are."""
    if message.joint_name not in robot.mimic_joints or message.joint_name not in robot.frame_names:
        return message
    frame = robot.frames[robot.frame_names.index(message.joint_name)]
    factor = float(frame["multiplier"])
    if not factor:
        return message
    below, above = message.tolerance_below / abs(factor), message.tolerance_above / abs(factor)
    return JointConstraint(
        joint_name=robot.joint_names[frame["joint"]],
        position=(message.position - float(frame["offset"])) / factor,
        tolerance_below=below if factor > 0 else above,
        tolerance_above=above if factor > 0 else below,
        weight=message.weight,
    )


def _position(message: PositionConstraint, reference: Reference, what: str) -> PositionRegion:
    T_root_frame = reference.frame(message.header.frame_id, what)
    link, T_link_frame = reference.link_and_offset(message.link_name, what)
    o = message.target_point_offset
    offset = np.array([o.x, o.y, o.z, 1.0])
    if not np.isfinite(offset).all():
        raise _wrong(f"{what}: the target_point_offset must be finite, got {offset[:3].tolist()}")
    with answered_with(codes.INVALID_GOAL_CONSTRAINTS, ObstacleError):
        volumes = read_volumes(message.constraint_region, T_root_frame, what)
    return PositionRegion(f"position of link '{link}'", link, (T_link_frame @ offset)[:3], volumes)


def _orientation(message: OrientationConstraint, reference: Reference, what: str) -> OrientationRegion:
    T_root_frame = reference.frame(message.header.frame_id, what)
    link, T_link_frame = reference.link_and_offset(message.link_name, what)
    o = message.orientation
    quaternion = np.array([o.x, o.y, o.z, o.w])
    if not abs(np.linalg.norm(quaternion) - 1) <= 1e-2:
        raise _wrong(f"{what}: the orientation must be a unit quaternion x, y, z, w, got {quaternion.tolist()}")
    tolerance = np.array([getattr(message, f"absolute_{axis}_axis_tolerance") for axis in "xyz"])
    if not (tolerance >= 0).all():
        raise _wrong(f"{what}: tolerances must be 0 or more rad, got {tolerance.tolist()}")
    known = OrientationConstraint.XYZ_EULER_ANGLES, OrientationConstraint.ROTATION_VECTOR
    if message.parameterization not in known:
        raise _wrong(f"{what}: parameterization {message.parameterization} is not known; allowed: {known}")
    wanted = T_root_frame[:3, :3] @ Rotation.from_quat(quaternion).as_matrix()
    by_vector = message.parameterization == OrientationConstraint.ROTATION_VECTOR
    name, tolerance = f"orientation of link '{link}'", np.maximum(tolerance, LEAST_ANGLE)
    return OrientationRegion(name, link, T_link_frame[:3, :3], wanted, tolerance, by_vector)


def _wrong(text):
    return RequestError(codes.INVALID_GOAL_CONSTRAINTS, text)


FREE = 3.1  # rad: an axis with such a tolerance, or a larger one, is free on a path


class PathRule(NamedTuple):
    """What the whole of a motion keeps. rule: as planners take it; region: the same, as goals are looked for in it"""

    rule: Constraint
    region: Region

    def of_goal(self, region: Region) -> Region:
        """A goal's region whose configurations keep the rule too."""
        mine = self.region
        joints, positions = (*region.joints, *mine.joints), (*region.positions, *mine.positions)
        orientations = (*region.orientations, *mine.orientations)
        return replace(region, joints=joints, positions=positions, orientations=orientations)


def read_path_constraints(message: Constraints, reference: Reference, robot: RobotModel) -> PathRule | None:
    """What path_constraints ask for, None where they ask for nothing; RequestError where that cannot be kept.

    robot: the checker's
    """
    if is_empty(message):
        return None
    try:
        region = read_constraints(message, reference, "the path_constraints")
    except RequestError as error:
        code = codes.PLANNING_FAILED if error.code == codes.INVALID_GOAL_CONSTRAINTS else error.code
        raise RequestError(code, str(error)) from error
    turned = tuple(_free_from(part) for part in region.orientations)
    region = replace(region, orientations=tuple(part for part in turned if (part.tolerance < np.pi).any()))
    rules: list[Constraint] = []
    for part in region.parts:
        with answered_with(
            codes.PLANNING_FAILED, GpuPlannersError, f"the path_constraints cannot be kept, {part.name}: "
        ):
            rules.append(_rule_of(part, robot))
    return PathRule(all_of(rules), region) if rules else None


def _free_from(part):
    """An orientation with no limit about the axes that are free."""
    return replace(part, tolerance=np.where(part.tolerance >= FREE, np.inf, part.tolerance))


def _rule_of(part: JointBand | PositionRegion | OrientationRegion, robot: RobotModel) -> Constraint:
    if isinstance(part, JointBand):
        return JointRange(robot, {robot.joint_names[part.joint]: (part.lower, part.upper)})
    if isinstance(part, PositionRegion):
        return Within(robot, part.link, part.offset, [volume.to_keep() for volume in part.volumes])
    angles = "vector" if part.rotation_vector else "euler"
    return Orientation(robot, part.link, part.wanted, part.tolerance, angles, part.R_link_frame)
