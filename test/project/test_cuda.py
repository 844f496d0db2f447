"""CUDA against the CPU, and what both may get wrong against coal, on the shared Panda scenes. Needs a device."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.problems import add_obstacles, load_problems, missing_data, robot_files
from gpu_planners.arm import CollisionChecker, CollisionWorld, MotionCheck, Status, load_urdf
from gpu_planners.arm.planners import prm, rrt_connect
from gpu_planners.arm.planners.result import path_length
from gpu_planners.arm.planners.shortcut import shortcut
from gpu_planners.device import cuda_problem

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


@pytest.fixture(scope="module")
def bare():
    """The re-checker's Panda without obstacles."""
    pytest.importorskip("coal")
    from gpu_planners.verify import CoalScene

    return CoalScene(*robot_files("panda"), meshes="hulls")


def checkers(robot, problem, motion=MotionCheck()):
    world = add_obstacles(CollisionWorld(), problem.obstacles)
    return CollisionChecker(robot, world, "cpu", motion), CollisionChecker(robot, world, "cuda", motion)


def test_configurations_agree_but_for_those_in_contact(robot, problems, bare):
    """20,000 a scene with the CPU's, some of them with coal."""
    compared = 0
    for problem in problems:
        cpu, gpu = checkers(robot, problem)
        q = np.random.default_rng(problem.index).uniform(robot.lower, robot.upper, (20_000, robot.dof))
        on_cpu, on_gpu = cpu.configurations_valid(q), gpu.configurations_valid(q)
        differ = np.flatnonzero(on_cpu != on_gpu)
        clear = cpu.clearances(q[differ], up_to=0.01)
        assert (clear < GREY).all(), f"{problem.name}: judged apart although {clear.max()} m from contact"
        assert len(differ) < 20
        scene = bare.among(problem.obstacles)
        distance = np.array([scene.distance(x) for x in q[:20]])
        assert (on_gpu[:20] == (distance > 0))[np.abs(distance) > GREY].all()
        compared += len(q)
    print(f"{compared} configurations compared")


@pytest.mark.parametrize(
    "motion",
    [MotionCheck(), MotionCheck("workspace", 0.01), MotionCheck("joint", 0.05), MotionCheck("count", 100)],
    ids=lambda m: m.mode,
)
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
def test_paths_are_free_and_repeatable(robot, problems, planner, bare):
    solved = 0
    for problem in problems:
        if planner is prm and problem.family not in ("box", "table_under_pick"):
            continue
        _, gpu = checkers(robot, problem)
        one, two = (
            planner.solve(problem.start, problem.goals, gpu, planner.Settings(time_limit_s=20), seed=3)
            for _ in range(2)
        )
        assert one.solved, f"{problem.name}: {one.message}"
        assert np.array_equal(one.path, two.path)
        assert bare.among(problem.obstacles).first_collision(one.path, spacing=0.001) is None
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


def test_a_batch_answers_each_problem(robot, problems, bare):
    """Bad problems between good ones, in distinct scenes; twice the same."""
    gpus = [checkers(robot, problem)[1] for problem in problems]
    starts, goals = [p.start for p in problems], [p.goals for p in problems]
    starts[1], goals[2] = np.full(7, 8.0), np.full((1, 7), np.nan)
    goals[3] = np.concatenate([np.full((1, 7), 9.0), goals[3]])
    one, two = (
        rrt_connect.solve_batch(starts, goals, gpus, rrt_connect.Settings(time_limit_s=30), seed=5) for _ in range(2)
    )
    assert (
        one[1].status is Status.START_OUT_OF_LIMITS and one[2].status is Status.INVALID_GOAL and one[3].goal_index == 1
    )
    for i, (result, again) in enumerate(zip(one, two)):
        assert np.array_equal(result.path, again.path)
        if i not in (1, 2):
            assert result.solved, result.message
            assert np.array_equal(result.path[0], starts[i]) and np.array_equal(
                result.path[-1], goals[i][result.goal_index]
            )
            assert bare.among(problems[i].obstacles).first_collision(result.path, spacing=0.001) is None


def test_many_problems_share_a_scene(robot, problems, bare):
    """More problems than blocks; every goal is reached."""
    _, gpu = checkers(robot, problems[0])
    q = np.random.default_rng(0).uniform(robot.lower, robot.upper, (4000, robot.dof))
    q = q[gpu.configurations_valid(q)][:2000]
    results = rrt_connect.solve_batch(q[0::2], q[1::2], gpu, rrt_connect.Settings(max_samples=300, time_limit_s=20))
    solved = [i for i, result in enumerate(results) if result.solved]
    assert len(results) == len(q) // 2 and len(solved) > len(results) // 2
    assert all(result.solved or result.status is Status.SAMPLES_EXHAUSTED for result in results)
    a = np.concatenate([results[i].path[:-1] for i in solved])
    b = np.concatenate([results[i].path[1:] for i in solved])
    refused = ~gpu.motions_valid(a, b)  # a motion that grazes may be judged otherwise as a whole
    assert refused.mean() < 0.02, refused.mean()
    scene = bare.among(problems[0].obstacles)
    assert all(scene.first_collision([*ends], spacing=0.001) is None for ends in zip(a[refused], b[refused]))


