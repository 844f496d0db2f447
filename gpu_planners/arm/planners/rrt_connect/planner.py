"""RRT-Connect (Kuffner and LaValle, ICRA 2000): two trees, from the start and from all goals, that grow towards
samples and then towards each other until they meet.

Departures: straight ways from the start to the goals come first; a round takes `batch` samples against the trees as
they are when it begins; nodes farther than `range` are approached in steps of that length, each proven free as a whole;
one sample extends the smaller tree, several extend both, the smaller one more; a node that failed to extend takes only
samples near it (the dynamic domain of Yershova et al., ICRA 2005); `range` and the domain adapt to the obstacles; the
first samples are drawn near the start and the goals.

The search and the shortening of the path are compiled code, one source for the CPU and CUDA (`search`). On the CPU a
search is one thread's, and `solve` lets two race where a problem is hard (`cpu`). On CUDA `solve` is two launches, for
the search and for shortening, that all multiprocessors share; `solve_batch` is a few launches in which each problem at
work has a block or more (`cuda`).
"""

from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ....arguments import instance
from ....errors import SettingsError
from ....parallel.sampling import folded_seed
from ....parallel.stopping import heed
from ....parallel.team import clock_ns
from ....settings import changed, setting
from ...constraints import Constraint, KeepingChecker
from ...motion.estimate import estimated_duration, estimated_durations
from ..blocked import explained
from ..query import Query, check_call, dry_query, open_query, warm_once
from ..result import PlanningResult, Status, path_length
from ..settings import RANGE_RULE, PlannerSettings
from ..shortcut import warm_up_shortcut
from . import cpu
from .apart import parts_of
from .quicken import quicken
from .request import BatchShape

RESTART = 1 << 40  # between the seeds of restarts
MOST_RESTARTS = 100_000  # of a query
LAUNCHES = 4  # of dry queries: one compiles, and from the fourth on CUDA repeats what it has recorded
SEARCHED = 2 / 3  # of optimise_s; the rest is for changes that make the motion quicker


@dataclass(frozen=True)
class Settings(PlannerSettings):
    """Settings of RRT-Connect."""

    range: float = setting(
        0.0,
        "Longest motion added to a tree at once, joint-space L2; 0: 3/16 of the mean distance of random configurations "
        "and, while samples are blocked, down to a quarter of that",
        0.0,
        100.0,
        unit="rad",
        must=RANGE_RULE,
    )
    dynamic_domain: float = setting(
        0.0,
        "Radius within which a node that failed to extend still takes samples; 0: 3/4 of the mean distance of random "
        "configurations and, while samples within it are blocked, down to a seventh of that",
        0.0,
        1e6,
        unit="rad",
    )
    batch: int = setting(
        0,
        "Samples of a round; 0: 1 on the CPU; on CUDA 128, twice as many after every four rounds, up to 1024, and for "
        "each problem of a batch 4, and more for those that are left",
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
        "counts. With objective time the last third of it goes to changes of the best path that make its motion "
        "quicker, unless shortcut_rounds is 0. solve_batch spends none",
        0.0,
        86_400.0,
        unit="seconds",
    )
    objective: str = setting(
        "length",
        "Which path is best: the one of least length, or of least time, as estimated for the robot's limits and "
        "corners that are rounded by 0.1 rad",
        choices=("length", "time"),
    )
    max_samples: int = changed(PlannerSettings, "max_samples", text="Most configurations drawn in one search")
    time_limit_s: float = changed(
        PlannerSettings, "time_limit_s", text="Longest time for a query, or for a whole batch"
    )


