"""The page of a grid map: agents that go to a goal that is dragged, over its field; or a fleet on errands.

The map is laid out on the ground, its longer side 10 units long.
"""

import argparse
import math
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from ...arm.view.browser import new_server, set_camera, stop_server
from ...arm.view.rasterizer import Camera
from ...errors import GpuPlannersError
from ...grid import BlockPlanner, FleetPlanner, GridMap
from ...grid.drawing import draw_map
from ...grid.maps.generated import random_free_tiles
from ...grid.maps.map_files import load_map_yaml
from ...grid.maps.movingai import load_movingai_map
from ..errors import InputError
from .newest import Newest

LONGER_SIDE = 10.0  # units
PICTURE, PICTURE_DRAGGED = 1600, 700  # pixels of the map's longer side; while the goal is dragged
FRAMES_S = 1 / 20
MOST_AGENTS = 20_000
WAY, ARRIVED = np.array([26, 117, 168]), np.array([43, 138, 62])
GOAL = (232, 107, 43)


def open_grid_page(options: argparse.Namespace) -> "MapPage":
    """The page for the command line's options."""
    if not 0 < options.agents <= MOST_AGENTS:
        raise InputError(f"--agents is {options.agents}; allowed: 1 to {MOST_AGENTS}")
    yaml = Path(options.map).suffix.lower() in (".yaml", ".yml")
    grid = (load_map_yaml if yaml else load_movingai_map)(options.map, connectivity=4 if options.fleet else 8)
    page = (FleetPage if options.fleet else PathsPage)(grid, options, row_0_below=yaml)
    page.begin()
    return page


class MapPage:
    """What both pages share: the map, and agents on it that are moved by `places(seconds)` of a subclass."""

    def __init__(self, grid: GridMap, options: argparse.Namespace, row_0_below: bool) -> None:
        self.grid, self._below = grid, row_0_below
        self.title = Path(options.map).name
        self._tile = LONGER_SIDE / max(grid.shape)
        self.server = new_server(options.host, options.port)
        self.server.scene.set_up_direction("+z")
        set_camera(self.server, Camera(np.zeros(3), 1.2 * LONGER_SIDE, -math.pi / 2, 1.05))
        gui = self.server.gui
        gui.set_panel_label(f"{self.title}: {grid.rows} x {grid.cols} tiles")
        self._status = gui.add_markdown("")
        self._playing = gui.add_checkbox("move", True)
        self._speed = gui.add_slider("tiles a second", 1.0, 30.0, 0.5, 6.0)
        gui.main_panel.dock_right()
        self._image: Any = None
        self._ended = threading.Event()
        self._agents = None
        self._thread = threading.Thread(target=self._move, name="agents", daemon=True)

    def begin(self) -> None:
        """Show the first picture and let the agents go."""
        self._thread.start()

    def wait_a_moment(self) -> None:
        """Say that the first answer may take long."""
        self.say("planning; the first time on a machine this compiles, which takes a minute")

    def close(self) -> None:
        """End the threads and the server."""
        self._ended.set()
        self._thread.join(timeout=5.0)
        stop_server(self.server)

    def advance(self, tiles: float) -> tuple[np.ndarray, np.ndarray] | None:
        """(N, 2) [row, col] where the agents are, and (N, 3) their colours, when they have gone on by so many tiles."""
        raise NotImplementedError

    def show_map(self, field: np.ndarray | None, size: int) -> None:
        """Lay the map out, with the field of cost to the goal on it."""
        picture = np.asarray(draw_map(self.grid, field, size=size, row_0_below=self._below))
        if self._image is None:
            self._image = self.server.scene.add_image(
                "/map",
                picture,
                render_width=self.grid.cols * self._tile,
                render_height=self.grid.rows * self._tile,
                wxyz=(0.0, 1.0, 0.0, 0.0),  # a picture's y axis points down
                format="jpeg",
                jpeg_quality=85,
                cast_shadow=False,
                receive_shadow=False,
            )
        else:
            self._image.image = picture

    def place_of(self, tiles: np.ndarray) -> np.ndarray:
        """(N, 2) [row, col], also between tiles -> (N, 3) in the scene."""
        tiles = np.atleast_2d(np.asarray(tiles, dtype=float))
        x = (tiles[:, 1] + 0.5 - self.grid.cols / 2) * self._tile
        y = (tiles[:, 0] + 0.5 - self.grid.rows / 2) * self._tile * (1 if self._below else -1)
        return np.stack([x, y, np.zeros(len(tiles))], axis=1).astype(np.float32)

    def tile_at(self, point: np.ndarray) -> np.ndarray:
        """(2,) the free tile nearest to a point of the scene."""
        col = point[0] / self._tile + self.grid.cols / 2 - 0.5
        row = point[1] / self._tile * (1 if self._below else -1) + self.grid.rows / 2 - 0.5
        free = np.argwhere(~self.grid.blocked)
        return free[np.argmin(np.hypot(*(free - [row, col]).T))]

    def say(self, text: str) -> None:
        """Show a text."""
        self._status.content = text

    def _move(self):
        while not self._ended.wait(FRAMES_S):
            try:
                shown = self.advance(self._speed.value * FRAMES_S if self._playing.value else 0.0)
            except GpuPlannersError as error:
                self.say(f"**{error}**")
                return
            if shown is not None:
                self._place_agents(*shown)

    def _place_agents(self, tiles, colours):
        places = self.place_of(tiles)
        if self._agents is None or len(self._agents.batched_positions) != len(places):
            vertices, faces = _disc(max(0.42 * self._tile, LONGER_SIDE / 400), 0.5 * self._tile)
            turns = np.tile([1.0, 0.0, 0.0, 0.0], (len(places), 1))
            self._agents = self.server.scene.add_batched_meshes_simple(
                "/agents", vertices, faces, turns, places, batched_colors=colours.astype(np.uint8), lod="off"
            )
            return
        with self.server.atomic():
            self._agents.batched_positions = places
            self._agents.batched_colors = colours.astype(np.uint8)


