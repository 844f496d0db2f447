"""One tree that grows from the start: `rrt` and `rrt_star` compiled, algorithms 1 to 3 of [BKF11] in rounds.

A round takes several samples. Each finds its nearest node and, for RRT*, all near ones in the same scan, and is joined
to the best of them by a free motion (`extend`). Those that were joined become nodes (`append`). Each new node offers
itself as a better parent to the nodes near it, also to those of its own round (`offer`), and each node takes its best
offer (`take`). Offers are judged by the costs before the round, and a parent's cost is never above its child's, so
nobody is offered to an ancestor, and taking all offers at once leaves a tree.
"""

import math

import numpy as np

from ....device import lean_njit
from ....parallel.sampling import joined_halves
from ....parallel.team import any_lane, clock_ns, deadline_in, lane_count, late, least_lane, meet, sum_lanes, sync_lanes
from ...spaces.interface import END_FREE, NOTHING, motion_free
from ..blocked import clear_log, log_blocked
from ..node_store import FAR, ONE, ZERO, place, put
from .draws import TWO, draw, log_ellipsoid
from .near import Window, check_offers, halted, offer, scan, take
from .state import NEAR, NONE, ROOT, UNREACHED, TreeJob, apart, cost_of, fetch, first_node, open_growth, open_request

LEAST_ROUND = 32  # samples
SHARE = 4  # a round takes this share of the samples so far, at least LEAST_ROUND, `batch` at most
SHRINK = np.float32(0.7)  # of the squared radius, while there are more than NEAR nodes within
SAME = np.float32(1e-12)  # squared distance of a sample that is a node already
TINY = np.float32(1e-30)


@lean_njit
def grow_tree(floats, ints, own_floats, desk, worker):
    """Answer a TreeRequest: see `host`."""
    ask = open_request(floats, ints)
    seed, deadline = joined_halves(ask.seed_low, ask.seed_high), deadline_in(ask.left_ms)
    growth = open_growth(ask, own_floats, worker.memory)
    board, first = growth.board, worker.number == 0 and worker.lane == 0
    if ask.fresh:
        if first:
            board.count[0], board.drawn[0], board.halt[0], board.best_node[0], board.best[0] = 0, 0, 0, NONE, FAR
        meet(worker)
    grow(TreeJob(growth, desk, seed, deadline, worker), ask.rounds)
    if first:
        ask.count[0], ask.drawn[0], ask.best_node[0] = board.count[0], board.drawn[0], board.best_node[0]
        ask.best[0] = board.best[0]


@lean_njit
def grow(job, rounds):
    """Take `rounds` rounds of samples, then `look` for the best goal.

    A round that the deadline cuts is the last: its samples are lost, or are nodes but no better parents to others.
    """
    g, worker = job.growth, job.worker
    board = g.board
    for _ in range(rounds):
        n, drawn = board.count[0], board.drawn[0]
        batch = round_size(g, drawn)
        if n == 0:  # the start offers itself to all goals
            begin(g, worker)
            batch, low, high, reach = 1, 0, g.ask.goals, FAR
        elif batch == 0:
            break
        else:
            reach = near_radius(g, n)
            for b in range(worker.number, batch, worker.count):
                if halted(job):
                    break
                extend(job, b, n, drawn, batch, reach)
            meet(worker)
            if board.halt[0] != 0:
                break
            total = append(g, n, batch, worker)
            if worker.number == 0 and worker.lane == 0:
                board.count[0], board.drawn[0] = total, drawn + batch
            low, high = (n, total) if g.ask.star else (0, g.ask.goals)
            meet(worker)
        for b in range(worker.number, batch, worker.count):
            if halted(job):
                break
            if g.slots.joined[b] >= 0:
                offer(job, b, low, high, reach)
        meet(worker)
        if not any_lane(board.halt[0] != 0):  # another worker may be writing it by now
            check_offers(job, batch)
        meet(worker)
        if board.halt[0] != 0:
            break
        for turn in range(2):
            for b in range(worker.number, batch, worker.count):
                if g.slots.joined[b] >= 0:
                    take(g, b, turn == 1, worker.lane)
            meet(worker)
    look(job)


