"""What a fleet keeps on disk, before it tells orders, so that a node which starts again knows who may be where."""

import json
import math
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...arguments import whole
from ...errors import GpuPlannersError, SettingsError, error_text
from ...files import file_path, read_file, write_whole
from ...grid.maps.grid_map import MOST_TILES, GridMap
from .places import ROUNDING, Places

FORMAT = 1
OF_SIZES = 2  # the format of agents of unlike sizes, which older nodes refuse
MOST_BYTES = 1 << 28
MOST_SIDE = 10_000  # tiles, of what is kept away from
SHARE = 0.1  # of the time that writing may take between two steps
WHAT = "state_file"


@dataclass
class Kept:
    """frame: (rows, cols, resolution, x, y, yaw) of the map; rules: what tiles an agent holds by; steps: that began

    agents: [(id, number of its last action, (K, 3) row, col, heading: its state, and those that it may come to,
        (x, y), yaw or NaN)]; waiting: [(id, (x, y), yaw or NaN)]; occupied: {id: [(x, y)]}; all in metres
    sizes, occupied_sizes: {id: side in tiles} of those that are not as large as the rules say
    """

    frame: tuple[float, ...]
    rules: dict[str, Any]
    steps: int = 0
    agents: list[tuple] = field(default_factory=list)
    waiting: list[tuple] = field(default_factory=list)
    occupied: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    occupied_sizes: dict[str, int] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, cols)"""
        rows, cols = (whole("a side of the map", int(side), 1, MOST_TILES) for side in self.frame[:2])
        return rows, cols

    def grid(self) -> GridMap:
        """A map of one tile, which lies as the map does that the tiles are of."""
        _, _, resolution, x, y, yaw = self.frame
        return GridMap(np.ones((1, 1), np.uint8), 4, resolution, (x, y, yaw))

    def text(self) -> str:
        return json.dumps(
            {
                "format": OF_SIZES if self.sizes or self.occupied_sizes else FORMAT,
                "frame": self.frame,
                "rules": self.rules,
                "steps": self.steps,
                "agents": [[id, number, states.tolist(), *_pose(*pose)] for id, number, states, *pose in self.agents],
                "waiting": [[id, *_pose(*pose)] for id, *pose in self.waiting],
                "occupied": self.occupied,
                **({"sizes": [self.sizes, self.occupied_sizes]} if self.sizes or self.occupied_sizes else {}),
            },
            separators=(",", ":"),
        )


def _pose(point, yaw):
    """JSON has no NaN."""
    return [_number(value) for value in point], _number(yaw)


def _number(value):
    return float(value) if math.isfinite(value) else None


def read(text: str) -> Kept:
    """The contrary of Kept.text. Raises GpuPlannersError for anything else."""
    try:
        content = json.loads(text)
        if content["format"] not in (FORMAT, OF_SIZES):
            raise GpuPlannersError(f"its format is {content['format']!r}; allowed: {FORMAT}, {OF_SIZES}")
        kept = Kept(tuple(map(float, content["frame"])), dict(content["rules"]), int(content["steps"]))
        rows, cols = kept.shape
        kept.grid()  # may it be one?
        for id, number, states, point, yaw in content["agents"]:
            states = np.array(states, np.int64).reshape(-1, 3)
            right = (states >= 0) & (states < (rows, cols, 4))
            if not len(states) or not right.all() or (np.abs(np.diff(states[:, :2], axis=0)).sum(axis=1) > 1).any():
                raise GpuPlannersError(f"the states of {id!r} are {states.tolist()}; allowed: tiles side by side")
            kept.agents.append((_id(id), int(number), states, *_read_pose(point, yaw)))
        kept.waiting = [(_id(id), *_read_pose(*pose)) for id, *pose in content["waiting"]]
        occupied = {id: np.array(points, float).reshape(-1, 2) for id, points in content["occupied"].items()}
        kept.occupied = {_id(id): [tuple(point) for point in points.tolist()] for id, points in occupied.items()}
        for known, told in zip((kept.sizes, kept.occupied_sizes), content.get("sizes", ({}, {})), strict=True):
            known |= {_id(id): whole(f"the size of {id!r}", side, 0, MOST_SIDE) for id, side in told.items()}
        ids = [agent[0] for agent in [*kept.agents, *kept.waiting]]
        if len(set(ids)) < len(ids):
            raise GpuPlannersError("an agent comes twice")
    except GpuPlannersError:
        raise
    except Exception as error:  # whatever else the file holds
        raise GpuPlannersError(f"it is not what the node writes: {type(error).__name__}: {error}") from error
    return kept


def _id(id):
    if not isinstance(id, str) or not id:
        raise GpuPlannersError(f"an id is {id!r}; allowed: a text that is not empty")
    return id


def _read_pose(point, yaw):
    x, y = (math.nan if value is None else float(value) for value in point)
    return (x, y), math.nan if yaw is None else float(yaw)


class StateFile:
    """The file of a fleet. fault: why it cannot be taken up; until it is gone, or right, no agent is told anything"""

    def __init__(self, path: str) -> None:
        self.path, self.fault = path, ""
        self._free_at = 0.0
        self._seen: tuple | None = None  # the file that cannot be taken up

    def load(self) -> Kept | None:
        """What a node has left behind; None where there is nothing, or `fault` says why it is not known."""
        self.fault = ""
        if not self.path:
            return None
        self._seen = self._look()
        try:
            path = file_path(self.path, WHAT, SettingsError)
            return read(read_file(path, WHAT, SettingsError, MOST_BYTES).decode()) if path.exists() else None
        except Exception as error:
            self.fault = (
                f"{WHAT} '{self.path}' cannot be taken up, so it is not known where agents are, and none is told to "
                f"move: {error_text(error)}. Remove it when no robot stands where it does not report, or put it right"
            )
            return None

    def has_changed(self) -> bool:
        """Is the file that cannot be taken up gone, or another one?"""
        return self._look() != self._seen

    def _look(self):
        try:
            status = os.stat(os.path.expanduser(self.path))
        except (OSError, ValueError):
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns

    def is_busy(self) -> bool:
        """Was it written so lately that writing it again would take too much time?"""
        return bool(self.path) and time.perf_counter() < self._free_at

    def save(self, kept: Kept) -> None:
        """Write the file, whole or not at all. Raises GpuPlannersError where that fails."""
        began = time.perf_counter()
        try:
            path = file_path(self.path, WHAT, SettingsError)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, kept.text().encode())
        except OSError as error:
            raise SettingsError(f"{WHAT} '{self.path}' cannot be written: {error.strerror or error}") from error
        took = time.perf_counter() - began
        self._free_at = began + took / SHARE


def marks_of(kept: Kept, resolution: float, but: Iterable[str] = ()) -> dict[str, tuple[np.ndarray, int]]:
    """{id: (K, 2) metres, side in tiles of that resolution}: where agents of another map, or of other rules, may be."""
    places, marks = Places(kept.grid(), int(kept.rules.get("size", 1))), {}
    for id, _, states, *_ in kept.agents:
        if id not in but:
            size = kept.sizes.get(id, 0) or places.size
            side = math.ceil(size * places.grid.resolution / resolution - ROUNDING)
            marks[id] = places.points(states[:, :2], np.full(len(states), size)), side
    return marks
