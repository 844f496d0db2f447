"""Zones of VDA 5050 3.0 on a layout: closed tiles, lanes, costs and speeds; and zones of our own where nobody may stop.

A zone that goes by a vehicle's contour holds each tile that it overlaps; one that goes by the kinematic centre, each
tile whose centre is in it.
"""

import math
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import shown
from ..files import read_json
from ..fleet.guidance import AGAINST, MOST_COST, UNIT
from ..fleet.motion import COLS_AHEAD, ROWS_AHEAD, values_ahead
from ..grid.maps.grid_map import GridMap
from .layout import MOST_BYTES, Layout, LayoutError, Tile
from .messages import MessageError, action_rule, checked
from .versions import VERSIONS

MOST_CORNERS = 1000  # of a zone: each is looked at beside each tile
OWN = "NO_STOPPING"  # is not the standard's: vehicles are not told of it, orders go by it
CONTOUR = ("BLOCKED", "LINE_GUIDED", "RELEASE", "COORDINATED_REPLANNING", "SPEED_LIMIT", "ACTION", OWN)
KINDS = (*CONTOUR, "PRIORITY", "PENALTY", "DIRECTED", "BIDIRECTED")
_ACTIONS = [action_rule(VERSIONS["3.0"])]
_MORE = {
    "SPEED_LIMIT": {"maximumSpeed": float},
    "ACTION": {"entryActions": _ACTIONS, "duringActions": _ACTIONS, "exitActions": _ACTIONS},
    "PRIORITY": {"priorityFactor": float},
    "PENALTY": {"penaltyFactor": float},
    "DIRECTED": {"direction": float},
    "BIDIRECTED": {"direction": float},
}
_SET = {
    "mapId": str,
    "zoneSetId": str,
    "zones": [{"zoneId": str, "zoneType": KINDS, "vertices": [{"x": float, "y": float}]}],
}


@dataclass
class ZoneSet:
    """given: the zoneSet as it was read; content: as vehicles get it
    kinds: {zoneId: zoneType}; tiles: {zoneId: the tiles that are in it}, of what vehicles get
    """

    given: dict[str, Any]
    content: dict[str, Any]
    kinds: dict[str, str]
    tiles: dict[str, set[Tile]]

    @property
    def id(self) -> str:
        return self.content["zoneSetId"]


def read_zones(path: str | os.PathLike, layout: Layout) -> tuple[ZoneSet, Layout]:
    """The zone set of a file, as the topic zoneSet has it or its field `zoneSet` alone, and the layout that goes by it;
    that of a layout whose map_id is empty may be of any map. Raises LayoutError that names the file and the zone."""
    found = read_json(path, "zones", LayoutError, MOST_BYTES)
    try:
        content = checked(found, {})
        return with_zones(content.get("zoneSet") or content, layout)
    except (ValueError, MessageError) as error:
        raise LayoutError(f"zones {shown(str(path))}: {error}") from error


def zoned(path: str | os.PathLike, grid: GridMap) -> Layout:
    """The layout of a map that goes by the zone set of a file; "": by none. Raises LayoutError."""
    return read_zones(path, Layout(grid, map_id=""))[1] if path else Layout(grid)


def with_zones(content: dict[str, Any], layout: Layout) -> tuple[ZoneSet, Layout]:
    """A zone set and the layout that goes by it. Raises LayoutError or MessageError that names the zone."""
    checked(content, _SET)
    if layout.map_id and content["mapId"] != layout.map_id:
        raise LayoutError(f"mapId is {content['mapId']!r}; allowed: {layout.map_id!r}, the layout's")
    free = layout.grid.costs.copy()
    costs = np.full((*free.shape, 4), UNIT, np.uint8) if layout.costs is None else layout.costs.copy()
    forbidden = np.zeros(costs.shape, bool) if layout.forbidden is None else layout.forbidden.copy()
    sent = content | {"zones": [zone for zone in content["zones"] if zone["zoneType"] != OWN]}
    speeds, no_stopping, found = dict(layout.speeds), set(layout.no_stopping), ZoneSet(content, sent, {}, {})
    directed = np.full(free.shape, -1)
    names = set[str]()
    penalty, priority = np.zeros(free.shape), np.full(free.shape, np.inf)
    for k, zone in enumerate(content["zones"]):
        name, kind = zone["zoneId"], zone["zoneType"]
        if name in names:
            raise LayoutError(f"zone {name!r} comes twice; allowed: once")
        names.add(name)
        checked(zone, _MORE.get(kind, {}), f"zone {name!r}")
        tiles = tiles_in(layout.grid, _polygon(zone), by_centre=kind not in CONTOUR)
        at = tuple(tiles.T)
        inside = set(map(tuple, tiles.tolist()))
        if kind == OWN:
            no_stopping |= inside
            continue
        found.kinds[name], found.tiles[name] = kind, inside
        if kind == "BLOCKED":
            free[at] = 0
        elif kind == "SPEED_LIMIT":
            if zone["maximumSpeed"] <= 0:
                raise LayoutError(f"zone {name!r}: maximumSpeed is {zone['maximumSpeed']:g}; allowed: more than 0")
            for tile in found.tiles[name]:
                speeds[tile] = min(zone["maximumSpeed"], speeds.get(tile, math.inf))
        elif kind == "PENALTY":
            penalty[at] = np.maximum(penalty[at], _factor(zone, "penaltyFactor"))
        elif kind == "PRIORITY":
            priority[at] = np.minimum(priority[at], _factor(zone, "priorityFactor"))
        elif kind in ("DIRECTED", "BIDIRECTED"):
            if (directed[at] >= 0).any():
                other = content["zones"][directed[at].max()]["zoneId"]
                raise LayoutError(f"zones {name!r} and {other!r} overlap; allowed: directed zones apart")
            directed[at] = k
            _direct(zone, layout.grid, at, costs, forbidden)
    share = np.where(penalty > 0, penalty, np.where(np.isfinite(priority), -0.5 * priority, 0.0))
    dear = penalty >= 1
    into = np.stack([values_ahead(share, way, 0.0) for way in range(4)], axis=-1)
    dearest = np.stack([values_ahead(dear, way, False) for way in range(4)], axis=-1)
    costs = np.clip(np.rint(costs * (1 + 4 * np.maximum(into, 0) + np.minimum(into, 0))), 1, MOST_COST)
    costs[dearest] = MOST_COST
    grid = GridMap(free, 4, layout.grid.resolution, layout.grid.origin)
    changed = (costs != UNIT).any() or layout.costs is not None
    return found, replace(
        layout,
        grid=grid,
        costs=costs.astype(np.uint8) if changed else None,
        forbidden=forbidden if forbidden.any() else None,
        speeds=speeds,
        no_stopping=no_stopping,
    )


