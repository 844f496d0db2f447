"""A picture of a scene and a path: the collision hulls that the planner checks, as it sees them.

The arm is drawn at the start, at the goal and fading in between; the end effector's path is a tube. The camera stands
where the obstacles hide least of the arm. Needs matplotlib (extra `view`) for text and file formats.
"""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import numbers
from ...errors import SettingsError
from ..collision.world import CollisionWorld
from ..geometry.kinds import KINDS
from ..geometry.polytope import outward_triangles
from ..geometry.shapes import ConvexShape
from ..geometry.sphere import unit_vectors
from ..robot.model import RobotModel
from .rasterizer import Camera, Layer, render, visible_share

START, HALFWAY, GOAL = np.array([0.10, 0.46, 0.66]), np.array([0.56, 0.33, 0.62]), np.array([0.91, 0.42, 0.17])
OBSTACLE, BASE = np.array([0.62, 0.66, 0.71]), np.array([0.35, 0.38, 0.43])
OBSTACLE_OPACITY = 0.5
POSES = 6  # of the arm along the path
ELEVATION = 0.45  # of the camera, rad
TUBE = 0.0028  # radius of the drawn path, by the distance of the camera
BALL = outward_triangles(unit_vectors(200))  # of radius 1


def draw_path(
    robot: RobotModel,
    world: CollisionWorld,
    path: ArrayLike,
    file: str | os.PathLike,
    size: tuple[int, int] = (1500, 1000),
) -> Path:
    """Write a picture of a path among obstacles, in the format of the file's name (png, jpg, pdf).

    path: (K, dof) rad or m; one row draws the robot alone
    size: width and height, pixels

    Returns the path of the file. Raises SettingsError for a malformed path, and where matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SettingsError("pictures need matplotlib: pip install 'gpu_planners[view]'") from error
    path = numbers("path", np.atleast_2d(numbers("path", path)), (None, robot.dof)).astype(np.float64)
    if not len(path):
        raise SettingsError("path is empty; allowed: one configuration at least")
    file = Path(file)

    poses = along_path(path, POSES)
    arms = [
        _layer(_robot_triangles(robot, q, moving=True), colour, 1.0 if k in (0, len(poses) - 1) else 0.32)
        for k, (q, colour) in enumerate(zip(poses, _gradient(np.linspace(0, 1, len(poses)))))
    ]
    fixed = _robot_triangles(robot, path[0], moving=False)
    obstacles = [_layer(shape_triangles(shape), _tint(i), OBSTACLE_OPACITY) for i, shape in enumerate(world.shapes)]
    solid = _joined([arms[0], arms[-1], _layer(fixed, BASE)])
    groups = [_joined(obstacles[k::3]) for k in range(min(3, len(obstacles)))]  # one seen through another still shows
    camera = _camera(arms, obstacles, size)
    ground = min(layer.triangles[..., 2].min() for layer in [solid, *arms, *obstacles]) - 1e-3
    tool = _tip_path(robot, path, TUBE * camera.distance)
    picture = render([solid, *arms[1:-1], *groups, tool], camera, size, ground)

    figure = Figure(figsize=(size[0] / 100, size[1] / 100), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(picture, interpolation="nearest", aspect="auto")
    axes.set_axis_off()
    _write_texts(figure, robot, world, path)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=100)
    return file


def good_camera(robot: RobotModel, world: CollisionWorld, path: ArrayLike, size: tuple[int, int]) -> Camera:
    """A camera that holds the robot along a path (K, dof) and what stands near it, from where the obstacles hide least.

    size: width and height of the picture, pixels
    """
    path = robot.as_configurations(path)
    arms = [_layer(_robot_triangles(robot, q, moving=True), START) for q in along_path(path, POSES)]
    around = [_robot_triangles(robot, path[0], moving=False), *map(shape_triangles, world.shapes)]
    return _camera(arms, [_layer(triangles, OBSTACLE) for triangles in around if len(triangles)], size)


def along_path(path: np.ndarray, count: int) -> np.ndarray:
    """(count, dof) configurations at equal joint-space lengths along a path (K, dof), its ends included."""
    lengths = np.r_[0, np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))]
    if lengths[-1] == 0:
        return path[:1]
    at = np.linspace(0, lengths[-1], count)
    return np.stack([np.interp(at, lengths, column) for column in path.T], axis=1)


def shape_triangles(shape: ConvexShape) -> np.ndarray:
    """(T, 3, 3) outward triangles of a shape in the frame that its pose is given in; round ones in facets."""
    return _moved(outward_triangles(KINDS[shape.kind].outline(shape)), shape.pose)


def _robot_triangles(robot, q, moving):
    """(T, 3, 3) of the shapes that move, or of those fixed to the root, in the root frame."""
    frames = robot.frame_poses(q[None])[0]
    parts = [
        shape_triangles(shape) if frame < 0 else _moved(shape_triangles(shape), frames[frame])
        for shape, frame in zip(robot.shapes, robot.shape_frame, strict=True)
        if (frame >= 0) == moving
    ]
    return np.concatenate(parts) if parts else np.zeros((0, 3, 3))


def _layer(triangles, colour, opacity=1.0):
    return Layer(triangles, np.tile(colour, (len(triangles), 1)), opacity)


def _joined(layers):
    """One layer of several that share an opacity."""
    return replace(
        layers[0],
        triangles=np.concatenate([layer.triangles for layer in layers]),
        colours=np.concatenate([layer.colours for layer in layers]),
    )


def _tip_path(robot, path, radius, sides=10):
    """Layer of the end effector's path, which shows through what hides it: a tube with a ball at each end."""
    points = robot.link_poses(along_path(path, 300))[robot.tip_link][:, :3, 3]
    moved = np.r_[True, np.linalg.norm(np.diff(points, axis=0), axis=1) > 1e-5]
    points, share = points[moved], np.linspace(0, 1, len(moved))[moved]
    ends = [(points[0], START)] if len(path) == 1 else [(points[0], START), (points[-1], GOAL)]
    parts = [_layer(centre + 2.2 * radius * BALL, 0.85 * colour) for centre, colour in ends]
    if len(points) > 1:
        triangles = _tube(points, radius, sides)
        parts.append(Layer(triangles, np.repeat(0.85 * _gradient(share[:-1]), 2 * sides, axis=0)))
    return replace(_joined(parts), casts_shadow=False, shows_through=0.45)


