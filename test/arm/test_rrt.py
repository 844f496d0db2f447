"""rrt, and what rrt_star shares with it: paths re-checked by other code, goal regions, budgets, repeatability, bad
input."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from plane_oracle import along, arm_meets_boxes
from robots_at_hand import checker_among, problem_of
from walled_point import DEVICES, GOAL, OPTIMUM, PLAIN, START, free_by_oracle, walled

from gpu_planners.arm import Status
from gpu_planners.arm.planners.result import path_length
from gpu_planners.arm.planners.tree import rrt, rrt_star
from gpu_planners.arm.planners.tree.search import TreeSearch
from gpu_planners.errors import SettingsError
from gpu_planners.papers.bkf11.planar import PlanarChecker, nine_link_scene

PLANNERS = pytest.mark.parametrize("planner", [rrt, rrt_star], ids=["rrt", "rrt_star"])
BLOCKED = np.array([0.5, 0.5])


@pytest.mark.parametrize("device", DEVICES)
@PLANNERS
@pytest.mark.parametrize("batch", [1, 256])
def test_paths_of_the_nine_link_arm(device, planner, batch):
    arm, boxes, start, goal = nine_link_scene()
    checker = PlanarChecker(arm, boxes, device)
    for seed in range(3):
        result = planner.solve(start, goal, checker, planner.Settings(batch=batch, max_samples=2000, **PLAIN), seed)
        assert result.solved and np.array_equal(result.path[0], start) and np.array_equal(result.path[-1], goal)
        assert result.cost == pytest.approx(path_length(result.path)) and result.goal_index == 0
        for a, b in zip(result.path, result.path[1:]):
            assert not arm_meets_boxes(arm.lengths, along(a, b, 100), boxes, -2e-6).any()


@PLANNERS
@pytest.mark.parametrize("family", ["shelf", "box"])
def test_paths_of_the_panda_are_free_by_coal(planner, family):
    pytest.importorskip("coal")
    rig, problem = problem_of("panda", family, 1)
    settings = planner.Settings(max_samples=1500, time_limit_s=3600.0, shortcut_rounds=0)
    result = planner.solve(problem.start, problem.goals, checker_among(rig.model, problem), settings)
    assert result.solved, result.message
    assert np.array_equal(result.path[0], problem.start)
    assert np.allclose(result.path[-1], problem.goals[result.goal_index])
    assert rig.coal_scene(problem.obstacles).first_collision(result.path, spacing=0.001) is None


def test_a_range_bounds_the_motions():
    for batch in (1, 64):
        result = rrt.solve(START, GOAL, walled(), rrt.Settings(range=0.07, batch=batch, **PLAIN), seed=1)
        lengths = np.linalg.norm(np.diff(result.path, axis=0), axis=1)
        assert result.solved and lengths.max() <= 0.07 * (1 + 1e-5) and len(lengths) > OPTIMUM / 0.07
        assert free_by_oracle(result.path[:-1], result.path[1:]).all()


def test_shortening_lowers_the_weighted_cost():
    weights = (9.0, 1.0)
    for seed in range(4):
        raw, short = (
            rrt.solve(START, GOAL, walled(), rrt.Settings(weights=weights, shortcut_rounds=rounds), seed)
            for rounds in (0, 12)
        )
        assert short.cost < raw.cost and short.cost == pytest.approx(path_length(short.path, weights))
        assert free_by_oracle(short.path[:-1], short.path[1:]).all()


def test_rrt_stops_at_the_first_path_unless_told_otherwise():
    first = rrt.solve(START, GOAL, walled(), rrt.Settings(max_samples=4000, **PLAIN))
    all_drawn = rrt.solve(START, GOAL, walled(), rrt.Settings(max_samples=4000, stop_at_first=False, **PLAIN))
    assert first.solved and first.samples < 1000 and len(first.history) == 1
    assert all_drawn.samples == 4000 and all_drawn.cost == first.cost  # nothing is rewired, the goal keeps its parent


@PLANNERS
def test_goal_region(planner):
    """The path may end anywhere within the radius, and is as much shorter."""
    settings = planner.Settings(max_samples=5000, goal_radius=0.1, goal_bias=0.0, **PLAIN)
    result = planner.solve(START, GOAL, walled(), settings)
    assert result.solved and np.linalg.norm(result.path[-1] - GOAL) <= 0.1 + 1e-6
    assert free_by_oracle(result.path[:-1], result.path[1:]).all()
    if planner is rrt_star:
        assert OPTIMUM - 0.1 < result.cost < 1.03 * (OPTIMUM - 0.1)


@PLANNERS
def test_start_is_a_goal(planner):
    result = planner.solve(START, np.stack([GOAL, START]), walled())
    assert result.solved and result.cost == 0.0 and result.goal_index == 1 and len(result.path) == 2
    near = planner.solve(START, START + 0.01, walled(), planner.Settings(goal_radius=0.1))
    assert near.solved and near.cost == 0.0


@PLANNERS
def test_same_seed_same_path(planner):
    one, two, other = (
        planner.solve(START, GOAL, walled(), planner.Settings(max_samples=500), seed) for seed in (3, 3, 4)
    )
    assert np.array_equal(one.path, two.path) and one.samples == two.samples
    assert other.solved and not np.array_equal(one.path, other.path)


@pytest.mark.gpu
@pytest.mark.parametrize("device", DEVICES[1:])
@PLANNERS
def test_same_seed_same_path_on_cuda(device, planner):
    arm, boxes, start, goal = nine_link_scene()
    checker = PlanarChecker(arm, boxes, device)
    settings = planner.Settings(max_samples=20_000, **PLAIN)
    results = [planner.solve(start, goal, checker, settings, 5) for _ in range(5)]
    assert all(np.array_equal(result.path, results[0].path) for result in results)


@PLANNERS
@pytest.mark.parametrize(
    ("start", "goals", "status", "word"),
    [
        (np.zeros(3), GOAL, Status.INVALID_START, "(2,)"),
        ([np.nan, 0], GOAL, Status.INVALID_START, "finite"),
        (START, np.zeros((0, 2)), Status.INVALID_GOAL, "(G, 2)"),
        ([-1.0, 0.5], GOAL, Status.START_OUT_OF_LIMITS, "x = -1"),
        (START, [[0.5, 2.0], [3.0, 0.5]], Status.GOAL_OUT_OF_LIMITS, "y = 2"),
        (BLOCKED, GOAL, Status.START_IN_COLLISION, "pixel"),
        (START, [BLOCKED, [0.5, 2.0]], Status.GOAL_IN_COLLISION, "pixel"),
    ],
    ids=lambda x: x.name if isinstance(x, Status) else "",
)
def test_bad_queries_are_named(planner, start, goals, status, word):
    result = planner.solve(start, goals, walled())
    assert result.status is status and word in result.message
    assert len(result.path) == 0 and result.goal_index == -1 and result.cost == np.inf and len(result.history) == 0


@PLANNERS
def test_unusable_goals_are_left_out(planner):
    result = planner.solve(START, [BLOCKED, [5.0, 5.0], GOAL], walled())
    assert result.solved and result.goal_index == 2 and np.array_equal(result.path[-1], GOAL)


@PLANNERS
def test_budgets_end_the_search(planner):
    checker = walled()
    checker.set_image(
        np.where(np.arange(100) == 50, False, True)[None].repeat(100, axis=0)
    )  # nothing gets past column 50
    few = planner.solve(START, GOAL, checker, planner.Settings(max_samples=70))
    assert few.status is Status.SAMPLES_EXHAUSTED and few.samples == 70 and "70 samples" in few.message
    late = planner.solve(START, GOAL, checker, planner.Settings(max_samples=10_000_000, time_limit_s=0.05))
    assert late.status is Status.TIMED_OUT and 0 < late.samples < 10_000_000


@PLANNERS
def test_a_world_that_changes_meanwhile_is_named(planner, monkeypatch):
    checker, advance = walled(), TreeSearch.advance

    def meanwhile(search):
        advance(search)
        checker.set_image(checker.image)

    planner.solve(START, GOAL, checker)
    monkeypatch.setattr(TreeSearch, "advance", meanwhile)
    result = planner.solve(START, GOAL, checker, planner.Settings(max_samples=1000))
    assert result.status is Status.WORLD_CHANGED and len(result.path) == 0


@PLANNERS
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("range", -1.0),
        ("range", float("nan")),
        ("range", 1e-6),
        ("goal_radius", -0.1),
        ("goal_bias", 1.5),
        ("batch", -1),
        ("batch", 2.5),
        ("max_samples", 0),
        ("time_limit_s", 0.0),
        ("weights", (1.0, 0.0)),
        ("shortcut_rounds", "many"),
    ],
)
def test_settings_refuse_by_name(planner, field, value):
    with pytest.raises(SettingsError, match=f"{field}.* is .*allowed"):
        planner.Settings(**{field: value})


def test_settings_of_one_planner_refuse_by_name():
    with pytest.raises(SettingsError, match="radius_factor is .*allowed"):
        rrt_star.Settings(radius_factor=0.0)
    with pytest.raises(SettingsError, match="informed is .*allowed"):
        rrt_star.Settings(informed="yes")
    with pytest.raises(SettingsError, match="stop_at_first is .*allowed"):
        rrt.Settings(stop_at_first=1)
    with pytest.raises(SettingsError, match="weights has 3 numbers"):
        rrt_star.solve(START, GOAL, walled(), rrt_star.Settings(weights=(1.0, 1.0, 1.0)))


@pytest.mark.gpu
@pytest.mark.parametrize("device", DEVICES[1:])
@PLANNERS
def test_queries_of_two_threads_do_not_disturb_each_other_on_a_device(device, planner):
    arm, boxes, start, goal = nine_link_scene()
    checker = PlanarChecker(arm, boxes, device)
    settings = planner.Settings(batch=64, max_samples=1000, **PLAIN)

    def solve(seed):
        return planner.solve(start, goal, checker, settings, seed).path

    alone = [solve(seed) for seed in range(8)]
    with ThreadPoolExecutor(2) as threads:
        together = list(threads.map(solve, range(8)))
    assert all(np.array_equal(one, other) for one, other in zip(alone, together))
