"""moveit_msgs/RobotState to joint positions and carried objects, and back."""

from collections.abc import Mapping

import numpy as np
from moveit_msgs.msg import AttachedCollisionObject, CollisionObject, RobotState
from sensor_msgs.msg import JointState

from ...arm import RobotModel
from ..arm import codes
from ..arm.conversions import joint_positions, only_joints
from ..arm.scene_objects import SceneObjects
from ..common.request_error import RequestError
from . import objects as object_messages
from .reference import Reference


def is_empty(message: RobotState) -> bool:
    return not (
        message.joint_state.name
        or message.joint_state.position
        or message.multi_dof_joint_state.joint_names
        or message.attached_collision_objects
    )


def read_positions(message: RobotState, robot: RobotModel, known: Mapping[str, float], what: str) -> dict[str, float]:
    """{joint: position} of a RobotState, over those that are known; joints that mimic another are passed over.

    RequestError with INVALID_ROBOT_STATE.
    """
    for name in message.multi_dof_joint_state.joint_names:
        text = f"{what} gives the joint '{name}' of several degrees of freedom; the robot's root stands still"
        raise RequestError(codes.INVALID_ROBOT_STATE, text)
    given = joint_positions(message.joint_state, what, codes.INVALID_ROBOT_STATE)
    allowed = sorted({*robot.joint_names, *robot.other_joints, *robot.mimic_joints})
    only_joints(allowed, given, what, codes.INVALID_ROBOT_STATE)
    return dict(known) | {name: value for name, value in given.items() if name not in robot.mimic_joints}


def read_carried(message: RobotState, reference: Reference) -> SceneObjects:
    """The objects of the reference with what a RobotState attaches.

    A state that is no diff, and not empty, carries nothing else: as in MoveIt, what was carried before vanishes.
    """
    objects = reference.objects
    if not message.is_diff and not is_empty(message):
        objects = objects.remove(*objects.carried)
    for one in message.attached_collision_objects:
        if one.object.operation == CollisionObject.REMOVE:
            objects = objects.remove(*object_messages.carried_named(one, objects))
        else:
            objects = object_messages.attach(one, reference.with_objects(objects))
    return objects


def complete(robot: RobotModel, positions: Mapping[str, float], what: str) -> np.ndarray:
    """(dof,) of {joint: position}; RequestError with ROBOT_STATE_STALE or INVALID_ROBOT_STATE where one is missing."""
    missing = [name for name in robot.joint_names if name not in positions]
    if missing:
        code = codes.ROBOT_STATE_STALE if len(missing) == robot.dof else codes.INVALID_ROBOT_STATE
        text = f"{what} gives no position of joint '{missing[0]}', and joint_states has brought none lately"
        raise RequestError(code, text)
    return np.array([positions[name] for name in robot.joint_names])


def state_message(robot: RobotModel, positions: Mapping[str, float], objects: SceneObjects | None = None) -> RobotState:
    names = [name for name in (*robot.joint_names, *robot.other_joints) if name in positions]
    state = JointState(name=names, position=[float(positions[name]) for name in names])
    state.header.frame_id = robot.root_link
    message = RobotState(joint_state=state)
    if objects is not None:
        message.attached_collision_objects = [
            AttachedCollisionObject(
                link_name=one.link,
                touch_links=list(one.touch_links),
                object=object_messages.object_message(one, one.link),
            )
            for one in objects.carried.values()
        ]
    return message