@lean_njit
def begin(g, worker):
    """Goals and start become nodes, the start as if sample 0 had been joined."""
    dof, goals, start, tree, lane = g.ask.dof, g.ask.goals, first_node(g), g.tree, worker.lane
    if worker.number == 0:
        for k in range(lane, dof, lane_count()):
            tree.lower[k], tree.upper[k], tree.scale[k] = g.ask.lower[k], g.ask.upper[k], g.ask.scale[k]
    for of in range(worker.number, goals + 1, worker.count):
        i = start if of == goals else of
        for k in range(lane, dof, lane_count()):
            tree.nodes[place(i, k, dof)] = g.ask.ends[of * dof + k] * g.ask.scale[k]
        if lane == 0:
            tree.parent[i], tree.edge[i], tree.region[i] = UNREACHED, ZERO, of
            tree.offered[i], tree.taker[i] = FAR, FAR
    meet(worker)
    if worker.number == 0:
        if lane == 0:
            tree.parent[start] = ROOT
            g.board.count[0], g.board.inside[0], g.board.looked[0] = start + 1, 1, start + 1
            g.board.best[0] = FAR
            g.slots.joined[0], g.slots.near_count[0] = start, 0
        clear_log(g.tree, lane)
        sync_lanes()
        region_of(g, start, lane)


