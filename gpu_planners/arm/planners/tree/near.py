"""Nodes near a sample of `rrt` and `rrt_star`: the scan that finds them and the nearest one, and how new nodes become
better parents of them, the end of algorithm 3 of [BKF11] for a whole round.

In trees of tens of thousands of nodes scans take most of the time. So on CUDA a lane looks at four nodes at once, all
its nodes of a tile: its loads overlap.
"""

import math
from typing import NamedTuple

import numpy as np

from ....device import lean_njit
from ....parallel.team import any_lane, lane_count, late, least_lane, lower, rank_lanes, sync_lanes
from ...spaces.interface import END_FREE, motion_free
from ..node_store import FAR, ONE, TILE, ZERO, load, tile_squares
from .state import NEAR, NONE, UNREACHED, cost_of, fetch, first_node

SPREAD = 997  # workers between two offers of a sample: a prime, so that they are spread evenly
BETTER = np.float32(1 - 1e-6)  # a new parent saves more than rounding
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


@lean_njit
def halted(job):
    """Is the worker late? All know it after the next barrier."""
    halt = late(job.deadline)
    if halt and job.worker.lane == 0:
        job.growth.board.halt[0] = 1
    return halt


@lean_njit
def offer(job, b, low, high, reach):
    """The node of sample b offers itself as parent to its near nodes and those of low .. high, where that makes them
    cheaper. RRT offers it only to goals that are not reached yet."""
    g, q, slots, lane = job.growth, job.desk.a, job.growth.slots, job.worker.lane
    v, known = slots.joined[b], slots.near_count[b]
    load(g.tree.nodes, v, q)
    _, _, m = scan(job, q, Window(low, high, reach * reach, b), known)
    m = min(m, NEAR)
    cost, kept = cost_of(g, v), 0
    for first in range(b * NEAR, b * NEAR + m, lane_count()):
        j = first + lane
        pays, u, length, through = False, NONE, ZERO, ZERO
        if j < b * NEAR + m:
            u, length = slots.near[j], slots.near_edge[j]
            through = cost + length
            if u >= 0 and u != v:
                now = slots.near_cost[j] if j < b * NEAR + known else cost_of(g, u)
                pays = through < now * BETTER and (g.ask.star or now == FAR)
        before, count = rank_lanes(pays)
        if pays:
            at = b * NEAR + kept + before
            slots.near[at], slots.near_edge[at], slots.near_cost[at] = u, length, through
        kept += count
    if lane == 0:
        slots.near_count[b] = kept
    sync_lanes()


@lean_njit
def check_offers(job, batch):
    """Check the motions of all offers; the j-th of sample b is for worker b + j SPREAD."""
    slots, worker = job.growth.slots, job.worker
    workers = worker.count
    for first in range(0, batch, workers):
        for base in range(0, NEAR, lane_count()):
            if workers == 1 and base >= slots.near_count[first]:
                break
            j = base + worker.lane
            b = first + sample_of_offer(j, worker)
            there = b < batch and slots.joined[b] >= 0 and j < slots.near_count[b]
            before, count = rank_lanes(there)
            for turn in range(count):
                if halted(job):
                    return
                _, mine = least_lane(ZERO if there and before == turn else ONE, j)
                check_offer(job, first + sample_of_offer(mine, worker), mine)


@lean_njit
def sample_of_offer(j, worker):
    """The sample, of as many as there are workers, whose j-th offer is for this worker."""
    return (worker.number + j * (worker.count - SPREAD % worker.count)) % worker.count


@lean_njit
def check_offer(job, b, j):
    """Let the node of offer j of sample b know it, if the motion is free and no better offer is known there."""
    g, desk, slots, at = job.growth, job.desk, job.growth.slots, b * NEAR + j
    u, cost, free = slots.near[at], slots.near_cost[at], False
    if not any_lane(g.tree.offered[u] < cost):
        fetch(g, slots.joined[b], desk.a)
        fetch(g, u, desk.b)
        free = motion_free(desk.a, desk.b, END_FREE, desk.space, job.worker.lane)
    sync_lanes()
    if job.worker.lane == 0:
        if free:
            lower(g.tree.offered, u, cost)
        else:
            slots.near[at] = NONE
    sync_lanes()


@lean_njit
def take(g, b, settled, lane):
    """Nodes take the best offers among those of sample b, once that is settled: before, samples with equal offers agree
    on the lowest."""
    slots, tree = g.slots, g.tree
    for j in range(b * NEAR + lane, b * NEAR + slots.near_count[b], lane_count()):
        u = slots.near[j]
        if u < 0:
            continue
        if not settled:
            if slots.near_cost[j] == tree.offered[u]:
                lower(tree.taker, u, np.float32(b))
        elif tree.taker[u] == np.float32(b):
            tree.parent[u], tree.edge[u] = slots.joined[b], slots.near_edge[j]
            tree.offered[u], tree.taker[u] = FAR, FAR
