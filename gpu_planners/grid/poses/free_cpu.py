"""`free` on the CPU's threads."""

import numpy as np
from numba import prange

from ...device import lean_njit, njit
from .free import FIVE, widen


@njit(parallel=True)
def widen_rows(near, first, last):
    """Fill the levels of rows first .. last - 1 from level 0. near: (levels, rows, words) uint32"""
    for i in prange(last - first):
        row = first + i
        for level in range(near.shape[0] - 1):
            for word in range(near.shape[2]):
                near[level + 1, row, word] = widen(near[level, row], level, word)


@lean_njit
def _add_run(line, col, words, met):
    """met |= the bits of a row of words from column `col` on: `word_at`, of many words in a loop that vectorises."""
    at, shift = np.uint64(col) >> FIVE, np.uint32(col & 31)
    back, one = np.uint32(31) - shift, np.uint32(1)
    for i in range(words):
        k = at + np.uint64(i)
        high = np.uint32(np.uint32(line[k + np.uint64(1)] << one) << back)
        met[np.uint64(i)] |= np.uint32(line[k] >> shift) | high


@njit(parallel=True)
def free_rows(near, runs, starts, box, free):
    """Fill free (planes, rows, words) uint32 in a box of rows and words (first row, last row + 1, first word, ...):
    `free_word`, run by run."""
    first_row, last_row, first_word, last_word = box
    words = last_word - first_word
    for i in prange(last_row - first_row):
        row, met = first_row + i, np.zeros(words, np.uint32)
        for plane in range(free.shape[0]):
            met[:] = 0
            for k in range(starts[plane], starts[plane + 1]):
                line = near[runs[k, 1], row + runs[k, 0]]
                _add_run(line, 32 * first_word + runs[k, 2], words, met)
                _add_run(line, 32 * first_word + runs[k, 3], words, met)
            for word in range(words):
                free[plane, row, first_word + word] = ~met[word]
