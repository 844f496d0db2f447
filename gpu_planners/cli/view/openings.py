"""What a page shows when it opens: a free start, and a goal some way off."""

import numpy as np

from ...arm import RobotModel

TRIED = 400  # random configurations
FAR = 0.25  # of the mean distance between random configurations: about how far the first goal is


def first_start(source) -> np.ndarray:
    """(dof,) a free configuration: a state of the SRDF, zero, or what lies nearest to the middle of the limits."""
    robot = source.robot
    middle = (robot.lower + robot.upper) / 2
    drawn = _random(robot, 0)
    drawn = drawn[np.argsort(np.linalg.norm((drawn - middle) / _spans(robot), axis=1))]
    tried = [*robot.named_states.values(), middle, np.clip(np.zeros(robot.dof), robot.lower, robot.upper), *drawn]
    tried = np.clip(np.array(tried, dtype=float), robot.lower, robot.upper)
    free = np.flatnonzero(source.free(tried))
    return tried[free[0]] if len(free) else tried[0]


def first_goal(source, start: np.ndarray, seed: int = 0) -> np.ndarray:
    """(dof,) a free configuration at some distance from the start (dof,); with another seed another one."""
    robot = source.robot
    drawn = _random(robot, seed + 1)
    drawn = drawn[source.free(drawn)]
    if not len(drawn):
        return start
    distance = np.linalg.norm((drawn - start) / _spans(robot), axis=1)
    return drawn[np.argmin(np.abs(distance - FAR * np.sqrt(robot.dof)))]


def _random(robot: RobotModel, seed):
    return np.random.default_rng(seed).uniform(robot.lower, robot.upper, (TRIED, robot.dof))


def _spans(robot):
    return np.maximum(robot.upper - robot.lower, 1e-9)
