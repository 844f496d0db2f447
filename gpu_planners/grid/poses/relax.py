"""CPU: exact costs-to-go over place and heading, by rounds over the blocks that something new has reached.

Lists, stamps and rounds are those of `exact.rounds`: a round works on every listed block, in any order; who makes
something better in another block puts that on the next round's list. Prices are positive integers, so the field is the
one fixed point, whatever the order: `relax_cuda`, anew and repaired give the same bits.

Where a tile has four neighbours, a state has the moves of its layer, which may lead far. So the work inside a block
goes by units, 32 states of a row in one layer, which compile to vectors. A unit that has got better offers what it has
to the states from which moves lead to it; bits say which of these are free, and which took the offer. A block's *dirty*
words say which of its units have something to offer: a word for each layer, a bit for each row. Other blocks set bits
for the next round only, so that nobody takes a bit without seeing what it stands for.

Who offers values that are not yet their last must offer again. So a round has a limit: units whose least value is above
it wait. The next limit lies a `span` above the least value that waits.

A change of the map is repaired in three runs. The first withdraws values that no move supports any more, beginning
where moves or costs may have changed; a value falls along its supports, so there are no circles. Then all units
concerned take the best that their moves lead to, and offer it in turn.
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...parallel.atomics import drop_to, set_bits
from ...parallel.team import Worker, meet
from ..exact.blocks import inner_njit
from ..exact.rounds import COUNTS, EPOCH, ROUND, begin, enlist, is_first, listed, stopped
from .free import word_at
from .pose_grid import INFINITE, Table

NEW, REPAIR = range(2)
FAR = np.int32(INFINITE)
NOT_FREE = np.uint64(0)


class PoseField(NamedTuple):
    """A map and one field on it; sizes as of `shape.Layout`.

    shift: a block has 2^shift rows;  span: see above, in units of cost
    cost: (rows * cols,) uint8, 0 blocked;  free: (planes, rows, words) uint32
    value: (layers * rows * cols,) int32 cost-to-go, INFINITE where there is no way
    dirty: (3 * blocks * layers,) int32: units with something to offer in even rounds, in odd rounds, and units to be
        looked at when all is withdrawn
    """

    rows: int
    cols: int
    words: int
    layers: int
    shift: int
    span: int
    cost: np.ndarray
    free: np.ndarray
    value: np.ndarray
    dirty: np.ndarray


class PoseWork(NamedTuple):
    """What a worker works on and with: goals, queue and worker as of `exact.rounds.Work` (of no goals)."""

    field: PoseField
    table: Table
    goals: np.ndarray
    queue: np.ndarray
    worker: Worker
    # (4,) int32: of three rounds the least value that waits, FAR: nothing does; the highest limit of the field
    least: np.ndarray
    own: np.ndarray  # (workers * layers,) int32 dirty words of the block that a worker works on


class PoseOrders(NamedTuple):
    """What is asked. goals: none, for `begin`

    task: NEW or REPAIR
    seeds: (n,) int32 states of the goal, free ones
    box: (4,) int32 rows and words that changed
    """

    goals: np.ndarray
    task: int
    seeds: np.ndarray
    box: np.ndarray


@inner_njit
def state_of(layer, row, col, field):
    """-> uint64, place of a state in `value`"""
    return np.uint64((layer * field.rows + row) * field.cols + col)


@inner_njit
def block_of(row, word, field):
    return (row >> field.shift) * field.words + word


@inner_njit
def mark(layer, row, word, block, k, work):
    """A unit has something to offer. block: that is worked on; k: the round"""
    field, worker = work.field, work.worker
    other = block_of(row, word, field)
    bit = np.int32(1) << np.int32(row & ((1 << field.shift) - 1))
    if other == block:
        work.own[np.uint64(worker.number * field.layers + layer)] |= bit
    else:
        blocks = (field.rows >> field.shift) * field.words
        set_bits(field.dirty, ((k + 1) % 2 * blocks + other) * field.layers + layer, bit)
        enlist(other, k + 1, work)


@inner_njit
def mark_states(layer, row, left, bits, block, k, work):
    """The units of 32 states from column `left` on whose bits are set have something to offer."""
    word, shift = left >> 5, np.uint64(left & 31)
    wide = np.uint64(bits) << shift
    if wide & np.uint64(0xFFFFFFFF):
        mark(layer, row, word, block, k, work)
    if wide >> np.uint64(32):
        mark(layer, row, word + 1, block, k, work)


@inner_njit
def offer_of(at, price, cost_at, field):
    """-> int32, what a state's value and a price make"""
    return np.int32(field.value[at] + np.int32(price * np.int32(field.cost[cost_at])))