def _factor(zone, name):
    if not 0 <= zone[name] <= 1:
        raise LayoutError(f"zone {zone['zoneId']!r}: {name} is {zone[name]:g}; allowed: 0 .. 1")
    return zone[name]


def _direct(zone, grid, at, costs, forbidden):
    """Moves out of tiles, by a direction that is one of the four of the map."""
    kind = zone["zoneType"]
    allowed = ("SOFT", "RESTRICTED", "STRICT")[: 3 if kind == "DIRECTED" else 2]
    word = "directedLimitation" if kind == "DIRECTED" else "bidirectedLimitation"
    limit = zone.get("limitation") or zone.get(word)  # the schema has the one, the text the other
    if limit not in allowed:
        raise LayoutError(f"zone {zone['zoneId']!r}: limitation is {shown(limit)}; allowed: {', '.join(allowed)}")
    quarters = (zone["direction"] - grid.origin[2]) / (math.pi / 2)
    if abs(quarters - round(quarters)) > 0.25:
        raise LayoutError(
            f"zone {zone['zoneId']!r}: direction is {zone['direction']:g} rad; allowed: along a row or a column of "
            "tiles, give or take an eighth of a turn"
        )
    along = round(quarters) % 4
    back = (along + 2) % 4
    for way in range(4):
        if way == along or (kind == "BIDIRECTED" and way == back):
            continue
        out = (*at, way)
        costs[out] = AGAINST
        if limit == "STRICT" or (limit == "RESTRICTED" and (kind == "BIDIRECTED" or way == back)):
            forbidden[out] = True
            before = np.stack(at, axis=1) - (ROWS_AHEAD[way], COLS_AHEAD[way])  # who comes in moves that way, too
            before = before[((before >= 0) & (before < grid.shape)).all(axis=1)]
            into = (*before.T, way)
            forbidden[into] = True


def _polygon(zone):
    corners = np.array([(corner["x"], corner["y"]) for corner in zone["vertices"]], float)
    if not 3 <= len(corners) <= MOST_CORNERS:
        raise LayoutError(f"zone {zone['zoneId']!r} has {len(corners)} vertices; allowed: 3 .. {MOST_CORNERS}")
    return corners


def tiles_in(grid: GridMap, corners: np.ndarray, by_centre: bool) -> np.ndarray:
    """(K, 2) tiles that a polygon (V, 2), metres, overlaps, or whose centres are in it."""
    places = grid.places_of(corners)  # in tiles: tile (r, c) covers r .. r + 1, c .. c + 1
    low = np.clip(np.floor(places.min(axis=0)), 0, grid.shape).astype(int)
    high = np.clip(np.floor(places.max(axis=0)) + 1, 0, grid.shape).astype(int)
    rows, cols = (np.arange(a, b) for a, b in zip(low, high))
    if not len(rows) or not len(cols):
        return np.zeros((0, 2), np.int64)
    tiles = np.stack(np.meshgrid(rows, cols, indexing="ij"), axis=-1).reshape(-1, 2)
    found = _inside(tiles + 0.5, places)
    if not by_centre:
        ends = np.roll(places, -1, axis=0)
        for one, other in zip(places, ends):
            found |= _meets(tiles, one, other)
    return tiles[found]


def _inside(points, corners):
    """(N,) bool, by how often a ray crosses the edges"""
    inside = np.zeros(len(points), bool)
    for one, other in zip(corners, np.roll(corners, -1, axis=0)):
        between = (one[0] > points[:, 0]) != (other[0] > points[:, 0])
        if between.any():
            at = one[1] + (points[:, 0] - one[0]) * (other[1] - one[1]) / (other[0] - one[0])
            inside ^= between & (points[:, 1] < at)
    return inside


def _meets(tiles, one, other):
    """(N,) bool, does a line meet the inner of a tile? By the separating axes of a square and a line."""
    middle, half = tiles + 0.5, 0.5 - 1e-9
    box = ((np.minimum(one, other) < middle + half) & (np.maximum(one, other) > middle - half)).all(axis=1)
    normal = np.array([other[1] - one[1], one[0] - other[0]])
    return box & (np.abs((middle - one) @ normal) < half * np.abs(normal).sum())
