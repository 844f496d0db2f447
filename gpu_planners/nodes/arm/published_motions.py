"""Motions that are published for whichever controller listens; only a stop follows them, in their place.

Nobody answers what is published, and controllers refuse a trajectory that comes too late to be followed. So where the
robot is seen to go on, the stop is published again, to begin later.
"""

import threading
from typing import NamedTuple

import numpy as np
from trajectory_msgs.msg import JointTrajectory

from ...arm import RobotModel
from ...arm.control.spline import Spline
from ..common.ros import seconds, steady_clock
from .arm_services import ArmServices
from .conversions import trajectory_of
from .move_run import LEAD_S, MotionUnderWay

NEAR = 0.05  # rad or m from a motion's way within which the robot is taken to execute it
PAST = 0.01  # rad or m from where a stop ends, beyond which the robot has not taken it
LATE_S = 1.0  # that a controller may begin after a motion was published
LOOK_S = 0.05  # between two looks at whether the robot stops
MOST_LEAD_S = 2.0  # between a stop and its begin
CLOSE_S = 5.0  # for the robot to stop, where `close` may wait for it


class _Stop(NamedTuple):
    """A stop that was published. ends: seconds on the node's clock; phase: on the motion's curve, q: (dof,), where it
    ends; lead: seconds before it began"""

    motion: MotionUnderWay
    ends: float
    phase: float
    q: np.ndarray
    lead: float


class PublishedMotions:
    """The topic ~/joint_trajectory. Methods may be called on any thread."""

    def __init__(self, arm: ArmServices) -> None:
        self._arm = arm
        self._publisher = arm.node.create_publisher(JointTrajectory, "~/joint_trajectory", 10)
        self._last: tuple[JointTrajectory, RobotModel, float] | None = None
        self._stop: _Stop | None = None  # that the robot has not been seen to take
        self._rests = threading.Event()
        self._rests.set()
        self._timer = arm.node.create_timer(LOOK_S, self._look, clock=steady_clock())
        self._timer.cancel()

    def publish(self, message: JointTrajectory, robot: RobotModel) -> None:
        """Publish a motion of a robot, which begins where it is."""
        self._last, self._stop = (message, robot, self._arm.now()), None
        self._publisher.publish(message)

    def stop(self) -> None:
        """Publish a stop along the last motion, if the robot seems to execute it."""
        last, self._last = self._last, None
        if last is None:
            return
        message, robot, began = last
        motion = MotionUnderWay(Spline.of(trajectory_of(message)), robot, (None, None), 0.0, began)
        if self._publish_stop(motion, LEAD_S):
            self._arm.node.get_logger().warning("stopping the motion that was published on ~/joint_trajectory")

    def close(self, patience_s: float = -1.0) -> None:
        """Stop, and wait until the robot is seen to, or for patience_s seconds (negative: CLOSE_S). From any thread but
        the executor's, which must spin."""
        self.stop()
        self._rests.wait(CLOSE_S if patience_s < 0 else patience_s)

    def _publish_stop(self, motion, lead):
        """-> was a stop published? Not where the robot is not seen to execute the motion."""
        seen, now = self._arm.seen(motion.robot), self._arm.now()
        if seen is None or now - motion.began > motion.duration + LATE_S:
            return False
        phase = motion.advance(seen, now)
        if np.abs(motion.curve.at(motion.phase).positions - seen.q).max() > NEAR:
            return False
        message = motion.stop(seen, now, lead)
        end = np.asarray(message.points[-1].positions)
        ends = now + lead + seconds(message.points[-1].time_from_start)
        self._rests.clear()
        self._stop = _Stop(motion, ends, motion.curve.nearest_time(end, phase, motion.duration), end, lead)
        self._publisher.publish(message)
        self._timer.reset()
        return True

    def _look(self):
        """Has the robot taken the stop?"""
        stop = self._stop
        if stop is None:
            self._rests.set()
            self._timer.cancel()
            return
        seen = self._arm.seen(stop.motion.robot)
        if seen is not None and seen.at <= stop.ends:
            return
        self._stop = None
        if seen is None:
            return
        phase = stop.motion.advance(seen, self._arm.now())
        if phase > stop.phase and np.abs(seen.q - stop.q).max() > PAST:
            lead = min(2 * stop.lead, MOST_LEAD_S)
            if self._publish_stop(stop.motion, lead):
                self._arm.node.get_logger().warning(f"the robot goes on: it is told again to stop, in {lead:.2g} s")
