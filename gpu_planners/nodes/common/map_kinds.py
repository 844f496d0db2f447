"""The kinds of messages that maps come in: what their cells mean, and how they are read.

nav2_costmap_2d has costs 0 to 252, 253 where a robot's centre would touch an obstacle, 254 on one, 255 unknown. It
publishes them as they are (nav2_msgs/Costmap), and pressed into 0 to 100 (nav_msgs/OccupancyGrid).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from nav_msgs.msg import MapMetaData

from ...errors import GridMapError
from .map_messages import Origin, grid_cells, map_update, occupancy, window_cells

INSCRIBED, UNKNOWN = 253, 255
HIGHEST = 252  # of the costs of tiles that a robot's centre may enter


@dataclass(frozen=True)
class MapKind:
    """map, update: module and name of the messages; costmap: are the cells Nav2's costs?

    read: message -> cells (rows, cols), resolution, origin; read_update: message, shape -> row, column, cells
    """

    map: tuple[str, str]
    update: tuple[str, str]
    costmap: bool
    read: Callable[[Any], tuple[np.ndarray, float, Origin]]
    read_update: Callable[[Any, tuple[int, int]], tuple[int, int, np.ndarray]]


def _read_costmap(message):
    about = message.metadata
    info = MapMetaData(width=about.size_x, height=about.size_y, resolution=about.resolution, origin=about.origin)
    return grid_cells(info, message.data, np.uint8)


def _read_costmap_update(message, shape):
    return window_cells((message.x, message.y, message.size_x, message.size_y), message.data, np.uint8, shape)


def nav2_costs(values: np.ndarray) -> np.ndarray:
    """Nav2's costs uint8 of the values int8 that nav2_costmap_2d publishes as an OccupancyGrid."""
    wrong = (values < -1) | (values > 100)
    if wrong.any():
        raise GridMapError(f"the costmap has the value {values[wrong][0]}; allowed: -1 (unknown), 0 .. 100")
    table = np.zeros(256, np.uint8)
    table[1:99] = 1 + np.rint(251 * np.arange(98) / 97)
    table[99:101], table[255] = (INSCRIBED, INSCRIBED + 1), UNKNOWN
    return table[values.view(np.uint8)]


def _read_pressed(message):
    cells, resolution, origin = occupancy(message)
    return nav2_costs(cells), resolution, origin


def _read_pressed_update(message, shape):
    row, col, cells = map_update(message, shape)
    return row, col, nav2_costs(cells)


OCCUPANCY = ("nav_msgs.msg", "OccupancyGrid"), ("map_msgs.msg", "OccupancyGridUpdate")
RAW = ("nav2_msgs.msg", "Costmap"), ("nav2_msgs.msg", "CostmapUpdate")
MAP_KINDS = {
    "occupancy": MapKind(*OCCUPANCY, False, occupancy, map_update),
    "costmap": MapKind(*OCCUPANCY, True, _read_pressed, _read_pressed_update),
    "costmap_raw": MapKind(*RAW, True, _read_costmap, _read_costmap_update),
}


def cost_table(neutral: int, factor: float, unknown: int) -> np.ndarray:
    """(256,) uint8 tile costs of Nav2's costs: neutral + factor * cost, as in Nav2's NavFn planner, 0 where blocked.

    unknown: cost of unknown tiles, 0 blocked
    """
    costs = np.zeros(256, np.uint8)
    costs[: HIGHEST + 1] = np.clip(np.rint(neutral + factor * np.arange(HIGHEST + 1)), 1, 255)
    costs[UNKNOWN] = unknown
    return costs
