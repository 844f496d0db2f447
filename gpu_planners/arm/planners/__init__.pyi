from . import prm, rrt_connect
from .table import PLANNERS
from .tree import rrt, rrt_star

__all__ = ["PLANNERS", "prm", "rrt", "rrt_connect", "rrt_star"]
