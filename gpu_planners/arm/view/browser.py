"""A robot, its obstacles and its motions in a browser. Viser serves the page, which needs no internet.

`ArmScene` puts them into a viser server and moves them. The command `gpu-planners view` adds sliders, a goal to drag,
and planning.
"""

import contextlib
import io
import math
from collections.abc import Sequence

import numpy as np
import viser
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from ..collision.world import CollisionWorld
from ..geometry.bricks import Bricks
from ..robot.model import RobotModel
from .drawing import BASE, GOAL, OBSTACLE, START, along_path, good_camera, shape_triangles

COLLIDING = np.array([0.84, 0.15, 0.16])
TIP_PATH, TRAIL, ROADMAP = (143, 84, 158), (150, 158, 170), (120, 134, 150)
GHOST_OPACITY, OBSTACLE_OPACITY = 0.35, 0.8
LINE_POINTS = 200  # points of the line that a link draws along a path
GRID_CELL = 0.25  # metres


class ArmScene:
    """A robot, a ghost of it, obstacles and lines in a viser server.

    server: where they are;  robot, world: what is shown;  tip: link that draws the path of the tool
    """

    def __init__(self, server: viser.ViserServer, robot: RobotModel, world: CollisionWorld, tip: str | None = None):
        self.server, self.robot, self.tip = server, robot, tip or robot.tip_link
        server.scene.set_up_direction("+z")
        self._ground = server.scene.add_grid(
            "/ground",
            width=6,
            height=6,
            cell_size=GRID_CELL,
            section_size=4 * GRID_CELL,
            cell_color=(225, 228, 232),
            section_color=(196, 201, 208),
        )
        self._robot = _Figure(server, "/robot", robot, START, BASE, None)
        self._ghost = _Figure(server, "/goal", robot, GOAL, None, GHOST_OPACITY)
        self._obstacles: dict[str, tuple] = {}  # by name: the shape that is shown, its handle
        self._lines: dict[str, viser.SceneNodeHandle] = {}
        self.shown: dict[str, bool] = {}
        self.set_world(world)
        self.place_ghost(None)

    def set_world(self, world: CollisionWorld) -> None:
        """Show the obstacles of a world; only those that differ are drawn anew."""
        self.world = world
        shapes = {piece.name: piece for piece in world.pieces}
        for name in [name for name, (shape, _) in self._obstacles.items() if shapes.get(name) is not shape]:
            self._obstacles.pop(name)[1].remove()
        for i, (name, shape) in enumerate(shapes.items()):
            if name not in self._obstacles:
                colour = np.clip(OBSTACLE * (0.92 + 0.16 * ((i * 0.618) % 1)), 0, 1)
                handle = _add_mesh(self.server, f"/obstacles/{i}_{_plain(name)}", shape, colour, OBSTACLE_OPACITY)
                handle.visible = self.shown.get("obstacles", True)
                self._obstacles[name] = shape, handle
        self._ground.position = (0.0, 0.0, self._lowest() - 0.002)

    def place(self, q: np.ndarray, colliding: Sequence[str] = ()) -> None:
        """Put the robot at q (dof,), rad or m. colliding: names of its shapes that are drawn red"""
        self._robot.place(q)
        self._robot.mark(colliding)

    def robot_frames(self) -> dict[str, np.ndarray]:
        """{joint: (3,) where its frame is drawn}, metres in the root frame."""
        frames = self._robot.frames
        return {name: np.array(frame.position) for name, frame in zip(self.robot.frame_names, frames, strict=True)}

    def place_ghost(self, q: np.ndarray | None) -> None:
        """Put the ghost at q (dof,), or take it away."""
        if q is not None:
            self._ghost.place(q)
        self._ghost.root.visible = q is not None and self.shown.get("goal", True)

    def draw_path(self, path: np.ndarray) -> None:
        """Lines of the tool and of each moving joint along a path (K, dof); none for an empty one."""
        tool, moving = [], []
        if len(path) > 1:
            q = along_path(path, LINE_POINTS)
            tool = [self.robot.link_poses(q)[self.tip][:, :3, 3]]
            joints = self.robot.frame_poses(q)[:, :, :3, 3].swapaxes(0, 1)
            moving = [points for points in joints if np.ptp(points, axis=0).max() > 1e-3]
        self._line("path", tool, TIP_PATH, 4.0)
        self._line("trails", moving, TRAIL, 1.5)

    def draw_graph(self, nodes: np.ndarray, edges: np.ndarray) -> None:
        """A roadmap or tree as straight lines between places of the tool. nodes: (n, dof), edges: (m, 2); none: gone"""
        lines = self.robot.link_poses(nodes)[self.tip][:, :3, 3][edges] if len(edges) else []
        self._line("roadmap", lines, ROADMAP, 1.0)

    def show_part(self, name: str, wanted: bool) -> None:
        """Show or hide "robot", "goal", "obstacles", "path", "trails", "roadmap"."""
        self.shown[name] = wanted
        if name == "obstacles":
            for _, handle in self._obstacles.values():
                handle.visible = wanted
        elif name in ("robot", "goal"):
            (self._robot if name == "robot" else self._ghost).root.visible = wanted
        elif name in self._lines:
            self._lines[name].visible = wanted

    def look(self, path: ArrayLike) -> float:
        """Let browsers that connect see the robot along a path (K, dof) and its obstacles from a good angle -> metres
        from there to the middle of what is seen."""
        camera = good_camera(self.robot, self.world, path, (1100, 1000))
        initial = self.server.initial_camera
        initial.position, initial.look_at = camera.eye, camera.target
        initial.fov = 2 * math.atan(1 / camera.focal)
        return camera.distance

    def _line(self, name, lines, colour, pixels):
        """Draw lines [(K, 3) points] in place of those that have the name; none: take these away."""
        if (line := self._lines.pop(name, None)) is not None:
            line.remove()
        if not len(lines):
            return
        segments = np.concatenate([np.stack([points[:-1], points[1:]], axis=1) for points in lines])
        self._lines[name] = self.server.scene.add_line_segments(
            f"/{name}",
            segments.astype(np.float32),
            colour,
            thickness=pixels,
            thickness_units="screen",
            visible=self.shown.get(name, name != "trails"),
        )

    def _lowest(self):
        """z of what lies lowest, metres: the ground is below it."""
        fixed = [s for s, frame in zip(self.robot.shapes, self.robot.shape_frame, strict=True) if frame < 0]
        return min([shape_triangles(shape)[..., 2].min() for shape in (*fixed, *self.world.shapes)] + [0.0])


