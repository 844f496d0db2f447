"""Nearest and near nodes of a sample of `rrt` and `rrt_star`, by a scan: on CUDA the lanes of a worker share it, and a CPU's
vector registers. Nodes lie in tiles, so that both read consecutive numbers."""

import math

import numpy as np

from ..device import njit
from ..team import any_lane, lane_count, least_lane, rank_lanes, sync_lanes
from .tree_buffers import DOF, FAR, GOALS, NEAR, TILE, TILES, UNREACHED, ZERO, first_node

ROW, TWO_ROWS, THREE_ROWS = np.uintp(TILE), np.uintp(2 * TILE), np.uintp(3 * TILE)  # unsigned: no test for negative indices


@njit
def scan(T, q, low, high, reach2, b, m, lane):
    """Look at the nodes low <= i < high; -> the nearest to the scaled q, its squared distance, and m plus how many lie
    within the squared radius reach2. Those are written to the near nodes of sample b after the m that are there."""
    dof = T.N[DOF]
    index, best = -1, FAR
    if lane_count() == 1:
        squared = T.A[T.squared:T.squared + TILE]
        for tile in range(low // TILE, (high + TILE - 1) // TILE):
            squared[:] = ZERO
            for k in range(dof):
                at, qk = T.x + (tile * dof + k) * TILE, q[k]
                row = T.A[at:at + TILE]
                for j in range(TILE):
                    d = row[j] - qk
                    squared[j] += d * d
            for j in range(TILE):
                if squared[j] < best or squared[j] <= reach2:
                    index, best, m = consider(T, tile * TILE + j, squared[j], low, high, reach2, b, m, index, best)
        return index, best, m
    size = dof * TILE
    for tile in range(low // TILE, (high + TILE - 1) // TILE, TILES):
        s0, s1, s2, s3 = ZERO, ZERO, ZERO, ZERO
        a0 = np.uintp(T.x + tile * size + lane)
        a1, a2, a3 = a0 + np.uintp(size), a0 + np.uintp(2 * size), a0 + np.uintp(3 * size)
        for k in range(0, dof - 2, 3):
            q0, q1, q2 = q[k], q[k + 1], q[k + 2]
            s0 += squares(T, a0, q0, q1, q2)
            s1 += squares(T, a1, q0, q1, q2)
            s2 += squares(T, a2, q0, q1, q2)
            s3 += squares(T, a3, q0, q1, q2)
            a0, a1, a2, a3 = a0 + THREE_ROWS, a1 + THREE_ROWS, a2 + THREE_ROWS, a3 + THREE_ROWS
        for k in range(dof - dof % 3, dof):
            d0, d1, d2, d3 = T.A[a0] - q[k], T.A[a1] - q[k], T.A[a2] - q[k], T.A[a3] - q[k]
            s0, s1, s2, s3 = s0 + d0 * d0, s1 + d1 * d1, s2 + d2 * d2, s3 + d3 * d3
            a0, a1, a2, a3 = a0 + ROW, a1 + ROW, a2 + ROW, a3 + ROW
        i = tile * TILE + lane
        index, best, m = consider(T, i, s0, low, high, reach2, b, m, index, best)
        index, best, m = consider(T, i + TILE, s1, low, high, reach2, b, m, index, best)
        index, best, m = consider(T, i + 2 * TILE, s2, low, high, reach2, b, m, index, best)
        index, best, m = consider(T, i + 3 * TILE, s3, low, high, reach2, b, m, index, best)
    best, index = least_lane(best, index)
    sync_lanes()
    return index, best, m


@njit
def squares(T, at, q0, q1, q2):
    """Squared distance in three joints."""
    d0, d1, d2 = T.A[at] - q0, T.A[at + ROW] - q1, T.A[at + TWO_ROWS] - q2
    return d0 * d0 + d1 * d1 + d2 * d2


@njit
def consider(T, i, squared, low, high, reach2, b, m, index, best):
    """Node i of a scan, at a squared distance; -> index, best, m as they are then."""
    there = low <= i and i < high and (i < T.N[GOALS] or i >= first_node(T))
    if there and squared < best and (i >= first_node(T) or T.N[T.parent + i] != UNREACHED):
        index, best = i, squared
    close = there and squared <= reach2
    if any_lane(close):
        before, count = rank_lanes(close)
        if close and m + before < NEAR:
            T.N[T.near + b * NEAR + m + before] = i
            T.A[T.near_edge + b * NEAR + m + before] = math.sqrt(squared)
        m += count
    return index, best, m
