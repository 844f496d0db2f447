"""CUDA: exact costs-to-go over place and heading, by rounds over the states that have something new to offer.

`relax` works by rows of 32 states, which suits a CPU's vectors; a GPU has threads for single states. A state that has
got better is listed with its value for a round to come; when that round comes, and nobody has made it better since,
sixteen lanes offer its value to the states from which moves lead to it.

Who offers a value that is not yet its last must offer again. So a round has a limit, a span above its list's least
value, and a state is listed for the round whose limit is likely to be above its value (Meyer, Sanders 2003,
delta-stepping). The span is doubled while most of a list comes too early, or threads are idle; else it is halved, down
to `Field.span`.

A change of the map is repaired as in `relax`: values that no move supports any more are withdrawn; those concerned take
the best that their moves lead to, and offer it in turn.

Where a list has no room left, the least value that got no place is noted; when all lists are empty, all states from
that value on offer once more.
"""

from typing import NamedTuple

import numpy as np
from numba import cuda, int64

from ...parallel.team import greatest_lane, meet, sum_lanes
from ...parallel.team_cuda import ALL, WARP
from .pose_grid import INFINITE, Table
from .relax import NEW

FAR = np.int32(INFINITE)
GROUP = 16  # lanes that work on one state
LISTS = 16  # of rounds to come, a power of two
LENGTHS = 35  # a list's parts', and three numbers of the whole
PARTS = 32  # of each list, one for each lane: a counter for all would make warps wait for each other
IDLE = 3  # how often the span is doubled while threads are idle
# The team's memory, int32. First its barrier, the least value that found no place, and a bound on all values; from HEAD
# on eight numbers for each part of each list: its length, about its least value, and at EARLY for each part of four
# rounds how many states came too early
LOST, HIGHEST, HEAD = 1, 2, 8
EARLY = HEAD + 8 * LISTS * PARTS
MEMORY = EARLY + 8 * 4 * PARTS  # its size


class Field(NamedTuple):
    """A map and one field on it: sizes as of `shape.Layout`; cost, free, value as of `relax.PoseField`

    span: the least one, a power of two, in units of cost
    look: (states / 32,) int32 bits: states to be looked at when all is withdrawn
    lists: (LISTS * room,) int64: a state's value and number
    """

    rows: int
    cols: int
    layers: int
    span: int
    cost: np.ndarray
    free: np.ndarray
    value: np.ndarray
    look: np.ndarray
    lists: np.ndarray
    table: Table


@cuda.jit(device=True)
def place_of(state, field):
    """-> layer, row, column of a state"""
    line = np.uint32(state) // np.uint32(field.cols)
    layer = line // np.uint32(field.rows)
    return (
        int64(layer),
        int64(line - layer * np.uint32(field.rows)),
        int64(np.uint32(state) - line * np.uint32(field.cols)),
    )


@cuda.jit(device=True)
def state_at(layer, row, col, field):
    return np.uint32((layer * field.rows + row) * field.cols + col)


@cuda.jit(device=True)
def is_free(plane, row, col, field):
    return field.free[plane, row, col >> 5] >> np.uint32(col & 31) & np.uint32(1) != 0


@cuda.jit(device=True)
def head_of(k, part):
    """-> where in the team's memory the length of a part of the list of round k is, and its least value"""
    return HEAD + 8 * ((k & (LISTS - 1)) * PARTS + part)


@cuda.jit(device=True)
def enlist(state, value, wanted, k, part, field, memory):
    """The lanes that want it put a state on the list of round k. All lanes of a warp call it; k may differ."""
    slot, room = np.int32(k & (LISTS - 1)), len(field.lists) // (LISTS * PARTS)
    same = cuda.match_any_sync(ALL, slot if wanted else np.int32(LISTS))
    leader, place, head = cuda.ffs(same) - 1, np.int32(0), head_of(k, part)
    if wanted and cuda.laneid == leader:
        place = cuda.atomic.add(memory, head, np.int32(cuda.popc(same)))
        if value < memory[head + 1]:
            cuda.atomic.min(memory, head + 1, np.int32(value))
    place = cuda.shfl_sync(ALL, place, leader) + cuda.popc(same & cuda.lanemask_lt())
    if wanted:
        if place < room:
            field.lists[(slot * PARTS + part) * room + place] = int64(value) << 32 | int64(state)
        else:
            cuda.atomic.min(memory, LOST, np.int32(value))


