"""[BKF11]'s figures 4 to 8: a planar arm of nine links among four rectangles, 100 checks a motion, 40,000 samples."""

import time
from dataclasses import replace

import numpy as np

from gpu_planners.arm import MotionCheck
from gpu_planners.arm.planners.tree import rrt, rrt_star
from gpu_planners.papers.bkf11.planar import PlanarChecker, nine_link_scene

from .harness import Benchmark, Row, median, progress, seconds

LOOKS = (2_500, 10_000, 40_000)  # samples at which the cost is shown
PAPER = "[BKF11], 1.73 GHz Core i7, Quadro FX 1800M"


def checks(context):
    """Rows of the time that the check of a motion takes, one alone and in batches (figure 5)."""
    arm, rectangles, *_ = nine_link_scene()
    rng = np.random.default_rng(0)
    rows = []
    for count, case in ((1, "one motion a call"), (20, "20 motions a call"), (100_000, "100,000 motions a call")):
        for device, missing in context.asked_for():
            if missing:
                rows.append(Row(case, f"gpu_planners, {device}", note=missing))
                continue
            count = min(count, 10_000) if device == "cpu" or context.quick else count
            checker = PlanarChecker(arm, rectangles, device)
            q_from, q_to = rng.uniform(-np.pi, np.pi, (2, count, arm.dof)).astype(np.float32)
            taken = seconds(lambda c=checker, a=q_from, b=q_to: c.motions_valid(a, b), 20, 3) / count
            figures = {
                "motion_us": 1e6 * median(taken),
                "rate": 1 / median(taken),
                "free": float(checker.motions_valid(q_from, q_to).mean()),
            }
            rows.append(Row(case, f"gpu_planners, {device}", figures))
    rows.append(Row("one motion a call", f"{PAPER}, serial", quoted="5 ms (figure 5)"))
    rows.append(Row("one motion a call", f"{PAPER}, GPU", quoted="ten times faster than serial: about 500 us"))
    rows.append(Row("20 motions a call", f"{PAPER}, GPU", quoted="25 times faster than serial: about 200 us"))
    return rows


def trees(context):
    """Rows of RRT and RRT*, unbatched and batched: time, share of checking, cost over samples (figures 4, 6, 7 and
    8)."""
    rows = []
    for device, missing in context.asked_for():
        if missing:
            rows.append(Row("all", f"gpu_planners, {device}", note=missing))
            continue
        for batch in (1, 64) if device == "cpu" else (20, 1024, 2048):
            rows += _planned(device, batch, context)
    rows.append(Row("RRT*, batch 1", f"{PAPER}, serial", quoted="397 s; checks are 99 % of it"))
    rows.append(Row("RRT*, batch 1", f"{PAPER}, GPU", quoted="25 s"))
    rows.append(Row("RRT*, batch 20", f"{PAPER}, GPU", quoted="90 s; RRT* over RRT close to 1"))
    return rows


def _planned(device, batch, context):
    """Rows of RRT and of RRT* with a batch."""
    arm, rectangles, start, goal = nine_link_scene()
    checker = PlanarChecker(arm, rectangles, device)
    twice = PlanarChecker(arm, rectangles, device, MotionCheck("count", 200))
    samples = 4_000 if context.quick else LOOKS[-1]
    seeds = range(1 if device == "cpu" else 3 if context.quick or batch < 1000 else 9)
    common = {"batch": batch, "max_samples": samples, "shortcut_rounds": 0, "time_limit_s": 600.0}
    rows, base = [], None
    for name, module, settings in (
        ("RRT", rrt, rrt.Settings(stop_at_first=False, **common)),
        ("RRT*", rrt_star, rrt_star.Settings(informed=False, **common)),
        ("RRT*, informed", rrt_star, rrt_star.Settings(**common)),
    ):
        for each in (checker, twice):
            module.solve(start, goal, each, replace(settings, max_samples=64))
        runs = [
            _timed(module, start, goal, checker, settings, seed)
            for seed in progress(seeds, f"{name}, batch {batch}, {device}")
        ]
        slower = [_timed(module, start, goal, twice, settings, seed)[0] for seed in seeds]
        taken = median([run[0] for run in runs])
        base = base or taken
        figures = {"time_ms": 1e3 * taken, "over_rrt": taken / base, "check_share": median(slower) / taken - 1}
        figures |= {
            f"cost_{look}": float(np.mean([_cost_at(run[1], look) for run in runs]))
            for look in LOOKS
            if look <= samples
        }
        rows.append(Row(f"{name}, batch {batch}", f"gpu_planners, {device}", figures, [run[0] for run in runs]))
    return rows


def _timed(module, start, goal, checker, settings, seed):
    began = time.perf_counter()
    result = module.solve(start, goal, checker, settings, seed)
    return time.perf_counter() - began, result


def _cost_at(result, samples):
    """Cost of the best path after so many samples."""
    before = result.history[result.history[:, 0] <= samples]
    return before[-1, 2] if len(before) else np.nan


BENCHMARKS = (
    Benchmark(
        "planar_checks",
        "Planar arm: checks ([BKF11], figure 5)",
        "Nine links, four rectangles, 100 parts a motion, random motions; wall time of a call of motions_valid, per "
        "motion.",
        {"motion_us": "ms", "rate": "rate", "free": "share"},
        checks,
    ),
    Benchmark(
        "planar_trees",
        "Planar arm: RRT and RRT* ([BKF11], figures 4, 6, 7, 8)",
        "The same arm, 40,000 samples, warm; median wall time of solve(), mean cost over the seeds after 2,500, "
        "10,000 and 40,000 "
        "samples. Over RRT: time over that of RRT with the same batch. Share of checks: what 100 more checks a motion "
        "add to the "
        "time, over the time.",
        {"time_ms": "ms", "over_rrt": "ratio", "check_share": "share"} | {f"cost_{look}": "length" for look in LOOKS},
        trees,
    ),
)
