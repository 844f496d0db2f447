"""Work that is split over the workers of any `concurrent.futures.Executor`: a ProcessPoolExecutor (whose processes are
started by "spawn" or "forkserver"), mpi4py.futures.MPIPoolExecutor, Dask's Client.get_executor(), threads.

Pieces are given out as workers become free, larger ones first (guided self-scheduling: Polychronopoulos and Kuck, IEEE
Transactions on Computers 1987), so that a slower device holds nobody up for long. What all pieces share, a robot for
one, goes to a worker once. A piece whose worker fails is given to another worker, once.
"""

import functools
import hashlib
import math
import os
import queue
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from dataclasses import dataclass, field
from typing import Any

from ..device import ALL_CUDA, device_names, resolve_devices
from ..errors import SettingsError, WorkerError, shortened, shown
from . import worker
from .progress import SOON_S, Progress, told

AHEAD = 2  # pieces for each worker that it has or that wait for it
KEPT = 4  # pieces for each worker of a stream that it has, or that wait for an earlier one
LEAST_ON_CUDA = 32  # problems of a piece: a device has many at work at once
ROUNDS = 2  # pieces of one size that there would be for each worker, if what is left were cut into such
TRIES = 2  # of a piece
MOST_LEFT = 20  # times that a worker leaves a piece to others that have no work, about 1 s; then it tries again itself


@dataclass
class Split:
    """Work that can be split.

    what: for texts, such as "problems"
    count: how many there are
    cut: cut(first, last) -> a piece, the problems first ... last - 1; it can be pickled
    answer: answer(piece, device) -> what comes back, which can be pickled; a function of a module
    shared: objects that many pieces refer to
    least: problems of a piece, but for the last one
    size: size(first) -> problems of the piece that begins there; None: they become smaller, as workers become free
    lent: may the threads of this process use the caller's objects, several at once? Else each has copies
    """

    what: str
    count: int
    cut: Callable[[int, int], Any]
    answer: Callable[[Any, str], Any]
    shared: tuple = ()
    least: int = 1
    size: Callable[[int], int] | None = None
    lent: bool = False


@dataclass(eq=False)
class _Piece:
    """Problems first ... last - 1.

    faults: who failed, and why; left: how often it was left to idle others; avoid: who is to leave it to others, or ""
    with_shared: does the worker need what pieces share?
    """

    first: int
    last: int
    faults: list[str] = field(default_factory=list)
    left: int = 0
    avoid: str = ""
    with_shared: bool = False


def spread(
    split: Split, executor: Executor | None, devices: str | Sequence[str], progress: Progress | None = None
) -> list:
    """Do all of the work -> the answers of the pieces, in the order of the problems.

    executor: whose workers do it; None: threads of this process, one for each device
    devices: names, or a text with commas. The workers of each machine share those of its devices that are named, each
        has one; "cuda:all": all CUDA devices of the machine
    progress: called with the number of problems that are done and of all; None: a bar on stderr, if that is a terminal

    Raises what a worker raised, if that is an error of this package; WorkerError where a worker died, or where two
    failed with the same piece; SettingsError for what is no executor, or cannot be sent to a worker; DeviceError for
    what names no devices.
    """
    return list(_opened(split, executor, devices).run(progress, math.inf))


def stream(
    split: Split, executor: Executor | None, devices: str | Sequence[str], progress: Progress | None = None
) -> Iterator:
    """Do all of the work -> the answers of the pieces, in the order of the problems, while later ones are worked on.

    Arguments and errors as of `spread`. A few answers are kept for each worker, where an earlier one is late.
    """
    return _opened(split, executor, devices).run(progress, KEPT)


def _opened(split, executor, devices):
    lent, names = executor is None and split.lent, device_names(devices)
    if executor is None:
        resolved = resolve_devices(names)
        executor, names = _threads(resolved, os.getpid()), tuple(dict.fromkeys(resolved))
    if not isinstance(executor, Executor):
        raise SettingsError(f"executor is {shown(executor)}; allowed: a concurrent.futures.Executor")
    return _Spread(split, executor, names, lent)


def devices_of(devices: str | Sequence[str] | None, own: str) -> tuple[str, ...]:
    """The names of the devices that workers use. None: the CPU, or all CUDA devices, whichever `own` is of."""
    if devices is None:
        return ("cpu",) if own == "cpu" else (ALL_CUDA,)
    return device_names(devices)


def least_on(devices: Sequence[str]) -> int:
    """How many problems a piece has at least, of those of which a CUDA device works on many at once."""
    return 1 if set(devices) == {"cpu"} else LEAST_ON_CUDA


@functools.cache
def _threads(devices, process):
    """A thread for each device. They are kept, with what they keep. process: a child that is forked has its own"""
    numbers: queue.SimpleQueue = queue.SimpleQueue()
    for device in devices:
        numbers.put(device)
    pool = ThreadPoolExecutor(len(devices), "device", worker.take_device, (numbers,))
    for _ in devices:
        pool.submit(int)
    return pool


def workers_of(executor: Any) -> int:
    """How many workers an executor has, as well as one can know."""
    for name in ("num_workers", "_max_workers"):  # mpi4py's, the standard library's
        if isinstance(count := getattr(executor, name, None), int) and count > 0:
            return count
    client: Any = getattr(executor, "_client", None)  # Dask's
    if hasattr(client, "nthreads"):
        return max(1, sum(client.nthreads().values()))
    return os.cpu_count() or 1


