"""Which states and moves are free, of a whole map in one pass over its words of 32 cells.

`near` has on level k a bit for each cell: is one of the 2^k cells from it on, in its row, blocked? A run of a mask is
two such bits, so 32 states take a few shifts for each run, whatever the size of the robot.
"""

import numpy as np

from ...device import lean_njit

M32 = np.uint64(0xFFFFFFFF)
FIVE, LOW = np.uint64(5), np.uint64(31)


@lean_njit
def word_at(line, col):
    """-> uint64, the 32 bits of a row of words from a column on. col: not negative"""
    at, shift = np.uint64(col) >> FIVE, np.uint64(col) & LOW
    pair = np.uint64(line[at]) | np.uint64(line[at + np.uint64(1)]) << np.uint64(32)
    return pair >> shift & M32


@lean_njit
def widen(before, level, word):
    """-> a word of level `level` + 1. before: (words,) uint32 a row of that level; beyond its end all is blocked"""
    col = 32 * word + (1 << level)
    at, shift, count = np.uint64(col) >> FIVE, np.uint64(col) & LOW, np.uint64(len(before))
    low = np.uint64(before[at]) if at < count else M32
    high = np.uint64(before[at + np.uint64(1)]) if at + np.uint64(1) < count else M32
    return np.uint32(np.uint64(before[np.uint64(word)]) | ((low | high << np.uint64(32)) >> shift & M32))


@lean_njit
def free_word(plane, row, word, near, runs, first):
    """-> uint32: which of 32 states or moves are free. plane: number of the mask; runs, first: of `shape.Runs`"""
    met, col = np.uint64(0), 32 * word
    for k in range(first[plane], first[plane + 1]):
        line = near[runs[k, 1], row + runs[k, 0]]
        met |= word_at(line, col + runs[k, 2]) | word_at(line, col + runs[k, 3])
    return np.uint32(~met & M32)