@cuda.jit(device=True)
def due(value, limit, shift, k):
    """-> the round after k whose limit is to be above a value, as things are"""
    return k + 1 + min(max(value - limit, 0) >> shift, LISTS - 3)


@cuda.jit(device=True)
def offer(state, value, limit, shift, k, part, field, memory):
    """A group of lanes offers a state's value to all states from which a move leads to it; state -1: none"""
    table = field.table
    layer, row, col = place_of(max(state, 0), field)
    weight = np.int32(field.cost[row * field.cols + col])
    i = table.into_first[layer] + cuda.laneid % GROUP
    last = table.into_first[layer + 1] if state >= 0 else np.int32(0)
    while cuda.any_sync(ALL, i < last):
        better, to, new = False, np.uint32(0), np.int32(0)
        if i < last:
            move = table.into[i]
            up, left = row - table.down[move], col - table.right[move]
            to = state_at(int64(table.source[move]), up, left, field)
            new = np.int32(value + table.price[move] * weight)
            if is_free(table.plane[move], up, left, field) and new < field.value[to]:
                cuda.atomic.min(field.value, int64(to), new)
                better = True
        enlist(to, new, better, due(new, limit, shift, k), part, field, memory)
        i += GROUP


@cuda.jit(device=True)
def withdraw(state, k, part, field, memory):
    """A group of lanes withdraws a value that no move supports; states that may rest on it are to be checked."""
    table, group = field.table, cuda.laneid // GROUP * GROUP
    layer, row, col = place_of(max(state, 0), field)
    value = field.value[max(state, 0)]
    i = table.first[layer] + cuda.laneid % GROUP
    last = table.first[layer + 1] if state >= 0 and 0 < value < FAR else np.int32(0)
    gone = last > 0
    while cuda.any_sync(ALL, i < last):
        stays = False
        if i < last and is_free(table.plane[i], row, col, field):
            down, right = row + table.down[i], col + table.right[i]
            price = table.price[i] * np.int32(field.cost[down * field.cols + right])
            stays = field.value[state_at(int64(table.to[i]), down, right, field)] + price <= value
        if cuda.ballot_sync(ALL, stays) >> np.uint32(group) & np.uint32((1 << GROUP) - 1) != 0:
            gone, last = False, np.int32(0)
        i += GROUP
    if not cuda.any_sync(ALL, gone):
        return
    if gone and cuda.laneid == group:  # others may withdraw it too: one of them tells who rested on it
        gone = cuda.atomic.max(field.value, int64(state), FAR) < FAR
        cuda.atomic.or_(field.look, int64(state >> 5), np.int32(1 << (state & 31)))
    gone = cuda.shfl_sync(ALL, np.int32(gone), group) != 0
    weight = np.int32(field.cost[row * field.cols + col])
    i = table.into_first[layer] + cuda.laneid % GROUP
    last = table.into_first[layer + 1] if gone else np.int32(0)
    while cuda.any_sync(ALL, i < last):
        rests, to = False, np.uint32(0)
        if i < last:
            move = table.into[i]
            up, left = row - table.down[move], col - table.right[move]
            to = state_at(int64(table.source[move]), up, left, field)
            theirs = field.value[to]
            rests = value + table.price[move] * weight <= theirs and theirs < FAR
            rests &= is_free(table.plane[move], up, left, field)
        enlist(to, np.int32(0), rests, k + 1, part, field, memory)
        i += GROUP


