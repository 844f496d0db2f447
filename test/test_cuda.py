"""CUDA against the CPU, on the shared Panda scenes. Needs a device; skips with the reason where there is none."""

import numpy as np
import pytest
from gpu_planners.arm import CollisionChecker, CollisionWorld, MotionCheck, load_urdf, prm, rrt_connect
from gpu_planners.device import cuda_problem

from benchmarks.problems import add_obstacles, load_problems, missing_data, robot_files

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(bool(cuda_problem()), reason=f"no CUDA device: {cuda_problem()}"),
    pytest.mark.skipif(missing_data() is not None, reason=str(missing_data())),
]
GREY = 1e-4  # metres: configurations nearer to contact may be judged either way by another rounding


@pytest.fixture(scope="module")
def robot():
    return load_urdf(*robot_files("panda"))


@pytest.fixture(scope="module")
def problems():
    return load_problems("panda")[::25]


def checkers(robot, problem, motion=MotionCheck()):
    world = add_obstacles(CollisionWorld(), problem.obstacles)
    return CollisionChecker(robot, world, "cpu", motion), CollisionChecker(robot, world, "cuda", motion)


def test_configurations_agree_but_for_those_in_contact(robot, problems):
    compared = 0
    for problem in problems:
        cpu, gpu = checkers(robot, problem)
        q = np.random.default_rng(problem.index).uniform(robot.lower, robot.upper, (20_000, robot.dof))
        on_cpu, on_gpu = cpu.configurations_valid(q), gpu.configurations_valid(q)
        differ = np.flatnonzero(on_cpu != on_gpu)
        clear = cpu.clearances(q[differ], up_to=0.01)
        assert (clear < GREY).all(), f"{problem.name}: judged apart although {clear.max()} m from contact"
        assert len(differ) < 20
        compared += len(q)
    print(f"{compared} configurations compared")


@pytest.mark.parametrize("motion", [MotionCheck(), MotionCheck("workspace", 0.01), MotionCheck("joint", 0.05), MotionCheck("count", 100)],
                         ids=lambda m: m.mode)
def test_motions_agree_but_for_those_that_graze(robot, problems, motion):
    """Continuous checks may differ where a motion passes closer than the step; sampled ones only by rounding."""
    for problem in problems[::3]:
        cpu, gpu = checkers(robot, problem, motion)
        rng = np.random.default_rng(problem.index)
        q = rng.uniform(robot.lower, robot.upper, (4000, robot.dof))
        q = q[cpu.configurations_valid(q)]
        a, b = q, q + rng.normal(0, 0.2, q.shape)
        on_cpu, on_gpu = cpu.motions_valid(a, b), gpu.motions_valid(a, b)
        assert 0.2 < on_cpu.mean() < 1.0
        differ = np.flatnonzero(on_cpu != on_gpu)
        assert len(differ) <= 0.002 * len(q)
        for i in differ:
            along = cpu.clearances(a[i] + np.linspace(0, 1, 500)[:, None] * (b[i] - a[i]), up_to=0.01)
            assert along.min() < 2 * motion.step if motion.mode == "continuous" else along.min() < GREY


@pytest.mark.parametrize("planner", [rrt_connect, prm], ids=["rrt_connect", "prm"])
def test_paths_are_free_and_repeatable(robot, problems, planner):
    solved = 0
    for problem in problems:
        if planner is prm and problem.family not in ("box", "table_under_pick"):
            continue
        cpu, gpu = checkers(robot, problem)
        one, two = (planner.solve(problem.start, problem.goals, gpu, planner.Settings(time_limit_s=20), seed=3) for _ in range(2))
        assert one.solved, f"{problem.name}: {one.message}"
        assert np.array_equal(one.path, two.path)
        dense = np.concatenate([a + np.linspace(0, 1, 200)[:, None] * (b - a) for a, b in zip(one.path, one.path[1:])])
        assert cpu.configurations_valid(dense).all()
        solved += 1
    assert solved >= 3


def test_a_changed_world_is_seen(robot, problems):
    cpu, gpu = checkers(robot, problems[0])
    start = problems[0].start
    assert gpu.configurations_valid(start[None])[0]
    hand = robot.link_poses(start)["panda_hand"]
    cpu.world.add_sphere("in the hand", 0.05, hand.reshape(4, 4))
    assert not gpu.configurations_valid(start[None])[0]
    cpu.world.remove("in the hand")
    assert gpu.configurations_valid(start[None])[0]


def test_requests_of_any_size(robot, problems):
    _, gpu = checkers(robot, problems[0])
    assert gpu.configurations_valid(np.zeros((0, 7))).shape == (0,)
    q = np.random.default_rng(0).uniform(robot.lower, robot.upper, (5000, 7))
    whole = gpu.configurations_valid(q)
    parts = np.concatenate([gpu.configurations_valid(q[i:j]) for i, j in [(0, 1), (1, 130), (130, 5000)]])
    assert np.array_equal(whole, parts)
