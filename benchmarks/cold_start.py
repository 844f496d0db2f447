"""From the start of a process to its first answer: with nothing compiled, and again with what that process has left.

Each row is a process of its own (`python -m benchmarks.cold_start WHAT DEVICE`) with an empty cache, then another with
the cache of the first. Robot: the Panda of example-robot-data among three boxes; a second one, the UR5, after it.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from . import robots
from .harness import Benchmark, Row, progress

ROOT = Path(__file__).resolve().parent.parent
LONGEST_S = 900.0
BOXES = ((0.55, 0.35, 0.3), (0.55, -0.35, 0.5), (-0.45, 0.0, 0.6))  # centres, metres; edges of 0.2 m


def imported(device):
    import gpu_planners.arm.planners.rrt_connect  # noqa: F401
    from gpu_planners.arm import CollisionChecker, load_urdf  # noqa: F401


def check(device, robot="panda"):
    checker, free = _checker(robot, device)
    checker.motions_valid(free[:-1], free[1:])
    return checker, free


def raw_plan(device, robot="panda", **settings):
    from gpu_planners.arm import rrt_connect

    checker, free = _checker(robot, device)
    settings = rrt_connect.Settings(optimise_s=0.0, **settings)
    result = rrt_connect.solve(free[0], free[1], checker, settings, seed=0)
    assert result.path is not None, result.status
    return checker.robot, result.path


def timed_plan(device):
    from gpu_planners.arm.trajectory import time_parameterize

    robot, path = raw_plan(device)
    time_parameterize(path, robot.velocity, 4 * robot.velocity)


def two_robots(device):
    raw_plan(device)
    raw_plan(device, "ur5")


def inverse_kinematics(device):
    rig = robots.rig("panda")
    robot = rig.model
    pose = robot.link_poses(np.full((1, robot.dof), 0.1))[rig.tips[0]][0]
    assert len(robot.inverse_kinematics(pose, device=device))


def grid_plan(device):
    from gpu_planners.grid import BlockPlanner

    grid, free = _map()
    BlockPlanner(grid, device=device).plan(free[:100], free[-1]).path(0)


def fleet_step(device):
    from gpu_planners.grid import FleetPlanner

    grid, free = _map()
    fleet = FleetPlanner(grid, device=device)
    fleet.start(free[:200])
    for _ in range(2):  # what the first has no time for, since it compiles, the second needs
        fleet.step(free[200:400], budget_s=0.1)


def whole_plan(device):
    from gpu_planners.fleet import Settings
    from gpu_planners.grid import FleetPlanner

    grid, free = _map()
    FleetPlanner(grid, device=device, settings=Settings(improve_until="settled")).solve(
        free[:50], free[50:100], time_limit_s=60.0
    )


WHAT = {
    "import of gpu_planners.arm": imported,
    "checks of configurations and motions": check,
    "plan of RRT-Connect": raw_plan,
    "plan with times": timed_plan,
    "plan, then one for another robot": two_robots,
    "inverse kinematics": inverse_kinematics,
    "paths on a grid": grid_plan,
    "a fleet's first two steps": fleet_step,
    "a fleet's whole plan": whole_plan,
}


def _checker(name, device):
    """(CollisionChecker, three free configurations that straight motions do not join, as a rule)"""
    from gpu_planners.arm import CollisionChecker, CollisionWorld

    robot, world = robots.rig(name).model, CollisionWorld()
    for number, centre in enumerate(BOXES):
        pose = np.eye(4)
        pose[:3, 3] = centre
        world.add_box(f"box{number}", [0.2, 0.2, 0.2], pose)
    checker = CollisionChecker(robot, world, device=device)
    q = np.random.default_rng(1).uniform(robot.lower, robot.upper, (256, robot.dof))
    return checker, q[checker.configurations_valid(q)][:3]


def _map():
    from gpu_planners.grid import GridMap

    rng = np.random.default_rng(1)
    costs = (rng.random((128, 128)) > 0.1).astype(np.uint8)
    return GridMap(costs, connectivity=4), rng.permutation(np.argwhere(costs))


def _seconds(what, device, cache):
    """(CPU seconds, wall seconds) of a process"""
    command = [sys.executable, "-m", "benchmarks.cold_start", what, device]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = os.environ | {"XDG_CACHE_HOME": cache}
    environment.pop("NUMBA_CACHE_DIR", None)
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LONGEST_S)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode:
        raise RuntimeError(ended.stderr)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def _rows(context):
    rows = []
    for device, why in context.asked_for():
        for what in progress(WHAT, "first answers"):
            if why:
                rows.append(Row(what, f"gpu_planners, {device}", note=why))
                continue
            with tempfile.TemporaryDirectory() as cache:
                cold, warm = _seconds(what, device, cache), _seconds(what, device, cache)
            figures = {"cold_cpu_s": cold[0], "cold_s": cold[1], "warm_s": warm[1]}
            rows.append(Row(what, f"gpu_planners, {device}", figures))
    return rows


BENCHMARKS = (
    Benchmark(
        "cold_start",
        "From a process's start to its first answer",
        "Seconds of fresh processes: of CPU and of wall time with nothing compiled, and of wall time with "
        "what the first process has left there. An idle machine is assumed.",
        {"cold_cpu_s": "ratio", "cold_s": "ratio", "warm_s": "ratio"},
        _rows,
    ),
)

if __name__ == "__main__":
    WHAT[sys.argv[1]](sys.argv[2])
