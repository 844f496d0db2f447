"""Every position of every trajectory is within the joints' limits, compared as floats: at the points and between them,
whatever a controller plays; and a line that can be done, in part at least, has a trajectory."""

import itertools

import numpy as np
import pytest
from curve_oracle import beyond_limits
from robots_at_hand import READY, maker_of

from gpu_planners.arm import CollisionChecker, CollisionWorld, cartesian, rrt_connect, sequence
from gpu_planners.arm.cartesian import End
from gpu_planners.arm.control.spline import Spline
from gpu_planners.arm.control.stopping import stop_along
from gpu_planners.arm.motion.curve import at, smooth_parts, through
from gpu_planners.arm.motion.played import room
from gpu_planners.arm.sequence import Free, Straight
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.errors import SettingsError

curves = pytest.importorskip("soundness.curves", reason="the oracles need pinocchio and coal (extra `test`)")
pinocchio_poses = pytest.importorskip("pinocchio_poses").pinocchio_poses
TCP = "panda_hand_tcp"
PARTIAL = sequence.Settings(allow_partial=True)


def alone(robot="panda"):
    """robots.Rig, and a checker of an empty world."""
    rig = maker_of(robot).rig
    return rig, CollisionChecker(rig.model, CollisionWorld(), "cpu")


def starts_of(checker, near, count, seed):
    rng, robot = np.random.default_rng(seed), checker.robot
    q = curves.near_limits(rng, robot, 20 * count) if near else rng.uniform(robot.lower, robot.upper, (20 * count, 7))
    return rng, q[checker.thickened(0.002).configurations_valid(q)][:count]


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("robot", ["panda", "xarm7"])
def test_lines_from_random_starts_have_trajectories_within_the_limits(robot, near):
    rig, checker = alone(robot)
    model, tip = rig.model, rig.model.tip_link
    rng, starts = starts_of(checker, near, 12, 3)
    moved = 0
    for q in starts:
        way = rng.normal(size=3)
        way *= rng.uniform(0.05, 0.5) / np.linalg.norm(way)
        line = cartesian.solve(q, cartesian.shifted(model, q, way), checker)
        answer = sequence.solve(q, [Straight(translation=way)], checker, rrt_connect, PARTIAL)
        assert answer.solved == (len(line.path) > 1) and answer.fraction == line.fraction
        assert answer.solved or answer.failed == 0 and answer.text
        if not answer.solved:
            continue
        moved += 1
        motion = answer.trajectory
        assert not beyond_limits(motion, model.lower, model.upper)
        assert np.abs(motion.positions[[0, -1]] - line.path[[0, -1]]).max() < 1e-11
        places, v, a = motion.at(np.linspace(0, motion.duration, 600))
        assert (np.abs(v) <= model.velocity * 1.001).all() and (np.abs(a) <= model.acceleration * 1.001).all()
        away = pinocchio_poses(rig.urdf, model.joint_names, places, rig.fixed)[tip][:, :3, 3]
        away -= away[0]
        share = np.clip(away @ way / (way @ way), 0, 1)
        assert np.linalg.norm(away - share[:, None] * way, axis=1).max() <= 1e-3
    assert moved >= 3


def test_stops_stay_within_the_limits():
    """Those of motions that end at limits, at any time of them."""
    _, checker = alone()
    robot, rng = checker.robot, np.random.default_rng(5)
    ends = curves.near_limits(rng, robot, 40)
    ends[:, ::2] = np.where(rng.random((40, 4)) < 0.5, robot.lower[::2], robot.upper[::2])
    ends = np.array([q for q in ends if checker.configurations_valid(q[None])[0]])
    tried = 0
    for a, b in itertools.pairwise(ends):
        if not checker.motions_valid(a[None], b[None])[0]:
            continue
        motion = time_parameterize([a, b], robot.velocity, robot.acceleration, checker=checker)
        assert not beyond_limits(motion, robot.lower, robot.upper)
        for begin in rng.uniform(0, motion.duration, 10):
            stop = stop_along(Spline.of(motion), begin, robot.acceleration, robot.lower, robot.upper)
            assert not beyond_limits(stop, robot.lower, robot.upper)
            assert np.allclose(stop.velocities[0], Spline.of(motion).at(begin).velocities, atol=1e-4)
            tried += 1
    assert tried >= 50


