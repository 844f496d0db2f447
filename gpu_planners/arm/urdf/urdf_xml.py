"""URDF text -> plain records, checked: every error names the element and what is allowed there.

yourdfpy repairs or skips malformed elements; a planner must not plan for half a robot, so this reader is strict about
the elements that kinematics and collision need. It ignores the others (visuals, transmissions, plug-ins).
What is wrong with a part that can be held or left out becomes a note, and an error only where that part is planned.
Whoever asks for torques tells what is wrong with inertias.
"""

from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import numpy as np
from lxml import etree

from ...errors import RobotDescriptionError, shortened, shown
from ...ranges import GREATEST_LENGTH
from ..geometry.meshes import LEAST_SIZE
from ..robot.inertia import fault_of, pseudo_inertia
from ..robot.modified_dh import rotation_about, transform
from .notes import Note, nearest
from .soft_limits import read_soft_limits
from .xml_text import numbers, parse_xml, refuse_xacro, required, unexpanded

MOST_ELEMENTS = 2000  # links, joints and collision elements, each
GREATEST_MASS = 1e9  # kg, and kg m^2
GREATEST_ANGLE = 1e4  # rad, of joints whose full turns count; single precision is off by 5e-4 rad there
READ = {  # the children of an element that are read here; what lies below others may be anything
    "robot": ("link", "joint"),
    "link": ("collision", "inertial"),
    "joint": ("parent", "child", "origin", "axis", "limit", "mimic", "safety_controller"),
}
PASSED_OVER = "elements have names that nothing reads; they are passed over"
MISSPELT = 0.75  # likeness of an element's name to one of these, as difflib counts it


class JointType(NamedTuple):
    """What the planner does with a type of joint.

    plannable: it turns about or slides along its axis; slides: the latter; limited: within its <limit>
    loose: it moves in a plane or in space, and is allowed only where no planning joint is above or below it
    """

    plannable: bool = False
    slides: bool = False
    limited: bool = False
    loose: bool = False


JOINT_TYPES = {
    "revolute": JointType(plannable=True, limited=True),
    "continuous": JointType(plannable=True),
    "prismatic": JointType(plannable=True, slides=True, limited=True),
    "fixed": JointType(),
    "floating": JointType(loose=True),
    "planar": JointType(loose=True),
}
PLANNABLE = tuple(name for name, kind in JOINT_TYPES.items() if kind.plannable)
# attributes of the collision geometries and how many numbers each holds; a mesh names a file besides
GEOMETRIES = {
    "box": {"size": 3},
    "cylinder": {"radius": 1, "length": 1},
    "capsule": {"radius": 1, "length": 1},
    "sphere": {"radius": 1},
    "mesh": {"scale": 3},
}


@dataclass(frozen=True)
class Collision:
    """One collision element.

    kind: of GEOMETRIES; size: the numbers of its attributes, metres; filename: of a mesh
    """

    kind: str
    T_link_collision: np.ndarray
    size: np.ndarray
    filename: str = ""


@dataclass(frozen=True)
class Inertial:
    """What a link weighs. J: (4, 4) as in `robot.inertia`, in the link's frame; fault: what is wrong with it, or ""."""

    J: np.ndarray
    fault: str = ""


