"""Poses of all frames and links at many configurations, and poses that callers give, in compiled code for devices.

On the CPU `model.poses_of_frames` does the same in NumPy.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ...device import lean_njit
from ..geometry.poses import compose, load, store
from ..geometry.shapes import RIGID
from .chain import slid, turned

STEPS = 4  # of Newton's method from a rotation that is off by RIGID: each squares what it is off by
RIGHT, NOT_RIGID, TOO_FAR = range(3)  # what a given pose is


class Tree(NamedTuple):
    """The frames and links of a robot.

    frames: (F, POSE) each frame's pose in its parent, or in the root, where its value is 0
    factors: (F, 2) the multiplier and the offset of each one's value
    numbers: (F, 3) int32 parent, -1: the root; joint; 1 where it slides
    links: (L, POSE) each link's pose in its frame, or in the root; link_frames: (L,) int32, -1: the root
    """

    frames: np.ndarray
    factors: np.ndarray
    numbers: np.ndarray
    links: np.ndarray
    link_frames: np.ndarray


def pose12(T: np.ndarray) -> np.ndarray:
    """(N, POSE) of poses (N, 4, 4)."""
    return np.concatenate([T[:, :3, :3].reshape(-1, 9), T[:, :3, 3]], axis=1)


def tree_of(robot: Any) -> Tree:
    """The Tree of a RobotModel."""
    rows = robot.frames
    return Tree(
        pose12(robot.T_parent_frame),
        np.stack([rows["multiplier"], rows["offset"]], axis=1).astype(np.float64),
        np.stack([rows["parent"], rows["joint"], rows["prismatic"]], axis=1).astype(np.int32),
        pose12(robot.T_frame_link),
        np.asarray(robot.link_frame, np.int32),
    )


@lean_njit
def place_all(first, i, q, tree, work, frames, links):
    """Place configuration first + i. q: (N, dof); work: (.., F, POSE) float64, of row i; frames: (N, F, 4, 4), or
    (1, 0, 4, 4): not asked for; links: (L, N, 4, 4), or (0, 1, 4, 4)"""
    for f in range(len(tree.numbers)):
        parent, joint = tree.numbers[f, 0], tree.numbers[f, 1]
        T = load(tree.frames[f], 0, 1)
        if parent >= 0:
            T = compose(load(work[i, parent], 0, 1), T)
        value = np.float64(q[first + i, joint]) * tree.factors[f, 0] + tree.factors[f, 1]
        if tree.numbers[f, 2] != 0:
            T = slid(T, value)
        else:
            T = turned(T, value)
        store(work[i, f], 0, 1, T)
        if f < frames.shape[1]:
            write_pose(T, frames[first + i, f])
    for k in range(len(links)):
        T = load(tree.links[k], 0, 1)
        if tree.link_frames[k] >= 0:
            T = compose(load(work[i, tree.link_frames[k]], 0, 1), T)
        write_pose(T, links[k, first + i])


@lean_njit
def write_pose(T, out):
    """Write a pose to (4, 4)."""
    for a in range(3):
        for b in range(3):
            out[a, b] = T[3 * a + b]
        out[a, 3] = T[9 + a]
        out[3, a] = 0
    out[3, 3] = 1


@lean_njit
def given_pose(T, row, far):
    """What a pose (4, 4) is, RIGHT or another number; writes it to row, (POSE,) float64, with the nearest rotation.
    far: metres at most"""
    for a in range(3):
        for b in range(3):
            row[3 * a + b] = T[a, b]
        row[9 + a] = T[a, 3]
    right = abs(T[3, 3] - 1) <= RIGID
    for a in range(3):
        right = right and abs(T[3, a]) <= RIGID
    if not right:
        return NOT_RIGID
    return set_right(row, far)


@lean_njit
def given_place(p, row, far):
    """`given_pose` of p, (7,): x, y, z, then a quaternion w, x, y, z."""
    w, x, y, z = np.float64(p[3]), np.float64(p[4]), np.float64(p[5]), np.float64(p[6])
    length = math.sqrt(w * w + x * x + y * y + z * z)
    if not abs(length - 1) <= RIGID:
        return NOT_RIGID
    w, x, y, z = w / length, x / length, y / length, z / length
    row[0], row[1], row[2] = 1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)
    row[3], row[4], row[5] = 2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)
    row[6], row[7], row[8] = 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)
    for a in range(3):
        row[9 + a] = p[a]
    return set_right(row, far)


@lean_njit
def set_right(row, far):
    """`given_pose` of a row; its rotation becomes the nearest one, by Newton's method for the polar decomposition
    (Higham, 1986) in the form without inverses."""
    for _ in range(STEPS):
        xx, xy, xz = dot(row, 0, 0), dot(row, 0, 1), dot(row, 0, 2)
        yy, yz, zz = dot(row, 1, 1), dot(row, 1, 2), dot(row, 2, 2)
        for off in (xx - 1, yy - 1, zz - 1, xy, xz, yz):
            if not abs(off) <= RIGID:  # nor where it is not a number
                return NOT_RIGID
        for b in range(3):
            x, y, z = row[b], row[3 + b], row[6 + b]
            row[b] = 1.5 * x - 0.5 * (xx * x + xy * y + xz * z)
            row[3 + b] = 1.5 * y - 0.5 * (xy * x + yy * y + yz * z)
            row[6 + b] = 1.5 * z - 0.5 * (xz * x + yz * y + zz * z)
    turn = row[0] * (row[4] * row[8] - row[5] * row[7])
    turn += row[1] * (row[5] * row[6] - row[3] * row[8]) + row[2] * (row[3] * row[7] - row[4] * row[6])
    if turn < 0:
        return NOT_RIGID
    for a in range(3):
        if not abs(row[9 + a]) <= far:
            return TOO_FAR
    return RIGHT


@lean_njit
def dot(row, a, b):
    """Of two of the rotation's rows."""
    return row[3 * a] * row[3 * b] + row[3 * a + 1] * row[3 * b + 1] + row[3 * a + 2] * row[3 * b + 2]
