"""Planned motions executed by MuJoCo, whose own contact detection may find no contact: Panda and UR5, on the shared
problems where they are at hand, and on generated ones."""

import functools

import numpy as np

from benchmarks import generated_problems, robots
from benchmarks.problems import add_obstacles, load_problems, missing_data, robot_files
from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf, rrt_connect
from gpu_planners.arm.control.spline import Spline
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.datasets.furniture import FAMILIES
from gpu_planners.errors import SettingsError
from gpu_planners.sim.simulation import Simulation

from .harness import Attack, Skipped

ROBOTS = ("panda", "ur5")
TIME_LIMIT = 5.0  # seconds
FOLLOWED = 2e-3  # rad: how closely joints must follow, so that what was executed is what was planned


@functools.cache
def shared(robot):
    """(RobotModel, its shared problems); none of them without the data."""
    if missing_data():
        return None, []
    problems = load_problems(robot)
    return load_urdf(*robot_files(robot), hull_tolerance=np.inf), problems


def chosen(number):
    """(name, RobotModel, Problem) of a case."""
    name = ROBOTS[number % 2]
    if why := robots.unavailable(name):
        raise Skipped(why)
    robot, problems = shared(name)
    if problems and number % 4 < 2:
        problem = problems[7 * number % len(problems)]
        return f"{name}, shared problem {problem.name}", robot, problem
    family = list(FAMILIES)[number // 4 % len(FAMILIES)]
    maker = generated_problems.maker_of(name)
    return f"{name}, generated {family} {number}", maker.model, maker.problem(family, number)


def case(run, rng, number, tally):
    name, robot, problem = chosen(number)
    world = add_obstacles(CollisionWorld(), problem.obstacles)
    checker = CollisionChecker(robot, world, run.devices[-1])
    result = rrt_connect.solve(
        problem.start, problem.goals, checker, rrt_connect.Settings(time_limit_s=TIME_LIMIT), seed=number
    )
    if not result.solved:
        raise Skipped(f"no path: {result.status.value}")
    motion = time_parameterize(result.path, robot.velocity, robot.acceleration)
    try:
        executed = Simulation(robot, world).execute(Spline.of(motion))
    except SettingsError as error:
        raise Skipped(str(error)) from error
    tally.checks += 1
    for contact in executed.contacts:
        tally.fail(
            f"{name}: {contact.first} met {contact.second} {1e3 * contact.depth:.3g} mm deep at {contact.time} s"
        )
        tally.deepest = max(tally.deepest, contact.depth)
    if not executed.contacts and executed.error > FOLLOWED:
        tally.fail(f"{name}: a joint was {executed.error:.3g} rad away from where it should have been")


ATTACK = Attack("physics", "motions executed by MuJoCo", case)
