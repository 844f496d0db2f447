"""Mesh references of robot descriptions -> files -> triangle meshes, checked; the only place that reads mesh files."""

from __future__ import annotations

import functools
import io
import os
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import lazy_loader
import numpy as np
from lxml import etree
from numpy.typing import ArrayLike

from ...errors import ObstacleError, RobotDescriptionError, shortened, shown
from ...files import file_path, read_file
from .shapes import check_lengths

if TYPE_CHECKING:
    import trimesh
else:  # takes a fifth of a second, and only meshes need it
    trimesh = lazy_loader.load("trimesh")

FORMATS = "stl", "obj", "ply", "dae", "off", "glb"  # no archives, and nothing that names further files
UNIT = "metres in a unit"  # key in the metadata of a mesh that was read from a file
MOST_TOLD = 5  # paths of a mesh that is missing
MOST_MESH_BYTES = 64 * 2**20
LEAST_SIZE = 1e-6  # metres: what has no thickness, a plate or a point, is as thick as this
MOST_TRIANGLES = 200_000  # of a mesh: to cut it into pieces takes up to two minutes and 0.8 GB
HEADER_COUNT = {"ply": rb"element\s+face\s+(\d{1,18})", "off": rb"OFF\s+\d+\s+(\d{1,18})"}
TRIANGLE = {"obj": rb"(?m)^[ \t]*f[ \t]", "stl": rb"(?i)\bouter\s+loop\b"}
# faces whose vertices are not all written in one way, such as f 1/1/1 2//1 3: trimesh takes other vertices for them
ONE_WAY = b"|".join(rb"(?:[ \t]+%s)*[ \t\r]*$" % way for way in (rb"\d+", rb"\d+/\d+", rb"\d+//\d+", rb"\d+/\d+/\d+"))
MIXED_FACE = re.compile(rb"(?m)^[ \t]*f(?!" + ONE_WAY + rb")[ \t]")
FACE = re.compile(rb"(?m)^[ \t]*f[ \t].*")
BEYOND_VERTEX = re.compile(rb"/\S*")
# faces that count backwards or from 0: trimesh takes other vertices for them
RELATIVE_FACE = re.compile(rb"(?m)^f[ \t](?:[^\n]*[ \t/])?(?:-|0+[ \t\r\n/]).*")


class EmptyMeshError(ObstacleError):
    """A mesh file holds neither a triangle nor a vertex, such as a Collada scene without geometry."""


def find_mesh(filename: str, base_dir: Path | None, package_dirs: Sequence[str | os.PathLike], what: str) -> Path:
    """Path of a mesh that a URDF names by package://, file:// or a path.

    base_dir: folder of the URDF file, or None when only its text is known; relative paths start there, or in one
        of package_dirs
    package_dirs: folders that hold packages, or packages themselves, installed or as source; ROS's AMENT_PREFIX_PATH
        and ROS_PACKAGE_PATH and the folders above the URDF file are searched, too
    what: the element, for the error text
    """
    package_dirs = [file_path(folder, "a folder of package_dirs", RobotDescriptionError) for folder in package_dirs]
    if filename.startswith("package://"):
        package, _, rest = filename.removeprefix("package://").partition("/")
        candidates = _package_candidates(package, rest, base_dir, package_dirs)
    elif filename.startswith("file://"):
        candidates = [Path(unquote(re.sub("^file://[^/]*", "", filename)))]
    elif "://" in filename:
        raise RobotDescriptionError(
            f"{what}: mesh '{filename}' has an unknown scheme; known: package://, file://, a path"
        )
    else:
        folders = [base_dir, *package_dirs] if base_dir else package_dirs
        candidates = [Path(folder) / filename for folder in folders] or [Path(filename)]
    for candidate in candidates:
        if os.path.isfile(candidate):  # False, too, where the name is too long or the folder must not be looked into
            return candidate
    tried = ", ".join(map(str, candidates[:MOST_TOLD])) or "nothing: give package_dirs"
    more = f" and {len(candidates) - MOST_TOLD} more" if len(candidates) > MOST_TOLD else ""
    raise RobotDescriptionError(f"{what}: mesh '{filename}' is missing; looked for {tried}{more}")


def mesh_beside(filename: str, base_dir: Path | None) -> Path | None:
    """Path of a mesh of a package:// that is not there, in the folder of the URDF's own package: whoever copies a
    package's folder often gives it another name. None where it is not there either."""
    if base_dir is None or not filename.startswith("package://"):
        return None
    inside = filename.removeprefix("package://").partition("/")[2].lstrip("/")
    folder = Path(base_dir).resolve()
    return next((each / inside for each in (folder.parent, folder) if os.path.isfile(each / inside)), None)


