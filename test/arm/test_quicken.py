"""Changes that make a motion quicker: free by coal, timed by time_parameterize, and the ends stay as asked."""

from dataclasses import replace

import numpy as np
import pytest
from robots_at_hand import checker_among, problem_of

from gpu_planners.arm import Status, rrt_connect
from gpu_planners.arm.motion.estimate import estimated_durations
from gpu_planners.arm.planners.rrt_connect import quicken as quickening
from gpu_planners.arm.planners.rrt_connect.quicken import CHORDS, quicken
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.parallel.team import NEVER, clock_ns


@pytest.fixture(params=["panda", "kinova", "gantry", pytest.param("baxter", marks=pytest.mark.slow)])
def case(request):
    """(rig, problem, checker, path)"""
    rig, problem = problem_of(request.param, "shelf")
    checker = checker_among(rig.model, problem)
    path = rrt_connect.solve(problem.start, problem.goals, checker, seed=4).path
    return rig, problem, checker, path


def duration(path, checker):
    robot = checker.robot
    return time_parameterize(path, robot.velocity, robot.acceleration, deviation=0.1, checker=checker).duration


def test_a_quicker_path_is_free_by_coal_and_takes_less_time(case):
    pytest.importorskip("coal")
    rig, problem, checker, path = case
    found = quicken(path, checker, NEVER, 0)
    assert np.array_equal(found[[0, -1]], path[[0, -1]])
    assert duration(found, checker) < 0.97 * duration(path, checker)
    inside = (found >= rig.model.lower) & (found <= rig.model.upper) | rig.model.continuous
    assert inside.all()
    assert rig.coal_scene(problem.obstacles).first_collision(found, spacing=0.002) is None
    again = quicken(path, checker, NEVER, 0)  # the seed decides
    assert np.array_equal(again, found)


def test_there_is_nothing_to_change_on_a_straight_path_or_after_the_deadline(case):
    _, _, checker, path = case
    straight = path[[0, 0, -1, -1]]
    assert np.array_equal(quicken(straight, checker, NEVER, 0), path[[0, -1]])
    assert np.array_equal(quicken(path, checker, clock_ns(), 0), path)


def test_one_joint_that_turns_back_at_its_limit():
    rig, problem = problem_of("gantry", "box")
    checker = checker_among(rig.model, problem)
    q = np.repeat(problem.start[None], 5, axis=0)
    q[1:4, 0] = rig.model.upper[0]  # corners that repeat, where noise is cut off by the limit
    q[2, 1] = rig.model.lower[1]
    found = quicken(q, checker, clock_ns() + 10**8, 0)
    assert np.isfinite(found).all() and np.array_equal(found[[0, -1]], q[[0, -1]])


def test_paths_are_timed_together_as_each_alone():
    rng = np.random.default_rng(0)
    limits, paths = (np.full(3, 1.0), np.full(3, 2.0)), [rng.uniform(-2, 2, (count, 3)) for count in (2, 4, 7)]
    padded = np.array([np.r_[path, np.repeat(path[-1:], 7 - len(path), axis=0)] for path in paths])
    together, cuts = estimated_durations(padded, np.full((3, 5), 0.1), *limits)
    for path, seconds, cut in zip(paths, together, cuts, strict=True):
        alone, own = estimated_durations(path[None], np.full((1, len(path) - 2), 0.1), *limits)
        assert seconds == pytest.approx(alone[0]) and np.allclose(cut[: len(path) - 2], own[0])


def test_solve_changes_the_quickest_path_at_last(case):
    _, problem, checker, _ = case
    few = rrt_connect.Settings(restarts=8, time_limit_s=600.0)
    settings = replace(few, optimise_s=600.0, objective="time")
    found = rrt_connect.solve(problem.start, problem.goals, checker, settings, seed=1)
    assert found.solved and checker.motions_valid(found.path[:-1], found.path[1:]).all()
    assert found.history[-1, 2] == pytest.approx(found.cost) and found.time_s < 300
    shortest = rrt_connect.solve(problem.start, problem.goals, checker, few, seed=1)
    assert shortest.cost <= found.history[-2, 2] and duration(found.path, checker) < duration(shortest.path, checker)


def test_a_world_that_changes_meanwhile_is_told(monkeypatch):
    rig, problem = problem_of("panda", "shelf")
    checker = checker_among(rig.model, problem)

    def meanwhile(path, checker, deadline, seed):
        checker.world.add_sphere("new", 0.1, np.eye(4) + 5 * np.eye(4, k=3))
        return path

    monkeypatch.setattr(rrt_connect.planner, "quicken", meanwhile)
    settings = rrt_connect.Settings(optimise_s=0.1, objective="time")
    found = rrt_connect.solve(problem.start, problem.goals, checker, settings)
    assert found.status is Status.WORLD_CHANGED and not len(found.path) and found.samples > 0


def test_no_check_begins_that_would_end_after_the_deadline(monkeypatch, case):
    """A motion seems to take a second."""
    rig, _, checker, path = case
    now, counts = [0], []

    class Slow:
        robot = rig.model

        def motions_valid(self, starts, ends):
            counts.append(len(starts))
            now[0] += len(starts) * 10**9
            return checker.motions_valid(starts, ends)

    monkeypatch.setattr(quickening, "clock_ns", lambda: now[0])
    corners = CHORDS * (len(path) - 2)
    quicken(path, Slow(), 4 * corners * 10**9 + 50 * 10**9, 0)
    assert counts[:4] == [corners] * 4 and 0 < sum(counts[4:]) <= 50
    assert np.array_equal(quicken(path, Slow(), now[0] + 10**8, 0), path) and sum(counts[4:]) <= 50 + corners
