"""Planners on the shared problems and on generated ones: solved, valid by an independent checker, time and path
length."""

import functools
import gc
import json
import multiprocessing
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

import gpu_planners.arm
from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf

from . import coal_peer, generated_problems, robots
from .harness import Benchmark, Row, median, percentile, progress, with_data
from .problems import add_obstacles, data_dir, load_problems, robot_files

UNCHECKED = "paths not re-checked here: coal is not installed"
LONGEST_S = 3.0  # of a search
SPACING = 0.001  # metres between two looks of the independent checker
STARTS = 1e-3  # rad or m by which a path's first row may differ from the problem's start
QUOTED = (
    (
        "VAMP, spheres, one core",
        "plan 64 us median, 899 us p95; with shortening 222, 1545 us; length 7.82 raw, 4.87 shortened; "
        "37 of 139 shortened paths penetrate the hulls (docs/references.md)",
    ),
    (
        "pRRTC, spheres, H200",
        "kernel 0.97 ms median, 1.68 p95; wall 9.05, 12.8 ms; length 5.93 raw (docs/references.md)",
    ),
)


@dataclass(frozen=True)
class Arm:
    """A robot with its problems, each mesh as one hull, as the re-checker has it.

    name: of a robot of the shared data, or GENERATED and that of one of robots.ROBOTS;  title: in tables
    """

    name: str
    title: str
    robot: object
    problems: list

    @property
    def case(self):
        return f"{self.title}, {len(self.problems)} problems"

    def key(self, problem):
        """From which `problem_of` gets the problem again."""
        return f"{self.name}/{problem.name}"


ROBOT_NAMES = {"panda": "Panda", "ur5": "UR5"} | {name: title for name, (title, _) in robots.SHARED.items()}
GENERATED = "generated/"
EACH = 10  # generated problems of each family
EACH_QUICK = 1  # the same in a quick run


def arm_of(name, context, every=1):
    """Arm of every n-th problem whose start and goal are free on the hulls."""
    if name in robots.SHARED:
        rig, problems = robots.shared(name, context.data)
        return Arm(name, ROBOT_NAMES[name], rig.model, [one for one in problems[::every] if _ends_free(rig.model, one)])
    usable = [
        problem for problem in load_problems(name, context.data) if problem.hull_valid_start and problem.hull_valid_goal
    ]
    robot = load_urdf(*robot_files(name, context.data), hull_tolerance=np.inf)
    return Arm(name, ROBOT_NAMES[name], robot, usable[::every])


def _ends_free(robot, problem):
    checker = CollisionChecker(robot, add_obstacles(CollisionWorld(), problem.obstacles), "cpu")
    return checker.configurations_valid([problem.start, *problem.goals]).all()


def generated_arm(name, each):
    """Arm of a robot of robots.ROBOTS with `each` generated problems of each family."""
    title = f"{robots.ROBOTS[name].title}, generated"
    return Arm(GENERATED + name, title, robots.rig(name).model, generated_problems.problems(name, each))


def problem_of(key, data=None):
    """(arguments of CoalScene, Problem) of an Arm.key."""
    robot, family, index = key.removeprefix(GENERATED).split("/")
    if key.startswith(GENERATED):
        problem = generated_problems.maker_of(robot).problem(family, int(index))
        return robots.rig(robot).coal_arguments, problem
    if robot in robots.SHARED:
        rig, problems = robots.shared(robot, data)
        return rig.coal_arguments, {problem.name: problem for problem in problems}[f"{family}/{index}"]
    return coal_peer.arguments_of(robot, data), _shared(robot, data)[f"{family}/{index}"]


@functools.cache
def _shared(robot, data):
    return {problem.name: problem for problem in load_problems(robot, data)}


def rrt_connect(context):
    """Rows of RRT-Connect on every problem, with OMPL's on coal as the peer on a subset."""
    rows = []
    for name, every in (("panda", 1), ("ur5", 5), ("fetch", 3), ("baxter", 3)):
        rows += with_data(ROBOT_NAMES[name], lambda name=name, every=every: _shared_rows(name, every, context))
    for name in robots.ROBOTS:
        rows += _generated_rows(name, context)
    rows += with_data("Panda", lambda: [ompl_row(context)])
    return [*rows, *(Row("Panda", subject, quoted=text) for subject, text in QUOTED)]


