"""What fields are asked to do: a `Request`, packed into one int32 array, which compiled code reads as `Orders`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .blocks import inner_njit

GOAL_BLOCK, GOAL_TILE, GOAL_PARITY, GOAL_USED = range(4)  # columns of goals
NO_DIRECTIONS, CHANGED_DIRECTIONS, ALL_DIRECTIONS = range(3)  # which ones to write
# places in the packed request; the lists follow one by one
NEW, LIVE, SEEDS, RELAX, DIRECTIONS, FIRST_LIST = range(6)


@dataclass(frozen=True)
class Request:
    """What is to be done.

    goals: (slots, 4) int32 of every slot: GOAL_BLOCK; GOAL_TILE, as `Visit.seed`; GOAL_PARITY of the distance of a
        block's tile (0, 0); GOAL_USED, 1 where the slot's field is to be worked on
    new: slots whose fields are planned from scratch
    seeds: blocks where the map has changed, to be repaired in all fields in use
    relax: blocks to go on from, in all fields
    directions: NO_DIRECTIONS, CHANGED_DIRECTIONS (beside what changed) or ALL_DIRECTIONS
    """

    goals: np.ndarray
    new: Sequence[int] = ()
    seeds: Sequence[int] = ()
    relax: Sequence[int] = ()
    directions: int = CHANGED_DIRECTIONS

    def packed(self) -> np.ndarray:
        """-> (n,) int32"""
        header = [len(self.new), len(self.goals), len(self.seeds), len(self.relax), self.directions]
        lists = header, self.goals.ravel(), self.new, self.seeds, self.relax
        return np.concatenate(lists, dtype=np.int32, casting="unsafe")  # an empty () is of float64


class Orders(NamedTuple):
    """A packed request: how long its lists are, and its numbers."""

    new: int
    live: int
    seeds: int
    relax: int
    directions: int
    numbers: np.ndarray


@inner_njit
def orders_of(numbers):
    return Orders(numbers[NEW], numbers[LIVE], numbers[SEEDS], numbers[RELAX], numbers[DIRECTIONS], numbers)


@inner_njit
def goal_number(orders, j):
    """-> number j of the goals, row by row"""
    return orders.numbers[FIRST_LIST + j]


@inner_njit
def new_slot(orders, j):
    return np.int64(orders.numbers[FIRST_LIST + 4 * orders.live + j])


@inner_njit
def seed_block(orders, j):
    return np.int64(orders.numbers[FIRST_LIST + 4 * orders.live + orders.new + j])


@inner_njit
def relax_block(orders, j):
    return np.int64(orders.numbers[FIRST_LIST + 4 * orders.live + orders.new + orders.seeds + j])
