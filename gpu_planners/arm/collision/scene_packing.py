"""Obstacles, before a packed robot (records.py). A change packs what changed and copies the rest."""

import itertools
import weakref
from typing import NamedTuple

import numpy as np

from ...errors import ObstacleError
from ..geometry.bricks import Bricks
from ..geometry.kind import PAD
from ..geometry.kinds import KINDS
from ..geometry.shapes import ConvexShape, ShapeKind
from ..spaces.interface import Packed, SceneParts
from .broad_phase import group_boxes, neighbours_first
from .packing import GREATEST_INDEX, GREATEST_SKIN, PackedRobot, body
from .reach import distance_to_boxes, fixed_skin
from .records import BALL, HEADER, SHAPE_RECORD, header, own_ints, robot_records, shape_floats, shifted

BEYOND_REACH = 10.0  # m: boxes and cylinders are cut off this far beyond twice the robot's reach
CUT = np.array([KINDS[kind].cut for kind in ShapeKind])


class SceneCache:
    """The packed scene of one robot, kept from query to query: `pack` works only on the shapes that changed."""

    def __init__(self, robot: PackedRobot) -> None:
        self._robot = robot
        self._margin: float | None = None
        self._pieces: tuple[ConvexShape | Bricks, ...] = ()
        self._blocks = NO_BLOCKS

    def pack(self, pieces: tuple[ConvexShape | Bricks, ...], margin: float = 0.0) -> SceneParts:
        """The robot, which is `SceneParts.shared`, and obstacles.

        pieces: in the root frame; margin: metres that the robot keeps from them
        Raises ObstacleError naming a shape that float32 cannot hold to 0.1 mm where the robot may come, or a world that
        is too large for 32-bit offsets and pair numbers.
        """
        if margin != self._margin:
            self._margin, self._pieces, self._blocks = margin, (), NO_BLOCKS
        head, tail = _common_ends(self._pieces, pieces)
        changed = _pack_pieces(pieces[head : len(pieces) - tail], self._robot, margin)
        first, last = _count(self._pieces[:head]), _count(self._pieces[len(self._pieces) - tail :])
        known = len(self._blocks.records)
        blocks = _join([_part(self._blocks, 0, first), changed, _part(self._blocks, known - last, known)])
        parts = SceneParts(_with_obstacles(self._robot.buffers, blocks), self._robot.buffers, own_ints)
        self._pieces, self._blocks = pieces, blocks
        return parts


class _Blocks(NamedTuple):
    """Packed obstacles, offsets counted from the first one's data.

    floats, ints: their data; records: (n, SHAPE_RECORD) int64; balls: (n, BALL) x, y, z, r around each with its skin
    ends: (n + 1, 2) int64; the data of obstacle i lie from ends[i] to ends[i + 1] in floats and ints
    """

    floats: np.ndarray
    ints: np.ndarray
    records: np.ndarray
    balls: np.ndarray
    ends: np.ndarray


_packed_bricks: weakref.WeakKeyDictionary[Bricks, dict[tuple, _Blocks]] = weakref.WeakKeyDictionary()
NO_BLOCKS = _Blocks(
    np.zeros(0, np.float32),
    np.zeros(0, np.int32),
    np.zeros((0, SHAPE_RECORD), np.int64),
    np.zeros((0, BALL), np.float32),
    np.zeros((1, 2), np.int64),
)


def _common_ends(before, after):
    """How many first and how many last shapes of two tuples are the same objects."""
    shared = min(len(before), len(after))
    head = next((i for i in range(shared) if before[i] is not after[i]), shared)
    return head, next((i for i in range(shared - head) if before[-1 - i] is not after[-1 - i]), shared - head)


def _count(pieces):
    """How many shapes the pieces are."""
    return sum(len(piece) if isinstance(piece, Bricks) else 1 for piece in pieces)


