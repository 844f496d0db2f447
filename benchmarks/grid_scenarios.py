"""MovingAI's scenarios: every start and goal of the shared files, against the lengths that are published with them."""

import time

import numpy as np

from gpu_planners.grid import BlockPlanner, load_movingai_map, load_movingai_scen

from .harness import Benchmark, Row, progress, told
from .problems import data_dir

EVERY_ON_CPU = 40  # without --full
ROUNDING = 1e-7  # of a length: the published ones are sums of single-precision numbers


def scenarios(context):
    """Rows of each file, and of all together, by device."""
    rows = []
    for device, missing in context.asked_for():
        subject = f"exact, {device}"
        if missing:
            rows.append(Row("all", subject, note=missing))
            continue
        every = 200 if context.quick else 1 if context.full or device != "cpu" else EVERY_ON_CPU
        files = sorted((data_dir(context.data) / "movingai").glob("*.scen"))
        found = [_solved(path, every, device) for path in progress(files, f"scenarios, {device}")]
        for path, figures in zip(files, found, strict=True):
            rows.append(Row(path.name, subject, _columns(figures)))
        rows.append(told(Row(f"all {len(files)} files", subject, _columns(np.sum(found, axis=0)))))
    return rows


def _columns(figures):
    count, goals, solved, exact, taken = figures
    each = 1e3 * taken / count
    return {
        "scenarios": int(count),
        "goals": int(goals),
        "found": int(solved),
        "as_published": int(exact),
        "time_ms": float(each),
    }


def _solved(path, every, device):
    """-> how many scenarios, distinct goals, solved ones and ones of the published length; seconds"""
    file = load_movingai_scen(path)
    starts, goals, lengths, precisions = (a[::every] for a in (file.starts, file.goals, file.lengths, file.precisions))
    planner = BlockPlanner(load_movingai_map(path.parent / file.map_name.split("/")[-1]), device=device)
    planner.plan(starts[:1], goals[:1])
    planner._engine.forget()
    began = time.perf_counter()
    paths = planner.plan(starts, goals)
    taken = time.perf_counter() - began
    exact = np.abs(paths.cost - lengths) <= precisions + ROUNDING * lengths
    return len(starts), len(np.unique(goals, axis=0)), paths.solved.sum(), exact.sum(), taken


BENCHMARKS = (
    Benchmark(
        "grid_scenarios",
        "MovingAI's scenarios",
        "Every scenario of the shared files, on 8-connected maps without cutting corners, one call for a file. As "
        "published: the path is as "
        "long as the file says, to the digits that it gives. Time: of a scenario, its share of the call; agents with "
        "the same goal share a "
        f"field, of which nothing is there before. On the CPU without --full: every {EVERY_ON_CPU}th.",
        {"scenarios": "count", "goals": "count", "found": "count", "as_published": "count", "time_ms": "ms"},
        scenarios,
    ),
)
