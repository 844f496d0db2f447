"""Blocks of weighted and 8-connected maps on a CPU thread: a bucket queue inside a block, which the cache holds.

A step costs what the tile that it enters costs. So a tile of value v offers v + STRAIGHT to all tiles beside it and
v + DIAGONAL to all at its corners, each times its cost. These two *offers* wait in buckets, by their value. No step
costs less than a bucket spans: when a bucket's turn comes, all of its offers are there, and what a tile has got when
the bucket is empty is its final value. So each tile makes its offers once. They are taken by minima without branches:
nobody could predict which neighbours get better.

Tiles are numbered row by row over a block and the ring of tiles around it, B + 2 to a row. The ring takes offers too,
which tells what neighbouring blocks gain. CUDA sweeps lines instead (`values`), to keep its lanes busy.
"""

from typing import NamedTuple

import numpy as np

from ..paths import EAST, NORTH, NORTH_EAST, NORTH_WEST, SOUTH, SOUTH_EAST, SOUTH_WEST, WEST
from .blocks import Kind, inner_njit, kind_of, octile, size_of
from .values import DIAGONAL_8, INFINITE, shift_of, unit_of

SIGN = np.uint64(1 << 63)
WALL = np.int64(-1)  # the value of a blocked tile here: no offer is lower
BUCKETS = 1024  # of the queue, in a circle
REACH = BUCKETS // 2  # more buckets than any step leads ahead
NOBODY = np.int16(-1)
ZERO = np.uint64(0)
ONE = np.uint64(1)
MASK = np.uint64(BUCKETS - 1)
# what waits in a bucket: offers, and tiles that have got better from outside; no literals, for each of which Numba
# would compile `wait`
STRAIGHT, DIAGONAL, SEED = np.arange(3, dtype=np.uint64)
# of `Buckets.offers`, beside STRAIGHT and DIAGONAL
OWN = 2
BLOCKED = 3


class Buckets(NamedTuple):
    """A thread's scratch: a block of side B with the T = (B + 2)^2 tiles of it and around it, and its queue."""

    kind: Kind  # of the block
    value: np.ndarray  # as of `Tiles`
    cost: np.ndarray
    values: np.ndarray  # (T,) the memory of `value`, tile by tile
    costs: np.ndarray
    first: np.ndarray  # (3, BUCKETS) int16 the first tile that waits in a bucket, by what waits, or NOBODY
    following: np.ndarray  # (3, T) int16 the tile after a tile there
    fresh: np.ndarray  # (8 T,) int16 tiles that have got better in this bucket, some of them twice
    done: np.ndarray  # (T,) uint8, 1: the tile has made its offers, or belongs to the ring
    seeds: np.ndarray  # (T,) int16 tiles that have got better from outside
    # (4, B + 2, B + 2) uint32 for directions, the lowest bits of what tiles offer, by the kind of offer, and of their
    # own values; 1 where they are blocked
    offers: np.ndarray
    codes: np.ndarray  # (B * B,) uint8 directions
    octets: np.ndarray  # (B * B / 8,) uint64, the memory of `codes`
    gain: np.ndarray  # (8,) int64 the least value that each neighbour gets better by, by move codes; INFINITE: none


def new_buckets(size, connectivity):
    """The scratch of one thread."""
    wide = size + 2
    tiles = wide * wide
    value, cost = np.zeros((wide, wide), np.int64), np.zeros((wide, wide), np.uint8)
    first, following = np.full((3, BUCKETS), NOBODY), np.zeros((3, tiles), np.int16)
    fresh, done, seeds = np.zeros(8 * tiles, np.int16), np.zeros(tiles, np.uint8), np.zeros(tiles, np.int16)
    offers, codes = np.zeros((4, wide, wide), np.uint32), np.zeros(size * size, np.uint8)
    block = kind_of(size, connectivity), value, cost, value.ravel(), cost.ravel()
    return Buckets(
        *block, first, following, fresh, done, seeds, offers, codes, codes.view(np.uint64), np.full(8, INFINITE)
    )


@inner_njit
def wide_of(kind):
    """-> uint64, tiles in a row of a block with the ring"""
    return np.uint64(size_of(kind) + 2)


@inner_njit
def offer(tile, value, count, queue):
    """Offer a value to a tile -> count of fresh tiles"""
    before = queue.values[tile]
    queue.values[tile] = min(before, value)
    queue.fresh[count] = np.int16(tile)
    return count + np.uint64(value < before)


@inner_njit
def offer_straight(tile, count, queue):
    wide = wide_of(queue.kind)
    value = queue.values[tile] + np.int64(queue.costs[tile]) * unit_of(len(queue.kind.moves))
    count = offer(tile - wide, value, count, queue)
    count = offer(tile + ONE, value, count, queue)
    count = offer(tile + wide, value, count, queue)
    return offer(tile - ONE, value, count, queue)