@dataclass(frozen=True)
class Joint:
    """One joint.

    type: of JOINT_TYPES
    T_parent_joint: (4, 4) pose of the joint in the parent link's frame, metres; axis: (3,) unit vector in the joint's
    limits: (lower, upper) of <limit>, rad or m, None where the URDF gives none, or none that can be used
    velocity, acceleration: per s, per s^2, without their signs as MoveIt reads them; 0 where the URDF gives none;
        acceleration: the smaller one of URDF 1.2's acceleration and deceleration
    mimic: (joint, multiplier, offset) or None; that joint mimics no other, whatever the chain in the file
    held: why it is never planned, such as limits that leave it no room; "" where it may be
    fault: what is wrong with it, an error where it is planned; ""
    effort: N m or N, without its sign; 0 where the URDF gives none, or none that is a number
    soft: (lower, upper) of <safety_controller> as far as they are within `limits`, None where it gives none that count
    """

    name: str
    type: str
    parent: str
    child: str
    T_parent_joint: np.ndarray
    axis: np.ndarray
    limits: tuple[float, float] | None
    velocity: float
    acceleration: float
    mimic: tuple[str, float, float] | None
    held: str = ""
    fault: str = ""
    effort: float = 0.0
    soft: tuple[float, float] | None = None

    @property
    def kind(self) -> JointType:
        return JOINT_TYPES[self.type]

    @property
    def range(self) -> tuple[float, float]:
        """(lower, upper) of its value, rad or m: infinite without limits, 0 where it does not move along one axis."""
        if not self.kind.plannable:
            return 0.0, 0.0
        return self.limits if self.kind.limited and self.limits else (-np.inf, np.inf)

    @property
    def planned_range(self) -> tuple[float, float]:
        """`range` within the soft limits: where a plan may take it."""
        return self.soft or self.range


@dataclass(frozen=True)
class Description:
    """A checked URDF: links {name: collisions}, joints {name: Joint} parents before children, depth first.

    only_seen: names of links with a visual and without a collision element
    inertials: {name: Inertial} of the links that have one
    notes: what was passed over
    """

    name: str
    root: str
    links: dict[str, tuple[Collision, ...]]
    joints: dict[str, Joint]
    only_seen: tuple[str, ...]
    inertials: dict[str, Inertial]
    notes: tuple[Note, ...] = ()


def read_urdf(text: str) -> Description:
    """Raises RobotDescriptionError that names the element."""
    root = parse_xml(text, "URDF")
    notes = [*_unread_elements(root, "the root")]
    for path in ("link", "joint", "link/collision"):
        if (count := len(root.findall(path))) > MOST_ELEMENTS:
            raise RobotDescriptionError(f"the URDF has {count} elements {path}; allowed: {MOST_ELEMENTS}")
    links, joints, only_seen, inertials = {}, {}, [], {}
    for element in root.findall("link"):
        name = required(element, "name", "a <link>")
        if name in links:
            raise RobotDescriptionError(f"link '{name}' is defined twice")
        links[name] = tuple(_read_collision(child, f"link '{name}'", notes) for child in element.findall("collision"))
        if not links[name] and element.find("visual") is not None:
            only_seen.append(name)
        if (inertial := element.find("inertial")) is not None:
            inertials[name] = _read_inertial(inertial)
    for element in root.findall("joint"):
        joint = _read_joint(element, notes)
        if joint.name in joints:
            raise RobotDescriptionError(f"joint '{joint.name}' is defined twice")
        joints[joint.name] = joint
    if not links:
        raise RobotDescriptionError("the URDF has no link")
    root_link, ordered = _order_tree(links, joints)
    joints = with_mimic_leaders(ordered)
    return Description(root.get("name", "robot"), root_link, links, joints, tuple(only_seen), inertials, tuple(notes))


def _unread_elements(element, place):
    """Notes about elements that are passed over and may have been meant: macros that xacro left where nothing is read,
    and misspelt names. A macro where something is read is an error."""
    for child in element.iterchildren(etree.Element):
        if unexpanded(child) or child.tag == "collision":
            refuse_xacro(child, "URDF")
        elif child.tag in READ[element.tag]:
            if child.tag in READ:
                yield from _unread_elements(child, f"{child.tag} '{child.get('name')}'")
            continue
        else:
            for tag in filter(None, map(unexpanded, child.iter(etree.Element))):
                yield Note("xacro left elements where nothing is read; they are passed over", f"<{tag}> in {place}")
            meant = nearest(child.tag.lower(), READ[element.tag], MISSPELT)
            if meant and abs(len(meant) - len(child.tag)) < 3:
                told = f"<{child.tag}> in {place} (nearest: <{meant}>)"
                yield Note(PASSED_OVER, told)