class PathsPage(MapPage):
    """Agents that go the shortest ways to one goal, again and again. Dragging the goal plans anew."""

    def __init__(self, grid: GridMap, options: argparse.Namespace, row_0_below: bool) -> None:
        self._planner = BlockPlanner(grid, device=options.device)
        super().__init__(grid, options, row_0_below)
        self._starts = random_free_tiles(grid, options.agents)
        self.goal = random_free_tiles(grid, 1, seed=1)[0]
        self._gone = np.random.default_rng(0).uniform(0, max(grid.shape), options.agents)  # tiles since its start
        self._ways: tuple[np.ndarray, np.ndarray] | None = None  # (N, T, 2) places and (N,) lengths
        self.plans = 0
        self._work = Newest(lambda error: self.say(f"**{error}**"))
        self.goal_handle = self.server.scene.add_transform_controls(
            "/goal", scale=0.09 * LONGER_SIDE, active_axes=(True, True, False), disable_rotations=True, depth_test=False
        )
        self.goal_handle.position = self.place_of(self.goal)[0]
        self.server.scene.add_icosphere("/goal/ball", radius=0.012 * LONGER_SIDE, color=GOAL)
        self.goal_handle.on_update(lambda event: self._dragged(event.phase != "end"))

    def begin(self) -> None:
        """As MapPage."""
        self.show_map(None, PICTURE)
        self.wait_a_moment()
        self._work.do("plan", lambda: self._plan(self.goal, False))
        super().begin()

    def close(self) -> None:
        """As MapPage."""
        self._work.stop()
        super().close()

    def advance(self, tiles: float) -> tuple[np.ndarray, np.ndarray] | None:
        """As MapPage."""
        ways = self._ways
        if ways is None:
            return None
        places, lengths = ways
        self._gone = np.where(self._gone > lengths + 2, 0.0, self._gone + tiles)
        at = np.minimum(self._gone, lengths)
        low = at.astype(int)
        high, part = np.minimum(low + 1, lengths.astype(int)), (at - low)[:, None]
        rows = np.arange(len(places))
        colours = np.where((at >= lengths)[:, None], ARRIVED, WAY)
        return places[rows, low] * (1 - part) + places[rows, high] * part, colours

    def _dragged(self, held):
        tile = self.tile_at(np.asarray(self.goal_handle.position))
        self._work.do("plan", lambda: self._plan(tile, held))

    def _plan(self, goal, held):
        began = time.monotonic()
        paths = self._planner.plan(self._starts, goal)
        took = time.monotonic() - began
        solved = np.flatnonzero(paths.solved)
        if len(solved):
            some = [paths.path(i) for i in solved]
            lengths = np.array([len(path) - 1 for path in some])
            places = np.empty((len(some), lengths.max() + 1, 2), np.float32)
            for row, path in zip(places, some, strict=True):
                row[: len(path)], row[len(path) :] = path, path[-1]
            gone = np.resize(self._gone, len(some))
            self._gone, self._ways = gone % (lengths + 2), (places, lengths)
        self.goal, self.plans = goal, self.plans + 1
        self.show_map(self._planner.field(goal), PICTURE_DRAGGED if held else PICTURE)
        self.say(
            f"{len(solved)} of {len(self._starts)} agents reach the goal, planned on {self._planner.device} "
            f"in {1e3 * took:.1f} ms. Drag the goal."
        )


