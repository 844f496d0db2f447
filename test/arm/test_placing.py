"""Poses in compiled code for devices: against NumPy, scipy, and the poses that the host takes."""

import numpy as np
from checkout import ROOT
from robots_at_hand import desk_arm
from scipy.spatial.transform import Rotation

from gpu_planners.arm import load_urdf
from gpu_planners.arm.geometry.poses import POSE
from gpu_planners.arm.geometry.shapes import rigid_poses
from gpu_planners.arm.robot.placing import RIGHT, given_place, given_pose, place_all, pose12, tree_of

EXACT = 1e-12  # of float64


def placed(robot, q):
    """-> (N, F, 4, 4), {link: (N, 4, 4)} as a kernel makes them."""
    tree, n = tree_of(robot), len(q)
    work = np.empty((n, len(robot.frames), POSE))
    frames, links = np.empty((n, len(robot.frames), 4, 4)), np.empty((len(robot.link_names), n, 4, 4))
    for i in range(n):
        place_all.py_func(0, i, q, tree, work, frames, links)
    return frames, dict(zip(robot.link_names, links))


def test_frames_and_links_lie_where_numpy_puts_them():
    gantry = load_urdf(ROOT / "urdf/gantry.urdf")
    for robot in (gantry, desk_arm()):
        q = np.random.default_rng(0).uniform(np.maximum(robot.lower, -3), np.minimum(robot.upper, 3), (3, robot.dof))
        frames, links = placed(robot, q)
        assert np.abs(frames - robot.frame_poses(q)).max() < EXACT
        for name, T in robot.link_poses(q).items():
            assert np.abs(links[name] - T).max() < EXACT


def given(read, poses):
    """-> (N, POSE) and what each pose is."""
    rows = np.zeros((len(poses), POSE))
    return rows, np.array([read(one, row, 1e5) for one, row in zip(poses, rows)])


def test_given_poses_become_the_nearest_rigid_ones():
    turns = Rotation.random(100, random_state=0)
    T = np.tile(np.eye(4), (100, 1, 1))
    T[:, :3, :3], T[:, :3, 3] = turns.as_matrix(), np.random.default_rng(1).normal(size=(100, 3))
    rounded = T.astype(np.float32)
    rows, kinds = given(given_pose, rounded)
    assert (kinds == RIGHT).all()
    nearest = rigid_poses(rounded.astype(np.float64), str, ValueError)
    assert np.abs(rows - pose12(nearest)).max() < 1e-9
    places = np.hstack([T[:, :3, 3], turns.as_quat()[:, [3, 0, 1, 2]]])
    rows, kinds = given(given_place, places)
    assert (kinds == RIGHT).all() and np.abs(rows - pose12(T)).max() < EXACT


def test_poses_that_are_none_are_told():
    bad = np.tile(np.eye(4), (6, 1, 1))
    bad[0, 0, 0], bad[1, 2, 2], bad[2, 0, 3], bad[3, 3, 3], bad[4, 1, 3] = 1.1, -1.0, np.nan, 0.0, 2e5
    bad[5, 0, 1] = np.nan
    assert (given(given_pose, bad)[1] != RIGHT).all()
    places = np.array([[0, 0, 0, 2.0, 0, 0, 0], [np.nan, 0, 0, 1, 0, 0, 0], [0, 0, 0, np.nan, 0, 0, 0]])
    assert (given(given_place, places)[1] != RIGHT).all()
