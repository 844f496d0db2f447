"""The joints that move one link, packed for compiled code: lengths in units of the chain's reach.

So a metre and a radian weigh alike for a robot of any size, and joints that slide and joints that turn move by numbers
of one size.
"""

import math
from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ..geometry.poses import POSE, compose, load
from .modified_dh import path_to_root, row_transform

ROW = POSE + 1  # floats of a frame: its pose in its parent at q = 0, and the multiplier of its joint
SHORTEST = 1e-4  # metres: a chain below only turns
LIMITED, WINDING, ENDLESS = range(3)  # kinds of joints: one place for a value; whole turns apart; without limits


class Chain(NamedTuple):
    """The frames from the root to a link, and the joints that move them. Read by the functions below.

    floats: a ROW for each frame, the link's pose in the last frame, then lower and upper limits of the joints
    ints: number of frames, number of joints; for each frame its joint and whether it slides; for each joint its kind
    """

    floats: np.ndarray
    ints: np.ndarray


class PackedChain(NamedTuple):
    """A chain and what its numbers mean.

    joints: (n,) the planning joints that move the link; units: (n,) a joint's q is its unit times the chain's q
    reach: metres, the length of the chain with all strokes
    """

    chain: Chain
    joints: np.ndarray
    units: np.ndarray
    reach: float


def pack_chain(
    frames: np.ndarray,
    T_parent_base: np.ndarray,
    last: int,
    T_frame_link: np.ndarray,
    limits: np.ndarray,
    kinds: np.ndarray,
) -> PackedChain:
    """The chain of a link that is fixed to the frame `last`, at T_frame_link (4, 4) in it.

    frames, T_parent_base: of the RobotModel
    limits: (2, dof) of all planning joints, rad or m; kinds: (dof,) LIMITED, WINDING or ENDLESS
    """
    path = path_to_root(frames, last)[::-1]
    rows, slides = frames[path], frames["prismatic"][path]
    d, theta = rows["d"] + slides * rows["offset"], rows["theta"] + ~slides * rows["offset"]
    poses = [T_parent_base[f] @ row_transform(*row) for f, row in zip(path, zip(rows["a"], rows["alpha"], d, theta))]
    joints = np.unique(rows["joint"])
    numbers = np.searchsorted(joints, rows["joint"])
    strokes = np.abs(rows["multiplier"] * limits[:, rows["joint"]]).max(axis=0)[slides]
    reach = float(sum(np.linalg.norm(T[:3, 3]) for T in [*poses[1:], T_frame_link]) + strokes.sum())
    reach = reach if reach > SHORTEST else 1.0
    units = np.array([reach if slides[numbers == k][0] else 1.0 for k in range(len(joints))])
    multipliers = rows["multiplier"] * units[numbers] / np.where(slides, reach, 1.0)
    frame_rows = [np.append(pose_row(T, reach), multiplier) for T, multiplier in zip(poses, multipliers, strict=True)]
    floats = np.concatenate([*frame_rows, pose_row(T_frame_link, reach), *(limits[:, joints] / units)])
    ints = np.concatenate([[len(path), len(joints)], np.stack([numbers, slides], axis=1).ravel(), kinds[joints]])
    return PackedChain(Chain(floats, ints.astype(np.int32)), joints, units, reach)


def pose_row(T: np.ndarray, reach: float) -> np.ndarray:
    """(..., POSE) of poses (..., 4, 4): rotations by rows, then translations in units of the reach."""
    return np.concatenate([T[..., :3, :3].reshape(*T.shape[:-2], 9), T[..., :3, 3] / reach], axis=-1)


@lean_njit
def frame_count(chain):
    return chain.ints[0]


@lean_njit
def joint_count(chain):
    return chain.ints[1]


@lean_njit
def frame_joint(chain, f):
    return chain.ints[2 + 2 * f]


@lean_njit
def frame_slides(chain, f):
    return chain.ints[3 + 2 * f] != 0


@lean_njit
def frame_multiplier(chain, f):
    return chain.floats[ROW * f + POSE]


@lean_njit
def joint_kind(chain, k):
    return chain.ints[2 + 2 * frame_count(chain) + k]


@lean_njit
def lower_limit(chain, k):
    return chain.floats[ROW * frame_count(chain) + POSE + k]


@lean_njit
def upper_limit(chain, k):
    return chain.floats[ROW * frame_count(chain) + POSE + joint_count(chain) + k]


@lean_njit
def place(chain, q, axes):
    """-> the link's pose in the root frame, 12 scalars; writes each frame's z axis and origin.

    q: (n,) the chain's joints; axes: (F, 6)
    """
    T = load(chain.floats, ROW * frame_count(chain), 1)  # whatever has the type of a pose
    for f in range(frame_count(chain)):
        fixed = load(chain.floats, ROW * f, 1)
        T = compose(T, fixed) if f > 0 else fixed
        value = frame_multiplier(chain, f) * q[frame_joint(chain, f)]
        if frame_slides(chain, f):
            T = slid(T, value)
        else:
            T = turned(T, value)
        for i in range(3):
            axes[f, i], axes[f, 3 + i] = T[3 * i + 2], T[9 + i]
    return compose(T, load(chain.floats, ROW * frame_count(chain), 1))


@lean_njit
def turned(T, angle):
    """T @ a turn about z."""
    c, s = math.cos(angle), math.sin(angle)
    return (
        c * T[0] + s * T[1],
        c * T[1] - s * T[0],
        T[2],
        c * T[3] + s * T[4],
        c * T[4] - s * T[3],
        T[5],
        c * T[6] + s * T[7],
        c * T[7] - s * T[6],
        T[8],
        T[9],
        T[10],
        T[11],
    )


@lean_njit
def slid(T, way):
    """T @ a slide along z."""
    x, y, z = T[9] + way * T[2], T[10] + way * T[5], T[11] + way * T[8]
    return (T[0], T[1], T[2], T[3], T[4], T[5], T[6], T[7], T[8], x, y, z)
