"""Work split over the workers of any `concurrent.futures.Executor`: a ProcessPoolExecutor (whose processes are started
by "spawn" or "forkserver"), mpi4py.futures.MPIPoolExecutor, Dask's Client.get_executor(), threads.

The executor gives out pieces in their order as workers become free. Pieces become smaller (guided self-scheduling:
Polychronopoulos and Kuck, IEEE Transactions on Computers 1987), so that a slower device holds nobody up for long. Only
the executor tries again, or survives the death of a worker.
"""

import contextlib
import functools
import hashlib
import itertools
import os
import pickle
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from ..device import ALL_CUDA, device_names, resolve_devices
from ..errors import GpuPlannersError, SettingsError, WorkerError, shortened, shown
from . import worker
from .progress import SOON_S, Progress, told

KEPT = 8  # pieces for each worker that are given out, and whose answers have not been yielded
LEAST_ON_CUDA = 32  # problems of a piece: a device works on many at once
ROUNDS = 2  # a piece is what is left divided by so many and by the workers


@dataclass
class Split:
    """Work that can be split.

    what: for texts, such as "problems";  count: how many there are
    cut: cut(first, last) -> a piece, the problems first ... last - 1, which can be pickled
    answer: answer(shared, piece, device) -> any value that can be pickled; a function of a module
    shared: what all pieces need; a worker unpickles it once
    least: fewest problems of a piece, but the last one
    size: size(first) -> problems of the piece that begins there; None: pieces become smaller
    lent: may several threads of this process use `shared` itself at once? If not, each has a copy
    """

    what: str
    count: int
    cut: Callable[[int, int], Any]
    answer: Callable[[Any, Any, str], Any]
    shared: Any = None
    least: int = 1
    size: Callable[[int], int] | None = None
    lent: bool = False


def spread(
    split: Split, executor: Executor | None, devices: str | Sequence[str], progress: Progress | None = None
) -> Iterator:
    """Do all of the work -> the answers of the pieces, in the order of the problems, while later ones are worked on.

    executor: None: threads of this process, one for each device
    devices: names, or a text with commas. The workers of a machine share those of its devices that are named, each
        has one; "cuda:all": all CUDA devices of the machine
    progress: called with the numbers of problems done and in all; None: a bar on stderr, if that is a terminal

    Raises a worker's error of this package; WorkerError for any other, also where a worker died; SettingsError for what
    is no executor, or cannot be sent to a worker; DeviceError for what names no devices.
    """
    lent, names = executor is None and split.lent, device_names(devices)
    if executor is None:
        resolved = resolve_devices(names)
        executor, names = _threads(resolved, os.getpid()), tuple(dict.fromkeys(resolved))
    if not isinstance(executor, Executor):
        raise SettingsError(f"executor is {shown(executor)}; allowed: a concurrent.futures.Executor")
    workers, work, shared, digest = workers_of(executor), os.urandom(16), split.shared, b""
    if not lent:
        shared = _pickled(shared, f"what {split.what} share")
        digest = hashlib.sha256(shared).digest()
        if client := getattr(executor, "_client", None):  # Dask's, which sends data to each worker once
            shared = client.scatter(shared, broadcast=True, hash=False)  # else it may be let go of with an equal one

    def submit(first, last):
        piece, text = split.cut(first, last), _text(split, first, last)
        piece = piece if lent else _pickled(piece, text)
        order = worker.Order(text, split.answer, piece, digest, names, work)
        with _named(text):
            return first, last, executor.submit(worker.answer, order, shared)

    pieces, given = _pieces(split, workers), deque[tuple[int, int, Future]]()
    try:
        with told(split.what, split.count, progress) as add:
            while True:
                given.extend(submit(*piece) for piece in itertools.islice(pieces, KEPT * workers - len(given)))
                if not given:
                    return
                first, last, future = given[0]
                while not wait([future], SOON_S).done:
                    add(0)
                with _named(_text(split, first, last)):
                    answer = future.result()
                given.popleft()
                add(last - first)
                yield answer
    finally:
        for *_, future in given:
            future.cancel()


def _pieces(split, workers):
    first = 0
    while first < split.count:
        smaller = max(split.least, -(-(split.count - first) // (ROUNDS * workers)))
        last = min(first + (split.size(first) if split.size else smaller), split.count)
        yield first, last
        first = last


def _text(split, first, last):
    return f"{split.what} {first}" + (f" to {last - 1}" if last - first > 1 else " alone")


def _pickled(value, what):
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # whatever pickle meets
        raise SettingsError(f"{what} cannot be sent to a worker: {shortened(error)}") from error


@contextlib.contextmanager
def _named(piece):
    """Turns errors of the executor itself into WorkerError."""
    try:
        yield
    except GpuPlannersError:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {shortened(error)}"
        raise WorkerError(f"the executor failed with {piece}: {text}") from error


def devices_of(devices: str | Sequence[str] | None, own: str) -> tuple[str, ...]:
    """The names of workers' devices; None: the CPU, or all CUDA devices, of whichever kind `own` is."""
    if devices is None:
        return ("cpu",) if own == "cpu" else (ALL_CUDA,)
    return device_names(devices)


def least_on(devices: Sequence[str]) -> int:
    """The fewest problems of a piece, for problems of which a CUDA device works on many at once."""
    return 1 if set(devices) == {"cpu"} else LEAST_ON_CUDA


@functools.cache
def _threads(devices, process):
    """A pool with a thread for each device, kept for later calls, as is what its threads keep.

    process: number of this one, so that a forked child gets a pool of its own
    """
    names = deque(devices)
    return ThreadPoolExecutor(len(devices), "device", lambda: worker.work_on(names.popleft()))


def workers_of(executor: Any) -> int:
    """How many workers an executor has, as far as it can be known."""
    for name in ("num_workers", "_max_workers"):  # mpi4py's, the standard library's
        if isinstance(count := getattr(executor, name, None), int) and count > 0:
            return count
    client: Any = getattr(executor, "_client", None)  # Dask's
    return max(1, sum(client.nthreads().values())) if hasattr(client, "nthreads") else os.cpu_count() or 1
