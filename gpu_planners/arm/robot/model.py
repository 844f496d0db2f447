"""RobotModel: everything the planner knows about an arm, as arrays that do not change.

Kinematics is modified Denavit-Hartenberg in Craig's convention (Introduction to Robotics, ch. 3), as in
[DL14], with one departure: a constant transform T_parent_base before each row, because a tree branches
and because DH parameters are ill-conditioned for almost parallel axes (see modified_dh.py).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import checked, lies_on_cuda, number, numbers
from ...errors import ConfigurationError, RobotDescriptionError, shown
from ..geometry.shapes import ConvexShape
from . import attachment, inverse_kinematics
from .attachment import Attachment
from .modified_dh import constant_row, path_to_root

DH_ROW = [("a", "f8"), ("alpha", "f8"), ("d", "f8"), ("theta", "f8"), ("prismatic", "?")]
FRAME_DTYPE = np.dtype([*DH_ROW, ("parent", "i4"), ("joint", "i4"), ("multiplier", "f8"), ("offset", "f8")])


@dataclass(frozen=True)
class VirtualJoint:
    """A virtual joint of an SRDF: how the robot stands in a frame outside of it. It is never planned.

    type: "fixed", "planar" or "floating"; parent_frame: the frame outside; child_link: the link that stands there
    """

    name: str
    type: str
    parent_frame: str
    child_link: str


@dataclass(frozen=True, eq=False)
class RobotModel:
    """A robot with its planning joints. Metres, radians; the root link's frame is the world of all poses.

    One frame f belongs to each moving joint (planning joints and the joints that mimic them):
        root_T_f = root_T_parent @ T_parent_base[f] @ Rx(alpha) Tx(a) Rz(theta [+ value]) Tz(d [+ value])
    where value = multiplier * q[joint] + offset, added to theta (revolute) or to d (prismatic).

    name: the URDF's robot name
    root_link: root of the URDF's tree
    joint_names: (dof,) planning joints in the order of q
    lower, upper: (dof,) position limits, rad or m; -pi and pi for continuous joints
    velocity: (dof,) limits, rad/s or m/s
    acceleration: (dof,) limits, rad/s^2 or m/s^2
    effort: (dof,) limits of torque or force, N m or N; 0 where the URDF gives none
    continuous: (dof,) bool, joints that turn without end: q and q + 2 pi are the same place (so each is periodic)
    frames: (F,) FRAME_DTYPE, parents before children; parent is a frame index, -1 for the root
    T_parent_base: (F, 4, 4) constant transform from the parent frame (or the root) to where the row starts:
        identity along a chain, not at the root, at branches and between almost parallel axes
    frame_names: (F,) the URDF joint that each frame belongs to
    link_names: (L,) every link of the URDF
    link_frame: (L,) int32 frame that a link is rigidly attached to, -1 when it is fixed to the root
    T_frame_link: (L, 4, 4) pose of the URDF link frame in that frame
    link_inertia: (L, 4, 4) pseudo-inertia of each link in its own frame (`robot.inertia`), 0 where the URDF has none
    inertia_faults: (link, what is wrong with its inertia)
    shapes: (S,) ConvexShape, posed in the frame (or root) of their link
    shape_link: (S,) int32 index into link_names
    shape_frame: (S,) int32 frame of the shape, -1 when it is fixed to the root
    self_collision_pairs: (P, 2) int32 indices into shapes; never two shapes of one frame
    disabled_pairs: (link, link, reason) of every pair of links that is not checked
    touching_pairs: (link, link) of those that nobody disabled and no proof covers: they are taken to touch by design
    named_states: {name: (dof,)} of the SRDF's group states that give every planning joint; of the planned group first
    tip_link: default end-effector link; tip_reason: why it is that one
    other_joints: {name: (lower, upper)} of joints that move, are not planned and mimic none (a gripper's), rad or m
    mimic_joints: names of the joints that mimic another one
    virtual_joints: those of the SRDF
    groups: {group of the SRDF: names of the joints that move it}, none for one that cannot be planned
    attachments: {name: Attachment} of what links carry (see `attach`); their shapes are the last of `shapes`, in order
    allowed_pairs: pairs of names that `allow_collisions` let touch
    hard_limits: (2, dof) the URDF's <limit>, where soft limits or joint_limits.yaml make `lower` and `upper` stricter:
        there a robot may stand, and motions may begin; None: `lower` and `upper`
    jerk: (dof,) limits of joint_limits.yaml, rad/s^3 or m/s^3, infinite where it gives none; None: no joint has one
    limit_sources: {"lower", "upper", "velocity", "acceleration" or "jerk": (dof,) where each limit is from}
    tree: the description, for `with_other_joints` and `of_group`, made by `urdf.loader`; None: they cannot be asked
    """

    name: str
    root_link: str
    joint_names: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    effort: np.ndarray
    continuous: np.ndarray
    frames: np.ndarray
    T_parent_base: np.ndarray
    frame_names: tuple[str, ...]
    link_names: tuple[str, ...]
    link_frame: np.ndarray
    T_frame_link: np.ndarray
    link_inertia: np.ndarray
    inertia_faults: tuple[tuple[str, str], ...]
    shapes: tuple[ConvexShape, ...]
    shape_link: np.ndarray
    shape_frame: np.ndarray
    self_collision_pairs: np.ndarray
    disabled_pairs: tuple[tuple[str, str, str], ...]
    tip_link: str
    tip_reason: str = ""
    named_states: dict[str, np.ndarray] = field(default_factory=dict)
    touching_pairs: tuple[tuple[str, str], ...] = ()
    other_joints: dict[str, tuple[float, float]] = field(default_factory=dict)
    mimic_joints: tuple[str, ...] = ()
    virtual_joints: tuple[VirtualJoint, ...] = ()
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    attachments: dict[str, Attachment] = field(default_factory=dict)
    allowed_pairs: tuple[tuple[str, str], ...] = ()
    hard_limits: np.ndarray | None = None
    jerk: np.ndarray | None = None
    limit_sources: dict[str, tuple[str, ...]] = field(default_factory=dict)
    tree: Any = None

    attach, detach, allow_collisions = attachment.attach, attachment.detach, attachment.allow_collisions
    inverse_kinematics = inverse_kinematics.solve

    @property
    def attached(self) -> tuple[str, ...]:
        """Names of what links carry, in the order in which it was attached."""
        return tuple(self.attachments)

    @property
    def dof(self) -> int:
        """Number of planning joints."""
        return len(self.joint_names)

    @property
    def dh(self) -> np.ndarray:
        """Structured (dof,) a, alpha, d, theta, prismatic: the row of each planning joint, in the order of q."""
        rows = self.frames[[self.frame_names.index(name) for name in self.joint_names]]
        return rows[[name for name, _ in DH_ROW]].astype(np.dtype(DH_ROW))

    @cached_property
    def periodic(self) -> np.ndarray:
        """(dof,) bool: has every link the same pose at q and at q + 2 pi of the joint, whether it is limited or not?

        That is so where each frame that follows the joint turns by a whole multiple of it.
        """
        return periodic_joints(self.frames, self.dof)

    @cached_property
    def branches(self) -> np.ndarray:
        """(B, dof) bool: the joints of parts that do not carry each other, such as two arms, but not those of a trunk
        that carries all of them. A robot that is a chain has none."""
        return branches_of(self.frames, self.dof)

    @property
    def standing_limits(self) -> np.ndarray:
        """(2, dof) lowest and highest positions where the robot may stand, and a motion may begin: `lower` and `upper`,
        or the `hard_limits` around them."""
        limits = np.stack([self.lower, self.upper])
        if self.hard_limits is None:
            return limits
        return np.stack([np.minimum(limits[0], self.hard_limits[0]), np.maximum(limits[1], self.hard_limits[1])])

    def around(self, start: ArrayLike) -> "RobotModel":
        """The robot with limits that have a start (dof,) within them, as far as it may stand there: so that a motion
        can lead it back. The same robot where the start is within the limits."""
        q = numbers("start", start, (self.dof,), ConfigurationError)
        if self.hard_limits is None or (self.continuous | ((q >= self.lower) & (q <= self.upper))).all():
            return self
        q = np.where(self.continuous, self.lower, np.clip(q, *self.standing_limits))
        return replace(self, lower=np.minimum(self.lower, q), upper=np.maximum(self.upper, q))

    def jerk_limits(self, acceleration: ArrayLike | None = None, time_s: float = 0.0) -> np.ndarray:
        """(dof,) limits of jerk for motions of such accelerations (dof,), by default the robot's own: `jerk`, in the
        proportion of these; where there is none, the acceleration over time_s, without end for 0 s."""
        reach = self.acceleration if acceleration is None else numbers("acceleration", acceleration, (self.dof,))
        time_s = number("time_s", time_s, 0.0, 1e9, " seconds")
        with np.errstate(divide="ignore", over="ignore"):
            derived = reach / time_s if time_s > 0 else np.full(self.dof, np.inf)
        if self.jerk is None:
            return derived
        own = self.jerk * np.minimum(reach / self.acceleration, 1.0)
        return np.where(np.isfinite(self.jerk), own, derived)

    def frame_poses(self, q: ArrayLike) -> np.ndarray:
        """(N, F, 4, 4) root_T_frame of configurations q (N, dof) or (dof,), rad or m; float64. Of q (N, dof) on a CUDA
        device, float32 or float64: there, of the same type."""
        if lies_on_cuda(q):
            from . import placing_cuda

            return placing_cuda.frame_poses(self, q)
        return poses_of_frames(self, self.as_configurations(q), range(len(self.frames)))

    @cached_property
    def T_parent_frame(self) -> np.ndarray:
        """(F, 4, 4) where the frames' values are 0."""
        return self.T_parent_base @ np.array([constant_row(frame) for frame in self.frames]).reshape(-1, 4, 4)

    @cached_property
    def frame_inertia(self) -> np.ndarray:
        """(F, 4, 4) pseudo-inertia of all links that are fixed to a frame, in that frame; attached objects weigh
        nothing in it."""
        moved = self.T_frame_link @ self.link_inertia @ self.T_frame_link.swapaxes(1, 2)
        sums = np.zeros((len(self.frames), 4, 4))
        np.add.at(sums, self.link_frame[self.link_frame >= 0], moved[self.link_frame >= 0])
        return sums

    def link_poses(self, q: ArrayLike) -> dict[str, np.ndarray]:
        """{link name: (N, 4, 4) pose in the root frame} of configurations q (N, dof) or (dof,), rad or m; float64. On a
        CUDA device as `frame_poses`."""
        if lies_on_cuda(q):
            from . import placing_cuda

            return placing_cuda.link_poses(self, q)
        poses, links = self.frame_poses(q), zip(self.link_names, self.link_frame, self.T_frame_link)
        return {name: attached(poses, frame, T_frame_link) for name, frame, T_frame_link in links}

    @checked(RobotDescriptionError)
    def with_other_joints(self, fixed: Mapping[str, float]) -> "RobotModel":
        """The robot with other values of joints that are not planned, as load_urdf(fixed=fixed) has it, and with all
        that links carry. Takes a few milliseconds: a shape that stays in place stays the same object.

        fixed: {joint: value} of some of `other_joints`, rad or m; others are at 0, or at the limit nearest to 0
        Raises RobotDescriptionError that names the joint.
        """
        kinematics = self._described.kinematics(fixed)
        before, now = self.T_frame_link, kinematics["T_frame_link"]
        in_link = *self.tree.link_shapes, *(shape for one in self.attachments.values() for shape in one.shapes)
        return replace(
            self,
            **kinematics,
            shapes=tuple(
                shape if (before[link] == now[link]).all() else own.moved(now[link])
                for shape, own, link in zip(self.shapes, in_link, self.shape_link, strict=True)
            ),
        )

    @checked(RobotDescriptionError)
    def of_group(self, group: str, fixed: Mapping[str, float] = MappingProxyType({})) -> "RobotModel":
        """The robot with another group of its SRDF to plan, as load_urdf(group=group, fixed=fixed) has it, and with all
        that links carry and may touch: other planning joints, limits, tip and named states.

        Takes some milliseconds: no mesh is read or cut again, and pairs of links that are proven to stay apart are so
        for every group. Limits that load_urdf was given hold for the joints that they name, one number for all.

        fixed: {joint: value} of joints that the group does not plan, rad or m; others are at 0, or at the limit nearest
            to 0
        Raises RobotDescriptionError for an unknown group, or one that cannot be planned.
        """
        robot: RobotModel = self._described.of_group(group, fixed)
        for name, one in self.attachments.items():
            robot = robot.attach(name, one.shapes, one.link, touch_links=one.touch_links)
        return robot.allow_collisions(self.allowed_pairs)

    @property
    def _described(self):
        """`tree`, which must be there."""
        if self.tree is None:
            raise RobotDescriptionError(
                f"robot '{self.name}' was not made by load_urdf: its other joints cannot move, nor be planned"
            )
        return self.tree

    @checked(ConfigurationError)
    def as_configurations(self, q: ArrayLike) -> np.ndarray:
        """q, (N, dof) or (dof,), as (N, dof) float64; ConfigurationError where it has another shape."""
        q = np.atleast_2d(np.asarray(q, dtype=np.float64))
        if q.ndim != 2 or q.shape[1] != self.dof:
            raise ConfigurationError(
                f"robot '{self.name}' has {self.dof} planning joints, got configurations of shape {q.shape}"
            )
        return q

    @checked(RobotDescriptionError)
    def link_index(self, link: str) -> int:
        """Index of a link by its name; RobotDescriptionError with the known names when there is none."""
        if link not in self.link_names:
            known = ", ".join(self.link_names)
            raise RobotDescriptionError(f"robot '{self.name}' has no link {shown(link)}; its links: {known}")
        return self.link_names.index(link)


def attached(poses: np.ndarray, frame: int, T_frame_link: np.ndarray) -> np.ndarray:
    """(N, 4, 4) root_T_link of a link fixed to a frame, or to the root (-1). poses: (N, F, 4, 4) of all frames"""
    return poses[:, frame] @ T_frame_link if frame >= 0 else np.broadcast_to(T_frame_link, (len(poses), 4, 4)).copy()


def periodic_joints(frames: np.ndarray, dof: int) -> np.ndarray:
    """(dof,) bool, RobotModel.periodic, of frames (F,) FRAME_DTYPE."""
    breaks = frames["prismatic"] | (frames["multiplier"] != np.round(frames["multiplier"]))
    return np.bincount(frames["joint"], breaks, dof) == 0


def branches_of(frames: np.ndarray, dof: int) -> np.ndarray:
    """(B, dof) bool, RobotModel.branches, of frames (F,) FRAME_DTYPE."""
    carries = np.eye(dof, dtype=bool)  # [i, j]: does joint i carry j?
    for joint, carrier in zip(frames["joint"], frames["parent"]):
        carries[frames["joint"][path_to_root(frames, carrier)], joint] = True
    left = np.ones(dof, dtype=bool)
    while left.any():
        linked = (carries | carries.T) & left & left[:, None]
        for _ in range(dof.bit_length()):
            linked = linked @ linked
        parts = np.unique(linked[left], axis=0)[::-1]
        trunk = left & carries[:, left].all(axis=1)
        if len(parts) > 1:
            return parts
        if not trunk.any():  # joints of several parts move with one of them
            break
        left &= ~trunk
    return np.zeros((0, dof), dtype=bool)


def poses_of_frames(robot: RobotModel, q: np.ndarray, frames: Iterable[int]) -> np.ndarray:
    """`RobotModel.frame_poses` of q (N, dof), of frames whose parents come before them; other rows are undefined."""
    values = q[:, robot.frames["joint"]] * robot.frames["multiplier"] + robot.frames["offset"]
    sines, cosines = np.sin(values), np.cos(values)
    poses, constant = np.empty((len(q), len(robot.frames), 4, 4)), robot.T_parent_frame
    parents, slides = robot.frames["parent"].tolist(), robot.frames["prismatic"].tolist()
    for f in frames:
        # turning and sliding along one axis commute, so the value may follow the constant row
        T = poses[:, f]
        T[:] = poses[:, parents[f]] @ constant[f] if parents[f] >= 0 else constant[f]
        if slides[f]:
            T[:, :3, 3] += values[:, f, None] * T[:, :3, 2]
        else:
            c, s, x, y = cosines[:, f, None], sines[:, f, None], T[:, :, 0].copy(), T[:, :, 1].copy()
            T[:, :, 0], T[:, :, 1] = c * x + s * y, c * y - s * x
    return poses