def test_times_are_whole_nanoseconds():
    """So a message has the very curve that was proven."""
    _, checker = alone()
    robot = checker.robot
    motion = sequence.solve(READY, [Straight(translation=[0.1, 0, 0])], checker, rrt_connect, link=TCP).trajectory
    stop = stop_along(Spline.of(motion), motion.duration / 3, robot.acceleration)
    short = time_parameterize([[0.0], [1e-30]], [1e300], [1e300])
    for times in (motion.times, stop.times, short.times):
        assert (np.round(times * 1e9) / 1e9 == times).all() and (np.diff(times) > 0).all()


def test_a_path_beyond_the_limits_is_refused_and_float32_is_taken_to_them():
    _, checker = alone()
    robot = checker.robot
    low, high = READY.copy(), READY.copy()
    low[3], high[3] = robot.lower[3], robot.upper[3]
    path = np.array([READY, high, low, READY], dtype=np.float32)
    path[1, 3] = np.nextafter(np.float32(robot.upper[3]), np.float32(9))
    assert path[1, 3] > robot.upper[3]
    motion = time_parameterize(path, robot.velocity, robot.acceleration, deviation=0.1, checker=checker)
    assert not beyond_limits(motion, robot.lower, robot.upper)
    path[1, 3] += 1e-3
    with pytest.raises(SettingsError, match="row 1 has panda_joint4"):
        time_parameterize(path, robot.velocity, robot.acceleration, checker=checker)
    with pytest.raises(SettingsError, match="path has 6 joints"):
        time_parameterize(path[:, :6], robot.velocity[:6], robot.acceleration[:6], checker=checker)


def test_a_line_begins_within_the_limits_or_not_at_all():
    _, checker = alone()
    robot = checker.robot
    for beyond, ends in ((5e-4, End.REACHED), (2e-3, End.LIMITS)):
        start = READY.copy()
        start[6] = robot.upper[6] + beyond
        goal = cartesian.shifted(robot, start, [0, 0, -0.05], TCP)
        line = cartesian.solve(start, goal, checker, link=TCP)
        assert line.end is ends and (line.path <= robot.upper).all()
        answer = sequence.solve(start, [Straight(pose=goal)], checker, rrt_connect, link=TCP)
        assert answer.solved == line.solved and ("panda_joint7" in answer.text) != line.solved


def test_joints_without_limits_are_held_to_none():
    robot = maker_of("kinova").model
    assert np.isinf(np.array(room(robot))[:, robot.continuous]).all()
    assert (room(robot)[0] > robot.lower)[~robot.continuous].all()


def test_a_path_is_cut_where_its_curve_overshoots():
    bent = np.array([[-0.3, 0], [-0.2, 0.1], [-0.1, 0.2], [0, 0.3], [0, 0.4], [0, 0.5], [0, 0.6]])

    def fits(curve):
        places = at(curve, np.linspace(0, curve.length, 400))[:, 0]
        within = places[:, 0] <= 1e-12
        return np.array([within[(k <= curve.s[1:][i]) & (k >= curve.s[:-1][i])].all() for i, k in pieces(curve)])

    def pieces(curve):
        return [(i, np.linspace(0, curve.length, 400)) for i in range(len(curve.starts))]

    assert not fits(through(bent)).all()
    parts = smooth_parts(bent, fits)
    assert len(parts) > 1 and (np.concatenate([parts[0], *(part[1:] for part in parts[1:])]) == bent).all()
    assert all(fits(through(part)).all() for part in parts if len(part) > 2)


@pytest.mark.parametrize("radius", [0.0, 0.1])
def test_motions_of_several_parts_between_limits_stay_within_them(radius):
    _, checker = alone()
    robot = checker.robot
    _, goals = starts_of(checker, True, 6, 11)
    segments = [
        Straight(pose=cartesian.shifted(robot, READY, [0, 0, 0.05]), blend_radius=radius),
        Free(goals=goals[:3], blend_radius=radius),
        Free(goals=goals[3:]),
    ]
    answer = sequence.solve(READY, segments, checker, rrt_connect, PARTIAL)
    assert answer.solved and not beyond_limits(answer.trajectory, robot.lower, robot.upper)
