"""RRT-Connect from request to answer, compiled: one query, or many one after the other."""

from typing import NamedTuple

import numpy as np

from ....device import lean_njit
from ....parallel.layout import Int32, ints, layout
from ....parallel.sampling import joined_halves
from ....parallel.team import add, clock_ns, deadline_in, lane_count, meet, sum_lanes
from ...spaces.interface import Space
from ..node_store import Desk
from ..shorten import POINTS, Task, open_cuts, shorten
from .request import (
    ANSWER,
    FULL,
    HEAD,
    INTS,
    LEFT_MS,
    SOLVED,
    Answer,
    bounds_sizes,
    open_bounds,
    open_request,
    write_answer,
)
from .search import path, search
from .state import CORNERS, Buffers, open_search, slots_sizes, tree_sizes

TEAM = 2  # int32 of a team: its barrier, and the request that it is at


class Queue(NamedTuple):
    """What all teams of a launch share. keep: has each request trees of its own, which stay? Else each team has"""

    taken: np.ndarray = ints("1")  # requests so far
    written: np.ndarray = ints("1")  # numbers of Requests.paths so far
    asked: Int32 = ints()  # requests
    row: Int32 = ints()  # length of a float32 request
    work_floats: Int32 = ints()  # lengths of what a team works in
    work_ints: Int32 = ints()
    blocks: Int32 = ints()  # of a team
    keep: Int32 = ints()
    teams: Int32 = ints()
    numbers: np.ndarray = ints("asked")  # of the requests
    barriers: np.ndarray = ints("TEAM * teams")


queue_sizes, open_queue = layout(Queue, "asked teams")


class Requests(NamedTuple):
    """The requests of a launch, and room for their paths: one for which there is no room ends as FULL.

    rows: float32, queue.row numbers each; ints: INTS each; paths: float32. All share the first one's deadline
    """

    queue: Queue
    rows: np.ndarray
    ints: np.ndarray
    paths: np.ndarray


@lean_njit
def solve_one(row, ints, paths, floats, desk, worker):
    """Answer the request `row`, `ints` there; the path goes to `paths`.

    floats and worker.memory: the state (`state_sizes`); desk.space: the scene; mode and step are the request's
    """
    search_one(row, ints, paths, floats, desk, worker)
    shorten_one(row, ints, paths, floats, desk, worker)


