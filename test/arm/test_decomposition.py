"""Convex pieces: they cover, come close where one hull is coarse, and are remembered."""

import tracemalloc

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.problems import data_dir, load_problems, missing_data, robot_files
from benchmarks.robots import pieces_of
from gpu_planners.arm.geometry import decomposition
from gpu_planners.arm.geometry.decomposition import convex_pieces, slab_hulls, uncovered
from gpu_planners.arm.urdf.loader import load_urdf
from gpu_planners.code_cache import open_to
from gpu_planners.errors import ObstacleError

needs_data = pytest.mark.skipif(missing_data() is not None, reason=str(missing_data()))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def dumbbell():
    """Two balls of 0.1 m joined by a rod of 0.02 m along x."""
    rod = trimesh.creation.cylinder(0.02, 0.6, transform=trimesh.transformations.rotation_matrix(np.pi / 2, [0, 1, 0]))
    balls = [trimesh.creation.icosphere(2, 0.1).apply_translation([x, 0, 0]) for x in (-0.3, 0.3)]
    return trimesh.util.concatenate([rod, *balls])


def test_a_convex_mesh_stays_one_hull():
    pieces = convex_pieces("ball", trimesh.creation.icosphere(3, 0.2), np.eye(4))
    assert [piece.name for piece in pieces] == ["ball"] and len(pieces[0].vertices) == 642


def test_a_dumbbell_is_cut_along_its_rod():
    mesh = dumbbell()
    assert len(slab_hulls(mesh, tolerance=0.085)) == 1 < len(slab_hulls(mesh, tolerance=0.075))
    pieces = slab_hulls(mesh, tolerance=0.03)
    assert 3 <= len(pieces) <= 8
    assert sum(trimesh.convex.convex_hull(points).volume for points in pieces) < 0.6 * mesh.convex_hull.volume
    assert len(uncovered(mesh, pieces)) == 0
    names = [piece.name for piece in convex_pieces("bell", mesh, np.eye(4), 0.03)]
    assert names == [f"bell#{i}" for i in range(len(pieces))]
    assert len(convex_pieces("bell", mesh, np.eye(4), np.inf)) == 1


def test_a_fine_mesh_takes_little_memory():
    """The distances of all samples to all facets at once would be 9 GB."""
    ball = trimesh.creation.icosphere(5, 0.3)
    pieces = [ball.vertices]
    tracemalloc.start()
    try:
        assert len(uncovered(ball, pieces)) == 0
        inner = uncovered(ball, [0.999 * ball.vertices])
        assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
    finally:
        tracemalloc.stop()
    assert len(inner) > 10_000  # not all samples are looked at, but many


@pytest.mark.parametrize("chunk", [1, 1000, 2**16])
def test_blocks_of_samples_give_what_all_at_once_gives(monkeypatch, chunk):
    mesh = trimesh.creation.box([0.02, 0.02, 0.02])
    piece = mesh.vertices * [0.5, 1, 1]
    monkeypatch.setattr(decomposition, "CHUNK", chunk)
    outside = uncovered(mesh, [piece])
    samples = decomposition._surface_samples(mesh)
    assert np.array_equal(outside, samples[np.abs(samples[:, 0]) > 0.005 + 1e-6])


def test_the_largest_faces_of_a_fine_hull_are_looked_at_closely(monkeypatch):
    mesh = dumbbell()
    monkeypatch.setattr(decomposition, "MAX_FINE_FACES", 60)  # of 2000
    assert len(slab_hulls(mesh, tolerance=0.085)) == 1 < len(slab_hulls(mesh, tolerance=0.075))


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(2, 5))
def test_pieces_cover_solids_of_any_kind(seed, count):
    """Points inside the solid, not only on its surface, lie in a piece."""
    rng = np.random.default_rng(seed)
    boxes = [
        trimesh.creation.box(rng.uniform(0.05, 0.5, 3)).apply_translation(rng.uniform(-0.3, 0.3, 3))
        for _ in range(count)
    ]
    mesh = trimesh.util.concatenate(boxes)
    pieces = slab_hulls(mesh, tolerance=0.01)
    inside = np.concatenate([box.bounds[0] + rng.random((200, 3)) * np.ptp(box.bounds, axis=0) for box in boxes])
    for points in pieces:
        equations = trimesh.convex.convex_hull(points)
        outside = ((inside[:, None] - equations.triangles[None, :, 0]) * equations.face_normals).sum(2).max(1) > 1e-9
        inside = inside[outside]
    assert len(inside) == 0


