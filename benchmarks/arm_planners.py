"""Planners on the shared Panda problems: solved, valid by an independent checker, time and path length."""

import json
import subprocess
import sys
import time
from importlib import import_module

import numpy as np

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf

from . import coal_peer
from .harness import Benchmark, Row, median, percentile, progress
from .problems import add_obstacles, data_dir, load_problems, robot_files

UNCHECKED = "paths not re-checked: coal is not installed"
SPACING = 0.001  # metres between two looks of the independent checker
QUOTED = (
    (
        "VAMP, spheres, one core",
        "plan 64 us median, 899 us p95; with shortening 222, 1545 us; length 7.82 raw, 4.87 shortened; "
        "37 of 139 shortened paths penetrate the hulls (DESIGN.md)",
    ),
    ("pRRTC, spheres, H200", "kernel 0.97 ms median, 1.68 p95; wall 9.05, 12.8 ms; length 5.93 raw (DESIGN.md)"),
)


def rrt_connect(context):
    """Rows of RRT-Connect on every problem, with OMPL's on coal as the peer on a subset."""
    problems = load_problems("panda", context.data)[:: 10 if context.quick else 1]
    rows = [_planned("rrt_connect", problems, device, missing, context) for device, missing in context.asked_for()]
    rows.append(_ompl(10 if not context.quick else 50, context))
    return rows + [Row("quoted", subject, quoted=text) for subject, text in QUOTED]


def prm(context):
    """Rows of PRM on a subset of the problems."""
    problems = load_problems("panda", context.data)[:: 50 if context.quick else 25]
    return [_planned("prm", problems, device, missing, context) for device, missing in context.asked_for()]


def _planned(planner, problems, device, missing, context):
    case, subject = f"{len(problems)} problems", f"gpu_planners, {device}"
    if missing:
        return Row(case, subject, note=missing)
    try:
        module = import_module(f"gpu_planners.arm.{planner}")
    except ModuleNotFoundError as error:
        return Row(case, subject, note=f"skipped: {error}")
    robot, world = load_urdf(*robot_files("panda", context.data)), CollisionWorld()
    checker = CollisionChecker(robot, world, device)
    plain, shortened = module.Settings(shortcut_rounds=0), module.Settings()
    _warm_up(module, checker, problems[0], (plain, shortened))
    runs = []
    for problem in progress(problems, f"{planner}, {device}"):
        world.clear()
        add_obstacles(world, problem.obstacles)
        began = time.perf_counter()
        checker.configurations_valid(problem.start[None])
        scene_s = time.perf_counter() - began
        raw = _timed(module, problem, checker, plain, context)
        short = _timed(module, problem, checker, shortened, context) if raw[0].solved else raw
        runs.append(_Run(problem, scene_s, *raw, *short))
    return _row(case, subject, runs, context)


class _Run:
    """One problem: results and median wall times of the raw and of the shortened solve."""

    def __init__(self, problem, scene_s, raw, raw_s, short, short_s):
        self.problem, self.scene_s = problem, scene_s
        self.raw, self.raw_s, self.short, self.short_s = raw, raw_s, short, short_s


def _timed(module, problem, checker, settings, context):
    """(result, median wall seconds); a problem that is not solved is not tried again."""
    taken, result = [], None
    for _ in range(1 if context.quick else 3):
        began = time.perf_counter()
        result = module.solve(problem.start, problem.goals, checker, settings, seed=0)
        taken.append(time.perf_counter() - began)
        if not result.solved:
            break
    return result, median(taken)


def _warm_up(module, checker, problem, settings):
    add_obstacles(checker.world, problem.obstacles)
    for each in settings:
        module.solve(problem.start, problem.goals, checker, each, seed=0)


