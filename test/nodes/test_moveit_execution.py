"""MoveGroup and ExecuteTrajectory executed by the player over real DDS, watched and stopped as ~/move is."""

import pytest

pytest.importorskip("moveit_msgs.action", reason="the ROS package moveit_msgs is not installed")

import moveit_messages as messages
import numpy as np
from action_msgs.msg import GoalStatus
from moveit_msgs.action import ExecuteTrajectory, MoveGroup
from moveit_msgs.msg import MoveItErrorCodes, RobotTrajectory
from rclpy.action import ActionClient
from running_node import shared
from test_move_node import HOME, Here, block_at

CODES = MoveItErrorCodes
pytestmark = pytest.mark.timeout(600)


class Goal:
    """A goal that was accepted."""

    def __init__(self, desk, kind, name, goal):
        if name not in desk.clients:
            desk.clients[name] = ActionClient(desk.client_node, kind, name)
            assert desk.clients[name].wait_for_server(20)
        self.desk, self.states = desk, []
        future = desk.clients[name].send_goal_async(goal, lambda message: self.states.append(message.feedback.state))
        desk.wait_until(future.done, 20)
        self.handle = future.result()
        self.future = self.handle.get_result_async()

    def wait(self):
        """(status, result)"""
        self.desk.wait_until(self.future.done, 60)
        return self.future.result().status, self.future.result().result


class MoveItDesk(Here):
    def __init__(self):
        self.clients = {}
        super().__init__()

    def move(self, q, start=None, plan_only=False, **fields):
        request = messages.motion_request(messages.joint_goal(q), start=start, **fields)
        goal = MoveGroup.Goal(request=request)
        goal.planning_options.plan_only = plan_only
        return Goal(self, MoveGroup, "move_action", goal)

    def execute(self, trajectory, **fields):
        goal = ExecuteTrajectory.Goal(trajectory=RobotTrajectory(joint_trajectory=trajectory), **fields)
        return Goal(self, ExecuteTrajectory, "execute_trajectory", goal)

    def planned(self, q, start=HOME):
        status, result = self.move(q, start=start, plan_only=True).wait()
        assert status == GoalStatus.STATUS_SUCCEEDED
        return result.planned_trajectory.joint_trajectory

    def moved(self, least):
        """Wait until the shoulder has."""
        self.wait_until(lambda: self.place()[0] > least, timeout=30)


node_of_module, desk = shared(MoveItDesk)
SLOW = {"max_velocity_scaling_factor": 0.3}


def test_a_goal_that_is_not_plan_only_moves_the_robot(desk):
    goal = desk.move((0.6, 0.3, 0.1), start=(1.5, 0.0, 0.0))  # as in MoveIt, the robot begins where it is
    status, result = goal.wait()
    assert status == GoalStatus.STATUS_SUCCEEDED and result.error_code.val == CODES.SUCCESS
    desk.wait_until(lambda: np.allclose(desk.place(), (0.6, 0.3, 0.1), atol=1e-3), timeout=5)
    assert np.allclose(messages.path_of(result.executed_trajectory)[0], HOME, atol=1e-3)
    assert "PLANNING" in goal.states and "MONITOR" in goal.states


def test_an_obstacle_stops_it(desk):
    goal = desk.move((2.5, 0.0, 0.0), **SLOW)
    desk.moved(0.3)
    desk.publish_obstacles(block_at(2.0))
    status, result = goal.wait()
    assert status == GoalStatus.STATUS_ABORTED
    assert result.error_code.val == CODES.MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE
    assert "test/0" in result.error_code.message and desk.place()[0] < 1.9


def test_a_cancel_stops_it(desk):
    goal = desk.move((2.5, 0.0, 0.0), **SLOW)
    desk.moved(0.3)
    goal.handle.cancel_goal_async()
    status, result = goal.wait()
    assert status == GoalStatus.STATUS_CANCELED and result.error_code.val == CODES.PREEMPTED
    assert desk.place()[0] < 2.0


def test_a_trajectory_is_executed(desk):
    trajectory = desk.planned((0.5, 0.2, 0.0))
    trajectory.header.stamp.sec = 1  # of some clock
    status, result = desk.execute(trajectory, controller_names=["gripper_controller"]).wait()
    assert status == GoalStatus.STATUS_ABORTED and result.error_code.val == CODES.CONTROL_FAILED
    assert "gripper_controller" in result.error_code.message
    status, result = desk.execute(trajectory, controller_names=["joint_trajectory_controller"]).wait()
    assert status == GoalStatus.STATUS_SUCCEEDED and result.error_code.val == CODES.SUCCESS
    desk.wait_until(lambda: np.allclose(desk.place(), (0.5, 0.2, 0.0), atol=1e-3), timeout=5)


def test_a_trajectory_that_cannot_be_is_refused(desk):
    elsewhere, through = desk.planned((0.5, 0.2, 0.0), start=(0.2, 0.0, 0.0)), desk.planned((2.5, 0.0, 0.0))
    few = desk.planned((0.5, 0.2, 0.0))
    few.joint_names = few.joint_names[:2]
    desk.publish_obstacles(block_at(2.0))
    desk.wait_until(lambda: desk.facts["obstacles"] == "1")
    for trajectory, text in ((elsewhere, "'shoulder'"), (through, "test/0"), (few, "wrist")):
        status, result = desk.execute(trajectory).wait()
        assert status == GoalStatus.STATUS_ABORTED and result.error_code.val == CODES.INVALID_MOTION_PLAN
        assert text in result.error_code.message
    assert np.abs(desk.place() - HOME).max() < 1e-3


def test_an_obstacle_stops_a_trajectory(desk):
    goal = desk.execute(desk.planned((2.5, 0.0, 0.0)))
    desk.moved(0.2)
    desk.publish_obstacles(block_at(2.2))
    status, result = goal.wait()
    assert result.error_code.val == CODES.MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE
