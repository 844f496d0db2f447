"""The action ~/move over real DDS: arm_planner, trajectory_player and a client, with obstacles that come meanwhile."""

import itertools
import time

import numpy as np
import pytest
from action_msgs.msg import GoalStatus
from move_harness import Desk
from node_harness import GROUP, ROBOT, joints, marker, request
from rclpy.action import ActionClient
from running_node import LATCHED, shared, starter
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import Marker

from gpu_planners.arm import load_urdf
from gpu_planners.nodes.arm.controller import Controller
from gpu_planners.nodes.arm.executing import Executing
from gpu_planners.nodes.arm.move_run import Run
from gpu_planners.nodes.player.node import FollowAction
from gpu_planners_msgs.action import Move

pytestmark = pytest.mark.timeout(600)

CODES = Move.Result
INVALIDATED = -3
HOME = (0.0, 0.0, 0.0)
SLOW = {"velocity_scaling": 0.3}
BLOCK = {"type": "box", "size": (0.2, 0.2, 0.4)}
CLOSE_S = 0.015  # between joint_states, of which 100 come in a second
RADIUS = 0.8  # from the shoulder's axis to the block, which the fore arm sweeps over


class Here(Desk):
    def restore(self):
        """At home, and nothing in the way."""
        self.publish_obstacles(marker(namespace="", action=Marker.DELETEALL))
        self.wait_until(lambda: not self.node.scene.objects.standing)
        super().restore()
        if np.abs(self.place() - HOME).max() > 1e-3:
            assert self.send(HOME).wait().result.code == CODES.SUCCESS


node_of_module, desk = shared(Here)


def block_at(angle):
    """A marker that blocks the arm stretched out at an angle of the shoulder; in the plate's frame that is turned."""
    turned = angle + np.pi / 2
    return marker(position=(RADIUS * np.cos(turned), RADIUS * np.sin(turned), 0.1), scale=BLOCK["size"])


def coal_scene(tmp_path, angle):
    pytest.importorskip("coal")
    from gpu_planners.verify import CoalScene

    turned = angle + np.pi / 2
    pose = np.eye(4)
    pose[:3, 3] = RADIUS * np.cos(turned), RADIUS * np.sin(turned), 0.1
    obstacles = [{"name": "block", **BLOCK, "pose": pose}]
    return CoalScene(ROBOT, None, obstacles, joints=GROUP, self_pairs=[])


def assert_nowhere_in(scene, desk, since):
    """The robot was in nothing of a CoalScene, as joint_states from a number on show it.

    Between two that came close after each other it went straight to 0.02 mm. A busy machine leaves gaps, whose ends say
    no more about the curve between them.
    """
    rows = desk.seen[since:]
    assert all(not scene.in_collision(q) for _, q in rows)
    for (t_from, q_from), (t_to, q_to) in itertools.pairwise(rows):
        if t_to - t_from < CLOSE_S:
            assert scene.first_collision([q_from, q_to], spacing=0.001) is None


def played(desk, since):
    """(K, dof) joint states from a number on."""
    return np.array([q for _, q in desk.seen[since:]])


def test_it_moves_to_the_goal(desk):
    moving = desk.send((1.0, 0.5, 0.2))
    answer = moving.wait()
    assert answer.status == GoalStatus.STATUS_SUCCEEDED
    assert answer.result.code == CODES.SUCCESS and answer.result.plans == 1 and answer.result.message
    desk.wait_until(lambda: np.allclose(desk.place(), (1.0, 0.5, 0.2), atol=1e-6))
    states = [one.state for one in moving.feedback]
    assert states[0] == "planning" and "moving" in states
    told = [one for one in moving.feedback if one.state == "moving"]
    assert np.all(np.diff([one.progress for one in told]) >= 0)
    assert all(0 <= one.remaining_s for one in told)


