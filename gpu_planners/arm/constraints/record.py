"""A constraint as compiled code reads it: a float32 and an int32 array, which lie before the scene of a checker.

The ints begin with a RuleHead and a PartRecord for each part; where these say, the floats hold each part's numbers, of
the frame that carries its link (`parts` says what each measures). Before them stands how far float32 may be off.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...parallel.layout import reader
from ...parallel.memory import item  # noqa: F401 - for `reader`
from ...ranges import ROUNDOFF
from ..collision.reach import carrying_levers, joint_ranges, skin
from ..spaces.interface import Packed
from .pair import AttitudePart, PairPart, Part, PlacePart
from .parts import JointPart, PointPart, TiltPart, TurnPart

POINT, TILT, VECTOR, EULER, JOINT, PLACE, ATTITUDE = range(7)  # kinds of parts
WHOLE = 32  # records are so many numbers long, or twice, ...: scenes begin where memory is read in one go
ROUND_UP = 1 + 1e-5  # levers cover their own rounding
BESIDE = 12  # roundings of where a volume is, and of its sides


class RuleHead(NamedTuple):
    """ints, floats: lengths of the record; parts: how many PartRecords follow."""

    ints: int
    floats: int
    parts: int


class PartRecord(NamedTuple):
    """A part's integers.

    kind: POINT, ...; floats: where its numbers begin
    frame: that carries its link; of a JOINT the joint
    number: of a POINT, how many volumes it has; of VECTOR and EULER bits, which of the three angles are limited; of a
        JOINT, does it turn without end? Of PLACE and ATTITUDE the frame of the other link
    extra: of a POINT, where the first of its VolumeRecords lies; of a VECTOR, about which axis alone it may turn as it
        likes, -1: none; of PLACE and ATTITUDE the frame that carries both links, -1: none
    """

    kind: int
    floats: int
    frame: int
    number: int
    extra: int


class VolumeRecord(NamedTuple):
    """planes, rounds: how many it has; floats: where VOLUME numbers begin, then those of the planes and the rounds."""

    planes: int
    rounds: int
    floats: int


HEAD, PART, VOLUME_INTS = (len(record._fields) for record in (RuleHead, PartRecord, VolumeRecord))
# where the numbers of each kind lie, counted from its first one
POINT_LEVERS = 3  # of a POINT, behind the point: the lever of each of the robot's frames, 0 where it does not carry it
TILT_DIRECTION, TILT_TOLERANCE, TILT_MARGIN = 3, 6, 7  # behind the axis
TURN_WANTED, TURN_TOLERANCES, TURN_MARGINS = 9, 18, 21  # behind the rotation of what is constrained in its frame
PLACE_OTHER, PLACE_TOLERANCE, PLACE_LEVERS = 3, 6, 7  # behind the point of the first link; levers as of a POINT
ATTITUDE_OTHER, ATTITUDE_TOLERANCE = 9, 18  # behind the rotation in the first link's frame
JOINT_UPPER, JOINT_CENTRE, JOINT_MARGIN = 1, 2, 3  # behind the lower value
VOLUME_POSE, VOLUME_RADIUS, VOLUME_MARGIN, VOLUME = 0, 12, 13, 14  # radius: negative where no sphere bounds it
read_head, read_part, read_volume = reader(RuleHead), reader(PartRecord), reader(VolumeRecord)


def packed_rule(parts: tuple[Part, ...], origin: np.ndarray) -> Packed:
    """The record of parts. origin: (3,) metres in the root frame, where the coordinates of the robot's scene begin"""
    ints: list[int] = [0, 0, len(parts)] + [0] * PART * len(parts)
    floats: list[float] = []
    for k, part in enumerate(parts):
        kind, frame, number, extra, numbers = _record(part, origin, ints, floats)
        floats.append(_misplaced(part, origin))
        ints[HEAD + PART * k : HEAD + PART * (k + 1)] = PartRecord(kind, len(floats), frame, number, extra)
        floats += numbers
    ints += [0] * (-len(ints) % WHOLE)
    floats += [0.0] * (-len(floats) % WHOLE)
    ints[:2] = len(ints), len(floats)
    return Packed(np.array(floats, dtype=np.float32), np.array(ints, dtype=np.int32))


