"""What checks read: URDF, SRDF and scene files as far as pinocchio does not, coal's shapes and their distances."""

import os
import xml.etree.ElementTree as ET
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

import coal
import numpy as np
import pinocchio as pin
import trimesh
from numpy.typing import ArrayLike
from scipy.spatial import ConvexHull

from ..errors import ObstacleError, RobotDescriptionError, shown
from ..files import file_path, read_text_file, read_yaml

NEEDED = {"box": ("size",), "cylinder": ("radius", "height"), "sphere": ("radius",), "convex": ("vertices",)}
THINNEST = 1e-6  # m, of hulls: coal ends the process where they are much thinner
ABSURD = -1e3  # m: what coal answers where it could not find how deep an overlap is


def _request(tolerance):
    request = coal.DistanceRequest(True, 0.0, 0.0)  # nearest points; no error allowed
    request.enable_signed_distance = True
    request.gjk_tolerance = request.epa_tolerance = tolerance
    request.gjk_max_iterations = request.epa_max_iterations = 1000
    return request


REQUESTS = tuple(_request(tolerance) for tolerance in (1e-9, 1e-6, 1e-4))


def hull(points: ArrayLike) -> Any:
    """The convex hull of points (V, 3)."""
    return hull_of(triangle_soup(points, np.zeros((0, 3))))


def hull_of(mesh: Any) -> Any:
    """The convex hull of a mesh of coal; of a flat one a plate."""
    if mesh.convex is None:  # a mesh keeps its hull
        points = np.asarray(mesh.vertices())
        axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2]
        flat = axes[np.ptp(points @ axes.T, axis=0) < THINNEST] * THINNEST / 2
        if not len(flat):
            try:
                mesh.buildConvexHull(True, "Qt")
            except RuntimeError:  # a vertex of a large plane face has more than 255 neighbours
                return _with_few_neighbours(points)
            return mesh.convex
        for shift in flat:
            points = np.concatenate([points - shift, points + shift])
        return hull(points)
    return mesh.convex


def _with_few_neighbours(points):
    """The convex hull of points (V, 3), whose plane faces are cut into triangles by halves."""
    found = ConvexHull(points)
    faces: dict[tuple, set] = {}
    for corners, plane in zip(found.simplices, found.equations):
        faces.setdefault(tuple(plane.round(9)), set()).update(corners.tolist())
    number, triangles = {corner: k for k, corner in enumerate(found.vertices.tolist())}, coal.StdVec_Triangle()
    for plane, some in faces.items():
        corners, normal = np.array(sorted(some)), np.array(plane[:3])
        across = np.linalg.svd(normal[None])[2][1:]
        if np.linalg.det([*across, normal]) < 0:
            across = across[::-1]
        flat = (points[corners] - points[corners].mean(axis=0)) @ across.T
        around = corners[np.argsort(np.arctan2(flat[:, 1], flat[:, 0]))].tolist()
        parts = [(0, len(around) - 1)]
        while parts:
            a, b = parts.pop()
            if b - a > 1:
                middle = (a + b) // 2
                triangles.append(coal.Triangle(*(number[around[k]] for k in (a, middle, b))))
                parts += [(a, middle), (middle, b)]
    kept = coal.StdVec_Vec3s()
    for corner in found.vertices:
        kept.append(points[corner])
    return coal.Convex(kept, triangles)


def radius_about(shape: Any, T: Any) -> float:
    """How far from the origin a shape's points at T, pinocchio's SE3, lie at most, metres."""
    if is_mesh(shape) or isinstance(shape, coal.Convex):
        points = np.asarray(shape.vertices() if is_mesh(shape) else shape.points())
        return float(np.linalg.norm(points @ T.rotation.T + T.translation, axis=1).max())
    shape.computeLocalAABB()
    return float(np.linalg.norm(T.act(np.array(shape.aabb_center))) + shape.aabb_radius)


def triangle_soup(vertices: ArrayLike, faces: ArrayLike) -> Any:
    """Triangles (T, 3) of vertices (V, 3) as they are: what is wholly inside does not meet them (see `encloses`)."""
    vertices, faces = np.ascontiguousarray(vertices, dtype=float), np.ascontiguousarray(faces, dtype=np.int64)
    bvh = coal.BVHModelOBBRSS()
    bvh.beginModel(len(faces), len(vertices))
    bvh.addVertices(vertices)
    if len(faces):
        bvh.addTriangles(faces)
    bvh.endModel()
    return bvh


