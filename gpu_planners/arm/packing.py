"""A robot and its obstacles as one float32 and one int32 buffer, which every kernel reads.

A CUDA launch pays for each array argument, so all constant data travel as one pair of arrays with offsets in a
header: the robot first, obstacles appended. The names below are those offsets.
"""

import weakref
from typing import NamedTuple

import numpy as np

from .bounds import aligned, ball, covering_spheres
from .shapes import ShapeKind
from .support_table import support_table

# header of the int32 buffer
(DOF, FRAMES, SHAPES, MOVING, PAIRS, FRAME_INTS, SHAPE_INTS, PAIR_INTS, FRAME_FLOATS, REACH,
 OBSTACLES, OBSTACLE_INTS, BALLS) = range(13)
HEADER = 16
# one frame: int32 parent, joint, prismatic, has_base | float32 cos(alpha), sin(alpha), a, theta, d, multiplier, offset, base (12)
FRAME_INT_STRIDE, FRAME_FLOAT_STRIDE = 4, 19
# one shape: int32 kind, frame, floats, vertex count, vertices, support table (-1: none), fine spheres
SHAPE_INT_STRIDE = 7
KIND, FRAME, FLOATS, VERTEX_COUNT, VERTICES, TABLE, FINE_SPHERES = range(SHAPE_INT_STRIDE)
# its float32 record: pose (12), half extents (3), covering spheres (SPHERE_STRIDE each, the coarse one first)
HALF, SPHERES, SPHERE_STRIDE = 12, 15, 5
# an entry of the support table: number of candidate vertices, and above COUNT_BITS where their coordinates begin
COUNT_BITS = 8
BRUTE_FORCE = 8  # polytopes with no more vertices are searched without the table


_packed_robots = weakref.WeakKeyDictionary()


class Packed(NamedTuple):
    """floats: (n,) float32; ints: (m,) int32, HEADER first."""

    floats: np.ndarray
    ints: np.ndarray


class _Buffers:
    def __init__(self, packed=None):
        self.floats, self.ints, self.n_floats, self.n_ints = [], [], 0, 0
        if packed is None:
            self.add_ints(np.zeros(HEADER))
        else:
            self.add_floats(packed.floats)
            self.add_ints(packed.ints)

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
        ints = np.concatenate(self.ints)
        for place, value in header.items():
            ints[place] = value
        return Packed(np.concatenate(self.floats), ints)


def transform12(T):
    """(4, 4) -> (12,): rotation by rows, then translation."""
    return np.concatenate([T[:3, :3].ravel(), T[:3, 3]])


def pack_scene(robot: Packed, shapes) -> Packed:
    """A packed robot followed by obstacles, a sequence of ConvexShape in the world frame."""
    buffers = _Buffers(robot)
    shapes = [aligned(shape) for shape in shapes]
    own_balls = [ball(shape) for shape in shapes]
    records = [_add_shape(buffers, shape, -1, np.append(own, -1.0)[None]) for shape, own in zip(shapes, own_balls)]
    table = buffers.add_ints(records)
    balls = buffers.add_floats([[*(s.pose[:3, :3] @ own[:3] + s.pose[:3, 3]), own[3]] for s, own in zip(shapes, own_balls)])
    return buffers.packed({OBSTACLES: len(shapes), OBSTACLE_INTS: table, BALLS: balls})


def pack_robot(robot) -> tuple[Packed, np.ndarray]:
    """-> (Packed, order): shapes that move come first; order[i] is the packed shape i's index in robot.shapes.

    Packing takes most of a second and is done once for each RobotModel.
    """
    if robot not in _packed_robots:
        _packed_robots[robot] = _pack_robot(robot)
    return _packed_robots[robot]


def _pack_robot(robot):
    buffers = _Buffers()
    frames = robot.frames
    shape_frame = np.asarray(robot.shape_frame)
    order = np.concatenate([np.flatnonzero(shape_frame >= 0), np.flatnonzero(shape_frame < 0)]).astype(int)
    place = np.argsort(order)
    has_base = [not np.allclose(T, np.eye(4), atol=1e-12) for T in robot.T_parent_base]
    frame_ints = buffers.add_ints(np.array([[f["parent"], f["joint"], f["prismatic"], b] for f, b in zip(frames, has_base)]))
    frame_floats = buffers.add_floats([
        [np.cos(f["alpha"]), np.sin(f["alpha"]), f["a"], f["theta"], f["d"], f["multiplier"], f["offset"], *transform12(T)]
        for f, T in zip(frames, robot.T_parent_base)])
    shapes = [aligned(robot.shapes[i]) for i in order]
    records = [_add_shape(buffers, shape, shape_frame[i], covering_spheres(shape)) for shape, i in zip(shapes, order)]
    shape_ints = buffers.add_ints(records)
    # the first shape of a pair is the one whose spheres are tested against the other's box: let it be a moving one
    pairs = np.sort(place[np.asarray(robot.self_collision_pairs, dtype=int).reshape(-1, 2)], axis=1)
    pair_ints = buffers.add_ints(pairs)
    moving = int((shape_frame >= 0).sum())
    reach_of_shape = _reach(robot, shapes, shape_frame[order])
    reach = buffers.add_floats(np.concatenate([reach_of_shape[:moving], _pair_reach(robot, reach_of_shape, shape_frame[order], pairs)]))
    header = {DOF: robot.dof, FRAMES: len(frames), SHAPES: len(shapes), MOVING: moving, PAIRS: len(pairs), FRAME_INTS: frame_ints,
              SHAPE_INTS: shape_ints, PAIR_INTS: pair_ints, FRAME_FLOATS: frame_floats, REACH: reach}
    return buffers.packed(header), order


