"""Goals that are no agent's own: one sink for all, and tiles for any of them.

Agents queue into a sink, one in a step. All use the same field and the nearest goes first, with nobody in its way; so
in every step an agent comes nearer, and all arrive. The lower bound lets all walk freely and queue only at the sink.

Agents that may stand on any of some tiles exchange them by TSWAP (Okumura and Défago, ICAPS 2022). Every agent is given
a tile and walks to it. One that meets another that has arrived exchanges tiles with it, and agents that block each
other in a ring hand theirs on. So all agents arrive wherever each can reach its first tile.
"""

import numpy as np

from ...device import lean_njit, njit
from ...errors import GridMapError
from ...parallel.team import clock_ns
from ..fields.next_hops import NOBODY, direction_to, next_hops_to, steps_down
from .fleet_plan import OUT_OF_TIME, STATUS_TEXT, STUCK, FleetStatus
from .instance import Instance
from .moves import UNDECIDED, Step, Task, move, new_mover
from .retime import timed


def into_sink(instance, faces, model, began, deadline):
    """-> FleetPlan in which all agents queue into one tile"""
    n, some = len(instance.start), np.flatnonzero(instance.goal >= 0)
    costs, bounds, message = np.zeros(n, np.int64), np.zeros(n, np.int64), "solved"
    tiles, facing = instance.start[:, None], faces[:, None].astype(np.uint8)
    if len(some):
        goal = instance.goal[some[:1]]
        next_hops, steps, in_time = next_hops_to(goal[0], instance.ground, deadline)
        alone = steps[instance.start[some]]
        if not in_time:
            alone = np.abs(instance.place[instance.start[some]] - instance.place[goal]).sum(axis=1).astype(np.int32)
        field = np.zeros(len(some), np.int32)
        task = Task(instance.goal[some], field, next_hops[None], model.following, False, model.turning, False)
        most, mover = int(alone.max()) + len(some) + 1, new_mover(task, instance.ground, 1)
        cell_ns = model.cell_ns // 2  # half of the agents are gone, on average
        walked = _queue_up(instance.start[some], alone.copy(), most, mover, deadline, cell_ns)
        whole = np.repeat(instance.start[None], len(walked), axis=0)
        whole[:, some] = walked
        leaves = instance.goal >= 0
        leaves[some] = arrived = (walked == goal[0]).any(axis=0)
        tiles, facing, ends, is_whole = timed(instance, whole, faces, model, leaves, deadline)
        if not is_whole:
            arrived &= (tiles[some] == goal[0]).any(axis=1)
        if not arrived.all():
            message = OUT_OF_TIME if len(walked) <= most or not is_whole else STUCK
        costs[some] = np.where(arrived, ends[some], tiles.shape[1])
        bounds[some[np.argsort(costs[some], kind="stable")]] = _earliest(alone)
        last = int(costs[some][arrived].max(initial=0)) + 1
        tiles, facing = tiles[:, :last], facing[:, :last]
    positions, headings = instance.told(tiles, facing, deadline)
    return instance.plan_of(positions, headings, costs, bounds, message, began)


@njit
def _queue_up(start, steps_to_go, most, mover, deadline, cell_ns):
    """start: (N,) int32 tiles; steps_to_go: (N,) int32, changed; mover: whose task's goals are all the sink
    cell_ns: of Model

    -> (steps + 1, N) int32 tiles, -1 after an agent has been at the sink
    """
    task, neighbour, agents, sink = mover.task, mover.ground.neighbour, len(start), mover.task.goal[0]
    tiles = np.empty((most + 1, agents), np.int32)
    tiles[0] = start
    then, left = np.empty(agents, np.int32), agents
    for step in range(most):
        if left == 0 or clock_ns() + cell_ns * step * agents > deadline:
            return tiles[: step + 1].copy()
        now = tiles[step]
        tiles[step + 1] = -1
        doing = Step(then, now, tiles[max(0, step - 1)])
        left = 0
        for a in range(agents):
            then[a] = UNDECIDED
            if now[a] >= 0 and now[a] != sink:
                mover.now[now[a]] = a
                left += 1
        order = np.argsort(steps_to_go, kind="mergesort")
        for a in order:
            if now[a] >= 0 and now[a] != sink and then[a] == UNDECIDED:
                move(a, mover, doing)
        for a in range(agents):
            if now[a] < 0 or now[a] == sink:
                continue
            direction = direction_to(now[a], then[a], neighbour)
            if direction >= 0:
                steps_to_go[a] += -1 if (task.next_hops[task.field[a], now[a]] >> direction) & 1 else 1
            mover.now[now[a]] = mover.then[then[a]] = mover.then[now[a]] = NOBODY
            tiles[step + 1, a] = then[a]
    return tiles


