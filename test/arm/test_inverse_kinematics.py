"""Inverse kinematics: every solution is placed by pinocchio, and judged by coal where a checker chose it."""

import subprocess
import sys
import time
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pinocchio_poses import example_robot, pinocchio_poses
from random_urdf import random_urdf
from scipy.spatial.transform import Rotation

from gpu_planners.arm import CollisionChecker, CollisionWorld, PoseSolutions, load_urdf
from gpu_planners.arm.robot import tip_rounds
from gpu_planners.arm.spaces import interface
from gpu_planners.device import cuda_problem
from gpu_planners.errors import ConfigurationError, DeviceError, GpuPlannersError, RobotDescriptionError, SettingsError

TOLERANCE = 1e-6  # m and rad, the default
ROUNDING = 1e-9  # of two ways to compute a pose
JOINTS = {
    "panda": [f"panda_joint{i}" for i in range(1, 8)],
    "tiago": ["torso_lift_joint", *(f"arm_{i}_joint" for i in range(1, 8))],  # the torso slides
    "kinova": [f"j2s6s200_joint_{i}" for i in range(1, 7)],  # some turn without end
    "baxter": [f"left_{joint}" for joint in ("s0", "s1", "e0", "e1", "w0", "w1", "w2")],
}
TIPS = {"panda": "panda_hand", "ur5": "tool0", "tiago": "arm_7_link", "baxter": "left_wrist"}
ROBOTS = ("panda", "ur5", "kinova", "xarm7", "z1", "tiago", "baxter")
GANTRY = """<robot name="gantry">
<link name="base"/><link name="x"/><link name="y"/><link name="turn"/><link name="claw"/><link name="still"/>
<joint name="jx" type="prismatic"><parent link="base"/><child link="x"/><axis xyz="1 0 0"/>
  <limit lower="-20" upper="20" velocity="1" effort="1"/></joint>
<joint name="jy" type="prismatic"><parent link="x"/><child link="y"/><axis xyz="0 1 0"/>
  <limit lower="0" upper="0.01" velocity="1" effort="1"/></joint>
<joint name="jt" type="continuous"><parent link="y"/><child link="turn"/><axis xyz="0 0 1"/>
  <limit velocity="1" effort="1"/></joint>
<joint name="jc" type="prismatic"><parent link="turn"/><child link="claw"/><axis xyz="0 0 1"/>
  <limit lower="-9" upper="9" velocity="1" effort="1"/><mimic joint="jx" multiplier="0.1" offset="0.5"/></joint>
<joint name="js" type="fixed"><parent link="base"/><child link="still"/></joint></robot>"""


@cache
def described(name):
    """(URDF, RobotModel, tip link) of a robot of example-robot-data."""
    urdf, share = example_robot(name)
    robot = load_urdf(urdf, package_dirs=[share], joints=JOINTS.get(name))
    return urdf, robot, TIPS.get(name, robot.tip_link)


def poses_of(urdf, robot, link, q):
    return pinocchio_poses(urdf, robot.joint_names, np.atleast_2d(q))[link]


def random_poses(urdf, robot, link, count, seed=0):
    """(count, 4, 4) by pinocchio, of random configurations, and these."""
    q = np.random.default_rng(seed).uniform(robot.lower, robot.upper, (count, robot.dof))
    return poses_of(urdf, robot, link, q), q


def misses(urdf, robot, link, q, T):
    """(K,) metres and (K,) rad by which configurations miss a pose, by pinocchio."""
    reached = poses_of(urdf, robot, link, q)
    shift = np.linalg.norm(reached[:, :3, 3] - T[:3, 3], axis=1)
    return shift, Rotation.from_matrix(reached[:, :3, :3] @ T[:3, :3].T).magnitude()


def check_solutions(urdf, robot, link, found, T, distinct=0.05):
    """Each solution reaches the pose as it says, keeps the limits and differs from the others."""
    assert (found.q >= robot.lower).all() and (found.q <= robot.upper).all()
    shift, turn = misses(urdf, robot, link, found.q, T)
    np.testing.assert_allclose(found.position_error, shift, atol=ROUNDING)
    np.testing.assert_allclose(found.orientation_error, turn, atol=1e-7)  # Rotation takes arc cosines of nearly 1
    assert shift.max(initial=0) <= TOLERANCE + ROUNDING and turn.max(initial=0) <= TOLERANCE + 1e-7
    apart = found.q[:, None] - found.q[None]
    apart = np.abs(np.where(robot.continuous, (apart + np.pi) % (2 * np.pi) - np.pi, apart)).max(axis=2)
    assert (apart + 9 * np.eye(len(found))).min(initial=9) > distinct


