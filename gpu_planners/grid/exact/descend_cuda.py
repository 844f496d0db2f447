"""CUDA: the kernel that walks all agents down their fields (`descent`), in one cooperative launch."""

import functools

from numba import cuda, int32, int64, uint32

from ...device import cuda_jit
from ...parallel.team import sync_team
from ...parallel.team_cuda import ALL, WARP
from ..paths import EAST, NORTH, SOUTH, WEST, WORD_BITS, step_bits
from .blocks import AT_GOAL, BITS, NOWHERE, VALUES, kind_of
from .descent import Directions, code_at, landing, move, word_from

WALKERS = 256  # threads of a CUDA block, one to an agent
WALKER_WARPS = WALKERS // WARP
ENDS = 0x88888888  # bits set in the codes AT_GOAL and NOWHERE only


@cuda.jit(device=True, inline=True)
def sum_before(value, sums):
    """-> sum of the values of the threads before this one, and of all threads of the block.

    sums: shared (WALKER_WARPS,)
    """
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


@cuda.jit(device=True, inline=True)
def words_before(totals, member, members, sums):
    """-> words of the CUDA blocks before this one, and of all. totals, sums: as of `descend` and `sum_before`"""
    before, every = int64(0), int64(0)
    for m in range(cuda.threadIdx.x, members, WALKERS):
        if m < member:
            before += totals[m]
        every += totals[m]
    _, before = sum_before(before, sums)
    _, every = sum_before(every, sums)
    return before, every


