"""Motions of several groups executed, each by the controller of its joints; and our own messages that name a group."""

import pytest

pytest.importorskip("control_msgs.action", reason="the ROS package control_msgs is not installed")
pytest.importorskip("moveit_msgs.action", reason="the ROS package moveit_msgs is not installed")

import threading
import time

import moveit_messages as messages
import numpy as np
from control_msgs.action import FollowJointTrajectory
from moveit_msgs.action import ExecuteTrajectory, MoveGroup
from moveit_msgs.msg import MoveItErrorCodes, PlanningScene, RobotTrajectory
from node_harness import joints
from panda_files import ARM, FINGER, FINGERS, READY
from rclpy.action import ActionClient, ActionServer, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import MultiThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState
from test_moveit_groups import LOW, GroupsNode, beside_the_finger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from gpu_planners.nodes.arm.conversions import path_of
from gpu_planners.nodes.common.ros import duration_message, seconds
from gpu_planners_msgs.action import Move
from gpu_planners_msgs.srv import PlanMotion

CODES = MoveItErrorCodes
CONTROLLERS = {"arm": ARM, "hand": [FINGER]}
named = pytest.mark.skipif(not hasattr(PlanMotion.Request(), "group"), reason="older interfaces: run make setup")


class Controllers:
    """One for the arm and one for the hand, whose joints are on one joint_states, as on a robot.

    played: [(controller, joint names)] of the motions that were executed
    """

    def __init__(self, context):
        self.node, self.played, self._latest = Node("controllers", context=context), [], {}
        self.place = dict(zip([*ARM, FINGER], [*READY, 0.01]))
        self._states = self.node.create_publisher(JointState, "joint_states", 10)
        self.node.create_timer(0.01, lambda: self._states.publish(joints(self.place.values(), self.place)))
        self._servers = [
            ActionServer(
                self.node,
                FollowJointTrajectory,
                f"{name}_controller/follow_joint_trajectory",
                lambda goal, name=name: self._play(name, goal),
                callback_group=ReentrantCallbackGroup(),
                goal_callback=lambda goal, own=own: GoalResponse(1 + (list(goal.trajectory.joint_names) == own)),
            )
            for name, own in CONTROLLERS.items()
        ]
        self._executor = MultiThreadedExecutor(6, context=context)
        self._executor.add_node(self.node)
        threading.Thread(target=self._executor.spin, daemon=True).start()

    def _play(self, name, goal):
        """Play a motion on straight lines between its points; another one takes its place."""
        message, began = goal.request.trajectory, time.monotonic()
        self.played.append((name, list(message.joint_names)))
        self._latest[name] = goal
        times, path = [seconds(point.time_from_start) for point in message.points], path_of(message)
        while (now := time.monotonic() - began) < times[-1] + 0.02:
            if self._latest[name] is not goal:
                goal.abort()
                return FollowJointTrajectory.Result()
            for joint, column in zip(message.joint_names, path.T):
                self.place[joint] = float(np.interp(now, times, column))
            time.sleep(0.005)
        self.place |= dict(zip(message.joint_names, path[-1].tolist()))  # however late a busy machine looked
        goal.succeed()
        return FollowJointTrajectory.Result()

    def close(self):
        self._executor.shutdown(timeout_sec=5)


class Robot(GroupsNode):
    def __init__(self):
        super().__init__(
            group="panda_arm",
            controller_action="arm_controller/follow_joint_trajectory",
            group_controllers=["hand=hand_controller/follow_joint_trajectory"],
        )
        self.controllers = Controllers(self.context)
        self._actions = {}
        self.wait_until(lambda: self.node.place() is not None)

    def act(self, kind, name, goal):
        """The result of an action's goal."""
        if name not in self._actions:
            self._actions[name] = ActionClient(self.client_node, kind, name)
            assert self._actions[name].wait_for_server(20)
        sent = self._actions[name].send_goal_async(goal)
        self.wait_until(sent.done, 20)
        ended = sent.result().get_result_async()
        self.wait_until(ended.done, 60)
        return ended.result().result

    def go_back(self):
        self.controllers.place |= dict(zip([*ARM, FINGER], [*READY, 0.01]))
        self.wait_until(lambda: np.allclose(self.node.place(), READY) and self.node.measured()[FINGER] == 0.01)

    def close(self):
        self.controllers.close()
        super().close()


@pytest.fixture(scope="module")
def robot():
    robot = Robot()
    yield robot
    robot.close()


