"""Constraints on configurations along a whole motion: where a point of a link may be, how a link may be turned, between
which values joints may lie, and all of several of these at once."""

from .constraint import Constraint, JointRange, Orientation, Position, Tilt, Within, all_of
from .space import KeepingChecker
from .volume import Volume

__all__ = [
    "Constraint",
    "JointRange",
    "KeepingChecker",
    "Orientation",
    "Position",
    "Tilt",
    "Volume",
    "Within",
    "all_of",
]
