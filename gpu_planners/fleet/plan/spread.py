"""Ways that spread agents over the map, so that few of them meet (space utilisation optimisation; Okumura, AAMAS 2024).

Each agent in turn looks for a path, at most a few steps longer than its shortest one, on which it meets as few others
as possible if all walk without waiting. PIBT then prefers each agent's own path. Of equal states a search takes the one
found last, so with nobody in the way it walks straight to the goal.
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit, njit
from ...parallel.team import clock_ns
from ..clock import late
from ..fields.next_hops import LANE_SHIFT, direction_to

MARGIN = 10  # steps beyond the shortest path
MOST_MEETINGS = 255  # that are told apart
SPREADS = 64  # paths spread out between two checks of the clock
MOST_SPREADS = 4  # rounds


class Crowd(NamedTuple):
    """Ways of all agents, up to step H."""

    goal: np.ndarray  # of Instance
    field: np.ndarray
    next_hops: np.ndarray
    path: np.ndarray  # (N, H + 1) int32 tiles, at first the start
    length: np.ndarray  # (N,) int32 steps, 0 where there is none yet
    here: np.ndarray  # (T + 1, H + 1) uint8 agents on a tile at a step
    leaving: np.ndarray  # (T + 1, 4, H + 1) uint8 agents that leave a tile in a direction between a step and the next


class Front(NamedTuple):
    """A search for a path; E entries."""

    bucket: np.ndarray  # (buckets,) int32 lists of entries
    tile: np.ndarray  # (E,) int32
    step: np.ndarray  # (E,) int32
    up: np.ndarray  # (E,) int32 the entry that it comes from
    next: np.ndarray  # (E,) int32 in its list
    closed: np.ndarray  # (T + 1,) int32 number of the search that has visited a tile


def spread_out(instance, deadline, seed, memory_limit_bytes):
    """Mark a path for each agent in instance.next_hops, so that few meet, as far as time and memory allow."""
    n, tiles = len(instance.start), len(instance.place)
    steps = int(instance.alone.max(initial=0)) + MARGIN
    if not (instance.goal >= 0).any() or (steps + 1) * (4 * n + 5 * (tiles + 1)) > memory_limit_bytes:
        return
    shapes = (n, steps + 1), n, (tiles + 1, steps + 1), (tiles + 1, 4, steps + 1)
    arrays = (np.zeros(shape, np.int32 if k < 2 else np.uint8) for k, shape in enumerate(shapes))
    crowd = Crowd(instance.goal, instance.field, instance.next_hops, *arrays)
    crowd.path[:, 0] = instance.start
    entries = (np.empty(4 * tiles + 4, np.int32) for _ in range(4))
    front = Front(np.full((MOST_MEETINGS + 1) * (MARGIN + 1), -1, np.int32), *entries, np.full(tiles + 1, -1, np.int32))
    rng, before = np.random.default_rng(seed), None
    for number in range(MOST_SPREADS):
        order, meetings = rng.permutation(n).astype(np.int32), 0
        for begin in range(0, n, SPREADS):
            some = order[begin : begin + SPREADS]
            meetings += _spread(some, number * n + begin, crowd, front, instance.ground, deadline)
            if late(deadline):
                break
        if meetings == 0 or late(deadline) or (number > 1 and meetings > 0.9 * before):
            break
        before = meetings
    _mark_paths(crowd, instance.ground.neighbour)


@lean_njit
def _count(agent, by, crowd, neighbour):
    """Add an agent's path to the crowd, or take it out. by: uint8, 1 or 255, which is -1"""
    length, path = crowd.length[agent], crowd.path[agent]
    if length == 0:
        return
    for step in range(length):
        crowd.here[path[step], step] += by
        crowd.leaving[path[step], direction_to(path[step], path[step + 1], neighbour), step] += by
    for step in range(length, crowd.here.shape[1]):
        crowd.here[path[length], step] += by


@lean_njit
def _walk(agent, number, crowd, front, ground):
    """Find an agent's path and note it. number: of the search -> how many agents it meets, -1 where there is no path"""
    next_hops, goal = crowd.next_hops[crowd.field[agent]], crowd.goal[agent]
    blocked, last, many = len(ground.neighbour) - 1, crowd.here.shape[1] - 1, 1
    front.tile[0], front.step[0], front.up[0], front.next[0] = crowd.path[agent, 0], 0, -1, -1
    front.bucket[0] = 0
    at, found, highest = 0, -1, 0
    while at <= highest and found < 0:
        entry = front.bucket[at]
        if entry < 0:
            at += 1
            continue
        front.bucket[at] = front.next[entry]
        tile, step = front.tile[entry], front.step[entry]
        if front.closed[tile] == number:
            continue
        front.closed[tile] = number
        if tile == goal:
            found = entry
            break
        bits, met, longer = np.int64(next_hops[tile]), at // (MARGIN + 1), at % (MARGIN + 1)
        for k in range(4):
            direction = (k + agent) & 3
            there = ground.neighbour[tile, direction]
            if there == blocked or front.closed[there] == number or step == last:
                continue
            more = longer + (0 if (bits >> direction) & 1 else 2)
            if more > MARGIN:
                continue
            meets = int(crowd.here[there, step + 1]) + int(crowd.leaving[there, (direction + 2) & 3, step])
            slot = min(met + meets, MOST_MEETINGS) * (MARGIN + 1) + more
            front.tile[many], front.step[many], front.up[many] = there, step + 1, entry
            front.next[many] = front.bucket[slot]
            front.bucket[slot] = many
            many, highest = many + 1, max(highest, slot)
    for slot in range(highest + 1):
        front.bucket[slot] = -1
    if found < 0:
        return -1
    met = at // (MARGIN + 1)
    crowd.length[agent] = front.step[found]
    while found >= 0:
        crowd.path[agent, front.step[found]] = front.tile[found]
        found = front.up[found]
    return met


@njit
def _spread(some, number, crowd, front, ground, deadline):
    """Let agents one by one look for paths in time. number: of the first search -> how many others they meet"""
    meetings = 0
    for k in range(len(some)):
        a = some[k]
        if crowd.goal[a] < 0 or crowd.path[a, 0] == crowd.goal[a] or clock_ns() > deadline:
            continue
        _count(a, np.uint8(255), crowd, ground.neighbour)
        meetings += max(0, _walk(a, number + k, crowd, front, ground))
        _count(a, np.uint8(1), crowd, ground.neighbour)
    return meetings


@njit
def _mark_paths(crowd, neighbour):
    """Enter the agents' paths into `next_hops`."""
    field, next_hops = crowd.field, crowd.next_hops
    for a in range(len(field)):
        for step in range(crowd.length[a]):
            tile = crowd.path[a, step]
            direction = direction_to(tile, crowd.path[a, step + 1], neighbour)
            next_hops[field[a], tile] = (next_hops[field[a], tile] & 15) | (1 << (direction + LANE_SHIFT))
