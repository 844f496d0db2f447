"""Statements of an SRDF that refer to nothing: one SRDF may serve several variants of a robot, so they are told, with
the nearest known name, and change nothing."""

from collections.abc import Collection, Iterator
from itertools import chain

from lxml import etree

from .notes import Note, listed, nearest, unknown
from .urdf_xml import MISSPELT, Description

TOP = (  # elements of an SRDF below its root
    "group",
    "group_state",
    "end_effector",
    "virtual_joint",
    "passive_joint",
    "joint_property",
    "disable_collisions",
    "enable_collisions",
    "disable_default_collisions",
    "link_sphere_approximation",
)
MEMBERS = "joint", "link", "chain", "group", "passive_joint"
PAIRS = "disable_collisions", "enable_collisions"
BEYOND = 1e-4  # rad or m beyond a limit that four decimals of pi explain


def unknown_names(root: etree._Element, description: Description, groups: Collection[str]) -> Iterator[Note]:
    """Notes about elements, links, joints and groups that nobody knows. groups: all that the SRDF has"""
    links, joints = description.links, description.joints
    virtual = [element.get("name", "") for element in root.findall("virtual_joint")]
    yield from _elements(root)
    yield from _pairs(root, links)
    single = {
        "disable_default_collisions": ("link", links, "link"),
        "passive_joint": ("name", [*joints, *virtual], "joint"),
        "virtual_joint": ("child_link", links, "link"),
        "joint_property": ("joint_name", [*joints, *virtual], "joint"),
        "link_sphere_approximation": ("link", links, "link"),
        "end_effector": ("parent_link", links, "link"),
    }
    for tag, (key, known, kind) in single.items():
        yield from _named(root.iter(tag), tag, key, known, kind)
    for key in ("group", "parent_group"):
        yield from _named(root.iter("end_effector"), "end_effector", key, groups, "group")
    yield from _named(root.iter("group_state"), "group_state", "group", groups, "group")
    members = {"link": ("name", links), "joint": ("name", [*joints, *virtual]), "group": ("name", groups)}
    for tag, (key, known) in members.items():
        yield from _named(root.iterfind(f"group/{tag}"), "group", key, known, tag)
    for key in ("base_link", "tip_link"):
        yield from _named(root.iterfind("group/chain"), "group", key, links, "link")


def _named(elements, tag, key, known, kind):
    """A note about the names in one attribute of elements that are not known."""
    names = [name for element in elements if (name := element.get(key)) and name not in known]
    if names:
        there = "SRDF" if kind == "group" else "URDF"
        yield Note(f"<{tag}> names a {kind} that the {there} does not have", unknown(names, known))


def _elements(root):
    """A note about elements that are no SRDF's, as far as their names are like such."""
    inside = {"group": MEMBERS, "group_state": ("joint",)}
    known = chain(
        ((child.tag, TOP) for child in root.iterchildren(etree.Element)),
        ((child.tag, tags) for tag, tags in inside.items() for child in root.iterfind(f"{tag}/*")),
    )
    odd = dict.fromkeys((tag, tags) for tag, tags in known if tag not in tags)
    meant = {tag: nearest(tag, tags, MISSPELT) for tag, tags in odd}
    if told := [f"<{tag}> (nearest: <{found}>)" for tag, found in meant.items() if found]:
        yield Note("elements have names that nothing reads; they are passed over", listed(told))


def _pairs(root, links):
    """Notes about pairs of links of which one, or both, are not there."""
    for tag in PAIRS:
        elements = root.findall(tag)
        pairs = [(element.get("link1"), element.get("link2")) for element in elements]
        half = [str(element.sourceline) for element, pair in zip(elements, pairs) if not all(pair)]
        if half:
            yield Note(f"<{tag}> names one link only and counts for nothing", f"line {listed(half)}")
        whole = [pair for pair in pairs if all(pair)]
        odd = [pair for pair in whole if not links.keys() >= set(pair)]
        if odd:
            names = [link for pair in odd for link in pair if link not in links]
            none = ", so that the SRDF leaves out no pair" * (tag == PAIRS[0] and len(odd) == len(whole))
            what = f"{len(odd)} of {len(whole)} <{tag}> name links that the URDF does not have{none}"
            yield Note(what, unknown(names, links))


def odd_states(
    root: etree._Element, description: Description, groups: dict[str, tuple[str, ...]], broken: Collection[str]
) -> Iterator[Note]:
    """Notes about states that name unknown joints, lack some of their group's, or lie beyond limits."""
    joints, virtual = description.joints, {element.get("name") for element in root.findall("virtual_joint")}
    for state in root.findall("group_state"):
        given = {child.get("name", ""): child.get("value", "") for child in state.findall("joint")}
        if not state.get("name"):
            yield Note("states without a name count for nothing", f"line {state.sourceline}")
            continue
        name = f"state '{state.get('name')}'"
        # floating joints have several values; pinocchio's root_joint is in no description
        single = [joint for joint, text in given.items() if len(text.split()) < 2]
        if odd := [joint for joint in single if joint not in joints and joint not in virtual]:
            yield Note("states name joints that the URDF does not have", f"{name}: {unknown(odd, joints)}")
        planned = [joint for joint in groups.get(state.get("group", ""), ()) if not joints[joint].held]
        if lacking := [f"'{joint}'" for joint in planned if joint not in given]:
            what = "states of some joints of their group cannot be starts or goals of it"
            yield Note(what, f"{name} of '{state.get('group')}' lacks {listed(lacking)}")
        values = [(joints[joint], text) for joint, text in given.items() if joint in joints]
        if beyond := [f"'{joint.name}' = {text}" for joint, text in values if _beyond(joint, text)]:
            yield Note("states lie beyond limits", f"{name}: {listed(beyond)}")


def _beyond(joint, text):
    """Is a value beyond the joint's limits?"""
    lower, upper = joint.planned_range
    words = text.split()
    moves = joint.kind.plannable and not joint.mimic and len(words) == 1
    return moves and not lower - BEYOND <= float(words[0]) <= upper + BEYOND
