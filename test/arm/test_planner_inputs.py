"""What planners take and refuse: settings, seeds, weights, starts and goals of any type, values at the limits, joints
that turn without end."""

from dataclasses import fields

import numpy as np
import pytest
from walled_point import GOAL, START, walled

from gpu_planners.arguments import names_of
from gpu_planners.arm import Status
from gpu_planners.arm.planners import prm, query, rrt_connect
from gpu_planners.arm.planners.result import path_length
from gpu_planners.arm.planners.tree import rrt, rrt_star
from gpu_planners.arm.spaces.interface import Checker, Robot
from gpu_planners.errors import SettingsError
from gpu_planners.papers.dl14.image import ImageChecker
from gpu_planners.parallel.sampling import folded_seed

MODULES = [rrt_connect, prm, rrt, rrt_star]
PLANNERS = pytest.mark.parametrize("planner", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
UPPER = 3.14159  # of a joint as a URDF has it
HUGE = 10**5000  # more digits than Python prints


class Strange:
    def __array__(self, *args, **options):
        raise KeyError("no array")

    def __repr__(self):
        raise KeyError("no text")


@PLANNERS
def test_any_wrong_type_of_a_setting_is_refused_by_name(planner):
    for field in fields(planner.Settings):
        for value in (None, "many", [1.0], {}, 1j, np.nan, -1, HUGE, -np.inf, np.array([1.0]), Strange()):
            if field.name == "weights" and isinstance(value, (list, np.ndarray)):
                continue
            with pytest.raises(SettingsError, match=rf"Settings\.{field.name} is .*allowed"):
                planner.Settings(**{field.name: value})


@PLANNERS
@pytest.mark.parametrize(
    "weights",
    [
        "12",
        None,
        5,
        (1.0, "2"),
        (1.0, None),
        ((1.0, 2.0),),
        [[1.0], [2.0]],
        np.ones((2, 2)),
        (1.0, np.nan),
        (1.0, np.inf),
        (1.0, 0.0),
        (1.0, -1.0),
        (1.0, 1e-30),
        (1e30, 1.0),
        (True, 1.0),
        (1j, 1.0),
        {1.0, 2.0},
        np.float64(3.0),
    ],
    ids=str,
)
def test_weights_are_refused_by_name(planner, weights):
    with pytest.raises(SettingsError, match=r"Settings\.weights.* is .*allowed"):
        planner.Settings(weights=weights)


@PLANNERS
def test_weights_of_the_wrong_number(planner):
    for weights in ((1.0,), np.ones(3)):
        with pytest.raises(
            SettingsError, match="weights has . numbers; allowed: none, or one for each of the 2 joints"
        ):
            planner.solve(START, GOAL, walled(), planner.Settings(weights=weights))
    given = planner.Settings(weights=np.array([4, 1]))
    assert given.weights == (4.0, 1.0) and planner.solve(START, GOAL, walled(), given).solved


@PLANNERS
def test_numpy_settings_do_not_wrap(planner):
    settings = planner.Settings(batch=np.uint8(200), max_samples=np.int16(20_000), time_limit_s=np.float16(8))
    assert type(settings.batch) is int and type(settings.max_samples) is int and type(settings.time_limit_s) is float
    assert planner.solve(START, GOAL, walled(), settings).solved


@PLANNERS
def test_any_integer_is_a_seed(planner):
    paths = {}
    for seed in (5, -5, 2**200, 0, -1, 2**61, 2**62, 2**63, 2**64, -(2**63), 5 + 2**62, 5 + 2**31):
        one, two = (planner.solve(START, GOAL, walled(), seed=seed) for _ in range(2))
        assert one.solved and np.array_equal(one.path, two.path)
        paths[one.path.tobytes()] = seed
    assert len(paths) == 12
    assert all(
        np.array_equal(
            planner.solve(START, GOAL, walled(), seed=kind(5)).path, planner.solve(START, GOAL, walled(), seed=5).path
        )
        for kind in (np.uint8, np.int64)
    )


@PLANNERS
@pytest.mark.parametrize(
    "seed",
    [None, "5", 5.0, True, np.float64(5), np.bool_(True), [5], np.array([5, 6]), Strange()],
    ids=lambda seed: type(seed).__name__,
)
def test_seeds_that_are_none(planner, seed):
    with pytest.raises(SettingsError, match="seed is .*allowed: an integer"):
        planner.solve(START, GOAL, walled(), seed=seed)
    if planner is prm:
        with pytest.raises(SettingsError, match="seed is .*allowed: an integer"):
            prm.build(walled(), seed=seed)
    if planner is rrt_connect:
        with pytest.raises(SettingsError, match="seed is .*allowed: an integer"):
            rrt_connect.solve_batch([START], [GOAL], walled(), seed=seed)


def test_seeds_fold_into_62_bits():
    seeds = [0, 1, 2**62 - 1, 2**62, 2**62 + 1, -1, -5, 5, 2**200, -(2**200), HUGE, HUGE + 1]
    folded = [folded_seed(seed) for seed in seeds]
    assert folded[:3] == seeds[:3] and len(set(folded)) == len(seeds) and all(0 <= seed < 2**62 for seed in folded)
    assert [folded_seed(seed) for seed in folded] == folded


def test_a_batch_has_the_seeds_of_single_problems():
    for seed in (-1, 2**200, 2**62 - 1):
        results = rrt_connect.solve_batch([START] * 3, [GOAL] * 3, walled(), seed=seed)
        for i, result in enumerate(results):
            assert np.array_equal(result.path, rrt_connect.solve(START, GOAL, walled(), seed=seed + i).path)


BAD = [
    "home",
    b"home",
    None,
    5,
    True,
    1j,
    np.array([1j, 2]),
    [1.0, None],
    [1.0, "2"],
    ["1", "2"],
    np.array([0.1, 0.5], dtype=object),
    [[0.1, 0.5], [0.1]],
    [HUGE, 0],
    [True, False],
    {"x": 0.1, "y": 0.5},
    {0.1, 0.5},
    iter([0.1, 0.5]),
    Strange(),
    [Strange()] * 2,
    np.array("0.1"),
    [[[0.1, 0.5]]],
    np.array(["NaT", "NaT"], dtype="M8[s]"),
    [1e400, 0],
    [np.longdouble("1e4000"), 0],
    lambda: 0,
]


@PLANNERS
def test_starts_and_goals_of_any_type(planner):
    checker = walled()
    for bad in BAD:
        start, goal = planner.solve(bad, GOAL, checker), planner.solve(START, bad, checker)
        assert start.status is Status.INVALID_START and start.message.startswith("the start ")
        assert goal.status is Status.INVALID_GOAL and goal.message.startswith("the goal ")
    if planner is rrt_connect:
        results = rrt_connect.solve_batch([*BAD, START], [GOAL] * len(BAD) + [GOAL], checker)
        assert {result.status for result in results[:-1]} == {Status.INVALID_START} and results[-1].solved
        results = rrt_connect.solve_batch([START] * len(BAD) + [START], [*BAD, GOAL], checker)
        assert {result.status for result in results[:-1]} == {Status.INVALID_GOAL} and results[-1].solved


@PLANNERS
def test_integers_and_other_floats_are_numbers(planner):
    checker = ImageChecker(np.ones((10, 10), dtype=bool), device="cpu")
    for kind in (int, np.uint8, np.float16, np.longdouble):
        assert planner.solve(np.array([1, 2]).astype(kind), np.array([[8, 9]]).astype(kind), checker).solved


@PLANNERS
@pytest.mark.parametrize(
    "checker", [None, "walled", 5, ImageChecker, object(), Strange()], ids=lambda checker: type(checker).__name__
)
def test_checkers_that_are_none(planner, checker):
    with pytest.raises(SettingsError, match="checker is .*allowed: a CollisionChecker"):
        planner.solve(START, GOAL, checker)
    if planner is prm:
        with pytest.raises(SettingsError, match="checker is .*allowed: a CollisionChecker"):
            prm.build(checker)
    if planner is rrt_connect:
        with pytest.raises(SettingsError, match="checker is .*allowed: a CollisionChecker"):
            rrt_connect.solve_batch([START], [GOAL], checker)


@PLANNERS
def test_settings_of_something_else(planner):
    for settings in (
        None,
        {},
        "fast",
        planner.Settings,
        next(module for module in MODULES if module is not planner).Settings(),
    ):
        with pytest.raises(
            SettingsError, match=rf"settings is .*allowed: {planner.__name__.rpartition('.')[2]}\.Settings"
        ):
            planner.solve(START, GOAL, walled(), settings)


def test_roadmaps_of_something_else():
    for roadmap in ("map", 5, []):
        with pytest.raises(SettingsError, match="roadmap is none"):
            prm.solve(START, GOAL, walled(), roadmap=roadmap)


def test_batches_that_are_none():
    for starts, goals in ((None, [GOAL]), ([START], 5)):
        with pytest.raises(SettingsError, match="no sequences"):
            rrt_connect.solve_batch(starts, goals, walled())


def open_square(continuous=(False, False)):
    """A point that is free everywhere between -UPPER and UPPER, or three turns about."""
    size = 20.0 if any(continuous) else UPPER
    checker = ImageChecker(np.ones((64, 64), dtype=bool), (-size, -size), (size, size), "cpu")
    object.__setattr__(checker.robot, "continuous", np.array(continuous))
    return checker


@PLANNERS
def test_values_a_little_outside_are_taken_to_the_limit(planner):
    result = planner.solve([3.1416, 0.0], [[0.5, -UPPER - 1e-4], [1.0, UPPER + 9e-4]], open_square())
    assert result.solved and np.array_equal(result.path[0], [UPPER, 0.0])
    end = {0: [0.5, -UPPER], 1: [1.0, UPPER]}[result.goal_index]
    asked = {0: "-3.14169", 1: "3.14249"}[result.goal_index]
    assert np.array_equal(result.path[-1], end)
    assert result.moved_to_limits[0] == "start x = 3.1416 taken to 3.14159" and len(result.moved_to_limits) == 2
    assert result.moved_to_limits[1].startswith(f"goal {result.goal_index} y = {asked}")
    assert result.message == "; ".join(result.moved_to_limits)
    inside = planner.solve([UPPER, 0.0], [0.5, -UPPER], open_square())
    assert inside.solved and inside.moved_to_limits == () and inside.message == ""


@PLANNERS
def test_the_tolerance_is_a_setting(planner):
    start, beyond = [UPPER + 0.05, 0.0], planner.Settings(limit_tolerance=0.1)
    refused = planner.solve(start, GOAL, open_square())
    assert (
        refused.status is Status.START_OUT_OF_LIMITS
        and "x = 3.19159 (allowed -3.14159 to 3.14159, tolerance 0.001)" in refused.message
    )
    assert planner.solve(GOAL, start, open_square()).status is Status.GOAL_OUT_OF_LIMITS
    assert planner.solve(start, GOAL, open_square(), beyond).solved
    exact = planner.solve([UPPER + 1e-9, 0.0], GOAL, open_square(), planner.Settings(limit_tolerance=0.0))
    assert exact.status is Status.START_OUT_OF_LIMITS
    goals = planner.solve(GOAL, [start, [0.1, 0.1]], open_square())
    assert goals.solved and goals.goal_index == 1
    for value in (-1e-9, 0.11, "little"):
        with pytest.raises(SettingsError, match="limit_tolerance is .*allowed: a number from 0.0 to 0.1"):
            planner.Settings(limit_tolerance=value)


def test_a_batch_takes_values_to_the_limit():
    results = rrt_connect.solve_batch([[3.1416, 0.0], [0.0, 0.0]], [GOAL, GOAL], open_square())
    assert results[0].moved_to_limits == ("start x = 3.1416 taken to 3.14159",) and results[1].moved_to_limits == ()


@PLANNERS
@pytest.mark.parametrize("turns", [0, 1, -3, 10**9, -(10**9)])
def test_a_joint_that_turns_without_end_takes_any_value(planner, turns):
    """It goes on from where it stands, the short way round to the goal, whatever the goal's turns."""
    checker = open_square((True, False))
    start, goal = np.array([2.5 + 2 * np.pi * turns, 0.0]), np.array([-2.5 - 2 * np.pi * 7, 1.0])
    result = planner.solve(start, goal, checker, planner.Settings(shortcut_rounds=20, max_samples=2000))
    short = 2 * np.pi - 5.0
    assert result.solved and np.array_equal(result.path[0], start) and result.moved_to_limits == ()
    assert result.path[-1] == pytest.approx([start[0] + short, 1.0], abs=4e-6)
    assert (np.abs(result.path[:, 0] - start[0]) < np.pi + 1e-5).all()
    assert result.cost == pytest.approx(path_length(result.path), abs=1e-4) and result.cost < 3 * np.hypot(short, 1.0)


@PLANNERS
def test_turns_that_float64_cannot_tell_apart_are_refused(planner):
    checker = open_square((True, False))
    far = planner.solve([1e300, 0.0], [0.0, 0.0], checker)
    assert far.status is Status.INVALID_START and "x = 1e+300" in far.message and "1e+10" in far.message
    assert planner.solve([0.0, 0.0], [-1e11, 0.0], checker).status is Status.INVALID_GOAL


def test_a_connection_of_more_steps_than_there_may_be():
    """1.4e8 steps of `range`: beyond 2^24 their number was rounded, and some were never checked."""
    free = np.ones((8, 8), dtype=bool)
    free[2:6, 2:6] = False
    checker = ImageChecker(free, (0.0, 0.0), (1e5, 1e5), "cpu")
    result = rrt_connect.solve([1e3, 1e3], [9.9e4, 1e3], checker, rrt_connect.Settings(range=1e-3, time_limit_s=3600.0))
    assert result.solved and checker.motions_valid(result.path[:-1], result.path[1:]).all()


class Lacking:
    """Another object, less one of its names."""

    def __init__(self, whole, name):
        self._whole, self._name = whole, name

    def __getattr__(self, name):
        if name.startswith("_") or name == self._name:
            raise AttributeError(name)
        return getattr(self._whole, name)


@PLANNERS
def test_a_foreign_checker_has_all_names_of_a_space(planner):
    names = names_of(Checker)
    assert {"robot", "version", "on", "scene_parts", "configurations_valid"} <= names.keys() and len(names) == 14
    for name in names:
        with pytest.raises(SettingsError, match=f"which has no {name}; allowed"):
            planner.solve(START, GOAL, Lacking(walled(), name))
    whole = walled()
    for name in names_of(Robot):
        checker = Lacking(whole, "")
        checker.robot = Lacking(whole.robot, name)
        with pytest.raises(SettingsError, match=f"which has no robot.{name}; allowed"):
            planner.solve(START, GOAL, checker)


@PLANNERS
def test_nobody_looks_for_pairs_that_meet_in_order_to_warm_up(planner, monkeypatch):
    """They would be compiled before the first plan."""
    image, looked = np.ones((100, 100), dtype=bool), []
    image[:, :5] = False
    checker = ImageChecker(image, (0.0, 0.0), (1.0, 1.0))
    assert not checker.configurations_valid(np.zeros((1, 2)))[0]
    monkeypatch.setattr(query, "_warm", set())
    monkeypatch.setattr(query, "_pairs", lambda checker, q: looked.append(q) or "")
    assert planner.solve(START, GOAL, checker, planner.Settings(time_limit_s=30.0)).status in Status
    assert not looked
    assert planner.solve(np.zeros(2), GOAL, checker).status is Status.START_IN_COLLISION
    assert looked
