"""The node's parameters torque_limits and attached_mass: what is attached counts where motions are timed."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("gpu_planners_msgs.msg", reason="gpu_planners_msgs is not built")

from robots_at_hand import READY, maker_of

from gpu_planners.arm import CollisionChecker, CollisionWorld
from gpu_planners.arm.dynamics import InverseDynamics, Payload
from gpu_planners.arm.geometry.shapes import ConvexShape
from gpu_planners.errors import SettingsError
from gpu_planners.nodes.arm.parameters import ArmParameters
from gpu_planners.nodes.arm.payload import torque_limits
from gpu_planners.nodes.arm.plan_service import timed

PATH = np.array([READY, READY + [0.8, 1.5, 0, 1.2, 0, 0.4, 0]])


def holding():
    robot, T = maker_of("panda").model, np.eye(4)
    T[:3, 3] = [0.0, 0.02, 0.1]
    return robot.attach("part", ConvexShape.box("part", [0.04, 0.04, 0.04], np.eye(4)), robot.tip_link, T)


def test_motions_keep_the_limits_with_what_is_attached():
    robot = holding()
    checker = CollisionChecker(robot, CollisionWorld(), "cpu")
    heavy = InverseDynamics(robot, [Payload(3.0, (0.0, 0.02, 0.1))])
    fast, worst = (1.0, 8.0), []
    for values in (ArmParameters(), ArmParameters(torque_limits=True, attached_mass=3.0)):
        motion = timed(checker, PATH, fast, values)
        torques = heavy.torques(*motion.at(np.linspace(0, motion.duration, 2000)))
        worst.append((np.abs(torques) / robot.effort).max())
    assert worst[0] > 1.1 and 0.9 < worst[1] <= 1 + 1e-9
    assert torque_limits(robot, ArmParameters()) is None


def test_what_cannot_be_held_is_refused_by_name():
    checker = CollisionChecker(holding(), CollisionWorld(), "cpu")
    with pytest.raises(SettingsError, match="joint 'panda_joint2' needs .* only to hold still"):
        timed(checker, PATH, (1.0, 1.0), ArmParameters(torque_limits=True, attached_mass=9.0))
