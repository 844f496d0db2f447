"""Forward kinematics, Jacobian and inverse kinematics of a RobotModel, batched, float64, on the host.

The single-precision kinematics inside collision checks lives with the collision kernels; this one serves
poses for users, goals and tests.
"""

import numpy as np

from .modified_dh import row_transform


def frame_poses(robot, q):
    """(N, F, 4, 4) root_T_frame of configurations q (N, dof) or (dof,), rad or m."""
    q = as_configurations(robot, q)
    frames = robot.frames
    values = q[:, frames["joint"]] * frames["multiplier"] + frames["offset"]
    poses = np.empty((len(q), len(frames), 4, 4))
    for f, frame in enumerate(frames):
        fixed = robot.T_parent_base[f] @ row_transform(frame["a"], frame["alpha"], frame["d"], frame["theta"])
        # turning and sliding along one axis commute, so the value may follow the constant row
        moved = np.broadcast_to(np.eye(4), (len(q), 4, 4)).copy()
        if frame["prismatic"]:
            moved[:, 2, 3] = values[:, f]
        else:
            moved[:, 0, 0] = moved[:, 1, 1] = np.cos(values[:, f])
            moved[:, 1, 0] = np.sin(values[:, f])
            moved[:, 0, 1] = -moved[:, 1, 0]
        T_root_base = fixed if frame["parent"] < 0 else poses[:, frame["parent"]] @ fixed
        poses[:, f] = T_root_base @ moved
    return poses


def link_poses(robot, q):
    """{link: (N, 4, 4)} pose of every link in the root frame."""
    poses = frame_poses(robot, q)
    return {name: _attached(poses, robot.link_frame[i], robot.T_frame_link[i]) for i, name in enumerate(robot.link_names)}


def link_pose(robot, link, q):
    """(N, 4, 4) pose of one link in the root frame."""
    i = robot.link_index(link)
    return _attached(frame_poses(robot, q), robot.link_frame[i], robot.T_frame_link[i])


def _attached(poses, frame, T_frame_link):
    return poses[:, frame] @ T_frame_link if frame >= 0 else np.broadcast_to(T_frame_link, (len(poses), 4, 4)).copy()


def as_configurations(robot, q):
    """q as (N, dof) float64, or ValueError that says what came."""
    q = np.atleast_2d(np.asarray(q, dtype=np.float64))
    if q.ndim != 2 or q.shape[1] != robot.dof:
        raise ValueError(f"robot '{robot.name}' has {robot.dof} planning joints, got configurations of shape {q.shape}")
    return q