def test_an_obstacle_in_the_way_stops_it(desk, tmp_path):
    since = len(desk.seen)
    moving = desk.send((2.5, 0.0, 0.0), **SLOW)
    moving.wait_for("moving", 0.2)
    desk.publish_obstacles(block_at(2.0))
    answer = moving.wait()
    assert answer.status == GoalStatus.STATUS_ABORTED
    assert answer.result.code == INVALIDATED and "test/0" in answer.result.message
    path = played(desk, since)
    assert 0.2 < path[-1][0] < 1.9 and np.abs(path[:, 1:]).max() < 1e-6  # on the planned line
    assert_nowhere_in(coal_scene(tmp_path, 2.0), desk, since)


def test_it_goes_another_way_around(desk, tmp_path):
    since = len(desk.seen)
    moving = desk.send((2.5, 0.0, 0.0), replans=2, **SLOW)
    moving.wait_for("moving", 0.2)
    desk.publish_obstacles(block_at(2.0))
    answer = moving.wait()
    assert answer.result.code == CODES.SUCCESS and answer.result.plans == 2
    assert_nowhere_in(coal_scene(tmp_path, 2.0), desk, since)


def test_an_obstacle_elsewhere_does_not(desk):
    moving = desk.send((1.5, 0.0, 0.0), **SLOW)
    moving.wait_for("moving", 0.2)
    desk.publish_obstacles(block_at(-1.5))
    assert moving.wait().result.code == CODES.SUCCESS


def test_an_obstacle_behind_it_does_not(desk):
    moving = desk.send((2.5, 0.0, 0.0), **SLOW)
    moving.wait_for("moving", 0.6)
    desk.publish_obstacles(block_at(0.3))
    assert moving.wait().result.code == CODES.SUCCESS


def test_a_cancel_stops_it_on_its_path(desk):
    since = len(desk.seen)
    moving = desk.send((2.5, 0.0, 0.0), **SLOW)
    moving.wait_for("moving", 0.3)
    moving.handle.cancel_goal_async()
    answer = moving.wait()
    assert answer.status == GoalStatus.STATUS_CANCELED and answer.result.code == CODES.PREEMPTED
    path = played(desk, since)
    assert 0.5 < path[-1][0] < 2.0 and np.abs(path[:, 1:]).max() < 1e-6


def test_a_stop_event_stops_it_as_a_cancel_does(desk):
    """MoveGroupInterface::stop(), RViz's Stop and pymoveit2 publish it."""
    events = desk.publisher(String, "/trajectory_execution_event")
    since = len(desk.seen)
    moving = desk.send((2.5, 0.0, 0.0), replans=3, **SLOW)
    moving.wait_for("moving", 0.2)
    events.publish(String(data="pause"))  # nothing that is known
    moving.wait_for("moving", 0.3)
    events.publish(String(data="stop"))
    answer = moving.wait()
    assert answer.status == GoalStatus.STATUS_ABORTED and answer.result.code == CODES.PREEMPTED
    assert answer.result.message == "stopped by trajectory_execution_event; the robot has stopped"
    assert answer.result.plans == 1
    end, path = desk.rest(), played(desk, since)
    assert 0.5 < end[0] < 2.0 and np.abs(path[:, 1:]).max() < 1e-6
    assert desk.send((0.5, 0.0, 0.0)).wait().result.code == CODES.SUCCESS  # it goes on serving
    events.publish(String(data="stop"))  # nothing moves
    time.sleep(0.5)  # until it has come
    assert desk.send(HOME).wait().result.code == CODES.SUCCESS


def test_a_stop_event_ends_goals_that_have_not_begun(desk):
    events = desk.publisher(String, "/trajectory_execution_event")
    desk.node.worker.do(time.sleep, 1.0)  # it waits for its turn
    moving = desk.send((2.0, 0.0, 0.0))
    moving.wait_for("planning")
    events.publish(String(data="stop"))
    answer = moving.wait(30)
    assert answer.result.code == CODES.PREEMPTED
    assert answer.result.message == "stopped by trajectory_execution_event before the robot moved"
    assert np.abs(desk.rest() - HOME).max() < 1e-3


