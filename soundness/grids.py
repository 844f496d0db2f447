"""Grids: `exact` and `astar` against a plain Dijkstra, `pba_star` and `rtaa_star` for valid paths, under random
updates."""

import numpy as np
from grid_paths import random_costs

from gpu_planners.grid import BlockPlanner, GridMap
from gpu_planners.verify import BrokenPathError, costs_to_goal, walk

from .harness import Attack

ALGORITHMS = ("exact", "astar", "pba_star", "rtaa_star")
COMPLETE = ("exact", "astar")  # those that find every path, and a cheapest one
AGENTS = 24
UPDATES = 4


def case(run, rng, number, tally):
    rows, cols = (int(x) for x in np.exp(rng.uniform(np.log(2), np.log(80), 2)))
    connectivity, highest = int(rng.choice([4, 8])), int(rng.choice([1, 1, 9, 255]))
    costs = random_costs(rng, rows, cols, rng.choice([0.0, 0.1, 0.3, 0.45]), highest)
    if rng.random() < 0.3:  # walls with one gap each: long detours
        costs[::4, :] = 0
        costs[::4, rng.integers(cols, size=len(costs[::4]))] = 1
    if not costs.any():
        costs[0, 0] = 1
    block = int(rng.choice([4, 8, 16, 32]))
    grid = GridMap(costs, connectivity=connectivity)
    planners = {
        (a, d): BlockPlanner(grid, algorithm=a, block_size=block, device=d)
        for a in ALGORITHMS
        for d in run.devices
        if a != "astar" or d == "cpu"
    }
    goals = _tiles(rng, costs, 2)
    for update in range(UPDATES + 1):
        if update:
            costs = _updated(rng, costs, highest, planners)
        if update == 2:
            goals = _tiles(rng, costs, 2)
        if not costs[tuple(goals.T)].all():
            continue  # a goal was walled in: its statuses are for the tests
        starts = _tiles(rng, costs, AGENTS)
        of_agent = goals[rng.integers(len(goals), size=AGENTS)]
        lengths = {tuple(goal): costs_to_goal(costs, connectivity, goal) for goal in goals.tolist()}
        truth = np.array(
            [lengths[tuple(goal)][tuple(start)] for start, goal in zip(starts.tolist(), of_agent.tolist(), strict=True)]
        )
        where = (
            f"{rows} x {cols}, {connectivity}-connected, costs to {highest}, blocks of {block}, after {update} updates"
        )
        for (algorithm, device), planner in planners.items():
            _check(
                tally,
                f"{algorithm} on {device}, {where}",
                algorithm,
                planner.plan(starts, of_agent),
                costs,
                connectivity,
                starts,
                of_agent,
                truth,
            )
            if algorithm == "exact":
                for goal, expected in lengths.items():
                    tally.check(
                        np.allclose(planner.field(goal), expected, rtol=1e-9, atol=0),
                        f"field of {goal}, {algorithm} on {device}, {where}",
                    )


def _check(tally, who, algorithm, paths, costs, connectivity, starts, goals, truth):
    for i in range(len(starts)):
        tally.checks += 1
        agent = f"{who}: from {starts[i].tolist()} to {goals[i].tolist()}"
        if not paths.solved[i]:
            if np.isfinite(truth[i]) and algorithm in COMPLETE:
                tally.fail(f"'{paths.message(i)}' where Dijkstra finds {truth[i]}: {agent}")
            continue
        try:
            cost = walk(costs, connectivity, paths.path(i), starts[i], goals[i])
        except BrokenPathError as error:
            tally.fail(f"no path: {error}: {agent}")
            continue
        if abs(cost - paths.cost[i]) > 1e-9 * max(cost, 1):
            tally.fail(f"the path costs {cost}, not {paths.cost[i]}: {agent}")
        if cost < truth[i] * (1 - 1e-9) or (algorithm in COMPLETE and cost > truth[i] * (1 + 1e-9)):
            tally.fail(f"the path costs {cost}, Dijkstra's {truth[i]}: {agent}")


def _tiles(rng, costs, count):
    free = np.argwhere(costs > 0)
    return free[rng.integers(len(free), size=count)].astype(np.int32)


def _updated(rng, costs, highest, planners):
    """Costs with some tiles changed, one by one or as a rectangle, told to every planner."""
    changed = costs.copy()
    if rng.random() < 0.5:
        row, col = rng.integers(costs.shape[0]), rng.integers(costs.shape[1])
        changed[row : row + rng.integers(1, 12), col : col + rng.integers(1, 12)] = rng.choice([0, 1, highest])
    else:
        some = rng.random(costs.shape) < 10 ** rng.uniform(-3, -0.5)
        changed[some] = rng.integers(0, highest + 1, costs.shape)[some]
    if not changed.any():
        return costs
    rows, cols = np.nonzero(changed != costs)
    for planner in planners.values():
        planner.update(rows, cols, changed[rows, cols])
    return changed


ATTACK = Attack("grids", "grids under random updates, against Dijkstra", case)
