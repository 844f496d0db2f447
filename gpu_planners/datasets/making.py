"""Makes a data set: chunks of problems go to an executor, files are written in their order."""

import contextlib
import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..arm.planners.result import Status
from ..device import resolve_device
from ..errors import GpuPlannersError, SettingsError
from .parquet import arrow
from .planning import Job, packed, plan, take_device
from .recipe import Recipe
from .schema import arrow_schema
from .shards import Shards, locked, open_shards

CHUNK = {"cpu": 64, "cuda": 1024}  # problems of a job; files end jobs
ROWS = 1000  # of a file
Told = Callable[[int, int], None]  # of (rows that are whole or planned, of which solved)


def make(
    recipe: Recipe,
    folder: str | os.PathLike,
    problems: int,
    rows: int = ROWS,
    *,
    devices: Sequence[str] = ("auto",),
    workers: int = 0,
    executor: Executor | None = None,
    told: Told | None = None,
) -> Shards:
    """Make the data set of a recipe in a folder, or what is missing of it; the rows depend on the recipe alone.

    problems: how many;  rows: of a file
    devices: for the processes to take in turns;  workers: processes; 0: one for each device, and with one device none
        but this one
    executor: whatever runs the chunks in place of these processes, on the first of `devices`: mpi4py's, Dask's, any
    told: is called after each chunk with how many rows there are and how many of the new ones are solved

    Raises DatasetError where the folder holds another data set or another run writes it, SettingsError, DeviceError,
    OSError where the disk is full, GpuPlannersError where a worker's process died. What is whole stays.
    """
    arrow()
    described = recipe.described()
    devices = resolved(recipe, devices)
    with locked(Path(folder)):
        shards = open_shards(folder, problems, rows, described, recipe.source)
        missing = shards.missing()
        schema = arrow_schema(
            recipe.robot.dof, recipe.timing is not None, {"recipe": described, "source": recipe.source}
        )
        there = problems - sum(last - first for first, last in map(shards.span, missing))
        if told:
            told(there, 0)
        if missing:
            with _pool(executor, devices, workers) as (pool, ahead):
                _make_missing(shards, missing, jobs(recipe, schema, devices[0]), pool, ahead, there, told)
    return shards


def resolved(recipe: Recipe, devices: Sequence[str]) -> list[str]:
    """The devices by their full names. Raises SettingsError unless they are of the recipe's kind."""
    if not devices:
        raise SettingsError("there are no devices; allowed: one or more of cpu, cuda, cuda:N")
    found = [resolve_device(device) for device in devices]
    for device in found:
        if device.partition(":")[0] != recipe.device:
            raise SettingsError(f"the device is '{device}', the recipe is for '{recipe.device}'; allowed: one kind")
    return found


def jobs(recipe: Recipe, schema: Any, device: str) -> Callable[[int, int], list[Job]]:
    """-> (first, last) to the jobs for these problems."""
    data, size = packed(recipe), CHUNK[recipe.device]

    def of(first: int, last: int) -> list[Job]:
        edges = [*range(first, last, size), last]
        return [Job(data, schema, begin, end, device) for begin, end in pairwise(edges)]

    return of


def _make_missing(shards, missing, jobs_of, pool, ahead, there, told):
    """Keep `ahead` chunks with the pool, and write each file when its last one is there."""
    pa, solved, asked = arrow(), 0, deque()
    coming = (
        (number, job, job.last == shards.span(number)[1]) for number in missing for job in jobs_of(*shards.span(number))
    )
    parts: list[Any] = []
    try:
        while True:
            while len(asked) < ahead and (following := next(coming, None)):
                number, job, ends = following
                asked.append((number, ends, pool.submit(plan, job)))
            if not asked:
                return
            number, ends, future = asked.popleft()
            parts.append(future.result())
            there += len(parts[-1])
            solved += parts[-1]["status"].to_pylist().count(Status.SOLVED.value)
            if ends:
                shards.write(number, pa.concat_tables(parts).combine_chunks())
                parts = []
            if told:
                told(there, solved)
    except BrokenProcessPool:
        raise GpuPlannersError(
            "a worker's process died, perhaps for want of memory; what is whole is kept, and the same command goes on "
            "with it"
        ) from None
    finally:
        for _, _, future in asked:
            future.cancel()


@contextlib.contextmanager
def _pool(executor, devices, workers) -> Iterator[tuple[Executor, int]]:
    """An executor, and how many chunks to keep with it."""
    if isinstance(workers, bool) or not isinstance(workers, int) or not 0 <= workers <= 4096:
        raise SettingsError(f"the number of workers is {workers}; allowed: 0 to 4096")
    workers = workers or (len(devices) if len(devices) > 1 else 0)
    if executor is not None:
        yield executor, 2 * (getattr(executor, "_max_workers", None) or os.cpu_count() or 1)
        return
    if not workers:
        threads = ThreadPoolExecutor(2)  # one draws problems while the other plans
        try:
            yield threads, 3
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
        return
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    for number in range(workers):
        queue.put(devices[number % len(devices)])
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, context, take_device, (queue,))
    try:
        yield pool, 2 * workers
    except BaseException:  # Ctrl-C, for one: nobody wants what the workers have under way
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