@pytest.mark.parametrize("name", ROBOTS)
def test_reachable_poses_are_solved(name):
    """99 of 100 at least, and each answer by pinocchio."""
    urdf, robot, tip = described(name)
    T, _ = random_poses(urdf, robot, tip, 300)
    answers = robot.inverse_kinematics(T, link=tip, solutions=2)
    assert sum(len(found) > 0 for found in answers) >= 297
    for found, pose in zip(answers[:60], T):
        check_solutions(urdf, robot, tip, found, pose)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), joints=st.integers(2, 30))
def test_random_robots(seed, joints):
    """Trees of joints of all kinds, with mimic joints: the start that was nearly there is led there."""
    rng = np.random.default_rng(seed)
    urdf = random_urdf(rng, joints)
    if 'type="revolute"' not in urdf and 'type="prismatic"' not in urdf and 'type="continuous"' not in urdf:
        return
    robot = load_urdf(urdf)
    moving = [link for link, frame in zip(robot.link_names, robot.link_frame) if frame >= 0]
    link = moving[rng.integers(len(moving))]
    (T,), q = random_poses(urdf, robot, link, 1, seed)
    near = np.clip(q[0] + rng.normal(size=robot.dof) * 0.05, robot.lower, robot.upper)
    found = robot.inverse_kinematics(T, link=link, seed_q=near, solutions=3)
    assert len(found) >= 1
    check_solutions(urdf, robot, link, found, T)
    far = np.where(robot.continuous, (found.q - near + np.pi) % (2 * np.pi) - np.pi, found.q - near)
    assert (np.diff(np.linalg.norm(far, axis=1)) >= 0).all()


def test_a_ur5_pose_has_its_postures():
    """Eight, of which each turned joint is nearest to seed_q: closed-form solutions of this arm count them so."""
    urdf, robot, _ = described("ur5")
    q = np.array([0.3, -1.2, 1.4, -0.9, 1.1, 0.5])
    (T,) = poses_of(urdf, robot, "tool0", q)
    found = robot.inverse_kinematics(T, link="tool0", seed_q=q, solutions=16)
    assert len(found) == 8
    check_solutions(urdf, robot, "tool0", found, T)
    np.testing.assert_allclose(found.q[0], q, atol=1e-5)
    assert len({tuple(row) for row in np.sign(np.sin(found.q[:, [2, 4]])).tolist()}) == 4
    assert np.abs(found.q - q).max() <= np.pi + 1e-9
    turned = robot.inverse_kinematics(T, link="tool0", seed_q=q - 2 * np.pi * (np.arange(6) == 5), solutions=1)
    np.testing.assert_allclose(turned.q[0], q - 2 * np.pi * (np.arange(6) == 5), atol=1e-5)


def test_continuous_joints_wrap():
    urdf, robot, tip = described("kinova")
    assert robot.continuous.any()
    T, q = random_poses(urdf, robot, tip, 10, seed=4)
    turned = q + 2 * np.pi * robot.continuous * np.array([[3], [-2]] * 5)
    for found, pose, near in zip(robot.inverse_kinematics(T, link=tip, seed_q=turned, solutions=1), T, q):
        check_solutions(urdf, robot, tip, found, pose)
        apart = (found.q[0] - near + np.pi) % (2 * np.pi) - np.pi
        assert np.abs(apart).max() < 1e-3


def test_a_gantry_of_metres_and_millimetres():
    """Joints that slide, a follower that slides, and one that turns without end; every answer is the only one."""
    robot = load_urdf(GANTRY)
    q = np.random.default_rng(0).uniform(robot.lower, robot.upper, (200, 3))
    T = poses_of(GANTRY, robot, "claw", q)
    for found, pose, wanted in zip(robot.inverse_kinematics(T, link="claw", solutions=1), T, q):
        check_solutions(GANTRY, robot, "claw", found, pose)
        np.testing.assert_allclose(found.q[0], wanted, atol=1e-5)


def test_joints_that_do_not_move_the_link_stay():
    urdf, robot, _ = described("tiago")
    link, near = "arm_4_link", np.array([0.1, 0.5, 0.3, -1.0, 1.0, 0.7, 0.2, -0.4])
    (T,) = poses_of(urdf, robot, link, near + [0.05, 0.1, 0.1, 0.1, 0.1, 0, 0, 0])
    found = robot.inverse_kinematics(T, link=link, seed_q=near)
    check_solutions(urdf, robot, link, found, T)
    assert len(found) >= 1 and (found.q[:, 5:] == near[5:]).all()


