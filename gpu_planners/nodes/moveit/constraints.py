"""moveit_msgs/Constraints to regions of configurations: what they ask for, and whether a configuration satisfies it.

A region asks for all of its parts. Joints lie in bands, points of links in volumes, and links are turned from an
orientation by no more than the tolerances.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from moveit_msgs.msg import Constraints, JointConstraint, OrientationConstraint, PositionConstraint
from scipy.spatial.transform import Rotation

from ...arm import RobotModel
from ...arm.robot.model import attached
from ...errors import ObstacleError
from ..arm import codes
from ..common.request_error import RequestError
from .reference import Reference
from .regions import LEAST, Body, read_bodies

PARTS = ("joint_constraints", "position_constraints", "orientation_constraints", "visibility_constraints")
LEAST_ANGLE = 1e-6  # rad: no tolerance is taken to be smaller
TURN = 2 * math.pi


@dataclass(frozen=True)
class JointBand:
    """A joint between two values; joint: its index; position, lower, upper: rad or m"""

    joint: int
    position: float
    lower: float
    upper: float

    def excess(self, robot: RobotModel, q: np.ndarray) -> np.ndarray:
        """(N,) rad or m by which configurations (N, dof) are outside, 0 inside."""
        off = q[:, self.joint] - self.position
        if robot.continuous[self.joint]:
            off = (off + np.pi) % TURN - np.pi
        return np.maximum(0.0, np.maximum(self.lower - self.position - off, off - self.upper + self.position))


@dataclass(frozen=True, eq=False)
class PositionRegion:
    """A point of a link in a union of bodies. offset: (3,) the point in the link's frame, metres"""

    link: str
    offset: np.ndarray
    bodies: tuple[Body, ...]

    def excess(self, robot: RobotModel, q: np.ndarray) -> np.ndarray:
        """(N,) 0 inside; outside metres to the nearest centre of a body."""
        T = link_poses(robot, self.link, q)
        points = T[:, :3, :3] @ self.offset + T[:, :3, 3]
        inside = np.any([body.contains(points) for body in self.bodies], axis=0)
        far = np.min([np.linalg.norm(points - body.centre, axis=1) for body in self.bodies], axis=0)
        return np.where(inside, 0.0, np.maximum(far, LEAST))


@dataclass(frozen=True, eq=False)
class OrientationRegion:
    """A link turned as wanted, within tolerances.

    R_link_frame: (3, 3) of what the constraint names in the link's frame; wanted: (3, 3) its rotation in the root frame
    tolerance: (3,) rad about x, y and z of the wanted rotation's frame
    rotation_vector: they limit the rotation vector of the error, else its intrinsic x, y, z Euler angles
    """

    link: str
    R_link_frame: np.ndarray
    wanted: np.ndarray
    tolerance: np.ndarray
    rotation_vector: bool

    def excess(self, robot: RobotModel, q: np.ndarray) -> np.ndarray:
        """(N,) rad by which the error is outside, in the worst direction; 0 inside."""
        R = link_poses(robot, self.link, q)[:, :3, :3] @ self.R_link_frame
        error = Rotation.from_matrix(self.wanted.T @ R)
        off = error.as_rotvec() if self.rotation_vector else error.as_euler("XYZ")
        return np.maximum(0.0, (np.abs(off) - self.tolerance).max(axis=1))

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
    names: tuple[str, ...] = field(default=())

    @property
    def parts(self) -> tuple[JointBand | PositionRegion | OrientationRegion, ...]:
        """All parts, in the order of `names`, which says in words what each is."""
        return (*self.joints, *self.positions, *self.orientations)

    @property
    def links(self) -> tuple[str, ...]:
        """Links that it constrains, each once."""
        links = [part.link for part in self.positions] + [part.link for part in self.orientations]
        return tuple(dict.fromkeys(links))

    def excesses(self, robot: RobotModel, q: np.ndarray) -> np.ndarray:
        """(N, parts) of configurations (N, dof): 0 where a part is satisfied, else by how much it is not (m or rad)."""
        q = robot.as_configurations(q)
        return np.stack([part.excess(robot, q) for part in self.parts], axis=1) if self.parts else np.zeros((len(q), 0))

    def satisfied(self, robot: RobotModel, q: np.ndarray) -> np.ndarray:
        """(N,) bool of configurations (N, dof)."""
        return np.all(self.excesses(robot, q) <= LEAST_ANGLE, axis=1)