def _package_candidates(package, rest, base_dir, package_dirs):
    folders = []
    for directory in package_dirs:
        is_package = directory.name == package or _is_source_of(directory, package)
        folders += [directory / package, *([directory] if is_package else [])]
    folders += [Path(prefix, "share", package) for prefix in _search_path("AMENT_PREFIX_PATH")]
    folders += [Path(prefix, package) for prefix in _search_path("ROS_PACKAGE_PATH")]
    if base_dir:
        above = [Path(base_dir).resolve(), *Path(base_dir).resolve().parents]
        folders += [folder for folder in above if folder.name == package or _is_source_of(folder, package)]
        folders += [folder / package for folder in above if (folder / package).is_dir()]
    for directory in package_dirs:
        sources = [manifest.parent for manifest in sorted(directory.glob("*/package.xml"))]
        folders += [folder for folder in sources if _is_source_of(folder, package)]
    inside = rest.lstrip("/")
    return [folder / inside for folder in filter(os.path.isdir, folders)] or [folder / inside for folder in folders]


def _search_path(variable):
    return [entry for entry in os.environ.get(variable, "").split(os.pathsep) if entry]


def _is_source_of(folder, package):
    """A checkout of the package, whatever its folder is called."""
    manifest = folder / "package.xml"
    return manifest.is_file() and f"<name>{package}</name>" in manifest.read_text(encoding="utf-8", errors="replace")


def load_mesh(name: str, path: str | os.PathLike, scale: ArrayLike = 1.0) -> trimesh.Trimesh:
    """The mesh of a file, checked; scaled by `scale`, one number or (3,), it is in metres.

    The unit of a Collada file counts, as in RViz and Gazebo: its lengths become metres before `scale` does. Its upward
    axis does not, as there: z is what its vertices say.

    name: of the link's shape or the obstacle, for the error text
    Raises ObstacleError for vertices that are not finite, where trimesh's own loading drops them and their triangles;
    EmptyMeshError for a file that holds nothing.
    """
    file = file_path(path, f"'{name}': a mesh that is no trimesh.Trimesh", ObstacleError)
    kind = file.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        known = ", .".join(FORMATS)
        raise ObstacleError(f"'{name}': mesh file {shown(str(file))} has an unknown format; known: .{known}")
    content = read_file(file, f"'{name}': mesh file", ObstacleError, MOST_MESH_BYTES)
    unit = 1.0
    try:
        if kind == "dae":
            content, unit = _collada(content)
        mesh = _read(name, content, kind)
    except EmptyMeshError as error:
        raise EmptyMeshError(f"'{name}': mesh file '{file}' {error}") from error
    except Exception as error:  # trimesh's readers raise whatever their format's library raises
        raise ObstacleError(f"'{name}': mesh file '{file}' cannot be read: {shortened(error)}") from error
    mesh = trimesh.Trimesh(mesh.vertices * unit * scale, mesh.faces, process=False, metadata={UNIT: unit})
    check_mesh(f"{name}': mesh file '{file}", mesh)  # its texts put what they name between quotes
    return mesh


def told_of(mesh: trimesh.Trimesh) -> list[str]:
    """What to tell of a mesh that load_mesh read: kinds of thing that are not as its file has them."""
    told = []
    if (unit := mesh.metadata[UNIT]) != 1:
        told.append(f"Collada files are in a unit of {unit:g} m (<unit>), which counts as in RViz")
    if len(_flat_axes(mesh.vertices)):
        told.append(f"meshes are flat; they are taken as {LEAST_SIZE:g} m thick")
    return told


def thickened(mesh: trimesh.Trimesh) -> trimesh.Trimesh:
    """A mesh that covers this one and has a volume: itself, or both sides of a flat one, LEAST_SIZE apart."""
    vertices, faces = mesh.vertices, mesh.faces
    axes = _flat_axes(vertices)
    for shift in axes * (LEAST_SIZE / 2):
        faces = np.concatenate([faces, faces + len(vertices)])
        vertices = np.concatenate([vertices - shift, vertices + shift])
    return trimesh.Trimesh(vertices, faces, process=False) if len(axes) else mesh


def _flat_axes(vertices):
    """(K, 3) unit vectors along which vertices (V, 3) are less than LEAST_SIZE apart: 1 of a plate, 2 of a line."""
    centred = vertices - vertices.mean(axis=0)
    axes = np.linalg.eigh(centred.T @ centred)[1].T
    return axes[np.ptp(centred @ axes.T, axis=0) < LEAST_SIZE]


