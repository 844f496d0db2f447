"""Exact cost-to-go fields of many goals on one map, by rounds over the blocks that something new has reached.

A round relaxes every block on the list, in any order; a block that made its neighbour better puts that neighbour on the
next round's list. When a list is empty every tile has its exact value: relaxation of positive costs has one fixed
point, whatever the order, so CPU, GPU and any number of workers give the same field, bit for bit. The CPU puts blocks
of VALUES off to later rounds, so that fewer are relaxed several times (`ordered_rounds`).

A change of the map is repaired in two such runs: the first withdraws values that nothing supports any more, the second
relaxes the blocks concerned. At last each tile of a block where something changed, and of its neighbours, gets its
direction.

A goal has a slot, and item = slot * blocks + block. The team shares
    the queue, (QUEUE_ROWS, items) int32:
        STAMP: the latest round for which an item was listed
        STATE: twice the epoch (the number of the request) that last withdrew some of its values, plus 1 if it was
            relaxed since
        LISTS: two lists of items, of even and of odd rounds;  TOUCHED: the list of items withdrawn from in this epoch
    its memory, int32: the barrier, the lengths of the lists, the round, the epoch, and on the CPU how much of a list is
        taken; all 0 at first. Rounds and epochs begin anew before they are too many for int32.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...parallel.team import Worker, add, lane_count, lane_range, meet, raise_to
from ..paths import EAST, NORTH, NORTH_EAST, NORTH_WEST, SOUTH, SOUTH_EAST, SOUTH_WEST, WEST
from .blocks import CHANGED, Visit, inner_njit
from .operations import Scratch, clear, direct, relax, withdraw
from .values import INFINITE

GOAL_BLOCK, GOAL_TILE, GOAL_PARITY, GOAL_USED = range(4)  # columns of goals
NO_DIRECTIONS, CHANGED_DIRECTIONS, ALL_DIRECTIONS = range(3)  # which ones to write
# rows of the queue
STAMP = 0
STATE = 1
LISTS = 2
TOUCHED = 4
# places in the team's memory
COUNTS = 1  # lengths of three rounds' lists
ROUND = 4
TOUCHED_COUNT = 5
EPOCH = 6
CLAIMED = 7  # how many items of a round threads have taken, of even and of odd rounds: see `ordered_rounds`
STOP = 9  # not 0: the CPU's threads shall end (Ctrl-C); the fields are not made then
MEMORY = 10  # its size
MOST_COUNTED = 1 << 29  # rounds, epochs: then both begin anew. Four times as many fit, for the rounds of one request


@dataclass(frozen=True)
class Request:
    """What fields are asked to do.

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
        """-> (n,) int32: how long the lists are, the directions, the lists and the goals one after the other"""
        header = len(self.new), len(self.seeds), len(self.relax), self.directions
        lists = header, self.new, self.seeds, self.relax, self.goals.ravel()
        return np.concatenate(lists, dtype=np.int32, casting="unsafe")  # an empty () is of float64


class Orders(NamedTuple):
    """A packed request, as compiled code reads it: see `Request`. goals: row by row"""

    goals: np.ndarray
    new: np.ndarray
    seeds: np.ndarray
    relax: np.ndarray
    directions: int


@inner_njit
def orders_of(numbers):
    seeds = 4 + np.int64(numbers[0])
    relax = seeds + numbers[1]
    goals = relax + numbers[2]
    return Orders(numbers[goals:], numbers[4:seeds], numbers[seeds:relax], numbers[relax:goals], numbers[3])


class Work(NamedTuple):
    """What a worker works on and with."""

    field: NamedTuple  # BitField or ValueField
    goals: np.ndarray  # (slots, 4) int32, as of `Request`, from which they are brought up to date
    queue: np.ndarray  # see above
    scratch: Scratch
    worker: Worker  # its memory as above
    # of VALUES on the CPU (items,) int64, about the least new value of each listed item, INFINITE between requests;
    # else None. Threads overwrite each other's values: it says which blocks to relax first, not which to relax
    least: np.ndarray | None


