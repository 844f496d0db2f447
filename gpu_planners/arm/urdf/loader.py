"""URDF and SRDF -> RobotModel: the only reader of robot descriptions.

The tree of joints is folded into frames (folding.py). Of limits only those of planning joints count, not those of
mimicking joints.
"""

import functools
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import checked
from ...errors import ObstacleError, RobotDescriptionError, SettingsError, shortened, shown
from ...files import MOST_BYTES, file_path
from ..geometry.decomposition import DEFAULT_TOLERANCE, convex_pieces
from ..geometry.meshes import EmptyMeshError, find_mesh, load_mesh, mesh_beside, thickened, told_of
from ..geometry.shapes import ConvexShape
from ..robot.model import RobotModel
from ..robot.modified_dh import transform
from .folding import fold_tree, leaders_of, refuse_loose_joints
from .joint_limits import PlanningLimits, planning_limits
from .limits import NO_LIMITS, limits_of
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
    limits: str | os.PathLike | Mapping | PlanningLimits | None = None,
) -> RobotModel:
    """RobotModel of a URDF.

    urdf, srdf: path, or the XML text itself (starts with "<")
    package_dirs: where to look for meshes named by package:// or, for a URDF given as text, by relative paths
    joints: names of the planning joints in the order of q; default: those of `group`, else every joint that moves
        and mimics none, nor is passive, in the order of the tree; without those that are held, such as a joint with
        equal limits
    fixed: {joint: value} of joints that are not planned, rad or m; others stay at 0, or at the limit nearest to 0
    group: an SRDF group that gives the planning joints
    velocity, acceleration: {joint: limit}, (dof,) or one number; default: the URDF's velocity, or 1 rad/s or m/s with
        a warning where it has none or 0, and the acceleration of URDF 1.2, or one that reaches the velocity in 0.5 s
    hull_tolerance: a collision mesh becomes one convex hull unless the hull's surface sticks out from the mesh by more
        than this, metres; then it is cut into several; inf: always one hull
    self_collisions: False: no links are checked against each other
    limits: MoveIt's joint_limits.yaml, its path or what it holds. The stricter of its limits and the URDF's counts for
        positions and velocities, its own for accelerations; `RobotModel.limit_sources` says where each is from

    Soft limits of a <safety_controller> count where they are within the <limit>. What harms nothing is held, left out
    or passed over, and told in a warning. Scripts call it with the first ten arguments, so they stay. Raises
    RobotDescriptionError that names the element.
    """
    if not hull_tolerance > 0:
        raise SettingsError(
            f"hull_tolerance must be above 0 metres (inf: one hull a mesh), got {shown(hull_tolerance)}"
        )
    text, base_dir = _read_text(urdf, "URDF")
    description = read_urdf(text)
    semantics = NO_SRDF if srdf is None else read_srdf(_read_text(srdf, "SRDF")[0], description)
    names = planning_joints(description, semantics, joints, group)

    def shapes():
        notes = [*description.notes, *_joint_notes(description, leaders_of(description, names))]
        found = _build_shapes(description, base_dir, package_dirs, hull_tolerance, notes)
        tell(f"the URDF of '{description.name}'", notes)
        tell(f"the SRDF of '{description.name}'", semantics.notes)
        return found

    rates = velocity, acceleration, limits
    return assembled(description, semantics, shapes, names, fixed, rates, self_collisions, group=group)


def assembled(
    description: Description,
    semantics: Semantics,
    shapes: Callable[[], tuple],
    names: tuple[str, ...],
    fixed: Mapping[str, float],
    rates: tuple[Any, Any, Any],
    self_collisions: bool,
    decided: Mapping[tuple[int, int], str] = MappingProxyType({}),
    group: str | None = None,
) -> RobotModel:
    """The RobotModel of a description, of whatever file.

    shapes: -> shapes and numbers of their links, as of `_Loaded`; called last, since meshes take longest
    names: of the planning joints; rates: velocity, acceleration and limits as load_urdf takes them
    decided: {pair of links: why it is not checked}
    """
    velocity, acceleration, limits = rates
    given = velocity, acceleration, NO_LIMITS if limits is None else planning_limits(limits)
    fields = _planned(description, semantics, group, names, fixed, given)
    found, shape_link = shapes()
    given = _by_joint(velocity, names), _by_joint(acceleration, names), given[2]
    loaded = _Loaded(description, semantics, found, shape_link, self_collisions, given, dict(decided))
    return _model(loaded, group, names, fields)