def _row(case, subject, runs, context):
    solved = [run for run in runs if run.raw.solved and run.short.solved]
    times, short_times = [run.raw_s for run in solved], [run.short_s for run in solved]
    figures = {
        "solved": f"{len(solved)}/{len(runs)}",
        "plan_ms": 1e3 * median(times),
        "plan_p95_ms": 1e3 * percentile(times, 95),
        "short_ms": 1e3 * median(short_times),
        "short_p95_ms": 1e3 * percentile(short_times, 95),
        "length": median([run.raw.cost for run in solved]),
        "short_length": median([run.short.cost for run in solved]),
        "scene_ms": 1e3 * median([run.scene_s for run in runs]),
    }
    paths = {run.problem.name: [run.raw.path.tolist(), run.short.path.tolist()] for run in solved}
    row = Row(case, subject, figures, short_times, UNCHECKED, unchecked=paths).as_dict()
    return Row(**recheck(row, context.data))


def recheck(row, data=None):
    """A planner's row with its paths re-checked by coal, where coal is there: those of a bare machine are kept in its
    results and re-checked elsewhere. row: dict as in the results."""
    if not row.get("unchecked") or coal_peer.unavailable():
        return row
    problems = {problem.name: problem for problem in load_problems("panda", data)}
    free = [
        _hull_valid(problems[name], [np.array(path) for path in paths], data)
        for name, paths in progress(row["unchecked"].items(), "re-check")
    ]
    figures = row["figures"] | {"valid": f"{sum(free)}/{len(free)}"}
    return row | {"figures": figures, "note": row["note"].removeprefix(UNCHECKED), "unchecked": {}}


def _hull_valid(problem, paths, data):
    scene = coal_peer.scene("panda", problem.obstacles, data)
    return all(scene.first_collision(path, SPACING) is None for path in paths)


def _ompl(every, context):
    """OMPL in a process of its own: one core, and its messages kept out of the table."""
    subject = "OMPL RRT-Connect on coal, one core"
    command = [
        sys.executable,
        "-m",
        "benchmarks.ompl_peer",
        "--every",
        str(every),
        "--data",
        str(data_dir(context.data)),
    ]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=900)
    except subprocess.TimeoutExpired:
        return Row("subset", subject, note="skipped: it took longer than 15 minutes")
    if answer.returncode:
        return Row("subset", subject, note=(answer.stderr.strip().splitlines() or ["skipped: it failed"])[-1])
    runs = json.loads(answer.stdout)
    solved = [run for run in runs if run["solved"]]
    valid = sum(
        _hull_valid(problem, (np.array(run["path"]), np.array(run["short_path"])), context.data)
        for run, problem in zip(runs, load_problems("panda", context.data)[::every], strict=True)
        if run["solved"]
    )
    plan, short = [run["plan_s"] for run in solved], [run["short_s"] for run in solved]
    figures = {
        "solved": f"{len(solved)}/{len(runs)}",
        "valid": f"{valid}/{len(solved)}",
        "plan_ms": 1e3 * median(plan),
        "plan_p95_ms": 1e3 * percentile(plan, 95),
        "short_ms": 1e3 * median(short),
        "short_p95_ms": 1e3 * percentile(short, 95),
        "length": median([run["length"] for run in solved]),
        "short_length": median([run["short_length"] for run in solved]),
    }
    return Row(
        f"{len(runs)} problems",
        subject,
        figures,
        short,
        "its motions are checked at steps of 1 % of the space's extent",
    )


COLUMNS = {
    "solved": "text",
    "valid": "text",
    "plan_ms": "ms",
    "plan_p95_ms": "ms",
    "short_ms": "ms",
    "short_p95_ms": "ms",
    "length": "length",
    "short_length": "length",
    "scene_ms": "ms",
}
TEXT = (
    "MotionBenchMaker Panda problems, seed 0, warm; wall time of solve() without and with shortening, median and "
    "95th percentile over the solved problems. Valid: both paths are free by coal on the hulls, followed at 1 mm. "
    "New scene: time until a changed world is ready. "
    "Length: joint-space L2."
)

BENCHMARKS = (
    Benchmark("rrt_connect", "RRT-Connect", TEXT, COLUMNS, rrt_connect),
    Benchmark("prm", "PRM", TEXT, COLUMNS, prm),
)
