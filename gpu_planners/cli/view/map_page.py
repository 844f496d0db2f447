"""The page of a grid map: agents on the shortest ways to a goal that is dragged, over its field; or a fleet on errands.

The page is that of `fleet.drawing`; it asks the server here for more moves.
"""

import argparse
import base64
import io
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

from ...errors import GpuPlannersError
from ...fleet.drawing import moves_of, page_of
from ...grid import BlockPlanner, FleetPlanner, GridMap
from ...grid.drawing import draw_map
from ...grid.maps.generated import random_free_tiles
from ...grid.maps.map_files import load_map_yaml
from ...grid.maps.movingai import load_movingai_map
from ..errors import InputError

PICTURE = 1600  # pixels of the map's longer side
PICTURE_DRAGGED = 700  # while the goal is dragged
STEP_S = 1 / 3
STEPS = 60  # of a fleet, that the page gets at once
MOST_AGENTS = 20_000
MOST_PORTS = 100  # that are tried
WAIT = "planning; the first time on a machine this compiles, which takes a minute"


def open_map_page(options: argparse.Namespace) -> "MapPage":
    if not 0 < options.agents <= MOST_AGENTS:
        raise InputError(f"--agents is {options.agents}; allowed: 1 to {MOST_AGENTS}")
    yaml = Path(options.map).suffix.lower() in (".yaml", ".yml")
    grid = (load_map_yaml if yaml else load_movingai_map)(options.map, connectivity=4 if options.fleet else 8)
    moves = FleetMoves(grid, options) if options.fleet else PathMoves(grid, options, row_0_below=yaml)
    return MapPage(moves, options, row_0_below=yaml)


class MapPage:
    """The page, served at `port` until `close`."""

    def __init__(self, moves: "PathMoves | FleetMoves", options: argparse.Namespace, row_0_below: bool) -> None:
        self.title = Path(options.map).name
        first = moves.first | {"text": WAIT}
        page = page_of(moves.grid, first, self.title, STEP_S, live=moves.live, below=row_0_below)
        turn = threading.Lock()  # planners are for one thread at a time

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                address, code = urlsplit(self.path), 200
                if address.path == "/":
                    return self._send(code, "text/html; charset=utf-8", page)
                if address.path != "/moves":
                    return self.send_error(404)
                try:
                    with turn:
                        found = moves.more({name: values[0] for name, values in parse_qs(address.query).items()})
                except (GpuPlannersError, ValueError, KeyError) as error:
                    code, found = 400, {"text": str(error)}
                return self._send(code, "application/json", json.dumps(found))

            def _send(self, code: int, kind: str, text: str) -> None:
                body = text.encode()
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        self._server = _server(options, Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, name="page", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _server(options, handler):
    """A server at the port that is asked for, or at the next free one."""
    ports: Iterator[int] = iter(range(options.port, min(options.port + MOST_PORTS, 65536)) if options.port else [0])
    for port in ports:
        try:
            return ThreadingHTTPServer((options.host, port), handler)
        except OSError as error:
            reason = error
    raise InputError(f"--port {options.port}: {reason}")


class PathMoves:
    """Agents on the shortest ways to one goal. starts: (N, 2) [row, col];  goal: (2,)

    grid: the map;  live: what page.js calls these moves;  first: what the page shows until there are moves
    """

    live = "goal"

    def __init__(self, grid: GridMap, options: argparse.Namespace, row_0_below: bool) -> None:
        self.grid, self._below = grid, row_0_below
        self._planner = BlockPlanner(grid, device=options.device)
        self._free = np.argwhere(~grid.blocked)
        self.starts = random_free_tiles(grid, options.agents)
        self.goal = random_free_tiles(grid, 1, seed=1)[0]
        self.first = moves_of(self.starts[None]) | {"aim": self.goal.tolist()}

    def more(self, query: dict[str, str]) -> dict[str, Any]:
        """What the page gets next: the ways to the free tile nearest to row and col, all of them there at the end."""
        asked = [float(query["row"]), float(query["col"])]
        self.goal = goal = self._free[np.argmin(np.hypot(*(self._free - asked).T))]
        began = time.monotonic()
        paths = self._planner.plan(self.starts, goal)
        took = time.monotonic() - began
        solved = np.flatnonzero(paths.solved).tolist()
        ways = [paths.path(i) for i in solved] or [self.starts[:1]]
        places = np.empty((max(map(len, ways)), len(ways), 2), np.int64)
        for agent, way in enumerate(ways):
            places[: len(way), agent], places[len(way) :, agent] = way, way[-1]
        size = PICTURE_DRAGGED if query.get("held") == "true" else PICTURE
        picture = io.BytesIO()
        draw_map(self.grid, self._planner.field(goal), size=size, row_0_below=self._below).save(
            picture, "jpeg", quality=85
        )
        return moves_of(places, None, np.broadcast_to(goal, places.shape)) | {
            "aim": goal.tolist(),
            "picture": "data:image/jpeg;base64," + base64.b64encode(picture.getvalue()).decode("ascii"),
            "text": f"{len(solved)} of {len(self.starts)} agents reach the goal, planned on {self._planner.device} "
            f"in {1e3 * took:.1f} ms. Drag the goal, or click on an agent to follow it.",
        }


class FleetMoves:
    """Agents that never collide; each gets another errand when it has done one. Attributes as of PathMoves."""

    live = "errands"

    def __init__(self, grid: GridMap, options: argparse.Namespace) -> None:
        self.grid, self._tiles = grid, np.argwhere(~grid.blocked)
        starts = np.random.default_rng(0).permutation(self._tiles)[: options.agents]
        if len(starts) < options.agents:
            raise InputError(f"--agents is {options.agents}; allowed on this map: up to {len(starts)}")
        self._fleet = FleetPlanner(grid, motion="four", device=options.device)
        self._fleet.start(starts)
        self._rng = np.random.default_rng(1)
        self._goals = self._errands(len(starts))
        self._done = self._steps = 0
        self.first = moves_of(starts[None], None, self._goals[None])

    def more(self, _query: dict[str, str]) -> dict[str, Any]:
        """What the page gets next: more steps, from where the ones before ended."""
        places, goals, began = [self._fleet.positions], [self._goals.copy()], time.monotonic()
        for _ in range(STEPS):
            there = (places[-1] == self._goals).all(axis=1)
            self._done += int(there.sum())
            self._goals[there] = self._errands(int(there.sum()))
            self._fleet.step(self._goals)
            places.append(self._fleet.positions)
            goals.append(self._goals.copy())
        took, self._steps = time.monotonic() - began, self._steps + STEPS
        text = (
            f"{len(self._goals)} agents, {self._done} errands done in {self._steps} steps; a step took "
            f"{1e3 * took / STEPS:.1f} ms on {self._fleet.device}. Click on an agent to follow it."
        )
        return moves_of(np.array(places), None, np.array(goals)) | {"text": text}

    def _errands(self, count):
        return self._tiles[self._rng.integers(len(self._tiles), size=count)]
