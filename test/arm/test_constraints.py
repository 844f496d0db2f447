"""Constraints: what is called kept is kept everywhere by pinocchio; planned motions keep theirs, free by coal."""

from dataclasses import replace

import numpy as np
import pytest
from robots_at_hand import READY
from scipy.spatial.transform import Rotation

from benchmarks import robots
from benchmarks.problems import add_obstacles
from gpu_planners.arm import CollisionChecker, CollisionWorld, Status, rrt_connect
from gpu_planners.arm.constraints import (
    JointRange,
    KeepingChecker,
    Orientation,
    Position,
    Tilt,
    Volume,
    Within,
    all_of,
    keeping,
    projecting,
)
from gpu_planners.arm.spaces.interface import FREE, space_of
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.device import cuda_problem, njit
from gpu_planners.errors import ConfigurationError, RobotDescriptionError, SettingsError

needs_gpu = pytest.mark.skipif(bool(cuda_problem()), reason=f"no CUDA device: {cuda_problem()}")
PLACES = np.linspace(0, 1, 40)
POINT = np.array([0.02, 0.0, 0.05])
POST = {"type": "box", "name": "post", "size": [0.1, 0.1, 1.2], "position": [0.5, 0.0, 0.4], "quat_xyzw": [0, 0, 0, 1]}
TCP = "panda_hand_tcp"


def rig_of(name):
    pytest.importorskip("pinocchio")
    if why := robots.unavailable(name):
        pytest.skip(why)
    return robots.rig(name)


def poses_by_pinocchio(rig, q):
    """(N, 4, 4) of the first tip."""
    from benchmarks.arm_kinematics import PinocchioArm

    arm = PinocchioArm(rig, rig.tips[0])
    return np.array([arm.pose(row).homogeneous for row in q])


def vector_error(T, R):
    return np.abs(Rotation.from_matrix(R.T @ T[:, :3, :3]).as_rotvec())


def euler_error(T, R):
    return np.abs(Rotation.from_matrix(R.T @ T[:, :3, :3]).as_euler("XYZ"))


def at(T, pose):
    """(N, 3) POINT of the link in a frame."""
    return (T[:, :3, :3] @ POINT + T[:, :3, 3] - pose[:3, 3]) @ pose[:3, :3]


def cases(robot, link, T, q):
    """{name: (constraint, what exceeds it by the link's poses and the joints' values)}"""
    R, inf = T[:3, :3], np.inf
    pose = T.copy()
    pose[:3, 3] += R @ POINT
    shifted = pose.copy()
    shifted[:3, 3] += [0.08, 0.0, 0.0]
    joint = robot.joint_names[1]

    def in_cylinder(T):
        p = at(T, pose)
        return np.maximum(np.hypot(p[:, 0], p[:, 1]) - 0.12, np.abs(p[:, 2]) - 0.1)

    def in_cone(T):  # 0.4 high, 0.3 wide at its base
        p = at(T, pose)
        return np.maximum(np.hypot(p[:, 0], p[:, 1]) - 0.3 * (0.2 - p[:, 2]) / 0.4, -0.2 - p[:, 2])

    corners = np.stack(np.meshgrid([-0.1, 0.1], [-0.1, 0.1], [-0.1, 0.1]), axis=-1).reshape(-1, 3)
    turning = {"vector": vector_error, "euler": euler_error}
    found = {
        f"{angles} {allowed}": (
            Orientation(robot, link, R, allowed, angles),
            lambda T, q, error=error, allowed=allowed: (error(T, R) - allowed).max(axis=1),
        )
        for angles, error in turning.items()
        for allowed in ((0.3, 0.2, 0.4), (0.3, 0.2, 4.0), (4.0, 0.1, 4.0), (2.0, 0.5, 0.5))
    }
    return found | {
        "tilt": (
            Tilt(robot, link, (0, 0, 1), R[:, 2], 0.2),
            lambda T, q: np.arccos(np.clip(T[:, :3, 2] @ R[:, 2], -1, 1)) - 0.2,
        ),
        "wide tilt": (
            Tilt(robot, link, (0, 0, 1), -R[:, 2], 2.9),
            lambda T, q: np.arccos(np.clip(T[:, :3, 2] @ -R[:, 2], -1, 1)) - 2.9,
        ),
        "box": (
            Position(robot, link, POINT, (-0.1, -0.2, -0.05), (0.1, 0.1, 0.1), pose),
            lambda T, q: np.maximum(at(T, pose) - [0.1, 0.1, 0.1], [-0.1, -0.2, -0.05] - at(T, pose)).max(axis=1),
        ),
        "plane": (
            Position(robot, link, POINT, (-inf, -inf, -0.02), (inf, inf, 0.02), pose),
            lambda T, q: np.abs(at(T, pose)[:, 2]) - 0.02,
        ),
        "balls": (
            Within(robot, link, POINT, [Volume.sphere(0.1, pose), Volume.sphere(0.1, shifted)]),
            lambda T, q: np.minimum(*(np.linalg.norm(at(T, each), axis=1) for each in (pose, shifted))) - 0.1,
        ),
        "cylinder": (Within(robot, link, POINT, [Volume.cylinder(0.12, 0.2, pose)]), lambda T, q: in_cylinder(T)),
        "cone": (Within(robot, link, POINT, [Volume.cone(0.3, 0.4, pose)]), lambda T, q: in_cone(T)),
        "hull": (
            Within(robot, link, POINT, [Volume.hull(corners, pose)]),
            lambda T, q: np.abs(at(T, pose)).max(axis=1) - 0.1,
        ),
        "joint": (
            JointRange(robot, {joint: (q[1] - 0.1, q[1] + 0.2)}),
            lambda T, at: np.abs(at[:, 1] - q[1] - 0.05) - 0.15,
        ),
    }


