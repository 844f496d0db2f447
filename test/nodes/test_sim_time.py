"""use_sim_time: a /clock that the test drives. Ages and motions follow it; how long planning may take does not."""

import threading
import time

import numpy as np
import pytest
from node_harness import GROUP, RunningNode, joints, marker, request
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock
from running_node import starter
from sensor_msgs.msg import JointState

from gpu_planners.nodes.arm import codes
from gpu_planners_msgs.srv import PlanMotion

pytestmark = pytest.mark.timeout(600)
CLOCK = QoSProfile(depth=10)
RATE = 0.25  # seconds of the clock in a second


def clock_of(seconds):
    message = Clock()
    message.clock.sec, message.clock.nanosec = int(seconds), int(seconds % 1 * 1e9)
    return message


class SimNode(RunningNode):
    def __init__(self, **parameters):
        super().__init__(use_sim_time=True, **parameters)

    def set_clock(self, seconds):
        self.publisher(Clock, "/clock", CLOCK).publish(clock_of(seconds))
        self.wait_until(lambda: abs(self.node.get_clock().now().nanoseconds * 1e-9 - seconds) < 1e-6)

    def see(self, *q):
        self.publisher(JointState, "/joint_states").publish(joints(q, GROUP))

    def planned(self):
        """The code of a request from where joint_states has the robot."""
        return self.plan(request(start=None, time_limit_s=2.0)).code


start_node = starter(SimNode)


def test_joint_states_grow_old_by_the_clock(start_node):
    running = start_node(joint_state_timeout_s=0.5)
    running.set_clock(100.0)
    assert running.planned() == codes.ROBOT_STATE_STALE
    running.see(0.0, 0.0, 0.0)
    running.wait_until(lambda: running.planned() == codes.SUCCESS)
    time.sleep(1.0)  # the simulation is paused
    assert running.planned() == codes.SUCCESS
    running.set_clock(101.0)
    assert running.planned() == codes.ROBOT_STATE_STALE
    running.see(0.0, 0.0, 0.0)
    running.wait_until(lambda: running.planned() == codes.SUCCESS)
    running.set_clock(5.0)  # it begins anew
    assert running.planned() == codes.ROBOT_STATE_STALE
    running.see(0.0, 0.0, 0.0)
    running.wait_until(lambda: running.planned() == codes.SUCCESS)
    assert running.plan(request(time_limit_s=2.0)).code == codes.SUCCESS  # though the clock stands


def test_what_is_left_of_lives_stays_when_the_clock_begins_anew(start_node):
    running = start_node()
    running.set_clock(100.0)
    assert running.plan(request(time_limit_s=2.0)).code == codes.SUCCESS
    obstacle = marker()
    obstacle.lifetime.sec = 5
    running.publish_obstacles(obstacle, marker(number=1))
    running.wait_until(lambda: running.facts["obstacles"] == "2")
    for seconds, there in ((3.0, "2"), (7.5, "2"), (8.5, "1")):
        running.set_clock(seconds)
        assert running.plan(request(time_limit_s=2.0)).code == codes.SUCCESS
        running.wait_until(lambda there=there: running.facts["obstacles"] == there, 10)


@pytest.fixture
def slow_desk():
    from move_harness import Desk

    class SlowDesk(Desk):
        def publish_robot(self, text):
            if not hasattr(self, "stopped"):
                self.stopped = threading.Event()
                threading.Thread(target=self.tick, args=(self.publisher(Clock, "/clock", CLOCK),)).start()
            super().publish_robot(text)

        def tick(self, publisher):
            began, self.first = time.monotonic(), 1000.0
            while not self.stopped.wait(0.005):
                publisher.publish(clock_of(self.first + RATE * (time.monotonic() - began)))

    desk = SlowDesk(use_sim_time=True)
    yield desk
    desk.stopped.set()
    desk.close()


def test_motions_follow_a_slow_clock(slow_desk):
    began = time.monotonic()
    trajectory = slow_desk.plan(PlanMotion.Request(joint_goals=[joints((0.6, 0.0, 0.0))])).trajectory
    moving = slow_desk.send((0.6, 0.0, 0.0))
    assert moving.wait().result.code == codes.SUCCESS
    slow_desk.wait_until(lambda: np.allclose(slow_desk.place(), (0.6, 0.0, 0.0), atol=1e-3))
    last = trajectory.points[-1].time_from_start
    assert time.monotonic() - began >= (last.sec + 1e-9 * last.nanosec) / RATE
    moving = slow_desk.send((2.5, 0.0, 0.0), velocity_scaling=0.5)
    moving.wait_for("moving", 0.2)
    moving.handle.cancel_goal_async()
    assert moving.wait().result.code == codes.PREEMPTED
    assert 0.6 < slow_desk.place()[0] < 2.4
    stamps = [stamp for stamp, _ in slow_desk.seen]
    assert all(999.0 < stamp < 2000.0 for stamp in stamps)


def test_a_motion_ends_when_the_clock_begins_anew(slow_desk):
    moving = slow_desk.send((2.5, 0.0, 0.0))
    moving.wait_for("moving", 0.05)
    slow_desk.first = 10.0
    result = moving.wait(30).result
    assert result.code == codes.CONTROL_FAILED and "the clock jumped back by 99" in result.message
    slow_desk.wait_until(lambda: slow_desk.seen[-1][0] < 1000.0)
    assert slow_desk.send((0.0, 0.0, 0.0)).wait().result.code == codes.SUCCESS  # it goes on serving
