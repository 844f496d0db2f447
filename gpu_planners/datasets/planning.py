"""Plans a chunk of problems, in whatever thread or process an executor runs it."""

import contextlib
import threading
import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from ..arm.planners.result import PlanningResult
from ..arm.planners.rrt_connect.planner import batch_of, solve_part
from ..arm.planners.rrt_connect.request import BatchShape
from ..arm.robot.model import RobotModel
from ..arm.trajectory import time_parameterize
from .problems import Problem, ProblemMaker, first_seed
from .recipe import Recipe
from .schema import table_of

CHUNK = {"cpu": 64, "cuda": 1024}  # problems of a piece; files end pieces
LONGEST_CALL_S = 86_400.0
_planning: dict[str, threading.Lock] = {}  # by GPU: threads of one process take turns, so that one draws meanwhile


@dataclass
class Shared:
    """What all chunks of a data set share; a worker gets it once, without a maker. schema: pyarrow.Schema"""

    recipe: Recipe
    schema: Any

    @cached_property
    def maker(self) -> ProblemMaker:
        """Of the recipe. Its checkers are for one thread."""
        return ProblemMaker(self.recipe)


def plan(shared: Shared, piece: tuple[int, int], device: str) -> Any:
    """pyarrow.Table of rows. piece: the first problem and that after the last; device: of the worker"""
    recipe, schema = shared.recipe, shared.schema
    problems = [shared.maker.problem(number) for number in range(*piece)]
    with contextlib.nullcontext() if device == "cpu" else _planning.setdefault(device, threading.Lock()):
        began = time.perf_counter()
        results = planned(problems, recipe, device)
        spent = time.perf_counter() - began
    rows = [row_of(problem, result, recipe) for problem, result in zip(problems, results, strict=True)]
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    reached = np.array([row["goals"][max(row["goal_index"], 0)] for row in rows])
    columns["start_pose"] = poses_of(recipe.robot, recipe.tip, np.array(columns["start"]))
    columns["goal_pose"] = poses_of(recipe.robot, recipe.tip, reached)
    columns["time_s"] = [spent / len(rows)] * len(rows)
    return table_of(columns, schema)


def planned(problems: list[Problem], recipe: Recipe, device: str) -> list[PlanningResult]:
    """The planner's answers. Problems without a start or a goal keep their places, so that seeds have no gap."""
    limit = recipe.settings.time_limit_s * max(1, len(problems))
    batch = batch_of(
        [problem.start for problem in problems],
        [problem.goals for problem in problems],
        [problem.scene.checker.on(device) for problem in problems],
        replace(recipe.settings, time_limit_s=min(LONGEST_CALL_S, limit)),
        seed=first_seed(recipe.seed) + problems[0].number,
    )
    # on CUDA a search depends on the size of its batch: plan as if each chunk was whole, however few a file leaves
    whole = BatchShape(CHUNK["cuda"], recipe.draw.solutions)
    return solve_part(batch._replace(whole=whole), device)


def row_of(problem: Problem, result: PlanningResult, recipe: Recipe) -> dict[str, Any]:
    """{column: value} of a problem and its answer, without the tool's poses and the time."""
    row = {
        "number": problem.number,
        "scene": problem.scene.number,
        "seed": problem.seed,
        "status": problem.status or result.status.value,
        "message": problem.message if problem.status else result.message,
        "start": problem.start,
        "goals": problem.goals,
        "goal_index": result.goal_index,
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
