"""The host's side of all planners: what is asked of their compiled code, where it runs, and how its answer comes back.

A planner's compiled code is a function work(floats, ints, own_floats, desk, worker). `floats`, `ints` are a message:
float32 and int32 that both sides see, a request with room for the answer, which begins as a Head (`message`).
`own_floats` and `worker.memory` are for the team alone. It runs on a thread of the CPU, or on all blocks of a CUDA
device (`host_cuda`):

    host = host_for(checker, work)
    with host.held():
        message = host.message(*request_sizes(...))
        write_request(*message, **head_of(checker), ...)
        host.memory(*state_sizes(...))
        host.run(checker)
        answer = open_request(*message)
"""

import contextlib
import functools
import os
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numba import get_num_threads

from ...device import njit
from ...parallel.stopping import heed
from ...parallel.team import Worker, borrowed
from ..spaces.interface import space_of
from .node_store import new_desk


def host_for(checker: Any, *works: Any, blocks: int = 4, most_workers: int = 1 << 20) -> Any:
    """An OnThread, or the OnDevice of the checker's CUDA device, for compiled functions. blocks: at most, on each
    multiprocessor; most_workers: warps"""
    if checker.device == "cpu":
        return OnThread(*works)
    from .host_cuda import on_device

    return on_device(checker.device, checker.scratch_sizes, works, blocks, most_workers)


def alone(checker: Any, *works: Any, **options: Any) -> contextlib.AbstractContextManager:
    """For a query that comes back to its host again and again: until this ends nobody else uses the arrays of a device.
    A thread has its own. Arguments as of `host_for`"""
    if checker.device == "cpu":
        return contextlib.nullcontext()
    return host_for(checker, *works, **options).held()


class OnThread:
    """One thread of the CPU, for one query.

    workers: at most; own: (floats, ints), the team's own memory, which holds what others left there
    """

    workers = 1

    def __init__(self, *works: Any) -> None:
        self._works = works
        self._desk: Any = None
        self._message: Any = ()
        self.own: Any = ()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """When this ends, the own memory is for other queries."""
        try:
            yield
        finally:
            if self.own:
                _keep(self.own)
                self.own = ()

    def message(self, n_floats: int, n_ints: int) -> tuple[np.ndarray, np.ndarray]:
        """-> its floats and ints, which stay until a longer one is asked for."""
        self._message = np.empty(n_floats, dtype=np.float32), np.empty(n_ints, dtype=np.int32)
        return self._message

    def memory(self, n_floats: int, n_ints: int) -> None:
        """So much of its own for the team; what was there is lost."""
        self.own = _memory(n_floats, n_ints)

    def run(self, checker: Any, *works: Any, again: bool = False) -> None:
        """Let the team do its works, or these of them, and wait. again: this will be asked often"""
        heed()
        if self._desk is None:
            self._desk = new_desk(space_of(checker), checker.robot.dof)
        for work in works or self._works:
            _on_thread(work)(*self._message, *self.own, self._desk)

    def fetch(self, n_floats: int, n_ints: int, places: Iterable[int] = (0, 0)) -> tuple[np.ndarray, np.ndarray]:
        """-> so much of the team's own memory, on the host. places: where it begins"""
        first, begin = places
        return self.own[0][first : first + n_floats], self.own[1][begin : begin + n_ints]

    def send(self, floats: np.ndarray, ints: np.ndarray) -> None:
        """Write the beginnings of the team's own memory."""
        self.own[0][: len(floats)], self.own[1][: len(ints)] = floats, ints


@functools.cache
def _on_thread(work):
    def run(floats, ints, own_floats, own_ints, desk):
        worker = Worker(0, 1, 0, 0, 1, borrowed(own_ints), borrowed(own_ints))
        work(borrowed(floats), borrowed(ints), borrowed(own_floats), borrowed(desk), worker)

    run.__name__ = run.__qualname__ = f"{work.py_func.__name__}_on_thread"
    return njit(run)


_free: list[tuple[np.ndarray, np.ndarray]] = []  # memory of earlier queries
_free_lock = threading.Lock()


def _renew_lock():
    """In a forked child: a thread of the parent may have held it."""
    global _free_lock
    _free_lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def _memory(n_floats, n_ints):
    """A float32 and an int32 array, at least so long, which hold what others left there.

    They are kept for the next queries: the system clears fresh memory, two megabytes at a time, which takes longer than
    an easy search. Of an array only so much is ever touched as the trees in it grew."""
    with _free_lock:
        fitting = (k for k, (floats, ints) in enumerate(_free) if len(floats) >= n_floats and len(ints) >= n_ints)
        number = next(fitting, None)
        kept = None if number is None else _free.pop(number)
    return kept or (np.empty(n_floats, dtype=np.float32), np.empty(n_ints, dtype=np.int32))


def _keep(buffers):
    with _free_lock:
        _free[:] = [buffers, *_free[: 2 * get_num_threads() - 1]]
