"""A robot and its obstacles as one float32 and one int32 buffer, which every kernel reads; here the robot, in scene_packing.py the
obstacles.

A CUDA launch pays for each array argument, so all constant data travel as one pair of arrays with offsets in a
header: the robot first, obstacles appended. The names below are those offsets.

Coordinates are relative to the robot's base (`PackedRobot.origin`), not to the root of its URDF: float32 has 24 bits, and
what counts is how far from the robot's first joint a thing lies. Each shape has a *skin*: metres by which float32 may
misplace its surface at most (reach.py, scene_packing.py), to which an obstacle adds the checker's margin. Shapes whose skins overlap
count as meeting, so rounding never calls a contact free. A skin thicker than GREATEST_SKIN is refused.
"""

import functools
import weakref
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..errors import RobotDescriptionError
from .bounds import aligned, ball, covering_spheres
from .modified_dh import row_transform
from .reach import ROUND_UP, distance_to_boxes, fixed_skin, joint_ranges, joint_reach, pair_reach, shape_levers, skin
from .shapes import ConvexShape, ShapeKind
from .support_table import support_table

# header of the int32 buffer
(DOF, FRAMES, SHAPES, MOVING, PAIRS, FRAME_INTS, SHAPE_INTS, PAIR_INTS, FRAME_FLOATS, REACH, RANGES,
 OBSTACLES, OBSTACLE_INTS, BALLS) = range(14)
HEADER = 16
# one frame: int32 parent, joint, prismatic, has_base | float32 cos(alpha), sin(alpha), a, theta, d, multiplier, offset, base (12)
FRAME_INT_STRIDE, FRAME_FLOAT_STRIDE = 4, 19
# one shape: int32 kind, frame, floats, vertex count, vertices, support table (-1: none), its candidates, fine spheres
SHAPE_INT_STRIDE = 8
KIND, FRAME, FLOATS, VERTEX_COUNT, VERTICES, TABLE, CANDIDATES, FINE_SPHERES = range(SHAPE_INT_STRIDE)
# its float32 record: pose (12), half extents (3), skin, covering spheres (SPHERE_STRIDE each, the coarse one first)
HALF, SKIN, SPHERES, SPHERE_STRIDE = 12, 15, 16, 5
# an entry of the support table: number of candidate vertices, and above COUNT_BITS the first one's place among the shape's candidates
COUNT_BITS = 8
BRUTE_FORCE = 8  # polytopes with no more vertices are searched without the table

GREATEST_SKIN = 1e-4  # m, without margin
GREATEST_INDEX = 2 ** 31 - 1


class Packed(NamedTuple):
    """floats: (n,) float32; ints: (m,) int32, HEADER first."""

    floats: np.ndarray
    ints: np.ndarray


@dataclass(frozen=True)
class PackedRobot:
    """buffers: the robot without obstacles; order: packed shape i is robot.shapes[order[i]], those that move come first;
    origin: (3,) metres in the root frame, where the buffers' coordinates begin; radius: metres, no point of a moving shape is
    ever farther from the origin."""

    buffers: Packed
    order: np.ndarray
    origin: np.ndarray
    radius: float


class _Buffers:
    def __init__(self):
        self.floats, self.ints, self.n_floats, self.n_ints = [], [], 0, 0
        self.add_ints(np.zeros(HEADER))

    def add_floats(self, values):
        values = np.asarray(values, dtype=np.float32).ravel()
        self.floats.append(values)
        self.n_floats += len(values)
        return self.n_floats - len(values)

    def add_ints(self, values):
        values = np.asarray(values, dtype=np.int32).ravel()
        self.ints.append(values)
        self.n_ints += len(values)
        return self.n_ints - len(values)

    def packed(self, header):
        if max(self.n_floats, self.n_ints) > GREATEST_INDEX:
            raise RobotDescriptionError(f"the robot's shapes take {self.n_floats} numbers; allowed: {GREATEST_INDEX}")
        ints = np.concatenate(self.ints)
        for place, value in header.items():
            ints[place] = value
        return Packed(np.concatenate(self.floats), ints)


def transform12(T):
    """(..., 4, 4) -> (..., 12): rotation by rows, then translation."""
    return np.concatenate([T[..., :3, :3].reshape(*T.shape[:-2], 9), T[..., :3, 3]], axis=-1)


