"""MoveGroup and ExecuteTrajectory executed by the player over real DDS, watched and stopped as ~/move is."""

import pytest

pytest.importorskip("moveit_msgs.action", reason="the ROS package moveit_msgs is not installed")

import time

import moveit_messages as messages
import numpy as np
from action_msgs.msg import GoalStatus
from moveit_msgs.action import ExecuteTrajectory, MoveGroup
from moveit_msgs.msg import MoveItErrorCodes, RobotTrajectory
from rclpy.action import ActionClient
from running_node import shared
from std_msgs.msg import String
from test_move_node import HOME, Here, block_at
from test_trajectory_player import trajectory as given

from gpu_planners.nodes.player.node import FollowAction

CODES = MoveItErrorCodes
pytestmark = pytest.mark.timeout(600)


class Goal:
    """A goal that was accepted."""

    def __init__(self, desk, kind, name, goal):
        if name not in desk.clients:
            desk.clients[name] = ActionClient(desk.client_node, kind, name)
            assert desk.clients[name].wait_for_server(20)
        self.desk, self.states = desk, []
        future = desk.clients[name].send_goal_async(goal, lambda message: self._hear(message.feedback))
        desk.wait_until(future.done, 20)
        self.handle = future.result()
        self.future = self.handle.get_result_async()

    def _hear(self, feedback):
        self.states.append(getattr(feedback, "state", feedback))

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


@pytest.mark.parametrize("action", ["move", "execute"])
def test_a_stop_event_stops_it(desk, action):
    """As MoveGroupInterface::stop() and RViz's Stop button publish it."""
    events = desk.publisher(String, "/trajectory_execution_event")
    goal = desk.move((2.5, 0.0, 0.0), **SLOW) if action == "move" else desk.execute(desk.planned((2.5, 0.0, 0.0)))
    desk.moved(0.2)
    events.publish(String(data="stop"))
    status, result = goal.wait()
    assert status == GoalStatus.STATUS_ABORTED and result.error_code.val == CODES.PREEMPTED
    assert result.error_code.message == "stopped by trajectory_execution_event; the robot has stopped"
    assert 0.2 < desk.rest()[0] < 2.4


def test_a_stop_event_leaves_goals_that_only_plan(desk):
    events = desk.publisher(String, "/trajectory_execution_event")
    desk.node.worker.do(time.sleep, 1.0)  # both goals wait
    moves, plans = desk.move((1.0, 0.0, 0.0)), desk.move((1.0, 0.0, 0.0), start=HOME, plan_only=True)
    events.publish(String(data="stop"))
    status, result = moves.wait()
    assert status == GoalStatus.STATUS_ABORTED and result.error_code.val == CODES.PREEMPTED
    assert plans.wait()[1].error_code.val == CODES.SUCCESS
    assert np.abs(desk.rest() - HOME).max() < 1e-3


def timed(q, times, velocities=None, accelerations=None):
    """A trajectory to (T, 3) positions; each of them may have velocities, and accelerations."""
    message = given(q, times, velocities)
    for point, a in zip(message.points, accelerations or []):
        point.accelerations = [float(value) for value in a]
    return message


STILL, REST = [0.0, 0.0, 0.0], [[0.0, 0.0, 0.0]] * 2
# what joints of 2, 2, 3 rad/s and 4, 4, 6 rad/s^2, of which the elbow turns by 2.5 rad, cannot do, and what is said
BEYOND = {
    "a jump": (
        timed([STILL, [0.2, 0.0, 0.0]], [0.0, 0.02], REST, REST),
        ("'shoulder'", "velocity", "18.75", "2 rad/s"),
    ),
    "lines": (timed([STILL, [0.2, 0.0, 0.0]], [0.0, 0.02]), ("'shoulder'", "a velocity of 10 rad/s")),
    "a start at once": (
        timed([STILL, [0.0, 0.0, 1.0], [0.0, 0.0, 1.1]], [0.0, 0.5, 5.0]),
        ("'wrist'", "an acceleration of 8 rad/s^2 at 0 s", "6 rad/s^2"),
    ),
    "cubics": (
        timed([STILL, [0.0, 0.5, 0.0]], [0.0, 0.6], REST),
        ("'elbow'", "an acceleration of 8.333 rad/s^2", "4 rad/s^2"),
    ),
    "between points at rest": (
        timed([STILL, STILL], [0.0, 2.0], REST, [[0.0, 0.0, 0.0], [0.0, 3.9, 0.0]]),
        (),  # within the limits: it is refused for nothing
    ),
    "a bend between points": (
        timed(
            [STILL, [0.5, 0.0, 0.0], [1.0, 0.0, 0.0]], [0.0, 1.0, 2.0], [*REST, STILL], [STILL, [12.0, 0.0, 0.0], STILL]
        ),
        ("'shoulder'", "12 rad/s^2 at 1 s"),
    ),
    "beyond a joint's end": (timed([STILL, [0.0, 2.6, 0.0]], [0.0, 9.0], REST, REST), ("'elbow'", "to 2.6 rad", "2.5")),
    "beyond it between points": (
        timed([STILL, [0.0, 2.4, 0.0], [0.0, 2.3, 0.0]], [0.0, 5.0, 7.0], [STILL, [0.0, 0.9, 0.0], STILL]),
        ("'elbow'", "rad; its limits are -2.5 and 2.5"),
    ),
}


