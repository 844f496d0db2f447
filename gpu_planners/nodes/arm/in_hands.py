"""Objects that several links hold: what motions keep so that none is torn from a hand, and what tears them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...arm import RobotModel
from ...arm.constraints import Constraint, RelativePose, all_of, pose_between
from ...arm.control.spline import Spline
from ...arm.robot.modified_dh import path_to_root
from ...errors import ObstacleError, shortened
from .scene_objects import CarriedObject, SceneObjects, Source

PLANNER = "rrt_connect"  # that keeps constraints
PLAYED = 1.5  # times the tolerance that may be looked at between the points of a motion that was planned to keep it


class Grip(NamedTuple):
    """A carried object, another link that holds it, and the planning joints that move the carrying link alone, and the
    other one alone."""

    one: CarriedObject
    other: str
    own: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"'{self.one.name}' is held by '{self.one.link}' and '{self.other}'"


def grips(objects: SceneObjects, robot: RobotModel) -> list[Grip]:
    """All that joints of a robot could tear apart.

    MoveIt's messages do not say who holds an object. There a touch link does that planning joints move as they do the
    link that carries it, each by joints of its own, as the other hand of a group of both arms.
    """
    found = []
    for one in objects.carried.values():
        told = [_grip(one, link, robot) for link in one.held_by]
        found += [grip for grip in told if grip.own or grip.others]
        if one.source is Source.MOVEIT and not told:
            touching = [_grip(one, link, robot) for link in one.touch_links if link in robot.link_names]
            hands = [grip for grip in touching if grip.own and grip.others]
            found += sorted(hands, key=lambda grip: len(grip.others))[-1:]
    return found


def _grip(one, other, robot):
    first, second = (set(_path(robot, link)) for link in (one.link, other))
    return Grip(one, other, _joints(robot, first - second), _joints(robot, second - first))


def _joints(robot, frames):
    moved = set(robot.frames["joint"][list(frames)])
    return tuple(name for joint, name in enumerate(robot.joint_names) if joint in moved)


def _path(robot, link):
    return path_to_root(robot.frames, int(robot.link_frame[robot.link_index(link)]))


def torn(objects: SceneObjects, robot: RobotModel) -> str:
    """Which carried object a robot's planning joints would tear from a hand that they cannot move along, as a text; ""
    where there is none."""
    for grip in grips(objects, robot):
        if not grip.own or not grip.others:
            names = shortened(", ".join(grip.own or grip.others))
            return (
                f"{grip.text}, which {names} move relative to each other, and no joint that is planned moves the other "
                "hand along: plan a group of both arms, or have one let it go"
            )
    return ""


class InHands(NamedTuple):
    """What motions of a query keep so that objects stay in all hands: nothing where there are no rules."""

    rules: tuple[RelativePose, ...] = ()

    def beside(self, rule: Constraint | None) -> Constraint | None:
        """All that is kept, with what a request asks for."""
        rules = [*self.rules, *([] if rule is None else [rule])]
        return all_of(rules) if rules else None

    def closed(self, q: np.ndarray, links: Sequence[str], checker: Any) -> np.ndarray:
        """(K, dof) configurations that keep the rules, of (N, dof) that have links where they should be.

        checker: whatever has `configurations_valid(q)`
        """
        for rule in self.rules:
            placed = {int(rule.robot.link_frame[rule.robot.link_index(link)]) for link in links}
            ends = [int(rule.robot.link_frame[rule.robot.link_index(link)]) for link in (rule.link, rule.other)]
            if ends[0] in placed or ends[1] in placed:
                q = rule.closed(q, held=rule.link if ends[0] in placed else rule.other)
        if len(q) and self.rules:
            q = q[np.asarray(all_of(self.rules).satisfied(q))]
        return q[np.asarray(checker.configurations_valid(q))] if len(q) else q


def in_hands(objects: SceneObjects, robot: RobotModel, start: np.ndarray, values: Any, wider: float = 1.0) -> InHands:
    """What motions from a start (dof,) keep. ObstacleError, which names the object, where one would be torn.

    values: ArmParameters; wider: times its tolerances
    """
    if text := torn(objects, robot):
        raise ObstacleError(text)
    tolerances = wider * values.hands_position, wider * values.hands_rotation
    links = dict.fromkeys((grip.one.link, grip.other) for grip in grips(objects, robot))
    return InHands(tuple(RelativePose(robot, *pair, pose_between(robot, start, *pair), *tolerances) for pair in links))


def refuse(objects: SceneObjects, robot: RobotModel, what: str) -> None:
    """ObstacleError where something is in several hands, for a kind of motion that does not keep it there."""
    for grip in grips(objects, robot):
        text = f"{torn(objects, robot) or grip.text}, and {what} keeps no object in two hands"
        raise ObstacleError(f"{text}; allowed: a motion of '{PLANNER}', or have one hand let it go")


def torn_by(curve: Spline, phase: float, objects: SceneObjects, checker: Any, values: Any) -> str:
    """What the rest of a motion, after `phase` seconds, tears from a hand, as a text; "" where it keeps all."""
    robot = checker.robot
    if text := torn(objects, robot):
        return text
    held = in_hands(objects, robot, curve.at(np.array([curve.start])).positions[0], values, PLAYED)
    path = curve.remaining_path(phase)
    for rule in held.rules:
        if not rule.kept(path[:-1], path[1:]).all():
            pair = rule.link, rule.other
            texts = [grip.text for grip in grips(objects, robot) if (grip.one.link, grip.other) == pair]
            return f"{texts[0]}, whose pose to each other the motion does not keep"
    return ""
