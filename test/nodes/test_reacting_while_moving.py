"""New goals, and obstacles ahead, while the robot moves: over real DDS, by what joint_states show."""

import time

import numpy as np
import pytest
from action_msgs.msg import GoalStatus
from running_node import shared
from test_move_node import CODES, HOME, Here, block_at, coal_scene, played

from gpu_planners.nodes.player.node import TrajectoryPlayer

pytestmark = pytest.mark.timeout(600)

VELOCITY, ACCELERATION = np.array([2.0, 2.0, 3.0]), np.array([4.0, 4.0, 6.0])  # of the robot
SHARE = 0.3  # of the velocity, that most goals here ask for
SLOW = {"velocity_scaling": SHARE}
RATE = 100.0  # of joint_states
LEAD = 2.0  # longer than a plan takes on a busy machine


class Reacting(Here):
    def __init__(self):
        super().__init__(switch_lead_s=LEAD)

    def restore(self):
        super().restore()
        assert self.set_parameter("goals_while_moving", "move").successful
        assert self.set_parameter("switch_lead_s", LEAD).successful


node_of_module, desk = shared(Reacting)


def speeds(desk, since):
    """(K, dof) velocities, and (K - 1, dof) accelerations, from joint_states, by numpy."""
    seen = desk.seen[since:]
    times, q = np.array([t for t, _ in seen]), np.array([q for _, q in seen])
    keep = np.r_[True, np.diff(times) > 0.2 / RATE]
    times, q = times[keep], q[keep]
    v = np.diff(q, axis=0) / np.diff(times)[:, None]
    return v, np.diff(v, axis=0) / ((times[2:] - times[:-2]) / 2)[:, None]


def assert_within_speeds(desk, since, share=SHARE):
    v, _ = speeds(desk, since)
    assert (np.abs(v) <= 1.02 * share * VELOCITY + 1e-3).all(), np.abs(v).max(axis=0)


def assert_smooth(desk, since, share=SHARE):
    """No jump: velocities and accelerations as the joints can do them. What a stop at once is like depends on how soon
    a busy machine brings it to the controller."""
    assert_within_speeds(desk, since, share)
    _, a = speeds(desk, since)
    assert (np.abs(a) <= 1.1 * ACCELERATION + 0.05).all(), np.abs(a).max(axis=0)


def rested(desk, since):
    """Seconds that the robot stood still between its first and its last movement."""
    v, _ = speeds(desk, since)
    moves = np.abs(v).max(axis=1) > 1e-3
    first, last = np.flatnonzero(moves)[[0, -1]]
    return np.count_nonzero(~moves[first:last]) / RATE


def test_another_goal_takes_the_place_of_the_one_under_way_without_a_stop(desk):
    since = len(desk.seen)
    first = desk.send((2.5, 0.0, 0.0), **SLOW)
    first.wait_for("moving", 0.2)
    second = desk.send((1.5, 1.5, 0.5), **SLOW)
    answer = first.wait(20)
    assert answer.status == GoalStatus.STATUS_ABORTED and answer.result.code == CODES.PREEMPTED
    assert answer.result.message == "another goal took its place"
    answer = second.wait()
    assert answer.result.code == CODES.SUCCESS and answer.result.plans == 1
    assert np.allclose(desk.rest(), (1.5, 1.5, 0.5), atol=1e-3)
    assert "stopping" not in [one.state for one in second.feedback]
    assert rested(desk, since) == 0.0
    assert_smooth(desk, since)


def test_it_turns_back_to_a_goal_behind_it(desk):
    since = len(desk.seen)
    desk.send((2.5, 0.0, 0.0), **SLOW).wait_for("moving", 0.3)
    back = desk.send(HOME, **SLOW)
    assert back.wait().result.code == CODES.SUCCESS
    assert np.allclose(desk.rest(), HOME, atol=1e-3)
    assert 0.5 < played(desk, since)[:, 0].max() < 2.4
    if "stopping" not in [one.state for one in back.feedback]:  # a busy machine may have planned too late
        assert_smooth(desk, since)


