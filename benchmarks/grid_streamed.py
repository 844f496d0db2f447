"""Maps whose field does not fit into the memory limit: planned window by window."""

import time
from dataclasses import dataclass

import numpy as np

from gpu_planners.grid import BlockPlanner
from gpu_planners.grid.exact.fields import Settings
from gpu_planners.grid.maps.generated import random_map

from .grid_fields import DENSITY
from .harness import Benchmark, Row, told

AGENTS = 1024


@dataclass(frozen=True)
class Case:
    """A map, the limit of the memory that its field may use, and whether its field is made in one piece as well."""

    size: int
    limit_mb: int
    connectivity: int = 4
    one_piece: bool = False

    @property
    def text(self):
        return f"{self.size}x{self.size}, {self.connectivity}-connected, limit {self.limit_mb} MiB"


SMALL = (Case(4096, 4),)
CPU = (Case(8192, 16, one_piece=True), Case(2048, 8, connectivity=8, one_piece=True))
GPU = (Case(8192, 16, one_piece=True), Case(8192, 128, connectivity=8, one_piece=True), Case(32768, 256))


def streamed(context):
    """Rows of fields within a limit, of each device, and of the field in one piece."""
    rows = []
    for device, missing in context.asked_for():
        cpu = device == "cpu"
        cases = SMALL if context.quick else GPU if not cpu or context.full else CPU
        for case in cases:
            if missing:
                rows.append(Row(case.text, f"gpu_planners, {device}", note=missing))
            else:
                rows.append(_planned(case, device))
    return rows


def _planned(case, device):
    side = case.size
    goal = np.array([side // 2, side // 2])
    grid = random_map(side, side, DENSITY, seed=side, connectivity=case.connectivity, free=[goal])
    rng = np.random.default_rng(1)
    starts = rng.integers(side, size=(2 * AGENTS, 2))
    starts = starts[grid.costs[starts[:, 0], starts[:, 1]] > 0][:AGENTS]
    limited = BlockPlanner(grid, device=device, settings=Settings(memory_limit_bytes=case.limit_mb << 20))
    fields, taken, paths = limited._engine._fields, [], None
    for at in (np.argwhere(grid.costs[:1])[0], goal):  # the first field compiles
        began = time.perf_counter()
        limited.plan(at[None], at)
        taken.append(time.perf_counter() - began)
    paths = limited.plan(starts, goal)
    figures = {
        "one_piece_mb": limited._engine.shape.bytes_with_map / 2**20,
        "window_mb": fields.cut.window.bytes_with_map / 2**20,
        "windows": f"{fields.cut.down}x{fields.cut.across}",
        "visits": f"{fields.visits}",
        "time_s": taken[1],
        "solved": float(paths.solved.mean()),
    }
    if case.one_piece:
        one_piece = BlockPlanner(grid, device=device)
        one_piece.plan(starts[:1], starts[0])
        began = time.perf_counter()
        one_piece.plan(goal[None], goal)
        figures["one_piece_s"] = time.perf_counter() - began
        expected = one_piece.plan(starts, goal)
        same = all(
            np.array_equal(getattr(paths, name), getattr(expected, name)) for name in ("status", "cost", "words")
        )
        figures["identical"] = "yes" if same else "no"
    return told(Row(case.text, f"gpu_planners, {device}", figures))


BENCHMARKS = (
    Benchmark(
        "grid_streamed",
        "Maps larger than the memory limit",
        f"Random maps with {100 * DENSITY:.0f} % obstacles, goal at the centre. Field: what one field and its map "
        f"would take in one piece. "
        "Window: the piece that lies on the device, of so many down and across; the state of the whole map lies in "
        "host memory. "
        "Visits: how often a window was worked on. Time: until the field is there, one run, warm; in one piece: the "
        "same without the "
        f"limit. Identical: costs and steps of {AGENTS} agents with random starts, beside those of one piece.",
        {
            "one_piece_mb": "ms",
            "window_mb": "ms",
            "windows": "text",
            "visits": "text",
            "time_s": "ratio",
            "one_piece_s": "ratio",
            "identical": "text",
            "solved": "share",
        },
        streamed,
    ),
)