def test_a_client_that_goes_leaves_a_motion_that_others_can_stop(desk):
    """ROS 2 does not tell a server that the client of a goal is gone."""
    events = desk.publisher(String, "/trajectory_execution_event")
    for stopped in (False, True):
        client = ActionClient(desk.client_node, Move, "/arm_planner/move")
        assert client.wait_for_server(10)
        sent = client.send_goal_async(Move.Goal(joint_goals=[joints((1.0, 0.0, 0.0))], **SLOW))
        desk.wait_until(lambda future=sent: future.done(), 20)
        desk.wait_until(lambda: desk.place()[0] > 0.1, 20)
        client.destroy()
        if stopped:
            events.publish(String(data="stop"))
        end = desk.rest()
        assert (0.1 < end[0] < 0.9) if stopped else np.allclose(end, (1.0, 0.0, 0.0), atol=1e-3)
        desk.wait_until(lambda: desk.node.executing.state == "idle", 20)
        assert desk.send(HOME).wait().result.code == CODES.SUCCESS


def test_a_motion_that_a_controller_never_ends_is_stopped(desk, monkeypatch):
    """It sends feedback, and no result."""
    monkeypatch.setattr(FollowAction, "tick", lambda *_: None)
    monkeypatch.setattr("gpu_planners.nodes.arm.executing.SILENCE_S", 1.0)
    answer = desk.send((0.5, 0.0, 0.0)).wait(60)
    assert answer.status == GoalStatus.STATUS_ABORTED and answer.result.code == CODES.CONTROL_FAILED
    assert "has not ended a motion of" in answer.result.message and "1.2 times as long" in answer.result.message
    assert np.allclose(desk.rest(), (0.5, 0.0, 0.0), atol=1e-3)
    monkeypatch.undo()
    assert desk.send(HOME).wait().result.code == CODES.SUCCESS
    assert desk.set_parameter("allowed_execution_duration_scaling", 0.0).successful  # whoever waits for a pause
    assert not desk.set_parameter("allowed_execution_duration_scaling", 0.5).successful
    monkeypatch.setattr(FollowAction, "tick", lambda *_: None)
    moving = desk.send((0.5, 0.0, 0.0))
    moving.wait_for("moving", 0.99)
    count = len(moving.feedback)
    desk.wait_until(lambda: len(moving.feedback) > count + 30)  # three seconds
    assert not moving.future.done()
    monkeypatch.undo()
    assert moving.wait(20).result.code == CODES.SUCCESS


def test_another_description_of_the_robot_stops_it(desk):
    moving = desk.send((2.5, 0.0, 0.0), **SLOW)
    moving.wait_for("moving", 0.2)
    robots = desk.publisher(String, "/robot_description", LATCHED)
    robots.publish(String(data=ROBOT))  # the same again, as when its publisher was started again
    moving.wait_for("moving", 0.3)
    robots.publish(String(data=ROBOT.replace('length="0.3"', 'length="0.28"')))
    answer = moving.wait()
    assert answer.result.code == INVALIDATED and "was stopped" in answer.result.message
    assert 0.5 < desk.rest()[0] < 2.3
    robots.publish(String(data=ROBOT))
    desk.wait_until(lambda: desk.status.message == "ready", 60)


def test_a_stop_is_sent_though_the_controller_is_not_seen_for_a_moment(desk, monkeypatch):
    stop, problem, gone = Executing.stop, Controller.problem, []

    def stop_unseen(*arguments):
        gone.append("gone")
        stop(*arguments)
        gone.clear()

    monkeypatch.setattr(Executing, "stop", stop_unseen)
    monkeypatch.setattr(Controller, "problem", property(lambda self: "".join(gone) or problem.fget(self)))
    moving = desk.send((2.5, 0.0, 0.0), **SLOW)
    moving.wait_for("moving", 0.1)
    moving.handle.cancel_goal_async()
    assert moving.wait().result.message == "cancelled; the robot has stopped"
    assert desk.place()[0] < 2.0


def test_where_the_robot_is_seen_fits_the_motion_whatever_robot_is_described_now(desk):
    desk.wait_until(lambda: desk.node.seen(load_urdf(ROBOT, joints=GROUP)) is not None, 10)
    for names in (GROUP[:2], GROUP[::-1]):
        robot = load_urdf(ROBOT, joints=names)
        assert desk.node.seen(robot).q.shape == (len(names),)


