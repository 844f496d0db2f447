"""Is a path still free? Every tile that its lines pass through counts, not only those that its poses lie in."""

import numpy as np

from ...grid import GridMap

MOST_CROSSINGS = 1_000_000  # of lines with the borders of tiles, looked at together


def unreachable_poses(grid: GridMap, points: np.ndarray) -> np.ndarray:
    """Indices (M,) of the points of a path that lie outside the map or in a blocked tile, or whose line from the point
    before passes through one. points: (K, 2) metres in the map's frame; may hold NaN"""
    places = places_of(grid, points)
    bad = ~free_at(grid, places)
    lines = np.flatnonzero(~bad[:-1] & ~bad[1:])  # lines to and from bad points are bad themselves
    crossings = np.abs(np.diff(np.floor(np.nan_to_num(places)), axis=0)).sum(axis=1)[lines]
    chunk = np.cumsum(crossings + 2) // MOST_CROSSINGS
    blocked = np.zeros(len(points), bool)
    for part in np.split(lines, np.flatnonzero(np.diff(chunk)) + 1):
        blocked[part + 1] = ~_lines_free(grid, places[part], places[part + 1])
    blocked[1:] |= bad[:-1]
    return np.flatnonzero(bad | blocked)


def nearest(points: np.ndarray, place: np.ndarray) -> int:
    """Index of the point (K, 2) next to a place (2,); points that are not finite are far."""
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.hypot(*(points - place).T)
    return int(np.argmin(np.where(np.isfinite(distance), distance, np.inf)))


def places_of(grid: GridMap, points: np.ndarray) -> np.ndarray:
    """(K, 2) points in metres -> [row, col] in tiles, with fractions: tile (0, 0) covers 0 to 1."""
    x, y, yaw = grid.origin
    dx, dy = points[:, 0] - x, points[:, 1] - y
    with np.errstate(invalid="ignore", over="ignore"):
        return (
            np.stack([np.cos(yaw) * dy - np.sin(yaw) * dx, np.cos(yaw) * dx + np.sin(yaw) * dy], axis=1)
            / grid.resolution
        )


def free_at(grid: GridMap, places: np.ndarray) -> np.ndarray:
    """Which places (K, 2) lie in free tiles of the map. -> (K,) bool"""
    with np.errstate(invalid="ignore"):
        inside = np.all((places >= 0) & (places < grid.shape), axis=1)
    free = np.zeros(len(places), bool)
    tiles = places[inside].astype(np.int64)
    free[inside] = grid.costs[tiles[:, 0], tiles[:, 1]] > 0
    return free


def _lines_free(grid, starts, ends):
    """Which lines (L, 2) to (L, 2) between places inside the map pass free tiles only -> (L,) bool

    The borders of tiles cut a line into pieces, each in the tile of its middle.
    """
    fractions, lines = [np.zeros(len(starts)), np.ones(len(starts))], [np.arange(len(starts))] * 2
    for axis in (0, 1):
        low, high = (
            np.floor(edge(starts[:, axis], ends[:, axis])).astype(np.int64) for edge in (np.minimum, np.maximum)
        )
        count = high - low
        line = np.repeat(np.arange(len(starts)), count)
        border = np.repeat(low + 1, count) + np.arange(len(line)) - np.repeat(np.cumsum(count) - count, count)
        fractions.append((border - starts[line, axis]) / (ends[line, axis] - starts[line, axis]))
        lines.append(line)
    fraction, line = np.concatenate(fractions), np.concatenate(lines)
    order = np.lexsort((fraction, line))
    fraction, line = fraction[order], line[order]
    same = line[1:] == line[:-1]
    line, middle = line[1:][same], (0.5 * (fraction[1:] + fraction[:-1]))[same]
    places = starts[line] + middle[:, None] * (ends[line] - starts[line])
    free = np.ones(len(starts), bool)
    free[line[~free_at(grid, places)]] = False
    return free
