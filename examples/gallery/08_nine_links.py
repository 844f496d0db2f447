"""
An arm of nine links in the plane
=================================

The problem of Bialkowski, Karaman and Frazzoli (IROS 2011): an arm that lies stretched to the right is to lie to the
left; on the way it has to fold. RRT* takes 40,000 samples, for which the paper's GPU took 25 s. Colours go from the
start (blue) to the goal (red).
"""

import os
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.patches import Rectangle

from gpu_planners.arm import rrt_star
from gpu_planners.papers.bkf11.planar import PlanarChecker, nine_link_scene

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

out = Path("out")
out.mkdir(exist_ok=True)
arm, rectangles, start, goal = nine_link_scene()
checker = PlanarChecker(arm, rectangles)
budgets = (1000, 5000) if "GPU_PLANNERS_SHORT" in os.environ else (1500, 40_000)
fig, axes = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
for axis, samples in zip(axes, budgets):
    result = rrt_star.solve(start, goal, checker, rrt_star.Settings(max_samples=samples, time_limit_s=60.0), seed=1)
    print(f"{samples:,} samples: {result.status.value}, {result.cost:.2f} rad, {result.time_s:.2f} s")
    for low_x, low_y, high_x, high_y in rectangles:
        axis.add_patch(Rectangle((low_x, low_y), high_x - low_x, high_y - low_y, color="0.35"))
    at = np.linspace(0, len(result.path) - 1, 60)
    q = np.stack([np.interp(at, np.arange(len(result.path)), column) for column in np.transpose(result.path)], axis=1)
    for share, points in zip(np.linspace(0, 1, len(q)), arm.points(q)):
        axis.plot(*points.T, color=plt.cm.coolwarm(share), lw=1.6, alpha=0.8)
    axis.plot(*arm.points(q)[:, -1].T, color="black", lw=1)
    axis.set(title=f"{samples:,} samples: {result.cost:.2f} rad", aspect="equal", xlim=(-1.1, 1.1), ylim=(-0.7, 1.05))
fig.savefig(out / "nine_links.png", dpi=110)
