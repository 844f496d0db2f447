"""One obstacle, for the package's world and for coal alike, and random ones."""

from dataclasses import dataclass, replace

import numpy as np
import trimesh

from gpu_planners.verify.shapes import obstacle_shape

from .oracle import Ball


@dataclass(frozen=True, eq=False)
class Obstacle:
    """kind: box, cylinder, sphere, convex or mesh; sizes: arguments of the world's add_KIND; pose: (4, 4);
    geometry: coal's; ball: around it."""

    kind: str
    sizes: dict
    pose: np.ndarray
    geometry: object
    ball: Ball

    @staticmethod
    def of(kind, pose=None, **sizes):
        geometry = obstacle_shape({"type": kind, **sizes})
        return Obstacle(kind, sizes, np.eye(4) if pose is None else pose, geometry, Ball.around(geometry))

    @property
    def placement(self):
        return self.pose[:3, :3], self.pose[:3, 3]

    @property
    def centre(self):
        return self.pose[:3, :3] @ self.ball.centre + self.pose[:3, 3]

    @property
    def radius(self):
        return self.ball.radius

    def at(self, centre):
        return self.moved(centre - self.centre)

    def moved(self, shift):
        pose = self.pose.copy()
        pose[:3, 3] += shift
        return replace(self, pose=pose)

    def add_to(self, world, name):
        getattr(world, f"add_{self.kind}")(name, pose=self.pose, **self.sizes)

    def __str__(self):
        sizes = {
            key: f"{len(value.faces)} triangles"
            if key == "mesh"
            else f"{len(value)} vertices"
            if key == "vertices"
            else np.asarray(value).tolist()
            for key, value in self.sizes.items()
        }
        return f"{self.kind} {sizes} at {self.pose[:3].tolist()}"


def direction(rng, dimensions=3):
    """A unit vector; along an axis one time in four."""
    v = (
        np.eye(dimensions)[rng.integers(dimensions)] * rng.choice([-1, 1])
        if rng.random() < 0.25
        else rng.normal(size=dimensions)
    )
    return v / np.linalg.norm(v)


def rotation(rng):
    """(4, 4); right angles one time in three, so that faces meet faces and edges edges."""
    pose = np.eye(4)
    if rng.random() < 1 / 3:
        pose[:3, :3] = np.eye(3)[rng.permutation(3)] * rng.choice([-1, 1], 3)
    else:
        pose[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    pose[:3, 0] *= np.linalg.det(pose[:3, :3])
    return pose


def random_obstacle(rng, low=0.005, high=0.5, kinds=("box", "cylinder", "sphere", "convex", "mesh")):
    """low, high: metres between which its sizes lie."""
    size = np.exp(rng.uniform(np.log(low), np.log(high), 3))
    kind, pose = rng.choice(kinds), rotation(rng)
    if kind == "box":
        return Obstacle.of("box", pose, size=size)
    if kind == "cylinder":
        return Obstacle.of("cylinder", pose, radius=size[0] / 2, height=size[1])
    if kind == "sphere":
        return Obstacle.of("sphere", pose, radius=size[0] / 2)
    if kind == "convex":
        return Obstacle.of("convex", pose, vertices=rng.normal(size=(rng.integers(4, 40), 3)) * size / 2)
    return Obstacle.of("mesh", pose, mesh=_mesh(rng, size))


def speck(rng, at, radius):
    """A tiny ball or cube that holds `at` (3,) and all within `radius` of it."""
    pose = rotation(rng)
    pose[:3, 3] = at
    return (
        Obstacle.of("sphere", pose, radius=radius)
        if rng.random() < 0.5
        else Obstacle.of("box", pose, size=np.full(3, 2 * radius))
    )


def rod(rng, at, radius):
    """A long thin cylinder whose axis passes through `at` (3,)."""
    length, pose = rng.uniform(0.05, 1.0), rotation(rng)
    pose[:3, 3] = at + pose[:3, 2] * rng.uniform(-0.4, 0.4) * length
    return Obstacle.of("cylinder", pose, radius=radius, height=length)


def blade(rng, at, radius):
    """A thin wide plate whose middle plane holds `at` (3,)."""
    size, pose = np.append(rng.uniform(0.02, 0.5, 2), 2 * radius), rotation(rng)
    pose[:3, 3] = at + pose[:3, :2] @ (rng.uniform(-0.4, 0.4, 2) * size[:2])
    return Obstacle.of("box", pose, size=size)


def _mesh(rng, size):
    """A solid that is not convex: a bent bar of two boxes, or a ring."""
    if rng.random() < 0.5:
        arm = trimesh.creation.box(size)
        return trimesh.util.concatenate(
            [arm, trimesh.creation.box(size[[1, 0, 2]]).apply_translation([size[0] / 2, size[1] / 2, 0])]
        )
    return trimesh.creation.annulus(size.min() / 3, size.max() / 2, size[2], sections=16)