class Body(NamedTuple):
    """What is packed of a shape, wherever it is.

    shape: ConvexShape, its own frame turned to its tightest box;  ball: (4,) as bounds.ball has it
    floats: (n,) float32, the vertices, then the candidates of the support table;  table: int32 entries, or none
    """

    shape: ConvexShape
    ball: np.ndarray
    floats: np.ndarray
    table: np.ndarray

    def record(self, frame, fine_spheres):
        """The int32 record; places are counted from the shape's first float and its first table entry."""
        vertices, count = SPHERES + SPHERE_STRIDE * (fine_spheres + 1), len(self.shape.vertices)
        return int(self.shape.kind), frame, 0, count, vertices, 0 if len(self.table) else -1, vertices + 3 * count, fine_spheres


NO_FLOATS, NO_INTS = np.zeros(0, np.float32), np.zeros(0, np.int32)
_bodies = weakref.WeakKeyDictionary()


def body(shape):
    """-> Body of a ConvexShape. That of a polytope is kept: with the shape, and with its vertices, since obstacles move."""
    if shape.kind != ShapeKind.POLYTOPE:
        return Body(shape, ball(shape), NO_FLOATS, NO_INTS)
    if shape not in _bodies:
        turned, *rest = _polytope(shape.vertices.tobytes(), shape.neighbour_offsets.tobytes(), shape.neighbours.tobytes())
        _bodies[shape] = Body(turned.moved(shape.pose, shape.name), *rest)
    return _bodies[shape]


@functools.lru_cache(maxsize=4096)
def _polytope(vertices, neighbour_offsets, neighbours):
    """Body of a polytope at the identity; the arguments are the bytes of its arrays."""
    vertices = np.frombuffer(vertices).reshape(-1, 3)
    shape = aligned(ConvexShape("", ShapeKind.POLYTOPE, np.eye(4), np.ptp(vertices, axis=0) / 2, vertices,
                                np.frombuffer(neighbour_offsets, np.int32), np.frombuffer(neighbours, np.int32)))
    floats, table = shape.vertices, NO_INTS
    if len(floats) > BRUTE_FORCE:
        cells, candidates = support_table(floats)
        if cells[:, 1].max() < 1 << COUNT_BITS and len(candidates) < 1 << 31 - COUNT_BITS:
            floats = np.concatenate([floats, floats[candidates]])
            table = ((cells[:, 0] << COUNT_BITS) + cells[:, 1]).astype(np.int32)
    return Body(shape, ball(shape), floats.astype(np.float32).ravel(), table)


_packed_robots = weakref.WeakKeyDictionary()


def pack_robot(robot) -> PackedRobot:
    """Packing takes most of a second and is done once for each RobotModel. Raises RobotDescriptionError where float32 cannot hold
    the robot's shapes to 0.1 mm."""
    if robot not in _packed_robots:
        _packed_robots[robot] = _pack_robot(robot)
    return _packed_robots[robot]