def _part(blocks, first, last):
    """Obstacles first to last - 1 by themselves."""
    (f0, i0), (f1, i1) = blocks.ends[first], blocks.ends[last]
    return _Blocks(
        blocks.floats[f0:f1],
        blocks.ints[i0:i1],
        shifted(blocks.records[first:last], -f0, -i0),
        blocks.balls[first:last],
        blocks.ends[first : last + 1] - [f0, i0],
    )


def _join(parts):
    parts = [part for part in parts if len(part.records)]
    if len(parts) < 2:
        return parts[0] if parts else NO_BLOCKS
    records, ends, floats, ints = [], [np.zeros((1, 2), np.int64)], 0, 0
    for part in parts:
        records.append(shifted(part.records, floats, ints))
        ends.append(part.ends[1:] + [floats, ints])
        floats, ints = floats + len(part.floats), ints + len(part.ints)
    return _Blocks(
        np.concatenate([part.floats for part in parts]),
        np.concatenate([part.ints for part in parts]),
        np.concatenate(records),
        np.concatenate([part.balls for part in parts]),
        np.concatenate(ends),
    )


def _with_obstacles(robot, blocks):
    """Packed: header, the records of the robot's shapes, and obstacles; places of the robot's data as in `robot`."""
    n, counts, shapes = len(blocks.records), header(robot), robot_records(robot.ints).ravel()
    order = neighbours_first(blocks.balls)
    balls = blocks.balls[order]
    floats = np.concatenate([blocks.floats, balls.ravel(), group_boxes(balls)])
    data = HEADER + len(shapes)
    records, first_ball = data + len(blocks.ints), len(blocks.floats)
    sizes = {
        "pairs of a moving shape and an obstacle, or of two shapes": counts.moving * n + counts.pairs,
        "numbers": len(floats) + len(robot.floats),
        "offsets": records + (SHAPE_RECORD + 1) * n + len(robot.ints),
    }
    for what, size in sizes.items():
        if size > GREATEST_INDEX:
            raise ObstacleError(
                f"the world is too large: its {n} convex shapes give {size} {what}; allowed: {GREATEST_INDEX}"
            )
    obstacles = shifted(blocks.records, 0, data).astype(np.int32)
    ints = np.concatenate([robot.ints[:HEADER], shapes, blocks.ints, obstacles.ravel(), order.astype(np.int32)])
    ints[: len(counts)] = counts._replace(
        shape_ints=HEADER,
        obstacles=n,
        obstacle_ints=records,
        order=records + obstacles.size,
        balls=first_ball,
        groups=first_ball + balls.size,
    )
    return Packed(floats, ints)


def _pack_pieces(pieces, robot, margin):
    """_Blocks of obstacles: runs of ConvexShapes at once, and Bricks."""
    parts = []
    for are_bricks, run in itertools.groupby(pieces, lambda piece: isinstance(piece, Bricks)):
        some = list(run)
        parts += [pack_bricks(bricks, robot, margin) for bricks in some] if are_bricks else [_pack(some, robot, margin)]
    return _join(parts)


def pack_bricks(bricks: Bricks, robot: PackedRobot, margin: float) -> _Blocks:
    """_Blocks of Bricks, kept with them: who makes them may pack them, on any thread, before they are in a world."""
    place = *robot.origin.tolist(), robot.radius, margin
    known = _packed_bricks.setdefault(bricks, {})
    if place not in known:
        known[place] = _pack(bricks, robot, margin) if len(bricks) else NO_BLOCKS
    return known[place]


def _loose(shapes):
    """What is packed of n ConvexShapes or Bricks, at least one, before they are placed ->

    kinds (n,); poses (n, 4, 4) float64 in the root frame; half extents (n, 3); balls (n, BALL) of `Kind.ball`
    records (n, SHAPE_RECORD) int64, places counted from each one's own data
    floats, support tables: (n,) lists of the arrays that follow each one's head, or None where no obstacle has any
    """
    if isinstance(shapes, Bricks):
        halves, n = shapes.half_extents, len(shapes)
        balls = np.column_stack([np.zeros((n, 3)), np.sqrt((halves**2).sum(axis=1)) + PAD])
        box = body(ConvexShape.box("", [1.0, 1.0, 1.0], np.eye(4)))
        records = np.tile(np.array(box.record(-1, 0), dtype=np.int64), (n, 1))
        return np.full(n, int(ShapeKind.BOX)), shapes.poses.copy(), halves.copy(), balls, records, None, None
    bodies = [body(shape) for shape in shapes]
    return (
        np.array([one.shape.kind for one in bodies]),
        np.array([one.shape.pose for one in bodies]),
        np.array([one.shape.half_extents for one in bodies]),
        np.array([one.ball for one in bodies]),
        np.array([one.record(-1, 0) for one in bodies], dtype=np.int64),
        [one.floats for one in bodies],
        [one.table for one in bodies],
    )


