"""A picture of a grid map: its field as colours with lines of equal cost, paths as lines, agents as dots."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image, ImageDraw
from scipy import ndimage

from ..arguments import Numbers, checked, whole
from ..errors import GridMapError
from .maps.grid_map import GridMap

WALL_COLOUR = 38, 43, 54
UNREACHED_COLOUR = 176, 179, 186
FREE_COLOUR = 246, 244, 238  # of the least cost
COSTLY_COLOUR = 196, 160, 110  # of the greatest cost
NEAR_TO_FAR = np.array(  # colours of the field, dark enough for white paths
    [(252, 214, 112), (244, 160, 92), (222, 102, 104), (172, 66, 122), (112, 52, 130), (62, 46, 118), (30, 40, 86)],
    float,
)
GOAL_COLOUR = 255, 255, 255
PATH_COLOUR = 255, 255, 255
AGENT_COLOUR = 120, 235, 255
LINES_OF_EQUAL_COST = 18
MOST_SINGLE_PATHS = 200  # more are drawn as a density
MOST_GOALS = 1000  # that are marked
PATHS_AT_ONCE = 1000
MOST_PIXELS = 20_000  # of the longer side
Tiles = Annotated[ArrayLike, Numbers((None, 2))]  # [row, col]
FINER = 3  # a layer's pixels to one of the picture, on a side


@checked(GridMapError)
def draw_map(
    grid: GridMap,
    field: ArrayLike | None = None,
    paths: Sequence[Tiles] | None = None,
    agents: Tiles | None = None,
    size: int = 1200,
    row_0_below: bool = False,
) -> Image.Image:
    """A picture of a map: RGB, its longer side `size` pixels.

    grid: GridMap
    field: (rows, cols) cost-to-go in tile lengths, inf where there is no way; tiles of value 0 are marked as goals
    paths: list of (K, 2) [row, col]; up to MOST_SINGLE_PATHS as single lines, more as brightness
    agents: (N, 2) [row, col], drawn as dots
    row_0_below: row 0 at the bottom of the picture, as RViz shows an OccupancyGrid
    """
    whole("size", size, 1, MOST_PIXELS, "pixels ", GridMapError)
    if field is not None and np.shape(field) != grid.shape:
        raise GridMapError(f"field has the shape {np.shape(field)}; allowed: the map's, {grid.shape}")
    scale = size / max(grid.shape)
    shape = tuple(max(1, round(n * scale)) for n in grid.shape)
    picture = _with_shadows(_background(grid, field, shape, size), _resized(grid.blocked[_thinned(grid, size)], shape))
    ways = [way for way in map(np.asarray, paths or ()) if len(way)]
    if len(ways) > MOST_SINGLE_PATHS:
        picture = _with_density(picture, ways, scale)
    elif ways:
        picture = _with_layer(picture, _draw_lines, ways, scale, field is None)
    if agents is not None and len(np.asarray(agents)):
        picture = _with_layer(picture, _draw_agents, agents, scale)
    if field is not None:
        goals = np.argwhere(np.asarray(field) == 0)[:MOST_GOALS]
        picture = _with_layer(picture, _draw_goals, goals, scale, len(picture[0]))
    image = Image.fromarray(picture)
    return image.transpose(Image.Transpose.FLIP_TOP_BOTTOM) if row_0_below else image


def _thinned(grid, size):
    """Tiles that are coloured: of a large map about two by two for a pixel."""
    step = max(1, max(grid.shape) // (2 * size))
    return slice(None, None, step), slice(None, None, step)


def _background(grid, field, shape, size):
    """(h, w, 3) uint8: free tiles by cost, or by field."""
    costs = grid.costs[_thinned(grid, size)]
    if field is not None:
        colours = _field_colours(np.asarray(field)[_thinned(grid, size)].astype(np.float32))
    else:
        share = (costs[..., None].astype(np.float32) - 1) / max(int(costs.max()) - 1, 1)
        colours = np.array(FREE_COLOUR) + (np.array(COSTLY_COLOUR) - FREE_COLOUR) * np.clip(share, 0, 1)
    colours[costs == 0] = WALL_COLOUR
    return _resized(colours.astype(np.uint8), shape)


def _field_colours(field):
    reached = np.isfinite(field)
    farthest = max(float(field[reached].max()) if reached.any() else 0.0, 1e-6)
    value = np.where(reached, field, 0)
    place = value / farthest * (len(NEAR_TO_FAR) - 1)
    low = np.minimum(place.astype(int), len(NEAR_TO_FAR) - 2)
    colours = NEAR_TO_FAR[low] + (NEAR_TO_FAR[low + 1] - NEAR_TO_FAR[low]) * (place - low)[..., None]
    between = value / _round_number(farthest / LINES_OF_EQUAL_COST) % 1.0
    colours *= (1 - 0.2 * between**8)[..., None]
    colours[~reached] = UNREACHED_COLOUR
    return colours


def _round_number(value):
    """1, 2 or 5 times a power of ten, about as large."""
    power = 10.0 ** np.floor(np.log10(value))
    return power * min((1, 2, 5, 10), key=lambda digit: abs(np.log(value / power / digit)))


def _resized(pixels, shape):
    image = Image.fromarray(pixels if pixels.dtype == np.uint8 else pixels.astype(np.uint8) * 255)
    smaller = shape[0] < pixels.shape[0]
    return np.asarray(image.resize(shape[::-1], Image.Resampling.BOX if smaller else Image.Resampling.NEAREST))


def _with_shadows(picture, walls):
    """Walls throw a soft shadow down and right, so that they stand out."""
    walls = walls.astype(np.float32) / 255
    shadow = ndimage.shift(ndimage.gaussian_filter(walls, 2.5), (2, 2), order=0)
    return (picture * (1 - 0.35 * np.clip(shadow - walls, 0, 1))[..., None]).astype(np.uint8)


def _with_density(picture, paths, scale):
    """Many paths: the more there are on a pixel, the brighter. Sampled at half a pixel."""
    rows, cols = (2 * n for n in picture.shape[:2])
    count = np.zeros(rows * cols, np.float32)
    samples = max(1, int(np.ceil(2 * scale)))
    part = (np.arange(samples) / samples)[:, None].astype(np.float32)
    for begin in range(0, len(paths), PATHS_AT_ONCE):
        some = [(path[:-1], path[1:]) for path in paths[begin : begin + PATHS_AT_ONCE]]
        start, end = (np.concatenate(ends)[:, None].astype(np.float32) for ends in zip(*some, strict=True))
        points = ((start + (end - start) * part + 0.5) * (2 * scale)).astype(np.int32).reshape(-1, 2)
        np.clip(points, 0, (rows - 1, cols - 1), out=points)
        count += np.bincount(points[:, 0] * cols + points[:, 1], minlength=rows * cols)
    share = np.log1p(count) / np.log1p(max(count.max(), 1))
    opacity = np.where(count > 0, 0.16 + 0.84 * share**1.2, 0).reshape(rows // 2, 2, cols // 2, 2).mean(axis=(1, 3))
    return (picture + (np.array(PATH_COLOUR) - picture) * np.clip(1.3 * opacity, 0, 1)[..., None]).astype(np.uint8)


def _with_layer(picture, draw_things, things, scale, *options):
    """What draw_things(draw, things, scale, ...) draws, FINER times as fine, over the picture."""
    image = Image.fromarray(picture)
    layer = Image.new("RGBA", (image.width * FINER, image.height * FINER))
    draw_things(ImageDraw.Draw(layer), things, scale, *options)
    image.paste(layer := layer.resize(image.size, Image.Resampling.BOX), mask=layer)
    return np.asarray(image)


def _points(tiles, scale):
    """Centres of tiles (K, 2) on a layer -> [(x, y), ...]"""
    return [(x, y) for y, x in ((np.asarray(tiles, float) + 0.5) * (scale * FINER)).tolist()]


def _draw_lines(draw, paths, scale, coloured):
    """Single lines with a dark edge; each has its own colour where no field lies below."""
    width = float(np.clip(0.35 * scale, 1.4, 5))
    for i, path in enumerate(paths):
        points = _points(path, scale)
        for extra, colour in ((1.6, (20, 22, 30, 150)), (0, _colour(i) if coloured else (*PATH_COLOUR, 245))):
            if len(points) > 1:
                draw.line(points, fill=colour, width=max(1, round((width + extra) * FINER)), joint="curve")
            for end in (points[0], points[-1]):
                _dot(draw, end, width + extra / 2, colour)


def _colour(i):
    """Colours that differ from those before."""
    angle = 2 * np.pi * (0.06 + i * 0.618034)
    return (*(int(128 + 104 * np.cos(angle - shift)) for shift in (0, 2.09, 4.19)), 245)


def _draw_agents(draw, agents, scale):
    radius = float(np.clip(0.42 * scale, 1.3, 7))
    for point in _points(agents, scale):
        _dot(draw, point, radius + 0.8, (16, 20, 30, 200))
        _dot(draw, point, radius, (*AGENT_COLOUR, 255))


def _draw_goals(draw, goals, scale, width):
    """Rings: wide enough to be found on a picture of some width."""
    radius = max(0.8 * scale, width / (90 if len(goals) < 20 else 250))
    for point in _points(goals, scale):
        for size, colour in ((1.15, (16, 20, 30, 255)), (1.0, (*GOAL_COLOUR, 255)), (0.62, (214, 40, 57, 255))):
            _dot(draw, point, size * radius, colour)


def _dot(draw, centre, radius, colour):
    """radius: in pixels of the picture"""
    (x, y), radius = centre, radius * FINER
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)
