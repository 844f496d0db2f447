"""Scenes that differ in poses alone: how long it takes to pose, check and plan for all environments of a simulator."""

import numpy as np

from gpu_planners.arm import CollisionWorld, SceneBatch, load_urdf, rrt_connect
from gpu_planners.share import share_folder

from .harness import Benchmark, Row, median, places, seconds

OBSTACLES, EACH = 8, 32  # boxes; configurations checked in each scene
TRIED = 400  # configurations of each scene, of which the first two that are free are its start and goal
IN_TIME_S = {"cpu": 30.0, "cuda": 2.0}  # of the call; problems that are not solved by then are left out


def environments(context):
    """A row for each device, and place of the arrays."""
    urdf = share_folder() / "urdf"
    robot = load_urdf(urdf / "desk_arm.urdf", srdf=urdf / "desk_arm.srdf", group="arm")
    rows = []
    for device, missing in context.asked_for():
        count = 64 if context.quick or device == "cpu" else 1024
        case = f"{count} scenes of {OBSTACLES} boxes"
        if missing:
            rows.append(Row(case, f"gpu_planners, {device}", note=missing))
            continue
        rows += _measured(case, robot, count, device, 3 if context.quick else 7)
    return rows


def _measured(case, robot, count, device, repeats):
    rng, world = np.random.default_rng(0), CollisionWorld()
    for number in range(OBSTACLES):
        world.add_box(f"box{number}", (0.12, 0.12, 0.12), np.eye(4))
    batch, poses = SceneBatch(robot, world, count, device), np.zeros((count, OBSTACLES, 7))
    poses[..., :3] = rng.uniform([0.2, -0.7, 0.1], [0.8, 0.7, 1.0], (count, OBSTACLES, 3))
    poses[..., 3] = 1.0
    q, rows = rng.uniform(robot.lower, robot.upper, (count, TRIED, robot.dof)), []
    for (where, (given,)), (_, (few,)) in zip(places(device, poses), places(device, q[:, :EACH])):
        posed = 1e3 * seconds(lambda given=given: batch.set_poses(given), repeats)
        checked = count * EACH / seconds(lambda few=few: batch.configurations_valid(few), repeats)
        rows.append((f"gpu_planners, {device}{where}", {"time_ms": median(posed), "rate": median(checked)}, checked))
    free = np.asarray(batch.configurations_valid(q))
    able = np.flatnonzero(free.sum(axis=1) > 1)
    starts, goals = (np.array([q[e][free[e]][k] for e in able]) for k in (0, 1))
    settings = rrt_connect.Settings(shortcut_rounds=0, time_limit_s=IN_TIME_S[device.partition(":")[0]])
    solved = rrt_connect.solve_batch(starts, goals, [batch[int(e)] for e in able], settings).solved
    starts, goals, scenes = starts[solved], goals[solved], [batch[int(e)] for e in able[solved]]
    taken = seconds(lambda: rrt_connect.solve_batch(starts, goals, scenes, settings), repeats)
    rows[0][1].update(solved=f"{solved.sum()}/{len(able)}", plans=len(scenes) / median(taken))
    return [Row(case, subject, figures, list(map(float, samples))) for subject, figures, samples in rows]


BENCHMARKS = (
    Benchmark(
        "environments",
        "Scenes of a simulator's environments",
        "A SceneBatch of an arm of six joints among boxes at random poses: time to pose all boxes of all scenes, "
        f"configurations checked a second with {EACH} in each scene, and raw plans a second, one for each scene that "
        "has a way, in one call of solve_batch.",
        {"time_ms": "ms", "rate": "rate", "plans": "rate", "solved": "text"},
        environments,
    ),
)
