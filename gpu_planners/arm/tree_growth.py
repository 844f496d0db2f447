"""One tree that grows from the start: the compiled part of `rrt` and `rrt_star`, algorithms 1 to 3 of [BKF11] in rounds.

A round takes several samples. Each finds its nearest node and, for RRT*, all near ones in the same scan, and is joined to
the best of them by a free motion (`extend`). Those that were joined become nodes (`append`). Each new node offers itself
as a better parent to the nodes near it, also to those of its own round (`offer`), and each node takes its best offer
(`take`). Offers are judged by the costs before the round, and a parent's cost is never above its child's, so nobody is
offered to an ancestor, and taking all offers at once leaves a tree. Written for workers and lanes, see `team`.
"""

import math

import numpy as np

from ..device import njit
from ..team import any_lane, clock_ns, deadline_in, lane_count, late, least_lane, lower, rank_lanes, sum_lanes, sync_lanes, sync_team
from . import space
from .tree_buffers import (
    BARRIER,
    BATCH,
    BEST,
    BEST_NODE,
    COUNT,
    DOF,
    DRAWN,
    FAR,
    GOAL_RADIUS,
    GOALS,
    HALT,
    INFORMED,
    INSIDE,
    LOG_BALL,
    LOG_FACTOR,
    LOG_MEASURE,
    LOOKED,
    MOST,
    NEAR,
    NONE,
    RANGE,
    ROOT,
    STAR,
    UNREACHED,
    ZERO,
    between,
    cost_of,
    fetch,
    first_node,
    place,
)
from .tree_sampling import draw, log_ellipsoid
from .tree_scan import scan

SPREAD = 997  # workers between two offers of a sample: a prime, so that they are spread evenly
LEAST_ROUND, SHARE = 32, 4  # a round takes the SHARE-th part of the samples so far, at least LEAST_ROUND, `batch` at most
ONE, TWO = np.float32(1), np.float32(2)
BETTER = np.float32(1 - 1e-6)  # a new parent saves more than rounding
SHRINK = np.float32(0.7)  # of the squared radius, while there are more than NEAR nodes within
SAME = np.float32(1e-12)  # squared distance of a sample that is a node already
TINY = np.float32(1e-30)


@njit
def grow(T, rounds, left_ms, seed, mode, step, F, I, S, q, p, worker, workers, lane, member, members):
    """Take `rounds` rounds of samples, then `look` for the best goal. q, p: (dof,) scratch of the lane.

    A round that takes longer than left_ms is the last: its samples are lost, or are nodes but no better parents to others."""
    goals, star, deadline = T.N[GOALS], T.N[STAR] != 0, deadline_in(left_ms)
    for _ in range(rounds):
        n, drawn = T.N[COUNT], T.N[DRAWN]
        batch = round_size(T, drawn)
        if n == 0:  # the start offers itself to all goals
            begin(T, worker, workers, lane, member, members)
            batch, low, high, reach = 1, 0, goals, FAR
        elif batch == 0:
            break
        else:
            reach = near_radius(T, n)
            for b in range(worker, batch, workers):
                if halted(T, deadline, lane):
                    break
                extend(T, b, n, drawn, batch, reach, deadline, seed, mode, step, F, I, S, q, p, lane)
            sync_team(T.N, BARRIER, member, members)
            if T.N[HALT] != 0:
                break
            total = append(T, n, batch, worker, workers, lane)
            if worker == 0 and lane == 0:
                T.N[COUNT], T.N[DRAWN] = total, drawn + batch
            low, high = (n, total) if star else (0, goals)
            sync_team(T.N, BARRIER, member, members)
        for b in range(worker, batch, workers):
            if halted(T, deadline, lane):
                break
            if T.N[T.joined + b] >= 0:
                offer(T, b, low, high, reach, q, lane)
        sync_team(T.N, BARRIER, member, members)
        if not any_lane(T.N[HALT] != 0):  # another worker may be writing it by now
            check_offers(T, batch, deadline, mode, step, F, I, S, q, p, worker, workers, lane)
        sync_team(T.N, BARRIER, member, members)
        if T.N[HALT] != 0:
            break
        for turn in range(2):
            for b in range(worker, batch, workers):
                if T.N[T.joined + b] >= 0:
                    take(T, b, turn, lane)
            sync_team(T.N, BARRIER, member, members)
    look(T, deadline, worker, workers, lane, member, members)


