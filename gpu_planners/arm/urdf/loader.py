"""URDF and SRDF -> RobotModel: the only reader of robot descriptions.

The tree of URDF joints is folded into frames: one for each planning joint and for each joint that mimics one. Every
other joint is frozen: its transform becomes part of the constant transforms. Of limits only those of planning joints
count, not those of mimicking joints, nor safety controllers' soft limits.
"""

import functools
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import checked
from ...errors import ObstacleError, RobotDescriptionError, SettingsError, shortened, shown
from ...files import MOST_BYTES, file_path
from ...ranges import GREATEST_LENGTH
from ..geometry.decomposition import DEFAULT_TOLERANCE, convex_pieces
from ..geometry.meshes import EmptyMeshError, find_mesh, load_mesh, thickened, told_of
from ..geometry.shapes import ConvexShape
from ..robot.model import FRAME_DTYPE, RobotModel
from ..robot.modified_dh import derive_rows, rotation_about, transform
from .limits import limits_of
from .notes import MOST_TOLD, Note, tell, warn_once
from .self_collision import ALWAYS, pairs_of_shapes
from .srdf_xml import NO_SRDF, Semantics, read_srdf
from .tip import default_tip
from .urdf_xml import PLANNABLE, Description, read_urdf
from .xml_text import read_xml_file

log = logging.getLogger(__name__)

BLANK = "\ufeff \t\r\n"


def _capsule(name, size):
    """A cylinder and the spheres at its ends."""
    ends = (transform(p=np.array([0, 0, z])) for z in (-size[1] / 2, size[1] / 2))
    return [
        ConvexShape.cylinder(f"{name}#0", size[0], size[1], np.eye(4)),
        *(ConvexShape.sphere(f"{name}#{i}", size[0], pose) for i, pose in enumerate(ends, 1)),
    ]


PRIMITIVES = {  # collision geometries of a URDF, by name and size
    "box": lambda name, size: [ConvexShape.box(name, size, np.eye(4))],
    "cylinder": lambda name, size: [ConvexShape.cylinder(name, size[0], size[1], np.eye(4))],
    "capsule": _capsule,
    "sphere": lambda name, size: [ConvexShape.sphere(name, size[0], np.eye(4))],
}


@checked(RobotDescriptionError)
def load_urdf(
    urdf: str | os.PathLike,
    srdf: str | os.PathLike | None = None,
    package_dirs: Sequence[str | os.PathLike] = (),
    joints: Sequence[str] | None = None,
    fixed: Mapping[str, float] = MappingProxyType({}),
    group: str | None = None,
    velocity: Mapping[str, float] | ArrayLike | None = None,
    acceleration: Mapping[str, float] | ArrayLike | None = None,
    hull_tolerance: Annotated[float, SettingsError] = DEFAULT_TOLERANCE,
    self_collisions: bool = True,
) -> RobotModel:
    """RobotModel of a URDF.

    urdf, srdf: path, or the XML text itself (starts with "<")
    package_dirs: where to look for meshes named by package:// or, for a URDF given as text, by relative paths
    joints: names of the planning joints in the order of q; default: those of `group`, else every joint that moves
        and mimics none, in the order of the tree; without those that are held, such as a joint with equal limits
    fixed: {joint: value} of joints that are not planned, rad or m; others stay at 0, or at the limit nearest to 0
    group: an SRDF group that gives the planning joints
    velocity, acceleration: {joint: limit}, (dof,) or one number; default: the URDF's velocity, or 1 rad/s or m/s with
        a warning where it has none or 0, and the acceleration of URDF 1.2, or one that reaches the velocity in 0.5 s
    hull_tolerance: a collision mesh becomes one convex hull unless the hull's surface sticks out from the mesh by more
        than this, metres; then it is cut into several; inf: always one hull
    self_collisions: False: no links are checked against each other

    What harms nothing is held, left out or passed over, and told in a warning. Scripts call it with these ten
    arguments, so they stay. Raises RobotDescriptionError that names the element.
    """
    if not hull_tolerance > 0:
        raise SettingsError(
            f"hull_tolerance must be above 0 metres (inf: one hull a mesh), got {shown(hull_tolerance)}"
        )
    text, base_dir = _read_text(urdf, "URDF")
    description = read_urdf(text)
    semantics = NO_SRDF if srdf is None else read_srdf(_read_text(srdf, "SRDF")[0], description)
    names = planning_joints(description, semantics, joints, group)
    leaders = _leaders(description, names)
    _refuse_loose_joints(description, leaders)
    kinematics = _fold_tree(description, names, fixed)
    limits = limits_of(description, names, kinematics, velocity, acceleration)
    tip_link, tip_reason = default_tip(description, semantics, group, names)
    log.info("robot '%s': the tip link is '%s': %s", description.name, tip_link, tip_reason)
    # meshes last, since they take longest
    notes = [*description.notes, *_joint_notes(description, leaders)]
    shapes, shape_link = _build_shapes(description, base_dir, package_dirs, hull_tolerance, notes)
    tell(f"the URDF of '{description.name}'", notes)
    tell(f"the SRDF of '{description.name}'", semantics.notes)
    fields = kinematics | limits | {"tip_link": tip_link, "tip_reason": tip_reason}
    return _model(description, semantics, names, fields, shapes, shape_link, self_collisions)


