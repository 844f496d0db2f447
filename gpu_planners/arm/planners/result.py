"""What a planner returns: a named status, and the path when there is one."""

from dataclasses import dataclass, field
from enum import Enum

import numpy as np


class Status(Enum):
    """How a query ended. The value is the name that users read in messages."""

    SOLVED = "solved"
    INVALID_START = "invalid start"  # not numbers, of the wrong size, not finite
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
    path: (K, dof) float64 configurations from start to goal, rad or m; (0, dof) when there is none. A continuous joint
        goes on from where the start has it, however many turns that is, the short way round to the goal
    cost: joint-space length of the path (L2 norm over segments, weighted by Settings.weights); inf when there is none
    goal_index: which of the given goals was reached; -1 when none
    samples: configurations drawn
    time_s: wall time of the solve, seconds
    message: one sentence that names the offender; when solved empty, or what was taken to the joint limits
    history: (H, 3) float64 of planners that go on after the first path: samples, seconds, cost at each improvement
    moved_to_limits: a text for each value of the start and of the goal reached that was outside its joint limit, by
        Settings.limit_tolerance at most, and was taken to it: "start panda_joint1 = 2.898 taken to 2.8973"
    blocked: (body, body, share) of a search that ended without a path, most first: which links and obstacles meet where
        blocked extensions of its trees first meet anything, and in which share of them. Several pairs of one extension
        count each. `solve` fills it, `solve_batch` leaves it to `explained`
    blocked_motions, blocked_trees: (B, 2, dof) float64 rad or m, (B,) int32: a uniform sample of those extensions, at
        most 64, and the tree of each: 0 from the start, 1 from the goals
    """

    status: Status
    path: np.ndarray
    cost: float = np.inf
    goal_index: int = -1
    samples: int = 0
    time_s: float = 0.0
    message: str = ""
    history: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    moved_to_limits: tuple[str, ...] = ()
    blocked: tuple[tuple[str, str, float], ...] = ()
    blocked_motions: np.ndarray = field(default_factory=lambda: np.zeros((0, 2, 0)))
    blocked_trees: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int32))

    @property
    def solved(self) -> bool:
        """Is there a path?"""
        return self.status is Status.SOLVED


def path_length(path: np.ndarray, weights: np.ndarray | float = 1.0) -> float:
    """Joint-space length of a path (K, dof): sum of sqrt(sum of weight * change squared); weights: (dof,)"""
    path = np.asarray(path)
    steps = (path[1:] - path[:-1]) * np.sqrt(weights)
    return float(np.sqrt(np.add.reduce(steps * steps, axis=1)).sum())  # as np.linalg.norm does, in half of its time
