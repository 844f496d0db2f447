"""Who gets which task, by looking at all choices, on distances of a plain Dijkstra."""

import heapq
import itertools

import numpy as np
from fleet_oracle import MOVES


def distances_from(fleet, place, heading):
    """{tile: steps} of one robot, over tiles and headings, with the fleet's guidance."""
    guidance, free, turns = fleet.guidance, fleet.grid.costs > 0, fleet.motion.headings == 4
    first = (*map(int, place), int(heading) if turns else 0)
    known, queue, found = {first: 0}, [(0, first)], {}
    while queue:
        cost, (row, col, face) = heapq.heappop(queue)
        if cost > known[row, col, face]:
            continue
        found.setdefault((row, col), cost / guidance.unit)
        after = []
        for direction, (r, c) in enumerate(MOVES):
            there = row + r, col + c
            inside = 0 <= there[0] < free.shape[0] and 0 <= there[1] < free.shape[1]
            if inside and free[there] and (not turns or direction == face):
                after.append((int(guidance.moves[row, col, direction]), (*there, face)))
        if turns:
            after += [(guidance.turn, (row, col, (face + quarter) % 4)) for quarter in (1, 3)]
        for more, state in after:
            if cost + more < known.get(state, np.inf):
                known[state] = cost + more
                heapq.heappush(queue, (cost + more, state))
    return found


def best_choice(fleet, places, faces, tasks):
    """-> (robots with tasks, their priorities, minus the total cost) of the best of all choices"""
    known = [distances_from(fleet, place, face) for place, face in zip(places, faces)]

    def cost(robot, task):
        way = known[robot].get(tuple(tasks[task].tiles[0].tolist()), np.inf)
        allowed = tasks[task].robots is None or robot in tasks[task].robots
        return way + np.abs(np.diff(tasks[task].tiles, axis=0)).sum() if allowed else np.inf

    table = [[cost(r, t) for t in range(len(tasks))] for r in range(len(places))]
    best = (0, 0, 0.0)
    for choice in itertools.product(range(-1, len(tasks)), repeat=len(places)):
        some = [(r, t) for r, t in enumerate(choice) if t >= 0]
        if len({t for _, t in some}) == len(some) and all(np.isfinite(table[r][t]) for r, t in some):
            levels = sum(tasks[t].priority for _, t in some)
            best = max(best, (len(some), levels, -sum(table[r][t] for r, t in some)))
    return best, table