def _earliest(steps: np.ndarray) -> np.ndarray:
    """steps: (N,) of each agent alone -> (N,) int64, when the first, second, ... can be at a sink at the earliest"""
    rank = np.arange(len(steps))
    return np.maximum.accumulate(np.sort(steps).astype(np.int64) - rank) + rank


def assigned(tiles, places, ends, deadline):
    """-> Instance of agents at places (N, 2), each with one of the tiles `ends` (M, 2). tiles: of ground_of"""
    bad = Instance(tiles, ends, ends).status
    for row in np.flatnonzero(bad != FleetStatus.SOLVED):
        text = STATUS_TEXT[FleetStatus(int(bad[row]))].replace("the start", "it")
        same = bad[row] == FleetStatus.SAME_START
        raise GridMapError(f"goals[{row}] is {ends[row].tolist()}: {'another row has that tile' if same else text}")
    if len(ends) < len(places):
        raise GridMapError(f"goals has {len(ends)} rows; allowed: {len(places)} at least, one for each agent")
    instance = Instance(tiles, places, places)
    some = np.flatnonzero(instance.start >= 0)
    instance.goal[:] = -1
    instance.bound = np.zeros(len(places), np.int64)
    targets = instance.number[tuple(ends.astype(np.int64).T)]
    given, instance.bound[some] = _assign(instance.start[some], targets, instance.ground, deadline)
    instance.goal[some] = given
    instance.status[some[given < 0]] = FleetStatus.NO_PATH
    return instance


def exchanged(instance, model, memory_limit_bytes, deadline):
    """TSWAP -> (steps + 1, N) tiles, what happened; the agents' goals become those that they end with"""
    some = np.flatnonzero(instance.start >= 0)
    goal, field = instance.goal[some], instance.field[some]
    steps = 64
    while True:
        ends, rows, at = goal.copy(), field.copy(), instance.start[some]
        mover = new_mover(Task(ends, rows, instance.next_hops, True, False, False, False), instance.ground, 1)
        mover.now[at] = np.arange(len(at))
        walked = _exchange(at, mover, steps, deadline, model.cell_ns)
        done = bool(((ends < 0) | (walked[-1] == ends)).all())
        in_time = len(walked) > steps
        if done or not in_time or 8 * steps * len(some) > memory_limit_bytes:
            break
        steps *= 2
    instance.goal[some], instance.field[some] = ends, rows
    instance.status[some] = np.where(ends >= 0, FleetStatus.SOLVED, FleetStatus.NO_PATH)
    instance.alone[some] = steps_down(instance.start[some], ends, rows, instance.next_hops, instance.ground.neighbour)
    tiles = np.repeat(instance.start[None], len(walked), axis=0)
    tiles[:, some] = walked
    return tiles, "solved" if done else STUCK if in_time else OUT_OF_TIME


