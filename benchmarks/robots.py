"""Robots: real ones of example-robot-data, a gantry of our own, and two of the shared data that are planned as wholes.

`Rig` holds one of them as the planners know it, and builds the scene of coal that re-checks it from the same files.
"""

import functools
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from gpu_planners.arm import RobotModel, load_urdf
from gpu_planners.arm.geometry.decomposition import DEFAULT_TOLERANCE
from gpu_planners.errors import GpuPlannersError
from gpu_planners.share import example_robots_share, share_folder

from .problems import load_problems, robot_files

MOVING = ("revolute", "continuous", "prismatic")


@dataclass(frozen=True)
class Description:
    """title: in tables;  urdf, srdf: below example-robot-data's robots/, or below our urdf/ where `own`; without an
    SRDF all pairs of links are checked that are not proven to stay apart
    joints: pattern of the planning joints' names;  tips: the links that hold the end effectors' centres
    fixed: {joint: value} of joints that are not planned, rad or m; others stay at 0 or at the limit nearest to it
    """

    title: str
    urdf: str
    joints: str
    tips: tuple
    srdf: str = ""
    fixed: dict = field(default_factory=dict)
    own: bool = False


ROBOTS = {
    "panda": Description(
        "Panda",
        "panda_description/urdf/panda.urdf",
        r"panda_joint\d",
        ("panda_hand_tcp",),
        srdf="panda_description/srdf/panda.srdf",
        fixed={"panda_finger_joint1": 0.04},
    ),
    "ur5": Description(
        "UR5", "ur_description/urdf/ur5_robot.urdf", r"\w+_joint", ("ee_link",), srdf="ur_description/srdf/ur5.srdf"
    ),
    "ur10": Description("UR10", "ur_description/urdf/ur10_robot.urdf", r"\w+_joint", ("ee_link",)),
    "xarm7": Description(
        "xArm7", "xarm_description/urdf/xarm7.urdf", r"joint\d", ("link_eef",), srdf="xarm_description/srdf/xarm7.srdf"
    ),
    "kinova": Description(
        "Kinova, continuous joints",
        "kinova_description/robots/kinova.urdf",
        r"j2s6s200_joint_\d",
        ("j2s6s200_end_effector",),
    ),
    "tiago": Description(
        "TIAGo, sliding torso",
        "tiago_description/robots/tiago.urdf",
        r"torso_lift_joint|arm_\d_joint",
        ("hand_grasping_frame",),
    ),
    "baxter": Description(
        "Baxter, two arms",
        "baxter_description/urdf/baxter.urdf",
        r"(left|right)_[sew]\d",
        ("left_gripper", "right_gripper"),
        srdf="baxter_description/srdf/baxter_manipulation.srdf",
    ),
    "gantry": Description("Gantry, sliding axes", "gantry.urdf", r"\w+", ("gripper_tip",), own=True),
}


@dataclass(frozen=True, eq=False)
class Rig:
    """A robot to plan for, and the files that it came from.

    srdf: None where the description has none;  package_dir: where package:// begins
    model: RobotModel of the planning joints, each mesh as one hull unless told otherwise
    tips: the links that hold the end effectors' centres
    fixed: {joint: value} of the joints that are not planned and mimic none, rad or m
    """

    name: str
    title: str
    urdf: Path
    srdf: Path | None
    package_dir: Path
    model: RobotModel
    tips: tuple
    fixed: dict

    def coal_scene(self, obstacles):
        """CoalScene of `gpu_planners.verify`, the robot among obstacles: from the URDF, by pinocchio and coal alone.
        Which links may meet is the SRDF's word, else the model's."""
        return self._bare.among(obstacles)

    @functools.cached_property
    def _bare(self):
        from gpu_planners.verify import CoalScene

        return CoalScene(**self.coal_arguments)

    @functools.cached_property
    def coal_arguments(self):
        """{argument of CoalScene: value} of the robot."""
        pairs = None
        if self.srdf is None:
            links = [self.model.link_names[i] for i in self.model.shape_link]
            pairs = [(links[a], links[b]) for a, b in np.asarray(self.model.self_collision_pairs).reshape(-1, 2)]
        return {
            "urdf": self.urdf,
            "srdf": self.srdf,
            "package_dirs": [self.package_dir],
            "joints": self.model.joint_names,
            "fixed": self.fixed,
            "self_pairs": pairs,
            "meshes": pieces_of(self.model),
        }