def test_solutions_are_free_of_collision_by_coal():
    """Among boxes, and against itself: coal finds no contact in a solution, and one in what was refused."""
    pytest.importorskip("coal", reason="coal is the collision oracle")
    from benchmarks.problems import missing_data, robot_files
    from gpu_planners.verify import CoalScene

    if missing_data():
        pytest.skip(missing_data())
    urdf, srdf = robot_files("panda")
    robot = load_urdf(urdf, srdf)
    boxes = [
        {"name": f"box{i}", "type": "box", "position": at, "quat_xyzw": (0, 0, 0, 1), "size": (0.25, 0.25, 0.25)}
        for i, at in enumerate([(0.5, 0.3, 0.3), (0.5, -0.3, 0.5), (-0.4, 0.0, 0.6)])
    ]
    world = CollisionWorld()
    for box in boxes:
        pose = np.eye(4)
        pose[:3, 3] = box["position"]
        world.add_box(box["name"], box["size"], pose)
    checker, scene = CollisionChecker(robot, world, "cpu"), CoalScene(urdf, srdf, boxes, meshes="hulls")
    q = np.random.default_rng(1).uniform(robot.lower, robot.upper, (400, robot.dof))
    T = poses_of(urdf, robot, robot.tip_link, q[checker.configurations_valid(q)][:40])
    answers = robot.inverse_kinematics(T, checker, solutions=8)
    assert sum(len(found) == 8 for found in answers) >= 36
    for found, pose in zip(answers, T):
        check_solutions(urdf, robot, robot.tip_link, found, pose)
        assert all(scene.distance(row) > 0 for row in found.q)
        assert all(scene.distance(row) < 1e-3 for row in found.colliding)
    world.add_sphere("everywhere", 2.0, np.eye(4))
    refused = robot.inverse_kinematics(T[0], checker, solutions=3)
    assert len(refused) == 0 and len(refused.colliding) == 3
    assert misses(urdf, robot, robot.tip_link, refused.colliding, T[0])[0].max() < 2e-6


def test_the_same_seed_gives_the_same_solutions_whatever_the_batch():
    urdf, robot, tip = described("xarm7")
    T, _ = random_poses(urdf, robot, tip, 40)
    together, again, other = (robot.inverse_kinematics(T, link=tip, seed=seed) for seed in (3, 3, 4))
    for a, b in zip(together, again):
        np.testing.assert_array_equal(a.q, b.q)
    for pose, a in zip(T, together):
        np.testing.assert_array_equal(robot.inverse_kinematics(pose, link=tip, seed=3).q, a.q)
    assert any(len(a) != len(b) or (a.q != b.q).any() for a, b in zip(together, other))


def test_poses_out_of_reach_have_no_solutions():
    _, robot, tip = described("panda")
    T = np.tile(np.eye(4), (3, 1, 1))
    T[:, 0, 3] = 3.0, 1.3, 50_000.0
    for found in robot.inverse_kinematics(T, link=tip):
        assert len(found) == 0 and found.q.shape == (0, 7) and found.seeds == 256 and not found.timed_out
        assert found.colliding.shape == (0, 7)


def test_position_only():
    """Orientations that no joint reaches do not matter; and the spread of solutions is wider than with orientation."""
    urdf, robot, tip = described("panda")
    T, _ = random_poses(urdf, robot, tip, 30, seed=2)
    T[:, :3, :3] = Rotation.random(30, rng=np.random.default_rng(0)).as_matrix()
    for found, pose in zip(robot.inverse_kinematics(T, link=tip, position_only=True), T):
        assert len(found) == 8
        shift, turn = misses(urdf, robot, tip, found.q, pose)
        assert shift.max() <= TOLERANCE + ROUNDING and np.ptp(turn) > 0.05
        np.testing.assert_allclose(found.orientation_error, turn, atol=1e-7)


@pytest.mark.parametrize(("metres", "rad"), [(0.02, 1e-6), (1e-6, 0.3), (0.05, 0.5), (1e-6, np.inf), (np.inf, 1e-6)])
def test_tolerances_are_regions(metres, rad):
    """Poses that are missed by less than the tolerance are solved, and every answer is within it."""
    urdf, robot, tip = described("ur5")
    T, _ = random_poses(urdf, robot, tip, 40, seed=3)
    answers = robot.inverse_kinematics(T, link=tip, position_tolerance=metres, orientation_tolerance=rad, solutions=4)
    assert sum(len(found) > 0 for found in answers) >= 39
    for found, pose in zip(answers, T):
        shift, turn = misses(urdf, robot, tip, found.q, pose)
        assert (shift <= metres + ROUNDING).all() and (turn <= rad + 1e-7).all()
        np.testing.assert_allclose(found.position_error, shift, atol=ROUNDING)


