"""New fields of maps whose costs vary, on the CPU's threads: one bucket queue over the whole map.

A step costs what the tile that it enters costs. So a tile of value v offers v + STRAIGHT to all tiles beside it and
v + DIAGONAL to all at its corners, each times its cost. These offers wait in buckets, by their value; a bucket spans
no more than the shortest step. So whatever a bucket offers is there when its turn comes, and a tile is final after the
first bucket that offers it anything. Each tile is settled once. Offers are taken without branches, since nobody could
predict which tiles are still open.

Memory bounds the speed. So when a tile settles, one bucket or more before it makes its offers, the tiles that it will
offer to are fetched.

Threads own stripes of rows in turn and go through the buckets together. Offers of tiles at a stripe's edge lie in
lists of their own, which the owners of both stripes read: no thread touches a tile of another's. Where buckets hold few
tiles, or the system makes threads wait for a processor, the first thread goes on alone. It passes over empty buckets:
in a corridor of high costs a hundred lie between two tiles.

Repairs, and fields that go on from known tiles, use `rounds` and `queues` instead.
"""

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ...device import lean_njit
from ...parallel.team import clock_ns, meet
from .blocks import inner_njit
from .values import DIAGONAL_8, INFINITE, shift_of, unit_of

# lists of offers
STRAIGHT = 0
DIAGONAL = 1
EDGE = 2  # is added for tiles at the edge of a stripe
LISTS = 4
CHUNK = 64  # places of a piece of a list; the last one says where the list goes on
MOST_FOUND = 4 * CHUNK  # tiles that a chunk may find open
# bits of `Front.tiles`, over 8 bits of cost
OPEN = 15
EDGE_BIT = 12
CORNER_BIT = 8
CORNERS = 0xF00
# bits of an offer, over the tile
OFFSET = 32  # its value inside the bucket
CORNER = 54  # which corners may be cut
# places in `Front.notes`; from WAITING on two each, by the parity of the bucket
SPARE = 0
BUCKET = 1
WAITING = 2
SETTLED = 4
FULL = 6
STALLED = 8
STOPPED = 10  # in all notes: the threads shall end (Ctrl-C)
NOTES = 11
FEW = 64  # tiles settled in a bucket that are not worth a barrier
STALL_NS = 200_000  # barriers that took so long mean that threads wait for the processor
MOST_STALLS = 3  # after so many of them the first thread goes on alone


class Front(NamedTuple):
    """A field that is being made, and the memory of its M threads. T: tiles of the padded map, row by row."""

    moves: tuple  # as of `Kind`
    wide: int  # tiles in a row
    mask: int  # number of buckets - 1
    stripe: int  # tiles that a thread owns at a time
    members: int  # M
    cost: np.ndarray  # (T,) uint8
    value: np.ndarray  # (T,) int64, as of `ValueField`
    # (T,) uint16 what a step into a tile costs; OPEN: may be reached; EDGE_BIT: lies at the edge of a stripe; CORNERS:
    # may its corners north-east, south-east, south-west, north-west be reached by a diagonal?
    tiles: np.ndarray
    pool: np.ndarray  # (M, P) uint64 offers: the tile, OFFSET its value inside the bucket, CORNER the tile's CORNERS
    head: np.ndarray  # (M, LISTS, mask + 1) uint64 where in the pool the lists of a bucket begin
    tail: np.ndarray  # (M, LISTS, mask + 1) uint64 where they end
    spare: np.ndarray  # (M, P / CHUNK) uint64 chunks of the pool that are free
    found: np.ndarray  # (M, MOST_FOUND + 1) uint64 offers to open tiles
    fresh: np.ndarray  # (M, F) uint32 tiles reached in this bucket
    notes: np.ndarray  # (M, NOTES) int64 of each thread, for all


def _inlined(function):
    """njit, inlined by its callers: to hand over so many arrays would take longer than a bucket."""
    return inner_njit(function, forceinline=True)


@intrinsic
def _prefetch(context, array, i):
    """Fetch array[i], which is written soon, while other work goes on. i: uint64; it may lie outside of the array"""

    def build(context, builder, signature, arguments):
        kind = signature.args[0]
        struct = context.make_array(kind)(context, builder, value=arguments[0])
        at = cgutils.get_item_pointer(context, builder, kind, struct, [arguments[1]], wraparound=False)
        word, at = ir.IntType(32), builder.bitcast(at, ir.IntType(8).as_pointer())
        declared = ir.FunctionType(ir.VoidType(), [at.type, word, word, word])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [at.type], declared)
        to_write, keep, data = 1, 3, 1
        builder.call(fetch, [at, word(to_write), word(keep), word(data)])
        return context.get_dummy_value()

    return types.void(array, types.uint64), build