def _planned(description, semantics, group, names, fixed, given):
    """The fields of a RobotModel that depend on the planning joints `names`, but for those about its shapes. given:
    limits as of `_Loaded`"""
    refuse_loose_joints(description, leaders_of(description, names))
    kinematics = fold_tree(description, names, fixed)
    limits = limits_of(description, names, kinematics, *given)
    tip_link, tip_reason = default_tip(description, semantics, group, names)
    of_group = f", group '{group}'" if group else ""
    log.info("robot '%s'%s: the tip link is '%s': %s", description.name, of_group, tip_link, tip_reason)
    return kinematics | limits | {"tip_link": tip_link, "tip_reason": tip_reason}


def _by_joint(limits, names):
    """Limits as load_urdf takes them, those that are an array as {joint: limit}: so they hold for other groups, too."""
    if limits is None or isinstance(limits, Mapping) or np.size(limits) == 1:
        return limits
    return dict(zip(names, np.asarray(limits).tolist(), strict=True))


@dataclass(frozen=True)
class _Loaded:
    """A robot's description, as far as it does not depend on which joints are planned.

    shapes: the robot's own, each posed in its link's frame; shape_link: (S,) numbers of their links
    given: velocity and acceleration limits as `_by_joint` has them, and the PlanningLimits
    decided: as of pairs_of_shapes
    """

    description: Description
    semantics: Semantics
    shapes: tuple[ConvexShape, ...]
    shape_link: np.ndarray
    self_collisions: bool
    given: tuple[Any, Any, PlanningLimits]
    decided: dict[tuple[int, int], str | None] = field(default_factory=dict)

    def of_group(self, group: str, fixed: Mapping[str, float]) -> RobotModel:
        """See RobotModel.of_group."""
        names = planning_joints(self.description, self.semantics, None, group)
        *rates, more = self.given
        rates = [
            {name: given[name] for name in names if name in given} if isinstance(given, Mapping) else given
            for given in rates
        ]
        fields = _planned(self.description, self.semantics, group, names, fixed, (*rates, more))
        return _model(replace(self, decided=dict(self.decided)), group, names, fields)


def _model(loaded, group, names, fields):
    """The RobotModel of the planning joints `names`, whose fields `_planned` has made."""
    description, semantics, shapes, shape_link = loaded.description, loaded.semantics, loaded.shapes, loaded.shape_link
    link_frame, joints = fields["link_frame"], description.joints.values()
    inertials = description.inertials
    frame_of = dict(zip(fields["link_names"], link_frame))
    if unseen := [link for link in description.only_seen if frame_of[link] >= 0]:
        warn_once(
            f"the URDF of '{description.name}' has links that move with a visual, but no collision geometry, so they "
            f"collide with nothing: {shortened(', '.join(unseen))}"
        )
    disabled = semantics.disabled if loaded.self_collisions else semantics.disabled or {}
    pairs, disabled_pairs = pairs_of_shapes(description, link_frame, shapes, shape_link, disabled, loaded.decided)
    if touching := tuple((a, b) for a, b, reason in disabled_pairs if reason == ALWAYS):
        warn_once(
            f"without an SRDF that disables pairs of links, '{description.name}' is taken to have links that touch by "
            f"design, since they meet wherever its joints stand; they are not checked against each other: "
            + ", ".join(f"{a} and {b}" for a, b in touching)
        )
    movable = [joint for joint in joints if joint.kind.plannable]
    others = [joint for joint in movable if not joint.mimic and joint.name not in names]
    states = {
        state: given | semantics.group_states.get((group, state), {}) for state, given in semantics.states.items()
    }
    return RobotModel(
        name=description.name,
        root_link=description.root,
        joint_names=names,
        **fields,
        link_inertia=np.array(
            [inertials[link].J if link in inertials else np.zeros((4, 4)) for link in fields["link_names"]]
        ),
        inertia_faults=tuple((link, one.fault) for link, one in inertials.items() if one.fault),
        shapes=_in_frames(shapes, shape_link, fields),
        shape_link=shape_link,
        shape_frame=link_frame[shape_link],
        self_collision_pairs=pairs if loaded.self_collisions else pairs[:0],
        disabled_pairs=disabled_pairs,
        touching_pairs=touching,
        named_states={
            state: np.array([given[name] for name in names])
            for state, given in states.items()
            if all(name in given for name in names)
        },
        other_joints={joint.name: joint.limits or (-np.inf, np.inf) for joint in others},
        mimic_joints=tuple(joint.name for joint in movable if joint.mimic),
        virtual_joints=semantics.virtual_joints,
        groups=semantics.groups | dict.fromkeys(semantics.broken, ()),
        tree=_Tree(loaded, names),
    )