@inner_njit
def offered(at, to, price, cost_at, free, field):
    """Offer the values of a unit to 32 states -> uint32, which got better

    at, to: places of the first state of each;  cost_at: place of the unit's first cell;  free: which may move here
    """
    better, some = np.uint32(0), False
    for i in range(32):
        k = np.uint64(i)
        some |= offer_of(at + k, price, cost_at + k, field) < field.value[to + k]
    if some:
        for i in range(32):
            k = np.uint64(i)
            new = offer_of(at + k, price, cost_at + k, field)
            if free >> k & np.uint64(1) and new < field.value[to + k]:
                drop_to(field.value, to + k, new)
                better |= np.uint32(1) << np.uint32(i)
    return better


@inner_njit
def offer(layer, row, word, block, k, work):
    """A unit offers what it has to all states from which a move leads to it."""
    field, table, col = work.field, work.table, word << 5
    at, cost_at = state_of(layer, row, col, field), np.uint64(row * field.cols + col)
    for i in range(table.into_first[layer], table.into_first[layer + 1]):
        move = table.into[np.uint64(i)]
        up, left = row - table.down[move], col - table.right[move]
        free = word_at(field.free[table.plane[move], up], left)
        if free != NOT_FREE:
            source = np.int64(table.source[move])
            to = state_of(source, up, left, field)
            better = offered(at, to, table.price[move], cost_at, free, field)
            if better != 0:
                mark_states(source, up, np.int64(left), better, block, k, work)


@inner_njit
def best_of(layer, row, word, i, field, table):
    """-> the least cost-to-go of state i of a unit by its moves"""
    best, col = FAR, (word << 5) + i
    for move in range(table.first[layer], table.first[layer + 1]):
        m = np.uint64(move)
        free = field.free[table.plane[m], row, word]
        if free >> np.uint32(i) & np.uint32(1):
            down, right = row + table.down[m], col + table.right[m]
            price = table.price[m] * np.int32(field.cost[np.uint64(down * field.cols + right)])
            best = min(best, field.value[state_of(np.int64(table.to[m]), down, right, field)] + price)
    return best


@inner_njit
def may_rest_on(layer, row, word, gone, block, k, work):
    """States of a unit have lost their values, (bits `gone`): mark the units from which moves lead to them."""
    table, field, col = work.table, work.field, word << 5
    for i in range(table.into_first[layer], table.into_first[layer + 1]):
        move = table.into[np.uint64(i)]
        up, left = row - table.down[move], np.int64(col - table.right[move])
        free = word_at(field.free[table.plane[move], up], left) & np.uint64(gone)
        if free != NOT_FREE:
            mark_states(np.int64(table.source[move]), up, left, np.uint32(free), block, k, work)


@inner_njit
def withdraw(layer, row, word, block, k, work):
    """Withdraw the values of a unit that no move supports."""
    field, gone = work.field, np.uint32(0)
    at = state_of(layer, row, word << 5, field)
    for i in range(32):
        value = field.value[at + np.uint64(i)]
        if 0 < value < FAR and best_of(layer, row, word, i, field, work.table) > value:
            field.value[at + np.uint64(i)] = FAR
            gone |= np.uint32(1) << np.uint32(i)
    if gone != 0:
        look_later(layer, row, word, work)
        may_rest_on(layer, row, word, gone, block, k, work)


@inner_njit
def look_later(layer, row, word, work):
    """A unit is to be looked at when all is withdrawn."""
    field = work.field
    blocks = (field.rows >> field.shift) * field.words
    bit = np.int32(1) << np.int32(row & ((1 << field.shift) - 1))
    set_bits(field.dirty, (2 * blocks + block_of(row, word, field)) * field.layers + layer, bit)


@inner_njit
def least_of(layer, row, word, field):
    """-> the least value of a unit"""
    at, least = state_of(layer, row, word << 5, field), FAR
    for i in range(32):
        least = min(least, field.value[at + np.uint64(i)])
    return least