def test_few_hard_problems_of_a_batch_have_teams_of_blocks(robot, problems):
    """So few that they begin with the last pass. Same call, same paths."""
    problems = [problem for problem in problems if problem.hull_valid_start and problem.hull_valid_goal]
    checkers_of = [checkers(robot, problem)[1] for problem in problems]
    settings = rrt_connect.Settings(shortcut_rounds=0, range=0.3)  # many samples
    starts, goals = [problem.start for problem in problems], [problem.goals for problem in problems]
    once, again = (rrt_connect.solve_batch(starts, goals, checkers_of, settings, seed=2) for _ in range(2))
    assert all(result.solved for result in once) and max(result.samples for result in once) > 256
    for one, other, checker in zip(once, again, checkers_of):
        assert np.array_equal(one.path, other.path) and one.samples == other.samples
        assert np.mean(checker.motions_valid(one.path[:-1], one.path[1:])) > 0.9
    few = rrt_connect.solve_batch(starts, goals, checkers_of, replace(settings, max_samples=300), seed=2)
    assert all(result.solved or (result.status is Status.SAMPLES_EXHAUSTED and result.samples == 300) for result in few)


def test_paths_for_which_there_was_no_room_are_searched_again_as_they_were(robot, problems, monkeypatch):
    """Whose path found none followed from whose came first."""
    from gpu_planners.arm.planners.rrt_connect import cuda

    checkers_of = [checkers(robot, problem)[1] for problem in problems]
    starts, goals = [problem.start for problem in problems], [problem.goals for problem in problems]
    settings = rrt_connect.Settings(shortcut_rounds=0, range=0.3, max_samples=300)
    plain = rrt_connect.solve_batch(starts, goals, checkers_of, settings, seed=2)
    monkeypatch.setattr(cuda, "CORNERS_OF_MANY", 1)
    monkeypatch.setattr(cuda, "CORNERS", 1)
    tight = rrt_connect.solve_batch(starts, goals, checkers_of, settings, seed=2)
    assert all(np.array_equal(one.path, other.path) for one, other in zip(plain, tight))
    assert [one.samples for one in plain] == [one.samples for one in tight] and sum(one.solved for one in plain) > 3


def test_collisions_and_time_limits_are_named(robot, problems):
    _, gpu = checkers(robot, problems[0])
    start, goals = problems[0].start, problems[0].goals
    free = CollisionChecker(robot, CollisionWorld(), "cuda")
    ready, turned = robot.named_states["ready"], robot.named_states["ready"] + np.eye(7)[0]
    free.world.add_sphere("ball", 0.06, robot.link_poses(ready)["panda_hand"].reshape(4, 4))
    blocked = rrt_connect.solve(ready, turned, free)
    assert blocked.status is Status.START_IN_COLLISION and "panda_hand_0 with ball" in blocked.message
    assert rrt_connect.solve(turned, ready, free).status is Status.GOAL_IN_COLLISION
    slow = rrt_connect.Settings(range=0.001, time_limit_s=0.001)  # thousands of steps to the goal
    limited = rrt_connect.solve(start, goals, gpu, slow)
    assert limited.status is Status.TIMED_OUT and "0.001 s" in limited.message and limited.time_s < 2.0
    assert rrt_connect.solve(start, goals, gpu).solved
    few = rrt_connect.solve(start, goals, gpu, rrt_connect.Settings(max_samples=3, range=0.01))
    assert few.status is Status.SAMPLES_EXHAUSTED and few.samples == 3


def test_shortening_finds_ways_no_longer_than_the_cpus(robot, problems, bare):
    """It checks all legs at once; the CPU checks those that are likely free, and may miss the shortest way."""
    for problem in problems[:6]:
        cpu, gpu = checkers(robot, problem)
        raw = rrt_connect.solve(problem.start, problem.goals, cpu, rrt_connect.Settings(shortcut_rounds=0), seed=1).path
        on_cpu, on_gpu = (shortcut(raw, checker, 1, seed=1) for checker in (cpu, gpu))
        assert path_length(on_gpu) <= 1.02 * path_length(on_cpu)  # a leg that grazes may be free on one of them alone
        assert bare.among(problem.obstacles).first_collision(on_gpu, spacing=0.001) is None
