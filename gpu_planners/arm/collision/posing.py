"""Scenes that differ in poses alone, in compiled code: reads the poses that a caller gives, and writes obstacles there.

What `scene_packing` packs of an obstacle depends on its pose in three places: its head (pose and skin), the ball around
it, and the boxes around groups of balls.
"""

import math
from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...ranges import GREATEST_LENGTH, ROUNDOFF
from ..geometry.poses import POSE, compose, load, moved
from ..geometry.support_table import MISSED
from ..robot.placing import RIGHT, given_place, given_pose
from .broad_phase import FAR_AWAY, GROUP
from .packing import GREATEST_SKIN
from .records import BALL, BOX

SKIN = POSE + 3  # where it is in an obstacle's head
FINE = -1  # no fault
COARSE = 3  # a fault beside those of `placing`: float32 cannot hold the surface where the robot may come
PLACE = 7  # numbers of a position and a quaternion


class Pieces(NamedTuple):
    """The convex pieces of obstacles that move, P of them.

    places: (P, 3) int32 which obstacle each is of; where its head is in a scene's floats, and where its ball is
    local: (P, POSE + 4) its pose in the obstacle's frame, and centre and radius of its ball in its own frame
    robot: (5,) origin of the robot in the root frame, its radius, and the margin, metres
    groups: (2,) int32 where a scene's balls and their groups' boxes begin
    """

    places: np.ndarray
    local: np.ndarray
    robot: np.ndarray
    groups: np.ndarray


@lean_njit
def read_poses(k, given, rows, pieces):
    """Read the poses of scene k, (M, 4, 4) or (M * PLACE, 1, 1), of given -> FINE, or 4 * obstacle + what is wrong.
    rows: (K, M, POSE) float64, gets them"""
    for m in range(rows.shape[1]):
        if given.shape[2] == 4:
            kind = given_pose(given[k, m], rows[k, m], GREATEST_LENGTH)
        else:
            kind = given_place(given[k, PLACE * m : PLACE * (m + 1), 0, 0], rows[k, m], GREATEST_LENGTH)
        if kind != RIGHT:
            return 4 * m + kind
    origin = pieces.robot
    for p in range(len(pieces.places)):
        m = pieces.places[p, 0]
        T, skin = placed_piece(p, rows[k, m], pieces)
        x, y, z = moved(T, pieces.local[p, POSE], pieces.local[p, POSE + 1], pieces.local[p, POSE + 2])
        away = math.sqrt(x * x + y * y + z * z) - pieces.local[p, POSE + 3]
        if skin > GREATEST_SKIN and away - origin[3] - origin[4] - skin <= 0:
            return 4 * m + COARSE
    return FINE


@lean_njit
def placed_piece(p, row, pieces):
    """-> the pose of piece p, seen from the robot's origin, of an obstacle with pose `row`; and its skin without the
    margin (`reach.fixed_skin`)."""
    T = compose(load(row, 0, 1), load(pieces.local[p], 0, 1))
    x, y, z = T[9] - pieces.robot[0], T[10] - pieces.robot[1], T[11] - pieces.robot[2]
    cx, cy, cz, r = (
        pieces.local[p, POSE],
        pieces.local[p, POSE + 1],
        pieces.local[p, POSE + 2],
        pieces.local[p, POSE + 3],
    )
    own = r + math.sqrt(cx * cx + cy * cy + cz * cz)
    skin = ROUNDOFF * (3 * math.sqrt(x * x + y * y + z * z) + (12 + MISSED) * own)
    return (T[0], T[1], T[2], T[3], T[4], T[5], T[6], T[7], T[8], x, y, z), skin


@lean_njit
def pose_scene(rows, floats, pieces, obstacles):
    """Write obstacles at the poses `rows`, (M, POSE), into a scene's floats. obstacles: convex shapes of the scene"""
    first_ball = pieces.groups[0]
    for p in range(len(pieces.places)):
        T, skin = placed_piece(p, rows[pieces.places[p, 0]], pieces)
        head, ball = pieces.places[p, 1], pieces.places[p, 2]
        for i in range(POSE):
            floats[head + i] = T[i]
        skin += pieces.robot[4]
        floats[head + SKIN] = skin
        centre = pieces.local[p, POSE], pieces.local[p, POSE + 1], pieces.local[p, POSE + 2]
        floats[ball], floats[ball + 1], floats[ball + 2] = moved(T, *centre)
        floats[ball + 3] = pieces.local[p, POSE + 3] + skin
    at, count = pieces.groups[1], obstacles
    below, leaves = first_ball, True  # what the boxes of the level are around
    while count > 0:
        groups = (count + GROUP - 1) // GROUP
        for g in range(groups):
            for axis in range(3):
                low, high = FAR_AWAY, -FAR_AWAY
                for i in range(GROUP * g, min(GROUP * (g + 1), count)):
                    if leaves:
                        centre, radius = floats[below + BALL * i + axis], floats[below + BALL * i + 3]
                        low, high = min(low, lower(centre, radius)), max(high, upper(centre, radius))
                    else:
                        low = min(low, floats[below + BOX * i + axis])
                        high = max(high, floats[below + BOX * i + 3 + axis])
                floats[at + BOX * g + axis], floats[at + BOX * g + 3 + axis] = low, high
        below, leaves = at, False
        at += BOX * groups
        count = groups if groups > 1 else 0


@lean_njit
def lower(centre, radius):
    return np.float32(np.float64(centre) - np.float64(radius))


@lean_njit
def upper(centre, radius):
    return np.float32(np.float64(centre) + np.float64(radius))
