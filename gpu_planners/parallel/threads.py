"""How many threads of Numba's share a piece of work, and how long they work until Python hears Ctrl-C."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import numba

LEAST_PART, PART_S = 4096, 0.1


def in_parts(*arrays: Any, size: int = LEAST_PART, most: int = 0) -> Iterator[tuple]:
    """Consecutive rows of arrays of one length, about PART_S seconds of the caller's work at a time, the first of
    `size` rows. most: rows of a part, 0: any number

    Compiled code does not hear Ctrl-C: Python raises KeyboardInterrupt between two parts.
    """
    rows, first, size = len(arrays[0]), 0, min(size, most or size)
    if rows <= size:
        yield arrays
        return
    while first < rows:
        began = time.perf_counter()
        yield tuple(array[first : first + size] for array in arrays)
        first += size
        took = time.perf_counter() - began
        if took < PART_S / 2:
            size = min(2 * size, most or 2 * size)
        elif took > 2 * PART_S:
            size = max(size // 2, 1)


@contextlib.contextmanager
def one_thread(alone: bool) -> Iterator[None]:
    """Inside, if `alone`, loops over numba.prange run on the calling thread.

    For work that is over sooner than other threads wake up. On a busy machine that takes them many milliseconds.
    """
    before = numba.get_num_threads()
    if alone:
        numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(before)
