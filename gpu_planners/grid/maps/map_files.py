"""Maps of ROS's map_server: a YAML file beside a picture (PGM, PNG, or what else Pillow reads).

The meaning of each field follows nav2_map_server's map_io: trinary (opacity counts as a fourth channel), scale (what is
not opaque is unknown) and raw. The picture's lowest line is row 0 of the map.
"""

import os
import sys
from pathlib import Path

import numpy as np
import yaml

from ...arguments import checked
from ...errors import GridMapError, shown
from ...files import file_path, read_yaml, regular_file
from .grid_map import GridMap

MODES = ("trinary", "scale", "raw")
UNKNOWN, FREE, OCCUPIED = -1, 0, 100  # values of an OccupancyGrid
MOST_YAML_BYTES = 64 * 2**10  # map_saver writes 200
MOST_PICTURE_BYTES = 2**31
MOST_PIXELS = 2**28  # of a picture: 16384 x 16384
STRIP = 2**22  # tiles that are converted at a time
RAW_COSTS = 100  # costs that a raw picture holds: pixels 0 .. 99 for 1 .. 100, pixel 100 is blocked
FREE_PIXEL, OCCUPIED_PIXEL = 254, 0  # as map_saver writes them
THRESHOLDS = {"occupied_thresh": 0.65, "free_thresh": 0.25}  # likewise


def load_map_yaml(path: str | os.PathLike, connectivity: int = 8, **occupancy) -> GridMap:
    """Read a map.

    occupancy: how values become costs (unknown, occupied_from, free_below, highest_cost): GridMap.from_occupancy
    """
    data, resolution, origin = read_map_yaml(path)
    return GridMap.from_occupancy(data, resolution, origin, connectivity, **occupancy)


