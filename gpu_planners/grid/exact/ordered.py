"""Rounds on the CPU that relax the blocks with the lowest new values first, and leave the others for later rounds.

They serve weighted and 8-connected maps. A block that is relaxed before all of its neighbours have their last values
must be relaxed again. On a GPU that costs nothing, since its workers would be idle; a few threads have less to do when
they wait for the lowest values.
"""

import functools
from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...parallel.team import add, meet
from .rounds import CLAIMED, COUNTS, around, call, enlist, inner, is_first, listed, stopped, visit_item
from .values import INFINITE


class Order(NamedTuple):
    """What blocks wait with.

    least: (items,) int64 about the lowest value that reached each item on the list, INFINITE between requests. Threads
        write it at once, and one may overwrite the other: it says which blocks to relax first, not which to relax
    gain: (8,) int64 of this thread: what the neighbours of a block get by it, as of `Queue`
    """

    least: np.ndarray
    gain: np.ndarray


@functools.cache
def ordered_rounds(work_on):
    """-> rounds for `rounds.field_functions`, for VALUES"""

    @lean_njit
    def horizon(k, n, work):
        """-> up to which value the n items of a round are relaxed: half of the way from their least to their
        greatest"""
        least, greatest = INFINITE, np.int64(0)
        for w in range(n):
            value = work.order.least[np.uint64(listed(work.queue, k, w))]
            least, greatest = min(least, value), max(greatest, value)
        return least + (greatest - least) // 2

    @lean_njit
    def hand_on(item, answer, k, work):
        """The neighbours of a relaxed item whose bits are set wait with what they get by it."""
        least = work.order.least
        for j in range(8):
            if (answer >> j) & 1:
                other = np.uint64(item + around(work.field.width)[j])
                least[other] = min(least[other], work.order.gain[j])
        call(item, answer, k, work)

    @lean_njit
    def rounds(withdrawing, k, epoch, work):
        """Rounds from k on until a list is empty -> the round after the last"""
        worker, queue = work.worker, work.queue
        while True:
            n = np.int64(worker.memory[COUNTS + k % 3])
            if n == 0:
                return k
            last = horizon(k, n, work)
            w = np.int64(add(worker.memory, CLAIMED + k % 2, 1))
            while w < n and not stopped(worker):
                item = listed(queue, k, w)
                if work.order.least[item] <= last:
                    work.order.least[item] = INFINITE
                    visit = visit_item(item, work.field, work.goals)
                    answer = inner(visit.block, work_on(visit, withdrawing, epoch, work), work.field)
                    hand_on(item, answer, k + 1, work)
                else:
                    enlist(item, k + 1, work)
                w = np.int64(add(worker.memory, CLAIMED + k % 2, 1))
            if is_first(worker):
                worker.memory[COUNTS + (k + 2) % 3] = 0
                worker.memory[CLAIMED + (k + 1) % 2] = 0
            meet(worker)
            k += 1

    return rounds
