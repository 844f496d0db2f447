"""Limits of torque for the node's motions: the efforts of the URDF, with what is attached."""

import numpy as np

from ...arm import RobotModel
from ...arm.dynamics import Payload, TorqueLimits
from ...arm.geometry.kinds import KINDS
from .parameters import ArmParameters


def torque_limits(robot: RobotModel, values: ArmParameters) -> TorqueLimits | None:
    """None unless the parameter asks for them. Each attached object weighs `attached_mass`, a point between its shapes.

    Raises SettingsError for a joint without an effort, or a robot without masses.
    """
    if not values.torque_limits:
        return None
    payloads = [
        Payload(values.attached_mass, np.mean([_middle(shape) for shape in one.shapes], axis=0), link=one.link)
        for one in robot.attachments.values()
    ]
    return TorqueLimits(robot, payloads=payloads)


def _middle(shape):
    """(3,) in the frame that the shape is posed in."""
    return shape.pose[:3, :3] @ KINDS[shape.kind].ball(shape)[:3] + shape.pose[:3, 3]
