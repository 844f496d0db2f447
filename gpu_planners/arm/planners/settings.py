"""Settings that all planners share."""

from dataclasses import dataclass

from ...settings import Described, setting

LEAST_WEIGHT, GREATEST_WEIGHT = 1e-6, 1e6
LEAST_TIME_S = 1e-3
LEAST_RANGE = 1e-3  # of a motion that is added to a tree
# what a setting `range` must be, whose 0 has a meaning of its own
RANGE_RULE = (f"0, or a number from {LEAST_RANGE}", lambda length: not 0 < length < LEAST_RANGE)


@dataclass(frozen=True, kw_only=True)
class PlannerSettings(Described):
    """Settings that all planners share; they are given by name."""

    max_samples: int = setting(1_000_000, "Most configurations drawn", 1, 100_000_000)
    time_limit_s: float = setting(10.0, "Longest search", LEAST_TIME_S, 86_400.0, unit="seconds")
    shortcut_rounds: int = setting(3, "Passes of shortening the path; 0: raw path", 0, 10_000)
    weights: tuple = setting(
        (),
        "One number per joint for the cost of a motion, sqrt(sum of weight * change squared); empty: 1 each",
        LEAST_WEIGHT,
        GREATEST_WEIGHT,
    )
    limit_tolerance: float = setting(
        1e-3, "Start and goal values so far outside the joint limits are taken to the limit", 0.0, 0.1, unit="rad or m"
    )
