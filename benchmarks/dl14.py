"""The scene of [DL14]: its PRM from start to path, and its indicator function, beside the paper's figures and its
code's."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from gpu_planners.arm import CollisionChecker, MotionCheck, load_urdf
from gpu_planners.arm.collision.scene_file import fixed_frames, load_scene
from gpu_planners.arm.planners import prm

from .harness import Benchmark, Row, median, percentile, places, progress, seconds

ROOT = Path(__file__).resolve().parent.parent
START, GOAL, STEP, RADIUS = np.zeros(4), np.full(4, 3.0), 0.01, 1.0
MILLION = 1_000_000
BATCH = 2048  # samples of a round on CUDA
PLAN, SINGLE, EDGES = (
    "start to path",
    "indicator, random configurations",
    "indicator, edges of at most 1 rad at steps of 0.01",
)
SEARCHES = {
    "": {},
    ", lazy": {"lazy": True},
    ", one connection a node": {"connections": 1},
    ", version 1": {"version": 1},
    ", version 2": {"version": 2},
    ", version 3": {"version": 3},
    ", version 3, 4 workers": {"version": 3, "workers": 4},
}
QUOTED = (
    (PLAN, "[DL14], 1 and 4 K20m", "version 1: 6864, 869 ms; 2: 2136, 1677 ms; 3: 2492, 942 ms (paper, table 1)"),
    (PLAN, "[DL14], 16 CPU threads", "version 3: 9936 ms (paper, table 1)"),
    (PLAN, "its code, H200", "0.87, 0.92, 1.13, 6.8, 19.4 s for 5 seeds (docs/references.md)"),
    (
        EDGES,
        "[DL14], 1 and 4 K20m",
        "version 1: 1070, 149 ms; 2: 337, 279 ms; 3: 130, 52 ms for 10^6 (paper, table 1; time of the whole search)",
    ),
    (EDGES, "[DL14], 16 CPU threads", "1012 ms for 10^6 (paper, table 1)"),
)


def dl14(context):
    """Rows of the search by version, of the indicator function, and the quoted ones."""
    rows = []
    for device, missing in context.asked_for():
        if missing:
            rows.append(Row(PLAN, f"gpu_planners, {device}", note=missing))
            continue
        robot = load_urdf(ROOT / "urdf" / "dl14_arm.urdf", ROOT / "urdf" / "dl14_arm.srdf")
        world = load_scene(ROOT / "config" / "scenes" / "dl14.yaml", fixed_frames(robot))
        checker = CollisionChecker(robot, world, device, MotionCheck("joint", STEP))
        for name, settings in progress(SEARCHES.items(), f"dl14, {device}"):
            rows.append(_search(checker, f"gpu_planners, {device}{name}", settings, context))
        proven = CollisionChecker(robot, world, device)
        rows.append(_search(proven, f"gpu_planners, {device}, lazy, proven free all along", {"lazy": True}, context))
        rows += _indicator(checker, f"gpu_planners, {device}", context)
    return rows + [Row(case, subject, quoted=text) for case, subject, text in QUOTED]


def _search(checker, subject, settings, context):
    batch = 0 if checker.device == "cpu" else BATCH
    settings = prm.Settings(radius=RADIUS, batch=batch, shortcut_rounds=0, time_limit_s=60, **settings)
    on_cpu = checker.device == "cpu"
    repeats = 1 if on_cpu or settings.version else 9
    prm.solve(START, GOAL, checker, replace(settings, max_samples=2 * BATCH))
    results, taken = [], []
    for seed in range(3 if context.quick else 5 if on_cpu else 10):

        def call(seed=seed):
            results.append(prm.solve(START, GOAL, checker, settings, seed))

        taken.append(median(seconds(call, repeats, warm_up=repeats > 1)))
        del results[seed + 1 :]
    solved = [result for result in results if result.solved]
    figures = {
        "solved": f"{len(solved)}/{len(results)}",
        "plan_ms": 1e3 * median(taken),
        "plan_p95_ms": 1e3 * percentile(taken, 95),
        "samples": int(median([result.samples for result in solved])) if solved else 0,
        "length": median([result.cost for result in solved]),
    }
    return Row(PLAN, subject, figures, taken)


def _indicator(checker, subject, context):
    robot, count = checker.robot, MILLION // (10 if context.quick and checker.device == "cpu" else 1)
    rng = np.random.default_rng(0)
    q = rng.uniform(robot.lower, robot.upper, (count, 4)).astype(np.float32)
    repeats = 3 if checker.device == "cpu" else 15
    a = q[checker.configurations_valid(q)][: count // 50]
    to = rng.normal(size=a.shape)
    b = np.clip(
        a + rng.uniform(0, RADIUS, (len(a), 1)) * to / np.linalg.norm(to, axis=1, keepdims=True),
        robot.lower,
        robot.upper,
    )
    steps = np.ceil(np.linalg.norm(b - a, axis=1) / STEP) + 1
    rows = []
    for case, check, arrays, evaluations in (
        (SINGLE, checker.configurations_valid, (q,), count),
        (EDGES, checker.motions_valid, (a, b), steps.sum()),
    ):
        for where, each in places(checker.device, *arrays):
            taken = seconds(lambda check=check, each=each: check(*each), repeats, 2) * MILLION / evaluations
            rows.append(
                Row(
                    case,
                    subject + where,
                    {"million_ms": 1e3 * median(taken), "free": float(check(*arrays).mean())},
                    list(taken),
                )
            )
    return rows


COLUMNS = {
    "solved": "text",
    "plan_ms": "ms",
    "plan_p95_ms": "ms",
    "samples": "count",
    "length": "length",
    "million_ms": "ms",
    "free": "share",
}
TEXT = (
    "The four-axis arm and narrow passage of [DL14] from (0,0,0,0) to (3,3,3,3), step 0.01 and radius 1.0 in joint "
    "space, "
    "2048 samples a round on CUDA, warm; wall time of solve(), median and 95th percentile over 10 seeds (5 on the "
    "CPU). Indicator: float32 arrays in host memory unless a row says otherwise, "
    "time for 10^6 evaluations; along edges an evaluation is one of their steps, also where an earlier one ended the "
    "check."
)

BENCHMARKS = (Benchmark("dl14", "The scene of Demmeler and Liebmann", TEXT, COLUMNS, dl14),)
