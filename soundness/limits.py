"""Time limits: whatever takes one answers by then, also for many poses, goals and agents, and where nothing is found.

What a call takes beyond its limit counts only if both the clock and the processor say so: other programs may have the
cores.
"""

import os
import time
from functools import partial

import numpy as np
from grid_paths import random_costs

from gpu_planners.arm import cartesian, rrt_connect
from gpu_planners.grid import BlockPlanner, FleetPlanner, GridMap
from gpu_planners.grid.astar import Settings as AStarSettings
from gpu_planners.grid.exact.fields import Settings as ExactSettings

from .harness import Attack, Skipped
from .obstacles import random_obstacle
from .paths import SOLVERS

GRACE = 0.1  # seconds beyond a limit, on any machine
CALLS = 3  # the first ones compile or load code
POSES, PROBLEMS, AGENTS = 20_000, 50, 2_000


def case(run, rng, number, tally):
    limit = float(np.exp(rng.uniform(np.log(0.02), np.log(0.3))))
    calls = (_arm_calls, _grid_calls)[number % 2](run, rng, number, limit)
    for what, call in calls.items():
        over = min(_beyond(call, limit) for _ in range(CALLS))
        tally.check(over <= GRACE, f"{what}: {over:.2f} s beyond a limit of {limit:.3f} s")


def _beyond(call, limit):
    """Seconds that a call took beyond its limit, by the clock and by the processor's."""
    clock, processor = time.perf_counter(), time.process_time()
    call()
    cores = len(os.sched_getaffinity(0))
    return min(time.perf_counter() - clock - limit, time.process_time() - processor - cores * limit)


def _arm_calls(run, rng, number, limit):
    """{what: call()} of a robot among obstacles of which many problems are too hard for their limit."""
    rig = run.rig(number // 2)
    rig.put([random_obstacle(rng, 0.05, 0.5).at(rng.normal(size=3) * 0.6) for _ in range(rng.integers(4, 30))])
    q = rig.configurations(rng, 4 * PROBLEMS)
    q = q[rig.checkers[rig.devices[0]].configurations_valid(q)] if len(q) else q
    if len(q) < 8:
        raise Skipped(f"{rig.name}: the random scene leaves no start or goal")
    half = len(q) // 2
    robot, tip = rig.robot, rig.robot.tip_link
    poses = robot.link_poses(rig.configurations(rng, POSES, free=False))[tip]
    shorter = rrt_connect.Settings(time_limit_s=limit, optimise_s=86_400.0)
    line = cartesian.Settings(time_limit_s=limit)
    calls = {}
    for device, checker in rig.checkers.items():
        where = f"on {device}, {rig.name}"
        for name, (planner, _) in SOLVERS.items():
            settings = planner.Settings(time_limit_s=limit, max_samples=100_000_000)
            calls[f"{name} {where}"] = partial(planner.solve, q[0], q[1:8], checker, settings)
        calls |= {
            f"optimise_s {where}": partial(rrt_connect.solve, q[0], q[1], checker, shorter),
            f"solve_batch {where}": partial(rrt_connect.solve_batch, q[:half], q[half : 2 * half], checker, shorter),
            f"inverse_kinematics {where}": partial(
                robot.inverse_kinematics, poses, checker, time_limit_s=limit, device=device
            ),
            f"a line {where}": partial(cartesian.solve, q[0], poses[0], checker, line),
        }
    return calls


def _grid_calls(run, rng, number, limit):
    """{what: call()} of fleets, and of agents with goals of their own."""
    rows, cols = (int(x) for x in rng.integers(40, 300, 2))
    costs = random_costs(rng, rows, cols, float(rng.choice([0.0, 0.1, 0.25])), 1)
    costs[0, 0] = 1
    grid = GridMap(costs, connectivity=4)
    free = np.argwhere(costs)
    starts, goals = (free[rng.permutation(len(free))[: min(AGENTS, len(free) // 3)]] for _ in range(2))
    motion = str(rng.choice(["four", "turning"]))
    what, calls = f"{motion}, {len(starts)} agents on {rows} x {cols}", {}
    for device in run.devices:
        fleet = FleetPlanner(grid, motion=motion, device=device)
        fleet.start(starts)
        planner = BlockPlanner(grid, device=device, settings=ExactSettings(time_limit_s=limit))
        calls |= {
            f"FleetPlanner.solve on {device}, {what}": partial(fleet.solve, starts, goals, time_limit_s=limit),
            f"FleetPlanner.prepare on {device}, {what}": partial(fleet.prepare, goals, limit),
            f"exact on {device}, {what}": partial(planner.plan, starts, goals),
        }
    search = BlockPlanner(grid, algorithm="astar", device="cpu", settings=AStarSettings(time_limit_s=limit))
    return calls | {f"astar, {what}": partial(search.plan, starts, goals)}


ATTACK = Attack("limits", "time limits", case)