def central(rig, rng):
    """The robot, its tip, the ends of its joints' ranges, and a random configuration in the middle of these."""
    robot = rig.model
    low, high = np.where(robot.continuous, -3, robot.lower), np.where(robot.continuous, 3, robot.upper)
    return robot, rig.tips[0], low, high, (low + high) / 2 + 0.2 * rng.uniform(-1, 1, robot.dof) * (high - low)


@pytest.mark.parametrize("name", robots.ROBOTS)
def test_what_is_kept_is_kept_everywhere(name):
    """Of random motions. The proof finds nearly all that keep their constraint at all places looked at."""
    rig, rng = rig_of(name), np.random.default_rng(0)
    robot, link, low, high, q = central(rig, rng)
    T = robot.link_poses(q)[link][0]
    a, b = (q + rng.normal(size=(100, robot.dof)) * np.minimum(0.12, 0.1 * (high - low)) for _ in range(2))
    places = np.concatenate([a + share * (b - a) for share in PLACES])
    poses, really, proven = poses_by_pinocchio(rig, places), 0, 0
    for case, (rule, exceeds) in cases(robot, link, T, q).items():
        worst = exceeds(poses, places).reshape(len(PLACES), -1).max(axis=0)
        kept = rule.kept(a, b)
        assert worst[kept].max(initial=-1.0) <= 1e-8, case
        assert (rule.satisfied(places) == (exceeds(poses, places) <= 1e-9)).mean() > 0.999, case
        really, proven = really + (worst <= 0).sum(), proven + kept.sum()
    assert really > 300 and proven > 0.97 * really


@njit
def kept_by_compiled(a, b, space, found):
    for i in range(len(a)):
        found[i] = keeping.kept(a[i], b[i], space, 0)


@njit
def project_compiled(q, near, lower, upper, space, found):
    for i in range(len(q)):
        found[i] = projecting.project(q[i], near[i], lower, upper, space)


