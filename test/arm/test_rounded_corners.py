"""Rounded corners and what a controller plays: limits at dense samples, and free by coal whatever it interpolates."""

import numpy as np
import pytest
from robots_at_hand import checker_among, maker_of, problem_of
from scipy.interpolate import BPoly, CubicHermiteSpline

from benchmarks.problems import Problem
from gpu_planners.arm import CollisionChecker, CollisionWorld, rrt_connect
from gpu_planners.arm.collision.reach import joint_reach
from gpu_planners.arm.motion import curve
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.errors import SettingsError

SETTINGS = rrt_connect.Settings(time_limit_s=3600.0)


def played(trajectory, count):
    """[(name, (N, dof))] what a joint trajectory controller makes of the points: quintics, cubics, straight lines."""
    times = np.linspace(0, trajectory.duration, count)
    cubic = CubicHermiteSpline(trajectory.times, trajectory.positions, trajectory.velocities)
    linear = np.stack([np.interp(times, trajectory.times, q) for q in trajectory.positions.T], axis=1)
    return [("quintic", trajectory.at(times)[0]), ("cubic", cubic(times)), ("linear", linear)]


def jerks(trajectory, count):
    """(N - 1, dof) differences of the accelerations, per second."""
    times = np.linspace(0, trajectory.duration, count)
    return np.diff(trajectory.at(times)[2], axis=0) / (times[1] - times[0])


@pytest.mark.parametrize(("robot", "family"), [("panda", "table"), ("ur5", "shelf"), ("gantry", "shelf")])
def test_what_a_controller_plays_is_free_by_coal_and_within_the_limits(robot, family):
    rig, problem = problem_of(robot, family)
    model, checker = rig.model, checker_among(rig.model, problem)
    result = rrt_connect.solve(problem.start, problem.goals, checker, SETTINGS, seed=0)
    assert result.solved and len(result.path) > 2
    stopping = time_parameterize(result.path, model.velocity, model.acceleration)
    rounded = time_parameterize(result.path, model.velocity, model.acceleration, deviation=0.1, checker=checker)
    assert rounded.duration < stopping.duration
    scene = rig.coal_scene(problem.obstacles)
    for name, path in played(rounded, 1500):
        hits = [k for k in range(len(path)) if scene.in_collision(path[k])]
        assert not hits, f"{name}: {len(hits)} of {len(path)} places collide"
    _, v, a = rounded.at(np.linspace(0, rounded.duration, 5000))
    assert (np.abs(v) <= model.velocity * (1 + 1e-3)).all() and (np.abs(a) <= model.acceleration * (1 + 1e-3)).all()
    assert (np.abs(jerks(rounded, 5000)) <= model.acceleration / 0.1 * 1.02).all()


def limits_of(robot):
    return robot.velocity, robot.acceleration


def corner(angle=0.8):
    """The Panda alone, and a path of two segments -> checker, path."""
    robot = maker_of("panda").model
    checker = CollisionChecker(robot, CollisionWorld(), "cpu")
    start = np.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])
    middle, end = start.copy(), start.copy()
    middle[0] += angle
    end[0] += angle
    end[1] += angle
    return checker, np.array([start, middle, end])


def test_a_corner_that_would_collide_when_rounded_is_rounded_less():
    """On this problem rounding as far as is asked for collides; with the proof nothing does."""
    rig, problem = problem_of("ur5", "shelf")
    model, checker = rig.model, checker_among(rig.model, problem)
    path = rrt_connect.solve(problem.start, problem.goals, checker, SETTINGS, seed=1).path
    bold, proven = (time_parameterize(path, *limits_of(model), deviation=1.0, checker=c) for c in (None, checker))
    scene = rig.coal_scene(problem.obstacles)
    hits = [any(scene.in_collision(q) for q in played(each, 1500)[0][1]) for each in (bold, proven)]
    assert hits == [True, False] and proven.duration > bold.duration


def test_a_corner_is_passed_within_the_deviation_without_a_stop():
    checker, path = corner()
    free = time_parameterize(path, *limits_of(checker.robot), deviation=0.2, checker=checker)
    places, speeds, _ = free.at(np.linspace(0, free.duration, 2000))
    assert 0.01 < np.linalg.norm(places - path[1], axis=1).min() <= 0.2 + 1e-9
    assert np.linalg.norm(speeds[100:-100], axis=1).min() > 0.1


