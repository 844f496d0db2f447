"""SRDF text -> groups of joints, disabled pairs of links, named states."""

from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from ...errors import RobotDescriptionError, shortened, shown
from ..robot.model import VirtualJoint
from .notes import Note
from .srdf_notes import odd_states, unknown_names
from .urdf_xml import MOST_ELEMENTS, Description
from .xml_text import numbers, parse_xml, refuse_xacro

VIRTUAL_TYPES = "fixed", "planar", "floating"


class EndEffector(NamedTuple):
    """A gripper. group: of its joints; parent_link: that it hangs on; parent_group: of the arm, or "" """

    name: str
    group: str
    parent_link: str
    parent_group: str


@dataclass(frozen=True)
class Semantics:
    """What an SRDF says about a robot.

    groups: {group: names of the joints that move it}, in the tree's order, followers and passive joints left out
    broken: {group: why it cannot be planned}: it names what the URDF does not have, or a joint of SRDF's own
    tips: {group: tip link} of the groups that are given as one chain
    disabled: {frozenset({link, link}): reason}; None when the SRDF speaks of no pair at all
    states: {state: {joint: value}}, rad or m, of all groups; group_states: {(group, state): {joint: value}}
    virtual_joints, end_effectors: in the file's order
    passive: names of joints that no motor moves
    notes: statements that refer to nothing
    """

    groups: dict[str, tuple[str, ...]]
    broken: dict[str, str]
    tips: dict[str, str]
    disabled: dict[frozenset, str] | None
    states: dict[str, dict[str, float]]
    virtual_joints: tuple[VirtualJoint, ...] = ()
    end_effectors: tuple[EndEffector, ...] = ()
    passive: frozenset[str] = frozenset()
    group_states: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    def joints_of(self, group: str) -> tuple[str, ...]:
        """Names of the joints that move a group; RobotDescriptionError where it is not there or broken."""
        if group in self.broken:
            raise RobotDescriptionError(f"{self.broken[group]}; plan another group, or joints by their names")
        if group not in self.groups:
            known = shortened(", ".join([*self.groups, *self.broken])) or "none"
            there = "no SRDF was given" if self is NO_SRDF else f"its groups: {known}"
            raise RobotDescriptionError(f"the SRDF has no group {shown(group)} ({there})")
        return self.groups[group]


NO_SRDF = Semantics({}, {}, {}, None, {})


def read_srdf(text: str, description: Description) -> Semantics:
    """Semantics of an SRDF for the URDF's Description.

    One SRDF may serve several variants of a robot, so a group with unknown links or joints is an error only where it
    is planned.
    """
    root = parse_xml(text, "SRDF")
    refuse_xacro(root, "SRDF")
    elements = {}
    for group in root.findall("group"):
        name = group.get("name")
        if not name:
            raise RobotDescriptionError(f"a <group> of the SRDF in line {group.sourceline} has no name")
        elements[name] = group
    if len(elements) > MOST_ELEMENTS:
        raise RobotDescriptionError(f"the SRDF has {len(elements)} groups; allowed: {MOST_ELEMENTS}")
    passive = frozenset(joint.get("name", "") for joint in root.iter("passive_joint"))
    above = {joint.child: joint for joint in description.joints.values()}
    virtual_joints = _virtual_joints(root)
    virtual = {joint.name: joint.type for joint in virtual_joints}
    members: dict[str, set[str]] = {}
    broken: dict[str, str] = {}
    for name in _subgroups_first(elements):
        try:
            members[name] = _members(elements[name], members, broken, virtual, description, above)
        except RobotDescriptionError as error:
            broken[name] = str(error)
    groups = {
        name: tuple(
            joint.name
            for joint in description.joints.values()
            if joint.name in members[name] and joint.type != "fixed" and not joint.mimic and joint.name not in passive
        )
        for name in elements
        if name in members
    }
    tips = {
        name: group.find("chain").get("tip_link")
        for name, group in elements.items()
        if name in members and [child.tag for child in group] == ["chain"]
    }
    states: dict[str, dict[str, float]] = {}
    group_states: dict[tuple[str, str], dict[str, float]] = {}
    for state in root.iterfind("group_state[@name]"):
        name, values = state.get("name"), {}
        for joint in state.findall("joint"):
            words = (joint.get("value") or "").split()
            if len(words) == 1:  # floating joints have several values and are not planned
                what = f"SRDF state '{name}', joint '{joint.get('name')}'"
                values[joint.get("name")] = numbers(words[0], 1, what)[0]
        states.setdefault(name, {}).update(values)
        group_states.setdefault((state.get("group", ""), name), {}).update(values)
    effectors = tuple(
        EndEffector(*(element.get(key, "") for key in EndEffector._fields)) for element in root.findall("end_effector")
    )
    notes = (*unknown_names(root, description, elements), *odd_states(root, description, groups, broken))
    disabled = _disabled(root, description)
    return Semantics(groups, broken, tips, disabled, states, virtual_joints, effectors, passive, group_states, notes)


