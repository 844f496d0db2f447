"""Trajectories as text, and back: CSV for tables, JSON with all that is known, YAML as ROS prints a JointTrajectory.

CSV has the columns time, then each joint's position by its name, then <joint>_velocity and <joint>_acceleration.
YAML is what `ros2 topic pub TOPIC trajectory_msgs/msg/JointTrajectory` takes.
"""

import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ..arm import RobotModel
from ..arm.trajectory import Trajectory
from ..files import read_text_file, read_yaml, regular_file
from .errors import InputError

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
    """A trajectory_msgs/JointTrajectory."""
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
    """(K, dof) configurations of a file, rad or m, and their (K,) times in seconds where it has them.

    Reads what `as_csv`, `as_json` and `as_yaml` write, whatever the order of the joints; NumPy's .npy; and text with
    one configuration a row, its values separated by commas or blanks. Raises InputError that names the file.
    """
    kind = Path(file).suffix.lower()
    try:
        if kind == ".npy":
            path, times = np.load(regular_file(file, "path", InputError, MOST_BYTES), allow_pickle=False), None
        elif kind in (".json", ".yaml", ".yml"):
            path, times = _of_document(read_yaml(file, "path", InputError, MOST_BYTES), robot)
        else:
            path, times = _of_table(read_text_file(file, "path", InputError, MOST_BYTES), robot)
        path = np.atleast_2d(np.asarray(path, dtype=np.float64))
    except InputError:
        raise
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"'{file}' holds no table of numbers: {error}") from error
    if path.ndim != 2 or path.shape[1] != robot.dof or not np.isfinite(path).all() or not len(path):
        raise InputError(f"'{file}' must hold finite rows of {robot.dof} joint values, it has shape {path.shape}")
    return path, times


def _of_document(document, robot):
    names = list(document["joint_names"])
    if "points" in document:
        rows = [point["positions"] for point in document["points"]]
        stamps = [point["time_from_start"] for point in document["points"]]
        times = np.array([stamp["sec"] + 1e-9 * stamp["nanosec"] for stamp in stamps])
    else:
        rows, times = document["positions"], np.array(document["times"], float)
    return np.asarray(rows, float)[:, _columns(names, robot)], times


def _of_table(text, robot):
    lines = [line.replace(",", " ").split() for line in text.splitlines() if line.strip()]
    if not lines:
        return np.zeros((0, robot.dof)), None
    names = lines[0]
    if any(name in names for name in robot.joint_names):
        rows = np.array([[float(word) for word in line] for line in lines[1:]]).reshape(-1, len(names))
        return rows[:, _columns(names, robot)], rows[:, names.index("time")] if "time" in names else None
    return np.array([[float(word) for word in line] for line in lines]), None


def _columns(names, robot):
    missing = [name for name in robot.joint_names if name not in names]
    if missing:
        raise KeyError(f"no column for joint {missing[0]}")
    return [names.index(name) for name in robot.joint_names]