def _model(description, semantics, names, fields, shapes, shape_link, self_collisions):
    """The RobotModel."""
    link_frame, joints = fields["link_frame"], description.joints.values()
    frame_of = dict(zip(fields["link_names"], link_frame))
    if unseen := [link for link in description.only_seen if frame_of[link] >= 0]:
        warn_once(
            f"the URDF of '{description.name}' has links that move with a visual, but no collision geometry, so they "
            f"collide with nothing: {shortened(', '.join(unseen))}"
        )
    disabled = semantics.disabled if self_collisions else semantics.disabled or {}
    pairs, disabled_pairs = pairs_of_shapes(description, link_frame, shapes, shape_link, disabled)
    if touching := tuple((a, b) for a, b, reason in disabled_pairs if reason == ALWAYS):
        warn_once(
            f"without an SRDF that disables pairs of links, '{description.name}' is taken to have links that touch by "
            f"design, since they meet wherever its joints stand; they are not checked against each other: "
            + ", ".join(f"{a} and {b}" for a, b in touching)
        )
    movable = [joint for joint in joints if joint.kind.plannable]
    others = [joint for joint in movable if not joint.mimic and joint.name not in names]
    return RobotModel(
        name=description.name,
        root_link=description.root,
        joint_names=names,
        **fields,
        shapes=_in_frames(shapes, shape_link, fields),
        shape_link=shape_link,
        shape_frame=link_frame[shape_link],
        self_collision_pairs=pairs if self_collisions else pairs[:0],
        disabled_pairs=disabled_pairs,
        touching_pairs=touching,
        named_states={
            state: np.array([given[name] for name in names])
            for state, given in semantics.states.items()
            if all(name in given for name in names)
        },
        other_joints={joint.name: joint.limits or (-np.inf, np.inf) for joint in others},
        mimic_joints=tuple(joint.name for joint in movable if joint.mimic),
        virtual_joints=semantics.virtual_joints,
        groups=semantics.groups | dict.fromkeys(semantics.broken, ()),
        tree=_Tree(description, names, shapes),
    )


