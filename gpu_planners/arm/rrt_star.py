"""RRT* (Karaman and Frazzoli, IJRR 2011; [BKF11] algorithms 1 and 3): a tree whose paths get better as it grows, towards the
shortest one. Anytime: the best path at a budget of samples or of time, and the history of its cost.

Departures: samples are taken in rounds of `batch` (1 is the algorithm of the paper), which also makes one kernel of a query
on CUDA; near nodes of a sample are tried as parents in the order of cost, so that few motions are checked; samples may be
informed (Gammell, Srinivasa and Barfoot, IROS 2014). See `tree_growth`.
"""

from dataclasses import dataclass

from .query import check_call, check_setting
from .tree_search import check_tree_settings, plan


@dataclass(frozen=True)
class Settings:
    """range: longest motion added at once, in units of cost; 0: samples are approached all the way ([BKF11])
    radius_factor: near nodes lie within this times Karaman and Frazzoli's least radius
    goal_radius: a path may end so close to a goal, in units of cost; 0: it ends at the goal
    goal_bias: share of the samples that are drawn at a goal not reached yet, one of a round at most
    informed: once a path is known, draw only where a shorter one may pass
    batch: samples of a round at most; 0: 64 on the CPU, 2048 on CUDA. The first rounds are smaller, 32 and up
    max_samples: configurations drawn;  time_limit_s: seconds for the search at most. Both are used up
    shortcut_rounds: passes of shortening afterwards; 0 returns the path of the tree
    weights: one number per joint for the cost of a motion, sqrt(sum of weight * change squared); none: 1 each
    limit_tolerance: values of start and goals so far outside the joint limits are taken to the limit, rad or m
    """

    range: float = 0.0
    radius_factor: float = 1.1
    goal_radius: float = 0.0
    goal_bias: float = 0.05
    informed: bool = True
    batch: int = 0
    max_samples: int = 10_000
    time_limit_s: float = 10.0
    shortcut_rounds: int = 3
    weights: tuple = ()
    limit_tolerance: float = 1e-3

    def __post_init__(self):
        check_tree_settings(self, "informed")
        check_setting(self, "radius_factor", 0.01, 100.0)


def solve(start, goals, checker, settings=Settings(), seed=0):
    """Plan from start (dof,) to one of goals, (dof,) or (G, dof), as cheaply as the budget allows; rad or m.

    -> PlanningResult. The same seed, settings and device give the same path unless the time limit ends the search. seed: any integer
    """
    check_call(checker, settings, Settings)
    return plan(start, goals, checker, settings, seed, star=True, radius_factor=settings.radius_factor, informed=settings.informed)
