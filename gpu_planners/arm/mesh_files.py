"""Mesh references of robot descriptions -> files -> triangle meshes."""

import os
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np
import trimesh

from ..errors import RobotDescriptionError


def find_mesh(filename, base_dir, package_dirs, what):
    """Path of a mesh that a URDF names by package://, file:// or a path.

    base_dir: folder of the URDF file, or None when only its text is known; relative paths start there, or in one
        of package_dirs
    package_dirs: folders that hold packages, or packages themselves; ROS's AMENT_PREFIX_PATH and ROS_PACKAGE_PATH
        and the folders above the URDF file are searched after them
    what: the element, for the error text
    """
    package_dirs = [Path(directory).expanduser() for directory in package_dirs]
    if filename.startswith("package://"):
        package, _, rest = filename.removeprefix("package://").partition("/")
        candidates = _package_candidates(package, rest, base_dir, package_dirs)
    elif filename.startswith("file://"):
        candidates = [Path(unquote(urlparse(filename).path))]
    elif "://" in filename:
        raise RobotDescriptionError(f"{what}: mesh '{filename}' has an unknown scheme; "
                                    "known: package://, file://, a path")
    else:
        candidates = [Path(directory) / filename for directory in (*([base_dir] if base_dir else []), *package_dirs)] \
            or [Path(filename)]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    tried = ", ".join(map(str, candidates)) or "nowhere: give package_dirs"
    raise RobotDescriptionError(f"{what}: mesh '{filename}' is missing; looked for {tried}")


def _package_candidates(package, rest, base_dir, package_dirs):
    folders = []
    for directory in package_dirs:
        folders += [directory / package, *([directory] if directory.name == package else [])]
    folders += [Path(prefix, "share", package) for prefix in _search_path("AMENT_PREFIX_PATH")]
    folders += [Path(prefix, package) for prefix in _search_path("ROS_PACKAGE_PATH")]
    if base_dir:
        above = [Path(base_dir).resolve(), *Path(base_dir).resolve().parents]
        folders += [folder for folder in above if folder.name == package or _is_source_of(folder, package)]
        folders += [folder / package for folder in above if (folder / package).is_dir()]
    return [folder / rest for folder in folders]


def _search_path(variable):
    return [entry for entry in os.environ.get(variable, "").split(os.pathsep) if entry]


def _is_source_of(folder, package):
    """A checkout of the package, whatever its folder is called."""
    manifest = folder / "package.xml"
    return manifest.is_file() and f"<name>{package}</name>" in manifest.read_text(encoding="utf-8", errors="replace")


def load_mesh(path, scale, what):
    """trimesh.Trimesh of a file, scaled by scale (3,) (in metres then)."""
    try:
        mesh = trimesh.load(path, force="mesh")
    except Exception as error:  # trimesh's readers raise whatever their format's library raises
        raise RobotDescriptionError(f"{what}: mesh '{path}' cannot be read: {error}") from error
    vertices = np.asarray(mesh.vertices, dtype=np.float64) * scale
    if len(vertices) < 4 or len(mesh.faces) == 0:
        raise RobotDescriptionError(f"{what}: mesh '{path}' has no triangles")
    if not np.isfinite(vertices).all():
        raise RobotDescriptionError(f"{what}: mesh '{path}' has vertices that are not finite")
    return trimesh.Trimesh(vertices, mesh.faces, process=False)
