"""Obstacles as rows hold them: convex shapes in the root frame of the robot, exactly those that were planned among."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from ..arm import CollisionWorld
from ..arm.collision.scene_file import pose_matrix
from ..arm.geometry.shapes import ConvexShape, ShapeKind

KIND_NAMES = {
    ShapeKind.BOX: "box",
    ShapeKind.CYLINDER: "cylinder",
    ShapeKind.SPHERE: "sphere",
    ShapeKind.POLYTOPE: "convex",
}


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


def world_of(obstacles: Iterable[Obstacle]) -> CollisionWorld:
    """The world of obstacles; their names may repeat. Raises ObstacleError that names a malformed one."""
    world = CollisionWorld()
    world.add_shapes("obstacles", [_shape(obstacle) for obstacle in obstacles])
    return world


def _shape(obstacle):
    name, kind, size, position, quaternion, vertices = obstacle
    pose = pose_matrix(position, quaternion, name)
    if kind == "box":
        return ConvexShape.box(name, size, pose)
    if kind == "cylinder":
        return ConvexShape.cylinder(name, size[0] / 2, size[2], pose)
    if kind == "sphere":
        return ConvexShape.sphere(name, size[0] / 2, pose)
    return ConvexShape.convex_hull(name, np.array(vertices), pose)


def random_obstacles(rng: np.random.Generator, draw, places: np.ndarray, base: np.ndarray, reach: float) -> Sequence:
    """Obstacles of a random scene: around places that the tool comes to, with sizes uniform in their logarithm.

    draw: Draw; places: (P, 3) of the tool; base: (3,) from which they keep away; reach: metres
    One that finds no place in a few tries is left out, as where the robot reaches no farther than it keeps them away.
    """
    count, found = int(rng.integers(draw.least, draw.most + 1)), []
    for number in range(count):
        kind = draw.kinds[int(rng.integers(len(draw.kinds)))]
        low, high = np.log((draw.smallest * reach, draw.largest * reach))
        size = np.round(np.exp(rng.uniform(low, high, 3)), 4).clip(1e-4)
        size = {"cylinder": size[[0, 0, 2]], "sphere": size[[0, 0, 0]]}.get(kind, size)
        turn = (
            Rotation.random(random_state=rng) if draw.tilted else Rotation.from_euler("z", rng.uniform(-np.pi, np.pi))
        )
        candidates = places[rng.integers(len(places), size=8)] + rng.uniform(-0.2, 0.2, (8, 3)) * reach
        far = np.linalg.norm(candidates - base, axis=1) >= draw.away * reach + np.linalg.norm(size) / 2
        if far.any():
            position = np.round(candidates[np.argmax(far)], 4)
            quaternion = np.round(turn.as_quat(canonical=True), 9)
            lists = (tuple(values.tolist()) for values in (size, position, quaternion))
            found.append(Obstacle(f"{kind}{number}", kind, *lists))
    return tuple(found)
