"""RRT-Connect from request to answer, compiled: one query, or many one after the other."""

from typing import NamedTuple

import numpy as np

from ....device import lean_njit
from ....parallel.team import add, deadline_in, lane_count, meet, sum_lanes
from ...spaces.interface import Space
from ..node_store import Desk, load
from ..shorten import POINTS, Task, open_cuts, shorten
from .request import ANSWER, FULL, INTS, SOLVED, Answer, read_order, read_request, shared_size, write_answer
from .search import copy_all, search, tree_of
from .state import CORNERS, Buffers, divided, open_search, slot_at, tree_at, tree_sizes

QUEUE = 8  # numbers of a Queue, before those of its requests
TEAM = 2  # int32 of each team behind them: its barrier, and the request that it is at


class Queue(NamedTuple):
    """What all teams of a launch share, int32.

    taken, written: (1,) requests, and numbers of `paths`, so far; numbers: (asked,) of the requests
    asked: how many; row: length of a float32 request; floats, ints: lengths of what a team works in
    blocks: of a team; keep: has each request trees of its own, which stay? Else each team has
    """

    taken: np.ndarray
    written: np.ndarray
    numbers: np.ndarray
    asked: int
    row: int
    floats: int
    ints: int
    blocks: int
    keep: int


@lean_njit
def open_queue(counters):
    """The beginning of `counters`, int32, as a Queue."""
    return Queue(
        counters[0:1],
        counters[1:2],
        counters[QUEUE:],
        counters[2],
        counters[3],
        counters[4],
        counters[5],
        counters[6],
        counters[7],
    )


@lean_njit
def take(queue, worker):
    """-> the number of the team's next request; -1: all are taken. worker.barrier: the team's TEAM numbers"""
    if worker.number == 0 and worker.lane == 0:
        worker.barrier[1] = add(queue.taken, 0, 1)
    meet(worker)
    at = int(worker.barrier[1])
    meet(worker)
    return int(queue.numbers[at]) if at < queue.asked else -1


@lean_njit
def solve_one(row, ints, paths, floats, desk, worker):
    """Answer the request `row`, `ints` there; the path goes to `paths`.

    floats and worker.memory: the state (`state_sizes`); desk.space: the scene; mode and step are the request's
    """
    order = read_order(ints)
    buffers = divided(floats, worker.memory, order.dof, order.capacity)
    deadline = deadline_in(order.left_ms)
    status, s, cuts, length = find(row, order, buffers, desk, deadline, worker)
    at, length = shorter(s.request, cuts, length, s.desk, deadline, worker)
    if worker.number == 0:
        for k in range(worker.lane, length * order.dof, lane_count()):
            paths[k] = cuts.paths[at + k]
        if worker.lane == 0:
            drawn = min(int(s.board.drawn[0]), order.until)
            write_answer(ints, Answer(status, int(s.board.goal[0]), drawn, length, 0))


@lean_njit
def solve_many(rows, ints, paths, queue, tree_floats, tree_ints, floats, desk, worker, team):
    """Answer requests, rows of `rows` and `ints`, one after the other until all are taken, as team number `team`. Paths
    are not shortened.

    paths: room for all paths: one for which there is no room counts as FULL. The limit is the first one's.
    tree_floats, tree_ints: of all requests, or of all teams;  floats, worker.memory: what the team works in
    """
    first = read_order(ints)
    deadline = deadline_in(first.left_ms)
    n_floats, n_ints = tree_sizes(first.dof, first.capacity)
    while True:
        p = take(queue, worker)
        if p < 0:
            return
        row, own = rows[p * queue.row : (p + 1) * queue.row], ints[p * INTS : (p + 1) * INTS]
        order = read_order(own)
        at = order.trees if queue.keep != 0 else int(team)
        buffers = Buffers(
            tree_floats[at * n_floats : (at + 1) * n_floats],
            tree_ints[at * n_ints : (at + 1) * n_ints],
            floats,
            worker.memory,
        )
        status, s, cuts, length = find(row, order, buffers, desk, deadline, worker)
        if worker.number == 0:
            drawn = min(int(s.board.drawn[0]), order.until)
            write_path(
                own, paths, queue, status, int(s.board.goal[0]), drawn, cuts.paths, length * order.dof, worker.lane
            )


