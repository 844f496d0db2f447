"""Arrays of other libraries on a GPU: in, out, and never to the host; torch, cupy and jax where they are installed."""

import os

import numpy as np
import pytest
from robots_at_hand import desk_arm
from scipy.spatial.transform import Rotation

from gpu_planners.arm import CollisionChecker, CollisionWorld, SceneBatch, rrt_connect
from gpu_planners.device import cuda_problem
from gpu_planners.errors import ConfigurationError, GpuPlannersError

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # jax would take most of the GPU's memory
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(cuda_problem()), reason=cuda_problem())]


def to_torch(array):
    return pytest.importorskip("torch").from_numpy(np.ascontiguousarray(array)).to("cuda:0")


def to_cupy(array):
    return pytest.importorskip("cupy").asarray(array)


def to_jax(array):
    jax = pytest.importorskip("jax")
    if not any(device.platform in ("gpu", "cuda") for device in jax.devices()):
        pytest.skip("jax has no GPU")
    return jax.device_put(array)


def to_numba(array):
    from numba import cuda

    return cuda.to_device(np.ascontiguousarray(array))


class Interface:
    """An array that has `__cuda_array_interface__` and nothing else."""

    def __init__(self, array):
        self._array = to_numba(array)
        self.__cuda_array_interface__ = self._array.__cuda_array_interface__


BACK = {
    to_torch: lambda x: pytest.importorskip("torch").from_dlpack(x).cpu().numpy(),
    to_cupy: lambda x: pytest.importorskip("cupy").from_dlpack(x).get(),
    to_jax: lambda x: np.asarray(pytest.importorskip("jax").dlpack.from_dlpack(x)),
    to_numba: lambda x: x.copy_to_host(),
    Interface: np.asarray,
}
LIBRARIES = pytest.mark.parametrize("there", BACK, ids=lambda there: there.__name__)


def obstacles():
    world = CollisionWorld()
    at = np.eye(4)
    at[:3, 3] = 0.5, 0.1, 0.4
    world.add_box("box", [0.2, 0.3, 0.4], at)
    return world


def random_q(robot, *shape):
    return np.random.default_rng(0).uniform(robot.lower, robot.upper, (*shape, robot.dof)).astype(np.float32)


def between(path):
    """Configurations along a path."""
    steps = np.linspace(0, 1, 50)[:, None]
    return np.concatenate([a + steps * (b - a) for a, b in zip(path[:-1], path[1:])])


@LIBRARIES
def test_checks(there):
    robot = desk_arm()
    checker, back = CollisionChecker(robot, obstacles(), "cuda:0"), BACK[there]
    q = random_q(robot, 5000)
    expected = checker.configurations_valid(q), checker.motions_valid(q[1:], q[:-1])
    found = checker.configurations_valid(there(q))
    assert hasattr(found, "__cuda_array_interface__") and found.__dlpack_device__() == (2, 0)
    assert np.array_equal(back(found), expected[0]) and np.array_equal(np.asarray(found), expected[0])
    assert np.array_equal(back(checker.motions_valid(there(q[1:]), there(q[:-1]))), expected[1])
    assert back(checker.configurations_valid(there(q[:0]))).shape == (0,)
    q[7, 3] = np.nan
    with pytest.raises(ConfigurationError, match=r"\[7\]: joint 'wrist_1' is nan"):
        checker.configurations_valid(there(q))
    expected[0][7] = False
    assert np.array_equal(back(checker.configurations_valid(there(q), not_finite="false")), expected[0])
    with pytest.raises(ConfigurationError, match="float32"):
        checker.configurations_valid(there(q[:, :4].copy()))
    with pytest.raises(ConfigurationError, match="places"):
        checker.motions_valid(there(q), q)
    with pytest.raises(ConfigurationError, match="CPU"):
        CollisionChecker(robot, obstacles(), "cpu").configurations_valid(there(q))


@LIBRARIES
def test_kinematics(there):
    robot, back = desk_arm(), BACK[there]
    q = random_q(robot, 3000)
    frames, links = robot.frame_poses(there(q)), robot.link_poses(there(q))
    assert frames.dtype == np.float32 and np.abs(back(frames) - robot.frame_poses(q)).max() < 1e-5
    for name, T in robot.link_poses(q).items():
        assert np.abs(back(links[name]) - T).max() < 1e-5
    with pytest.raises(ConfigurationError, match="shape"):
        robot.link_poses(there(q[:, :5].copy()))