@dataclass(frozen=True)
class _Tree:
    """What a RobotModel asks of its description. loaded: the same of all groups; names: of the planning joints"""

    loaded: _Loaded
    names: tuple[str, ...]

    @property
    def link_shapes(self) -> tuple[ConvexShape, ...]:
        """The robot's own shapes, each posed in its link's frame."""
        return self.loaded.shapes

    @functools.cached_property
    def moved_links(self) -> frozenset[str]:
        """Names of the links that joints which are not planned move."""
        description = self.loaded.description
        moved, leaders = set[str](), leaders_of(description, self.names)
        for joint in description.joints.values():
            if joint.parent in moved or (joint.kind.plannable and joint.name not in leaders):
                moved.add(joint.child)
        return frozenset(moved)

    def kinematics(self, fixed: Mapping[str, float]) -> dict[str, Any]:
        """The fields of a RobotModel that depend on {joint: rad or m} of joints that are not planned."""
        return fold_tree(self.loaded.description, self.names, fixed)

    def of_group(self, group: str, fixed: Mapping[str, float]) -> RobotModel:
        """See RobotModel.of_group."""
        return self.loaded.of_group(group, fixed)


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
        joints = [
            joint.name
            for joint in known.values()
            if joint.kind.plannable and not joint.mimic and joint.name not in semantics.passive
        ]
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
    for name in leaders_of(description, joints):
        if fault := known[name].fault:
            raise RobotDescriptionError(
                f"joint '{name}': {fault}; correct the URDF or plan other joints (joints, group)"
            )
    return joints


def _joint_notes(description, leaders):
    """Notes about joints that are not planned as the URDF has them."""
    for joint in description.joints.values():
        if joint.held:
            yield Note("joints cannot be planned; they are held", f"'{joint.name}' ({joint.held})")
        elif joint.fault and joint.name not in leaders:
            yield Note(
                "joints that are not planned have faults, which count for nothing", f"'{joint.name}' ({joint.fault})"
            )


def _mesh_path(filename, base_dir, package_dirs, link, notes):
    try:
        return find_mesh(filename, base_dir, package_dirs, f"link '{link}'")
    except RobotDescriptionError:
        found = mesh_beside(filename, base_dir)
        if found is None:
            raise
        package = filename.removeprefix("package://").partition("/")[0]
        what = "packages are not there; their meshes are those beside the URDF"
        notes.append(Note(what, f"'{package}' ({base_dir})"))
        return found


def _build_shapes(description, base_dir, package_dirs, hull_tolerance, notes):
    """Convex shapes posed in their links, and the number of each one's link; adds to the notes.

    A link's shapes are named link_0, link_1, ..., the pieces of one mesh link_0#0, link_0#1, ...
    """
    paths = {
        collision.filename: _mesh_path(collision.filename, base_dir, package_dirs, link, notes)
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
