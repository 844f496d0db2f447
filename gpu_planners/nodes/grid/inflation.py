"""Costs about obstacles, which fall off with the distance as in the inflation layer of nav2_costmap_2d."""

import math

import numpy as np
from scipy.ndimage import distance_transform_edt

from ...grid import GridMap
from ..common.map_kinds import HIGHEST


def inflation_cells(radius: float, resolution: float) -> int:
    """How many cells far costs reach: the layer rounds up. radius: metres; resolution: metres a cell"""
    return math.ceil(radius / resolution)


def nav2_inflation(distance: np.ndarray, inscribed: float, scaling: float) -> np.ndarray:
    """Nav2's costs (uint8, up to 252) at distances (metres) from obstacles, beyond the inscribed radius (metres).

    scaling: the layer's cost_scaling_factor, 1 / metres
    """
    with np.errstate(under="ignore"):
        return (HIGHEST * np.exp(-scaling * np.maximum(distance - inscribed, 0))).astype(np.uint8)


def inflated(grid: GridMap, footprint: float, radius: float, scaling: float, table: np.ndarray) -> GridMap:
    """A map with tiles nearer than `footprint` to a blocked one blocked, and those up to `radius` from it dearer.

    A free tile costs what the map says or what its cost of inflation amounts to, whichever is more.

    footprint, radius: metres between tiles' centres; scaling: as of nav2_inflation; table: as of cost_table
    """
    blocked = grid.inflated(footprint)
    if not radius:
        return blocked
    added = np.full(grid.shape, table[0])
    if grid.blocked.any():
        distance = distance_transform_edt(~grid.blocked)
        near = distance <= inflation_cells(radius, grid.resolution)
        added[near] = table[nav2_inflation(distance[near] * grid.resolution, footprint, scaling)]
    costs = np.where(blocked.costs > 0, np.maximum(blocked.costs, added), np.uint8(0))
    return GridMap(costs, grid.connectivity, grid.resolution, grid.origin)
