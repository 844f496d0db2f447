"""The default tip: the link that a robot's pose goals place.

What the SRDF says of the planned group comes first, then the names that tools' links have by custom, then the SRDF's
end effector, then the shape of the tree: the link that carries a gripper's fingers, or a frame that is fixed to it for
what they grasp, or the last link of the arm.

A gripper's fingers are branches alike that begin at one rigid part, and are shorter than the arm that carries them;
two that slide there, one as the other does; or a branch whose name says so, since one jaw may move and the other be a
part of the hand.
"""

import re
from collections.abc import Iterable, Sequence

import numpy as np

from .srdf_xml import Semantics
from .urdf_xml import Description, Joint

NAMES = (  # of links that pose goals place by custom, best first: whole names, or their ends behind a prefix
    "tool0",
    "tcp|tcp_link|tcp_frame",
    "ee|ee_link|ee_frame|eef|eef_link|end_effector|end_effector_link",
)
GRASP = "tool|tool_frame|tool_link|grasp|grasp_link|grasp_frame|grasp_center|grasping_frame"  # between fingers
FINGER = re.compile("finger|thumb|knuckle|jaw|claw", re.IGNORECASE)
GRIPPER = re.compile("gripper", re.IGNORECASE)  # a wrist's joint may be called so, too, but no joint hangs on a jaw
SENSOR = re.compile(
    r"camera|optical|lidar|laser|aruco|realsense|kinect|(^|[^a-z])(cam|imu|zed|marker)\d*([^a-z]|$)", re.IGNORECASE
)
MOST_FINGER_JOINTS = 10  # one behind the other; where each phalanx has rods, it has followers
LEAST_ARM_JOINTS = 2  # that carry a gripper
LONGEST_FINGER = 0.5  # of the length of the arm that carries it


def default_tip(
    description: Description, semantics: Semantics, group: str | None, names: Sequence[str]
) -> tuple[str, str]:
    """(link, why it is that one).

    group: of the SRDF, where one was asked for; names: of the planning joints
    """
    for chain in [group] if group else semantics.groups:
        moving = [name for name in semantics.groups[chain] if not description.joints[name].held]
        if chain in semantics.tips and set(moving) == set(names):
            return semantics.tips[chain], f"the SRDF's group '{chain}' is a chain that ends there"
    tree = _Tree(description)
    fingers = tree.fingers(semantics)
    arm = [name for name in names if name not in fingers] or names
    ends = tree.ends(arm)
    rigid = [tree.rigid_links(joint.child) for joint in ends]
    for pattern in NAMES:
        if link := _named([link for links in rigid for link in links], pattern):
            return link, "its name is that of a tool's link"
    for effector in semantics.end_effectors:
        of_group = group is None or effector.parent_group in ("", group)
        if of_group and any(effector.parent_link in links for links in rigid):
            return effector.parent_link, f"the SRDF's end effector '{effector.name}' hangs on it"
    for links in rigid if arm is not names or fingers.isdisjoint(names) else []:
        carried = [joint for link in links for joint in tree.below[link] if joint.name in fingers]
        if carried:
            told = ", ".join(f"'{joint.name}'" for joint in carried[:3])
            palm, moved = tree.common_link(carried), f"a gripper, which {told} move{'s' * (len(carried) == 1)}"
            if grasp := _named(tree.rigid_links(palm), GRASP):
                return grasp, f"its name is that of a frame for {moved}"
            return palm, f"it carries {moved}"
    return tree.last_link(ends[0].child), f"it is the last link that fixed joints join to joint '{ends[0].name}'"


def _named(links, pattern):
    """The first link whose name, or its end behind a prefix, is one of a pattern's; "" where none is."""
    fits = re.compile(rf"(.*[^a-z0-9])?({pattern})", re.IGNORECASE)
    return next(filter(fits.fullmatch, links), "")


