"""The robot half of a packed scene (records.py); scene_packing.py appends the obstacles.

Coordinates are relative to the robot's base (`PackedRobot.origin`), not to the root of its URDF: float32 has 24 bits,
and what counts is how far a thing lies from the robot's first joint. Each shape has a *skin*: metres by which float32
may misplace its surface at most (reach.py), to which an obstacle adds the checker's margin. Shapes whose skins overlap
count as meeting, so rounding never calls a contact free. A skin thicker than GREATEST_SKIN is refused.
"""

import functools
import weakref
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...errors import RobotDescriptionError
from ..geometry.kinds import KINDS, covering_spheres
from ..geometry.polytope import aligned
from ..geometry.shapes import ConvexShape
from ..geometry.support_table import support_table
from ..robot.model import RobotModel
from ..robot.modified_dh import constant_row
from ..spaces.interface import Packed
from . import reach, records
from .broad_phase import BLOCK, block_pairs

BRUTE_FORCE = 8  # polytopes with no more vertices are searched without a support table
GREATEST_SKIN = 1e-4  # m, without margin
GREATEST_INDEX = 2**31 - 1
NEAR_ROOT = 2.0  # m: a robot whose base is nearer is seen from the root, which saves composing poses


@dataclass(frozen=True)
class PackedRobot:
    """A robot without obstacles.

    buffers: Packed; order: packed shape i is robot.shapes[order[i]], those that move come first
    pair_order: packed self pair i is robot.self_collision_pairs[pair_order[i]]
    origin: (3,) metres in the root frame, where the buffers' coordinates begin
    radius: metres; no point of a moving shape is ever farther from the origin
    """

    buffers: Packed
    order: np.ndarray
    pair_order: np.ndarray
    origin: np.ndarray
    radius: float


class _Buffer:
    """One of the two buffers while it grows."""

    def __init__(self, dtype):
        self.dtype, self.parts, self.size = dtype, [], 0

    def add(self, values):
        """-> where they begin."""
        self.parts.append(np.asarray(values, dtype=self.dtype).ravel())
        self.size += len(self.parts[-1])
        return self.size - len(self.parts[-1])


class Body(NamedTuple):
    """What is packed of a shape, wherever it is.

    shape: ConvexShape, a polytope's own frame turned to its tightest box; ball: (4,) of `Kind.ball`
    floats: (n,) float32, the vertices, then the candidates of the support table; table: (m,) int32 entries, or none
    """

    shape: ConvexShape
    ball: np.ndarray
    floats: np.ndarray
    table: np.ndarray

    def record(self, frame, fine_spheres):
        """ShapeRecord whose places are counted from the shape's first float and its first table entry."""
        vertices, count = records.vertices_offset(fine_spheres), len(self.shape.vertices)
        return records.ShapeRecord(
            kind=int(self.shape.kind),
            frame=frame,
            floats=0,
            vertex_count=count,
            vertices=vertices,
            table=0 if len(self.table) else -1,
            candidates=vertices + 3 * count,
            fine_spheres=fine_spheres,
        )


NO_FLOATS, NO_INTS = np.zeros(0, np.float32), np.zeros(0, np.int32)
_bodies: weakref.WeakKeyDictionary[ConvexShape, Body] = weakref.WeakKeyDictionary()


def body(shape: ConvexShape) -> Body:
    """-> Body of a shape. A polytope's is kept, with the shape and with its vertices, since obstacles move."""
    if not len(shape.vertices):
        return Body(shape, KINDS[shape.kind].ball(shape), NO_FLOATS, NO_INTS)
    if shape not in _bodies:
        turned, *rest = _polytope(*_content(shape))
        _bodies[shape] = Body(turned.moved(shape.pose, shape.name), *rest)
    return _bodies[shape]


def _content(shape):
    """What tells shapes apart wherever they are, for `functools`: the kind, the bytes of the arrays."""
    arrays = shape.half_extents, shape.vertices, shape.neighbour_offsets, shape.neighbours
    return shape.kind, *(array.tobytes() for array in arrays)


def _at_identity(kind, half_extents, vertices, neighbour_offsets, neighbours):
    """The shape of a `_content`."""
    lengths = np.frombuffer(half_extents), np.frombuffer(vertices).reshape(-1, 3)
    edges = np.frombuffer(neighbour_offsets, np.int32), np.frombuffer(neighbours, np.int32)
    return ConvexShape("", kind, np.eye(4), *lengths, *edges)


