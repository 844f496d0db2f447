"""Torques of robots and what they carry against pinocchio's, from the same URDF."""

import logging
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from pinocchio_poses import example_robot, pinocchio_torques
from random_urdf import random_urdf

from gpu_planners.arm import load_urdf
from gpu_planners.arm.dynamics import InverseDynamics, Payload, TorqueLimits
from gpu_planners.arm.dynamics.newton_euler import sharings
from gpu_planners.errors import RobotDescriptionError, SettingsError

CLOSE = 1e-9  # of the greatest torque
INERTIA = np.array([[0.03, 0.004, -0.002], [0.004, 0.02, 0.001], [-0.002, 0.001, 0.025]])
ARM = """<robot name="arm"><link name="base"/><link name="upper">{upper}</link><link name="lower">{lower}</link>
<link name="hand"><inertial><origin xyz="0.05 0 0"/><mass value="0.5"/></inertial></link>
<joint name="a" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" velocity="1" {effort}/></joint>
<joint name="b" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0.5 0 0"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" velocity="1" effort="-20"/></joint>
<joint name="c" type="fixed"><parent link="lower"/><child link="hand"/><origin xyz="0.4 0 0"/></joint></robot>"""
POINT = '<inertial><origin xyz="0.25 0 0"/><mass value="{}"/></inertial>'


def arm(upper=POINT.format(2), lower=POINT.format(1), effort='effort="50"'):
    return load_urdf(ARM.format(upper=upper, lower=lower, effort=effort))


def motions(rng, robot, count=40):
    """q, v, a (count, dof) each."""
    q = rng.uniform(np.maximum(robot.lower, -3), np.minimum(robot.upper, 3), (count, robot.dof))
    return q, rng.normal(size=q.shape), 5 * rng.normal(size=q.shape)


def assert_same(torques, expected):
    assert np.abs(torques - expected).max() <= CLOSE * np.abs(expected).max()


@pytest.mark.parametrize("name", ["panda", "ur5", "ur10", "kinova", "xarm7", "z1", "tiago", "baxter"])
def test_torques_are_those_of_pinocchio(name):
    urdf, share = example_robot(name)
    robot = load_urdf(urdf, package_dirs=[share], self_collisions=False)
    q, v, a = motions(np.random.default_rng(1), robot)
    payload = Payload(3.0, (0.02, -0.05, 0.1), INERTIA, robot.tip_link)
    gravity = (1.0, 2.0, -9.0)
    load = (robot.tip_link, 3.0, payload.centre, INERTIA)
    assert_same(InverseDynamics(robot).torques(q, v, a), pinocchio_torques(urdf, robot.joint_names, q, v, a))
    expected = pinocchio_torques(urdf, robot.joint_names, q, v, a, loads=[load], gravity=gravity)
    assert_same(InverseDynamics(robot, [payload], gravity).torques(q, v, a), expected)
    still = pinocchio_torques(urdf, robot.joint_names, q, 0 * v, 0 * a)
    assert_same(InverseDynamics(robot).torques(q), still)


def test_the_arm_of_a_whole_robot_has_the_torques_of_the_whole_where_the_rest_stands():
    urdf, share = example_robot("tiago")
    names, fixed = [f"arm_{k}_joint" for k in range(1, 8)], {"torso_lift_joint": 0.2}
    robot = load_urdf(urdf, package_dirs=[share], joints=names, fixed=fixed, self_collisions=False)
    q, v, a = motions(np.random.default_rng(2), robot)
    assert_same(InverseDynamics(robot).torques(q, v, a), pinocchio_torques(urdf, names, q, v, a, fixed))


def weighed(rng, text):
    """A URDF whose links have inertias drawn at random, some of them none."""
    tree = ET.fromstring(text)
    for link in tree.iterfind("link"):
        if rng.random() < 0.8:
            points = rng.normal(size=(5, 3)) * 0.2
            inertia = (points**2).sum() * np.eye(3) - points.T @ points
            own = ET.SubElement(link, "inertial")
            xyz, rpy = (" ".join(map(repr, map(float, rng.normal(size=3)))) for _ in range(2))
            ET.SubElement(own, "origin", xyz=xyz, rpy=rpy)
            ET.SubElement(own, "mass", value=str(rng.uniform(0.1, 5)))
            keys = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
            ET.SubElement(own, "inertia", {key: repr(float(inertia[place])) for key, place in keys.items()})
    return ET.tostring(tree, encoding="unicode")


@pytest.mark.parametrize("seed", range(12))
def test_torques_of_random_trees_with_joints_that_slide_and_mimic(seed):
    rng = np.random.default_rng(seed)
    text = weighed(rng, random_urdf(rng, 9))
    robot = load_urdf(text)
    q, v, a = motions(rng, robot)
    assert_same(InverseDynamics(robot).torques(q, v, a), pinocchio_torques(text, robot.joint_names, q, v, a))


