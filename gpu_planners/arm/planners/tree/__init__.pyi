from . import rrt, rrt_star

__all__ = ["rrt", "rrt_star"]
