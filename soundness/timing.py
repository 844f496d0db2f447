"""Times of motions through few points and many: never slower than with stops at all points, within the limits, near
the path, and along smooth curves at most half more than the best, which a linear program finds."""

import numpy as np
from curve_oracle import greatest_rates, least_duration

from gpu_planners.arm.trajectory import JERK_TIME_S, time_parameterize

from .harness import Attack, Skipped, numbers

SPEEDS = 1.001  # of the limits of velocity and acceleration: what docs/guarantees.md allows
JERKS = 1.02  # of the limit of jerk
BEST = 1.5  # times the best along a smooth curve
SAGITTA = 0.25  # of the deviation, by which a smooth curve may be off the lines between its points
PLACES = 1500  # of a motion, where its distance from the path is looked at


def random_path(rng):
    """Legs of like lengths, which differ by what rounding might leave, or of none, or there and back."""
    count, joints = int(rng.choice([2, 3, 5, 8, 12, 30, 80])), int(rng.integers(1, 15))
    steps = rng.normal(size=(count, joints))
    if rng.random() < 0.5:  # a plane curve that turns evenly
        angles = rng.uniform(0.0, 1.0) * np.arange(count)
        steps = np.cos(angles)[:, None] * steps[0] + np.sin(angles)[:, None] * steps[-1]
    steps *= (rng.choice([1.0, 0.1, 3e-3]) + 10.0 ** rng.uniform(-10, -3, (count, 1))) / np.maximum(
        np.linalg.norm(steps, axis=1, keepdims=True), 1e-9
    )
    if rng.random() < 0.3:
        steps[rng.random(count) < 0.3] = 0.0
    if rng.random() < 0.2:
        steps = np.concatenate([steps, -steps[::-1]])
    path = np.cumsum(np.concatenate([np.zeros((1, joints)), steps]), axis=0)
    return path.round(int(rng.choice([4, 7, 15])))


def smooth_path(rng, deviation):
    """Points of sines, one for each joint, as many as the deviation needs or more, and its greatest frequency."""
    joints = int(rng.integers(2, 15))
    often, shift, size = rng.integers(1, 6, joints), rng.uniform(0, 2 * np.pi, joints), rng.uniform(0.1, 1.0, joints)
    count = int(rng.choice([50, 100, 384, 1000]))
    while True:
        s = np.linspace(0.0, 1.0, count)
        s = s + 0.3 / count * rng.uniform(-1, 1, count) * (rng.random() < 0.5)
        path = size * np.sin(2 * np.pi * s[:, None] * often + shift)
        if np.linalg.norm(np.diff(path, 2, axis=0), axis=1).max() / 8 < SAGITTA * deviation:
            return path, int(often.max())
        count *= 2


def case(run, rng, number, tally):
    deviation = float(rng.choice([1e-3, 0.01, 0.1, 0.5]))
    if smooth := rng.random() < 0.4:
        path, often = smooth_path(rng, deviation)
        joints = path.shape[1]
        velocity, acceleration = rng.uniform(0.5, 2, joints), rng.uniform(0.5, 2, joints)
        best = least_duration(path, velocity, acceleration)
        if not np.isfinite(best):
            raise Skipped("the curve turns back so sharply that the linear program stands there")
        faster = best / (often * rng.uniform(1.5, 4.0))  # so that the limit of jerk, of 0.1 s, has little to say
        velocity, acceleration, best = velocity * faster, acceleration * faster**2, best / faster
    else:
        path = random_path(rng)
        velocity = 10.0 ** rng.uniform(-1, 1, path.shape[1])
        acceleration = velocity * 10.0 ** rng.uniform(-0.5, 1.5, path.shape[1])
    shown = numbers(path.ravel()) if path.size < 200 else f"{path.shape} of case {number}"
    where = f"path {shown}, velocity {numbers(velocity)}, acceleration {numbers(acceleration)}, deviation {deviation}"
    motion = time_parameterize(path, velocity, acceleration, deviation=deviation)
    if len(motion.times) < 2:
        return
    stopping = time_parameterize(path, velocity, acceleration).duration
    tally.check(motion.duration <= stopping * (1 + 1e-9), f"{motion.duration} s, with stops {stopping} s: {where}")
    if smooth:
        tally.check(motion.duration <= BEST * best, f"{motion.duration} s, the best is {best} s: {where}")
    v, a, j = greatest_rates(motion)
    fast = max((v / velocity).max(), (a / acceleration).max())
    tally.check(fast <= SPEEDS, f"{fast:.5f} of a limit of velocity or acceleration: {where}")
    jerk = (j * JERK_TIME_S / acceleration).max()
    tally.check(jerk <= JERKS, f"{jerk:.5f} of the limit of jerk: {where}")
    tally.check(np.array_equal(motion.positions[[0, -1]], path[[0, -1]]), f"other ends: {where}")
    off = _distance(motion.at(np.linspace(0, motion.duration, PLACES))[0], path)
    tally.check(off <= deviation + 1e-6, f"{off:.6g} off the path: {where}")


def _distance(places, path):
    """The greatest distance of places (N, dof) from the polyline (K, dof)."""
    steps = np.diff(path, axis=0)
    least = np.full(len(places), np.inf)
    for begin, step in zip(path, steps, strict=False):
        along = np.clip((places - begin) @ step / max(step @ step, 1e-300), 0.0, 1.0)
        least = np.minimum(least, np.linalg.norm(places - begin - along[:, None] * step, axis=1))
    return least.max()


ATTACK = Attack("timing", "times of motions, against stops and the best", case)
