"""CUDA: fields (`block_rounds`) in one cooperative launch, and all agents' paths down them (`descent`) in another."""

import functools

import numpy as np
from numba import cuda, int32, int64, uint8, uint32

from ..cuda_stream import CudaStream
from ..device import cuda_jit, njit
from ..team import least_lane, sync_lanes, sync_team
from ..team_kernels import ALL, WARP, team_blocks
from . import block_rounds as rounds
from .agents import WORD_BITS, check_words, step_bits
from .bit_blocks import AT_GOAL, EAST, FAR, NORTH, NOWHERE, SOUTH, WEST, BitScratch
from .block_rounds import BITS, VALUES
from .descent import direction_functions, word_functions
from .pinned import PinnedPool
from .value_blocks import ValueScratch

WARPS_OF = {BITS: 12, VALUES: 4}  # of a CUDA block, one to a block of the map; shared memory bounds those of VALUES
BLOCKS_OF = {BITS: 1, VALUES: 2}  # on each multiprocessor: few, since they wait for each other once a round
LEVELS = 4  # of a wave, between two looks whether it has died out
WALKERS = 256  # threads of a CUDA block that walk, one to an agent
WALKER_WARPS = WALKERS // WARP
WALKERS_OF = 8  # such blocks on each multiprocessor
WORDS_OF = 16  # tiles to a walker, whose words it makes
FEW_TILES, MOST_TILES = 1 << 21, 1 << 26  # words are made for maps of few tiles, and up to most if there are agents for it:
TILES_OF = 4096  # so many tiles to an agent


@functools.cache
def spread_on_warp(size):
    """`bit_blocks.spread_on_cpu` for a warp: a row to a lane, all in registers; rows reach each other by shuffles."""
    last = size - 1

    @njit
    def spread(level, S, out, lane):
        """The wave from `level` on, until all that it can reach is reached. `out` is not written."""
        one, everywhere = uint32(1), uint32(0xFFFFFFFF)
        row = min(lane, last)
        bit, edge = uint32(one << uint32(row)), uint32(one << uint32(last))
        own = everywhere if lane < size else uint32(0)
        open_, bit1, front = uint32(S.open[row] & own), uint32(S.one[row] & own), uint32(S.front[1, row + 1] & own)
        far = int32(FAR)
        north = S.arrive[NORTH, row] if lane < size else far
        east = S.arrive[EAST, row] if lane < size else far
        south = S.arrive[SOUTH, row] if lane < size else far
        west = S.arrive[WEST, row] if lane < size else far
        d_north, d_east, d_south, d_west = S.dist[NORTH, row], S.dist[EAST, row], S.dist[SOUTH, row], S.dist[WEST, row]
        now = int32(level)
        while now < far:
            alive = True
            while alive:
                for _ in range(LEVELS):
                    from_north, from_south = cuda.ballot_sync(ALL, north == now), cuda.ballot_sync(ALL, south == now)
                    up = uint32(cuda.shfl_up_sync(ALL, int32(front), 1))
                    down = uint32(cuda.shfl_down_sync(ALL, int32(front), 1))
                    if lane == 0:
                        up = uint32(from_north)
                    if lane == last:
                        down = uint32(from_south)
                    new = (front << one) | (front >> one) | up | down
                    if west == now:
                        new |= one
                    if east == now:
                        new |= edge
                    front = uint32(new & open_)
                    open_ = uint32(open_ ^ front)
                    if now & int32(2):
                        bit1 = uint32(bit1 | front)
                    top, bottom = uint32(cuda.shfl_sync(ALL, int32(front), 0)), uint32(cuda.shfl_sync(ALL, int32(front), last))
                    if uint32(top & bit):
                        d_north = now
                    if uint32(bottom & bit):
                        d_south = now
                    if front & one:
                        d_west = now
                    if uint32(front & edge):
                        d_east = now
                    now = int32(now + int32(1))
                alive = cuda.any_sync(ALL, front != uint32(0))
            # the wave has died out: on to the next arrival at a tile that is still open
            least = far
            top, bottom = uint32(cuda.shfl_sync(ALL, int32(open_), 0)), uint32(cuda.shfl_sync(ALL, int32(open_), last))
            if north >= now and (top >> uint32(row)) & one:
                least = min(least, north)
            if south >= now and (bottom >> uint32(row)) & one:
                least = min(least, south)
            if west >= now and open_ & one:
                least = min(least, west)
            if east >= now and (open_ >> uint32(last)) & one:
                least = min(least, east)
            now = int32(least_lane(least, least)[0])
        if lane < size:
            S.open[row], S.one[row] = open_, bit1
            S.dist[NORTH, row], S.dist[EAST, row], S.dist[SOUTH, row], S.dist[WEST, row] = d_north, d_east, d_south, d_west
        sync_lanes()

    return spread


