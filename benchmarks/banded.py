"""Fields of maps that are cut into bands over ranks: `mpirun -n 2 gpu-planners bench --only banded`."""

import time
import zlib
from dataclasses import dataclass

import numpy as np

from gpu_planners.distributed import run
from gpu_planners.grid import BandedPlanner, MapRows

from .grid_fields import DENSITY
from .harness import Benchmark, Row, told

AGENTS = 1024
THREADS = 2  # in place of ranks, without mpirun
ROWS_A_TIME, BLOCK = 512, 32


@dataclass(frozen=True)
class Case:
    """A random map, and where its goal lies; one_rank: is the field made by one rank as well?"""

    size: int
    connectivity: int = 4
    corner: bool = False
    one_rank: bool = True

    @property
    def text(self):
        where = "in a corner" if self.corner else "at the centre"
        return f"{self.size}x{self.size}, {self.connectivity}-connected, goal {where}"


SMALL = (Case(1024), Case(1024, corner=True), Case(512, 8))
COMMON = (Case(4096), Case(4096, corner=True), Case(8192), Case(2048, 8))
LARGE = (Case(8192), Case(16384), Case(16384, corner=True), Case(32768), Case(4096, 8))


def banded(context):
    """Rows of the ranks of mpirun, or of two threads."""
    cases, rows = SMALL if context.quick else LARGE if context.full else COMMON, []
    for device, missing in context.asked_for():
        for case in cases:
            who = f"gpu_planners, {'cpu' if device == 'cpu' else 'a GPU each'}"
            if missing:
                rows.append(Row(case.text, who, note=missing))
                continue
            if context.ranks:
                figures = _measured(case, device, context.ranks)
            else:
                figures = run(THREADS, lambda exchange, c=case, d=device: _measured(c, d, exchange))[0]
            row = Row(case.text, who, figures)
            rows.append(row if context.ranks and context.ranks.rank else told(row))
    return rows


def _measured(case, device, exchange):
    source = MapRows.random(case.size, case.size, DENSITY, seed=case.size)
    goal, starts = _tiles(case, source)
    figures, identical = {"ranks": f"{exchange.size}"}, None
    answer, checksums = _one(case, device, exchange, source, goal, starts)
    figures |= answer
    if case.one_rank:
        alone = None
        if exchange.rank == 0:
            alone = run(1, lambda lone: _one(case, device, lone, source, goal, starts))[0]
        exchange.all_gather(0)  # the others wait
        if alone is not None:
            figures["one_rank_s"] = alone[0]["time_s"]
            identical = alone[1] == checksums
            figures["identical"] = "yes" if identical else "no"
    return figures


def _tiles(case, source):
    """A free goal, and free tiles to start from."""
    rng, middle = np.random.default_rng(1), case.size // 2
    row = 0 if case.corner else middle
    goal = (row, int(np.flatnonzero(source.read(row, row + 1)[0])[0 if case.corner else int(middle * (1 - DENSITY))]))
    rows = np.sort(rng.integers(case.size, size=32))
    lines = np.concatenate([source.read(r, r + 1) for r in rows.tolist()])
    line, col = np.nonzero(lines)
    chosen = rng.integers(len(line), size=AGENTS)
    return goal, np.column_stack([rows[line[chosen]], col[chosen]])


def _one(case, device, exchange, source, goal, starts):
    """-> figures of the first rank; checksums of all rows of the field, by pieces"""
    began = time.perf_counter()
    planner = BandedPlanner(source, exchange, case.connectivity, device="cpu" if device == "cpu" else "auto")
    exchange.all_gather(0)
    figures = {"map_s": time.perf_counter() - began}
    planner.prepare(starts[0])  # compiles
    exchange.all_gather(0)
    planner.prepare(goal)
    reports = exchange.all_gather(planner.report)
    figures["time_s"] = max(report.time_s for report in reports)
    figures["rounds"] = f"{reports[0].rounds}"
    figures["sent_mb"] = sum(report.sent_bytes for report in reports) / 2**20
    began = time.perf_counter()
    figures["solved"] = float(planner.plan(starts, goal).solved.mean())
    figures["paths_s"] = time.perf_counter() - began
    return figures, _checksums(planner, goal, exchange)


def _checksums(planner, goal, exchange):
    """{first row: checksum} of the whole field, by rows of blocks."""
    own, band = {}, planner.band
    for begin in range(0, max(each.rows for each in planner.bands), ROWS_A_TIME):
        first, last = (min(band.first + row, band.last) for row in (begin, begin + ROWS_A_TIME))
        field = planner.field(goal, (first, last))
        own |= {first + row: zlib.crc32(field[row : row + BLOCK]) for row in range(0, last - first, BLOCK)}
    return {row: check for part in exchange.all_gather(own) for row, check in part.items()}


BENCHMARKS = (
    Benchmark(
        "banded",
        "Maps cut into bands over ranks",
        f"Random maps with {100 * DENSITY:.0f} % obstacles; each rank makes and holds the rows of its band. "
        "Map: until every rank has its band. Time: until the field is there on every rank, one run, warm; one rank: "
        "the same by one rank with all threads. Rounds: how often the ranks exchanged their borders; sent: what all of "
        f"them sent for it. Paths: {AGENTS} agents from random starts across all bands, gathered on every rank. "
        "Identical: each tile's cost-to-go beside that of one rank. Ranks are mpirun's, else two threads.",
        {
            "ranks": "text",
            "map_s": "ratio",
            "time_s": "ratio",
            "one_rank_s": "ratio",
            "rounds": "text",
            "sent_mb": "ms",
            "paths_s": "ratio",
            "solved": "share",
            "identical": "text",
        },
        banded,
        on_ranks=True,
    ),
)