def test_thicker_robots_need_more_room_from_obstacles_and_from_themselves():
    checker, path = corner()
    rng = np.random.default_rng(0)
    q = rng.uniform(checker.robot.lower, checker.robot.upper, (3000, 7))
    T = np.eye(4)
    T[:3, 3] = [0.5, 0.0, 0.4]
    checker.world.add_box("block", [0.3, 0.3, 0.3], T)
    clearances, thick = checker.clearances(q), checker.thickened(0.01).configurations_valid(q)
    assert not thick[clearances < 0.0079].any() and thick[clearances > 0.0202].all()
    alone = CollisionChecker(checker.robot, CollisionWorld(), "cpu")
    clearances, thick = alone.clearances(q), alone.thickened(0.01).configurations_valid(q)
    assert not thick[clearances < 0.0079].any() and thick[clearances > 0.0202].all()
    assert (thick < alone.configurations_valid(q)).any()


def test_a_thicker_robot_sees_the_world_and_the_margin_of_now():
    checker, path = corner()
    tcp, crowded = checker.robot.link_poses(path[0])["panda_hand_tcp"][0], CollisionWorld()
    crowded.add_sphere("ball", 0.05, tcp)
    assert checker.thickened(0.001).configurations_valid(path[:1])[0]
    checker.world = crowded
    assert not checker.thickened(0.001).configurations_valid(path[:1])[0]
    tcp[2, 3] -= 0.2
    aside = CollisionWorld()
    aside.add_sphere("ball", 0.05, tcp)
    checker.world = aside
    assert checker.thickened(0.001).configurations_valid(path[:1])[0]
    checker.margin = 0.3
    assert not checker.thickened(0.001).configurations_valid(path[:1])[0]


def test_a_tube_holds_what_leaves_the_motion_by_less_than_its_thickness():
    """Whatever is moved off a motion that a thicker robot finds free, by less than the thickness, is free."""
    checker, _ = corner()
    robot, rng = checker.robot, np.random.default_rng(1)
    T = np.eye(4)
    T[:3, 3] = [0.45, 0.1, 0.45]
    checker.world.add_box("block", [0.2, 0.2, 0.2], T)
    reach = joint_reach(robot)
    assert joint_reach(robot) is reach  # every motion that is timed asks for it
    a = rng.uniform(robot.lower, robot.upper, (600, 7))
    b = np.clip(a + rng.normal(size=a.shape) * 0.1, robot.lower, robot.upper)
    free = checker.thickened(0.02).motions_valid(a, b)
    assert 50 < free.sum()
    off = rng.normal(size=(free.sum(), 7))
    off *= 0.02 / (np.abs(off) @ reach.T).max(axis=1)[:, None]
    places = a[free] + rng.random((free.sum(), 1)) * (b - a)[free] + off
    inside = ((places > robot.lower) & (places < robot.upper)).all(axis=1)
    assert checker.configurations_valid(places[inside]).all()


def test_control_points_bound_a_quintic():
    rng = np.random.default_rng(2)
    starts, ends, lengths = rng.normal(size=(50, 3, 4)), rng.normal(size=(50, 3, 4)), rng.uniform(0.1, 2, 50)
    bound = curve.aside(curve.bernstein(lengths, starts, ends))
    for k in range(50):
        quintic = BPoly.from_derivatives([0, lengths[k]], np.stack([starts[k], ends[k]]))
        places = quintic(np.linspace(0, lengths[k], 200))
        assert np.allclose(places[[0, -1]], [starts[k, 0], ends[k, 0]])
        chord = ends[k, 0] - starts[k, 0]
        share = np.clip((places - starts[k, 0]) @ chord / (chord @ chord), 0, 1)
        off = np.abs(places - starts[k, 0] - share[:, None] * chord)
        # the nearest place of the chord is no farther than the one that the bound is about
        assert np.linalg.norm(off, axis=1).max() <= np.linalg.norm(bound[k]) + 1e-9


def test_a_checker_that_is_none_is_named():
    with pytest.raises(SettingsError, match="checker"):
        time_parameterize([[0, 0], [1, 0], [1, 1]], [1, 1], [1, 1], deviation=0.1, checker=Problem)
