"""The tree of URDF joints folded into frames: one for each planning joint and for each joint that mimics one. Every
other joint is frozen: its transform becomes part of the constant transforms."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import RobotDescriptionError, shown
from ...ranges import GREATEST_LENGTH
from ..robot.model import FRAME_DTYPE
from ..robot.modified_dh import derive_rows, rotation_about, transform
from .urdf_xml import Description, Joint


def leaders_of(description: Description, names: Sequence[str]) -> dict[str, tuple[str, float, float]]:
    """{joint: (planning joint, multiplier, offset)} of the planning joints and the joints that mimic them."""
    planned = set(names)
    leaders = {name: joint.mimic or (name, 1.0, 0.0) for name, joint in description.joints.items()}
    return {name: leader for name, leader in leaders.items() if leader[0] in planned}


def refuse_loose_joints(description: Description, leaders: Collection[str]) -> None:
    """Floating and planar joints are only allowed where no planning joint is above or below them."""
    above: dict[str, tuple[Any, bool]] = {
        description.root: (None, False)
    }  # link: (the loose joint above it, is a planning joint above it?)
    for joint in description.joints.values():
        loose, planned = above[joint.parent]
        if joint.kind.loose and planned:
            raise RobotDescriptionError(
                f"joint '{joint.name}' is {joint.type} and hangs on the planning joints: not plannable"
            )
        if joint.name in leaders and loose:
            raise RobotDescriptionError(
                f"joint '{loose.name}' is {loose.type} and carries the planning joint '{joint.name}': not plannable; "
                f"make it fixed, where the base stands"
            )
        above[joint.child] = joint if joint.kind.loose else loose, planned or joint.name in leaders


def fold_tree(description: Description, names: Sequence[str], fixed: Mapping[str, float]) -> dict[str, Any]:
    """The kinematic fields of RobotModel, from where every frame's value is 0.

    names: of the planning joints; fixed: {joint: value} of others, rad or m
    """
    _check_fixed(description, names, fixed)
    leaders = leaders_of(description, names)
    link_pose, link_frame = {description.root: np.eye(4)}, {description.root: -1}
    moving: list[Joint] = []
    T_root_joint: Any = []
    for joint in description.joints.values():
        pose = link_pose[joint.parent] @ joint.T_parent_joint
        if joint.name in leaders:
            link_frame[joint.child] = len(moving)
            moving.append(joint)
            T_root_joint.append(pose)
        else:
            link_frame[joint.child] = link_frame[joint.parent]
            pose = pose @ _motion(joint, _frozen_value(description, joint, fixed))
        if not (np.abs(pose[:3, 3]) <= GREATEST_LENGTH).all():
            raise RobotDescriptionError(
                f"joint '{joint.name}' puts link '{joint.child}' at {pose[:3, 3].tolist()}; "
                f"allowed: within +-{GREATEST_LENGTH:g} m of the root"
            )
        link_pose[joint.child] = pose
    T_root_joint = np.array(T_root_joint)
    parents = [link_frame[joint.parent] for joint in moving]
    axes = np.array([T[:3, :3] @ joint.axis for T, joint in zip(T_root_joint, moving)])
    rows, T_parent_base, T_root_frame = derive_rows(parents, axes, T_root_joint)
    led = [leaders[joint.name] for joint in moving]
    frames = np.array(
        [
            (*row, joint.kind.slides, parent, names.index(leader), multiplier, offset)
            for row, joint, parent, (leader, multiplier, offset) in zip(rows, moving, parents, led)
        ],
        FRAME_DTYPE,
    )
    links = tuple(description.links)
    index = np.array([link_frame[link] for link in links], dtype=np.int32)
    T_root_link = [link_pose[link] for link in links]
    return {
        "frames": frames,
        "T_parent_base": T_parent_base,
        "frame_names": tuple(joint.name for joint in moving),
        "link_names": links,
        "link_frame": index,
        "T_frame_link": np.array(
            [T if f < 0 else np.linalg.inv(T_root_frame[f]) @ T for T, f in zip(T_root_link, index)]
        ),
    }


def _check_fixed(description, names, fixed):
    """RobotDescriptionError where a joint cannot be fixed at its value."""
    for name, value in fixed.items():
        if name not in description.joints:
            raise RobotDescriptionError(f"fixed joint {shown(name)} is not a joint of the URDF")
        joint = description.joints[name]
        if name in names or joint.mimic:
            why = f"mimics '{joint.mimic[0]}'" if joint.mimic else "is a planning joint"
            raise RobotDescriptionError(f"joint '{name}' cannot be fixed at {shown(value)}: it {why}")
        lower, upper = joint.range
        if not abs(value) < np.inf or not lower - 1e-6 <= value <= upper + 1e-6:
            raise RobotDescriptionError(
                f"joint '{name}' ({joint.type}) cannot be fixed at {shown(value)}: allowed is {lower:g} to {upper:g}"
            )


def _motion(joint, value):
    """(4, 4) motion of a joint at a value."""
    if joint.kind.slides:
        return transform(p=joint.axis * value)
    return transform(rotation_about(joint.axis, value)) if joint.kind.plannable else np.eye(4)


def _frozen_value(description, joint, fixed):
    """Where a joint stands that is not planned, and mimics none that is."""
    leader, multiplier, offset = joint.mimic or (joint.name, 1.0, 0.0)
    return multiplier * float(fixed.get(leader, np.clip(0.0, *description.joints[leader].range))) + offset
