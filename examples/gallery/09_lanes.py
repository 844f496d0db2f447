"""
One-way lanes
=============

Where 600 robots of a full warehouse stood and waited in 300 steps, without rules and with the lanes that a fleet has
by default: bright tiles are those where somebody waited most.
"""

import os
from pathlib import Path

import matplotlib
import numpy as np

from gpu_planners.fleet import FleetPlanner, Settings
from gpu_planners.grid.maps.generated import warehouse_map

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

out = Path("out")
out.mkdir(exist_ok=True)
grid, robots = warehouse_map(32, 64, 4, apron=4), 600
steps, free = 60 if "GPU_PLANNERS_SHORT" in os.environ else 300, np.argwhere(~grid.blocked)
fig, axes = plt.subplots(1, 2, figsize=(13, 3.8), layout="constrained")
for axis, guidance in zip(axes, ("plain", "auto")):
    rng = np.random.default_rng(0)
    fleet = FleetPlanner(grid, "turning", settings=Settings(guidance=guidance))
    fleet.start(free[rng.permutation(len(free))[:robots]])
    goals, waited, done = free[rng.integers(len(free), size=robots)], np.zeros(grid.shape), 0
    for _ in range(steps):
        before, faces = fleet.positions, fleet.headings
        fleet.step(goals)
        stood = (before == fleet.positions).all(axis=1) & (faces == fleet.headings)
        np.add.at(waited, tuple(before[stood].T), 1 / steps)
        there = (fleet.positions == goals).all(axis=1)
        done += int(there.sum())
        goals = np.where(there[:, None], free[rng.integers(len(free), size=robots)], goals)
    axis.imshow(np.where(grid.blocked, np.nan, waited), cmap="inferno", vmin=-0.1, vmax=0.4)
    axis.set(
        title=f"{'without' if guidance == 'plain' else 'with'} lanes: {done} errands in {steps} steps",
        xticks=[],
        yticks=[],
    )
    print(guidance, done, "errands, waiting", round(waited.sum() / robots, 2), "of the time")
fig.savefig(out / "lanes.png", dpi=110)