def solve(
    start: ArrayLike,
    goals: ArrayLike,
    checker,
    settings: Settings = Settings(),
    seed: int = 0,
    constraints: Constraint | None = None,
) -> PlanningResult:
    """Plan from start (dof,) to the goal that is reached first of goals, (dof,) or (G, dof); rad or m.

    -> PlanningResult; with restarts or optimise_s its history tells how the cost fell. The same seed, settings and
    device give the same path unless time ends the search. seed: any integer

    constraints: what all of the motion is proven to keep (`arm.constraints`); the checker may be a KeepingChecker
        instead. Motions then walk (see `walk`); a start that does not keep it is INVALID_START, goals that do not are
        left out as long as one does
    """
    check_call(checker, settings, Settings)
    if constraints is not None:
        instance("constraints", constraints, Constraint, "a Constraint of arm.constraints, or None")
        checker = KeepingChecker(checker, constraints)
    if settings.objective == "time" and not hasattr(checker.robot, "acceleration"):
        raise SettingsError("objective is 'time', but the checker's robot has no limits of velocity and acceleration")
    seed = folded_seed(seed)
    engine = engine_for(checker, raw=not settings.shortcut_rounds)
    if settings.objective == "time" and settings.optimise_s:
        checker.warm_up()  # for `quicken`
    query = open_query(start, goals, checker, settings, check=False)
    if not isinstance(query, Query):
        return query
    best = engine.solve(query, settings, seed)
    heed()
    if not best.solved:
        return explained(best, getattr(checker, "base", checker))
    return _improved(best, query, settings, seed, engine)


def _improved(first, query, settings, seed, engine):
    """The best path of further searches: of `restarts`, and of those for which optimise_s has time."""
    searches, end = settings.restarts, query.deadline
    quicker = bool(settings.optimise_s and settings.shortcut_rounds and settings.objective == "time")
    if settings.optimise_s:
        began = clock_ns()
        end = min(end, began + int(1e9 * settings.optimise_s))
        query = replace(query, deadline=began + int(SEARCHED * (end - began)) if quicker else end)
        searches = searches or MOST_RESTARTS
    if not searches:
        return first
    value = _value_of(query, settings)
    least = _least(query, settings)  # of any path: straight to a goal
    best, found = first, value(first.path)
    samples, history = first.samples, [(first.samples, first.time_s, first.cost)]
    seeds = (folded_seed(seed + i * RESTART) for i in range(1, searches + 1))
    with closing(engine.solve_each(query, settings, seeds)) as results:
        while found > (1 + 1e-6) * least and not query.late() and (again := next(results, None)):
            heed()
            samples += again.samples
            if again.status in (Status.TIMED_OUT, Status.WORLD_CHANGED):
                best = best if again.status is Status.TIMED_OUT else again
                break
            if again.solved and (now := value(again.path)) < found:
                best, found = again, now
                history.append((samples, max(history[-1][1], again.time_s), again.cost))
    if quicker and best.solved and found > (1 + 1e-6) * least:
        before, path = best.path, quicken(best.path, query.checker, end, seed)
        best = query.unless_changed(replace(best, path=path, cost=path_length(path, query.weights)))
        if best.solved and not np.array_equal(path, before):
            history.append((samples, query.elapsed(), best.cost))
    return replace(best, samples=samples, time_s=query.elapsed(), history=np.array(history))


def _value_of(query, settings):
    """What further searches make less: a function of a path."""
    if settings.objective == "length":
        return lambda path: path_length(path, query.weights)
    robot = query.checker.robot
    return lambda path: estimated_duration(path, robot.velocity, robot.acceleration)


def _least(query, settings):
    """What `_value_of` says of a straight way to the nearest goal."""
    if settings.objective == "length":
        return np.linalg.norm((query.goals - query.start) * np.sqrt(query.weights), axis=1).min()
    robot, goals = query.checker.robot, query.goals
    ways = np.stack([np.broadcast_to(query.start, goals.shape), goals], axis=1)
    return estimated_durations(ways, np.zeros((len(goals), 0)), robot.velocity, robot.acceleration)[0].min()


def engine_for(checker, many: bool = False, raw: bool = False) -> Any:
    """What solves queries on a checker's device: the module `cpu`, or a CudaEngine. It is warm for the checker and, if
    `many`, for batches, unless `raw` also for shortening: compiled, or loaded, before the clock of a query starts."""
    if len(parts_of(checker)):
        checker.warm_up()
        if not raw:
            warm_up_shortcut(checker)
    engine: Any = cpu
    if checker.device == "cpu":
        many = raw = False  # the same code solves all of these
    else:
        from .cuda import engine_of

        engine = engine_of(checker)

    def run():
        query, few = dry_query(checker), Settings(max_samples=1, shortcut_rounds=0 if raw else 1)
        if many:
            engine.solve_many([query], few, [0], BatchShape(1, 1))
        else:
            for _ in range(LAUNCHES):
                engine.solve(query, few, 0)

    what = f"rrt_connect.solve{'_batch' if many else ''}{', raw paths' if raw else ''}"
    warm_once(what, checker, run)
    return engine