@dataclass(frozen=True)
class _Tree:
    """A robot's description, as far as joints that are not planned need it to move.

    names: of the planning joints; link_shapes: the robot's own shapes, each posed in its link's frame
    """

    description: Description
    names: tuple[str, ...]
    link_shapes: tuple[ConvexShape, ...]

    @functools.cached_property
    def moved_links(self) -> frozenset[str]:
        """Names of the links that joints which are not planned move."""
        moved, leaders = set[str](), _leaders(self.description, self.names)
        for joint in self.description.joints.values():
            if joint.parent in moved or (joint.kind.plannable and joint.name not in leaders):
                moved.add(joint.child)
        return frozenset(moved)

    def kinematics(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """The fields of a RobotModel that depend on {joint: rad or m} of joints that are not planned."""
        return _fold_tree(self.description, self.names, fixed)


def _in_frames(link_shapes, shape_link, kinematics):
    """Shapes posed in their links -> posed in the frames that carry these."""
    T = kinematics["T_frame_link"]
    return tuple(shape.moved(T[link]) for shape, link in zip(link_shapes, shape_link, strict=True))


def _read_text(source, what):
    """(text, folder of the file or None)."""
    if isinstance(source, str) and source.lstrip(BLANK).startswith("<"):
        if len(source) > MOST_BYTES:
            raise RobotDescriptionError(f"the {what} has {len(source)} characters; allowed: {MOST_BYTES}")
        return source.lstrip(BLANK), None
    path = file_path(source, f"the {what}, where it is no XML text,", RobotDescriptionError)
    return read_xml_file(path, what).lstrip(), path.parent


def planning_joints(
    description: Description, semantics: Semantics, joints: Sequence[str] | None, group: str | None
) -> tuple[str, ...]:
    """Names of the joints that load_urdf plans for these arguments."""
    known = description.joints
    if joints is not None and group is not None:
        raise RobotDescriptionError("give either joints or group, not both")
    if group is not None:
        joints = semantics.joints_of(group)
    elif joints is None and len(semantics.groups) + len(semantics.broken) == 1:
        joints = semantics.joints_of(*semantics.groups, *semantics.broken)
    elif joints is None:
        joints = [joint.name for joint in known.values() if joint.kind.plannable and not joint.mimic]
    elif named := next((name for name in joints if name in known and known[name].held), None):
        raise RobotDescriptionError(f"joint '{named}' cannot be planned: {known[named].held}")
    held = [name for name in joints if name in known and known[name].held]
    joints = tuple(name for name in joints if name not in held)
    for name in joints:
        if name not in known:
            movable = [joint.name for joint in known.values() if joint.kind.plannable]
            raise RobotDescriptionError(f"the URDF has no joint {shown(name)}; its moving joints: {', '.join(movable)}")
        if not known[name].kind.plannable:
            raise RobotDescriptionError(
                f"joint '{name}' is {known[name].type} and cannot be planned; plannable: {', '.join(PLANNABLE)}"
            )
        if mimic := known[name].mimic:
            raise RobotDescriptionError(f"joint '{name}' mimics '{mimic[0]}': plan that one")
    if len(set(joints)) < len(joints):
        twice = next(name for name in joints if joints.count(name) > 1)
        raise RobotDescriptionError(f"joint '{twice}' is named twice among the planning joints")
    if not joints:
        text = f"group '{group}' has no joint to plan" if group else "no joint to plan"
        told = "".join(f"; joint '{name}' is held: {known[name].held}" for name in held[:MOST_TOLD])
        raise RobotDescriptionError(text + told)
    for name in _leaders(description, joints):
        if fault := known[name].fault:
            raise RobotDescriptionError(
                f"joint '{name}': {fault}; correct the URDF or plan other joints (joints, group)"
            )
    return joints


def _leaders(description, names):
    """{joint: (planning joint, multiplier, offset)} of the planning joints and the joints that mimic them."""
    planned = set(names)
    leaders = {name: joint.mimic or (name, 1.0, 0.0) for name, joint in description.joints.items()}
    return {name: leader for name, leader in leaders.items() if leader[0] in planned}


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


def _joint_notes(description, leaders):
    """Notes about joints that are not planned as the URDF has them."""
    for joint in description.joints.values():
        if joint.held:
            yield Note("joints cannot be planned; they are held", f"'{joint.name}' ({joint.held})")
        elif joint.fault and joint.name not in leaders:
            yield Note(
                "joints that are not planned have faults, which count for nothing", f"'{joint.name}' ({joint.fault})"
            )


def _refuse_loose_joints(description, leaders):
    """Floating and planar joints are only allowed where no planning joint is above or below them."""
    above = {description.root: (None, False)}  # link: (the loose joint above it, is a planning joint above it?)
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


def _motion(joint, value):
    """(4, 4) motion of a joint at a value."""
    if joint.kind.slides:
        return transform(p=joint.axis * value)
    return transform(rotation_about(joint.axis, value)) if joint.kind.plannable else np.eye(4)


def _frozen_value(description, joint, fixed):
    """Where a joint stands that is not planned, and mimics none that is."""
    leader, multiplier, offset = joint.mimic or (joint.name, 1.0, 0.0)
    return multiplier * float(fixed.get(leader, np.clip(0.0, *description.joints[leader].range))) + offset


def _fold_tree(description, names, fixed):
    """The kinematic fields of RobotModel, from where every frame's value is 0.

    names: of the planning joints; fixed: {joint: value} of others, rad or m
    """
    _check_fixed(description, names, fixed)
    leaders = _leaders(description, names)
    link_pose, link_frame = {description.root: np.eye(4)}, {description.root: -1}
    moving, T_root_joint = [], []
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


def _build_shapes(description, base_dir, package_dirs, hull_tolerance, notes):
    """Convex shapes posed in their links, and the number of each one's link; adds to the notes.

    A link's shapes are named link_0, link_1, ..., the pieces of one mesh link_0#0, link_0#1, ...
    """
    paths = {
        collision.filename: find_mesh(collision.filename, base_dir, package_dirs, f"link '{link}'")
        for link, collisions in description.links.items()
        for collision in collisions
        if collision.kind == "mesh"
    }
    shapes, shape_link = [], []
    for i, (link, collisions) in enumerate(description.links.items()):
        for n, collision in enumerate(collisions):
            name = f"{link}_{n}"
            try:
                if collision.kind == "mesh":
                    path = paths[collision.filename]
                    mesh = load_mesh(name, path, collision.size)
                    notes += [Note(what, f"link '{link}' ({path})") for what in told_of(mesh)]
                    pieces = convex_pieces(name, thickened(mesh), np.eye(4), hull_tolerance)
                else:
                    pieces = PRIMITIVES[collision.kind](name, collision.size)
            except EmptyMeshError:
                notes.append(Note("mesh files hold nothing; they are left out", f"link '{link}' ({path})"))
                continue
            except ObstacleError as error:
                raise RobotDescriptionError(f"link '{link}': {error}") from error
            shapes += [piece.moved(collision.T_link_collision) for piece in pieces]
            shape_link += [i] * len(pieces)
    return tuple(shapes), np.array(shape_link, dtype=np.int32)
