"""Robots far larger than an arm: trees of 14, 20 and 30 joints with up to 200 shapes and 10,000 pairs of them, Baxter's
two arms, a chain of 100 joints. On the CPU against coal and pinocchio; on CUDA against the CPU as well."""

import numpy as np
import pytest
from checkout import ROOT

from benchmarks import arm_sizes, robots
from benchmarks.arm_checks import stepped
from benchmarks.problems import add_obstacles, missing_data
from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf, prm, rrt, rrt_connect
from gpu_planners.arm.collision.scratch import SIZES
from gpu_planners.device import cuda_problem

GREY = 1e-4  # metres: configurations nearer to contact may be judged either way by another rounding
on_cuda = [pytest.mark.gpu, pytest.mark.skipif(bool(cuda_problem()), reason=f"no CUDA device: {cuda_problem()}")]
needs_data = pytest.mark.skipif(missing_data() is not None, reason=str(missing_data()))


@pytest.fixture(scope="module", params=arm_sizes.TREES, ids=lambda sizes: "{}-{}-{}".format(*sizes))
def tree(request, tmp_path_factory):
    """((joints, shapes, pairs), robots.Rig)"""
    return request.param, arm_sizes.tree_arm(tmp_path_factory.mktemp("trees"), *request.param)


@pytest.fixture(scope="module")
def baxter():
    """(robots.Rig, problems whose start and goal are free)"""
    rig, problems = robots.shared("baxter")
    usable = [
        one for one in problems[::10] if among(rig, one.obstacles).configurations_valid([one.start, one.goals[0]]).all()
    ]
    assert len(usable) > 5
    return rig, usable


def among(rig, obstacles, device="cpu"):
    return CollisionChecker(rig.model, add_obstacles(CollisionWorld(), obstacles), device)


def drawn(robot, count, seed=0):
    return np.random.default_rng(seed).uniform(robot.lower, robot.upper, (count, robot.dof))


def motions_of(checker, count):
    """`count` motions that begin free: half of them of 0.5 rad, half all the way to another such beginning."""
    q = drawn(checker.robot, 4 * count, 1)
    q = q[checker.configurations_valid(q)][:count]
    near = np.arange(count) % 2 == 0
    return q, np.where(near[:, None], stepped(np.random.default_rng(2), q, checker.robot), np.roll(q, 1, 0))


def far_ends(checker, count):
    """Pairs of free configurations that no straight motion joins."""
    a, b = motions_of(checker, 20 * count)
    apart = ~checker.motions_valid(a, b) & checker.configurations_valid(b)
    return [*zip(a[apart][:count], b[apart][:count], strict=True)]


def assert_agree(rig, obstacles, count, motions):
    """CUDA gives the CPU's verdicts, but where a configuration touches or a motion grazes."""
    cpu, gpu = among(rig, obstacles), among(rig, obstacles, "cuda")
    q = drawn(rig.model, count)
    differ = np.flatnonzero(cpu.configurations_valid(q) != gpu.configurations_valid(q))
    assert len(differ) < 20 and (cpu.clearances(q[differ], up_to=0.01) < GREY).all()
    a, b = motions_of(cpu, motions)
    on_cpu, on_gpu = cpu.motions_valid(a, b), gpu.motions_valid(a, b)
    assert 0.1 < on_cpu.mean() < 0.9
    differ = np.flatnonzero(on_cpu != on_gpu)
    assert len(differ) <= 0.005 * motions
    for i in differ:
        along = cpu.clearances(a[i] + np.linspace(0, 1, 500)[:, None] * (b[i] - a[i]), up_to=0.01)
        assert along.min() < 2 * cpu.motion.step


def test_a_tree_has_the_size_that_its_name_says(tree):
    (joints, shapes, pairs), rig = tree
    assert (rig.model.dof, len(rig.model.shapes)) == (joints, shapes)
    assert pairs <= len(rig.model.self_collision_pairs) < pairs + 60


def test_poses_of_a_tree_agree_with_pinocchio(tree):
    poses = pytest.importorskip("pinocchio_poses")
    _, rig = tree
    assert poses.largest_pose_error(rig.model, rig.urdf, drawn(rig.model, 20)) < 1e-9