@cuda.jit(device=True, inline=True)
def place_words(begin, end, base, length, per_word, first, sums):
    """Write to `first` where the words of agents begin .. end - 1 begin: those of the first one at `base`."""
    for chunk in range(begin, end, WALKERS):
        i = chunk + cuda.threadIdx.x
        need = int64(0)
        if i < end:
            need = int64((max(int32(length[i]), 0) + per_word - 1) // per_word)
        before, whole = sum_before(need, sums)
        if i < end:
            first[i] = base + before
        base += whole


@cuda.jit(device=True, inline=True)
def fill_ahead(ahead, cols, slot, directions):
    """Write the words of all tiles, each thread its share."""
    for tile in range(cuda.blockIdx.x * WALKERS + cuda.threadIdx.x, ahead.size, cuda.gridDim.x * WALKERS):
        row = int64(uint32(tile) // uint32(cols))
        ahead[tile] = word_from(row, tile - row * cols, slot, directions)


@cuda.jit(device=True, inline=True)
def border_steps(row, col, slot, directions, edge):
    """Distance of a border tile, -1 of any other. BITS only"""
    shift = len(directions.kind.shift)
    last = (1 << shift) - 1
    r, c = row & last, col & last
    item = slot * directions.blocks + ((row >> shift) + 1) * directions.width + (col >> shift) + 1
    if r == 0:
        return edge[item, NORTH, c]
    if r == last:
        return edge[item, SOUTH, c]
    if c == 0:
        return edge[item, WEST, r]
    if c == last:
        return edge[item, EAST, r]
    return int32(-1)


@cuda.jit(device=True, inline=True)
def steps_from(row, col, slot, directions, edge, layout):
    """-> how many steps lead from a tile to the goal, step by step; -1: none do"""
    steps = int32(0)
    code = code_at(row, col, slot, directions)
    if code == NOWHERE:
        return int32(-1)
    while code != AT_GOAL:
        if layout == BITS:
            rest = border_steps(row, col, slot, directions, edge)
            if rest >= 0:
                return steps + rest
        row, col = move(row, col, code)
        steps += int32(1)
        code = code_at(row, col, slot, directions)
    return steps


@cuda.jit(device=True, inline=True)
def steps_by_words(row, col, cols, ahead, directions):
    """As `steps_from`, by the words of all tiles. Only where these say where they end, with 4 bits a step"""
    word = ahead[row * cols + col]
    if word >> uint32(WORD_BITS - 4) == NOWHERE:
        return int32(-1)
    steps = int32(0)
    while word & uint32(ENDS) == 0:
        row, col = landing(row, col, word, directions)
        steps += int32(WORD_BITS // 4)
        word = ahead[row * cols + col]
    return int32(steps + cuda.clz(int32(word & uint32(ENDS))) // 4)


@cuda.jit(device=True, inline=True)
def write_path(row, col, slot, steps, directions, cols, ahead, words):
    """Write an agent's words from the first one of `words` on. ahead: as of `descend`, or of size 1"""
    bits = step_bits(len(directions.kind.moves))
    per_word = WORD_BITS // bits
    word, whole = uint32(0), (steps // per_word if ahead.size > 1 else 0)
    for number in range(steps - 1, whole * per_word - 1, -1):
        code = code_at(row, col, slot, directions)
        word |= uint32(code) << uint32(bits * (number & (per_word - 1)))
        if number & (per_word - 1) == 0:
            words[number // per_word] = word
            word = uint32(0)
        row, col = move(row, col, code)
    for k in range(whole - 1, -1, -1):
        word = ahead[row * cols + col]
        words[k] = word
        row, col = landing(row, col, word, directions)


@functools.cache
def descend_kernel(layout, size, connectivity):
    """The kernel for fields of a layout."""
    kind, bits = kind_of(size, connectivity), step_bits(connectivity)
    per_word = WORD_BITS // bits

    @cuda_jit
    def descend(width, blocks, values, edge, codes, agents, ahead, numbers, words, totals, total, barrier):
        """Answers to n agents. width, blocks, codes: as of `Directions`; values, edge: see `FieldShape.field_shapes`

        agents: int32: n, slots - 1, starts [row, col], slots (n, or 1 for all)
        ahead: (tiles,) uint32, gets the next steps from each tile of the one slot; or (1,): each agent goes step by
            step
        numbers, words: the same memory, as int64 and as uint32, which gets what `CudaFields.descend` says
        totals: (members,) int64; total: (1,) int64 words that the steps take. Where these are more than there is room
        for, no steps are written
        barrier: (1,) int32, 0 at first
        """
        sums = cuda.shared.array(WALKER_WARPS, int64)
        directions = Directions(kind, codes, width, blocks)
        member, members, thread = cuda.blockIdx.x, cuda.gridDim.x, cuda.threadIdx.x
        n, last_slot = int64(agents[0]), int64(agents[1])
        starts, slots = agents[2 : 2 + 2 * n], agents[2 + 2 * n :]
        head = 2 * n if layout == BITS else 4 * n
        length, steps_at = words[head : head + n], head + n
        share = (n + members - 1) // members
        begin, end = member * share, min(n, (member + 1) * share)
        by_words, cols = ahead.size > 1, (width - 2) * size
        if by_words:
            fill_ahead(ahead, cols, int64(slots[0]), directions)
            if bits == 4:  # else the first who reads them does so after the next time all have met
                sync_team(barrier, 0, member, members)
        taken = int64(0)  # words
        for i in range(begin + thread, end, WALKERS):
            slot = int64(slots[min(i, last_slot)])
            row, col = int64(starts[2 * i]), int64(starts[2 * i + 1])
            if bits == 4 and by_words:
                steps = steps_by_words(row, col, cols, ahead, directions)
            else:
                steps = steps_from(row, col, slot, directions, edge, layout)
            length[i] = uint32(steps)
            if layout == VALUES:
                numbers[n + i] = values[slot, row + 1, col + 1]
            taken += (max(steps, 0) + per_word - 1) // per_word
        _, whole = sum_before(taken, sums)
        if thread == 0:
            totals[member] = whole
        sync_team(barrier, 0, member, members)
        base, every = words_before(totals, member, members, sums)
        if member == 0 and thread == 0:
            total[0] = every
        place_words(begin, end, base, length, per_word, numbers, sums)
        if steps_at + every <= words.size:
            for i in range(begin + thread, end, WALKERS):
                row, col, slot = int64(starts[2 * i]), int64(starts[2 * i + 1]), int64(slots[min(i, last_slot)])
                steps = int32(length[i])
                if steps > 0:
                    write_path(row, col, slot, steps, directions, cols, ahead, words[steps_at + numbers[i] :])

    return descend
