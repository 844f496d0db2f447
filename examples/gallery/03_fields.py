"""
Costs to the goal, and 1,000 paths
==================================

The field of costs to one goal on a map of caves and rooms, on a maze, and on a map where some ground is dear: colours
from near (yellow) to far (blue), white lines the paths of 1,000 agents.
"""

from pathlib import Path

import numpy as np
from PIL import Image

from gpu_planners.grid import BlockPlanner, GridMap
from gpu_planners.grid.drawing import draw_map
from gpu_planners.grid.maps.generated import caves_and_rooms, random_free_tiles


def maze(side, seed):
    """Corridors two tiles wide, by a walk that never closes a loop; then some walls fall."""
    rng, cells = np.random.default_rng(seed), np.zeros((side, side), bool)
    way = [(1, 1)]
    cells[1, 1] = True
    while way:
        row, col = way[-1]
        near = [(row + 2 * dr, col + 2 * dc, row + dr, col + dc) for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0))]
        near = [each for each in near if 0 < each[0] < side and 0 < each[1] < side and not cells[each[:2]]]
        if near:
            row, col, *between = near[rng.integers(len(near))]
            cells[row, col] = cells[tuple(between)] = True
            way.append((row, col))
        else:
            way.pop()
    cells[1:-1, 1:-1] |= rng.random((side - 2, side - 2)) < 0.04
    return GridMap(np.kron(cells, np.ones((3, 3), bool)).astype(np.uint8))


out = Path("out")
out.mkdir(exist_ok=True)
caves = caves_and_rooms(192, 192, 7)
rows, cols = np.indices(caves.shape)
dear = np.where(np.hypot(rows - 96, cols - 96) < 60, 12, 1) * (caves.costs > 0)  # a bog in the middle
row = Image.new("RGB", (1560, 510), "white")
for place, grid in enumerate((caves, maze(65, 1), GridMap(dear.astype(np.uint8)))):
    starts, goal = random_free_tiles(grid, 1000), random_free_tiles(grid, 1, seed=2)[0]
    planner = BlockPlanner(grid)
    paths = planner.plan(starts, goal)
    print(f"{grid.rows} x {grid.cols}: {paths.solved.sum()} of {len(starts)} have a path, the longest costs", end=" ")
    print(f"{paths.cost[paths.solved].max():.0f}")
    lines = [paths.path(agent) for agent in np.flatnonzero(paths.solved)]
    row.paste(draw_map(grid, planner.field(goal), lines, size=510), (525 * place, 0))
row.save(out / "fields.png")
