"""Obstacles as rows hold them: convex shapes in the root frame of the robot, exactly those that were planned among.

They are read from scene files, and from problem sets as JSON.
"""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from ..arm import CollisionWorld, RobotModel
from ..arm.collision.scene_file import SHAPE, add_obstacle, fixed_frames, load_scene, pose_matrix
from ..arm.geometry.shapes import ConvexShape, ShapeKind
from ..errors import ObstacleError, shown
from ..files import file_path, read_json

KIND_NAMES = {
    ShapeKind.BOX: "box",
    ShapeKind.CYLINDER: "cylinder",
    ShapeKind.SPHERE: "sphere",
    ShapeKind.POLYTOPE: "convex",
}
PRIMITIVES = ("box", "cylinder", "sphere")
MOST_BYTES = 256 * 2**20  # of a problem set


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


def read_scenes(file: str | os.PathLike, robot: RobotModel) -> list[tuple[str, tuple[Obstacle, ...]]]:
    """[(name, obstacles)] of a file: the one of a scene file (YAML), or those of all problems of a problem set.

    A problem set is JSON: {"problems": {family: [{"obstacles": [...], ...}, ...]}}; its obstacles are boxes, cylinders
    and spheres with the keys of a scene file, in the robot's root frame. Names may repeat.
    Raises ObstacleError that names the file and the obstacle.
    """
    path = file_path(file, "a scene file", ObstacleError)
    if path.suffix.lower() != ".json":
        return [(str(path), obstacles_of(load_scene(path, fixed_frames(robot))))]
    try:
        document = read_json(path, "problem set", ObstacleError, MOST_BYTES)
        problems = {
            f"{path}:{family}/{i}": it for family, all in document["problems"].items() for i, it in enumerate(all)
        }
        listed = {name: list(problem["obstacles"]) for name, problem in problems.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ObstacleError(
            f"'{path}' is no problem set: {type(error).__name__} {error}; allowed: a JSON mapping `problems` of family "
            "to a list of problems with `obstacles`"
        ) from error
    if not listed:
        raise ObstacleError(f"'{path}' has no problems; allowed: one or more")
    return [(name, _obstacles(name, obstacles)) for name, obstacles in listed.items()]


def _obstacles(name: str, entries: list[Any]) -> tuple[Obstacle, ...]:
    world = CollisionWorld()
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict) or entry.get("type") not in PRIMITIVES:
            raise ObstacleError(f"{name}: obstacle {number} is {shown(entry)}; allowed types: {', '.join(PRIMITIVES)}")
        own = {**entry, "name": f"{entry.get('name', entry['type'])}#{number}"}
        if missing := set(SHAPE[entry["type"]]) - set(entry):
            raise ObstacleError(f"{name}: obstacle {number} has no {', '.join(sorted(missing))}")
        T = pose_matrix(entry.get("position", (0, 0, 0)), entry.get("quat_xyzw", (0, 0, 0, 1)), own["name"])
        add_obstacle(world, own, T, file_path(".", "a folder", ObstacleError))
    return obstacles_of(world)