ONE = np.uint64(1)
ZERO = np.uint64(0)
LOW_32 = np.uint64(0xFFFFFFFF)
LAST = np.uint64(CHUNK - 1)  # place of a chunk that says where the list goes on


@_inlined
def _owner(tile, front):
    """-> who owns a tile"""
    return np.uint64(np.uint32(tile) // np.uint32(front.stripe) % np.uint32(front.members))


@_inlined
def _prepare(front, worker):
    """Fill `tiles`, and make a field without any value: each thread its rows."""
    wide, last = np.uint64(front.wide), front.wide - 1
    rows, high = len(front.tiles) // front.wide, front.stripe // front.wide
    for row in range(worker.number, rows, worker.count):
        here = np.uint64(row) * wide
        for col in range(front.wide):
            front.value[here + np.uint64(col)] = INFINITE
        if row == 0 or row == rows - 1:
            for col in range(front.wide):
                front.tiles[here + np.uint64(col)] = np.uint16(0)
        else:
            at_edge = front.members > 1 and (row % high == 0 or row % high == high - 1)
            edge = np.uint16(np.uint16(at_edge) << np.uint16(EDGE_BIT))
            front.tiles[here] = front.tiles[here + wide - ONE] = np.uint16(0)
            for col in range(1, last):
                tile = here + np.uint64(col)
                cost = np.uint16(front.cost[tile])
                north, south = np.uint16(front.cost[tile - wide] != 0), np.uint16(front.cost[tile + wide] != 0)
                east, west = np.uint16(front.cost[tile + ONE] != 0), np.uint16(front.cost[tile - ONE] != 0)
                corners = (north & east) | (south & east) << np.uint16(1)
                corners |= (south & west) << np.uint16(2) | (north & west) << np.uint16(3)
                is_open = np.uint16(cost != 0) << np.uint16(OPEN)
                front.tiles[tile] = np.uint16(cost | corners << np.uint16(CORNER_BIT) | edge | is_open)


@_inlined
def _empty_lists(me, front):
    """All lists get a chunk each, and the others are free."""
    front.notes[me, :STOPPED] = 0
    buckets = front.mask + 1
    for kind in range(LISTS):
        for bucket in range(buckets):
            at = np.uint64((kind * buckets + bucket) * CHUNK)
            front.head[me, kind, bucket] = front.tail[me, kind, bucket] = at
    chunks = front.spare.shape[1]
    front.notes[me, SPARE] = chunks - LISTS * buckets
    for i in range(chunks - LISTS * buckets):
        front.spare[me, i] = np.uint64((chunks - 1 - i) * CHUNK)


@_inlined
def _push(kind, bucket, offer, me, front):
    """An offer begins to wait."""
    place = front.tail[me, kind, bucket]
    front.pool[me, place] = offer
    place += ONE
    if place & LAST == LAST:
        spare = front.notes[me, SPARE] - 1
        front.notes[me, SPARE] = spare
        following = front.spare[me, np.uint64(spare)]
        front.pool[me, place] = following
        place = following
    front.tail[me, kind, bucket] = place


@_inlined
def _end_of_chunk(place, end):
    """-> where the offers of a list that ends at `end` end in the chunk of a place"""
    return end if (place ^ end) < np.uint64(CHUNK) else place | LAST


@_inlined
def _release(kind, bucket, me, front):
    """Empty a list -> how many offers it had"""
    place, end, gone = front.head[me, kind, bucket], front.tail[me, kind, bucket], ZERO
    while (place ^ end) >= np.uint64(CHUNK):
        gone += LAST - (place & LAST)
        front.spare[me, np.uint64(front.notes[me, SPARE])] = place & ~LAST
        front.notes[me, SPARE] += 1
        place = front.pool[me, place | LAST]
    front.head[me, kind, bucket] = front.tail[me, kind, bucket] = end & ~LAST
    return np.int64(gone + (end - place))


@_inlined
def _find(offer, step, may, found, count, front):
    """Make an offer to the tile `step` away, if it is open and bit 0 of `may` is set -> count of found"""
    to = offer + step
    found[count] = to
    return count + (np.uint64(front.tiles[to & LOW_32]) >> np.uint64(OPEN) & may & ONE)


@_inlined
def _inside(front):
    """-> uint64, mask of a value's place in its bucket"""
    return (ONE << np.uint64(shift_of(front.moves))) - ONE


@_inlined
def close(tile, reached, me, front):
    """4-connected: a tile is reached, and closed -> count of fresh tiles. A bucket has one value only."""
    front.fresh[me, reached] = np.uint32(tile)
    info = front.tiles[tile]
    front.tiles[tile] = info & np.uint16(0x7FFF)
    return reached + (np.uint64(info) >> np.uint64(OPEN))


@_inlined
def take_found(base, found, reached, me, front):
    """Open tiles take what they are offered -> count of fresh tiles"""
    for i in range(found):
        to = front.found[me, np.uint64(i)]
        tile = to & LOW_32
        if len(front.moves) == 4:
            reached = close(tile, reached, me, front)
        else:
            before = front.value[tile]
            front.value[tile] = min(before, base + np.int64((to >> np.uint64(OFFSET)) & _inside(front)))
            front.fresh[me, reached] = np.uint32(tile)
            reached += np.uint64(before == INFINITE)
    return reached


@_inlined
def has_room(reached, front):
    """Is there room for what another chunk may reach?"""
    return np.int64(reached) + MOST_FOUND < front.fresh.shape[1]


@_inlined
def take(kind, at, base, reached, whose, me, front):
    """Make the offers of a list of thread `whose`, those of a list of edges to tiles of this thread only

    -> count of fresh tiles
    """
    wide, at_edge = np.uint64(front.wide), kind >= EDGE
    up = ZERO - wide
    found, pool = front.found[me], front.pool[whose]
    place, end = front.head[whose, kind, at], front.tail[whose, kind, at]
    while place != end and has_room(reached, front):
        stop, count = _end_of_chunk(place, end), ZERO
        while place != stop:
            offer = pool[place]
            tile = offer & LOW_32
            north = not at_edge or _owner(tile - wide, front) == me
            south = not at_edge or _owner(tile + wide, front) == me
            beside = not at_edge or whose == me
            if len(front.moves) == 4 and not at_edge:
                reached = close(tile - wide, reached, me, front)
                reached = close(tile + ONE, reached, me, front)
                reached = close(tile + wide, reached, me, front)
                reached = close(tile - ONE, reached, me, front)
            elif kind == STRAIGHT or kind == EDGE + STRAIGHT:
                count = _find(offer, up, ONE, found, count, front) if north else count
                count = _find(offer, ONE, ONE, found, count, front) if beside else count
                count = _find(offer, wide, ONE, found, count, front) if south else count
                count = _find(offer, ZERO - ONE, ONE, found, count, front) if beside else count
            else:
                corners = offer >> np.uint64(CORNER)
                count = _find(offer, up + ONE, corners, found, count, front) if north else count
                count = _find(offer, wide + ONE, corners >> ONE, found, count, front) if south else count
                count = _find(offer, wide - ONE, corners >> np.uint64(2), found, count, front) if south else count
                count = _find(offer, up - ONE, corners >> np.uint64(3), found, count, front) if north else count
            place += ONE
        reached = take_found(base, count, reached, me, front)
        place = place if place == end else pool[place]
    return reached


@_inlined
def settle(bucket, reached, me, front):
    """The fresh tiles are final: they are closed, and their offers wait."""
    wide, mask = np.uint64(front.wide), np.uint64(front.mask)
    for i in range(reached):
        tile = np.uint64(front.fresh[me, np.uint64(i)])
        info = np.uint64(front.tiles[tile])
        if len(front.moves) == 4:
            front.value[tile] = np.int64(bucket)
        else:
            front.tiles[tile] = np.uint16(info & np.uint64(0x7FFF))
        value, cost = np.uint64(front.value[tile]), info & np.uint64(0xFF)
        kind = (info >> np.uint64(EDGE_BIT) & ONE) * np.uint64(EDGE)
        if kind == ZERO:
            _prefetch(front.tiles, tile - wide)
            _prefetch(front.tiles, tile + wide)
            _prefetch(front.value, tile - wide)
            _prefetch(front.value, tile + wide)
            _prefetch(front.value, tile - ONE)
            _prefetch(front.value, tile + ONE)
        offer = value + cost * np.uint64(unit_of(len(front.moves)))
        packed = tile | (offer & _inside(front)) << np.uint64(OFFSET)
        _push(kind, offer >> np.uint64(shift_of(front.moves)) & mask, packed, me, front)
        if len(front.moves) == 8:
            offer = value + cost * np.uint64(DIAGONAL_8)
            packed = tile | (offer & _inside(front)) << np.uint64(OFFSET)
            packed |= (info & np.uint64(CORNERS)) << np.uint64(CORNER - CORNER_BIT)
            _push(kind + np.uint64(DIAGONAL), offer >> np.uint64(shift_of(front.moves)) & mask, packed, me, front)


@inner_njit
def step(bucket, parity, me, front):
    """Do a thread's part of a bucket, and note what waits then."""
    mask, base, notes = np.uint64(front.mask), np.int64(bucket << np.uint64(shift_of(front.moves))), front.notes
    at, before = bucket & mask, (bucket - ONE) & mask
    waiting, reached = notes[me, WAITING + 1 - parity], ZERO
    if front.members > 1:  # nobody reads the edges of the bucket before any more
        waiting -= _release(np.uint64(EDGE + STRAIGHT), before, me, front)
        if len(front.moves) == 8:
            waiting -= _release(np.uint64(EDGE + DIAGONAL), before, me, front)
    reached = take(STRAIGHT, at, base, reached, me, me, front)
    waiting -= _release(np.uint64(STRAIGHT), at, me, front)
    if len(front.moves) == 8:
        reached = take(DIAGONAL, at, base, reached, me, me, front)
        waiting -= _release(np.uint64(DIAGONAL), at, me, front)
    if front.members > 1:
        for member in range(front.members):
            whose = np.uint64(member)
            reached = take(EDGE + STRAIGHT, at, base, reached, whose, me, front)
            if len(front.moves) == 8:
                reached = take(EDGE + DIAGONAL, at, base, reached, whose, me, front)
    chunks = 2 * np.int64(reached) // (CHUNK - 1) + LISTS * (front.mask + 1)
    full = chunks > notes[me, SPARE] or not has_room(reached, front)
    if not full:
        settle(bucket, reached, me, front)
        waiting += np.int64(reached) * (1 if len(front.moves) == 4 else 2)
    notes[me, FULL + parity] = np.int64(full) | notes[me, STOPPED]
    notes[me, WAITING + parity] = waiting
    notes[me, SETTLED + parity] = np.int64(reached)


@_inlined
def total(note, front):
    """-> sum of a note over the threads"""
    noted = np.int64(0)
    for member in range(front.members):
        noted += front.notes[member, note]
    return noted


@_inlined
def goes_on(parity, front):
    """Is there something to do, and room to do it?"""
    return total(WAITING + parity, front) > 0 and total(FULL + parity, front) == 0


@_inlined
def is_idle(bucket, front):
    """Does nothing wait in a bucket, nor in the one before, whose edges are kept until this one?"""
    kinds = LISTS if front.members > 1 else EDGE
    for back in range(2):
        at = (bucket - np.uint64(back)) & np.uint64(front.mask)
        for member in range(front.members):
            for kind in range(0, kinds, 1 if len(front.moves) == 8 else DIAGONAL + 1):
                list_of = np.uint64(member), np.uint64(kind), at
                if front.head[list_of] != front.tail[list_of]:
                    return False
    return True


@_inlined
def next_bucket(bucket, front):
    """-> the next bucket in which there is something to do. Not while another thread works"""
    bucket += ONE
    while is_idle(bucket, front):
        bucket += ONE
    return bucket


@_inlined
def go_on_alone(bucket, parity, front):
    """The first thread does the part of every thread, until there is enough to do for all -> the last bucket,
    parity of its notes"""
    few = np.int64(0)
    for_good = front.notes[0, STALLED + parity] > 0
    while few < 2 * FEW or for_good:
        bucket, parity = next_bucket(bucket, front), 1 - parity
        for member in range(front.members):
            step(bucket, parity, np.uint64(member), front)
        few = (3 * few + total(SETTLED + parity, front)) // 4
        if not goes_on(parity, front):
            break
    return bucket, parity


@lean_njit
def search(goal, front, worker):
    """Make the field of a goal, the number of a tile -> was there room for it?"""
    me, notes = np.uint64(worker.number), front.notes
    _prepare(front, worker)
    _empty_lists(me, front)
    meet(worker)
    if _owner(np.uint64(goal), front) == me:
        front.fresh[me, 0] = np.uint32(goal)
        front.value[goal] = 0
        front.tiles[goal] &= np.uint16(0x7FFF)
        settle(ZERO, ONE, me, front)
        notes[me, WAITING] = 1 if len(front.moves) == 4 else 2
    meet(worker)
    bucket, parity, stalls, settled = ZERO, 0, 0, np.int64(0)
    while goes_on(parity, front):
        if front.members > 1 and (settled < FEW or notes[0, STALLED + parity] > 0):
            meet(worker)  # all have read the notes
            if me == ZERO:
                bucket, parity = go_on_alone(bucket, parity, front)
                notes[0, BUCKET] = np.int64(bucket << ONE) | parity
            meet(worker)
            bucket, parity = np.uint64(notes[0, BUCKET] >> 1), notes[0, BUCKET] & 1
            settled = np.int64(2 * FEW)
        else:
            bucket = next_bucket(bucket, front) if front.members == 1 else bucket + ONE
            parity = 1 - parity
            step(bucket, parity, me, front)
            if me == ZERO:
                notes[0, STALLED + parity] = np.int64(stalls >= MOST_STALLS)
            began = clock_ns()
            meet(worker)
            stalls += np.int64(clock_ns() - began > STALL_NS)
            settled = (3 * settled + total(SETTLED + parity, front)) // 4
    return total(FULL + parity, front) == 0