def test_a_region_reaches_where_its_centre_does_not():
    """4 cm beyond the end of a slide: within 5 cm there are solutions, with the orientation kept; within 3 cm none."""
    robot = load_urdf(GANTRY)
    (T,) = poses_of(GANTRY, robot, "claw", [20.0, 0.005, 1.0])
    T[0, 3] += 0.04
    found = robot.inverse_kinematics(T, link="claw", position_tolerance=0.05)
    shift, turn = misses(GANTRY, robot, "claw", found.q, T)
    assert len(found) >= 1 and shift.max() <= 0.05 and turn.max() <= 2e-6
    assert len(robot.inverse_kinematics(T, link="claw", position_tolerance=0.03)) == 0


def test_verdicts_are_those_of_checkers():
    assert (tip_rounds.FREE, tip_rounds.NOT_FREE) == (interface.FREE, interface.NOT_FREE)


def test_a_time_limit_holds_for_as_many_poses_as_one_likes():
    """Searches leave time for the answers: those of 400,000 poses take 3 s where each is made by itself."""
    urdf, robot, tip = described("panda")
    T = np.tile(robot.link_poses(np.zeros(robot.dof))[tip], (400_000, 1, 1))
    robot.inverse_kinematics(T[:10], link=tip)
    processor = time.process_time()
    answers = robot.inverse_kinematics(T, link=tip, time_limit_s=0.01)
    assert len(answers) == len(T) and answers[-1].timed_out
    assert time.process_time() - processor < 2.0


def test_a_time_limit_is_kept_and_shared():
    _, robot, tip = described("panda")
    T = np.tile(np.eye(4), (2000, 1, 1))
    T[:, 0, 3] = 3.0  # out of reach, all but the last
    T[-1] = robot.link_poses((robot.lower + robot.upper) / 2)[tip][0]
    robot.inverse_kinematics(T[-1], link=tip)
    began = time.monotonic()
    robot.inverse_kinematics(T[:200], link=tip)
    limit = 2 * (time.monotonic() - began)  # all take five times as long, their first searches a third of it
    answers = robot.inverse_kinematics(T, link=tip, time_limit_s=limit)
    assert len(answers[-1]) >= 1
    assert any(answer.timed_out and answer.seeds < 256 for answer in answers[:-1])
    answer = robot.inverse_kinematics(T[0], link=tip, time_limit_s=0.0)
    assert answer.timed_out and len(answer) == 0


def test_rows_of_seed_q_belong_to_poses():
    urdf, robot, tip = described("xarm7")
    T, q = random_poses(urdf, robot, tip, 20, seed=5)
    for found, near in zip(robot.inverse_kinematics(T, link=tip, seed_q=q, solutions=1), q):
        np.testing.assert_allclose(found.q[0], near, atol=1e-12)
    assert isinstance(robot.inverse_kinematics(T[0], link=tip, seed_q=q[0]), PoseSolutions)


def changed(entry, value):
    T = np.eye(4)
    T[entry] = value
    return T


