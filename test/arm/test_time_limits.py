"""Time limits of the arm's planners: kept whatever the number of goals, problems, samples of a round or nodes, and
answered truthfully.

Bounds are generous, since machines are slow at times: without the limits these queries take from seconds to hours.
"""

import threading
import time
from pathlib import Path

import numpy as np
import pytest
from walled_point import GOAL as POINT_GOAL
from walled_point import START as POINT_START
from walled_point import walled

from gpu_planners.arm import CollisionChecker, Status, load_urdf
from gpu_planners.arm.collision.scene_file import fixed_frames, load_scene
from gpu_planners.arm.planners import prm, rrt_connect
from gpu_planners.arm.planners.prm import versions
from gpu_planners.arm.planners.prm.roadmap import BLOCKED, FREE, UNCHECKED, Graph
from gpu_planners.arm.planners.query import GREATEST_GOALS, in_pieces
from gpu_planners.arm.planners.result import path_length
from gpu_planners.arm.planners.shortcut import shortcut
from gpu_planners.arm.planners.tree import rrt, rrt_star
from gpu_planners.device import njit
from gpu_planners.errors import StoppedError
from gpu_planners.papers.dl14.image import ImageChecker
from gpu_planners.parallel.stopping import Stop, heed, heeding
from gpu_planners.parallel.team import clock_ns, deadline_in, left_ms

ROOT = Path(__file__).resolve().parents[2]
START, GOAL = np.zeros(4), np.full(4, 3.0)
PLANNERS = pytest.mark.parametrize(
    "planner", [rrt_connect, prm, rrt, rrt_star], ids=["rrt_connect", "prm", "rrt", "rrt_star"]
)
GRACE = 3.0  # seconds: what another process may take from a busy machine


@pytest.fixture
def dl14():
    arm = load_urdf(ROOT / "urdf" / "dl14_arm.urdf", ROOT / "urdf" / "dl14_arm.srdf")
    return CollisionChecker(arm, load_scene(ROOT / "config" / "scenes" / "dl14.yaml", fixed_frames(arm)), "cpu")


def free_goals(checker, n):
    q = np.random.default_rng(0).uniform(checker.robot.lower, checker.robot.upper, (8 * n, checker.robot.dof))
    return q[checker.configurations_valid(q)][:n]


def divided():
    """A point between two halves of an image that no way joins."""
    return ImageChecker(np.tile(np.arange(100) != 50, (100, 1)), (0.0, 0.0), (1.0, 1.0), "cpu")


def timed(planner, *args, **options):
    """-> PlanningResult and seconds, the second time, when all is compiled."""
    planner.solve(*args, **options)
    began = time.perf_counter()
    return planner.solve(*args, **options), time.perf_counter() - began


def assert_late(result, limit):
    assert result.status is Status.TIMED_OUT and result.message.startswith(f"no path after {limit:g} s (")
    assert len(result.path) == 0 and result.goal_index == -1 and result.cost == np.inf and result.time_s >= limit


def test_compiled_code_has_the_clock_of_python():
    @njit
    def now():
        return clock_ns()

    now()
    times = [time.monotonic_ns(), now(), clock_ns(), now(), time.monotonic_ns()]
    assert times == sorted(times) and times[-1] - times[0] < 10**9
    assert 999 <= left_ms(deadline_in(1000)) <= 1000 and left_ms(0) == 0


@pytest.mark.timeout(900)
@PLANNERS
def test_ten_thousand_goals(dl14, planner):
    """Each is free, and few can be reached straight away: the motions to them alone take seconds."""
    goals = free_goals(dl14, 10_000)
    result, took = timed(planner, START, goals, dl14, planner.Settings(time_limit_s=0.3))
    assert took < 0.3 + GRACE
    if result.solved:
        assert dl14.motions_valid(result.path[:-1], result.path[1:]).all()
    else:
        assert_late(result, 0.3)


@PLANNERS
@pytest.mark.parametrize("limit", [1e-3, 0.1])
def test_as_many_goals_as_are_allowed(planner, limit):
    checker = divided()
    goals = np.random.default_rng(0).uniform([0.6, 0.0], [1.0, 1.0], (GREATEST_GOALS, 2))
    result, took = timed(planner, [0.2, 0.5], goals, checker, planner.Settings(time_limit_s=limit))
    assert took < limit + GRACE
    assert_late(result, limit)
    more = planner.solve([0.2, 0.5], np.repeat(goals, 2, axis=0), checker)
    assert more.status is Status.INVALID_GOAL and str(GREATEST_GOALS) in more.message


