"""convex.separation against coal, for random pairs of every kind of shape, and the shapes themselves."""

import functools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from gpu_planners.arm.collision.packing import Packed, PackedRobot
from gpu_planners.arm.collision.records import HEADER, obstacle, shape_pose
from gpu_planners.arm.collision.scene_packing import SceneCache
from gpu_planners.arm.collision.separation import distance_sought, separation
from gpu_planners.arm.geometry.kinds import covering_spheres
from gpu_planners.arm.geometry.polytope import aligned
from gpu_planners.arm.geometry.poses import load
from gpu_planners.arm.geometry.shapes import ConvexShape, ShapeKind
from gpu_planners.arm.geometry.support_table import support_table, table_cell, table_part
from gpu_planners.device import njit
from gpu_planners.errors import ObstacleError

GREY = 1e-4  # metres from contact where float32 may decide either way
KINDS = ["box", "cylinder", "sphere", "convex_hull"]
NO_ROBOT = PackedRobot(
    Packed(np.zeros(1, np.float32), np.zeros(HEADER, np.int32)), np.zeros(0, int), np.zeros(0, int), np.zeros(3), 1.0
)


SCENES = SceneCache(NO_ROBOT)  # packs once what it is given again


def random_pose(rng, spread):
    T = np.eye(4)
    T[:3, :3] = Rotation.random(random_state=rng).as_matrix()
    T[:3, 3] = rng.normal(0, spread, 3)
    return T


def random_shape(rng, kind, spread=0.25):
    pose = random_pose(rng, spread)
    if kind == "box":
        return ConvexShape.box("b", rng.uniform(0.02, 0.5, 3), pose)
    if kind == "cylinder":
        return ConvexShape.cylinder("c", rng.uniform(0.01, 0.2), rng.uniform(0.02, 0.6), pose)
    if kind == "sphere":
        return ConvexShape.sphere("s", rng.uniform(0.01, 0.2), pose)
    points = rng.normal(0, 1, (rng.integers(4, 150), 3)) * rng.uniform(0.02, 0.2, 3)
    return ConvexShape.convex_hull("p", points, pose)


@functools.cache
def random_shapes(n):
    """n shapes of each kind, and n others of each kind, made and packed once."""
    rng = np.random.default_rng(1)
    return tuple(random_shape(rng, kind) for _ in range(2) for kind in KINDS for _ in range(n))


def coal_body(coal, shape):
    h = shape.half_extents
    pose = coal.Transform3s(shape.pose[:3, :3], shape.pose[:3, 3])
    if shape.kind == ShapeKind.BOX:
        return coal.Box(*(2 * h)), pose
    if shape.kind == ShapeKind.CYLINDER:
        return coal.Cylinder(h[0], 2 * h[2]), pose
    if shape.kind == ShapeKind.SPHERE:
        return coal.Sphere(h[0]), pose
    points = coal.StdVec_Vec3s()
    points.extend(list(shape.vertices))
    return coal.Convex.convexHull(points, False, None), pose


def separations(shapes, pairs, margin):
    """Separation of pairs of shapes, each started from the direction between their centres."""
    packed = SCENES.pack(shapes).joined()
    relative = []
    for i, j in pairs:  # the packed shape may have been turned to its tight box: use the pose that was packed
        T = [np.eye(4), np.eye(4)]
        for pose, number in zip(T, (i, j)):
            scalars = np.array(own_pose(number, packed))
            pose[:3, :3], pose[:3, 3] = scalars[:9].reshape(3, 3), scalars[9:]
        M = np.linalg.inv(T[1]) @ T[0]
        relative.append(np.concatenate([M[:3, :3].ravel(), M[:3, 3]]))
    return _separations(packed, np.array(pairs), np.array(relative, dtype=np.float32), np.float32(margin))


@njit
def own_pose(number, scene):
    return shape_pose(scene, obstacle(scene, number))


@njit
def _separations(scene, pairs, poses, margin):
    result = np.empty(len(pairs), dtype=np.float32)
    for k in range(len(pairs)):
        a, b, T = obstacle(scene, pairs[k, 0]), obstacle(scene, pairs[k, 1]), load(poses[k], 0, 1)
        result[k] = separation(a, b, T, (-T[9], -T[10], -T[11]), distance_sought(margin), scene).distance
    return result


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_separation_agrees_with_coal(first, second):
    coal = pytest.importorskip("coal")
    n, of_kind, grey = 400, 80, 0
    shapes = random_shapes(of_kind)
    each, turn = np.arange(n) % of_kind, np.arange(n) // of_kind
    pairs = np.stack([each, (each + turn) % of_kind], 1)  # each of a kind with five others
    pairs += of_kind * np.array([KINDS.index(first), len(KINDS) + KINDS.index(second)])
    plain, bound = separations(shapes, pairs, 0.0), separations(shapes, pairs, 10.0)
    meeting = 0
    for k, (i, j) in enumerate(pairs):
        a, b = coal_body(coal, shapes[i]), coal_body(coal, shapes[j])
        distance = coal.distance(*a, *b, coal.DistanceRequest(), coal.DistanceResult())
        if abs(distance) < GREY:
            grey += 1
            continue
        assert (plain[k] < 0) == (distance < 0), f"pair {k}: coal says {distance} m, separation {plain[k]}"
        meeting += distance < 0
        if distance > 0:
            assert bound[k] <= distance + 1e-5, f"pair {k}: the bound {bound[k]} is above the distance {distance}"
            assert bound[k] >= 0.79 * distance - 1e-5, (
                f"pair {k}: the bound {bound[k]} is far below the distance {distance}"
            )
    assert grey < 10 and 20 < meeting < n - 20