@njit
def halted(T, deadline, lane):
    """Is the worker late? Then all will know after the next barrier."""
    halt = late(deadline)
    if halt and lane == 0:
        T.N[HALT] = 1
    return halt


@njit
def begin(T, worker, workers, lane, member, members):
    """Goals and start become nodes, the start as if sample 0 had been joined."""
    dof, goals, first = T.N[DOF], T.N[GOALS], first_node(T)
    for g in range(worker, goals + 1, workers):
        i = first if g == goals else g
        for k in range(lane, dof, lane_count()):
            T.A[place(T, i, k)] = T.A[T.points + g * dof + k] * T.A[T.scale + k]
        if lane == 0:
            T.N[T.parent + i], T.A[T.edge + i], T.N[T.region + i] = UNREACHED, ZERO, g
            T.A[T.offered + i], T.A[T.taker + i] = FAR, FAR
    sync_team(T.N, BARRIER, member, members)
    if worker == 0:
        if lane == 0:
            T.N[T.parent + first] = ROOT
            T.N[COUNT], T.N[INSIDE], T.N[LOOKED] = first + 1, 1, first + 1
            T.A[BEST] = FAR
            T.N[T.joined], T.N[T.near_count] = first, 0
        sync_lanes()
        region_of(T, first, lane)