class _Spread:
    """One call of `spread` or `stream`."""

    def __init__(self, split: Split, executor: Any, devices: tuple[str, ...], lent: bool) -> None:
        self._split, self._executor, self._devices, self._lent = split, executor, devices, lent
        self._shared = b"" if lent else self._pickled(split.shared, (), f"what {split.what} share")
        self._digest = hashlib.sha256(self._shared).digest()
        self._work = os.urandom(16)  # no two calls have the same
        self._next, self._given = 0, 0  # the first problem that was not given out; how many pieces were
        self._again: deque[_Piece] = deque()
        self._open: dict[Future, _Piece] = {}
        self._answers: dict[int, tuple[int, Any]] = {}  # by the piece's first problem: the next one's, the answer
        self._processes: dict[int | None, Any] = {}  # of a pool, by their numbers

    def run(self, progress: Progress | None, kept: float) -> Iterator:
        """The answers in their order. kept: pieces for each worker that it has, or that wait for an earlier one"""
        turn = 0
        try:
            with told(self._split.what, self._split.count, progress) as add:
                while self._give_out(kept):
                    add(0)
                    for future in wait(self._open, SOON_S, FIRST_COMPLETED).done:
                        piece = self._open.pop(future)
                        if self._take(future, piece):
                            add(piece.last - piece.first)
                    while turn in self._answers:
                        turn, answer = self._answers.pop(turn)
                        yield answer
        finally:
            for future in self._open:
                future.cancel()

    def _give_out(self, kept):
        """Keep the workers busy -> is anything under way?"""
        workers = workers_of(self._executor)
        while (
            len(self._open) < AHEAD * workers
            and (self._again or len(self._open) + len(self._answers) < kept * workers)
            and (piece := self._next_piece(workers))
        ):
            self._submit(piece, piece.with_shared or self._given < workers)
        return bool(self._open)

    def _next_piece(self, workers):
        if self._again:
            return self._again.popleft()
        left = self._split.count - self._next
        if not left:
            return None
        first, size_of = self._next, self._split.size
        size = size_of(first) if size_of else max(self._split.least, -(-left // (ROUNDS * workers)))
        self._next = min(first + size, self._split.count)
        return _Piece(first, self._next)

    def _submit(self, piece, with_shared):
        split = self._split
        data = split.cut(piece.first, piece.last)
        data = data if self._lent else self._pickled(data, split.shared, self._text(piece))
        shared = self._shared if with_shared else None
        digest = b"" if self._lent else self._digest
        order = worker.Order(split.answer, data, digest, shared, self._devices, piece.avoid, self._work, self._given)
        try:
            self._open[self._executor.submit(worker.answer, order)] = piece
        except Exception as error:  # the pool is broken, or shut down
            raise self._broken(piece, error) from error
        self._given += 1
        if isinstance(self._executor, ProcessPoolExecutor):
            self._processes.update(self._executor._processes or {})

    def _take(self, future, piece):
        """Look at what came of a piece -> is it done?"""
        try:
            outcome = future.result()
        except Exception as error:  # the worker died, or its answer could not be sent
            raise self._broken(piece, error) from error
        if outcome.ended == worker.DONE:
            self._answers[piece.first] = piece.last, outcome.value
            return True
        if outcome.ended == worker.REFUSED:
            raise type(outcome.value)(f"worker {outcome.worker}: {outcome.value}") from outcome.value
        if outcome.ended == worker.FAILED:
            piece.faults.append(f"worker {outcome.worker}: {outcome.value}")
            piece.avoid = outcome.worker
        if outcome.ended == worker.LEFT and all(each.avoid for each in self._open.values()):
            piece.left += 1
            piece.avoid = piece.avoid if piece.left < MOST_LEFT else ""
        piece.with_shared = True
        if len(piece.faults) == TRIES:
            raise WorkerError(f"{self._text(piece)} failed: {'; then '.join(piece.faults)}")
        self._again.append(piece)
        return False

    def _broken(self, piece, error):
        """The error where the executor itself says that something is wrong."""
        processes = self._processes.values() if isinstance(error, BrokenExecutor) else ()
        died = [text for process in processes if (text := _end_of(process))]
        who = f"{'; '.join(died)}; " if died else ""
        out = ", ".join(self._text(each) for each in sorted([piece, *self._open.values()], key=lambda each: each.first))
        return WorkerError(
            f"a {type(self._executor).__name__} failed while its workers had {out}: {who}"
            f"{type(error).__name__}: {shortened(error)}"
        )

    def _text(self, piece):
        last = piece.last - 1
        return f"{self._split.what} {piece.first}" + (f" to {last}" if last > piece.first else " alone")

    @staticmethod
    def _pickled(value, shared, what):
        try:
            return worker.pickled(value, shared)
        except Exception as error:  # whatever pickle meets
            raise SettingsError(f"{what} cannot be sent to a worker: {shortened(error)}") from error


def _end_of(process):
    """How a process of a pool died by itself; "" where it lives, or where the pool ended it since another one died."""
    process.join(1.0)  # it has ended, or is about to
    code = process.exitcode
    if code is None or code in (0, -signal.SIGTERM):
        return ""
    return f"process {process.pid} " + (
        f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    )
