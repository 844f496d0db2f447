"""Paths through many points: never slower than with stops, near the best along smooth curves, within limits, free."""

import numpy as np
import pytest
from curve_oracle import beyond_limits, greatest_rates, least_duration
from hypothesis import given, settings
from hypothesis import strategies as st
from robots_at_hand import maker_of
from test_rounded_corners import played
from test_trajectory import distance_to_polyline

from gpu_planners.arm import CollisionChecker, CollisionWorld, rrt_connect, sequence
from gpu_planners.arm.motion import optimal
from gpu_planners.arm.motion.curve import at, straight
from gpu_planners.arm.motion.fit import fitted
from gpu_planners.arm.trajectory import time_parameterize

BEST = 1.5  # times the best along a smooth curve


def bent(lengths, turn=0.3):
    """A path in a plane (K, 2) of legs that turn by the same angle."""
    headings = turn * np.arange(len(lengths))
    steps = np.asarray(lengths)[:, None] * np.stack([np.cos(headings), np.sin(headings)], axis=1)
    return np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)])


def sines(count, joints, places=None):
    """A smooth path (count, joints), each joint by a sine of its own."""
    s = np.linspace(0.0, 1.0, count) if places is None else places
    return 0.6 * np.stack([np.sin(2 * np.pi * (k % 4 + 1) * s + 0.7 * k) / (k % 4 + 1) for k in range(joints)], axis=1)


def check(trajectory, path, velocity, acceleration, deviation):
    """Limits of the quintics that are played, and the stated distance, of the motion from the path and back."""
    assert (np.diff(trajectory.times) > 0).all() and (np.round(trajectory.times * 1e9) / 1e9 == trajectory.times).all()
    assert (trajectory.positions[[0, -1]] == path[[0, -1]]).all()
    assert not trajectory.velocities[[0, -1]].any() and not trajectory.accelerations[[0, -1]].any()
    v, a, j = greatest_rates(trajectory)
    assert (v <= velocity * (1 + 1e-6)).all() and (a <= acceleration * (1 + 1e-5)).all()
    assert (j <= acceleration / 0.1 * 1.001).all()
    q = trajectory.at(np.linspace(0, trajectory.duration, 1500))[0]
    assert distance_to_polyline(q, path).max() <= deviation + 1e-6
    assert distance_to_polyline(path[:: max(len(path) // 200, 1)], q).max() <= deviation + 1e-3


@pytest.mark.parametrize("extra", [0.0, 1e-9, 1e-8, 3e-8, 1e-7, 1e-6, 1e-5, 1e-4])
def test_what_corners_leave_of_a_leg_sets_no_speed(extra):
    """Rounding was told for the shape of what is left, and the motion crawled: 405.7 s for 1e-8."""
    path = bent([0.1, 0.1, 0.1 + extra, 0.1, 0.1])
    motion = time_parameterize(path, [1, 1], [1, 1], deviation=0.1)
    assert motion.duration == pytest.approx(2.21, abs=0.02)
    check(motion, path, np.ones(2), np.ones(2), 0.1)


@given(st.integers(0, 10**6), st.integers(2, 30), st.sampled_from([1e-4, 0.01, 0.1, 5.0]))
@settings(max_examples=80, deadline=None)
def test_rounding_is_never_slower_than_stopping(seed, count, deviation):
    """Also where legs of very different lengths, and nearly equal ones, follow each other."""
    rng = np.random.default_rng(seed)
    lengths = rng.choice([1.0, 0.1, 3e-3, 1e-5]) * rng.choice([1.0, 1.0, 1e-2], count)
    lengths += 10.0 ** rng.uniform(-9, -4, count) * (rng.random(count) < 0.5)
    path = bent(lengths, float(rng.choice([0.01, 0.3, 1.0, np.pi])))
    stopping, rounded = (time_parameterize(path, [2, 1], [4, 3], deviation=d).duration for d in (0.0, deviation))
    assert rounded <= stopping * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("count", [12, 24, 100, 400, 1000])
@pytest.mark.parametrize("digits", [7, 15])
def test_circles_of_many_legs(count, digits):
    angles = np.linspace(0.0, 3.0, count)
    path = np.stack([np.cos(angles), np.sin(angles)], axis=1).round(digits)
    motion = time_parameterize(path, [1, 1], [1, 1], deviation=0.1)
    check(motion, path, np.ones(2), np.ones(2), 0.1)
    assert motion.duration <= BEST * 3.94  # by the oracle below, and by toppra


@pytest.mark.parametrize(("count", "joints"), [(30, 3), (100, 7), (384, 2), (1000, 14), (1000, 6)])
def test_smooth_curves_take_at_most_half_more_than_the_best(count, joints):
    path, velocity, acceleration = sines(count, joints), np.full(joints, 2.0), np.full(joints, 5.0)
    best = least_duration(path, velocity, acceleration)
    for deviation in (0.1, 0.01)[: 1 + (count >= 100)]:  # 30 points are a polygon of which the curve is farther away
        motion = time_parameterize(path, velocity, acceleration, deviation=deviation)
        check(motion, path, velocity, acceleration, deviation)
        assert motion.duration <= BEST * best


@pytest.mark.parametrize("kind", ["uneven", "noisy", "repeated", "closed", "there and back"])
def test_points_of_all_kinds(kind):
    rng, velocity, acceleration = np.random.default_rng(3), np.full(3, 2.0), np.full(3, 5.0)
    smooth = sines(300, 3)
    best, path = least_duration(smooth, velocity, acceleration), smooth
    if kind == "uneven":
        path = sines(300, 3, np.r_[0.0, np.sort(rng.random(298)), 1.0])
    elif kind == "noisy":
        path = smooth + 1e-3 * rng.normal(size=smooth.shape)
    elif kind == "repeated":
        path = np.repeat(smooth, rng.integers(1, 4, len(smooth)), axis=0)
    elif kind == "closed":
        path = np.concatenate([smooth, smooth[:1]])
    else:
        path, best = np.concatenate([smooth, smooth[::-1]]), 2 * best
    motion = time_parameterize(path, velocity, acceleration, deviation=0.1)
    check(motion, path, velocity, acceleration, 0.1)
    assert motion.duration <= BEST * best


def test_a_single_joint_that_goes_to_and_fro():
    path = np.sin(np.linspace(0.0, 20.0, 400))[:, None]
    motion = time_parameterize(path, [1.0], [1.0], deviation=0.05)
    check(motion, path, np.ones(1), np.ones(1), 0.05)


def test_few_legs_are_timed_as_before():
    """Straight lines and rounded corners, to the digit: what is fitted is for many legs."""
    path = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1.0]])
    motion = time_parameterize(path, [2, 1, 3], [4, 2, 8], deviation=0.1)
    assert len(motion.times) < 60
    check(motion, path, np.array([2, 1, 3.0]), np.array([4, 2, 8.0]), 0.1)


