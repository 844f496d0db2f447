"""The tool's own limits along lines and arcs: by pinocchio's poses of what a controller plays."""

import numpy as np
import pytest
from robots_at_hand import READY, maker_of
from scipy.spatial.transform import Rotation

from gpu_planners.arm import CollisionChecker, CollisionWorld, cartesian, rrt_connect, sequence
from gpu_planners.arm.cartesian import Arc, Speeds
from gpu_planners.arm.sequence import Circular, Free, Straight
from gpu_planners.errors import SettingsError

pinocchio_poses = pytest.importorskip("pinocchio_poses").pinocchio_poses
TCP = "panda_hand_tcp"
SLACK = 1.005


@pytest.fixture(scope="module")
def panda():
    rig = maker_of("panda").rig
    return rig, CollisionChecker(rig.model, CollisionWorld(), "cpu"), np.array(READY)


def measured(rig, motion):
    """Of the tool, by differences: speeds (m/s, rad/s), and how fast these change."""
    times = np.linspace(0, motion.duration, 4001)
    poses = pinocchio_poses(rig.urdf, rig.model.joint_names, motion.at(times)[0], rig.fixed)[TCP]
    h = times[1]
    speed = np.linalg.norm(np.diff(poses[:, :3, 3], axis=0), axis=1) / h
    R = poses[:, :3, :3]
    turning = Rotation.from_matrix(R[1:] @ R[:-1].swapaxes(1, 2)).magnitude() / h
    return speed, np.abs(np.diff(speed)) / h, turning, np.abs(np.diff(turning)) / h


def shifted(rig, q, shift, rotvec=(0, 0, 0)):
    T = cartesian.shifted(rig.model, q, shift, TCP)
    T[:3, :3] = Rotation.from_rotvec(rotvec).as_matrix() @ T[:3, :3]
    return T


@pytest.mark.parametrize("kind", ["line", "turn", "arc"])
def test_the_tool_keeps_its_limits(kind, panda):
    rig, checker, q = panda
    asked = {
        "line": Straight(pose=shifted(rig, q, (0.0, 0.3, -0.15))),
        "turn": Straight(pose=shifted(rig, q, (0.02, 0.0, 0.0), (0.0, 0.0, 0.9))),
        "arc": Circular(shifted(rig, q, (0.0, 0.25, 0.0)), Arc(through=shifted(rig, q, (0.08, 0.12, 0.0))[:3, 3])),
    }[kind]
    free = sequence.solve(q, [asked], checker, rrt_connect, link=TCP).trajectory
    speeds = Speeds(velocity=0.1, acceleration=0.4, turning=0.25, turning_rate=1.0)
    slow = sequence.solve(q, [asked], checker, rrt_connect, sequence.Settings(tool=speeds), TCP).trajectory
    fast = measured(rig, free)
    assert fast[0].max() > 0.15 or fast[2].max() > 0.4
    speed, rise, turning, turn_rise = measured(rig, slow)
    assert speed.max() <= 0.1 * SLACK and rise.max() <= 0.4 * SLACK
    assert turning.max() <= 0.25 * SLACK and turn_rise.max() <= 1.0 * SLACK
    # and one of them is used: the middle of the motion is about as fast as it may be
    middle = slice(len(speed) // 4, -len(speed) // 4)
    assert max(np.median(speed[middle]) / 0.1, np.median(turning[middle]) / 0.25) > 0.7
    assert (np.abs(slow.velocities) <= rig.model.velocity * 1.001).all()
    np.testing.assert_allclose(slow.positions[-1], free.positions[-1], atol=1e-9)


def test_segments_scale_them_and_free_motions_have_none(panda):
    rig, checker, q = panda
    settings = sequence.Settings(tool=Speeds(velocity=0.2))
    line = Straight(translation=(0.0, 0.0, -0.2), velocity_scaling=0.25, acceleration_scaling=0.5)
    segments = [Free(q + [0.6, 0, 0, 0, 0, 0, 0]), line]
    answer = sequence.solve(q, segments, checker, rrt_connect, settings, TCP)
    speed = measured(rig, answer.trajectory)[0]
    begun = int(answer.ends_s[0] / answer.trajectory.duration * len(speed)) + 2
    assert speed[begun:].max() <= 0.05 * SLACK and speed[: begun - 4].max() > 0.25


def test_corners_between_lines_keep_them(panda):
    rig, checker, q = panda
    settings = sequence.Settings(tool=Speeds(velocity=0.1, acceleration=0.5))
    shifts = ((0.0, 0.15, 0.0), (0.0, 0.0, -0.15), (0.1, 0.0, 0.0))
    lines = [Straight(translation=shift, blend_radius=0.02) for shift in shifts]
    answer = sequence.solve(q, lines, checker, rrt_connect, settings, TCP)
    stopping = sequence.solve(q, [Straight(translation=shift) for shift in shifts], checker, rrt_connect, settings, TCP)
    assert answer.trajectory.duration < stopping.trajectory.duration
    speed, rise, *_ = measured(rig, answer.trajectory)
    assert speed.max() <= 0.1 * SLACK
    inside = speed[1:-1] if len(speed) > 2 else speed
    assert inside.min() >= 0 and rise.max() <= 0.5 * 1.02


def test_limits_that_are_none_are_refused():
    for given in ({"velocity": 0.0}, {"acceleration": -1.0}, {"turning": float("nan")}):
        with pytest.raises(
            SettingsError, match=f"Speeds.{next(iter(given))} is .*; allowed: a number from 1e-06 to inf"
        ):
            Speeds(**given)
