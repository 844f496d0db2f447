"""RRT (LaValle and Kuffner 2001; [BKF11] algorithms 1 and 2): a tree that grows from the start towards samples.

Departures: samples are taken in rounds of `batch` (1 is the algorithm of the paper), which also makes one kernel of a
query on CUDA; a new node that is near a goal tries to reach it. See `growth`.
"""

from dataclasses import dataclass

from numpy.typing import ArrayLike

from ....settings import setting
from ..query import check_call
from ..result import PlanningResult
from .search import TreeSettings, plan


@dataclass(frozen=True, kw_only=True)
class Settings(TreeSettings):
    """Settings of RRT."""

    stop_at_first: bool = setting(True, "End with the first path; otherwise use up the budget and keep the cheapest")


def solve(
    start: ArrayLike, goals: ArrayLike, checker, settings: Settings = Settings(), seed: int = 0
) -> PlanningResult:
    """Plan from start (dof,) to one of goals, (dof,) or (G, dof); rad or m.

    -> PlanningResult. The same seed, settings and device give the same path unless the time limit ends the search.
    seed: any integer
    """
    check_call(checker, settings, Settings)
    return plan(start, goals, checker, settings, seed, star=False, stop_at_first=settings.stop_at_first)