@PLANNERS
def test_large_rounds(planner):
    """The largest batch that the settings allow."""
    batch = {rrt_connect: 4096, prm: 1_000_000}.get(planner, 1 << 14)
    settings = planner.Settings(batch=batch, time_limit_s=0.2, max_samples=100_000_000)
    result, took = timed(planner, [0.2, 0.5], [0.8, 0.5], divided(), settings)
    assert took < 0.2 + GRACE
    assert_late(result, 0.2)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_parallel_versions_of_prm(dl14, version):
    """Rounds of a million samples, and the motions to many goals."""
    point, took = timed(
        prm,
        [0.2, 0.5],
        [0.8, 0.5],
        divided(),
        prm.Settings(version=version, workers=2, batch=1_000_000, time_limit_s=0.2, max_samples=100_000_000),
    )
    assert took < 0.2 + GRACE
    assert_late(point, 0.2)
    goals = free_goals(dl14, 5000)
    arm, took = timed(prm, START, goals, dl14, prm.Settings(version=version, workers=2, time_limit_s=0.2))
    assert took < 0.2 + GRACE
    assert arm.solved or arm.status is Status.TIMED_OUT


def test_goal_regions_of_many_goals():
    """rrt_star compares each node with each goal."""
    goals = np.random.default_rng(0).uniform([0.6, 0.0], [1.0, 1.0], (2000, 2))
    settings = rrt_star.Settings(goal_radius=0.05, time_limit_s=0.3, max_samples=1_000_000)
    result, took = timed(rrt_star, POINT_START, goals, walled(), settings)
    assert took < 0.3 + GRACE and result.solved


def test_a_batch_of_many_problems():
    n, limit = 5000, 0.1
    goals = [[0.8, 0.5]] * (n - 1) + [["far", 0]]  # so that each is looked at by itself
    settings = rrt_connect.Settings(time_limit_s=limit, max_samples=100_000_000)
    rrt_connect.solve_batch([[0.2, 0.5]], goals[:1], divided(), settings)
    began = time.perf_counter()
    results = rrt_connect.solve_batch([[0.2, 0.5]] * n, goals, divided(), settings)
    assert time.perf_counter() - began < limit + GRACE
    assert len(results) == n and {result.status for result in results[:-1]} == {Status.TIMED_OUT}
    assert results[-1].status in (Status.TIMED_OUT, Status.INVALID_GOAL)


def test_shortening_ends_in_time_and_keeps_whole_passes(dl14):
    """A path of many corners along a proven motion: it gets shorter with time, is free whenever it was cut, and never
    longer."""
    settings = rrt_connect.Settings(shortcut_rounds=0, time_limit_s=60)
    raw = rrt_connect.solve(START, GOAL, dl14, settings, seed=3).path
    t = np.linspace(0, 1, 20)[:, None]
    raw = np.concatenate([a + t[:-1] * (b - a) for a, b in zip(raw, raw[1:])] + [raw[-1:]])
    assert shortcut(raw, dl14, 10_000, 0, deadline=clock_ns() - 1) is raw
    lengths = []
    for milliseconds in (1, 5, 50, 5000):
        began = clock_ns()
        path = shortcut(raw, dl14, 10_000, 0, deadline=began + 1_000_000 * milliseconds)
        assert clock_ns() - began < 1e9 * GRACE + 1e6 * milliseconds
        assert np.array_equal(path[0], raw[0]) and np.array_equal(path[-1], raw[-1])
        assert dl14.motions_valid(path[:-1], path[1:]).all()
        lengths.append(path_length(path))
    assert max(lengths) <= path_length(raw) * (1 + 1e-6) and lengths[-1] < path_length(raw)


def test_restarts_end_in_time():
    settings = rrt_connect.Settings(restarts=100_000, time_limit_s=0.2)
    result, took = timed(rrt_connect, POINT_START, POINT_GOAL, walled(), settings)
    assert result.solved and took < 0.2 + GRACE


def test_a_roadmap_is_built_in_time_and_true(dl14):
    settings = prm.Settings(roadmap_nodes=1_000_000, time_limit_s=3.0)
    prm.build(dl14, prm.Settings(roadmap_nodes=10))
    began = time.perf_counter()
    roadmap = prm.build(dl14, settings)
    assert time.perf_counter() - began < 3.0 + GRACE
    assert 0 < len(roadmap.nodes) < 1_000_000 and dl14.configurations_valid(roadmap.nodes).all()
    known = np.flatnonzero(roadmap.edge_states != UNCHECKED)[:500]
    ends = roadmap.nodes[roadmap.edges[known]]
    assert np.array_equal(roadmap.edge_states[known] == FREE, dl14.motions_valid(ends[:, 0], ends[:, 1]))