def test_the_cache_answers_and_survives_damage(tmp_path, monkeypatch):
    first = convex_pieces("bell", dumbbell(), np.eye(4), 0.03)
    (stored,) = (tmp_path / "gpu_planners").glob("pieces-*.npz")
    monkeypatch.setattr(decomposition, "slab_hulls", lambda *_: pytest.fail("not remembered"))
    again = convex_pieces("bell", dumbbell(), np.eye(4), 0.03)
    assert [len(piece.vertices) for piece in first] == [len(piece.vertices) for piece in again]
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    stored.write_bytes(stored.read_bytes()[:100])
    assert len(convex_pieces("bell", dumbbell(), np.eye(4), 0.03)) == len(first)
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    assert len(convex_pieces("bell", dumbbell(), np.eye(4), 0.03)) == len(first)


def test_pieces_that_others_may_have_put_there_are_not_used(tmp_path, monkeypatch):
    convex_pieces("bell", dumbbell(), np.eye(4), 0.03)
    (tmp_path / "gpu_planners").chmod(0o777)
    open_to.cache_clear()
    decomposition._is_own.cache_clear()
    cut = []
    monkeypatch.setattr(decomposition, "slab_hulls", lambda *given: cut.append(given) or slab_hulls(*given))
    convex_pieces("bell", dumbbell(), np.eye(4), 0.03)
    assert len(cut) == 1


def test_a_flat_mesh_is_named():
    flat = trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]])
    with pytest.raises(ObstacleError, match="'sheet'"):
        convex_pieces("sheet", flat, np.eye(4))


@needs_data
def test_panda_links_stay_one_hull_each_and_ur5_arms_are_cut():
    panda = load_urdf(*robot_files("panda"))
    assert len(panda.shapes) == 11
    ur5 = load_urdf(*robot_files("ur5"))
    cut = {ur5.link_names[link] for shape, link in zip(ur5.shapes, ur5.shape_link) if "#" in shape.name}
    assert cut == {"upper_arm_link", "forearm_link"}
    meshes = data_dir() / "robots" / "ur5" / "meshes" / "ur5" / "collision"
    for link, file in (("upper_arm_link", "upperarm.stl"), ("forearm_link", "forearm.stl")):
        pieces = pieces_in_link(ur5)[link]
        assert len(uncovered(trimesh.load(meshes / file, force="mesh"), pieces)) == 0


@needs_data
def test_all_ur5_problems_have_valid_ends_with_the_pieces():
    """With one hull for each link it would be 295 of 350; checked by coal, not by the planner's own engine."""
    pytest.importorskip("coal")
    from gpu_planners.verify import CoalScene

    urdf, srdf = robot_files("ur5")
    colliding = []
    bare = CoalScene(urdf, srdf, meshes=pieces_of(load_urdf(urdf, srdf)))
    for problem in load_problems("ur5"):
        scene = bare.among(problem.obstacles)
        colliding += [(problem.family, problem.index) for q in (problem.start, *problem.goals) if scene.in_collision(q)]
    assert colliding == []


def pieces_in_link(robot):
    """{link: [(V, 3) vertices in the link's frame]}."""
    pieces = {}
    for shape, link in zip(robot.shapes, robot.shape_link):
        T_link_shape = np.linalg.inv(robot.T_frame_link[link]) @ shape.pose
        points = shape.vertices @ T_link_shape[:3, :3].T + T_link_shape[:3, 3]
        pieces.setdefault(robot.link_names[link], []).append(points)
    return pieces
