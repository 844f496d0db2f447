"""URDF, SRDF and scene files as far as the checks need them beside pinocchio."""

import os
import xml.etree.ElementTree as ET
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from ..errors import ObstacleError, RobotDescriptionError, shown
from ..files import file_path, read_text_file, read_yaml


def read_scene(file: str | os.PathLike, frames: Container[str]) -> tuple[str | None, list]:
    """(frame, obstacles) of a scene file. frames: that are fixed to the robot's root"""
    document = read_yaml(file, "scene file", ObstacleError)
    if not isinstance(document, dict) or not isinstance(document.get("obstacles") or [], list):
        raise ObstacleError(f"scene file '{file}' must be a mapping with a list 'obstacles' and optionally 'frame'")
    if unknown := set(document) - {"frame", "obstacles"}:
        raise ObstacleError(f"{file}: unknown keys {shown(sorted(map(str, unknown)))}; known are 'frame', 'obstacles'")
    frame = document.get("frame")
    if frame is not None and not (isinstance(frame, str) and frame in frames):
        raise ObstacleError(f"{file}: frame {shown(frame)} is not fixed to the robot's root")
    return frame, document.get("obstacles") or []


def read_xml(urdf: str | os.PathLike, what: str) -> ET.Element:
    """The root element of a file, or of its text."""
    text = str(urdf) if _is_text(urdf) else read_text_file(urdf, what, RobotDescriptionError)
    try:
        return ET.fromstring(text.lstrip())
    except (ET.ParseError, ValueError) as error:
        raise RobotDescriptionError(f"{what} {shown(str(urdf))} is no XML: {error}") from error


def _is_text(urdf):
    return isinstance(urdf, str) and urdf.lstrip().startswith("<")


def find_meshes(root: ET.Element, urdf: str | os.PathLike, package_dirs: Sequence[str | os.PathLike]) -> None:
    """Write into the URDF where the files of its collision meshes lie."""
    file = Path() if _is_text(urdf) else file_path(urdf, "URDF", RobotDescriptionError).resolve()
    folders = [file_path(each, "a folder of package_dirs", RobotDescriptionError) for each in package_dirs]
    folders += [Path(each) for name in ("AMENT_PREFIX_PATH", "ROS_PACKAGE_PATH") for each in _search_path(name)]
    for mesh in (mesh for collision in root.iter("collision") for mesh in collision.iter("mesh")):
        name = mesh.get("filename", "")
        ends: tuple[str, ...] = (name.removeprefix("file://"),)
        if name.startswith("package://"):
            package, _, rest = name.removeprefix("package://").partition("/")
            ends = f"{package}/{rest}", f"share/{package}/{rest}", rest
        places = [folder / end for folder in (*folders, *file.parents) for end in ends]
        found = next((each for each in places if each.is_file()), None)
        if found is None:
            told = ", ".join(map(str, folders)) or "none"
            raise RobotDescriptionError(f"URDF: there is no mesh {shown(name)}; folders of packages: {told}")
        mesh.set("filename", str(found.resolve()))


def _search_path(variable):
    return filter(None, os.environ.get(variable, "").split(os.pathsep))


def pose_of(obstacle: Mapping[str, Any]) -> pin.SE3:
    """T of an obstacle in its scene's frame."""
    if "pose" in obstacle:
        return pin.SE3(np.array(obstacle["pose"], dtype=float))
    position, quaternion = obstacle.get("position", (0, 0, 0)), obstacle.get("quat_xyzw", (0, 0, 0, 1))
    numbers = np.array([*position, *quaternion], dtype=float)
    length = np.linalg.norm(numbers[3:])
    if numbers.shape != (7,) or not np.isfinite(numbers).all() or abs(length - 1) > 0.01:
        raise ValueError("position must be 3 finite numbers, quat_xyzw 4 of length 1")
    return pin.XYZQUATToSE3(np.concatenate([numbers[:3], numbers[3:] / length]))
