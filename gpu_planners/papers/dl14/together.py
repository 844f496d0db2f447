"""What ranks that solve one problem agree on before and after the search: the problem, when its clock starts, what is
wrong with it, and the result.

Each rank looks at its own clock, and each checker at its own obstacles, so that what follows from them may differ; the
first rank's answer counts, and any rank's failure.
"""

import zlib
from collections.abc import Callable
from dataclasses import asdict, replace

import numpy as np

from ...arm.planners.prm.settings import Settings
from ...arm.planners.query import Query
from ...arm.planners.result import PlanningResult, Status
from ...distributed.exchange import Exchange
from ...errors import RanksError, SettingsError, shown
from ...settings import title


def begin(
    ranks: Exchange, start, goals, checker, settings: Settings, seed: int, batch: int, warm_up: Callable[[], None]
) -> int:
    """-> the samples of a round. Returns at about the same time in all ranks, when all have compiled: the first rank of
    each machine does so while the others of it wait, and load it then.

    Raises SettingsError for version 0; RanksError where ranks have different problems.
    """
    if not settings.version:
        raise SettingsError("prm.Settings.version is 0; allowed with ranks: 1, 2, 3")
    if ranks.local_rank == 0:
        warm_up()
    problem = {
        "start": _numbers(start),
        "goals": _numbers(goals),
        "robot": getattr(checker.robot, "joint_names", checker.robot.dof),
        "limits": np.stack([checker.robot.lower, checker.robot.upper]),
        "checksum of shapes and obstacles": [zlib.crc32(part) for part in checker.packed_scene],
        "check of motions (mode, step)": tuple(map(float, checker.motion_args)),
        "seed": int(seed),
        **{f"{title(Settings)}.{name}": value for name, value in asdict(replace(settings, workers=1)).items()},
    }
    gathered = ranks.all_gather((problem, batch))
    first = gathered[0][0]
    for rank, (other, _) in enumerate(gathered):
        for what, value in other.items():
            if not _same(value, first[what]):
                raise RanksError(
                    f"the ranks must solve one problem, but {what} of rank 0 is {shown(first[what])}, and of rank "
                    f"{rank} {shown(value)}"
                )
    if ranks.local_rank != 0:
        warm_up()
    ranks.all_gather(None)
    return gathered[0][1]


def opened(ranks: Exchange, query: Query | PlanningResult) -> Query | PlanningResult:
    """-> this rank's query, or the same failure in all ranks where one has a failure."""
    failures = [each for each in ranks.all_gather(query if isinstance(query, PlanningResult) else None) if each]
    return failures[0] if failures else query


def ended(ranks: Exchange, query: Query, result: Callable[[], PlanningResult]) -> PlanningResult:
    """-> the first rank's result in all ranks; or a failure, where obstacles changed in one."""
    own = result() if ranks.rank == 0 else None
    if query.checker.version != query.version:
        own = query.failed(Status.WORLD_CHANGED, f"obstacles of rank {ranks.rank} changed during the search; ask again")
    results = ranks.all_gather(own)
    return next((each for each in results if each and each.status is Status.WORLD_CHANGED), results[0])


def _numbers(values):
    """An array, or the text of what is none: open_query says what is wrong with it."""
    try:
        return np.asarray(values, dtype=np.float64)
    except Exception:
        return shown(values)


def _same(a, b):
    arrays = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
    return np.array_equal(a, b, equal_nan=True) if arrays else type(a) is type(b) and a == b