@cuda.jit(device=True)
def visit(withdrawing, sweep, limit, shift, lengths, k, field, worker):
    """A warp's share of the n states on the list of round k. sweep: all states from this value on, if not negative"""
    room, lane, memory = len(field.lists) // (LISTS * PARTS), cuda.laneid, worker.memory
    member, members, part = worker.number // PARTS, worker.count // PARTS, worker.number % PARTS
    list_of, to = ((k & (LISTS - 1)) * PARTS + part) * room, (part + member + k) % PARTS
    if sweep >= 0:
        member, members, n = worker.number, worker.count, np.int32(len(field.value))
    else:
        n = min(lengths[part], np.int32(room))
    size, early = max(2, min(WARP, (n - 1) // members + 1)), 0
    for base in range(member * size, n, members * size):
        i, state, value, now, later = int64(base + lane), np.int32(0), np.int32(0), False, False
        if lane < size and i < n:
            if sweep >= 0:
                state, value = np.int32(i), field.value[i]
                now = sweep <= value < FAR
            else:
                entry = field.lists[list_of + i]
                state, value = np.int32(entry & int64(0xFFFFFFFF)), np.int32(entry >> 32)
                now = withdrawing or field.value[state] == value
                later = now and not withdrawing and value >= limit
                now = now and not later
        votes = cuda.ballot_sync(ALL, later)
        if votes:
            early += cuda.popc(votes)
            enlist(np.uint32(state), value, later, due(value, limit, shift, k), to, field, memory)
        todo = np.uint32(cuda.ballot_sync(ALL, now))
        while todo:
            of = cuda.ffs(todo) - 1
            todo = np.uint32(todo & np.uint32(todo - np.uint32(1)))
            other = cuda.ffs(todo) - 1  # -1: none
            todo = np.uint32(todo & np.uint32(todo - np.uint32(1)))
            of = of if lane < GROUP else other
            s, v = cuda.shfl_sync(ALL, state, max(of, 0)), cuda.shfl_sync(ALL, value, max(of, 0))
            s = s if of >= 0 else np.int32(-1)
            if withdrawing:
                withdraw(s, k, to, field, memory)
            else:
                offer(s, v, limit, shift, k, to, field, memory)
    if early and lane == 0:
        cuda.atomic.add(memory, EARLY + 8 * ((k & 3) * PARTS + part), np.int32(early))


@cuda.jit(device=True)
def rounds(withdrawing, k, lengths, field, worker):
    """Rounds from k on until all lists are empty -> a round that nothing is listed for"""
    memory, first = worker.memory, worker.number == 0 and cuda.laneid == 0
    few, least = 2 * worker.count, 31 - cuda.clz(np.int32(field.span))
    limit, shift, wider, before, in_order = int64(0), int64(least), int64(0), int64(0), True
    while True:
        if cuda.threadIdx.x < WARP:
            head = head_of(k, cuda.laneid)
            lengths[cuda.laneid] = memory[head]
            lengths[PARTS] = sum_lanes(memory[head])
            lengths[PARTS + 1] = -greatest_lane(-memory[head + 1])
            lengths[PARTS + 2] = sum_lanes(memory[EARLY + 8 * ((k - 1 & 3) * PARTS + cuda.laneid)])
        cuda.syncthreads()
        n, lowest, early, sweep = lengths[PARTS], lengths[PARTS + 1], lengths[PARTS + 2], np.int32(-1)
        if n == 0 and is_empty(k, memory):
            sweep, n = memory[LOST], len(field.value)
            if sweep >= FAR:
                if first:
                    memory[HIGHEST] = limit if in_order else FAR
                return k
            in_order = False
            meet(worker)  # all have read it
            if first:
                memory[LOST] = FAR
            meet(worker)
        shift = min(shift + 1, 28) if 4 * early > 3 * before else max(shift - 1, least)
        wider = min(wider + 1, IDLE) if n <= few else max(wider - 1, 0)
        if lowest < FAR:
            limit = min(max(limit, int64(lowest) + (int64(1) << shift + wider)), int64(FAR))
        visit(withdrawing, sweep, limit, shift, lengths, k, field, worker)
        if worker.number == 0:
            memory[EARLY + 8 * ((k + 2 & 3) * PARTS + cuda.laneid)] = 0
            head = head_of(k - 1, cuda.laneid)
            memory[head], memory[head + 1] = 0, FAR
        meet(worker)
        before = n
        k += 1


@cuda.jit(device=True)
def is_empty(k, memory):
    """Is nothing listed for round k and those after it?"""
    left = np.int32(0)
    for ahead in range(LISTS - 1):
        left |= memory[head_of(k + ahead, cuda.laneid)]
    return not cuda.any_sync(ALL, left != 0)


@cuda.jit(device=True)
def clear(field, worker):
    """No state has a value: each thread clears its share."""
    thread, threads = worker.number * WARP + cuda.laneid, worker.count * WARP
    for i in range(thread, len(field.value), threads):
        field.value[i] = FAR
    for i in range(thread, len(field.look), threads):
        field.look[i] = 0


@cuda.jit(device=True)
def sow_box(box, k, field, worker):
    """All states of a box are looked at: may their values stay, and can they get better?"""
    words, height = int64(box[3] - box[2]), int64(box[1] - box[0])
    for unit in range(worker.number, height * words * field.layers, worker.count):
        layer, row, word = unit // (height * words), box[0] + unit // words % height, box[2] + unit % words
        state = state_at(layer, row, (word << 5) + cuda.laneid, field)
        value = field.value[state]
        field.look[state >> np.uint32(5)] = -1
        enlist(state, np.int32(0), 0 < value < FAR, k, worker.number % PARTS, field, worker.memory)


@cuda.jit(device=True)
def look(k, field, worker):
    """The states that withdrew their values, and those where the map has changed, take the best of their moves."""
    table = field.table
    for word in range(worker.number, len(field.look), worker.count):
        bits = field.look[word]
        if bits:
            state, better, best = np.uint32(32 * word + cuda.laneid), False, FAR
            if bits >> cuda.laneid & 1:
                layer, row, col = place_of(state, field)
                for i in range(table.first[layer], table.first[layer + 1]):
                    if is_free(table.plane[i], row, col, field):
                        down, right = row + table.down[i], col + table.right[i]
                        price = table.price[i] * np.int32(field.cost[down * field.cols + right])
                        best = min(best, field.value[state_at(int64(table.to[i]), down, right, field)] + price)
                if best < field.value[state]:
                    field.value[state] = best
                    better = True
            enlist(state, best, better, k, worker.number % PARTS, field, worker.memory)
            field.look[word] = 0


@cuda.jit(device=True)
def update_field(task, seeds, box, lengths, field, worker):
    """Make a field anew for goal states (n,) int32, or repair it in a box (4,) int32 of rows and words.

    lengths: (LENGTHS,) int32 shared by a CUDA block
    """
    memory, k = worker.memory, int64(LISTS)
    if worker.number == 0:
        for i in range(LOST + cuda.laneid, MEMORY, WARP):
            memory[i] = FAR if i == LOST or HEAD <= i < EARLY and i % 8 == 1 else 0
    if task == NEW:
        clear(field, worker)
        meet(worker)
        if worker.number == 0:
            for base in range(0, len(seeds), WARP):
                i = base + cuda.laneid
                state = np.uint32(seeds[min(i, len(seeds) - 1)])
                field.value[state] = 0
                enlist(state, np.int32(0), i < len(seeds), k, 0, field, memory)
    else:
        meet(worker)
        sow_box(box, k, field, worker)
        meet(worker)
        k = rounds(True, k, lengths, field, worker) + 1
        meet(worker)
        look(k, field, worker)
        meet(worker)
    meet(worker)
    rounds(False, k, lengths, field, worker)
