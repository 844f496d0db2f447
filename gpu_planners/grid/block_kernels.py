"""CUDA: fields (`block_rounds`) in one cooperative launch, and all agents' paths down them (`descent`) in another."""

import functools

import numpy as np
from numba import cuda, int32, int64, uint8, uint32

from ..device import cuda_jit, njit
from ..team import least_lane, sync_lanes, sync_team
from ..team_kernels import ALL, WARP, team_blocks
from . import block_rounds as rounds
from .agents import WORD_BITS
from .bit_blocks import AT_GOAL, EAST, FAR, NORTH, NOWHERE, SOUTH, WEST, BitScratch
from .block_rounds import BITS, VALUES
from .descent import direction_functions
from .pinned import PinnedPool
from .value_blocks import ValueScratch

WARPS_OF = {BITS: 16, VALUES: 4}  # of a CUDA block, one to a block of the map; shared memory bounds those of VALUES
BLOCKS_OF = {BITS: 1, VALUES: 2}  # on each multiprocessor: few, since they wait for each other once a round
WALKERS = 256  # threads of a CUDA block that walk, one to an agent
WALKER_WARPS = WALKERS // WARP
WALKERS_OF = 8  # such blocks on each multiprocessor


@functools.cache
def spread_on_warp(size):
    """`bit_blocks.spread_on_cpu` for a warp: a row to a lane, all in registers; rows reach each other by shuffles."""
    last = size - 1

    @njit
    def spread(level, S, out, lane):
        """The wave from `level` on, until all that it can reach is reached. `out` is not written."""
        one, everywhere = uint32(1), uint32(0xFFFFFFFF)
        row = min(lane, last)
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
                    new |= one << uint32(last)
                front = uint32(new & open_)
                open_ = uint32(open_ ^ front)
                if now & int32(2):
                    bit1 = uint32(bit1 | front)
                top, bottom = uint32(cuda.shfl_sync(ALL, int32(front), 0)), uint32(cuda.shfl_sync(ALL, int32(front), last))
                if (top >> uint32(lane)) & one:
                    d_north = now
                if (bottom >> uint32(lane)) & one:
                    d_south = now
                if front & one:
                    d_west = now
                if (front >> uint32(last)) & one:
                    d_east = now
                alive = cuda.any_sync(ALL, front != uint32(0))
                now = int32(now + int32(1))
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
    wide, WARPS = size + 2, WARPS_OF[layout]

    @cuda_jit(max_registers=min(255, 65536 // (WARP * WARPS * BLOCKS_OF[layout])))
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
                cuda.shared.array((WARPS, wide, wide), int64)[warp],
                cuda.shared.array((WARPS, wide, wide), uint8)[warp],
            )
        member, members = cuda.blockIdx.x, cuda.gridDim.x
        place = rounds.Place(warp * members + member, members * WARPS, member, members)  # few blocks: each on a multiprocessor of its own
        update_fields(width, blocks, M, V, E, directions, goals, R, Q, N, S, lane, place)

    return update


@functools.cache
def _descend_kernel(layout, size, bits):
    code_at, move = direction_functions(size)
    per_word, shift, last = WORD_BITS // bits, size.bit_length() - 1, size - 1

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
    def descend(width, blocks, V, E, directions, starts, slots, last_slot, n, capacity, length, first, value, words, totals, N):
        """Lengths, costs in units (VALUES only) and packed steps of n agents; `totals` gets the words they take.

        Where those are more than `capacity`, no steps are written. totals: (members + 1,) int64, mapped the last
        """
        sums = cuda.shared.array(WALKER_WARPS, int64)
        member, members = cuda.blockIdx.x, cuda.gridDim.x
        thread = cuda.threadIdx.x
        share = (n + members - 1) // members
        begin, end = member * share, min(n, (member + 1) * share)
        taken = int64(0)
        for i in range(begin + thread, end, WALKERS):
            slot = int64(slots[min(i, last_slot)])
            row, col = int64(starts[i, 0]), int64(starts[i, 1])
            steps = steps_from(row, col, slot * blocks, width, E, directions)
            length[i] = steps
            if layout == VALUES:
                value[i] = V[slot, row + 1, col + 1]
            taken += (max(steps, 0) + per_word - 1) // per_word
        _, total = sum_before(taken, sums)
        if thread == 0:
            totals[member] = total
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
            totals[members] = every
        for chunk in range(begin, end, WALKERS):
            i = chunk + thread
            need = int64(0)
            if i < end:
                need = int64((max(length[i], 0) + per_word - 1) // per_word)
            before, total = sum_before(need, sums)
            if i < end:
                first[i] = base + before
            base += total
        if every <= capacity:
            for i in range(begin + thread, end, WALKERS):
                row, col = int64(starts[i, 0]), int64(starts[i, 1])
                slot_base, at = int64(slots[min(i, last_slot)]) * blocks, first[i]
                word = uint32(0)
                for number in range(length[i] - 1, -1, -1):
                    code = code_at(row, col, slot_base, width, directions)
                    word |= uint32(code) << uint32(bits * (number & (per_word - 1)))
                    if number & (per_word - 1) == 0:
                        words[at + number // per_word] = word
                        word = uint32(0)
                    row, col = move(row, col, code)

    return descend


class CudaFields:
    """Fields on one CUDA device. Not for several threads at once. The same as `block_field.CpuFields`."""

    def __init__(self, shape, device):
        self.shape = shape
        self._index = int(device.partition(":")[2] or 0)
        self._update = _update_kernel(shape.layout, shape.blocks.size, shape.connectivity)
        bits = 2 if shape.connectivity == 4 else 4
        self._descend = _descend_kernel(shape.layout, shape.blocks.size, bits)
        self._pinned, self._held, self._staged = PinnedPool(cuda.pinned_array), {}, {}
        with cuda.gpus[self._index]:
            self._multiprocessors = cuda.get_current_device().MULTIPROCESSOR_COUNT
            self._stream = cuda.stream()

    def allocate(self, slots):
        """Room for so many fields; those there were are lost."""
        with cuda.gpus[self._index]:
            self._arrays = {}
            for name, (shape, kind) in self.shape.field_shapes(slots).items():
                self._arrays[name] = cuda.device_array(shape, kind)
            N = np.zeros(8, np.int32)
            N[rounds.ROUND] = 1
            self._arrays["N"] = cuda.to_device(N)
            self._arrays["Q"].copy_to_device(np.zeros(self._arrays["Q"].shape, np.int32))

    def set_map(self, grid):
        """Before fields are made."""
        self._map = self.shape.map_array(grid)
        with cuda.gpus[self._index]:
            self._device_map = cuda.to_device(self._map)

    def change_map(self, grid, rows, cols):
        """Before fields are repaired."""
        first, last = self.shape.change_map(self._map, grid, rows, cols)
        with cuda.gpus[self._index]:
            self._device_map[first : last + 1].copy_to_device(self._map[first : last + 1], self._stream)

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
                self._state()[name].copy_to_device(self._staged[name], self._stream)

    def unload(self, *names):
        """See `staged`."""
        with cuda.gpus[self._index]:
            for name in names:
                self._state()[name].copy_to_host(self._staged[name], self._stream)
            self._stream.synchronize()

    def update(self, R):
        """Run `update_fields`."""
        a, blocks = self._arrays, self.shape.blocks
        with cuda.gpus[self._index]:
            sent = self._held.get("R")
            if sent is None or len(sent) < len(R):
                sent = self._held["R"] = cuda.mapped_array(2 * len(R), np.int32)
            sent[: len(R)] = R
            arguments = (
                blocks.width, blocks.count, self._device_map, a["V"], a["E"], a["directions"], a["goals"], sent, a["Q"], a["N"]
            )
            warps = WARPS_OF[self.shape.layout]
            self._launch(self._update, warps, BLOCKS_OF[self.shape.layout], warps * blocks.count, arguments)
            self._stream.synchronize()

    def descend(self, starts, slots, bits):
        """Paths of agents. starts: (N, 2) int32; slots: (N,) int32, or (1,) for all -> length (N,) int32, -1 without a path; first (N,) int64;
        cost-to-go of the starts in units (N,) int64, empty of BITS; words"""
        n, a, blocks = len(starts), self._arrays, self.shape.blocks
        with cuda.gpus[self._index]:
            last_slot = len(slots) - 1
            starts, slots = self._sent("starts", starts), self._sent("slots", slots)
            length = self._room("length", n, np.int32)
            first, value = self._room("first", n, np.int64), self._room("value", n, np.int64)
            words = self._room("words", 1, np.uint32)
            N = self._held.setdefault("N", cuda.to_device(np.zeros(1, np.int32)))
            totals = self._room("totals", WALKERS_OF * self._multiprocessors + 1, np.int64)
            for _ in range(2):
                arguments = (
                    blocks.width, blocks.count, a["V"], a["E"], a["directions"], starts, slots, last_slot, n, len(words), length, first, value,
                    words, totals, N,
                )
                members = self._launch(self._descend, WALKER_WARPS, WALKERS_OF, -(-n // WARP), arguments)
                total = self._held.setdefault("total", cuda.pinned_array(1, np.int64))
                totals[members : members + 1].copy_to_host(total, self._stream)
                self._stream.synchronize()
                if total[0] <= len(words):
                    break
                words = self._room("words", int(total[0]), np.uint32)
            answers = []
            for part, count in ((length, n), (first, n), (value, n if self.shape.layout == VALUES else 0), (words, int(total[0]))):
                answers.append(self._pinned.take(count, part.dtype))
                if count:
                    part[:count].copy_to_host(answers[-1], self._stream)
            self._stream.synchronize()
            return answers

    def field(self, slot):
        """-> V, E, M of one slot, on the host"""
        with cuda.gpus[self._index]:
            if self.shape.layout == VALUES:
                return self._arrays["V"][slot].copy_to_host(), None, self._map
            items = slice(slot * self.shape.blocks.count, (slot + 1) * self.shape.blocks.count)
            return self._arrays["V"][items].copy_to_host(), self._arrays["E"][items].copy_to_host(), self._map

    def _launch(self, kernel, warps, at_once, wanted, arguments):
        """Launch CUDA blocks of `warps` warps, at most `at_once` on each multiprocessor and `wanted` warps -> how many blocks

        They wait for each other, so that all must run at once.
        """
        if not kernel.overloads:
            kernel[1, warps * WARP, self._stream](*arguments)  # compiles; how many blocks fit is known afterwards
        members = max(1, min(team_blocks(kernel, warps * WARP, at_once * self._multiprocessors), -(-wanted // warps)))
        kernel[members, warps * WARP, self._stream](*arguments)
        return members

    def _room(self, name, count, kind):
        """A kept device array of at least `count` elements."""
        held = self._held.get(name)
        if held is None or len(held) < count:
            held = self._held[name] = cuda.device_array(count + count // 4, kind)
        return held

    def _sent(self, name, values):
        """A kept device array that begins with `values`."""
        values = np.ascontiguousarray(values)
        staging = self._held.get((name, "host"))
        if staging is None or staging.size < values.size:
            staging = self._held[name, "host"] = cuda.pinned_array(values.size + values.size // 4 + 1, values.dtype)
            self._held[name] = cuda.device_array(len(staging), values.dtype)
        staging[: values.size] = values.ravel()
        self._held[name][: max(1, values.size)].copy_to_device(staging[: max(1, values.size)], self._stream)
        return self._held[name].reshape(-1) if values.ndim == 1 else self._held[name][: values.size].reshape(values.shape)
