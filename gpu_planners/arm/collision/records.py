"""What lies where in a packed scene: the robot and its obstacles as one float32 and one int32 buffer (`Packed`).

A CUDA launch pays for each array argument, so all constant data travel as this one pair: a header, the records of the
robot's shapes and the obstacles first, the robot's data behind them, where many scenes may share them (`own_ints`).
This is the only file that knows offsets. Each record is a NamedTuple whose fields stand in the order of the
buffer: `packing` and `scene_packing` write by these, and compiled code reads through the functions below. There,
    scene   is the Packed, or anything else with its `floats` and `ints`;
    shape   is where the ShapeRecord of a robot's shape (`robot_shape`) or of an obstacle (`obstacle`) lies.
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...parallel.layout import floats, reader, starts
from ...parallel.memory import item
from ..geometry.poses import POSE, load
from ..geometry.support_table import table_cell, table_part
from ..spaces.interface import Packed


class Header(NamedTuple):
    """The first entries of the int32 buffer: numbers of things, and where the tables begin.

    dof, frames, shapes: of the robot; moving: its shapes that some joint moves, which come first
    pairs: of its shapes that may collide; obstacles: convex shapes of the world
    frame_ints, frame_floats: FrameInts and FrameFloats of each frame, parents first
    shape_ints, obstacle_ints: a ShapeRecord for each shape and each obstacle
    pair_ints: PairRecord of each pair
    blocks: of shapes that follow one another (`broad_phase`), 0: none; block_pairs: of them, whose shapes may collide;
    block_pair_ints: BlockPair of each
    reach: (frames, moving + pairs) float32 (`reach.frame_reach`, `reach.pair_reach`)
    ranges: (2, dof) float32 (`reach.joint_ranges`)
    balls: (obstacles, 4) float32 x, y, z, radius around an obstacle in its skin, neighbours one after the other
    order: (obstacles,) which obstacle a ball is of
    groups: (.., 6) float32 lowest and highest x, y, z of GROUP balls that follow one another, of GROUP such groups, ...
    """

    dof: int
    frames: int
    shapes: int
    moving: int
    pairs: int
    frame_ints: int
    shape_ints: int
    pair_ints: int
    frame_floats: int
    reach: int
    ranges: int
    blocks: int
    block_pairs: int
    block_pair_ints: int
    obstacles: int = 0
    obstacle_ints: int = 0
    balls: int = 0
    order: int = 0
    groups: int = 0


class FrameInts(NamedTuple):
    """A frame's integers; slides: is its joint prismatic; has_base: is its base not the identity."""

    parent: int
    joint: int
    slides: int
    has_base: int


class FrameFloats(NamedTuple):
    """A frame's modified DH row and how its joint's value enters it; after them T_parent_base, POSE scalars."""

    cos_alpha: float
    sin_alpha: float
    a: float
    theta: float
    d: float
    multiplier: float
    offset: float


class PairRecord(NamedTuple):
    """Two of the robot's shapes that may collide; common: the outermost frame that carries both, -1: none; blocks:
    the pair of blocks that they are of."""

    a: int
    b: int
    common: int
    blocks: int


class BlockPair(NamedTuple):
    """Two blocks, maybe the same twice, and their shapes' pairs: first to end - 1."""

    first: int
    end: int
    a: int
    b: int


class ShapeRecord(NamedTuple):
    """A shape's integers.

    kind: ShapeKind; frame: -1 where nothing moves it; floats: where its ShapeFloats begin
    vertex_count, vertices: of a polytope, 3 float32 each; table: its support table in ints, -1: none; candidates: the
    vertices that the table counts, in floats; fine_spheres: how many smaller spheres cover it
    """

    kind: int
    frame: int
    floats: int
    vertex_count: int
    vertices: int
    table: int
    candidates: int
    fine_spheres: int


class ShapeFloats(NamedTuple):
    """A shape's float32 numbers."""

    pose: np.ndarray = floats("POSE")  # in its frame
    half: np.ndarray = floats("3")  # extents
    skin: np.ndarray = floats("1")
    spheres: np.ndarray = floats("SPHERE * spheres")  # that cover it, the coarse one first


_at, _shape_at = Header._fields.index, ShapeRecord._fields.index  # of a field, in its record
HEADER = 20  # room for it
FRAME_ROW, FRAME_INTS = len(FrameFloats._fields), len(FrameInts._fields)
FRAME_FLOATS = FRAME_ROW + POSE
SHAPE_RECORD, PAIR_RECORD, BLOCK_PAIR = (len(kind._fields) for kind in (ShapeRecord, PairRecord, BlockPair))
SPHERE = 5  # x, y, z, radius, radius of a ball inside the shape (-1: none)
BALL = 4
BOX = 6  # lowest x, y, z, highest x, y, z
# an entry of a support table: the number of a cell's candidates in COUNT_BITS; above them, which is the first. Number
# 0: the first of the entries of the cell's parts
COUNT_BITS = 10
_COUNT_MASK = (1 << COUNT_BITS) - 1
_, _HALF, _SKIN, _SPHERES = (start(0) for start in starts(ShapeFloats, "spheres")[:4])
_pair_at, _block_pair_at = reader(PairRecord), reader(BlockPair)
_frame_ints_at, _frame_floats_at = reader(FrameInts), reader(FrameFloats)


