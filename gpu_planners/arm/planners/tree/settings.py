"""Settings that RRT and RRT* share."""

from dataclasses import dataclass

from ....settings import setting
from ..settings import RANGE_RULE, PlannerSettings


@dataclass(frozen=True, kw_only=True)
class TreeSettings(PlannerSettings):
    """Settings that RRT and RRT* share; a cost is in rad where all joints turn and all weights are 1."""

    range: float = setting(
        0.0,
        "Longest motion added at once; 0: samples are approached all the way ([BKF11])",
        0.0,
        1e4,
        unit="units of cost",
        must=RANGE_RULE,
    )
    goal_radius: float = setting(
        0.0, "A path may end this close to a goal; 0: it ends at the goal", 0.0, 1e4, unit="units of cost"
    )
    goal_bias: float = setting(
        0.05, "Share of the samples that are drawn at a goal not reached yet, at most one in a round", 0.0, 1.0
    )
    batch: int = setting(
        0,
        "Most samples of a round; 0: 64 on the CPU, 2048 on CUDA. The first rounds are smaller, from 32 up",
        0,
        1 << 14,
    )
