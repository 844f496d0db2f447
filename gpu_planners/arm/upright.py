"""Motions that keep an axis of a link upright: RRT-Connect with the constraint `Tilt` (see `constraints`)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked, numbers
from ..errors import ConfigurationError
from ..settings import setting
from .constraints import Tilt
from .planners import rrt_connect
from .planners.query import check_call
from .planners.result import PlanningResult
from .planners.settings import PlannerSettings
from .robot.model import RobotModel


@dataclass(frozen=True, kw_only=True)
class Settings(PlannerSettings):
    """Settings of motions that keep upright."""

    step: float = setting(0.25, "Longest motion between two configurations, L2", 1e-3, 10.0, unit="rad or m")


@checked()
class Upright(Tilt):
    """The constraint: an axis of a link stays within a tolerance of a direction.

    axis: (3,) in the link's frame; direction: (3,) in the root frame; tolerance: rad
    """

    def __init__(self, robot: RobotModel, link: str, axis: ArrayLike, direction: ArrayLike, tolerance: float) -> None:
        super().__init__(robot, link, axis, direction, tolerance)
        self.tip, self.axis = self.tilt.tip, self.tilt.axis
        self.direction, self.tolerance = self.tilt.direction, self.tilt.tolerance

    def tilts(self, q: ArrayLike) -> np.ndarray:
        """(N,) rad between the axis and the direction, of configurations (N, dof)."""
        return self.excess(q) + self.tolerance

    def set_right(self, q: ArrayLike) -> np.ndarray | None:
        """(dof,) near q (dof,), within the limits, that keeps the constraint by a margin; None: none is found."""
        placed, found = self.project(numbers("q", q, (self.robot.dof,), ConfigurationError)[None])
        return placed[0] if found[0] else None


@checked()
def solve(
    start: ArrayLike, goals: ArrayLike, checker: Any, rule: Upright, settings: Settings = Settings(), seed: int = 0
) -> PlanningResult:
    """Plan a motion that keeps an axis of a link upright.

    start: (dof,); goals: (dof,) or (G, dof), rad or m
    rule: of the checker's robot

    Every segment of the path is proven to keep the tilt, and free by the checker's `motion`. A start or goals that tilt
    more are refused as INVALID_START and INVALID_GOAL, by a message that says by how much. Raises SettingsError for
    arguments that are wrong.
    """
    check_call(checker, settings, Settings)
    own = {name: value for name, value in vars(settings).items() if name != "step"}
    return rrt_connect.solve(start, goals, checker, rrt_connect.Settings(**own, range=settings.step), seed, rule)
