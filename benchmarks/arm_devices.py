"""Batches that several CUDA devices share."""

from gpu_planners.arm.planners import rrt_connect
from gpu_planners.device import resolve_devices

from .arm_batches import scenes_of
from .arm_planners import arm_of
from .harness import Benchmark, Row, median, seconds

SEEDS = (10, 40)  # how many times the 350 problems are in a batch
KINDS = {"plans": 0, "short_plans": rrt_connect.Settings().shortcut_rounds}


def batch_devices(context):
    """Rows of one CUDA device and of all of this machine, by the size of the batch."""
    arm = arm_of("panda", context, 10 if context.quick else 1)
    device, missing = context.asked_for()[0]
    every = () if missing or device == "cpu" else resolve_devices("cuda:all")
    if len(every) < 2:
        note = missing or f"needs two CUDA devices; this machine, or --device, has {len(every)}"
        return [Row(arm.case, "gpu_planners, all CUDA devices", note=note)]
    checkers = scenes_of(arm, device)
    return [_row(arm, checkers, times, devices, context) for times in SEEDS for devices in (every[:1], every)]


def _row(arm, checkers, times, devices, context):
    starts, goals = [one.start for one in arm.problems * times], [one.goals for one in arm.problems * times]
    figures, samples = {}, []
    for kind, rounds in KINDS.items():
        settings = rrt_connect.Settings(shortcut_rounds=rounds, time_limit_s=60.0)

        def call(settings=settings):
            return rrt_connect.solve_batch(starts, goals, checkers * times, settings, seed=0, devices=devices)

        solved = sum(result.solved for result in call())
        rates = [len(starts) / took for took in seconds(call, 1 if context.quick else 5)]
        figures[kind] = median(rates)
        samples = list(map(float, rates))
    figures["solved"] = f"{solved} of {len(starts)}"
    return Row(f"{arm.case} x {times} seeds", f"gpu_planners, {' and '.join(devices)}", figures, samples)


BENCHMARKS = (
    Benchmark(
        "batch_devices",
        "Batches that several CUDA devices share",
        "MotionBenchMaker problems of the Panda, each with its own scene and 10 and 40 seeds, in one call of "
        "rrt_connect.solve_batch with `devices`, without and with shortening: problems over wall time of "
        "the call, median.",
        {"solved": "text", "plans": "rate", "short_plans": "rate"},
        batch_devices,
    ),
)