@pytest.fixture(autouse=True)
def begin(robot):
    robot.controllers.played.clear()
    robot.go_back()


def test_each_group_goes_to_its_controller(robot):
    """One after the other by MoveGroup; then the same trajectories by ExecuteTrajectory, which names no group."""
    motions = []
    for group, goal in (
        ("hand", messages.joint_goal([0.035], names=[FINGER])),
        ("panda_arm", messages.joint_goal(LOW, names=ARM)),
    ):
        asked = MoveGroup.Goal(request=messages.motion_request(goal, start=None, group_name=group))
        result = robot.act(MoveGroup, "move_action", asked)
        assert result.error_code.val == CODES.SUCCESS, result.error_code.message
        motions.append(result.planned_trajectory.joint_trajectory)
    assert robot.controllers.played == [("hand", [FINGER]), ("arm", ARM)]
    assert abs(robot.controllers.place[FINGER] - 0.035) < 1e-3
    robot.go_back()
    for motion in motions:
        goal = ExecuteTrajectory.Goal(trajectory=RobotTrajectory(joint_trajectory=motion))
        result = robot.act(ExecuteTrajectory, "execute_trajectory", goal)
        assert result.error_code.val == CODES.SUCCESS, result.error_code.message
    assert robot.controllers.played[2:] == [("hand", [FINGER]), ("arm", ARM)]


def test_a_trajectory_may_name_joints_that_mimic_others(robot):
    points = [
        JointTrajectoryPoint(positions=[value] * 2, effort=[0.0] * 2, time_from_start=duration_message(at))
        for value, at in ((0.01, 0.0), (0.02, 0.5))
    ]
    motion = JointTrajectory(joint_names=FINGERS, points=points)
    goal = ExecuteTrajectory.Goal(trajectory=RobotTrajectory(joint_trajectory=motion))
    result = robot.act(ExecuteTrajectory, "execute_trajectory", goal)
    assert result.error_code.val == CODES.SUCCESS, result.error_code.message
    assert robot.controllers.played == [("hand", [FINGER])] and robot.controllers.place[FINGER] == 0.02


def test_a_trajectory_of_no_group_is_refused(robot):
    two = JointTrajectory(joint_names=ARM[:2], points=[JointTrajectoryPoint(positions=[0.0, -0.785])])
    goal = ExecuteTrajectory.Goal(trajectory=RobotTrajectory(joint_trajectory=two))
    result = robot.act(ExecuteTrajectory, "execute_trajectory", goal)
    assert result.error_code.val == CODES.INVALID_MOTION_PLAN and ARM[6] in result.error_code.message


def test_a_hand_stops_where_the_arm_moves_on_to_an_obstacle(robot):
    """The arm is moved while the hand opens slowly, to where a box is beside the finger."""
    robot.apply(messages.scene(beside_the_finger(LOW)))
    goal = messages.joint_goal([0.039], names=[FINGER])
    asked = MoveGroup.Goal(
        request=messages.motion_request(goal, start=None, group_name="hand", max_velocity_scaling_factor=0.05)
    )
    mover = threading.Timer(1.0, lambda: robot.controllers.place.update(zip(ARM, LOW)))
    mover.start()
    result = robot.act(MoveGroup, "move_action", asked)
    mover.join()
    text = result.error_code.message
    assert result.error_code.val == CODES.MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE, text
    assert "'panda_leftfinger_0' would meet 'box'" in text and robot.controllers.place[FINGER] < 0.035
    robot.apply(PlanningScene(name="empty", is_diff=False))


@named
def test_our_own_messages_name_a_group(robot):
    request = PlanMotion.Request(group="hand", joint_goals=[joints([0.03], [FINGER])])
    answer = robot.plan(request)
    assert answer.code == PlanMotion.Response.SUCCESS, answer.message
    assert answer.trajectory.joint_names == [FINGER] and answer.path.points[0].positions[0] == 0.01
    request.start = joints([*LOW, 0.02], [*ARM, FINGER])
    assert robot.plan(request).path.points[0].positions[0] == 0.02
    refused = robot.plan(PlanMotion.Request(group="feet", joint_goals=[joints([0.03], [FINGER])]))
    assert refused.code == PlanMotion.Response.INVALID_GROUP_NAME and "panda_arm_hand" in refused.message
    result = robot.act(Move, "/arm_planner/move", Move.Goal(group="hand", joint_goals=[joints([0.03], [FINGER])]))
    assert result.code == Move.Result.SUCCESS, result.message
    assert robot.controllers.played == [("hand", [FINGER])]