@lean_njit
def write_path(ints, paths, queue, status, goal, drawn, path, size, lane):
    """Write an answer, and its path of so many numbers to where there is room."""
    at, dof = 0, ints[0]
    if lane == 0:
        at = add(queue.written, 0, size)
        if at + size > len(paths):
            status, size = FULL, 0
        write_answer(ints, Answer(status, goal, drawn, size // dof, at))
    at, size = sum_lanes(at), sum_lanes(size if lane == 0 else 0)
    for k in range(lane, size, lane_count()):
        paths[at + k] = path[k]


@lean_njit
def shorten_many(rows, ints, paths, queue, floats, desk, worker):
    """Shorten the paths of requests that are solved, one after the other until all are taken."""
    deadline = deadline_in(read_order(ints).left_ms)
    while True:
        p = take(queue, worker)
        if p < 0:
            return
        row, own = rows[p * queue.row : (p + 1) * queue.row], ints[p * INTS : (p + 1) * INTS]
        order = read_order(own)
        goal, drawn, length, at = int(own[ANSWER + 1]), int(own[ANSWER + 2]), int(own[ANSWER + 3]), int(own[ANSWER + 4])
        shared, size = shared_size(order.dof), length * order.dof
        cuts = open_cuts(floats[shared:], worker.memory, order.dof, CORNERS, worker)
        if worker.number == 0:
            for k in range(worker.lane, shared, lane_count()):
                floats[k] = row[k]
            for k in range(worker.lane, size, lane_count()):
                cuts.paths[k] = paths[at + k]
        meet(worker)
        request = read_request(order, floats)
        first, length = shorter(request, cuts, length, desk_in(order, request, desk), deadline, worker)
        if worker.number == 0:
            path = cuts.paths[first : first + length * order.dof]
            if len(path) > size:  # it has more corners than before
                write_path(own, paths, queue, SOLVED, goal, drawn, path, len(path), worker.lane)
            else:
                for k in range(worker.lane, len(path), lane_count()):
                    paths[at + k] = path[k]
                if worker.lane == 0:
                    own[ANSWER + 3] = length


@lean_njit
def find(row, order, buffers, desk, deadline, worker):
    """Search until the deadline -> status, Search, Cuts with the path in front, its number of corners."""
    shared, at = shared_size(order.dof), order.batch * order.dof  # behind the slots
    if worker.number == 0:  # closer than the host's memory
        for k in range(worker.lane, shared, lane_count()):
            buffers.floats[at + k] = row[k]
    meet(worker)
    request = read_request(order, buffers.floats[at:])
    s, cuts = open_search(request, buffers, desk_in(order, request, desk), deadline, worker)
    status, winner, now = search(s, row[shared:])
    length = 0
    if status == SOLVED:
        if worker.number == 0 and worker.lane == 0:
            s.board.corners[0] = trace(s, now, winner, CORNERS - POINTS, cuts.paths)
        meet(worker)
        length = int(s.board.corners[0])
        if length == 0:
            status = FULL
    return status, s, cuts, length


@lean_njit
def desk_in(order, request, desk):
    """The desk in the scene of a request."""
    floats, ints = desk.space.floats[order.scene_floats :], desk.space.ints[order.scene_ints :]
    return Desk(Space(request.mode, request.step, floats, ints, desk.space.scratch), desk.a, desk.b, desk.squared)


@lean_njit
def shorter(request, cuts, length, desk, deadline, worker):
    """Shorten the path in front of `cuts` until the deadline -> where in cuts.paths it begins, its corners."""
    task = Task(length, CORNERS, request.passes, request.split, deadline, request.seed, request.weights)
    return shorten(task, cuts, desk, worker)


@lean_njit
def trace(s, now, w, room, path):
    """Write the path that slot w closed to `path`, (length, dof), and the goal's number to the board -> its length, 0:
    no room."""
    dof, start, goals = s.request.dof, tree_at(s, 0), tree_at(s, 1)
    ends = int(s.slots.parent[w]), int(s.slots.target[w])
    at_start, at_goal = ends if tree_of(now, w) == 0 else (ends[1], ends[0])
    before, _ = chain(start.parents, at_start)
    after, root = chain(goals.parents, at_goal)
    s.board.goal[0] = -1 - root
    middle = 0 if now.straight else 1
    if before + middle + after > room:
        return 0
    node = at_start
    for i in range(before):
        load(start.nodes, node, path[(before - 1 - i) * dof : (before - i) * dof])
        node = start.parents[node]
    if not now.straight:
        copy_all(slot_at(s, w).q, path[before * dof : (before + 1) * dof])
    node = at_goal
    for i in range(before + middle, before + middle + after):
        load(goals.nodes, node, path[i * dof : (i + 1) * dof])
        node = goals.parents[node]
    return before + middle + after


@lean_njit
def chain(parents, node):
    """-> how many nodes lie on the way from a node to its root, and what stands at the root: -1 - its number."""
    length = 0
    while node >= 0:
        length, node = length + 1, int(parents[node])
    return length, node
