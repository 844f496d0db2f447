"""Inverse kinematics on a GPU beside the CPU: the same answers, whoever judges; needs no oracle's packages."""

import numpy as np
import pytest

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf
from gpu_planners.device import cuda_problem
from gpu_planners.share import share_folder

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(cuda_problem()), reason=f"no CUDA device: {cuda_problem()}")]


@pytest.fixture(scope="module")
def cell():
    """The desk arm beside a box, and poses of its configurations, some of which meet it."""
    files = share_folder() / "urdf" / "desk_arm"
    robot = load_urdf(files.with_suffix(".urdf"), files.with_suffix(".srdf"))
    world, pose = CollisionWorld(), np.eye(4)
    pose[:3, 3] = 0.35, 0.1, 0.3
    world.add_box("box", (0.2, 0.2, 0.2), pose)
    q = np.random.default_rng(5).uniform(robot.lower, robot.upper, (700, robot.dof))
    return robot, world, robot.link_poses(q)[robot.tip_link]


@pytest.mark.parametrize("solutions", [1, 3, 40])
@pytest.mark.parametrize("judge", ["nobody", "device", "host"])
def test_answers_are_those_of_the_cpu(cell, judge, solutions):
    robot, world, T = cell
    on_cpu, on_cuda = (CollisionChecker(robot, world, device) for device in ("cpu", "cuda"))
    judges = {"nobody": (None, None), "device": (on_cpu, on_cuda), "host": (on_cpu, on_cpu)}[judge]
    asked = {"solutions": solutions, "seeds": 200, "position_tolerance": 1e-5, "orientation_tolerance": 1e-4}
    a, b = (robot.inverse_kinematics(T, c, device=d, **asked) for c, d in zip(judges, ("cpu", "cuda")))
    same = [
        x.q.shape == y.q.shape and np.abs(x.q - y.q).max(initial=0) < 1e-3 and x.seeds == y.seeds
        for x, y in zip(a, b, strict=True)
    ]
    assert np.mean(same) > 0.9  # searches on the edge of giving up may differ by rounding
    assert sum(map(len, b)) > 0.9 * sum(map(len, a)) > 0
    for found, pose in zip(b, T):
        reached = robot.link_poses(found.q)[robot.tip_link]
        np.testing.assert_allclose(reached[:, :3, 3], np.broadcast_to(pose[:3, 3], (len(found), 3)), atol=2e-5)
        assert judge == "nobody" or not len(found) or on_cpu.configurations_valid(found.q).all()
        assert judge == "nobody" or not len(found.colliding) or not on_cpu.configurations_valid(found.colliding).any()
    if judge == "device":  # arrays that other calls left, and a single pose
        again = robot.inverse_kinematics(T[:40], on_cuda, device="cuda", **asked)
        assert all(np.array_equal(x.q, y.q) for x, y in zip(again, b))
        np.testing.assert_array_equal(robot.inverse_kinematics(T[7], on_cuda, device="cuda", **asked).q, b[7].q)


def test_a_time_limit_ends_searches_on_a_device(cell):
    robot, world, T = cell
    checker = CollisionChecker(robot, world, "cuda")
    late = robot.inverse_kinematics(T, checker, device="cuda", time_limit_s=0.0)
    assert all(found.timed_out and not len(found) and found.seeds == 0 for found in late)
    assert any(len(found) for found in robot.inverse_kinematics(T, checker, device="cuda"))