@inner_njit
def is_first(worker):
    """Is this the first lane of the first worker?"""
    return worker.number == 0 and worker.lane == 0


@inner_njit
def stopped(worker):
    """Shall the team end? On CUDA nobody stops it."""
    return lane_count() == 1 and worker.memory[STOP] != 0


@inner_njit
def listed(queue, k, i):
    """-> item i on the list of round k"""
    return np.int64(queue[LISTS + k % 2, i])


@inner_njit
def enlist(item, k, work):
    """Put an item on the list of round k, once."""
    if raise_to(work.queue[STAMP], item, k) < k:
        work.queue[LISTS + k % 2, add(work.worker.memory, COUNTS + k % 3, 1)] = item


@inner_njit
def touch(item, epoch, work):
    """Note that something of an item has been withdrawn in this epoch."""
    if raise_to(work.queue[STATE], item, 2 * epoch) < 2 * epoch:
        work.queue[TOUCHED, add(work.worker.memory, TOUCHED_COUNT, 1)] = item


@inner_njit
def settled(item, epoch, work):
    """Note that the values of an item fit each other."""
    work.queue[STATE, item] = 2 * epoch + 1


@inner_njit
def around(width):
    """-> how far the neighbours of an item are from it, by move codes. width: blocks in a row"""
    return -width, 1, width, -1, 1 - width, width + 1, width - 1, -width - 1


@inner_njit
def call(item, neighbours, k, work):
    """Put the neighbours of an item whose bits (move codes) are set on the list of round k."""
    far = around(work.field.width)
    for j in lane_range(0, 8, work.worker.lane):
        if (neighbours >> j) & 1:
            enlist(item + far[j], k, work)


NORTH_SIDE = 1 << NORTH | 1 << NORTH_EAST | 1 << NORTH_WEST  # bits of move codes
EAST_SIDE = 1 << EAST | 1 << NORTH_EAST | 1 << SOUTH_EAST
SOUTH_SIDE = 1 << SOUTH | 1 << SOUTH_EAST | 1 << SOUTH_WEST
WEST_SIDE = 1 << WEST | 1 << SOUTH_WEST | 1 << NORTH_WEST


