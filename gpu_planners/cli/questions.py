"""What is asked: a start and goals, from arguments or a query file.

start: ready                                     # a state of the SRDF, a list of values, or {joint: value}
goals:                                           # the motion ends in whichever is reached first
  - [0.1, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8]
  - {panda_joint1: 0.1, ...}
  - {position: [0.5, 0.1, 0.4], quat_xyzw: [1, 0, 0, 0], frame: panda_link0}   # of the tool; without
                                                 # quat_xyzw any orientation will do
"""

import argparse
from dataclasses import dataclass

import numpy as np

from ..arm import RobotModel
from ..arm.collision.scene_file import fixed_frames, pose_matrix
from ..errors import ObstacleError
from ..files import read_yaml
from .errors import InputError
from .robots import configuration, number

MOST_GOALS = 1000
KEYS, POSE_KEYS = {"start", "goals"}, {"position", "quat_xyzw", "frame"}


@dataclass(frozen=True)
class PoseGoal:
    """Where the tool shall be: T (4, 4) in the root frame, metres; position_only: its rotation does not count."""

    T: np.ndarray
    position_only: bool


@dataclass(frozen=True)
class Question:
    """start (dof,); goals: (dof,) arrays and PoseGoals, in the order in which they were given."""

    start: np.ndarray
    goals: list


def question_of(options: argparse.Namespace, robot: RobotModel) -> Question:
    """The question of --query, --start, --goal and --goal-pose; arguments add goals and replace the start."""
    query = _read(options.query) if options.query else {}
    start = options.start if options.start is not None else query.get("start")
    if start is None:
        raise InputError("there is no start: give --start, or `start` in the file of --query")
    goals = [_goal(robot, each, f"goal {i} of '{options.query}'") for i, each in enumerate(query.get("goals", []))]
    goals += [configuration(robot, words, "--goal") for words in options.goal]
    goals += [_pose_of_words(robot, words, options.frame) for words in options.goal_pose]
    if not 0 < len(goals) <= MOST_GOALS:
        raise InputError(f"there are {len(goals)} goals; allowed: 1 to {MOST_GOALS}, by --goal, --goal-pose or --query")
    return Question(configuration(robot, start, "the start"), goals)


def _read(file):
    document = read_yaml(file, "query file", InputError)
    if not isinstance(document, dict) or not isinstance(document.get("goals", []), list):
        raise InputError(f"query file '{file}' must be a mapping with `start` and a list `goals`")
    if unknown := {str(key) for key in document} - KEYS:
        raise InputError(f"query file '{file}' has unknown keys {', '.join(sorted(unknown))}; known: start, goals")
    return document


def _goal(robot, given, what):
    if not (isinstance(given, dict) and "position" in given):
        return configuration(robot, given, what)
    if unknown := {str(key) for key in given} - POSE_KEYS:
        raise InputError(f"{what} has unknown keys {', '.join(sorted(unknown))}; known: {', '.join(sorted(POSE_KEYS))}")
    return _pose(robot, given["position"], given.get("quat_xyzw"), given.get("frame"), what)


def _pose_of_words(robot, words, frame):
    values = [number(part, "--goal-pose") for word in words for part in word.split(",") if part]
    if len(values) not in (3, 7):
        raise InputError(f"--goal-pose has {len(values)} values; allowed: 3 (x y z) or 7 (x y z qx qy qz qw)")
    return _pose(robot, values[:3], values[3:] or None, frame, "--goal-pose")


def _pose(robot, position, quaternion, frame, what):
    frames = fixed_frames(robot)
    frame = frame or robot.root_link
    if frame not in frames:
        raise InputError(f"{what}: frame '{frame}' is not fixed to the robot's root; allowed: {', '.join(frames)}")
    try:
        T = pose_matrix(position, (0, 0, 0, 1) if quaternion is None else quaternion, what)
    except ObstacleError as error:
        raise InputError(str(error)) from error
    return PoseGoal(frames[frame] @ T, quaternion is None)
