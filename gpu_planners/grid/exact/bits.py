"""Blocks of a uniform 4-connected map, 32 tiles to a word: a breadth-first search by shifts inside a planning block.

Of a field only two bits a tile are kept: whether the tile is reached, and bit 1 of its distance. Bit 0 follows from the
tile's place, and distances of neighbours differ by one, so two bits tell which neighbour is nearer to the goal.
Distances in full are kept for the border tiles of a block, which is all that neighbouring blocks need.

A `BitField` holds the fields of all goals. In the docstrings B is the side of a block; item = slot * blocks + block.
"""

from typing import NamedTuple

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from ...parallel.team import any_lane, lane_range, least_lane, sync_lanes
from ..paths import COL_MOVES, EAST, NORTH, ROW_MOVES, SOUTH, WEST
from .blocks import CHANGED, LEAN, Kind, inner_njit, kind_of, size_of

BIT_1, REACHED = 0, 1  # of BitField.bits
UNREACHED = np.int32(0x7FFFFFFF)  # a distance
WALL = np.int32(-1)  # in place of a distance
LEVELS_SORTED = 64  # levels whose arrivals from outside are sorted at a time


class BitField(NamedTuple):
    """The fields of all goals on a uniform 4-connected map."""

    kind: Kind  # of the blocks
    width: int  # blocks in a row, with the ring
    blocks: int  # in all, with the ring
    free: np.ndarray  # (blocks, B) uint32; bit c of [b, r]: tile (r, c) of block b is free
    bits: np.ndarray  # (items, 2, B) uint32; [i, BIT_1, r] bit 1 of the distances, [i, REACHED, r] which are reached
    edge: np.ndarray  # (items, 4, B) int32 distances of the border tiles, by side NORTH ... WEST; UNREACHED, WALL
    directions: np.ndarray  # (items, B * B / 8) uint32; codes of 4 bits, tile by tile


class Wave(NamedTuple):
    """A worker's scratch: a wave that runs through a block."""

    kind: Kind  # of the block
    front: np.ndarray  # (2, B + 2) uint32 tiles reached in the last level and in this one; rows 0, B + 1 stay empty
    open: np.ndarray  # (B,) uint32 free tiles not yet reached
    bit_1: np.ndarray  # (B,) uint32 bit 1 of the distances
    inject: np.ndarray  # (LEVELS_SORTED, 4) uint32 border tiles that it enters from outside, by level and side
    arrive: np.ndarray  # (4, B) int32 when it comes from outside; WALL where it cannot pass
    dist: np.ndarray  # (4, B) int32 distances of border tiles; UNREACHED, WALL


def new_wave(size):
    """CPU only: the scratch of one thread."""
    rows, sorted_ = np.zeros((2, size), np.uint32), np.zeros((LEVELS_SORTED, 4), np.uint32)
    front, sides = np.zeros((2, size + 2), np.uint32), np.zeros((2, 4, size), np.int32)
    return Wave(kind_of(size, 4), front, *rows, sorted_, *sides)


@inner_njit
def side_bit(rows, side, i, kind):
    """Is tile i along a side of a block set? rows: (B,) uint32"""
    last = size_of(kind) - 1
    if side == NORTH:
        return (rows[0] >> np.uint32(i)) & np.uint32(1)
    if side == SOUTH:
        return (rows[last] >> np.uint32(i)) & np.uint32(1)
    if side == EAST:
        return (rows[i] >> np.uint32(last)) & np.uint32(1)
    return rows[i] & np.uint32(1)


@intrinsic
def _lowest_bit(context, bits):
    def build(context, builder, signature, arguments):
        return builder.cttz(arguments[0], cgutils.true_bit)

    return types.uint32(types.uint32), build


@inner_njit
def _put_at_bits(values, bits, value):
    """values[i] = value for every set bit i."""
    while bits != 0:
        values[np.intp(_lowest_bit(np.uint32(bits)))] = value
        bits = np.uint32(bits & (bits - np.uint32(1)))


def spread(level, wave, out, lane):
    """Run the wave from `level` on, until it has reached all that it can.

    out: (B * B,) int32 distances, or empty. CUDA, which has its own (`update_cuda`), does not write it.
    """
    raise NotImplementedError("compiled code only")


