"""How many threads of Numba's share a piece of work."""

import contextlib
from collections.abc import Iterator

import numba


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
