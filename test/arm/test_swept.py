"""Boxes that hold a moving robot, against the points of its shapes at many places of the way."""

import numpy as np
import pytest

from gpu_planners.arm import load_urdf
from gpu_planners.arm.geometry.shapes import ShapeKind
from gpu_planners.arm.swept import swept_boxes
from gpu_planners.share import share_folder

URDF = share_folder() / "urdf"
ROBOTS = ("desk_arm", "gantry", "planar_arm")


def surface(shape, rng):
    """Points on a shape, in its own frame."""
    if shape.kind == ShapeKind.POLYTOPE:
        return shape.vertices
    points = rng.standard_normal((64, 3))
    if shape.kind == ShapeKind.SPHERE:
        return points / np.linalg.norm(points, axis=1)[:, None] * shape.half_extents
    if shape.kind == ShapeKind.CYLINDER:
        points[:, :2] /= np.linalg.norm(points[:, :2], axis=1)[:, None]
        return np.column_stack([points[:, :2], np.sign(points[:, 2])]) * shape.half_extents
    return np.sign(points) * shape.half_extents


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("slack", [0.05, 0.002])
def test_every_point_of_the_robot_stays_in_the_boxes(name, slack):
    robot, rng = load_urdf(URDF / f"{name}.urdf"), np.random.default_rng(3)
    low, high = np.maximum(robot.lower, -3), np.minimum(robot.upper, 3)
    path = rng.uniform(low, high, (3, robot.dof))
    sizes, poses = swept_boxes(robot, path, slack)
    to_box = np.linalg.inv(poses)
    ways = np.concatenate([np.linspace(a, b, 150) for a, b in zip(path, path[1:], strict=False)])
    frames = robot.frame_poses(ways)
    for shape, frame in zip(robot.shapes, robot.shape_frame, strict=True):
        T = frames[:, frame] @ shape.pose if frame >= 0 else np.broadcast_to(shape.pose, (len(ways), 4, 4))
        points = surface(shape, rng)
        reach = np.linalg.norm(sizes, axis=1) / 2 + np.linalg.norm(points, axis=1).max()
        for at in T[:: max(1, len(ways) // 40)]:
            world = points @ at[:3, :3].T + at[:3, 3]
            near = np.linalg.norm(poses[:, :3, 3] - at[:3, 3], axis=1) <= reach + 1e-9  # no other holds any of them
            inside = np.abs(np.einsum("bij,vj->bvi", to_box[near, :3, :3], world) + to_box[near, None, :3, 3])
            assert (inside <= sizes[near, None] / 2 + 1e-9).all(axis=2).any(axis=0).all()


def test_a_robot_at_rest_is_held_by_the_boxes_of_its_shapes():
    robot = load_urdf(URDF / "desk_arm.urdf")
    sizes, poses = swept_boxes(robot, np.zeros(6))
    assert len(sizes) == len(poses) == len(robot.shapes)
    boxes = [k for k, shape in enumerate(robot.shapes) if shape.kind == ShapeKind.BOX]
    assert np.allclose(sizes[boxes], [2 * robot.shapes[k].half_extents for k in boxes])


def test_boxes_are_not_much_larger_than_what_moves():
    """One joint turns by a right angle: the boxes fill no more than the ring that holds its sweep, and some more."""
    robot = load_urdf(URDF / "planar_arm.urdf")
    path = np.zeros((2, robot.dof))
    path[1, 0] = np.pi / 2
    sizes, poses = swept_boxes(robot, path, 0.001)
    far = np.linalg.norm(poses[:, :2, 3], axis=1) + np.linalg.norm(sizes[:, :2], axis=1) / 2
    reach = max(
        np.linalg.norm(pose[:2, 3]) + np.linalg.norm(size[:2]) / 2 for size, pose in zip(*swept_boxes(robot, path[0]))
    )
    assert far.max() < 1.05 * reach