@pytest.mark.parametrize("seed", range(8))
def test_between_two_samples_no_torque_is_beyond_what_is_proven(seed):
    """The least limits with which whole polynomials are proven are just above the greatest of dense samples."""
    rng = np.random.default_rng(seed)
    robot = load_urdf(weighed(rng, random_urdf(rng, 7)))
    dynamics, length = InverseDynamics(robot), 0.3
    powers = rng.normal(size=(1, 6, robot.dof)) * 0.1
    x = np.linspace(0, 1, 4001)[:, None]
    orders = [[np.poly1d(powers[0, ::-1, i]).deriv(k)(x[:, 0]) for i in range(robot.dof)] for k in range(4)]
    q, v, a, j = (np.ascontiguousarray(np.transpose(each)) / length**k for k, each in enumerate(orders))
    most = np.abs(dynamics.torques(q, v, a)).max(axis=0)
    jerks = 1.001 * np.abs(j).max(axis=0)[None]
    low, high = sharings(dynamics.bodies, np.array([length]), powers, jerks, np.maximum(most * 0.999, 1e-6)), None
    high = sharings(dynamics.bodies, np.array([length]), powers, jerks, most * 1.001 + 1e-6)
    assert low.share[0] < 1 and high.share[0] == 1


def test_a_joint_that_holds_an_arm_level():
    """By hand: two arms of 0.5 and 0.4 m, whose masses are at 0.25 m, and a hand."""
    dynamics = InverseDynamics(arm(), gravity=(0, 0, -10))
    second = -10 * (1 * 0.25 + 0.5 * 0.45)
    first = second - 10 * (2 * 0.25 + 1.5 * 0.5)
    assert np.allclose(dynamics.torques([0.0, 0.0]), [[first, second]])
    held = InverseDynamics(arm(), [Payload(3.0, (0.1, 0, 0), link="hand")], (0, 0, -10))
    assert np.allclose(held.torques([0.0, 0.0]), [[first - 30.0, second - 15.0]])
    assert np.allclose(InverseDynamics(arm(), gravity=(0, 0, 0)).torques([0.3, 0.2]), 0)


FAULTS = {
    "negative mass": ('<inertial><mass value="-1"/></inertial>', "mass -1 kg; it counts as without mass", 0.0),
    "no number": ('<inertial><mass value="nan"/></inertial>', "mass value", 0.0),
    "no mass": ("<inertial/>", "no <mass>", 0.0),
    "negative moment": (
        '<inertial><mass value="1"/><inertia ixx="-1" iyy="1" izz="1"/></inertial>',
        "principal moment of its inertia is negative: -1, 1, 1",
        1.0,
    ),
    "triangle": (
        '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="3"/></inertial>',
        "one is greater than the sum of the others: 1, 1, 3",
        1.0,
    ),
}


@pytest.mark.parametrize("inertial, words, mass", FAULTS.values(), ids=FAULTS)
def test_an_inertia_that_no_body_has_is_told_by_whoever_asks_for_torques(inertial, words, mass, caplog):
    with caplog.at_level(logging.WARNING):
        robot = arm(lower=inertial)
        assert not caplog.records
        dynamics = InverseDynamics(robot)
    assert "link 'lower'" in caplog.text and words in caplog.text
    assert dynamics.bodies.inertia[1, 0] == mass + 0.5


def test_limits_are_efforts_or_given():
    assert np.array_equal(TorqueLimits(arm()).limits, [50, 20])
    assert np.array_equal(TorqueLimits(arm(), {"b": 7}).limits, [50, 7])
    assert np.array_equal(TorqueLimits(arm(effort=""), [3, 4]).limits, [3, 4])


REFUSED = {
    "no effort": (lambda: TorqueLimits(arm(effort="")), "joint 'a' has no <limit effort> above 0"),
    "unknown": (lambda: TorqueLimits(arm(), {"z": 1}), "'z' is no planning joint; allowed: a, b"),
    "zero": (lambda: TorqueLimits(arm(), {"b": 0}), "0 for joint 'b'; allowed: above 0"),
    "shape": (lambda: TorqueLimits(arm(), [1, 2, 3]), "limits is an array of type .* shape"),
    "no masses": (
        lambda: InverseDynamics(load_urdf(random_urdf(np.random.default_rng(0), 3))),
        "no link .* has a mass",
    ),
    "mass": (lambda: Payload(-1.0), "mass is -1.0; allowed: a number from 0"),
    "inertia": (lambda: Payload(1.0, inertia=np.diag([1, 1, 3])), "greater than the sum"),
    "asymmetric": (lambda: Payload(1.0, inertia=INERTIA + np.eye(3)[[1, 0, 2]] * [1, 0, 0]), "symmetric"),
}


@pytest.mark.parametrize("make, words", REFUSED.values(), ids=REFUSED)
def test_what_is_refused(make, words):
    with pytest.raises(SettingsError, match=words):
        make()


def test_a_payload_of_an_unknown_link_is_refused():
    with pytest.raises(RobotDescriptionError, match="has no link 'nowhere'"):
        InverseDynamics(arm(), [Payload(1.0, link="nowhere")])


def test_other_joints_weigh_where_they_stand():
    robot = load_urdf(ARM.format(upper=POINT.format(2), lower=POINT.format(1), effort='effort="5"'), joints=["a"])
    bent = robot.with_other_joints({"b": np.pi / 2})
    straight_, folded = (InverseDynamics(each, gravity=(0, 0, -10)).torques([0.0])[0, 0] for each in (robot, bent))
    assert np.isclose(straight_, -10 * (2 * 0.25 + 1 * 0.75 + 0.5 * 0.95))
    assert np.isclose(folded, -10 * (2 * 0.25 + 1.5 * 0.5))
