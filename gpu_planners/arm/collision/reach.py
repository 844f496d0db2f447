"""How far a robot's shapes come, how fast a joint moves them at most, and how far off float32 places them.

All bounds hold for any values of the other joints in `joint_ranges`.
"""

import weakref
from dataclasses import dataclass

import numpy as np

from ...ranges import ROUNDOFF
from ..geometry.kinds import KINDS
from ..geometry.support_table import MISSED
from ..robot.modified_dh import path_to_root

LIMIT_SLACK = 1e-3  # m: how far beyond its limits a prismatic joint may be looked at
TURNS = 2 * np.pi  # rad: joints that turn are looked at up to here, or up to their limits if these are farther away
ROUND_UP = 1 + 1e-5  # a bound on a speed covers its own rounding


@dataclass(frozen=True)
class Levers:
    """How far one shape comes, and what carries it.

    farthest: metres; no point of the shape is ever farther from the root's origin
    radius: metres; none is farther from its frame's origin
    frames: (n,) the frames that carry it, outermost first
    lever: (n,) metres that a point moves at most for a unit of each frame's value (rad or m)
    origins: (n,) greatest distance of each frame's origin from the root's, metres
    based: (n,) bool, does a constant transform come before the frame's row?
    """

    farthest: float
    radius: float
    frames: np.ndarray
    lever: np.ndarray
    origins: np.ndarray
    based: np.ndarray


def joint_ranges(robot):
    """-> (2, dof) lowest and highest value of each joint, rad or m, for which the bounds of this file hold.

    Joints that slide, or that a sliding joint follows: where they may stand, and LIMIT_SLACK. Others: TURNS, or where
    they may stand, if that is farther away.
    """
    slides = np.isin(np.arange(robot.dof), robot.frames["joint"][robot.frames["prismatic"]])
    lower, upper = robot.standing_limits
    turns = np.maximum(TURNS, np.maximum(np.abs(lower), np.abs(upper))) + LIMIT_SLACK
    return np.array([np.where(slides, lower - LIMIT_SLACK, -turns), np.where(slides, upper + LIMIT_SLACK, turns)])


def shape_levers(robot, f, shape):
    """-> Levers of a shape in frame f, or fixed to the root where f < 0."""
    return carrying_levers(robot, f, KINDS[shape.kind].farthest(shape))


def carrying_levers(robot, f, radius):
    """-> Levers of what is within a radius, metres, of the origin of frame f, or of the root's where f < 0."""
    ranges, path = joint_ranges(robot), path_to_root(robot.frames, f)
    from_axis = from_origin = radius
    lever, lengths, based = [], [], []
    for g in path:
        row, base = robot.frames[g], robot.T_parent_base[g]
        along = abs(row["d"])
        if row["prismatic"]:
            along = np.abs(row["multiplier"] * ranges[:, row["joint"]] + row["offset"] + row["d"]).max()
        lever.append(1.0 if row["prismatic"] else from_axis)
        straight = np.allclose(base, np.eye(4), atol=1e-12)
        shift = np.linalg.norm(base[:3, 3])
        across = np.hypot(row["a"], (np.sin(row["alpha"]) if straight else 1.0) * along)
        from_axis = from_origin + across + shift
        lengths.append(np.hypot(row["a"], along) + shift)
        from_origin = from_origin + lengths[-1]
        based.append(not straight)
    origins, path = np.cumsum(lengths[::-1])[::-1], np.array(path, dtype=int)
    return Levers(float(from_origin), float(radius), path, np.array(lever), origins, np.array(based, dtype=bool))


def skin(robot, levers):
    """Metres by which float32 can misplace a point of the shape, the rounding of the joint values included.

    Counted in roundings of relative size ROUNDOFF. A frame's value is rounded when it is given and when it is
    interpolated, then multiplied and added to the row's; sine, cosine and the products with them are within 4. To
    compose a rotation adds 3, a position 1 of its own size. Last, another shape sees this one, and supports follow,
    which may miss the farthest vertex.
    """
    rows = robot.frames[levers.frames]
    ends = np.abs(joint_ranges(robot)).max(axis=0)[rows["joint"]]
    values = np.abs(rows["multiplier"]) * ends + np.abs(rows["offset"])
    plain = (rows["multiplier"] == 1) & (rows["offset"] == 0)
    composed = np.where(levers.based, 2, 1)
    constant = np.abs(np.where(rows["prismatic"], rows["d"], rows["theta"]))
    value = (np.where(plain, 3, 5) * values + constant) * levers.lever
    turned = np.where(rows["prismatic"], 0, 4 * levers.lever) + 3 * composed * levers.lever
    placed = composed * levers.origins
    return ROUNDOFF * float((value + turned + placed).sum() + 3 * levers.farthest + (12 + MISSED) * levers.radius)


def fixed_skin(poses, balls):
    """`skin` of shapes that do not move: (n, 4, 4), and (n, 4) of `Kind.ball` -> (n,) metres.

    Their position and their points' rotation are rounded once, and again when a moving shape sees them; then come the
    products and sums of a support.
    """
    return ROUNDOFF * (
        3 * np.linalg.norm(poses[:, :3, 3], axis=1)
        + (12 + MISSED) * (balls[:, 3] + np.linalg.norm(balls[:, :3], axis=1))
    )


def distance_to_boxes(poses, halves):
    """(n,) distance of the origin from boxes (n, 4, 4) of half extents (n, 3)."""
    centres = np.einsum("nji,nj->ni", poses[:, :3, :3], poses[:, :3, 3])
    return np.linalg.norm(np.maximum(np.abs(centres) - halves, 0.0), axis=1)


def frame_reach(robot, levers):
    """levers: of S shapes -> (S, F) metres that any point of a shape moves at most for a unit of each frame's value."""
    reach = np.zeros((len(levers), len(robot.frames)))
    for row, one in zip(reach, levers):
        row[one.frames] = one.lever
    return reach


_reaches: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def joint_reach(robot):
    """-> (S, dof) metres that any point of each shape moves at most for a unit of each joint's value.

    Made once for each RobotModel: every motion that is timed asks for it, and it takes some milliseconds.
    """
    if robot not in _reaches:
        levers = [shape_levers(robot, f, shape) for shape, f in zip(robot.shapes, robot.shape_frame)]
        rates = frame_reach(robot, levers) * np.abs(robot.frames["multiplier"])
        _reaches[robot] = rates @ (robot.frames["joint"][:, None] == np.arange(robot.dof))
    return _reaches[robot]


def pair_reach(robot, reach, shape_frame, pairs):
    """What moves the two shapes of each pair (A, B) against each other: the frames that carry one of them alone.

    -> (P, F) as `frame_reach`, that of B's frames negative; (P,) int32, the outermost frame that carries both, -1: none
    """
    result, common = np.zeros((len(pairs), len(robot.frames))), np.full(len(pairs), -1, np.int32)
    for p, (i, j) in enumerate(pairs):
        path_i, path_j = (path_to_root(robot.frames, shape_frame[s]) for s in (i, j))
        only_i, only_j = ([f for f in path if f not in other] for path, other in ((path_i, path_j), (path_j, path_i)))
        result[p, only_i], result[p, only_j] = reach[i, only_i], -reach[j, only_j]
        common[p] = next((f for f in path_i if f in path_j), -1)
    return result, common


def outer_first(robot, shape_frame, pairs):
    """(P, 2) pairs of shapes, the one with more frames first."""
    paths = [path_to_root(robot.frames, f) for f in shape_frame]
    return np.array([(j, i) if len(paths[j]) > len(paths[i]) else (i, j) for i, j in pairs], dtype=int).reshape(-1, 2)