BAD = {
    "nan": (dict(poses=np.full((4, 4), np.nan)), GpuPlannersError, "'claw'.*not finite"),
    "second pose": (dict(poses=[np.eye(4), changed((0, 3), np.inf)]), GpuPlannersError, "pose 1 .*not finite"),
    "scaled": (dict(poses=2 * np.eye(4)), GpuPlannersError, "last row|orthonormal"),
    "zeros": (dict(poses=changed((slice(3), slice(3)), 0)), GpuPlannersError, "orthonormal"),
    "mirror": (dict(poses=changed((0, 0), -1)), GpuPlannersError, "mirrors"),
    "last row": (dict(poses=changed((3, 0), 1)), GpuPlannersError, "last row"),
    "far": (dict(poses=changed((0, 3), 1e200)), GpuPlannersError, "away"),
    "shape": (dict(poses=np.eye(3)), GpuPlannersError, r"\(4, 4\).*got \(3, 3\)"),
    "no poses": (dict(poses=np.zeros((0, 4, 4))), GpuPlannersError, "at least 1"),
    "text": (dict(poses="up"), GpuPlannersError, "'up'"),
    "ragged": (dict(poses=[[1, 2], [3]]), GpuPlannersError, "numbers"),
    "unknown link": (dict(link="gripper"), RobotDescriptionError, "'gripper'.*claw"),
    "still link": (dict(link="still"), RobotDescriptionError, "no planning joint.*'still'"),
    "root": (dict(link="base"), RobotDescriptionError, "'base'"),
    "seed_q shape": (dict(seed_q=[0.0, 0.0]), ConfigurationError, "3 planning joints"),
    "seed_q rows": (dict(seed_q=np.zeros((2, 3))), ConfigurationError, "2 rows for 1 pose"),
    "seed_q nan": (dict(seed_q=[0, np.nan, 0]), ConfigurationError, "'jy' is nan"),
    "no solutions": (dict(solutions=0), SettingsError, "solutions is 0"),
    "half a solution": (dict(solutions=1.5), SettingsError, "solutions is 1.5"),
    "no seeds": (dict(seeds=0), SettingsError, "seeds is 0"),
    "seed": (dict(seed="one"), SettingsError, "seed is 'one'"),
    "negative tolerance": (dict(position_tolerance=-1e-3), SettingsError, "position_tolerance is -0.001"),
    "tolerance nan": (dict(orientation_tolerance=np.nan), SettingsError, "orientation_tolerance is nan"),
    "distinct": (dict(distinct=-1.0), SettingsError, "distinct is -1"),
    "time": (dict(time_limit_s=-1.0), SettingsError, "time_limit_s is -1"),
    "position_only": (dict(position_only="yes"), SettingsError, "position_only is 'yes'"),
    "checker": (dict(checker=3), SettingsError, "checker is 3"),
    "device": (dict(device="tpu"), DeviceError, "'tpu'"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_named(what):
    arguments, error, text = BAD[what]
    with pytest.raises(error, match=text):
        load_urdf(GANTRY).inverse_kinematics(**(dict(poses=np.eye(4), link="claw") | arguments))


def test_a_checker_of_another_robot_is_refused():
    _, robot, tip = described("z1")
    checker = CollisionChecker(load_urdf(GANTRY), CollisionWorld(), "cpu")
    with pytest.raises(SettingsError, match="jx.*joint1"):
        robot.inverse_kinematics(np.eye(4), checker, link=tip)


def test_after_warm_up_nothing_compiles():
    """In a new process nothing that Python calls is compiled, or loaded, for other types than the warm-up's: one pose
    and many, few starts and many."""
    code = f"""
import sys
import numpy as np
from numba.core.dispatcher import Dispatcher
from gpu_planners.arm import load_urdf
from gpu_planners.arm.robot import inverse_kinematics

def ready():
    modules = [module for name, module in sys.modules.items() if name.startswith("gpu_planners")]
    functions = {{each for module in modules for each in vars(module).values() if isinstance(each, Dispatcher)}}
    return sum(len(function.overloads) for function in functions)

robot = load_urdf({GANTRY!r})
T = robot.link_poses(np.random.default_rng(0).uniform(robot.lower, robot.upper, (50, 3)))["claw"]
before = ready()
inverse_kinematics.warm_up()
warm = ready()
found = robot.inverse_kinematics(T[0], link="claw"), *robot.inverse_kinematics(T, link="claw", seed_q=[1.0, 0, 2])
print(warm > before, ready() - warm, all(map(len, found)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "0", "True"]


@pytest.mark.gpu
@pytest.mark.skipif(bool(cuda_problem()), reason=f"no CUDA device: {cuda_problem()}")
@pytest.mark.parametrize("name", ["panda", "ur5", "kinova", "tiago"])
def test_cuda_finds_what_the_cpu_finds(name):
    """By pinocchio, and nearly always the same: searches on the edge of giving up may differ by rounding."""
    urdf, robot, tip = described(name)
    T, _ = random_poses(urdf, robot, tip, 200)
    on_cpu, on_gpu = (robot.inverse_kinematics(T, link=tip, solutions=2, device=device) for device in ("cpu", "cuda"))
    assert sum(len(found) > 0 for found in on_gpu) >= 198
    for found, pose in zip(on_gpu, T):
        check_solutions(urdf, robot, tip, found, pose)
    same = [len(a) == len(b) and np.abs(a.q - b.q).max(initial=0) < 1e-3 for a, b in zip(on_cpu, on_gpu)]
    assert np.mean(same) > 0.9
    late = robot.inverse_kinematics(T, link=tip, device="cuda", time_limit_s=0.0)
    assert all(found.timed_out and len(found) == 0 for found in late)
    unreachable = np.eye(4)
    unreachable[0, 3] = 9.0
    assert len(robot.inverse_kinematics(unreachable, link=tip, device="cuda")) == 0
