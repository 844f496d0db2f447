"""Kinematics of loaded robots against pinocchio: real robots, random trees, the shared golden poses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_urdf import random_urdf

from benchmarks.problems import data_dir, load_golden, missing_data, robot_files
from gpu_planners.arm.robot.modified_dh import row_transform
from gpu_planners.arm.urdf.loader import load_urdf
from gpu_planners.errors import RobotDescriptionError

needs_data = pytest.mark.skipif(missing_data() is not None, reason=str(missing_data()))
TOLERANCE = 1e-9  # double precision; the collision engine's single precision has its own test


@pytest.mark.parametrize("name", ["panda", "ur5", "ur10", "kinova", "xarm7", "z1", "tiago", "baxter"])
def test_real_robots_agree_with_pinocchio(name, monkeypatch):
    oracle = pytest.importorskip("pinocchio_poses")
    urdf, share = oracle.example_robot(name)
    robot = load_without_shapes(monkeypatch, urdf, package_dirs=[share])
    q = np.random.default_rng(0).uniform(robot.lower, robot.upper, (100, robot.dof))
    assert oracle.largest_pose_error(robot, urdf, q) < TOLERANCE


def test_one_arm_of_baxter_in_reversed_order(monkeypatch):
    """A planning group in an order of the user's, the other joints frozen away from zero."""
    oracle = pytest.importorskip("pinocchio_poses")
    urdf, share = oracle.example_robot("baxter")
    joints = [f"right_{name}" for name in ("w2", "w1", "w0", "e1", "e0", "s1", "s0")]
    fixed = {"left_s1": -0.5, "left_e1": 1.0, "head_pan": 0.3}
    robot = load_without_shapes(monkeypatch, urdf, package_dirs=[share], joints=joints, fixed=fixed)
    assert robot.joint_names == tuple(joints)
    q = np.random.default_rng(0).uniform(robot.lower, robot.upper, (50, robot.dof))
    assert oracle.largest_pose_error(robot, urdf, q, fixed) < TOLERANCE


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), joints=st.integers(1, 12), almost_parallel=st.booleans())
def test_random_trees_agree_with_pinocchio(seed, joints, almost_parallel):
    oracle = pytest.importorskip("pinocchio_poses")
    rng = np.random.default_rng(seed)
    urdf = random_urdf(rng, joints, almost_parallel)
    try:
        robot = load_urdf(urdf)
    except RobotDescriptionError as error:
        assert "no joint to plan" in str(error)
        return
    q = rng.uniform(robot.lower, robot.upper, (5, robot.dof))
    assert oracle.largest_pose_error(robot, urdf, q) < TOLERANCE
    # no row may be ill-conditioned in single precision, however close the axes are to parallel
    assert max(np.abs(robot.frames["a"]).max(), np.abs(robot.frames["d"]).max()) < 2 * joints / 0.02
    check_frames_follow_their_definition(robot, q[0])


def check_frames_follow_their_definition(robot, q):
    poses = robot.frame_poses(q)[0]
    for f, frame in enumerate(robot.frames):
        value = frame["multiplier"] * q[frame["joint"]] + frame["offset"]
        theta, d = frame["theta"] + value * (not frame["prismatic"]), frame["d"] + value * frame["prismatic"]
        parent = poses[frame["parent"]] if frame["parent"] >= 0 else np.eye(4)
        expected = parent @ robot.T_parent_base[f] @ row_transform(frame["a"], frame["alpha"], d, theta)
        assert frame["parent"] < f
        np.testing.assert_allclose(poses[f], expected, atol=1e-9)