class _Tree:
    """A robot's tree, as far as its tip needs it. Of each link:

    below, above: the joints that begin there, and the joint that moves it
    part: the first link of the rigid part that it belongs to
    depth, height: joints that move above it, and the most of them below it, one behind the other
    length, reach: metres from the root along the joints, as far as they slide; and the most of what is below it
    """

    def __init__(self, description: Description) -> None:
        self.joints = description.joints
        self.below: dict[str, list[Joint]] = {link: [] for link in description.links}
        self.above = {joint.child: joint for joint in self.joints.values()}
        self.part = {link: link for link in self.below}
        self.depth, self.height = dict.fromkeys(self.below, 0), dict.fromkeys(self.below, 0)
        self.length = dict.fromkeys(self.below, 0.0)
        for joint in self.joints.values():  # parents first
            self.below[joint.parent].append(joint)
            self.depth[joint.child] = self.depth[joint.parent] + joint.kind.plannable
            self.length[joint.child] = self.length[joint.parent] + self._length(joint)
            if joint.type == "fixed":
                self.part[joint.child] = self.part[joint.parent]
        self.reach = self.length.copy()
        for joint in reversed(self.joints.values()):
            parent, joints = joint.parent, self.height[joint.child] + joint.kind.plannable
            self.height[parent] = max(self.height[parent], joints)
            self.reach[parent] = max(self.reach[parent], self.reach[joint.child])

    def _length(self, joint):
        """Metres from a joint's parent to its child, and as far as it slides."""
        leader, multiplier, _ = joint.mimic or (joint.name, 1.0, 0.0)
        stroke = abs(multiplier) * np.ptp(self.joints[leader].range) if joint.kind.slides else 0.0
        return float(np.linalg.norm(joint.T_parent_joint[:3, 3])) + (stroke if np.isfinite(stroke) else 0.0)

    def fingers(self, semantics: Semantics) -> set[str]:
        """Names of all joints of grippers."""
        tops = {
            name
            for effector in semantics.end_effectors
            for name in semantics.groups.get(effector.group, ())
            if effector.parent_link in self._way(self.joints[name].parent)  # some name the arm's own group
        }
        carried = [
            joint
            for joint in self.joints.values()
            if joint.kind.plannable and self.depth[joint.parent] >= LEAST_ARM_JOINTS
        ]
        short = [joint for joint in carried if self._short(joint) and not self._is_rod(joint)]
        tops |= {joint.name for joint in short if self._named_so(joint)}
        tops |= {joint.name for joint in short if self._alike([one for one in short if self._beside(one, joint)])}
        for joint in carried:
            leader = self.joints[joint.mimic[0]] if joint.mimic else joint
            if joint is not leader and joint.kind.slides and leader.kind.slides and self._beside(joint, leader):
                tops |= {joint.name, leader.name}
        found: set[str] = set()
        for joint in self.joints.values():
            carrier = self.above.get(joint.parent)
            if joint.name in tops or (carrier and carrier.name in found):
                found.add(joint.name)
        return found

    def _short(self, joint):
        """May it be the first joint of a finger?"""
        before = self.length[joint.parent]
        few = self.height[joint.child] < MOST_FINGER_JOINTS
        return few and self.reach[joint.child] - before <= LONGEST_FINGER * before

    def _is_rod(self, joint):
        """Does it follow a joint that carries it, as a parallel linkage does and no finger?"""
        link = joint.parent
        while joint.mimic and link in self.above:
            if self.above[link].name == joint.mimic[0]:
                return True
            link = self.above[link].parent
        return False

    def _named_so(self, joint):
        if FINGER.search(f"{joint.name} {joint.child}"):
            return True
        return GRIPPER.search(joint.name) and self.height[joint.child] == 0  # not its child: a wrist may turn one

    def _beside(self, one, other):
        return self.part[one.parent] == self.part[other.parent]

    def _alike(self, joints):
        """Are branches, by their first joints, those of a hand: the two tallest equally tall, or three of several
        joints?"""
        heights = sorted((self.height[joint.child] for joint in joints), reverse=True)
        return len(heights) > 1 and (heights[0] == heights[1] or sum(height > 0 for height in heights) > 2)

    def ends(self, names: Sequence[str]) -> list[Joint]:
        """Those of some joints that carry none of the others, first the one that most of them carry."""
        carried, carriers = dict.fromkeys(self.below, 0), set()
        for joint in self.joints.values():
            carried[joint.child] = carried[joint.parent] + (joint.name in names)
        for name in names:
            link = self.joints[name].parent
            while link in self.above:
                carriers.add(self.above[link].name)
                link = self.above[link].parent
        ends = [joint for joint in self.joints.values() if joint.name in names and joint.name not in carriers]
        return sorted(ends, key=lambda joint: -carried[joint.child])

    def rigid_links(self, link: str) -> list[str]:
        """A link, and those that fixed joints join to it, parents first."""
        links = [link]
        for one in links:
            links += [joint.child for joint in self.below[one] if joint.type == "fixed"]
        return links

    def last_link(self, link: str) -> str:
        """The link that most fixed joints join to a link one behind the other; none of a sensor, nor a finger."""
        depth, of_finger = {link: 0}, FINGER.search(link)
        for joint in self.joints.values():
            other = SENSOR.search(joint.child) or (FINGER.search(joint.child) and not of_finger)
            if joint.type == "fixed" and joint.parent in depth and not other:
                depth[joint.child] = depth[joint.parent] + 1
        return max(depth, key=depth.__getitem__)

    def common_link(self, joints: Iterable[Joint]) -> str:
        """The last link that all of some joints hang on."""
        ways = [self._way(joint.parent) for joint in joints]
        return [links[0] for links in zip(*ways) if len(set(links)) == 1][-1]

    def _way(self, link):
        """Links from the root to one."""
        way = [link]
        while way[-1] in self.above:
            way.append(self.above[way[-1]].parent)
        return way[::-1]
