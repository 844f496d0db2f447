"""Link poses by pinocchio, straight from the URDF, and where example-robot-data keeps its robots."""

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
    mimics = {
        joint.get("name"): joint.find("mimic").attrib
        for joint in ET.fromstring(text).iterfind("joint")
        if joint.find("mimic") is not None
    }
    links = [frame for frame in model.frames if frame.type == pin.FrameType.BODY]
    poses = {frame.name: np.empty((len(q), 4, 4)) for frame in links}
    for n, row in enumerate(q):
        full = pin.neutral(model)
        values = {**fixed, **dict(zip(joint_names, row))}
        for number, name in enumerate(model.names):
            if number == 0:  # pinocchio's universe
                continue
            joint, value = model.joints[number], _value(name, values, mimics)
            full[joint.idx_q : joint.idx_q + joint.nq] = value if joint.nq == 1 else (np.cos(value), np.sin(value))
        pin.framesForwardKinematics(model, data, full)
        for frame in links:
            poses[frame.name][n] = data.oMf[model.getFrameId(frame.name, pin.FrameType.BODY)].homogeneous
    return poses


def _value(name, values, mimics):
    """Followed here, since pinocchio's own mimic joints may not mix types and orders as URDFs do."""
    if name not in mimics:
        return values.get(name, 0.0)
    mimic = mimics[name]
    leader = _value(mimic["joint"], values, mimics)
    return float(mimic.get("multiplier", 1)) * leader + float(mimic.get("offset", 0))


def largest_pose_error(robot, urdf, q, fixed=MappingProxyType({})):
    """Largest difference of any element of any link's pose between the robot model and pinocchio."""
    expected = pinocchio_poses(urdf, robot.joint_names, q, fixed)
    ours = robot.link_poses(q)
    return max(np.abs(ours[link] - expected[link]).max() for link in robot.link_names)
