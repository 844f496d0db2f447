"""The configuration space read from a black-and-white image ([DL14] 2.1): a point that moves over free, light pixels.

Row 0 of the image is its top, as it is shown: x grows to the right with the columns, y grows upwards. The image's outer
border lies on the bounds of the configuration space, so that a pixel covers (upper - lower) / (columns, rows). Outside
nothing is free.

A motion is free when every pixel that it touches is free. It is followed column by column (row by row when it is steep),
and in each all pixels between the heights at its two sides are looked at, so that none is skipped; a margin of at least a
thousandth of a pixel covers rounding; images and bounds that would need more than a twentieth are refused. There is no step to choose. [DL14] checks points at a joint-space step instead.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..device import njit
from ..errors import ObstacleError, RobotDescriptionError
from ..team import any_lane, lane_count
from . import space
from .packing import Packed
from .plane_checker import PlaneChecker
from .reach import ROUNDOFF

ROWS, COLUMNS, PIXELS = 0, 1, 2  # the int32 buffer: size, then 32 pixels a word, rows one after the other
X_0, Y_0, X_SCALE, Y_SCALE, MARGIN = range(5)  # the float32 buffer: pixels = (q - lower or upper) * scale; margin in pixels
ZERO, ONE = np.float32(0), np.float32(1)
LEAST_MARGIN, GREATEST_MARGIN = 1e-3, 0.05  # pixels
MODE = 0


@dataclass(frozen=True)
class PointRobot:
    """A point with the coordinates x and y.  lower, upper: (2,) of the configuration space."""

    lower: np.ndarray
    upper: np.ndarray
    dof: int = field(default=2, init=False)
    joint_names: tuple = field(default=("x", "y"), init=False)
    continuous: np.ndarray = field(init=False)

    def __post_init__(self):
        for name in ("lower", "upper"):
            value = np.asarray(getattr(self, name), dtype=np.float64)
            if value.shape != (2,) or not np.isfinite(value).all():
                raise RobotDescriptionError(f"PointRobot.{name} is {getattr(self, name)!r}; allowed: two numbers")
            object.__setattr__(self, name, value)
        if not (self.lower < self.upper).all():
            raise RobotDescriptionError(f"PointRobot.lower is {self.lower}; allowed: below upper, {self.upper}")
        object.__setattr__(self, "continuous", np.zeros(2, dtype=bool))


class ImageScratch(NamedTuple):
    """Names the space to `motion_free`; a check keeps nothing. nothing: (1,) float32"""

    nothing: np.ndarray


class ImageChecker(PlaneChecker):
    """Checks of a point on an image: see `space` for what a checker has.

    image: a file that Pillow reads, or (rows, columns) bool or grey values (true, or above half of full scale: free)
    lower, upper: (2,) x and y on the image's left and bottom, right and top border; default 0 to (columns, rows)
    """

    motion_args = (MODE, ZERO)

    def __init__(self, image, lower=(0.0, 0.0), upper=None, device="auto"):
        free = read_image(image)
        robot = PointRobot(lower, free.shape[::-1] if upper is None else upper)
        super().__init__(robot, device, space.IMAGE, ImageScratch(np.zeros(1, dtype=np.float32)))
        self.set_image(free)

    def set_image(self, image):
        """Replace the image; the bounds stay."""
        self.image = read_image(image)
        rows, columns = self.image.shape
        extent = self.robot.upper - self.robot.lower
        scale = np.array([columns, rows]) / extent
        margin = max(LEAST_MARGIN, 8 * ROUNDOFF * (np.maximum(np.abs(self.robot.lower), np.abs(self.robot.upper)) * scale + [columns, rows]).max())
        if not margin <= GREATEST_MARGIN:
            raise ObstacleError(f"single precision cannot tell the pixels of an image of {rows} x {columns} between {self.robot.lower} and "
                                f"{self.robot.upper}; allowed: about 50,000 pixels between 0 and the farther bound")
        floats = np.array([self.robot.lower[0], self.robot.upper[1], scale[0], -scale[1], margin], dtype=np.float32)
        bits = np.packbits(np.pad(self.image, ((0, 0), (0, -columns % 32))), axis=1, bitorder="little").view("<i4").astype(np.int32)
        self._set_scene(Packed(floats, np.concatenate([np.array([rows, columns], dtype=np.int32), bits.ravel()])))

    def colliding_pairs(self, q):
        """q: (2,) -> [("point", "pixel (row, column)")], or [] where it is free."""
        if self.configurations_valid(np.asarray(q)[None])[0]:
            return []
        scale = np.array(self.image.shape[::-1]) / (self.robot.upper - self.robot.lower)
        column, row = np.floor((np.asarray(q) - [self.robot.lower[0], self.robot.upper[1]]) * scale * [1, -1]).astype(int)
        return [("point", f"pixel ({row}, {column})")]


def read_image(image):
    """-> (rows, columns) bool, true where free. image: as ImageChecker takes it."""
    if isinstance(image, np.ndarray):
        grey = image
    else:
        from PIL import Image

        with Image.open(image) as opened:
            grey = np.asarray(opened.convert("L"))
    if grey.ndim != 2 or grey.size == 0:
        raise ObstacleError(f"the image has shape {grey.shape}; allowed: (rows, columns)")
    if grey.dtype == bool:
        return grey
    full = np.iinfo(grey.dtype).max if np.issubdtype(grey.dtype, np.integer) else 1.0
    return grey > full / 2


@njit
def pixel_free(row, column, I):
    if row < 0 or column < 0 or row >= I[ROWS] or column >= I[COLUMNS]:
        return False
    word = I[PIXELS + row * ((I[COLUMNS] + 31) >> 5) + (column >> 5)]
    return (word >> (column & 31)) & 1 == 1


@njit
def inside(pixel, size):
    """The upper bounds belong to the last pixel."""
    return size - 1 if pixel == size else pixel


@njit
def motion_free(qa, qb, mode, step, F, I, S, lane):
    """As space.motion_free; mode and step are not used."""
    xa, ya = (qa[0] - F[X_0]) * F[X_SCALE], (qa[1] - F[Y_0]) * F[Y_SCALE]
    xb, yb = (qb[0] - F[X_0]) * F[X_SCALE], (qb[1] - F[Y_0]) * F[Y_SCALE]
    width, height, margin = np.float32(I[COLUMNS]), np.float32(I[ROWS]), F[MARGIN]
    if not (min(xa, xb, ya, yb) >= -margin and max(xa, xb) <= width + margin and max(ya, yb) <= height + margin):  # NaN is not free
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
                free = pixel_free(c, r, I) if steep else pixel_free(r, c, I)
                row += 1
        if any_lane(not free):
            return False
    return True


space.register(ImageScratch, "cpu", motion_free)