def read_origin(element: etree._Element, what: str) -> np.ndarray:
    """(4, 4) of the element's <origin>; the identity when it has none."""
    origin = element.find("origin")
    if origin is None:
        return np.eye(4)
    position = numbers(origin.get("xyz", "0 0 0"), 3, f"{what}, <origin xyz>", GREATEST_LENGTH)
    if (quaternion := origin.get("quat_xyzw")) is not None:  # since URDF 1.1
        if origin.get("rpy") is not None:
            raise RobotDescriptionError(f"{what}, <origin>: give either rpy or quat_xyzw, not both")
        if element.getroottree().getroot().get("version", "1.0") == "1.0":
            raise RobotDescriptionError(f'{what}, <origin quat_xyzw> needs <robot version="1.1">: else ROS skips it')
        from scipy.spatial.transform import Rotation

        q = numbers(quaternion, 4, f"{what}, <origin quat_xyzw>", 1e6)
        if np.abs(q).max() < 1e-6:
            raise RobotDescriptionError(f"{what}, <origin quat_xyzw>: the quaternion is zero")
        return transform(Rotation.from_quat(q).as_matrix(), position)
    x, y, z = numbers(origin.get("rpy", "0 0 0"), 3, f"{what}, <origin rpy>")
    about = [rotation_about(axis, angle) for axis, angle in zip(np.eye(3), (x, y, z))]
    return transform(about[2] @ about[1] @ about[0], position)


def _read_inertial(element):
    """What cannot be read weighs nothing; what no body has, but is made of numbers, stays as the file has it."""
    try:
        mass, inertia = element.find("mass"), element.find("inertia")
        if mass is None:
            raise RobotDescriptionError("it has no <mass>")
        mass = numbers(required(mass, "value", "<mass>"), 1, "<mass value>", GREATEST_MASS)[0]
        moments = {
            key: numbers("0" if inertia is None else inertia.get(key, "0"), 1, f"<inertia {key}>", GREATEST_MASS)[0]
            for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        }
        xx, xy, xz, yy, yz, zz = moments.values()
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        T_link_inertial = read_origin(element, "<inertial>")
    except RobotDescriptionError as error:
        return Inertial(np.zeros((4, 4)), f"{error}; it counts as without mass")
    if mass < 0:
        return Inertial(np.zeros((4, 4)), f"{fault_of(mass, inertia)}; it counts as without mass")
    fault = fault_of(mass, inertia)
    return Inertial(pseudo_inertia(mass, inertia, T_link_inertial), f"{fault}; it is used as it is" if fault else "")


def _read_collision(element, what, notes):
    geometry = element.find("geometry")
    children = [] if geometry is None else list(geometry)
    shapes = [child for child in children if child.tag in GEOMETRIES]
    if len(shapes) != 1:
        found = ", ".join(f"<{child.tag}>" for child in children) or "nothing"
        known = ", ".join(f"<{kind}>" for kind in GEOMETRIES)
        raise RobotDescriptionError(f"{what}: a collision geometry is one of {known}, got {found}")
    shape = shapes[0]
    notes += [Note(PASSED_OVER, f"<{child.tag}> in the geometry of {what}") for child in children if child is not shape]
    what_shape = f"{what}, collision <{shape.tag}>"
    if shape.tag == "mesh":
        filename, scale = required(shape, "filename", what_shape), shape.get("scale", "1 1 1")
        count = 1 if len(scale.split()) == 1 else 3
        size = np.broadcast_to(numbers(scale, count, f"{what_shape} scale", GREATEST_LENGTH), 3)
        bad = (size == 0).any()
    else:
        parts = [
            numbers(required(shape, key, what_shape), count, f"{what_shape} {key}", GREATEST_LENGTH)
            for key, count in GEOMETRIES[shape.tag].items()
        ]
        filename, size = "", np.concatenate(parts)
        bad = (size < 0).any()
    if bad:
        raise RobotDescriptionError(f"{what_shape}: sizes must be 0 or more (scales not 0), got {size.tolist()}")
    if shape.tag != "mesh" and (size < LEAST_SIZE).any():
        notes.append(Note(f"collision geometries have a size of 0; they are {LEAST_SIZE:g} m thick", what_shape))
        size = np.maximum(size, LEAST_SIZE)
    return Collision(shape.tag, read_origin(element, f"{what}, collision"), size, filename)


