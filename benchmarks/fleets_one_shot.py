"""Whole plans of fleets on MovingAI's maps, with LaCAM3 beside, whole and without what makes its plans better."""

import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from gpu_planners.fleet import conflicts
from gpu_planners.grid import FleetPlanner, load_movingai_map, load_movingai_scen
from gpu_planners.grid.maps.generated import largest_component

from .harness import Benchmark, Row, progress, told
from .problems import data_dir

PEER = "LACAM3"  # the environment variable that holds the path of LaCAM3's program `main`
INSTANCES = (  # map, agents, seconds
    ("room-64-64-16", 500, 10),
    ("random-64-64-20", 1000, 10),
    ("empty-48-48", 1000, 10),
    ("maze-128-128-10", 1000, 10),
    ("den520d", 1000, 10),
    ("warehouse-20-40-10-2-1", 1000, 10),
    ("den520d", 5000, 30),
    ("Berlin_1_256", 5000, 30),
    ("warehouse-20-40-10-2-1", 10000, 90),
)
QUICK = 5  # of the instances
VARIANTS = {  # what LaCAM3's program is told
    "LaCAM3": (),
    "LaCAM3, first plan without its refinements": (
        "--no-star", "--no-scatter", "--no-refiner", "--pibt-num", "1",
    ),
}  # fmt: skip


def one_shot(context):
    """Rows of each instance: both motions of ours, then the peers."""
    rows, folder = [], data_dir(context.data) / "movingai"
    instances = INSTANCES[:QUICK] if context.quick else INSTANCES
    for name, agents, limit in progress(instances, "one-shot plans"):
        grid = load_movingai_map(folder / f"{name}.map", connectivity=4)
        starts, goals = _query(folder, name, grid, agents)
        case = f"{name}, {agents} agents"
        for motion in ("four", "turning"):
            fleet = FleetPlanner(grid, motion, "cpu")
            fleet.solve(starts[:2], goals[:2], 0.1)
            plan = fleet.solve(starts, goals, limit)
            wrong = conflicts(plan.positions, grid.costs == 0)
            note = f"{len(wrong)} conflicts" if wrong else "" if plan.solved else plan.message
            figures = {
                "reached": float((plan.status == 0).mean()),
                "first_ms": 1e3 * plan.first_s,
                "time_ms": 1e3 * plan.time_s,
                "cost": plan.sum_of_costs,
                "over_bound": plan.sum_of_costs / max(1, plan.lower_bound),
                "makespan": plan.makespan,
            }
            rows.append(told(Row(case, f"ours, {motion}, cpu", figures, note=note)))
        for peer, options in VARIANTS.items():
            rows.append(told(_peer(case, peer, options, folder / f"{name}.map", grid, starts, goals, limit)))
    return rows


def _query(folder, name, grid, agents):
    """Agents 1 .. n of the scenario; where it has fewer, n random starts and goals on the largest part of the map."""
    file = load_movingai_scen(folder / f"{name}-random-1.scen")
    if agents <= len(file):
        return file.starts[:agents], file.goals[:agents]
    tiles = np.argwhere(largest_component(grid))
    rng = np.random.default_rng(0)
    return tiles[rng.permutation(len(tiles))[:agents]], tiles[rng.permutation(len(tiles))[:agents]]


def _peer(case, peer, options, map_path, grid, starts, goals, limit):
    """A row of LaCAM3's program, on the same query."""
    program = os.environ.get(PEER, "")
    if not Path(program).is_file():
        return Row(case, peer, note=f"{PEER} does not name LaCAM3's program")
    rows, cols = grid.shape
    with tempfile.TemporaryDirectory() as folder:
        lines = ["version 1"]
        for (row, col), (goal_row, goal_col) in zip(starts, goals, strict=True):
            lines.append(f"0\t{map_path.name}\t{cols}\t{rows}\t{col}\t{row}\t{goal_col}\t{goal_row}\t0.0")
        scenario, answer = Path(folder) / "query.scen", Path(folder) / "answer.txt"
        scenario.write_text("\n".join(lines) + "\n")
        command = [
            program,
            "-m",
            map_path,
            "-i",
            scenario,
            "-N",
            len(starts),
            "-t",
            limit,
            "-o",
            answer,
            "-l",
            *options,
        ]
        began = time.perf_counter()
        try:
            # afterwards the program checks its answer, which may take it longer than planning
            subprocess.run(list(map(str, command)), capture_output=True, timeout=20 * limit, check=False)
        except subprocess.TimeoutExpired:
            return Row(case, peer, note=f"no answer within {time.perf_counter() - began:.0f} s")
        found = dict(line.split("=", 1) for line in answer.read_text().splitlines() if "=" in line)
    if found.get("solved") != "1" or int(found["soc"]) == 0:
        return Row(case, peer, {"reached": 0.0, "time_ms": float(found["comp_time"])}, note="no plan in time")
    figures = {
        "reached": 1.0,
        "first_ms": float(found.get("comp_time_initial_solution", "nan")),
        "time_ms": float(found["comp_time"]),
        "cost": int(found["soc"]),
        "over_bound": int(found["soc"]) / max(1, int(found["soc_lb"])),
        "makespan": int(found["makespan"]),
    }
    return Row(case, peer, figures)


BENCHMARKS = (
    Benchmark(
        "fleets_one_shot",
        "Whole plans of fleets",
        "Every agent goes from its start to its goal and stays there, without conflicts: agents 1 to n of a scenario "
        "of MovingAI's, or random ones where it has fewer. First: time until the first plan; the rest of the time "
        "makes it better. Sum of costs: the steps from which on agents stay at their goals, added up; x bound: against "
        "all shortest paths. Turning: agents face one way and a quarter turn takes a step. The peer is LaCAM3's "
        f"program, built from its source and named by the environment variable {PEER}; it knows no turns.",
        {
            "reached": "share",
            "first_ms": "ms",
            "time_ms": "ms",
            "cost": "count",
            "over_bound": "ratio",
            "makespan": "count",
        },
        one_shot,
    ),
)
