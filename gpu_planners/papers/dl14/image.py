"""The configuration space read from a black-and-white image ([DL14] 2.1): a point that moves over free, light pixels.

Row 0 of the image is its top, as it is shown: x grows to the right with the columns, y grows upwards. The image's outer
border lies on the bounds of the configuration space, so that a pixel covers (upper - lower) / (columns, rows). Outside
nothing is free.

A motion is free when every pixel that it touches is free. It is followed column by column (row by row when it is
steep); in each column all pixels between its heights at the column's two sides are checked, so that none is skipped. A
margin of at least a thousandth of a pixel covers rounding; images and bounds that would need more than a twentieth are
refused. There is no step to choose; [DL14] checks points at a joint-space step instead.
"""

import os
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...arm.spaces import interface
from ...arm.spaces.interface import Packed
from ...arm.spaces.plane_checker import PlaneChecker
from ...device import lean_njit
from ...errors import ObstacleError, RobotDescriptionError, shortened, shown
from ...files import PICTURES, regular_file
from ...parallel.layout import Float32, Int32, floats, ints, layout
from ...parallel.memory import item
from ...parallel.team import any_lane, lane_count
from ...ranges import ROUNDOFF

MOST_BYTES = 1 << 30  # of a file
ZERO = np.float32(0)
LEAST_MARGIN = 1e-3  # pixels
GREATEST_MARGIN = 0.05  # pixels


@dataclass(frozen=True)
class PointRobot:
    """A point with the coordinates x and y.  lower, upper: (2,) of the configuration space."""

    lower: np.ndarray
    upper: np.ndarray
    dof: int = field(default=2, init=False)
    joint_names: tuple = field(default=("x", "y"), init=False)
    continuous: np.ndarray = field(init=False, default_factory=lambda: np.zeros(2, dtype=bool))
    periodic: np.ndarray = field(init=False, default_factory=lambda: np.zeros(2, dtype=bool))

    def __post_init__(self):
        for name in ("lower", "upper"):
            value = np.asarray(getattr(self, name), dtype=np.float64)
            if value.shape != (2,) or not np.isfinite(value).all():
                raise RobotDescriptionError(f"PointRobot.{name} is {getattr(self, name)!r}; allowed: two numbers")
            object.__setattr__(self, name, value)
        if not (self.lower < self.upper).all():
            raise RobotDescriptionError(f"PointRobot.lower is {self.lower}; allowed: below upper, {self.upper}")


class ImageScratch(NamedTuple):
    """Picks the space for `motion_free`; a check keeps nothing. nothing: (1,) float32"""

    nothing: np.ndarray


class Map(NamedTuple):
    """The scene: pixels = (q - origin) * scale from the image's upper left; margin: pixels."""

    x_origin: Float32 = floats()
    y_origin: Float32 = floats()
    x_scale: Float32 = floats()
    y_scale: Float32 = floats()
    margin: Float32 = floats()
    rows: Int32 = ints()
    columns: Int32 = ints()


map_sizes, open_map, write_map = layout(Map)
_, _PIXELS = map_sizes.py_func()  # 32 pixels a word, row after row, behind the int32 numbers


class ImageChecker(PlaneChecker):
    """Checks of a point on an image; `interface` says what a checker has.

    image: a file that Pillow reads, or (rows, columns) bool or grey values (true, or above half of full scale: free)
    lower, upper: (2,) x and y at the image's lower left and upper right corner; default: 0 and (columns, rows)
    """

    def __init__(
        self,
        image: str | os.PathLike | np.ndarray,
        lower: ArrayLike = (0.0, 0.0),
        upper: ArrayLike | None = None,
        device: str = "auto",
    ) -> None:
        free = read_image(image)
        robot = PointRobot(np.asarray(lower), np.asarray(free.shape[::-1] if upper is None else upper))
        super().__init__(robot, device, interface.IMAGE, ImageScratch(np.zeros(1, dtype=np.float32)), motion_free)
        self.set_image(free)

    def set_image(self, image: str | os.PathLike | np.ndarray) -> None:
        """Replace the image; the bounds stay."""
        self.image = read_image(image)
        rows, columns = self.image.shape
        extent = self.robot.upper - self.robot.lower
        scale = np.array([columns, rows]) / extent
        greatest = np.maximum(np.abs(self.robot.lower), np.abs(self.robot.upper)) * scale + [columns, rows]
        margin = max(LEAST_MARGIN, 8 * ROUNDOFF * greatest.max())
        if not margin <= GREATEST_MARGIN:
            raise ObstacleError(
                f"single precision cannot tell the pixels of an image of {rows} x {columns} between {self.robot.lower} "
                f"and {self.robot.upper}; allowed: about 50,000 pixels between 0 and the farther bound"
            )
        padded = np.pad(self.image, ((0, 0), (0, -columns % 32)))
        bits = np.packbits(padded, axis=1, bitorder="little").view("<i4").astype(np.int32)
        numbers = [np.zeros(n, dtype) for n, dtype in zip(map_sizes.py_func(), (np.float32, np.int32))]
        corner = {"x_origin": self.robot.lower[0], "y_origin": self.robot.upper[1]}
        write_map(*numbers, **corner, x_scale=scale[0], y_scale=-scale[1], margin=margin, rows=rows, columns=columns)
        self._set_scene(Packed(numbers[0], np.concatenate([numbers[1], bits.ravel()])))

    @property
    def arguments(self) -> dict[str, Any]:
        """What makes a checker like this one, but for the device."""
        return {"image": self.image, "lower": self.robot.lower, "upper": self.robot.upper}

    @property
    def motion_args(self) -> tuple[int, np.float32]:
        """(mode, step) as the compiled code takes them; neither is used."""
        return 0, ZERO

    def colliding_pairs(self, q: ArrayLike) -> list[tuple[str, str]]:
        """q: (2,) -> [("point", "pixel (row, column)")], or [] where it is free."""
        if self.configurations_valid(np.asarray(q)[None])[0]:
            return []
        scale = np.array(self.image.shape[::-1]) / (self.robot.upper - self.robot.lower)
        pixels = (np.asarray(q) - [self.robot.lower[0], self.robot.upper[1]]) * scale * [1, -1]
        column, row = np.floor(pixels).astype(int)
        return [("point", f"pixel ({row}, {column})")]


