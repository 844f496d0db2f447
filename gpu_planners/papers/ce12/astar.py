"""The A* that [CE12] compares with is production's, `grid.astar`."""

from ...grid.astar import Astar as Astar
from ...grid.astar import Settings as Settings
