"""The robots that are attacked: real ones of example-robot-data, and random trees of joints."""

import re
import tempfile
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from random_urdf import random_urdf

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf
from gpu_planners.share import example_robots_share

from .oracle import Oracle


@dataclass(frozen=True)
class Description:
    """urdf: below the folder of robots, or None for a random one; joints: pattern of the planning joints, "" for all"""

    urdf: str | None
    joints: str = ""


ROBOTS = {
    "panda": Description(
        "panda_description/urdf/panda.urdf"
    ),  # with its fingers: a prismatic joint and one that mimics it
    "ur3": Description("ur_description/urdf/ur3_robot.urdf"),
    "ur5": Description("ur_description/urdf/ur5_robot.urdf"),
    "ur10": Description("ur_description/urdf/ur10_robot.urdf"),
    "kinova": Description("kinova_description/robots/kinova.urdf"),  # three continuous joints
    "xarm7": Description("xarm_description/urdf/xarm7.urdf"),
    "z1": Description("z1_description/urdf/z1.urdf"),
    "so100": Description("so_arm_description/urdf/so100.urdf"),
    "allegro": Description("allegro_hand_description/urdf/allegro_right_hand.urdf"),
    "tiago": Description("tiago_description/robots/tiago.urdf", r"torso_lift_joint|arm_\d_joint"),  # a prismatic torso
    "baxter": Description("baxter_description/urdf/baxter.urdf", r"(left|right)_[sew]\d"),  # two arms
    "pr2": Description(
        "pr2_description/urdf/pr2.urdf", r"torso_lift_joint|r_(shoulder|upper_arm|forearm|elbow|wrist)_\w+"
    ),
    "talos": Description("talos_data/robots/talos_left_arm.urdf"),
    "finger": Description("finger_edu_description/robots/finger_edu.urdf"),
    **{f"random-{k}": Description(None) for k in range(6)},
}
NAMES = tuple(ROBOTS)


def robots_folder(given=None):
    """The folder that holds panda_description and the others: `given`, else that of the installed
    example-robot-data."""
    if given:
        return Path(given).resolve()
    return example_robots_share() / "example-robot-data" / "robots"


class Rig:
    """A robot, its oracle, and checkers on every device that share one world.

    shift: (3,) metres by which a fixed joint moves the robot away from the origin of the root frame
    """

    def __init__(self, name, folder, devices, shift=None):
        self.name, self.devices = name, devices
        description = ROBOTS.get(name, Description(None))
        if description.urdf:
            urdf = folder / description.urdf
            text = urdf.read_text()
        else:
            text, urdf = _generated(name), None
        root = ET.fromstring(text.encode())
        if shift is not None:
            _shift(root, shift)
            urdf = None
        if urdf is None:
            self._kept = tempfile.TemporaryDirectory()
            urdf = Path(self._kept.name) / "robot.urdf"
            urdf.write_text(ET.tostring(root, encoding="unicode"))
        joints = {joint.get("name"): joint for joint in root.findall("joint")}
        free = [
            n
            for n, j in joints.items()
            if j.get("type") in ("revolute", "continuous", "prismatic") and j.find("mimic") is None
        ]
        planned = [n for n in free if re.fullmatch(description.joints or ".*", n)]
        fixed = {n: _rest(joints[n]) for n in free if n not in planned}
        share = folder.parent.parent
        self.urdf, self.share = urdf, share
        self.robot = load_urdf(urdf, package_dirs=[share], joints=planned, fixed=fixed, velocity=1.0)
        self.oracle = Oracle(urdf, share, self.robot, fixed)
        self.world = CollisionWorld()
        self.checkers = self.checkers_of(self.world)
        self.bare = CollisionChecker(self.robot, CollisionWorld(), "cpu")
        self._with_margin = {}

    def checkers_of(self, world, **options):
        """{device: CollisionChecker}"""
        return {device: CollisionChecker(self.robot, world, device, **options) for device in self.devices}

    def with_margin(self, margin):
        """{device: CollisionChecker} of the rig's world that keep `margin` metres from obstacles."""
        if margin not in self._with_margin:
            self._with_margin[margin] = self.checkers_of(self.world, margin=margin)
        return self._with_margin[margin]

    def put(self, obstacles):
        """Make these [Obstacle] all that the world holds, named 0, 1, ..."""
        self.world.clear()
        for number, obstacle in enumerate(obstacles):
            obstacle.add_to(self.world, str(number))

    @cached_property
    def spread(self):
        """(dof,) how far each joint can go."""
        return self.robot.upper - self.robot.lower

    @cached_property
    def prismatic(self):
        """(dof,) bool"""
        return self.robot.dh["prismatic"]

    def configurations(self, rng, count, free=True):
        """(N, dof) float64 within the limits, N <= count; free: without self-collision, by the checker on the CPU."""
        q = rng.uniform(self.robot.lower, self.robot.upper, (8 * count if free else count, self.robot.dof))
        if free:
            q[::2] *= 0.5  # near the middle most robots are stretched out
            q = np.clip(q, self.robot.lower, self.robot.upper)
            q = q[self.bare.configurations_valid(q)][:count]
        return q


def free_of(checkers, q):
    """{device: (N,) bool} of configurations (N, dof)."""
    return {device: np.asarray(checker.configurations_valid(q)) for device, checker in checkers.items()}


def _generated(name):
    kind, _, number = name.partition("-")
    if kind == "random":
        rng = np.random.default_rng([77, int(number)])
        return random_urdf(rng, int(rng.integers(3, 9)), almost_parallel=int(number) % 3 == 2, shapes=True)
    # "many-N": one joint that turns a bar of N small spheres
    spheres = [
        f'<collision><origin xyz="{0.01 * i} 0 0"/><geometry><sphere radius="0.02"/></geometry></collision>'
        for i in range(int(number))
    ]
    return (
        f'<robot name="many"><link name="base"/><link name="bar">{"".join(spheres)}</link>'
        '<joint name="turn" type="revolute"><parent link="base"/><child link="bar"/><axis xyz="0 0 1"/>'
        '<limit lower="-3" upper="3" velocity="1" effort="1"/></joint></robot>'
    )


def _shift(root, shift):
    """Put a link above the root link, joined by a fixed joint."""
    children = {joint.find("child").get("link") for joint in root.findall("joint")}
    top = next(link.get("name") for link in root.findall("link") if link.get("name") not in children)
    ET.SubElement(root, "link", name="far_origin")
    joint = ET.SubElement(root, "joint", name="far_joint", type="fixed")
    ET.SubElement(joint, "origin", xyz=" ".join(repr(float(x)) for x in shift), rpy="0 0 0")
    ET.SubElement(joint, "parent", link="far_origin")
    ET.SubElement(joint, "child", link=top)


def _rest(joint):
    """Where a joint that is not planned stays: at 0, or at the limit nearest to it."""
    limit = joint.find("limit")
    if joint.get("type") == "continuous" or limit is None:
        return 0.0
    return float(np.clip(0.0, float(limit.get("lower", 0)), float(limit.get("upper", 0))))