@inner_njit
def wait(block, k, work):
    """What a block's units still have to offer waits for the next round."""
    field, worker = work.field, work.worker
    blocks, own, waiting = (field.rows >> field.shift) * field.words, worker.number * field.layers, False
    row, word = (block // field.words) << field.shift, block % field.words
    for layer in range(field.layers):
        bits = work.own[np.uint64(own + layer)]
        if bits != 0:
            waiting = True
            for i in range(1 << field.shift):
                if bits >> i & 1:
                    drop_to(work.least, (k + 1) % 3, least_of(layer, row + i, word, field))
            set_bits(field.dirty, ((k + 1) % 2 * blocks + block) * field.layers + layer, bits)
    if waiting:
        enlist(block, k + 1, work)


@inner_njit
def visit(block, withdrawing, limit, k, work):
    """Work on a block until none of its units has anything to offer below the limit."""
    field, worker = work.field, work.worker
    blocks = (field.rows >> field.shift) * field.words
    row, word = (block // field.words) << field.shift, block % field.words
    given, own = (k % 2 * blocks + block) * field.layers, worker.number * field.layers
    for layer in range(field.layers):
        work.own[np.uint64(own + layer)] = field.dirty[np.uint64(given + layer)]
        field.dirty[np.uint64(given + layer)] = 0
    again = True
    while again:
        again = False
        for layer in range(field.layers):
            bits = work.own[np.uint64(own + layer)]
            if bits != 0:
                for i in range(1 << field.shift):
                    if bits >> i & 1 and (withdrawing or least_of(layer, row + i, word, field) < limit):
                        again = True
                        work.own[np.uint64(own + layer)] &= ~(np.int32(1) << np.int32(i))
                        if withdrawing:
                            withdraw(layer, row + i, word, block, k, work)
                        else:
                            offer(layer, row + i, word, block, k, work)
    if not withdrawing:
        wait(block, k, work)


@inner_njit
def pose_rounds(withdrawing, k, work):
    """Rounds from k on until a list is empty -> the round after the last"""
    worker, queue, limit = work.worker, work.queue, np.int32(0)
    while True:
        n = worker.memory[COUNTS + k % 3]
        if n == 0:
            if is_first(worker):
                work.least[3] = max(work.least[3], limit)
            return k
        waiting = np.int32(work.least[k % 3])
        limit = np.int32(min(FAR, (waiting if waiting < FAR else limit) + work.field.span))
        for w in range(worker.number, n, worker.count):
            if not stopped(worker):
                visit(listed(queue, k, w), withdrawing, limit, k, work)
        if is_first(worker):
            worker.memory[COUNTS + (k + 2) % 3] = 0
            work.least[(k + 2) % 3] = FAR
        meet(worker)
        k += 1


@inner_njit
def clear(work):
    """No state has a value, no unit anything to offer: each worker clears its share."""
    field, worker = work.field, work.worker
    first = len(field.value) * worker.number // worker.count
    for i in range(first, len(field.value) * (worker.number + 1) // worker.count):
        field.value[np.uint64(i)] = FAR
    for i in range(worker.number, len(field.dirty), worker.count):
        field.dirty[np.uint64(i)] = 0


@inner_njit
def sow(orders, k, work):
    """The goal's states have the value 0, and something to offer. By the first worker."""
    field = work.field
    for i in range(len(orders.seeds)):
        state = np.int64(orders.seeds[i])
        field.value[np.uint64(state)] = 0
        layer, row = state // (field.rows * field.cols), state // field.cols % field.rows
        mark(layer, row, state % field.cols >> 5, np.int64(-1), k - 1, work)


@inner_njit
def sow_box(orders, k, work):
    """All units of a box are looked at: may their values stay, and can they get better?"""
    worker, box, layers = work.worker, orders.box, work.field.layers
    words = np.int64(box[3] - box[2])
    units = np.int64(box[1] - box[0]) * words
    for unit in range(worker.number, units, worker.count):
        row, word = box[0] + unit // words, box[2] + unit % words
        for layer in range(layers):
            mark(layer, row, word, np.int64(-1), k - 1, work)
            look_later(layer, row, word, work)


@inner_njit
def look(layer, row, word, k, work):
    """The states of a unit take the best that their moves lead to."""
    field, better = work.field, False
    at = state_of(layer, row, word << 5, field)
    for i in range(32):
        best = best_of(layer, row, word, i, field, work.table)
        if best < field.value[at + np.uint64(i)]:
            field.value[at + np.uint64(i)] = best
            better = True
    if better:
        mark(layer, row, word, np.int64(-1), k - 1, work)


@inner_njit
def look_all(k, work):
    """Look at all units that withdrew something, or where the map has changed."""
    field, worker = work.field, work.worker
    blocks = (field.rows >> field.shift) * field.words
    for block in range(worker.number, blocks, worker.count):
        row, word = (block // field.words) << field.shift, block % field.words
        for layer in range(field.layers):
            at = np.uint64((2 * blocks + block) * field.layers + layer)
            bits = field.dirty[at]
            if bits != 0:
                field.dirty[at] = 0
                for i in range(1 << field.shift):
                    if bits >> i & 1:
                        look(layer, row + i, word, k, work)


@lean_njit
def update_poses(orders, work):
    """Make a field anew, or repair it."""
    worker = work.worker
    k, epoch = begin(orders, work)
    if is_first(worker):
        for i in range(3):
            work.least[i] = FAR
    if orders.task == NEW:
        clear(work)
        meet(worker)
        if is_first(worker):
            work.least[3] = 0
            sow(orders, k, work)
        meet(worker)
    else:
        meet(worker)
        sow_box(orders, k, work)
        meet(worker)
        k = pose_rounds(np.bool_(True), k, work)
        meet(worker)
        look_all(k, work)
        meet(worker)
    k = pose_rounds(np.bool_(False), k, work)
    if is_first(worker):
        worker.memory[ROUND], worker.memory[EPOCH] = k, epoch
