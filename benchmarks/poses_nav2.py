"""Single queries of a robot with a shape, beside Nav2's Smac Hybrid-A* and its lattice planner, on the maps of Nav2's
own benchmark and on those of buildings and streets.

Nav2's planners are its plugins, asked by a program, whose path the variable NAV2_PEER holds: nav2_peer.cpp beside
this file, linked with Nav2's packages nav2_core and nav2_costmap_2d, with pluginlib and rclcpp. NAV2_MAPS names
the folder tools/planner_benchmarking of Nav2's sources, NAV2_BUILDINGS one of other maps as map_server reads them.
"""

import math
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import yaml

from gpu_planners.grid import GridMap, MoveCosts, PoseGrid, PosePlanner, load_map_yaml, load_movingai_map

from .harness import Benchmark, Row, median, percentile, told
from .problems import MissingDataError, data_dir

PROGRAM, MAPS, BUILDINGS = "NAV2_PEER", "NAV2_MAPS", "NAV2_BUILDINGS"  # environment variables
NAMES = ("100by100_10", "100by100_15", "100by100_20")
MOVINGAI = ("AR0400SR", "Berlin_0_1024", "orz900d")  # tiles of 0.05 m
LATTICE = "../../nav2_smac_planner/lattice_primitives/sample_primitives/5cm_resolution/0.5m_turning_radius/ackermann"
FOOTPRINT = [(0.45, 0.31), (-0.45, 0.31), (-0.45, -0.31), (0.45, -0.31)]
RADIUS = 0.4  # of turning, metres: Nav2's default
FARTHER = 10.0  # metres from start to goal, at least
LETHAL = 254
SAMPLES = 0.02  # metres: of a path that shapely looks at


def run(context):
    """Rows for each map: ours and theirs on the same queries, with curves of a radius, and with a lattice's moves."""
    folder, rows = Path(os.environ.get(MAPS, "")), []
    if not os.environ.get(MAPS) or not folder.is_dir():
        return [Row("planner_benchmarking", "all", note=f"the variable {MAPS} names no folder with its maps")]
    lattice = folder / LATTICE / "output.json"
    for name, grid in _maps(folder, context):
        poses = PoseGrid(grid.costs, FOOTPRINT, 16, "REEDS_SHEPP", RADIUS, grid.resolution)
        planner = PosePlanner(poses, device="cpu")
        ends, tree = _ends(planner, 6 if context.quick else 21), _blocked(grid)
        search = {"motion_model_for_search": "REEDS_SHEPP", "minimum_turning_radius": RADIUS}
        rows += _beside(name, "SmacPlannerHybrid", search, planner, grid, ends, tree)
        if lattice.is_file() and grid.resolution == 0.05:
            forwards = MoveCosts(reverse=0.0)  # as their planner has it by default
            poses = PoseGrid(grid.costs, FOOTPRINT, model=lattice, resolution=0.05, move_costs=forwards)
            planner, search = PosePlanner(poses, device="cpu"), {"lattice_filepath": str(lattice)}
            ends = ends[planner.states_free(ends[:, 0]) & planner.states_free(ends[:, 1])]
            rows += _beside(f"{name}, lattice", "SmacPlannerLattice", search, planner, grid, ends, tree)
    return rows


def _maps(folder, context):
    """(name, GridMap whose origin is 0) of each"""
    names = NAMES[:1] if context.quick else NAMES
    found = [(name, load_map_yaml(folder / f"{name}.yaml")) for name in names]
    if os.environ.get(BUILDINGS):
        files = sorted(Path(os.environ[BUILDINGS]).glob("*.yaml"))
        found += [(file.stem, load_map_yaml(file)) for file in files]
    if not context.quick:
        try:
            data = data_dir(context.data) / "movingai"
            given = [(name, load_movingai_map(data / f"{name}.map")) for name in MOVINGAI]
            found += [(name, GridMap(grid.costs, 8, 0.05)) for name, grid in given]
        except MissingDataError:
            pass
    return [(name, GridMap(grid.costs, 8, grid.resolution)) for name, grid in found]


def _beside(case, plugin, search, planner, grid, ends, tree):
    ours, theirs = _ours(planner, ends), _theirs(grid, ends, plugin, search)
    both = [k for k in range(1, len(ends)) if len(ours[k][1]) and theirs and len(theirs[k][1])]
    note = "" if theirs else f"the variable {PROGRAM} names no program"
    return [
        told(_row(case, "gpu_planners, cpu", tree, ours, both)),
        told(_row(case, f"Nav2, {plugin}", tree, theirs, both, note)),
    ]


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


