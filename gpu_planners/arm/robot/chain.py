"""The joints that move one link, packed for compiled code: lengths in units of the chain's reach.

So a metre and a radian weigh alike for a robot of any size, and joints that slide and joints that turn move by numbers
of one size.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ...device import lean_njit
from ..geometry.poses import POSE, compose, load
from .modified_dh import path_to_root, row_transform

TURN = 2 * math.pi
SHORTEST = 1e-4  # metres: a chain below only turns
# kinds of joints
LIMITED = 0  # one place for a value
WINDING = 1  # places whole turns apart
ENDLESS = 2  # without limits


class Chain(NamedTuple):
    """The F frames from the root to a link, and the n joints that move them.

    frames: (F + 1, POSE + 1) each frame's pose in its parent at q = 0 and the multiplier of its joint; last, the link's
        pose in the last frame
    limits: (2, n) the joints' lower and upper limits; kinds: (n,) int32 LIMITED, WINDING or ENDLESS
    joints: (F, 2) int32 the joint of each frame, and 1 where the frame slides
    """

    frames: np.ndarray
    limits: np.ndarray
    joints: np.ndarray
    kinds: np.ndarray


class Joints(NamedTuple):
    """The planning joints, of which some move the link.

    values: (3, dof) lower and upper limits, and what one of the chain's numbers is, rad or m; number: (dof,) int32 in
    the chain, -1: not in it; kinds: (dof,) int32 as of Chain; turning: (dof,) int32, 1 where whole turns change nothing
    """

    values: np.ndarray
    number: np.ndarray
    kinds: np.ndarray
    turning: np.ndarray


class PackedChain(NamedTuple):
    """A chain and what its numbers mean. reach: metres, the length of the chain with all strokes"""

    chain: Chain
    of_joints: Joints
    reach: float


def pack_chain(robot: Any, link: int) -> PackedChain:
    """The chain of a link that planning joints move. robot: RobotModel; link: number of the link in it"""
    path = path_to_root(robot.frames, robot.link_frame[link])[::-1]
    rows, slides = robot.frames[path], robot.frames["prismatic"][path]
    d, theta = rows["d"] + slides * rows["offset"], rows["theta"] + ~slides * rows["offset"]
    in_parents = zip(robot.T_parent_base[path], zip(rows["a"], rows["alpha"], d, theta))
    poses = [*(base @ row_transform(*row) for base, row in in_parents), robot.T_frame_link[link]]
    joints, limits = np.unique(rows["joint"]), np.stack([robot.lower, robot.upper])
    numbers = np.searchsorted(joints, rows["joint"])
    strokes = np.abs(rows["multiplier"] * limits[:, rows["joint"]]).max(axis=0)[slides]
    reach = float(sum(np.linalg.norm(T[:3, 3]) for T in poses[1:]) + strokes.sum())
    reach = reach if reach > SHORTEST else 1.0
    units = np.array([reach if slides[numbers == k][0] else 1.0 for k in range(len(joints))])
    multipliers = np.append(rows["multiplier"] * units[numbers] / np.where(slides, reach, 1.0), 0.0)
    kinds = np.where(robot.continuous, ENDLESS, np.where(winding(robot), WINDING, LIMITED))
    chain = Chain(
        np.column_stack([pose_row(np.array(poses), reach), multipliers]),
        np.ascontiguousarray(limits[:, joints] / units),
        np.stack([numbers, slides], axis=1).astype(np.int32),
        kinds[joints].astype(np.int32),
    )
    number, all_units = np.full(robot.dof, -1, np.int32), np.ones(robot.dof)
    number[joints], all_units[joints] = np.arange(len(joints)), units
    values = np.stack([robot.lower, robot.upper, all_units]).astype(np.float64)
    of_joints = Joints(values, number, kinds.astype(np.int32), np.asarray(robot.periodic).astype(np.int32))
    return PackedChain(chain, of_joints, reach)


def winding(robot: Any) -> np.ndarray:
    """(dof,) bool: joints with two values at one place, a whole turn apart."""
    return robot.continuous | (robot.periodic & (robot.upper - robot.lower >= TURN))


def pose_row(T: np.ndarray, reach: float) -> np.ndarray:
    """(..., POSE) of poses (..., 4, 4): rotations by rows, then translations in units of the reach."""
    return np.concatenate([T[..., :3, :3].reshape(*T.shape[:-2], 9), T[..., :3, 3] / reach], axis=-1)


@lean_njit
def place(chain, q, axes):
    """-> the link's pose in the root frame, 12 scalars; writes each frame's z axis and origin.

    q: (n,) the chain's joints; axes: (F, 6)
    """
    link = load(chain.frames[len(chain.joints)], 0, 1)
    T = link  # whatever has the type of a pose
    for f in range(len(chain.joints)):
        fixed = load(chain.frames[f], 0, 1)
        T = compose(T, fixed) if f > 0 else fixed
        value = chain.frames[f, POSE] * q[chain.joints[f, 0]]
        if chain.joints[f, 1] != 0:
            T = slid(T, value)
        else:
            T = turned(T, value)
        for i in range(3):
            axes[f, i], axes[f, 3 + i] = T[3 * i + 2], T[9 + i]
    return compose(T, link)


@lean_njit
def turned(T, angle):
    """T @ a turn about z."""
    c, s = math.cos(angle), math.sin(angle)
    x0, x1, x2 = c * T[0] + s * T[1], c * T[3] + s * T[4], c * T[6] + s * T[7]
    y0, y1, y2 = c * T[1] - s * T[0], c * T[4] - s * T[3], c * T[7] - s * T[6]
    return (x0, y0, T[2], x1, y1, T[5], x2, y2, T[8], T[9], T[10], T[11])


@lean_njit
def slid(T, way):
    """T @ a slide along z."""
    x, y, z = T[9] + way * T[2], T[10] + way * T[5], T[11] + way * T[8]
    return (T[0], T[1], T[2], T[3], T[4], T[5], T[6], T[7], T[8], x, y, z)
