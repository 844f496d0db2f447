"""Checks a planned motion by other means than the planner's: coal for collisions, arithmetic for the rest."""

from typing import Any, NamedTuple

import numpy as np
from trajectory_msgs.msg import JointTrajectory

from ..arm import CollisionWorld, RobotModel
from ..arm.geometry.shapes import ShapeKind
from ..nodes.arm.conversions import seconds

SPACING = 1e-3  # rad (or m) of joint motion between two checked configurations; no point of a Panda moves over 3 mm


def broken_rules(robot: RobotModel, trajectory: JointTrajectory) -> list[str]:
    """What a joint trajectory controller would refuse about a JointTrajectory, as texts; empty when all is well."""
    broken = []
    times = np.array([seconds(point.time_from_start) for point in trajectory.points])
    positions = np.array([point.positions for point in trajectory.points])
    velocities = np.array([point.velocities for point in trajectory.points])
    if (np.diff(times) <= 0).any():
        broken.append("times do not increase")
    if velocities[-1].any():
        broken.append("it does not end at rest")
    if (positions < robot.lower - 1e-6).any() or (positions > robot.upper + 1e-6).any():
        broken.append("a joint limit is exceeded")
    if (np.abs(velocities) > robot.velocity + 1e-6).any():
        broken.append("a velocity limit is exceeded")
    return broken


class Body(NamedTuple):
    """A shape of coal, and what holds it: a sphere about its origin and a box along its axes, metres."""

    geometry: Any
    radius: float
    half_extents: np.ndarray  # (3,)


class CoalCheck:
    """Robot and obstacles as coal's shapes. Raises ImportError when coal is not installed."""

    def __init__(self, robot: RobotModel, world: CollisionWorld) -> None:
        import coal

        self._coal, self._robot = coal, robot
        self._bodies = [self._body(shape) for shape in robot.shapes]
        self._obstacles = [(self._body(shape), shape.pose) for shape in world.shapes]
        self._moving = [i for i, frame in enumerate(robot.shape_frame) if frame >= 0]

    def collisions(self, path: np.ndarray) -> tuple[int, int]:
        """Check the polyline path (K, dof) densely: (number of configurations, number of them that collide)."""
        q = np.concatenate(
            [
                np.linspace(a, b, 1 + int(np.ceil(np.linalg.norm(b - a) / SPACING)))
                for a, b in zip(path, path[1:], strict=False)
            ]
        )
        frames = self._robot.frame_poses(q)
        poses = [
            (frames[:, f] if f >= 0 else np.broadcast_to(np.eye(4), (len(q), 4, 4))) @ shape.pose
            for shape, f in zip(self._robot.shapes, self._robot.shape_frame, strict=True)
        ]
        collides = np.zeros(len(q), dtype=bool)
        for i in self._moving:
            for body, pose in self._obstacles:
                self._mark(collides, self._bodies[i], poses[i], body, np.broadcast_to(pose, poses[i].shape))
        for i, j in self._robot.self_collision_pairs:
            self._mark(collides, self._bodies[i], poses[i], self._bodies[j], poses[j])
        return len(q), int(collides.sum())

    def _mark(self, collides, one, poses_one, other, poses_other):
        """Set collides[n] where two bodies meet at poses (N, 4, 4)."""
        seen = np.einsum("nji,nj->ni", poses_other[:, :3, :3], poses_one[:, :3, 3] - poses_other[:, :3, 3])
        apart = np.linalg.norm(np.maximum(np.abs(seen) - other.half_extents, 0), axis=1)
        for n in np.flatnonzero((apart <= one.radius) & ~collides):
            result = self._coal.CollisionResult()
            self._coal.collide(
                one.geometry,
                self._transform(poses_one[n]),
                other.geometry,
                self._transform(poses_other[n]),
                self._coal.CollisionRequest(),
                result,
            )
            collides[n] = result.isCollision()

    def _transform(self, pose):
        return self._coal.Transform3s(pose[:3, :3].copy(), pose[:3, 3].copy())

    def _body(self, shape):
        coal, half = self._coal, shape.half_extents
        hx, hy, hz = half
        if shape.kind == ShapeKind.BOX:
            return Body(coal.Box(2 * hx, 2 * hy, 2 * hz), np.linalg.norm(half), half)
        if shape.kind == ShapeKind.CYLINDER:
            return Body(coal.Cylinder(hx, 2 * hz), np.hypot(hx, hz), half)
        if shape.kind == ShapeKind.SPHERE:
            return Body(coal.Sphere(hx), hx, half)
        points = coal.StdVec_Vec3s()
        points.extend(list(shape.vertices))
        geometry = coal.Convex.convexHull(points, False, "Qt")
        return Body(geometry, np.linalg.norm(shape.vertices, axis=1).max(), np.abs(shape.vertices).max(axis=0))
