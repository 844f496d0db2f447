"""The first phase of [DL14] algorithm 1, compiled for a team (`team`): two trees of nodes, one around the start and one
around the goals, grow until a motion joins them.

A round draws `batch` samples, in turns for either tree, and has two barriers:
    A   a sample of p_G: a uniform draw is moved to at most `radius` from the tree's node nearest to it. If the motion
        from there is free, it becomes a node, and its nearest nodes of both trees within `radius` are looked up.
    B   beside A, the new nodes of the previous round are tried with such neighbours, as in [DL14]'s version 3.
    -   new nodes are numbered in the order of their samples and stored.
Nodes that no motion joins to the graph are dropped, so that it always has these two components ([DL14] section 3). p_G
thus prefers nodes with much unexplored space around them; with `near` < 1 only that share of the draws is moved.

The message (`host`) is a GrowthCall and the Report, which is written once; PrmTrees, which are read again and again,
lie in the team's own memory. A node is tree * capacity + its number in the tree.
"""

import math
from typing import NamedTuple

import numpy as np

from ....device import lean_njit
from ....parallel.layout import Float32, Int32, floats, ints, layout
from ....parallel.sampling import joined_halves, sample, uniform01
from ....parallel.team import Worker, deadline_in, lane_count, late, least_lane, meet, sum_lanes, sync_lanes
from ...spaces.interface import END_FREE, NOTHING, Space, motion_free
from ..blocked import KEPT, log_blocked
from ..message import BARRIER
from ..node_store import FAR, ZERO, Desk, load, nearest, place, put, squared_distance, steer

CLASSES = 32  # neighbours are the nearest nodes among the nearest of each residue class of node numbers
NONE = -1  # no edge, in neighbours
UNTRIED = -2  # UNTRIED - node: an edge that nobody has checked, in neighbours
POINT = np.int32(-1)  # mode of a zero-length motion: at most two checks, in every space


class GrowthCall(NamedTuple):
    """Numbers of one call of `grow`."""

    dof: int = ints()
    mode: Int32 = ints()  # of the motion check
    first: int = ints()  # 1: nothing but the roots is there yet; 2: buffers were reallocated; reload the trees
    counts_0: int = ints()  # nodes of the trees
    counts_1: int = ints()
    drawn: int = ints()  # samples
    until: int = ints()
    batch: int = ints()  # samples of a round
    tried: int = ints()  # neighbours tried of a node
    capacity: int = ints()  # nodes of a tree
    lazy: int = ints()  # 1: leave motions within a tree unchecked
    left_ms: int = ints()  # until the deadline
    seed_low: int = ints()
    seed_high: int = ints()
    step: Float32 = floats()  # of the motion check
    radius: Float32 = floats()
    near: Float32 = floats()  # share of the samples that are moved to within the radius


class PrmTrees(NamedTuple):
    """What the workers share, and one worker's scratch."""

    nodes: np.ndarray = floats("2 * capacity * dof")  # in tiles of node_store
    bounds: np.ndarray = floats("2 * dof")  # lower and upper
    drafts: np.ndarray = floats("batch * dof")  # samples that may become nodes
    met: np.ndarray = ints("1", gap=f"{BARRIER}")  # have the trees met?
    halt: np.ndarray = ints("1")  # is the time up?
    parents: np.ndarray = ints("batch", gap="1")  # the node that each sample comes from, in its tree
    new: np.ndarray = ints("batch")  # the samples that became nodes
    near: np.ndarray = ints("2 * batch * tried")  # neighbours of the samples of two rounds in turn
    distances: np.ndarray = floats("2 * CLASSES", own=True)
    numbers: np.ndarray = ints("2 * CLASSES", own=True)


class Report(NamedTuple):
    """What host and compiled code tell each other."""

    bounds: np.ndarray = floats("2 * dof")  # lower and upper
    nodes: np.ndarray = floats("2 * capacity * dof")  # row by row, the roots in place
    met: np.ndarray = ints("1")
    counts: np.ndarray = ints("2")  # nodes of the trees
    drawn: np.ndarray = ints("1")
    parents: np.ndarray = ints("2 * capacity")  # nodes
    neighbours: np.ndarray = ints("2 * capacity * tried")  # nodes, NONE or UNTRIED - node
    log_ends: np.ndarray = floats(f"2 * {KEPT} * dof")  # see `blocked`
    log_seen: np.ndarray = ints(f"{KEPT}")
    log_tree: np.ndarray = ints(f"{KEPT}")