@functools.cache
def _update_kernel(layout, size, connectivity):
    update_fields = rounds.field_functions(layout, size, connectivity, spread_on_warp)
    wide, pitch, WARPS = size + 2, size + 3, WARPS_OF[layout]  # pitch: the values of a column lie in more banks of shared memory

    @cuda_jit(max_registers=min(255, 65536 // (WARP * WARPS * BLOCKS_OF[layout]) // 8 * 8))
    def update(width, blocks, M, V, E, directions, goals, R, Q, N):
        warp, lane = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP
        if layout == BITS:
            S = BitScratch(
                cuda.shared.array((WARPS, 2, wide), uint32)[warp],
                cuda.shared.array((WARPS, size), uint32)[warp],
                cuda.shared.array((WARPS, size), uint32)[warp],
                cuda.shared.array((WARPS, 1, 4), uint32)[warp],  # only the CPU sorts arrivals
                cuda.shared.array((WARPS, 4, size), int32)[warp],
                cuda.shared.array((WARPS, 4, size), int32)[warp],
            )
            if lane == 0:
                for k in range(2):
                    S.front[k, 0] = uint32(0)
                    S.front[k, wide - 1] = uint32(0)
        else:
            S = ValueScratch(
                cuda.shared.array((WARPS, wide, pitch), int64)[warp],
                cuda.shared.array((WARPS, wide, wide), uint8)[warp],
            )
        member, members = cuda.blockIdx.x, cuda.gridDim.x
        place = rounds.Place(warp * members + member, members * WARPS, member, members)  # few blocks: each on a multiprocessor of its own
        update_fields(width, blocks, M, V, E, directions, goals, R, Q, N, S, lane, place)

    return update


@functools.cache
def _descend_kernel(layout, size, bits):
    code_at, move = direction_functions(size)
    word_from, landing = word_functions(size, bits)
    per_word, shift, last = WORD_BITS // bits, size.bit_length() - 1, size - 1
    ends = 0x88888888  # bits set in AT_GOAL and NOWHERE only

    @cuda.jit(device=True, inline=True)
    def border_steps(row, col, base, width, E):
        """Distance of a border tile, -1 of any other. BITS only"""
        r, c = row & last, col & last
        item = base + ((row >> shift) + 1) * width + (col >> shift) + 1
        if r == 0:
            return E[item, NORTH, c]
        if r == last:
            return E[item, SOUTH, c]
        if c == 0:
            return E[item, WEST, r]
        if c == last:
            return E[item, EAST, r]
        return int32(-1)

    @cuda.jit(device=True, inline=True)
    def steps_from(row, col, base, width, E, directions):
        """How many steps lead from a tile to the goal; -1: none do."""
        steps = int32(0)
        code = code_at(row, col, base, width, directions)
        if code == NOWHERE:
            return int32(-1)
        while code != AT_GOAL:
            if layout == BITS:
                rest = border_steps(row, col, base, width, E)
                if rest >= 0:
                    return steps + rest
            row, col = move(row, col, code)
            steps += int32(1)
            code = code_at(row, col, base, width, directions)
        return steps

    @cuda.jit(device=True, inline=True)
    def steps_by_words(row, col, cols, ahead):
        """The same, by the words of all tiles. Only where these say where they end, with 4 bits a step"""
        word = ahead[row * cols + col]
        if word >> uint32(WORD_BITS - bits) == NOWHERE:
            return int32(-1)
        steps = int32(0)
        while word & uint32(ends) == 0:
            row, col = landing(row, col, word)
            steps += int32(per_word)
            word = ahead[row * cols + col]
        return int32(steps + cuda.clz(int32(word & uint32(ends))) // bits)

    @cuda.jit(device=True, inline=True)
    def sum_before(value, sums):
        """-> sum of the values of the threads before this one, and of all threads of the block. sums: shared (WALKER_WARPS,)"""
        lane, warp = cuda.threadIdx.x % WARP, cuda.threadIdx.x // WARP
        upto = value
        for k in range(5):
            other = cuda.shfl_up_sync(ALL, upto, 1 << k)
            if lane >= 1 << k:
                upto += other
        if lane == WARP - 1:
            sums[warp] = upto
        cuda.syncthreads()
        before, total = int64(0), int64(0)
        for w in range(WALKER_WARPS):
            if w < warp:
                before += sums[w]
            total += sums[w]
        cuda.syncthreads()
        return before + upto - value, total

    @cuda_jit
    def descend(width, blocks, V, E, directions, agents, ahead, numbers, words, totals, total, N):
        """Answers to n agents.

        agents: int32: n, slots - 1, starts [row, col], slots (n, or 1 for all)
        ahead: (tiles,) uint32, gets the next steps from each tile of the one slot; or (1,): each agent goes step by step
        numbers, words: the same memory, as int64 and as uint32, which gets what `CudaFields.answer` says
        totals: (members,) int64; total: (1,) int64 words that the steps take. Where these are more than there is room for, no
        steps are written
        """
        sums = cuda.shared.array(WALKER_WARPS, int64)
        member, members = cuda.blockIdx.x, cuda.gridDim.x
        thread = cuda.threadIdx.x
        n, last_slot = int64(agents[0]), int64(agents[1])
        starts, slots = agents[2 : 2 + 2 * n], agents[2 + 2 * n :]
        head = 2 * n if layout == BITS else 4 * n
        length, steps_at = words[head : head + n], head + n
        share = (n + members - 1) // members
        begin, end = member * share, min(n, (member + 1) * share)
        by_words, cols = ahead.size > 1, (width - 2) * size
        if by_words:
            for tile in range(member * WALKERS + thread, ahead.size, members * WALKERS):
                row = int64(uint32(tile) // uint32(cols))
                ahead[tile] = word_from(row, tile - row * cols, int64(slots[0]) * blocks, width, directions)
            if bits == 4:  # else the first who reads them does so after the next time all have met
                sync_team(N, 0, member, members)
        taken = int64(0)
        for i in range(begin + thread, end, WALKERS):
            slot = int64(slots[min(i, last_slot)])
            row, col = int64(starts[2 * i]), int64(starts[2 * i + 1])
            if bits == 4 and by_words:
                steps = steps_by_words(row, col, cols, ahead)
            else:
                steps = steps_from(row, col, slot * blocks, width, E, directions)
            length[i] = uint32(steps)
            if layout == VALUES:
                numbers[n + i] = V[slot, row + 1, col + 1]
            taken += (max(steps, 0) + per_word - 1) // per_word
        _, whole = sum_before(taken, sums)
        if thread == 0:
            totals[member] = whole
        sync_team(N, 0, member, members)
        taken = int64(0)
        every = int64(0)
        for m in range(thread, members, WALKERS):
            if m < member:
                taken += totals[m]
            every += totals[m]
        _, base = sum_before(taken, sums)
        _, every = sum_before(every, sums)
        if member == 0 and thread == 0:
            total[0] = every
        for chunk in range(begin, end, WALKERS):
            i = chunk + thread
            need = int64(0)
            if i < end:
                need = int64((max(int32(length[i]), 0) + per_word - 1) // per_word)
            before, whole = sum_before(need, sums)
            if i < end:
                numbers[i] = base + before
            base += whole
        if steps_at + every <= words.size:
            for i in range(begin + thread, end, WALKERS):
                row, col = int64(starts[2 * i]), int64(starts[2 * i + 1])
                slot_base, at = int64(slots[min(i, last_slot)]) * blocks, steps_at + numbers[i]
                word, whole = uint32(0), (max(int32(length[i]), 0) // per_word if by_words else 0)
                for number in range(int32(length[i]) - 1, whole * per_word - 1, -1):
                    code = code_at(row, col, slot_base, width, directions)
                    word |= uint32(code) << uint32(bits * (number & (per_word - 1)))
                    if number & (per_word - 1) == 0:
                        words[at + number // per_word] = word
                        word = uint32(0)
                    row, col = move(row, col, code)
                for k in range(whole - 1, -1, -1):
                    word = ahead[row * cols + col]
                    words[at + k] = word
                    row, col = landing(row, col, word)

    return descend


class CudaFields:
    """Fields on one CUDA device. Not for several threads at once. The same as `block_field.CpuFields`."""

    def __init__(self, shape, device):
        self.shape = shape
        self._index = int(device.partition(":")[2] or 0)
        self._update = _update_kernel(shape.layout, shape.blocks.size, shape.connectivity)
        self._descend = _descend_kernel(shape.layout, shape.blocks.size, step_bits(shape.connectivity))
        self._pinned, self._staged, self._arrays = PinnedPool(cuda.pinned_array), {}, {}
        self._changed = None  # first and last row of the map that the device does not have as they are
        self._fitting = {}  # kernel -> how many of its blocks run at once
        self._request, self._words = np.zeros(0, np.int32), None
        with cuda.gpus[self._index]:
            self._multiprocessors = cuda.get_current_device().MULTIPROCESSOR_COUNT
            self._stream = CudaStream()
            self._agents = np.zeros(0, np.int32), None  # page-locked, on the device
            self._ahead = {1: cuda.device_array(1, np.uint32)}  # words, by how many there are
            self._totals = cuda.device_array(WALKERS_OF * self._multiprocessors, np.int64)
            self._total, self._barrier = cuda.mapped_array(1, np.int64), cuda.to_device(np.zeros(1, np.int32))
            self._answer(1)

    def allocate(self, slots):
        """Room for so many fields; those there were are lost."""
        with cuda.gpus[self._index]:
            self._stream.clear()
            self._arrays = {}
            for name, (shape, kind) in self.shape.field_shapes(slots).items():
                self._arrays[name] = cuda.device_array(shape, kind)
            self._arrays["N"] = cuda.to_device(np.zeros(8, np.int32))
            self._arrays["Q"].copy_to_device(np.zeros(self._arrays["Q"].shape, np.int32))

    @property
    def memory_bytes(self):
        """See `CpuFields`."""
        kept = *self._arrays.values(), *self._ahead.values(), self._numbers, self._totals, self._agents[1]
        return sum(a.nbytes for a in kept if a is not None)

    def set_map(self, grid):
        """Before fields are made."""
        with cuda.gpus[self._index]:
            self._map = cuda.pinned_array(*self.shape.map_shape)
            self._map[:] = self.shape.map_array(grid)
            self._device_map = cuda.to_device(self._map)

    def change_map(self, grid, rows, cols):
        """Before fields are repaired."""
        first, last = self.shape.change_map(self._map, grid, rows, cols)
        self._changed = (min(first, self._changed[0]), max(last, self._changed[1])) if self._changed else (first, last)

    def staged(self):
        """As of `CpuFields`, in page-locked memory."""
        with cuda.gpus[self._index]:
            if not self._staged:
                self._device_map = cuda.device_array(*self.shape.map_shape)
                self._staged = {name: cuda.pinned_array(a.shape, a.dtype) for name, a in self._state().items()}
        return self._staged

    def _state(self):
        return {"M": self._device_map} | {name: self._arrays[name] for name in ("V", "E", "directions")}

    def load(self, *names):
        """See `staged`."""
        with cuda.gpus[self._index]:
            for name in names:
                self._state()[name].copy_to_device(self._staged[name], self._stream.numba)

    def unload(self, *names):
        """See `staged`."""
        with cuda.gpus[self._index]:
            for name in names:
                self._state()[name].copy_to_host(self._staged[name], self._stream.numba)
            self._stream.wait()

    def update(self, R):
        """See `CpuFields`."""
        a, blocks = self._arrays, self.shape.blocks
        with cuda.gpus[self._index]:
            self._stream.wait()  # the request before has been read
            if len(self._request) < len(R):
                self._request = cuda.mapped_array(2 * len(R), np.int32)
            self._request[: len(R)] = R
            if self._changed:
                first, last = self._changed
                self._stream.to_device(self._device_map, first * self._map.shape[1], self._map[first : last + 1])
                self._changed = None
            arguments = (
                blocks.width, blocks.count, self._device_map, a["V"], a["E"], a["directions"], a["goals"], self._request, a["Q"], a["N"]
            )
            warps = WARPS_OF[self.shape.layout]
            self._launch(self._update, warps, BLOCKS_OF[self.shape.layout] * self._multiprocessors, warps * blocks.count, arguments)

    def wait(self):
        """See `CpuFields`."""
        with cuda.gpus[self._index]:
            self._stream.wait()

    def descend(self, starts, slots, bits):
        """Paths of agents. starts: (N, 2) int32; slots: (N,) int32, or (1,) for all -> length (N,) int32, -1 without a path; first (N,) int64;
        cost-to-go of the starts in units (N,) int64, empty of BITS; words

        The answer comes from the device in one piece: first, cost-to-go, length, words.
        """
        n, a, blocks = len(starts), self._arrays, self.shape.blocks
        values = n if self.shape.layout == VALUES else 0
        head = 2 * (n + values) + n  # of uint32
        with cuda.gpus[self._index]:
            agents, ahead = self._sent(n, starts, slots), self._words_ahead(n, len(slots))
            for _ in range(2):
                numbers, words = self._answer(head)
                arguments = (
                    blocks.width, blocks.count, a["V"], a["E"], a["directions"], agents, ahead, numbers, words, self._totals, self._total, self._barrier
                )
                most = max(1 << max(n - 1, 0).bit_length(), ahead.size // WORDS_OF)  # launches of about so many agents are the same
                self._launch(self._descend, WALKER_WARPS, WALKERS_OF * self._multiprocessors, -(-most // WARP), arguments)
                self._stream.wait()
                check_words(int(self._total[0]))
                if head + self._total[0] <= words.size:
                    break
                self._answer(head + int(self._total[0]))
            answer = self._pinned.take(head + int(self._total[0]), np.uint32)
            if len(answer):
                self._stream.to_host(answer, words)
            self._stream.wait()
        numbers = answer[: head - n].view(np.int64)
        return answer[head - n : head].view(np.int32), numbers[:n], numbers[n:], answer[head:]

    def field(self, slot):
        """-> V, E, M of one slot, on the host"""
        self.wait()
        with cuda.gpus[self._index]:
            if self.shape.layout == VALUES:
                return self._arrays["V"][slot].copy_to_host(), None, self._map
            items = slice(slot * self.shape.blocks.count, (slot + 1) * self.shape.blocks.count)
            return self._arrays["V"][items].copy_to_host(), self._arrays["E"][items].copy_to_host(), self._map

    def _launch(self, kernel, warps, most, wanted, arguments):
        """Launch at most `most` CUDA blocks of `warps` warps each, `wanted` warps in all. They wait for each other, so that all must
        run at once."""
        if kernel not in self._fitting:
            if not kernel.overloads:
                kernel[1, warps * WARP, self._stream.numba](*arguments)  # compiles; how many blocks fit is known afterwards
            self._fitting[kernel] = team_blocks(kernel, warps * WARP, most)
        self._stream.launch(kernel, max(1, min(self._fitting[kernel], -(-wanted // warps))), warps * WARP, arguments)

    def _words_ahead(self, n, slots):
        """-> `ahead` of the kernel, kept"""
        rows, cols = self.shape.padded
        tiles = (rows - 2) * (cols - 2)
        count = tiles if slots == 1 and tiles <= max(FEW_TILES, min(MOST_TILES, n * TILES_OF)) else 1
        if count not in self._ahead:
            self._ahead[count] = cuda.device_array(count, np.uint32)
        return self._ahead[count]

    def _answer(self, words):
        """-> memory on the device of at least so many words, kept, as int64 and as uint32"""
        if self._words is None or self._words.size < words:
            self._stream.clear()  # it holds the old one
            self._numbers = self._words = None
            self._numbers = cuda.device_array(words // 2 + words // 8 + 1, np.int64)
            self._words = self._numbers.view(np.uint32)
        return self._numbers, self._words

    def _sent(self, n, starts, slots):
        """-> `agents` of the kernel, kept"""
        count = 2 + 2 * n + len(slots)
        staging, agents = self._agents
        if len(staging) < count:
            staging, agents = self._agents = cuda.pinned_array(count + count // 4, np.int32), cuda.device_array(count + count // 4, np.int32)
        staging[:2] = n, len(slots) - 1
        staging[2 : 2 + 2 * n] = starts.ravel()
        staging[2 + 2 * n : count] = slots
        self._stream.to_device(agents, 0, staging[:count])
        return agents
