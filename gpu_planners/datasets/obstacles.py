"""Obstacles as rows hold them: convex shapes in the root frame of the robot, exactly those that were planned among."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from ..arm import CollisionWorld
from ..arm.geometry.shapes import ConvexShape, ShapeKind
from .draw import Draw

KIND_NAMES = {
    ShapeKind.BOX: "box",
    ShapeKind.CYLINDER: "cylinder",
    ShapeKind.SPHERE: "sphere",
    ShapeKind.POLYTOPE: "convex",
}
TRIES = 8  # places for a random obstacle
EQUAL = {"box": [0, 1, 2], "cylinder": [0, 0, 2], "sphere": [0, 0, 0]}  # which of three numbers are its extents


class Obstacle(NamedTuple):
    """One convex obstacle.

    kind: a value of KIND_NAMES
    size: (3,) extents along its own axes, metres: a box's edges, a cylinder's diameter twice and its height, a
        sphere's diameter three times, a hull's bounding box
    position, quat_xyzw: (3,), (4,) of its own frame in the root frame of the robot, metres; the axis of a cylinder is z
    vertices: ((3,), ...) of a hull in its own frame, metres; none of the others
    """

    name: str
    kind: str
    size: tuple[float, ...]
    position: tuple[float, ...]
    quat_xyzw: tuple[float, ...]
    vertices: tuple[tuple[float, ...], ...] = ()


def obstacles_of(world: CollisionWorld) -> tuple[Obstacle, ...]:
    """The obstacles of a world; voxels and the pieces of a mesh are obstacles of their own."""
    return tuple(
        Obstacle(
            shape.name,
            KIND_NAMES[shape.kind],
            tuple((2 * shape.half_extents).tolist()),
            tuple(shape.pose[:3, 3].tolist()),
            tuple(Rotation.from_matrix(shape.pose[:3, :3]).as_quat(canonical=True).tolist()),
            tuple(map(tuple, shape.vertices.tolist())),
        )
        for shape in world.shapes
    )


def world_of(obstacles: Sequence[Obstacle]) -> CollisionWorld:
    """The world of obstacles; their names may repeat. Raises ObstacleError that names a malformed one."""
    world = CollisionWorld()
    if obstacles:
        poses = np.tile(np.eye(4), (len(obstacles), 1, 1))
        poses[:, :3, :3] = Rotation.from_quat([obstacle.quat_xyzw for obstacle in obstacles]).as_matrix()
        poses[:, :3, 3] = [obstacle.position for obstacle in obstacles]
        world.add_shapes("obstacles", [_shape(obstacle, pose) for obstacle, pose in zip(obstacles, poses, strict=True)])
    return world


def _shape(obstacle, pose):
    name, kind, size = obstacle.name, obstacle.kind, obstacle.size
    if kind == "box":
        return ConvexShape.box(name, size, pose)
    if kind == "cylinder":
        return ConvexShape.cylinder(name, size[0] / 2, size[2], pose)
    if kind == "sphere":
        return ConvexShape.sphere(name, size[0] / 2, pose)
    return ConvexShape.convex_hull(name, np.array(obstacle.vertices), pose)


def random_obstacles(
    rng: np.random.Generator, draw: Draw, places: np.ndarray, base: np.ndarray, reach: float
) -> tuple[Obstacle, ...]:
    """Obstacles of a random scene: around places that the tool comes to, with sizes uniform in their logarithm.

    places: (P, 3) of the tool; base: (3,) from which they keep away; reach: metres
    An obstacle that finds no room in a few tries is left out.
    """
    count = int(rng.integers(draw.least, draw.most + 1))
    kinds = [draw.kinds[k] for k in rng.integers(len(draw.kinds), size=count)]
    sizes = np.exp(rng.uniform(np.log(draw.smallest * reach), np.log(draw.largest * reach), (count, 3)))
    sizes = np.array([size[EQUAL[kind]] for size, kind in zip(sizes, kinds)]).reshape(-1, 3).round(4).clip(1e-4)
    if draw.tilted:
        quaternions = rng.normal(size=(count, 4))  # of equal likelihood, once they have length 1
        quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    else:
        turn = rng.uniform(-np.pi / 2, np.pi / 2, count)
        quaternions = np.stack([0 * turn, 0 * turn, np.sin(turn), np.cos(turn)], axis=1)
    centres = places[rng.integers(len(places), size=(count, TRIES))] + rng.uniform(-0.2, 0.2, (count, TRIES, 3)) * reach
    far = np.linalg.norm(centres - base, axis=2) >= draw.away * reach + np.linalg.norm(sizes, axis=1)[:, None] / 2
    centres = centres[np.arange(count), far.argmax(axis=1)].round(4)
    rows = zip(kinds, sizes.tolist(), centres.tolist(), quaternions.round(9).tolist(), far.any(axis=1), strict=True)
    return tuple(
        Obstacle(f"{kind}{i}", kind, tuple(size), tuple(centre), tuple(quaternion))
        for i, (kind, size, centre, quaternion, placed) in enumerate(rows)
        if placed
    )