@lean_njit
def round_size(g, drawn):
    """How many samples the round takes that begins after `drawn` samples."""
    return min(g.ask.batch, max(LEAST_ROUND, drawn // SHARE), g.ask.most - drawn)


@lean_njit
def near_radius(g, n):
    """gamma (log m / m)^(1/d) for m nodes, `range` at most.

    By Karaman and Frazzoli's bound (IJRR 2011, theorem 38) gamma^d = 2 (1 + 1/d) measure / ball, ball being the unit
    ball's volume, times a factor. The measure of the free space is bounded by that of the box, or by that of the
    informed set, whose nodes alone are counted then.
    """
    dof, measure, m = np.float32(g.ask.dof), g.ask.log_measure, n - first_node(g)
    if g.ask.informed and g.board.best[0] < FAR:
        share = ZERO
        for goal in range(g.ask.goals):
            share += math.exp(min(log_ellipsoid(g, goal) - measure, ZERO))
        measure += math.log(max(min(share, ONE), TINY))
        m = g.board.inside[0] + n - g.board.looked[0]
    count = np.float32(max(m, 2))
    logs = math.log(TWO * (ONE + ONE / dof)) + measure - g.ask.log_ball + math.log(math.log(count) / count)
    return min(math.exp(g.ask.log_factor + logs / dof), g.ask.reach)


@lean_njit
def extend(job, b, n, drawn, batch, reach):
    """Sample b of the round: find its nearest node, steer, and join it to the best near node that has a free motion.
    Algorithms 2 and 3 of [BKF11] up to the insertion."""
    g, q, lane = job.growth, job.desk.a, job.worker.lane
    star, longest = g.ask.star, g.ask.reach
    draw(g, job.seed, drawn + b, b == 0, batch, q)
    i, length, limit = NONE, ZERO, reach * reach if star else -ONE
    while True:
        at, squared, m = scan(job, q, Window(0, n, limit, b), 0)
        if i == NONE:
            i, length = at, math.sqrt(squared)
            if length > longest:
                for k in range(len(q)):
                    x = g.tree.nodes[place(i, k, len(q))]
                    q[k] = x + longest / length * (q[k] - x)
                length = longest
                if star:
                    continue
        if m <= NEAR:
            break
        limit *= SHRINK
    for k in range(lane, len(q), lane_count()):
        g.slots.x[b * len(q) + k] = q[k]
    for k in range(len(q)):
        q[k] = q[k] / g.tree.scale[k]
    if length * length < SAME:
        i = NONE
    else:
        i, length = choose_parent(job, b, i, length, m)
        if i == NONE:
            log_blocked(g.tree, job.seed, drawn + b, b, 0, job.desk.b, q, lane)
    if lane == 0:
        g.slots.joined[b], g.slots.edge[b], g.slots.near_count[b] = i, length, m
    sync_lanes()


@lean_njit
def choose_parent(job, b, i, length, m):
    """-> the near node through which sample b costs least and the length of the motion from there, or NONE when its
    nearest node i, `length` away, does not reach it.

    Near nodes are tried in the order of cost, so that few motions are checked; those refused are marked, since the way
    back is blocked as well. RRT takes the nearest node.
    """
    g, q, near_node, slots, lane = job.growth, job.desk.a, job.desk.b, job.growth.slots, job.worker.lane
    base, cost, node, edge, at = b * NEAR, FAR, i, length, -1
    while True:
        fetch(g, node, near_node)
        free = motion_free(near_node, q, END_FREE if at >= 0 else NOTHING, job.desk.space, lane)
        if at >= 0 and free:
            return node, edge
        if at < 0:
            if not free:
                return NONE, length
            if not g.ask.star:
                return i, length
            cost = cost_of(g, i) + length
            for j in range(base + lane, base + m, lane_count()):
                slots.near_cost[j] = cost_of(g, slots.near[j])
        elif lane == 0:
            slots.near[at] = NONE
        sync_lanes()
        best, at = cost, base + NEAR
        for j in range(base + lane, base + m, lane_count()):
            through = slots.near_cost[j] + slots.near_edge[j]
            if slots.near[j] >= 0 and through < best:
                best, at = through, j
        best, at = least_lane(best, at)
        sync_lanes()
        if at == base + NEAR or late(job.deadline):
            return i, length
        node, edge = slots.near[at], slots.near_edge[at]


@lean_njit
def append(g, n, batch, worker):
    """The joined samples become nodes in the order of the samples -> the number of nodes then."""
    dof, slots, tree, lane, before, counted = g.ask.dof, g.slots, g.tree, worker.lane, n, 0
    for b in range(worker.number, batch, worker.count):
        before += count_joined(g, counted, b, lane)
        counted = b
        if slots.joined[b] >= 0:
            i = before
            put(tree.nodes, i, slots.x[b * dof : (b + 1) * dof], lane)
            sync_lanes()
            region_of(g, i, lane)
            if lane == 0:
                tree.parent[i], tree.edge[i] = slots.joined[b], slots.edge[b]
                tree.offered[i], tree.taker[i] = FAR, FAR
                slots.joined[b] = i
            sync_lanes()
    return before + count_joined(g, counted, batch, lane)


@lean_njit
def count_joined(g, low, high, lane):
    """How many of the samples low <= b < high were joined."""
    count = 0
    for b in range(low + lane, high, lane_count()):
        count += 1 if g.slots.joined[b] >= 0 else 0
    return sum_lanes(count)


@lean_njit
def region_of(g, i, lane):
    """Let node i know the goal that is nearest to it, if that is closer than goal_radius, else -1."""
    region, best = NONE, g.ask.goal_radius
    if best > ZERO:
        for goal in range(lane, g.ask.goals, lane_count()):
            d = apart(g, i, goal)
            if d < best:
                region, best = goal, d
        best, region = least_lane(best, region)
    if lane == 0:
        g.tree.region[i] = region
    sync_lanes()


@lean_njit
def look(job):
    """Find the cheapest node that is a goal or lies in a goal's region, and count the nodes of the informed set.

    After the deadline the best node so far is enough, and nobody needs the count.
    """
    g, worker = job.growth, job.worker
    n, lane = g.board.count[0], worker.lane
    best, node = best_of_worker(job, n)
    if lane == 0:
        g.slots.least_cost[worker.number], g.slots.least_node[worker.number] = best, node
    meet(worker)
    if worker.number == 0:
        best, node = FAR, -1
        for w in range(lane, worker.count, lane_count()):
            if g.slots.least_cost[w] < best or (g.slots.least_cost[w] == best and g.slots.least_node[w] < node):
                best, node = g.slots.least_cost[w], g.slots.least_node[w]
        best, node = least_lane(best, node)
        if lane == 0:
            g.board.best[0], g.board.best_node[0] = best, node
    if not g.ask.informed:
        return
    meet(worker)
    inside = inside_of_worker(job, n)
    if lane == 0:
        g.slots.inside[worker.number] = inside
    meet(worker)
    if worker.number == 0:
        inside = 0
        for w in range(lane, worker.count, lane_count()):
            inside += g.slots.inside[w]
        inside = sum_lanes(inside)
        if lane == 0:
            g.board.inside[0], g.board.looked[0] = inside, n


@lean_njit
def best_of_worker(job, n):
    """-> the least cost, and its node, among the best one so far and this worker's part of the first n nodes."""
    g, worker, start = job.growth, job.worker, first_node(job.growth)
    best, node = FAR, g.board.best_node[0]
    if node >= 0:
        best = cost_of(g, node)
    for i in range(worker.number * lane_count() + worker.lane, n, worker.count * lane_count()):
        if (i < g.ask.goals or i >= start) and g.tree.region[i] >= 0:
            cost = cost_of(g, i)
            if cost < best or (cost == best and i < node):
                best, node = cost, i
            if i >= start and clock_ns() > job.deadline:
                break
    return least_lane(best, node)


@lean_njit
def inside_of_worker(job, n):
    """How many of this worker's part of the first n nodes lie in the informed set."""
    g, worker, start, inside = job.growth, job.worker, first_node(job.growth), 0
    for i in range(start + worker.number * lane_count() + worker.lane, n, worker.count * lane_count()):
        if clock_ns() > job.deadline:
            break
        for goal in range(g.ask.goals):
            if apart(g, i, start) + apart(g, i, goal) <= g.board.best[0] + g.ask.goal_radius:
                inside += 1
                break
    return sum_lanes(inside)
