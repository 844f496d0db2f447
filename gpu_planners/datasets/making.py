"""Makes a data set: an executor plans chunks of problems, and this process writes files in their order."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor

from ..arguments import checked
from ..arm.planners.result import Status
from ..device import resolve_devices
from ..distributed.executors import Split, devices_of, spread
from ..distributed.processes import processes
from ..errors import SettingsError, WorkerError
from ..files import file_path
from .planning import CHUNK, Shared, plan
from .recipe import Recipe
from .schema import arrow, arrow_schema
from .shards import DatasetError, Shards, allowed_counts, locked, open_shards

ROWS = 1000  # of a file
Told = Callable[[int, int], None]  # of (rows that are whole or planned, of which solved)


@checked(SettingsError)
def make(
    recipe: Recipe,
    folder: str | os.PathLike,
    problems: int,
    rows: int = ROWS,
    *,
    devices: str | Sequence[str] | None = None,
    workers: int = 0,
    executor: Executor | None = None,
    told: Told | None = None,
) -> Shards:
    """Make the data set of a recipe in a folder, or what is missing of it; the rows depend on the recipe alone.

    problems: how many;  rows: of a file
    devices: that the workers of each machine share, such as "cuda:0,cuda:1"; by default the CPU, or all CUDA
        devices, as the recipe's device is
    workers: processes; 0: one for each device, or only this process for one device
    executor: runs the chunks in place of these processes: mpi4py's, Dask's, any
    told: called after each chunk with the number of rows, and how many of the new ones are solved

    Raises DatasetError where the folder holds another data set or another run writes it, SettingsError, DeviceError,
    OSError where the disk is full, WorkerError where a worker failed or died. What is whole stays.
    """
    arrow()
    described = recipe.described()
    devices = resolved(recipe, devices, executor)
    allowed_counts(problems, rows)
    allowed_workers(workers)
    with locked(file_path(folder, "a data set", DatasetError)):
        source = recipe.source | {"scenes": [name for name, _ in recipe.scenes]}
        shards = open_shards(folder, problems, rows, described, source)
        missing = shards.missing()
        schema = arrow_schema(recipe.robot.dof, recipe.timing is not None, {"recipe": described})
        there = problems - sum(last - first for first, last in map(shards.span, missing))
        if told:
            told(there, 0)
        if missing:
            with _workers(executor, devices, workers) as pool:
                _make_missing(shards, missing, Shared(recipe, schema), pool, devices, there, told)
    return shards


def allowed_workers(workers: int) -> None:
    """Raise SettingsError for an impossible number of processes."""
    if isinstance(workers, bool) or not isinstance(workers, int) or not 0 <= workers <= 4096:
        raise SettingsError(f"the number of workers is {workers}; allowed: 0 to 4096")


def resolved(recipe: Recipe, devices: str | Sequence[str] | None = None, executor: Executor | None = None) -> list[str]:
    """The devices' full names; with an executor the given ones, since its workers may be on other machines.

    Raises SettingsError unless they are of the recipe's kind, and DeviceError.
    """
    names = devices_of(devices, recipe.device)
    found = list(resolve_devices(names) if executor is None else names)
    for device in found:
        if device.partition(":")[0] != recipe.device:
            raise SettingsError(f"the device is '{device}', the recipe is for '{recipe.device}'; allowed: one kind")
    return found


def _make_missing(shards, missing, shared, pool, devices, there, told):
    """Make the files with the numbers `missing`, and write each when its last rows are there."""
    pa, rows, done, solved, parts = arrow(), shards.rows, 0, 0, []

    def problem(index):  # of the missing ones, in their order
        return missing[index // rows] * rows + index % rows

    def left(index):  # problems of its file, from that one on
        return shards.span(missing[index // rows])[1] - problem(index)

    def cut(first, last):
        return problem(first), problem(first) + last - first

    def size(first):
        return min(CHUNK[shared.recipe.device], left(first))

    count = sum(last - first for first, last in map(shards.span, missing))
    split = Split("problems", count, cut, plan, shared, size=size)
    try:
        with contextlib.closing(spread(split, pool, devices, lambda *_: None)) as tables:
            for table in tables:
                parts.append(table)
                if len(table) == left(done):
                    whole, parts = pa.concat_tables(parts).combine_chunks(), []
                    shards.write(missing[done // rows], whole)
                done, solved = done + len(table), solved + table["status"].to_pylist().count(Status.SOLVED.value)
                if told:
                    told(there + done, solved)
    except WorkerError as error:
        raise WorkerError(
            f"{str(error).rstrip('.')}; what is whole is kept, and the same command goes on with it"
        ) from error


@contextlib.contextmanager
def _workers(executor, devices, workers) -> Iterator[Executor]:
    workers = workers or (len(devices) if len(devices) > 1 else 0)
    if executor is not None:
        yield executor
    elif workers:
        with processes(workers) as pool:
            yield pool
    else:
        threads = ThreadPoolExecutor(2)  # one draws problems while the other plans
        try:
            yield threads
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
