"""Where the nodes of a growing tree lie, for all planners and on both targets, and which one is nearest.

Nodes lie in tiles of TILE, one row of a tile a joint: the lanes of a warp, and the vector registers of a CPU, read
consecutive numbers. Trees of a query are small, and a scan uses all lanes.
"""

import math
from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...parallel.memory import item, set_item
from ...parallel.team import lane_count, least_lane
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


@lean_njit
def nearest(nodes, count, q, squared, lane):
    """-> number, squared distance of the node closest to q (L2) among the first `count`; all lanes get the answer.

    nodes: float32 in tiles; q: (dof,) float32; squared: (TILE,) float32 scratch. Of equals the first counts.
    """
    best, index = FAR, -1
    if lane_count() == 1:
        for first in range(0, count, TILE):
            n = min(TILE, count - first)
            tile_squares(nodes, first // TILE, n, q, squared)
            for j in range(n):
                if squared[j] < best:
                    best, index = squared[j], first + j
        return index, best
    for i in range(lane, count, lane_count()):
        distance = squared_distance(nodes, i, q)
        if distance < best:
            best, index = distance, i
    best, index = least_lane(best, index)
    return index, best


@lean_njit
def tile_squares(nodes, tile, count, q, squared):
    """squared: (count,) becomes the squared distances of a tile's first nodes from q.

    The loops have no constant bound: LLVM would unroll them before it looks for vectors, and find none.
    """
    dof = len(q)
    squared[:count] = ZERO
    for k in range(dof):
        at, qk = (tile * dof + k) * TILE, q[k]
        row = nodes[at : at + count]
        for j in range(count):
            d = row[j] - qk
            squared[j] += d * d
