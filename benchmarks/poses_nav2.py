"""Single queries of a robot with a shape, beside Nav2's Smac Hybrid-A*, on the maps of Nav2's own benchmark.

Nav2's planner is its plugin, asked by a program, whose path the variable NAV2_PEER holds: nav2_peer.cpp beside
this file, linked with Nav2's packages nav2_core and nav2_costmap_2d, with pluginlib and rclcpp. NAV2_MAPS names
the folder tools/planner_benchmarking of Nav2's sources.
"""

import math
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import yaml

from gpu_planners.grid import PoseGrid, PosePlanner, load_map_yaml

from .harness import Benchmark, Row, median, percentile, told

PROGRAM, MAPS = "NAV2_PEER", "NAV2_MAPS"  # environment variables
NAMES = ("100by100_10", "100by100_15", "100by100_20")
PLUGIN = "nav2_smac_planner::SmacPlannerHybrid"
FOOTPRINT = [(0.45, 0.31), (-0.45, 0.31), (-0.45, -0.31), (0.45, -0.31)]
RADIUS = 0.4  # of turning, metres: Nav2's default
FARTHER = 10.0  # metres from start to goal, at least
LETHAL = 254


def run(context):
    """Rows for each map: ours and theirs on the same queries."""
    folder, rows = Path(os.environ.get(MAPS, "")), []
    if not os.environ.get(MAPS) or not folder.is_dir():
        return [Row("planner_benchmarking", "all", note=f"the variable {MAPS} names no folder with its maps")]
    for name in NAMES[:1] if context.quick else NAMES:
        grid = load_map_yaml(folder / f"{name}.yaml")
        poses = PoseGrid(grid.costs, FOOTPRINT, 16, "REEDS_SHEPP", RADIUS, grid.resolution)
        planner = PosePlanner(poses, device="cpu")
        ends = _ends(planner, 6 if context.quick else 21)
        ours, theirs = _ours(planner, ends), _theirs(grid, ends)
        both = [k for k in range(1, len(ends)) if len(ours[k][1]) and theirs and len(theirs[k][1])]
        rows.append(told(_row(name, "gpu_planners, cpu", planner, ours, both)))
        note = "" if theirs else f"the variable {PROGRAM} names no program"
        rows.append(told(_row(name, "Nav2, SmacPlannerHybrid", planner, theirs, both, note)))
    return rows


def _ends(planner, count):
    """(count, 2, 3) starts and goals on free states of one part of the map, far from each other."""
    rng, extent = np.random.default_rng(0), np.array(planner.poses.map.shape[::-1]) * planner.poses.resolution
    given = np.column_stack([rng.uniform(0, extent, (60 * count, 2)), rng.uniform(-math.pi, math.pi, 60 * count)])
    given = given[planner.states_free(given)]
    pairs = zip(given[::2], given[1::2])
    return np.array([(a, b) for a, b in pairs if math.dist(a[:2], b[:2]) > FARTHER][:count])


def _ours(planner, ends):
    """[(seconds, poses (K, 3), none where there is no path)]; the first query compiles"""
    answers = []
    for start, goal in ends:
        began = time.perf_counter()
        paths = planner.plan(start, goal)
        path = paths.path(0)
        answers.append((time.perf_counter() - began, path))
    return answers


def _theirs(grid, ends):
    """The same by the program; empty where there is none."""
    program = os.environ.get(PROGRAM, "")
    if not Path(program).is_file():
        return []
    points = str([list(point) for point in FOOTPRINT])
    inflation = {"plugin": "nav2_costmap_2d::InflationLayer", "inflation_radius": 0.7}
    costmap = {"footprint": points, "plugins": ["inflation_layer"], "inflation_layer": inflation}
    search = {"motion_model_for_search": "REEDS_SHEPP", "minimum_turning_radius": RADIUS}
    told = {"global_costmap": {"global_costmap": {"ros__parameters": costmap}}}
    told["planner"] = {"ros__parameters": {"GridBased": search}}
    with tempfile.TemporaryDirectory() as folder:
        costs, parameters = Path(folder, "costs"), Path(folder, "nav2.yaml")
        costs.write_bytes(np.where(grid.blocked, np.uint8(LETHAL), np.uint8(0)).tobytes())
        parameters.write_text(yaml.safe_dump(told))
        size = [*map(str, grid.shape), str(grid.resolution)]
        command = [program, PLUGIN, costs, *size, "--ros-args", "--params-file", parameters, "--log-level", "fatal"]
        lines = "".join(" ".join(map(str, [*start, *goal])) + "\n" for start, goal in ends.tolist())
        done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=60 + 15 * len(ends))
    if done.returncode:
        raise RuntimeError(f"{program} ended with {done.returncode}: {done.stderr[-2000:]}")
    answers = []
    for line in done.stdout.partition("ready\n")[2].splitlines():
        seconds, *numbers = line.split(" ")
        path = np.zeros((0, 3)) if "failed" in numbers else np.array(numbers, float).reshape(-1, 3)
        answers.append((float(seconds), path))
    return answers


def _row(case, subject, planner, answers, both, note=""):
    if not answers:
        return Row(case, subject, note=note)
    taken = [seconds for seconds, _ in answers[1:]]
    solved = [path for _, path in answers[1:] if len(path)]
    lengths = [np.hypot(*np.diff(answers[k][1][:, :2], axis=0).T).sum() for k in both]
    figures = {
        "solved": len(solved) / len(taken),
        "free": float(np.mean([planner.path_free(path) for path in solved])) if solved else 0.0,
        "length": float(np.mean(lengths)) if lengths else math.nan,
        "query_ms": 1e3 * median(taken),
        "query_p95_ms": 1e3 * percentile(taken, 95),
    }
    return Row(case, subject, figures, taken, note)


BENCHMARKS = (
    Benchmark(
        "poses_nav2",
        "Robots with a shape, beside Nav2's Smac Hybrid-A*",
        "A car of 0.62 x 0.9 m that drives both ways in curves of 0.4 m, on the maps of Nav2's own planner benchmark, "
        "2000 x 2000 tiles of 0.05 m; 20 queries over more than 10 m each. Smac has its default settings, and its "
        "costmap an inflation of 0.7 m. Solved: share of the queries. Free: share of the paths on which the footprint "
        "meets no obstacle, between poses too. Length: metres, mean of the queries that both solve.",
        {"solved": "share", "free": "share", "length": "length", "query_ms": "ms", "query_p95_ms": "ms"},
        run,
    ),
)