def _read_joint(element, notes):
    name = required(element, "name", "a <joint>")
    what = f"joint '{name}'"
    if element.get("type") not in JOINT_TYPES:
        given = shown(element.get("type"))
        raise RobotDescriptionError(f"{what}: unknown type {given}; known types: {', '.join(JOINT_TYPES)}")
    kind = JOINT_TYPES[element.get("type")]
    ends = []
    for tag in ("parent", "child"):
        end = element.find(tag)
        if end is None:
            raise RobotDescriptionError(f"{what} has no <{tag}>")
        ends.append(required(end, "link", f"{what}, <{tag}>"))
    axis, fault = np.array([1.0, 0, 0]), ""
    if kind.plannable and element.find("axis") is not None:
        axis = numbers(element.find("axis").get("xyz", "1 0 0"), 3, f"{what}, <axis xyz>")
        if np.abs(axis).max() < 1e-9:
            axis, fault = np.zeros(3), "the <axis> is zero"
        else:
            axis = axis / np.abs(axis).max()  # first, so that no square overflows
            axis = axis / np.linalg.norm(axis)
    limits, velocity, acceleration, wrong = _read_limit(element.find("limit"), kind)
    mimic = element.find("mimic") if kind.plannable else None
    if mimic is not None:
        leader, texts = required(mimic, "joint", f"{what}, <mimic>"), {"multiplier": "1", "offset": "0"}
        factors = (numbers(mimic.get(key, text), 1, f"{what}, <mimic {key}>") for key, text in texts.items())
        mimic = (leader, *(float(factor[0]) for factor in factors))
    joint_type, held, soft = element.get("type"), "", None
    if limits and kind.limited and not mimic:
        if limits[0] < limits[1]:
            soft, wrong = read_soft_limits(element.find("safety_controller"), what, limits, notes)
        most = GREATEST_LENGTH if kind.slides else GREATEST_ANGLE
        if soft and max(map(abs, limits)) > most:
            limits = soft  # the others say nothing
        lower, upper = limits
        if lower == upper:
            held = f"its limits are {lower:g} and {upper:g}"
        elif kind.slides and lower < -GREATEST_LENGTH and upper > GREATEST_LENGTH:
            held = f"it slides without end, its limits are {lower:g} and {upper:g}"
        elif not kind.slides and lower < -GREATEST_ANGLE and upper > GREATEST_ANGLE:
            notes.append(Note(f"joints have limits beyond +-{GREATEST_ANGLE:g} rad; they turn without end", what))
            joint_type, limits = "continuous", None
    origin = read_origin(element, what)
    fault = fault or ("" if mimic else wrong)  # limits of followers do not count
    effort = _read_effort(element.find("limit"))
    return Joint(
        name, joint_type, *ends, origin, axis, limits, velocity, acceleration, mimic, held, fault, effort, soft
    )


def _read_effort(element):
    """0 without one. Only torque limits need it, so that a malformed one is no fault."""
    try:
        effort = abs(float("0" if element is None else element.get("effort", "0")))
    except ValueError:
        return 0.0
    return effort if effort < np.inf else 0.0


