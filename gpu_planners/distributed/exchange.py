"""What the workers of a parallel planner tell each other ([DL14] section 3.2 uses MPI), and the form between threads of
one process.

A worker is written against `Exchange` alone, so that it runs in a thread (`run`) or in an MPI rank on another machine
(`ranks.Ranks`).
"""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from ..errors import RanksError


class Exchange(Protocol):
    """rank: number of this worker;  size: how many there are;  local_rank: its number among those of its machine"""

    rank: int
    size: int
    local_rank: int

    def all_gather(self, value: Any) -> list:
        """Everybody calls it; -> everybody's value, by rank."""

    def swap(self, arrays: Mapping[int, tuple[np.ndarray, np.ndarray]]) -> None:
        """Everybody calls it, perhaps with no arrays.

        arrays: {rank of a neighbour: (what goes to it, C-contiguous array that takes what it sends)}. Both neighbours
            name each other; what one sends has as many bytes as what the other one takes, and may be empty. Nothing is
            pickled.
        """


class ThreadExchange:
    """Between threads: an Exchange. `run` makes them."""

    def __init__(self, rank: int, values: list, barrier: threading.Barrier):
        self.rank, self.size, self.local_rank = rank, len(values), rank
        self._values, self._barrier = values, barrier

    def all_gather(self, value: Any) -> list:
        """See Exchange."""
        self._values[self.rank] = value
        self._barrier.wait()
        gathered = list(self._values)
        self._barrier.wait()
        return gathered

    def swap(self, arrays: Mapping[int, tuple[np.ndarray, np.ndarray]]) -> None:
        """See Exchange."""
        self._values[self.rank] = arrays
        self._barrier.wait()
        for other, (_, received) in arrays.items():
            sent = self._values[other][self.rank][0]
            if sent.nbytes != received.nbytes:
                raise RanksError(f"in a swap, rank {other} sent {sent.nbytes} bytes of {received.nbytes}")
            np.copyto(received, sent)
        self._barrier.wait()


def run(size: int, work: Callable[[Exchange], Any]) -> list:
    """-> [work(exchange) of each of `size` workers], by rank; raises what a worker raised."""
    values, barrier = [None] * size, threading.Barrier(size)

    def worker(rank):
        try:
            return work(ThreadExchange(rank, values, barrier))
        except BaseException:
            barrier.abort()  # the others must not wait for this one
            raise

    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(worker, rank) for rank in range(size)]
    errors = [future.exception() for future in futures]
    for error in sorted((e for e in errors if e), key=lambda e: isinstance(e, threading.BrokenBarrierError)):
        raise error
    return [future.result() for future in futures]
