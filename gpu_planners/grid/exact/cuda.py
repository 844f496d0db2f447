"""Fields on a CUDA device, and all agents' paths down them."""

from typing import Any

import numpy as np
from numba import cuda

from ...parallel.buffers import DeviceBuffers
from ...parallel.pinned import PinnedPool
from ...parallel.stream import CudaStream
from ...parallel.team_cuda import WARP, team_blocks
from ..maps.grid_map import GridMap
from ..paths import check_words
from .bits import BitField
from .blocks import VALUES, FieldShape
from .cpu import field_record
from .descend_cuda import WALKER_WARPS, descend_kernel
from .rounds import MEMORY, Request
from .update_cuda import BLOCKS_OF, WARPS_OF, update_kernel
from .values import ValueField

WALKERS_OF = 8  # blocks of walkers on each multiprocessor
WORDS_OF = 16  # tiles to a walker, whose words it makes
FEW_WORD_TILES = 1 << 21  # words are made for maps of so few tiles,
MOST_WORD_TILES = 1 << 26  # and of up to so many where there are agents for them:
TILES_OF = 4096  # tiles to an agent


class CudaFields:
    """Fields on one CUDA device. Not for several threads at once. Its methods do what those of `CpuFields` do."""

    def __init__(self, shape: FieldShape, device: str):
        self.shape = shape
        self._index = int(device.partition(":")[2] or 0)
        self._update = update_kernel(shape.layout, shape.blocks.size, shape.connectivity)
        self._descend = descend_kernel(shape.layout, shape.blocks.size, shape.connectivity)
        self._staged: dict = {}
        self._device_map: Any = None
        self._arrays: dict = {}
        self._changed: tuple[int, int] | None = None  # first and last row of the map that are not yet uploaded
        self._fitting: dict = {}  # kernel -> how many of its blocks run at once
        self._numbers: Any = None  # the answer's memory, as int64
        self._words: Any = None  # the same, as uint32
        with cuda.gpus[self._index]:
            self._multiprocessors = cuda.get_current_device().MULTIPROCESSOR_COUNT
            self._stream = CudaStream()
            self._buffers = DeviceBuffers(cuda.device_array, self._let_go)
            self._mapped, self._staging = DeviceBuffers(cuda.mapped_array), DeviceBuffers(cuda.pinned_array)
            self._pinned = PinnedPool(cuda.pinned_array)
            self._totals = cuda.device_array(WALKERS_OF * self._multiprocessors, np.int64)
            self._total, self._barrier = cuda.mapped_array(1, np.int64), cuda.to_device(np.zeros(1, np.int32))

    def allocate(self, slots: int):
        with cuda.gpus[self._index]:
            self._stream.clear()
            self._arrays = {}
            for name, (shape, kind) in self.shape.field_shapes(slots).items():
                self._arrays[name] = cuda.device_array(shape, kind)
            self._memory = cuda.to_device(np.zeros(MEMORY, np.int32))
            self._arrays["queue"].copy_to_device(np.zeros(self._arrays["queue"].shape, np.int32))

    @property
    def memory_bytes(self) -> int:
        """With the buffers for paths."""
        return sum(array.nbytes for array in self._arrays.values()) + self._buffers.nbytes + self._totals.nbytes

    def set_map(self, grid: GridMap):
        with cuda.gpus[self._index]:
            self._map = cuda.pinned_array(*self.shape.map_shape)
            self._map[:] = self.shape.map_array(grid)
            self._device_map = cuda.to_device(self._map)

    def change_map(self, grid: GridMap, rows: np.ndarray, cols: np.ndarray):
        first, last = self.shape.change_map(self._map, grid, rows, cols)
        self._changed = (min(first, self._changed[0]), max(last, self._changed[1])) if self._changed else (first, last)

    def staged(self) -> dict[str, np.ndarray]:
        """In page-locked memory."""
        with cuda.gpus[self._index]:
            if not self._staged:
                self._device_map = cuda.device_array(*self.shape.map_shape)
                self._staged = {name: cuda.pinned_array(a.shape, a.dtype) for name, a in self._state().items()}
        return self._staged

    def _state(self):
        return {"map": self._device_map} | {name: self._arrays[name] for name in ("values", "edge", "directions")}

    def load(self, *names: str):
        with cuda.gpus[self._index]:
            for name in names:
                self._state()[name].copy_to_device(self._staged[name], self._stream.numba)

    def unload(self, *names: str):
        with cuda.gpus[self._index]:
            for name in names:
                self._state()[name].copy_to_host(self._staged[name], self._stream.numba)
            self._stream.wait()

    def read(self, name: str, part) -> np.ndarray:
        """A copy."""
        with cuda.gpus[self._index]:
            values = self._state()[name][part].copy_to_host(None, self._stream.numba)
            self._stream.wait()
        return values

    def write(self, name: str, part, values: np.ndarray):
        with cuda.gpus[self._index]:
            if self._device_map is None:
                self._device_map = cuda.to_device(np.zeros(*self.shape.map_shape))
            self._state()[name][part].copy_to_device(np.ascontiguousarray(values), self._stream.numba)
            self._stream.wait()

    def update(self, request: Request):
        arrays, blocks, numbers = self._arrays, self.shape.blocks, request.packed()
        with cuda.gpus[self._index]:
            self._stream.wait()  # the request before has been read
            sent = self._mapped.room("request", len(numbers), np.int32)
            sent[: len(numbers)] = numbers
            if self._changed:
                first, last = self._changed
                self._stream.to_device(self._device_map, first * self._map.shape[1], self._map[first : last + 1])
                self._changed = None
            fields = (arrays[name] for name in ("values", "edge", "directions", "goals"))
            arguments = blocks.width, blocks.count, self._device_map, *fields, sent, arrays["queue"], self._memory
            warps, most = WARPS_OF[self.shape.layout], BLOCKS_OF[self.shape.layout] * self._multiprocessors
            self._launch(self._update, warps, most, warps * blocks.count, arguments)

    def wait(self):
        with cuda.gpus[self._index]:
            self._stream.wait()

    def descend(self, starts: np.ndarray, slots: np.ndarray, bits: int) -> tuple[np.ndarray, ...]:
        """The answer comes from the device in one piece: first, cost-to-go, length, words."""
        n = len(starts)
        values = n if self.shape.layout == VALUES else 0
        head = 2 * (n + values) + n  # of uint32
        with cuda.gpus[self._index]:
            agents, ahead = self._sent(n, starts, slots), self._words_ahead(n, len(slots))
            self._walk(n, agents, ahead, head)
            if head + self._total[0] > self._words.size:
                self._walk(n, agents, ahead, head + int(self._total[0]))
            answer = self._pinned.take(head + int(self._total[0]), np.uint32)
            if len(answer):
                self._stream.to_host(answer, self._words)
            self._stream.wait()
        numbers = answer[: head - n].view(np.int64)
        return answer[head - n : head].view(np.int32), numbers[:n], numbers[n:], answer[head:]

    def _walk(self, n, agents, ahead, room):
        """Launch the descent with room for an answer of so many words -> self._total[0], and the answer if it fits"""
        arrays, blocks = self._arrays, self.shape.blocks
        fields = (arrays[name] for name in ("values", "edge", "directions"))
        arguments = (blocks.width, blocks.count, *fields, agents, ahead, *self._answer(room), self._totals)
        most = max(1 << max(n - 1, 0).bit_length(), ahead.size // WORDS_OF)  # about so many agents: the same launch
        most_blocks = WALKERS_OF * self._multiprocessors
        self._launch(
            self._descend, WALKER_WARPS, most_blocks, -(-most // WARP), (*arguments, self._total, self._barrier)
        )
        self._stream.wait()
        check_words(int(self._total[0]))

    def field(self, slot: int) -> BitField | ValueField:
        self.wait()
        with cuda.gpus[self._index]:
            parts = self.shape.parts_of(slot)
            arrays = {name: self._arrays[name][part].copy_to_host() for name, part in parts.items()}
        return field_record(self.shape, self._map, arrays)

    def _launch(self, kernel, warps, most, wanted, arguments):
        """Launch at most `most` CUDA blocks of `warps` warps each, `wanted` warps in all.

        They wait for each other, so that all must run at once.
        """
        if kernel not in self._fitting:
            if not kernel.overloads:  # this compiles; how many blocks fit is known afterwards
                kernel[1, warps * WARP, self._stream.numba](*arguments)
            self._fitting[kernel] = team_blocks(kernel, warps * WARP, most)
        self._stream.launch(kernel, max(1, min(self._fitting[kernel], -(-wanted // warps))), warps * WARP, arguments)

    def _words_ahead(self, n, slots):
        """-> `ahead` of the kernel, kept"""
        rows, cols = self.shape.padded
        tiles = (rows - 2) * (cols - 2)
        count = tiles if slots == 1 and tiles <= max(FEW_WORD_TILES, min(MOST_WORD_TILES, n * TILES_OF)) else 1
        return self._buffers.room(("ahead", count), count, np.uint32)

    def _answer(self, words):
        """-> memory on the device of at least so many words, kept, as int64 and as uint32"""
        numbers = self._buffers.room("answer", words // 2 + 1, np.int64)
        if self._words is None:
            self._numbers, self._words = numbers, numbers.view(np.uint32)
        return self._numbers, self._words

    def _let_go(self):
        """Release arrays that are given up for larger ones: launches that are recorded hold them."""
        self._stream.clear()
        self._numbers = self._words = None

    def _sent(self, n, starts, slots):
        """-> `agents` of the kernel, kept"""
        count = 2 + 2 * n + len(slots)
        staging = self._staging.room("agents", count, np.int32)
        agents = self._buffers.room("agents", count, np.int32)
        staging[:2] = n, len(slots) - 1
        staging[2 : 2 + 2 * n] = starts.ravel()
        staging[2 + 2 * n : count] = slots
        self._stream.to_device(agents, 0, staging[:count])
        return agents
