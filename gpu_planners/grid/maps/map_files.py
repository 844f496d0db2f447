"""Maps of ROS's map_server: a YAML file beside a picture (PGM, PNG, BMP, TIFF or JPEG).

The meaning of each field follows nav2_map_server's map_io, which has two sets of rules (RULES). The picture's lowest
line is row 0 of the map. Colours of 16 bits count by their upper 8, greys of 16 bits by all of them.
"""

import os
import re
import sys
from pathlib import Path

import numpy as np
import yaml

from ...arguments import checked
from ...errors import GridMapError, shown
from ...files import PICTURES, file_path, read_yaml, regular_file
from .grid_map import GridMap

SINCE = "nav2_1.3.7"  # rules of Nav2 1.3.7 and later: Jazzy since May 2025, Kilted, Lyrical
BEFORE = "nav2_1.3.6"  # rules of Humble, Iron, older Jazzy
RULES = SINCE, BEFORE
MODES = ("trinary", "scale", "raw")
# values of an OccupancyGrid
UNKNOWN = -1
FREE = 0
OCCUPIED = 100
MOST_YAML_BYTES = 64 * 2**10  # map_saver writes 200
MOST_PICTURE_BYTES = 2**31
MOST_PIXELS = 2**28  # of a picture: 16384 x 16384
DEFLATED = 1032  # bytes that one of deflate's can stand for; Pillow fills up what is missing, to gigabytes
STRIP = 2**22  # tiles that are converted at a time
RAW_COSTS = 100  # costs that a raw picture holds: pixels 0 .. 99 for 1 .. 100, pixel 100 is blocked
# as map_saver writes them
FREE_PIXEL = 254
OCCUPIED_PIXEL = 0
THRESHOLDS = {"occupied_thresh": 0.65, "free_thresh": 0.25}


def load_map_yaml(path: str | os.PathLike, connectivity: int = 8, rules: str = SINCE, **occupancy) -> GridMap:
    """Read a map.

    rules: as for read_map_yaml
    occupancy: how values become costs (unknown, occupied_from, free_below, highest_cost): GridMap.from_occupancy
    """
    data, resolution, origin = read_map_yaml(path, rules)
    return GridMap.from_occupancy(data, resolution, origin, connectivity, **occupancy)


