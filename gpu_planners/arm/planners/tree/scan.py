"""Nearest and near nodes of a sample of `rrt` and `rrt_star`, in one scan.

In trees of tens of thousands of nodes scans take most of the time. So on CUDA a lane looks at four nodes at once, all
its nodes of a tile: its loads overlap.
"""

import math
from typing import NamedTuple

import numpy as np

from ....device import lean_njit
from ....parallel.team import any_lane, lane_count, least_lane, rank_lanes, sync_lanes
from ..nearest import tile_squares
from ..node_store import FAR, TILE, ZERO
from .state import NEAR, UNREACHED, first_node

# unsigned: no test for negative indices
ROW, TWO_ROWS, THREE_ROWS = np.uintp(TILE), np.uintp(2 * TILE), np.uintp(3 * TILE)
LANES, TWO_LANES, THREE_LANES = np.uintp(32), np.uintp(64), np.uintp(96)


class Window(NamedTuple):
    """The nodes low <= i < high; near are those within the squared radius reach2; b: the sample of the scan."""

    low: int
    high: int
    reach2: float
    b: int


@lean_njit
def scan(job, q, window, m):
    """Look at the nodes in a Window -> the nearest to the scaled q, its squared distance, and m plus how many are near.
    Those are written to the near nodes of the sample after the m that are there."""
    g, lane, low, high = job.growth, job.worker.lane, window.low, window.high
    nodes, dof, index, best = g.tree.nodes, g.ask.dof, -1, FAR
    if lane_count() == 1:
        for tile in range(low // TILE, (high + TILE - 1) // TILE):
            n = min(TILE, high - tile * TILE)
            tile_squares(nodes, tile, n, q, job.desk.squared)
            for j in range(n):
                squared = job.desk.squared[j]
                if squared < best or squared <= window.reach2:
                    index, best, m = consider(g, tile * TILE + j, squared, window, m, index, best)
        return index, best, m
    size = dof * TILE
    for tile in range(low // TILE, (high + TILE - 1) // TILE):
        s0, s1, s2, s3 = ZERO, ZERO, ZERO, ZERO
        a0 = np.uintp(tile * size + lane)
        a1, a2, a3 = a0 + LANES, a0 + TWO_LANES, a0 + THREE_LANES
        for k in range(0, dof - 2, 3):
            q0, q1, q2 = q[k], q[k + 1], q[k + 2]
            s0 += squares(nodes, a0, q0, q1, q2)
            s1 += squares(nodes, a1, q0, q1, q2)
            s2 += squares(nodes, a2, q0, q1, q2)
            s3 += squares(nodes, a3, q0, q1, q2)
            a0, a1, a2, a3 = a0 + THREE_ROWS, a1 + THREE_ROWS, a2 + THREE_ROWS, a3 + THREE_ROWS
        for k in range(dof - dof % 3, dof):
            d0, d1, d2, d3 = nodes[a0] - q[k], nodes[a1] - q[k], nodes[a2] - q[k], nodes[a3] - q[k]
            s0, s1, s2, s3 = s0 + d0 * d0, s1 + d1 * d1, s2 + d2 * d2, s3 + d3 * d3
            a0, a1, a2, a3 = a0 + ROW, a1 + ROW, a2 + ROW, a3 + ROW
        i = tile * TILE + lane
        index, best, m = consider(g, i, s0, window, m, index, best)
        index, best, m = consider(g, i + 32, s1, window, m, index, best)
        index, best, m = consider(g, i + 64, s2, window, m, index, best)
        index, best, m = consider(g, i + 96, s3, window, m, index, best)
    best, index = least_lane(best, index)
    sync_lanes()
    return index, best, m


@lean_njit
def squares(nodes, at, q0, q1, q2):
    """Squared distance in three joints."""
    d0, d1, d2 = nodes[at] - q0, nodes[at + ROW] - q1, nodes[at + TWO_ROWS] - q2
    return d0 * d0 + d1 * d1 + d2 * d2


@lean_njit
def consider(g, i, squared, window, m, index, best):
    """Node i of a scan, at a squared distance -> index, best, m as they are then."""
    b = window.b
    there = window.low <= i and i < window.high and (i < g.ask.goals or i >= first_node(g))
    if there and squared < best and (i >= first_node(g) or g.tree.parent[i] != UNREACHED):
        index, best = i, squared
    close = there and squared <= window.reach2
    if any_lane(close):
        before, count = rank_lanes(close)
        if close and m + before < NEAR:
            g.slots.near[b * NEAR + m + before] = i
            g.slots.near_edge[b * NEAR + m + before] = math.sqrt(squared)
        m += count
    return index, best, m
