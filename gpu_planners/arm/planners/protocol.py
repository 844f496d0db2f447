"""What a planner is: a module with Settings and `solve`. `gpu_planners.arm.PLANNERS` has them by name."""

from collections.abc import Callable
from typing import Any, Protocol

from .result import PlanningResult


class Planner(Protocol):
    """To add a planner, write such a module and enter it in `gpu_planners.arm.PLANNERS`.

    Settings: a subclass of settings.PlannerSettings
    solve: solve(start, goals, checker, settings=Settings(), seed=0), from start (dof,) to one of goals, (dof,) or
        (G, dof); rad or m; checker: see spaces.interface
    """

    Settings: Any
    solve: Callable[..., PlanningResult]
