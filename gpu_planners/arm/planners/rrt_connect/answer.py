"""RRT-Connect from request to answer, compiled: teams search for paths, and shorten them, one request after the other.

On CUDA searching and shortening are a kernel each. A single problem is a queue of one, which all workers share.
"""

from ....device import lean_njit
from ....parallel.sampling import joined_halves
from ....parallel.team import Worker, add, clock_ns, deadline_in, lane_count, meet, sum_lanes
from ...spaces.interface import Space
from ..node_store import Desk
from ..shorten import POINTS, Task, open_cuts, shorten
from . import walk  # noqa: F401 - chooses what a search does by its space
from .request import ANSWER, FULL, HEAD, INTS, SOLVED, bounds_sizes, open_answer, open_bounds, open_queue, open_request
from .search import cut_across, path, search
from .state import CORNERS, TEAM, Buffers, open_search, slots_sizes, tree_sizes


@lean_njit
def solve_paths(floats, ints, own_floats, desk, worker):
    """Both halves of an answer, as the CPU does them."""
    search_paths(floats, ints, own_floats, desk, worker)
    shorten_paths(floats, ints, own_floats, desk, worker)


@lean_njit
def search_paths(floats, ints, own_floats, desk, worker):
    """Answer the requests of a Queue (see `host`); paths are raw."""
    queue = open_queue(floats, ints)
    first = open_request(queue.rows, queue.requests)
    deadline = deadline_in(int(queue.left_ms[0]))
    n_floats, n_ints = tree_sizes(first.dof, first.capacity)
    team, own_worker = team_of(queue, n_ints, worker)
    turn = 0
    while True:
        p = take(queue, team, turn, own_worker)
        if p < 0:
            return
        turn += 1
        row = queue.rows[p * queue.row : (p + 1) * queue.row]
        request = open_request(row, queue.requests[p * INTS : (p + 1) * INTS])
        dof, at = request.dof, request.trees if queue.keep != 0 else int(team)
        tree_ints = worker.memory[queue.barriers + at * n_ints : queue.barriers + (at + 1) * n_ints]
        work = own_floats[queue.trees * n_floats + team * queue.work_floats :]
        buffers = Buffers(own_floats[at * n_floats : (at + 1) * n_floats], tree_ints, work, own_worker.memory)
        if own_worker.number == 0:
            bring_bounds(row, work[slots_sizes(dof, request.batch, request.walk)[0] :], dof, own_worker.lane)
        meet(own_worker)
        s, cuts = open_search(request, row, buffers, desk_in(request, desk), deadline, own_worker)
        status, winner, now = search(s)
        length = 0
        if status == SOLVED:
            if own_worker.number == 0 and own_worker.lane == 0:
                s.board.corners[0] = path(s, now, winner, CORNERS - POINTS, cuts.paths)
            meet(own_worker)
            length = int(s.board.corners[0])
            if length == 0:
                status = FULL
            length = cut_across(s, now, length, cuts.paths)
        if own_worker.number == 0:
            drawn = min(int(s.board.drawn[0]), request.until)
            write_path(queue, p, status, int(s.board.goal[0]), drawn, length, cuts.paths, own_worker.lane)
            if own_worker.lane == 0:  # for the other half
                queue.left_ms[0] = max((deadline - clock_ns()) // 1_000_000, 0)


@lean_njit
def shorten_paths(floats, ints, own_floats, desk, worker):
    """Shorten the paths of the requests of a Queue, where they have one."""
    queue = open_queue(floats, ints)
    paths, first = queue.paths, open_request(queue.rows, queue.requests)
    deadline = deadline_in(int(queue.left_ms[0]))
    n_floats, n_ints = tree_sizes(first.dof, first.capacity)
    team, own_worker = team_of(queue, n_ints, worker)
    turn = 0
    while True:
        p = take(queue, team, turn, own_worker)
        if p < 0:
            return
        turn += 1
        row, own = queue.rows[p * queue.row : (p + 1) * queue.row], queue.requests[p * INTS : (p + 1) * INTS]
        request, answer = open_request(row, own), open_answer(own[ANSWER:])
        dof, length, at = request.dof, int(answer.length[0]), int(answer.path_at[0])
        if request.passes == 0 or length < 3:
            continue
        work = own_floats[queue.trees * n_floats + team * queue.work_floats :]
        cuts = open_cuts(work[bounds_sizes(dof)[0] :], own_worker.memory, dof, CORNERS, own_worker)
        if own_worker.number == 0:
            bring_bounds(row, work, dof, own_worker.lane)
            for k in range(own_worker.lane, length * dof, lane_count()):
                cuts.paths[k] = paths[at + k]
        meet(own_worker)
        weights, seed = open_bounds(work, dof).weights, joined_halves(request.seed_low, request.seed_high)
        task = Task(length, CORNERS, request.passes, request.split, deadline, seed, weights)
        begin, corners = shorten(task, cuts, desk_in(request, desk), own_worker)
        if own_worker.number == 0:
            new = cuts.paths[begin : begin + corners * dof]
            if corners > length:
                goal, samples = int(answer.goal[0]), int(answer.samples[0])
                write_path(queue, p, SOLVED, goal, samples, corners, new, own_worker.lane)
            else:
                for k in range(own_worker.lane, len(new), lane_count()):
                    paths[at + k] = new[k]
                if own_worker.lane == 0:
                    answer.length[0] = corners


@lean_njit
def team_of(queue, n_tree_ints, worker):
    """-> number of the worker's team, and the worker as a member of it, with what the team works in as its memory.

    n_tree_ints: of a search's trees
    """
    blocks = queue.blocks if queue.blocks > 0 else worker.blocks
    warps, team = worker.count // worker.blocks, worker.block // blocks
    work = queue.barriers + queue.trees * n_tree_ints + team * queue.work_ints
    return team, Worker(
        worker.number - team * blocks * warps,
        blocks * warps,
        worker.lane,
        worker.block - team * blocks,
        blocks,
        worker.memory[TEAM * team : TEAM * (team + 1)],
        worker.memory[work : work + queue.work_ints],
    )


@lean_njit
def take(queue, team, turn, worker):
    """-> the number of the team's next request, -1: all are taken. turn: how many it has had"""
    if queue.asked <= queue.teams:  # one each
        return int(queue.numbers[team]) if turn == 0 and team < queue.asked else -1
    if worker.number == 0 and worker.lane == 0:
        worker.barrier[1] = add(queue.taken, 0, 1)
    meet(worker)
    at = int(worker.barrier[1])
    meet(worker)
    return int(queue.numbers[at]) if at < queue.asked else -1


@lean_njit
def write_path(queue, p, status, goal, samples, length, path, lane):
    """Write the answer of request p, and its path to where there is room; the status last."""
    answer, paths, at = open_answer(queue.requests[p * INTS + ANSWER : (p + 1) * INTS]), queue.paths, 0
    size = length * queue.dof
    if lane == 0:
        at = add(queue.written, 0, size)
        if at + size > len(paths):
            size, length, status = 0, 0, FULL
        answer.goal[0], answer.samples[0], answer.length[0], answer.path_at[0] = goal, samples, length, at
        answer.status[0] = status
    at, size = sum_lanes(at), sum_lanes(size if lane == 0 else 0)
    for k in range(lane, size, lane_count()):
        paths[at + k] = path[k]


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