@functools.lru_cache(maxsize=4096)
def _polytope(*content):
    """Body of a polytope at the identity."""
    shape = _at_identity(*content)
    shape = aligned(replace(shape, half_extents=np.ptp(shape.vertices, axis=0) / 2))
    floats, table = shape.vertices, NO_INTS
    if len(floats) > BRUTE_FORCE:
        cells, candidates = support_table(floats)
        floats = np.concatenate([floats, floats[candidates]])
        table = ((cells[:, 0] << records.COUNT_BITS) + cells[:, 1]).astype(np.int32)
    return Body(shape, KINDS[shape.kind].ball(shape), floats.astype(np.float32).ravel(), table)


@functools.lru_cache(maxsize=4096)
def _covering(*content):
    """covering_spheres of a shape, kept wherever it goes: a robot that takes something up, or whose gripper moves, is
    packed in no time."""
    return covering_spheres(_at_identity(*content))


_packed_robots: weakref.WeakKeyDictionary[RobotModel, PackedRobot] = weakref.WeakKeyDictionary()


def pack_robot(robot: RobotModel) -> PackedRobot:
    """-> the PackedRobot of a RobotModel, which is kept: packing takes most of a second.

    Raises RobotDescriptionError where float32 cannot hold the robot's shapes to 0.1 mm.
    """
    if robot not in _packed_robots:
        _packed_robots[robot] = _pack_robot(robot)
    return _packed_robots[robot]


def thickened(packed: PackedRobot, thickness: float) -> PackedRobot:
    """The robot with `thickness` metres more of skin on every shape that moves."""
    floats = packed.buffers.floats.copy()
    for skin_at, radii_at in records.skin_places(packed.buffers):
        floats[skin_at] += thickness
        floats[radii_at] += thickness
    return replace(packed, buffers=Packed(floats, packed.buffers.ints))


