"""prm: paths re-checked by coal or pixel by pixel, shortest paths by scipy, roadmaps that follow the obstacles."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from benchmarks.problems import data_dir, missing_data
from gpu_planners.arm import CollisionChecker, CollisionWorld, MotionCheck, Status, load_urdf
from gpu_planners.arm.collision.scene_file import fixed_frames, load_scene
from gpu_planners.arm.planners import prm
from gpu_planners.arm.planners.prm import trees as prm_trees
from gpu_planners.arm.planners.prm.block_index import ANY, insert_all, nearest, new_blocks, with_room
from gpu_planners.arm.planners.prm.roadmap import BLOCKED, FREE, UNCHECKED
from gpu_planners.arm.planners.result import path_length
from gpu_planners.device import cuda_problem
from gpu_planners.distributed.exchange import run
from gpu_planners.errors import SettingsError
from gpu_planners.papers.dl14.image import ImageChecker

ROOT = Path(__file__).resolve().parents[2]
ARM = ROOT / "urdf" / "dl14_arm.urdf", ROOT / "urdf" / "dl14_arm.srdf"
START, GOAL = np.zeros(4), np.full(4, 3.0)
STEP = 0.01  # of [DL14]
POSTS_GOAL = 3.0, 0.5, 0.5, 0.5
needs_gpu = pytest.mark.skipif(bool(cuda_problem()), reason=f"no CUDA device: {cuda_problem()}")


@pytest.fixture(scope="module")
def arm():
    return load_urdf(*ARM)


def dl14_checker(arm, device="cpu", motion=MotionCheck("joint", STEP)):
    return CollisionChecker(
        arm, load_scene(ROOT / "config" / "scenes" / "dl14.yaml", fixed_frames(arm)), device, motion
    )


@pytest.fixture(scope="module")
def dl14(arm):
    return dl14_checker(arm)


def at(*position):
    """(4, 4) pose without rotation."""
    pose = np.eye(4)
    pose[:3, 3] = position
    return pose


@pytest.fixture
def posts(arm):
    """The arm between two posts that it can reach over: easy."""
    world = CollisionWorld()
    for i, angle in enumerate((-0.8, 2.2)):
        world.add_box(f"post {i}", (1, 1, 3), at(3.5 * np.cos(angle), 3.5 * np.sin(angle), 1.5))
    return CollisionChecker(arm, world, "cpu")


@pytest.fixture(scope="module")
def coal_dl14():
    """The paper's own polytopes in coal, without the scene file of this package."""
    pytest.importorskip("coal")
    if missing_data():
        pytest.skip(missing_data())
    from gpu_planners.verify import CoalScene

    paper = json.loads((data_dir() / "gpuprm" / "config1.json").read_text())
    static = [
        np.array(p["vertices"]) for p in paper["polytopes"][:7] if p["frame"] == 0
    ]  # the last one carries the arm
    return CoalScene(
        *ARM,
        package_dirs=[ROOT],
        meshes="hulls",
        obstacles=[
            {"name": f"static {i}", "type": "convex", "vertices": v, "pose": np.eye(4)} for i, v in enumerate(static)
        ],
    )


