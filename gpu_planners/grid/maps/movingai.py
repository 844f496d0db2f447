"""MovingAI's benchmark files: .map and .scen (Sturtevant, Benchmarks for Grid-Based Pathfinding, 2012).

Ground agents, as the published lengths have it: '.' and 'G' are free, 'S' (swamp) is entered from the ground and free
too; '@', 'O' and 'T' are blocked, and so is 'W' (water), which only is entered from water. In the maps of the League of
Robot Runners 'E' (emitter) and 'S' (service point) are free. Row 0 is the first line of the map.
"""

import os
import re
from dataclasses import dataclass

import numpy as np

from ...errors import GridMapError
from ...files import file_path, read_file
from .grid_map import GridMap

HEADER = "type octile", "height N", "width N", "map"  # the first lines of a map; some leave out the first
TERRAIN = {**dict.fromkeys(b".GSE", 1), **dict.fromkeys(b"@OTW", 0)}
NO_TERRAIN = 255
MOST = np.iinfo(np.int32).max  # of a whole number in a .scen file
MOST_BYTES = 2**29  # of a file: a map of 16384 x 16384 has half of it
FILES_DIAGONAL = 1.41421356  # what a diagonal step adds to the lengths in the files
COST_OF_LETTER = np.array([TERRAIN.get(letter, NO_TERRAIN) for letter in range(256)], np.uint8)


@dataclass(frozen=True, eq=False)
class Scenarios:
    """Queries of one .scen file.

    map_name: as the file gives it;  map_shape: (rows, cols)
    buckets: (N,) int32
    starts, goals: (N, 2) int32 [row, col] (the file has x, y)
    lengths: (N,) float64 of a shortest path, tile lengths, 8-connected without cutting corners
    precisions: (N,) float64: how far a length may be off, by how it is printed and was added up
    """

    map_name: str
    map_shape: tuple[int, int]
    buckets: np.ndarray
    starts: np.ndarray
    goals: np.ndarray
    lengths: np.ndarray
    precisions: np.ndarray

    def __len__(self):
        return len(self.lengths)


def load_movingai_map(path: str | os.PathLike, connectivity: int = 8) -> GridMap:
    """.map file -> GridMap with cost 1 on free tiles. GridMapError names the file and line of what is wrong."""
    path, lines = _lines(path)
    sizes: list[int] = []
    header = HEADER[1:] if lines and lines[0].split()[:1] == [b"height"] else HEADER
    for number, expected in enumerate(header, 1):
        line = lines[number - 1] if number <= len(lines) else b""
        found = re.fullmatch(expected.replace(" ", r"\s+").replace("N", r"0*([1-9]\d{0,8})").encode(), line.strip())
        if not found:
            which = ", N a whole number above 0 of at most 9 digits" if "N" in expected else ""
            raise GridMapError(f"{path}, line {number}: {_shown(line)}; allowed: '{expected}'{which}")
        sizes += map(int, found.groups())
    rows, cols = sizes
    body = lines[len(header) :]
    while len(body) > rows and not body[-1].strip():
        body.pop()
    if len(body) != rows:
        raise GridMapError(f"{path}: {len(body)} lines below 'map'; allowed: the {rows} of its height")
    for i, line in enumerate(body):
        if len(line) != cols:
            raise GridMapError(
                f"{path}, line {len(header) + 1 + i}: {len(line)} tiles; allowed: the {cols} of its width"
            )
    costs = COST_OF_LETTER[np.frombuffer(b"".join(body), np.uint8)].reshape(rows, cols)
    if (costs == NO_TERRAIN).any():
        row, col = np.unravel_index(np.argmax(costs == NO_TERRAIN), costs.shape)
        letter = _shown(body[row][col : col + 1])
        raise GridMapError(
            f"{path}, line {len(header) + 1 + row}: tile {col} is {letter}; allowed: E . G S free, @ O T W blocked"
        )
    return GridMap(costs, connectivity)


def load_movingai_scen(path: str | os.PathLike) -> Scenarios:
    """.scen file -> Scenarios. GridMapError names the file and line of what is wrong."""
    path, lines = _lines(path)
    if not lines or lines[0].split()[:1] != [b"version"]:
        raise GridMapError(f"{path}, line 1: {_shown(lines[0] if lines else b'')}; allowed: 'version 1'")
    rows, printed, first = [], [], None
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        words = line.split(b"\t") if b"\t" in line else line.split()
        try:
            bucket, name, *sizes, length = words
            values = [int(bucket), *map(int, sizes), float(length)]
            if len(values) != 8 or not 0 <= values[-1] < np.inf or max(map(abs, values[:-1])) > MOST:
                raise ValueError
        except ValueError:
            raise GridMapError(
                f"{path}, line {number}: {_shown(line)}; "
                "allowed: bucket, map, width, height, start x, y, goal x, y, length"
            ) from None
        first = first or (name, *values[1:3])
        if (name, *values[1:3]) != first:
            raise GridMapError(
                f"{path}, line {number}: another map or size than the lines before; allowed: one map a file"
            )
        width, height, start_x, start_y, goal_x, goal_y = values[1:7]
        if not (0 <= start_x < width and 0 <= goal_x < width and 0 <= start_y < height and 0 <= goal_y < height):
            raise GridMapError(
                f"{path}, line {number}: start or goal outside of the map; "
                f"allowed: x 0 .. {width - 1}, y 0 .. {height - 1}"
            )
        rows.append(values)
        printed.append(length)
    if first is None:
        raise GridMapError(f"{path}: no scenario; allowed: one a line")
    table, lengths = np.array([row[:7] for row in rows], np.int32), np.array([row[7] for row in rows])
    name, shape = first[0].decode(errors="replace"), (int(first[2]), int(first[1]))
    starts, goals = table[:, [4, 3]], table[:, [6, 5]]
    return Scenarios(name, shape, table[:, 0], starts, goals, lengths, _precisions(printed, lengths))


def _precisions(printed, lengths):
    """How far lengths may be off.

    By half a unit of the last digit (a fixed number of decimals, or at least 6 digits without trailing zeros), and by
    what was lost before: a diagonal step is added as FILES_DIAGONAL there.
    """
    added = (2**0.5 - FILES_DIAGONAL) / 2**0.5 * lengths
    decimals = [len(text.strip().partition(b".")[2]) for text in printed]
    if min(decimals) == max(decimals) > 0:
        return 0.5 * 10.0 ** -decimals[0] + added
    digits = max(6, *(len(text.strip().replace(b".", b"").lstrip(b"0")) for text in printed))
    whole = np.floor(np.log10(np.maximum(lengths, 1))).astype(int) + 1
    return 0.5 * 10.0 ** (whole - digits) + added


def _lines(path):
    path = file_path(path, "a file of MovingAI", GridMapError)
    return path, read_file(path, "MovingAI's file", GridMapError, MOST_BYTES).splitlines()


def _shown(line):
    return repr(line[:60].decode(errors="replace"))
