"""What a rank does in test_bands.py: plans on its band, and compares with one device; the last rank then fails to read
its part of a map, or dies there at once.

`python rank_bands.py plans|killed [device [memory_limit_bytes]]`; the first rank prints the JSON of all.
"""

import json
import os
import signal
import sys

import numpy as np

from gpu_planners.distributed import Ranks, mpi
from gpu_planners.errors import RanksError
from gpu_planners.grid import BandedPlanner, BlockPlanner, GridMap, MapRows
from gpu_planners.grid.maps.generated import caves_and_rooms

ROWS, COLS, BLOCK = 203, 90, 8
DEVICE = sys.argv[2] if len(sys.argv) > 2 else "cpu"
LIMIT = int(sys.argv[3]) if len(sys.argv) > 3 else None


def plans(ranks):
    """-> are paths and field those of one device, for each layout of fields?"""
    same = []
    for connectivity, highest in ((4, 1), (8, 9)):
        rng = np.random.default_rng(connectivity)
        free = caves_and_rooms(ROWS, COLS, 3, connectivity).costs
        grid = GridMap(free * rng.integers(1, highest + 1, free.shape), connectivity)
        starts, goals = np.argwhere(grid.costs)[rng.integers(free.sum(), size=(2, 200))]
        goals[3:] = goals[rng.integers(3, size=197)]
        banded = BandedPlanner(MapRows.of_grid(grid), ranks, connectivity, BLOCK, DEVICE, memory_limit_bytes=LIMIT)
        one = BlockPlanner(grid, block_size=BLOCK, device="cpu")
        paths, expected = banded.plan(starts, goals), one.plan(starts, goals)
        same += [np.array_equal(getattr(paths, name), getattr(expected, name)) for name in ("status", "cost", "length")]
        same += map(np.array_equal, paths.paths(), expected.paths())
        rows = slice(banded.band.first, banded.band.last)
        same.append(np.array_equal(banded.field(goals[0]), one.field(goals[0])[rows]))
    told = {"device": banded.device, "pieces": banded.visits is not None}
    return told | {"same": bool(np.all(same)), "rounds": banded.report.rounds, "bytes": banded.report.sent_bytes}


def fails(ranks, how):
    """The last rank comes as far as its map."""

    def read(first, last):
        if ranks.rank == ranks.size - 1 and how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if ranks.rank == ranks.size - 1:
            raise OSError(f"row {first} cannot be read")
        return np.ones((last - first, COLS), np.uint8)

    BandedPlanner(MapRows(ROWS, COLS, read), ranks, 4, BLOCK, device="cpu")


answer = {}
if sys.argv[1] == "plans":
    with Ranks(timeout_s=200) as ranks:
        answer = plans(ranks)
        if ranks.size == 4:
            with Ranks(mpi.load().COMM_WORLD.Split(ranks.rank // 2), timeout_s=200) as pair:
                answer["pair"] = plans(pair)
try:
    with Ranks(timeout_s=200) as ranks:
        fails(ranks, sys.argv[1])
except (OSError, RanksError) as error:
    answer["fault"] = f"{type(error).__name__}: {error}"
with Ranks(timeout_s=200) as ranks:
    answers = ranks.all_gather(answer)
    if ranks.rank == 0:
        print(json.dumps(answers), flush=True)