def _shared_rows(name, every, context):
    arm = arm_of(name, context, every * (10 if context.quick else 1))
    return _rows("rrt_connect", arm, context)


def _generated_rows(name, context):
    if why := robots.unavailable(name):
        return [Row(f"{robots.ROBOTS[name].title}, generated", "all", note=why)]
    return _rows("rrt_connect", generated_arm(name, EACH_QUICK if context.quick else EACH), context)


def prm(context):
    """Rows of PRM on a subset of the problems."""
    return _rows("prm", arm_of("panda", context, 50 if context.quick else 10), context)


def _rows(planner, arm, context):
    """A row of a planner for each device."""
    return [_planned(planner, arm, device, missing, context) for device, missing in context.asked_for()]


def _planned(planner, arm, device, missing, context):
    subject = f"gpu_planners, {device}"
    if missing:
        return Row(arm.case, subject, note=missing)
    module, checker = (getattr(gpu_planners.arm, planner), CollisionChecker(arm.robot, CollisionWorld(), device))
    plain, shortened = (
        module.Settings(shortcut_rounds=0, time_limit_s=LONGEST_S),
        module.Settings(time_limit_s=LONGEST_S),
    )
    warm_up(module, checker, arm.problems[0], plain, shortened)
    runs = []
    for problem, scene_s in in_turn(arm, checker, f"{planner}, {device}"):
        raw = _timed(module, problem, checker, plain, context)
        short = _timed(module, problem, checker, shortened, context) if raw[0].solved else raw
        runs.append(_Run(problem, scene_s, *raw, *short))
    return _row(arm, subject, runs, context)


def in_turn(arm, checker, what):
    """Each problem when its scene is the checker's and ready, and the seconds until it was."""
    for problem in progress(arm.problems, what):
        checker.world.clear()
        add_obstacles(checker.world, problem.obstacles)
        began = time.perf_counter()
        checker.configurations_valid(problem.start[None])
        yield problem, time.perf_counter() - began


class _Run:
    """One problem: results and median wall times of the raw and of the shortened solve."""

    def __init__(self, problem, scene_s, raw, raw_s, short, short_s):
        self.problem, self.scene_s = problem, scene_s
        self.raw, self.raw_s, self.short, self.short_s = raw, raw_s, short, short_s


def _timed(module, problem, checker, settings, context):
    """(result, median wall seconds); a problem that is not solved is not tried again."""
    taken, result = [], None
    for _ in range(1 if context.quick or checker.device == "cpu" else 3):
        began = time.perf_counter()
        result = module.solve(problem.start, problem.goals, checker, settings, seed=0)
        taken.append(time.perf_counter() - began)
        if not result.solved:
            break
    return result, median(taken)


def warm_up(module, checker, problem, *settings):
    """Compile, let every buffer be made, and keep what the compiler left behind from Python's collector, as the node
    does."""
    add_obstacles(checker.world, problem.obstacles)
    for each in settings:
        module.solve(problem.start, problem.goals, checker, each, seed=0)
    gc.collect()
    gc.freeze()


def _row(arm, subject, runs, context):
    solved = [run for run in runs if run.raw.solved and run.short.solved]
    times, short_times = [run.raw_s for run in solved], [run.short_s for run in solved]
    figures = solved_figures(
        len(runs), length=[run.raw.cost for run in solved], short_length=[run.short.cost for run in solved]
    )
    figures |= time_figures(plan=times, short=short_times) | {"scene_ms": 1e3 * median([run.scene_s for run in runs])}
    figures["samples"] = median([run.short.samples for run in solved])
    paths = {arm.key(run.problem): [run.short.path] for run in solved}
    return checked_row(arm.case, subject, figures, short_times, paths, context)


def solved_figures(asked, **costs):
    """How many problems of those asked are solved, and the median of their costs, under the name given to each list."""
    return {"solved": f"{len(next(iter(costs.values())))}/{asked}"} | {
        name: median(each) for name, each in costs.items()
    }