def test_an_obstacle_ahead_is_gone_around_without_a_stop(desk, tmp_path):
    since = len(desk.seen)
    moving = desk.send((2.5, 0.0, 0.0), replans=1, **SLOW)
    moving.wait_for("moving", 0.1)
    desk.publish_obstacles(block_at(2.2))
    answer = moving.wait()
    assert answer.result.code == CODES.SUCCESS and answer.result.plans == 2
    assert "stopping" not in [one.state for one in moving.feedback]
    assert rested(desk, since) == 0.0
    assert_smooth(desk, since)
    assert coal_scene(tmp_path, 2.2).first_collision(played(desk, since), spacing=0.001) is None


def test_an_obstacle_too_near_for_that_has_it_stop_first(desk, tmp_path):
    assert desk.set_parameter("switch_lead_s", 5.0).successful
    since = len(desk.seen)
    moving = desk.send((2.5, 0.0, 0.0), replans=1, **SLOW)
    moving.wait_for("moving", 0.2)
    desk.publish_obstacles(block_at(2.0))
    answer = moving.wait()
    assert answer.result.code == CODES.SUCCESS and answer.result.plans == 2
    assert "stopping" in [one.state for one in moving.feedback]
    assert_within_speeds(desk, since)
    assert coal_scene(tmp_path, 2.0).first_collision(played(desk, since), spacing=0.001) is None


def test_an_obstacle_before_the_stop_of_a_motion_that_is_to_be_left_stops_it(desk, tmp_path):
    """What would be met counts while the next motion is planned, too."""
    assert desk.set_parameter("switch_lead_s", 3.0).successful
    since = len(desk.seen)
    desk.send((2.5, 0.0, 0.0), **SLOW).wait_for("moving", 0.05)
    desk.node.worker.do(time.sleep, 0.5)  # the plan waits
    second = desk.send((2.6, 1.0, 0.0), replans=0, **SLOW)
    desk.publish_obstacles(block_at(1.8))
    assert second.wait().result.code == CODES.SUCCESS  # around it, once it has stopped
    assert "stopping" in [one.state for one in second.feedback]
    assert np.allclose(desk.rest(), (2.6, 1.0, 0.0), atol=1e-3)
    assert_within_speeds(desk, since)
    assert coal_scene(tmp_path, 1.8).first_collision(played(desk, since), spacing=0.001) is None


def test_a_goal_that_cannot_be_reached_stops_the_robot(desk):
    desk.publish_obstacles(block_at(-1.5))
    since = len(desk.seen)
    first = desk.send((2.5, 0.0, 0.0), **SLOW)
    first.wait_for("moving", 0.2)
    answer = desk.send((-1.5, 0.0, 0.0), **SLOW).wait()
    assert answer.status == GoalStatus.STATUS_ABORTED and answer.result.code == -12
    assert "test/0" in answer.result.message and "the robot has stopped" in answer.result.message
    assert answer.result.plans == 0 and first.wait().result.code == CODES.PREEMPTED
    end, path = desk.rest(), played(desk, since)
    assert 0.5 < end[0] < 2.4 and np.abs(path[:, 1:]).max() < 1e-6  # on the first one's path
    assert_within_speeds(desk, since)


def test_a_plan_that_comes_too_late_finds_the_robot_braking(desk):
    assert desk.set_parameter("switch_lead_s", 0.2).successful
    since = len(desk.seen)
    desk.send((2.5, 0.0, 0.0), **SLOW).wait_for("moving", 0.2)
    desk.node.worker.do(time.sleep, 0.8)  # it waits for its turn
    second = desk.send((1.0, 1.0, 0.0), **SLOW)
    assert second.wait().result.code == CODES.SUCCESS
    assert "stopping" in [one.state for one in second.feedback]
    assert np.allclose(desk.rest(), (1.0, 1.0, 0.0), atol=1e-3)
    assert_within_speeds(desk, since)