def _add_shape(buffers, shape, frame, spheres):
    floats = buffers.add_floats(np.concatenate([transform12(shape.pose), shape.half_extents, spheres.ravel()]))
    record = [shape.kind, frame, floats, 0, 0, -1, len(spheres) - 1]
    if shape.kind == ShapeKind.POLYTOPE:
        record[VERTEX_COUNT] = len(shape.vertices)
        record[VERTICES] = buffers.add_floats(shape.vertices)
        if len(shape.vertices) > BRUTE_FORCE:
            cells, candidates = support_table(shape.vertices)
            if cells[:, 1].max() < 1 << COUNT_BITS:
                first = buffers.add_floats(shape.vertices[candidates])
                record[TABLE] = buffers.add_ints((first + 3 * cells[:, 0] << COUNT_BITS) + cells[:, 1])
    return record


def _path_to_root(frames, f):
    path = []
    while f >= 0:
        path.append(f)
        f = frames["parent"][f]
    return path


def _frame_reach(robot, f, radius):
    """{frame: metres per rad or m} for the frames that carry frame f: how far a point at most `radius` from
    the origin of frame f can move for a unit of each frame's joint value, whatever the other joints are."""
    frames, result = robot.frames, {}
    from_axis = from_origin = radius
    for g in _path_to_root(frames, f):
        row = frames[g]
        travel = 0.0
        if row["prismatic"]:
            j = row["joint"]
            ends = row["multiplier"] * np.array([robot.lower[j], robot.upper[j]]) + row["offset"] + row["d"]
            travel = np.abs(ends).max()
            result[g] = 1.0
        else:
            result[g] = from_axis
        along = travel if row["prismatic"] else abs(row["d"])
        base = robot.T_parent_base[g]
        shift = np.linalg.norm(base[:3, 3])
        straight = np.allclose(base, np.eye(4), atol=1e-12)
        across = np.hypot(row["a"], (np.sin(row["alpha"]) if straight else 1.0) * along)
        from_axis = from_origin + across + shift
        from_origin = from_origin + np.hypot(row["a"], along) + shift
    return result


def _reach(robot, shapes, shape_frame):
    """(S, dof): metres that any point of a shape moves at most for a unit of each joint."""
    reach = np.zeros((len(shapes), robot.dof))
    for s, (shape, f) in enumerate(zip(shapes, shape_frame)):
        for g, value in _frame_reach(robot, f, _radius_about_frame(shape)).items():
            reach[s, robot.frames["joint"][g]] += abs(robot.frames["multiplier"][g]) * value
    return reach


def _pair_reach(robot, reach, shape_frame, pairs):
    """(P, dof): metres that the two shapes of a pair move at most against each other; a joint whose frames
    all carry both shapes counts nothing."""
    result = np.zeros((len(pairs), robot.dof))
    for p, (i, j) in enumerate(pairs):
        frames_i, frames_j = (set(_path_to_root(robot.frames, shape_frame[s])) for s in (i, j))
        for joint in {robot.frames["joint"][g] for g in frames_i ^ frames_j}:
            result[p, joint] = reach[i, joint] + reach[j, joint]
    for p, (i, j) in enumerate(pairs):  # in a chain only the outer shape moves against the inner one
        frames_i, frames_j = (set(_path_to_root(robot.frames, shape_frame[s])) for s in (i, j))
        if frames_i <= frames_j or frames_j <= frames_i:
            outer = j if frames_i <= frames_j else i
            moving = result[p] > 0
            result[p, moving] = reach[outer, moving]
    return result


def _radius_about_frame(shape):
    """Greatest distance of the shape's points from the origin of the frame that its pose is given in, at most."""
    if shape.kind == ShapeKind.POLYTOPE:
        return np.linalg.norm(shape.vertices @ shape.pose[:3, :3].T + shape.pose[:3, 3], axis=1).max()
    a, b, c = shape.half_extents
    own = {ShapeKind.SPHERE: a, ShapeKind.CYLINDER: np.hypot(a, c), ShapeKind.BOX: np.sqrt(a * a + b * b + c * c)}
    return np.linalg.norm(shape.pose[:3, 3]) + own[shape.kind]
