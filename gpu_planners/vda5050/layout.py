"""The layout that a fleet runs on: a map of tiles, the nodes that its orders name, lanes and speeds; from and to files
of the Layout Interchange Format (VDMA, LIF 1.0).

A node lies in the middle of a tile, an edge joins two tiles side by side. So a LIF fits where its nodes lie on a square
raster, turned as it may be; an edge of several tiles gets nodes between its ends. What does not fit is refused by name.
"""

import json
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import GpuPlannersError, shown
from ..files import read_json, write_whole
from ..fleet.execution.places import Lanes
from ..fleet.guidance import UNIT, Guidance, one_way
from ..fleet.motion import COLS_AHEAD, ROWS_AHEAD
from ..fleet.zones import Zones
from ..grid.maps.grid_map import GridMap
from .messages import MessageError, checked, timestamp

LIF_VERSION = "1.0.0"
ANY = "any"  # vehicleTypeId of what is written
MOST_BYTES = 1 << 28
OFF = 0.05  # of a tile, that a node may be off the raster
NEARLY = 1.05  # times the shortest edge: edges of one tile
MOST_SIDE = 20_000  # tiles of a row or column
MOST_TILES = 1 << 24  # of the map, free or not: a file of a few lines may span that much
MOST_MOVES = 1 << 22  # from tile to tile, that edges allow
_POINT = {"x": float, "y": float}
_LIF = {
    "metaInformation": {"lifVersion": str},
    "layouts": [
        {
            "layoutId": str,
            "nodes": [{"nodeId": str, "mapId?": str, "nodePosition": _POINT}],
            "edges": [
                {
                    "edgeId": str,
                    "startNodeId": str,
                    "endNodeId": str,
                    "vehicleTypeEdgeProperties": [{"vehicleTypeId": str, "maxSpeed?": float}],
                }
            ],
            "stations": [{"stationId": str, "interactionNodeIds": [str]}],
        }
    ],
}


class LayoutError(GpuPlannersError):
    """A layout or a set of zones cannot be used; the text names the file, the element and what is allowed."""


Tile = tuple[int, int]


@dataclass
class Layout:
    """grid: tiles, 4-connected; map_id: of orders and states
    names: {tile: nodeId} of tiles that have names of their own; others are called row_column
    forbidden: (rows, cols, 4) bool, moves to the east, south, west, north that nobody may make; None: all may be made
    costs: (rows, cols, 4) uint8 of moves, in units of `guidance.UNIT`; None: what suits the map
    speeds: {tile: m/s} that nobody may exceed there; stations: {stationId: tile}
    no_stopping: tiles where nobody may stop
    """

    grid: GridMap
    map_id: str = "map"
    names: dict[Tile, str] = field(default_factory=dict)
    forbidden: np.ndarray | None = None
    costs: np.ndarray | None = None
    speeds: dict[Tile, float] = field(default_factory=dict)
    stations: dict[str, Tile] = field(default_factory=dict)
    no_stopping: set[Tile] = field(default_factory=set)

    def __post_init__(self):
        self._tiles = {name: tile for tile, name in self.names.items()}

    def name(self, tile: Any) -> str:
        row, col = map(int, tile)
        return self.names.get((row, col)) or f"{row}_{col}"

    def tile(self, name: str) -> Tile | None:
        """The tile of a node or a station; None for one that is not there."""
        if name in self._tiles:
            return self._tiles[name]
        if name in self.stations:
            return self.stations[name]
        row, _, col = name.partition("_")
        if not (row.isdecimal() and col.isdecimal() and len(name) < 20):
            return None
        tile = int(row), int(col)
        inside = tile[0] < self.grid.rows and tile[1] < self.grid.cols
        return tile if inside and tile not in self.names else None

    def point(self, tile: Any) -> tuple[float, float]:
        """Metres in the map's frame."""
        x, y = self.grid.centres_of(np.array([tile]))[0, :2].tolist()
        return x, y

    def guidance(self) -> Guidance | None:
        """What moves cost, where that is not left to the fleet, and which ones nobody may make."""
        if self.costs is None and self.forbidden is None:
            return None
        costs = one_way(self.grid, UNIT).moves.copy() if self.costs is None else self.costs.copy()
        return Guidance(costs, UNIT, 1, self.forbidden)

    def lanes(self) -> Lanes | None:
        guidance = self.guidance()
        return None if guidance is None else Lanes(guidance, self.forbidden)

    def zones(self) -> Zones:
        """Where nobody may stop, or go fast."""
        closed, speeds = np.zeros(self.grid.shape, bool), np.full(self.grid.shape, np.inf)
        for tile in self.no_stopping:
            closed[tile] = True
        for tile, speed in self.speeds.items():
            speeds[tile] = speed
        return Zones(closed, speeds)

    def speed(self, one: Tile, other: Tile) -> float | None:
        """m/s that a vehicle may go from one tile to the next; None: no limit"""
        found = [self.speeds[tile] for tile in (one, other) if tile in self.speeds]
        return min(found) if found else None