@inner_njit
def offer_diagonal(tile, count, queue):
    values, wide = queue.values, wide_of(queue.kind)
    value = values[tile] + np.int64(queue.costs[tile]) * DIAGONAL_8
    north, east, south, west = values[tile - wide], values[tile + ONE], values[tile + wide], values[tile - ONE]
    # of two tiles beside the diagonal, is one blocked? Then its value has the sign bit
    count = offer(tile - wide + ONE, value | (((north | east) >> 63) & INFINITE), count, queue)
    count = offer(tile + wide + ONE, value | (((south | east) >> 63) & INFINITE), count, queue)
    count = offer(tile + wide - ONE, value | (((south | west) >> 63) & INFINITE), count, queue)
    return offer(tile - wide - ONE, value | (((north | west) >> 63) & INFINITE), count, queue)


@inner_njit
def wait(tile, value, what, queue):
    """An offer begins to wait."""
    bucket = np.uint64(value >> shift_of(queue.kind.moves)) & MASK
    queue.following[what, tile] = queue.first[what, bucket]
    queue.first[what, bucket] = np.int16(tile)


@inner_njit
def wait_all(count, queue):
    """All fresh tiles are final: their offers wait -> how many offers"""
    offers = 0
    for i in range(count):
        tile = np.uint64(queue.fresh[np.uint64(i)])
        if queue.done[tile] == 0:
            queue.done[tile] = 1
            value, cost = queue.values[tile], np.int64(queue.costs[tile])
            wait(tile, value + cost * unit_of(len(queue.kind.moves)), STRAIGHT, queue)
            offers += 1
            if octile(queue.kind):
                wait(tile, value + cost * DIAGONAL_8, DIAGONAL, queue)
                offers += 1
    return offers


@inner_njit
def take_bucket(bucket, queue):
    """Its seeds become fresh, and its offers are made -> how many were waiting; fresh tiles"""
    waited, count = 0, np.uint64(0)
    tile = queue.first[SEED, bucket]
    while tile >= 0:
        queue.fresh[count] = tile
        count += ONE
        waited += 1
        tile = queue.following[SEED, np.uint64(tile)]
    tile = queue.first[STRAIGHT, bucket]
    while tile >= 0:
        count = offer_straight(np.uint64(tile), count, queue)
        waited += 1
        tile = queue.following[STRAIGHT, np.uint64(tile)]
    if octile(queue.kind):
        tile = queue.first[DIAGONAL, bucket]
        while tile >= 0:
            count = offer_diagonal(np.uint64(tile), count, queue)
            waited += 1
            tile = queue.following[DIAGONAL, np.uint64(tile)]
    queue.first[SEED, bucket] = queue.first[STRAIGHT, bucket] = queue.first[DIAGONAL, bucket] = NOBODY
    return waited, count


@inner_njit
def least_bucket(seeds, queue):
    """-> the first bucket of so many seeds"""
    least = INFINITE
    for i in range(seeds):
        least = min(least, queue.values[np.uint64(queue.seeds[np.uint64(i)])])
    return least >> shift_of(queue.kind.moves)


@inner_njit
def sow(seeds, end, queue):
    """Seeds of the buckets before `end` begin to wait -> how many; how many others are left"""
    waiting, left = 0, 0
    for i in range(seeds):
        tile = np.uint64(queue.seeds[np.uint64(i)])
        value = queue.values[tile]
        if value >> shift_of(queue.kind.moves) >= end:
            queue.seeds[np.uint64(left)] = np.int16(tile)
            left += 1
        elif queue.done[tile] == 0:
            wait(tile, value, SEED, queue)
            waiting += 1
    return waiting, left


@inner_njit
def settle(seeds, queue):
    """Find the exact values inside a block, where so many tiles of queue.seeds have got better."""
    waiting, bucket = 0, np.int64(0)
    while seeds + waiting > 0:
        if waiting == 0:
            bucket = least_bucket(seeds, queue)
        end = bucket + REACH
        more, seeds = sow(seeds, end, queue)
        waiting += more
        while waiting > 0 and bucket < end:
            at = np.uint64(bucket) & MASK
            if (queue.first[SEED, at] & queue.first[STRAIGHT, at] & queue.first[DIAGONAL, at]) != NOBODY:
                waited, count = take_bucket(at, queue)
                waiting += wait_all(count, queue) - waited
            bucket += 1


@inner_njit
def across(tile, out, along, queue):
    """-> the least offer to a tile from the tile `out` away, which is outside, and its two neighbours `along`. A
    blocked tile offers a number with the sign bit, which is the greatest of uint64."""
    values, costs = queue.values, queue.costs
    ahead = tile + out
    best = np.uint64(values[ahead] + np.int64(costs[ahead]) * unit_of(len(queue.kind.moves)))
    if octile(queue.kind):
        for beside in (along, ZERO - along):
            at = ahead + beside
            cut = np.uint64(values[ahead] | values[tile + beside]) & SIGN
            best = min(best, np.uint64(values[at] + np.int64(costs[at]) * DIAGONAL_8) | cut)
    return best


@inner_njit
def lowered(tile, best, seeds, queue):
    """A tile takes the best offer from outside -> count of seeds"""
    value = queue.values[tile]
    if value >= 0 and best < np.uint64(value):
        queue.values[tile] = np.int64(best)
        queue.seeds[np.uint64(seeds)] = np.int16(tile)
        seeds += 1
    return seeds


