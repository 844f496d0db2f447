"""The default tip: the SRDF's chain, tools' names, the SRDF's end effector, the link before a gripper, the last."""

import pytest
from pinocchio_poses import example_robot

from gpu_planners.arm import load_urdf
from gpu_planners.arm.urdf.loader import planning_joints
from gpu_planners.arm.urdf.srdf_xml import NO_SRDF, read_srdf
from gpu_planners.arm.urdf.tip import default_tip
from gpu_planners.arm.urdf.urdf_xml import read_urdf
from gpu_planners.arm.urdf.xml_text import read_xml_file

LIMIT = '<limit lower="-1" upper="1" velocity="1" effort="1"/>'
SLIDE = '<limit lower="0" upper="0.04" velocity="1" effort="1"/>'


class Robot:
    """A chain of `joints` revolute joints, and what is added to it."""

    def __init__(self, joints=4):
        self.text, self.links = "", ["l0"]
        for i in range(joints):
            self.add(f"l{i}", f"l{i + 1}", name=f"j{i + 1}", xyz="0 0 0.3")

    def add(self, parent, child, kind="revolute", name="", inside="", xyz="0 0 0.05"):
        self.links.append(child)
        self.text += f"""<joint name="{name or child + "_joint"}" type="{kind}"><parent link="{parent}"/>
            <child link="{child}"/><origin xyz="{xyz}"/>{SLIDE if kind == "prismatic" else LIMIT}{inside}</joint>"""
        return self

    def fix(self, *links):
        for parent, child in zip(links, links[1:]):
            self.add(parent, child, "fixed")
        return self

    def __str__(self):
        return '<robot name="arm">' + "".join(f'<link name="{one}"/>' for one in self.links) + self.text + "</robot>"


def tip(robot, srdf=None, **arguments):
    return load_urdf(str(robot), srdf, **arguments).tip_link


def camera(robot):
    return robot.fix("l4", "camera_link", "camera_color_frame", "camera_color_optical_frame")


@pytest.mark.parametrize(
    "names, expected",
    [
        (["tool0", "grasp_tcp", "ee_link"], "tool0"),
        (["grasp_tcp", "ee_link"], "grasp_tcp"),
        (["ee_link", "left_tool0"], "left_tool0"),
        (["plate", "ee_link"], "ee_link"),
        (["arm/tcp"], "arm/tcp"),
        (["my_end_effector"], "my_end_effector"),
        (["notool0", "xtcp", "flee_link2"], "l4"),
    ],
)
def test_names_of_tools_come_first(names, expected):
    robot = camera(Robot())
    for name in names:
        robot.fix("l4", name)
    if expected == "l4":  # names that only look like such: the deepest link that is no camera's, the first of several
        expected = names[0]
    assert tip(robot) == expected


def test_a_camera_is_no_tip():
    model = load_urdf(str(camera(Robot()).fix("l4", "plate")))
    assert model.tip_link == "plate" and "'j4'" in model.tip_reason
    for name in ("cam0", "front_imu", "d435_optical_frame", "aruco_top", "laser"):
        assert tip(Robot().fix("l4", name, f"{name}_deeper")) in ("l4", f"{name}_deeper")
        assert tip(Robot().fix("l4", name)) == "l4"
    assert tip(Robot().fix("l4", "simulated_flange")) == "simulated_flange"


def fingers(robot, *chains):
    for chain in chains:
        links = ["hand", *chain.split()]
        for parent, child in zip(links, links[1:]):
            robot.add(parent, child)
    return robot


HANDS = {
    "two that slide": lambda robot: robot.add("hand", "left", "prismatic").add("hand", "right", "prismatic"),
    "one follows": lambda robot: robot.add("hand", "left", "prismatic").add(
        "hand", "right", "prismatic", inside='<mimic joint="left_joint" multiplier="-1"/>'
    ),
    "linkage": lambda robot: fingers(robot, "a b", "c", "d e", "f"),
    "three, jointed": lambda robot: fingers(robot, "a a2", "b b2", "c c2"),
    "thumb is longer": lambda robot: fingers(robot, "t t2 t3", "b b2", "c c2"),
    "one jaw": lambda robot: robot.add("hand", "moving_jaw"),
    "named joint": lambda robot: robot.add("hand", "part", name="gripper"),
    "on a palm": lambda robot: robot.fix("hand", "palm").add("palm", "left").add("palm", "right"),
    "locked": lambda robot: robot.add("hand", "left", inside='<limit lower="0" upper="0"/>').add("hand", "right"),
}


@pytest.mark.parametrize("hand", HANDS.values(), ids=HANDS)
def test_the_last_link_before_a_gripper(hand):
    robot = camera(hand(Robot().fix("l4", "hand")))
    model = load_urdf(str(robot))
    assert model.tip_link == ("palm" if "palm" in robot.links else "hand"), model.tip_reason
    assert "gripper" in model.tip_reason
    arm = load_urdf(str(robot), joints=["j1", "j2", "j3", "j4"])
    assert (arm.tip_link, arm.tip_reason) == (model.tip_link, model.tip_reason)