def test_checks_of_a_tree_agree_with_coal(tree):
    pytest.importorskip("coal")
    _, rig = tree
    checker, scene = among(rig, arm_sizes.boxes()), rig.coal_scene(arm_sizes.boxes())
    q = drawn(rig.model, 60)
    apart = np.array([scene.distance(x) for x in q])
    free = checker.configurations_valid(q)
    assert (free == (apart > 0))[np.abs(apart) > GREY].all() and 0.2 < free.mean() < 0.8
    a, b = motions_of(checker, 40)
    proven = np.flatnonzero(checker.motions_valid(a, b))
    assert len(proven) > 8
    assert all(scene.first_collision([a[i], b[i]], spacing=0.001) is None for i in proven[:4])


@needs_data
def test_checks_of_baxter_agree_with_coal(baxter):
    pytest.importorskip("coal")
    rig, problems = baxter
    checker, scene = among(rig, problems[0].obstacles), rig.coal_scene(problems[0].obstacles)
    q = np.concatenate([drawn(rig.model, 100), [one.start for one in problems], [one.goals[0] for one in problems]])
    apart = np.array([scene.distance(x) for x in q])
    assert (checker.configurations_valid(q) == (apart > 0))[np.abs(apart) > GREY].all() and 0 < (apart > 0).mean() < 1


def test_plans_of_a_tree_are_free(tree):
    pytest.importorskip("coal")
    _, rig = tree
    checker, scene = among(rig, arm_sizes.boxes()), rig.coal_scene(arm_sizes.boxes())
    for start, goal in far_ends(checker, 2):
        result = rrt_connect.solve(start, goal, checker, rrt_connect.Settings(shortcut_rounds=0, time_limit_s=3600.0))
        assert result.solved and scene.first_collision(result.path, spacing=0.002) is None


@needs_data
@pytest.mark.parametrize("batch", [1, 16])
def test_motions_adapt_to_two_arms(baxter, batch):
    """Lengths that follow from the number of joints alone took five times as many samples, and rounds that gave both
    trees the same share eight times."""
    rig, problems = baxter
    settings = rrt_connect.Settings(shortcut_rounds=0, searches=1, batch=batch, time_limit_s=3600.0)
    results = [rrt_connect.solve(one.start, one.goals, among(rig, one.obstacles), settings) for one in problems]
    assert all(result.solved for result in results)
    assert np.median([result.samples for result in results]) < 5000


class TestOnCuda:
    pytestmark = on_cuda

    def test_verdicts_are_those_of_the_cpu(self, tree):
        assert_agree(tree[1], arm_sizes.boxes(), 20_000, 2000)

    def test_a_batch_of_motions_may_take_several_launches(self, tree, monkeypatch):
        """Where not all warps find room at once."""
        from gpu_planners.arm.spaces import cuda

        checker = among(tree[1], arm_sizes.boxes(), "cuda")
        ends = motions_of(checker, 1001)
        at_once = checker.motions_valid(*ends)
        monkeypatch.setattr(cuda, "SPILLED", 1)
        np.testing.assert_array_equal(among(tree[1], arm_sizes.boxes(), "cuda").motions_valid(*ends), at_once)

    @pytest.mark.parametrize("together", [False, True], ids=["alone", "batch"])
    def test_plans_are_free(self, tree, together):
        _, rig = tree
        cpu, gpu = (among(rig, arm_sizes.boxes(), device) for device in ("cpu", "cuda"))
        ends, settings = far_ends(cpu, 8), rrt_connect.Settings(time_limit_s=3600.0)
        if together:
            starts, goals = zip(*ends, strict=True)
            results = rrt_connect.solve_batch(starts, goals, gpu, settings)
        else:
            results = [rrt_connect.solve(*pair, gpu, settings) for pair in ends[:3]]
        assert all(result.solved for result in results)
        a, b = (np.concatenate([result.path[part] for result in results]) for part in (slice(-1), slice(1, None)))
        refused = ~cpu.motions_valid(a, b)  # one that grazes may be judged otherwise
        for from_, to in zip(a[refused], b[refused], strict=True):
            along = cpu.clearances(from_ + np.linspace(0, 1, 500)[:, None] * (to - from_), up_to=0.01)
            assert 0 <= along.min() < 2 * cpu.motion.step

    @needs_data
    def test_baxter_agrees_and_plans(self, baxter):
        rig, problems = baxter
        assert len(rig.model.self_collision_pairs) == 862  # which were too many
        assert_agree(rig, problems[0].obstacles, 20_000, 2000)
        settings = rrt_connect.Settings(time_limit_s=3600.0)
        for problem in problems[:3]:
            result = rrt_connect.solve(problem.start, problem.goals, among(rig, problem.obstacles, "cuda"), settings)
            assert result.solved, result.message
            assert among(rig, problem.obstacles).configurations_valid(result.path).all()

    @pytest.mark.parametrize("size", range(len(SIZES)))
    def test_kernels_of_larger_sizes_answer_the_same(self, size):
        """A wheel brings the kernels of all sizes, which a small robot has compiled."""
        robot = load_urdf(ROOT / "urdf" / "desk_arm.urdf", ROOT / "urdf" / "desk_arm.srdf")
        world = CollisionWorld()
        world.add_box("box", [0.3, 0.3, 0.3], np.eye(4) + 0.4 * np.eye(4, k=3))
        own = CollisionChecker(robot, world, "cuda")
        larger, q = own.of_size(size), drawn(robot, 4000)
        assert larger.scratch_sizes[1:3] == SIZES[size][:2] and own.scratch_sizes[1:] == SIZES[0]
        free = own.configurations_valid(q)
        assert np.array_equal(free, larger.configurations_valid(q)) and 0 < free.sum() < len(q)
        assert np.array_equal(own.motions_valid(q[1:], q[:-1]), larger.motions_valid(q[1:], q[:-1]))
        for planner in (rrt_connect, rrt, prm):
            settings = planner.Settings(time_limit_s=3600.0)
            paths = [planner.solve(*q[free][:2], checker, settings, seed=1).path for checker in (own, larger)]
            assert len(paths[0]) and np.array_equal(*paths), planner.__name__
        batches = [rrt_connect.solve_batch(q[free][:9], q[free][1:10], checker) for checker in (own, larger)]
        for one, other in zip(*batches, strict=True):
            assert one.solved and np.array_equal(one.path, other.path)

    def test_inverse_kinematics_of_a_chain_of_100_joints(self, tmp_path):
        robot = arm_sizes.serial_arm(tmp_path, 100).model
        T = robot.link_poses(drawn(robot, 20))["link_100"]
        for found, pose in zip(robot.inverse_kinematics(T, link="link_100", device="cuda"), T, strict=True):
            assert len(found) and np.abs(robot.link_poses(found.q[:1])["link_100"][0] - pose).max() < 2e-3