def test_the_state_is_told_while_a_motion_ends():
    class Ending(Executing):
        _run = property(lambda self: next(self.runs))

    ending = object.__new__(Ending)
    ending.runs = iter([Run(task=None, replans=0), None])
    assert ending.state == "planning"


def test_a_cancel_while_it_plans(desk):
    desk.node.worker.do(time.sleep, 1.0)  # it waits for its turn
    moving = desk.send((2.0, 0.0, 0.0))
    moving.handle.cancel_goal_async()
    answer = moving.wait()
    assert answer.status == GoalStatus.STATUS_CANCELED and answer.result.code == CODES.PREEMPTED
    assert np.abs(played(desk, -5) - HOME).max() < 1e-3


def test_a_cancel_ends_the_search(desk):
    """The arm stands between two posts and cannot get to the other side: the search would last a minute."""
    desk.publish_obstacles(*(marker(position=(x, 0.0, 0.1), number=k) for k, x in enumerate((0.3, -0.3))))
    desk.wait_until(lambda: len(desk.node.scene.objects.standing) == 2)
    moving = desk.send((3.1, 0.0, 0.0), time_limit_s=60.0)
    moving.wait_for("planning")
    time.sleep(1.0)  # the worker has begun
    began = time.monotonic()
    moving.handle.cancel_goal_async()
    assert moving.wait().status == GoalStatus.STATUS_CANCELED
    assert desk.plan(request(goals=((0.2, 0.0, 0.0),))).code == CODES.SUCCESS
    assert time.monotonic() - began < 10.0


def test_a_second_goal_is_refused_where_the_parameter_says_so(desk):
    assert desk.set_parameter("goals_while_moving", "none").successful
    moving = desk.send((1.5, 0.0, 0.0), **SLOW)
    moving.wait_for("moving")
    answer = desk.send((-1.0, 0.0, 0.0)).wait()
    assert answer.result.code == CODES.CONTROL_FAILED and "another motion" in answer.result.message
    assert moving.wait().result.code == CODES.SUCCESS
    assert desk.set_parameter("goals_while_moving", "move").successful


def test_a_goal_in_collision_is_refused(desk):
    desk.publish_obstacles(block_at(1.0))
    desk.wait_until(lambda: desk.facts["obstacles"] == "1")
    answer = desk.send((1.0, 0.0, 0.0)).wait()
    assert answer.status == GoalStatus.STATUS_ABORTED and answer.result.code == -12


def test_a_plan_alone_moves_nothing(desk):
    since = len(desk.seen)
    assert desk.plan(request()).code == CODES.SUCCESS
    desk.wait_until(lambda: len(desk.seen) > since + 30)
    assert np.abs(played(desk, since) - HOME).max() < 1e-6


def test_joint_states_that_are_none_end_nothing(desk):
    moving = desk.send((1.5, 0.0, 0.0), **SLOW)
    moving.wait_for("moving", 0.2)
    states = desk.publisher(JointState, "/joint_states")
    for _ in range(20):
        states.publish(JointState(name=GROUP, position=[np.nan, 0.0, 0.0]))
        states.publish(JointState(name=GROUP, position=[0.0]))
        time.sleep(0.01)
    assert moving.wait().result.code == CODES.SUCCESS
    assert np.allclose(desk.place(), (1.5, 0.0, 0.0), atol=1e-3)


start_desk = starter(Here)


