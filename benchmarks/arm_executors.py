"""A batch shared by the workers of a process pool, and by the CUDA devices of one process: plans a second."""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

import numba

from gpu_planners.arm import CollisionChecker, CollisionWorld, rrt_connect
from gpu_planners.device import resolve_devices

from . import robots
from .generated_problems import maker_of, problems
from .harness import Benchmark, Row, median, progress, seconds
from .problems import add_obstacles

ROBOT = "panda"
WORKERS = (1, 2, 4, 8)  # processes of a pool on the CPU
PROBLEMS = 8  # of each family of furniture
SEEDS = {"cpu": 4, "cuda": 40}  # with which each problem is planned
SETTINGS = rrt_connect.Settings(time_limit_s=60.0)


def executors(context):
    """Rows of pools of several sizes on the CPU, and of one, two, ... CUDA devices by threads and by processes."""
    if why := robots.unavailable(ROBOT):
        return [Row(ROBOT, "all", note=why)]
    given = problems(ROBOT, 1 if context.quick else PROBLEMS)
    rows = []
    for device, missing in context.asked_for():
        if missing:
            rows.append(Row(ROBOT, f"gpu_planners, {device}", note=missing))
        else:
            rows += _on_cpu(given, context) if device == "cpu" else _on_cuda(given, context)
    return rows


def _on_cpu(given, context):
    """Workers have one thread each, so that more of them are more threads."""
    rates, cores = {}, len(os.sched_getaffinity(0))
    for workers in progress(WORKERS, "pools"):
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, spawn, numba.set_num_threads, (1,)) as pool:
            rates[workers] = _rates(given, "cpu", context, executor=pool)
    return [
        _row(f"a pool of {workers}, cpu", workers, found, rates[1], min(workers, cores), f"{cores} cores")
        for workers, found in rates.items()
    ]


def _on_cuda(given, context):
    devices, rates = resolve_devices("cuda:all"), {}
    for count in range(1, len(devices) + 1):
        names = devices[:count]
        rates["threads", count] = _rates(given, "cuda", context, devices=names)
        with ProcessPoolExecutor(count, multiprocessing.get_context("spawn")) as pool:
            rates["a pool", count] = _rates(given, "cuda", context, executor=pool, devices=names)
    return [
        _row(f"{how} of {count}, cuda", count, found, rates[how, 1], count, "") for (how, count), found in rates.items()
    ]


def _rates(given, device, context, **how):
    """Plans a second of each repeat; the workers have everything by then, and have compiled."""
    robot = maker_of(ROBOT).model
    checkers = [CollisionChecker(robot, add_obstacles(CollisionWorld(), one.obstacles), device) for one in given]
    times = 1 if context.quick else SEEDS[device]
    starts, goals = [one.start for one in given] * times, [one.goals for one in given] * times

    def call():
        results = rrt_connect.solve_batch(starts, goals, checkers * times, SETTINGS, **how)
        assert all(result.solved for result in results)

    return len(starts) / seconds(call, 1 if context.quick else 5, warm_up=2)


def _row(subject, workers, rates, of_one, most, note):
    rate = median(rates)
    figures = {"workers": workers, "short_plans": rate, "over_one": rate / median(of_one)}
    figures["efficiency"] = figures["over_one"] / most
    return Row(ROBOT, f"gpu_planners, {subject}", figures, list(map(float, rates)), note)


COLUMNS = {"workers": "count", "short_plans": "rate", "over_one": "ratio", "efficiency": "share"}
BENCHMARKS = (
    Benchmark(
        "executors",
        "Batches shared by workers",
        "Generated problems of a Panda, several seeds each, one call of rrt_connect.solve_batch by the processes of a "
        "pool, on the CPU with one thread each, or by threads or processes that have a CUDA device each: shortened "
        "plans over wall time of the call, median; workers have the robot and the scenes, warm. Efficiency: times one "
        "worker, over the workers, or over the cores where these are fewer.",
        COLUMNS,
        executors,
    ),
)
