"""Motions that keep a link upright: the tilt by pinocchio along the way, collisions by coal."""

import numpy as np
import pytest
from robots_at_hand import READY, maker_of

from gpu_planners.arm import CollisionChecker, CollisionWorld, upright
from gpu_planners.arm.planners.result import Status
from gpu_planners.errors import RobotDescriptionError, SettingsError

pinocchio_poses = pytest.importorskip("pinocchio_poses").pinocchio_poses

TCP, DOWN = "panda_hand_tcp", (0.0, 0.0, -1.0)
POST = {"type": "box", "name": "post", "size": [0.1, 0.1, 1.2], "position": [0.5, 0.0, 0.4], "quat_xyzw": [0, 0, 0, 1]}
SETTINGS = upright.Settings(time_limit_s=3600.0)


def panda_at_a_post():
    rig, world, pose = maker_of("panda").rig, CollisionWorld(), np.eye(4)
    pose[:3, 3] = POST["position"]
    world.add_box("post", POST["size"], pose)
    return rig, CollisionChecker(rig.model, world, "cpu")


def hand_down(checker, x, y, z=0.4):
    """(G, dof) with the hand pointing down at a place."""
    T = np.diag([1.0, -1.0, -1.0, 1.0])
    T[:3, 3] = x, y, z
    return checker.robot.inverse_kinematics(T, checker, link=TCP, seed_q=READY, solutions=4).q


def kept_down(checker, tolerance):
    return upright.Upright(checker.robot, TCP, (0, 0, 1), DOWN, tolerance)


@pytest.mark.parametrize("tolerance", [0.1, 0.3])
def test_around_a_post_with_the_hand_down(tolerance):
    rig, checker = panda_at_a_post()
    start, goals = hand_down(checker, 0.45, 0.3)[0], hand_down(checker, 0.45, -0.3)
    result = upright.solve(start, goals, checker, kept_down(checker, tolerance), SETTINGS)
    assert result.solved, result.message
    path = result.path
    assert (path[0] == start).all() and np.allclose(path[-1], goals[result.goal_index])
    way = np.concatenate([np.linspace(a, b, 60) for a, b in zip(path, path[1:])])
    axes = pinocchio_poses(rig.urdf, rig.model.joint_names, way, rig.fixed)[TCP][:, :3, 2]
    assert np.arccos(np.clip(axes @ DOWN, -1, 1)).max() <= tolerance
    assert rig.coal_scene([POST]).first_collision(path) is None
    assert not checker.motions_valid(start[None], goals[result.goal_index][None])[0]  # the post is in the way


def test_a_tilted_start_or_goal_is_refused():
    rig, checker = panda_at_a_post()
    good = hand_down(checker, 0.45, 0.3)[0]
    bad = good.copy()
    bad[5] -= 0.5
    arguments = checker, kept_down(checker, 0.1), SETTINGS
    assert upright.solve(bad, good, *arguments).status is Status.INVALID_START
    refused = upright.solve(good, bad, *arguments)
    assert refused.status is Status.INVALID_GOAL and "tilts by 0.5" in refused.message


def test_a_tilt_is_proven_all_along():
    """Of random motions, those that are called kept are within the tolerance at every place looked at."""
    rig, checker = panda_at_a_post()
    rule, rng = kept_down(checker, 0.4), np.random.default_rng(0)
    centre = hand_down(checker, 0.45, 0.3)[0]
    a, b = (centre + rng.uniform(-0.5, 0.5, (600, 7)) for _ in range(2))
    kept = rule.kept(a, b)
    assert 5 < kept.sum() < 590
    places = np.concatenate([a + share * (b - a) for share in np.linspace(0, 1, 20)])
    axes = pinocchio_poses(rig.urdf, rig.model.joint_names, places, rig.fixed)[TCP][:, :3, 2]
    worst = np.arccos(np.clip(axes @ DOWN, -1, 1)).reshape(20, -1).max(axis=0)
    assert worst[kept].max() <= 0.4


def test_bad_arguments_are_named():
    _, checker = panda_at_a_post()
    with pytest.raises(SettingsError, match="axis"):
        upright.Upright(checker.robot, TCP, (0, 0, 0), DOWN, 0.1)
    with pytest.raises(SettingsError, match="tolerance"):
        upright.Upright(checker.robot, TCP, (0, 0, 1), DOWN, -0.1)
    with pytest.raises(RobotDescriptionError, match="nose"):
        upright.Upright(checker.robot, "nose", (0, 0, 1), DOWN, 0.1)
    with pytest.raises(SettingsError, match="rule"):
        upright.solve(READY, READY, checker, TCP)
