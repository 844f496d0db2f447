"""A Panda as MoveIt describes it: names, joints, groups, states and the virtual joint; with shapes of our own.

The shapes are balls and cylinders that need no meshes, so the kinematics are the robot's and its surface is not.
"""

import re
from itertools import combinations

ARM = [f"panda_joint{i}" for i in range(1, 8)]
FINGER = "panda_finger_joint1"
READY = (0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785)
ORIGINS = (
    ("0 0 0", "0 0 0.333"),
    ("-1.57079632679 0 0", "0 0 0"),
    ("1.57079632679 0 0", "0 -0.316 0"),
    ("1.57079632679 0 0", "0.0825 0 0"),
    ("-1.57079632679 0 0", "-0.0825 0.384 0"),
    ("1.57079632679 0 0", "0 0 0"),
    ("1.57079632679 0 0", "0.088 0 0"),
)
LIMITS = (
    (-2.9671, 2.9671, 2.3925),
    (-1.8326, 1.8326, 2.3925),
    (-2.9671, 2.9671, 2.3925),
    (-3.1416, 0.0873, 2.3925),
    (-2.9671, 2.9671, 2.8710),
    (-0.0873, 3.8223, 2.8710),
    (-2.9671, 2.9671, 2.8710),
)
LINKS = [*(f"panda_link{i}" for i in range(8)), "panda_hand", "panda_leftfinger", "panda_rightfinger"]


def _link(name, shape="", at="0 0 0"):
    if not shape:
        return f'<link name="{name}"/>'
    return f'<link name="{name}"><collision><origin xyz="{at}"/><geometry>{shape}</geometry></collision></link>'


def _joints():
    for i, ((rpy, xyz), (lower, upper, velocity)) in enumerate(zip(ORIGINS, LIMITS), 1):
        yield (
            f'<joint name="panda_joint{i}" type="revolute"><safety_controller k_position="100.0" k_velocity="40.0" '
            f'soft_lower_limit="{lower + 0.07}" soft_upper_limit="{upper - 0.07}"/><origin rpy="{rpy}" xyz="{xyz}"/>'
            f'<parent link="panda_link{i - 1}"/><child link="panda_link{i}"/><axis xyz="0 0 1"/>'
            f'<limit effort="87" lower="{lower}" upper="{upper}" velocity="{velocity}"/></joint>'
        )
    yield (
        '<joint name="panda_joint8" type="fixed"><origin rpy="0 0 0" xyz="0 0 0.107"/>'
        '<parent link="panda_link7"/><child link="panda_link8"/></joint>'
        '<joint name="panda_hand_joint" type="fixed"><origin rpy="0 0 -0.785398163397" xyz="0 0 0"/>'
        '<parent link="panda_link8"/><child link="panda_hand"/></joint>'
    )
    for i, (side, way, more) in enumerate(
        (("left", "0 1 0", ""), ("right", "0 -1 0", f'<mimic joint="{FINGER}"/>')), 1
    ):
        yield (
            f'<joint name="panda_finger_joint{i}" type="prismatic"><parent link="panda_hand"/>'
            f'<child link="panda_{side}finger"/><origin rpy="0 0 0" xyz="0 0 0.0584"/><axis xyz="{way}"/>'
            f'<limit effort="20" lower="0.0" upper="0.04" velocity="0.2"/>{more}</joint>'
        )


URDF = "".join(
    [
        '<robot name="panda" xmlns:xacro="http://www.ros.org/wiki/xacro">',
        _link("panda_link0", '<cylinder radius="0.1" length="0.1"/>', "0 0 0.05"),
        *(_link(f"panda_link{i}", '<sphere radius="0.06"/>') for i in range(1, 8)),
        _link("panda_link8"),
        _link("panda_hand", '<box size="0.04 0.2 0.05"/>', "0 0 0.03"),
        *(_link(f"panda_{side}finger", '<box size="0.02 0.01 0.05"/>', "0 0 0.025") for side in ("left", "right")),
        *_joints(),
        "</robot>",
    ]
)


def _state(group, name, names, values):
    rows = "".join(f'<joint name="{joint}" value="{value}"/>' for joint, value in zip(names, values))
    return f'<group_state group="{group}" name="{name}">{rows}</group_state>'


FINGERS = ["panda_finger_joint1", "panda_finger_joint2"]
SRDF = "".join(
    [
        '<?xml version="1.0" encoding="utf-8"?><!-- made by xacro, which leaves comments --><robot name="panda">',
        '<group name="panda_arm"><chain base_link="panda_link0" tip_link="panda_link8"/></group>',
        _state("panda_arm", "ready", ARM, READY),
        _state("panda_arm", "extended", ARM, (0, 0, 0, 0, 0, 1.571, 0.785)),
        '<virtual_joint child_link="panda_link0" name="virtual_joint" parent_frame="world" type="floating"/>',
        '<group name="hand"><link name="panda_hand"/><link name="panda_leftfinger"/><link name="panda_rightfinger"/>',
        '<joint name="panda_finger_joint1"/><passive_joint name="panda_finger_joint2"/></group>',
        '<group name="panda_arm_hand"><group name="panda_arm"/><group name="hand"/></group>',
        _state("hand", "open", FINGERS, (0.035, 0.035)),
        _state("hand", "close", FINGERS, (0, 0)),
        '<end_effector group="hand" name="hand" parent_group="panda_arm" parent_link="panda_link8"/>',
        *(
            f'<disable_collisions link1="{a}" link2="{b}" reason="{"Adjacent" if j == i + 1 else "Never"}"/>'
            for (i, a), (j, b) in combinations(enumerate(LINKS), 2)
            if j <= i + 2 or i >= 5
        ),
        "</robot>",
    ]
)


def _sided(text, side):
    return re.sub(r"\bpanda_", f"{side}_panda_", text)


def _inside(text):
    """What is between the first tag of a description and its end."""
    return re.search(r"<robot[^>]*>(.*)</robot>", text, re.DOTALL).group(1)


SIDES = "left", "right"
APART = 0.3  # metres from the middle of a table to each of two Pandas
TWO_ARMS = {side: [_sided(joint, side) for joint in ARM] for side in SIDES}
TWO_URDF = "".join(
    [
        '<robot name="two_pandas"><link name="table"/>',
        *(_sided(_inside(URDF), side) for side in SIDES),
        *(
            f'<joint name="{side}_foot" type="fixed"><parent link="table"/><child link="{side}_panda_link0"/>'
            f'<origin xyz="0 {y} 0"/></joint>'
            for side, y in zip(SIDES, (APART, -APART))
        ),
        "</robot>",
    ]
)
TWO_SRDF = "".join(
    [
        '<robot name="two_pandas">',
        *(
            f'<group name="{side}_arm"><chain base_link="{side}_panda_link0" tip_link="{side}_panda_link8"/></group>'
            f'<group name="{side}_hand"><joint name="{side}_panda_finger_joint1"/></group>'
            f'<end_effector name="{side}_hand" group="{side}_hand" parent_group="{side}_arm" '
            f'parent_link="{side}_panda_link8"/>'
            for side in SIDES
        ),
        '<group name="both_arms"><group name="left_arm"/><group name="right_arm"/></group>',
        *(_sided(pair, side) for side in SIDES for pair in re.findall("<disable_collisions[^>]*>", SRDF)),
        "</robot>",
    ]
)