def read_lif(path: str | os.PathLike, layout_id: str = "") -> Layout:
    """The layout of a file, by its id where there are several. Raises LayoutError that names the file."""
    where = f"LIF {shown(str(path))}"
    try:
        content = checked(read_json(path, "LIF", LayoutError, MOST_BYTES), _LIF)
        layouts = {layout["layoutId"]: layout for layout in content["layouts"]}
        if layout_id not in layouts and (layout_id or len(layouts) != 1):
            raise LayoutError(f"has the layouts {', '.join(layouts) or 'none'}; allowed: one of them, by its id")
        return _layout_of(layouts[layout_id or next(iter(layouts))])
    except (ValueError, MessageError) as error:
        if isinstance(error, LayoutError) and str(error).startswith("LIF "):
            raise
        raise LayoutError(f"{where}: {error}") from error


def _layout_of(content):
    nodes = {node["nodeId"]: node for node in content["nodes"]}
    if not nodes:
        raise LayoutError("has no nodes")
    points = {name: (node["nodePosition"]["x"], node["nodePosition"]["y"]) for name, node in nodes.items()}
    maps = {node.get("mapId") or content["layoutId"] for node in nodes.values()}
    if len(maps) > 1:
        raise LayoutError(f"its nodes are on the maps {', '.join(sorted(maps))}; allowed: one map")
    edges = [(edge["edgeId"], edge["startNodeId"], edge["endNodeId"], edge) for edge in content["edges"]]
    for name, start, end, _ in edges:
        if start not in nodes or end not in nodes or start == end:
            raise LayoutError(f"edge {name!r} goes from {start!r} to {end!r}; allowed: two nodes of the layout")
    size, yaw, corner, places = _raster(points, edges)
    joined, names, speeds = {}, {place: name for name, place in places.items()}, {}
    if len(names) < len(places):
        twice = next(name for name, place in places.items() if names[place] != name)
        raise LayoutError(f"nodes {twice!r} and {names[places[twice]]!r} are in one place; allowed: one there")
    for name, start, end, edge in edges:
        way = _straight(name, places[start], places[end])
        if len(joined) + len(way) > MOST_MOVES:
            raise LayoutError(f"has edges over more than {MOST_MOVES} tiles of {size:g} m")
        limits = [kind["maxSpeed"] for kind in edge["vehicleTypeEdgeProperties"] if kind.get("maxSpeed")]
        for one, other in zip(way, way[1:]):
            joined[one, other] = name
            for tile in (one, other):
                if limits:
                    speeds[tile] = min(*limits, speeds.get(tile, math.inf), math.inf)
    tiles = np.array([*names, *(tile for pair in joined for tile in pair)])
    rows, cols = (tiles.max(axis=0) + 1).tolist()
    if rows * cols > MOST_TILES:
        raise LayoutError(f"spans {rows} x {cols} tiles of {size:g} m; allowed: {MOST_TILES} together")
    free = np.zeros((rows, cols), np.uint8)
    free[tuple(tiles.T)] = 1
    forbidden = np.zeros((rows, cols, 4), bool)
    for row, col in np.argwhere(free).tolist():
        for way, (down, right) in enumerate(zip(ROWS_AHEAD, COLS_AHEAD)):
            other = row + down, col + right
            there = 0 <= other[0] < rows and 0 <= other[1] < cols and free[other]
            forbidden[row, col, way] = there and ((row, col), other) not in joined
    x, y = corner
    grid = GridMap(free, 4, size, (x, y, yaw))
    stations = {
        station["stationId"]: places[station["interactionNodeIds"][0]]
        for station in content["stations"]
        if station["interactionNodeIds"] and station["interactionNodeIds"][0] in places
    }
    return Layout(grid, maps.pop(), names, forbidden if forbidden.any() else None, None, speeds, stations)


