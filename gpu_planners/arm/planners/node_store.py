"""Where the nodes of a growing tree lie, for all planners and on both targets.

Nodes lie in tiles of TILE, one row of a tile a joint: the lanes of a warp, and the vector registers of a CPU, read
consecutive numbers.
"""

import math
from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...parallel.memory import item, set_item
from ...parallel.team import lane_count
from ..spaces.interface import Space

TILE = 128  # nodes of a tile: four for each lane of a warp, and rows that are worth a CPU's vector instructions
FAR, ZERO, ONE = np.float32(3e38), np.float32(0), np.float32(1)


class Desk(NamedTuple):
    """What one lane of a worker has to itself.

    space: Space where motions are checked; a, b: (dof,) float32 ends of a motion; squared: (TILE,) float32 for
    `nearest` on the CPU
    """

    space: Space
    a: np.ndarray
    b: np.ndarray
    squared: np.ndarray


def new_desk(space: Space, dof: int) -> Desk:
    """The desk of a CPU thread."""
    a, b = np.empty((2, dof), dtype=np.float32)
    return Desk(space, a, b, np.empty(TILE, dtype=np.float32))


def whole_tiles(count: int) -> int:
    """The number of nodes in as many tiles as `count` nodes need."""
    return -(-count // TILE) * TILE


def unpacked(nodes: np.ndarray, count: int, dof: int) -> np.ndarray:
    """The first `count` nodes in tiles -> (count, dof)."""
    tiles = nodes[: whole_tiles(count) * dof].reshape(-1, dof, TILE)
    return tiles.transpose(0, 2, 1).reshape(-1, dof)[:count]


@lean_njit
def place(i, k, dof):
    """Where coordinate k of node i lies in `nodes`."""
    return ((i >> 7) * dof + k) * TILE + (i & 127)


@lean_njit
def load(nodes, i, q):
    """q: (dof,) becomes node i."""
    for k in range(len(q)):
        q[k] = item(nodes, place(i, k, len(q)))


@lean_njit
def put(nodes, i, q, lane):
    """Node i becomes q, (dof,). The lanes of the worker share the work."""
    for k in range(lane, len(q), lane_count()):
        set_item(nodes, place(i, k, len(q)), q[k])


@lean_njit
def squared_distance(nodes, i, q):
    """Squared distance of node i from q, (dof,)."""
    squared = ZERO
    for k in range(len(q)):
        d = item(nodes, place(i, k, len(q))) - q[k]
        squared += d * d
    return squared


@lean_njit
def weighted_distance(nodes, i, q, weights):
    """sqrt(sum of weight * difference squared) of node i and q; weights: (dof,) float32"""
    squared = ZERO
    for k in range(len(weights)):
        d = item(nodes, place(i, k, len(weights))) - q[k]
        squared += weights[k] * d * d
    return math.sqrt(squared)


@lean_njit
def steer(near, q, distance, reach):
    """Move q along the line from `near`, which is `distance` away, so that it is at most `reach` away."""
    if distance > reach:
        part = reach / distance
        for k in range(len(near)):
            q[k] = near[k] + part * (q[k] - near[k])
