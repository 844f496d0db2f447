"""Agents that queue into one tile and leave the map there, one in a step.

All have the same field, and whoever is nearest goes first: nobody is in its way, so in every step an agent comes
nearer, and all arrive. None can be sooner than where all walk freely and wait for each other only at the sink.
"""

import numpy as np

from ..device import njit
from ..parallel.team import clock_ns
from .lacam import NOBODY, UNDECIDED, _move


@njit
def queue_up(start, steps_to_go, most, task, ground, scratch, count, deadline):
    """start: (N,) int32 tiles; steps_to_go: (N,) int32, changed; task.goal is the sink for all; deadline: of clock_ns()

    -> (steps + 1, N) int32 tiles, -1 after an agent has been at the sink
    """
    agents, sink = len(start), task.goal[0]
    tiles = np.full((most + 1, agents), -1, np.int32)
    tiles[0] = start
    then_of, left = np.empty(agents, np.int32), agents
    for step in range(most):
        if left == 0 or clock_ns() > deadline:
            return tiles[: step + 1].copy()
        now_of, before_of = tiles[step], tiles[max(0, step - 1)]
        left = 0
        for a in range(agents):
            then_of[a] = UNDECIDED
            if now_of[a] >= 0 and now_of[a] != sink:
                scratch.now[now_of[a]] = a
                left += 1
        order = np.argsort(steps_to_go, kind="mergesort")
        for a in order:
            if now_of[a] >= 0 and now_of[a] != sink and then_of[a] == UNDECIDED:
                _move(a, then_of, now_of, before_of, task, ground, scratch, count)
        for a in range(agents):
            if now_of[a] < 0 or now_of[a] == sink:
                continue
            scratch.now[now_of[a]] = NOBODY
            for direction in range(4):
                if ground.near[now_of[a], direction] == then_of[a]:
                    steps_to_go[a] += -1 if (task.nearer[task.field[a], now_of[a]] >> direction) & 1 else 1
        for a in range(agents):
            if now_of[a] >= 0 and now_of[a] != sink:
                scratch.then[then_of[a]] = scratch.then[now_of[a]] = NOBODY
                tiles[step + 1, a] = then_of[a]
    return tiles


def earliest(steps: np.ndarray) -> np.ndarray:
    """When the first, the second, ... of agents can be at a sink at the earliest, one in a step.

    steps: (N,) that each takes alone -> (N,) int64, rising
    """
    rank = np.arange(len(steps))
    return np.maximum.accumulate(np.sort(steps).astype(np.int64) - rank) + rank
