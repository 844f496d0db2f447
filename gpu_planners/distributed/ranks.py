"""Ranks of MPI that work on one problem: an `Exchange` over an mpi4py communicator, which no rank's fault leaves
waiting.

    with Ranks() as ranks:
        ...

MPI itself waits for ever for a rank that does not come. So nothing here blocks: a rank that waits looks at the clock,
and for a message that another one failed. Whoever leaves the `with` block by an error sends it to all others, whose
next (or present) exchange raises RanksError with the failed rank and its error; whoever leaves it early, without an
error, is found at the next exchange; a rank that hangs is named after `timeout_s`. A rank that dies by a signal, or
leaves without MPI_Finalize, is up to mpirun, which ends all others and says which it was.

mpi4py is imported when the first Ranks is made, and starts MPI.
"""

import os
import pickle
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..device import cuda_problem
from ..errors import RanksError, shortened

INSTALL = "install gpu_planners with the extra `mpi` (pip install gpu_planners[mpi]): mpi4py and an MPI"
SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")  # what launchers set
BLOCK = 256  # bytes that a rank sends in the first message of all_gather: a status, a length and a short value
HEADER = 9  # of them for status and length
VALUE, END = 0, 1  # statuses
SWAP, FAULT = 1, 2  # tags
FAILED, WAITED = "failed", "waited"  # kinds of faults
SPINS = 2000  # looks without a pause: about a millisecond
PAUSE_S = 1e-4
GRACE_S = 1.0  # for messages about faults to arrive

_abandoned: list = []  # requests that nobody will complete: MPI may write to their buffers until it ends


