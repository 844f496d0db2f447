#!/usr/bin/env python3
"""Plans for an arm, a grid and a fleet with the gpu_planners that is installed, and says how long each took.

tools/release.py, the tests and the images run it.
"""

import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

STARTED = time.perf_counter()


def told(what):
    print(f"{time.perf_counter() - STARTED:6.1f} s  {what}", flush=True)


def arm():
    import numpy as np

    from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf, rrt_connect
    from gpu_planners.share import share_folder

    urdf = share_folder() / "urdf"
    robot = load_urdf(urdf / "desk_arm.urdf", srdf=urdf / "desk_arm.srdf", group="arm")
    pose, world = np.eye(4), CollisionWorld()
    pose[:3, 3] = 0.45, 0.0, 0.5
    world.add_box("post", [0.1, 0.1, 1.0], pose)
    start = robot.named_states["ready"]
    checker = CollisionChecker(robot, world)
    result = rrt_connect.solve(start, start + [-1.2, 0, 0, 0, 0, 0], checker)
    assert result.solved, result
    told(f"an arm's motion through {len(result.path)} configurations on {checker.device}")


def grid():
    from gpu_planners.grid import BlockPlanner
    from gpu_planners.grid.maps.generated import caves_and_rooms, random_free_tiles

    grid = caves_and_rooms(256, 256)
    starts, goal = random_free_tiles(grid, 1000), random_free_tiles(grid, 1, seed=1)[0]
    paths = BlockPlanner(grid).plan(starts, goal)
    assert paths.solved.any()
    told(f"{paths.solved.sum()} paths of {len(starts)} agents on a grid")


def fleet():
    import numpy as np

    from gpu_planners.fleet import conflicts
    from gpu_planners.grid import FleetPlanner, GridMap

    plan = FleetPlanner(GridMap(np.ones((20, 30), np.uint8))).solve(
        [[0, 0], [0, 29]], [[0, 29], [0, 0]], time_limit_s=1.0
    )
    assert plan.solved and not conflicts(plan.positions)
    told(f"a fleet's plan: {plan.sum_of_costs} steps in all")


def commands():
    from gpu_planners.share import share_folder

    command, share = Path(sys.executable).with_name("gpu-planners"), share_folder()
    for folder in ("launch", "config", "urdf"):
        assert any((share / folder).iterdir()), folder
    with tempfile.TemporaryDirectory() as folder:

        def run(*words):
            done = subprocess.run([command, *words], cwd=folder, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
            return done

        version = metadata.version("gpu_planners")
        assert f"gpu_planners {version}" in run("info").stdout
        told("gpu-planners info")
        robot = (share / "urdf/desk_arm.urdf", "--srdf", share / "urdf/desk_arm.srdf", "--group", "arm")
        scene = ("--scene", share / "config/scenes/desk.yaml")
        goal = ("--goal", "-0.9", "0.55", "1.0", "1.5", "0.0", "0.0")
        print(run("plan", *robot, *scene, "--start", "ready", *goal, "-o", "motion.csv").stderr, end="")
        assert Path(folder, "motion.csv").read_text().count("\n") > 2
        told("gpu-planners plan")


if __name__ == "__main__":
    import gpu_planners

    told(f"imported {gpu_planners.__version__} from {Path(gpu_planners.__file__).parent}")
    arm()
    grid()
    fleet()
    commands()