def header(scene: Packed) -> Header:
    """The header, on the host."""
    return Header(*scene.ints[: len(Header._fields)].tolist())


def self_pairs(scene: Packed) -> np.ndarray:
    """(pairs, 2) int32 numbers of the shapes of each self pair, on the host."""
    counts = header(scene)
    return scene.ints[counts.pair_ints :][: PAIR_RECORD * counts.pairs].reshape(-1, PAIR_RECORD)[:, :2]


def own_ints(ints, floats_away, ints_away):
    """Relocate the robot's offsets: its block starts `floats_away`, `ints_away` after the scene (`SceneParts.ints_of`).
    Returns a copy of the scene's ints."""
    ints = ints.copy()
    ints[[_at("frame_floats"), _at("reach"), _at("ranges")]] += floats_away
    ints[[_at("frame_ints"), _at("pair_ints"), _at("block_pair_ints")]] += ints_away
    shapes = robot_records(ints)
    shapes[:] = shifted(shapes, floats_away, ints_away)
    return ints


def robot_records(ints):
    """(shapes, SHAPE_RECORD) of the robot's shapes, a part of the ints of a robot or of a scene."""
    return ints[ints[_at("shape_ints")] :][: ints[_at("shapes")] * SHAPE_RECORD].reshape(-1, SHAPE_RECORD)


def shape_floats(pose, half, skin, spheres):
    """ShapeFloats as the buffer has them; leading axes: several shapes with as many spheres each. pose: (..., 4, 4)"""
    skin = np.asarray(skin)
    parts = ShapeFloats(transform12(pose), np.asarray(half), skin[..., None], np.reshape(spheres, (*skin.shape, -1)))
    return np.concatenate(parts, axis=-1)


def skin_places(robot: Packed) -> list[tuple[int, slice]]:
    """[(where its skin is in the floats, where the radii of its covering spheres are)] of the robot's moving shapes."""
    counts, places = header(robot), []
    for s in range(counts.moving):
        record = ShapeRecord(*robot.ints[counts.shape_ints + SHAPE_RECORD * s :][:SHAPE_RECORD].tolist())
        first = record.floats + _SPHERES + 3
        places.append((record.floats + _SKIN, slice(first, first + SPHERE * (record.fine_spheres + 1), SPHERE)))
    return places


def transform12(T):
    """(..., 4, 4) -> (..., 12): rotation by rows, then translation."""
    return np.concatenate([T[..., :3, :3].reshape(*T.shape[:-2], 9), T[..., :3, 3]], axis=-1)


def vertices_offset(fine_spheres):
    """Where a shape's vertices begin, counted from its floats."""
    return _SPHERES + SPHERE * (fine_spheres + 1)


def shifted(records, floats, ints):
    """(n, SHAPE_RECORD) records whose data lie that many floats and ints farther on; each a number or (n,)."""
    records, table = records.copy(), _shape_at("table")
    for field in ("floats", "vertices", "candidates"):
        records[:, _shape_at(field)] += floats
    records[:, table] += np.where(records[:, table] >= 0, ints, 0)
    return records


def named(function, name):
    """lean_njit of a closure. Numba tells code of one file in the cache apart by names, so each closure has its own."""
    function.__name__ = function.__qualname__ = name
    return lean_njit(function)


def _entry(name):
    """-> compiled function (scene): an entry of the header."""
    at = _at(name)

    def entry(scene):
        return scene.ints[at]

    return named(entry, f"header_{name}")


def _shape_entry(name):
    """-> compiled function (scene, shape): an integer of a shape."""
    at = _shape_at(name)

    def entry(scene, shape):
        return item(scene.ints, shape + at)

    return named(entry, f"shape_{name}")


dof, frame_count, shape_count, moving_count = map(_entry, ("dof", "frames", "shapes", "moving"))
self_pair_count, block_count, block_pair_count = map(_entry, ("pairs", "blocks", "block_pairs"))
obstacle_count, first_group = map(_entry, ("obstacles", "groups"))
_first_frame_ints, _first_frame_floats, _first_reach = map(_entry, ("frame_ints", "frame_floats", "reach"))
_first_pair, _first_block_pair, _first_range = map(_entry, ("pair_ints", "block_pair_ints", "ranges"))
_first_shape, _first_obstacle, _first_ball, _first_owner = map(
    _entry, ("shape_ints", "obstacle_ints", "balls", "order")
)
shape_kind, shape_frame, fine_sphere_count = map(_shape_entry, ("kind", "frame", "fine_spheres"))
_floats, _vertices, _vertex_count, _table, _candidates = map(
    _shape_entry, ("floats", "vertices", "vertex_count", "table", "candidates")
)


