"""What a planner returns: a named status, and the path when there is one."""

from dataclasses import dataclass, field
from enum import Enum

import numpy as np


class Status(Enum):
    """How a query ended. The value is the name that users read in messages."""

    SOLVED = "solved"
    INVALID_START = "invalid start"  # wrong size or not finite
    INVALID_GOAL = "invalid goal"
    START_OUT_OF_LIMITS = "start outside the joint limits"
    GOAL_OUT_OF_LIMITS = "goal outside the joint limits"
    START_IN_COLLISION = "start in collision"
    GOAL_IN_COLLISION = "goal in collision"
    TIMED_OUT = "time limit reached"
    SAMPLES_EXHAUSTED = "sample limit reached"
    WORLD_CHANGED = "world changed during the query"


@dataclass(frozen=True)
class PlanningResult:
    """Answer of every planner's `solve`.

    status: how the query ended; only SOLVED carries a path
    path: (K, dof) float64 configurations from start to goal, rad or m; (0, dof) when there is none
    cost: joint-space length of the path (L2 norm over segments, weighted by Settings.weights); inf when there is none
    goal_index: which of the given goals was reached; -1 when none
    samples: configurations drawn
    time_s: wall time of the solve, seconds
    message: one sentence that names the offender; empty when solved
    history: (H, 3) float64 of planners that go on after the first path: samples, seconds and cost each time it got better
    """

    status: Status
    path: np.ndarray
    cost: float = np.inf
    goal_index: int = -1
    samples: int = 0
    time_s: float = 0.0
    message: str = ""
    history: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))

    @property
    def solved(self):
        return self.status is Status.SOLVED


def path_length(path, weights=1.0):
    """Joint-space length of a path (K, dof): sum over segments of sqrt(sum of weight * change squared); weights (dof,)."""
    return float(np.linalg.norm(np.diff(path, axis=0) * np.sqrt(weights), axis=1).sum())