def _raster(points, edges):
    """-> size of a tile, yaw, (x, y) of the corner, {nodeId: tile}. Raises LayoutError for nodes on no raster."""
    if not edges:
        raise LayoutError("has no edges; allowed: two nodes that an edge joins at least")
    at = np.array([complex(*point) for point in points.values()])  # x + iy; in tiles: column + i row
    number = {name: k for k, name in enumerate(points)}
    steps = np.array([at[number[end]] - at[number[start]] for _, start, end, _ in edges])
    lengths = np.abs(steps)
    if lengths.min() <= 0:
        raise LayoutError(f"edge {edges[int(lengths.argmin())][0]!r} has no length")
    shortest = lengths < NEARLY * lengths.min()
    side = lengths[shortest].mean() * np.exp(0.25j * np.angle(((steps / lengths) ** 4).sum()))  # and its direction
    tiles = _whole((at - at[0]) / side)
    rough = _off((at - at[0]) / side - tiles)
    if np.abs(tiles - tiles.mean()).max() > 0:  # by all nodes, so that small errors do not add up
        off = tiles - tiles.mean()
        side = (off.conj() * (at - at.mean())).sum() / (np.abs(off) ** 2).sum()
    origin, size = at.mean() - side * tiles.mean(), float(abs(side))
    if _off((at - origin) / side - tiles).max() > OFF:
        worst = int(rough.argmax())
        raise LayoutError(
            f"node {[*points][worst]!r} at ({at[worst].real:g}, {at[worst].imag:g}) is on no raster of the shortest "
            f"edges, {lengths.min():g} m; allowed: whole steps of it along its directions, give or take {OFF:g}"
        )
    low = complex(tiles.real.min(), tiles.imag.min())
    tiles = tiles - low
    if max(tiles.real.max(), tiles.imag.max()) >= MOST_SIDE:
        raise LayoutError(f"spans more than {MOST_SIDE} tiles of {size:g} m")
    corner = origin + side * (low - 0.5 - 0.5j)
    places = {name: (int(tile.imag), int(tile.real)) for name, tile in zip(points, tiles)}
    return size, float(np.angle(side)), (corner.real, corner.imag), places


def _off(tiles):
    return np.maximum(np.abs(tiles.real), np.abs(tiles.imag))


def _whole(tiles):
    return np.rint(tiles.real) + 1j * np.rint(tiles.imag)


def _straight(name, start, end):
    """The tiles from one to another in a row or a column."""
    steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]))
    if start[0] != end[0] and start[1] != end[1]:
        raise LayoutError(f"edge {name!r} is not along a row or a column of the raster; allowed: straight edges")
    return [
        (start[0] + k * (end[0] - start[0]) // steps, start[1] + k * (end[1] - start[1]) // steps)
        for k in range(steps + 1)
    ]


def write_lif(path: str | os.PathLike, layout: Layout) -> None:
    """Write a layout as LIF: a node for each free tile, an edge for each move that may be made."""
    free, nodes, edges = layout.grid.costs > 0, [], []
    for row, col in np.argwhere(free).tolist():
        name, (x, y) = layout.name((row, col)), layout.point((row, col))
        kinds = [{"vehicleTypeId": ANY, "actions": []}]
        position = {"x": round(x, 6), "y": round(y, 6)}
        nodes.append(
            {"nodeId": name, "mapId": layout.map_id, "nodePosition": position, "vehicleTypeNodeProperties": kinds}
        )
        for way, (down, right) in enumerate(zip(ROWS_AHEAD, COLS_AHEAD)):
            other = row + down, col + right
            inside = 0 <= other[0] < layout.grid.rows and 0 <= other[1] < layout.grid.cols
            barred = layout.forbidden is not None and layout.forbidden[row, col, way]
            if inside and free[other] and not barred:
                speed, end = layout.speed((row, col), other), layout.name(other)
                limit = {} if speed is None else {"maxSpeed": speed}
                kinds = [{"vehicleTypeId": ANY, "rotationAllowed": True, **limit}]
                edges.append(
                    {
                        "edgeId": f"{name}:{end}",
                        "startNodeId": name,
                        "endNodeId": end,
                        "vehicleTypeEdgeProperties": kinds,
                    }
                )
    content = {
        "metaInformation": {
            "projectIdentification": layout.map_id,
            "creator": "gpu_planners",
            "exportTimestamp": timestamp(),
            "lifVersion": LIF_VERSION,
        },
        "layouts": [
            {
                "layoutId": layout.map_id,
                "layoutVersion": "1",
                "nodes": nodes,
                "edges": edges,
                "stations": [
                    {"stationId": name, "interactionNodeIds": [layout.name(tile)]}
                    for name, tile in layout.stations.items()
                ],
            }
        ],
    }
    write_whole(Path(path).expanduser(), json.dumps(content, indent=1).encode())


def read_doors(path: str | os.PathLike, layout: Layout) -> dict[str, list[Tile]]:
    """Doors of a JSON file, [{doorId, nodes: [...]}] -> {doorId: tiles}. Raises LayoutError that names the file."""
    where = f"doors {shown(str(path))}"
    try:
        content = read_json(path, "doors", LayoutError, MOST_BYTES)
        every = checked(content, [{"doorId": str, "nodes": [str]}])
    except MessageError as error:
        raise LayoutError(f"{where}: {error}") from error
    found: dict[str, list[Tile]] = {}
    for one in every:
        tiles = [layout.tile(node) for node in one["nodes"]]
        if None in tiles or one["doorId"] in found:
            bad = one["nodes"][tiles.index(None)] if None in tiles else one["doorId"]
            raise LayoutError(f"{where}: door {one['doorId']!r}: {bad!r}; allowed: nodes of the layout, each door once")
        found[one["doorId"]] = [tile for tile in tiles if tile is not None]
    return found
