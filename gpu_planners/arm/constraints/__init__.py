"""Constraints on configurations along a whole motion: where a point of a link may be, how a link may be turned, how it
lies in the frame of another one, between which values joints may lie, and all of several of these at once."""

from .constraint import Constraint, JointRange, Orientation, Position, Tilt, Within, all_of
from .relative import RelativePose, pose_between
from .space import KeepingChecker
from .volume import Volume

__all__ = [
    "Constraint",
    "JointRange",
    "KeepingChecker",
    "Orientation",
    "Position",
    "RelativePose",
    "Tilt",
    "Volume",
    "Within",
    "all_of",
    "pose_between",
]
