"""How much slower motions get that keep limits of torque with a payload, beside motions that are slowed evenly."""

import time

import numpy as np

from gpu_planners.arm import load_urdf
from gpu_planners.arm.dynamics import Payload, TorqueLimits
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.errors import SettingsError
from gpu_planners.share import example_robots_share

from .harness import Benchmark, Row, median, progress

ARMS = {  # URDF below example-robot-data's robots/; joints; kg at the tip
    "Panda": ("panda_description/urdf/panda.urdf", [f"panda_joint{k}" for k in range(1, 8)], 3.0),
    "xArm7": ("xarm_description/urdf/xarm7.urdf", [f"joint{k}" for k in range(1, 8)], 3.0),
}
FASTER = (1.0, 3.0)  # times the default acceleration, which reaches full speed in 0.5 s
DEVIATION = 0.2  # rad, of every second path
PATHS = 40
REACH = 2.5  # rad that a joint is off at most
SAMPLES = 4000


def torques(context):
    """A row for each arm and acceleration."""
    share, rows = example_robots_share(), []
    cases = [(name, faster) for name in ARMS for faster in FASTER]
    for name, faster in progress(cases, "torques"):
        urdf, joints, mass = ARMS[name]
        file = share / "example-robot-data/robots" / urdf
        robot = load_urdf(file, package_dirs=[share], joints=joints, self_collisions=False)
        limits = TorqueLimits(robot, payloads=[Payload(mass, (0, 0, 0.05))])
        found = [_measured(seed, robot, faster, limits) for seed in range(PATHS // 4 if context.quick else PATHS)]
        held = [each for each in found if each is not None]
        heavy = np.array([each[:2] for each in held if each[1] > 1.0])
        milliseconds = [each[2] for each in held]
        figures = {
            "refused": len(found) - len(held),
            "heavy": len(heavy),
            "over_free": float(heavy[:, 0].mean()) if len(heavy) else 1.0,
            "evenly": float(heavy[:, 1].mean()) if len(heavy) else 1.0,
            "time_ms": median(milliseconds),
        }
        case = f"{name}, {mass:g} kg, {faster:g} x acceleration, {len(found)} paths"
        rows.append(Row(case, "gpu_planners", figures, milliseconds))
    return rows


def _measured(seed, robot, faster, limits):
    """-> how many times as long as without torques a motion takes with them; and where all of it is slowed evenly until
    it keeps them; and ms. None for a path on which the robot cannot be held still."""
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(2, 6)), robot.dof
    path = rng.uniform(np.maximum(robot.lower, -REACH), np.minimum(robot.upper, REACH), shape)
    limit, deviation = (robot.velocity, faster * robot.acceleration), DEVIATION if seed % 2 else 0.0
    free = time_parameterize(path, *limit, deviation=deviation)
    began = time.perf_counter()
    try:
        held = time_parameterize(path, *limit, deviation=deviation, torques=limits)
    except SettingsError:
        return None
    milliseconds = 1e3 * (time.perf_counter() - began)
    q, v, a = free.at(np.linspace(0, free.duration, SAMPLES))
    still = limits.dynamics.torques(q)
    moving = limits.dynamics.torques(q, v, a) - still
    most = np.maximum(moving / (limits.limits - still), -moving / (limits.limits + still)).max()
    return held.duration / free.duration, max(float(np.sqrt(most)), 1.0), milliseconds


BENCHMARKS = (
    Benchmark(
        "torques",
        "Motions that keep limits of torque",
        "Random paths of two to five places for arms that hold a payload, every second one with a deviation of "
        f"{DEVIATION:g} rad. Refused: a motor cannot hold the arm still somewhere. Heavy: without `torques` the motion "
        "would need more than a motor gives. Of these, the duration with `torques` over that without, in the mean; and "
        "that of motions that are slowed evenly until they keep the limits. Time: with `torques`, the median.",
        {"refused": "count", "heavy": "count", "over_free": "ratio", "evenly": "ratio", "time_ms": "ms"},
        torques,
    ),
)
