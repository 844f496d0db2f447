"""rrt_connect and prm: every path re-checked by coal, bad queries named, answers repeatable."""

import os
from dataclasses import replace

import numpy as np
import pytest
from robots_at_hand import READY, checker_among, problem_of
from robots_at_hand import panda as load_panda

from benchmarks import robots
from benchmarks.problems import add_obstacles, load_problems, missing_data, robot_files
from gpu_planners.arm import CollisionChecker, CollisionWorld, Status, load_urdf
from gpu_planners.arm.motion.estimate import estimated_duration
from gpu_planners.arm.planners import prm, rrt_connect
from gpu_planners.arm.planners.query import Query, open_query
from gpu_planners.arm.planners.result import path_length
from gpu_planners.arm.planners.rrt_connect import launch, request
from gpu_planners.arm.planners.rrt_connect.search import draw
from gpu_planners.arm.planners.shortcut import shortcut
from gpu_planners.datasets.furniture import FAMILIES
from gpu_planners.errors import SettingsError
from gpu_planners.papers.dl14.image import ImageChecker

needs_data = pytest.mark.skipif(missing_data() is not None, reason=str(missing_data()))
SLOW_BAXTER = pytest.param("baxter", marks=pytest.mark.slow)
ALL = pytest.param(1, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])
SHARES = pytest.mark.parametrize("every", [35, ALL])  # every 35th problem, or all
PLANNERS = pytest.mark.parametrize("planner", [rrt_connect, prm], ids=["rrt_connect", "prm"])


@pytest.fixture(scope="module")
def panda():
    return load_panda()


@pytest.fixture(scope="module")
def shared_panda():
    return load_urdf(*robot_files("panda"))


@pytest.fixture(scope="module")
def ur5():
    return load_urdf(*robot_files("ur5"), joints=load_problems("ur5")[0].joint_names)


def solve_all(robot, name, problems, planner, settings):
    """Solve and re-check by coal at 1 mm; -> costs."""
    pytest.importorskip("coal")
    from gpu_planners.verify import CoalScene

    unsolved, colliding, costs = [], [], []
    checker = CollisionChecker(robot, CollisionWorld(), "cpu")
    meshes = robots.pieces_of(robot) if name == "ur5" else "hulls"
    bare = CoalScene(*robot_files(name), meshes=meshes, joints=problems[0].joint_names)
    for problem in problems:
        checker.world.clear()
        add_obstacles(checker.world, problem.obstacles)
        result = planner.solve(problem.start, problem.goals, checker, settings, seed=1)
        if not result.solved:
            unsolved.append(f"{problem.name}: {result.message}")
            continue
        assert np.array_equal(result.path[0], problem.start)
        assert np.allclose(result.path[-1], problem.goals[result.goal_index])
        assert result.cost == pytest.approx(path_length(result.path)) and result.message == ""
        hit = bare.among(problem.obstacles).first_collision(result.path, spacing=0.001)
        if hit is not None:
            colliding.append(f"{problem.name}: {hit}")
        costs.append(result.cost)
    assert not unsolved, unsolved
    assert not colliding, colliding
    return np.array(costs)


@needs_data
@SHARES
def test_rrt_connect_solves_panda_problems(shared_panda, every):
    problems = load_problems("panda")[::every]
    costs = solve_all(shared_panda, "panda", problems, rrt_connect, rrt_connect.Settings(time_limit_s=3600.0))
    assert len(costs) == 350 // every
    print(f"{len(costs)} solved, median length {np.median(costs):.2f} rad")
    assert np.median(costs) < 5.5


@needs_data
@SHARES
def test_rrt_connect_solves_ur5_problems(ur5, every):
    problems = load_problems("ur5")[::every]
    assert len(solve_all(ur5, "ur5", problems, rrt_connect, rrt_connect.Settings(time_limit_s=3600.0))) == 350 // every


@needs_data
def test_prm_solves_problems(shared_panda):
    problems = [p for p in load_problems("panda") if p.family in ("box", "table_under_pick")][::15]
    assert len(solve_all(shared_panda, "panda", problems, prm, prm.Settings(time_limit_s=3600.0))) == len(problems) > 5