def _virtual_joints(root):
    """Those that name what they join; MoveIt, too, leaves out others, and takes an unknown type as fixed."""
    found = []
    for element in root.findall("virtual_joint"):
        name, kind = element.get("name"), element.get("type")
        ends = element.get("parent_frame"), element.get("child_link")
        if name and all(ends):
            found.append(VirtualJoint(name, kind if kind in VIRTUAL_TYPES else "fixed", *ends))
    return tuple(found)


def _disabled(root, description):
    by_default, single = root.findall("disable_default_collisions"), root.findall("disable_collisions")
    disabled = {
        frozenset((link, other)): "SRDF: disabled by default"
        for link in {element.get("link"): None for element in by_default}
        if link in description.links
        for other in description.links
    }
    for element in root.findall("enable_collisions"):
        disabled.pop(_pair(element), None)
    disabled |= {_pair(element): f"SRDF: {element.get('reason') or 'no reason given'}" for element in single}
    known = [pair for pair in disabled if pair <= description.links.keys()]
    return disabled if known else None  # what names other links says nothing of this robot


def _pair(element):
    return frozenset((element.get("link1"), element.get("link2")))


def _subgroups_first(elements):
    """Names of all groups, those that a group names before it; circles are errors."""
    named = {
        name: {child.get("name") for child in group.findall("group")} & elements.keys()
        for name, group in elements.items()
    }
    try:
        return list(TopologicalSorter(named).static_order())
    except CycleError as error:
        circle = error.args[1]
        raise RobotDescriptionError(
            f"the SRDF's group '{circle[0]}' contains itself: {shortened(' in '.join(circle))}"
        ) from error


def _members(element, members, broken, virtual, description, above):
    """Names of all joints of a group: its joints, the joints above its links, its chains and its subgroups'."""
    found, what = set(), f"SRDF group '{element.get('name')}'"
    for child in element:
        if child.tag == "joint":
            joint = child.get("name")
            if joint in description.joints:
                found.add(joint)
            elif virtual.get(joint) != "fixed":
                why = f"is virtual and {virtual[joint]}" if joint in virtual else "the URDF does not have"
                raise RobotDescriptionError(f"{what} names the joint '{joint}', which {why}")
        elif child.tag == "link":
            _known_link(child.get("name"), what, description)
            if child.get("name") in above:
                found.add(above[child.get("name")].name)
        elif child.tag == "chain":
            found |= _chain(child.get("base_link"), child.get("tip_link"), what, description, above)
        elif child.tag == "group":
            subgroup = child.get("name")
            if subgroup not in members:
                why = broken.get(subgroup, f"the SRDF has no group '{subgroup}'")
                raise RobotDescriptionError(f"{what} holds '{subgroup}': {why}")
            found |= members[subgroup]
    return found


def _known_link(link, what, description):
    if link not in description.links:
        raise RobotDescriptionError(f"{what} names the link '{link}', which the URDF does not have")


def _chain(base, tip, what, description, above):
    for link in (base, tip):
        _known_link(link, what, description)
    return _to_root(tip, above) ^ _to_root(base, above)  # the base may be in another branch, as MoveIt has it


def _to_root(link, above):
    """Names of the joints between a link and the root."""
    joints = set()
    while link in above:
        joints.add(above[link].name)
        link = above[link].parent
    return joints
