"""Boxes that hold all that a robot passes over on a path: what another robot keeps clear of.

On a step of a straight segment in joint space each point of the robot leaves the chord between its ends by at most an
eighth of its greatest acceleration, and that is bounded: when the joints turn by W in all and no point moves by more
than S (`collision.reach`), none accelerates by more than 2 W S.
"""

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked, number
from ..errors import ConfigurationError, SettingsError, shown
from ..ranges import GREATEST_LENGTH
from .collision.reach import joint_reach
from .geometry.shapes import BOX_CORNERS, ConvexShape, ShapeKind
from .robot.model import RobotModel

LEAST_SLACK = 1e-6  # metres; a smaller one makes boxes without end
SLACK = 0.01  # metres that a point may leave its chord by in a step


@checked(ConfigurationError, scalars=SettingsError)
def swept_boxes(robot: RobotModel, path: ArrayLike, slack: float = SLACK) -> tuple[np.ndarray, np.ndarray]:
    """(sizes (N, 3) metres, poses (N, 4, 4) in the root frame) of boxes that hold the robot's shapes all along a path.

    path: (K, dof) waypoints joined by straight lines in joint space, or (dof,) one configuration, rad or m
    slack: metres, most that a point may leave its chord by in a step; smaller ones make more boxes
    Raises ConfigurationError for a path of another shape, SettingsError for a slack out of its range.
    """
    slack = number("slack", slack, LEAST_SLACK, GREATEST_LENGTH, " m")
    path = robot.as_configurations(path)
    if not np.isfinite(path).all():
        raise ConfigurationError(f"path is {shown(path)}; allowed: finite numbers")
    samples, bounds = [path[:1]], []
    for a, b in zip(path, path[1:], strict=False):
        bound = _bend(robot, b - a)
        steps = max(1, int(np.ceil(np.sqrt(bound / slack))))
        samples.append(np.linspace(a, b, steps + 1)[1:])
        bounds += [bound / steps**2] * steps
    frames = robot.frame_poses(np.concatenate(samples))
    sizes, poses = [], []
    for shape, frame in zip(robot.shapes, robot.shape_frame, strict=True):
        still = frame < 0 or not bounds
        at = (frames[:1] if still else frames)[:, frame] @ shape.pose if frame >= 0 else shape.pose[None]
        low, high = _hold(corners(shape), at)
        grown = 0.0 if still else np.array(bounds)[:, None]
        sizes.append(high - low + 2 * grown)
        poses.append(at[: len(low)].copy())
        poses[-1][:, :3, 3] += (at[: len(low), :3, :3] @ ((low + high) / 2)[..., None])[..., 0]
    return np.concatenate(sizes), np.concatenate(poses)


@checked()
def corners(shape: ConvexShape) -> np.ndarray:
    """(V, 3) points, in the shape's own frame, whose hull holds the shape, metres"""
    if shape.kind == ShapeKind.POLYTOPE:
        return shape.vertices
    return shape.half_extents * BOX_CORNERS


def _hold(points, poses):
    """low, high (M, 3): ends of boxes in each pose's axes that hold points (V, 3) there and at the next pose."""
    low, high = points.min(axis=0)[None], points.max(axis=0)[None]
    if len(poses) == 1:
        return low, high
    to_next = np.linalg.inv(poses[:-1]) @ poses[1:]
    then = np.einsum("mij,vj->mvi", to_next[:, :3, :3], points) + to_next[:, None, :3, 3]
    return np.minimum(low, then.min(axis=1)), np.maximum(high, then.max(axis=1))


def _bend(robot, step):
    """Metres that a point may leave its chord by when the joints move by `step` (dof,) on a straight line."""
    turned = np.abs(step[robot.frames["joint"]] * robot.frames["multiplier"])[~robot.frames["prismatic"]].sum()
    return turned * (joint_reach(robot) @ np.abs(step)).max(initial=0.0) / 4