@pytest.mark.parametrize("name", robots.ROBOTS)
def test_compiled_code_proves_and_projects_as_numpy_does(name):
    """What compiled code calls kept is kept everywhere by pinocchio, and is nearly all that NumPy proves; what it
    projects keeps the constraint by a margin."""
    rig, rng = rig_of(name), np.random.default_rng(2)
    robot, link, low, high, q = central(rig, rng)
    a, b = (q + rng.normal(size=(100, robot.dof)) * np.minimum(0.12, 0.1 * (high - low)) for _ in range(2))
    a, b, drawn = (each.astype(np.float32) for each in (a, b, rng.uniform(low, high, (60, robot.dof))))
    low, high = low.astype(np.float32), high.astype(np.float32)
    places = np.concatenate([a.astype(float) + share * (b.astype(float) - a) for share in PLACES])
    poses, proven, by_numpy = poses_by_pinocchio(rig, places), 0, 0
    checker, found = CollisionChecker(robot, CollisionWorld(), "cpu"), np.empty(len(a), dtype=bool)
    chosen = cases(robot, link, robot.link_poses(q)[link][0], q)
    for case, (rule, exceeds) in (chosen | several(chosen)).items():
        space = space_of(KeepingChecker(checker, rule))
        kept_by_compiled(a, b, space, found)
        worst = exceeds(poses, places).reshape(len(PLACES), -1).max(axis=0)
        assert worst[found].max(initial=-1.0) <= 0.0, case
        reference = rule.kept(a, b)
        assert reference[found].all(), case
        proven, by_numpy = proven + found.sum(), by_numpy + reference.sum()
        placed, placed_well = drawn.copy(), np.empty(len(drawn), dtype=bool)
        project_compiled(placed, drawn, low, high, space, placed_well)
        assert placed_well.mean() > (0.25 if case in chosen else 0.1), case  # walks ask for steps of 0.25 rad
        placed = placed[placed_well]
        assert (rule.excess(placed) < 0).all() and (placed >= low).all() and (placed <= high).all(), case
    assert proven > 0.99 * by_numpy > 300


def several(chosen):
    """Two of all the cases at once: more sides than a step of a projection sees to are no harm."""
    found = {}
    for first, second in (("tilt", "plane"), ("vector (0.3, 0.2, 4.0)", "box"), ("joint", "hull")):
        (rule, one), (other, two) = chosen[first], chosen[second]
        exceeds = lambda T, q, one=one, two=two: np.maximum(one(T, q), two(T, q))  # noqa: E731
        found[f"{first} and {second}"] = all_of([rule, other]), exceeds
    return found