def test_the_quickest_along_a_line_is_a_trapezium_of_acceleration():
    line = straight(np.zeros(2), np.array([1.0, 0.5]))
    limits = optimal.Bounds(*(np.full((1, 2), most) for most in (1.0, 1.0, 10.0)))
    pace = optimal.quickest(line, limits)
    assert pace.time[-1] == pytest.approx(1 + 1 / 1 + 0.1, rel=0.05)  # and never less than that
    assert pace.time[-1] > 2.05 and (np.diff(pace.rows[:, 0]) > 0).all()


def test_a_curve_is_proven_piece_by_piece_and_stops_where_none_is():
    """Pieces near one place are never free: the curve stops at the corners there, and only there."""
    path = sines(200, 2)
    where = path[60]

    def proof(curve, which):
        places = at(curve, np.linspace(0, curve.s[-1], 20 * len(which) + 1)[:-1])[:, 0].reshape(len(which), 20, -1)
        return (np.abs(places - where).max(axis=2) > 0.05).all(axis=1)[which]

    parts = fitted(path, np.full(198, 0.02), proof)
    assert len(parts) >= 2 and parts[0].first == 0 and parts[-1].last == 199
    for each in parts:
        q = at(each.curve, np.linspace(0, each.curve.s[-1], 500))[:, 0]
        assert np.allclose(q[[0, -1]], path[[each.first, each.last]])
        assert distance_to_polyline(q, path[each.first : each.last + 1]).max() <= 0.02
    between = {each.last for each in parts[:-1]} | {each.first for each in parts[1:]}
    assert all(np.abs(path[k] - where).max() < 0.2 for k in between)
    whole = fitted(path, np.full(198, 0.02))
    assert len(whole) == 1 and (whole[0].first, whole[0].last) == (0, 199)