@overload(spread, target="cpu", jit_options=LEAN)
def _spread(level, wave, out, lane):
    return lambda level, wave, out, lane: _spread_on_thread(level, wave, out)


@inner_njit
def _next_arrival(wave, level):
    """-> the first level, from `level` on, at which the wave enters an open tile from outside."""
    first = UNREACHED
    for side in range(4):
        for i in range(size_of(wave.kind)):
            arrival = wave.arrive[side, i]
            if level <= arrival < first and side_bit(wave.open, side, i, wave.kind):
                first = arrival
    return first


@inner_njit
def _sort_arrivals(wave, level):
    """Fill wave.inject for the levels from `level` on."""
    wave.inject[:] = np.uint32(0)
    for side in range(4):
        for i in range(size_of(wave.kind)):
            after = wave.arrive[side, i] - level
            if 0 <= after < LEVELS_SORTED:
                wave.inject[after, side] |= np.uint32(1) << np.uint32(i)


@inner_njit
def _spread_on_thread(level, wave, out):
    size, last = size_of(wave.kind), size_of(wave.kind) - 1
    while level < UNREACHED:
        _sort_arrivals(wave, level)
        wave.front[1, 0], wave.front[1, size + 1] = wave.inject[0, NORTH], wave.inject[0, SOUTH]
        t = 0
        alive = True
        while alive and t < LEVELS_SORTED:
            now, before = t & 1, 1 - (t & 1)
            second = np.uint32(0xFFFFFFFF) if (level + t) & 2 else np.uint32(0)
            west, east = wave.inject[t, WEST], wave.inject[t, EAST]
            seen = np.uint64(0)
            for r in range(size):
                f = wave.front[before, r + 1]
                n = (f << np.uint32(1)) | (f >> np.uint32(1)) | wave.front[before, r] | wave.front[before, r + 2]
                n |= (west >> np.uint32(r)) & np.uint32(1)
                n |= ((east >> np.uint32(r)) & np.uint32(1)) << np.uint32(last)
                n &= wave.open[r]
                wave.front[now, r + 1] = n
                wave.open[r] ^= n
                wave.bit_1[r] |= n & second
                seen |= n
            if t + 1 < LEVELS_SORTED:  # the next level's arrivals, in the rows beyond the block
                wave.front[now, 0], wave.front[now, size + 1] = wave.inject[t + 1, NORTH], wave.inject[t + 1, SOUTH]
            alive = seen != 0
            if alive:
                _note(level + t, now, seen, wave, out)
                t += 1
        if alive:
            level += t
        else:
            level = _next_arrival(wave, level + t)
            wave.front[1, 1 : size + 1] = np.uint32(0)


@inner_njit
def _note(distance, now, seen, wave, out):
    """Note the distance of the border tiles just reached; of all tiles in `out`, unless it is empty."""
    size, last = size_of(wave.kind), np.uint32(size_of(wave.kind) - 1)
    _put_at_bits(wave.dist[NORTH], wave.front[now, 1], distance)
    _put_at_bits(wave.dist[SOUTH], wave.front[now, size], distance)
    if seen & np.uint32(1):
        for i in range(size):
            wave.dist[WEST, i] = distance if wave.front[now, i + 1] & np.uint32(1) else wave.dist[WEST, i]
    if (seen >> last) & np.uint32(1):
        for i in range(size):
            wave.dist[EAST, i] = distance if (wave.front[now, i + 1] >> last) & np.uint32(1) else wave.dist[EAST, i]
    if len(out) > 0:
        for r in range(size):
            for c in range(size):
                if (wave.front[now, r + 1] >> np.uint32(c)) & np.uint32(1):
                    out[r * size + c] = distance


@inner_njit
def _enter(visit, field, wave, lane):
    """Set wave.arrive and wave.dist by the tiles just outside the block -> when the wave first enters it"""
    first = UNREACHED
    for side in range(4):
        other, touching = visit.item + ROW_MOVES[side] * field.width + COL_MOVES[side], (side + 2) % 4
        for i in lane_range(0, size_of(field.kind), lane):
            outer, free_here = field.edge[other, touching, i], side_bit(wave.open, side, i, field.kind) != 0
            passable = free_here and outer != WALL
            wave.dist[side, i] = UNREACHED if free_here else WALL
            wave.arrive[side, i] = (outer + np.int32(1) if outer < UNREACHED else UNREACHED) if passable else WALL
            if passable and outer < UNREACHED:
                first = min(first, outer + np.int32(1))
    return least_lane(first, first)[0]