@pytest.mark.gpu
@needs_gpu
def test_cuda_proves_what_the_cpu_proves():
    """A warp checks a motion, each lane a part of it; free of collision in an empty world, so the proof decides."""
    from numba import cuda

    from gpu_planners.arm.spaces.cuda import THREADS, WARPS, Spill, motion_kernel

    rig, rng = rig_of("panda"), np.random.default_rng(3)
    robot, link, low, high, q = central(rig, rng)
    a, b = (q + rng.normal(size=(1000, robot.dof)) * np.minimum(0.12, 0.1 * (high - low)) for _ in range(2))
    a, b = a.astype(np.float32), b.astype(np.float32)
    checker = CollisionChecker(robot, CollisionWorld(), "cuda")
    free = checker.motions_valid(a, b)
    proven, by_numpy = 0, 0
    for case, (rule, _) in cases(robot, link, robot.link_poses(q)[link][0], q).items():
        one = KeepingChecker(checker, rule)
        mode, step = one.motion_args
        blocks, verdicts = -(-len(a) // WARPS), cuda.to_device(np.zeros(len(a), np.uint8))
        ends, spill = (cuda.to_device(a), cuda.to_device(b)), Spill(one.scratch_sizes).rows(blocks)
        kernel = motion_kernel(*one.scratch_sizes)
        kernel[blocks, THREADS](*ends, np.int32(mode), step, *one.device_scene(), verdicts, spill)
        found, reference = verdicts.copy_to_host() == FREE, rule.kept(a, b) & free
        assert reference[found].all(), case
        proven, by_numpy = proven + found.sum(), by_numpy + reference.sum()
    assert proven > 0.99 * by_numpy > 1000


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("kind", ["plane", "cup on a plane"])
def test_cuda_plans_as_the_cpu_does(at_a_post, kind):
    """One problem on the whole device, and many at once, whose paths the NumPy proof and coal check."""
    rig, checker, start, goals = at_a_post
    rules = {"plane": plane(rig.model, 0.4, 0.01)}
    rules["cup on a plane"] = all_of([down(rig.model, 0.1), plane(rig.model, 0.4, 0.02)])
    rule, on_cuda, settings = rules[kind], checker.on("cuda"), rrt_connect.Settings(time_limit_s=3600.0)
    results = [rrt_connect.solve(start, goals, on_cuda, settings, seed, constraints=rule) for seed in (0, 0, 1)]
    assert np.array_equal(results[0].path, results[1].path)
    results.append(rrt_connect.solve(start, goals, on_cuda, replace(settings, optimise_s=1.0), constraints=rule))
    results += rrt_connect.solve_batch([start] * 40, [goals] * 40, on_cuda, settings, constraints=rule)
    for result in results:
        assert result.solved, result.message
        assert rule.kept(result.path[:-1], result.path[1:]).all()
        assert rig.coal_scene([POST]).first_collision(result.path) is None


def test_a_start_on_the_edge_can_be_left():
    """Of a box whose side goes through the point where the start has it; the compiled proof has float32."""
    rig = rig_of("panda")
    robot, inf = rig.model, np.inf
    checker = CollisionChecker(robot, CollisionWorld(), "cpu")
    start, goal = READY, hand_down(checker, 0.45, -0.3, 0.6)[0]
    height = robot.link_poses(start)[TCP][0, 2, 3]
    rule = Position(robot, TCP, np.zeros(3), (-inf, -inf, height), (inf, inf, height + 0.5))
    assert abs(rule.excess(start[None])[0]) < 1e-9
    result = rrt_connect.solve(start, goal, checker, rrt_connect.Settings(time_limit_s=3600.0), constraints=rule)
    assert result.solved, result.message
    assert (
        rule.excess(np.concatenate([np.linspace(a, b, 60) for a, b in zip(result.path, result.path[1:])])).max() < 1e-6
    )


@pytest.mark.parametrize("name", robots.ROBOTS)
def test_projections_keep_the_constraint(name):
    rig, rng = rig_of(name), np.random.default_rng(1)
    robot, link, low, high, q = central(rig, rng)
    drawn = rng.uniform(low, high, (60, robot.dof))
    for case, (rule, exceeds) in cases(robot, link, robot.link_poses(q)[link][0], q).items():
        placed, found = rule.project(drawn)
        assert found.mean() > 0.5, case
        placed = placed[found]
        assert (exceeds(poses_by_pinocchio(rig, placed), placed) < 0).all(), case
        assert (placed >= low - 4).all() and (robot.continuous | (placed >= robot.lower)).all()
        assert (robot.continuous | (placed <= robot.upper)).all(), case
        again, _ = rule.project(placed)
        assert (again == placed).all(), case


def test_a_joint_that_turns_without_end_keeps_a_range_at_any_turn():
    robot = rig_of("kinova").model
    joint = int(np.argmax(robot.continuous))
    rule = JointRange(robot, {robot.joint_names[joint]: (2.8, 3.6)})
    q = np.zeros((5, robot.dof))
    q[:, joint] = 3.0, 3.5, 3.5 - 2 * np.pi, 3.0 + 4 * np.pi, 2.0
    assert rule.satisfied(q).tolist() == [True, True, True, True, False]
    assert rule.kept(q[[0, 0, 0]], q[[1, 2, 3]]).tolist() == [True, False, False]  # others leave it for another turn


def hand_down(checker, x, y, z=0.4):
    T = np.diag([1.0, -1.0, -1.0, 1.0])
    T[:3, 3] = x, y, z
    return checker.robot.inverse_kinematics(T, checker, link=TCP, seed_q=READY, solutions=4).q


@pytest.fixture(scope="module")
def at_a_post():
    rig = rig_of("panda")
    checker = CollisionChecker(rig.model, add_obstacles(CollisionWorld(), [POST]), "cpu")
    return rig, checker, hand_down(checker, 0.45, 0.3)[0], hand_down(checker, 0.45, -0.3)


def down(robot, tolerance):
    return Tilt(robot, TCP, (0, 0, 1), (0, 0, -1), tolerance)


def plane(robot, height, thickness):
    inf = np.inf
    return Position(robot, TCP, np.zeros(3), (-inf, -inf, height - thickness), (inf, inf, height + thickness))


@pytest.mark.parametrize(
    "kind", ["a plane", "the hand down on a plane", "the hand turned by little", "a thin plane", "a joint and a plane"]
)
def test_around_a_post(at_a_post, kind):
    rig, checker, start, goals = at_a_post
    robot, wanted = rig.model, np.diag([1.0, -1.0, -1.0])
    joint = robot.joint_names[1]
    rules = {
        "a plane": plane(robot, 0.4, 0.01),
        "the hand down on a plane": all_of([down(robot, 0.1), plane(robot, 0.4, 0.02)]),
        "the hand turned by little": Orientation(robot, TCP, wanted, (0.2, 0.2, 0.5)),
        "a thin plane": plane(robot, 0.4, 0.001),
        "a joint and a plane": all_of([JointRange(robot, {joint: (-0.5, 1.0)}), plane(robot, 0.4, 0.02)]),
    }
    rule = rules[kind]
    assert rule.satisfied(start[None])[0], rule.told(start)
    result = rrt_connect.solve(start, goals, checker, rrt_connect.Settings(time_limit_s=3600.0), constraints=rule)
    assert result.solved, result.message
    path = result.path
    assert (path[0] == start).all() and np.allclose(path[-1], goals[result.goal_index])
    assert rule.kept(path[:-1], path[1:]).all()
    way = np.concatenate([np.linspace(a, b, 60) for a, b in zip(path, path[1:])])
    T = poses_by_pinocchio(rig, way)
    if "plane" in kind:
        assert np.abs(T[:, 2, 3] - 0.4).max() <= (
            0.02 if "down" in kind or "joint" in kind else 0.001 if "thin" in kind else 0.01
        )
    if "down" in kind:
        assert np.arccos(-T[:, 2, 2]).max() <= 0.1
    if "turned" in kind:
        assert (vector_error(T, wanted) <= [0.2, 0.2, 0.5]).all()
    if "joint" in kind:
        assert (way[:, 1] >= -0.5).all() and (way[:, 1] <= 1.0).all()
    assert rig.coal_scene([POST]).first_collision(path) is None


def test_the_same_seed_gives_the_same_path(at_a_post):
    rig, checker, start, goals = at_a_post
    rule, settings = plane(rig.model, 0.4, 0.02), rrt_connect.Settings(time_limit_s=3600.0, shortcut_rounds=1)
    first, second = (rrt_connect.solve(start, goals, checker, settings, 3, constraints=rule) for _ in range(2))
    assert first.solved and np.array_equal(first.path, second.path)


def test_further_searches_make_the_path_shorter(at_a_post):
    rig, checker, start, goals = at_a_post
    rule, settings = (
        all_of([down(rig.model, 0.1), plane(rig.model, 0.4, 0.02)]),
        rrt_connect.Settings(time_limit_s=3600.0),
    )
    first = rrt_connect.solve(start, goals, checker, settings, constraints=rule)
    for more in (
        replace(settings, restarts=6),
        replace(settings, optimise_s=1.0),
        replace(settings, optimise_s=1.5, objective="time"),
    ):
        best = rrt_connect.solve(start, goals, checker, more, constraints=rule)
        assert best.solved and len(best.history), best.message
        assert (
            rule.kept(best.path[:-1], best.path[1:]).all()
            and checker.motions_valid(best.path[:-1], best.path[1:]).all()
        )
        if more.objective == "length":
            assert best.cost <= first.cost + 1e-6 and (np.diff(best.history[:, 2]) < 0).all()


def test_batches_keep_it(at_a_post):
    """As single problems do; and a start that does not keep it touches no other problem."""
    rig, checker, start, goals = at_a_post
    rule, settings = plane(rig.model, 0.4, 0.02), rrt_connect.Settings(time_limit_s=3600.0)
    low = hand_down(checker, 0.45, -0.3, 0.3)[0]
    starts, ends = [start, low, *goals], [goals, goals, *[start] * len(goals)]
    results = rrt_connect.solve_batch(starts, ends, checker, settings, constraints=rule)
    assert results[1].status is Status.INVALID_START and "0.08 m outside" in results[1].message
    for k, result in enumerate(results[:1] + results[2:]):
        assert result.solved, (k, result.message)
        assert rule.kept(result.path[:-1], result.path[1:]).all()
        assert rig.coal_scene([POST]).first_collision(result.path) is None
    one = KeepingChecker(checker, rule)
    others = rrt_connect.solve_batch(starts, ends, [one] * len(starts), settings)
    assert all(np.array_equal(a.path, b.path) for a, b in zip(results, others))


def test_rounded_corners_keep_it(at_a_post):
    """All of a motion that passes its corners, by pinocchio; it is quicker than one that stops at each."""
    rig, checker, start, goals = at_a_post
    robot = rig.model
    turned = Orientation(robot, TCP, np.diag([1.0, -1.0, -1.0]), (0.2, 0.2, 1.5))
    for rule in (all_of([down(robot, 0.1), plane(robot, 0.4, 0.02)]), turned):
        result = rrt_connect.solve(start, goals, checker, rrt_connect.Settings(time_limit_s=3600.0), constraints=rule)
        assert result.solved, result.message
        limits = result.path, robot.velocity, robot.acceleration
        stops = time_parameterize(*limits, checker=checker)
        rounded = time_parameterize(*limits, deviation=0.1, checker=KeepingChecker(checker, rule))
        assert rounded.duration < 0.97 * stops.duration
        q = rounded.at(np.linspace(0, rounded.duration, 1500))[0]
        T = poses_by_pinocchio(rig, q)
        if rule is turned:
            assert (vector_error(T, np.diag([1.0, -1.0, -1.0])) <= [0.2, 0.2, 1.5]).all()
        else:
            assert np.abs(T[:, 2, 3] - 0.4).max() <= 0.02 and np.arccos(-T[:, 2, 2]).max() <= 0.1
        assert rig.coal_scene([POST]).first_collision(rounded.positions) is None


def test_ends_that_do_not_keep_it_are_refused_in_words(at_a_post):
    rig, checker, start, goals = at_a_post
    low = hand_down(checker, 0.45, -0.3, 0.3)
    rule = plane(rig.model, 0.4, 0.02)
    refused = rrt_connect.solve(low[0], goals, checker, constraints=rule)
    assert refused.status is Status.INVALID_START and "'panda_hand_tcp' is 0.08 m outside" in refused.message
    refused = rrt_connect.solve(start, low, checker, constraints=rule)
    assert refused.status is Status.INVALID_GOAL and "goal 0 does not keep the constraints" in refused.message
    both = np.concatenate([low, goals])
    result = rrt_connect.solve(start, both, checker, rrt_connect.Settings(time_limit_s=3600.0), constraints=rule)
    assert result.solved and result.goal_index >= len(low)


def test_bad_arguments_are_named(at_a_post):
    rig, checker, start, goals = at_a_post
    robot, I = rig.model, np.eye(3)  # noqa: E741
    for error, what, make in (
        (SettingsError, "tolerances", lambda: Orientation(robot, TCP, I, (0.1, 0.1, 0.0))),
        (SettingsError, "tolerances", lambda: Orientation(robot, TCP, I, (4.0, 4.0, 4.0))),
        (SettingsError, "angles", lambda: Orientation(robot, TCP, I, (0.1, 0.1, 0.1), "quaternion")),
        (SettingsError, "R is", lambda: Orientation(robot, TCP, 2 * I, (0.1, 0.1, 0.1))),
        (RobotDescriptionError, "nose", lambda: Orientation(robot, "nose", I, (0.1, 0.1, 0.1))),
        (SettingsError, "lower", lambda: Position(robot, TCP, (0, 0, 0), (0, 0, 0), (1, 1, 0))),
        (SettingsError, "bound nothing", lambda: Position(robot, TCP, (0, 0, 0), (-np.inf,) * 3, (np.inf,) * 3)),
        (SettingsError, "radius", lambda: Volume.sphere(0.0)),
        (SettingsError, "vertices", lambda: Volume.hull(np.zeros((4, 3)))),
        (SettingsError, "volumes", lambda: Within(robot, TCP, (0, 0, 0), [])),
        (SettingsError, "tolerance", lambda: Tilt(robot, TCP, (0, 0, 1), (0, 0, 1), 3.2)),
        (RobotDescriptionError, "elbow", lambda: JointRange(robot, {"elbow": (0.0, 1.0)})),
        (SettingsError, "ranges", lambda: JointRange(robot, {robot.joint_names[0]: (1.0, 0.0)})),
        (SettingsError, "constraints", lambda: all_of([])),
        (ConfigurationError, "q_from", lambda: plane(robot, 0.4, 0.1).kept(np.zeros((1, 3)), np.zeros((1, 7)))),
    ):
        with pytest.raises(error, match=what):
            make()
    other = rig_of("ur5").model
    with pytest.raises(SettingsError, match="another robot"):
        rrt_connect.solve(start, goals, checker, constraints=down_of(other))
    with pytest.raises(SettingsError, match="constraints"):
        rrt_connect.solve(start, goals, checker, constraints="upright")


def down_of(robot):
    return Tilt(robot, robot.tip_link, (0, 0, 1), (0, 0, 1), 0.1)
