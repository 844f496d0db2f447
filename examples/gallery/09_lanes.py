"""
One-way lanes
=============

Where 600 robots of a full warehouse went in 300 steps: red tiles were crossed rightwards or downwards, blue ones the
other way, white ones both ways. Without guidance traffic meets head on; with the lanes that a fleet has by default it
parts by itself, and more goals are reached.
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
    goals, done = free[rng.integers(len(free), size=robots)], 0
    onward, moves = np.zeros(grid.shape), np.zeros(grid.shape)
    for _ in range(steps):
        before = fleet.positions
        fleet.step(goals)
        way = (fleet.positions - before).sum(axis=1)  # 1: right or down, -1: left or up, 0: turns or waits
        np.add.at(onward, tuple(before.T), way)
        np.add.at(moves, tuple(before.T), np.abs(way))
        there = (fleet.positions == goals).all(axis=1)
        done += int(there.sum())
        goals = np.where(there[:, None], free[rng.integers(len(free), size=robots)], goals)
    share = np.where(grid.blocked, np.nan, onward / np.maximum(moves, 1))
    axis.imshow(share, cmap=plt.cm.RdBu_r.with_extremes(bad="0.2"), vmin=-1, vmax=1)
    axis.set(title=f"{'without' if guidance == 'plain' else 'with'} lanes: {done:,} goals", xticks=[], yticks=[])
    print(guidance, done, "goals reached in", steps, "steps")
fig.savefig(out / "lanes.png", dpi=110)