def read_map_yaml(path: str | os.PathLike) -> tuple[np.ndarray, float, tuple[float, float, float]]:
    """Read a map as an OccupancyGrid has it.

    -> data (rows, cols) int8, -1 .. 100, row 0 the lowest y; resolution in metres; origin (x, y, yaw)
    """
    path = file_path(path, "a map", GridMapError)
    fields = read_yaml(path, "map", GridMapError, MOST_YAML_BYTES)
    if not isinstance(fields, dict):
        raise GridMapError(f"{path} holds {type(fields).__name__}; allowed: the fields of map_server")
    fields = {"mode": "trinary"} | fields
    image, resolution, origin, negate, mode, occupied, free = (_field(path, fields, name) for name in FIELDS)
    if mode != "raw" and free >= occupied:
        raise GridMapError(f"{path}: free_thresh is {free!r}; allowed: below occupied_thresh, {occupied!r}")
    pixels, full = _read_picture(path.parent / image, path)
    data = np.empty(pixels.shape[:2], np.int8)
    rows = max(1, STRIP // data.shape[1])
    for row in range(0, len(data), rows):
        data[row : row + rows] = _occupancy(pixels[row : row + rows], full, mode, bool(negate), occupied, free)
    return np.ascontiguousarray(data[::-1]), float(resolution), (float(origin[0]), float(origin[1]), float(origin[2]))


@checked(GridMapError)
def save_map_yaml(path: str | os.PathLike, grid: GridMap, picture: str = ".png") -> Path:
    """Write a GridMap as YAML with a picture beside it. Returns the picture's Path.

    picture: ".png" or ".pgm". A map of costs 0 and 1 is trinary. Costs up to 100 are raw; load_map_yaml gives them back
    with occupied_from=100, highest_cost=100.
    """
    from PIL import Image

    path = file_path(path, "a map", GridMapError)
    if not path.name:
        raise GridMapError(f"a map cannot be written to {shown(str(path))}; allowed: the name of a file")
    if picture not in (".png", ".pgm"):
        raise GridMapError(f"picture is {shown(picture)}; allowed: '.png' or '.pgm'")
    highest = int(grid.costs.max())
    if highest > RAW_COSTS:
        raise GridMapError(f"the map has the cost {highest}; allowed in a map_server file: 0 .. {RAW_COSTS}")
    if highest <= 1:
        mode, pixels = "trinary", np.where(grid.blocked, OCCUPIED_PIXEL, FREE_PIXEL)
    else:
        mode, pixels = "raw", np.where(grid.blocked, OCCUPIED, grid.costs.astype(int) - 1)
    file = path.with_suffix(picture)
    Image.fromarray(np.ascontiguousarray(pixels[::-1].astype(np.uint8))).save(file)
    fields = {"image": file.name, "mode": mode, "resolution": grid.resolution, "origin": list(grid.origin), "negate": 0}
    path.write_text(yaml.safe_dump(fields | THRESHOLDS, sort_keys=False), encoding="utf-8")
    return file


def _finite(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _is_share(value):
    return _finite(value) and 0 <= value <= 1


def _is_pose(value):
    return isinstance(value, list) and len(value) == 3 and all(map(_finite, value))


FIELDS = {  # in the order in which they are looked at: is a value good? What is allowed?
    "image": (lambda value: isinstance(value, str) and value, "the picture's file name"),
    "resolution": (lambda value: _finite(value) and value > 0, "metres a tile, above 0"),
    "origin": (_is_pose, "[x, y, yaw], three finite numbers"),
    "negate": (lambda value: isinstance(value, (int, float)) and value in (0, 1), "0 or 1"),
    "mode": (lambda value: isinstance(value, str) and value in MODES, ", ".join(MODES)),
    "occupied_thresh": (_is_share, "0 .. 1"),
    "free_thresh": (_is_share, "0 .. 1"),
}


def _field(path, fields, name):
    good, allowed = FIELDS[name]
    if name not in fields:
        raise GridMapError(f"{path}: {name} is missing; allowed: {allowed}")
    if not good(fields[name]):
        raise GridMapError(f"{path}: {name} is {shown(fields[name])}; allowed: {allowed}")
    return fields[name]


def _read_picture(file, path):
    """-> (rows, cols, channels) pixels: grey, grey and opacity, RGB or RGBA; and the value of full scale."""
    from PIL import Image

    file = regular_file(file, f"{path}: image", GridMapError, MOST_PICTURE_BYTES)
    limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None  # a map of 16384 x 16384 is no attack
    try:
        with Image.open(file) as image:
            if image.width * image.height > MOST_PIXELS:
                raise ValueError(f"it has {image.width} x {image.height} pixels; allowed: {MOST_PIXELS}")
            deep = image.mode.startswith("I") or image.mode == "F"
            if not deep and image.mode not in ("L", "LA", "RGB", "RGBA"):
                see_through = "transparency" in image.info or image.mode.endswith(("A", "a"))
                image = image.convert("RGBA" if see_through else "L" if image.mode == "1" else "RGB")
            pixels = np.asarray(image)
    except Exception as error:  # Pillow's readers raise all kinds of errors for malformed files
        raise GridMapError(f"{path}: image '{file}' cannot be read: {error}") from error
    finally:
        Image.MAX_IMAGE_PIXELS = limit
    return pixels.reshape(*pixels.shape[:2], -1), 65535 if deep else 255


def _occupancy(pixels, full, mode, negate, occupied, free):
    """(rows, cols) int8: the channels' sum, an integer, selects from a table of values."""
    opacity = pixels[..., -1] if pixels.shape[2] in (2, 4) else None
    colours = 3 if pixels.shape[2] > 2 else 1  # grey stands for three equal channels
    total = np.zeros(pixels.shape[:2], np.int32)
    for channel in range(colours):
        total += pixels[..., channel].astype(np.int32) * (3 // colours)
    channels = 3
    if mode == "trinary" and opacity is not None:
        total, channels = total + opacity, 4
    shade = np.arange(channels * full + 1) / channels / full
    values = _values(shade, mode, negate, occupied, free)[total]
    if mode == "scale" and opacity is not None:
        values[opacity != full] = UNKNOWN
    return values


def _values(shade, mode, negate, occupied, free):
    """Occupancy of a shade 0 (black) .. 1 -> int8"""
    if mode == "raw":
        value = np.floor(shade * 255 + 0.5)
        return np.where(value <= OCCUPIED, value, UNKNOWN).astype(np.int8)
    occupancy = shade if negate else 1 - shade
    between = UNKNOWN if mode == "trinary" else np.rint((occupancy - free) / (occupied - free) * OCCUPIED)
    return np.select([occupied < occupancy, occupancy < free], [OCCUPIED, FREE], between).astype(np.int8)