def _pack_robot(robot):
    floats, ints = _Buffer(np.float32), _Buffer(np.int32)
    ints.add(np.zeros(records.HEADER))
    robot, origin = _at_its_base(robot)
    shape_frame = np.asarray(robot.shape_frame)
    order = np.concatenate([np.flatnonzero(shape_frame >= 0), np.flatnonzero(shape_frame < 0)]).astype(int)
    shapes, frame_of, moving = [robot.shapes[i] for i in order], shape_frame[order], int((shape_frame >= 0).sum())
    levers = [reach.shape_levers(robot, f, shape) for shape, f in zip(shapes, frame_of)]
    radius = max((lever.farthest for lever in levers[:moving]), default=0.0)
    skins = _skins(robot, shapes, levers, moving, radius)
    frame_ints, frame_floats = (buffer.add(rows) for buffer, rows in zip((ints, floats), _frames(robot)))
    shape_records = [_add_shape(floats, ints, *one) for one in zip(shapes, frame_of, skins)]
    shape_ints = ints.add(shape_records)
    # the first shape of a pair is the one whose spheres are tested against the other's box: let it be a moving one
    number = np.argsort(order)
    pairs = np.sort(number[np.asarray(robot.self_collision_pairs, dtype=int).reshape(-1, 2)], axis=1)
    pairs = reach.outer_first(robot, frame_of, pairs)
    pair_order, blocks_of_pair, of_blocks = block_pairs(pairs)
    pairs = pairs[pair_order]
    reach_of_shape = reach.frame_reach(robot, levers)
    reach_of_pair, common = reach.pair_reach(robot, reach_of_shape, frame_of, pairs)
    pair_ints = ints.add(np.column_stack([pairs, common, blocks_of_pair]))
    reach_floats = floats.add(reach.ROUND_UP * np.concatenate([reach_of_shape[:moving], reach_of_pair]).T)
    header = records.Header(
        dof=robot.dof,
        frames=len(robot.frames),
        shapes=len(shapes),
        moving=moving,
        pairs=len(pairs),
        frame_ints=frame_ints,
        shape_ints=shape_ints,
        pair_ints=pair_ints,
        frame_floats=frame_floats,
        reach=reach_floats,
        ranges=floats.add(reach.joint_ranges(robot)),
        blocks=-(-len(shapes) // BLOCK) if len(of_blocks) else 0,
        block_pairs=len(of_blocks),
        block_pair_ints=ints.add(of_blocks),
    )
    if max(floats.size, ints.size) > GREATEST_INDEX:
        raise RobotDescriptionError(f"the robot's shapes take {floats.size} numbers; allowed: {GREATEST_INDEX}")
    buffers = Packed(np.concatenate(floats.parts), np.concatenate(ints.parts))
    buffers.ints[: len(header)] = header
    return PackedRobot(buffers, order, pair_order, origin, radius)


def _frames(robot):
    """-> [FrameInts], [FrameFloats and T_parent_base]."""
    ints, floats = [], []
    for frame, T in zip(robot.frames, robot.T_parent_base):
        has_base = not np.allclose(T, np.eye(4), atol=1e-12)
        ints.append(records.FrameInts(frame["parent"], frame["joint"], frame["prismatic"], has_base))
        row = records.FrameFloats(
            cos_alpha=np.cos(frame["alpha"]),
            sin_alpha=np.sin(frame["alpha"]),
            **{name: frame[name] for name in ("a", "theta", "d", "multiplier", "offset")},
        )
        floats.append([*row, *records.transform12(T)])
    return ints, floats


def _skins(robot, shapes, levers, moving, radius):
    """Skin of each packed shape, metres.

    Raises RobotDescriptionError where one is too thick; a fixed shape that no moving one reaches may have any.
    """
    skins, matters = [reach.skin(robot, lever) for lever in levers[:moving]], [True] * moving
    if len(shapes) > moving:
        fixed = [body(shape) for shape in shapes[moving:]]
        poses, halves = np.array([one.shape.pose for one in fixed]), np.array([one.shape.half_extents for one in fixed])
        own = reach.fixed_skin(poses, np.array([one.ball for one in fixed]))
        skins += own.tolist()
        matters += (reach.distance_to_boxes(poses, halves) <= radius + own).tolist()
    for shape, lever, thickness, counts in zip(shapes, levers, skins, matters):
        if counts and thickness > GREATEST_SKIN:
            values = np.abs(reach.joint_ranges(robot)).max(axis=0)
            farthest = int(values.argmax())
            raise RobotDescriptionError(
                f"'{shape.name}' comes up to {lever.farthest:.4g} m away from the robot's base, by joint values of up "
                f"to {values[farthest]:.4g} ('{robot.joint_names[farthest]}'): single precision holds it to "
                f"{1e3 * thickness:.2g} mm; allowed: {1e3 * GREATEST_SKIN:g} mm"
            )
    return skins


def _at_its_base(robot):
    """-> the robot seen from the middle of its first frames, and where that is in the root frame, (3,).

    A robot near its root stays as it is.
    """
    frames, bases, first = robot.frames.copy(), robot.T_parent_base.copy(), robot.frames["parent"] < 0
    away = np.abs(bases[first][:, :3, 3]).max() + max(np.abs(frames[name][first]).max() for name in ("a", "d"))
    if away < NEAR_ROOT:
        return robot, np.zeros(3)
    for f in np.flatnonzero(first):  # the row's constants, which may be a long way, go into the base
        bases[f] = bases[f] @ constant_row(frames[f])
    for name in ("a", "alpha", "d", "theta"):
        frames[name][first] = 0.0
    origin = bases[first][:, :3, 3].mean(axis=0)
    bases[first, :3, 3] -= origin
    T_base_root = np.eye(4)
    T_base_root[:3, 3] = -origin
    shapes = tuple(shape.moved(T_base_root) if f < 0 else shape for shape, f in zip(robot.shapes, robot.shape_frame))
    return replace(robot, frames=frames, T_parent_base=bases, shapes=shapes), origin


def _add_shape(floats, ints, shape, frame, thickness):
    """-> ShapeRecord."""
    one = body(shape)
    spheres = _covering(*_content(one.shape)).copy()
    spheres[:, 3] += thickness
    first = floats.add(records.shape_floats(one.shape.pose, one.shape.half_extents, thickness, spheres))
    floats.add(one.floats)
    return records.shifted(np.array([one.record(frame, len(spheres) - 1)]), first, ints.add(one.table))[0]
