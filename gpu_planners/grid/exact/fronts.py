"""New fields on the CPU's threads (`front`): each thread makes some of them, or all threads make one together."""

import math
from functools import partial

import numpy as np

from ...parallel.team import Worker, run_team
from .blocks import FieldShape
from .front import CHUNK, LISTS, MOST_FOUND, NOTES, STOPPED, Front, search
from .rounds import GOAL_BLOCK, GOAL_TILE
from .values import DIAGONAL_8, unit_of

LONG = 1 << 21  # tiles of fields: with more, they may take so long that Ctrl-C must stop them
STRIPE_ROWS = 64
LEAST_TOGETHER = 100  # tiles in a bucket, about: with fewer, threads would meet too often
LEAST_ROOM = 1 << 16
MOST_TILES = 1 << 31  # of a padded map: goals, offers and owners have tiles' numbers in 32 bits
SOME = slice(1, None, 5), slice(1, None, 7)  # some of the tiles of a map, which tell what the others are like
LINE = 64  # numbers between what two threads write: they would wait for each other's writes to the same cache line


class Fronts:
    """Makes the fields of one shape.

    members: threads, at most
    room: offers, and tiles of a bucket, that a thread has memory for
    """

    def __init__(self, shape: FieldShape, members: int, room: int | None = None):
        tiles = math.prod(shape.padded)
        offers, fresh = (min(most, part + LEAST_ROOM) for most, part in ((2 * tiles, tiles // 8), (tiles, tiles // 16)))
        if room is not None:
            offers = fresh = room
        buckets = self._buckets_for(shape, 255)
        chunks = -(-offers // (CHUNK - 1)) + 2 * LISTS * buckets
        self.shape = shape
        self._tiles = [np.empty(tiles, np.uint16) for _ in range(members)]  # each alone: most are often never touched
        self._pool = np.empty((members, chunks * CHUNK), np.uint64)
        self._head, self._tail = (np.zeros((members + 2, LISTS, buckets + LINE), np.uint64)[1:-1] for _ in range(2))
        self._spare = np.empty((members, chunks), np.uint64)
        self._found = np.empty((members, MOST_FOUND + LINE), np.uint64)
        self._fresh = np.empty((members, fresh + MOST_FOUND + 1), np.uint32)
        self._notes = np.zeros((members + 2, NOTES + LINE), np.int64)[1:-1]
        self._memory = np.zeros(3 * LINE, np.int32)[LINE:-LINE]

    @staticmethod
    def _buckets_for(shape, highest):
        """A power of two, with room for the longest step beside the bucket that is worked on."""
        unit = unit_of(shape.connectivity)
        longest = highest * (DIAGONAL_8 if shape.connectivity == 8 else 1)
        return 1 << ((longest >> (unit.bit_length() - 1)) + 2).bit_length()

    def make(
        self, cost: np.ndarray, values: np.ndarray, goals: np.ndarray, slots: list[int], members: int
    ) -> list[int]:
        """Make the fields of some slots. cost, values: of `ValueField`; goals: as of `Request`; members: threads to use

        -> slots for which there was no room: their values mean nothing
        """
        wide, mask = self.shape.padded[1], self._buckets_for(self.shape, int(cost.max())) - 1
        together = members > 1 and self._tiles_in_a_bucket(cost) >= LEAST_TOGETHER
        alone = len(slots) // members * members if together else len(slots)
        failed: list[int] = []
        self._notes[:, STOPPED] = 0
        stop = partial(self._notes[:, STOPPED].fill, 1) if cost.size * len(slots) > LONG else None

        def make_one(slot, first, member, count):
            """As thread `member` of `count` ones, whose memory is that of the threads from `first` on."""
            lists = (self._pool, self._head, self._tail, self._spare, self._found, self._fresh, self._notes)
            sizes = self.shape.kind.moves, wide, mask, STRIPE_ROWS * wide, count
            arrays = (array[first : first + count] for array in lists)
            front = Front(*sizes, cost.ravel(), values[slot].ravel(), self._tiles[first], *arrays)
            worker = Worker(member, count, 0, member, count, self._memory, self._memory)
            if not search(self._tile(goals[slot]), front, worker) and member == 0:
                failed.append(slot)

        def make_alone(member):
            for slot in slots[member:alone:members]:
                if not self._notes[member, STOPPED]:
                    make_one(slot, member, 0, 1)

        if alone:
            run_team(min(alone, members), make_alone, stop)
        for slot in slots[alone:]:
            run_team(members, lambda member, slot=slot: make_one(slot, 0, member, members), stop)
        return failed

    def _tile(self, goal):
        """The number of a goal's tile in the padded map. goal: a row of `Request.goals`"""
        size, width = self.shape.blocks.size, self.shape.blocks.width
        row, col = (goal[GOAL_BLOCK] // width - 1) * size + 1, (goal[GOAL_BLOCK] % width - 1) * size + 1
        return int((row + goal[GOAL_TILE] // size) * self.shape.padded[1] + col + goal[GOAL_TILE] % size)

    def _tiles_in_a_bucket(self, cost):
        """About how many, by some of the map's tiles."""
        some = cost[SOME]
        free = np.count_nonzero(some)
        return math.sqrt(free / some.size * cost.size) / (some.sum(dtype=np.int64) / free) if free else 0.0


def has_numbers(shape: FieldShape) -> bool:
    """Are there numbers for all tiles of a padded map? One of a single row is padded to many times its size."""
    return math.prod(shape.padded) <= MOST_TILES


def costs_vary(cost: np.ndarray) -> bool:
    """Do fewer than half of some of a map's free tiles cost the same? Where more do, most offers are ties, and fields
    are made as fast by blocks, or faster where the map is open."""
    count = np.bincount(cost[SOME].ravel(), minlength=2)[1:]
    return bool(2 * count.max() < count.sum())