def _pack(shapes, robot, margin):
    """_Blocks of ConvexShapes or Bricks, at least one."""
    kinds, poses, halves, own_balls, records, tails, tables = _loose(shapes)
    poses[:, :3, 3] -= robot.origin
    _cut_off(kinds, poses, halves, own_balls, 2 * (robot.radius + margin) + BEYOND_REACH)
    skins = fixed_skin(poses, own_balls)
    coarse = np.flatnonzero(skins > GREATEST_SKIN)
    if len(coarse):
        gaps = distance_to_boxes(poses[coarse], halves[coarse]) - robot.radius - margin - skins[coarse]
        if (gaps <= 0).any():
            worst = coarse[gaps <= 0][0]
            one = shapes if isinstance(shapes, Bricks) else shapes[worst]
            raise ObstacleError(
                f"'{one.name}' is too large or too far from the robot's base: single precision holds its "
                f"surface to {1e3 * skins[worst]:.2g} mm, where the robot can reach it; "
                f"allowed: {1e3 * GREATEST_SKIN:g} mm"
            )
    centres = np.einsum("nij,nj->ni", poses[:, :3, :3], own_balls[:, :3]) + poses[:, :3, 3]
    skins = skins + margin
    spheres = np.column_stack([own_balls, np.full(len(kinds), -1.0)])  # the coarse one alone, no ball inside
    heads = shape_floats(poses, halves, skins, spheres).astype(np.float32)
    counts = np.tile([heads.shape[1], 0], (len(kinds), 1))
    floats, ints = heads.ravel(), np.zeros(0, np.int32)
    if tails is not None:
        floats = np.concatenate([part for head, tail in zip(heads, tails) for part in (head, tail)])
        ints = np.concatenate(tables)
        counts += [[len(tail), len(table)] for tail, table in zip(tails, tables)]
    ends = np.concatenate([np.zeros((1, 2), np.int64), np.cumsum(counts, axis=0)])
    return _Blocks(
        floats,
        ints,
        shifted(records, *ends[:-1].T),
        np.column_stack([centres, own_balls[:, 3] + skins]).astype(np.float32),
        ends,
    )


def _cut_off(kinds, poses, halves, balls, size):
    """Cut boxes, and cylinders along their axis, down to what lies within `size` of the origin along each axis.

    They then are as far from the robot as before, and float32 holds them better. In place; a shape that lies beyond
    stays as it is.
    """
    centres = -np.einsum("nji,nj->ni", poses[:, :3, :3], poses[:, :3, 3])  # the origin, seen from the shape
    low, high = np.maximum(-halves, centres - size), np.minimum(halves, centres + size)
    axes = CUT[kinds]
    cut = axes & (high - low < 2 * halves)
    rows = np.flatnonzero(cut.any(axis=1) & ((low < high) | ~axes).all(axis=1))
    low, high, cut = (np.where(cut, low, -halves)[rows], np.where(cut, high, halves)[rows], cut[rows])
    poses[rows, :3, 3] += np.einsum("nij,nj->ni", poses[rows, :3, :3], np.where(cut, (low + high) / 2, 0.0))
    halves[rows] = (high - low) / 2
    for row in rows:
        radius = KINDS[ShapeKind(kinds[row])].radius(halves[row]) * (1 + 1e-9) + PAD
        balls[row, 3] = min(balls[row, 3], radius)
