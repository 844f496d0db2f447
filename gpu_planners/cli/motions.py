"""Plans one motion in this process: goals to configurations, one solve, timing."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import yaml

from ..arm import PLANNERS, CollisionChecker, PlanningResult, Status
from ..arm.planners.settings import LEAST_TIME_S, PlannerSettings
from ..arm.trajectory import Trajectory, time_parameterize
from ..errors import SettingsError
from ..files import yaml_value
from .errors import InputError, NoAnswerError
from .questions import PoseGoal, Question

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
    left = min(max(until - time.monotonic(), LEAST_TIME_S), settings.time_limit_s)
    settings_left = replace(settings, time_limit_s=left)
    result = PLANNERS[planner].solve(question.start, goals, checker, settings_left, seed=seed)
    if not result.solved:
        raise NoAnswerError(_why(result, settings))
    velocity, acceleration = (_share(name, value) for name, value in zip(("velocity", "acceleration"), scaling))
    trajectory = time_parameterize(result.path, robot.velocity * velocity, robot.acceleration * acceleration)
    return Motion(result, trajectory, goal_of[result.goal_index])


def _configurations(checker, tip, question, until):
    """(G, dof) goals, and for each the number of the question's goal that it comes from."""
    found, goal_of, missed = [], [], []
    for number, goal in enumerate(question.goals):
        if not isinstance(goal, PoseGoal):
            found.append(goal)
            goal_of.append(number)
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
        found += list(solutions.q[:SOLUTIONS])
        goal_of += [number] * len(solutions.q[:SOLUTIONS])
        if not len(solutions):
            missed.append((number, solutions))
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


def _why(result, settings):
    if result.status is Status.TIMED_OUT:
        return f"no motion was found in {settings.time_limit_s:g} s (--time)"
    return result.message or result.status.value


def _share(name, value):
    if not (math.isfinite(value) and 1e-3 <= value <= 1.0):
        raise SettingsError(f"{name} scaling is {value}; allowed: 0.001 to 1")
    return value
