"""Paths of agents down a field: they follow the directions of the tiles from their starts to the goal.

On the CPU agents that meet on the way to one goal walk the rest only once: since steps are counted from the goal, the rest
of a path is a copy of the first words of the other one's (`agents`). On CUDA (`block_kernels`) each agent has a thread, which
follows whole words: those of the next steps from each tile, made for all tiles before.
"""

import functools

import numpy as np
from numba import types
from numba.extending import intrinsic

from ..device import njit
from .agents import COL_MOVES, ROW_MOVES, WORD_BITS, put_step
from .bit_blocks import AT_GOAL, NOWHERE

ROW_STEPS, COL_STEPS = (sum((step + 1) << (2 * code) for code, step in enumerate(moves)) for moves in (ROW_MOVES, COL_MOVES))  # 2 bits each
AGENT = 32  # known: bits from here on are an agent's index + 1, those below its steps to go


@functools.cache
def direction_functions(size):
    """-> code_at, move for blocks of this size."""
    shift, mask = size.bit_length() - 1, size - 1

    @njit
    def code_at(row, col, base, width, directions):
        """-> direction code of a tile. base: the first item of the goal's slot"""
        block = ((row >> shift) + 1) * width + (col >> shift) + 1
        tile = ((row & mask) << shift) + (col & mask)
        word = directions[np.uintp(base + block), np.uintp(tile >> 3)]  # unsigned: Numba looks whether other indices are negative
        return np.int32((word >> np.uint32(4 * (tile & 7))) & np.uint32(15))

    @njit
    def move(row, col, code):
        """The tile that a move code 0 to 7 leads to."""
        return row + ((ROW_STEPS >> (2 * code)) & 3) - 1, col + ((COL_STEPS >> (2 * code)) & 3) - 1

    return code_at, move


@intrinsic
def _bits_set(context, bits):
    return types.uint32(types.uint32), lambda context, builder, signature, arguments: builder.ctpop(arguments[0])


@functools.cache
def word_functions(size, bits):
    """-> word_from, landing, for blocks of this size and steps of so many bits."""
    code_at, move = direction_functions(size)
    per_word, moves = WORD_BITS // bits, 4 if bits == 2 else 8
    lowest = np.uint32(sum(1 << (bits * number) for number in range(per_word)))

    @njit
    def word_from(row, col, base, width, directions):
        """The next steps from a tile, packed as in a PathSet: the first one in the highest bits. With 4 bits a step, the code AT_GOAL or
        NOWHERE follows the last one if they are fewer than fit in."""
        word = np.uint32(0)
        for number in range(per_word - 1, -1, -1):
            code = code_at(row, col, base, width, directions)
            word = np.uint32(word | np.uint32(code & ((1 << bits) - 1)) << np.uint32(bits * number))
            if code >= AT_GOAL:
                return word
            row, col = move(row, col, code)
        return word

    @njit
    def landing(row, col, word):
        """The tile that the steps of a full word lead to."""
        for code in range(moves):
            of_code = lowest
            for j in range(bits):
                bit = word >> np.uint32(j)
                of_code = np.uint32(of_code & (bit if (code >> j) & 1 else ~bit))
            times = np.int64(_bits_set(of_code))
            row, col = row + ROW_MOVES[code] * times, col + COL_MOVES[code] * times
        return row, col

    return word_from, landing


@functools.cache
def walk_functions(size):
    """-> count_steps, write_steps for blocks of this size, on the CPU."""
    code_at, move = direction_functions(size)

    @njit
    def joins(row, col, slot, slots, known):
        """-> the agent met at a tile, on its way to the same goal, or -1; its steps to go from there"""
        if known.size == 0 or known[row, col] == 0:
            return -1, 0
        other = np.int64(known[row, col] >> AGENT) - 1
        return (other, np.int64(known[row, col] & 0xFFFFFFFF)) if slots[min(other, len(slots) - 1)] == slot else (-1, 0)

    @njit
    def count_steps(begin, end, starts, slots, width, blocks, directions, known, length, met, shared):
        """Agents begin to end: length (N,) int32 of their paths, -1 without one; slots: (N,) int32, or (1,) for all; met, shared (N,) int32: whom each one
        joins first (-1: nobody) and how many steps before the goal. known: (rows, cols) int64 zeros, or of size 0: no sharing."""
        for i in range(begin, end):
            slot = slots[min(i, len(slots) - 1)]
            row, col = np.int64(starts[i, 0]), np.int64(starts[i, 1])
            steps = 0
            while True:
                other, rest = joins(row, col, slot, slots, known)
                code = code_at(row, col, slot * blocks, width, directions)
                if other >= 0 or code >= AT_GOAL:
                    break
                row, col = move(row, col, code)
                steps += 1
            met[i], shared[i] = other, rest
            length[i] = -1 if code == NOWHERE else steps + rest
            if known.size > 0 and code != NOWHERE:
                row, col = np.int64(starts[i, 0]), np.int64(starts[i, 1])
                for number in range(steps):
                    known[row, col] = ((i + 1) << AGENT) | (length[i] - number)
                    row, col = move(row, col, code_at(row, col, slot * blocks, width, directions))

    @njit
    def write_steps(begin, end, starts, slots, width, blocks, directions, length, met, shared, first, bits, words):
        """Words of agents begin to end, zero before; those whom an agent joins come before it."""
        per_word = WORD_BITS // bits
        for i in range(begin, end):
            if length[i] > 0:
                base = slots[min(i, len(slots) - 1)] * blocks
                row, col = np.int64(starts[i, 0]), np.int64(starts[i, 1])
                for number in range(length[i] - 1, shared[i] - 1, -1):
                    code = code_at(row, col, base, width, directions)
                    put_step(words, first[i], number, code, bits)
                    row, col = move(row, col, code)
                if met[i] >= 0:
                    source, target = first[met[i]], first[i]
                    full, rest = shared[i] // per_word, shared[i] % per_word
                    for w in range(full):
                        words[target + w] = words[source + w]
                    if rest > 0:
                        words[target + full] |= words[source + full] & np.uint32((1 << (rest * bits)) - 1)

    return count_steps, write_steps
