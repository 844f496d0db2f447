"""Motions that are published for whichever controller listens; only a stop follows them, in their place."""

import numpy as np
from trajectory_msgs.msg import JointTrajectory

from ...arm import RobotModel
from ...arm.control.spline import Spline
from .arm_services import ArmServices
from .conversions import trajectory_of
from .move_run import MotionUnderWay

NEAR = 0.05  # rad or m from a motion's way within which the robot is taken to execute it
LATE_S = 1.0  # that a controller may begin after a motion was published


class PublishedMotions:
    """The topic ~/joint_trajectory. Methods may be called on any thread."""

    def __init__(self, arm: ArmServices) -> None:
        self._arm = arm
        self._publisher = arm.node.create_publisher(JointTrajectory, "~/joint_trajectory", 10)
        self._last: tuple[JointTrajectory, RobotModel, float] | None = None

    def publish(self, message: JointTrajectory, robot: RobotModel) -> None:
        """Publish a motion of a robot, which begins where it is."""
        self._last = message, robot, self._arm.now()
        self._publisher.publish(message)

    def stop(self) -> None:
        """Publish a stop along the last motion, if the robot seems to execute it."""
        last, self._last, now = self._last, None, self._arm.now()
        if last is None:
            return
        message, robot, began = last
        motion = MotionUnderWay(Spline.of(trajectory_of(message)), robot, (None, None), 0.0, began)
        seen = self._arm.seen(robot)
        if seen is None or now - began > motion.duration + LATE_S:
            return
        motion.advance(seen, now)
        if np.abs(motion.curve.at(motion.phase).positions - seen.q).max() <= NEAR:
            self._arm.node.get_logger().warning("stopping the motion that was published on ~/joint_trajectory")
            self._publisher.publish(motion.stop(seen, now))
