"""CUDA: rounds of searches on a device, from poses to answers: a lane for each search, and for each pose that is chosen
for. What is copied back is the answers.

Local arrays need constant sizes, so there is a kernel for each power of two of frames.
"""

import functools
import threading
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

import numpy as np
from numba import cuda, float64

from ...device import cuda_jit
from ...parallel.stream import CudaStream
from ...parallel.team import NEVER
from ..spaces.interface import FREE, NOT_FREE
from .chain import Chain, Joints
from .tip_rounds import (
    LATE,
    REACHED,
    Chosen,
    Ends,
    Rounds,
    Searches,
    Slots,
    Wanted,
    choose,
    chosen_shapes,
    end_shapes,
    keep_row,
    run_search,
)
from .tip_search import SearchScratch, Tolerances

THREADS = 64  # of a block
LANES = 1 << 13  # searches that a device runs as quickly as fewer
AT_ONCE = 1 << 16  # searches of a launch, between two looks at the clock
LEAST_SIZE = 8  # frames, and joints, of the chains that the smallest kernel is for


class Memory:
    """A stream and arrays of a device, which calls use one after the other."""

    def __init__(self, device: str) -> None:
        self.index, self.lock, self._arrays = int(device.partition(":")[2]), threading.Lock(), dict[Any, Any]()
        with cuda.gpus[self.index]:
            self.stream = CudaStream()

    def room(self, name: str, shape: tuple, dtype: Any) -> Any:
        """-> an array of at least so many rows; what was there is lost when it grows."""
        rows, *row = shape
        key = name, *row
        if key not in self._arrays or len(self._arrays[key]) < rows:
            self._arrays.pop(key, None)  # free before the new one is allocated
            self._arrays[key] = cuda.device_array((max(rows + rows // 4, 1), *row), dtype)
        return self._arrays[key]

    def sent(self, name: str, values: np.ndarray, exact: bool = False) -> Any:
        """-> an array that begins with these; exact: that has no more rows"""
        values = np.ascontiguousarray(values)
        key = name, values.shape
        if exact and key not in self._arrays:
            self._arrays[key] = cuda.device_array(values.shape, values.dtype)
        array = self._arrays[key] if exact else self.room(name, values.shape, values.dtype)
        self.stream.to_device(array, 0, values)
        return array


memory_of = functools.cache(Memory)


def rounds_on(device: str, checker: Any) -> Callable[..., Rounds]:
    """-> OnDevice for a device "cuda:N". A checker on this device judges there."""
    there = getattr(checker, "device", "") == device and hasattr(checker, "judge_on_device")
    return functools.partial(OnDevice, memory_of(device), checker.judge_on_device if there else None)


class OnDevice(Rounds):
    """On a device. judge_there: `CollisionChecker.judge_on_device`, in place of the judge"""

    def __init__(self, memory: Memory, judge_there: Callable | None, *given: Any) -> None:
        super().__init__(*given)
        self._memory, self._judge_there = memory, judge_there

    def answer(self, deadline: int) -> None:
        memory = self._memory
        with memory.lock, cuda.gpus[memory.index]:
            exact = [memory.sent(f"chain {k}", each, True) for k, each in enumerate(self._packed.chain)]
            exact += [memory.sent(f"joints {k}", each, True) for k, each in enumerate(self._packed.of_joints)]
            self._robot, given = (tuple(exact[:4]), tuple(exact[4:])), self._searches
            self._given = memory.sent("goals", given.goals), memory.sent("firsts", given.firsts)
            self._poses = memory.sent("poses", given.poses)
            self._set, self._rows, self._kept = 0, 0, None
            shapes = chosen_shapes(given.slots, self._dof, self._wanted)
            self._chosen = Chosen(*(memory.room(f"chosen {k}", *each) for k, each in enumerate(shapes)))
            self._ends: tuple = ()
            super().answer(deadline)
            memory.stream.to_host(self._found.q, self._chosen.q)
            memory.stream.to_host(self._found.left, self._chosen.left)
            if self._found.count[:, 1].any():
                memory.stream.to_host(self._found.refused, self._chosen.refused)
            memory.stream.wait()

    def _next(self, before):
        after = super()._next(before)
        while after < self._wanted.most:
            more = super()._next(after)
            if (more - before) * self._searches.slots > LANES:
                break
            after = more
        return after

    def _search(self, before, after, deadline):
        slots = self._searches.slots
        self._make_room(before, after * slots)
        size = max(LEAST_SIZE, 1 << (len(self._packed.chain.joints) - 1).bit_length())
        kernel, late = search_kernel(size), False
        numbers = self._packed.reach, *self._tolerances, self._searches.seed, slots
        chain, joints = self._robot
        step = AT_ONCE if deadline < NEVER else after * slots
        for first in range(before * slots, after * slots, step):
            late = late or monotonic_ns() > deadline
            last = min(first + step, after * slots)
            given = (*chain, *joints, *self._given, self._poses, *self._ends, *numbers, first, last, late)
            kernel[-(-(last - first) // THREADS), THREADS, self._memory.stream.numba](*given)
            if deadline < NEVER:
                self._memory.stream.wait()
        self._judged(before * slots, after * slots)
        return late or monotonic_ns() > deadline

    def _judged(self, first, last):
        """Let the checker judge rows."""
        memory, (found, verdicts, q, narrow, _) = self._memory, self._ends
        if self._judge_there is not None:
            self._judge_there(narrow[first:last], verdicts[first:last], memory.stream)
        elif self._judge is not None:
            q, found = (each[first:last].copy_to_host(stream=memory.stream.numba) for each in (q, found))
            memory.stream.wait()
            hits, told = np.flatnonzero(found == REACHED), np.full(last - first, FREE, np.uint8)
            if len(hits):
                told[hits] = np.where(self._judge(q[hits]), FREE, NOT_FREE)
            memory.stream.to_device(verdicts, first, told)
            memory.stream.wait()

    def _choose(self, before, after, last):
        memory, slots, wanted = self._memory, self._searches.slots, self._wanted
        taken = memory.room("taken", (after * slots,), np.uint8)
        given = (*self._robot[1], self._poses, *self._ends, taken, *self._chosen, *wanted, slots, before, after, last)
        choose_kernel()[-(-slots // THREADS), THREADS, memory.stream.numba](*given)
        memory.stream.to_host(self._found.count, self._chosen.count)
        memory.stream.wait()
        return np.flatnonzero(self._found.count[self._searches.poses, 3] == 0)

    def _keep(self, slots, before):
        self._kept = slots  # moved before the next search
        self._old = self._searches.slots
        self._searches = self._searches._replace(poses=self._searches.poses[slots], slots=len(slots))
        if len(slots):
            self._memory.stream.wait()
            self._poses = self._memory.sent("poses", self._searches.poses)

    def _make_room(self, before, rows):
        """Arrays for so many rows, with those of `before` searches of the slots that are kept."""
        memory, slots, old = self._memory, self._searches.slots, self._ends
        if self._kept is None and rows <= self._rows:
            return
        self._set, self._rows = 1 - self._set, rows
        shapes = end_shapes(rows, self._dof)
        self._ends = tuple(memory.room(f"ends {self._set} {k}", *each) for k, each in enumerate(shapes))
        if before:
            if self._kept is None:
                self._kept, self._old = np.arange(slots), slots
            kept = memory.sent("kept", self._kept.astype(np.int32))
            blocks = -(-before * slots // THREADS)
            keep_kernel()[blocks, THREADS, memory.stream.numba](
                *old, *self._ends, self._old, kept, slots, before * slots
            )
        self._kept = None


@functools.cache
def search_kernel(size: int) -> Callable:
    """The kernel for chains of at most `size` frames. A joint has a frame at least, so joints fit too."""

    @cuda_jit
    def run(
        frames, limits, moved, kinds, values, number, all_kinds, turning, goals, firsts, poses, found, verdicts, q,
        narrow, left, reach, position, angle, seed, slots, first, last, late,
    ):  # fmt: skip
        chain, n = Chain(frames, limits, moved, kinds), len(kinds)
        joints = Joints(values, number, all_kinds, turning)
        scratch = SearchScratch(
            cuda.local.array(size, float64)[:n],
            cuda.local.array(size, float64)[:n],
            cuda.local.array((size, 6), float64)[: len(moved)],
            cuda.local.array((size, 6), float64)[:n],
            cuda.local.array((6, 6), float64),
            cuda.local.array(6, float64),
            cuda.local.array(6, float64),
        )
        i = first + cuda.grid(1)
        if i < last:
            ends, searches = Ends(found, verdicts, q, narrow, left), Searches(goals, firsts, seed, poses, slots)
            if late:
                found[i] = LATE
            else:
                run_search(chain, joints, reach, Tolerances(position, angle), searches, i, ends, scratch)

    return run


@functools.cache
def choose_kernel() -> Callable:
    """The kernel that chooses answers."""

    @cuda_jit
    def run(
        values, number, all_kinds, turning, poses, found, verdicts, q, narrow, left, taken, count, chosen_q, refused,
        chosen_left, rows, solutions, most, distinct, slots, before, after, last,
    ):  # fmt: skip
        slot = cuda.grid(1)
        if slot < slots:
            searches = Slots(poses, slots)
            ends, chosen = Ends(found, verdicts, q, narrow, left), Chosen(count, chosen_q, refused, chosen_left, rows)
            wanted = Wanted(solutions, most, distinct)
            joints = Joints(values, number, all_kinds, turning)
            choose(joints, searches, ends, taken, wanted, (before, after), last, slot, chosen)

    return run


@functools.cache
def keep_kernel() -> Callable:
    """The kernel that copies the rows of some slots."""

    @cuda_jit
    def run(
        found, verdicts, q, narrow, left, new_found, new_verdicts, new_q, new_narrow, new_left, slots, keep, size, rows
    ):
        i = cuda.grid(1)
        if i < rows:
            old, new = (
                Ends(found, verdicts, q, narrow, left),
                Ends(new_found, new_verdicts, new_q, new_narrow, new_left),
            )
            keep_row(i, old, slots, keep, size, new)

    return run