@inner_njit
def inner(block, neighbours, field):
    """Those bits of `neighbours` whose blocks lie on the map."""
    row = np.int64(np.uint32(block) // np.uint32(field.width))
    col = block - row * field.width
    outer = 0
    if row == 1:
        outer |= NORTH_SIDE
    if (row + 2) * field.width == field.blocks:
        outer |= SOUTH_SIDE
    if col == 1:
        outer |= WEST_SIDE
    if col == field.width - 2:
        outer |= EAST_SIDE
    return neighbours & ~outer


@inner_njit
def visit_of(item, field, goals):
    """The visit of an item."""
    slot = np.int64(np.uint32(item) // np.uint32(field.blocks))  # a division of 64 bits is long on CUDA
    block, tile, its_block = item - slot * field.blocks, goals[slot, GOAL_TILE], goals[slot, GOAL_BLOCK]
    parity = goals[slot, GOAL_PARITY]  # read before the branch
    return Visit(item, slot, block, tile if its_block == block else np.int32(-1), parity)


@inner_njit
def begin(orders, work):
    """Count on, empty the lists, take the goals -> the round and the epoch that begin"""
    worker, queue = work.worker, work.queue
    k, epoch = np.int64(worker.memory[ROUND]) + 1, np.int64(worker.memory[EPOCH]) + 1
    thread, threads = worker.number * lane_count() + worker.lane, worker.count * lane_count()
    if max(k, epoch) > MOST_COUNTED:
        k, epoch = np.int64(1), np.int64(1)
        for item in range(thread, queue.shape[1], threads):
            queue[STAMP, item], queue[STATE, item] = 0, 0
        meet(worker)
    if is_first(worker):
        worker.memory[TOUCHED_COUNT] = 0
        for i in range(3):
            worker.memory[COUNTS + i] = 0
        for i in range(2):
            worker.memory[CLAIMED + i] = 0
    for j in range(thread, 4 * len(work.goals), threads):
        work.goals[j // 4, j % 4] = orders.goals[j]
    return k, epoch


@inner_njit
def enlist_seeds(orders, k, epoch, work):
    """List the blocks where the map has changed, of all fields in use."""
    worker, seeds = work.worker, len(orders.seeds)
    if worker.lane == 0:
        for j in range(worker.number, seeds * len(work.goals), worker.count):
            if work.goals[j // seeds, GOAL_USED]:
                item = j // seeds * work.field.blocks + np.int64(orders.seeds[j % seeds])
                enlist(item, k, work)
                touch(item, epoch, work)


@inner_njit
def enlist_starts(orders, k, work):
    """List the goals' blocks of new fields, all blocks withdrawn from, and the blocks to go on from."""
    worker, blocks, going_on = work.worker, work.field.blocks, len(orders.relax)
    if worker.lane == 0:
        for j in range(worker.number, len(orders.new), worker.count):
            slot = np.int64(orders.new[j])
            enlist(slot * blocks + work.goals[slot, GOAL_BLOCK], k, work)
        for j in range(worker.number, worker.memory[TOUCHED_COUNT], worker.count):
            enlist(np.int64(work.queue[TOUCHED, j]), k, work)
        for j in range(worker.number, going_on * len(work.goals), worker.count):
            enlist(j // going_on * blocks + np.int64(orders.relax[j % going_on]), k, work)


@inner_njit
def clear_field(slot, epoch, work):
    """Reset a slot's field to unreached."""
    worker, blocks = work.worker, work.field.blocks
    if worker.lane == 0:
        for block in range(worker.number, blocks, worker.count):
            settled(slot * blocks + block, epoch, work)
    scratch = work.scratch
    clear(slot, work.field, worker, scratch.wave, scratch.tiles, scratch.buckets)


@inner_njit
def work_on(visit, withdrawing, epoch, work):
    """Withdraw from, or relax, a block -> the answer of `withdraw` or `relax`"""
    lane, scratch = work.worker.lane, work.scratch
    if withdrawing:
        answer = withdraw(visit, work.field, lane, scratch.wave, scratch.tiles, scratch.buckets)
        if lane == 0 and answer & CHANGED:
            touch(visit.item, epoch, work)
    else:
        raw = work.queue[STATE, visit.item] == 2 * epoch
        answer = relax(visit, work.field, raw, lane, scratch.wave, scratch.tiles, scratch.buckets)
        if lane == 0:
            settled(visit.item, epoch, work)
    return inner(visit.block, answer, work.field)


@inner_njit
def rounds(withdrawing, k, epoch, work):
    """Rounds from k on until a list is empty -> the round after the last"""
    worker, queue = work.worker, work.queue
    while True:
        w = worker.number
        item = listed(queue, k, min(w, queue.shape[1] - 1))  # its length is not known yet: that read takes as long
        n = worker.memory[COUNTS + k % 3]
        if n == 0:
            return k
        while w < n and not stopped(worker):
            answer = work_on(visit_of(item, work.field, work.goals), withdrawing, epoch, work)
            call(item, answer, k + 1, work)
            w += worker.count
            if w < n:
                item = listed(queue, k, w)
        if is_first(worker):
            worker.memory[COUNTS + (k + 2) % 3] = 0
        meet(worker)
        k += 1


@inner_njit
def horizon(k, n, work):
    """-> up to which value the n items of a round are relaxed: half of the way from their least to their greatest"""
    least, greatest = INFINITE, np.int64(0)
    for w in range(n):
        value = work.least[np.uint64(listed(work.queue, k, w))]
        least, greatest = min(least, value), max(greatest, value)
    return least + (greatest - least) // 2


@inner_njit
def hand_on(item, answer, k, work):
    """The neighbours of a relaxed item whose bits are set wait with what they get by it."""
    least = work.least
    for j in range(8):
        if (answer >> j) & 1:
            other = np.uint64(item + around(work.field.width)[j])
            least[other] = min(least[other], work.scratch.buckets.gain[j])
    call(item, answer, k, work)


@inner_njit
def ordered_rounds(k, epoch, work):
    """Rounds that relax the blocks with the lowest new values, and leave the others for later rounds.

    A block that is relaxed before all of its neighbours have their last values must be relaxed again. On a GPU that
    costs nothing, since its workers would be idle; a few threads have less to do when they wait for the lowest values.
    """
    worker, queue = work.worker, work.queue
    while True:
        n = np.int64(worker.memory[COUNTS + k % 3])
        if n == 0:
            return k
        last = horizon(k, n, work)
        w = np.int64(add(worker.memory, CLAIMED + k % 2, 1))
        while w < n and not stopped(worker):
            item = listed(queue, k, w)
            if work.least[item] <= last:
                work.least[item] = INFINITE
                answer = work_on(visit_of(item, work.field, work.goals), np.bool_(False), epoch, work)
                hand_on(item, answer, k + 1, work)
            else:
                enlist(item, k + 1, work)
            w = np.int64(add(worker.memory, CLAIMED + k % 2, 1))
        if is_first(worker):
            worker.memory[COUNTS + (k + 2) % 3] = 0
            worker.memory[CLAIMED + (k + 1) % 2] = 0
        meet(worker)
        k += 1


@inner_njit
def relaxing_rounds(k, epoch, work, least):
    """Relax in the order of `least`, or in any where that is None -> the round after the last"""
    return rounds(np.bool_(False), k, epoch, work) if least is None else ordered_rounds(k, epoch, work)


@inner_njit
def is_dirty(item, epoch, work):
    """Has something changed in this epoch in a block or beside it?"""
    dirty, width = False, work.field.width
    for row in range(-width, width + 1, width):
        for beside in range(-1, 2):
            dirty |= work.queue[STATE, item + row + beside] >= 2 * epoch
    return dirty


@inner_njit
def direct_field(slot, every, epoch, work):
    """Write the directions of every block of a field, or of those that `is_dirty`."""
    field, worker, scratch = work.field, work.worker, work.scratch
    for block in range(worker.number, field.blocks, worker.count):
        row, col, item = block // field.width, block % field.width, slot * field.blocks + block
        on_map = 0 < row < field.blocks // field.width - 1 and 0 < col < field.width - 1
        if on_map and not stopped(worker) and (every or is_dirty(item, epoch, work)):
            direct(visit_of(item, field, work.goals), field, worker.lane, scratch.wave, scratch.tiles, scratch.buckets)


@inner_njit
def direct_fields(orders, epoch, work):
    """Write the directions that a request asks for."""
    every = orders.directions == ALL_DIRECTIONS
    if orders.directions == CHANGED_DIRECTIONS:
        for slot in orders.new:
            direct_field(np.int64(slot), np.bool_(True), epoch, work)
    if every or orders.directions == CHANGED_DIRECTIONS and len(orders.seeds) + len(orders.relax) > 0:
        for slot in range(len(work.goals)):
            if work.goals[slot, GOAL_USED]:
                direct_field(slot, every, epoch, work)


@lean_njit
def update_fields(numbers, work):
    """Plan the fields of new goals from scratch; with seeds, repair all fields in use. numbers: a packed request"""
    orders, worker = orders_of(numbers), work.worker
    k, epoch = begin(orders, work)
    for slot in orders.new:
        clear_field(np.int64(slot), epoch, work)
    meet(worker)
    if len(orders.seeds) > 0:
        enlist_seeds(orders, k, epoch, work)
        meet(worker)
        k = rounds(np.bool_(True), k, epoch, work)  # not True: Numba would compile `rounds` for each constant
        meet(worker)  # all have seen the empty list
    enlist_starts(orders, k, work)
    meet(worker)
    k = relaxing_rounds(k, epoch, work, work.least)
    if is_first(worker):
        worker.memory[ROUND], worker.memory[EPOCH] = k, epoch
    direct_fields(orders, epoch, work)
