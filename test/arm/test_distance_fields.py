"""Distance fields as obstacles: their boxes hold all that a field does not prove free, by plain loops, by points drawn
in true obstacles, by coal; on CUDA they are the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robots_at_hand import panda
from scipy.spatial.transform import Rotation

from gpu_planners.arm import CollisionChecker, CollisionWorld
from gpu_planners.arm.distance_fields import FieldRule, block_bricks, grid_bricks
from gpu_planners.arm.geometry.shapes import ShapeKind
from gpu_planners.device import cuda_problem
from gpu_planners.errors import ObstacleError, SettingsError

needs_gpu = pytest.mark.skipif(bool(cuda_problem()), reason=cuda_problem())
T_ROOT_GRID = np.eye(4)
T_ROOT_GRID[:3, :3] = Rotation.from_euler("xyz", [0.3, -0.2, 1.0]).as_matrix()
T_ROOT_GRID[:3, 3] = [0.1, 0.2, 0.4]


def cells_of_boxes(bricks):
    """The set of voxels that Bricks fill; no voxel twice."""
    cells = [
        (x, y, z)
        for a, b in zip(bricks.low.tolist(), bricks.high.tolist())
        for x in range(a[0], b[0])
        for y in range(a[1], b[1])
        for z in range(a[2], b[2])
    ]
    assert len(cells) == len(set(cells))
    return set(cells)


def not_proven_free(distances, size, rule, observed):
    """The same by one look at each voxel."""
    half = np.sqrt(3 * size**2) / 2
    cells = set()
    for cell in np.ndindex(distances.shape):
        d = float(distances[cell])
        known = d <= rule.truncation and d < np.inf and (observed is None or bool(observed[cell]))
        free = rule.slope * d - rule.error > half if known else rule.unknown == "free"
        if not free:
            cells.add(cell)
    return cells


@given(
    st.tuples(st.integers(1, 5), st.integers(1, 5), st.sampled_from([1, 7, 63, 64, 65, 130])),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["occupied", "free"]),
    st.sampled_from([0.1, 0.5, 0.9]),
    st.booleans(),
)
@settings(max_examples=120, deadline=None)
def test_boxes_fill_what_is_not_proven_free(shape, seed, unknown, share, flagged):
    rng = np.random.default_rng(seed)
    distances = np.where(rng.random(shape) < share, rng.uniform(-0.3, 0.1, shape), rng.uniform(0.1, 0.5, shape))
    distances = np.repeat(distances, 2, axis=1).astype(np.float32)  # some rows are alike
    distances[rng.random(distances.shape) < 0.05] = np.nan
    observed = rng.random(distances.shape) < 0.9 if flagged else None
    rule = FieldRule(error=0.02, slope=0.9, truncation=0.4, unknown=unknown)
    bricks = grid_bricks("f", distances, 0.1, np.eye(4), rule, observed)
    assert cells_of_boxes(bricks) == not_proven_free(distances, 0.1, rule, observed)
    strided = np.asfortranarray(distances)
    assert (grid_bricks("f", strided, 0.1, np.eye(4), rule, observed).low == bricks.low).all()


def test_neighbours_become_one_box():
    distances = np.full((40, 30, 200), 1.0, np.float32)
    distances[3:20, 5:9, 60:140] = -1.0
    bricks = grid_bricks("f", distances, 0.01, np.eye(4))
    assert [bricks.low.tolist(), bricks.high.tolist()] == [[[3, 5, 60]], [[20, 9, 140]]]


def true_distance(points, shapes):
    """Of points (..., 3) from balls and boxes: exact outside, negative inside."""
    nearest = np.full(points.shape[:-1], np.inf)
    for middle, half, round_ in shapes:
        if round_:
            d = np.linalg.norm(points - middle, axis=-1) - half[0]
        else:
            out = np.abs(points - middle) - half
            d = np.linalg.norm(np.maximum(out, 0), axis=-1) + np.minimum(out.max(axis=-1), 0)
        nearest = np.minimum(nearest, d)
    return nearest


@pytest.mark.parametrize("size, error, slope", [(0.03, 0.0, 1.0), (0.05, 0.02, 1.0), (0.04, 0.0, 0.5)])
def test_no_point_of_an_obstacle_is_outside_of_the_boxes(size, error, slope):
    """Also of plates and balls far thinner than a voxel, where the field errs as far as it may."""
    rng = np.random.default_rng(0)
    shapes = [(rng.uniform(0.2, 1.6, 3), np.full(3, rng.uniform(1e-4, 0.2)), True) for _ in range(12)]
    for thin in range(3):
        half = rng.uniform(0.05, 0.3, 3)
        half[thin] = 1e-5
        shapes.append((rng.uniform(0.3, 1.5, 3), half, False))
    count = round(1.8 / size)
    middles = (np.stack(np.meshgrid(*3 * [np.arange(count)], indexing="ij"), -1) + 0.5) * size
    true = true_distance(middles, shapes)
    held = np.where(true > 0, (true + rng.choice([-error, error], true.shape)) / slope, true)
    bricks = grid_bricks("f", held.astype(np.float32), size, T_ROOT_GRID, FieldRule(error=error + 1e-6, slope=slope))
    inside = []
    for middle, half, round_ in shapes:
        points = middle + rng.uniform(-1, 1, (4000, 3)) * half
        inside.append(points[true_distance(points, [(middle, half, round_)]) <= 0])
    points = np.concatenate(inside) @ T_ROOT_GRID[:3, :3].T + T_ROOT_GRID[:3, 3]
    covered = np.zeros(len(points), bool)
    for T, half in zip(bricks.poses, bricks.half_extents):
        covered |= (np.abs((points - T[:3, 3]) @ T[:3, :3]) <= half + 1e-9).all(axis=1)
    assert covered.all() and len(points) > 20000
    volume = 8 * bricks.half_extents.prod(axis=1).sum()
    assert volume < 0.6 * 1.8**3  # and most of the room stays free


def coal_shape(coal, verify, shape):
    half = shape.half_extents
    if shape.kind == ShapeKind.POLYTOPE:
        return verify.hull(shape.vertices)
    if shape.kind == ShapeKind.BOX:
        return coal.Box(*(2 * half))
    return coal.Cylinder(half[0], 2 * half[2]) if shape.kind == ShapeKind.CYLINDER else coal.Sphere(half[0])


def test_a_checker_sees_a_field_as_coal_sees_its_voxels():
    coal, verify = pytest.importorskip("coal"), pytest.importorskip("gpu_planners.verify.shapes")
    robot, rng, size = panda(), np.random.default_rng(1), 0.06
    shapes = [(rng.uniform(-0.7, 0.7, 3) + [0, 0, 0.5], np.full(3, 0.08), True) for _ in range(8)]
    shapes = [one for one in shapes if np.linalg.norm(one[0][:2]) > 0.35]
    T = np.eye(4)
    T[:3, 3] = -0.96, -0.96, -0.2
    middles = (np.stack(np.meshgrid(*3 * [np.arange(32)], indexing="ij"), -1) + 0.5) * size + T[:3, 3]
    field = true_distance(middles, shapes).astype(np.float32)
    world = CollisionWorld()
    world.add_shapes("field", [grid_bricks("field", field, size, T)])
    checker, alone = CollisionChecker(robot, world, "cpu"), CollisionChecker(robot, CollisionWorld(), "cpu")
    q = rng.uniform(robot.lower, robot.upper, (2000, robot.dof))
    q = q[alone.configurations_valid(q)][:150]
    cube = coal.Box(size, size, size)
    cells = [coal.Transform3s(np.eye(3), p) for p in middles[field <= np.float32(size * np.sqrt(3) / 2)].astype(float)]
    free, poses = checker.configurations_valid(q), robot.frame_poses(q)
    hulls = [coal_shape(coal, verify, one) for one in robot.shapes]
    balls = [np.linalg.norm(one.half_extents) + size for one in robot.shapes]
    for i in range(len(q)):
        nearest = np.inf
        for shape, frame, hull, ball in zip(robot.shapes, robot.shape_frame, hulls, balls):
            M = (poses[i][frame] if frame >= 0 else np.eye(4)) @ shape.pose
            at = coal.Transform3s(M[:3, :3], M[:3, 3])
            for cell in cells:
                if np.linalg.norm(cell.getTranslation() - M[:3, 3]) < ball + 0.02:
                    request, result = coal.DistanceRequest(), coal.DistanceResult()
                    nearest = min(nearest, coal.distance(hull, at, cube, cell, request, result))
        assert free[i] == (nearest > 0) or abs(nearest) < 1e-4
    assert 0.1 < free.mean() < 0.95
    # what moves in it is proven, too: every configuration between free ends of a free motion is clear of the spheres
    a, b = q[free][:-1], q[free][1:]
    moves = checker.motions_valid(a, b)
    assert moves.any() and not moves.all()
    between = np.concatenate([x + np.linspace(0, 1, 60)[:, None] * (y - x) for x, y in zip(a[moves], b[moves])])
    assert checker.configurations_valid(between).all()


@pytest.mark.parametrize("edge", [1, 8, 64])
@pytest.mark.parametrize("unknown", ["occupied", "free"])
def test_sparse_blocks_are_the_dense_field_with_holes(edge, unknown):
    rng = np.random.default_rng(2)
    indices = np.unique(rng.integers(-2, 3, (20 if edge < 64 else 3, 3)), axis=0)
    rng.shuffle(indices)
    distances = rng.uniform(-0.1, 0.4, (len(indices), edge, edge, edge)).astype(np.float32)
    observed = rng.random(distances.shape) < 0.95
    low = indices.min(axis=0)
    dense = np.full((indices.max(axis=0) - low + 1) * edge, np.nan, np.float32)
    for index, block, flags in zip((indices - low) * edge, distances, observed):
        x, y, z = index
        dense[x : x + edge, y : y + edge, z : z + edge] = np.where(flags, block, np.nan)
    T = T_ROOT_GRID.copy()
    T[:3, 3] += T[:3, :3] @ (low * edge * 0.1)
    rule = FieldRule(unknown=unknown)
    one = block_bricks("b", indices, distances, 0.1, T_ROOT_GRID, rule, observed)
    other = grid_bricks("b", dense, 0.1, T, rule)
    assert (one.low == other.low).all() and (one.high == other.high).all() and np.allclose(one.pose, other.pose)
    assert len(block_bricks("b", np.zeros((0, 3)), np.zeros((0, 8, 8, 8)), 0.1, np.eye(4))) == 0


def test_too_many_boxes_become_larger_ones_that_hold_them():
    rng = np.random.default_rng(3)
    distances = np.where(rng.random((33, 40, 70)) < 0.2, 0.0, 1.0)
    fine = grid_bricks("f", distances, 0.02, T_ROOT_GRID)
    coarse = grid_bricks("f", distances, 0.02, T_ROOT_GRID, FieldRule(most_boxes=500))
    assert len(fine) > 5000 and len(coarse) <= 500 and (coarse.size > 0.03).all()
    factor = round(coarse.size[0] / 0.02)
    kept = cells_of_boxes(coarse)
    assert {tuple(c // factor for c in cell) for cell in cells_of_boxes(fine)} <= kept


@pytest.mark.parametrize(
    "change, words",
    [
        (dict(distances=np.zeros((3, 3), np.float32)), ["'f'", "(nx, ny, nz)", "(3, 3)"]),
        (dict(distances=np.zeros((3, 3, 3), int)), ["'f'", "float32", "int64"]),
        (dict(distances="no"), ["'f'", "distances"]),
        (dict(observed=np.zeros((3, 3, 2), bool)), ["'f'", "observed", "(3, 3, 2)"]),
        (dict(observed=np.zeros((3, 3, 3))), ["'f'", "observed", "float64"]),
        (dict(size=0.0), ["'f'", "size", "above 0"]),
        (dict(size=[0.1, 0.1]), ["'f'", "size"]),
        (dict(size=5e4), ["'f'", "m out"]),
        (dict(pose=np.zeros((4, 4))), ["'f'", "rigid"]),
        (dict(rule=FieldRule(truncation=0.08)), ["'f'", "0.08", "0.0866", "greater truncation"]),
        (dict(rule=3), ["rule", "FieldRule"]),
    ],
)
def test_wrong_fields_are_named(change, words):
    with pytest.raises(ObstacleError) as error:
        grid_bricks(**dict(name="f", distances=np.ones((3, 3, 3), np.float32), size=0.1, pose=np.eye(4)) | change)
    assert all(word in str(error.value) for word in words), str(error.value)


@pytest.mark.parametrize(
    "change, words",
    [
        (dict(indices=[[0, 0, 0.5]]), ["'b'", "whole numbers"]),
        (dict(indices=[[0, 0, 0]] * 2, distances=np.ones((2, 8, 8, 8))), ["'b'", "twice"]),
        (dict(indices=[[0, 0, 0]] * 3), ["'b'", "(3, n, n, n)", "(1, 8, 8, 8)"]),
        (dict(distances=np.ones((1, 6, 6, 6))), ["'b'", "power of two"]),
        (dict(indices=[[0, 0, 0], [10**5, 9, 9]], distances=np.ones((2, 8, 8, 8)), size=1e-3), ["'b'", "voxels holds"]),
        (dict(indices=[[0, 0, 10**12]]), ["'b'", "m out"]),
    ],
)
def test_wrong_blocks_are_named(change, words):
    with pytest.raises(ObstacleError) as error:
        block_bricks(
            **dict(name="b", indices=[[0, 0, 0]], distances=np.ones((1, 8, 8, 8)), size=0.1, pose=np.eye(4)) | change
        )
    assert all(word in str(error.value) for word in words), str(error.value)


@pytest.mark.parametrize("deep", [-0.31, -5.0, -np.inf])
def test_deep_inside_an_obstacle_is_never_free(deep):
    """Also where the distance is below the negative truncation, and unknown voxels are free"""
    distances = np.full((4, 4, 4), 1.0, np.float32)
    distances[1, 2, 3] = deep
    bricks = grid_bricks("field", distances, 0.05, np.eye(4), FieldRule(truncation=0.3, unknown="free"))
    assert bricks.low.tolist() == [[1, 2, 3]] and bricks.high.tolist() == [[2, 3, 4]]


@pytest.mark.parametrize("wrong", [dict(error=-1.0), dict(slope=0.0), dict(slope=1.5), dict(unknown="maybe")])
def test_wrong_rules_are_named(wrong):
    with pytest.raises(SettingsError, match=f"FieldRule.{next(iter(wrong))}"):
        FieldRule(**wrong)


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("unknown", ["occupied", "free"])
def test_fields_on_a_device_give_the_same_boxes(kind, unknown):
    from numba import cuda

    rng, rule = np.random.default_rng(4), FieldRule(unknown=unknown, truncation=0.3)
    for shape in ((5, 6, 7), (16, 1, 130), (40, 33, 64)):
        distances = rng.uniform(-0.1, 0.35, shape).astype(kind)
        distances[rng.random(shape) < 0.05] = np.nan
        observed = rng.random(shape) < 0.9
        for flags in (None, observed, observed.astype(np.uint8)):
            sent = None if flags is None else cuda.to_device(flags)
            one = grid_bricks("f", distances, 0.05, T_ROOT_GRID, rule, flags)
            other = grid_bricks("f", cuda.to_device(distances), 0.05, T_ROOT_GRID, rule, sent)
            assert (one.low == other.low).all() and (one.high == other.high).all() and len(one)
    for edge in (1, 8, 64):
        indices = np.unique(rng.integers(-2, 3, (10 if edge < 64 else 3, 3)), axis=0)
        distances = rng.uniform(-0.1, 0.35, (len(indices), edge, edge, edge)).astype(kind)
        observed = rng.random(distances.shape) < 0.9
        one = block_bricks("b", indices, distances, 0.05, T_ROOT_GRID, rule, observed)
        other = block_bricks("b", indices, cuda.to_device(distances), 0.05, T_ROOT_GRID, rule, cuda.to_device(observed))
        assert (one.low == other.low).all() and (one.high == other.high).all() and len(one)


@pytest.mark.gpu
@needs_gpu
def test_a_field_of_a_library_that_speaks_dlpack():
    from numba import cuda

    from gpu_planners.parallel.arrays_cuda import as_device_array

    class Tensor:
        def __init__(self, array):
            self._array = as_device_array(cuda.to_device(array))
            self.__dlpack__, self.__dlpack_device__ = self._array.__dlpack__, self._array.__dlpack_device__

    distances = np.random.default_rng(5).uniform(-0.1, 0.35, (9, 20, 70)).astype(np.float32)
    one, other = (grid_bricks("f", each, 0.05, T_ROOT_GRID) for each in (distances, Tensor(distances)))
    assert (one.low == other.low).all() and (one.high == other.high).all() and len(one)
    with pytest.raises(ObstacleError, match="both"):
        grid_bricks("f", Tensor(distances), 0.05, T_ROOT_GRID, None, distances > 0)
