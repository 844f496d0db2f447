"""The first phase of [DL14] algorithm 1, compiled for a team (see `team`): two trees of nodes, one around the start and one
around the goals, grow until a motion joins them.

A round draws `batch` samples, every other one for the same tree, and has two barriers:
    A   a sample of p_G: a uniform draw is moved to at most `radius` from the tree's node nearest to it. It becomes a node
        if the motion from there is free; then its nearest nodes of both trees within `radius` are looked up.
    B   beside A, the new nodes of the round before are tried with such neighbours: the overlap of [DL14]'s version 3.
    -   new nodes are numbered in the order of their samples and stored.
Nodes that no motion joins to the graph are dropped, so that it always has these two components ([DL14] section 3). p_G
thus prefers nodes with much unexplored space around them; `near` < 1 leaves that share of the draws where it is.

Memory. A, N: float32, int32, read again and again (on CUDA: of the device). G, H: what the host asks and reads, written
once (on CUDA: page-locked memory of the host). A node is tree * capacity + its number in the tree.
"""

import math
from typing import NamedTuple

import numpy as np

from ..device import njit
from ..team import clock_ns, deadline_in, lane_count, late, least_lane, sum_lanes, sync_lanes, sync_team
from .sampling import sample, uniform01
from .space import motion_free

CLASSES = 32  # neighbours are the nearest nodes among the nearest of each residue class of node numbers
NONE, UNTRIED = -1, -2  # entries of neighbours: no edge; UNTRIED - node: an edge that nobody has checked
# N: the team's barrier, did the trees meet, is the time up, the node that each sample came from, see `places`
N_BARRIER, N_MET, N_HALT, N_FIRST = 0, 1, 2, 4
H_MET, H_COUNTS, H_DRAWN, H_FIRST = 0, 1, 3, 4  # H: met, nodes of both trees, samples drawn, parents, neighbours
POINT = -1  # mode of a motion that does not move: two looks at most, in every space
LOOK = 4096  # nodes between two looks at the clock, where each is little work
ZERO, FAR = np.float32(0), np.float32(3e38)


class Ask(NamedTuple):
    """Scalars of one call of `grow`.

    first: 1 when nothing but the roots is there yet, 2 when A is new but the trees are not;  counts_0, counts_1: nodes of the trees;  drawn, until: samples
    batch, tried, capacity: samples a round, neighbours tried of a node, nodes of a tree;  lazy: 1: leave motions within a
    tree unchecked;  left_ms: until the deadline;  seed: int;  mode, step: of the motion check;  radius: rad;  near: share
    """

    dof: int
    first: int
    counts_0: int
    counts_1: int
    drawn: int
    until: int
    batch: int
    tried: int
    capacity: int
    lazy: int
    left_ms: int
    seed: int
    mode: int
    step: float
    radius: float
    near: float


@njit
def sizes(dof, batch, tried, capacity, workers):
    """Lengths of A, N, G, H."""
    return (2 * dof * (capacity + 1) + batch * dof + 2 * CLASSES * workers, N_FIRST + batch * (2 * tried + 2) + 2 * CLASSES * workers,
            2 * dof * (capacity + 1), H_FIRST + 2 * capacity * (tried + 1))


@njit
def grow(ask, A, N, G, H, F, I, S, qa, qb, worker, workers, lane, member, members):
    """Grow until the trees meet, `until` samples are drawn, a tree may have no room for another round or the time is up: then the
    round that was under way adds no nodes, but the edges that it has found.

    G: lower, upper (dof,) each, then nodes (2, capacity, dof), the roots in place;  H: H_MET...H_DRAWN, parents (2, capacity),
    neighbours (2, capacity, tried);  qa, qb: (dof,) float32 scratch of the lane
    """
    batch, capacity, tried, deadline = ask.batch, ask.capacity, ask.tried, deadline_in(ask.left_ms)
    n0, n1, drawn, met = ask.counts_0, ask.counts_1, ask.drawn, 0
    old0, old1, more0, pairs, turn = n0, n1, 0, 0, 0  # counts before the last new nodes, how many of tree 0, pairs to try
    roots = ask.first == 1
    if ask.first > 0:
        plant(ask, A, N, G, n0, n1, worker, workers, lane)
        sync_team(N, N_BARRIER, member, members)
        if roots:
            pairs = n1
    while True:
        room = max(n0, n1) + (batch + 1) // 2 <= capacity
        count = min(batch, ask.until - drawn) if room else 0
        if pairs + count == 0:
            break
        halt = False
        for task in range(worker, pairs + count, workers):
            i, wanted = task - pairs, True
            halt = halt or late(deadline)
            if halt:
                if lane == 0:
                    N[N_HALT] = 1
                    if i < 0:
                        node, _ = pair(ask, A, N, roots, task, old0, old1, more0, turn, qa, qb, lane)
                        H[H_FIRST + 2 * capacity + node * tried + (0 if roots else task % tried)] = NONE
                continue
            if i >= 0:
                node, other = 0, propose(ask, A, i & 1, n0 if i & 1 == 0 else n1, drawn + i, qa, qb, lane)
            else:
                node, other = pair(ask, A, N, roots, task, old0, old1, more0, turn, qa, qb, lane)
                wanted = ask.lazy == 0 or roots or (node >= capacity) != (other >= capacity)
            is_free = wanted and other >= 0
            look = i >= 0 and lane_count() > 1  # most samples are in collision: a warp looks at them before their motions
            while is_free:
                is_free = motion_free(qb if look else qa, qb, POINT if look else ask.mode, ask.step, F, I, S, lane)
                if not look:
                    break
                look = False
            if i >= 0:
                if is_free:
                    keep(ask, A, N, i, other, n0, n1, 1 - turn, qb, worker, lane)
                if lane == 0:
                    N[N_FIRST + i] = other if is_free else NONE
            elif lane == 0:
                untried = UNTRIED - other if other >= 0 and not wanted else NONE
                H[H_FIRST + 2 * capacity + node * tried + (0 if roots else task % tried)] = other if is_free else untried
                if is_free and (node >= capacity) != (other >= capacity):
                    N[N_MET] = 1
        sync_team(N, N_BARRIER, member, members)
        met, roots, pairs = N[N_MET], False, 0
        if N[N_HALT] != 0:
            break
        drawn += count
        if met != 0:
            break
        if count > 0:
            old0, old1, turn = n0, n1, 1 - turn
            more0 = rank(N, 0, count, lane)
            n0, n1 = n0 + more0, n1 + rank(N, 1, count, lane)
            pairs = (more0 + n1 - old1) * tried
            for i in range(worker, count, workers):
                if N[N_FIRST + i] >= 0:
                    store(ask, A, N, G, H, i, old0, old1, more0, lane)
            sync_team(N, N_BARRIER, member, members)
    if worker == 0 and lane == 0:
        H[H_MET], H[H_COUNTS], H[H_COUNTS + 1], H[H_DRAWN] = met, n0, n1, drawn