def pieces_of(robot):
    """{body, as CoalScene names it: [(V, 3) vertices in the link's frame]} of the meshes that a RobotModel has in
    pieces."""
    pieces = {}
    for shape, index in zip(robot.shapes, robot.shape_link, strict=True):
        if "#" in shape.name:
            T = np.linalg.inv(robot.T_frame_link[index]) @ shape.pose
            pieces.setdefault(shape.name.rpartition("#")[0], []).append(shape.vertices @ T[:3, :3].T + T[:3, 3])
    return pieces


SHARED = {  # title, planning joints
    "fetch": ("Fetch, sliding torso", r"torso_lift_joint|(shoulder|upperarm|elbow|forearm|wrist)_\w+_joint"),
    "baxter": ("Baxter, two arms", r"(left|right)_[sew]\d"),
}


@functools.cache
def shared(name, data=None):
    """(Rig of a robot of SHARED, meshes in pieces; its shared problems, whose joints are in the Rig's order)."""
    (title, joints), (urdf, srdf), problems = SHARED[name], robot_files(name, data), load_problems(name, data)
    fixed = {}
    for joint in ET.parse(urdf).getroot().findall("joint"):
        if joint.get("type") in MOVING and joint.get("name") in problems[0].other_joints:
            value, limit = problems[0].other_joints[joint.get("name")], joint.find("limit")
            if joint.get("type") != "continuous":  # grippers are open wider than their limits there
                value = float(np.clip(value, *(float(limit.get(end, 0)) for end in ("lower", "upper"))))
            fixed[joint.get("name")] = value
    rig = rig_of(name, urdf, urdf.parent, joints, (), srdf, fixed, title, hull_tolerance=DEFAULT_TOLERANCE)
    order = [problems[0].joint_names.index(joint) for joint in rig.model.joint_names]
    return rig, [replace(one, start=one.start[order], goals=one.goals[:, order]) for one in problems]


def unavailable(name):
    """Why a robot of ROBOTS cannot be used here, or None."""
    if ROBOTS[name].own:
        return None
    try:
        example_robots_share()
    except FileNotFoundError as error:
        return str(error)
    return None


def rig_of(name, urdf, package_dir, joints, tips, srdf=None, fixed=None, title=None, **options):
    """Rig of any robot. urdf, srdf: files;  joints: pattern of the planning joints' names;  others: as in Rig; `fixed`
    may leave joints out: those stay at 0, or at the limit nearest to it;  options: of load_urdf"""
    names = [
        joint.get("name")
        for joint in ET.parse(urdf).getroot().findall("joint")
        if joint.get("type") in MOVING and joint.find("mimic") is None
    ]
    planned, fixed = [joint for joint in names if re.fullmatch(joints, joint)], dict(fixed or {})
    pairs = None if srdf is None else _pairs_alone(srdf)
    options = {"velocity": 1.0, "hull_tolerance": np.inf} | options
    model = load_urdf(urdf, pairs, [package_dir], planned, fixed, **options)
    rest = {joint: float(np.clip(0.0, *limits)) for joint, limits in model.other_joints.items()}
    return Rig(name, title or name, Path(urdf), srdf, Path(package_dir), model, tuple(tips), rest | fixed)


def _pairs_alone(srdf):
    """The text of an SRDF without its groups, which in some files name joints that the URDF does not have."""
    root = ET.parse(srdf).getroot()
    for element in list(root):
        if element.tag != "disable_collisions":
            root.remove(element)
    return ET.tostring(root, encoding="unicode")


@functools.cache
def rig(name):
    """Rig of a robot of ROBOTS.

    Raises GpuPlannersError for another name, FileNotFoundError where example-robot-data is needed and not installed.
    """
    if name not in ROBOTS:
        raise GpuPlannersError(f"robot is {name!r}; allowed: {', '.join(ROBOTS)}")
    described = ROBOTS[name]
    package_dir = share_folder() if described.own else example_robots_share()
    folder = package_dir / ("urdf" if described.own else "example-robot-data/robots")
    return rig_of(
        name,
        folder / described.urdf,
        package_dir,
        described.joints,
        described.tips,
        folder / described.srdf if described.srdf else None,
        described.fixed,
        described.title,
    )
