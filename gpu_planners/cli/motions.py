"""A question, by arguments or a query file, and its answer: goals to configurations, one solve, timing.

start: ready                                     # a state of the SRDF, a list of values, or {joint: value}
goals:                                           # the motion ends in whichever is reached first
  - [0.1, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8]
  - {panda_joint1: 0.1, ...}
  - {position: [0.5, 0.1, 0.4], quat_xyzw: [1, 0, 0, 0], frame: panda_link0}   # of the tool; without
                                                 # quat_xyzw any orientation will do
"""

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import yaml

from ..arm import PLANNERS, CollisionChecker, PlanningResult, RobotModel, Status
from ..arm.collision.scene_file import fixed_frames, pose_matrix
from ..arm.motion.estimate import JERK_TIME_S
from ..arm.planners.settings import LEAST_TIME_S, PlannerSettings
from ..arm.trajectory import Trajectory, time_parameterize
from ..errors import SettingsError, shown
from ..files import read_yaml, yaml_value
from .errors import InputError, NoAnswerError
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
    if not isinstance(frame, str) or frame not in frames:
        allowed = ", ".join(frames)
        raise InputError(f"{what}: frame {shown(frame)} is not fixed to the robot's root; allowed: {allowed}")
    T = pose_matrix(position, (0, 0, 0, 1) if quaternion is None else quaternion, what)
    return PoseGoal(frames[frame] @ T, quaternion is None)


OPTIMISE_S = 0.3  # for RRT-Connect, unless it is set
SOLUTIONS = 8  # configurations of each pose goal, the nearest to the start
TRIED = 4  # times as many are looked for


@dataclass(frozen=True)
class Motion:
    """An answer: goal_index of the question's goals was reached."""

    result: PlanningResult
    trajectory: Trajectory
    goal_index: int


def settings_of(planner: str, assignments: list[str], time_s: float, quick: bool = False) -> PlannerSettings:
    """Settings of a planner from texts "name=value". quick: RRT-Connect takes its first path."""
    kind = PLANNERS[planner].Settings
    values = {"time_limit_s": time_s}
    if planner == "rrt_connect" and not quick:
        values["optimise_s"] = OPTIMISE_S
    return kind(**values | assigned("--set", assignments, kind))


def assigned(option: str, words: Sequence[str], kind: Any) -> dict[str, Any]:
    """{name: value} for a settings class, of texts "name=value" that an option has; a list may be words with commas."""
    values = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name not in kind.rules:
            raise InputError(f"{option} '{word}': allowed is NAME=VALUE, where NAME is one of {', '.join(kind.rules)}")
        try:
            values[name] = yaml_value(text)
            if isinstance(kind.rules[name].default, tuple) and not isinstance(values[name], list):
                values[name] = [yaml_value(part) for part in text.split(",")] if text else []
        except yaml.YAMLError:
            raise InputError(f"{option} '{word}': '{text}' is no number, text or list") from None
    return values


def plan_motion(
    checker: CollisionChecker,
    tip: str,
    question: Question,
    planner: str,
    settings: PlannerSettings,
    seed: int = 0,
    scaling: tuple[float, float] = (1.0, 1.0),
) -> Motion:
    """The motion that answers a question. Raises NoAnswerError that says why there is none.

    tip: link of the pose goals; scaling: shares of the velocity and acceleration limits
    """
    robot = checker.robot
    until = time.monotonic() + settings.time_limit_s
    goals, goal_of = _configurations(checker, tip, question, until)
    left = replace(settings, time_limit_s=min(max(until - time.monotonic(), LEAST_TIME_S), settings.time_limit_s))
    result = PLANNERS[planner].solve(question.start, goals, checker, left, seed=seed)
    if not result.solved:
        late = f"{settings.time_limit_s:g} s (--time) were over: " if result.status is Status.TIMED_OUT else ""
        raise NoAnswerError(late + (result.message or result.status.value))
    velocity, acceleration = (_share(name, value) for name, value in zip(("velocity", "acceleration"), scaling))
    limits = robot.velocity * velocity, robot.acceleration * acceleration
    trajectory = time_parameterize(result.path, *limits, robot.jerk_limits(limits[1], JERK_TIME_S))
    return Motion(result, trajectory, goal_of[result.goal_index])


def _configurations(checker, tip, question, until):
    """(G, dof) goals, and for each the number of the question's goal that it comes from."""
    found, goal_of, missed = [], [], []
    for index, goal in enumerate(question.goals):
        if not isinstance(goal, PoseGoal):
            found.append(goal)
            goal_of.append(index)
            continue
        solutions = checker.robot.inverse_kinematics(
            goal.T,
            checker,
            link=tip,
            seed_q=np.clip(question.start, checker.robot.lower, checker.robot.upper),
            solutions=SOLUTIONS * TRIED,
            position_only=goal.position_only,
            time_limit_s=max((until - time.monotonic()) / 2, 0.0),
        )
        nearest = solutions.q[:SOLUTIONS]
        found += list(nearest)
        goal_of += [index] * len(nearest)
        if not len(solutions):
            missed.append((index, solutions))
    if not found:
        raise NoAnswerError(_why_no_goal(checker, tip, *missed[0]))
    return np.array(found), goal_of


def _why_no_goal(checker, tip, number, solutions):
    if len(solutions.colliding):
        first, second = checker.colliding_pairs(solutions.colliding[0])[0]
        return (
            f"goal {number}: all {len(solutions.colliding)} configurations found collide; in the first, '{first}' "
            f"meets '{second}'"
        )
    if solutions.timed_out:
        return f"goal {number}: no configuration that places '{tip}' there was found in the time given"
    return f"goal {number}: no configuration within the joint limits places '{tip}' there"


def _share(name, value):
    if not (math.isfinite(value) and 1e-3 <= value <= 1.0):
        raise SettingsError(f"{name} scaling is {value}; allowed: 0.001 to 1")
    return value
