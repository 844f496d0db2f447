"""RRT-Connect: see `planner`."""

from .planner import Settings, solve, solve_batch

__all__ = ["Settings", "solve", "solve_batch"]