@needs_data
def test_golden_poses_and_pairs_of_the_panda():
    golden = load_golden()
    robot = load_urdf(*robot_files("panda"))
    shape_poses = robot.frame_poses(golden["fk_q"])
    names = [shape.name for shape in robot.shapes]
    assert names == golden["fk_geom_names"].tolist()
    assert {frozenset(pair) for pair in golden["self_pairs"].tolist()} == {
        frozenset((names[i], names[j])) for i, j in robot.self_collision_pairs
    }
    np.testing.assert_allclose(robot.standing_limits[0], golden["lower"], atol=1e-6)  # without soft limits
    links = robot.link_poses(golden["fk_q"])
    for g, name in enumerate(names[:-1]):  # the right finger's mesh has an origin of its own, the others none
        np.testing.assert_allclose(links[name[:-2]], golden["fk_geom_pose"][:, g], atol=TOLERANCE)
    # shapes stand where their meshes do: hull vertices lie on the same points in both descriptions
    finger = robot.shapes[-1]
    pose = shape_poses[:, robot.shape_frame[-1]] @ finger.pose
    middle = np.linalg.inv(golden["fk_geom_pose"][:, -1]) @ pose
    assert np.ptp(middle, axis=0).max() < 1e-9


@needs_data
def test_the_panda_has_its_published_dh_table():
    """Franka's documentation, modified DH: a = 0, 0, 0, 0.0825, -0.0825, 0, 0.088; d = 0.333, 0, 0.316, 0, 0.384, 0."""
    robot = load_urdf(*robot_files("panda"))
    np.testing.assert_allclose(robot.dh["a"], [0, 0, 0, 0.0825, -0.0825, 0, 0.088], atol=1e-9)
    np.testing.assert_allclose(robot.dh["d"][:6], [0.333, 0, 0.316, 0, 0.384, 0], atol=1e-9)
    np.testing.assert_allclose(robot.dh["alpha"] * 2 / np.pi, [0, -1, 1, 1, -1, 1, 1], atol=1e-9)
    np.testing.assert_allclose(robot.dh["theta"], 0, atol=1e-9)
    np.testing.assert_array_equal(robot.T_parent_base, np.broadcast_to(np.eye(4), (7, 4, 4)))
    assert robot.tip_link == "panda_link8" and set(robot.named_states) == {"ready", "extended", "transport"}


def test_periodic_joints_give_the_same_poses_after_a_turn(monkeypatch):
    periodic_seen = set()
    for seed in range(40):
        try:
            robot = load_without_shapes(monkeypatch, random_urdf(np.random.default_rng(seed), 6))
        except RobotDescriptionError:
            continue
        q = np.random.default_rng(seed).uniform(robot.lower, robot.upper)
        before = robot.link_poses(q)
        for j in range(robot.dof):
            after = robot.link_poses(q + 2 * np.pi * (np.arange(robot.dof) == j))
            same = all(np.abs(after[link] - before[link]).max() < 1e-9 for link in robot.link_names)
            assert robot.periodic[j] == same
            assert robot.periodic[j] or not robot.continuous[j]
            periodic_seen.add(same)
    assert periodic_seen == {True, False}


@needs_data
def test_data_of_the_ur5():
    robot = load_urdf(*robot_files("ur5"))
    assert robot.root_link == "offset_link" and robot.dof == 6
    base = robot.link_poses(np.zeros(6))["base_link"][0]
    assert base[2, 3] == pytest.approx(0.9144) and data_dir()
    assert len({name for name in robot.link_names}) == len(robot.link_names)


def test_unknown_link_is_named():
    robot = load_urdf(random_urdf(np.random.default_rng(1), 4))
    with pytest.raises(RobotDescriptionError, match="'nowhere'.*link0"):
        robot.link_index("nowhere")
    with pytest.raises(ValueError, match=f"{robot.dof} planning joints"):
        robot.link_poses(np.zeros(robot.dof + 1))


def load_without_shapes(monkeypatch, *args, **kwargs):
    """The loader with its shapes left out: kinematics does not need thousands of mesh vertices."""
    from gpu_planners.arm.urdf import loader as urdf_loader

    monkeypatch.setattr(urdf_loader, "_build_shapes", lambda *_: ((), np.zeros(0, np.int32)))
    return load_urdf(*args, **kwargs)
