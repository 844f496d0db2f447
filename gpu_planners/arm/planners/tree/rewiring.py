"""How new nodes become better parents of nodes near them: the end of algorithm 3 of [BKF11], for a whole round."""

import numpy as np

from ....device import lean_njit
from ....parallel.team import any_lane, lane_count, late, least_lane, lower, rank_lanes, sync_lanes
from ...spaces.interface import END_FREE, motion_free
from ..node_store import FAR, ONE, ZERO, load
from .scan import Window, scan
from .state import NEAR, NONE, cost_of, fetch

SPREAD = 997  # workers between two offers of a sample: a prime, so that they are spread evenly
BETTER = np.float32(1 - 1e-6)  # a new parent saves more than rounding


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