@inner_njit
def enter(queue):
    """The tiles along a block's sides take what those outside offer -> how many of queue.seeds get better"""
    seeds, size, wide = np.int64(0), size_of(queue.kind), wide_of(queue.kind)
    north, east, south, west = ZERO - wide, ONE, wide, ZERO - ONE
    for row, out in ((1, north), (size, south)):
        for col in range(1, size + 1):
            tile = np.uint64(row) * wide + np.uint64(col)
            best = across(tile, out, east, queue)
            if col == 1:
                best = min(best, across(tile, west, south, queue))
            if col == size:
                best = min(best, across(tile, east, south, queue))
            seeds = lowered(tile, best, seeds, queue)
    for row in range(2, size):
        tile = np.uint64(row) * wide + ONE
        seeds = lowered(tile, across(tile, west, south, queue), seeds, queue)
        tile = np.uint64(row) * wide + np.uint64(size)
        seeds = lowered(tile, across(tile, east, south, queue), seeds, queue)
    return seeds


@inner_njit
def corner_of(visit, field):
    """-> uint64, slot, row, column in the padded arrays of the tile diagonally before the block's first"""
    row, col = visit.block // field.width - 1, visit.block % field.width - 1
    size = size_of(field.kind)
    return np.uint64(visit.slot), np.uint64(row * size), np.uint64(col * size)


@inner_njit
def load(visit, field, queue):
    """Copy a block and the tiles around it from the field."""
    slot, row, col = corner_of(visit, field)
    wide = size_of(field.kind) + 2
    for i in range(wide):
        r = np.uint64(i)
        for j in range(wide):
            c = np.uint64(j)
            cost = field.cost[row + r, col + c]
            queue.cost[r, c] = cost
            queue.value[r, c] = field.value[slot, row + r, col + c] if cost != 0 else WALL
    queue.done[:] = np.uint8(0)
    for i in range(wide):
        for tile in (i, (wide - 1) * wide + i, i * wide, i * wide + wide - 1):
            queue.done[np.uint64(tile)] = np.uint8(1)


@inner_njit
def gained(visit, r, c, field, queue):
    """-> the value of tile (r, c) of the ring if it has got better, else INFINITE"""
    slot, row, col = corner_of(visit, field)
    r, c = np.uint64(r), np.uint64(c)
    value = queue.value[r, c]
    return value if 0 <= value < field.value[slot, row + r, col + c] else INFINITE


@inner_njit
def gains(visit, field, queue):
    """Fill queue.gain -> bits of the neighbours that get better"""
    near, far, gain = np.int64(0), size_of(field.kind) + 1, queue.gain
    north, east, south, west = INFINITE, INFINITE, INFINITE, INFINITE
    for i in range(1, far):
        north = min(north, gained(visit, near, i, field, queue))
        south = min(south, gained(visit, far, i, field, queue))
    for i in range(1, far):
        west = min(west, gained(visit, i, near, field, queue))
        east = min(east, gained(visit, i, far, field, queue))
    gain[NORTH], gain[EAST], gain[SOUTH], gain[WEST] = north, east, south, west
    if octile(field.kind):
        gain[NORTH_EAST] = gained(visit, near, far, field, queue)
        gain[SOUTH_EAST] = gained(visit, far, far, field, queue)
        gain[SOUTH_WEST] = gained(visit, far, near, field, queue)
        gain[NORTH_WEST] = gained(visit, near, near, field, queue)
    answer = 0
    for k in range(len(field.kind.moves)):
        answer |= np.int64(gain[k] < INFINITE) << k
    return np.int32(answer)


@inner_njit
def sow_all(queue):
    """All tiles inside that have a value become seeds -> how many"""
    seeds, size = np.int64(0), size_of(queue.kind)
    for r in range(1, size + 1):
        for c in range(1, size + 1):
            if 0 <= queue.value[r, c] < INFINITE:
                queue.seeds[seeds] = np.int16(r * (size + 2) + c)
                seeds += 1
    return seeds


@inner_njit
def relax_by_queue(visit, field, raw, queue):
    """See `operations.relax`."""
    size = size_of(field.kind)
    slot, row, col = corner_of(visit, field)
    load(visit, field, queue)
    seeds = enter(queue)
    if visit.seed >= 0:
        tile = (visit.seed // size + 1) * (size + 2) + visit.seed % size + 1
        if queue.values[tile] > 0:
            queue.values[tile] = 0
            queue.seeds[seeds] = tile
            seeds += 1
    if raw:
        seeds = sow_all(queue)
    if seeds == 0:
        return np.int32(0)
    settle(seeds, queue)
    for i in range(1, size + 1):
        r = np.uint64(i)
        for j in range(1, size + 1):
            c = np.uint64(j)
            value = queue.value[r, c]
            field.value[slot, row + r, col + c] = value if value >= 0 else INFINITE
    return gains(visit, field, queue)