@njit
def round_size(T, drawn):
    """How many samples the round takes that begins after `drawn` samples."""
    return min(T.N[BATCH], max(LEAST_ROUND, drawn // SHARE), T.N[MOST] - drawn)


@njit
def near_radius(T, n):
    """gamma (log m / m)^(1/d) for m nodes, `range` at most, with Karaman and Frazzoli's bound (IJRR 2011, theorem 38)
    gamma^d = 2 (1 + 1/d) measure / ball, ball being the unit ball's volume, times a factor. The measure of the free space is
    bounded by that of the box, or by that of the informed set, whose nodes alone are counted then."""
    dof = np.float32(T.N[DOF])
    measure, m = T.A[LOG_MEASURE], n - first_node(T)
    if T.N[INFORMED] != 0 and T.A[BEST] < FAR:
        share = ZERO
        for g in range(T.N[GOALS]):
            share += math.exp(min(log_ellipsoid(T, g) - measure, ZERO))
        measure += math.log(max(min(share, ONE), TINY))
        m = T.N[INSIDE] + n - T.N[LOOKED]
    count = np.float32(max(m, 2))
    logs = math.log(TWO * (ONE + ONE / dof)) + measure - T.A[LOG_BALL] + math.log(math.log(count) / count)
    return min(math.exp(T.A[LOG_FACTOR] + logs / dof), T.A[RANGE])


@njit
def extend(T, b, n, drawn, batch, reach, deadline, seed, mode, step, F, I, S, q, p, lane):
    """Sample b of the round: find its nearest node, steer, and join it to the best near node that has a free motion.
    Algorithms 2 and 3 of [BKF11] up to the insertion."""
    star = T.N[STAR] != 0
    draw(T, seed, drawn + b, b, batch, q)
    i, length, limit = NONE, ZERO, reach * reach if star else -ONE
    while True:
        at, squared, m = scan(T, q, 0, n, limit, b, 0, lane)
        if i == NONE:
            i, length = at, math.sqrt(squared)
            if length > T.A[RANGE]:
                for k in range(len(q)):
                    x = T.A[place(T, i, k)]
                    q[k] = x + T.A[RANGE] / length * (q[k] - x)
                length = T.A[RANGE]
                if star:
                    continue
        if m <= NEAR:
            break
        limit *= SHRINK
    for k in range(lane, len(q), lane_count()):
        T.A[T.new_x + b * len(q) + k] = q[k]
    for k in range(len(q)):
        q[k] = q[k] / T.A[T.scale + k]
    if length * length < SAME:
        i = NONE
    else:
        i, length = choose_parent(T, b, i, length, m, star, deadline, mode, step, F, I, S, q, p, lane)
    if lane == 0:
        T.N[T.joined + b], T.A[T.new_edge + b], T.N[T.near_count + b] = i, length, m
    sync_lanes()


@njit
def choose_parent(T, b, i, length, m, star, deadline, mode, step, F, I, S, q, p, lane):
    """-> the near node through which q costs least and the length of the motion from there, or NONE when its nearest node i,
    `length` away, does not reach it. Near nodes are tried in the order of cost, so that few motions are checked; those
    refused are marked, since the way back is blocked as well. RRT takes the nearest node."""
    base, cost, node, edge, at = b * NEAR, FAR, i, length, -1
    while True:
        fetch(T, node, p)
        free = space.motion_free(p, q, mode, step, F, I, S, lane)
        if at >= 0 and free:
            return node, edge
        if at < 0:
            if not free:
                return NONE, length
            if not star:
                return i, length
            cost = cost_of(T, i) + length
            for j in range(base + lane, base + m, lane_count()):
                T.A[T.near_cost + j] = cost_of(T, T.N[T.near + j])
        elif lane == 0:
            T.N[T.near + at] = NONE
        sync_lanes()
        best, at = cost, base + NEAR
        for j in range(base + lane, base + m, lane_count()):
            through = T.A[T.near_cost + j] + T.A[T.near_edge + j]
            if T.N[T.near + j] >= 0 and through < best:
                best, at = through, j
        best, at = least_lane(best, at)
        sync_lanes()
        if at == base + NEAR or late(deadline):
            return i, length
        node, edge = T.N[T.near + at], T.A[T.near_edge + at]


@njit
def append(T, n, batch, worker, workers, lane):
    """The joined samples become nodes in the order of the samples; -> the number of nodes then."""
    dof, before, counted = T.N[DOF], n, 0
    for b in range(worker, batch, workers):
        before += count_joined(T, counted, b, lane)
        counted = b
        if T.N[T.joined + b] >= 0:
            i = before
            for k in range(lane, dof, lane_count()):
                T.A[place(T, i, k)] = T.A[T.new_x + b * dof + k]
            sync_lanes()
            region_of(T, i, lane)
            if lane == 0:
                T.N[T.parent + i], T.A[T.edge + i] = T.N[T.joined + b], T.A[T.new_edge + b]
                T.A[T.offered + i], T.A[T.taker + i] = FAR, FAR
                T.N[T.joined + b] = i
            sync_lanes()
    return before + count_joined(T, counted, batch, lane)


@njit
def count_joined(T, low, high, lane):
    count = 0
    for b in range(low + lane, high, lane_count()):
        count += 1 if T.N[T.joined + b] >= 0 else 0
    return sum_lanes(count)


@njit
def region_of(T, i, lane):
    """Let node i know the goal that is nearest to it, if that is closer than goal_radius, else -1."""
    region, best = NONE, T.A[GOAL_RADIUS]
    if best > ZERO:
        for g in range(lane, T.N[GOALS], lane_count()):
            d = between(T, i, g)
            if d < best:
                region, best = g, d
        best, region = least_lane(best, region)
    if lane == 0:
        T.N[T.region + i] = region
    sync_lanes()


@njit
def offer(T, b, low, high, reach, q, lane):
    """The node of sample b offers itself as parent to its near nodes and those of low .. high, where that makes them cheaper:
    the rewiring of algorithm 3 of [BKF11]. RRT offers it only to goals that are not reached yet."""
    v = T.N[T.joined + b]
    for k in range(len(q)):
        q[k] = T.A[place(T, v, k)]
    known = T.N[T.near_count + b]
    _, _, m = scan(T, q, low, high, reach * reach, b, known, lane)
    m = min(m, NEAR)
    cost, kept = cost_of(T, v), 0
    for first in range(b * NEAR, b * NEAR + m, lane_count()):
        j = first + lane
        pays, u, length, through = False, NONE, ZERO, ZERO
        if j < b * NEAR + m:
            u, length = T.N[T.near + j], T.A[T.near_edge + j]
            through = cost + length
            if u >= 0 and u != v:
                now = T.A[T.near_cost + j] if j < b * NEAR + known else cost_of(T, u)
                pays = through < now * BETTER and (T.N[STAR] != 0 or now == FAR)
        before, count = rank_lanes(pays)
        if pays:
            at = b * NEAR + kept + before
            T.N[T.near + at], T.A[T.near_edge + at], T.A[T.near_cost + at] = u, length, through
        kept += count
    if lane == 0:
        T.N[T.near_count + b] = kept
    sync_lanes()


@njit
def check_offers(T, batch, deadline, mode, step, F, I, S, q, p, worker, workers, lane):
    """Which offers have a free motion. All workers share all offers: the j-th of sample b is for worker b + j SPREAD."""
    for first in range(0, batch, workers):
        for base in range(0, NEAR, lane_count()):
            if workers == 1 and base >= T.N[T.near_count + first]:
                break
            j = base + lane
            b = first + (worker + j * (workers - SPREAD % workers)) % workers
            there = b < batch and T.N[T.joined + b] >= 0 and j < T.N[T.near_count + b]
            before, count = rank_lanes(there)
            for turn in range(count):
                if halted(T, deadline, lane):
                    return
                _, mine = least_lane(ZERO if there and before == turn else ONE, j)
                check_offer(T, first + (worker + mine * (workers - SPREAD % workers)) % workers, mine, mode, step, F, I, S, q, p, lane)


@njit
def check_offer(T, b, j, mode, step, F, I, S, q, p, lane):
    """Let the node of offer j know it, if the motion is free and no better offer is known there."""
    at = b * NEAR + j
    u, cost = T.N[T.near + at], T.A[T.near_cost + at]
    free = False
    if not any_lane(T.A[T.offered + u] < cost):
        fetch(T, T.N[T.joined + b], q)
        fetch(T, u, p)
        free = space.motion_free(q, p, mode, step, F, I, S, lane)
    sync_lanes()
    if lane == 0:
        if free:
            lower(T.A, T.offered + u, cost)
        else:
            T.N[T.near + at] = NONE
    sync_lanes()


@njit
def take(T, b, turn, lane):
    """The offers of sample b that are the best of their nodes are taken, in the second turn; in the first one, samples
    with equal offers agree on the lowest."""
    for j in range(b * NEAR + lane, b * NEAR + T.N[T.near_count + b], lane_count()):
        u = T.N[T.near + j]
        if u < 0:
            continue
        if turn == 0:
            if T.A[T.near_cost + j] == T.A[T.offered + u]:
                lower(T.A, T.taker + u, np.float32(b))
        elif T.A[T.taker + u] == np.float32(b):
            T.N[T.parent + u], T.A[T.edge + u] = T.N[T.joined + b], T.A[T.near_edge + j]
            T.A[T.offered + u], T.A[T.taker + u] = FAR, FAR


@njit
def look(T, deadline, worker, workers, lane, member, members):
    """Find the cheapest node that is a goal or lies in a goal's region, and count the nodes of the informed set. After the deadline
    the best node so far is enough, and nobody needs the count."""
    n, first, lanes = T.N[COUNT], first_node(T), workers * lane_count()
    best, node = FAR, T.N[BEST_NODE]
    if node >= 0:
        best = cost_of(T, node)
    for i in range(worker * lane_count() + lane, n, lanes):
        if (i < T.N[GOALS] or i >= first) and T.N[T.region + i] >= 0:
            cost = cost_of(T, i)
            if cost < best or (cost == best and i < node):
                best, node = cost, i
            if i >= first and clock_ns() > deadline:
                break
    best, node = least_lane(best, node)
    if lane == 0:
        T.A[T.look_cost + worker], T.N[T.look_node + worker] = best, node
    sync_team(T.N, BARRIER, member, members)
    if worker == 0:
        best, node = FAR, -1
        for w in range(lane, workers, lane_count()):
            if T.A[T.look_cost + w] < best or (T.A[T.look_cost + w] == best and T.N[T.look_node + w] < node):
                best, node = T.A[T.look_cost + w], T.N[T.look_node + w]
        best, node = least_lane(best, node)
        if lane == 0:
            T.A[BEST], T.N[BEST_NODE] = best, node
    if T.N[INFORMED] == 0:
        return
    sync_team(T.N, BARRIER, member, members)
    inside = 0
    for i in range(first + worker * lane_count() + lane, n, lanes):
        if clock_ns() > deadline:
            break
        for g in range(T.N[GOALS]):
            if between(T, i, first) + between(T, i, g) <= T.A[BEST] + T.A[GOAL_RADIUS]:
                inside += 1
                break
    inside = sum_lanes(inside)
    if lane == 0:
        T.N[T.look_inside + worker] = inside
    sync_team(T.N, BARRIER, member, members)
    if worker == 0:
        inside = 0
        for w in range(lane, workers, lane_count()):
            inside += T.N[T.look_inside + w]
        inside = sum_lanes(inside)
        if lane == 0:
            T.N[INSIDE], T.N[LOOKED] = inside, n