@pytest.mark.parametrize("what", BEYOND)
def test_a_trajectory_that_no_joint_can_do_is_refused(desk, what):
    trajectory, texts = BEYOND[what]
    since = len(desk.seen)
    status, result = desk.execute(trajectory).wait()
    if not texts:
        assert status == GoalStatus.STATUS_SUCCEEDED, result.error_code.message
        return
    assert status == GoalStatus.STATUS_ABORTED and result.error_code.val == CODES.INVALID_MOTION_PLAN
    assert all(text in result.error_code.message for text in texts), result.error_code.message
    desk.rest()
    assert np.ptp(np.array([q for _, q in desk.seen[since:]]), axis=0).max() < 1e-6  # nothing was sent


def test_the_limits_that_count_are_a_parameters_times_the_joints(desk):
    slightly = timed([STILL, [0.5, 0.0, 0.0]], [0.0, 0.8], REST, REST)  # 5 % above the acceleration
    assert "acceleration" in desk.execute(slightly).wait()[1].error_code.message
    assert desk.set_parameter("execution_limit_tolerance", 0.2).successful
    assert desk.execute(slightly).wait()[0] == GoalStatus.STATUS_SUCCEEDED


def test_an_execution_that_never_ends_is_stopped(desk, monkeypatch):
    trajectory = desk.planned((0.5, 0.2, 0.0))
    monkeypatch.setattr(FollowAction, "tick", lambda *_: None)
    monkeypatch.setattr("gpu_planners.nodes.arm.executing.SILENCE_S", 1.0)
    status, result = desk.execute(trajectory).wait()
    assert status == GoalStatus.STATUS_ABORTED and result.error_code.val == CODES.CONTROL_FAILED
    assert "allowed_execution_duration_scaling" in result.error_code.message
    desk.rest()


def test_goals_take_the_place_of_the_motion_under_way_where_the_parameter_says_so(desk):
    first = desk.move((2.5, 0.0, 0.0), **SLOW)
    desk.moved(0.3)
    status, result = desk.move((1.0, 1.0, 0.0), **SLOW).wait()  # by default those of ~/move alone
    assert status == GoalStatus.STATUS_ABORTED and result.error_code.val == CODES.CONTROL_FAILED
    assert desk.set_parameter("goals_while_moving", "all").successful
    second = desk.move((1.0, 1.0, 0.0), **SLOW)
    status, result = first.wait()
    assert status == GoalStatus.STATUS_ABORTED and result.error_code.val == CODES.PREEMPTED
    assert result.error_code.message == "another goal took its place"
    assert second.wait()[1].error_code.val == CODES.SUCCESS
    assert np.allclose(desk.rest(), (1.0, 1.0, 0.0), atol=1e-3)
    third = desk.move((2.0, 1.0, 0.0), **SLOW)
    desk.moved(1.2)
    last = desk.move((0.5, 0.5, 0.0), planner_id="PTP", **SLOW)  # from rest, since it keeps to a line
    assert third.wait()[1].error_code.val == CODES.PREEMPTED
    assert last.wait()[1].error_code.val == CODES.SUCCESS
    assert np.allclose(desk.rest(), (0.5, 0.5, 0.0), atol=1e-3)
    assert desk.set_parameter("goals_while_moving", "move").successful
