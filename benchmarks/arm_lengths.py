"""Path length against time: RRT-Connect that goes on after its first path, and RRT*."""

import time

import numpy as np

from gpu_planners.arm import CollisionChecker, CollisionWorld
from gpu_planners.arm.planners import rrt_connect
from gpu_planners.arm.planners.tree import rrt_star

from .arm_planners import QUOTED, arm_of, checked_row, in_turn, solved_figures, time_figures, warm_up
from .harness import Benchmark, Row

MANY = 100_000
ASKED = (  # who, planner, settings, every n-th problem
    ("RRT-Connect", rrt_connect, rrt_connect.Settings(), 5),
    ("RRT-Connect, restarts within 25 ms", rrt_connect, rrt_connect.Settings(restarts=MANY, time_limit_s=0.025), 5),
    ("RRT-Connect, restarts within 100 ms", rrt_connect, rrt_connect.Settings(restarts=MANY, time_limit_s=0.1), 5),
    ("RRT-Connect, 0.3 s for shorter ones", rrt_connect, rrt_connect.Settings(optimise_s=0.3), 5),
    ("RRT*, within 0.1 s", rrt_star, rrt_star.Settings(max_samples=10_000_000, time_limit_s=0.1), 25),
    ("RRT*, within 1 s", rrt_star, rrt_star.Settings(max_samples=10_000_000, time_limit_s=1.0), 25),
)


def lengths(context):
    """Rows of every planner and budget on each device."""
    rows = []
    for device, missing in context.asked_for():
        if missing:
            rows.append(Row("Panda", f"gpu_planners, {device}", note=missing))
            continue
        for who, module, settings, every in ASKED:
            arm = arm_of("panda", context, every * (5 if context.quick else 1))
            rows.append(_planned(arm, f"gpu_planners, {device}: {who}", module, settings, device, context))
    texts = [("VAMP, optimising, spheres, one core", "4.51 in 26 ms median (docs/references.md)"), *QUOTED]
    return rows + [Row("Panda", subject, quoted=text) for subject, text in texts]


def _planned(arm, subject, module, settings, device, context):
    checker = CollisionChecker(arm.robot, CollisionWorld(), device)
    warm_up(module, checker, arm.problems[0], module.Settings(max_samples=2048), settings)
    solved, taken = [], []
    for problem, _ in in_turn(arm, checker, subject):
        began = time.perf_counter()
        result = module.solve(problem.start, problem.goals, checker, settings, seed=0)
        if result.solved:
            taken.append(time.perf_counter() - began)
            solved.append((problem, result))
    over = [result.cost / problem.reference_length for problem, result in solved]
    figures = solved_figures(len(arm.problems), short_length=[result.cost for _, result in solved]) | time_figures(
        time=taken
    )
    figures["over_reference"] = float(np.nanmedian(over)) if solved else np.nan
    paths = {arm.key(problem): [result.path] for problem, result in solved}
    return checked_row(arm.case, subject, figures, taken, paths, context)


COLUMNS = {
    "solved": "text",
    "valid": "text",
    "time_ms": "ms",
    "time_p95_ms": "ms",
    "short_length": "length",
    "over_reference": "ratio",
}

BENCHMARKS = (
    Benchmark(
        "lengths",
        "Path length against time",
        "MotionBenchMaker problems, seed 0, warm, new scene ready; wall time of one solve() with its time limit, "
        "median and 95th "
        "percentile over the solved problems; length after shortening. Over reference: median of the length over that "
        "of the data's "
        "near-optimal path, which was found among spheres and need not be free on the hulls. Valid: by coal at 1 mm.",
        COLUMNS,
        lengths,
    ),
)
