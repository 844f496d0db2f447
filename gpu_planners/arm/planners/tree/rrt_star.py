"""RRT* (Karaman and Frazzoli, IJRR 2011; [BKF11] algorithms 1 and 3): a tree whose paths get better as it grows,
towards the shortest one. Anytime: the best path at a budget of samples or of time, and the history of its cost.

Departures: samples are taken in rounds of `batch` (1 is the algorithm of the paper), which also makes one kernel of a
query on CUDA; near nodes of a sample are tried as parents in the order of cost, so that few motions are checked;
samples may be informed (Gammell, Srinivasa and Barfoot, IROS 2014). See `growth`.
"""

from dataclasses import dataclass

from numpy.typing import ArrayLike

from ....settings import changed, setting
from ..query import check_call
from ..result import PlanningResult
from .search import TreeSettings, plan


@dataclass(frozen=True, kw_only=True)
class Settings(TreeSettings):
    """Settings of RRT*."""

    radius_factor: float = setting(
        1.1, "Near nodes lie within this times Karaman and Frazzoli's least radius", 0.01, 100.0
    )
    informed: bool = setting(True, "Once a path is known, draw only where a shorter one may pass")
    max_samples: int = changed(
        TreeSettings,
        "max_samples",
        default=10_000,
        text="Configurations drawn: all of them, unless the time limit comes first",
    )


def solve(
    start: ArrayLike, goals: ArrayLike, checker, settings: Settings = Settings(), seed: int = 0
) -> PlanningResult:
    """Plan from start (dof,) to one of goals, (dof,) or (G, dof), as cheaply as the budget allows; rad or m.

    -> PlanningResult. The same seed, settings and device give the same path unless the time limit ends the search.
    seed: any integer
    """
    check_call(checker, settings, Settings)
    return plan(start, goals, checker, settings, seed, star=True)
