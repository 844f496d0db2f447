"""Agents that may stand on any of some tiles: TSWAP (Okumura and Défago, ICAPS 2022).

Every agent is given a tile and walks to it. One that meets another that has arrived exchanges tiles with it, and agents
that block each other in a ring hand theirs on. With each move or exchange the ways that are left get shorter, or no
longer and closer to an end, so all agents arrive wherever each can reach its first tile.
"""

import numpy as np

from ..device import lean_njit, njit
from ..parallel.team import clock_ns

NOBODY = -1


@njit
def assign(start, targets, near, part, deadline):
    """Give every agent the nearest tile that is left; after the deadline, of clock_ns(), any that it can reach.

    start: (N,) int32 tiles; targets: (M,) int32 tiles; near: (T + 1, 4) int32; part: (T + 1,) int32 connected parts
    -> (N,) int32 tiles, -1 where none is left that the agent can reach; (N,) int32 steps to the nearest of all targets,
    0 after the deadline
    """
    count = len(near) - 1
    free, is_target = np.zeros(count, np.uint8), np.zeros(count, np.uint8)
    for target in targets:
        free[target] = is_target[target] = 1
    given, nearest = np.full(len(start), -1, np.int32), np.zeros(len(start), np.int32)
    seen, queue, steps = np.full(count, -1, np.int32), np.empty(count, np.int32), np.zeros(count, np.int32)
    late = np.zeros(part.max() + 1, np.int64)  # of each part, targets that need not be looked at again
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
                there = near[tile, direction]
                if there < count and seen[there] != a:
                    seen[there], steps[there] = a, steps[tile] + 1
                    queue[waiting] = there
                    waiting += 1
    return given, nearest


@lean_njit
def _next(agent, at, field, nearer, near, now):
    """The neighbour that an agent wants to go to: a nearer one where nobody is, or else the first that is nearer."""
    first = -1
    for direction in range(4):
        if (nearer[field[agent], at[agent]] >> direction) & 1:
            there = near[at[agent], direction]
            if now[there] == NOBODY:
                return there
            if first < 0:
                first = there
    return first


@njit
def walk(start, goal, field, nearer, near, most, deadline):
    """Let agents walk to their tiles and exchange these, until the deadline, of clock_ns().

    start: (N,) int32; goal, field: (N,) int32, changed: tiles, and rows of nearer (K, T + 1) uint8 (ways.py); an agent
    without a goal (-1) stands until another one gives it its own
    -> (steps + 1, N) int32 tiles, at most `most` steps
    """
    agents = len(start)
    tiles = np.empty((most + 1, agents), np.int32)
    tiles[0] = start
    at, now = start.copy(), np.full(len(near), NOBODY, np.int32)
    for a in range(agents):
        now[at[a]] = a
    for step in range(most):
        waiting = 0
        for a in range(agents):
            waiting += goal[a] >= 0 and at[a] != goal[a]
        if waiting == 0 or clock_ns() > deadline:
            return tiles[: step + 1].copy()
        for a in range(agents):
            _act(a, at, goal, field, nearer, near, now)
        tiles[step + 1] = at
    return tiles


@lean_njit
def _act(a, at, goal, field, nearer, near, now):
    """Let an agent walk, or exchange its tile, until it has walked or can do nothing."""
    for _ in range(len(at) + 1):
        if goal[a] < 0 or at[a] == goal[a]:
            return
        there = _next(a, at, field, nearer, near, now)
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
            last = now[_next(last, at, field, nearer, near, now)]
            length += 1
            if last == NOBODY:
                return
        if last != a:
            return
        end_goal, end_field, last = goal[a], field[a], other
        while last != a:  # each hands its tile on to the one that it follows
            after = now[_next(last, at, field, nearer, near, now)]
            goal[last], end_goal = end_goal, goal[last]
            field[last], end_field = end_field, field[last]
            last = after
        goal[a], field[a] = end_goal, end_field
