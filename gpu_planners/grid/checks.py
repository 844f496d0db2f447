"""What comes from outside: numbers, arrays and settings are checked here, by one rule each."""

import math
import numbers

import numpy as np

from ..errors import GridMapError, SettingsError, shown
from ..settings import setting

NUMBERS = "biuf"  # kinds of NumPy's types


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
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError):  # rows of different lengths
        raise GridMapError(f"{name} is no array of numbers; allowed: numbers in rows of the same length") from None
    if array.dtype.kind not in NUMBERS:
        raise GridMapError(f"{name} has the type {array.dtype}; allowed: numbers")
    return array


def time_limit(text):
    """A field of settings: a limit in seconds, none to begin with."""
    return setting(float("inf"), text, 0.0, float("inf"), unit="seconds", must=("more than 0", lambda limit: limit > 0))