def read_image(image: str | os.PathLike | np.ndarray) -> np.ndarray:
    """-> (rows, columns) bool, true where free. image: as ImageChecker takes it."""
    if isinstance(image, np.ndarray):
        grey = image
    else:
        from PIL import Image

        file = regular_file(image, "the image", ObstacleError, MOST_BYTES)
        try:
            with Image.open(file, formats=PICTURES) as opened:
                grey = np.asarray(opened.convert("L"))
        except Exception as error:  # Pillow's readers raise all kinds of errors for malformed files
            raise ObstacleError(f"the image {shown(str(file))} cannot be read: {shortened(error)}") from error
    if grey.ndim != 2 or grey.size == 0:
        raise ObstacleError(f"the image has shape {grey.shape}; allowed: (rows, columns)")
    if grey.dtype == bool:
        return grey
    full = np.iinfo(grey.dtype).max if np.issubdtype(grey.dtype, np.integer) else 1.0
    return grey > full / 2


@lean_njit
def pixel_free(row, column, where, scene):
    if row < 0 or column < 0 or row >= where.rows or column >= where.columns:
        return False
    word = item(scene.ints, _PIXELS + row * ((where.columns + 31) >> 5) + (column >> 5))
    return (word >> (column & 31)) & 1 == 1


@lean_njit
def inside(pixel, size):
    """The upper bounds belong to the last pixel."""
    return size - 1 if pixel == size else pixel


@lean_njit
def motion_free(qa, qb, hint, space, lane):
    """`interface.motion_free` without regard to hint, mode and step."""
    where = open_map(space.floats, space.ints)
    xa, ya = (qa[0] - where.x_origin) * where.x_scale, (qa[1] - where.y_origin) * where.y_scale
    xb, yb = (qb[0] - where.x_origin) * where.x_scale, (qb[1] - where.y_origin) * where.y_scale
    width, height, margin = np.float32(where.columns), np.float32(where.rows), where.margin
    # NaN is not free
    if not (min(xa, xb, ya, yb) >= -margin and max(xa, xb) <= width + margin and max(ya, yb) <= height + margin):
        return False
    steep = abs(yb - ya) > abs(xb - xa)
    if steep:
        xa, ya, xb, yb = ya, xa, yb, xb
        width, height = height, width
    if xa > xb:
        xa, ya, xb, yb = xb, yb, xa, ya
    slope = (yb - ya) / (xb - xa) if xb > xa else ZERO
    low, high = max(xa - margin, ZERO), min(xb + margin, width)
    first, last = int(low), int(high)
    for base in range(first, last + 1, lane_count()):
        column = base + lane
        free = True
        if column <= last:
            left, right = max(np.float32(column), xa) - margin, min(np.float32(column + 1), xb) + margin
            y1, y2 = ya + slope * (left - xa), ya + slope * (right - xa)
            row, end = int(max(min(y1, y2) - margin, ZERO)), int(min(max(y1, y2) + margin, height))
            while free and row <= end:
                r, c = inside(row, int(height)), inside(column, int(width))
                free = pixel_free(c, r, where, space) if steep else pixel_free(r, c, where, space)
                row += 1
        if any_lane(not free):
            return False
    return True


interface.register(ImageScratch, "cpu", motion_free)
