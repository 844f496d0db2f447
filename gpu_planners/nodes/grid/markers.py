"""What RViz shows of many paths: one LINE_LIST, in which straight runs of tiles are one line each."""

import numpy as np
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker

from ...grid import GridMap, PathSet
from ..common.fast_markers import serialized_with_points

PATH_COLOUR = ColorRGBA(r=0.13, g=0.45, b=0.85, a=0.8)


def path_lines(grid: GridMap, paths: PathSet, most_agents: int) -> np.ndarray:
    """(2 R, 2) metres: both ends of each line of the paths of at most so many agents, spread evenly."""
    solved = np.flatnonzero(paths.solved & (paths.length > 0))
    if len(solved):
        solved = solved[np.linspace(0, len(solved) - 1, min(most_agents, len(solved))).astype(int)]
    return grid.centres_of(straight_runs(*paths.paths(solved)).reshape(-1, 2))


def paths_markers(lines: np.ndarray, header: Header, width: float) -> bytes:
    """A serialized visualization_msgs/MarkerArray of path_lines. width: metres"""
    marker = Marker(header=header, ns="paths", id=0, type=Marker.LINE_LIST, color=PATH_COLOUR)
    marker.scale.x = width
    marker.pose.orientation.w = 1.0
    marker.action = Marker.ADD if len(lines) else Marker.DELETE
    return serialized_with_points(marker, np.pad(lines, ((0, 0), (0, 1))))


def straight_runs(tiles: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """(R, 2, 2) first and last tile of every straight run. tiles (T, 2), offsets (N + 1,): of PathSet.paths"""
    if len(tiles) < 2:
        return np.empty((0, 2, 2), np.int32)
    moves = np.diff(tiles, axis=0)
    joins = np.ones(len(moves), bool)  # is the pair (k, k + 1) of one path?
    ends = offsets[1:-1]
    joins[ends[(ends > 0) & (ends < len(tiles))] - 1] = False
    turns = np.ones(len(moves), bool)  # does move k start a new run?
    turns[1:] = (moves[1:] != moves[:-1]).any(axis=1) | (joins[1:] != joins[:-1])
    begins = np.flatnonzero(turns & joins)
    last = np.ones(len(moves), bool)  # does a run end at k + 1?
    last[:-1] = turns[1:]
    return np.stack([tiles[begins], tiles[np.flatnonzero(last & joins) + 1]], axis=1)
