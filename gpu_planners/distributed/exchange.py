"""What the workers of a parallel planner tell each other ([DL14] section 3.2 uses MPI), here between threads.

A worker knows `Exchange` alone, so it runs in a thread (`run`) or as an MPI rank on another machine (`ranks.Ranks`).
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Protocol

import numpy as np

from ..arguments import Numbers, checked
from ..device import cuda_problem
from ..errors import RanksError, shown

MOST_THREADS = 4096
Bytes = Annotated[np.ndarray, Numbers(None, False, "biufcSUVMm")]  # an array of any type
Arrays = Mapping[int, tuple[Bytes, Bytes]]  # {a neighbour's rank: (what it gets, where to put what it sends)}
_END = object()  # the value of a thread that has ended


class Exchange(Protocol):
    """rank: of this worker;  size: how many there are;  local_rank: this worker's number on its machine"""

    rank: int
    size: int
    local_rank: int

    def all_gather(self, value: Any) -> list:
        """All workers call it -> all values, by rank."""

    def swap(self, arrays: Arrays) -> None:
        """All workers call it, perhaps with no arrays. Nothing is pickled.

        arrays: {a neighbour's rank: (what goes to it, C-contiguous array for what it sends)}. Neighbours name each
            other; what one sends has as many bytes as the other's array, perhaps none
        """


@checked(RanksError)
class ThreadExchange:
    """An Exchange between threads; `run` makes it."""

    def __init__(self, rank: int, values: list, barrier: threading.Barrier):
        self.rank, self.size, self.local_rank = rank, len(values), rank
        self._values, self._barrier = values, barrier

    def all_gather(self, value: Any) -> list:
        """See Exchange."""
        gathered = self._told(value)
        self._barrier.wait()
        return gathered

    def swap(self, arrays: Arrays) -> None:
        """See Exchange."""
        told = self._told(arrays)
        for other, (_, received) in arrays.items():
            sent = told[other][self.rank][0]
            if sent.nbytes != received.nbytes:
                raise RanksError(f"in a swap, rank {other} sent {sent.nbytes} bytes of {received.nbytes}")
            np.copyto(received, sent)
        self._barrier.wait()

    def _told(self, value):
        self._values[self.rank] = value
        self._barrier.wait()
        told = list(self._values)
        if text := left_early(each is _END for each in told):
            raise RanksError(text)
        return told


def left_early(ended: Iterable[bool]) -> str:
    """An error text if some ranks have ended and others not, else "". ended: by rank"""
    gone = [bool(each) for each in ended]
    if all(gone) or not any(gone):
        return ""
    early, others = ([rank for rank, each in enumerate(gone) if each == which] for which in (True, False))
    return f"{named(early)} ended while {named(others)} went on: all must exchange equally often"


def named(ranks: Iterable[int]) -> str:
    numbers = list(map(str, ranks))
    return f"rank{'s' * (len(numbers) != 1)} {', '.join(numbers)}"


def own_device(exchange: Exchange) -> str:
    """The device of a worker: those of a machine take its CUDA devices in turns; "cpu" where there are none."""
    if cuda_problem():
        return "cpu"
    from numba import cuda

    return f"cuda:{exchange.local_rank % len(cuda.gpus)}"


@checked(RanksError)
def run(size: int, work: Callable[[Exchange], Any]) -> list:
    """-> [work(exchange) of each of `size` threads], by rank

    Raises what a worker raised; RanksError where one ends while others still exchange, or size is below 1.
    """
    if not 1 <= size <= MOST_THREADS:
        raise RanksError(f"size is {shown(size)}; allowed: 1 to {MOST_THREADS} workers")
    values, barrier = [None] * size, threading.Barrier(size)

    def worker(rank):
        exchange = ThreadExchange(rank, values, barrier)
        try:
            answer = work(exchange)
            exchange.all_gather(_END)
            return answer
        except BaseException:
            barrier.abort()  # the others must not wait for this one
            raise

    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(worker, rank) for rank in range(size)]
    errors = [error for future in futures if (error := future.exception())]
    if errors:  # the first that is no consequence of another one
        raise min(errors, key=lambda error: isinstance(error, threading.BrokenBarrierError))
    return [future.result() for future in futures]