def solve_generated(robot, planner, settings, families=tuple(FAMILIES), seed=1):
    """Solve the first problem of each family and re-check the paths by coal at 1 mm."""
    pytest.importorskip("coal")
    for family in families:
        rig, problem = problem_of(robot, family)
        result = planner.solve(problem.start, problem.goals, checker_among(rig.model, problem), settings, seed=seed)
        assert result.solved, f"{problem.name}: {result.message}"
        assert np.array_equal(result.path[0], problem.start)
        off = result.path[-1] - problem.goals[result.goal_index]
        turns = np.where(rig.model.continuous, np.round(off / (2 * np.pi)), 0)  # the same place, whole turns away
        assert np.allclose(off, 2 * np.pi * turns, atol=1e-5)
        hit = rig.coal_scene(problem.obstacles).first_collision(result.path, spacing=0.001)
        assert hit is None, f"{problem.name}: {hit}"


@pytest.mark.parametrize("robot", [name if name != "baxter" else SLOW_BAXTER for name in robots.ROBOTS])
def test_rrt_connect_solves_generated_problems(robot):
    solve_generated(robot, rrt_connect, rrt_connect.Settings(time_limit_s=3600.0))


@pytest.mark.parametrize("robot", ["panda", "tiago", "gantry"])
def test_prm_solves_generated_problems(robot):
    solve_generated(robot, prm, prm.Settings(time_limit_s=3600.0), families=("shelf", "table"))


@PLANNERS
def test_same_seed_same_path(panda, planner):
    _, problem = problem_of("panda", "box")
    checker = checker_among(panda, problem)
    one, two, other = (planner.solve(problem.start, problem.goals, checker, seed=s) for s in (4, 4, 5))
    assert one.solved and np.array_equal(one.path, two.path) and one.samples == two.samples
    assert other.solved and not np.array_equal(one.path, other.path)


@pytest.mark.parametrize(
    "settings", [{"batch": 16}, {"batch": 3, "shortcut_rounds": 0}, {"dynamic_domain": 1e6, "range": 0.5}], ids=str
)
def test_other_settings_solve_as_well(settings):
    """Rounds of many samples are what CUDA takes."""
    solve_generated("panda", rrt_connect, rrt_connect.Settings(time_limit_s=3600.0, **settings))


def test_a_batch_answers_each_problem(panda):
    """Good and bad problems in distinct scenes: each has the answer that it has alone."""
    problems = [problem_of("panda", family, index)[1] for family in ("box", "table") for index in range(2)]
    checkers = [checker_among(panda, problem) for problem in problems]
    starts, goals = [p.start for p in problems], [p.goals for p in problems]
    starts[1] = np.full(7, 8.0)
    goals[2] = np.full((1, 7), np.nan)
    results = rrt_connect.solve_batch(starts, goals, checkers, seed=5)
    alone = [rrt_connect.solve(*p, seed=5 + i) for i, p in enumerate(zip(starts, goals, checkers))]
    assert [r.status for r in results] == [
        Status.SOLVED,
        Status.START_OUT_OF_LIMITS,
        Status.INVALID_GOAL,
        Status.SOLVED,
    ]
    for result, expected in zip(results, alone):
        assert result.status is expected.status and result.message == expected.message
        assert np.array_equal(result.path, expected.path)
    assert rrt_connect.solve_batch([], [], checkers[0]) == []
    assert rrt_connect.solve_batch([None, starts[0]], goals[:1] * 2, checkers[0])[0].status is Status.INVALID_START
    with pytest.raises(SettingsError, match="4 starts, 3 goals"):
        rrt_connect.solve_batch(starts, goals[:3], checkers)


def test_the_time_limit_is_for_a_whole_batch():
    """Problems that no thread takes up in time draw no sample."""
    n = 2 * os.cpu_count()
    checker = ImageChecker(np.tile(np.arange(21) != 10, (21, 1)), device="cpu")  # a wall across
    settings = rrt_connect.Settings(max_samples=100_000_000, time_limit_s=1.0)
    results = rrt_connect.solve_batch([[2.5, 10.5]] * n, [[18.5, 10.5]] * n, checker, settings)
    assert {result.status for result in results} == {Status.TIMED_OUT}
    assert results[0].samples > 0 and results[-1].samples == 0