def test_a_controller_that_ends_or_hangs_is_given_up(start_desk):
    desk = start_desk()
    moving = desk.send((1.5, 0.0, 0.0), **SLOW)
    moving.wait_for("moving", 0.2)
    desk.player.finish()
    answer = moving.wait(10)
    assert answer.result.code == CODES.CONTROL_FAILED and "the node is ending" in answer.result.message
    assert 0.2 < desk.rest()[0] < 1.2  # it has braked
    moving = desk.send((2.5, 0.0, 0.0), velocity_scaling=0.03)
    moving.wait_for("moving", 0.01)
    desk._player_executor.shutdown(timeout_sec=5)  # as a process that is stopped, or killed: its DDS endpoints stay
    answer = moving.wait(60)
    assert answer.result.code == CODES.CONTROL_FAILED and "said nothing for 5 s, and the robot" in answer.result.message
    assert moving.feedback[-1].remaining_s > 10  # long before the motion should have ended
    again = desk.send((0.0, 0.0, 0.0)).wait(60)  # it is not held up by the one before
    assert "joint_states" in again.result.message  # nothing tells where the robot is


@pytest.mark.parametrize("begun", [True, False])
def test_the_end_of_the_node_stops_the_robot(start_desk, begun):
    """As on SIGINT and SIGTERM: nobody would watch over the rest of the motion."""
    desk = start_desk()
    if not begun:
        desk.node.worker.do(time.sleep, 1.0)  # it waits for its turn
    moving = desk.send((2.5, 0.0, 0.0), **SLOW)
    moving.wait_for("moving" if begun else "planning", 0.2 * begun)
    desk.node.finish(5.0)
    answer = moving.wait(10)
    assert answer.status == GoalStatus.STATUS_ABORTED and answer.result.code == -30
    ending = "the robot has stopped" if begun else "before the robot moved"
    assert "the node is ending" in answer.result.message and ending in answer.result.message
    end = desk.rest()
    assert (0.4 < end[0] < 1.8) if begun else np.abs(end - HOME).max() < 1e-3
    again = desk.send(HOME).wait(10)
    assert again.result.code == -30 and "the node is ending" in again.result.message


@pytest.mark.parametrize("how", ["event", "end of the node"])
def test_a_motion_that_was_only_published_is_stopped(start_desk, how):
    """A controller that listens on the topic executes it; the node does not."""
    desk = start_desk(publish_trajectories=True)
    events = desk.publisher(String, "/trajectory_execution_event")
    controller = desk.client_node.create_publisher(JointTrajectory, "/joint_trajectory_controller/joint_trajectory", 10)
    desk.wait_until(controller.get_subscription_count)
    desk.client_node.create_subscription(JointTrajectory, "/arm_planner/joint_trajectory", controller.publish, 10)
    desk.wait_until(lambda: desk.node.trajectories._publisher.get_subscription_count())
    since = len(desk.seen)
    assert desk.plan(request(start=None, goals=((2.5, 0.0, 0.0),), velocity_scaling=0.3)).code == CODES.SUCCESS
    desk.wait_until(lambda: desk.place()[0] > 0.3, 30)
    if how == "event":
        events.publish(String(data="stop"))
    else:
        desk.node.finish(5.0)
    end, path = desk.rest(), played(desk, since)
    assert 0.3 < end[0] < 2.0 and np.abs(path[:, 1:]).max() < 1e-6
    events.publish(String(data="stop"))  # nothing more is published
    assert np.allclose(desk.rest(), end)


def test_a_published_stop_that_comes_too_late_is_followed_by_another(start_desk):
    """The first one reaches the controller when it is over, and is refused."""
    desk = start_desk(publish_trajectories=True)
    events = desk.publisher(String, "/trajectory_execution_event")
    controller = desk.client_node.create_publisher(JointTrajectory, "/joint_trajectory_controller/joint_trajectory", 10)
    desk.wait_until(controller.get_subscription_count)
    came = []

    def relay(message):
        came.append(message)
        if len(came) == 2:
            time.sleep(0.5)
        controller.publish(message)

    desk.client_node.create_subscription(JointTrajectory, "/arm_planner/joint_trajectory", relay, 10)
    desk.wait_until(lambda: desk.node.trajectories._publisher.get_subscription_count())
    assert desk.plan(request(start=None, goals=((2.8, 0.0, 0.0),), velocity_scaling=0.2)).code == CODES.SUCCESS
    desk.wait_until(lambda: desk.place()[0] > 0.2, 30)
    events.publish(String(data="stop"))
    assert 0.2 < desk.rest()[0] < 2.5 and len(came) > 2