def test_covering_spheres_cover():
    rng = np.random.default_rng(1)
    for kind in KINDS:
        for _ in range(20):
            shape = aligned(random_shape(rng, kind))
            inside = _points_inside(rng, shape)
            spheres = covering_spheres(shape)
            gaps = np.linalg.norm(inside[:, None] - spheres[None, :, :3], axis=2) - spheres[:, 3]
            assert gaps[:, 0].max() <= 1e-9
            if len(spheres) > 1:
                assert gaps[:, 1:].min(axis=1).max() <= 1e-9


def _points_inside(rng, shape):
    if shape.kind == ShapeKind.POLYTOPE:
        weights = rng.dirichlet(np.full(len(shape.vertices), 0.1), 500)
        return np.concatenate([weights @ shape.vertices, shape.vertices])
    p = rng.uniform(-1, 1, (3000, 3))
    if shape.kind == ShapeKind.CYLINDER:
        p[:, :2] /= np.maximum(1, np.linalg.norm(p[:, :2], axis=1))[:, None]
    if shape.kind == ShapeKind.SPHERE:
        p /= np.maximum(1, np.linalg.norm(p, axis=1))[:, None]
    return p * shape.half_extents


def test_turning_to_the_tight_box_keeps_the_body():
    rng = np.random.default_rng(2)
    shape = random_shape(rng, "convex_hull")
    turned = aligned(shape)
    before, after = (s.vertices @ s.pose[:3, :3].T + s.pose[:3, 3] for s in (shape, turned))
    assert np.allclose(before, after, atol=1e-12)
    assert np.abs(turned.vertices).max(axis=0) == pytest.approx(turned.half_extents)


def blob(rng, count):
    return rng.normal(0, 1, (count, 3)) * [0.02, 0.1, 0.3]


def disc(rng, count):
    """Two flat faces with round rims: all of a rim's points are candidates around a face's normal."""
    angles = np.linspace(0, 2 * np.pi, count // 2, endpoint=False)
    rim = np.stack([np.cos(angles), np.sin(angles), np.ones(len(angles))], 1) * 0.1
    return np.concatenate([rim, rim * [1, 1, -1]])


@pytest.mark.parametrize(("points", "count"), [(blob, 4), (blob, 30), (blob, 300), (disc, 2000)])
def test_the_support_table_holds_the_farthest_vertex_of_every_direction(points, count):
    rng = np.random.default_rng(count)
    vertices = ConvexShape.convex_hull("p", points(rng, count), np.eye(4)).vertices
    cells, candidates = support_table(vertices)
    directions = np.concatenate(
        [
            rng.normal(0, 1, (5000, 3)),
            rng.integers(-8, 9, (5000, 3)),  # on cell borders
            [0, 0, 1] + rng.normal(0, 1, (3000, 3)) * 10.0 ** rng.uniform(-9, -1, (3000, 1)),  # near a pole
        ]
    )
    directions = directions[directions.any(axis=1)].astype(np.float32)
    farthest = (directions @ vertices.T).max(axis=1)
    looked_at = []
    for direction, far in zip(directions, farthest):
        cell, u, v = table_cell(*direction)
        first, number = cells[cell]
        while number == 0:
            part, u, v = table_part(u, v)
            first, number = cells[first + part]
        looked_at.append(number)
        assert (vertices[candidates[first : first + number]] @ direction).max() == pytest.approx(
            far, abs=1e-7 * float(np.abs(direction).max())
        )
    assert np.mean(looked_at) < 25 and max(looked_at) <= 48  # a table that keeps every vertex would be of no use


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: ConvexShape.box("crate", [1, 0, 1], np.eye(4)), "size"),
        (lambda: ConvexShape.box("crate", [1, 1], np.eye(4)), "size"),
        (lambda: ConvexShape.cylinder("crate", -1, 1, np.eye(4)), "radius"),
        (lambda: ConvexShape.cylinder("crate", 1, np.nan, np.eye(4)), "height"),
        (lambda: ConvexShape.sphere("crate", 0, np.eye(4)), "radius"),
        (lambda: ConvexShape.sphere("crate", 1, np.full((4, 4), np.inf)), "finite"),
        (lambda: ConvexShape.sphere("crate", 1, 2 * np.eye(4)), "rigid"),
        (lambda: ConvexShape.sphere("crate", 1, np.eye(3)), "(4, 4)"),
        (lambda: ConvexShape.convex_hull("crate", [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], np.eye(4)), "flat"),
        (lambda: ConvexShape.convex_hull("crate", np.zeros((3, 3)), np.eye(4)), "4 points"),
        (lambda: ConvexShape.convex_hull("crate", np.full((5, 3), np.nan), np.eye(4)), "finite"),
    ],
)
def test_malformed_shapes_are_refused_by_name(make, word):
    with pytest.raises(ObstacleError, match="crate") as caught:
        make()
    assert word in str(caught.value)
