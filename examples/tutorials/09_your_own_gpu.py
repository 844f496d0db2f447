"""
Measure your own GPU
====================

Is a GPU worth it for your robot? It depends on what you ask for: a single plan takes a millisecond or two on either,
while many checks, problems or paths at once are where a GPU pays. This script measures three such things on the CPU,
and on a GPU where there is one.

Install: ``pip install "gpu_planners[view,gpu]"``; without a GPU ``[view]``. What the machine has, and what is missing,
``gpu-planners info`` says.
"""

import os
import time
from pathlib import Path

import matplotlib
import numpy as np

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf, rrt_connect
from gpu_planners.device import resolve_device
from gpu_planners.grid import BlockPlanner
from gpu_planners.grid.maps.generated import caves_and_rooms, random_free_tiles
from gpu_planners.share import share_folder

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

short = "GPU_PLANNERS_SHORT" in os.environ
count, repeats, side = (2000, 3, 256) if short else (100_000, 15, 1024)
out = Path("out")
out.mkdir(exist_ok=True)
devices = ["cpu"] + [name for name in [resolve_device("auto")] if name != "cpu"]
print("measured on", ", ".join(devices))


def median_s(call):
    """Of several calls; the first one compiles, or loads what was compiled, and does not count."""
    call()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return float(np.median(times))


# %%
# Checks of an arm
# ----------------
#
# An arm on a desk, with a post in its way. How many configurations are checked in a second, and how many straight
# motions are proven to be free all along?

urdf = share_folder() / "urdf"
robot = load_urdf(urdf / "desk_arm.urdf", srdf=urdf / "desk_arm.srdf", group="arm")
world, pose = CollisionWorld(), np.eye(4)
pose[:3, 3] = 0.45, 0.0, 0.5
world.add_box("post", [0.1, 0.1, 1.0], pose)
rng = np.random.default_rng(0)
q = rng.uniform(robot.lower, robot.upper, (count, robot.dof))
figures = {}
for device in devices:
    checker = CollisionChecker(robot, world, device)
    free = q[checker.configurations_valid(q)]
    near = np.clip(free + rng.uniform(-0.2, 0.2, free.shape), robot.lower, robot.upper)
    figures[device] = {
        "checks/s": count / median_s(lambda checker=checker: checker.configurations_valid(q)),
        "motions/s": len(free) / median_s(lambda checker=checker, a=free, b=near: checker.motions_valid(a, b)),
    }

# %%
# Plans
# -----
#
# One query at a time, as a robot asks, and 200 problems in one call, as a simulation or a data set does.

start, goal = robot.named_states["ready"], robot.named_states["ready"] + [-1.2, 0, 0, 0, 0, 0]
for device in devices:
    checker = CollisionChecker(robot, world, device)
    free = q[checker.configurations_valid(q)][: 40 if short else 400]
    half = len(free) // 2
    figures[device]["plan, ms"] = 1e3 * median_s(lambda checker=checker: rrt_connect.solve(start, goal, checker))
    began = time.perf_counter()
    results = rrt_connect.solve_batch(free[:half], free[half : 2 * half], checker)
    figures[device]["plans/s"] = sum(result.solved for result in results) / (time.perf_counter() - began)

# %%
# Paths on a grid
# ---------------
#
# A map of caves and rooms, one goal, 10,000 agents: the field of costs to the goal, and all paths.

grid = caves_and_rooms(side, side)
starts, goal_tile = random_free_tiles(grid, 10_000), random_free_tiles(grid, 1, seed=1)[0]
for device in devices:

    def plan(device=device):
        return BlockPlanner(grid, device=device).plan(starts, goal_tile)

    figures[device]["10,000 paths, ms"] = 1e3 * median_s(plan)

# %%
# What came out
# -------------

print(f"{'':18}" + "".join(f"{device:>14}" for device in devices))
for name in figures["cpu"]:
    print(f"{name:18}" + "".join(f"{figures[device][name]:14,.1f}" for device in devices))

fig, axes = plt.subplots(1, len(figures["cpu"]), figsize=(13, 3), layout="constrained")
for axis, name in zip(axes, figures["cpu"]):
    axis.bar(devices, [figures[device][name] for device in devices], color=["tab:blue", "tab:green"][: len(devices)])
    axis.set_title(name + (" (less is better)" if name.endswith("ms") else ""), fontsize=9)
fig.savefig(out / "09_your_own_gpu.png", dpi=110)

# %%
# How to read it
# --------------
#
# The arrays of this script lie in the host's memory, as yours probably do; much of a GPU's time for checks goes to
# sending them. The first call on a new machine compiles, which can take a minute on a GPU: :doc:`/compiling` says how
# to have that done ahead.
#
# :doc:`/figures` has the same kinds of figures for two cores and an H200, with peers. In the checkout ``make bench
# ARGS="--help"`` names all benchmarks, and ``make bench ARGS="--only configurations motions rrt_connect"`` runs three
# of them.
