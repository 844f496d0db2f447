"""
A fleet in a warehouse
======================

200 robots that turn on the spot carry goods between shelves and the aisles at the sides. No two are ever on one tile
or change places. The page plays the moves: press play, click a robot to follow it.
"""

import os
from pathlib import Path

import numpy as np

from gpu_planners.fleet import FleetPlanner, conflicts
from gpu_planners.fleet.drawing import draw_fleet, fleet_page
from gpu_planners.grid.maps.generated import warehouse_map

out = Path("out")
out.mkdir(exist_ok=True)
steps, robots = (20 if "GPU_PLANNERS_SHORT" in os.environ else 80), 200
grid, rng = warehouse_map(40, 64, 4, apron=4), np.random.default_rng(0)
free = np.argwhere(~grid.blocked)
fleet = FleetPlanner(grid, motion="turning")
fleet.start(free[rng.permutation(len(free))[:robots]])

# %%
# Whoever reaches its goal gets another one.
goals = free[rng.integers(len(free), size=robots)]
positions, headings, wanted, done = [fleet.positions], [fleet.headings], [goals], 0
for _ in range(steps):
    fleet.step(goals, budget_s=0.01)
    there = (fleet.positions == goals).all(axis=1)
    done += there.sum()
    goals = np.where(there[:, None], free[rng.integers(len(free), size=robots)], goals)
    positions.append(fleet.positions)
    headings.append(fleet.headings)
    wanted.append(goals)
positions = np.array(positions)
print(done, "goals in", steps, "steps;", len(conflicts(positions, grid.blocked)), "conflicts")

(out / "fleet.html").write_text(fleet_page(grid, positions, headings, wanted, "200 robots"), encoding="utf-8")
frames = [draw_fleet(grid, positions, step, 640).quantize(48) for step in range(0, steps + 1)]
frames[-1].save(out / "fleet.png")  # the last one
frames[0].save(out / "fleet.gif", save_all=True, append_images=frames[1:], duration=120, loop=0)
