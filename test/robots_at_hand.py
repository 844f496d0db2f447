"""Robots and planning problems for tests that need no shared data: benchmarks.robots and what is generated for them."""

import functools
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from checkout import ROOT

from benchmarks import generated_problems, robots
from benchmarks.problems import add_obstacles
from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf

TABLE = {  # before the Panda
    "type": "box",
    "name": "table",
    "size": [0.6, 1.0, 0.05],
    "position": [0.55, 0, -0.03],
    "quat_xyzw": [0, 0, 0, 1],
}
BAXTER = """<group name="left_arm"><chain base_link="torso" tip_link="left_gripper"/></group>
<group name="right_arm"><chain base_link="torso" tip_link="right_gripper"/></group>
<group name="both_arms"><group name="left_arm"/><group name="right_arm"/></group>
<group name="wrists"><link name="left_wrist"/><link name="right_wrist"/><joint name="head_pan"/></group>"""
READY = np.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])  # of the Panda: its hand before it


def maker_of(robot):
    """The Maker of a robot of robots.ROBOTS; skips the test where its description is not installed."""
    if why := robots.unavailable(robot):
        pytest.skip(why)
    return generated_problems.maker_of(robot)


def groups_of(robot):
    """Arguments of load_urdf for a real robot of several groups: chains, joints, links and subgroups."""
    rig = maker_of(robot).rig
    root = ET.parse(rig.srdf).getroot()
    if robot == "baxter":
        root.extend(ET.fromstring(f"<groups>{BAXTER}</groups>"))
    return {
        "urdf": rig.urdf,
        "srdf": ET.tostring(root, encoding="unicode"),
        "package_dirs": [rig.package_dir],
        "hull_tolerance": np.inf,
    }


def panda():
    """RobotModel of the Panda, each mesh as one hull."""
    return maker_of("panda").model


@functools.cache
def desk_arm():
    """RobotModel of our own arm of six joints, which needs no other files."""
    return load_urdf(ROOT / "urdf/desk_arm.urdf", srdf=ROOT / "urdf/desk_arm.srdf", group="arm")


def problem_of(robot, family, index=0):
    """(robots.Rig, Problem)"""
    maker = maker_of(robot)
    return maker.rig, maker.problem(family, index)


def checker_among(robot, problem, *motion):
    """CollisionChecker on the CPU of a RobotModel among a problem's obstacles."""
    return CollisionChecker(robot, add_obstacles(CollisionWorld(), problem.obstacles), "cpu", *motion)
