"""Ranks of MPI that work on one problem: an `Exchange` over an mpi4py communicator in which no fault leaves others
waiting.

    with Ranks() as ranks:
        result = prm.solve(start, goal, checker, prm.Settings(version=2), ranks=ranks)

MPI itself waits for ever for a rank that does not come. So nothing here blocks: a rank that waits looks at the clock,
and for messages of faults. A rank that leaves the `with` block by an error tells all others, whose present or next
exchange raises RanksError with its number and error. The others' next `all_gather` finds a rank that left early without
an error; a rank that hangs is named after `timeout_s`. When a process dies by a signal, or ends without MPI_Finalize,
mpirun ends all others and says which it was.

MPI_Finalize would wait for a rank that hangs. So a process whose ranks have failed ends by MPI_Abort, which ends the
others too, unless new ranks of all these processes have ended well since.
"""

import os
import pickle
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arguments import checked
from ..errors import RanksError, shortened, shown
from . import mpi
from .exchange import Arrays, left_early, named, own_device

BLOCK = 1024  # bytes of the first message of all_gather
HEADER = 9  # of these for a status and a length
VALUE, END = 0, 1  # statuses
SWAP, FAULT = 1, 2  # tags
FAILED, WAITED = "failed", "waited"  # kinds of faults
LOOKS = 2000  # before the first pause, where each rank has a core: about a millisecond
BYTES_A_LOOK = 256  # MPI moves large messages on during looks, a part at a time, so these get more looks
PAUSE_S = 1e-4
GRACE_S = 2.0  # for messages about faults to arrive
START_S = 60.0  # processes may start so far apart, however short `timeout_s` is

_abandoned: list = []  # requests that nobody completes: MPI may write to their buffers until it ends


