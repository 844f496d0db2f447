"""Robots with a shape on a map that changes: states and paths that are called free, by shapely; costs, by a heap."""

import numpy as np
from pose_oracle import BOX, HOOK, MODELS, blocked_tree, cluttered, grid, meets, placed, plain_field, random_poses

from gpu_planners.grid import PosePlanner

from .harness import Attack, numbers

FOOTPRINTS = (BOX, HOOK, [(0.9, 0.1), (0.1, 0.4), (-0.2, -0.3)], [(0.2, 0.0), (-0.1, 0.17), (-0.1, -0.17)])
TILE = 0.1  # metres, of the oracle's grid
UNIT = TILE / 100
UPDATES = 3
AGENTS = 8


def case(run, rng, number, tally):
    model, side = str(rng.choice(list(MODELS))), int(rng.integers(20, 44))
    footprint = FOOTPRINTS[rng.integers(len(FOOTPRINTS))]
    tiles = cluttered(rng, side, int(rng.integers(0, 8)), int(rng.choice([1, 4, 200])))
    poses = grid(tiles, footprint, **MODELS[model])
    planners = {("exact", device): PosePlanner(poses, "exact", device) for device in run.devices}
    planners["astar", "cpu"] = PosePlanner(poses, "astar", "cpu")
    first = planners["exact", "cpu"]
    for update in range(UPDATES):
        where = f"{model}, {side} tiles, footprint {footprint}, after {update} updates"
        _states(rng, tally, first, footprint, tiles, where)
        ends = random_poses(rng, first, AGENTS)
        if len(ends) > 1:
            _paths(tally, planners, ends, footprint, tiles, where)
        row, col, down, right = *rng.integers(0, side - 4, 2), *rng.integers(1, 8, 2)
        rows, cols = (each.ravel() for each in np.mgrid[row : min(row + down, side), col : min(col + right, side)])
        costs = rng.integers(0, 2, len(rows)) if update % 2 else np.full(len(rows), rng.integers(0, 2))
        tiles = tiles.copy()
        tiles[rows, cols] = costs
        for planner in planners.values():
            planner.update(rows, cols, costs)


def _states(rng, tally, planner, footprint, tiles, where):
    """At random places and angles, which the planner's states stand for."""
    tree = blocked_tree(tiles)
    size = len(tiles) * TILE
    poses = np.column_stack([rng.uniform(0, size, (40, 2)), rng.uniform(-7, 7, 40)])
    for pose in poses[planner.states_free(poses)]:
        text = f"a state called free at {numbers(pose)} meets a blocked tile: {where}"
        tally.check(not meets(tree, placed(footprint, *pose)), text)


def _paths(tally, planners, ends, footprint, tiles, where):
    first, tree = planners["exact", "cpu"], blocked_tree(tiles)
    poses, starts, goal = first.poses, ends[1:], ends[0]

    def state(pose):
        return int(poses.headings_of(pose[2:])[0]), int(pose[1] / TILE), int(pose[0] / TILE)

    layer, row, col = state(goal)
    known = plain_field(poses, tiles, [(layer + g * poses.headings, row, col) for g in range(poses.gears)])
    expected = np.full((poses.gears * poses.headings, *tiles.shape), np.inf)
    for (layer, row, col), units in known.items():
        expected[layer, row, col] = units * UNIT
    expected = expected.reshape(poses.gears, poses.headings, *tiles.shape).min(axis=0)
    for (algorithm, device), planner in planners.items():
        who = f"{algorithm} on {device}, {where}"
        if algorithm == "exact":
            tally.check(np.array_equal(planner.field(goal), expected), f"the field of {numbers(goal)}: {who}")
        paths = planner.plan(starts, goal)
        for i, start in enumerate(starts):
            told = f"{numbers(start)} to {numbers(goal)}: {who}"
            truth = expected[state(start)]
            right = np.isclose(paths.cost[i], truth, rtol=1e-9, atol=1e-9) if paths.solved[i] else np.isinf(truth)
            tally.check(right, f"the path costs {paths.cost[i]}, the heap's {truth}: {told}")
            if not paths.solved[i]:
                continue
            path = paths.path(i)
            bad = [each for each in path if meets(tree, placed(footprint, *each))]
            tally.check(not bad, f"a path meets a blocked tile at {numbers(bad[:1])}: {told}")
            steps = np.hypot(*np.diff(path[:, :2], axis=0).T)
            tally.check((steps <= TILE * (1 + 1e-9)).all(), f"a path jumps by {steps.max(initial=0.0)} m: {told}")


ATTACK = Attack("poses", "poses of robots with a shape, on maps that change", case)
