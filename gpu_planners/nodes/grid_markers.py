"""What RViz shows of many paths: one LINE_LIST, in which straight runs of tiles are one line each."""

import numpy as np
from geometry_msgs.msg import Point
from rclpy.serialization import serialize_message
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

PATH_COLOUR = ColorRGBA(r=0.13, g=0.45, b=0.85, a=0.8)
SAMPLE = np.array([-1.25e-300, 3.75e300, -7.5e-301])  # no other field of a marker has these bytes


def path_lines(grid, paths, most_agents):
    """(2 R, 2) metres: both ends of each line of the paths of at most so many agents, spread evenly over those that have one."""
    solved = np.flatnonzero(paths.solved & (paths.length > 0))
    shown = solved[np.linspace(0, len(solved) - 1, min(most_agents, len(solved))).astype(int)] if len(solved) else solved
    return grid.centres_of(straight_runs(*paths.paths(shown)).reshape(-1, 2))


def paths_markers(lines, header, width):
    """visualization_msgs/MarkerArray of path_lines, serialized as it is sent. width: metres

    The points are put between the bytes of a marker with one: as Python objects they would hold up planning, for a quarter of
    a second in a hundred thousand.
    """
    marker = Marker(header=header, ns="paths", id=0, type=Marker.LINE_LIST, color=PATH_COLOUR)
    marker.scale.x = width
    marker.pose.orientation.w = 1.0
    marker.action = Marker.ADD if len(lines) else Marker.DELETE
    without = serialize_message(MarkerArray(markers=[marker]))
    if not len(lines):
        return without
    marker.points = [Point(x=SAMPLE[0], y=SAMPLE[1], z=SAMPLE[2])]
    data = serialize_message(MarkerArray(markers=[marker]))
    first = data.index(SAMPLE.tobytes())
    count = first - 4 - (len(data) - len(without) - SAMPLE.nbytes)  # CDR: 4 bytes, then what aligns the first point to 8
    points = np.zeros((len(lines), 3))
    points[:, :2] = lines
    return data[:count] + np.uint32(len(points)).tobytes() + data[count + 4 : first] + points.tobytes() + data[first + SAMPLE.nbytes :]


def straight_runs(tiles, offsets):
    """(R, 2, 2) first and last tile of every straight run. tiles (T, 2), offsets (N + 1,): as PathSet.paths gives them"""
    if len(tiles) < 2:
        return np.empty((0, 2, 2), np.int32)
    moves = np.diff(tiles, axis=0)
    joins = np.ones(len(moves), bool)  # is the pair (k, k + 1) of one path?
    ends = offsets[1:-1]
    joins[ends[(ends > 0) & (ends < len(tiles))] - 1] = False
    turns = np.ones(len(moves), bool)  # is the move at k none that goes on with the one before?
    turns[1:] = (moves[1:] != moves[:-1]).any(axis=1) | (joins[1:] != joins[:-1])
    begins = np.flatnonzero(turns & joins)
    last = np.ones(len(moves), bool)  # does a run end at k + 1?
    last[:-1] = turns[1:]
    return np.stack([tiles[begins], tiles[np.flatnonzero(last & joins) + 1]], axis=1)
