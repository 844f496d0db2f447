"""Scenes from files: scene files, and problem sets as JSON, of which the obstacles are taken."""

import json
import os
from typing import Any

from ..arm import RobotModel
from ..arm.collision.scene_file import SHAPE, add_obstacle, fixed_frames, load_scene, pose_matrix
from ..arm.collision.world import CollisionWorld
from ..errors import ObstacleError, shown
from ..files import file_path, read_text_file
from .draw import PRIMITIVES
from .obstacles import Obstacle, obstacles_of

MOST_BYTES = 256 * 2**20
Scene = tuple[str, tuple[Obstacle, ...]]


def read_scenes(file: str | os.PathLike, robot: RobotModel) -> list[Scene]:
    """[(name, obstacles)] of a file: the one of a scene file (YAML), or those of all problems of a problem set.

    A problem set is JSON: {"problems": {family: [{"obstacles": [...], ...}, ...]}}; its obstacles are boxes, cylinders
    and spheres with the keys of a scene file, in the robot's root frame. Names may repeat.
    Raises ObstacleError that names the file and the obstacle.
    """
    path = file_path(file, "a scene file", ObstacleError)
    if path.suffix.lower() != ".json":
        return [(str(path), obstacles_of(load_scene(path, fixed_frames(robot))))]
    try:
        document = json.loads(read_text_file(path, "problem set", ObstacleError, MOST_BYTES))
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