@njit
def _assign(start, targets, ground, deadline):
    """Give every agent the nearest tile that is left; after the deadline, any that it can reach.

    start: (N,) int32 tiles; targets: (M,) int32 tiles
    -> (N,) int32 tiles, -1 where none is left that the agent can reach; (N,) int32 steps to the nearest of all targets,
    0 after the deadline
    """
    neighbour, part, count = ground.neighbour, ground.part, len(ground.neighbour) - 1
    free, is_target = np.zeros(count, np.uint8), np.zeros(count, np.uint8)
    for target in targets:
        free[target] = is_target[target] = 1
    given, nearest = np.full(len(start), -1, np.int32), np.zeros(len(start), np.int32)
    seen, queue, steps = np.full(count, -1, np.int32), np.empty(count, np.int32), np.zeros(count, np.int32)
    late = np.zeros(part.max() + 1, np.int64)  # by part, the first target that may be left after the deadline
    for a in range(len(start)):
        if clock_ns() > deadline:
            at = late[part[start[a]]]
            while at < len(targets) and not (free[targets[at]] and part[targets[at]] == part[start[a]]):
                at += 1
            late[part[start[a]]] = at
            if at < len(targets):
                given[a], free[targets[at]] = targets[at], 0
            continue
        queue[0], seen[start[a]], steps[start[a]] = start[a], a, 0
        done, waiting, first = 0, 1, True
        while done < waiting:
            tile = queue[done]
            done += 1
            if is_target[tile] and first:
                nearest[a], first = steps[tile], False
            if free[tile]:
                given[a], free[tile] = tile, 0
                break
            for direction in range(4):
                there = neighbour[tile, direction]
                if there < count and seen[there] != a:
                    seen[there], steps[there] = a, steps[tile] + 1
                    queue[waiting] = there
                    waiting += 1
    return given, nearest


@njit
def _exchange(at, mover, most, deadline, cell_ns):
    """Let agents walk to their tiles and exchange these; one without a goal stands until another one hands it a goal.

    at: (N,) int32 tiles where they are, changed, as the mover's `now` and its task's `goal` and `field`
    cell_ns: of Model

    -> (steps + 1, N) int32 tiles, at most `most` steps
    """
    goal = mover.task.goal
    tiles = np.empty((most + 1, len(at)), np.int32)
    tiles[0] = at
    for step in range(most):
        waiting = 0
        for a in range(len(at)):
            waiting += goal[a] >= 0 and at[a] != goal[a]
        if waiting == 0 or clock_ns() + cell_ns * step * len(at) > deadline:
            return tiles[: step + 1].copy()
        for a in range(len(at)):
            _act(a, at, mover)
        tiles[step + 1] = at
    return tiles


@lean_njit
def _next(a, at, mover):
    """The neighbour that an agent wants: a nearer one where nobody is, else the first nearer one."""
    first, tile, task = -1, at[a], mover.task
    for direction in range(4):
        if (task.next_hops[task.field[a], tile] >> direction) & 1:
            there = mover.ground.neighbour[tile, direction]
            if mover.now[there] == NOBODY:
                return there
            if first < 0:
                first = there
    return first


@lean_njit
def _act(a, at, mover):
    """Let an agent exchange tiles until it has walked or can do nothing."""
    goal, field, now = mover.task.goal, mover.task.field, mover.now
    for _ in range(len(at) + 1):
        if goal[a] < 0 or at[a] == goal[a]:
            return
        there = _next(a, at, mover)
        other = now[there]
        if other == NOBODY:
            now[at[a]], now[there] = NOBODY, a
            at[a] = there
            return
        if goal[other] < 0 or at[other] == goal[other]:
            goal[a], goal[other] = goal[other], goal[a]
            field[a], field[other] = field[other], field[a]
            return
        last, length = other, 1
        while last != a and length <= len(at):
            if goal[last] < 0 or at[last] == goal[last]:
                return
            last = now[_next(np.int64(last), at, mover)]
            length += 1
            if last == NOBODY:
                return
        if last != a:
            return
        end_goal, end_field, last = goal[a], field[a], other
        while last != a:  # around the ring each takes the goal of the one behind it
            after = now[_next(np.int64(last), at, mover)]
            goal[last], end_goal = end_goal, goal[last]
            field[last], end_field = end_field, field[last]
            last = after
        goal[a], field[a] = end_goal, end_field
