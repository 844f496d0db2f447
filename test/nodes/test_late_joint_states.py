"""Where the robot is on its motion, when a busy machine brings joint_states late."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from sensor_msgs.msg import JointState

from gpu_planners.arm.control.spline import Spline
from gpu_planners.nodes.arm.joint_states import JointStates
from gpu_planners.nodes.arm.move_run import MotionUnderWay
from gpu_planners.nodes.common.ros import time_message

BEGAN = 100.0  # seconds on the node's clock


def even_motion():
    """A joint that moves from 0 to 10 rad in 10 s: where it is says how many seconds have passed."""
    ends = np.array([[0.0], [10.0]])
    curve = Spline([0.0, 10.0], ends, np.ones((2, 1)), np.zeros((2, 1)))
    motion = MotionUnderWay(curve, None, None, 0.0)
    motion.began = BEGAN
    return motion


def phases(arrivals, clock=0.0):
    """(N, 2) of [(stamp, come)]: seconds on the motion that are told, and that are true, 0.3 s after each has come.

    clock: seconds by which stamps are of another clock
    """
    states, motion, found = JointStates(), even_motion(), []
    for stamp, came in arrivals:
        q = np.clip(stamp - BEGAN, 0.0, 10.0)
        message = JointState(name=["turn"], position=[q])
        message.header.stamp = time_message(stamp + clock)
        states.take(message, came)
        for now in (came, came + 0.3):
            found.append((motion.advance(states.seen("turn", np.array([q])), now), now - BEGAN))
    return np.array(found)


def test_a_gap_and_messages_that_come_late_shift_nothing():
    usual = [(BEGAN - 0.5 + 0.1 * k, BEGAN - 0.5 + 0.1 * k + 0.01) for k in range(12)]
    late = [(101.0, 101.7), (101.1, 101.71), (101.8, 101.81), (103.5, 104.2), (104.3, 104.31)]
    told, true = phases(usual + late).T
    assert np.abs(told - np.clip(true, 0.0, 10.0))[true > 0.4].max() < 1e-5  # of nearest_time


def test_stamps_of_another_clock_count_when_they_come():
    told, true = phases([(BEGAN + 0.1 * k, BEGAN + 0.1 * k + 0.01) for k in range(1, 40)], clock=-50.0).T
    assert (np.abs(told - true) < 0.02).all()  # by as much as they come late


@pytest.mark.parametrize("clock", [0.0, 1e6])
def test_whether_stamps_are_of_the_clock_is_told(clock):
    states = JointStates()
    message = JointState(name=["turn"], position=[0.0])
    message.header.stamp = time_message(100.0 + clock)
    states.take(message, 100.1)
    seen = states.seen("turn", np.zeros(1))
    assert seen.stamped == (clock == 0.0) and seen.at == pytest.approx(100.0 if seen.stamped else 100.1)
