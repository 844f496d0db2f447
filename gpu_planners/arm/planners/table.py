"""The planners by name. Who adds one adds a module and a line here."""

from . import prm, rrt_connect
from .protocol import Planner
from .tree import rrt, rrt_star

PLANNERS: dict[str, Planner] = {"rrt_connect": rrt_connect, "prm": prm, "rrt": rrt, "rrt_star": rrt_star}
