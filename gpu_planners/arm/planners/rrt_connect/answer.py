"""RRT-Connect from request to answer, compiled: one query, or many one after the other."""

from typing import NamedTuple

import numpy as np

from ....device import lean_njit
from ....parallel.team import add, deadline_in, lane_count, meet, sum_lanes
from ...spaces.interface import Space
from ..node_store import Desk, load
from ..shorten import POINTS, Task, shorten
from .request import FULL, INTS, SOLVED, Answer, read_order, read_request, shared_size, write_answer
from .search import copy_all, search, tree_of
from .state import CORNERS, open_board, open_search, request_at, slot_at, tree_at

QUEUE = 7  # numbers of a Queue


class Queue(NamedTuple):
    """What all teams of `solve_many` share, int32: taken, written: (1,) requests and numbers of `paths` so far
    asked: requests; row: length of a float32 request; floats, ints: length of the buffers of a team; blocks: of a team
    """

    taken: np.ndarray
    written: np.ndarray
    asked: int
    row: int
    floats: int
    ints: int
    blocks: int


@lean_njit
def open_queue(counters):
    """The first QUEUE of `counters`, int32, as a Queue."""
    return Queue(counters[0:1], counters[1:2], counters[2], counters[3], counters[4], counters[5], counters[6])


@lean_njit
def solve_one(row, ints, paths, floats, desk, worker):
    """Answer the request `row`, `ints` there; the path goes to `paths`.

    floats and worker.memory: the state (`state_sizes`); desk.space: the scene; mode and step are the request's
    """
    order = read_order(ints)
    status, goal, drawn, path, length = plan(row, order, floats, desk, deadline_in(order.left_ms), worker)
    if worker.number == 0:
        for k in range(worker.lane, len(path), lane_count()):
            paths[k] = path[k]
        if worker.lane == 0:
            write_answer(ints, Answer(status, goal, min(drawn, order.until), length, 0))


@lean_njit
def solve_many(rows, ints, paths, queue, floats, desk, worker):
    """Answer requests, the rows of `rows` and `ints`, one after the other until all are taken; the team is one of many.

    paths: room for all paths: one for which there is no room counts as FULL. The limit is the first one's.
    """
    deadline, board = deadline_in(read_order(ints).left_ms), open_board(worker.memory)
    while True:
        if worker.number == 0 and worker.lane == 0:
            board.problem[0] = add(queue.taken, 0, 1)
        meet(worker)
        p = int(board.problem[0])
        meet(worker)
        if p >= queue.asked:
            return
        row, own = rows[p * queue.row : (p + 1) * queue.row], ints[p * INTS : (p + 1) * INTS]
        order = read_order(own)
        status, goal, drawn, path, length = plan(row, order, floats, desk, deadline, worker)
        if worker.number == 0:
            size, at = len(path), 0
            if worker.lane == 0:
                at = add(queue.written, 0, size)
                if at + size > len(paths):
                    status, length, size = FULL, 0, 0
                write_answer(own, Answer(status, goal, min(drawn, order.until), length, at))
            at, size = sum_lanes(at), sum_lanes(size if worker.lane == 0 else 0)
            for k in range(worker.lane, size, lane_count()):
                paths[at + k] = path[k]


@lean_njit
def plan(row, order, floats, desk, deadline, worker):
    """Search, and shorten the path until the deadline -> status, number of the goal, samples, path (length * dof,),
    length."""
    shared, at = shared_size(order.dof), request_at(order.dof, order.capacity, order.batch)
    if worker.number == 0:  # closer than the host's memory
        for k in range(worker.lane, shared, lane_count()):
            floats[at + k] = row[k]
    meet(worker)
    request = read_request(order, floats[at:])
    scene = Space(
        request.mode,
        request.step,
        desk.space.floats[order.scene_floats :],
        desk.space.ints[order.scene_ints :],
        desk.space.scratch,
    )
    s, cuts = open_search(request, floats, Desk(scene, desk.a, desk.b, desk.squared), deadline, worker)
    status, winner, now = search(s, row[shared:])
    at, length = 0, 0
    if status == SOLVED:
        if worker.number == 0 and worker.lane == 0:
            s.board.corners[0] = trace(s, now, winner, CORNERS - POINTS, cuts.paths)
        meet(worker)
        length = int(s.board.corners[0])
        if length == 0:
            status = FULL
        else:
            task = Task(length, CORNERS, request.passes, request.split, deadline, request.seed, request.weights)
            at, length = shorten(task, cuts, s.desk, worker)
    path = cuts.paths[at : at + length * request.dof]
    return status, int(s.board.goal[0]), int(s.board.drawn[0]), path, length


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
