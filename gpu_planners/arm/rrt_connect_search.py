"""RRT-Connect for the workers of a team (`team`): the compiled code of rrt_connect.py, the same on the CPU and on CUDA.

A round takes `batch` samples, all against the trees as they are when it begins:

    propose   draw a sample, find the nearest node of one tree, step towards the sample;
    extend    prove that step;
    grow      find the nearest node of the other tree;
    connect   the straight way from the new node to the nearest node of the other tree, in steps that any worker may prove;
    append    new nodes get their places by counting, in the order of the samples, so that the trees never depend on timing.

Half of a round's samples extend one tree, half the other; a round of one sample extends the smaller tree.
"""

import math
from typing import NamedTuple

import numpy as np

from ..device import njit
from ..team import add, deadline_in, greatest_lane, lane_count, late, least_lane, lower, peek, sum_lanes, sync_lanes, sync_team
from .nearest import FAR, nearest, place
from .sampling import sample
from .shortcut import POINTS, shorten, shorten_sizes
from .space import motion_free

# how a search ended, or SEARCHING when it may go on
SEARCHING, SOLVED, FULL, STOPPED, START_COLLIDES, GOALS_COLLIDE = range(6)
# the int32 request, and the answer from STATUS on; LIMIT: milliseconds that are left; SPLIT: how many workers share a
# motion; SCENE_FLOATS, SCENE_INTS: where the scene begins in F and I
(DOF, GOALS, BATCH, UNTIL, SEED, SEED_HIGH, MODE, ROUNDS, FRESH, LIMIT, SPLIT, CAPACITY, SCENE_FLOATS, SCENE_INTS,
 STATUS, GOAL, SAMPLES, LENGTH, PATH_AT) = range(19)
INTS = 19
# the float32 request: step of the check, longest motion, radius of the dynamic domain, then (dof,) each: lower, upper,
# weights, start, and the goals
STEP, RANGE, RADIUS, VECTORS = range(4)
CORNERS = 1024  # of a path, at most
STEPS = 1 << 16  # of a connection, at most: it has longer ones then
# the int32 state that outlives a call, then the trees and slots; HALT: is the time up, a flag each for even and odd phases
BARRIER, DRAWN, COUNT, GOOD, START_FREE, ROOT, PATH_LENGTH, PROBLEM, SMALLER, HALT, STATE = 0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 16
TAKEN, WRITTEN, ASKED = range(3)  # what all teams of solve_many share
TRIES = 8  # samples a slot draws until one lies in the domain of its nearest node
AWAY = np.float32(1e18)  # where goals in collision are put
ZERO, ONE, MOST_STEPS = np.float32(0), np.float32(1), np.float32(STEPS)
PLANT, PROPOSE, EXTEND, GROW, CONNECT = range(5)  # what the workers are at
# what became of a slot's sample
LOST, BLOCKED, PROPOSED, GROWN = range(4)


class Trees(NamedTuple):
    """Views of the state. The first axis of a tree's arrays is written out: tree t starts at t * capacity.

    nodes: (2 * capacity * dof,), cost, domain: (2 * capacity,) float32;  parents: (2 * capacity,) int32, at roots -1 - number
    head: the float32 request without start and goals
    one entry a slot of the round: fate, parent, target, steps, reached: int32;  q: (batch * dof,) float32
    """

    nodes: np.ndarray
    cost: np.ndarray
    domain: np.ndarray
    q: np.ndarray
    head: np.ndarray
    parents: np.ndarray
    fate: np.ndarray
    parent: np.ndarray
    target: np.ndarray
    steps: np.ndarray
    reached: np.ndarray


def state_sizes(dof, capacity, batch, workers):
    """-> lengths of the float32 and int32 state of a search."""
    floats, ints = shorten_sizes(dof, CORNERS, workers)
    return VECTORS + 3 * dof + 2 * capacity * (dof + 2) + batch * dof + floats, STATE + 2 * capacity + 5 * batch + ints


@njit
def open_state(A, N, dof, capacity, batch):
    """-> Trees, and where the rest of A and N begins."""
    a = 2 * capacity * dof
    b, c = a + 2 * capacity, a + 4 * capacity
    d = c + batch * dof
    e = d + VECTORS + 3 * dof
    n = STATE + 2 * capacity
    return Trees(A[:a], A[a:b], A[b:c], A[c:d], A[d:e], N[STATE:n], N[n:n + batch], N[n + batch:n + 2 * batch], N[n + 2 * batch:n + 3 * batch],
                 N[n + 3 * batch:n + 4 * batch], N[n + 4 * batch:n + 5 * batch]), e, n + 5 * batch