def check_mesh(name: str, mesh: trimesh.Trimesh) -> None:
    """ObstacleError unless the mesh has triangles, not too many, whose vertices exist, are finite and not far away."""
    vertices, faces = mesh.vertices, mesh.faces
    if np.ndim(vertices) != 2 or np.ndim(faces) != 2 or vertices.shape[1] != 3 or faces.shape[1] != 3:
        raise ObstacleError(
            f"'{name}': a mesh needs vertices (V, 3) and triangles (F, 3), "
            f"got {np.shape(vertices)} and {np.shape(faces)}"
        )
    if len(faces) == 0:
        raise ObstacleError(f"'{name}': the mesh has no triangles")
    if len(faces) > MOST_TRIANGLES or len(vertices) > 3 * MOST_TRIANGLES:
        raise ObstacleError(
            f"'{name}': the mesh has {len(faces)} triangles and {len(vertices)} vertices; allowed: "
            f"{MOST_TRIANGLES} triangles and three vertices for each; simplify it"
        )
    if (missing := faces[(faces < 0) | (faces >= len(vertices))]).size:
        raise ObstacleError(
            f"'{name}': the mesh has a triangle at vertex {missing[0]}; allowed: 0 to {len(vertices) - 1}"
        )
    check_lengths(name, "the mesh's vertices", vertices)


def _read(name, content, kind):
    """All meshes of a file as one Trimesh with equal vertices merged, every triangle of the file in it."""
    if kind == "obj" and (line := RELATIVE_FACE.search(content)):
        raise ValueError(f"a face counts its vertices backwards or from 0: {line.group().decode(errors='replace')}")
    if kind == "obj" and MIXED_FACE.search(content):  # only the vertices count
        content = FACE.sub(lambda face: BEYOND_VERTEX.sub(b"", face[0]), content)
    with warnings.catch_warnings():
        # numpy's own warning where it stops at a word that is no number
        warnings.filterwarnings("error", message="string or file could not be read")
        # arguments of a Trimesh, or of a Scene with several
        parse = functools.partial(
            trimesh.exchange.load.mesh_loaders[kind], file_type=kind, resolver=None, skip_materials=True
        )
        try:
            parsed = parse(file_obj=io.BytesIO(content), ignore_broken=False)
        except Exception as error:
            if type(error).__name__ != "DaeBrokenRefError":  # a texture that is not there
                raise
            parsed = parse(file_obj=io.BytesIO(content), ignore_broken=True)
    parts = {
        part: {"vertices": fields["vertices"], "faces": fields["faces"], "process": False}
        for part, fields in _parts(parsed).items()
        if fields.get("faces") is not None and len(fields["faces"])
    }
    if sum(len(fields["faces"]) for fields in parts.values()) < (count := _declared_triangles(content, kind)):
        raise ValueError(f"not all of its {count} triangles can be read")
    if not parts:
        points = sum(len(fields.get("vertices", ())) for fields in _parts(parsed).values())
        if points or kind == "dae":
            raise ValueError(f"it has {points or 'some'} vertices, but no triangles{' in its scene' * (not points)}")
        raise EmptyMeshError("holds nothing")
    scene = trimesh.load({"geometry": parts, "graph": parsed.get("graph")}, force="scene")
    instances = [scene.graph[node][1] for node in scene.graph.nodes_geometry]
    if sum(len(scene.geometry[part].faces) for part in instances) > MOST_TRIANGLES:
        raise ValueError(f"it has more than {MOST_TRIANGLES} triangles; simplify it")
    for part in scene.geometry.values():
        check_mesh(name, part)
        part.merge_vertices()
    return scene.to_mesh()


def _parts(parsed):
    """{name: arguments of a Trimesh} of what trimesh's readers make of a file."""
    return parsed["geometry"] if "geometry" in parsed else {"": parsed}


def _collada(content):
    """(a Collada file without its comments, at some of which pycollada stops; metres in its unit).

    Vertices that are NaN are errors: pycollada reads them as 0, which is right for normals and textures only.
    """
    root = etree.fromstring(content, etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True))
    inputs = root.iterfind(".//{*}vertices/{*}input[@semantic='POSITION']")
    positions = {entry.get("source", "")[1:] for entry in inputs}
    if not positions:
        raise EmptyMeshError("holds nothing")
    if root.find("{*}scene/{*}instance_visual_scene") is None:
        raise ValueError("it has geometry, but no scene")
    for source in root.iterfind(".//{*}source"):
        if source.get("id") in positions and "nan" in source.findtext("{*}float_array", "").lower():
            raise ValueError(f"the vertices '{source.get('id')}' must be finite, they hold a NaN")
    unit = root.find("{*}asset/{*}unit")
    text = "1" if unit is None else unit.get("meter", "1")
    try:
        metres = float(text)
    except ValueError:
        metres = np.nan
    if not (np.isfinite(metres) and metres > 0):
        raise ValueError(f"its <unit> has meter={shown(text)}; allowed: a number above 0")
    return etree.tostring(root), metres


def _declared_triangles(content, kind):
    """The least number of triangles that a file claims to have: some of trimesh's readers stop early without a word."""
    if kind in HEADER_COUNT:
        found = re.search(HEADER_COUNT[kind], content)
        return int(found.group(1)) if found else 0
    if kind == "stl" and len(content) >= 84 and not content.lstrip().startswith(b"solid"):
        return int.from_bytes(content[80:84], "little")
    return sum(1 for _ in re.finditer(TRIANGLE[kind], content)) if kind in TRIANGLE else 0
