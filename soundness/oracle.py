"""Signed distances between a robot and obstacles: pinocchio places the bodies, coal measures, both in float64.

A body is a hull (a primitive, a mesh's hull or, where the package cuts a mesh, one of its pieces) or, as `raw`, the
mesh's triangles as they are. That the pieces cover the mesh is what the comparison with the triangles shows.
"""

from dataclasses import dataclass

import coal
import numpy as np
import pinocchio as pin
from scipy.optimize import minimize_scalar

from benchmarks.robots import pieces_of
from gpu_planners.verify import CoalScene
from gpu_planners.verify.shapes import signed_distance, triangle_soup, triangles_of


@dataclass(frozen=True)
class Ball:
    """A sphere around a geometry: centre (3,) in its own frame, radius, metres."""

    centre: np.ndarray
    radius: float

    @staticmethod
    def around(geometry):
        geometry.computeLocalAABB()
        return Ball(np.array(geometry.aabb_center), float(geometry.aabb_radius))


def distance(a, T_a, b, T_b):
    """Signed distance of two coal geometries at poses (R, t), and from a to b the unit vector it is measured along."""
    return signed_distance(a, coal.Transform3s(*T_a), b, coal.Transform3s(*T_b))


class Oracle:
    """One robot. hulls, raw: CoalScene of its hulls (with the pairs of links that are checked), and of its
    triangles."""

    def __init__(self, urdf, folder, robot, fixed):
        """urdf: file; folder: where package:// begins; robot: RobotModel, for its joints, pieces and pairs of links;
        fixed: {joint: value} of the joints that are not planned."""
        common = {"package_dirs": [folder], "joints": robot.joint_names, "fixed": fixed}
        links = [robot.link_names[i] for i in robot.shape_link]
        pairs = {(links[i], links[j]) for i, j in np.asarray(robot.self_collision_pairs).reshape(-1, 2)}
        self.hulls = CoalScene(urdf, meshes=pieces_of(robot), self_pairs=list(pairs), **common)
        self.raw = CoalScene(urdf, self_pairs=[], **common)
        self._triangles = {}
        self._bodies = {
            scene: [
                (i, geometry, Ball.around(geometry))
                for i in scene.moving
                for geometry in [scene.geometry.geometryObjects[i].geometry]
            ]
            for scene in (self.hulls, self.raw)
        }

    @property
    def bodies(self):
        """How many hulls move."""
        return len(self._bodies[self.hulls])

    def placed(self, q, raw=False):
        """q: (dof,) -> [(coal geometry, (R, t), Ball)] of the bodies that move, in the root frame."""
        scene = self.raw if raw else self.hulls
        poses = scene.placed(q)
        return [
            (geometry, (poses[i].rotation.copy(), poses[i].translation.copy()), ball)
            for i, geometry, ball in self._bodies[scene]
        ]

    def link_poses(self, q, link):
        """q: (N, dof) -> (N, 4, 4) poses of a link in the root frame."""
        scene, found = self.hulls, []
        frame = scene.model.getFrameId(link, pin.FrameType.BODY)
        for row in q:
            scene.placed(row)
            found.append(pin.updateFramePlacement(scene.model, scene.data, frame).homogeneous.copy())
        return np.reshape(found, (-1, 4, 4))

    def gaps(self, q, obstacles, enough=np.inf, raw=False):
        """q: (N, dof), obstacles: [Obstacle] -> (N,) least signed distance, metres; only a lower bound above
        `enough`."""
        gaps = np.full(len(q), np.inf)
        for n, row in enumerate(q):
            placed = self.placed(row, raw)
            centres = np.array([R @ ball.centre + t for _, (R, t), ball in placed])
            radii = np.array([ball.radius for *_, ball in placed])
            for obstacle in obstacles:
                bounds = np.linalg.norm(centres - obstacle.centre, axis=1) - radii - obstacle.radius
                for body in np.argsort(bounds):
                    if bounds[body] >= gaps[n]:
                        break
                    if bounds[body] > enough:
                        gaps[n] = bounds[body]
                        break
                    geometry, pose, _ = placed[body]
                    gaps[n] = min(gaps[n], distance(geometry, pose, obstacle.geometry, obstacle.placement)[0])
        return gaps

    def self_gaps(self, q):
        """q: (N, dof) -> (N,) least signed distance over the pairs of bodies that are checked, metres."""
        return np.array([self.hulls.distance(row) for row in q])

    def touching(self, q, body, obstacle, direction, gap):
        """The obstacle, moved from outside along `direction` (3,) until its signed distance to one body is `gap`."""
        geometry, (R, t), ball = self.placed(q)[body]
        outside = obstacle.at(R @ ball.centre + t + direction * (ball.radius + obstacle.radius + 0.01))
        d, normal = distance(geometry, (R, t), outside.geometry, outside.placement)
        return outside.moved(normal * (gap - d))

    def point_on(self, q, body, direction):
        """The point (3,) of one body that lies farthest along `direction`, at q, and the unit normal there."""
        geometry, (R, t), ball = self.placed(q)[body]
        far = R @ ball.centre + t + direction * (2 * ball.radius + 0.1)
        d, normal = distance(geometry, (R, t), coal.Sphere(1e-3), (np.eye(3), far))
        return far - normal * (d + 1e-3), normal

    def triangles(self, body):
        """(T, 3, 3) triangles of a raw body in its own frame; None where it is a primitive."""
        if body not in self._triangles:
            geometry = self._bodies[self.raw][body][1]
            self._triangles[body] = triangles_of(geometry) if isinstance(geometry, coal.BVHModelBase) else None
        return self._triangles[body]

    def triangle_gap(self, q, obstacle):
        """Least signed distance of the raw bodies' triangles, one by one: a second opinion where coal's tree of them
        sees an overlap.

        Not for obstacles that are meshes: -inf.
        """
        if obstacle.kind == "mesh":
            return -np.inf
        least, own = np.inf, (np.eye(3), np.zeros(3))
        for body, (geometry, (R, t), _) in enumerate(self.placed(q, raw=True)):
            triangles = self.triangles(body)
            if triangles is None:
                least = min(least, distance(geometry, (R, t), obstacle.geometry, obstacle.placement)[0])
                continue
            corners = triangles @ R.T + t
            centres = corners.mean(axis=1)
            radii = np.linalg.norm(corners - centres[:, None], axis=2).max(axis=1)
            for near in corners[np.linalg.norm(centres - obstacle.centre, axis=1) < radii + obstacle.radius]:
                least = min(
                    least, distance(triangle_soup(near, [[0, 1, 2]]), own, obstacle.geometry, obstacle.placement)[0]
                )
        return least

    def least_gap(self, q_from, q_to, gaps, known=(), samples=33):
        """(least gap, where) along a straight motion, sought densely where it is small.

        gaps: function (N, dof) -> (N,); known: places (0..1) to look at, and around, as well
        """
        at = np.unique(np.concatenate([np.linspace(0, 1, samples), *(_around(t) for t in known)]))
        found = gaps(q_from + at[:, None] * (q_to - q_from))
        inner = np.flatnonzero((found <= np.roll(found, 1)) & (found <= np.roll(found, -1)))
        best = [(found[i], at[i]) for i in inner]
        for i in inner[np.argsort(found[inner])[:3]]:
            low, high = at[max(i - 1, 0)], at[min(i + 1, len(at) - 1)]
            sought = minimize_scalar(
                lambda t: gaps((q_from + t * (q_to - q_from))[None])[0],
                bounds=(low, high),
                method="bounded",
                options={"xatol": 1e-7 * max(high - low, 1e-9), "maxiter": 25},
            )
            best.append((float(sought.fun), float(sought.x)))
        return min(best)


def _around(t):
    offsets = np.geomspace(1e-6, 1e-2, 9)
    return np.clip(np.concatenate([t - offsets, [t], t + offsets]), 0, 1)