def time_figures(**taken):
    """NAME_ms and NAME_p95_ms, median and 95th percentile, of each list of seconds."""
    middle = {f"{name}_ms": 1e3 * median(each) for name, each in taken.items()}
    return middle | {f"{name}_p95_ms": 1e3 * percentile(each, 95) for name, each in taken.items()}


def checked_row(case, subject, figures, samples, paths, context, note=""):
    """A Row whose paths {Arm.key: [(K, dof)]} are re-checked, or kept for a machine that can."""
    unchecked = {key: [path.tolist() for path in each] for key, each in paths.items()}
    note = "; ".join(filter(None, (UNCHECKED if unchecked else "", note)))
    print(f"{case}, {subject}: {figures}", file=sys.stderr, flush=True)
    return Row(**recheck(Row(case, subject, figures, samples, note, unchecked=unchecked).as_dict(), context.data))


def recheck(row, data=None):
    """A planner's row with its paths re-checked by coal, where coal is there: those of a bare machine are kept in its
    results and re-checked elsewhere. row: dict as in the results."""
    if not row.get("unchecked") or coal_peer.unavailable():
        return row
    free = _hulls_valid([problem_of(key, data) for key in row["unchecked"]], row["unchecked"].values())
    figures = row["figures"] | {"valid": f"{sum(free)}/{len(free)}"}
    return row | {"figures": figures, "note": row["note"].removeprefix(UNCHECKED).removeprefix("; "), "unchecked": {}}


def _hulls_valid(asked, paths):
    """[is every path of a problem free by coal], on all cores. asked: [as problem_of]"""
    return list(progress(_processes().map(_hull_valid, *zip(*asked, strict=True), paths, chunksize=4), "re-check"))


@functools.cache
def _processes():
    return ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn"))


def _hull_valid(arguments, problem, paths):
    """Are the paths [(K, dof)] free by coal, and do they begin where the problem does?"""
    from gpu_planners.verify import CoalScene

    scene = CoalScene(obstacles=problem.obstacles, **arguments)
    return all(
        np.allclose(path[0], problem.start, atol=STARTS) and scene.first_collision(np.array(path), SPACING) is None
        for path in paths
    )


def ompl_row(context):
    return _ompl(10 if not context.quick else 50, context)


@functools.cache
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
        return Row("Panda, subset", subject, note="skipped: it took longer than 15 minutes")
    if answer.returncode:
        return Row("Panda, subset", subject, note=(answer.stderr.strip().splitlines() or ["skipped: it failed"])[-1])
    runs = json.loads(answer.stdout)
    solved = [run for run in runs if run["solved"]]
    arguments = coal_peer.arguments_of("panda", context.data)
    asked = [
        (arguments, problem)
        for run, problem in zip(runs, load_problems("panda", context.data)[::every], strict=True)
        if run["solved"]
    ]
    valid = sum(_hulls_valid(asked, [(run["path"], run["short_path"]) for run in solved]))
    plan, short = [run["plan_s"] for run in solved], [run["short_s"] for run in solved]
    figures = solved_figures(
        len(runs), length=[run["length"] for run in solved], short_length=[run["short_length"] for run in solved]
    )
    figures |= time_figures(plan=plan, short=short) | {"valid": f"{valid}/{len(solved)}"}
    figures |= {"mean_ms": 1e3 * float(np.mean(plan)), "short_mean_ms": 1e3 * float(np.mean(short))}
    return Row(
        f"Panda, {len(runs)} problems",
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
    "samples": "count",
    "scene_ms": "ms",
}
TEXT = (
    "MotionBenchMaker problems, and generated ones where a row says so, one hull a mesh, seed 0, warm; wall time of "
    "solve() without and with shortening, median and "
    "95th percentile over the solved problems. Valid: the shortened path (of OMPL both) is free by coal, followed at "
    "1 mm. "
    "New scene: time until a changed world is ready. "
    "Length: joint-space L2. Samples: median over the solved problems."
)

BENCHMARKS = (
    Benchmark("rrt_connect", "RRT-Connect", TEXT, COLUMNS, rrt_connect),
    Benchmark("prm", "PRM", TEXT, COLUMNS, prm),
)