@checked(RanksError)
class Ranks:
    """An Exchange between the ranks of an mpi4py communicator; every rank makes one, and uses it from one thread.

    communicator: an intracommunicator of mpi4py, such as a part that Split makes; none: MPI.COMM_WORLD
    timeout_s: how long an exchange may wait for the slowest rank, with all that it does between two exchanges, at first
        also compiling, which takes minutes

    Raises RanksError: no mpi4py or no MPI; an mpirun of another MPI; what the module's text says.
    """

    def __init__(self, communicator: Any = None, timeout_s: float = 600.0):
        if not (isinstance(timeout_s, int | float | np.number) and timeout_s > 0):
            raise RanksError(f"timeout_s is {shown(timeout_s)}; allowed: more than 0 seconds")
        self._mpi = mpi.load(max(float(timeout_s), START_S))
        all_processes = self._mpi.COMM_WORLD
        given = all_processes if communicator is None else communicator
        if not (isinstance(given, self._mpi.Intracomm) and given):  # those that are null or freed are false
            raise RanksError(
                f"communicator is {shown(given)}; allowed: an intracommunicator of mpi4py, not null, not freed"
            )
        self.rank, self.size, self.timeout_s = given.Get_rank(), given.Get_size(), float(timeout_s)
        self._over, self._hears_faults, self._looks = "", False, 0
        self._processes = set(range(all_processes.Get_size()))  # of these ranks: their numbers in COMM_WORLD
        self._communicator, request = given.Idup()
        self._wait([request], "the first exchange")
        self._hears_faults = True
        machines, processes = zip(*self.all_gather((self._mpi.Get_processor_name(), all_processes.Get_rank())))
        self._processes = set(processes)
        self.local_rank = machines[: self.rank].count(machines[self.rank])
        self._looks = LOOKS if machines.count(machines[self.rank]) <= (os.cpu_count() or 1) else 0

    def __enter__(self) -> "Ranks":
        self._check()
        return self

    def __exit__(self, kind, error, traceback) -> None:
        if self._over:  # the others know
            return
        if error is None:
            self._gather(END, b"", "the end")
            self._communicator.Free()
            self._over = "they have ended"
            mpi.unclean.difference_update(self._processes)
        else:
            try:
                said = f"{kind.__name__}: {error}"
            except Exception:  # of the error's own __str__
                said = kind.__name__
            self._tell(FAILED, shortened(said))

    def device(self) -> str:
        """The device of this rank: its machine's ranks take the CUDA devices in turns; "cpu" where there are none."""
        return own_device(self)

    def all_gather(self, value: Any) -> list:
        """See Exchange. Values are pickled."""
        try:
            own = pickle.dumps(value, protocol=5)
        except Exception as error:  # whatever an object of the caller raises
            raise RanksError(f"value cannot be pickled, to go to other ranks: {shortened(error)}") from error
        return [pickle.loads(data) for data in self._gather(VALUE, own, "all_gather")]

    def swap(self, arrays: Arrays) -> None:
        """See Exchange. It waits for the named neighbours only."""
        self._check()
        what, requests = f"swap with {named(list(arrays))}", []
        for other, (sent, received) in arrays.items():
            requests.append(self._communicator.Irecv([received, self._mpi.BYTE], other, SWAP))
            requests.append(self._communicator.Isend([np.ascontiguousarray(sent), self._mpi.BYTE], other, SWAP))
        statuses = [self._mpi.Status() for _ in requests]
        self._wait(requests, what, sum(sent.nbytes for sent, _ in arrays.values()), statuses)
        for (other, (_, received)), status in zip(arrays.items(), statuses[::2]):  # MPI takes too few without a word
            if status.Get_count(self._mpi.BYTE) != received.nbytes:
                text = f"in {what}, rank {other} sent {status.Get_count(self._mpi.BYTE)} bytes of {received.nbytes}"
                self._tell(FAILED, text)
                raise self._failure(self.rank, text)

    def _gather(self, status: int, data: bytes, what: str) -> Sequence:
        """-> the data of all ranks, bytes-like; short data take one message, longer ones two"""
        self._check()
        block, blocks = np.zeros(BLOCK, dtype=np.uint8), np.empty((self.size, BLOCK), dtype=np.uint8)
        block[0], block[1:HEADER].view(np.int64)[0] = status, len(data)
        beginning = np.frombuffer(data[: BLOCK - HEADER], dtype=np.uint8)
        block[HEADER : HEADER + len(beginning)] = beginning
        self._wait([self._communicator.Iallgather(block, blocks)], what)
        if text := left_early(blocks[:, 0] == END):
            raise self._fault(text)
        lengths = blocks[:, 1:HEADER].copy().view(np.int64)[:, 0]
        if lengths.max() <= BLOCK - HEADER:
            return [row[HEADER : HEADER + length].data for row, length in zip(blocks, lengths)]
        ends = np.cumsum(lengths)
        everything = np.empty(ends[-1], dtype=np.uint8)
        parts = [everything, lengths, ends - lengths, self._mpi.BYTE]
        self._wait([self._communicator.Iallgatherv([data, self._mpi.BYTE], parts)], what, len(everything))
        return [everything[end - length : end].data for end, length in zip(ends, lengths)]

    def _check(self):
        if self._over:
            raise RanksError(f"these ranks cannot be used any more, make new ones: {self._over}")

    def _wait(self, requests, what, size=0, statuses=None):
        """Wait until all requests, of `size` bytes, are complete; raise where they never will be."""
        began, looks, quick = time.monotonic(), 0, self._looks + size // BYTES_A_LOOK
        try:
            while not self._mpi.Request.Testall(requests, statuses):
                if fault := self._next_fault():
                    rank, kind, said = fault
                    raise self._timeout(what, began, {rank: said}) if kind == WAITED else self._failure(rank, said)
                looks += 1
                if looks < quick:
                    os.sched_yield()
                elif time.monotonic() - began < self.timeout_s:
                    time.sleep(PAUSE_S)
                else:
                    raise self._timeout(what, began, {})
        except BaseException as error:
            _abandoned.append((requests, self._communicator))
            if isinstance(error, self._mpi.Exception):
                text = f"in {what}, MPI says {error}"
                self._tell(FAILED, text)
                raise self._failure(self.rank, text) from error
            raise

    def _next_fault(self):
        """-> (rank, kind, what it said), or None."""
        status = self._mpi.Status()
        if not self._hears_faults or not self._communicator.Iprobe(self._mpi.ANY_SOURCE, FAULT, status):
            return None
        rank = status.Get_source()
        return rank, *self._communicator.recv(source=rank, tag=FAULT)

    def _timeout(self, what, began, waiting):
        """-> the error. Waiting ranks tell each other, so that they can name those that do not wait.

        waiting: {rank: (what it waits for, seconds)} of others that have told
        """
        waiting = {**waiting, self.rank: (what, time.monotonic() - began)}
        self._tell(WAITED, waiting[self.rank])
        until = time.monotonic() + GRACE_S
        while self._hears_faults and len(waiting) < self.size and time.monotonic() < until:
            fault = self._next_fault()
            if fault is None:
                time.sleep(PAUSE_S)
            elif fault[1] == FAILED:
                return self._failure(fault[0], fault[2])
            else:
                waiting[fault[0]] = fault[2]
        longest = max(seconds for _, seconds in waiting.values())
        absent = [rank for rank in range(self.size) if rank not in waiting]
        late = [rank for rank, (_, seconds) in sorted(waiting.items()) if seconds < longest / 2]
        if not self._hears_faults:
            return self._fault(f"some rank did not come to {what} in {self.timeout_s:g} s")
        if absent or late:
            return self._fault(f"{named(absent or late)} did not come in {longest:.3g} s, where others wait ({what})")
        texts = "; ".join(f"rank {rank}: {each}" for rank, (each, _) in sorted(waiting.items()))
        return self._fault(f"the ranks wait for different things, {longest:.3g} s long: {texts}")

    def _failure(self, rank, said):
        return self._fault(f"rank {rank} failed: {said}")

    def _fault(self, text):
        """-> the error; these ranks cannot be used any more."""
        self._over = text
        mpi.unclean.update(self._processes)
        return RanksError(text)

    def _tell(self, kind, said):
        """Send a fault of this rank to all others, and wait a little for them to take it."""
        self._fault(str(said))
        others = [rank for rank in range(self.size) if rank != self.rank and self._hears_faults]
        data = pickle.dumps((kind, said))
        requests = [self._communicator.Isend([data, self._mpi.BYTE], other, FAULT) for other in others]
        _abandoned.append(requests)
        until = time.monotonic() + GRACE_S
        while not self._mpi.Request.Testall(requests) and time.monotonic() < until:
            time.sleep(PAUSE_S)
