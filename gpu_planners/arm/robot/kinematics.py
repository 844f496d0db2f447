"""Jacobian of a RobotModel, batched, float64, on the host."""

import numpy as np
from numpy.typing import ArrayLike

from .model import RobotModel, attached
from .modified_dh import path_to_root


def jacobian(robot: RobotModel, link: str, q: ArrayLike) -> np.ndarray:
    """(N, 6, dof) geometric Jacobian of a link's origin in the root frame: linear rows (m/s), then angular (rad/s).

    q: (N, dof) or (dof,), rad or m
    """
    index, poses = robot.link_index(link), robot.frame_poses(q)
    last = robot.link_frame[index]
    T_root_link = attached(poses, last, robot.T_frame_link[index])
    columns = np.zeros((len(poses), 6, robot.dof))
    for f in path_to_root(robot.frames, last):
        frame = robot.frames[f]
        axis, column = poses[:, f, :3, 2], columns[:, :, frame["joint"]]  # a view: followers add to their leader
        if frame["prismatic"]:
            column[:, :3] += frame["multiplier"] * axis
        else:
            column[:, :3] += frame["multiplier"] * np.cross(axis, T_root_link[:, :3, 3] - poses[:, f, :3, 3])
            column[:, 3:] += frame["multiplier"] * axis
    return columns