def test_what_is_played_of_a_fitted_curve_is_free_by_coal_and_within_the_limits():
    """Balls stand inside the bends, where a curve that is only near the path would go through them."""
    rig = maker_of("panda").rig
    robot, world = maker_of("panda").model, CollisionWorld()
    checker = CollisionChecker(robot, world, "cpu")
    ready = np.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])
    s = np.linspace(0, 2 * np.pi, 120)[:, None]
    path = ready + np.hstack(
        [0.8 * np.sin(s), 0.3 * np.cos(2 * s) - 0.3, 0 * s, 0.2 * np.sin(3 * s), 0 * s, 0 * s, 0 * s]
    )
    alone = time_parameterize(path, robot.velocity, robot.acceleration, deviation=0.15, checker=checker)
    obstacles = []
    for k, q in enumerate(alone.at(np.linspace(0.1, 0.9, 9) * alone.duration)[0]):
        tip = robot.link_poses(q[None])[robot.tip_link][0]
        nearest = path[np.argmin(np.linalg.norm(path - q, axis=1))]
        on_path = robot.link_poses(nearest[None])[robot.tip_link][0]
        out = tip[:3, 3] - on_path[:3, 3]
        if np.linalg.norm(out) < 5e-3:
            continue
        position = on_path[:3, 3] + out / np.linalg.norm(out) * 0.13
        obstacle = {
            "type": "sphere",
            "name": f"ball {k}",
            "radius": 0.02,
            "position": position.tolist(),
            "quat_xyzw": [0, 0, 0, 1],
        }
        T = np.eye(4)
        T[:3, 3] = position
        world.add_sphere(obstacle["name"], 0.02, T)
        if checker.motions_valid(path[:-1], path[1:]).all():
            obstacles.append(obstacle)
        else:
            world.remove(obstacle["name"])
    assert obstacles
    motion = time_parameterize(path, robot.velocity, robot.acceleration, deviation=0.15, checker=checker)
    stopping = time_parameterize(path, robot.velocity, robot.acceleration)
    assert motion.duration < 0.5 * stopping.duration
    assert not beyond_limits(motion, robot.lower, robot.upper)
    v, a, j = greatest_rates(motion)
    assert (v <= robot.velocity * 1.001).all() and (a <= robot.acceleration * 1.001).all()
    scene = rig.coal_scene(obstacles)
    for name, q in played(motion, 1500):
        assert not any(scene.in_collision(each) for each in q), name


def test_free_motions_blended_through_many_places(desk_arm):
    """24 places of a circle, with 7 decimals: 1527 s, when rounding was told for the shape of what corners leave."""
    robot, checker = desk_arm
    angles = np.linspace(0, 2 * np.pi, 25)[:, None]
    circle = robot.named_states["ready"] + 0.2 * np.hstack([np.sin(angles), np.cos(angles) - 1, np.zeros((25, 4))])
    circle = circle.round(7)
    parts = [sequence.Free(goals=q, blend_radius=0.5) for q in circle[1:-1]] + [sequence.Free(goals=circle[-1])]
    answer = sequence.solve(circle[0], parts, checker, rrt_connect)
    best = least_duration(circle, robot.velocity, robot.acceleration)
    assert answer.trajectory.duration <= BEST * best
    assert len(answer.ends_s) == 24 and (np.diff(answer.ends_s) > 0).all()
    assert answer.ends_s[-1] == pytest.approx(answer.trajectory.duration)
    tips = robot.link_poses(answer.trajectory.at(answer.ends_s)[0])[robot.tip_link][:, :3, 3]
    goals = robot.link_poses(circle[1:])[robot.tip_link][:, :3, 3]
    assert np.linalg.norm(tips - goals, axis=1).max() <= 0.1


@pytest.fixture(scope="module")
def desk_arm():
    from gpu_planners.arm import load_urdf
    from gpu_planners.share import share_folder

    folder = share_folder() / "urdf"
    robot = load_urdf(folder / "desk_arm.urdf", srdf=folder / "desk_arm.srdf", group="arm")
    return robot, CollisionChecker(robot, CollisionWorld(), device="cpu")
