"""Relaxation of a block of a uniform 4-connected map: a breadth-first search by shifts, 32 tiles to a word.

A wave runs level by level through the block's free tiles. It begins at the goal, or enters from outside: the distances
of the neighbouring blocks' border tiles say when. A CPU thread goes through the rows of a level one after the other; on
a CUDA warp each lane has a row in registers.
"""

from typing import NamedTuple

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ...parallel.team import any_lane, from_lane, lane_range, least_lane, sync_lanes, vote_lanes
from ..paths import COL_MOVES, EAST, NORTH, ROW_MOVES, SOUTH, WEST
from .bits import BIT_1, REACHED, UNREACHED, WALL, side_bit
from .blocks import Kind, inner_njit, kind_of, size_of

LEVELS_SORTED = 64  # levels whose arrivals from outside are sorted at a time
LEVELS_ON_WARP = 4  # levels between two checks whether the wave has died out


class Wave(NamedTuple):
    """A worker's scratch: a wave that runs through a block."""

    kind: Kind  # of the block
    front: np.ndarray  # (2, B + 2) uint32 tiles reached in the last level and in this one; rows 0, B + 1 stay empty
    open: np.ndarray  # (B,) uint32 free tiles not yet reached
    bit_1: np.ndarray  # (B,) uint32 bit 1 of the distances
    # (LEVELS_SORTED, 4) uint32 border tiles that it enters from outside, by level and side; None on CUDA
    inject: np.ndarray | None
    arrive: np.ndarray  # (4, B) int32 when it comes from outside; WALL where it cannot pass
    dist: np.ndarray  # (4, B) int32 distances of border tiles; UNREACHED, WALL


def new_wave(size):
    """CPU only: the scratch of one thread."""
    rows, sorted_ = np.zeros((2, size), np.uint32), np.zeros((LEVELS_SORTED, 4), np.uint32)
    front, sides = np.zeros((2, size + 2), np.uint32), np.zeros((2, 4, size), np.int32)
    return Wave(kind_of(size, 4), front, *rows, sorted_, *sides)


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


@inner_njit
def spread(level, wave, inject, out, lane):
    """Run the wave from `level` on, until it has reached all that it can.

    inject: wave.inject, None on CUDA;  out: (B * B,) int32 gets the distances, or empty. CUDA does not write it
    """
    if inject is not None:
        _spread_on_thread(level, wave, out)
    else:
        _spread_on_warp(np.int32(level), wave, lane)


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
def _spread_on_warp(level, wave, lane):
    """A row to a lane, all in registers; rows reach each other by shuffles."""
    last = np.int32(size_of(wave.kind) - 1)
    one, nothing = np.uint32(1), np.uint32(0)
    row, above, below = min(lane, last), max(lane - 1, 0), min(lane + 1, last)
    bit, edge = np.uint32(one << np.uint32(row)), np.uint32(one << np.uint32(last))
    own = np.uint32(0xFFFFFFFF) if lane <= last else nothing
    open_, bit_1 = np.uint32(wave.open[row] & own), np.uint32(wave.bit_1[row] & own)
    front = np.uint32(wave.front[1, row + 1] & own)
    north = wave.arrive[NORTH, row] if lane <= last else UNREACHED
    east = wave.arrive[EAST, row] if lane <= last else UNREACHED
    south = wave.arrive[SOUTH, row] if lane <= last else UNREACHED
    west = wave.arrive[WEST, row] if lane <= last else UNREACHED
    d_north, d_east = wave.dist[NORTH, row], wave.dist[EAST, row]
    d_south, d_west = wave.dist[SOUTH, row], wave.dist[WEST, row]
    while level < UNREACHED:
        alive = True
        while alive:
            for _ in range(LEVELS_ON_WARP):
                from_north, from_south = np.uint32(vote_lanes(north == level)), np.uint32(vote_lanes(south == level))
                up, down = row_of(front, above), row_of(front, below)
                if lane == 0:
                    up = from_north
                if lane == last:
                    down = from_south
                new = np.uint32((front << one) | (front >> one) | up | down)
                if west == level:
                    new = np.uint32(new | one)
                if east == level:
                    new = np.uint32(new | edge)
                front = np.uint32(new & open_)
                open_ = np.uint32(open_ ^ front)
                if level & np.int32(2):
                    bit_1 = np.uint32(bit_1 | front)
                if row_of(front, 0) & bit:
                    d_north = level
                if row_of(front, last) & bit:
                    d_south = level
                if front & one:
                    d_west = level
                if front & edge:
                    d_east = level
                level = np.int32(level + np.int32(1))
            alive = any_lane(front != nothing)
        level = _next_on_warp(level, row, last, open_, (north, east, south, west))
    if lane <= last:
        wave.open[row], wave.bit_1[row] = open_, bit_1
        wave.dist[NORTH, row], wave.dist[EAST, row] = d_north, d_east
        wave.dist[SOUTH, row], wave.dist[WEST, row] = d_south, d_west
    sync_lanes()


@inner_njit
def row_of(bits, lane):
    """-> the bits of another lane's row"""
    return np.uint32(from_lane(np.int32(bits), np.int32(lane)))


@inner_njit
def _next_on_warp(level, row, last, open_, arrivals):
    """-> when the wave, which has died out, next arrives at a tile that is still open"""
    north, east, south, west = arrivals
    one, least = np.uint32(1), UNREACHED
    top, bottom = row_of(open_, 0), row_of(open_, last)
    if north >= level and (top >> np.uint32(row)) & one:
        least = min(least, north)
    if south >= level and (bottom >> np.uint32(row)) & one:
        least = min(least, south)
    if west >= level and open_ & one:
        least = min(least, west)
    if east >= level and (open_ >> np.uint32(last)) & one:
        least = min(least, east)
    return np.int32(least_lane(least, least)[0])


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
    spread(first, wave, wave.inject, out, lane)


@inner_njit
def relax_by_wave(visit, field, wave, lane):
    """See `operations.relax`."""
    item, edge, size = visit.item, field.edge, size_of(field.kind)
    flood(visit, field, wave, edge[item, 0, :0], lane)
    answer = np.int32(0)
    for side in range(4):
        better = False
        for i in lane_range(0, size, lane):
            d = wave.dist[side, i]
            edge[item, side, i] = d
            # one step to get out, and one that `arrive` has added
            better |= d < UNREACHED and d + np.int32(2) < wave.arrive[side, i]
        if any_lane(better):
            answer |= np.int32(1 << side)
    for r in lane_range(0, size, lane):
        field.bits[item, BIT_1, r] = wave.bit_1[r]
        field.bits[item, REACHED, r] = field.free[visit.block, r] & ~wave.open[r]
    return answer
