"""Data sets of planned motions, for whoever trains planners: made, resumed, checked and read as Parquet files."""

from .checking import Report, check
from .making import make
from .reading import Dataset, load
from .recipe import Draw, Recipe, Timing
from .shards import DatasetError

__all__ = ["Dataset", "DatasetError", "Draw", "Recipe", "Report", "Timing", "check", "load", "make"]