@njit
def places(ask):
    """Where things begin. A: nodes (2, dof, capacity), samples (batch, dof), distances (workers, 2 CLASSES); N: samples that
    became nodes (batch,), neighbours of the samples (2, batch, tried) of two rounds in turn, numbers (workers, 2 CLASSES)."""
    drafts = 2 * ask.dof * (ask.capacity + 1)
    new = N_FIRST + ask.batch
    return 2 * ask.dof, drafts, drafts + ask.batch * ask.dof, new, new + ask.batch, new + ask.batch * (2 * ask.tried + 1)


@njit
def plant(ask, A, N, G, n0, n1, worker, workers, lane):
    """Bring bounds and nodes from G to A."""
    dof, lanes = ask.dof, lane_count()
    for i in range(worker * lanes + lane, 2 * dof, workers * lanes):
        A[i] = G[i]
    for i in range(worker * lanes + lane, n0 + n1, workers * lanes):
        node = i if i < n0 else ask.capacity + i - n0
        for k in range(dof):
            A[coordinate(ask, node, k)] = G[2 * dof + node * dof + k]
    if worker == 0 and lane == 0:
        N[N_MET], N[N_HALT] = 0, 0


@njit
def pair(ask, A, N, roots, task, old0, old1, more0, turn, qa, qb, lane):
    """-> the new node and the neighbour of it (NONE: there is none) that are a task, their places into qa, qb.

    roots: goal number `task` and the start"""
    if roots:
        node, other = ask.capacity + task, 0
    else:
        _, _, _, new, near, _ = places(ask)
        i = task // ask.tried
        node = old0 + i if i < more0 else ask.capacity + old1 + i - more0
        other = N[near + (turn * ask.batch + N[new + i]) * ask.tried + task % ask.tried]
    if other >= 0:
        fetch(ask, A, node, qa)
        fetch(ask, A, other, qb)
    return node, other


@njit
def keep(ask, A, N, i, parent, n0, n1, turn, q, worker, lane):
    """Sample i becomes a node: its place and its neighbours, until it has a number."""
    _, drafts, distances, _, near, numbers = places(ask)
    for k in range(lane, ask.dof, lane_count()):
        A[drafts + i * ask.dof + k] = q[k]
    neighbours(ask, A, N, distances + 2 * CLASSES * worker, numbers + 2 * CLASSES * worker, near + (turn * ask.batch + i) * ask.tried,
               i & 1, parent, n0, n1, q, lane)


@njit
def store(ask, A, N, G, H, task, n0, n1, more0, lane):
    """Number the node that a sample became, after the samples of its tree before it."""
    _, drafts, _, new, _, _ = places(ask)
    tree, before = task & 1, rank(N, task & 1, task, lane)
    node = n0 + before if tree == 0 else ask.capacity + n1 + before
    for k in range(lane, ask.dof, lane_count()):
        value = A[drafts + task * ask.dof + k]
        A[coordinate(ask, node, k)] = value
        G[2 * ask.dof + node * ask.dof + k] = value
    if lane == 0:
        H[H_FIRST + node] = N[N_FIRST + task] + tree * ask.capacity
        N[new + before + (0 if tree == 0 else more0)] = task


