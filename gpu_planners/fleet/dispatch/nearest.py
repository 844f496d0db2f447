"""The tasks that are cheapest for each robot by the straight distance, without a look at all pairs."""

import numpy as np
from numba import prange

from ...device import njit
from ...parallel.threads import one_thread
from .matching import NONE

SHARED_ROBOTS = 256  # fewer are searched for on one thread


def cheapest(
    tiles: np.ndarray, first: np.ndarray, rank: np.ndarray, own: np.ndarray, most: int, refused: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """-> (R, most) tasks, by their numbers, and what they cost: the moves to them on an empty map, and their rank; of
    equal ones those with lower numbers. NONE and inf where there are fewer

    tiles: (R, 2); first: (T, 2) of tasks; rank: (T,) what each costs besides; own: (R,) a task that is among them in
    any case, or NONE; refused: (R, T) bool, which tasks are not for which robots; None: all are
    """
    order = np.argsort(rank, kind="stable")
    found, cost = np.full((len(tiles), most), NONE), np.full((len(tiles), most), np.inf)
    given = np.zeros((0, 0), bool) if refused is None else refused
    with one_thread(len(tiles) < SHARED_ROBOTS):
        _search(tiles, first, rank, order, own, given, found, cost)
    return found, cost


@njit(parallel=True)
def _search(tiles, first, rank, order, own, refused, found, cost):
    """Ranks come upward, so once a rank alone is more than the dearest task that was found, nothing better comes."""
    for robot in prange(len(tiles)):
        row, col, most, count = tiles[robot, 0], tiles[robot, 1], found.shape[1], 0
        mine, price = found[robot], cost[robot]
        for place in range(len(order) + 1):
            task = own[robot] if place == 0 else order[place - 1]
            if place > 0 and count == most and rank[task] > price[most - 1]:
                break
            if (place == 0) != (task == own[robot]) or task == NONE or (refused.size and refused[robot, task]):
                continue
            way = abs(row - first[task, 0]) + abs(col - first[task, 1])
            value = -np.inf if place == 0 else rank[task] + way
            if count == most and (value, task) >= (price[most - 1], mine[most - 1]):
                continue
            at = min(count, most - 1)
            while at > 0 and (value, task) < (price[at - 1], mine[at - 1]):
                price[at], mine[at] = price[at - 1], mine[at - 1]
                at -= 1
            price[at], mine[at] = value, task
            count = min(count + 1, most)
        for at in range(count):
            price[at] = rank[mine[at]] + abs(row - first[mine[at], 0]) + abs(col - first[mine[at], 1])
