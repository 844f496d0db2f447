"""Trajectories as text, and back: CSV for tables, JSON with all that is known, YAML as ROS prints a JointTrajectory.

CSV has the columns time, then each joint's position by its name, then <joint>_velocity and <joint>_acceleration.
YAML is what `ros2 topic pub TOPIC trajectory_msgs/msg/JointTrajectory` takes.
"""

import csv
import io
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ..arm import RobotModel
from ..arm.trajectory import Trajectory
from ..errors import shortened
from ..files import read_array, read_text_file, read_yaml
from .errors import InputError
from .robots import is_number

MOST_BYTES = 256 * 2**20  # of a file that is read
MOST_ROWS = 1_000_000  # of a motion that is sampled
FLOW = {"default_flow_style": None, "sort_keys": False, "width": 1_000_000}


def format_of(file: str, chosen: str | None) -> str:
    """A key of WRITERS: what was chosen, else by the file's ending."""
    if chosen:
        return chosen
    if file == "-":
        return "csv"
    ending = Path(file).suffix.lower().removeprefix(".").replace("yml", "yaml")
    if ending not in WRITERS:
        raise InputError(f"--output '{file}' ends in '{Path(file).suffix}'; allowed: .csv, .json, .yaml, or --format")
    return ending


def sampled(trajectory: Trajectory, every_s: float | None) -> Trajectory:
    """The trajectory at equal times, its end included; None: as it is."""
    if every_s is None:
        return trajectory
    if not (np.isfinite(every_s) and every_s > 0 and trajectory.duration / every_s <= MOST_ROWS):
        least = trajectory.duration / MOST_ROWS
        raise InputError(f"--every is {every_s} s; allowed: above 0, for this motion from {least:.3g} s")
    times = np.append(np.arange(0.0, trajectory.duration - 1e-9, every_s), trajectory.duration)
    return Trajectory(times, *trajectory.at(times))


def as_csv(robot: RobotModel, trajectory: Trajectory, _facts: dict[str, Any]) -> str:
    """Rows of time, positions, velocities, accelerations."""
    names = robot.joint_names
    columns = ["time", *names, *(f"{name}_{what}" for what in ("velocity", "acceleration") for name in names)]
    rows = np.hstack([trajectory.times[:, None], trajectory.positions, trajectory.velocities, trajectory.accelerations])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([f"{value:.9g}" for value in row] for row in rows + 0.0)
    return text.getvalue()


def as_json(robot: RobotModel, trajectory: Trajectory, facts: dict[str, Any]) -> str:
    """One object: facts about the motion, and arrays with a row for each time."""
    rows = {name: np.round(getattr(trajectory, name) + 0.0, 9).tolist() for name in ROWS}
    return json.dumps({**facts, "joint_names": list(robot.joint_names), **rows}, indent=1) + "\n"


def as_yaml(robot: RobotModel, trajectory: Trajectory, _facts: dict[str, Any]) -> str:
    nanoseconds = np.round(trajectory.times * 1e9).astype(np.int64)
    points = [
        {
            **{name: np.round(getattr(trajectory, name)[i] + 0.0, 9).tolist() for name in ROWS[1:]},
            "time_from_start": {"sec": int(t // 10**9), "nanosec": int(t % 10**9)},
        }
        for i, t in enumerate(nanoseconds)
    ]
    return yaml.safe_dump({"joint_names": list(robot.joint_names), "points": points}, **FLOW)


ROWS = ("times", "positions", "velocities", "accelerations")
WRITERS: dict[str, Callable[[RobotModel, Trajectory, dict[str, Any]], str]] = {
    "csv": as_csv,
    "json": as_json,
    "yaml": as_yaml,
}


def read_path(file: str | os.PathLike, robot: RobotModel) -> tuple[np.ndarray, np.ndarray | None]:
    """(K, dof) configurations of a file that `read_table` reads, rad or m, whatever the order of its joints, and their
    (K,) times in seconds where it has them. Raises InputError that names the file."""
    names, rows = read_table(file)
    if names is None and rows.shape[1] != robot.dof:
        raise InputError(f"'{file}' must hold rows of {robot.dof} joint values, it has shape {rows.shape}")
    return columns(file, names or robot.joint_names, rows, robot.joint_names), times_of(names, rows)


def columns(file: str | os.PathLike, names: Sequence[str], rows: np.ndarray, wanted: Sequence[str]) -> np.ndarray:
    """(K, W) the wanted columns of a table. Raises InputError for one that it does not have."""
    if missing := [name for name in wanted if name not in names]:
        raise InputError(f"'{file}' has no column for joint {missing[0]}")
    return rows[:, [names.index(name) for name in wanted]]


def times_of(names: Sequence[str] | None, rows: np.ndarray) -> np.ndarray | None:
    """(K,) the times of a table, None where it has none."""
    return rows[:, names.index("time")] if names and "time" in names else None


def read_table(file: str | os.PathLike) -> tuple[list[str] | None, np.ndarray]:
    """Names of the columns and finite rows (K, columns) of a file: joints, "time" and whatever else a CSV file has.

    Reads what `as_csv`, `as_json` and `as_yaml` write; and, without names, NumPy's .npy and text with one
    configuration a row, its values separated by commas or blanks. Raises InputError that names the file.
    """
    kind = Path(file).suffix.lower()
    try:
        if kind == ".npy":
            names, rows = None, read_array(file, "path", InputError, MOST_BYTES)
        elif kind in (".json", ".yaml", ".yml"):
            names, rows = _of_document(read_yaml(file, "path", InputError, MOST_BYTES))
        else:
            names, rows = _of_text(read_text_file(file, "path", InputError, MOST_BYTES))
        rows = np.atleast_2d(np.asarray(rows, dtype=np.float64))
    except InputError:
        raise
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise InputError(f"'{file}' holds no table of numbers: {shortened(error)}") from error
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all() or (names and len(names) != rows.shape[1]):
        raise InputError(f"'{file}' must hold rows of joint values, finite numbers; it has shape {rows.shape}")
    return names, rows


def _of_document(document):
    names = ["time", *document["joint_names"]]
    if "points" in document:
        stamps = [point["time_from_start"] for point in document["points"]]
        times = [stamp["sec"] + 1e-9 * stamp["nanosec"] for stamp in stamps]
        return names, np.column_stack([times, [point["positions"] for point in document["points"]]])
    return names, np.column_stack([document["times"], document["positions"]])


def _of_text(text):
    lines = [words for line in text.splitlines() if (words := line.replace(",", " ").split())]
    names = lines.pop(0) if lines and not is_number(lines[0][0]) else None
    return names, [[float(word) for word in line] for line in lines]
