"""Maps, fields and paths of a PoseGrid on a CUDA device. The methods do what those of `cpu` do."""

import numpy as np
from numba import cuda

from ...parallel.stream import CudaStream
from ...parallel.team_cuda import WARP, team_blocks
from .cpu import new_box, without_border
from .kernels_cuda import (
    THREADS,
    WARPS,
    bits_kernel,
    follow_kernel,
    free_kernel,
    update_kernel,
    values_kernel,
    widen_kernel,
)
from .pose_grid import Table
from .relax import NEW, REPAIR
from .relax_cuda import HIGHEST, LISTS, MEMORY, PARTS
from .shape import WORD, Layout, Runs, blocked_words, padded_costs

SPAN = 128  # the least of `relax_cuda`, in units of cost, a power of two
LEAST_ROOM, SHARE = 1 << 16, 64  # for states on each list of `relax_cuda`: so many, or all divided by so many
BLOCKS_OF = 2  # blocks of `relax` on each multiprocessor: they wait for each other once a round


class CudaMap:
    """As `CpuMap`. `free` and `cost` are on the device."""

    def __init__(self, layout: Layout, runs: Runs, costs: np.ndarray, device: str):
        self.layout, self.index = layout, int(device.partition(":")[2] or 0)
        self._cost = padded_costs(costs, layout)
        with cuda.gpus[self.index]:
            self.stream = CudaStream()
            self._runs, self._first = cuda.to_device(runs.runs), cuda.to_device(runs.first)
            self.cost = cuda.to_device(self._cost.reshape(-1))
            self._near = cuda.device_array((layout.levels, layout.rows, layout.words), np.uint32)
            self.free = cuda.to_device(np.zeros((layout.planes, layout.rows, layout.words), np.uint32))
            self._fill(0, layout.rows, new_box(layout))
            room = max(LEAST_ROOM, layout.states // SHARE) // PARTS
            self.lists = cuda.device_array(LISTS * PARTS * room, np.int64)  # of the field that is worked on
            self.look = cuda.to_device(np.zeros(layout.states // WORD, np.int32))

    def change(self, rows: np.ndarray, cols: np.ndarray, costs: np.ndarray, box: np.ndarray):
        border, wide = self.layout.border, self.layout.cols
        self._cost[border + rows, border + cols] = costs
        first, last = border + int(rows.min()), border + int(rows.max()) + 1
        with cuda.gpus[self.index]:
            self.cost[first * wide : last * wide].copy_to_device(self._cost[first:last].reshape(-1), self.stream.numba)
            self._fill(first, last, box)

    def _fill(self, first, last, box):
        numba, words = self.stream.numba, self.layout.words
        self._near[0, first:last].copy_to_device(blocked_words(self._cost[first:last]), numba)
        for level in range(self.layout.levels - 1):
            blocks = -(-(last - first) * words // THREADS)
            widen_kernel()[blocks, THREADS, numba](self._near, level, first, last)
        count = int(box[1] - box[0]) * int(box[3] - box[2]) * self.layout.planes
        sides = (int(n) for n in box)
        free_kernel()[-(-count // THREADS), THREADS, numba](self._near, self._runs, self._first, *sides, self.free)

    def words_at(self, planes: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        if not len(planes):
            return np.zeros(0, bool)
        with cuda.gpus[self.index]:
            given = [
                cuda.to_device(np.ascontiguousarray(each, np.int64), self.stream.numba) for each in (planes, rows, cols)
            ]
            found = cuda.device_array(len(planes), np.uint8, stream=self.stream.numba)
            bits_kernel()[-(-len(planes) // THREADS), THREADS, self.stream.numba](self.free, *given, found)
            bits = found.copy_to_host(None, self.stream.numba)
            self.stream.wait()
        return bits.astype(bool)


class CudaField:
    """As `CpuField`."""

    def __init__(self, on: CudaMap, table: Table):
        layout = on.layout
        self._map, self._moves = on, len(table.into)
        self._sizes = layout.rows, layout.cols, layout.layers, SPAN
        self._launched = 0
        with cuda.gpus[on.index]:
            self._most = BLOCKS_OF * cuda.get_current_device().MULTIPROCESSOR_COUNT
            self._table = cuda.to_device(np.concatenate(table).astype(np.int32))
            self._value = cuda.device_array(layout.states, np.int32)
            self._memory = cuda.to_device(np.zeros(MEMORY, np.int32))

    def make(self, seeds: np.ndarray):
        self._update(NEW, new_box(self._map.layout), np.asarray(seeds, np.int32))

    def repair(self, box: np.ndarray):
        self._update(REPAIR, box, np.zeros(0, np.int32))

    def _update(self, task, box, seeds):
        with cuda.gpus[self._map.index]:
            numba = self._map.stream.numba
            orders = cuda.to_device(np.concatenate([[task], box, seeds]).astype(np.int32), numba)
            arrays = self._map.cost, self._map.free, self._value, self._map.look, self._map.lists, self._memory
            arguments = self._sizes, self._moves, self._table, orders, len(seeds), *arrays
            kernel = update_kernel()
            if not kernel.overloads:  # how many blocks fit is known when it is compiled
                kernel[1, WARPS * WARP, numba](*arguments)
            if not self._launched:
                self._launched = team_blocks(kernel, WARPS * WARP, self._most)
            kernel[self._launched, WARPS * WARP, numba](*arguments)
            self._map.stream.wait()

    def highest(self) -> int:
        with cuda.gpus[self._map.index]:
            return int(self._memory.copy_to_host()[HIGHEST])

    def values(self) -> np.ndarray:
        with cuda.gpus[self._map.index]:
            return without_border(self._value.copy_to_host(), self._map.layout)

    def values_at(self, states: np.ndarray) -> np.ndarray:
        with cuda.gpus[self._map.index]:
            numba, found = self._map.stream.numba, cuda.device_array(len(states), np.int32)
            given = cuda.to_device(np.ascontiguousarray(states, np.int64), numba)
            values_kernel()[-(-len(states) // THREADS), THREADS, numba](self._value, given, found)
            values = found.copy_to_host(None, numba)
            self._map.stream.wait()
        return values

    def follow(self, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        first = np.zeros(len(starts) + 1, np.int64)
        if not len(starts):
            return first, np.zeros(0, np.int32)
        with cuda.gpus[self._map.index]:
            numba, blocks = self._map.stream.numba, -(-len(starts) // THREADS)
            given = cuda.to_device(np.ascontiguousarray(starts, np.int32), numba)
            fixed = (self._sizes, self._moves, self._table, self._map.cost, self._map.free, self._value, given)
            counts, none = cuda.to_device(first, numba), cuda.device_array(1, np.int32)
            follow_kernel()[blocks, THREADS, numba](*fixed, counts, none, False)
            np.cumsum(counts.copy_to_host(None, numba), out=first)
            moves = cuda.device_array(max(int(first[-1]), 1), np.int32)
            follow_kernel()[blocks, THREADS, numba](*fixed, cuda.to_device(first, numba), moves, True)
            found = moves.copy_to_host(None, numba)[: first[-1]]
            self._map.stream.wait()
        return first, found