def test_restarts_find_shorter_paths(panda):
    _, problem = problem_of("panda", "cage", 1)
    checker = checker_among(panda, problem)
    once = rrt_connect.solve(problem.start, problem.goals, checker, seed=0)
    best = rrt_connect.solve(
        problem.start, problem.goals, checker, rrt_connect.Settings(restarts=12, time_limit_s=3600.0), seed=0
    )
    assert best.cost < once.cost and best.samples > once.samples
    assert best.history[0, 2] == once.cost and best.history[-1, 2] == best.cost
    assert (np.diff(best.history, axis=0)[:, :2] >= 0).all() and (np.diff(best.history[:, 2]) < 0).all()


def test_the_time_to_optimise_is_kept_and_used(panda):
    _, problem = problem_of("panda", "cage", 1)
    query = problem.start, problem.goals, checker_among(panda, problem)
    once = rrt_connect.solve(*query, seed=1)
    best = rrt_connect.solve(*query, rrt_connect.Settings(optimise_s=3.0, time_limit_s=3600.0), seed=1)
    assert best.cost < once.cost and best.samples > once.samples and 3.0 <= best.time_s < 60
    few = rrt_connect.solve(*query, rrt_connect.Settings(optimise_s=50.0, restarts=12, time_limit_s=3600.0), seed=1)
    as_many = rrt_connect.solve(*query, rrt_connect.Settings(restarts=12, time_limit_s=3600.0), seed=1)
    assert np.array_equal(few.path, as_many.path) and few.samples == as_many.samples


def test_objective_time_takes_the_quickest_of_the_same_paths(panda):
    lengths, seconds = np.zeros((2, 4)), np.zeros((2, 4))
    _, problem = problem_of("panda", "shelf", 0)
    query = problem.start, problem.goals, checker_among(panda, problem)
    for i, objective in enumerate(("length", "time")):
        settings = rrt_connect.Settings(restarts=20, objective=objective, time_limit_s=3600.0)
        for seed in range(4):
            found = rrt_connect.solve(*query, settings, seed=seed)
            lengths[i, seed] = found.cost
            seconds[i, seed] = estimated_duration(found.path, panda.velocity, panda.acceleration)
    assert (lengths[0] <= lengths[1]).all() and (seconds[1] <= seconds[0]).all() and (seconds[1] < seconds[0]).any()


def test_objective_time_needs_limits():
    settings = rrt_connect.Settings(objective="time")
    with pytest.raises(SettingsError, match="objective is 'time'.*limits of velocity and acceleration"):
        rrt_connect.solve(*straight_or_around(15), settings)


def straight_or_around(gap):
    """A point left of a wall whose only opening is at row `gap`, counted from above; 10: on the straight way to the
    goal."""
    free = np.tile(np.arange(21) != 10, (21, 1))
    free[gap] = True
    return [2.5, 10.5], [18.5, 10.5], ImageChecker(free, device="cpu")


def test_no_restart_follows_a_path_that_cannot_get_shorter():
    query = straight_or_around(10)
    once, again = (rrt_connect.solve(*query, rrt_connect.Settings(restarts=n, time_limit_s=3600.0)) for n in (0, 50))
    assert again.solved and again.samples == once.samples and len(again.history) == 1


def test_no_restart_follows_the_time_limit(monkeypatch):
    """Even if each search alone would still be solved: the clock of the query stands still until it has been asked a
    few times."""
    asked = []
    monkeypatch.setattr(Query, "late", lambda query: bool(asked.append(None)) or len(asked) > 4)
    query, settings = straight_or_around(15), rrt_connect.Settings(time_limit_s=3600.0)
    result = rrt_connect.solve(*query, replace(settings, restarts=50))
    looks = len(asked)
    assert result.solved and looks <= 6 + os.cpu_count()  # threads work ahead
    asked.clear()
    assert result.samples > rrt_connect.solve(*query, settings).samples


def test_weights_count_in_the_cost(panda):
    _, problem = problem_of("panda", "cage", 1)
    checker = checker_among(panda, problem)
    weights = (100.0, 1, 1, 1, 1, 1, 1)
    plain, heavy = (
        rrt_connect.solve(problem.start, problem.goals, checker, rrt_connect.Settings(weights=w, restarts=8), seed=1)
        for w in ((), weights)
    )
    assert heavy.cost == pytest.approx(path_length(heavy.path, np.array(weights)))
    assert heavy.cost < path_length(plain.path, np.array(weights))