def _pack_robot(robot):
    buffers = _Buffers()
    robot, origin = _at_its_base(robot)
    frames = robot.frames
    shape_frame = np.asarray(robot.shape_frame)
    order = np.concatenate([np.flatnonzero(shape_frame >= 0), np.flatnonzero(shape_frame < 0)]).astype(int)
    place = np.argsort(order)
    has_base = [not np.allclose(T, np.eye(4), atol=1e-12) for T in robot.T_parent_base]
    frame_ints = buffers.add_ints(np.array([[f["parent"], f["joint"], f["prismatic"], b] for f, b in zip(frames, has_base)]))
    frame_floats = buffers.add_floats([
        [np.cos(f["alpha"]), np.sin(f["alpha"]), f["a"], f["theta"], f["d"], f["multiplier"], f["offset"], *transform12(T)]
        for f, T in zip(frames, robot.T_parent_base)])
    shapes, frame_of, moving = [robot.shapes[i] for i in order], shape_frame[order], int((shape_frame >= 0).sum())
    levers = [shape_levers(robot, f, shape) for shape, f in zip(shapes, frame_of)]
    radius = max((lever.farthest for lever in levers[:moving]), default=0.0)
    skins = _skins(robot, shapes, levers, moving, radius)
    records = [_add_shape(buffers, shape, f, thickness) for shape, f, thickness in zip(shapes, frame_of, skins)]
    shape_ints = buffers.add_ints(records)
    # the first shape of a pair is the one whose spheres are tested against the other's box: let it be a moving one
    pairs = np.sort(place[np.asarray(robot.self_collision_pairs, dtype=int).reshape(-1, 2)], axis=1)
    pair_ints = buffers.add_ints(pairs)
    reach_of_shape = joint_reach(robot, levers)
    reach = buffers.add_floats(ROUND_UP * np.concatenate([reach_of_shape[:moving], pair_reach(robot, reach_of_shape, frame_of, pairs)]))
    ranges = buffers.add_floats(joint_ranges(robot))
    header = {DOF: robot.dof, FRAMES: len(frames), SHAPES: len(shapes), MOVING: moving, PAIRS: len(pairs), FRAME_INTS: frame_ints,
              SHAPE_INTS: shape_ints, PAIR_INTS: pair_ints, FRAME_FLOATS: frame_floats, REACH: reach, RANGES: ranges}
    return PackedRobot(buffers.packed(header), order, origin, radius)


def _skins(robot, shapes, levers, moving, radius):
    """Skin of each packed shape, metres. Raises RobotDescriptionError where one is too thick, but for fixed shapes that no other reaches."""
    skins, matters = [skin(robot, lever) for lever in levers[:moving]], [True] * moving
    if len(shapes) > moving:
        fixed = [body(shape) for shape in shapes[moving:]]
        poses, halves = np.array([one.shape.pose for one in fixed]), np.array([one.shape.half_extents for one in fixed])
        own = fixed_skin(poses, np.array([one.ball for one in fixed]))
        skins += own.tolist()
        matters += (distance_to_boxes(poses, halves) <= radius + own).tolist()
    for shape, lever, thickness, counts in zip(shapes, levers, skins, matters):
        if counts and thickness > GREATEST_SKIN:
            raise RobotDescriptionError(f"'{shape.name}' comes up to {lever.farthest:.4g} m away from the robot's base, by joint values of up "
                                        f"to {np.abs(joint_ranges(robot)).max():.4g}: single precision holds it to {1e3 * thickness:.2g} mm; "
                                        f"allowed: {1e3 * GREATEST_SKIN:g} mm")
    return skins


def _at_its_base(robot):
    """-> the same robot seen from the middle of its first frames, and where that is in the root frame, (3,)."""
    frames, bases, first = robot.frames.copy(), robot.T_parent_base.copy(), robot.frames["parent"] < 0
    for f in np.flatnonzero(first):  # what comes before the value of a first joint, which may be a long way, goes into its base
        bases[f] = bases[f] @ row_transform(*(frames[f][name] for name in ("a", "alpha", "d", "theta")))
    for name in ("a", "alpha", "d", "theta"):
        frames[name][first] = 0.0
    origin = bases[first][:, :3, 3].mean(axis=0)
    bases[first, :3, 3] -= origin
    T_base_root = np.eye(4)
    T_base_root[:3, 3] = -origin
    shapes = tuple(shape.moved(T_base_root) if f < 0 else shape for shape, f in zip(robot.shapes, robot.shape_frame))
    return replace(robot, frames=frames, T_parent_base=bases, shapes=shapes), origin


def _add_shape(buffers, shape, frame, thickness):
    one = body(shape)
    spheres = covering_spheres(one.shape)
    spheres[:, 3] += thickness
    floats = buffers.add_floats(np.concatenate([transform12(one.shape.pose), one.shape.half_extents, [thickness], spheres.ravel()]))
    buffers.add_floats(one.floats)
    return shifted(np.array([one.record(frame, len(spheres) - 1)]), floats, buffers.add_ints(one.table))[0]


def shifted(records, floats, ints):
    """(n, SHAPE_INT_STRIDE) records whose data lie so many floats and table entries farther on; each a number or (n,)."""
    records = records.copy()
    for column in (FLOATS, VERTICES, CANDIDATES):
        records[:, column] += floats
    records[:, TABLE] += np.where(records[:, TABLE] >= 0, ints, 0)
    return records
