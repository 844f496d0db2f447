"""Goals that are no agent's own: one sink for all, and tiles for any of them."""

import time

import numpy as np

from ..errors import GridMapError
from . import exchange, lacam, sink
from .clock import late, part_of
from .improving import places_of, timed
from .instance import Instance
from .plan import PARTLY, STATUS_TEXT, STUCK, FleetPlan, FleetStatus
from .search import OUT_OF_TIME
from .ways import steps_down, way_to

WALK_SHARE = 0.5  # of the time, for the way of all agents into a sink


def into_sink(instance, faces, model, began, deadline):
    """All agents queue into one tile."""
    n, some = len(instance.start), np.flatnonzero(instance.goal >= 0)
    costs, bounds, status = np.zeros(n, np.int64), np.zeros(n, np.int64), instance.status.copy()
    tiles, facing = instance.start[None].copy(), faces[None].copy()
    if len(some):
        goal = instance.goal[some[:1]]
        nearer, steps, in_time = way_to(goal[0], instance.ground, deadline)
        alone = steps[instance.start[some]]
        if not in_time:
            alone = np.abs(instance.place[instance.start[some]] - instance.place[goal]).sum(axis=1).astype(np.int32)
        field = np.zeros(len(some), np.int32)
        task = lacam.Task(instance.goal[some], field, nearer[None], field, model.following, False, model.turning)
        count = np.zeros(7, np.int64)
        count[lacam.RANDOM] = 1
        scratch = lacam.new_scratch(len(some), len(instance.place))
        most = int(alone.max()) + len(some) + 1
        stop = part_of(deadline, WALK_SHARE)
        walked = sink.queue_up(instance.start[some], alone.copy(), most, task, instance.ground, scratch, count, stop)
        tiles = np.repeat(tiles, len(walked), axis=0)
        tiles[:, some] = walked
        leaves = instance.goal >= 0
        leaves[some] = arrived = (walked == goal[0]).any(axis=0)
        tiles, facing = timed(instance, tiles, faces, model, leaves)
        there = tiles == goal[0]
        costs[some] = np.argmax(there[:, some], axis=0)
        status[some[~there[:, some].any(axis=0)]] = FleetStatus.NOT_REACHED
        bounds[some[np.lexsort((costs[some], ~arrived))]] = sink.earliest(alone)
        last = int(costs.max()) + 1
        tiles, facing = tiles[:last], facing[:last]
    goals = np.full((len(instance.goal), 2), -1, np.int32)
    goals[instance.goal >= 0] = instance.place[instance.goal[instance.goal >= 0]]
    taken = time.perf_counter() - began
    message = "solved" if (status == FleetStatus.SOLVED).all() else PARTLY
    if (status == FleetStatus.NOT_REACHED).any():
        message = OUT_OF_TIME if late(stop) else STUCK
    return FleetPlan(status, places_of(instance, tiles), facing, goals, costs, bounds, taken, taken, message)


def assigned(tiles, places, ends, deadline):
    """-> Instance whose agents, at places (N, 2), each have one of the tiles `ends` (M, 2). tiles: of ways.ground_of"""
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
    row, col = ends.astype(np.int64).T
    instance.bound = np.zeros(len(places), np.int64)
    ground = instance.ground
    given, instance.bound[some] = exchange.assign(
        instance.start[some], instance.number[row, col], ground.near, ground.part, deadline
    )
    instance.goal[some] = given
    instance.status[some[given < 0]] = FleetStatus.NO_PATH
    return instance


def exchanged(instance, memory_limit_bytes, deadline):
    """TSWAP -> (steps + 1, N) tiles, what happened; the agents' goals become those that they end with"""
    some = np.flatnonzero(instance.start >= 0)
    goal, field = instance.goal[some], instance.field[some]
    steps = 64
    while True:
        ends, rows = goal.copy(), field.copy()
        walked = exchange.walk(instance.start[some], ends, rows, instance.nearer, instance.ground.near, steps, deadline)
        done = bool(((ends < 0) | (walked[-1] == ends)).all())
        if done or late(deadline) or 8 * steps * len(some) > memory_limit_bytes:
            break
        steps *= 2
    instance.goal[some], instance.field[some] = ends, rows
    instance.status[some] = np.where(ends >= 0, FleetStatus.SOLVED, FleetStatus.NO_PATH)
    instance.alone[some] = steps_down(instance.start[some], ends, rows, instance.nearer, instance.ground.near)
    tiles = np.repeat(instance.start[None], len(walked), axis=0)
    tiles[:, some] = walked
    return tiles, "solved" if done else OUT_OF_TIME if late(deadline) else STUCK