def read_map_yaml(path: str | os.PathLike, rules: str = SINCE) -> tuple[np.ndarray, float, tuple[float, float, float]]:
    """Read a map as an OccupancyGrid has it.

    rules: whose map_server the values are those of. With occupancy 1 - shade, or shade with `negate`:
        "nav2_1.3.7": shade is the luma, in 8 bits; from occupied_thresh on occupied, up to free_thresh free; in modes
            trinary and scale what is not opaque is unknown
        "nav2_1.3.6": shade is the mean of the channels; above occupied_thresh occupied, below free_thresh free; what is
            not opaque is unknown in mode scale, and in mode trinary opacity is a fourth channel of the mean
    -> data (rows, cols) int8, -1 .. 100, row 0 the lowest y; resolution in metres; origin (x, y, yaw)
    """
    if not isinstance(rules, str) or rules not in RULES:
        raise GridMapError(f"rules is {shown(rules)}; allowed: {', '.join(RULES)}")
    path = file_path(path, "a map", GridMapError)
    fields = read_yaml(path, "map", GridMapError, MOST_YAML_BYTES)
    if not isinstance(fields, dict):
        raise GridMapError(f"{path} holds {type(fields).__name__}; allowed: the fields of map_server")
    fields = {"mode": "trinary"} | fields
    image, resolution, origin, negate, mode, occupied, free = (_field(path, fields, name) for name in FIELDS)
    if mode != "raw" and (free > occupied or (mode == "scale" and free == occupied)):
        allowed = f"below occupied_thresh, {occupied!r}{' or equal to it' if mode == 'trinary' else ''}"
        raise GridMapError(f"{path}: free_thresh is {free!r}; allowed: {allowed}")
    pixels, full = _read_picture(path.parent / image, path)
    occupancy = _by_luma if rules == SINCE else _by_mean
    data = np.empty(pixels.shape[:2], np.int8)
    rows = max(1, STRIP // data.shape[1])
    for row in range(0, len(data), rows):
        data[row : row + rows] = occupancy(pixels[row : row + rows], full, mode, negate, occupied, free)
    return np.ascontiguousarray(data[::-1]), resolution, origin


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


NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def _number(value):
    """A finite number, also one in quotes, which map_server reads as well; None: it is none"""
    if isinstance(value, str) and NUMBER.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= sys.float_info.max:
        return None
    return float(value)


def _length(value):
    number = _number(value)
    return number if number is not None and number > 0 else None


def _share(value):
    number = _number(value)
    return number if number is not None and 0 <= number <= 1 else None


def _pose(value):
    numbers = tuple(map(_number, value)) if isinstance(value, list) and len(value) == 3 else (None,)
    return None if None in numbers else numbers


FLAGS = {"1": True, "true": True, "y": True, "0": False, "false": False, "n": False}  # texts that YAML 1.1 leaves texts


def _flag(value):
    if isinstance(value, str):
        return FLAGS.get(value.lower())
    return bool(value) if isinstance(value, (int, float)) and value in (0, 1) else None


def _mode(value):
    return value.lower() if isinstance(value, str) and value.lower() in MODES else None


FIELDS = {  # in the order in which they are looked at: what is a value (None: not allowed), what is allowed?
    "image": (lambda value: value if isinstance(value, str) and value else None, "the picture's file name"),
    "resolution": (_length, "metres a tile, above 0"),
    "origin": (_pose, "[x, y, yaw], three finite numbers"),
    "negate": (_flag, "0 or 1"),
    "mode": (_mode, ", ".join(MODES)),
    "occupied_thresh": (_share, "0 .. 1"),
    "free_thresh": (_share, "0 .. 1"),
}


def _field(path, fields, name):
    read, allowed = FIELDS[name]
    if name not in fields:
        raise GridMapError(f"{path}: {name} is missing; allowed: {allowed}")
    value = read(fields[name])
    if value is None:
        raise GridMapError(f"{path}: {name} is {shown(fields[name])}; allowed: {allowed}")
    return value


def _read_picture(file, path):
    """-> (rows, cols, channels) pixels: grey, grey and opacity, RGB or RGBA; and the value of full scale."""
    from PIL import Image

    file = regular_file(file, f"{path}: image", GridMapError, MOST_PICTURE_BYTES)
    limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None  # a map of 16384 x 16384 is no attack
    try:
        with Image.open(file, formats=PICTURES) as image:
            if image.width * image.height > MOST_PIXELS:
                raise ValueError(f"it has {image.width} x {image.height} pixels; allowed: {MOST_PIXELS}")
            if (
                image.format == "PNG"
                and _png_bits(file) * image.width * image.height > 8 * DEFLATED * file.stat().st_size
            ):
                raise ValueError(f"it is cut off: {image.width} x {image.height} pixels do not fit into so few bytes")
            return _pixels(image, file)
    except Exception as error:  # Pillow's readers raise all kinds of errors for malformed files
        raise GridMapError(f"{path}: image '{file}' cannot be read: {error}") from error
    finally:
        Image.MAX_IMAGE_PIXELS = limit


def _pixels(image, file):
    """As of _read_picture, of an open picture."""
    kind, see_through = image.format, image.info.get("transparency")
    bits, negative = _tiff_greys(image) if kind == "TIFF" else (16, False)
    if image.mode == "F":
        pixels = _scaled_floats(np.asarray(image))[..., None]
        return 65535 - pixels if negative else pixels, 65535
    deep = image.mode.startswith("I")
    if image.mode == "1":
        image = image.convert("L")
    elif not deep and image.mode not in ("L", "LA", "RGB", "RGBA"):
        with_opacity = see_through is not None or image.mode.endswith(("A", "a"))
        image, see_through = image.convert("RGBA" if with_opacity else "RGB"), None
    pixels, full = np.asarray(image), 65535 if deep else 255
    if deep and bits < 16:  # greys of 12 bits, which Pillow leaves as they are
        pixels = _quanta(pixels, 2**bits - 1)
    if deep and negative:
        pixels = full - pixels
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    if see_through is not None and pixels.shape[2] in (1, 3):  # the colour that stands for what is transparent
        if kind == "PNG":
            see_through = _png_colour(see_through, file)
        opaque = (pixels != see_through).any(axis=2)
        pixels = np.concatenate([pixels, np.where(opaque, full, 0).astype(pixels.dtype)[..., None]], axis=2)
    return pixels, full


def _scaled_floats(values):
    """Floats from 0, black, to 1, white -> uint16"""
    if not ((values >= 0) & (values <= 1)).all():  # not so for NaN
        raise ValueError(f"its floats reach from {values.min()} to {values.max()}; allowed: 0 (black) .. 1 (white)")
    return np.floor(values * 65535.0 + 0.5).astype(np.uint16)


def _tiff_greys(image):
    """-> bits of a sample; is white 0, as Pillow heeds in greys of up to 8 bits alone?"""
    bits, form = image.tag_v2.get(258, (1,))[0], image.tag_v2.get(339, (1,))[0]
    if form == 2 or (bits > 16 and form == 1):
        sign = "signed" if form == 2 else "unsigned"
        raise ValueError(f"its greys are {sign}, of {bits} bits; allowed: unsigned, of up to 16 bits")
    return bits, image.tag_v2.get(262) == 0


def _png_bits(file):
    """Of a pixel, by the header, which Pillow has found to be one."""
    with file.open("rb") as stream:
        depth, colours = stream.read(26)[24:]
    return depth * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}.get(colours, 1)


