"""Data sets: plans a second of the maker, with the processes and devices that share the work."""

import tempfile
import time
from pathlib import Path

import numba

from gpu_planners.datasets import Draw, Recipe, make
from gpu_planners.datasets.furniture import FAMILIES
from gpu_planners.datasets.schema import MissingLibraryError
from gpu_planners.device import resolve_devices

from . import robots
from .harness import Benchmark, Row, progress

ROBOT = "panda"
SCENES = {"loose obstacles": Draw(), "furniture": Draw(furniture=tuple(FAMILIES), ends="furniture")}
PROBLEMS = {"cpu": 2000, "cuda": 100_000}  # of a run
QUICK = 10  # a quick run has so many times fewer problems
WARM = {"cpu": 128, "cuda": 2048}  # planned before the clock starts, so that workers have begun


def dataset(context):
    """Rows of the maker in this process, with 1 and 2 worker processes, and with one, two, ... CUDA devices."""
    if why := robots.unavailable(ROBOT):
        return [Row(ROBOT, "all", note=why)]
    rows = []
    for device, missing in context.asked_for():
        if missing:
            rows.append(Row(ROBOT, f"gpu_planners, {device}", note=missing))
            continue
        for name, draw in progress(SCENES.items(), "scenes"):
            rows += [_row(name, draw, device, *how, context.quick) for how in _ways(device)]
    return rows


def _ways(device):
    """[(subject, devices, workers)] to make a data set."""
    if device == "cpu":
        return [("this process, cpu", ["cpu"], 0), *((f"{n} workers, cpu", ["cpu"], n) for n in (1, 2))]
    found = resolve_devices("cuda:all")
    return [
        (f"{n} workers, {devices} devices", list(found[:devices]), n)
        for devices in range(1, len(found) + 1)
        for n in (devices, 4 * devices)
    ]


def _row(scenes, draw, device, subject, devices, workers, quick):
    rig, kind = robots.rig(ROBOT), device.partition(":")[0]
    recipe = Recipe(rig.model, rig.tips[0], draw=draw, device=kind)
    count, warm = PROBLEMS[kind] // (QUICK if quick else 1), WARM[kind] * max(1, workers)
    told = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            make(
                recipe,
                Path(folder) / "set",
                count + warm,
                devices=devices,
                workers=workers,
                told=lambda rows, solved: told.append((time.perf_counter(), rows, solved)),
            )
    except MissingLibraryError as error:
        return Row(scenes, f"gpu_planners, {subject}", note=str(error))
    began, first, _ = next(each for each in told if each[1] >= warm)
    ended, last, solved = told[-1]
    rate = (last - first) / (ended - began)
    figures = {"workers": max(1, workers), "plans": rate, "solved": solved / last}
    return Row(scenes, f"gpu_planners, {subject}", figures, [rate], f"{numba.get_num_threads()} cores")


COLUMNS = {"workers": "count", "plans": "rate", "solved": "share"}
BENCHMARKS = (
    Benchmark(
        "dataset",
        "Data sets",
        "gpu-planners dataset for a Panda: rows drawn, planned and written as Parquet, a second of wall time from when "
        "each worker has planned its first ones; loose obstacles, and furniture with the tool in it at both ends. "
        "Solved: of the rows, the others have a status that says why.",
        COLUMNS,
        dataset,
    ),
)