class PrmJob(NamedTuple):
    """A growth, as one lane of one worker sees it. seed: uint64; deadline: of clock_ns()"""

    ask: GrowthCall
    trees: PrmTrees
    report: Report
    desk: Desk
    seed: int
    deadline: int
    worker: Worker


call_sizes, open_call, write_call = layout(GrowthCall)
trees_sizes, open_trees, _ = layout(PrmTrees, "dof batch tried capacity")
report_sizes, open_report, _ = layout(Report, "dof tried capacity")
CALL_FLOATS, CALL_INTS = call_sizes.py_func()


def message_sizes(ask: GrowthCall) -> tuple[int, int]:
    """-> lengths of the message's float32 and int32."""
    n_floats, n_ints = report_sizes.py_func(ask.dof, ask.tried, ask.capacity)
    return CALL_FLOATS + n_floats, CALL_INTS + n_ints


def own_sizes(ask: GrowthCall, workers: int) -> tuple[int, int]:
    """-> lengths of the team's own float32 and int32."""
    return trees_sizes.py_func(ask.dof, ask.batch, ask.tried, ask.capacity, workers)


class PrmRound(NamedTuple):
    """What a round works on."""

    roots: bool  # are the pairs the goals and the start?
    n0: int  # nodes of the trees
    n1: int
    old0: int  # nodes one round earlier
    old1: int
    more0: int  # how many nodes tree 0 got in that round
    turn: int  # which half of PrmTrees.near has the neighbours of this round's pairs
    drawn: int  # samples before
    pairs: int  # of a new node and a neighbour, to be tried
    count: int  # type: ignore[assignment]  # samples; nobody calls the method of this name


@lean_njit
def grow_trees(floats, ints, own_floats, desk, worker):
    """Answer a GrowthCall: see `host`."""
    ask = open_call(floats, ints)
    trees = open_trees(own_floats, worker.memory, ask.dof, ask.batch, ask.tried, ask.capacity, worker)
    report = open_report(floats[CALL_FLOATS:], ints[CALL_INTS:], ask.dof, ask.tried, ask.capacity)
    seed, deadline = joined_halves(ask.seed_low, ask.seed_high), deadline_in(ask.left_ms)
    grow(PrmJob(ask, trees, report, desk, seed, deadline, worker))


@lean_njit
def grow(job):
    """Grow until the trees meet, `until` samples are drawn, a tree may be full after another round, or the time is up;
    the round that the deadline cuts adds no nodes, but the edges that it has found."""
    trees, report, worker = job.trees, job.report, job.worker
    now, met = begin(job), 0
    while now.pairs + now.count > 0:
        halt = False
        for task in range(worker.number, now.pairs + now.count, worker.count):
            halt = halt or late(job.deadline)
            if halt:
                give_up(job, now, task)
            else:
                attempt(job, now, task)
        meet(worker)
        met = trees.met[0]
        if trees.halt[0] != 0:
            break
        now = next_round(job, now, met != 0)
    if worker.number == 0 and worker.lane == 0:
        report.met[0], report.counts[0], report.counts[1], report.drawn[0] = met, now.n0, now.n1, now.drawn


@lean_njit
def begin(job):
    """-> the first PrmRound."""
    ask = job.ask
    roots = ask.first == 1
    if ask.first > 0:
        plant(job)
        meet(job.worker)
    n0, n1, drawn = np.int64(ask.counts_0), np.int64(ask.counts_1), np.int64(ask.drawn)
    return PrmRound(roots, n0, n1, n0, n1, 0, 0, drawn, n1 if roots else 0, samples_of_round(ask, n0, n1, drawn))


@lean_njit
def samples_of_round(ask, n0, n1, drawn):
    """How many samples the round takes that begins with such trees."""
    room = max(n0, n1) + (ask.batch + 1) // 2 <= ask.capacity
    return min(ask.batch, ask.until - drawn) if room else 0