def test_first_samples_lie_near_the_start_and_the_goals_and_later_ones_anywhere(panda):
    checker, settings = CollisionChecker(panda, CollisionWorld(), "cpu"), rrt_connect.Settings()
    goals = [READY + 0.1, READY - 0.2]
    queries = [open_query(READY, some, checker, settings, check=False) for some in (goals, goals[:1])]
    rows, ints = np.zeros((2, request.row_size(7, 2)), np.float32), np.zeros((2, request.INTS), np.int32)
    problems = request.Problems(queries, [0, 0], np.zeros((2, 2), int))
    request.write_requests(rows, ints, problems, settings, split=1, capacity=64)
    for row, least in zip(rows, (READY - 0.2, READY), strict=True):
        bounds, q = request.open_bounds.py_func(row[request.HEAD :], 7), np.zeros(7, np.float32)
        np.testing.assert_allclose(bounds.near_lower, np.maximum(panda.lower, least - request.NEAR), rtol=1e-6)
        np.testing.assert_allclose(bounds.near_upper, np.minimum(panda.upper, READY + 0.1 + request.NEAR), rtol=1e-6)
        for width, low, high in ((0.0, bounds.near_lower, bounds.near_upper), (1.0, panda.lower, panda.upper)):
            drawn = np.array([(draw(bounds, 3, i, np.float32(width), q), q.copy())[1] for i in range(3000)])
            assert (drawn >= low - 1e-6).all() and (drawn <= high + 1e-6).all()
            assert (np.ptp(drawn, axis=0) > 0.99 * (high - low)).all()


@pytest.mark.slow
def test_rounds_that_grow_solve_as_well(monkeypatch):
    """As on CUDA: some small rounds, then larger ones."""
    settings = rrt_connect.Settings(batch=16, shortcut_rounds=0, time_limit_s=3600.0)
    rig, problem = problem_of("panda", "box")
    checker = checker_among(rig.model, problem)
    rrt_connect.solve(problem.start, problem.goals, checker, replace(settings, max_samples=1))  # compiled
    rounds = []

    def growing(*arguments, **same):
        rounds.append((2, same["batch"]))
        write_requests(*arguments, **{**same, "first": 2})

    write_requests = launch.write_requests
    monkeypatch.setattr(launch, "write_requests", growing)
    for robot in ("panda", "tiago"):
        solve_generated(robot, rrt_connect, settings)
    assert set(rounds) == {(2, 16)}


def test_a_world_that_changes_during_the_query(panda):
    _, problem = problem_of("panda", "cage", 1)
    checker = checker_among(panda, problem)

    class Meddled:
        """The checker, whose world changes when the search begins to read the scene."""

        def __getattr__(self, name):
            return getattr(checker, name)

        @property
        def packed_scene(self):
            scene = checker.packed_scene
            if "late" not in checker.world.names:
                checker.world.add_sphere("late", 0.01, np.eye(4))
            return scene

    rrt_connect.solve(problem.start, problem.goals, checker)  # compiled before the meddling
    result = rrt_connect.solve(problem.start, problem.goals, Meddled())
    assert result.status is Status.WORLD_CHANGED and "again" in result.message and len(result.path) == 0


def test_shortening_keeps_the_ends_and_never_lengthens(panda):
    _, problem = problem_of("panda", "cage", 1)
    checker = checker_among(panda, problem)
    raw = rrt_connect.solve(problem.start, problem.goals, checker, rrt_connect.Settings(shortcut_rounds=0), seed=2).path
    lengths = []
    for passes in (0, 1, 2, 10):
        path = shortcut(raw, checker, passes, seed=0)
        assert np.array_equal(path[0], raw[0]) and np.array_equal(path[-1], raw[-1])
        assert checker.motions_valid(path[:-1], path[1:]).all()
        lengths.append(path_length(path))
    assert lengths[0] == path_length(raw) and (np.diff(lengths) <= 0).all() and lengths[-1] < 0.95 * lengths[0]


def test_shortening_finds_the_straight_line(panda):
    """Without obstacles the shortest way is known."""
    checker = CollisionChecker(panda, CollisionWorld(), "cpu")
    detour = np.stack([READY, *(READY + np.random.default_rng(0).normal(0, 0.1, (50, 7))), READY + 0.2])
    assert len(shortcut(detour, checker, 3, seed=0)) == 2


