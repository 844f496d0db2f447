"""The experiments of [CE12]: figures 5 and 6 (time by step, memory, speed-up over P-RTAA*) and table I (paths found,
length)."""

import numpy as np

from gpu_planners.grid import BlockPlanner
from gpu_planners.grid.maps.generated import random_free_tiles, random_map

from .grid_timing import split_seconds
from .harness import Benchmark, Row, median, progress, told

DENSITY = 0.1  # of the maps of figures 5 and 6, which the paper does not state
ALL_AGENTS = tuple(1 << power for power in range(9, 19))
RTAA = "P-RTAA*, lookahead 3"
PLANNERS = {
    RTAA: ("rtaa_star", 32),
    "P-BA*-4": ("pba_star", 4),
    "P-BA*-8": ("pba_star", 8),
    "P-BA*-16": ("pba_star", 16),
    "P-BA*-32": ("pba_star", 32),
    "exact": ("exact", 32),
}
SIZES, RATES = (32, 64, 128, 256, 512), (10, 15, 20, 25)
TABLE_PLANNERS = {
    "astar": ("astar", 32),
    "pba_4": ("pba_star", 4),
    "pba_8": ("pba_star", 8),
    "pba_16": ("pba_star", 16),
    "exact": ("exact", 32),
}
PAPER_TABLE = {  # (size, rate): mean lengths of A*, P-BA*-4, -8, -16 and how many of 100 were found
    (32, 10): "33.9, 33.9, 33.8, 33.8; 100, 97, 99, 99",
    (32, 15): "35.1, 35.5, 35.5, 35.3; 98, 84, 92, 94",
    (32, 20): "37.6, 36.8, 37.0, 37.2; 85, 45, 61, 72",
    (32, 25): "39.3, 38.0, 38.4, 38.6; 74, 18, 34, 48",
    (64, 10): "68.5, 68.7, 68.3, 68.5; 97, 85, 90, 95",
    (64, 15): "70.7, 71.9, 71.3, 71.4; 93, 64, 73, 87",
    (64, 20): "74.7, 73.5, 73.8, 73.8; 85, 30, 42, 53",
    (64, 25): "79.8, 77.4, 77.3, 78.2; 69, 10, 17, 29",
    (128, 10): "138.1, 138.9, 138.5, 138.1; 99, 82, 86, 94",
    (128, 15): "142.8, 143.4, 142.8, 142.9; 91, 47, 63, 79",
    (128, 20): "151.0, 148.6, 149.3, 149.4; 85, 10, 19, 34",
    (128, 25): "161.4, -, 155.0, 153.0; 69, 0, 3, 7",
    (256, 10): "277.1, 277.9, 276.7, 276.5; 100, 54, 8, 14",
    (256, 15): "287.5, 288.6, 287.9, 286.6; 97, 15, 13, 13",
    (256, 20): "301.6, 292.0, 296.4, 298.6; 88, 1, 9, 15",
    (256, 25): "324.2, -, 314.0, 309.8; 61, 0, 1, 3",
    (512, 10): "557.2, 561.4, 556.5, 556.3; 99, 33, 45, 61",
    (512, 15): "577.0, 580.5, 571.9, 573.9; 99, 4, 16, 28",
    (512, 20): "605.3, -, -, 601.3; 91, 0, 0, 3",
    (512, 25): "639.1, -, -, -; 90, 0, 0, 0",
}


