"""A robot, its obstacles and a path in the browser, by viser: a slider moves the arm along the path."""

import os
import threading
import time
from pathlib import Path

import numpy as np
import viser
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from ...errors import SettingsError
from ..collision.world import CollisionWorld
from ..robot.model import RobotModel
from .drawing import BASE, OBSTACLE, START, along_path, shape_triangles

STEPS = 400  # positions of the slider
PLAY_S = 6.0  # seconds from start to goal while playing


def read_path(file: str | os.PathLike, dof: int) -> np.ndarray:
    """(K, dof) path of a file: .npy, or text with one configuration a row, its values separated by commas or blanks."""
    try:
        path = np.load(file, allow_pickle=False) if Path(file).suffix == ".npy" else _read_text(file)
        path = np.atleast_2d(np.asarray(path, dtype=np.float64))
    except ValueError as error:
        raise SettingsError(f"'{file}' holds no table of numbers: {error}") from error
    if path.ndim != 2 or path.shape[1] != dof or not np.isfinite(path).all():
        raise SettingsError(f"'{file}' must hold finite rows of {dof} joint values, it has shape {path.shape}")
    return path


def show(
    robot: RobotModel, world: CollisionWorld, path: ArrayLike | None = None, host: str = "127.0.0.1", port: int = 8080
) -> viser.ViserServer:
    """Start a server with the page; `server.stop()` ends it.

    path: (K, dof) rad or m; default: one configuration in the middle of the limits
    """
    path = ((robot.lower + robot.upper) / 2)[None] if path is None else np.atleast_2d(path)
    server = viser.ViserServer(host=host, port=port, verbose=False)
    server.gui.configure_theme(dark_mode=False, show_logo=False, show_share_button=False)
    server.scene.set_up_direction("+z")
    lowest = min([shape_triangles(shape)[..., 2].min() for shape in world.shapes] + [0.0])
    server.scene.add_grid(
        "/ground",
        width=4,
        height=4,
        position=(0, 0, float(lowest)),
        cell_color=(225, 228, 232),
        section_color=(200, 204, 210),
    )
    for shape in world.shapes:
        _add_mesh(server, f"/obstacles/{shape.name}", shape, OBSTACLE, opacity=0.6)
    bodies = [
        _add_mesh(server, f"/robot/{i}_{shape.name}", shape, START if frame >= 0 else BASE)
        for i, (shape, frame) in enumerate(zip(robot.shapes, robot.shape_frame, strict=True))
    ]
    places = along_path(path, STEPS) if len(path) > 1 else path
    if len(places) > 1:
        tips = robot.link_poses(places)[robot.tip_link][:, :3, 3]
        server.scene.add_spline_catmull_rom("/end_effector_path", tips[::8], thickness=0.008, color=(143, 84, 158))
    _place(robot, bodies, places[0])
    _add_controls(server, robot, bodies, places)

    @server.on_client_connect
    def _look(client):
        client.camera.position, client.camera.look_at = (1.5, -1.2, 1.1), (0.3, 0.0, 0.35)

    return server


def wait(server: viser.ViserServer) -> None:
    """Serve until Ctrl-C."""
    try:
        while True:
            time.sleep(0.5)
    finally:
        server.stop()


def _read_text(file):
    text = Path(file).read_text(encoding="utf-8")
    return [[float(value) for value in row.replace(",", " ").split()] for row in text.splitlines() if row.strip()]


def _add_controls(server, robot, bodies, places):
    values = server.gui.add_markdown(_values(robot, places[0]))
    if len(places) == 1:
        return
    slider = server.gui.add_slider("along the path", min=0, max=len(places) - 1, step=1, initial_value=0)
    play = server.gui.add_button("play")
    playing = threading.Lock()

    @slider.on_update
    def _moved(_event):
        _place(robot, bodies, places[slider.value])
        values.content = _values(robot, places[slider.value])

    @play.on_click
    def _play(_event):
        if not playing.acquire(blocking=False):
            return
        try:
            for place in range(0, len(places), 4):
                slider.value = place
                time.sleep(4 * PLAY_S / len(places))
            slider.value = len(places) - 1
        finally:
            playing.release()


def _values(robot, q):
    rows = "\n".join(f"| {name} | {value:.3f} |" for name, value in zip(robot.joint_names, q, strict=True))
    return f"**{robot.name}**\n\n| joint | value |\n| --- | ---: |\n{rows}"


def _add_mesh(server, name, shape, colour, opacity=None):
    triangles = shape_triangles(shape)
    return server.scene.add_mesh_simple(
        name,
        triangles.reshape(-1, 3).astype(np.float32),
        np.arange(3 * len(triangles)).reshape(-1, 3),
        color=tuple(int(255 * c) for c in colour),
        opacity=opacity,
        flat_shading=True,
    )


def _place(robot, bodies, q):
    frames = robot.frame_poses(q[None])[0]
    for body, frame in zip(bodies, robot.shape_frame, strict=True):
        if frame >= 0:
            x, y, z, w = Rotation.from_matrix(frames[frame][:3, :3]).as_quat()
            body.wxyz, body.position = (w, x, y, z), frames[frame][:3, 3]
