"""Settings of RRT-Connect."""

from dataclasses import dataclass

from ....settings import changed, setting
from ..settings import RANGE_RULE, PlannerSettings


@dataclass(frozen=True)
class Settings(PlannerSettings):
    """Settings of RRT-Connect."""

    range: float = setting(
        0.0,
        "Longest motion added to a tree at once, joint-space L2; 0: 3/16 of the mean distance of random configurations",
        0.0,
        100.0,
        unit="rad",
        must=RANGE_RULE,
    )
    dynamic_domain: float = setting(
        0.0,
        "Radius within which a node that failed to extend still takes samples; 0: 3/4 of the mean distance of random "
        "configurations",
        0.0,
        1e6,
        unit="rad",
    )
    batch: int = setting(
        0,
        "Samples of a round; 0: 1 on the CPU; on CUDA 128, after four rounds 1024, and for each problem of a batch 4, "
        "then 16, then 256",
        0,
        4096,
    )
    searches: int = setting(
        0,
        "Searches of a hard query that race on the CPU, a thread each: the second begins 64 samples after the first. "
        "0: 2; solve_batch and further searches take 1, and so does CUDA, whose rounds fill the device",
        0,
        64,
    )
    restarts: int = setting(
        0,
        "Most further searches with other samples, while time is left and a shorter path is possible; the shortest "
        "path counts. 0: none, or as many as optimise_s has time for. solve_batch makes none",
        0,
        100_000,
    )
    optimise_s: float = setting(
        0.0,
        "Spent on further searches after the first path, as long as a shorter one is possible; the shortest path "
        "counts. solve_batch spends none",
        0.0,
        86_400.0,
        unit="seconds",
    )
    max_samples: int = changed(PlannerSettings, "max_samples", text="Most configurations drawn in one search")
    time_limit_s: float = changed(
        PlannerSettings, "time_limit_s", text="Longest time for a query, or for a whole batch"
    )