@inner_njit
def _begin_at(seed, wave, out):
    """The goal is the tile `seed`: the wave has reached it and nothing else."""
    size = size_of(wave.kind)
    row = seed // size
    wave.front[1, 1 + row] = np.uint32(1) << np.uint32(seed % size)
    wave.open[row] ^= wave.front[1, 1 + row]
    for side in range(4):
        for i in range(size):
            if side_bit(wave.front[1, 1:], side, i, wave.kind):
                wave.dist[side, i] = 0
    if len(out) > 0:
        out[seed] = 0


@inner_njit
def flood(visit, field, wave, out, lane):
    """Find the distances inside a block from those just outside it. out: (B * B,) int32 gets all of them, or empty"""
    for r in lane_range(0, size_of(field.kind), lane):
        wave.open[r] = field.free[visit.block, r]
        wave.bit_1[r] = np.uint32(0)
        wave.front[1, r + 1] = np.uint32(0)
    sync_lanes()
    first = _enter(visit, field, wave, lane)
    if visit.seed >= 0:
        sync_lanes()
        first = np.int32(1)
        if lane == 0:
            _begin_at(visit.seed, wave, out)
        sync_lanes()
    spread(first, wave, out, lane)


@inner_njit
def nearer(visit, field, r):
    """-> for each move 0 to 3, the tiles of row r whose neighbour that way is one step nearer to the goal."""
    item, width, bits, last = visit.item, field.width, field.bits, size_of(field.kind) - 1
    one, reached = bits[item, BIT_1, r], bits[item, REACHED, r]
    at_odd = np.uint32(0x55555555) if (r + visit.odd) & 1 else np.uint32(0xAAAAAAAA)  # tiles at an odd distance
    want = one ^ ~at_odd
    up, up_row = (item, r - 1) if r > 0 else (item - width, last)
    down, down_row = (item, r + 1) if r < last else (item + width, 0)
    north = bits[up, REACHED, up_row] & ~(bits[up, BIT_1, up_row] ^ want)
    south = bits[down, REACHED, down_row] & ~(bits[down, BIT_1, down_row] ^ want)
    carry = np.uint32(last)
    east_one = (one >> np.uint32(1)) | ((bits[item + 1, BIT_1, r] & np.uint32(1)) << carry)
    east_reached = (reached >> np.uint32(1)) | ((bits[item + 1, REACHED, r] & np.uint32(1)) << carry)
    west_one = (one << np.uint32(1)) | ((bits[item - 1, BIT_1, r] >> carry) & np.uint32(1))
    west_reached = (reached << np.uint32(1)) | ((bits[item - 1, REACHED, r] >> carry) & np.uint32(1))
    east = east_reached & ~(east_one ^ want)
    west = west_reached & ~(west_one ^ want)
    return north & reached, east & reached, south & reached, west & reached


@inner_njit
def _drop(visit, field, wave, lane):
    """Take back the tiles of the block that nothing supports, until all that are left are supported."""
    item, bits, size = visit.item, field.bits, size_of(field.kind)
    again = True
    while again:
        again = False
        for r in lane_range(0, size, lane):
            north, east, south, west = nearer(visit, field, r)
            held = north | east | south | west
            if visit.seed >= 0 and visit.seed // size == r:
                held |= np.uint32(1) << np.uint32(visit.seed % size)
            held &= field.free[visit.block, r] & bits[item, REACHED, r]
            again |= held != bits[item, REACHED, r]
            wave.bit_1[r] = held
        sync_lanes()
        for r in lane_range(0, size, lane):
            bits[item, REACHED, r] = wave.bit_1[r]
            bits[item, BIT_1, r] &= wave.bit_1[r]
        sync_lanes()
        again = any_lane(again)


