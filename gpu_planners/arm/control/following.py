"""Where on a motion a robot is, and whether the rest of the motion is free of collisions."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import checked, numbers
from ...errors import ConfigurationError
from .spline import Spline

LOOK_S = 0.005  # spacing of the times that are compared with where the robot is
STRAIGHT = 1e-9  # sine of the angle up to which a piece counts as straight
PARTS = 8  # straight lines that stand for a piece that is not


@checked(ConfigurationError)
def nearest_time(motion: Spline, q: ArrayLike, low: float, high: float) -> float:
    """The time of a motion, between two times, at which it is nearest to q (dof,); the latest of several."""
    q = numbers("q", q, motion.positions.shape[1:], ConfigurationError)
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ConfigurationError(f"low and high are {low} and {high}; allowed: finite numbers")
    times = np.linspace(low, high, max(int(np.ceil((high - low) / LOOK_S)), 1) + 1)
    distance = np.linalg.norm(motion.at(times).positions - q, axis=1)
    return float(times[np.flatnonzero(distance <= distance.min() + 1e-9)[-1]])


@checked(ConfigurationError)
def remaining_path(motion: Spline, time: float) -> np.ndarray:
    """(K, dof) corners of straight lines that follow a motion from a time to its end.

    A piece that runs straight is one line of them, exactly; another becomes 8.
    """
    times = [max(time, motion.start)]
    for i in range(len(motion.times) - 1):
        if motion.times[i + 1] > times[-1]:
            begin = max(motion.times[i], times[0])
            parts = 1 if _is_straight(motion, i) else PARTS
            times += list(np.linspace(begin, motion.times[i + 1], parts + 1)[1:])
    return motion.at(np.array(times)).positions


def first_contact(checker: Any, path: np.ndarray) -> str:
    """What a path (K, dof) meets first, as a text; "" when all of it is proven free.

    checker: CollisionChecker
    """
    steps = path if len(path) > 1 else np.repeat(path, 2, axis=0)
    free = np.asarray(checker.motions_valid(steps[:-1], steps[1:]))
    if free.all():
        return ""
    i = int(np.argmin(free))
    for q in steps[i] + np.linspace(0.0, 1.0, 33)[:, None] * (steps[i + 1] - steps[i]):
        pairs = checker.colliding_pairs(q)
        if pairs:
            return f"'{pairs[0][0]}' would meet '{pairs[0][1]}'"
    return "it is no longer proven free"


def _is_straight(motion, i):
    """Do positions run straight from point i to the next, as velocities say?"""
    chord = motion.positions[i + 1] - motion.positions[i]
    length = np.linalg.norm(chord)
    for way in (*motion.velocities[i : i + 2], *motion.accelerations[i : i + 2]):
        if np.isnan(way).any() or length == 0:
            continue
        across = way - chord * (way @ chord) / length**2
        if np.linalg.norm(across) > STRAIGHT + 1e-7 * np.linalg.norm(way):
            return False
    return True
