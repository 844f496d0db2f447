"""Plans a chunk of problems: a function that any concurrent.futures.Executor can run, in any process."""

import hashlib
import multiprocessing
import os
import pickle
import signal
import threading
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from ..arm import rrt_connect
from ..arm.planners.result import PlanningResult
from ..arm.robot.model import RobotModel
from ..arm.trajectory import time_parameterize
from .problems import Problem, ProblemMaker, first_seed
from .recipe import Recipe
from .schema import table_of

LONGEST_CALL_S = 86_400.0
# by device: batches of one process take turns, so that one is drawn meanwhile
_planning: dict[str, threading.Lock] = {}
_own_device = ""  # of this process, where its pool gave it one


@dataclass(frozen=True)
class Job:
    """Problems first to last - 1 of a recipe.

    recipe: pickled, since a process that knows it need not read it again;  schema: of the table;  device: of this job
    """

    recipe: bytes
    schema: Any
    first: int
    last: int
    device: str


def take_device(devices: Any) -> None:
    """In a new process of a pool: take the next device of a queue, for all of its jobs; Ctrl-C is for the parent, and
    without a parent nobody wants the process."""
    global _own_device
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _own_device = devices.get()


def _end_with_parent():
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def packed(recipe: Recipe) -> bytes:
    """The recipe of a Job."""
    return pickle.dumps(recipe)


def plan(job: Job) -> Any:
    """pyarrow.Table of the rows of a job."""
    maker = _maker(job.recipe, threading.get_ident())
    problems = [maker.problem(number) for number in range(job.first, job.last)]
    device = _own_device or job.device
    with _planning.setdefault(device, threading.Lock()):
        began = time.perf_counter()
        results = planned(problems, maker.recipe, device)
        spent = time.perf_counter() - began
    rows = [row_of(problem, result, maker.recipe) for problem, result in zip(problems, results, strict=True)]
    for row in rows:
        row["time_s"] = spent / len(rows)
    return table_of({name: [row[name] for row in rows] for name in job.schema.names}, job.schema)


@lru_cache(maxsize=4)
def _maker(recipe, _thread):
    """The maker of a pickled recipe: one for each thread, since checkers are no thread's but one's."""
    return ProblemMaker(_unpacked(hashlib.sha256(recipe).digest(), recipe))


@lru_cache(maxsize=4)
def _unpacked(_digest, recipe):
    return pickle.loads(recipe)


def planned(problems: list[Problem], recipe: Recipe, device: str) -> list[PlanningResult]:
    """The planner's answers. One without a start or a goal keeps its place, so that seeds have no gap."""
    limit = recipe.settings.time_limit_s * max(1, len(problems))
    return rrt_connect.solve_batch(
        [problem.start for problem in problems],
        [problem.goals for problem in problems],
        [problem.scene.checker.on(device) for problem in problems],
        replace(recipe.settings, time_limit_s=min(LONGEST_CALL_S, limit)),
        seed=first_seed(recipe.seed) + problems[0].number,
    )


def row_of(problem: Problem, result: PlanningResult, recipe: Recipe) -> dict[str, Any]:
    """{column: value} of a problem and its answer."""
    goal = problem.goals[max(result.goal_index, 0)]
    start_pose, goal_pose = poses_of(recipe.robot, recipe.tip, np.array([problem.start, goal]))
    row = {
        "number": problem.number,
        "scene": problem.scene.number,
        "seed": problem.seed,
        "status": problem.status or result.status.value,
        "message": problem.message if problem.status else result.message,
        "start": problem.start,
        "goals": problem.goals,
        "goal_index": result.goal_index,
        "start_pose": start_pose,
        "goal_pose": goal_pose,
        "waypoints": result.path,
        "cost": float(result.cost),
        "samples": result.samples,
        "obstacles": problem.scene.obstacles,
    }
    return row if recipe.timing is None else row | _timed(result.path, problem.scene.checker, recipe)


def _timed(path, checker, recipe):
    robot, timing = recipe.robot, recipe.timing
    none = np.zeros((0, robot.dof))
    if not len(path):
        return {"times": np.zeros(0), "positions": none, "velocities": none, "accelerations": none}
    motion = time_parameterize(
        path,
        robot.velocity * timing.velocity,
        robot.acceleration * timing.acceleration,
        deviation=timing.deviation,
        checker=checker if timing.deviation else None,
    )
    times, knots = motion.times, (motion.positions, motion.velocities, motion.accelerations)
    if timing.every_s:
        times = np.append(np.arange(0.0, motion.duration - 1e-9, timing.every_s), motion.duration)
        knots = motion.at(times)
    return {"times": times} | dict(zip(("positions", "velocities", "accelerations"), knots, strict=True))


def poses_of(robot: RobotModel, link: str, q: np.ndarray) -> np.ndarray:
    """(N, 7) x y z qx qy qz qw of a link in the root frame at q (N, dof); NaN where q is."""
    known = np.isfinite(q).all(axis=1)
    poses = np.full((len(q), 7), np.nan)
    if known.any():
        T = robot.link_poses(q[known])[link]
        poses[known, :3] = T[:, :3, 3]
        poses[known, 3:] = Rotation.from_matrix(T[:, :3, :3]).as_quat(canonical=True)
    return poses
