"""Fleets on tiny maps, solved by a search over joint states; do agents of unlike sizes meet, by shapely; who stands in
a zone. Nothing is shared with the planner."""

from collections import deque
from itertools import product

import numpy as np
import shapely

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


def stands(before, now, headings_before, headings, closed, size=1):
    """Agents that neither moved nor turned, and cover a tile where nobody may stop"""
    low = (size - 1) // 2
    still = (before == now).all(axis=1) & (headings_before == headings)
    return [a for a in np.flatnonzero(still) if covers(closed, now[a] - low, size)]


def covers(closed, corner, size):
    rows, cols = (range(max(0, k), k + size) for k in corner.tolist())
    return any(closed[r, c] for r in rows for c in cols if r < closed.shape[0] and c < closed.shape[1])


def squares(tiles, sizes, more=0.0):
    """What agents on tiles (N, 2) cover, in tiles, and `more` on each side"""
    low = np.asarray(tiles) - (np.asarray(sizes)[:, None] - 1) // 2
    high = low + np.asarray(sizes)[:, None]
    return shapely.box(low[:, 0] - more, low[:, 1] - more, high[:, 0] + more, high[:, 1] + more)


def meet(one, other):
    """(N, M) bool, do inner parts of squares meet?"""
    return shapely.area(shapely.intersection(one[:, None], other[None])) > 1e-9


def faults(walked, sizes, costs, apart, following, lasts=1):
    """[(step, what)] that is wrong with positions (steps + 1, N, 2). lasts: ticks of a move"""
    found, walls = [], shapely.union_all([shapely.box(r, c, r + 1, c + 1) for r, c in np.argwhere(costs == 0)])
    hall = shapely.box(0, 0, *costs.shape)
    others, sizes = ~np.eye(len(sizes), dtype=bool), np.asarray(sizes)
    for step, now in enumerate(walked):
        here = squares(now, sizes)
        if not shapely.covers(hall, here).all() or (shapely.area(shapely.intersection(here, walls)) > 1e-9).any():
            found.append((step, "on a wall"))
        # bodies with half of the distance around each, so that they touch where just enough is between them
        wide = squares(now, sizes, apart / 2)
        if (meet(wide, wide) & others).any():
            found.append((step, "two agents are too near"))
        if step:
            if (np.abs(now - walked[step - 1]).sum(axis=1) > 1).any():
                found.append((step, "a jump"))
            moves = (now != walked[step - 1]).any(axis=1)
            entered = meet(wide, squares(walked[step - 1], sizes, apart / 2)) & others & moves[:, None]
            if (entered & entered.T).any() if following else entered.any():
                found.append((step, "agents follow each other, or swap"))
    return found


def places_for(costs, size):
    """(K, 2) tiles where an agent of a size can be"""
    low = (size - 1) // 2
    rows, cols = costs.shape
    return np.array(
        [
            (r, c)
            for r, c in np.argwhere(costs)
            if r >= low
            and c >= low
            and r - low + size <= rows
            and c - low + size <= cols
            and costs[r - low : r - low + size, c - low : c - low + size].all()
        ]
    )
