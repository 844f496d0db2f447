"""Checks a data set again: each row is there once, and is right.

The collision checker on the CPU checks paths in a world that is built anew from the row.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..arguments import checked
from ..arm import CollisionChecker, RobotModel, load_urdf
from ..arm.planners.result import Status, path_length
from ..errors import GpuPlannersError
from ..files import file_path
from .making import poses_of
from .problems import NO_GOAL, NO_START
from .reading import Dataset, load
from .recipe import model_digest
from .schema import arrow, digest_of
from .shards import DIGEST, DatasetError, Shards, problem_of_file, read_manifest

CLOSE = 1e-6  # metres, rad: allowed difference to what is computed again
MOST_TEXTS = 20
STATUSES = {NO_START, NO_GOAL, *(status.value for status in Status)}


@dataclass
@checked(DatasetError)
class Report:
    """What a check found. rows, errors: how many;  counts: {status: rows};  texts: of the first errors"""

    rows: int = 0
    errors: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)

    def wrong(self, text: str) -> None:
        """Note an error."""
        self.errors += 1
        if len(self.texts) < MOST_TEXTS:
            self.texts.append(text)


@checked(DatasetError)
def check(
    folder: str | os.PathLike, robot: RobotModel | None = None, told: Callable[[int, int], None] | None = None
) -> Report:
    """Check all files and rows of a data set.

    robot: by default read again from the files that the data set names
    told: called after each file with the numbers of rows and errors so far
    Raises DatasetError for what is no data set, or for another robot.
    """
    folder = file_path(folder, "a data set", DatasetError)
    arrow()
    manifest = read_manifest(folder)
    shards, report = Shards(folder, manifest), Report()
    robot, stored = robot or robot_of(manifest), manifest["recipe"]["robot"]
    if model_digest(robot) != stored["model_sha256"]:
        raise DatasetError(
            f"robot '{robot.name}' with joints {', '.join(robot.joint_names)} is not the one of the data set, "
            f"'{stored['name']}' with joints {', '.join(stored['joint_names'])}, or its files have changed"
        )
    expected = {shards.file(number).name for number in range(shards.count)}
    for name in sorted({file.name for file in folder.glob("problems-*")} - expected):
        report.wrong(f"'{name}' belongs to no problem of the data set")
    for number in range(shards.count):
        if problem := problem_of_file(shards, number):
            first, last = shards.span(number)
            report.wrong(f"'{shards.file(number).name}' {problem}: problems {first} to {last - 1} are missing")
            continue
        try:
            data = load(shards.file(number))
            if data.table.schema.metadata.get(DIGEST) != digest_of(data.table).encode():
                report.wrong(f"'{shards.file(number).name}' was changed since it was written, so that no row counts")
                continue
            check_rows(data, robot, shards.span(number)[0], report)
        except GpuPlannersError as error:
            report.wrong(f"'{shards.file(number).name}': {error}")
        if told:
            told(report.rows, report.errors)
    return report


def robot_of(manifest: dict) -> RobotModel:
    """The robot, from the files that a data set's manifest names. Raises DatasetError where they are not there."""
    source = manifest.get("source") or {}
    if not source.get("urdf") or not Path(source["urdf"]).is_file():
        raise DatasetError(f"the robot's URDF is not at '{source.get('urdf', '')}'; give it again")
    return load_urdf(
        source["urdf"],
        source.get("srdf"),
        package_dirs=source.get("package_dirs") or (),
        joints=manifest["recipe"]["robot"]["joint_names"],
        fixed=source.get("fixed") or {},
    )


def check_rows(data: Dataset, robot: RobotModel, first: int, report: Report) -> None:
    """Check the rows of one file, which begin with problem `first`."""
    recipe = data.facts["recipe"]
    weights = np.asarray(recipe["planner"]["weights"] or np.ones(robot.dof))
    expected = np.arange(first, first + len(data))
    for row in np.flatnonzero(data.number != expected):
        report.wrong(f"row {row} of problems {first} on is of problem {data.number[row]}; expected: {expected[row]}")
    poses = {"start_pose": data.start, "goal_pose": data.goal}
    away = {name: np.abs(getattr(data, name) - poses_of(robot, recipe["robot"]["tip"], q)) for name, q in poses.items()}
    checker, before = None, None
    for row in range(len(data)):
        status = str(data.status[row])
        report.rows += 1
        report.counts[status] = report.counts.get(status, 0) + 1
        obstacles = data.obstacles_of(row)
        if checker is None or obstacles != before:
            before = obstacles
            checker = CollisionChecker(robot, data.world(row), "cpu", margin=recipe["margin_m"])
        texts = list(_row_errors(data, row, status, checker, weights))
        texts += [f"its {name} is not that of the tool" for name in away if (away[name][row] > CLOSE).any()]
        for text in texts:
            report.wrong(f"problem {data.number[row]} ({status}): {text}")


def _row_errors(data, row, status, checker, weights) -> Iterator[str]:
    robot, start, goals, path = checker.robot, data.start[row], data.of("goals", row), data.path(row)
    if status not in STATUSES:
        yield "no such status"
    if (status == Status.SOLVED.value) != bool(len(path)) or (len(path) > 0) != (data.goal_index[row] >= 0):
        yield f"its path has {len(path)} waypoints and its goal is {data.goal_index[row]}"
        return
    if np.isnan(start).any() != (status == NO_START) or np.isnan(goals).any() != (status in (NO_START, NO_GOAL)):
        yield "its start or goals are not what its status says"
        return
    ends = np.concatenate([start[None], goals])
    ends = ends[~np.isnan(ends).any(axis=1)]
    if len(ends) and not checker.configurations_valid(ends).all():
        yield "its start or a goal is not free"
    if not _within(ends, robot).all():
        yield "its start or a goal is outside the joint limits"
    if len(path):
        yield from _path_errors(path, start, goals[data.goal_index[row]], checker)
        if abs(path_length(path, weights) - data.cost[row]) > CLOSE * max(1.0, data.cost[row]):
            yield f"its cost is {data.cost[row]:g}, its path's length {path_length(path, weights):g}"
        if "times" in data.columns:
            yield from _motion_errors(data, row, path, checker)


def _path_errors(path, start, goal, checker) -> Iterator[str]:
    robot = checker.robot
    turns = np.where(robot.continuous, np.round((path[-1] - goal) / (2 * np.pi)) * 2 * np.pi, 0.0)
    if not np.array_equal(path[0], start) or np.abs(path[-1] - turns - goal).max() > CLOSE:
        yield "its path does not lead from its start to its goal"
    if not _within(path, robot).all():
        yield "its path leaves the joint limits"
    for leg in np.flatnonzero(~checker.motions_valid(path[:-1], path[1:])):
        yield f"its leg {leg} is not free"


def _motion_errors(data, row, path, checker) -> Iterator[str]:
    times, positions = data.of("times", row), data.of("positions", row)
    if not len(times) or times[0] != 0 or (np.diff(times) <= 0).any():
        yield "its times do not grow from 0"
    elif np.abs(positions[[0, -1]] - path[[0, -1]]).max() > CLOSE:
        yield "its motion does not have the ends of its path"
    elif not checker.configurations_valid(positions).all():
        yield "its motion is not free"
    limits = checker.robot.velocity * data.facts["recipe"]["timing"]["velocity"]
    if (np.abs(data.of("velocities", row)) > limits * (1 + 1e-3)).any():
        yield "its motion is faster than the joints"


def _within(q, robot):
    return ((q >= robot.lower - 1e-9) & (q <= robot.upper + 1e-9) | robot.continuous).all(axis=1)