@PLANNERS
def test_several_goals_some_unusable(panda, planner):
    _, problem = problem_of("panda", "box")
    checker = checker_among(panda, problem)
    outside = np.full(7, 9.0)
    result = planner.solve(problem.start, np.stack([outside, problem.goals[0]]), checker)
    assert result.solved and result.goal_index == 1
    assert np.allclose(result.path[-1], problem.goals[0])


@PLANNERS
@pytest.mark.parametrize(
    ("start", "goals", "status", "word"),
    [
        (np.zeros(6), None, Status.INVALID_START, "(7,)"),
        (np.full(7, np.nan), None, Status.INVALID_START, "finite"),
        ("home", None, Status.INVALID_START, "numbers"),
        (None, np.zeros((0, 7)), Status.INVALID_GOAL, "(G, 7)"),
        (None, np.zeros((2, 8)), Status.INVALID_GOAL, "(G, 7)"),
        (None, [np.inf] * 7, Status.INVALID_GOAL, "finite"),
        (np.full(7, 8.0), None, Status.START_OUT_OF_LIMITS, "panda_joint1 = 8"),
        (None, np.full(7, 8.0), Status.GOAL_OUT_OF_LIMITS, "panda_joint1 = 8"),
    ],
    ids=lambda x: x.name if isinstance(x, Status) else "",
)
def test_bad_queries_are_named(panda, planner, start, goals, status, word):
    checker = CollisionChecker(panda, CollisionWorld(), "cpu")
    result = planner.solve(READY if start is None else start, READY if goals is None else goals, checker)
    assert result.status is status and word in result.message
    assert len(result.path) == 0 and result.goal_index == -1 and result.cost == np.inf


@PLANNERS
def test_collisions_of_the_ends_name_the_pair(panda, planner):
    checker = CollisionChecker(panda, CollisionWorld(), "cpu")
    checker.world.add_sphere("ball", 0.06, panda.link_poses(READY)["panda_hand"].reshape(4, 4))
    away = READY + np.array([1.0, 0, 0, 0, 0, 0, 0])
    at_start, at_goal = planner.solve(READY, away, checker), planner.solve(away, READY, checker)
    assert at_start.status is Status.START_IN_COLLISION and "panda_hand_0 with ball" in at_start.message
    assert at_goal.status is Status.GOAL_IN_COLLISION and "panda_hand_0 with ball" in at_goal.message


@PLANNERS
def test_budgets_end_the_search(panda, planner):
    _, problem = problem_of("panda", "cage", 1)
    checker = checker_among(panda, problem)
    few = planner.solve(problem.start, problem.goals, checker, planner.Settings(max_samples=3))
    assert few.status is Status.SAMPLES_EXHAUSTED and few.samples == 3 and "3 samples" in few.message
    checker.world.add_sphere("wall", 3.0, np.eye(4) + np.eye(4)[:, 3:] @ np.array([[0, 0, 0, 0]]))
    assert planner.solve(problem.start, problem.goals, checker).status is Status.START_IN_COLLISION


def test_start_is_the_goal(panda):
    checker = CollisionChecker(panda, CollisionWorld(), "cpu")
    result = rrt_connect.solve(READY, READY, checker)
    assert result.solved and result.cost == 0.0


@pytest.mark.parametrize(
    ("module", "field", "value"),
    [
        (rrt_connect, "range", 0.0005),
        (rrt_connect, "range", float("nan")),
        (rrt_connect, "max_samples", 0),
        (rrt_connect, "max_samples", 1.5),
        (rrt_connect, "time_limit_s", -1.0),
        (rrt_connect, "batch", True),
        (prm, "batch", -1),
        (prm, "neighbour_factor", "many"),
        (prm, "lazy", 1),
        (prm, "near", 1.5),
        (prm, "radius", 0.0),
        (prm, "version", 4),
        (prm, "workers", 0),
        (prm, "roadmap_nodes", 0),
    ],
)
def test_settings_refuse_by_name(module, field, value):
    with pytest.raises(SettingsError, match=f"{field} is .*allowed"):
        module.Settings(**{field: value})
