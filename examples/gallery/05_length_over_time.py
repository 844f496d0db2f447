"""
Shorter paths for more time
===========================

The same problem for each planner: how long is its best path after so many milliseconds? RRT-Connect finds a path
first, and further searches make it shorter; RRT* rewires one tree.
"""

import os
from pathlib import Path

import matplotlib
import numpy as np

from gpu_planners.arm import CollisionChecker, load_urdf, prm, rrt_connect, rrt_star
from gpu_planners.arm.collision.scene_file import fixed_frames, load_scene
from gpu_planners.share import share_folder

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

out = Path("out")
out.mkdir(exist_ok=True)
share, short = share_folder(), "GPU_PLANNERS_SHORT" in os.environ
robot = load_urdf(share / "urdf/desk_arm.urdf", srdf=share / "urdf/desk_arm.srdf", group="arm")
checker = CollisionChecker(robot, load_scene(share / "config/scenes/desk.yaml", fixed_frames(robot)))
start, goal = robot.named_states["ready"], np.array([-0.9, 0.55, 1.0, 1.5, 0.0, 0.0])
seconds, seeds = (0.2, 3) if short else (2.0, 10)

# %%
# One first solve of each loads or compiles its code.
fig, axis = plt.subplots(figsize=(8, 4), layout="constrained")
runs = {
    "RRT-Connect": (rrt_connect, rrt_connect.Settings(optimise_s=seconds), "tab:blue"),
    "RRT*": (rrt_star, rrt_star.Settings(time_limit_s=seconds, max_samples=100_000), "tab:orange"),
    "PRM": (prm, prm.Settings(), "tab:green"),
}
for name, (planner, settings, colour) in runs.items():
    planner.solve(start, goal, checker, settings)
    for seed in range(seeds):
        result = planner.solve(start, goal, checker, settings, seed)
        if result.solved:
            history = np.array([(result.samples, result.time_s, result.cost)])
            _, times, costs = (result.history if len(result.history) else history).T
            line = {"color": colour, "alpha": 0.7, "label": name if seed == 0 else None}
            axis.step(np.r_[times, max(seconds, times[-1])] * 1e3, np.r_[costs, costs[-1]], where="post", **line)
    print(f"{name}: first path after {1e3 * times[0]:.1f} ms, {costs[0]:.2f} rad; in the end {costs[-1]:.2f} rad")
axis.set(xscale="log", xlabel="milliseconds", ylabel="length of the best path, rad", title=f"{seeds} seeds each")
axis.legend()
fig.savefig(out / "length.png", dpi=110)
