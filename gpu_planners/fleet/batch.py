"""Plans of many fleets in one call, which workers may share."""

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from typing import Any

from numpy.typing import ArrayLike

from ..arguments import whole
from ..distributed.executors import Split, devices_of, spread
from ..distributed.progress import Progress
from ..errors import SettingsError, shown
from .plan import FleetPlan
from .planner import FleetPlanner


def solve_batch(
    starts: Iterable[ArrayLike],
    goals: Iterable[ArrayLike],
    fleets: FleetPlanner | Sequence[FleetPlanner],
    time_limit_s: float = 10.0,
    seed: int = 0,
    headings: Iterable[ArrayLike | None] | None = None,
    executor: Executor | None = None,
    devices: str | Sequence[str] | None = None,
    progress: Progress | None = None,
) -> list[FleetPlan]:
    """Plan for n fleets, one after the other, or by workers at once. Its nine arguments are those of
    `FleetPlanner.solve` and of all batches.

    starts, goals: for each fleet as `FleetPlanner.solve` takes them; fleets: one for all, or one for each
    time_limit_s: for each fleet;  seed: fleet i is planned with seed + i
    headings: for each fleet, or None
    executor, devices, progress: as `rrt_connect.solve_batch` takes them

    -> n FleetPlans, the same however workers share the fleets, but where the time ends a plan. Raises what `solve`
    does; SettingsError when the numbers of starts, goals, fleets or headings differ; WorkerError where a worker died.
    """
    try:
        starts, goals = list(starts), list(goals)
        turns = [None] * len(starts) if headings is None else list(headings)
    except Exception:  # whatever an object of the caller raises
        raise SettingsError(
            "solve_batch got starts, goals or headings that are no sequences; allowed: one entry for each fleet"
        ) from None
    planners: list[Any] = list(fleets) if isinstance(fleets, (list, tuple)) else [fleets] * len(starts)
    if not len(starts) == len(goals) == len(planners) == len(turns):
        raise SettingsError(
            f"solve_batch got {len(starts)} starts, {len(goals)} goals, {len(planners)} fleets and {len(turns)} "
            "headings; allowed: as many of each, one fleet for all, no headings"
        )
    for planner in planners:
        if not isinstance(planner, FleetPlanner):
            raise SettingsError(f"fleets holds {shown(planner)}; allowed: FleetPlanners")
    if not planners:
        return []
    seed = whole("seed", seed, 0, 2**63 - len(planners))

    numbers = {id(planner): number for number, planner in enumerate(planners)}  # of several that are one, the last

    def cut(first: int, last: int) -> list[tuple]:
        fleets = (numbers[id(planner)] for planner in planners[first:last])
        return [(fleet, starts[i], goals[i], time_limit_s, seed + i, turns[i]) for i, fleet in enumerate(fleets, first)]

    if executor is None and devices is None:
        return [plan for i, planner in enumerate(planners) for plan in _solve(planners, cut(i, i + 1), planner.device)]
    where = devices_of(devices, planners[0].device)
    parts = spread(Split("fleets", len(planners), cut, _solve, planners), executor, where, progress)
    return [plan for part in parts for plan in part]


def _solve(planners: list, fleets: list[tuple], device: str) -> list[FleetPlan]:
    return [planners[number].on(device).solve(*arguments) for number, *arguments in fleets]
