"""The robot and its surroundings, from the arguments that `plan` and `view` share."""

import argparse
import fnmatch
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..arm import CollisionWorld, RobotModel, load_urdf
from ..arm.collision.scene_file import fixed_frames, load_scene
from ..arm.urdf.urdf_xml import read_urdf
from ..arm.urdf.xml_text import read_xml_file
from ..errors import shown
from ..share import example_robots_share
from .errors import InputError

PAIR = re.compile(r"([^=]+)=(.*)")


def load_robot(options: argparse.Namespace, self_collisions: bool = True) -> RobotModel:
    if options.group and options.joints:
        raise InputError("give --group or --joints, not both")
    return load_urdf(
        options.urdf,
        options.srdf,
        package_dirs=package_dirs(options),
        joints=joints_like(options.urdf, options.joints) if options.joints else None,
        group=options.group,
        fixed=pairs(options.fix, "--fix"),
        self_collisions=self_collisions,
        limits=getattr(options, "limits", None),
    )


def package_dirs(options: argparse.Namespace) -> list:
    """The folders of --package-dirs, and example-robot-data's where its own robots are asked for."""
    folders = list(options.package_dirs)
    try:
        share = example_robots_share()
    except FileNotFoundError:
        return folders
    return [*folders, share] if share in Path(options.urdf).resolve().parents else folders


def load_world(options: argparse.Namespace, robot: RobotModel) -> CollisionWorld:
    return load_scene(options.scene, fixed_frames(robot)) if options.scene else CollisionWorld()


def tip_of(options: argparse.Namespace, robot: RobotModel) -> str:
    if options.tip is None:
        return robot.tip_link
    robot.link_index(options.tip)
    return options.tip


def joints_like(urdf: str, patterns: Sequence[str]) -> list[str]:
    """Names of the joints that move and fit one of the patterns, in the order of the tree."""
    joints = read_urdf(read_xml_file(urdf, "URDF").lstrip()).joints.values()
    movable = [joint.name for joint in joints if joint.kind.plannable and not joint.mimic and not joint.held]
    words = [word for pattern in patterns for word in pattern.split(",") if word]
    for word in words:
        if not fnmatch.filter(movable, word):
            raise InputError(f"--joints '{word}' fits no joint; those that move are {', '.join(movable)}")
    return [name for name in movable if any(fnmatch.fnmatchcase(name, word) for word in words)]


def pairs(words: Sequence[str], what: str) -> dict[str, float]:
    """{name: number} of texts "name=number"."""
    found = {}
    for word in filter(None, ",".join(words).split(",")):
        match = PAIR.fullmatch(word)
        if match is None:
            raise InputError(f"{what}: '{word}' is no NAME=VALUE")
        found[match[1].strip()] = number(match[2], f"{what} {match[1]}")
    return found


def number(text: object, what: str) -> float:
    try:
        value = float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what} is {shown(text)}; allowed: a number") from None
    if not math.isfinite(value):
        raise InputError(f"{what} is {value}; allowed: a finite number")
    return value


def configuration(robot: RobotModel, given: object, what: str) -> np.ndarray:
    """(dof,) joint values, rad or m, from a list of numbers or of texts, a mapping {joint: number}, or the name of a
    state of the SRDF."""
    if isinstance(given, str):
        given = [given]
    if isinstance(given, (list, tuple)):
        parts = (word.split(",") if isinstance(word, str) else [word] for word in given)
        words = [word for several in parts for word in several if word != ""]
        texts = [word for word in words if isinstance(word, str)]
        alone = texts[0] if len(texts) == len(words) == 1 else None
        if alone in robot.named_states:
            return robot.named_states[alone].astype(float)
        is_text = alone is not None and not is_number(alone)
        if any(map(PAIR.fullmatch, texts)):
            given = pairs(texts, what)
        elif is_text or len(words) != robot.dof:
            told = f"is '{alone}'" if is_text else f"has {len(words)} values"
            raise InputError(f"{what} {told}; allowed: {_allowed(robot)}")
        else:
            given = dict(zip(robot.joint_names, words))
    if not isinstance(given, dict):
        raise InputError(f"{what} is '{given}'; allowed: {_allowed(robot)}")
    unknown = [str(name) for name in given if name not in robot.joint_names]
    missing = [name for name in robot.joint_names if name not in given]
    if unknown or missing:
        told = f"names unknown joints {', '.join(unknown)}" if unknown else f"lacks {', '.join(missing)}"
        raise InputError(f"{what} {told}; planned are {', '.join(robot.joint_names)}")
    return np.array([number(given[name], f"{what}, {name}") for name in robot.joint_names])


def is_number(text: str) -> bool:
    """Does float() take it?"""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _allowed(robot):
    states = f", or a state of the SRDF: {', '.join(robot.named_states)}" if robot.named_states else ""
    return f"{robot.dof} values ({', '.join(robot.joint_names)}){states}"