@inner_njit
def withdraw(visit, field, scratch, lane):
    """See `operations`. Distances fall along supports, so there are no circles."""
    item, bits, kind = visit.item, field.bits, field.kind
    for r in lane_range(0, size_of(kind), lane):
        scratch.open[r] = bits[item, REACHED, r]  # the tiles reached before
    sync_lanes()
    _drop(visit, field, scratch, lane)
    answer = np.int32(0)
    changed = False
    for side in range(4):
        gone = False
        for i in lane_range(0, size_of(kind), lane):
            if not side_bit(field.free[visit.block], side, i, kind):
                field.edge[item, side, i] = WALL
            elif not side_bit(bits[item, REACHED], side, i, kind):
                field.edge[item, side, i] = UNREACHED
            gone |= side_bit(scratch.open, side, i, kind) != side_bit(bits[item, REACHED], side, i, kind)
        if any_lane(gone):
            answer |= np.int32(1 << side)
    for r in lane_range(0, size_of(kind), lane):
        changed |= bits[item, REACHED, r] != scratch.open[r]
    if any_lane(changed):
        answer |= np.int32(CHANGED)
    return answer


@inner_njit
def _octet(rows, w, kind):
    """The bits of tiles 8 w to 8 w + 7 of a block."""
    size = size_of(kind)
    if size == 4:
        return (rows[2 * w] & np.uint32(15)) | ((rows[2 * w + 1] & np.uint32(15)) << np.uint32(4))
    return (rows[8 * w // size] >> np.uint32(8 * w % size)) & np.uint32(255)


@inner_njit
def _spaced(bits):
    """Move bits 0 to 7 to the lowest bits of eight nibbles."""
    bits = (bits | (bits << np.uint32(12))) & np.uint32(0x000F000F)
    bits = (bits | (bits << np.uint32(6))) & np.uint32(0x03030303)
    return (bits | (bits << np.uint32(3))) & np.uint32(0x11111111)


@inner_njit
def direct(visit, field, scratch, lane):
    """See `operations`."""
    wave, size = scratch, size_of(field.kind)
    bit_0, bit_1, bit_2, bit_3 = wave.front[0], wave.front[1], wave.open, wave.bit_1  # of the codes, row by row
    for r in lane_range(0, size, lane):
        north, east, south, west = nearer(visit, field, r)
        goal = np.uint32(0)
        if visit.seed >= 0 and visit.seed // size == r:
            goal = np.uint32(1) << np.uint32(visit.seed % size)
        rest = ~(north | goal)
        east &= rest
        rest &= ~east
        south &= rest
        rest &= ~south
        west &= rest
        none = rest & ~west
        bit_0[r] = east | west | none
        bit_1[r] = south | west | none
        bit_2[r] = none
        bit_3[r] = goal | none
    sync_lanes()
    for w in lane_range(0, size * size // 8, lane):
        code = _spaced(_octet(bit_0, w, field.kind)) | (_spaced(_octet(bit_1, w, field.kind)) << np.uint32(1))
        code |= _spaced(_octet(bit_2, w, field.kind)) << np.uint32(2)
        code |= _spaced(_octet(bit_3, w, field.kind)) << np.uint32(3)
        field.directions[visit.item, w] = code
    sync_lanes()


@inner_njit
def blank_edge(block, item, r, field):
    """Make tile r along each side of an item's block one that is not reached."""
    for side in range(4):
        free = side_bit(field.free[block], side, r, field.kind)
        field.edge[item, side, r] = UNREACHED if free else WALL


@inner_njit
def clear(slot, field, worker):
    """See `operations`."""
    for block in range(worker.number, field.blocks, worker.count):
        item = slot * field.blocks + block
        for r in lane_range(0, size_of(field.kind), worker.lane):
            field.bits[item, BIT_1, r] = np.uint32(0)
            field.bits[item, REACHED, r] = np.uint32(0)
            blank_edge(block, item, r, field)


@inner_njit
def relax(visit, field, raw, scratch, lane):
    """See `operations`; `raw` means nothing here."""
    item, edge, size = visit.item, field.edge, size_of(field.kind)
    flood(visit, field, scratch, edge[item, 0, :0], lane)
    answer = np.int32(0)
    for side in range(4):
        better = False
        for i in lane_range(0, size, lane):
            d = scratch.dist[side, i]
            edge[item, side, i] = d
            # one step to get out, and one that `arrive` has added
            better |= d < UNREACHED and d + np.int32(2) < scratch.arrive[side, i]
        if any_lane(better):
            answer |= np.int32(1 << side)
    for r in lane_range(0, size, lane):
        field.bits[item, BIT_1, r] = scratch.bit_1[r]
        field.bits[item, REACHED, r] = field.free[visit.block, r] & ~scratch.open[r]
    return answer
