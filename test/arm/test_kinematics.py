"""Jacobian by finite differences."""

import numpy as np
import pytest
from random_urdf import random_urdf
from scipy.spatial.transform import Rotation

from gpu_planners.arm.robot.tip import Tip
from gpu_planners.arm.urdf.loader import load_urdf


@pytest.mark.parametrize("seed", range(8))
def test_jacobian_by_finite_differences(seed):
    rng = np.random.default_rng(seed)
    robot = load_urdf(random_urdf(rng, 8))
    q, h = rng.uniform(robot.lower, robot.upper), 1e-6
    moved = [link for link, frame in zip(robot.link_names, robot.link_frame) if frame >= 0]
    for link in moved[-2:]:
        T, J = Tip(robot, link).pose_and_jacobian(q)
        np.testing.assert_allclose(T, robot.link_poses(q)[link][0], atol=1e-12)
        for i, dq in enumerate(np.eye(robot.dof) * h):
            before, after = robot.link_poses(np.array([q - dq, q + dq]))[link]
            np.testing.assert_allclose(J[:3, i], (after - before)[:3, 3] / (2 * h), atol=1e-6)
            turn = Rotation.from_matrix(after[:3, :3] @ before[:3, :3].T).as_rotvec() / (2 * h)
            np.testing.assert_allclose(J[3:, i], turn, atol=1e-6)
