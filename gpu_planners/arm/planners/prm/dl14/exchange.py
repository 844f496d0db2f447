"""What the workers of a parallel planner tell each other ([DL14] section 3.2 uses MPI), here between threads of one
process.

A worker is written against `Exchange` alone, so that processes on other machines can take the place of threads: an MPI
communicator has rank, size and allgather.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol


class Exchange(Protocol):
    """rank: number of this worker;  size: how many there are"""

    rank: int
    size: int

    def all_gather(self, value: Any) -> list:
        """Everybody calls it; -> everybody's value, by rank."""


class ThreadExchange:
    """Between threads: an Exchange. `run` makes them."""

    def __init__(self, rank: int, values: list, barrier: threading.Barrier):
        self.rank, self.size = rank, len(values)
        self._values, self._barrier = values, barrier

    def all_gather(self, value: Any) -> list:
        """See Exchange."""
        self._values[self.rank] = value
        self._barrier.wait()
        gathered = list(self._values)
        self._barrier.wait()
        return gathered


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
