"""Where the root stands in a frame outside of the robot: virtual joints of the SRDF in MoveIt's messages.

The root stands still while the node plans, so a state may only say what is known: where tf2 has the root in the frame,
or the identity where tf2 knows nothing of it. Any other pose would be a robot elsewhere among the same obstacles.
"""

import numpy as np
from geometry_msgs.msg import Transform, Vector3
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import MultiDOFJointState

from ...errors import ObstacleError
from ..arm import codes
from ..arm.conversions import AGREES, pose_message, root_joint
from ..common.request_error import RequestError, answered_with
from .reference import Reference
from .shapes import read_transform


def check_standing(message: MultiDOFJointState, reference: Reference, what: str) -> None:
    """RequestError for a joint of several degrees of freedom that the robot lacks, and for a root elsewhere than it is
    known to be. what: whose state it is"""
    names, robot, known = list(message.joint_names), reference.robot, root_joint(reference.robot)
    if len(names) != len(message.transforms):
        raise _wrong(
            f"{what} has {len(names)} joints of several degrees of freedom but {len(message.transforms)} poses"
        )
    for name, transform in zip(names, message.transforms, strict=True):
        gives = f"{what} gives the joint '{name}' of several degrees of freedom"
        if known is None or name != known.name:
            only = (
                f"only the virtual joint '{known.name}'" if known else f"none that places its root '{robot.root_link}'"
            )
            raise _wrong(f"{gives}, which robot '{robot.name}' lacks; its SRDF has {only}")
        with answered_with(codes.INVALID_ROBOT_STATE, ObstacleError):
            T = read_transform(transform, gives)
        frame = message.header.frame_id or known.parent_frame
        T_root_frame = reference.frame(frame, what)
        off = T_root_frame @ T
        far, turned = np.linalg.norm(off[:3, 3]), Rotation.from_matrix(off[:3, :3]).magnitude()
        if not (far <= AGREES and turned <= AGREES):
            at = np.linalg.inv(T_root_frame)[:3, 3].round(4).tolist()
            raise _wrong(
                f"{gives}: the root '{robot.root_link}' would stand {far:.4g} m and {turned:.4g} rad away from where "
                f"it is known to be in '{frame}', x y z {at}; allowed: within {AGREES:g}, for the root stands still"
            )


def standing(reference: Reference) -> MultiDOFJointState:
    """Where the root stands, by the virtual joint of several degrees of freedom, if there is one."""
    joint, message = root_joint(reference.robot), MultiDOFJointState()
    if joint is None or joint.type == "fixed":
        return message
    pose = pose_message(np.linalg.inv(reference.frame(joint.parent_frame, "the robot's state")))
    message.header.frame_id, message.joint_names = joint.parent_frame, [joint.name]
    p = pose.position
    message.transforms = [Transform(translation=Vector3(x=p.x, y=p.y, z=p.z), rotation=pose.orientation)]
    return message


def _wrong(text):
    return RequestError(codes.INVALID_ROBOT_STATE, text)