@njit
def solve_one(R, K, P, F, I, A, N, S, qa, qb, distances, worker, workers, lane, member, members):
    """Answer the request R, K in K[STATUS:]; the path goes to P, (K[LENGTH], dof).

    F, I: the scene; A, N: the state (`state_sizes`), N[BARRIER] zero at first; S:
    the worker's scratch of the checker, qa, qb:
    (dof,) float32 of each lane, distances: see `nearest`
    """
    status, at, length = plan(R, K, F, I, A, N, deadline_in(K[LIMIT]), S, qa, qb, distances, worker, workers, lane, member, members)
    if worker == 0:
        for k in range(lane, length * len(qa), lane_count()):
            P[k] = A[at + k]
        if lane == 0:
            K[PATH_AT] = 0
            answer(K, N, status, length)


@njit
def solve_many(R, K, P, Q, F, I, A, N, S, qa, qb, distances, worker, workers, lane):
    """Answer requests, the rows of R and K, one after the other until all are taken; the team is one of many.

    P: room for all paths; Q: int32: how many requests and how much of P are TAKEN and WRITTEN, zero at first, and the number
    of requests ASKED. A path for which there is no room counts as FULL. The limit is the first one's.
    """
    deadline = deadline_in(K[0, LIMIT])
    while True:
        if worker == 0 and lane == 0:
            N[PROBLEM] = add(Q, TAKEN, 1)
        sync_team(N, BARRIER, 0, 1)
        p = N[PROBLEM]
        sync_team(N, BARRIER, 0, 1)
        if p >= Q[ASKED]:
            return
        k = K[p]
        status, at, length = plan(R[p], k, F[k[SCENE_FLOATS]:], I[k[SCENE_INTS]:], A, N, deadline, S, qa, qb, distances,
                                  worker, workers, lane, 0, 1)
        if worker == 0:
            size, out = length * len(qa), 0
            if lane == 0:
                out = add(Q, WRITTEN, size)
                if out + size > len(P):
                    status, length, size = FULL, 0, 0
                k[PATH_AT] = out
                answer(k, N, status, length)
            out, size = sum_lanes(out), sum_lanes(size if lane == 0 else 0)
            for i in range(lane, size, lane_count()):
                P[out + i] = A[at + i]


@njit
def answer(K, N, status, length):
    K[SAMPLES], K[LENGTH], K[GOAL] = min(N[DRAWN], K[UNTIL]), length, N[ROOT]
    K[STATUS] = status


@njit
def plan(R, K, F, I, A, N, deadline, S, qa, qb, distances, worker, workers, lane, member, members):
    """Search, and shorten the path until the deadline; -> status, where in A the path begins, its number of corners."""
    dof, capacity, batch = len(qa), int(K[CAPACITY]), int(K[BATCH])
    T, a, n = open_state(A, N, dof, capacity, batch)
    if worker == 0:
        for k in range(lane, len(T.head), lane_count()):
            T.head[k] = R[k]
    sync_team(N, BARRIER, member, members)
    weights = T.head[VECTORS + 2 * dof:]
    seed = np.uint64(K[SEED]) | np.uint64(K[SEED_HIGH]) << np.uint64(31)
    mode, step = np.int32(K[MODE]), T.head[STEP]
    status, winner, direct = search(R, K, F, I, T, N, deadline, S, qa, qb, distances, mode, step, seed, weights, worker, workers, lane, member,
                                    members)
    if status != SOLVED:
        return status, 0, 0
    B, M = A[a:], N[n:]
    if worker == 0 and lane == 0:
        N[PATH_LENGTH] = trace(T, N, dof, capacity, winner, direct, CORNERS - POINTS, B)
    sync_team(N, BARRIER, member, members)
    length = int(N[PATH_LENGTH])
    if length == 0:
        return FULL, 0, 0
    at, length = shorten(length, CORNERS, int(K[ROUNDS]), deadline, weights, seed, int(K[SPLIT]), mode, step, F, I, B, M, N, BARRIER, S,
                         qa, qb, worker, workers, lane, member, members)
    return SOLVED, a + at, length


