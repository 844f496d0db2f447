"""What a planner is, and the planners by name. Who adds one adds a module and a line here."""

from collections.abc import Callable
from typing import Any, Protocol

from . import prm, rrt_connect
from .result import PlanningResult
from .tree import rrt, rrt_star


class Planner(Protocol):
    """To add a planner, write such a module and enter it in `gpu_planners.arm.PLANNERS`.

    Settings: a subclass of settings.PlannerSettings
    solve: solve(start, goals, checker, settings=Settings(), seed=0), from start (dof,) to one of goals, (dof,) or
        (G, dof); rad or m; checker: see spaces.interface
    """

    Settings: Any
    solve: Callable[..., PlanningResult]


PLANNERS: dict[str, Planner] = {"rrt_connect": rrt_connect, "prm": prm, "rrt": rrt, "rrt_star": rrt_star}