def test_any_size_finds_room_on_cuda(tree):
    """What a kernel must allocate, without a device."""
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed: pip install 'gpu_planners[gpu]'")
    from gpu_planners.arm.collision import checker_cuda
    from gpu_planners.arm.collision.packing import pack_robot
    from gpu_planners.arm.collision.scratch import poses_size, speeds_size
    from gpu_planners.arm.spaces.cuda import Spill

    packed = pack_robot(tree[1].model).buffers
    _, joints, poses, speeds = sizes = checker_cuda.scratch_sizes_of(packed)
    assert joints >= tree[0][0] and poses >= poses_size(packed) and speeds >= speeds_size(packed)
    for least in range(len(SIZES)):
        larger = checker_cuda.scratch_sizes_of(packed, least)
        assert all(n >= least_n for n, least_n in zip(larger[1:3], SIZES[least]))
        assert larger[1] >= joints and larger[2] >= poses and larger[3] >= speeds_size(packed)
    assert (Spill(sizes).most_blocks > 0) == (speeds > checker_cuda.SHARED_SPEEDS)


def test_rows_of_global_memory(monkeypatch):
    """A row for each warp, used again where they suffice; a checker keeps no more than KEPT."""
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed: pip install 'gpu_planners[gpu]'")
    from gpu_planners.arm.collision import checker_cuda
    from gpu_planners.arm.spaces import cuda
    from gpu_planners.arm.spaces.interface import ARM

    monkeypatch.setattr(cuda.cuda, "device_array", np.empty)
    assert cuda.Spill((ARM, 8, 256, checker_cuda.SHARED_SPEEDS)).rows(7) == ()
    floats = 2 * checker_cuda.SHARED_SPEEDS
    spill = cuda.Spill((ARM, 32, 1024, floats))
    (few,) = spill.rows(3)
    assert few.shape == (3 * cuda.WARPS, floats) and spill.rows(2)[0] is few
    spill.trim()
    assert spill.rows(3)[0] is few and spill.most_blocks * few.size // 3 <= cuda.SPILLED
    (many,) = spill.rows(spill.most_blocks)
    spill.trim()
    assert many.size > cuda.KEPT and spill.rows(1)[0] is not many