@njit
def search(R, K, F, I, T, N, deadline, S, qa, qb, distances, mode, step, seed, weights, worker, workers, lane, member, members):
    """-> status, the slot whose connection joined the trees, and is it a straight way from the start to a goal.

    Goes on where it stopped, unless K[FRESH]; a round that the deadline cuts is lost. The check of a motion is called in one
    place, whatever it is for: it is most of the kernel, and each further place would hold a copy.
    """
    dof, capacity, batch, until, goals = len(qa), int(K[CAPACITY]), int(K[BATCH]), int(K[UNTIL]), int(K[GOALS])
    reach, radius, low, high = T.head[RANGE], T.head[RADIUS], T.head[VECTORS:VECTORS + dof], T.head[VECTORS + dof:VECTORS + 2 * dof]
    split, phase, items, turn = int(K[SPLIT]), PROPOSE, batch, 0
    first = -1  # the goal from which on the straight ways to the start are tried; -1: all were tried
    if K[FRESH] != 0:
        phase, items, first = PLANT, goals + 1, 0
        if worker == 0 and lane == 0:
            N[DRAWN], N[COUNT], N[COUNT + 1], N[GOOD], N[START_FREE] = 0, 1, goals, 0, 0
        sync_team(N, BARRIER, member, members)
    if worker == 0 and lane == 0:
        N[HALT], N[HALT + 1] = 0, 0
    drawn, count_a, count_b = int(N[DRAWN]), int(N[COUNT]), int(N[COUNT + 1])
    if phase == PROPOSE and drawn >= until:
        return SEARCHING, 0, False
    sync_team(N, BARRIER, member, members)
    smaller, straight = 0, False
    while True:
        if phase == PROPOSE:
            smaller, straight = 0 if count_a <= count_b else 1, first >= 0
        turn = 1 - turn
        for item in range(worker, items, workers):
            if late(deadline):
                if lane == 0:
                    N[HALT + turn] = 1
                break
            w, part = item % batch, item // batch
            tree = tree_of(w, smaller, straight)
            this, that = T.nodes[tree * capacity * dof:], T.nodes[(1 - tree) * capacity * dof:]
            q, ask = T.q[w * dof:(w + 1) * dof], False
            if phase == PLANT:
                ask = True
                for k in range(dof):
                    qa[k] = R[VECTORS + (3 + item) * dof + k]
                    qb[k] = qa[k]
            elif phase == PROPOSE:
                if lane == 0:
                    T.fate[w], T.steps[w], T.reached[w] = LOST, 0, 0
                if straight:
                    join(T, w, first, goals, dof, capacity, reach, this, that, qa, qb, lane)
                elif drawn + w < until:
                    propose(T, w, (drawn + w) * TRIES, seed, low, high, reach, this, count_a if tree == 0 else count_b, tree * capacity, qa, qb,
                            distances, lane)
            elif phase == EXTEND:  # another part may be known to be blocked; one lane looks, so that all agree
                ask = sum_lanes(peek(T.fate, w) if lane == 0 else 0) == PROPOSED
                if ask:
                    between(this, T.parent[w], q, part, split, qa)
                    between(this, T.parent[w], q, part + 1, split, qb)
            elif phase == GROW:
                if T.fate[w] == PROPOSED:
                    for k in range(dof):
                        qb[k] = q[k]
                    target, squared = nearest(that, count_b if tree == 0 else count_a, qb, distances, lane)
                    fill(T, w, T.parent[w], target, squared, reach, qb, lane)
            else:
                ask = part // split < sum_lanes(peek(T.reached, w) if lane == 0 else 0)
                if ask:
                    between(that, T.target[w], q, part, T.steps[w] * split, qa)
                    between(that, T.target[w], q, part + 1, T.steps[w] * split, qb)
            if ask:
                is_free = motion_free(qa, qb, mode, step, F, I, S, lane)
                if phase == PLANT:
                    plant(T, N, item, is_free, qa, capacity, lane)
                elif not is_free and lane == 0:
                    if phase == EXTEND:
                        T.fate[w] = BLOCKED
                    else:
                        lower(T.reached, w, part // split)
            sync_lanes()
        sync_team(N, BARRIER, member, members)
        if N[HALT + turn] != 0:
            return STOPPED, 0, False
        if phase == PLANT:
            if N[START_FREE] == 0:
                return START_COLLIDES, 0, False
            if N[GOOD] == 0:
                return GOALS_COLLIDE, 0, False
            phase, items = PROPOSE, batch
        elif phase == PROPOSE and not straight:
            phase, items = EXTEND, batch * split
        elif phase == EXTEND:
            phase, items = GROW, batch
        elif phase != CONNECT:
            most = ZERO
            for w in range(lane, batch, lane_count()):
                most = max(most, np.float32(T.steps[w]))
            phase, items = CONNECT, int(greatest_lane(most)) * split * batch
        else:
            new_a, new_b, winner = outcome(T, batch, smaller, straight, dof, capacity, weights, lane)
            if not straight:
                drawn += batch
            if winner >= 0:
                if worker == 0 and lane == 0:
                    N[DRAWN], N[SMALLER] = drawn, smaller
                return SOLVED, winner, straight
            if max(count_a + new_a, count_b + new_b) > capacity:
                return FULL, 0, False
            append(T, batch, smaller, straight, count_a, count_b, dof, capacity, radius, weights, worker, workers, lane)
            count_a, count_b = count_a + new_a, count_b + new_b
            if worker == 0 and lane == 0:
                N[DRAWN], N[COUNT], N[COUNT + 1] = drawn, count_a, count_b
            if straight:
                first = first + batch if first + batch < goals else -1
            sync_team(N, BARRIER, member, members)
            if first < 0 and drawn >= until:
                return SEARCHING, 0, False
            phase, items = PROPOSE, batch


@njit
def plant(T, N, root, is_free, q, capacity, lane):
    """A root: the start, or the goal `root` - 1. A goal in collision keeps its number, but lies where no sample is near."""
    dof = len(q)
    tree, i = (0, 0) if root == 0 else (1, root - 1)
    for k in range(lane, dof, lane_count()):
        T.nodes[tree * capacity * dof + place(i, k, dof)] = q[k] if is_free else AWAY
    if lane == 0:
        T.cost[tree * capacity + i], T.domain[tree * capacity + i], T.parents[tree * capacity + i] = ZERO, FAR, -1 - i
        if is_free:
            add(N, START_FREE if root == 0 else GOOD, 1)


@njit
def join(T, w, first, goals, dof, capacity, reach, this, that, qa, qb, lane):
    """Slot w asks for the straight way from the start to the goal first + w."""
    goal = first + w
    if goal < goals and that[place(goal, 0, dof)] < AWAY:
        load(this, 0, qb)
        load(that, goal, qa)
        squared = ZERO
        for k in range(dof):
            squared += (qa[k] - qb[k]) * (qa[k] - qb[k])
        fill(T, w, 0, goal, squared, reach, qb, lane)


@njit
def propose(T, w, number, seed, low, high, reach, nodes, count, offset, qa, qb, distances, lane):
    """Draw samples for slot w, from `number` on, until one lies in the domain of its nearest node; the step from there."""
    for t in range(TRIES):
        sample(seed, number + t, low, high, qb)
        parent, squared = nearest(nodes, count, qb, distances, lane)
        distance = math.sqrt(squared)
        if distance <= T.domain[offset + parent]:
            load(nodes, parent, qa)
            steer(qa, qb, distance, reach)
            for k in range(lane, len(qb), lane_count()):
                T.q[w * len(qb) + k] = qb[k]
            if lane == 0:
                T.fate[w], T.parent[w] = PROPOSED, parent
            return


@njit
def fill(T, w, parent, target, squared, reach, q, lane):
    steps = max(1, int(math.ceil(min(math.sqrt(squared) / reach, MOST_STEPS))))
    for k in range(lane, len(q), lane_count()):
        T.q[w * len(q) + k] = q[k]
    if lane == 0:
        T.fate[w], T.parent[w], T.target[w], T.steps[w], T.reached[w] = GROWN, parent, target, steps, steps


@njit
def outcome(T, batch, smaller, straight, dof, capacity, weights, lane):
    """-> how many nodes a round adds to each tree, and the slot that joins them at the least cost, or -1."""
    new_a, new_b, best, winner = 0, 0, FAR, -1
    for w in range(lane, batch, lane_count()):
        if T.fate[w] == GROWN:
            tree, reached = tree_of(w, smaller, straight), int(T.reached[w])
            grown = 0 if straight else 1
            new_a += grown if tree == 0 else reached
            new_b += reached if tree == 0 else grown
            if reached == T.steps[w]:
                cost = T.cost[(1 - tree) * capacity + T.target[w]] + T.cost[tree * capacity + T.parent[w]]
                cost += leg(T.nodes[tree * capacity * dof:], T.parent[w], T.q[w * dof:], weights)
                cost += leg(T.nodes[(1 - tree) * capacity * dof:], T.target[w], T.q[w * dof:], weights)
                if cost < best:
                    best, winner = cost, w
    best, winner = least_lane(best, winner)
    return sum_lanes(new_a), sum_lanes(new_b), winner


@njit
def append(T, batch, smaller, straight, count_a, count_b, dof, capacity, radius, weights, worker, workers, lane):
    """Give the nodes of a round their places: those of slot w follow those of the slots before it."""
    for w in range(worker, batch, workers):
        tree, reached, steps, target = tree_of(w, smaller, straight), int(T.reached[w]), int(T.steps[w]), int(T.target[w])
        if T.fate[w] == BLOCKED and radius > ZERO and lane == 0:
            T.domain[tree * capacity + T.parent[w]] = radius
        if T.fate[w] == GROWN:
            a, b = 0, 0
            for v in range(lane, w, lane_count()):
                if T.fate[v] == GROWN:
                    same = tree_of(v, smaller, straight) == tree
                    grown, met = 0 if straight else 1, int(T.reached[v])
                    a += grown if same else met
                    b += met if same else grown
            a, b = sum_lanes(a), sum_lanes(b)
            a, b = (count_a + a, count_b + b) if tree == 0 else (count_b + a, count_a + b)
            q = T.q[w * dof:(w + 1) * dof]
            this, that = tree * capacity, (1 - tree) * capacity
            if not straight:
                for k in range(lane, dof, lane_count()):
                    T.nodes[this * dof + place(a, k, dof)] = q[k]
                if lane == 0:
                    parent = T.parent[w]
                    T.cost[this + a] = T.cost[this + parent] + leg(T.nodes[this * dof:], parent, q, weights)
                    T.domain[this + a], T.parents[this + a] = FAR, parent
            whole = leg(T.nodes[that * dof:], target, q, weights)
            for i in range(lane, reached, lane_count()):
                part = np.float32(i + 1) / np.float32(steps)
                for k in range(dof):
                    near = T.nodes[that * dof + place(target, k, dof)]
                    T.nodes[that * dof + place(b + i, k, dof)] = near + part * (q[k] - near) if i + 1 < steps else q[k]
                T.cost[that + b + i] = T.cost[that + target] + part * whole
                T.domain[that + b + i], T.parents[that + b + i] = FAR, target if i == 0 else b + i - 1


@njit
def trace(T, N, dof, capacity, w, direct, room, path):
    """Write the path that slot w closed to `path`, (length, dof), and the goal's number to N[ROOT]; -> its length, 0: no room."""
    tree = tree_of(w, N[SMALLER], direct)
    at_start, at_goal = (T.parent[w], T.target[w]) if tree == 0 else (T.target[w], T.parent[w])
    before, after, node = 0, 0, at_start
    while node >= 0:
        before, node = before + 1, T.parents[node]
    node = at_goal
    while node >= 0:
        after, node = after + 1, T.parents[capacity + node]
    N[ROOT] = -1 - node
    middle = 0 if direct else 1
    if before + middle + after > room:
        return 0
    node = at_start
    for i in range(before):
        for k in range(dof):
            path[(before - 1 - i) * dof + k] = T.nodes[place(node, k, dof)]
        node = T.parents[node]
    if not direct:
        for k in range(dof):
            path[before * dof + k] = T.q[w * dof + k]
    node = at_goal
    for i in range(before + middle, before + middle + after):
        for k in range(dof):
            path[i * dof + k] = T.nodes[capacity * dof + place(node, k, dof)]
        node = T.parents[capacity + node]
    return before + middle + after


@njit
def tree_of(w, smaller, straight):
    """The tree that slot w of a round extends."""
    return 0 if straight else (smaller + w) & 1


@njit
def load(nodes, i, q):
    for k in range(len(q)):
        q[k] = nodes[place(i, k, len(q))]


@njit
def steer(near, q, distance, reach):
    """Move q along the line from `near` so that it is at most `reach` away."""
    if distance > reach:
        part = reach / distance
        for k in range(len(near)):
            q[k] = near[k] + part * (q[k] - near[k])


@njit
def between(nodes, i, q, part, parts, out):
    """The point `part` of `parts` from node i to q."""
    share = np.float32(part) / np.float32(parts)
    for k in range(len(out)):
        near = nodes[place(i, k, len(out))]
        out[k] = q[k] if part == parts else near + share * (q[k] - near)


@njit
def leg(nodes, i, q, weights):
    """Cost of the straight motion between node i and q."""
    squared = ZERO
    for k in range(len(weights)):
        d = nodes[place(i, k, len(weights))] - q[k]
        squared += weights[k] * d * d
    return math.sqrt(squared)
