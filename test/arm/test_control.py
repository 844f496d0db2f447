"""Curves of trajectories, stops along them, and what is left of a motion; without ROS."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.interpolate import BPoly, CubicHermiteSpline

from gpu_planners.arm.control.joints import read_joints
from gpu_planners.arm.control.spline import Spline, first_contact
from gpu_planners.arm.control.stopping import stop_along
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.errors import RobotDescriptionError

VELOCITY, ACCELERATION = np.array([2.0, 1.5, 3.0]), np.array([4.0, 3.0, 6.0])


def motion_of(seed, deviation=0.0, corners=4):
    path = np.random.default_rng(seed).uniform(-2, 2, (corners, 3))
    return time_parameterize(path, VELOCITY, ACCELERATION, deviation=deviation)


def test_a_curve_is_what_scipy_makes_of_its_points():
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.uniform(0.1, 1, 6))
    q, v, a = rng.normal(size=(3, 6, 3))
    at = np.linspace(times[0], times[-1] - 1e-9, 200)
    quintic = BPoly.from_derivatives(times, np.stack([q, v, a], axis=1))
    state = Spline(times, q, v, a).at(at)
    for values, order in zip(state, range(3), strict=True):
        assert np.allclose(values, quintic(at, nu=order))
    cubic = CubicHermiteSpline(times, q, v)
    assert np.allclose(Spline(times, q, v).at(at).velocities, cubic(at, nu=1))
    line = Spline(times, q).at(at)
    assert np.allclose(line.positions, np.array([np.interp(at, times, column) for column in q.T]).T)


def test_points_may_give_different_things():
    v = np.array([[0.0], [np.nan], [0.0], [0.0]])
    curve = Spline([0, 1, 2, 3], [[0.0], [1.0], [2.0], [4.0]], v)
    assert np.isclose(curve.at(0.25).positions[0], 0.25)  # a point without a velocity: a line
    assert np.isclose(curve.at(2.5).positions[0], 3.0) and np.isclose(curve.at(2.5).velocities[0], 3.0)


def test_a_curve_rests_before_and_after():
    curve = Spline([1, 2], [[0.0], [1.0]])
    assert curve.at(0.5).positions[0] == 0 and curve.at(0.5).velocities[0] == 0
    assert curve.at(9.0).positions[0] == 1 and curve.at(2.0).velocities[0] == 0
    assert Spline([0.0], [[3.0]]).at([0, 1]).positions.tolist() == [[3.0], [3.0]]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.floats(0.0, 1.0), st.sampled_from([0.0, 0.1]))
@example(319, 0.23402668145076727, 0.0)
def test_a_stop_stays_on_the_path_and_within_limits(seed, share, deviation):
    curve = Spline.of(motion_of(seed, deviation))
    begin = share * curve.end
    stop = stop_along(curve, begin, ACCELERATION)
    played = Spline.of(stop)
    at = np.linspace(0, stop.times[-1], 200)
    q, v, a = played.at(at)
    assert np.allclose(q[0], curve.at(begin).positions) and not stop.velocities[-1].any()
    assert np.allclose(stop.velocities[0], curve.at(begin).velocities, atol=1e-6)  # what creeps counts as at rest
    assert (np.abs(a) <= 1.05 * ACCELERATION + 1e-6).all() and (np.abs(v) <= 1.01 * VELOCITY + 1e-9).all()
    later = curve.at(np.linspace(begin, curve.end, 4000)).positions
    off = np.linalg.norm(q[:, None] - later[None], axis=2).min(axis=1)
    assert off.max() < 5e-3  # half the spacing of what it is compared with, and the knots of rounded corners


def test_a_stop_is_as_short_as_the_limits_allow():
    curve = Spline.of(time_parameterize([[0.0], [10.0]], [2.0], [4.0]))
    begin = curve.end / 2
    stop = stop_along(curve, begin, [4.0])
    shortest = 2.0**2 / (2 * 4.0)  # braking at the limit all the time
    assert shortest < stop.positions[-1, 0] - stop.positions[0, 0] < 1.6 * shortest


def test_a_stop_of_what_rests_is_rest():
    curve = Spline.of(motion_of(3))
    assert len(stop_along(curve, 0.0, ACCELERATION).times) == 1
    assert np.allclose(stop_along(curve, curve.end, ACCELERATION).positions[-1], curve.positions[-1])


@pytest.mark.parametrize("deviation", [0.0, 0.1])
def test_the_rest_of_a_path_follows_the_motion(deviation):
    curve = Spline.of(motion_of(5, deviation))
    path = curve.remaining_path(curve.end / 3)
    assert np.allclose(path[0], curve.at(curve.end / 3).positions) and np.allclose(path[-1], curve.positions[-1])
    rest = curve.at(np.linspace(curve.end / 3, curve.end, 500)).positions
    starts, steps = path[:-1], np.diff(path, axis=0)
    share = ((rest[:, None] - starts) * steps).sum(axis=2) / np.maximum((steps**2).sum(axis=1), 1e-30)
    off = np.linalg.norm(rest[:, None] - starts - np.clip(share, 0, 1)[:, :, None] * steps, axis=2).min(axis=1)
    assert off.max() < (1e-9 if deviation == 0 else 2e-3)


def test_the_time_of_a_place():
    curve = Spline.of(motion_of(7))
    for time in np.linspace(0.1, curve.end - 0.1, 20):
        found = curve.nearest_time(curve.at(time).positions, max(time - 0.3, 0), min(time + 0.1, curve.end))
        assert np.abs(curve.at(found).positions - curve.at(time).positions).max() < 0.01


def test_what_is_met_is_named():
    class Wall:  # at 1
        def motions_valid(self, q_from, q_to):
            return (np.maximum(q_from[:, 0], q_to[:, 0]) < 1).tolist()

        def colliding_pairs(self, q):
            return [("hand", "wall")] if q[0] >= 1 else []

    assert first_contact(Wall(), np.array([[0.0], [0.5]])) == ""
    assert first_contact(Wall(), np.array([[0.0], [0.5], [2.0]])) == "'hand' would meet 'wall'"
    assert first_contact(Wall(), np.array([[0.5]])) == ""


URDF = """<robot name="two"><link name="a"/><link name="b"/><link name="c"/><link name="d"/>
  <joint name="turn" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
    <limit velocity="2" effort="1"/></joint>
  <joint name="slide" type="prismatic"><parent link="b"/><child link="c"/><axis xyz="0 0 1"/>
    <limit lower="0.1" upper="0.5" velocity="1" effort="1"/></joint>
  <joint name="follower" type="prismatic"><parent link="c"/><child link="d"/><axis xyz="0 0 1"/>
    <limit lower="0" upper="0.5" velocity="1" effort="1"/><mimic joint="slide"/></joint></robot>"""


def test_joints_of_a_urdf():
    joints = read_joints(URDF)
    assert joints.names == ("turn", "slide") and joints.nearest_to_zero().tolist() == [0.0, 0.1]
    assert joints.upper.tolist() == [np.inf, 0.5] and joints.velocity.tolist() == [2.0, 1.0]
    assert read_joints(URDF, ["slide"]).names == ("slide",)
    srdf = '<robot name="two"><group name="lift"><joint name="slide"/></group></robot>'
    assert read_joints(URDF, srdf=srdf).names == ("slide",) == read_joints(URDF, group="lift", srdf=srdf).names
    assert read_joints(URDF.replace('velocity="2"', 'velocity="0"')).velocity.tolist() == [1.0, 1.0]
    with pytest.raises(RobotDescriptionError, match="follower"):
        read_joints(URDF, ["follower"])


def looked_at(curve):
    """Extremes by looking at dense times: (low, high, speed, acceleration), (dof,) each."""
    times = np.unique(
        np.concatenate([np.linspace(a, b, 400, endpoint=False) for a, b in zip(curve.times, curve.times[1:])])
    )
    q, v, a = curve.at(np.r_[times, np.nextafter(curve.times[1:], 0.0)])
    return q.min(axis=0), q.max(axis=0), np.abs(v).max(axis=0), np.abs(a).max(axis=0)


@pytest.mark.parametrize("given", [3, 2, 1])
def test_the_extremes_of_a_curve_are_those_at_dense_times(given):
    """Quintics, cubics and lines whose points say nothing of what lies between."""
    rng = np.random.default_rng(given)
    for _ in range(20):
        times = np.cumsum(rng.uniform(0.05, 1, 5))
        columns = rng.normal(size=(3, 5, 2))
        columns[1, [0, -1]] = 0.0
        curve = Spline(times, *columns[:given])
        found, (low, high, speed, acceleration) = curve.extremes(), looked_at(curve)
        for ours, dense in ((-found.low, -low), (found.high, high), (found.speed, speed)):
            assert (ours >= dense - 1e-9).all() and np.allclose(ours, dense, atol=1e-4 + 1e-3 * np.abs(dense).max())
        for j in range(2):
            at = np.r_[found.speed_at[j] + [-1e-9, 0.0, 1e-9]]
            assert np.isclose(np.abs(curve.at(at).velocities[:, j]).max(), found.speed[j], rtol=1e-6)
        if given == 3:
            assert (found.acceleration >= acceleration - 1e-9).all()
            assert np.allclose(found.acceleration, acceleration, rtol=1e-3)
        elif given == 1:  # changes of speed at points, from rest and to rest, between the middles of the pieces
            v = np.concatenate(
                [np.zeros((1, 2)), np.diff(columns[0], axis=0) / np.diff(times)[:, None], np.zeros((1, 2))]
            )
            h = np.r_[0.0, np.diff(times), 0.0]
            assert np.allclose(found.acceleration, (np.abs(np.diff(v, axis=0)).T / ((h[1:] + h[:-1]) / 2)).max(axis=1))


def test_a_bend_between_points_at_rest_is_seen():
    curve = Spline([0.0, 1.0], [[0.0], [0.0]], [[0.0], [0.0]], [[6.0], [6.0]])
    bump = BPoly.from_derivatives([0.0, 1.0], [[0.0, 0.0, 6.0], [0.0, 0.0, 6.0]])
    x = np.linspace(0, 1, 10001)
    found = curve.extremes()
    assert np.isclose(found.high[0], bump(x).max()) and np.isclose(
        found.speed[0], np.abs(bump(x, nu=1)).max(), rtol=1e-6
    )
    assert np.isclose(found.acceleration[0], 6.0)
    assert Spline([0.0], [[1.0, 2.0]]).extremes().high.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("seed", range(5))
def test_the_time_at_which_a_curve_passes_a_place_is_exact(seed):
    """To microseconds: with a stop that begins 5 ms away, joints at full speed would have to jump."""
    curve, rng = Spline.of(motion_of(seed, 0.1)), np.random.default_rng(seed)
    for time in rng.uniform(0.0, curve.end, 20):
        speed = np.abs(curve.at(time).velocities).max()
        found = curve.nearest_time(curve.at(time).positions, max(time - 0.2, 0.0), min(time + 0.1, curve.end))
        assert abs(found - time) <= 1e-5 or speed * abs(found - time) <= 1e-6
