"""Paths of agents down a field: they follow the directions of the tiles from their starts to the goal.

On the CPU, of agents that meet on the way to one goal only one walks the rest: since steps are counted from the goal,
the other's path ends with a copy of its first words. On CUDA (`descend_cuda`) each agent has a thread, which follows
whole words: the next steps from each tile, packed for all tiles before.
"""

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from ...device import lean_njit
from ..paths import COL_MOVES, ROW_MOVES, WORD_BITS, put_step, step_bits
from .blocks import AT_GOAL, NOWHERE, Kind, inner_njit

ROW_STEPS, COL_STEPS = (
    sum((step + 1) << (2 * code) for code, step in enumerate(moves)) for moves in (ROW_MOVES, COL_MOVES)
)  # 2 bits each
AGENT = 32  # known: bits from here on are an agent's index + 1, those below its steps to go


class Directions(NamedTuple):
    """The directions of all fields."""

    kind: Kind  # of the blocks
    codes: np.ndarray  # (items, B * B / 8) uint32, 4 bits a tile
    width: int  # blocks in a row
    blocks: int  # of a field


class Walks(NamedTuple):
    """How N agents walk."""

    starts: np.ndarray  # (N, 2) int32 [row, col]
    slots: np.ndarray  # of their goals' fields, (N,) int32, or (1,) for all agents
    length: np.ndarray  # (N,) int32 steps, -1 where there is no path
    met: np.ndarray  # (N,) int32 the agent that each one joins first; -1: nobody
    shared: np.ndarray  # (N,) int32 how many steps before the goal it does


@inner_njit
def code_at(row, col, slot, directions):
    """-> direction code of a tile"""
    shift = len(directions.kind.shift)
    mask = (1 << shift) - 1
    block = ((row >> shift) + 1) * directions.width + (col >> shift) + 1
    tile = ((row & mask) << shift) + (col & mask)
    item = slot * directions.blocks + block
    word = directions.codes[np.uintp(item), np.uintp(tile >> 3)]  # unsigned: Numba looks whether others are negative
    return np.int32((word >> np.uint32(4 * (tile & 7))) & np.uint32(15))


@inner_njit
def move(row, col, code):
    """-> the tile that a move code 0 to 7 leads to"""
    return row + ((ROW_STEPS >> (2 * code)) & 3) - 1, col + ((COL_STEPS >> (2 * code)) & 3) - 1


@intrinsic
def _bits_set(context, bits):
    return types.uint32(types.uint32), lambda context, builder, signature, arguments: builder.ctpop(arguments[0])


@lean_njit
def word_from(row, col, slot, directions):
    """-> the next steps from a tile, packed as in a PathSet: the first one in the highest bits

    With 4 bits a step, the code AT_GOAL or NOWHERE follows the last one if they are fewer than fit in.
    """
    word, bits = np.uint32(0), step_bits(len(directions.kind.moves))
    for number in range(WORD_BITS // bits - 1, -1, -1):
        code = code_at(row, col, slot, directions)
        word = np.uint32(word | np.uint32(code & ((1 << bits) - 1)) << np.uint32(bits * number))
        if code >= AT_GOAL:
            return word
        row, col = move(row, col, code)
    return word


@lean_njit
def landing(row, col, word, directions):
    """-> the tile that the steps of a full word lead to"""
    bits = step_bits(len(directions.kind.moves))
    lowest = np.uint32(0x55555555 if bits == 2 else 0x11111111)
    for code in range(len(directions.kind.moves)):
        of_code = lowest
        for j in range(bits):
            bit = word >> np.uint32(j)
            of_code = np.uint32(of_code & (bit if (code >> j) & 1 else ~bit))
        times = np.int64(_bits_set(of_code))
        row, col = row + ROW_MOVES[code] * times, col + COL_MOVES[code] * times
    return row, col


@inner_njit
def start_of(walks, i):
    """-> row, column, slot where an agent starts"""
    starts, slots = walks.starts, walks.slots
    return np.int64(starts[i, 0]), np.int64(starts[i, 1]), slots[min(i, len(slots) - 1)]


@inner_njit
def joins(row, col, slot, walks, known):
    """-> the agent met at a tile, on its way to the same goal, or -1; its steps to go from there"""
    if known.size == 0 or known[row, col] == 0:
        return -1, 0
    other = np.int64(known[row, col] >> AGENT) - 1
    return (other, np.int64(known[row, col] & 0xFFFFFFFF)) if start_of(walks, other)[2] == slot else (-1, 0)


@lean_njit
def count_steps(begin, end, walks, directions, known):
    """Fill the walks of agents begin .. end - 1. known: (rows, cols) int64 zeros, or of size 0: no sharing"""
    for i in range(begin, end):
        row, col, slot = start_of(walks, i)
        steps = np.int64(0)
        while True:
            other, rest = joins(row, col, slot, walks, known)
            code = code_at(row, col, slot, directions)
            if other >= 0 or code >= AT_GOAL:
                break
            row, col = move(row, col, code)
            steps += 1
        walks.met[i], walks.shared[i] = other, rest
        walks.length[i] = -1 if code == NOWHERE else steps + rest
        if known.size > 0 and code != NOWHERE:
            row, col, _ = start_of(walks, i)
            for number in range(steps):  # the tiles that it has come along
                known[row, col] = ((i + 1) << AGENT) | (walks.length[i] - number)
                row, col = move(row, col, code_at(row, col, slot, directions))


@lean_njit
def write_steps(begin, end, walks, directions, first, bits, words):
    """Write the words of agents begin .. end - 1, zero before; those whom an agent joins come before it.

    first: (N,) int64 where each one's words begin;  bits: of a step
    """
    per_word = WORD_BITS // bits
    for i in range(begin, end):
        if walks.length[i] > 0:
            row, col, slot = start_of(walks, i)
            for number in range(walks.length[i] - 1, walks.shared[i] - 1, -1):
                code = code_at(row, col, slot, directions)
                put_step(words, first[i], number, code, bits)
                row, col = move(row, col, code)
            if walks.met[i] >= 0:  # the rest of its path is that of the agent that it joins
                source, full, rest = first[walks.met[i]], walks.shared[i] // per_word, walks.shared[i] % per_word
                for w in range(full):
                    words[first[i] + w] = words[source + w]
                if rest > 0:
                    words[first[i] + full] |= words[source + full] & np.uint32((1 << (rest * bits)) - 1)
