"""Link poses and torques by pinocchio, straight from the URDF, and where example-robot-data keeps its robots."""

import xml.etree.ElementTree as ET
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from gpu_planners.share import example_robots_share

pin = pytest.importorskip("pinocchio", reason="pinocchio (pip install pin) is the kinematics oracle")

EXAMPLE_ROBOTS = {
    "panda": "panda_description/urdf/panda.urdf",
    "ur5": "ur_description/urdf/ur5_robot.urdf",
    "ur10": "ur_description/urdf/ur10_robot.urdf",
    "kinova": "kinova_description/robots/kinova.urdf",
    "xarm7": "xarm_description/urdf/xarm7.urdf",
    "z1": "z1_description/urdf/z1.urdf",
    "tiago": "tiago_description/robots/tiago.urdf",
    "baxter": "baxter_description/urdf/baxter.urdf",
}


def example_robot(name):
    """(URDF path, package folder) of a robot of example-robot-data; skips the test where it is not installed."""
    try:
        share = example_robots_share()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    return share / "example-robot-data" / "robots" / EXAMPLE_ROBOTS[name], share


def pinocchio_poses(urdf, joint_names, q, fixed=MappingProxyType({})):
    """{link: (N, 4, 4)} in the root frame. urdf: path or text; q: (N, dof); fixed: {joint: value}; others at zero."""
    text = urdf if str(urdf).startswith("<") else Path(urdf).read_text()
    model = pin.buildModelFromXML(text)
    data = model.createData()
    mimics = mimics_of(text)
    links = [frame for frame in model.frames if frame.type == pin.FrameType.BODY]
    poses = {frame.name: np.empty((len(q), 4, 4)) for frame in links}
    for n, row in enumerate(q):
        full = _full(model, {**fixed, **dict(zip(joint_names, row))}, mimics)
        pin.framesForwardKinematics(model, data, full)
        for frame in links:
            poses[frame.name][n] = data.oMf[model.getFrameId(frame.name, pin.FrameType.BODY)].homogeneous
    return poses


def pinocchio_torques(urdf, joint_names, q, v, a, fixed=MappingProxyType({}), loads=(), gravity=(0, 0, -9.80665)):
    """(N, dof) by `pinocchio.rnea`, whose torques of joints that mimic others count for these.

    q, v, a: (N, dof); fixed: {joint: value}; loads: (link, mass, centre, inertia about it) each; gravity: (3,)
    """
    text = urdf if str(urdf).startswith("<") else Path(urdf).read_text()
    model, mimics = pin.buildModelFromXML(text), mimics_of(text)
    model.gravity.linear = np.array(gravity, float)
    for link, mass, centre, inertia in loads:
        frame = model.frames[model.getFrameId(link, pin.FrameType.BODY)]
        model.appendBodyToJoint(frame.parentJoint, pin.Inertia(mass, np.array(centre, float), inertia), frame.placement)
    data, torques = model.createData(), np.zeros_like(q)
    joints = [(name, model.joints[k]) for k, name in enumerate(model.names) if k > 0]
    still = np.array([_value(name, fixed, mimics) for name, _ in joints])
    shares = np.array([[_value(name, {one: 1.0}, mimics, offsets=False) for one in joint_names] for name, _ in joints])
    values = still + q @ shares.T
    full, rates = np.zeros((len(q), model.nq)), np.zeros((2, len(q), model.nv))
    columns = [joint.idx_v for _, joint in joints]
    rates[:, :, columns] = [v @ shares.T, a @ shares.T]
    for k, (_, joint) in enumerate(joints):
        full[:, joint.idx_q] = values[:, k]
        if joint.nq == 2:
            full[:, joint.idx_q : joint.idx_q + 2] = np.stack([np.cos(values[:, k]), np.sin(values[:, k])], axis=1)
    for n in range(len(q)):
        torques[n] = pin.rnea(model, data, full[n], *rates[:, n])[columns] @ shares
    return torques


def mimics_of(text):
    """{joint: attributes of its mimic element} of a URDF's text."""
    return {
        joint.get("name"): joint.find("mimic").attrib
        for joint in ET.fromstring(text).iterfind("joint")
        if joint.find("mimic") is not None
    }


def _full(model, values, mimics):
    """pinocchio's configuration of {joint: value}."""
    full = pin.neutral(model)
    for number, name in enumerate(model.names):
        if number == 0:  # pinocchio's universe
            continue
        joint, value = model.joints[number], _value(name, values, mimics)
        full[joint.idx_q : joint.idx_q + joint.nq] = value if joint.nq == 1 else (np.cos(value), np.sin(value))
    return full


def _value(name, values, mimics, offsets=True):
    """Followed here, since pinocchio's own mimic joints may not mix types and orders as URDFs do."""
    if name not in mimics:
        return values.get(name, 0.0)
    mimic = mimics[name]
    leader = _value(mimic["joint"], values, mimics, offsets)
    return float(mimic.get("multiplier", 1)) * leader + offsets * float(mimic.get("offset", 0))


def largest_pose_error(robot, urdf, q, fixed=MappingProxyType({})):
    """Largest difference of any element of any link's pose between the robot model and pinocchio."""
    expected = pinocchio_poses(urdf, robot.joint_names, q, fixed)
    ours = robot.link_poses(q)
    return max(np.abs(ours[link] - expected[link]).max() for link in robot.link_names)