@njit
def coordinate(ask, node, k):
    """Where A has coordinate k of a node: nodes of a tree lie side by side, for lanes that read them together."""
    tree = 1 if node >= ask.capacity else 0
    return 2 * ask.dof + (tree * (ask.dof - 1) + k) * ask.capacity + node


@njit
def fetch(ask, A, node, q):
    """A node into q (dof,)."""
    at = coordinate(ask, node, 0)
    for k in range(ask.dof):
        q[k] = A[at + k * ask.capacity]


@njit
def squared_distance(ask, A, node, q):
    """From a node to q."""
    squared, at = ZERO, coordinate(ask, node, 0)
    for k in range(ask.dof):
        difference = A[at + k * ask.capacity] - q[k]
        squared += difference * difference
    return squared


@njit
def propose(ask, A, tree, n, number, qa, qb, lane):
    """Draw a sample of p_G into qb; -> the node of the tree nearest to it (its number in the tree), whose place goes to qa, or NONE."""
    dof = ask.dof
    seed = np.uint64(ask.seed)
    sample(seed, number, A[:dof], A[dof:2 * dof], qb)
    best, parent, first = FAR, 0, tree * ask.capacity
    for i in range(lane, n, lane_count()):
        squared = squared_distance(ask, A, first + i, qb)
        if squared < best:
            best, parent = squared, i
    best, parent = least_lane(best, parent)
    fetch(ask, A, first + parent, qa)
    distance = math.sqrt(best)
    if distance > ask.radius:
        if uniform01(seed, number, dof) >= ask.near:
            return NONE
        t = ask.radius / distance
        for k in range(dof):
            qb[k] = qa[k] + t * (qb[k] - qa[k])
    return parent if distance > ZERO else NONE


@njit
def neighbours(ask, A, N, distances, numbers, out, tree, parent, n0, n1, q, lane):
    """Nodes within the radius of q into N[out:out + tried]: the nearest of the other tree, then others by distance, then NONE."""
    lanes = lane_count()
    for e in range(lane, 2 * CLASSES, lanes):
        of = e // CLASSES
        best, number = FAR, NONE
        for i in range(e % CLASSES, n0 if of == 0 else n1, CLASSES):
            squared = squared_distance(ask, A, of * ask.capacity + i, q)
            if squared < best and not (of == tree and i == parent):
                best, number = squared, of * ask.capacity + i
        A[distances + e] = best
        N[numbers + e] = number
    for r in range(ask.tried):
        sync_lanes()
        best, entry = FAR, 0
        for e in range(lane, 2 * CLASSES, lanes):
            if A[distances + e] < best and not (r == 0 and e // CLASSES == tree):
                best, entry = A[distances + e], e
        best, entry = least_lane(best, entry)
        within = best <= ask.radius * ask.radius
        sync_lanes()
        if lane == 0:
            N[out + r] = N[numbers + entry] if within else NONE
            if within:
                A[distances + entry] = FAR
    sync_lanes()


@njit
def rank(N, tree, end, lane):
    """How many of the samples before `end` became nodes of a tree."""
    total = np.int32(0)
    for w in range(tree + 2 * lane, end, 2 * lane_count()):
        if N[N_FIRST + w] >= 0:
            total += np.int32(1)
    return sum_lanes(total)


@njit
def collect(ask, G, H, n0, n1, weights, deadline):
    """The graph that has grown: nodes (n, dof), the start first, then its tree, the goals, their tree; edges (m, 2) int32;
    lengths (m,) float32 weighted; states (m,) int8 as in roadmap. Without edges where the deadline was before."""
    dof, capacity, tried = ask.dof, ask.capacity, ask.tried
    n = n0 + n1
    nodes = np.empty((n, dof), dtype=np.float32)
    edges, states = np.empty((n * (tried + 1), 2), dtype=np.int32), np.empty(n * (tried + 1), dtype=np.int8)
    m = 0
    for i in range(n):
        if i % LOOK == 0 and clock_ns() > deadline:
            m = 0
            break
        node = i if i < n0 else capacity + i - n0
        for k in range(dof):
            nodes[i, k] = G[2 * dof + node * dof + k]
        for r in range(tried + 1):
            other = H[H_FIRST + node] if r == tried else H[H_FIRST + 2 * capacity + node * tried + r]
            if other != NONE:
                states[m] = 1 if other >= 0 else -1
                other = other if other >= 0 else UNTRIED - other
                edges[m, 0], edges[m, 1] = i, other if other < capacity else other - capacity + n0
                m += 1
    return nodes, edges[:m], weighted_lengths(nodes, edges[:m], weights), states[:m]


@njit
def weighted_lengths(nodes, edges, weights):
    """(m,) float32: sqrt(sum of weight * difference squared) of each edge; weights: (dof,) float32"""
    lengths = np.empty(len(edges), dtype=np.float32)
    for e in range(len(edges)):
        squared = ZERO
        for k in range(nodes.shape[1]):
            difference = nodes[edges[e, 0], k] - nodes[edges[e, 1], k]
            squared += weights[k] * difference * difference
        lengths[e] = math.sqrt(squared)
    return lengths