@LIBRARIES
def test_inverse_kinematics(there):
    robot, back = desk_arm(), BACK[there]
    checker = CollisionChecker(robot, obstacles(), "cuda:0")
    q = random_q(robot, 300)
    poses = robot.link_poses(q)[robot.tip_link].astype(np.float32)
    for seed_q in (None, there(q)):
        found = robot.inverse_kinematics(there(poses), checker, seed_q=seed_q, solutions=2)
        counts, solutions, errors = back(found.counts), back(found.q), back(found.errors)
        plain = robot.inverse_kinematics(
            poses, checker, seed_q=None if seed_q is None else q, solutions=2, device="cuda:0"
        )
        for k, one in enumerate(plain):
            assert counts[k, 0] == len(one) and np.allclose(solutions[k, : len(one)], one.q, atol=1e-9)
            assert np.allclose(errors[k, : len(one), 0], one.position_error)
    assert counts[:, 0].mean() > 1
    poses[5, 0, 0] = 3
    with pytest.raises(GpuPlannersError, match="pose 5 of link"):
        robot.inverse_kinematics(there(poses), checker)


@LIBRARIES
def test_scenes_and_plans(there):
    robot, back, count = desk_arm(), BACK[there], 200
    batch, host = (SceneBatch(robot, obstacles(), count, device) for device in ("cuda:0", "cpu"))
    poses = np.tile(np.eye(4, dtype=np.float32), (count, 1, 1, 1))
    poses[:, 0, :3, :3] = Rotation.random(count, random_state=0).as_matrix()
    poses[:, 0, :3, 3] = np.random.default_rng(1).uniform([0.3, -0.5, 0], [0.8, 0.5, 0.9], (count, 3))
    batch.set_poses(there(poses))
    host.set_poses(poses)
    assert np.abs(batch.poses() - host.poses()).max() < 1e-9
    q = random_q(robot, count, 50)
    free = back(batch.configurations_valid(there(q)))
    assert free.shape == (count, 50) and (free != host.configurations_valid(q)).mean() < 1e-3
    starts, goals = (np.stack([q[e][free[e]][k] for e in range(count)]) for k in (0, 1))
    settings = rrt_connect.Settings(time_limit_s=5.0)
    results = rrt_connect.solve_batch(there(starts), there(goals), batch, settings)
    assert results.solved.mean() > 0.95  # here and there an obstacle leaves no way
    for e in np.flatnonzero(results.solved)[::10]:
        assert np.mean(host[int(e)].configurations_valid(between(results.path(int(e))))) > 0.99
    some = np.array([3, 150], np.int32)
    batch.set_poses(there(poses[:2]), environments=there(some))
    assert np.abs(batch.poses()[some] - poses[:2]).max() < 1e-6


def test_other_streams_of_torch():
    """Work of a stream that is not the default one is waited for."""
    torch = pytest.importorskip("torch")
    robot = desk_arm()
    checker, stream = CollisionChecker(robot, obstacles(), "cuda:0"), torch.cuda.Stream()
    q = random_q(robot, 200_000)
    expected = checker.configurations_valid(q)
    there, wrong = torch.from_numpy(q).cuda(), torch.zeros(q.shape, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        wrong.copy_(there)
        found = torch.from_dlpack(checker.configurations_valid(wrong))
        assert np.array_equal(found.cpu().numpy(), expected)


def test_two_devices():
    from numba import cuda

    if len(cuda.gpus) < 2:
        pytest.skip("one GPU")
    robot = desk_arm()
    q = random_q(robot, 100)
    with cuda.gpus[1]:
        there = cuda.to_device(q)
    with pytest.raises(ConfigurationError, match="cuda:1; allowed: arrays on cuda:0"):
        CollisionChecker(robot, obstacles(), "cuda:0").configurations_valid(there)
    first, expected = to_numba(q), robot.link_poses(q)[robot.tip_link]
    checkers = [CollisionChecker(robot, obstacles(), device) for device in ("cuda:0", "cuda:1")]
    for _ in range(3):
        for number, array in enumerate((first, there)):
            found = checkers[number].configurations_valid(array)
            assert found.__dlpack_device__() == (2, number)
            T = robot.link_poses(array)[robot.tip_link]
            assert T.__dlpack_device__() == (2, number)
            with cuda.gpus[number]:
                assert np.abs(T.copy_to_host() - expected).max() < 1e-5
                assert np.array_equal(found.copy_to_host(), checkers[number].configurations_valid(q))
