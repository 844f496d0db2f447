"""What controllers play of motions along lines and through corners, many of which begin at joints' limits: within the
limits, compared as floats, at the points and between them; as fast as allowed; on the line; free. So are stops."""

import numpy as np
from curve_oracle import beyond_limits

from gpu_planners.arm import rrt_connect, sequence
from gpu_planners.arm.control.spline import Spline
from gpu_planners.arm.control.stopping import stop_along
from gpu_planners.errors import RobotDescriptionError

from .harness import NEAR, Attack, Skipped, numbers
from .obstacles import random_obstacle

SETTINGS = sequence.Settings(planning=rrt_connect.Settings(time_limit_s=2.0), allow_partial=True)
SPEEDS = 1.001  # of the limits of velocity and acceleration: what docs/guarantees.md allows
TOLERANCE = 1e-3 + 1e-9  # metres from the line
LOOKED_AT = 120  # places of a motion, for collisions


def near_limits(rng, robot, count):
    """(count, dof) configurations of which many joints are at a limit, or 1 um to 0.1 rad beside it."""
    q = rng.uniform(robot.lower, robot.upper, (count, robot.dof))
    gap = 10.0 ** rng.uniform(-6, -1, q.shape) * (rng.random(q.shape) < 0.8)
    side = rng.integers(0, 3, q.shape)
    q = np.where(side == 0, robot.lower + gap, np.where(side == 1, robot.upper - gap, q))
    return np.clip(q, robot.lower, robot.upper)


def random_segment(rng, robot):
    """A line of 5 cm to half a metre, or a free motion."""
    blend = float(rng.choice([0.0, 0.02, 0.1]))
    if rng.random() < 0.3:
        return sequence.Free(goals=near_limits(rng, robot, 3), blend_radius=blend)
    way = rng.normal(size=3)
    way *= rng.uniform(0.05, 0.5) / np.linalg.norm(way)
    return sequence.Straight(translation=way, along_tool=bool(rng.random() < 0.5), blend_radius=blend)


def case(run, rng, number, tally):
    rig = run.rig(number)
    robot, checker = rig.robot, rig.checkers[rig.devices[-1]]
    obstacles = [random_obstacle(rng, 0.03, 0.3).at(rng.normal(size=3) * 0.6) for _ in range(rng.integers(0, 4))]
    rig.put(obstacles)
    q = near_limits(rng, robot, 64) if rng.random() < 0.6 else rig.configurations(rng, 64, free=False)
    q = q[checker.thickened(0.002).configurations_valid(q)]
    if not len(q):
        raise Skipped(f"{rig.name}: no start is free")
    segments = [random_segment(rng, robot) for _ in range(rng.integers(1, 4))]
    where = f"{rig.name}, start {numbers(q[0])}, {segments}, {'; '.join(map(str, obstacles))}"
    try:
        answer = sequence.solve(q[0], segments, checker, rrt_connect, SETTINGS, seed=int(rng.integers(1 << 31)))
    except RobotDescriptionError as error:
        raise Skipped(f"{rig.name}: {error}") from None
    tally.check(answer.solved or answer.failed >= 0 and answer.text, f"neither a motion nor a reason: {where}")
    if answer.solved:
        _check(rig, tally, answer, segments, obstacles, where)
        begin = float(rng.uniform(0.0, answer.trajectory.duration))
        limits = np.where(robot.continuous, np.inf, [-robot.lower, robot.upper]) * [[-1.0], [1.0]]
        stop = stop_along(Spline.of(answer.trajectory), begin, robot.acceleration, *limits)
        for text in beyond_limits(stop, *limits):
            tally.fail(f"the stop from {begin} s on: {text}: {where}")


def _check(rig, tally, answer, segments, obstacles, where):
    robot, motion = rig.robot, answer.trajectory
    lower, upper = np.where(robot.continuous, np.inf, [-robot.lower, robot.upper]) * [[-1.0], [1.0]]
    for text in beyond_limits(motion, lower, upper):
        tally.fail(f"{text}: {where}")
    q, v, a = motion.at(np.linspace(0.0, motion.duration, 2000))
    fast = max((np.abs(v) / robot.velocity).max(), (np.abs(a) / robot.acceleration).max())
    tally.check(fast <= SPEEDS, f"{fast:.5f} of a limit of velocity or acceleration: {where}")
    if isinstance(segments[0], sequence.Straight) and (len(answer.ends_s) < 2 or not segments[0].blend_radius):
        times = np.linspace(0.0, answer.ends_s[0], 200)
        tips = robot.link_poses(motion.at(times)[0])[robot.tip_link]
        away, way = tips[:, :3, 3] - tips[0, :3, 3], np.asarray(segments[0].translation)
        way = (tips[0, :3, :3] @ way if segments[0].along_tool else way) / np.linalg.norm(way)
        off = np.linalg.norm(away - np.outer(away @ way, way), axis=1).max()
        tally.check(off <= TOLERANCE, f"the tool is {1e3 * off:.3g} mm off the line: {where}")
    for what, gap in (("an obstacle", lambda q: rig.oracle.gaps(q, obstacles)), ("itself", rig.oracle.self_gaps)):
        least = np.min(gap(q[:: max(len(q) // LOOKED_AT, 1)]), initial=np.inf)
        tally.check(least >= -NEAR, f"an overlap of {-1e6 * least:.3g} um with {what}: {where}")


ATTACK = Attack("curves", "what controllers play of lines and rounded corners", case)