def obstacle_shape(obstacle: Mapping[str, Any], folder: Path = Path()) -> Any:
    """The shape of an obstacle with the keys of a scene file, in its own frame.

    folder: where the path of a mesh begins. A mesh is its triangles; it may also be given as "mesh", with `vertices`
    and `faces`. Raises ValueError, TypeError, KeyError or OSError for what is none.
    """
    kind = obstacle["type"]
    if kind == "mesh":
        mesh, scale = obstacle.get("mesh"), obstacle.get("scale", 1.0)
        if mesh is None:
            file = folder / obstacle["file"]
            mesh, scale = trimesh.load(file, force="mesh", process=False), np.multiply(scale, _unit_of(file) or 1)
        return triangle_soup(np.asarray(mesh.vertices) * scale, mesh.faces)
    if kind not in NEEDED:
        raise ValueError(f"its type is {kind!r}; allowed: {', '.join([*NEEDED, 'mesh'])}")
    sizes = [np.asarray(obstacle[key], dtype=float) for key in NEEDED[kind]]
    if not all(np.isfinite(each).all() for each in sizes) or (kind != "convex" and min(map(np.min, sizes)) <= 0):
        raise ValueError("its sizes must be finite numbers above 0")
    if kind == "convex":
        return hull(sizes[0].reshape(-1, 3))
    numbers = np.concatenate([each.ravel() for each in sizes]).tolist()
    return {"box": coal.Box, "cylinder": coal.Cylinder, "sphere": coal.Sphere}[kind](*numbers)


def signed_distance(a: Any, T_a: Any, b: Any, T_b: Any) -> tuple[float, np.ndarray]:
    """Signed distance of two shapes at coal's Transform3s, and the unit vector (3,) from a to b along which it lies."""
    for request in REQUESTS:
        result = coal.DistanceResult()
        d = coal.distance(a, T_a, b, T_b, request, result)
        if d > ABSURD:
            break
    return d, np.asarray(result.normal).ravel()


def is_mesh(shape: Any) -> bool:
    """Is it triangles, not a solid?"""
    return isinstance(shape, coal.BVHModelBase)


def triangles_of(mesh: Any) -> np.ndarray:
    """(T, 3, 3) corners of a mesh of coal, in its own frame."""
    corners = [[face[0], face[1], face[2]] for face in map(mesh.tri_indices, range(mesh.num_tris))]
    return np.asarray(mesh.vertices())[corners]


def point_in(shape: Any) -> np.ndarray:
    """A point (3,) of a shape, in its own frame."""
    if is_mesh(shape):
        return np.asarray(shape.vertices())[0]
    shape.computeLocalAABB()
    return np.array(shape.aabb_center)


def encloses(mesh: Any, point: np.ndarray) -> bool:
    """Do a mesh's triangles go around a point (3,) of its frame? By the solid angle that they fill, seen from it."""
    a, b, c = (triangles_of(mesh) - point).transpose(1, 0, 2)
    la, lb, lc = (np.linalg.norm(each, axis=1) for each in (a, b, c))
    volume = np.einsum("ij,ij->i", a, np.cross(b, c))
    dots = [np.einsum("ij,ij->i", x, y) for x, y in ((a, b), (b, c), (c, a))]
    angles = 2 * np.arctan2(volume, la * lb * lc + dots[0] * lc + dots[1] * la + dots[2] * lb)
    return abs(angles.sum()) > 2 * np.pi  # half of all around


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
    """Write into the URDF where the files of its collision meshes lie, and what their unit makes of their scale, since
    coal reads Collada files as if all were in metres. Collisions whose Collada file holds nothing leave the URDF."""
    file = Path() if _is_text(urdf) else file_path(urdf, "URDF", RobotDescriptionError).resolve()
    folders = [file_path(each, "a folder of package_dirs", RobotDescriptionError) for each in package_dirs]
    folders += [Path(each) for name in ("AMENT_PREFIX_PATH", "ROS_PACKAGE_PATH") for each in _search_path(name)]
    links = [(link, body) for link in root.iter("link") for body in link.findall("collision")]
    for link, body, mesh in [(*each, mesh) for each in links for mesh in each[1].iter("mesh")]:
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
        unit = _unit_of(found)
        if unit is None:
            link.remove(body)
        elif unit != 1:
            scale = [float(word) * unit for word in mesh.get("scale", "1 1 1").split()]
            mesh.set("scale", " ".join(map(repr, scale)))


def _unit_of(file):
    """Metres in a Collada file's unit, None where it has no vertices; 1 of any other file."""
    if file.suffix.lower() != ".dae":
        return 1.0
    found, units = False, []
    for _, element in ET.iterparse(file):
        tag = element.tag.rpartition("}")[2]
        found = found or (tag == "input" and element.get("semantic") == "POSITION")
        if tag == "unit":
            units.append(float(element.get("meter", 1)))
    return [*units, 1.0][0] if found else None


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