def agents(context):
    """Rows of each planner for groups of agents on two maps, the goal at the centre (figures 5 and 6)."""
    rows = []
    for device, missing in context.asked_for():
        if missing:
            rows.append(Row("all", f"gpu_planners, {device}", note=missing))
            continue
        whole = context.full or device != "cpu"
        for size in (512,) if context.quick else (512, 1024):
            goal = np.array([size // 2, size // 2])
            grid = random_map(size, size, DENSITY, seed=size, connectivity=4, free=[goal])
            counts = ALL_AGENTS if whole else (512, 8192)
            for count in counts[:: len(counts) - 1] if context.quick else counts:
                rows += _group(grid, random_free_tiles(grid, count, seed=count), goal, device)
    rows.append(
        Row(
            "512 to 262,144 agents",
            "[CE12], GTX 480",
            quoted="P-BA* over P-RTAA*: 5 to 45 times on 512x512, 9 to 44 times on 1024x1024",
        )
    )
    return rows


def _group(grid, starts, goal, device):
    rows, base = [], None
    for name, (algorithm, block_size) in progress(PLANNERS.items(), f"{len(starts)} agents, {device}"):
        planner = BlockPlanner(grid, algorithm, block_size, device)
        taken, steps, paths = split_seconds(planner, starts, goal)
        base = base or median(taken)
        figures = {
            "time_ms": 1e3 * median(taken),
            **{f"{step}_ms": 1e3 * value for step, value in steps.items()},
            "over_rtaa": base / median(taken),
            "solved": float(paths.solved.mean()),
            "steps": float(paths.length[paths.solved].mean()) if paths.solved.any() else float("nan"),
        }
        figures["memory_mb"] = planner._engine.memory_bytes / 2**20
        case = f"{grid.rows}x{grid.cols}, {len(starts):,} agents"
        rows.append(told(Row(case, f"{name}, {device}", figures, taken.tolist())))
    return rows


def table(context):
    """Rows of paths found and their lengths, upper left to lower right corner (table I). The device does not matter:
    on the CPU."""
    if context.devices == ():
        return [Row("all", "gpu_planners", note="no device")]
    runs = 100 if context.full else 4 if context.quick else 25
    rows = []
    for connectivity in (4, 8) if context.full else (4,):
        for size in SIZES[:3] if context.quick else SIZES:
            for rate in progress(RATES, f"table I, {size}x{size}"):
                figures = _table_row(size, rate, connectivity, runs)
                quoted = PAPER_TABLE[size, rate]
                rows.append(
                    told(
                        Row(
                            f"{size}x{size}, {rate} %", f"{connectivity}-connected, {runs} runs", figures, quoted=quoted
                        )
                    )
                )
    return rows


def _table_row(size, rate, connectivity, runs):
    corner, costs = [size - 1, size - 1], {}
    lengths = {}
    for run in range(runs):
        seed = [size, rate, run]
        grid = random_map(size, size, rate / 100, seed, connectivity, free=[(0, 0), corner])
        for name, (algorithm, block_size) in TABLE_PLANNERS.items():
            paths = BlockPlanner(grid, algorithm, block_size, "cpu").plan([[0, 0]], corner)
            if paths.solved[0]:
                lengths.setdefault(name, []).append(int(paths.length[0]))
                costs[name, run] = paths.cost[0]
    figures = {
        f"{name}_length": float(np.mean(lengths[name])) if name in lengths else float("nan") for name in TABLE_PLANNERS
    }
    figures |= {f"{name}_found": len(lengths.get(name, ())) for name in TABLE_PLANNERS}
    differing = sum(
        not np.isclose(costs.get(("astar", run), -1.0), costs.get(("exact", run), -1.0), rtol=1e-9)
        for run in range(runs)
    )
    return figures | {"differing": differing}


BENCHMARKS = (
    Benchmark(
        "grid_agents",
        "Many agents, one goal at the centre ([CE12], figures 5 and 6)",
        f"Random maps with {100 * DENSITY:.0f} % obstacles, cost 1, 4-connected; random free starts. Median wall time "
        f"of plan() with "
        "nothing kept, paths on the host. Field: border-to-border step of P-BA*, cost-to-go of exact. Agents: "
        "start-to-border "
        "step and putting paths together, search of P-RTAA*, descent of exact. Copy: device to host, where it is a "
        "step of its own. Memory: "
        "all that is kept where it is planned, without the map. "
        "P-BA* goes around loops while moving, as the paper's first treatment. On the CPU without --full: few groups.",
        {
            "time_ms": "ms",
            "field_ms": "ms",
            "agents_ms": "ms",
            "copy_ms": "ms",
            "over_rtaa": "ratio",
            "memory_mb": "ms",
            "solved": "share",
            "steps": "length",
        },
        agents,
    ),
    Benchmark(
        "grid_table",
        "Paths found and their length ([CE12], table I)",
        "Random obstacles, upper left to lower right corner, both free; mean steps of the paths that each planner "
        "finds, and how "
        "many it finds. Differing: runs where exact and A* disagree about the path's existence or cost. Quoted: "
        "lengths, then "
        "paths found of 100, of A*, P-BA*-4, -8, -16; its lengths are shorter than the corners' Manhattan distance, "
        "so diagonal "
        "steps must have been allowed. 100 runs and 8-connected maps too with --full.",
        {f"{name}_length": "length" for name in TABLE_PLANNERS}
        | {f"{name}_found": "count" for name in TABLE_PLANNERS}
        | {"differing": "count"},
        table,
    ),
)
