"""Scene files: the obstacles around a robot, written in YAML.

    frame: panda_link0                       # optional; default: the root link of the robot
    obstacles:
      - {name: table, type: box, size: [1.0, 0.8, 0.05], position: [0.5, 0.0, 0.2], quat_xyzw: [0, 0, 0, 1]}
      - {name: can, type: cylinder, radius: 0.03, height: 0.12, position: [0.5, 0.1, 0.285]}
      - {name: ball, type: sphere, radius: 0.05, position: [0.4, -0.2, 0.275]}
      - {name: wedge, type: convex, vertices: [[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]]}
      - {name: part, type: mesh, file: part.stl, scale: 0.001}      # relative to the scene file

Lengths in metres; `position` and `quat_xyzw` (x, y, z, w) place the obstacle's own frame in `frame` and
default to zero and no rotation. A wrong key, type or value is an ObstacleError that names file and obstacle.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from ...arguments import checked
from ...errors import ObstacleError, shortened, shown
from ...files import file_path, read_yaml
from ..geometry.meshes import load_mesh
from ..geometry.shapes import check_lengths, check_numbers
from ..robot.model import RobotModel
from .world import CollisionWorld

__all__ = ("load_scene",)

MOST_BYTES = 4 * 2**20  # of a scene file: 40,000 boxes
PLACEMENT = {"name", "type", "position", "quat_xyzw"}
SHAPE = {  # what an obstacle has besides, by its type, as CollisionWorld.add_<type> takes it
    "box": ("size",),
    "cylinder": ("radius", "height"),
    "sphere": ("radius",),
    "convex": ("vertices",),
    "mesh": ("file",),
}
OPTIONAL = {"mesh": {"scale"}}


def load_scene(file: str | os.PathLike, frames: dict[str, np.ndarray] | None = None) -> CollisionWorld:
    """Read a scene file into a new CollisionWorld, poses in the root frame of the robot.

    frames: {frame name: (4, 4) T_root_frame} that the scene's `frame` may name (see `fixed_frames`);
        None: the file may not name a frame
    Raises ObstacleError that names the file and the obstacle.
    """
    path = file_path(file, "a scene file", ObstacleError)
    document = read_yaml(path, "scene file", ObstacleError, MOST_BYTES)
    if not isinstance(document, dict) or not isinstance(document.get("obstacles"), (list, type(None))):
        raise ObstacleError(f"scene file '{path}' must be a mapping with a list 'obstacles' and optionally 'frame'")
    unknown = set(document) - {"frame", "obstacles"}
    if unknown:
        raise ObstacleError(f"{path}: unknown key {_listed(unknown)}; known are 'frame', 'obstacles'")
    T_root_scene, frame = np.eye(4), document.get("frame")
    if frame is not None:
        if not frames or not isinstance(frame, str) or frame not in frames:
            raise ObstacleError(
                f"{path}: frame {shown(frame)} is not fixed to the robot's root; allowed: {_listed(frames or ())}"
            )
        T_root_scene = frames[frame]
    world, names = CollisionWorld(), set()
    for index, entry in enumerate(document.get("obstacles") or ()):
        name = _check_entry(path, index, entry)
        if name in names:
            raise ObstacleError(f"{path}: obstacle '{name}' is there twice; names must differ")
        names.add(name)
        try:
            T_scene_obstacle = pose_matrix(entry.get("position", (0, 0, 0)), entry.get("quat_xyzw", (0, 0, 0, 1)), name)
            add_obstacle(world, entry, T_root_scene @ T_scene_obstacle, path.parent)
        except ObstacleError as error:
            raise ObstacleError(f"{path}: {error}") from error
    return world


def add_obstacle(world: CollisionWorld, entry: dict[str, Any], pose: np.ndarray, folder: Path) -> None:
    """Add an entry of `obstacles` that has its type's keys. folder: of its mesh's file"""
    name, kind = entry["name"], entry["type"]
    values = [entry[key] for key in SHAPE[kind]]
    if kind == "mesh":
        scale = check_numbers(name, "scale", entry.get("scale", 1.0))
        if not isinstance(entry["file"], str):
            raise ObstacleError(f"'{name}': file must be the name of a mesh file, got {shown(entry['file'])}")
        if scale.shape or not 0 < scale < np.inf:
            raise ObstacleError(f"'{name}': scale must be a finite number above 0, got {shown(entry['scale'])}")
        values = [load_mesh(name, folder / entry["file"], scale)]
    getattr(world, f"add_{kind}")(name, *values, pose)


@checked(ObstacleError)
def fixed_frames(robot: RobotModel) -> dict[str, np.ndarray]:
    """{link name: (4, 4) T_root_link} of the root link and every link that is fixed to it."""
    poses = robot.link_poses(np.clip(np.zeros(robot.dof), robot.lower, robot.upper))
    fixed = [link for link, frame in zip(robot.link_names, robot.link_frame, strict=True) if frame < 0]
    return {robot.root_link: np.eye(4)} | {link: poses[link][0] for link in fixed}


def pose_matrix(position: ArrayLike, quat_xyzw: ArrayLike, name: str) -> np.ndarray:
    """(4, 4) pose from a position (3,), metres, and a unit quaternion (4,), x, y, z, w; ObstacleError names `name`."""
    position = check_lengths(name, "the position", position)
    quaternion = check_numbers(name, "the quaternion", quat_xyzw)
    if position.shape != (3,):
        raise ObstacleError(f"'{name}': the position must be 3 numbers (metres), got {shown(position.tolist())}")
    if quaternion.shape != (4,) or not abs(np.linalg.norm(quaternion) - 1) <= 1e-2:  # not: also where it is not finite
        raise ObstacleError(
            f"'{name}': the quaternion must be 4 finite numbers x, y, z, w of length 1, "
            f"got {shown(quaternion.tolist())}"
        )
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_quat(quaternion).as_matrix()
    pose[:3, 3] = position
    return pose


def _check_entry(file, index, entry):
    """The name of a well-formed entry."""
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"]:
        raise ObstacleError(f"{file}: obstacle number {index} must be a mapping with a 'name'")
    name, kind = entry["name"], entry.get("type")
    if not isinstance(kind, str) or kind not in SHAPE:
        raise ObstacleError(f"{file}: obstacle '{name}': unknown type {shown(kind)}; known are {_listed(SHAPE)}")
    unknown = set(entry) - PLACEMENT - set(SHAPE[kind]) - OPTIONAL.get(kind, set())
    missing = set(SHAPE[kind]) - set(entry)
    if unknown:
        raise ObstacleError(f"{file}: obstacle '{name}': unknown key {_listed(unknown)} for a {kind}")
    if missing:
        raise ObstacleError(f"{file}: obstacle '{name}': a {kind} needs {_listed(missing)}")
    return name


def _listed(names):
    return shortened(", ".join(f"'{name}'" for name in sorted(map(str, names))) or "none")