def maze(size=48):
    """A bool image with two walls, gaps at opposite ends."""
    free = np.ones((size, size), dtype=bool)
    free[: size - 6, size // 3] = free[6:, 2 * size // 3] = False
    return free


def assert_free_pixels(path, free):
    """x to the right, y up; every point of the path, 200 a pixel, lies on a free pixel."""
    rows = len(free)
    for a, b in pairwise(path):
        points = a + np.linspace(0, 1, int(200 * np.linalg.norm(b - a)) + 2)[:, None] * (b - a)
        columns, row = np.floor(points[:, 0]).astype(int), np.floor(rows - points[:, 1]).astype(int)
        assert free[np.clip(row, 0, rows - 1), np.clip(columns, 0, rows - 1)].all()


@pytest.mark.parametrize(
    "settings", [dict(), dict(lazy=True), dict(version=1, workers=2), dict(version=3, workers=2)], ids=str
)
def test_dl14_scene_at_the_papers_step(dl14, coal_dl14, settings):
    result = prm.solve(START, GOAL, dl14, prm.Settings(shortcut_rounds=0, **settings), seed=0)
    assert result.solved and result.cost == pytest.approx(path_length(result.path))
    assert np.array_equal(result.path[0], START) and np.array_equal(result.path[-1], GOAL)
    for a, b in pairwise(result.path):
        assert np.linalg.norm(b - a) <= 1.0 + 1e-4  # the paper's radius
        parts = int(np.ceil(np.linalg.norm(b - a) / STEP))
        hits = sum(coal_dl14.in_collision(a + k / parts * (b - a)) for k in range(1, parts))
        assert hits == 0


def test_dl14_scene_proven_free_all_along(arm, coal_dl14):
    result = prm.solve(START, GOAL, dl14_checker(arm, motion=MotionCheck()), seed=1)
    assert result.solved
    assert coal_dl14.first_collision(result.path, spacing=0.001) is None


def test_versions_and_workers_agree(dl14):
    """Versions 1 and 2 build one graph, whoever checks its motions; version 3 works on an older graph, as often as it
    is asked."""
    settings = [dict(version=v, workers=w) for v, w in ((1, 1), (1, 3), (2, 1), (2, 2), (3, 1), (3, 2))]
    paths = [prm.solve(START, GOAL, dl14, prm.Settings(shortcut_rounds=0, **s), seed=0).path for s in settings]
    assert all(len(path) > 2 for path in paths)
    assert all(np.array_equal(path, paths[0]) for path in paths[:4]) and np.array_equal(paths[4], paths[5])


def test_same_seed_same_path_in_any_room(posts, monkeypatch):
    """Also when the buffers of the trees must be doubled on the way, and with what an earlier query left in them."""
    free = maze(96)
    one = prm.solve(
        (2, 2), (94, 94), ImageChecker(free, device="cpu"), prm.Settings(radius=4.0, shortcut_rounds=0), seed=5
    )
    monkeypatch.setattr(prm_trees, "FIRST_CAPACITY", 64)
    checker = ImageChecker(free, device="cpu")
    two, three = (
        prm.solve((2, 2), (94, 94), checker, prm.Settings(radius=4.0, shortcut_rounds=0), seed=5) for _ in range(2)
    )
    other = prm.solve((2, 2), (94, 94), checker, prm.Settings(radius=4.0, shortcut_rounds=0), seed=6)
    assert one.solved and np.array_equal(one.path, two.path) and np.array_equal(one.path, three.path)
    assert other.solved and not np.array_equal(one.path, other.path)


@pytest.mark.parametrize(
    "settings",
    [dict(), dict(lazy=True), dict(near=0.3), dict(version=1), dict(version=2, workers=2), dict(version=3)],
    ids=str,
)
def test_image(settings):
    checker = ImageChecker(maze(), device="cpu")
    result = prm.solve((3, 3), (45, 45), checker, prm.Settings(radius=8.0, **settings), seed=2)
    assert result.solved
    assert_free_pixels(result.path, maze())
    shortest = path_length(np.array([(3, 3), (17, 6), (32, 42), (45, 45)]))  # taut around the ends of both walls
    assert 0.999 * shortest < result.cost < 1.25 * shortest


def test_image_without_a_way():
    free = maze()
    free[:, 20] = False
    for version in (0, 1, 2, 3):
        result = prm.solve(
            (3, 3),
            (45, 45),
            ImageChecker(free, device="cpu"),
            prm.Settings(radius=8.0, max_samples=3000, version=version),
        )
        assert result.status is Status.SAMPLES_EXHAUSTED and result.samples == 3000 and "3000 samples" in result.message


def test_lazy_finds_the_same_cost(posts, dl14):
    for checker, goal in ((posts, POSTS_GOAL), (dl14, GOAL)):
        eager, lazy = (
            prm.solve(START, goal, checker, prm.Settings(shortcut_rounds=0, lazy=lazy), seed=0)
            for lazy in (False, True)
        )
        assert eager.solved and lazy.cost == pytest.approx(eager.cost)


def states(roadmap):
    return roadmap.node_states.copy(), roadmap.edge_states.copy()


def scipy_distances(roadmap, sources):
    usable = (roadmap.edge_states == FREE) & (roadmap.node_states[roadmap.edges] == FREE).all(axis=1)
    edges, n = roadmap.edges[usable], len(roadmap.nodes)
    lengths = np.linalg.norm(roadmap.nodes[edges[:, 0]] - roadmap.nodes[edges[:, 1]], axis=1)
    return dijkstra(coo_array((lengths, (edges[:, 0], edges[:, 1])), shape=(n, n)), directed=False, indices=sources)


def test_roadmap_paths_are_the_shortest(posts):
    eager, lazy = (prm.build(posts, prm.Settings(roadmap_nodes=400, lazy=lazy), seed=3) for lazy in (False, True))
    assert np.array_equal(eager.nodes, lazy.nodes) and np.array_equal(eager.edges, lazy.edges)
    assert (lazy.edge_states == UNCHECKED).all() and 0 < (eager.edge_states == BLOCKED).sum() < len(eager.edges) / 2
    sources = np.arange(20)
    expected = scipy_distances(eager, sources)
    for roadmap in (eager, lazy):
        for source in sources:
            goals = [100 + source, 200 + source]
            chain = roadmap.shortest_path(source, goals, posts)
            assert chain[0] == source and chain[-1] == goals[int(np.argmin(expected[source, goals]))]
            assert path_length(roadmap.nodes[chain]) == pytest.approx(expected[source, chain[-1]], rel=1e-5)
    checked = lazy.edge_states != UNCHECKED
    assert 0 < checked.sum() < len(lazy.edges) / 2 and np.array_equal(
        lazy.edge_states[checked], eager.edge_states[checked]
    )


@pytest.mark.parametrize("lazy", [False, True])
def test_roadmap_follows_the_obstacles(arm, posts, lazy):
    roadmap = prm.build(posts, prm.Settings(roadmap_nodes=300), seed=0)
    at_first, nodes, edges = states(roadmap), roadmap.nodes, roadmap.edges
    posts.world.add_sphere("ball", 1.0, at(-2.5, -2.5, 2))
    roadmap.revalidate(posts, lazy)
    anew = CollisionChecker(arm, posts.world, "cpu")
    expected = anew.configurations_valid(nodes), anew.motions_valid(nodes[edges[:, 0]], nodes[edges[:, 1]])
    assert expected[0].sum() < len(nodes) and expected[1].sum() < at_first[1].sum()
    if lazy:
        assert (roadmap.edge_states == UNCHECKED).all()
        blocked = np.flatnonzero(~expected[1])
        chain = roadmap.shortest_path(*edges[blocked[0]][:1], [edges[blocked[0]][1]], posts)
        along = {tuple(sorted(pair)) for pair in pairwise(chain)}
        assert tuple(edges[blocked[0]]) not in along
        assert all(anew.motions_valid(nodes[[a]], nodes[[b]])[0] for a, b in along)
    else:
        assert np.array_equal(roadmap.node_states == FREE, expected[0]) and np.array_equal(
            roadmap.edge_states == FREE, expected[1]
        )
    posts.world.remove("ball")
    roadmap.revalidate(posts, False)
    assert all(np.array_equal(a, b) for a, b in zip(states(roadmap), at_first))
    assert roadmap.nodes is nodes and roadmap.edges is edges


def test_queries_through_a_roadmap(posts):
    """The graph stays as it was; a path that it lacks is learnt; obstacles are noticed."""
    roadmap = prm.build(posts, prm.Settings(roadmap_nodes=500), seed=0)
    rng, before = np.random.default_rng(0), (len(roadmap.nodes), len(roadmap.edges))
    q = rng.uniform(-2, 2, (200, 4))
    q = q[posts.configurations_valid(q)][:8]
    for start, goal in pairwise(q):
        result = prm.solve(start, goal, posts, prm.Settings(shortcut_rounds=0), roadmap=roadmap)
        assert result.solved and result.samples == 0
        assert posts.motions_valid(result.path[:-1], result.path[1:]).all()
    assert before == (len(roadmap.nodes), len(roadmap.edges))
    roadmap.edge_states[:] = BLOCKED  # as if obstacles had been everywhere when it was built
    assert prm.solve(q[0], q[1], posts, roadmap=roadmap).samples > 0
    free_edges = (roadmap.edge_states == FREE).sum()
    again = prm.solve(q[0], q[1], posts, roadmap=roadmap)
    assert again.solved and again.samples == 0 and (roadmap.edge_states == FREE).sum() == free_edges
    posts.world.add_sphere("ball", 1.0, at(-2.5, -2.5, 2))
    for start, goal in pairwise(q[posts.configurations_valid(q)]):
        result = prm.solve(start, goal, posts, roadmap=roadmap)
        assert result.solved and posts.motions_valid(result.path[:-1], result.path[1:]).all()


def test_weights_of_the_cost(posts):
    weights = (25.0, 1.0, 1.0, 0.04)
    plain, weighted = (prm.build(posts, prm.Settings(roadmap_nodes=300, weights=w), seed=1) for w in ((), weights))
    chains = [roadmap.shortest_path(0, [9], posts) for roadmap in (plain, weighted)]
    costs = [[path_length(plain.nodes[chain], w) for chain in chains] for w in (np.ones(4), np.array(weights))]
    assert costs[0][0] < costs[0][1] and costs[1][1] < costs[1][0]
    with pytest.raises(SettingsError, match="weights has 2 numbers"):
        prm.build(posts, prm.Settings(weights=(1.0, 2.0)))


@pytest.mark.parametrize("version", [0, 2])
def test_ends(posts, version):
    settings = prm.Settings(version=version)
    same = prm.solve(START, START, posts, settings)
    assert same.solved and same.cost == 0.0 and same.goal_index == 0
    several = prm.solve(START, np.stack([np.full(4, 9.0), START + 0.3, START + 0.1]), posts, settings)
    assert several.solved and several.goal_index == 2
    assert prm.solve(START, np.full(4, 9.0), posts, settings).status is Status.GOAL_OUT_OF_LIMITS


def test_budgets(dl14):
    for version in (0, 1, 2, 3):
        few = prm.solve(START, GOAL, dl14, prm.Settings(max_samples=7, version=version))
        assert few.status is Status.SAMPLES_EXHAUSTED and few.samples == 7
        short = prm.solve(START, GOAL, dl14, prm.Settings(time_limit_s=0.01, version=version))
        assert short.status is Status.TIMED_OUT and "0.01 s" in short.message


def test_a_world_that_changes_during_a_query(posts, monkeypatch):
    posts.warm_up()
    motions_valid = posts.motions_valid

    def change(q_from, q_to):
        if "late" not in posts.world.names:
            posts.world.add_sphere("late", 0.1, at(50, 0, 0))
        return motions_valid(q_from, q_to)

    monkeypatch.setattr(posts, "motions_valid", change)
    result = prm.solve(START, POSTS_GOAL, posts, prm.Settings(version=1))
    assert result.status is Status.WORLD_CHANGED and len(result.path) == 0


@pytest.mark.parametrize(("dof", "count"), [(1, 50), (2, 500), (4, 2000), (7, 300)])
def test_block_index_finds_the_nearest(dof, count):
    rng = np.random.default_rng(dof)
    lower, upper = np.full(dof, -2.0, dtype=np.float32), np.full(dof, 3.0, dtype=np.float32)
    points = rng.uniform(-2.2, 3.2, (count, dof)).astype(np.float32)  # some lie outside the bounds
    labels = rng.integers(0, 3, count).astype(np.int32)
    blocks = new_blocks(lower, upper, 0.3)
    for first in range(0, count, 100):
        blocks = with_room(blocks, len(points[first : first + 100]))
        insert_all(blocks, first, points[first : first + 100])
    found, squared = np.empty(5, dtype=np.int32), np.empty(5, dtype=np.float32)
    for q in rng.uniform(-3, 4, (100, dof)).astype(np.float32):
        distance = np.linalg.norm(points - q, axis=1)
        for reach, label in ((1e18, ANY), (1.0, 1), (1.5, 2)):
            taken = np.flatnonzero((distance <= reach) & ((label == ANY) | (labels == label)))
            expected = taken[np.argsort(distance[taken], kind="stable")][:5]
            n = nearest(blocks, q, np.float32(reach), labels, label, found, squared)
            assert n == len(expected)
            assert np.allclose(distance[found[:n]], distance[expected], rtol=1e-5)
            assert np.allclose(squared[:n], distance[expected] ** 2, rtol=1e-5)


def test_exchange_between_threads():
    sums = run(3, lambda exchange: [sum(exchange.all_gather(10 * k + exchange.rank)) for k in range(50)])
    assert sums == [[30 * k + 3 for k in range(50)]] * 3

    def fails(exchange):
        if exchange.rank == 1:
            raise KeyError("worker 1")
        exchange.all_gather(0)

    with pytest.raises(KeyError, match="worker 1"):
        run(3, fails)


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize(
    "settings",
    [dict(), dict(lazy=True), dict(version=1, workers=2), dict(version=2), dict(version=3, workers=2)],
    ids=str,
)
def test_cuda_solves_what_the_cpu_solves(arm, dl14, settings):
    gpu = dl14_checker(arm, "cuda")
    one, two = (
        prm.solve(START, GOAL, gpu, prm.Settings(shortcut_rounds=0, batch=1024, **settings), seed=0) for _ in range(2)
    )
    cpu = prm.solve(START, GOAL, dl14, prm.Settings(shortcut_rounds=0, batch=1024, **settings), seed=0)
    assert one.solved and np.array_equal(one.path, two.path)
    assert 0.5 < one.samples / cpu.samples < 2 and 0.7 < one.cost / cpu.cost < 1.4  # roundings let the graphs part
    parts = np.concatenate([a + np.linspace(0, 1, 500)[:, None] * (b - a) for a, b in pairwise(one.path)])
    clear = dl14.clearances(parts, up_to=0.01)
    assert np.mean(clear < 0) < 0.01  # between two steps a corner may be cut


@pytest.mark.gpu
@needs_gpu
def test_image_on_cuda():
    result = prm.solve((3, 3), (45, 45), ImageChecker(maze(), device="cuda"), prm.Settings(radius=8.0), seed=2)
    assert result.solved
    assert_free_pixels(result.path, maze())
