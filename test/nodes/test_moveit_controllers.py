"""Controllers that moveit_controllers.yaml describes, given to the node as parameters, as launch files of MoveIt do."""

import pytest

pytest.importorskip("control_msgs.action", reason="the ROS package control_msgs is not installed")
pytest.importorskip("moveit_msgs.action", reason="the ROS package moveit_msgs is not installed")

import moveit_messages as messages
import numpy as np
from moveit_msgs.action import ExecuteTrajectory, MoveGroup
from moveit_msgs.msg import MoveItErrorCodes
from panda_files import ARM, FINGER, FINGERS, READY
from running_node import starter
from test_groups_executed import Controllers, Robot
from test_moveit_groups import LOW, GroupsNode

from gpu_planners.errors import SettingsError
from gpu_planners.nodes.arm.given_controllers import EXECUTION, MANAGER

CODES = MoveItErrorCodes
DESCRIBED = {
    "arm_controller": ("FollowJointTrajectory", ARM),
    "hand_controller": ("FollowJointTrajectory", FINGERS),  # one of which mimics the other
    "gripper": ("GripperCommand", [FINGER]),
}


def managed(described=DESCRIBED):
    given = {f"{MANAGER}.controller_names": list(described)}
    for name, (kind, joints) in described.items():
        given |= {f"{MANAGER}.{name}.type": kind, f"{MANAGER}.{name}.joints": list(joints)}
        given[f"{MANAGER}.{name}.action_ns"] = "follow_joint_trajectory"
    return given


class Managed(Robot):
    def __init__(self, **parameters):
        GroupsNode.__init__(self, **managed() | {f"{EXECUTION}.allowed_goal_duration_margin": 2} | parameters)
        self.controllers, self._actions = Controllers(self.context), {}
        self.wait_until(lambda: self.node.place() is not None)


start_node = starter(Managed)
start_bare = starter(GroupsNode)


def goal(group, q, names):
    return MoveGroup.Goal(
        request=messages.motion_request(messages.joint_goal(q, names=names), start=None, group_name=group)
    )


def test_each_group_goes_to_the_controller_of_its_joints(start_node):
    robot = start_node(group="panda_arm")
    motions = {}
    for group, q, names, name in (("panda_arm", LOW, ARM, "arm"), ("hand", [0.03], [FINGER], "hand")):
        result = robot.act(MoveGroup, "move_action", goal(group, q, names))
        assert result.error_code.val == CODES.SUCCESS, result.error_code.message
        assert robot.controllers.played[-1] == (name, names)
        motions[group] = result.planned_trajectory
    both = robot.act(MoveGroup, "move_action", goal("panda_arm_hand", [*READY, 0.01], [*ARM, FINGER]))
    assert both.error_code.val == CODES.CONTROL_FAILED and "gripper (GripperCommand" in both.error_code.message
    robot.go_back()
    for names, code in ((["hand_controller"], CODES.CONTROL_FAILED), (["arm_controller"], CODES.SUCCESS)):
        asked = ExecuteTrajectory.Goal(trajectory=motions["panda_arm"])
        if not hasattr(asked, "controller_names"):  # before Jazzy
            break
        asked.controller_names = names
        result = robot.act(ExecuteTrajectory, "execute_trajectory", asked)
        assert result.error_code.val == code, result.error_code.message
    assert np.allclose([robot.controllers.place[name] for name in ARM], LOW, atol=1e-3)
    assert robot.node.values.allowed_goal_duration_margin == 2.0


def test_the_nodes_own_parameters_count_before(start_node):
    robot = start_node(
        group="hand",
        controller_action="hand_controller/follow_joint_trajectory",
        group_controllers=["panda_arm=nowhere/follow_joint_trajectory"],
        **{f"{EXECUTION}.execution_duration_monitoring": False},
    )
    assert robot.node.values.allowed_execution_duration_scaling == 0.0
    assert robot.act(MoveGroup, "move_action", goal("", [0.03], [FINGER])).error_code.val == CODES.SUCCESS
    refused = robot.act(MoveGroup, "move_action", goal("panda_arm", LOW, ARM)).error_code
    assert refused.val == CODES.CONTROL_FAILED and "nowhere/follow_joint_trajectory" in refused.message


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {f"{MANAGER}.controller_names": ["arm"], f"{MANAGER}.arm.joints": ARM},
            "'arm' of controller_names has no type",
        ),
        (managed({"arm": ("FollowJointTrajectory", [])}) | {f"{MANAGER}.arm.joints": [""]}, "'arm'.* has no joints"),
        (
            {f"{EXECUTION}.allowed_execution_duration_scaling": 0.5},
            "allowed_execution_duration_scaling.*0, or a number",
        ),
    ],
)
def test_what_is_wrong_is_named(start_bare, given, told):
    with pytest.raises(SettingsError, match=told):
        start_bare(group="panda_arm", **given)
