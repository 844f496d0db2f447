"""Robots and planning problems for tests that need no shared data: benchmarks.robots and what is generated for them."""

import numpy as np
import pytest

from benchmarks import generated_problems, robots
from benchmarks.problems import add_obstacles
from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf


def maker_of(robot):
    """The Maker of a robot of robots.ROBOTS; skips the test where its description is not installed."""
    if why := robots.unavailable(robot):
        pytest.skip(why)
    return generated_problems.maker_of(robot)


def panda():
    """RobotModel of the Panda with the states that its SRDF names, each mesh as one hull."""
    rig = maker_of("panda").rig
    fixed = {"panda_finger_joint1": rig.fixed["panda_finger_joint1"]}
    return load_urdf(rig.urdf, rig.srdf, [rig.package_dir], group="arm", fixed=fixed, hull_tolerance=np.inf)


def problem_of(robot, family, index=0):
    """(robots.Rig, Problem)"""
    maker = maker_of(robot)
    return maker.rig, maker.problem(family, index)


def checker_among(robot, problem, *motion):
    """CollisionChecker on the CPU of a RobotModel among a problem's obstacles."""
    return CollisionChecker(robot, add_obstacles(CollisionWorld(), problem.obstacles), "cpu", *motion)
