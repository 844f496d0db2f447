"""Jacobian by finite differences; inverse kinematics re-checked by pinocchio."""

import time

import numpy as np
import pytest
from random_urdf import random_urdf
from robots_at_hand import READY, maker_of
from robots_at_hand import panda as load_panda
from scipy.spatial.transform import Rotation

from gpu_planners.arm.robot.kinematics import inverse_kinematics, jacobian
from gpu_planners.arm.urdf.loader import load_urdf
from gpu_planners.errors import GpuPlannersError, RobotDescriptionError


@pytest.fixture(scope="module")
def panda():
    return load_panda()


@pytest.mark.parametrize("seed", range(8))
def test_jacobian_by_finite_differences(seed):
    rng = np.random.default_rng(seed)
    robot = load_urdf(random_urdf(rng, 8))
    q, h = rng.uniform(robot.lower, robot.upper), 1e-6
    for link in robot.link_names[-2:]:
        J = jacobian(robot, link, q)[0]
        for i, dq in enumerate(np.eye(robot.dof) * h):
            before, after = robot.link_poses(np.array([q - dq, q + dq]))[link]
            np.testing.assert_allclose(J[:3, i], (after - before)[:3, 3] / (2 * h), atol=1e-6)
            turn = Rotation.from_matrix(after[:3, :3] @ before[:3, :3].T).as_rotvec() / (2 * h)
            np.testing.assert_allclose(J[3:, i], turn, atol=1e-6)


@pytest.mark.parametrize("name", ["panda", "ur5"])
def test_solutions_reach_the_pose_by_pinocchio(name):
    oracle = pytest.importorskip("pinocchio_poses")
    rig = maker_of(name).rig
    urdf, robot = rig.urdf, rig.model
    rng = np.random.default_rng(0)
    for goal_q in rng.uniform(robot.lower, robot.upper, (10, robot.dof)):
        T = oracle.pinocchio_poses(urdf, robot.joint_names, goal_q[None])[robot.tip_link][0]
        solutions = inverse_kinematics(robot, robot.tip_link, T, seed_q=goal_q + 0.1, count=8)
        assert len(solutions) >= 1
        assert (solutions >= robot.lower).all() and (solutions <= robot.upper).all()
        reached = oracle.pinocchio_poses(urdf, robot.joint_names, solutions)[robot.tip_link]
        assert np.linalg.norm(reached[:, :3, 3] - T[:3, 3], axis=1).max() < 1e-4
        assert Rotation.from_matrix(reached[:, :3, :3] @ T[:3, :3].T).magnitude().max() < 1e-3
        apart = np.abs(solutions[:, None] - solutions[None]).max(axis=2) + np.eye(len(solutions))
        assert apart.min() > 0.05


def test_a_ur5_pose_has_several_postures():
    robot = maker_of("ur5").model
    T = robot.link_poses([0.3, -1.2, 1.4, -0.9, 1.1, 0.5])["ee_link"][0]
    solutions = inverse_kinematics(robot, "ee_link", T, count=16)
    elbow_up, wrist_flipped = solutions[:, 2] > 0, solutions[:, 4] > 0
    assert len(set(zip(elbow_up, wrist_flipped))) == 4


def test_the_same_seed_gives_the_same_solutions(panda):
    T = panda.link_poses(READY)["panda_hand"][0]
    first, second = (inverse_kinematics(panda, "panda_hand", T, rng_seed=3) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    nearest = inverse_kinematics(panda, "panda_hand", T, seed_q=READY, count=1)
    np.testing.assert_allclose(nearest[0], READY, atol=1e-6)


def test_several_poses_have_the_answers_of_each(panda):
    rng = np.random.default_rng(1)
    T = panda.link_poses(rng.uniform(panda.lower, panda.upper, (6, 7)))["panda_hand"]
    T[2, 0, 3] = 3.0  # out of reach
    together = inverse_kinematics(panda, "panda_hand", T, starts=250)
    assert len(together) == 6 and together[2].shape == (0, 7)
    for answers, pose in zip(together, T):
        np.testing.assert_allclose(answers, inverse_kinematics(panda, "panda_hand", pose, starts=250), atol=1e-5)


def test_poses_share_the_time(panda):
    rng = np.random.default_rng(2)
    T = panda.link_poses(rng.uniform(panda.lower, panda.upper, (200, 7)))["panda_hand"]
    began = time.monotonic()
    answers = inverse_kinematics(panda, "panda_hand", T, time_limit_s=2.0)
    assert time.monotonic() - began < 10  # without a limit it takes a minute
    assert sum(len(solutions) > 0 for solutions in answers) > 100
    for solutions, pose in zip(answers, T):
        assert np.abs(panda.link_poses(solutions)["panda_hand"] - pose).max(initial=0) < 2e-3
    began = time.monotonic()
    assert len(inverse_kinematics(panda, "panda_hand", T, time_limit_s=0.0)) == 200
    assert time.monotonic() - began < 2


def test_what_cannot_be_reached_or_is_no_pose(panda):
    T = np.eye(4)
    T[0, 3] = 3.0
    assert inverse_kinematics(panda, "panda_hand", T).shape == (0, 7)
    assert inverse_kinematics(panda, "panda_link0", T).shape == (0, 7)  # does not move
    far = np.eye(4)
    far[0, 3] = 1e200
    for bad in (
        np.full((4, 4), np.nan),
        np.zeros((4, 4)),
        np.eye(3),
        2 * np.eye(4),
        far,
        np.zeros((0, 4, 4)),
        [np.eye(4), far],
    ):
        with pytest.raises(GpuPlannersError, match="panda_hand"):
            inverse_kinematics(panda, "panda_hand", bad)
    for bad, word in (([np.nan] * 7, "finite"), ([0.0] * 6, "7 planning joints")):
        with pytest.raises(GpuPlannersError, match=word):
            inverse_kinematics(panda, "panda_hand", T, seed_q=bad)
    with pytest.raises(RobotDescriptionError, match="'gripper'"):
        inverse_kinematics(panda, "gripper", T)
