"""Checks of numbers, arrays and settings that callers give, one rule for each kind."""

import math
import numbers

import numpy as np

from ..arguments import SAME_LENGTH, as_array
from ..errors import GridMapError, SettingsError, shown
from ..settings import setting

NUMBERS = "biuf"  # kinds of NumPy's types
TILE_TYPES = np.int32, np.int64, np.float32, np.float64  # for which code is compiled; others convert to one of them


def number(name, value, least, most, unit="", error=GridMapError):
    """A number from least to most, as a float."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool) or not least <= value <= most:
        raise error(f"{name} is {shown(value)}; allowed: a number from {least:g} to {most:g}{unit}")
    try:
        return float(value)
    except OverflowError:  # of an integer, where infinity is allowed
        return math.inf


def whole(name, value, least, most, words="whole numbers ", error=SettingsError):
    """A whole number from least to most, as an int."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or not least <= value <= most:
        raise error(f"{name} is {shown(value)}; allowed: {words}{least} .. {most}")
    return int(value)


def array_of(values, name):
    """An array of numbers."""
    array = as_array(values)
    if array is None:
        raise GridMapError(f"{name} is no array of numbers; allowed: {SAME_LENGTH}")
    if array.dtype.kind not in NUMBERS:
        raise GridMapError(f"{name} has the type {array.dtype}; allowed: numbers")
    return array


def as_tiles(tiles, name):
    """Tiles [row, col], or one of them, as (N, 2), contiguous, of one of TILE_TYPES."""
    array = array_of(tiles, name)
    if array.dtype.kind == "b":
        raise GridMapError(f"{name} has the type bool; allowed: numbers [row, col]")
    if array.shape == (0,):
        array = array.reshape(0, 2)
    array = array[None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[1] != 2:
        raise GridMapError(f"{name} has shape {array.shape}; allowed: (N, 2) [row, col]")
    kind = array.dtype.newbyteorder("=")
    if kind not in TILE_TYPES:
        kind = np.int64 if np.can_cast(kind, np.int64) else np.float64
    return np.ascontiguousarray(array, kind)


def time_limit(text):
    """A field of settings: a limit in seconds, none to begin with."""
    return setting(float("inf"), text, 0.0, float("inf"), unit="seconds", must=("more than 0", lambda limit: limit > 0))