def _read_limit(element, kind):
    """((lower, upper) or None, velocity, acceleration; 0 without one; what is wrong, "")."""
    if element is None or not (kind.plannable or kind.loose):
        return None, 0.0, 0.0, ""
    values = {}
    for key in ("lower", "upper", "velocity", "acceleration", "deceleration"):
        text = element.get(key)
        try:
            values[key] = None if text is None else float(text)
        except ValueError:
            values[key] = np.nan
        if values[key] is not None and np.isnan(values[key]):
            return None, 0.0, 0.0, f"limit {key}={shown(text)} is not a number"
    lower, upper = values["lower"] or 0.0, values["upper"] or 0.0  # the URDF's default is 0
    reach = [abs(values[key]) for key in ("acceleration", "deceleration") if values[key]]
    speeds = abs(values["velocity"] or 0.0), min(reach, default=0.0)
    if kind.limited and lower > upper:
        return None, *speeds, f"the lower limit {lower:g} is above the upper limit {upper:g}"
    return (lower, upper), *speeds, ""


def _order_tree(links, joints):
    """Root link and the joints, parents before children, depth first in the order of the file."""
    parent_joint, below = {}, {link: [] for link in links}
    for joint in joints.values():
        for link in (joint.parent, joint.child):
            if link not in links:
                raise RobotDescriptionError(f"joint '{joint.name}' names the link '{link}', which is not defined")
        if joint.child in parent_joint:
            raise RobotDescriptionError(
                f"link '{joint.child}' is the child of two joints, "
                f"'{parent_joint[joint.child]}' and '{joint.name}': not a tree"
            )
        parent_joint[joint.child] = joint.name
        below[joint.parent].append(joint)
    roots = [link for link in links if link not in parent_joint]
    if len(roots) > 1:
        raise RobotDescriptionError(f"the URDF has several root links, one is allowed: {', '.join(roots)}")
    ordered, stack = {}, [joint for root in roots for joint in reversed(below[root])]
    while stack:
        joint = stack.pop()
        ordered[joint.name] = joint
        stack += reversed(below[joint.child])
    if len(ordered) < len(joints):
        cycle = [name for name in joints if name not in ordered]
        raise RobotDescriptionError(f"the URDF's joints form a cycle, not a tree: {', '.join(cycle)}")
    return roots[0], ordered


def with_mimic_leaders(joints):
    """{name: Joint} where each mimic names the joint at the end of its chain, multipliers and offsets combined.

    A joint that mimics itself, or what is no joint that moves along one axis, is held.
    """
    for joint in joints.values():
        if joint.mimic and (leader := joint.mimic[0]) not in joints:
            joints |= {joint.name: replace(joint, mimic=None, held=f"it mimics '{leader}', which is not defined")}
    while True:
        leaders = {name: [joint.mimic[0]] if joint.mimic else [] for name, joint in joints.items()}
        try:
            order = list(TopologicalSorter(leaders).static_order())
            break
        except CycleError as error:
            circle = error.args[1][::-1]
        held = f"it mimics itself: {shortened(' -> '.join(circle))}"
        joints |= {name: replace(joints[name], mimic=None, held=held) for name in circle}
    resolved: dict[str, Joint] = {}
    for name in order:  # leaders first
        joint = joints[name]
        if joint.mimic:
            name_of_leader, multiplier, offset = joint.mimic
            leader = resolved[name_of_leader]
            if leader.kind.loose:
                resolved[name] = replace(joint, mimic=None, held=f"it mimics '{leader.name}', which is {leader.type}")
                continue
            if leader.mimic:
                offset, multiplier = multiplier * leader.mimic[2] + offset, multiplier * leader.mimic[1]
            if not np.isfinite([multiplier, offset]).all():
                raise RobotDescriptionError(
                    f"joint '{name}': the multipliers along its chain of mimics grow beyond all numbers"
                )
            joint = replace(joint, mimic=(leader.mimic[0] if leader.mimic else leader.name, multiplier, offset))
        resolved[name] = joint
    return {name: resolved[name] for name in joints}
