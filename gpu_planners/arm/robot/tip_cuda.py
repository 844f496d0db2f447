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
from numba import cuda, float64, uint64

from ...device import cuda_jit
from ...parallel.arrays_cuda import as_device_array, new_array
from ...parallel.stream import CudaStream
from ...parallel.team import NEVER
from .chain import Chain, Joints, PackedChain
from .tip_rounds import (
    FREE,
    LATE,
    NOT_FREE,
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
        self._robot: tuple = None, ()
        self._part: tuple = (), ()
        with cuda.gpus[self.index]:
            self.stream = CudaStream()

    def room(self, name: str, shape: tuple, dtype: Any) -> Any:
        """-> an array of at least so many rows; what was there is lost when it grows."""
        rows, *row = shape
        key = name, *row
        if key not in self._arrays or len(self._arrays[key]) < rows:
            self.stream.clear()  # which holds arrays
            self._arrays.pop(key, None)  # free before the new one is allocated
            self._arrays[key] = cuda.device_array((max(rows + rows // 4, 1), *row), dtype)
        return self._arrays[key]

    def sent(self, name: str, values: np.ndarray) -> Any:
        """-> an array that begins with these."""
        values = np.ascontiguousarray(values)
        array = self.room(name, values.shape, values.dtype)
        self.stream.to_device(array, 0, values)
        return array

    def part(self, arrays: tuple, first: int, last: int) -> tuple:
        """Rows of arrays, the same objects as the last time if it was for the same."""
        asked = *arrays, first, last
        if len(asked) != len(self._part[0]) or any(a is not b and a != b for a, b in zip(asked, self._part[0])):
            self._part = asked, tuple(each[first:last] for each in arrays)  # which takes 100 us
        return self._part[1]

    def robot(self, packed: PackedChain) -> tuple:
        """The arrays of the chain and of the joints, which stay until others are asked for."""
        if self._robot[0] is not packed:
            self._robot = packed, tuple(cuda.to_device(each) for each in (*packed.chain, *packed.of_joints))
        return self._robot[1]


memory_of = functools.cache(Memory)


def rounds_on(device: str, checker: Any) -> Callable[..., Rounds]:
    """-> OnDevice for a device "cuda:N". A checker on this device judges there."""
    there = getattr(checker, "device", "") == device and hasattr(checker, "judge_on_device")
    return functools.partial(OnDevice, memory_of(device), checker.judge_on_device if there else None)


def room_there(device: str, shapes: tuple) -> Chosen:
    """Arrays for answers that stay on a device, but for the counts."""
    counts, q, _, left, _ = shapes
    none = np.empty((counts[0][0], 0))
    with cuda.gpus[int(device.partition(":")[2])]:
        return Chosen(np.empty(*counts), new_array(*q), none, new_array(*left), none)


def array_of(device: str, values: np.ndarray) -> Any:
    """The values on a device."""
    with cuda.gpus[int(device.partition(":")[2])]:
        return as_device_array(cuda.to_device(values))


class OnDevice(Rounds):
    """On a device. judge_there: `CollisionChecker.judge_on_device`, in place of the judge"""

    def __init__(self, memory: Memory, judge_there: Callable | None, *given: Any) -> None:
        super().__init__(*given)
        self._memory, self._judge_there = memory, judge_there

    def answer(self, deadline: int) -> None:
        memory = self._memory
        with memory.lock, cuda.gpus[memory.index]:
            given, self._robot = self._searches, memory.robot(self._packed)
            self._given = tuple(
                memory.sent(name, each) if isinstance(each, np.ndarray) else each
                for name, each in (("goals", given.goals), ("firsts", given.firsts))
            )
            self._poses = memory.sent("poses", given.poses)
            self._set, self._rows, self._kept = 0, 0, None
            shapes = chosen_shapes(given.slots, self._dof, self._wanted)
            self._chosen = Chosen(*(memory.room(f"chosen {k}", *each) for k, each in enumerate(shapes)))
            self._ends: tuple = ()
            super().answer(deadline)
            self._bring()
            memory.stream.wait()

    def _bring(self):
        """Copy the answers to where they are wanted."""
        stream, found, chosen = self._memory.stream, self._found, self._chosen
        if not isinstance(found.q, np.ndarray):
            for target, source in ((found.q, chosen.q), (found.left, chosen.left)):
                stream.copy(target, source[: len(target)])
            return
        stream.to_host(found.q, chosen.q)
        stream.to_host(found.left, chosen.left)
        if found.counts[:, 1].any():
            stream.to_host(found.refused, chosen.refused)

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
        late, step = False, AT_ONCE if deadline < NEVER else after * slots
        floats = self._packed.reach, *self._tolerances
        for first in range(before * slots, after * slots, step):
            late = late or monotonic_ns() > deadline
            last = min(first + step, after * slots)
            ints = slots, first, last, late, int(self._searches.seed.view(np.int64))
            self._launch(search_kernel(size), last - first, (*self._robot, *self._given), floats, ints)
            if deadline < NEVER:
                self._memory.stream.wait()
        self._judged(before * slots, after * slots)
        return late or monotonic_ns() > deadline

    def _launch(self, kernel, lanes, arrays, floats, ints):
        """kernel(*arrays, poses, *ends, float64 numbers, int64 numbers), with as many lanes at least."""
        memory, blocks = self._memory, -(-lanes // THREADS)
        numbers = memory.sent("floats", np.array(floats, np.float64)), memory.sent("ints", np.array(ints, np.int64))
        given = (*arrays, self._poses, *self._ends, *numbers)
        if lanes <= LANES:  # a graph for each number of blocks
            memory.stream.launch(kernel, blocks, THREADS, given)
        else:
            kernel[blocks, THREADS, memory.stream.numba](*given)

    def _judged(self, first, last):
        """Let the checker judge rows."""
        memory, (found, verdicts, q, narrow, _) = self._memory, self._ends
        if self._judge_there is not None:
            self._judge_there(*memory.part((narrow, verdicts), first, last), memory.stream)
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
        ints = slots, before, after, last, wanted.solutions, wanted.most
        self._launch(choose_kernel(), slots, (*self._robot[4:], taken, *self._chosen), (wanted.distinct,), ints)
        memory.stream.to_host(self._found.counts, self._chosen.counts)
        memory.stream.wait()
        return np.flatnonzero(self._found.counts[self._searches.poses, 3] == 0)

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
        narrow, left, floats, ints,
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
        i = ints[1] + cuda.grid(1)
        if i < ints[2]:
            ends = Ends(found, verdicts, q, narrow, left)
            searches = Searches(goals, firsts, uint64(ints[4]), poses, ints[0])
            if ints[3] != 0:
                found[i] = LATE
            else:
                run_search(chain, joints, floats[0], Tolerances(floats[1], floats[2]), searches, i, ends, scratch)

    return run


@functools.cache
def choose_kernel() -> Callable:
    """The kernel that chooses answers."""

    @cuda_jit
    def run(
        values, number, all_kinds, turning, taken, counts, chosen_q, refused, chosen_left, rows, poses, found, verdicts,
        q, narrow, left, floats, ints,
    ):  # fmt: skip
        slot = cuda.grid(1)
        if slot < ints[0]:
            joints, searches = Joints(values, number, all_kinds, turning), Slots(poses, ints[0])
            ends, chosen = Ends(found, verdicts, q, narrow, left), Chosen(counts, chosen_q, refused, chosen_left, rows)
            wanted = Wanted(ints[4], ints[5], floats[0])
            choose(joints, searches, ends, taken, wanted, (ints[1], ints[2]), ints[3] != 0, slot, chosen)

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