class FleetPage(MapPage):
    """Agents that never collide; each gets another errand when it has done one."""

    def __init__(self, grid: GridMap, options: argparse.Namespace, row_0_below: bool) -> None:
        free = random_free_tiles(grid, options.agents)
        if len(np.unique(free, axis=0)) < len(free):
            free = np.random.default_rng(0).permutation(np.argwhere(~grid.blocked))[: options.agents]
        if len(free) < options.agents:
            raise InputError(f"--agents is {options.agents}; allowed on this map: up to {len(free)}")
        self._fleet = FleetPlanner(grid, motion="four", device=options.device)
        self._fleet.start(free)
        super().__init__(grid, options, row_0_below)
        self._rng = np.random.default_rng(1)
        self._tiles = np.argwhere(~grid.blocked)
        self._goals = self._tiles[self._rng.integers(len(self._tiles), size=len(free))]
        self._from = self._to = self._fleet.positions
        self._part, self._done, self._steps = 1.0, 0, 0

    def begin(self) -> None:
        """As MapPage."""
        self.show_map(None, PICTURE)
        self.wait_a_moment()
        super().begin()

    def advance(self, tiles: float) -> tuple[np.ndarray, np.ndarray]:
        """As MapPage."""
        self._part += min(tiles, 1.0)
        if self._part >= 1.0 and tiles > 0:
            self._step()
        part = min(self._part, 1.0)
        colours = np.where((self._to == self._goals).all(axis=1)[:, None], ARRIVED, WAY)
        return self._from + (self._to - self._from) * part, colours

    def _step(self):
        there = (self._to == self._goals).all(axis=1)
        self._done += int(there.sum())
        self._goals[there] = self._tiles[self._rng.integers(len(self._tiles), size=int(there.sum()))]
        self._from = self._to
        began = time.monotonic()
        self._fleet.step(self._goals)
        took = time.monotonic() - began
        self._to, self._part, self._steps = self._fleet.positions, self._part % 1.0, self._steps + 1
        if self._steps % 5 == 1:
            self.say(
                f"{len(self._to)} agents, {self._done} errands done in {self._steps} steps; the last step took "
                f"{1e3 * took:.1f} ms on {self._fleet.device}"
            )


def _disc(radius, height, sides=14):
    """(V, 3), (F, 3) of a short upright cylinder without a floor."""
    angle = 2 * np.pi * np.arange(sides) / sides
    ring = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    below, above = np.c_[ring, np.zeros(sides)], np.c_[ring, np.full(sides, height)]
    i, j = np.arange(sides), (np.arange(sides) + 1) % sides
    side = np.concatenate([np.stack([i, j, j + sides], 1), np.stack([i, j + sides, i + sides], 1)])
    lid = np.stack([i + sides, j + sides, np.full(sides, 2 * sides)], 1)
    return np.concatenate([below, above, [[0, 0, height]]]).astype(np.float32), np.concatenate([side, lid])
