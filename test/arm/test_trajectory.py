"""Timed paths: limits at dense samples, rest at both ends, and the stated distance from the polyline."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import BPoly

from gpu_planners.arm.motion import pacing
from gpu_planners.arm.motion.estimate import estimated_duration
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.errors import SettingsError

VELOCITY = np.array([2.0, 1.0, 3.0])
ACCELERATION = np.array([4.0, 2.0, 8.0])


def distance_to_polyline(points, path):
    """(N,) joint-space distance of points (N, dof) from the polyline (K, dof)."""
    steps = np.diff(path, axis=0)
    along = np.einsum("nkd,kd->nk", points[:, None] - path[None, :-1], steps) / np.maximum((steps**2).sum(1), 1e-30)
    nearest = path[:-1] + np.clip(along, 0, 1)[..., None] * steps
    return np.linalg.norm(points[:, None] - nearest, axis=2).min(axis=1)


def check_rules(trajectory, path, deviation, velocity=VELOCITY, acceleration=ACCELERATION):
    times = trajectory.times
    assert times[0] == 0 and (np.diff((times * 1e9).astype(np.int64)) > 0).all()
    assert (trajectory.velocities[[0, -1]] == 0).all() and (trajectory.accelerations[[0, -1]] == 0).all()
    assert (trajectory.positions[0] == path[0]).all() and (trajectory.positions[-1] == path[-1]).all()
    q, v, a = trajectory.at(np.linspace(0, trajectory.duration, 2000))
    assert (np.abs(v) <= velocity * (1 + 1e-6)).all()
    assert (np.abs(a) <= acceleration * (1 + 1e-5) + 1e-6).all()
    assert distance_to_polyline(q, path).max() <= deviation + 1e-6


@given(st.integers(0, 10**6), st.integers(2, 9), st.sampled_from([0.0, 0.01, 0.1, 5.0]))
@settings(max_examples=60, deadline=None)
def test_random_paths(seed, count, deviation):
    rng = np.random.default_rng(seed)
    path = rng.uniform(-3, 3, (count, 3)) * rng.choice([1.0, 1e-3], (count, 1))
    check_rules(time_parameterize(path, VELOCITY, ACCELERATION, deviation=deviation), path, deviation)


@pytest.mark.parametrize("count, seed", [(20, 178), (60, 127), (200, 920), (20, 7), (60, 8)])
def test_the_quintics_that_a_controller_plays_keep_the_jerk_limit(count, seed):
    """Also those of phases that last microseconds, as where the greatest acceleration is just reached."""
    rng = np.random.default_rng(seed)
    path, velocity = rng.uniform(-3, 3, (count, 4)), 10 ** rng.uniform(-1, 1, 4)
    acceleration = velocity * 10 ** rng.uniform(-0.5, 1.5, 4)
    found = time_parameterize(path, velocity, acceleration, deviation=0.5)
    rows = np.stack([found.positions, found.velocities, found.accelerations], axis=1)
    for begin, end, seconds in zip(rows[:-1], rows[1:], np.diff(found.times), strict=True):
        q = BPoly.from_derivatives([0.0, seconds], [begin, end])
        jerk = np.abs(q.derivative(3)(np.linspace(0.0, seconds, 7)))
        assert (jerk <= acceleration / 0.1 * 1.01).all()


@pytest.mark.parametrize("deviation", [0.0, 0.1])
def test_legs_that_are_none_are_left_out(deviation):
    path = np.array([[0, 0, 0], [1e-8, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1 + 1e-8, 0], [1, 1 + 2e-8, 0]])
    found = time_parameterize(path, VELOCITY, ACCELERATION, deviation=deviation)
    plain = time_parameterize(path[[0, 2, 5]], VELOCITY, ACCELERATION, deviation=deviation)
    assert found.duration == pytest.approx(plain.duration) and np.array_equal(found.positions[[0, -1]], path[[0, -1]])
    assert estimated_duration(path, VELOCITY, ACCELERATION, deviation) < plain.duration
    assert estimated_duration(path[:0], VELOCITY, ACCELERATION) == 0


@pytest.mark.parametrize("seed", range(8))
def test_the_estimated_duration_is_near(seed):
    rng = np.random.default_rng(seed)
    paths = [rng.uniform(-2, 2, (count, len(VELOCITY))) for count in (2, 3, 5, 8)]
    exact = np.array([time_parameterize(path, VELOCITY, ACCELERATION, deviation=0.1).duration for path in paths])
    estimated = np.array([estimated_duration(path, VELOCITY, ACCELERATION) for path in paths])
    assert (0.85 * exact < estimated).all() and (estimated < 1.05 * exact).all()
    assert estimated_duration(paths[0][[0, 0]], VELOCITY, ACCELERATION) == 0


def test_one_joint_alone_reaches_its_own_limits():
    trajectory = time_parameterize([[0, 0, 0], [0, 5, 0]], VELOCITY, ACCELERATION)
    assert np.isclose(np.abs(trajectory.velocities[:, 1]).max(), VELOCITY[1])
    assert np.isclose(np.abs(trajectory.accelerations[:, 1]).max(), ACCELERATION[1])
    # trapezium of 5 rad at 1 rad/s and 2 rad/s^2, plus the time that the jerk limit adds
    assert np.isclose(trajectory.duration, 5 / 1 + 1 / 2 + 0.1)


def test_stops_at_corners_unless_told_otherwise():
    path = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0.0]])
    stopping, rounded = (time_parameterize(path, VELOCITY, ACCELERATION, deviation=d) for d in (0.0, 0.05))
    assert any((v == 0).all() or np.abs(v).max() < 1e-9 for v in stopping.velocities[1:-1])
    assert not any(np.abs(v).max() < 1e-3 for v in rounded.velocities[1:-1])
    assert rounded.duration < stopping.duration


def test_cubic_spline_of_a_controller_follows_the_path_too():
    from scipy.interpolate import CubicHermiteSpline

    rng = np.random.default_rng(1)
    path = rng.uniform(-2, 2, (6, 3))
    trajectory = time_parameterize(path, VELOCITY, ACCELERATION)
    spline = CubicHermiteSpline(trajectory.times, trajectory.positions, trajectory.velocities)
    assert distance_to_polyline(spline(np.linspace(0, trajectory.duration, 3000)), path).max() < 1e-6


@pytest.mark.parametrize("path", [[[0.1, 0.2, 0.3]], [[0.1, 0.2, 0.3]] * 3])
def test_standing_still(path):
    trajectory = time_parameterize(path, VELOCITY, ACCELERATION)
    assert trajectory.times.tolist() == [0.0] and trajectory.positions.tolist() == [path[0]]
    assert (trajectory.at([0.0, 1.0])[0] == path[0]).all()


def test_repeated_and_straight_points_cost_no_stop():
    path = np.array([[0, 0, 0], [0, 0, 0], [0.5, 0, 0], [0.5, 0, 0], [1, 0, 0.0], [1, 0, 0]])
    plain = time_parameterize(path[[0, -1]], VELOCITY, ACCELERATION)
    assert np.isclose(time_parameterize(path, VELOCITY, ACCELERATION).duration, plain.duration)


def test_there_and_back():
    path = np.array([[0, 0, 0], [1, 0.5, 0], [0, 0, 0.0]])
    for deviation in (0.0, 0.02):
        check_rules(time_parameterize(path, VELOCITY, ACCELERATION, deviation=deviation), path, deviation)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((np.zeros((0, 3)), VELOCITY, ACCELERATION), "path"),
        ((np.zeros(3), VELOCITY, ACCELERATION), "path"),
        (([[0, 0, np.nan]], VELOCITY, ACCELERATION), "row 0"),
        (([[0, 0, 0]], VELOCITY[:2], ACCELERATION), "velocity"),
        (([[0, 0, 0]], VELOCITY, -ACCELERATION), "acceleration"),
        (([[0, 0, 0]], VELOCITY, ACCELERATION, [1, 0, 1]), "jerk"),
        (([[0, 0, 0]], VELOCITY, ACCELERATION, None, -0.1), "deviation"),
        (([[0, 0, 0]], VELOCITY, ACCELERATION, None, np.nan), "deviation"),
    ],
)
def test_bad_input_is_named(arguments, word):
    with pytest.raises(SettingsError, match=word):
        time_parameterize(*arguments)


@pytest.mark.parametrize("acceleration", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("velocity", [1e-300, 1e-9, 1.0, 1e300])
@pytest.mark.parametrize("length", [1e-6, 1.0, 1e5, 1e300])
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value", "ignore:divide by zero")
def test_limits_far_apart_are_timed_or_refused_in_words(length, velocity, acceleration):
    try:
        trajectory = time_parameterize([[0.0], [length]], [velocity], [acceleration])
    except SettingsError as error:
        assert "allowed: up to 1e+06 s" in str(error) or "too far apart" in str(error)
    else:
        assert np.isfinite(trajectory.positions).all() and trajectory.positions[-1, 0] == length
        assert (np.diff(trajectory.times) > 0).all() and (np.abs(trajectory.velocities) <= 1.001 * velocity).all()


def test_a_leg_on_which_the_acceleration_is_just_reached():
    """Its length is 2 a^3 / j^2 but for rounding; for some such lengths ruckig finds nothing."""
    for length in 2 * 5.1763806530263015**3 / 51.76380653026301**2 * (1 + np.linspace(-1e-6, 1e-6, 401)):
        motion = time_parameterize([[0.0], [length]], [2.5881903265131507], [5.1763806530263015])
        assert motion.duration == pytest.approx(0.4, rel=1e-3)
    begin, end = 0.20705525831540464, 0.31058287137593077
    stretch = pacing.Stretch(begin, end, 2.5881903265131507, 5.1763806530263015, 51.76380653026301, False)
    assert pacing.phases([stretch], set()).time[-1] == pytest.approx(0.4, rel=1e-3)


def test_a_motion_never_goes_back():
    """Where the ramp between two rounded corners takes all of the way between them, ruckig took a run-up."""
    rng, back = np.random.default_rng(4), 0
    for _ in range(300):
        stretches, s = [], 0.0
        for k in range(7):
            length, constant = float(rng.uniform(0.01, 0.2)), k % 2 == 1
            dynamics = (0.0, 0.0) if constant else (3.0, 30.0)
            stretches.append(pacing.Stretch(s, s + length, float(rng.uniform(0.3, 2.0)), *dynamics, constant))
            s += length
        along = pacing.phases(stretches, set())
        places, speeds, _, _ = along.at(np.linspace(0.0, along.time[-1], 500))
        back += (np.diff(places) < -1e-9).any() or (speeds < -1e-9).any()
        assert np.isclose(places[-1], s)
    assert not back
