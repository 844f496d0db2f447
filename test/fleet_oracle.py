"""Fleets on tiny maps, solved by a search over joint states that shares nothing with the planner."""

from collections import deque
from itertools import product

import numpy as np

MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))
MODELS = [(motion, following) for motion in ("four", "turning") for following in (True, False)]


def free_tiles(text):
    return np.array([[letter != "#" for letter in line] for line in text.split()])


def joint_optimum(free, starts, goals, motion, following):
    """The lowest makespan, by a breadth-first search over the joint states; None where there is no solution."""

    def after(state):
        row, col, heading = state
        yield state
        for direction, (r, c) in enumerate(MOVES):
            there = row + r, col + c
            inside = 0 <= there[0] < free.shape[0] and 0 <= there[1] < free.shape[1]
            if motion == "turning":
                if (direction - heading) % 4 in (1, 3):
                    yield row, col, direction
                if direction != heading:
                    continue
            if inside and free[there]:
                yield *there, heading

    first = tuple((*start, 0) for start in starts)
    ends = tuple(map(tuple, goals))
    known, queue = {first: 0}, deque([first])
    while queue:
        state = queue.popleft()
        old = [s[:2] for s in state]
        if tuple(old) == ends:
            return known[state]
        for then in product(*map(list, map(after, state))):
            new = [s[:2] for s in then]
            if then in known or len(set(new)) < len(new):
                continue
            pairs = [(i, j) for i in range(len(new)) for j in range(len(new)) if i != j and new[i] != old[i]]
            if any(new[i] == old[j] and (not following or new[j] == old[i]) for i, j in pairs):
                continue
            known[then] = known[state] + 1
            queue.append(then)
    return None


def random_query(seed, shape, blocked, agents):
    rng = np.random.default_rng(seed)
    free = rng.uniform(size=shape) > blocked
    tiles = np.argwhere(free)
    n = min(agents, len(tiles))
    return free, tiles[rng.permutation(len(tiles))[:n]].tolist(), tiles[rng.permutation(len(tiles))[:n]].tolist()