@lean_njit
def pair_count(scene):
    """Moving shapes with obstacles, then self pairs."""
    return moving_count(scene) * obstacle_count(scene) + self_pair_count(scene)


@lean_njit
def speed_count(scene):
    """Moving shapes, then self pairs: what has a column of `reach`."""
    return moving_count(scene) + self_pair_count(scene)


@lean_njit
def self_pair(scene, p):
    """-> PairRecord."""
    return _pair_at(scene.ints, _first_pair(scene) + PAIR_RECORD * p)


@lean_njit
def block_pair(scene, g):
    """-> BlockPair."""
    return _block_pair_at(scene.ints, _first_block_pair(scene) + BLOCK_PAIR * g)


@lean_njit
def reach(scene, i, f):
    """Metres that shape or self pair i moves at most for a unit of frame f's value; negative: by way of shape B."""
    return item(scene.floats, _first_reach(scene) + f * speed_count(scene) + i)


@lean_njit
def joint_range(scene, joint):
    """-> lowest and highest value for which the bounds hold."""
    lowest = _first_range(scene) + joint
    return item(scene.floats, lowest), item(scene.floats, lowest + dof(scene))


@lean_njit
def frame_ints(scene, f):
    """-> FrameInts."""
    return _frame_ints_at(scene.ints, _first_frame_ints(scene) + f * FRAME_INTS)


@lean_njit
def frame_floats(scene, f):
    """-> FrameFloats."""
    return _frame_floats_at(scene.floats, _first_frame_floats(scene) + f * FRAME_FLOATS)


@lean_njit
def frame_base(scene, f):
    """-> pose T_parent_base."""
    return load(scene.floats, _first_frame_floats(scene) + f * FRAME_FLOATS + FRAME_ROW, 1)


@lean_njit
def robot_shape(scene, s):
    return _first_shape(scene) + s * SHAPE_RECORD


@lean_njit
def obstacle(scene, o):
    return _first_obstacle(scene) + o * SHAPE_RECORD


@lean_njit
def obstacle_ball(scene, k):
    """-> x, y, z, radius of ball k, around an obstacle in its skin."""
    floats, at = scene.floats, _first_ball(scene) + BALL * k
    return item(floats, at), item(floats, at + 1), item(floats, at + 2), item(floats, at + 3)


@lean_njit
def ball_owner(scene, k):
    """The obstacle that ball k is of."""
    return item(scene.ints, _first_owner(scene) + k)


@lean_njit
def shape_pose(scene, shape):
    """-> pose in the shape's frame, or in the world where it has none."""
    return load(scene.floats, _floats(scene, shape), 1)


@lean_njit
def shape_half(scene, shape):
    """-> half extents along the shape's own axes."""
    floats, at = scene.floats, _floats(scene, shape) + _HALF
    return item(floats, at), item(floats, at + 1), item(floats, at + 2)


@lean_njit
def shape_skin(scene, shape):
    return item(scene.floats, _floats(scene, shape) + _SKIN)


@lean_njit
def sphere_centre(scene, shape, k):
    """-> x, y, z of the coarse sphere (k = 0) or a fine one, in the shape's frame."""
    floats, at = scene.floats, _floats(scene, shape) + _SPHERES + SPHERE * k
    return item(floats, at), item(floats, at + 1), item(floats, at + 2)


@lean_njit
def sphere_radius(scene, shape, k):
    return item(scene.floats, _floats(scene, shape) + _SPHERES + SPHERE * k + 3)


@lean_njit
def inner_radius(scene, shape, k):
    """Radius of a ball about the same centre that lies inside the shape; -1: none."""
    return item(scene.floats, _floats(scene, shape) + _SPHERES + SPHERE * k + 4)


@lean_njit
def polytope_vertices(scene, shape):
    """-> where the vertices begin in floats, 3 each, and how many there are."""
    return _vertices(scene, shape), _vertex_count(scene, shape)


@lean_njit
def has_table(scene, shape):
    return _table(scene, shape) >= 0


@lean_njit
def table_candidates(scene, shape, x, y, z):
    """-> (offset, count) of the support candidates for direction (x, y, z): `polytope_vertices` of a part."""
    table = _table(scene, shape)
    cell, u, v = table_cell(x, y, z)
    entry = item(scene.ints, table + cell)
    while entry & _COUNT_MASK == 0:
        part, u, v = table_part(u, v)
        entry = item(scene.ints, table + (entry >> COUNT_BITS) + part)
    return _candidates(scene, shape) + 3 * (entry >> COUNT_BITS), entry & _COUNT_MASK
