"""Makes a data set: an executor plans chunks of problems, and this process writes files in their order."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from ..arguments import checked, whole
from ..arm.planners.result import PlanningResult, Status
from ..arm.planners.rrt_connect.batch import batch_of, solve_part
from ..arm.planners.rrt_connect.request import BatchShape
from ..arm.robot.model import RobotModel
from ..arm.trajectory import time_parameterize
from ..device import resolve_devices
from ..distributed.executors import Split, devices_of, spread
from ..distributed.processes import processes
from ..errors import SettingsError, WorkerError
from ..files import file_path
from .problems import Problem, ProblemMaker, first_seed
from .recipe import Recipe
from .schema import arrow, arrow_schema, table_of
from .shards import DatasetError, Shards, allowed_counts, locked, open_shards

ROWS = 1000  # of a file
CHUNK = {"cpu": 64, "cuda": 1024}  # problems of a piece; files end pieces
LONGEST_CALL_S = 86_400.0
MOST_WORKERS = 4096
_planning: dict[str, threading.Lock] = {}  # by GPU: threads of one process take turns, so that one draws meanwhile
Told = Callable[[int, int], None]  # of (rows that are whole or planned, of which solved)


@checked(SettingsError)
def make(
    recipe: Recipe,
    folder: str | os.PathLike,
    problems: int,
    rows: int = ROWS,
    *,
    devices: str | Sequence[str] | None = None,
    workers: int = 0,
    executor: Executor | None = None,
    told: Told | None = None,
) -> Shards:
    """Make the data set of a recipe in a folder, or what is missing of it; the rows depend on the recipe alone.

    problems: how many;  rows: of a file
    devices: that the workers of each machine share, such as "cuda:0,cuda:1"; by default the CPU, or all CUDA
        devices, as the recipe's device is
    workers: processes; 0: one for each device, or only this process for one device. Processes import the script that
        calls this, which therefore needs `if __name__ == "__main__":`
    executor: runs the chunks in place of these processes: mpi4py's, Dask's, any
    told: called after each chunk with the number of rows, and how many of the new ones are solved

    Raises DatasetError where the folder holds another data set or another run writes it, SettingsError, DeviceError,
    OSError where the disk is full, WorkerError where a worker failed or died. What is whole stays.
    """
    arrow()
    described = recipe.described()
    devices = resolved(recipe, devices, executor)
    allowed_counts(problems, rows)
    allowed_workers(workers)
    with locked(file_path(folder, "a data set", DatasetError)):
        source = recipe.source | {"scenes": [name for name, _ in recipe.scenes]}
        shards = open_shards(folder, problems, rows, described, source)
        missing = shards.missing()
        schema = arrow_schema(recipe.robot.dof, recipe.timing is not None, {"recipe": described})
        there = problems - sum(last - first for first, last in map(shards.span, missing))
        if told:
            told(there, 0)
        if missing:
            with _workers(executor, devices, workers) as pool:
                _make_missing(shards, missing, Shared(recipe, schema), pool, devices, there, told)
    return shards


def allowed_workers(workers: int) -> int:
    """The number of processes. Raises SettingsError for an impossible one."""
    return whole("the number of workers", workers, 0, MOST_WORKERS)


def resolved(recipe: Recipe, devices: str | Sequence[str] | None = None, executor: Executor | None = None) -> list[str]:
    """The devices' full names; with an executor the given ones, since its workers may be on other machines.

    Raises SettingsError unless they are of the recipe's kind, and DeviceError.
    """
    names = devices_of(devices, recipe.device)
    found = list(resolve_devices(names) if executor is None else names)
    for device in found:
        if device.partition(":")[0] != recipe.device:
            raise SettingsError(f"the device is '{device}', the recipe is for '{recipe.device}'; allowed: one kind")
    return found


def _make_missing(shards, missing, shared, pool, devices, there, told):
    """Make the files with the numbers `missing`, and write each when its last rows are there."""
    pa, rows, done, solved, parts = arrow(), shards.rows, 0, 0, []

    def problem(index):  # of the missing ones, in their order
        return missing[index // rows] * rows + index % rows

    def left(index):  # problems of its file, from that one on
        return shards.span(missing[index // rows])[1] - problem(index)

    def cut(first, last):
        return problem(first), problem(first) + last - first

    def size(first):
        return min(CHUNK[shared.recipe.device], left(first))

    count = sum(last - first for first, last in map(shards.span, missing))
    split = Split("problems", count, cut, plan, shared, size=size)
    try:
        with contextlib.closing(spread(split, pool, devices, lambda *_: None)) as tables:
            for table in tables:
                parts.append(table)
                if len(table) == left(done):
                    whole, parts = pa.concat_tables(parts).combine_chunks(), []
                    shards.write(missing[done // rows], whole)
                done, solved = done + len(table), solved + table["status"].to_pylist().count(Status.SOLVED.value)
                if told:
                    told(there + done, solved)
    except WorkerError as error:
        raise WorkerError(
            f"{str(error).rstrip('.')}; what is whole is kept, and the same command goes on with it"
        ) from error


@contextlib.contextmanager
def _workers(executor, devices, workers) -> Iterator[Executor]:
    workers = workers or (len(devices) if len(devices) > 1 else 0)
    if executor is not None:
        yield executor
    elif workers:
        with processes(workers) as pool:
            yield pool
    else:
        threads = ThreadPoolExecutor(2)  # one draws problems while the other plans
        try:
            yield threads
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


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


def planned(problems: list[Problem], recipe: Recipe, device: str) -> Sequence[PlanningResult]:
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
