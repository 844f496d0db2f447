"""
A map changes
=============

Obstacles fall on a map that 2,000 agents cross. The planner repairs the field where it has to, in a fraction of the
time that a new one takes, and the repaired field equals the new one bit for bit. Right: in green the tiles whose costs
changed.
"""

import time
from pathlib import Path

import numpy as np
from PIL import Image

from gpu_planners.grid import BlockPlanner
from gpu_planners.grid.drawing import draw_map
from gpu_planners.grid.maps.generated import caves_and_rooms, random_free_tiles

out = Path("out")
out.mkdir(exist_ok=True)
grid = caves_and_rooms(384, 384, 5)
planner, starts, goal = BlockPlanner(grid), random_free_tiles(grid, 2000), random_free_tiles(grid, 1, seed=3)[0]
planner.plan(starts, goal)
before, costs = planner.field(goal), grid.costs.copy()
for row, col in np.random.default_rng(1).integers(20, 340, (12, 2)):
    if np.abs(goal - (row + 10, col + 10)).max() > 20:
        costs[row : row + 20, col : col + 20] = 0
rows, cols = np.nonzero(costs != grid.costs)


def seconds(call):
    began = time.perf_counter()
    return call(), time.perf_counter() - began


planner.update(rows[:1], cols[:1], 0)  # a small change first: it loads the code
planner.plan(starts, goal)
planner.update(rows, cols, 0)
after, repaired_s = seconds(lambda: planner.field(goal))
new = BlockPlanner(planner.grid)
anew, new_s = seconds(lambda: new.field(goal))
print(f"repaired in {1e3 * repaired_s:.1f} ms, anew {1e3 * new_s:.1f} ms, equal: {np.array_equal(after, anew)}")

paths = planner.plan(starts, goal)
lines = [paths.path(agent) for agent in np.flatnonzero(paths.solved)]
picture = np.array(draw_map(planner.grid, after, size=768))
changed = np.kron((after != before) & np.isfinite(after), np.ones((2, 2), bool))
picture[changed] = picture[changed] * 0.45 + np.array([90, 220, 130]) * 0.55
pair = Image.new("RGB", (1548, 768), "white")
pair.paste(draw_map(planner.grid, after, lines, size=768), (0, 0))
pair.paste(Image.fromarray(picture), (780, 0))
pair.resize((1290, 640)).save(out / "repair.png")
