"""RRT (LaValle and Kuffner 2001; [BKF11] algorithms 1 and 2): a tree that grows from the start towards samples.

Departures: samples are taken in rounds of `batch` (1 is the algorithm of the paper), which also makes one kernel of a query
on CUDA; a new node that is near a goal tries to reach it. See `tree_growth`.
"""

from dataclasses import dataclass

from .query import check_call
from .tree_search import check_tree_settings, plan


@dataclass(frozen=True)
class Settings:
    """range: longest motion added at once, in units of cost; 0: samples are approached all the way ([BKF11])
    goal_radius: a path may end so close to a goal, in units of cost; 0: it ends at the goal
    goal_bias: share of the samples that are drawn at a goal not reached yet, one of a round at most
    stop_at_first: end with the first path; otherwise at the budget, with the cheapest
    batch: samples of a round at most; 0: 64 on the CPU, 2048 on CUDA. The first rounds are smaller, 32 and up
    max_samples: configurations drawn at most;  time_limit_s: seconds for the search at most
    shortcut_rounds: passes of shortening afterwards; 0 returns the raw path
    weights: one number per joint for the cost of a motion, sqrt(sum of weight * change squared); none: 1 each
    limit_tolerance: values of start and goals so far outside the joint limits are taken to the limit, rad or m
    """

    range: float = 0.0
    goal_radius: float = 0.0
    goal_bias: float = 0.05
    stop_at_first: bool = True
    batch: int = 0
    max_samples: int = 1_000_000
    time_limit_s: float = 10.0
    shortcut_rounds: int = 3
    weights: tuple = ()
    limit_tolerance: float = 1e-3

    def __post_init__(self):
        check_tree_settings(self, "stop_at_first")


def solve(start, goals, checker, settings=Settings(), seed=0):
    """Plan from start (dof,) to one of goals, (dof,) or (G, dof); rad or m.

    -> PlanningResult. The same seed, settings and device give the same path unless the time limit ends the search. seed: any integer
    """
    check_call(checker, settings, Settings)
    return plan(start, goals, checker, settings, seed, star=False, stop_at_first=settings.stop_at_first)