@lean_njit
def plant(job):
    """Bring bounds and nodes from the host's memory."""
    ask, trees, report, worker = job.ask, job.trees, job.report, job.worker
    first, lanes = worker.number * lane_count() + worker.lane, worker.count * lane_count()
    for i in range(first, 2 * ask.dof, lanes):
        trees.bounds[i] = report.bounds[i]
    for i in range(first, ask.counts_0 + ask.counts_1, lanes):
        node = i if i < ask.counts_0 else ask.capacity + i - ask.counts_0
        for k in range(ask.dof):
            trees.nodes[place(node, k, ask.dof)] = report.nodes[node * ask.dof + k]
    if worker.number == 0 and worker.lane == 0:
        trees.met[0], trees.halt[0] = 0, 0


@lean_njit
def next_round(job, now, met):
    """Number the new nodes of `now`, unless the trees have met -> the next PrmRound."""
    ask, worker = job.ask, job.worker
    drawn = now.drawn + now.count
    if met:
        return PrmRound(False, now.n0, now.n1, now.n0, now.n1, 0, now.turn, drawn, 0, 0)
    if now.count == 0:
        count = samples_of_round(ask, now.n0, now.n1, drawn)
        return PrmRound(False, now.n0, now.n1, now.old0, now.old1, now.more0, now.turn, drawn, 0, count)
    more0 = rank(job, 0, now.count)
    n0, n1 = now.n0 + more0, now.n1 + rank(job, 1, now.count)
    pairs = (more0 + n1 - now.n1) * ask.tried
    for i in range(worker.number, now.count, worker.count):
        if job.trees.parents[i] >= 0:
            store(job, now, i, more0)
    meet(worker)
    count = samples_of_round(ask, n0, n1, drawn)
    return PrmRound(False, n0, n1, now.n0, now.n1, more0, 1 - now.turn, drawn, pairs, count)


@lean_njit
def attempt(job, now, task):
    """Do a task of the round: try a pair, or, behind the pairs, a sample. One place calls the check of a motion."""
    ask, trees, desk, lane, i = job.ask, job.trees, job.desk, job.worker.lane, task - now.pairs
    wanted = True
    if i >= 0:
        node, other = 0, propose(job, i & 1, now.n0 if i & 1 == 0 else now.n1, now.drawn + i)
    else:
        node, other = pair(job, now, task)
        wanted = ask.lazy == 0 or now.roots or (node >= ask.capacity) != (other >= ask.capacity)
    is_free = wanted and other >= 0
    look = i >= 0 and lane_count() > 1  # most samples are in collision: a warp looks at them before their motions
    while is_free:
        space = desk.space
        space = Space(POINT if look else space.mode, space.step, space.floats, space.ints, space.scratch)
        is_free = motion_free(desk.b if look else desk.a, desk.b, END_FREE if i < 0 else NOTHING, space, lane)
        if not look:
            break
        look = False
    if i >= 0:
        if is_free:
            keep(job, now, i, other)
        elif other >= 0:
            log_blocked(job.report, job.seed, now.drawn + i, i, i & 1, desk.a, desk.b, lane)
        if lane == 0:
            trees.parents[i] = other if is_free else NONE
    elif lane == 0:
        untried = UNTRIED - other if other >= 0 and not wanted else NONE
        job.report.neighbours[entry_of(job, now, task, node)] = other if is_free else untried
        if is_free and (node >= ask.capacity) != (other >= ask.capacity):
            trees.met[0] = 1


@lean_njit
def give_up(job, now, task):
    """Raise the flag that the time is up; a pair that nobody tries is no edge."""
    if job.worker.lane == 0:
        job.trees.halt[0] = 1
        if task < now.pairs:
            node, _ = pair(job, now, task)
            job.report.neighbours[entry_of(job, now, task, node)] = NONE


@lean_njit
def entry_of(job, now, task, node):
    """-> where Report.neighbours has the pair that a task tries."""
    return node * job.ask.tried + (0 if now.roots else task % job.ask.tried)