def _tube(points, radius, sides):
    """(2 * sides * (K - 1), 3, 3) triangles of a tube through points (K, 3)."""
    along = np.gradient(points, axis=0)
    along /= np.linalg.norm(along, axis=1, keepdims=True) + 1e-12
    side = np.cross(along, np.where(np.abs(along[:, 2:]) < 0.9, [[0, 0, 1.0]], [[1.0, 0, 0]]))
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    up = np.cross(side, along)
    angle = np.linspace(0, 2 * np.pi, sides + 1)
    ring = points[:, None] + radius * (np.cos(angle)[:, None] * side[:, None] + np.sin(angle)[:, None] * up[:, None])
    a, b, c, d = ring[:-1, :-1], ring[1:, :-1], ring[1:, 1:], ring[:-1, 1:]
    return np.stack([np.stack([a, c, b], 2), np.stack([a, d, c], 2)], axis=2).reshape(-1, 3, 3)


def _camera(arms, obstacles, size):
    """A camera that holds everything, from the side where the arm is hidden least."""
    arm = np.concatenate([layer.triangles for layer in arms]).reshape(-1, 3)
    near = [layer.triangles.reshape(-1, 3) for layer in obstacles]
    points = np.concatenate([arm, *near])
    low, high = points.min(0), points.max(0)
    distance, small = 1.3 * np.linalg.norm(high - low), (size[0] // 8, size[1] // 8)
    front = Layer(arm.reshape(-1, 3, 3), np.zeros((0, 3)))
    angles = np.arange(12) * np.pi / 6 + 0.2
    cameras = [_framed(Camera((low + high) / 2, distance, angle, ELEVATION), points, size) for angle in angles]
    return max(cameras, key=lambda camera: visible_share(front, obstacles, camera, small))


def _framed(camera, points, size, margin=0.085):
    """The camera, moved sideways and along its axis until the points fill the picture less a margin."""
    for _ in range(4):
        at = camera.project(points, *size)[:, :2]
        low, high = at.min(0), at.max(0)
        off = ((low + high) / 2 - np.array(size) / 2) * 2 * camera.distance / (camera.focal * size[1])
        target = camera.target + off[0] * camera.axes[0] - off[1] * camera.axes[2]
        fill = ((high - low) / (np.array(size) * (1 - 2 * margin))).max()
        camera = Camera(target, camera.distance * fill, camera.azimuth, camera.elevation, camera.focal)
    return camera


def _write_texts(figure, robot, world, path):
    from matplotlib.lines import Line2D

    count = len(world.names)
    length = np.linalg.norm(np.diff(path, axis=0), axis=1).sum()
    facts = f"{count} obstacle{'s' * (count != 1)}, {len(path)} waypoints, path length {length:.2f}"
    figure.text(0.025, 0.955, robot.name, fontsize=19, weight="bold", color="#20242b", va="center")
    figure.text(0.025, 0.918, facts, fontsize=12.5, color="#555d68", va="center")
    ends = [("start", START), ("goal", GOAL)] if len(path) > 1 else [("robot", START)]
    square = {"marker": "s", "linestyle": "", "markersize": 11}
    marks = [(label, colour, square) for label, colour in [*ends, ("obstacles", OBSTACLE)]]
    marks.insert(-1, ("end-effector path", HALFWAY, {"linewidth": 3}))
    handles = [Line2D([], [], color=colour, label=label, **look) for label, colour, look in marks]
    place = {"loc": "upper right", "bbox_to_anchor": (0.985, 0.985), "frameon": False, "ncols": len(handles)}
    looks = {"fontsize": 12, "columnspacing": 1.4, "handletextpad": 0.4, "labelcolor": "#30353d"}
    figure.legend(handles=handles, **place, **looks)


def _gradient(share):
    """(..., 3) colour at a share 0..1 of the path: start, violet half way since the plain mean is mud, goal."""
    ways = zip(START, HALFWAY, GOAL, strict=True)
    return np.stack([np.interp(share, [0, 0.5, 1], way) for way in ways], axis=-1)


def _tint(i):
    """Neighbouring obstacles differ a little."""
    return np.clip(OBSTACLE * (0.94 + 0.12 * ((i * 0.618) % 1)), 0, 1)


def _moved(triangles, pose):
    return triangles @ pose[:3, :3].T + pose[:3, 3]