def test_a_frame_for_what_a_gripper_grasps():
    robot = HANDS["two that slide"](Robot().fix("l4", "hand", "link_grasp_center").fix("hand", "plate", "end"))
    assert tip(robot) == "link_grasp_center"


def test_a_wrist_may_turn_a_link_called_gripper():
    assert tip(Robot().add("l4", "gripper", name="wrist_roll").fix("gripper", "gripper_tip")) == "gripper_tip"


def test_a_gripper_alone_has_the_tip_of_its_last_joint():
    robot = HANDS["two that slide"](Robot().fix("l4", "hand"))
    assert tip(robot, joints=["left_joint"]) == "left"


def test_what_branches_and_is_no_gripper():
    arms = Robot(2)  # a trunk with a waist and two arms, as long as it or longer
    for side in ("left", "right"):
        for i in range(4):
            arms.add(f"{side}{i - 1}" if i else "l2", f"{side}{i}", xyz="0 0 0.3")
    assert tip(arms) == "left3"
    rods = Robot(2).add("l2", "forearm", xyz="0 0 0.3").add("forearm", "wrist")
    for parent, child in (("l2", "rod"), ("forearm", "rod2")):  # they keep the wrist level
        rods.add(parent, child, inside='<mimic joint="j2" multiplier="-1"/>')
    assert tip(rods) == "wrist"
    assert tip(Robot(1).add("l0", "wheel1").add("l0", "wheel2").add("l1", "l1b").add("l1b", "tool0")) == "tool0"


SRDF = """<robot name="arm"><group name="arm">{}</group><group name="hand"><joint name="left_joint"/></group>
    <end_effector name="gripper" group="hand" parent_link="{}" parent_group="arm"/></robot>"""
JOINTS = "".join(f'<joint name="j{i}"/>' for i in range(1, 5))


def test_the_srdf_says_which():
    robot = HANDS["two that slide"](camera(Robot().fix("l4", "flange", "hand")))
    effector = SRDF.format(JOINTS, "flange")
    model = load_urdf(str(robot), effector, group="arm")
    assert model.tip_link == "flange" and "end effector 'gripper'" in model.tip_reason
    assert tip(Robot().fix("l4", "flange", "tool0"), SRDF.format(JOINTS, "flange"), group="arm") == "tool0"
    assert tip(robot, SRDF.format(JOINTS, "l2"), group="arm") == "hand"  # not where the last joint's links are
    chain = SRDF.format('<chain base_link="l0" tip_link="l4"/>', "flange")
    model = load_urdf(str(robot), chain, group="arm")
    assert model.tip_link == "l4" and "chain" in model.tip_reason
    one = Robot().fix("l4", "plate").add("plate", "odd", name="left_joint")  # a gripper that only the SRDF knows
    assert tip(one) == "odd"
    assert tip(one, SRDF.format(JOINTS, "plate"), joints=["j1", "j2", "j3", "j4", "left_joint"]) == "plate"


EXAMPLES = {  # of example-robot-data, all joints planned: the tip
    "panda": "panda_hand_tcp",
    "ur5": "tool0",
    "kinova": "j2s6s200_end_effector",
    "xarm7": "link_eef",
    "baxter": "right_gripper_base_link",
    "tiago": "hand_grasping_frame",
    "z1": "gripperStator",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_tips_of_real_robots(name):
    urdf, _ = example_robot(name)
    description = read_urdf(read_xml_file(urdf, "URDF").lstrip())
    names = planning_joints(description, NO_SRDF, None, None)
    assert default_tip(description, NO_SRDF, None, names)[0] == EXAMPLES[name]


def test_an_effector_may_name_the_group_of_its_arm():
    """As SRDFs of pinocchio's robots do."""
    srdf = SRDF.format(JOINTS, "flange").replace('group="hand"', 'group="arm"').replace('parent_group="arm"', "")
    model = load_urdf(str(Robot().fix("l4", "flange", "deeper")), srdf, group="arm")
    assert model.tip_link == "flange" and "end effector" in model.tip_reason


def test_fingers_that_are_fixed_are_no_tip():
    assert tip(Robot().fix("l4", "hand", "left_finger", "left_tip").fix("hand", "right_finger")) == "hand"
    assert tip(Robot().fix("l4", "wrist", "hand").fix("hand", "camera_link", "camera_optical_frame")) == "hand"
    assert tip(Robot(2).add("l2", "finger").fix("finger", "finger_tip"), joints=["finger_joint"]) == "finger_tip"


def test_an_effector_of_another_group_is_passed_over():
    description = read_urdf(str(Robot().fix("l4", "flange", "plate")))
    srdf = f"{SRDF.format(JOINTS, 'flange')}".replace('parent_group="arm"', 'parent_group="hand"')
    semantics = read_srdf(srdf, description)
    names = semantics.joints_of("arm")
    assert default_tip(description, semantics, "arm", names)[0] == "plate"
    assert default_tip(description, semantics, None, names)[0] == "flange"
