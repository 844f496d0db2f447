"""Memory for answers of unknown length: each worker takes pieces of a page of its own."""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...parallel.team import add

PAGES = 64  # of an arena
MOST_PAGE_WORDS = 2**32 // PAGES  # a word's number in an arena is a uint32


class Arena(NamedTuple):
    """An arena as one worker sees it.

    words: (W,) uint32 of all pages
    used: (PAGES,) int32 items asked of each page, also those that did not fit
    page: of this worker
    room: items of a page; an item is a word, or a chunk of words
    """

    words: np.ndarray
    used: np.ndarray
    page: int
    room: int


class MovesDoNotFit(Exception):
    """The moves of several goals' links take more memory than is allowed: fewer goals at once."""


def checked_page(words: int, goals: int, memory_mb: int) -> int:
    """-> words, of each page of an arena for the links toward some goals

    Raises MovesDoNotFit; for one goal, which is always taken, MemoryError where there are more than can be numbered.
    """
    if goals > 1 and 4 * PAGES * words > memory_mb * 2**20:
        raise MovesDoNotFit
    if words > MOST_PAGE_WORDS:
        most = 4 * PAGES * MOST_PAGE_WORDS
        raise MemoryError(
            f"the moves of P-BA*'s links take more than {most} bytes; allowed: fewer agents, smaller blocks"
        )
    return words


@lean_njit
def take(arena, count):
    """Take some items of the worker's page -> number of the first one, -1 where they do not fit"""
    first = np.int64(add(arena.used, arena.page, count))
    return first + np.int64(arena.page) * arena.room if first + count <= arena.room else np.int64(-1)


@lean_njit
def page_of(arena, page):
    """An arena as the worker of a page sees it."""
    return Arena(arena.words, arena.used, page, arena.room)