def _theirs(grid, ends, plugin, search):
    """The same by the program, with a plugin and its parameters; empty where there is none."""
    program = os.environ.get(PROGRAM, "")
    if not Path(program).is_file():
        return []
    points = str([list(point) for point in FOOTPRINT])
    inflation = {"plugin": "nav2_costmap_2d::InflationLayer", "inflation_radius": 0.7}
    costmap = {"footprint": points, "plugins": ["inflation_layer"], "inflation_layer": inflation}
    told = {"global_costmap": {"global_costmap": {"ros__parameters": costmap}}}
    told["planner"] = {"ros__parameters": {"GridBased": search}}
    with tempfile.TemporaryDirectory() as folder:
        costs, parameters = Path(folder, "costs"), Path(folder, "nav2.yaml")
        costs.write_bytes(np.where(grid.blocked, np.uint8(LETHAL), np.uint8(0)).tobytes())
        parameters.write_text(yaml.safe_dump(told))
        size = [*map(str, grid.shape), str(grid.resolution)]
        command = [
            program,
            f"nav2_smac_planner::{plugin}",
            costs,
            *size,
            "--ros-args",
            "--params-file",
            parameters,
            "--log-level",
            "fatal",
        ]
        lines = "".join(" ".join(map(str, [*start, *goal])) + "\n" for start, goal in ends.tolist())
        done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{program} ended with {done.returncode}: {done.stderr[-2000:]}")
    answers = []
    for line in done.stdout.partition("ready\n")[2].splitlines():
        seconds, *numbers = line.split(" ")
        path = np.zeros((0, 3)) if "failed" in numbers else np.array(numbers, float).reshape(-1, 3)
        answers.append((float(seconds), path))
    return answers


def _blocked(grid):
    """A tree of the blocked tiles, and of a ring of them around the map."""
    import shapely

    rows, cols = np.nonzero(np.pad(grid.blocked, 1, constant_values=True))
    x, y = (cols - 1) * grid.resolution, (rows - 1) * grid.resolution
    inner = 1e-6  # metres: sides that only touch do not meet
    far = grid.resolution - inner
    return shapely.STRtree(shapely.box(x + inner, y + inner, x + far, y + far))


def _is_free(path, tree):
    """Does the footprint meet no blocked tile at poses along a path (K, 3), SAMPLES apart?"""
    import shapely

    steps = np.diff(path, axis=0)
    steps[:, 2] = (steps[:, 2] + math.pi) % (2 * math.pi) - math.pi
    reach = max(math.hypot(*point) for point in FOOTPRINT)
    counts = np.maximum(np.ceil((np.hypot(*steps[:, :2].T) + reach * abs(steps[:, 2])) / SAMPLES), 1).astype(int)
    share = np.concatenate([np.arange(count) / count for count in counts] or [np.zeros(0)])
    poses = np.concatenate([np.repeat(path[:-1], counts, 0) + share[:, None] * np.repeat(steps, counts, 0), path[-1:]])
    cos, sin, (ahead, aside) = np.cos(poses[:, 2:]), np.sin(poses[:, 2:]), np.array(FOOTPRINT).T
    corners = np.stack([poses[:, :1] + cos * ahead - sin * aside, poses[:, 1:2] + sin * ahead + cos * aside], axis=-1)
    return tree.query(shapely.polygons(corners), predicate="intersects").shape[1] == 0


def _driven(path):
    """-> metres; metres where those driven backwards count twice, as both planners price them"""
    steps, middle = (
        np.diff(path[:, :2], axis=0),
        path[:-1, 2] + ((np.diff(path[:, 2]) + math.pi) % (2 * math.pi) - math.pi) / 2,
    )
    long, along = np.hypot(*steps.T), steps[:, 0] * np.cos(middle) + steps[:, 1] * np.sin(middle)
    return float(long.sum()), float((long * np.where(along < 0, 2, 1)).sum())


def _row(case, subject, tree, answers, both, note=""):
    if not answers:
        return Row(case, subject, note=note)
    taken = [seconds for seconds, _ in answers[1:]]
    solved = [path for _, path in answers[1:] if len(path)]
    driven = np.array([_driven(answers[k][1]) for k in both]).reshape(-1, 2)
    figures = {
        "solved": len(solved) / len(taken),
        "free": float(np.mean([_is_free(path, tree) for path in solved])) if solved else 0.0,
        "length": float(driven[:, 0].mean()) if len(both) else math.nan,
        "driven": float(driven[:, 1].mean()) if len(both) else math.nan,
        "query_ms": 1e3 * median(taken),
        "query_p95_ms": 1e3 * percentile(taken, 95),
    }
    return Row(case, subject, figures, taken, note)


BENCHMARKS = (
    Benchmark(
        "poses_nav2",
        "Robots with a shape, beside Nav2's Smac planners",
        "A car of 0.62 x 0.9 m that drives both ways in curves of 0.4 m, and by the moves of Nav2's sample lattice, "
        "forwards only, in curves of 0.5 m; 20 queries over more than 10 m each. Smac has its default settings, and "
        "its costmap an inflation of 0.7 m. Solved: share of the queries. Free: share of the paths on which the "
        "footprint meets no blocked tile, by shapely at poses 2 cm apart. Length: metres, mean of the queries that "
        "both solve. Driven: the same, backwards counted twice, as both planners price it.",
        {
            "solved": "share",
            "free": "share",
            "length": "length",
            "driven": "length",
            "query_ms": "ms",
            "query_p95_ms": "ms",
        },
        run,
    ),
)