def _record(part, origin, ints, floats):
    """-> kind, frame, number, extra and numbers of a part; its volumes are added to ints and floats."""
    if isinstance(part, JointPart):
        return JOINT, part.joint, int(part.endless), 0, [part.lower, part.upper, part.centre, part.margin]
    if isinstance(part, PairPart):
        return _pair(part, origin)
    R = part.T_frame_link[:3, :3]
    if isinstance(part, TiltPart):
        return TILT, part.frame, 0, 0, [*R @ part.axis, *part.direction, part.tolerance, part.margin]
    if isinstance(part, TurnPart):
        rotations = *(R @ part.R_link_frame).ravel(), *part.wanted.T.ravel()
        numbers = [*rotations, *np.minimum(part.tolerances, 10), *part.margins]
        bits, cone = sum(1 << int(k) for k in part.limited), -1 if part.cone is None else part.cone
        return EULER if part.euler else VECTOR, part.frame, bits, cone, numbers
    records = []
    for volume in part.volumes:
        records += [len(volume.planes), len(volume.rounds), len(floats)]
        pose, radius = volume.pose, volume.radius if np.isfinite(volume.radius) else -1.0
        floats += [*pose[:3, :3].ravel(), *pose[:3, 3] - origin, radius, volume.margin]
        floats += [*volume.planes.ravel(), *volume.rounds.ravel()]
    extra = len(ints)
    ints += records
    levers = np.zeros(len(part.robot.frames))
    levers[part.chain.frames] = part.chain.levers * ROUND_UP
    point = R @ part.point + part.T_frame_link[:3, 3]
    return POINT, part.frame, len(part.volumes), extra, [*point, *levers]


def _pair(part, origin):
    tips, ends = [chain.tip for chain in part.chains], part.ends
    frames = *tips, part.common
    if isinstance(part, AttitudePart):
        rotations = [T[:3, :3].ravel() for T in ends]
        return ATTITUDE, *frames, [*rotations[0], *rotations[1], part.tolerance, 0.0, 0.0, 0.0]
    first, second = (T[:3, 3] - (origin if tip < 0 else 0.0) for tip, T in zip(tips, ends))
    levers = np.zeros(len(part.robot.frames))
    for chain in part.chains:
        levers[chain.frames] = chain.levers * ROUND_UP
    return PLACE, *frames, [*first, *second, part.tolerance, *levers]


def _misplaced(part, origin):
    """Metres or rad by which what compiled code measures of a part may be off."""
    robot = part.robot
    if isinstance(part, JointPart):
        return ROUNDOFF * 8 * float(np.abs(joint_ranges(robot)[:, part.joint]).max() + 2 * np.pi)
    if isinstance(part, PlacePart):
        return sum(_skin(robot, c.tip, float(np.linalg.norm(T[:3, 3]))) for c, T in zip(part.chains, part.ends))
    if isinstance(part, AttitudePart):
        return sum(_turned(robot, chain.tip) for chain in part.chains)
    if not isinstance(part, PointPart):
        return _turned(robot, part.frame)
    in_frame = part.T_frame_link[:3, :3] @ part.point + part.T_frame_link[:3, 3]
    far = [np.linalg.norm(volume.pose[:3, 3] - origin) + volume.farthest_side for volume in part.volumes]
    return _skin(robot, part.frame, float(np.linalg.norm(in_frame))) + ROUNDOFF * BESIDE * max(far)


def _skin(robot, frame, radius):
    return skin(robot, carrying_levers(robot, frame, radius))


def _turned(robot, frame):
    """Of a direction: a point at a distance of 1 from its frame, whose frames lie on each other."""
    levers = carrying_levers(robot, frame, 0.0)
    turns, nowhere = ~robot.frames["prismatic"][levers.frames], np.zeros(len(levers.frames))
    return skin(robot, replace(levers, farthest=1.0, radius=1.0, lever=turns.astype(float), origins=nowhere))


def work_size(parts: int, dof: int) -> int:
    """How many floats a worker needs to measure, prove and project by so many parts: see `measures`."""
    return (2 * ENDS_X + PER_PART) * parts + (ROWS + 3) * dof


ENDS_X = 5  # numbers that a part measures, of each end of an interval
PER_PART = 3  # its bounds for the whole motion, and what it may exceed
ROWS = 16  # sides that a step of a projection sees to