def _png_colour(colour, file):
    """The transparent colour of a PNG, scaled as Pillow scales the pixels: to 8 bits, but for greys of 16."""
    with file.open("rb") as stream:
        depth = stream.read(25)[-1]  # bits of a channel, in the header
    if isinstance(colour, tuple):
        return tuple(level >> 8 for level in colour) if depth == 16 else colour
    return colour * 255 // (2**depth - 1) if depth < 8 else colour


def _quanta(levels, full):
    """Levels 0 .. full as GraphicsMagick holds them, 0 .. 65535 int64"""
    return (levels.astype(np.int64) * 65535 + full // 2) // full


def _by_mean(pixels, full, mode, negate, occupied, free):
    """(rows, cols) int8 by the rules BEFORE: the channels' sum, an integer, selects from a table of values."""
    opacity = pixels[..., -1] if pixels.shape[2] in (2, 4) else None
    colours = 3 if pixels.shape[2] > 2 else 1  # grey stands for three equal channels
    total = np.zeros(pixels.shape[:2], np.int32)
    for channel in range(colours):
        total += pixels[..., channel].astype(np.int32) * (3 // colours)
    channels = 3
    if mode == "trinary" and opacity is not None:
        total, channels = total + opacity, 4
    shade = np.arange(channels * full + 1) * (65535 // full) / channels / 65535
    if mode == "raw":
        value = np.floor(shade * 255 + 0.5)
        return np.where(value <= OCCUPIED, value, UNKNOWN).astype(np.int8)[total]
    occupancy = shade if negate else 1 - shade
    between = UNKNOWN if mode == "trinary" else np.rint((occupancy - free) / (occupied - free) * OCCUPIED)
    values = np.select([occupied < occupancy, occupancy < free], [OCCUPIED, FREE], between).astype(np.int8)[total]
    if mode == "scale" and opacity is not None:
        values[opacity != full] = UNKNOWN
    return values


# ITU-R 601: what red, green and blue add to the luma, 0 .. 65535, in float32 as GraphicsMagick adds them
LUMA = [(weight * np.arange(65536)).astype(np.float32) for weight in (0.299, 0.587, 0.114)]


def _by_luma(pixels, full, mode, negate, occupied, free):
    """(rows, cols) int8 by the rules SINCE, with thresholds and occupancies in float32."""
    levels = _quanta(np.arange(full + 1), full)
    if pixels.shape[2] > 2:
        red, green, blue = (table[levels][pixels[..., k]] for k, table in enumerate(LUMA))
        grey = ((red + green + blue).astype(np.float64) + 0.5).astype(np.int64) // 257
    else:
        grey = (levels // 257)[pixels[..., 0]]
    level = np.arange(256)
    if mode == "raw":
        return np.where(level <= OCCUPIED, level, UNKNOWN).astype(np.int8)[grey]
    shade = level.astype(np.float32) / np.float32(255)
    occupancy = shade if negate else np.float32(1) - shade
    high, low = np.float32(occupied), np.float32(free)
    between = np.full(256, UNKNOWN)
    if mode == "scale":
        rise = (occupancy - low) / np.float32(occupied - free) * np.float32(OCCUPIED)
        between = np.floor(np.maximum(rise, 0).astype(np.float64) + 0.5)
    values = np.select([occupancy <= low, occupancy >= high], [FREE, OCCUPIED], between).astype(np.int8)[grey]
    if pixels.shape[2] in (2, 4):
        values[(levels // 257)[pixels[..., -1]] < 255] = UNKNOWN
    return values