class _Figure:
    """A robot's shapes below one frame for each of its joints, so that a move sends joints and not shapes."""

    def __init__(self, server, root, robot, colour, base_colour, opacity):
        self._robot, self._marked = robot, frozenset()
        self.root = server.scene.add_frame(root, show_axes=False)
        self.frames = [
            server.scene.add_frame(f"{root}/{f}_{_plain(name)}", show_axes=False)
            for f, name in enumerate(robot.frame_names)
        ]
        self._shapes = {}
        for i, (shape, frame) in enumerate(zip(robot.shapes, robot.shape_frame, strict=True)):
            if frame < 0 and base_colour is None:
                continue
            parent = f"{root}/{frame}_{_plain(robot.frame_names[frame])}" if frame >= 0 else root
            own = colour if frame >= 0 else base_colour
            handle = _add_mesh(server, f"{parent}/{i}_{_plain(shape.name)}", shape, own, opacity)
            self._shapes[shape.name] = handle, own

    def place(self, q):
        poses = self._robot.frame_poses(q)[0]
        turns = Rotation.from_matrix(poses[:, :3, :3]).as_quat()[:, [3, 0, 1, 2]]
        for frame, pose, wxyz in zip(self.frames, poses, turns, strict=True):
            frame.position, frame.wxyz = pose[:3, 3], wxyz

    def mark(self, names):
        names = frozenset(names) & self._shapes.keys()
        for name in names ^ self._marked:
            handle, own = self._shapes[name]
            handle.color = _rgb(COLLIDING if name in names else own)
        self._marked = names


def new_server(host: str = "127.0.0.1", port: int = 8080) -> viser.ViserServer:
    """A server with our looks, on the port or the next free one; `stop_server` ends it."""
    with contextlib.redirect_stdout(io.StringIO()):  # viser prints a banner, also without `verbose`
        server = viser.ViserServer(host=host, port=port, verbose=False)
    server.gui.configure_theme(dark_mode=False, show_logo=False, show_share_button=False, brand_color=(26, 117, 168))
    return server


def stop_server(server: viser.ViserServer) -> None:
    """End a server, without its word on it."""
    with contextlib.redirect_stdout(io.StringIO()):
        server.stop()


def _add_mesh(server, name, shape, colour, opacity=None):
    parts = shape.shapes if isinstance(shape, Bricks) else (shape,)
    triangles = np.concatenate([shape_triangles(part) for part in parts])
    return server.scene.add_mesh_simple(
        name,
        triangles.reshape(-1, 3).astype(np.float32),
        np.arange(3 * len(triangles)).reshape(-1, 3),
        color=_rgb(colour),
        opacity=opacity,
        flat_shading=True,
        cast_shadow=opacity is None,
    )


def _rgb(colour):
    return tuple(int(255 * c) for c in colour)


def _plain(name):
    """A name without slashes, which would make levels of the scene's tree."""
    return name.replace("/", "_")