class Ranks:
    """An Exchange between the ranks of an mpi4py communicator; every rank makes one, and uses it from one thread.

    communicator: of mpi4py; none: MPI.COMM_WORLD
    timeout_s: how long an exchange may wait for the slowest rank. Count in what the ranks do in between, at first also
        compiling, which takes minutes.

    Raises RanksError: no mpi4py or no MPI; an mpirun of another MPI; what the module's text says.
    """

    def __init__(self, communicator: Any = None, timeout_s: float = 600.0):
        self._mpi = _mpi()
        if not timeout_s > 0:
            raise RanksError(f"timeout_s is {timeout_s}; allowed: more than 0 seconds")
        self.timeout_s = timeout_s
        given = self._mpi.COMM_WORLD if communicator is None else communicator
        self.rank, self.size = given.Get_rank(), given.Get_size()
        self._failed = self._ready = False
        self._communicator, request = given.Idup()
        self._wait([request], "the first exchange")
        self._ready = True
        hosts = self.all_gather(self._mpi.Get_processor_name())
        self.local_rank = hosts[: self.rank].count(hosts[self.rank])

    def __enter__(self) -> "Ranks":
        return self

    def __exit__(self, kind, error, traceback) -> None:
        if error is None:
            self._gather(END, b"", "the end")
        elif not self._failed:
            self._tell((FAILED, shortened(f"{kind.__name__}: {error}")))

    def device(self) -> str:
        """The device of this rank: the CUDA devices of a machine in turns, "cpu" where there are none."""
        if cuda_problem():
            return "cpu"
        from numba import cuda

        return f"cuda:{self.local_rank % len(cuda.gpus)}"

    def all_gather(self, value: Any) -> list:
        """See Exchange. Values are pickled."""
        return [pickle.loads(data) for data in self._gather(VALUE, pickle.dumps(value, protocol=5), "all_gather")]

    def swap(self, arrays: Mapping[int, tuple[np.ndarray, np.ndarray]]) -> None:
        """See Exchange. It waits for the named neighbours only."""
        requests = []
        for other, (sent, received) in arrays.items():
            requests.append(self._communicator.Irecv([received, self._mpi.BYTE], other, SWAP))
            requests.append(self._communicator.Isend([np.ascontiguousarray(sent), self._mpi.BYTE], other, SWAP))
        self._wait(requests, f"swap with {', '.join(f'rank {other}' for other in arrays)}")

    def _gather(self, status: int, data: bytes, what: str) -> list:
        """-> data of all ranks, bytes-like. Short data need one message, longer ones two."""
        block = np.zeros(BLOCK, dtype=np.uint8)
        block[0], block[1:HEADER] = status, np.frombuffer(np.int64(len(data)).tobytes(), dtype=np.uint8)
        short = data[: BLOCK - HEADER]
        block[HEADER : HEADER + len(short)] = np.frombuffer(short, dtype=np.uint8)
        blocks = np.empty((self.size, BLOCK), dtype=np.uint8)
        self._wait([self._communicator.Iallgather(block, blocks)], what)
        self._look_for_leavers(blocks[:, 0], status)
        lengths = blocks[:, 1:HEADER].copy().view(np.int64)[:, 0]
        if lengths.max() <= BLOCK - HEADER:
            return [row[HEADER : HEADER + length].data for row, length in zip(blocks, lengths)]
        ends = np.cumsum(lengths)
        every = np.empty(ends[-1], dtype=np.uint8)
        target = [every, lengths, ends - lengths, self._mpi.BYTE]
        self._wait(
            [self._communicator.Iallgatherv([np.frombuffer(data, dtype=np.uint8), self._mpi.BYTE], target)], what
        )
        return [every[end - length : end].data for end, length in zip(ends, lengths)]

    def _look_for_leavers(self, statuses, status):
        leavers = np.flatnonzero(statuses == END)
        if len(leavers) not in (0, self.size):
            self._failed = True
            stay = np.flatnonzero(statuses != END)
            text = f"{_named(leavers)} ended while {_named(stay)} went on: all must exchange equally often"
            raise RanksError(text)

    def _wait(self, requests, what):
        """Until all requests are complete; raises where that will not be."""
        if self._failed:
            raise RanksError("these ranks have failed before; make new ones in new processes")
        began, looks = time.monotonic(), 0
        try:
            while not self._mpi.Request.Testall(requests):
                self._look_for_faults(what)
                looks += 1
                if looks < SPINS:
                    os.sched_yield()
                    continue
                time.sleep(PAUSE_S)
                if time.monotonic() - began > self.timeout_s:
                    self._raise_timeout(what)
        except self._mpi.Exception as error:
            self._failed = True
            raise RanksError(f"rank {self.rank}, in {what}: MPI says: {error}") from error
        finally:
            if self._failed:
                _abandoned.append(requests)

    def _look_for_faults(self, what):
        fault = self._next_fault()
        if fault is None:
            return
        rank, (kind, text) = fault
        if kind == WAITED:
            self._raise_timeout(what, {rank: text})
        self._failed = True
        raise RanksError(f"rank {rank} failed: {text}")

    def _next_fault(self):
        """-> (rank, (kind, text)), or None."""
        status = self._mpi.Status()
        if not self._ready or not self._communicator.Iprobe(self._mpi.ANY_SOURCE, FAULT, status):
            return None
        return status.Get_source(), self._communicator.recv(source=status.Get_source(), tag=FAULT)

    def _raise_timeout(self, what, waiting=()):
        """Ranks that wait tell each other, so that those that do not can be named."""
        self._failed = True
        waiting = {**dict(waiting), self.rank: what}
        self._tell((WAITED, what))
        began = time.monotonic()
        while self._ready and len(waiting) < self.size and time.monotonic() - began < GRACE_S:
            fault = self._next_fault()
            if fault is None:
                time.sleep(PAUSE_S)
            elif fault[1][0] == FAILED:
                raise RanksError(f"rank {fault[0]} failed: {fault[1][1]}")
            else:
                waiting[fault[0]] = fault[1][1]
        missing = [rank for rank in range(self.size) if rank not in waiting]
        if missing:
            raise RanksError(f"{_named(missing)} did not come to {what} of rank {self.rank} in {self.timeout_s:g} s")
        texts = "; ".join(f"rank {rank}: {text}" for rank, text in sorted(waiting.items()))
        raise RanksError(f"the ranks wait for different things, {self.timeout_s:g} s long: {texts}")

    def _tell(self, fault):
        """Send a fault to all others; it waits a little for them to take it."""
        self._failed = True
        if not self._ready:
            return
        data = pickle.dumps(fault)
        requests = [
            self._communicator.Isend([data, self._mpi.BYTE], other, FAULT)
            for other in range(self.size)
            if other != self.rank
        ]
        _abandoned.append(requests)
        began = time.monotonic()
        while not self._mpi.Request.Testall(requests) and time.monotonic() - began < GRACE_S:
            time.sleep(PAUSE_S)


def _named(ranks):
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"


def _mpi():
    """-> mpi4py.MPI, started; refuses an MPI that is not the launcher's, with which every process believes it is
    alone."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py finds no MPI library
        raise RanksError(f"ranks need mpi4py and an MPI ({shortened(error)}): {INSTALL}") from error
    launched = next(((name, os.environ[name]) for name in SIZES if os.environ.get(name, "").isdigit()), None)
    if launched and int(launched[1]) > 1 and MPI.COMM_WORLD.Get_size() == 1:
        version = MPI.Get_library_version().partition(",")[0].splitlines()[0].strip("\0")
        raise RanksError(
            f"the launcher started {launched[1]} processes ({launched[0]}), but each is alone: mpi4py uses {version}, "
            "which does not belong to this mpirun. Use the mpirun of that MPI (the extra `mpi` puts it beside python)"
        )
    return MPI