def test_a_cancel_while_the_next_motion_is_planned_stops_it(desk):
    since = len(desk.seen)
    desk.send((2.5, 0.0, 0.0), **SLOW).wait_for("moving", 0.2)
    desk.node.worker.do(time.sleep, 0.5)
    second = desk.send((1.0, 1.0, 0.0), **SLOW)
    second.handle.cancel_goal_async()
    answer = second.wait()
    assert answer.status == GoalStatus.STATUS_CANCELED and answer.result.code == CODES.PREEMPTED
    assert answer.result.message == "cancelled; the robot has stopped"
    end, path = desk.rest(), played(desk, since)
    assert 0.5 < end[0] < 2.4 and np.abs(path[:, 1:]).max() < 1e-6
    assert_within_speeds(desk, since)


def test_a_goal_that_comes_while_the_robot_stops_waits_for_that(desk):
    since = len(desk.seen)
    first = desk.send((2.5, 0.0, 0.0))
    first.wait_for("moving", 0.3)
    first.handle.cancel_goal_async()
    first.wait_for("stopping")
    second = desk.send((0.5, 0.5, 0.0))
    assert first.wait().status == GoalStatus.STATUS_CANCELED
    assert second.wait().result.code == CODES.SUCCESS
    assert np.allclose(desk.rest(), (0.5, 0.5, 0.0), atol=1e-3)
    assert_within_speeds(desk, since, 1.0)


def test_goals_that_come_fast_are_answered_each_and_the_last_is_reached(desk):
    assert desk.set_parameter("switch_lead_s", 0.0).successful  # by what plans take
    goals = []
    for k in range(8):
        goals.append(desk.send((1.5 * np.cos(k), 1.5 * np.sin(k), 0.3 * k % 1.0)))
        time.sleep(0.15 * (k % 4))
    for goal in goals[:-1]:
        assert goal.wait().result.code == CODES.PREEMPTED
    assert goals[-1].wait().result.code == CODES.SUCCESS
    assert np.allclose(desk.rest(), (1.5 * np.cos(7), 1.5 * np.sin(7), 2.1 % 1.0), atol=1e-3)
    assert desk.node.executing.state == "idle"


def test_a_controller_that_takes_no_second_motion_ends_the_first(desk, monkeypatch):
    since = len(desk.seen)
    desk.send((2.5, 0.0, 0.0), **SLOW).wait_for("moving", 0.2)
    monkeypatch.setattr(TrajectoryPlayer, "why_not", lambda *_: "one at a time")
    answer = desk.send((1.0, 1.0, 0.0), **SLOW).wait()
    assert answer.result.code == CODES.CONTROL_FAILED and "refused the motion" in answer.result.message
    end, path = desk.rest(), played(desk, since)
    assert 0.5 < end[0] < 2.4 and np.abs(path[:, 1:]).max() < 1e-6
    monkeypatch.undo()
    assert desk.send(HOME).wait().result.code == CODES.SUCCESS


def test_states_of_another_clock_are_joined_within_a_moment(desk, monkeypatch):
    """Then the controller begins at once: it cannot be told when."""
    monkeypatch.setattr("gpu_planners.nodes.arm.joint_states.SAME_CLOCK_S", -1.0)
    since = len(desk.seen)
    desk.send((2.5, 0.0, 0.0), **SLOW).wait_for("moving", 0.2)
    second = desk.send((1.5, 1.5, 0.5), **SLOW)
    assert second.wait().result.code == CODES.SUCCESS
    assert np.allclose(desk.rest(), (1.5, 1.5, 0.5), atol=1e-3)
    assert rested(desk, since) == 0.0
    v, _ = speeds(desk, since)
    assert (np.abs(v) <= VELOCITY).all()
