"""All MotionBenchMaker problems in one call of `solve_batch`: plans a second."""

from gpu_planners.arm import CollisionChecker, CollisionWorld
from gpu_planners.arm.planners import rrt_connect

from .arm_planners import arm_of, checked_row, ompl_row, solved_figures
from .harness import Benchmark, Row, median, progress, seconds
from .problems import add_obstacles

SEEDS_AT_ONCE = 10  # on CUDA: so many times the problems, so that the last ones to end weigh less
RECHECKED = 5  # every n-th problem's paths


def batches(context):
    """Rows of the batch on each device, OMPL one problem after another, and VAMP's quoted figure."""
    rows = []
    for name, every_on_cpu in (("panda", 1), ("ur5", 5), ("fetch", 5), ("baxter", 5)):
        for device, missing in context.asked_for():
            arm = arm_of(name, context, 10 if context.quick else every_on_cpu if device == "cpu" else 1)
            if missing:
                rows.append(Row(arm.case, f"gpu_planners, {device}", note=missing))
                continue
            checkers = scenes_of(arm, device)
            for times in (1, SEEDS_AT_ONCE) if device != "cpu" and name == "panda" else (1,):
                rows.append(_batch(arm, checkers, device, times, context))
    ompl = ompl_row(context)
    if ompl.figures:
        figures = {"solved": ompl.figures["solved"], "valid": ompl.figures["valid"]}
        figures |= {"plans": 1e3 / ompl.figures["mean_ms"], "short_plans": 1e3 / ompl.figures["short_mean_ms"]}
        figures |= {key: ompl.figures[key] for key in ("length", "short_length")}
        rows.append(Row(ompl.case, ompl.subject, figures, note="one after another; " + ompl.note))
    else:
        rows.append(ompl)
    return [*rows, Row("Panda", "VAMP, spheres, one core", quoted="4.5 k plans/s with shortening (docs/references.md)")]


def scenes_of(arm, device):
    """A checker for each problem of an Arm, with its obstacles"""
    return [
        CollisionChecker(arm.robot, add_obstacles(CollisionWorld(), problem.obstacles), device)
        for problem in progress(arm.problems, f"scenes, {device}")
    ]


def _batch(arm, checkers, device, times, context):
    checkers, problems = checkers * times, arm.problems * times
    starts, goals = [problem.start for problem in problems], [problem.goals for problem in problems]
    figures, results, rates = {}, {}, {}
    repeats = 1 if context.quick else 3
    for kind, settings in (
        ("plans", rrt_connect.Settings(shortcut_rounds=0, time_limit_s=60.0)),
        ("short_plans", rrt_connect.Settings(time_limit_s=60.0)),
    ):
        rrt_connect.solve_batch(starts[:4], goals[:4], checkers[:4], settings)

        def call(settings=settings, kind=kind):
            results[kind] = rrt_connect.solve_batch(starts, goals, checkers, settings, seed=0)

        rates[kind] = len(problems) / seconds(call, repeats)
        figures[kind] = median(rates[kind])
    both = [
        (problem, raw, short)
        for problem, raw, short in zip(problems, *results.values(), strict=True)
        if raw.solved and short.solved
    ]
    figures |= solved_figures(
        len(problems), length=[raw.cost for _, raw, _ in both], short_length=[short.cost for _, _, short in both]
    )
    paths = {arm.key(problem): [raw.path, short.path] for problem, raw, short in both[: len(arm.problems) : RECHECKED]}
    case = arm.case if times == 1 else f"{arm.case} x {times} seeds"
    return checked_row(case, f"gpu_planners, {device}", figures, list(map(float, rates["short_plans"])), paths, context)


COLUMNS = {
    "solved": "text",
    "valid": "text",
    "plans": "rate",
    "short_plans": "rate",
    "length": "length",
    "short_length": "length",
}

BENCHMARKS = (
    Benchmark(
        "batch",
        "Batches: many problems in one call",
        "MotionBenchMaker problems, each with its own scene, one call of rrt_connect.solve_batch without and with "
        "shortening: "
        "problems over wall time of the call, median; scenes are ready, warm. Valid: of every fifth problem, both "
        "paths by coal at 1 mm.",
        COLUMNS,
        batches,
    ),
)
