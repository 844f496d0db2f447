"""RRT-Connect: see `planner`."""

from .batch import solve_batch
from .planner import Settings, solve

__all__ = ["Settings", "solve", "solve_batch"]