def is_empty(message: Constraints) -> bool:
    """Does a Constraints message ask for nothing?"""
    return not any(getattr(message, part) for part in PARTS)


def read_constraints(message: Constraints, reference: Reference, what: str) -> Region:
    """Region of a Constraints message. Frames that move count where they are at the state of the reference.

    RequestError with INVALID_GOAL_CONSTRAINTS, INVALID_LINK_NAME, FRAME_TRANSFORM_FAILURE; what: for its text
    """
    if message.visibility_constraints:
        raise _wrong(f"{what} has visibility constraints; allowed: joint, position and orientation constraints")
    if is_empty(message):
        raise _wrong(f"{what} constrains nothing: give joint, position or orientation constraints")
    joints = tuple(
        _joint(one, reference, f"{what}, joint constraint {i}") for i, one in enumerate(message.joint_constraints)
    )
    positions = tuple(
        _position(one, reference, f"{what}, position constraint {i}")
        for i, one in enumerate(message.position_constraints)
    )
    orientations = tuple(
        _orientation(one, reference, f"{what}, orientation constraint {i}")
        for i, one in enumerate(message.orientation_constraints)
    )
    names = (
        *(f"joint '{reference.robot.joint_names[band.joint]}'" for band in joints),
        *(f"position of link '{part.link}'" for part in positions),
        *(f"orientation of link '{part.link}'" for part in orientations),
    )
    return Region(what, joints, positions, orientations, names)


def link_poses(robot: RobotModel, link: str, q: np.ndarray) -> np.ndarray:
    """(N, 4, 4) root_T_link of configurations (N, dof)."""
    i = robot.link_index(link)
    return attached(robot.frame_poses(q), robot.link_frame[i], robot.T_frame_link[i])


def _joint(message: JointConstraint, reference: Reference, what: str) -> JointBand:
    robot, name = reference.robot, message.joint_name
    if name not in robot.joint_names:
        raise _wrong(f"{what} names the joint '{name}'; the planner plans {', '.join(robot.joint_names)}")
    below, above = message.tolerance_below, message.tolerance_above
    if not math.isfinite(message.position) or not (0 <= below < math.inf and 0 <= above < math.inf):
        raise _wrong(
            f"{what}, '{name}': position {message.position}, tolerance_below {below}, tolerance_above {above}; "
            "allowed: finite numbers, tolerances from 0"
        )
    joint = robot.joint_names.index(name)
    band = JointBand(joint, message.position, message.position - below, message.position + above)
    lower, upper = robot.lower[joint], robot.upper[joint]
    if not robot.continuous[joint] and (band.upper < lower - LEAST_ANGLE or band.lower > upper + LEAST_ANGLE):
        raise RequestError(
            codes.GOAL_STATE_INVALID,
            f"{what} asks for joint '{name}' between {band.lower:g} and {band.upper:g}, outside its limits "
            f"{lower:g} to {upper:g}",
        )
    return band


def _position(message: PositionConstraint, reference: Reference, what: str) -> PositionRegion:
    T_root_frame = reference.frame(message.header.frame_id, what)
    link, T_link_frame = reference.link_and_offset(message.link_name, what)
    o = message.target_point_offset
    offset = np.array([o.x, o.y, o.z, 1.0])
    if not np.isfinite(offset).all():
        raise _wrong(f"{what}: the target_point_offset must be finite, got {offset[:3].tolist()}")
    try:
        bodies = read_bodies(message.constraint_region, T_root_frame, what)
    except ObstacleError as error:
        raise _wrong(str(error)) from error
    return PositionRegion(link, (T_link_frame @ offset)[:3], bodies)


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
    return OrientationRegion(
        link,
        T_link_frame[:3, :3],
        T_root_frame[:3, :3] @ Rotation.from_quat(quaternion).as_matrix(),
        np.maximum(tolerance, LEAST_ANGLE),
        message.parameterization == OrientationConstraint.ROTATION_VECTOR,
    )


def _wrong(text):
    return RequestError(codes.INVALID_GOAL_CONSTRAINTS, text)