def test_queries_through_a_roadmap_end_in_time(dl14):
    """Many goals to connect, and obstacles that have changed; what there was no time for is checked when it is
    needed."""
    roadmap = prm.build(dl14, prm.Settings(roadmap_nodes=2000, lazy=True, time_limit_s=60))
    goals = free_goals(dl14, 10_000)
    result, took = timed(prm, START, goals, dl14, prm.Settings(time_limit_s=0.2), roadmap=roadmap)
    assert took < 0.2 + GRACE and result.status in (Status.TIMED_OUT, Status.SOLVED)
    dl14.world.add_sphere("ball", 0.5, np.eye(4) + np.array([[0, 0, 0, 2.0], [0] * 4, [0, 0, 0, 2.0], [0] * 4]))
    began = time.perf_counter()
    result = prm.solve(START, GOAL, dl14, prm.Settings(time_limit_s=0.05), roadmap=roadmap)
    assert time.perf_counter() - began < 0.05 + GRACE and result.status in (Status.TIMED_OUT, Status.SOLVED)
    assert (roadmap.edge_states == UNCHECKED).any()
    result = prm.solve(START, GOAL, dl14, prm.Settings(time_limit_s=60), roadmap=roadmap)
    assert result.solved and dl14.motions_valid(result.path[:-1], result.path[1:]).all()
    assert not (roadmap.edge_states[roadmap.edges.max(axis=1) >= len(roadmap.nodes)] == BLOCKED).any()


@pytest.mark.parametrize("lazy", [False, True])
def test_trees_that_have_met_answer_without_time_for_the_shortest_path(dl14, lazy, monkeypatch):
    shortest = prm.solve(START, GOAL, dl14, prm.Settings(shortcut_rounds=0, lazy=lazy, time_limit_s=60), seed=1)
    monkeypatch.setattr(Graph, "shortest_path", lambda *args: [])
    result = prm.solve(
        START, [GOAL, GOAL - 0.01], dl14, prm.Settings(shortcut_rounds=0, lazy=lazy, time_limit_s=60), seed=1
    )
    assert result.solved and result.cost >= shortest.cost * (1 - 1e-5) and result.goal_index in (0, 1)
    assert np.array_equal(result.path[0], START) and np.array_equal(
        result.path[-1], [GOAL, GOAL - 0.01][result.goal_index]
    )
    assert dl14.motions_valid(result.path[:-1], result.path[1:]).all()


def test_pieces_grow_and_end_at_the_deadline():
    sizes = []

    def check(q):
        sizes.append(len(q))
        time.sleep(0.002)
        return q > 0

    numbers = np.arange(-50, 50)
    assert np.array_equal(in_pieces(check, clock_ns() + 10**11, numbers), numbers > 0) and sizes[0] < max(sizes) < 100
    assert len(in_pieces(check, clock_ns() - 1, numbers)) == 0
    cut = in_pieces(check, clock_ns() + 5_000_000, numbers)
    assert 0 < len(cut) < 100 and np.array_equal(cut, numbers[: len(cut)] > 0)


@pytest.mark.parametrize("drawn, status", [(5, Status.TIMED_OUT), (1000, Status.SAMPLES_EXHAUSTED)])
def test_a_search_that_another_rank_ended_is_late(dl14, monkeypatch, drawn, status):
    """Its own clock says that there is time left."""
    monkeypatch.setattr(versions, "grow_by_version", lambda *_: (None, -1, drawn))
    settings = prm.Settings(version=2, max_samples=1000, time_limit_s=600.0)
    assert prm.solve(START, GOAL, dl14, settings).status is status


def build(dl14, limit):
    prm.build(dl14, prm.Settings(roadmap_nodes=1_000_000, time_limit_s=limit))


def solve(planner):
    def call(_, limit):
        settings = planner.Settings(time_limit_s=limit, max_samples=100_000_000)
        planner.solve(POINT_START, POINT_GOAL, divided(), settings)

    return call


@pytest.mark.parametrize("search", [solve(rrt_connect), solve(rrt), build], ids=["rrt_connect", "rrt", "prm"])
def test_a_search_that_is_stopped_ends_soon(dl14, search):
    """It has no end, and a time limit of a minute."""
    search(dl14, 0.1)  # compiled
    stop = Stop()
    threading.Timer(0.5, stop.set).start()
    began = time.monotonic()
    with heeding(stop), pytest.raises(StoppedError):
        search(dl14, 60.0)
    assert time.monotonic() - began < 0.5 + GRACE


@pytest.mark.parametrize("further", [{"restarts": 1000}, {"searches": 4, "batch": 64}])
def test_further_searches_end_with_the_first(further):
    checker, stop = walled(), Stop()
    settings = rrt_connect.Settings(time_limit_s=60.0, optimise_s=60.0, max_samples=100_000_000, **further)
    threading.Timer(0.5, stop.set).start()
    began = time.monotonic()
    with heeding(stop), pytest.raises(StoppedError):
        rrt_connect.solve(POINT_START, POINT_GOAL, checker, settings)
    assert time.monotonic() - began < 0.5 + GRACE


def test_who_heeds_a_stop_is_told_by_those_around_it():
    outer = Stop()
    inner = Stop(outer)
    with heeding(inner):
        heed()
        with heeding(None):
            outer.set()
            heed()
        with pytest.raises(StoppedError):
            heed()
    heed()
    assert inner.is_set() and not Stop().is_set()