@lean_njit
def pair(job, now, task):
    """-> the new node and its neighbour (NONE: it has none) that a task tries; desk.a, desk.b become their places."""
    ask, trees, desk = job.ask, job.trees, job.desk
    if now.roots:  # goal number `task` and the start
        node, other = ask.capacity + task, 0
    else:
        i = task // ask.tried
        node = now.old0 + i if i < now.more0 else ask.capacity + now.old1 + i - now.more0
        other = trees.near[(now.turn * ask.batch + trees.new[i]) * ask.tried + task % ask.tried]
    if other >= 0:
        load(trees.nodes, node, desk.a)
        load(trees.nodes, other, desk.b)
    return node, other


@lean_njit
def propose(job, tree, n, number):
    """Draw a sample of p_G into desk.b -> the number of the tree's node nearest to it, whose place desk.a becomes, or
    NONE."""
    ask, trees, desk = job.ask, job.trees, job.desk
    seed, dof = job.seed, ask.dof
    sample(seed, number, trees.bounds[:dof], trees.bounds[dof:], desk.b)
    nodes = trees.nodes[tree * ask.capacity * dof :]
    parent, squared = nearest(nodes, n, desk.b, desk.squared, job.worker.lane)
    load(nodes, parent, desk.a)
    distance = math.sqrt(squared)
    if distance > ask.radius and uniform01(seed, number, dof) >= ask.near:
        return NONE
    steer(desk.a, desk.b, distance, ask.radius)
    return parent if distance > ZERO else NONE


@lean_njit
def keep(job, now, i, parent):
    """Keep the place and the neighbours of sample i, desk.b, which becomes a node.

    Neighbours are nodes within the radius: the nearest of the other tree, then others by distance, then NONE.
    """
    ask, trees, q, tree, lane = job.ask, job.trees, job.desk.b, i & 1, job.worker.lane
    for k in range(lane, ask.dof, lane_count()):
        trees.drafts[i * ask.dof + k] = q[k]
    nearest_of_classes(job, now, tree, parent, q)
    out = ((1 - now.turn) * ask.batch + i) * ask.tried
    for r in range(ask.tried):
        sync_lanes()
        best, entry = FAR, 0
        for e in range(lane, 2 * CLASSES, lane_count()):
            if trees.distances[e] < best and not (r == 0 and e // CLASSES == tree):
                best, entry = trees.distances[e], e
        best, entry = least_lane(best, entry)
        within = best <= ask.radius * ask.radius
        sync_lanes()
        if lane == 0:
            trees.near[out + r] = trees.numbers[entry] if within else NONE
            if within:
                trees.distances[entry] = FAR
    sync_lanes()


@lean_njit
def nearest_of_classes(job, now, tree, parent, q):
    """The node nearest to q in each residue class of both trees, but for its parent."""
    ask, trees = job.ask, job.trees
    for e in range(job.worker.lane, 2 * CLASSES, lane_count()):
        of = e // CLASSES
        best, number = FAR, NONE
        for i in range(e % CLASSES, now.n0 if of == 0 else now.n1, CLASSES):
            squared = squared_distance(trees.nodes, of * ask.capacity + i, q)
            if squared < best and not (of == tree and i == parent):
                best, number = squared, of * ask.capacity + i
        trees.distances[e], trees.numbers[e] = best, number


@lean_njit
def store(job, now, i, more0):
    """Number the node that sample i became, after the samples of its tree before it. more0: new nodes of tree 0"""
    ask, trees, report, lane, tree = job.ask, job.trees, job.report, job.worker.lane, i & 1
    before = rank(job, tree, i)
    node = now.n0 + before if tree == 0 else ask.capacity + now.n1 + before
    draft = trees.drafts[i * ask.dof : (i + 1) * ask.dof]
    put(trees.nodes, node, draft, lane)
    for k in range(lane, ask.dof, lane_count()):
        report.nodes[node * ask.dof + k] = draft[k]
    if lane == 0:
        report.parents[node] = trees.parents[i] + tree * ask.capacity
        trees.new[before + (0 if tree == 0 else more0)] = i


@lean_njit
def rank(job, tree, end):
    """How many of the samples before `end` became nodes of a tree."""
    total = np.int32(0)
    for i in range(tree + 2 * job.worker.lane, end, 2 * lane_count()):
        if job.trees.parents[i] >= 0:
            total += np.int32(1)
    return sum_lanes(total)