@lean_njit
def search_one(row, ints, paths, floats, desk, worker):
    """The first half of `solve_one`: the path is raw. On CUDA each half is a kernel."""
    request = open_request(row, ints)
    deadline = deadline_in(request.left_ms)
    status, s, cuts, length = find(row, request, buffers_of(request, floats, worker), desk, deadline, worker)
    if worker.number == 0:
        for k in range(worker.lane, length * request.dof, lane_count()):
            paths[k] = cuts.paths[k]
        if worker.lane == 0:
            ints[LEFT_MS] = max((deadline - clock_ns()) // 1_000_000, 0)  # for the other half
            drawn = min(int(s.board.drawn[0]), request.until)
            write_answer(ints, Answer(status, int(s.board.goal[0]), drawn, length, 0))


@lean_njit
def shorten_one(row, ints, paths, floats, desk, worker):
    """The second half of `solve_one`: shorten the path that `search_one` found and left in the state, if there is one.

    No worker changes the answer before all have read it, since they meet while they shorten."""
    request, length = open_request(row, ints), int(ints[ANSWER + 3])
    deadline = deadline_in(request.left_ms)
    buffers, own = buffers_of(request, floats, worker), desk_in(request, desk)
    s, cuts = open_search(request, buffers, own, deadline, worker)
    at, length = shorten(task_of(request, s.bounds.weights, length, deadline), cuts, s.desk, worker)
    if worker.number == 0:
        for k in range(worker.lane, length * request.dof, lane_count()):
            paths[k] = cuts.paths[at + k]
        if worker.lane == 0:
            ints[ANSWER + 3] = length


@lean_njit
def buffers_of(request, floats, worker):
    """The Buffers of a single search: `floats` and the worker's memory, the trees before the rest."""
    n_floats, n_ints = tree_sizes(request.dof, request.capacity)
    return Buffers(floats[:n_floats], worker.memory[:n_ints], floats[n_floats:], worker.memory[n_ints:])


@lean_njit
def solve_many(requests, tree_floats, tree_ints, floats, desk, worker, team):
    """Answer requests one after the other until all are taken, as team number `team`. Paths are not shortened.

    tree_floats, tree_ints: of all requests, or of all teams;  floats, worker.memory: what the team works in
    """
    queue = requests.queue
    first = open_request(requests.rows, requests.ints)
    deadline = deadline_in(first.left_ms)
    n_floats, n_ints = tree_sizes(first.dof, first.capacity)
    while True:
        p = take(queue, worker)
        if p < 0:
            return
        row = requests.rows[p * queue.row : (p + 1) * queue.row]
        request = open_request(row, requests.ints[p * INTS : (p + 1) * INTS])
        at = request.trees if queue.keep != 0 else int(team)
        own_floats = tree_floats[at * n_floats : (at + 1) * n_floats]
        own_ints = tree_ints[at * n_ints : (at + 1) * n_ints]
        buffers = Buffers(own_floats, own_ints, floats, worker.memory)
        status, s, cuts, length = find(row, request, buffers, desk, deadline, worker)
        if worker.number == 0:
            found = Answer(status, int(s.board.goal[0]), min(int(s.board.drawn[0]), request.until), length, 0)
            write_path(requests, p, found, cuts.paths, worker.lane)


@lean_njit
def shorten_many(requests, floats, desk, worker):
    """Shorten the paths of requests that are solved, one after the other until all are taken."""
    queue, paths = requests.queue, requests.paths
    deadline = deadline_in(open_request(requests.rows, requests.ints).left_ms)
    while True:
        p = take(queue, worker)
        if p < 0:
            return
        row, own = requests.rows[p * queue.row : (p + 1) * queue.row], requests.ints[p * INTS : (p + 1) * INTS]
        request = open_request(row, own)
        old = Answer(SOLVED, int(own[ANSWER + 1]), int(own[ANSWER + 2]), int(own[ANSWER + 3]), int(own[ANSWER + 4]))
        size = old.length * request.dof
        cuts = open_cuts(floats[bounds_sizes(request.dof)[0] :], worker.memory, request.dof, CORNERS, worker)
        if worker.number == 0:
            bring_bounds(row, floats, request.dof, worker.lane)
            for k in range(worker.lane, size, lane_count()):
                cuts.paths[k] = paths[old.path_at + k]
        meet(worker)
        weights = open_bounds(floats, request.dof).weights
        own_desk = desk_in(request, desk)
        first, length = shorten(task_of(request, weights, old.length, deadline), cuts, own_desk, worker)
        if worker.number == 0:
            new = cuts.paths[first : first + length * request.dof]
            if len(new) > size:  # it has more corners than before
                write_path(requests, p, Answer(SOLVED, old.goal, old.samples, length, 0), new, worker.lane)
            else:
                for k in range(worker.lane, len(new), lane_count()):
                    paths[old.path_at + k] = new[k]
                if worker.lane == 0:
                    own[ANSWER + 3] = length


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
def write_path(requests, p, found, path, lane):
    """Write the answer of request p, and its path to where there is room. found: the Answer but for path_at"""
    ints, paths, at = requests.ints[p * INTS : (p + 1) * INTS], requests.paths, 0
    size = found.length * int(ints[0])
    if lane == 0:
        at = add(requests.queue.written, 0, size)
        if at + size > len(paths):
            size = 0
            write_answer(ints, Answer(FULL, found.goal, found.samples, 0, at))
        else:
            write_answer(ints, Answer(found.status, found.goal, found.samples, found.length, at))
    at, size = sum_lanes(at), sum_lanes(size if lane == 0 else 0)
    for k in range(lane, size, lane_count()):
        paths[at + k] = path[k]


@lean_njit
def find(row, request, buffers, desk, deadline, worker):
    """Search until the deadline -> status, Search, Cuts with the path in front, its number of corners."""
    dof, length = request.dof, 0
    if worker.number == 0:
        bring_bounds(row, buffers.floats[slots_sizes(dof, request.batch)[0] :], dof, worker.lane)
    meet(worker)
    s, cuts = open_search(request, buffers, desk_in(request, desk), deadline, worker)
    status, winner, now = search(s, row[HEAD + bounds_sizes(dof)[0] :])
    if status == SOLVED:
        if worker.number == 0 and worker.lane == 0:
            s.board.corners[0] = path(s, now, winner, CORNERS - POINTS, cuts.paths)
        meet(worker)
        length = int(s.board.corners[0])
        if length == 0:
            status = FULL
    return status, s, cuts, length


@lean_njit
def bring_bounds(row, floats, dof, lane):
    """Copy a request's Bounds to the beginning of `floats`: closer than the host's memory."""
    for k in range(lane, bounds_sizes(dof)[0], lane_count()):
        floats[k] = row[HEAD + k]


@lean_njit
def desk_in(request, desk):
    """The desk in the scene of a request."""
    floats, ints = desk.space.floats[request.scene_floats :], desk.space.ints[request.scene_ints :]
    return Desk(Space(request.mode, request.step, floats, ints, desk.space.scratch), desk.a, desk.b, desk.squared)


@lean_njit
def task_of(request, weights, length, deadline):
    """The Task to shorten a path of so many corners."""
    seed = joined_halves(request.seed_low, request.seed_high)
    return Task(length, CORNERS, request.passes, request.split, deadline, seed, weights)
