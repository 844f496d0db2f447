"""Blocks of a uniform 4-connected map, 32 tiles to a word: a breadth-first search by shifts inside a planning block.

Of a field only two bits a tile are kept: whether the tile is reached, and bit 1 of its distance. Bit 0 follows from the
tile's place, and distances of neighbours differ by one, so two bits tell which neighbour is nearer to the goal.
Distances in full are kept for the border tiles of a block, which is all that neighbouring blocks need.

A `BitField` holds the fields of all goals. In the docstrings B is the side of a block; item = slot * blocks + block.
"""

import functools
from typing import NamedTuple

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ...device import lean_njit
from ...parallel.team import any_lane, lane_range, least_lane, sync_lanes
from ..paths import EAST, NORTH, SOUTH, WEST
from .blocks import CHANGED

BIT_1, REACHED = 0, 1  # of BitField.bits
UNREACHED = np.int32(0x7FFFFFFF)  # a distance
WALL = np.int32(-1)  # in place of a distance
LEVELS_SORTED = 64  # levels whose arrivals from outside are sorted at a time


class BitField(NamedTuple):
    """The fields of all goals on a uniform 4-connected map.

    width, blocks: blocks in a row, blocks in all, with the ring
    free: (blocks, B) uint32; bit c of [b, r]: tile (r, c) of block b is free
    bits: (items, 2, B) uint32; [i, BIT_1, r] bit 1 of the distances, [i, REACHED, r] which tiles are reached
    edge: (items, 4, B) int32 distances of the border tiles, by side NORTH, EAST, SOUTH, WEST; UNREACHED, WALL
    directions: (items, B * B / 8) uint32; codes of 4 bits, tile by tile
    """

    width: int
    blocks: int
    free: np.ndarray
    bits: np.ndarray
    edge: np.ndarray
    directions: np.ndarray


class Wave(NamedTuple):
    """A worker's scratch: a wave that runs through a block.

    front: (2, B + 2) uint32 tiles reached in the last level and in this one; rows 0 and B + 1 stay empty
    open: (B,) uint32 free tiles not yet reached
    bit_1: (B,) uint32 bit 1 of the distances
    inject: (LEVELS_SORTED, 4) uint32 border tiles that the wave enters from outside, by level and side
    arrive: (4, B) int32 when the wave comes from outside; WALL where it cannot pass
    dist: (4, B) int32 distances of border tiles; UNREACHED, WALL
    """

    front: np.ndarray
    open: np.ndarray
    bit_1: np.ndarray
    inject: np.ndarray
    arrive: np.ndarray
    dist: np.ndarray


def new_wave(size):
    """CPU only: the scratch of one thread."""
    return Wave(
        np.zeros((2, size + 2), np.uint32),
        np.zeros(size, np.uint32),
        np.zeros(size, np.uint32),
        np.zeros((LEVELS_SORTED, 4), np.uint32),
        np.zeros((4, size), np.int32),
        np.zeros((4, size), np.int32),
    )


@functools.cache
def side_function(size):
    """-> side_bit for blocks of this size."""
    last = size - 1

    @lean_njit
    def side_bit(rows, side, i):
        """Is tile i along a side set? rows: (B,) uint32"""
        if side == NORTH:
            return (rows[0] >> np.uint32(i)) & np.uint32(1)
        if side == SOUTH:
            return (rows[last] >> np.uint32(i)) & np.uint32(1)
        if side == EAST:
            return (rows[i] >> np.uint32(last)) & np.uint32(1)
        return rows[i] & np.uint32(1)

    return side_bit


@intrinsic
def _lowest_bit(context, bits):
    def build(context, builder, signature, arguments):
        return builder.cttz(arguments[0], cgutils.true_bit)

    return types.uint32(types.uint32), build


@lean_njit
def _put_at_bits(values, bits, value):
    """values[i] = value for every set bit i."""
    while bits != 0:
        values[np.intp(_lowest_bit(np.uint32(bits)))] = value
        bits = np.uint32(bits & (bits - np.uint32(1)))


@functools.cache
def spread_on_cpu(size):
    """-> spread for blocks of this size, by one thread; `update_cuda` has that of a warp."""
    last, side_bit = size - 1, side_function(size)

    @lean_njit
    def next_arrival(wave, level):
        """-> the first level, from `level` on, at which the wave enters an open tile from outside."""
        first = UNREACHED
        for side in range(4):
            for i in range(size):
                arrival = wave.arrive[side, i]
                if level <= arrival < first and side_bit(wave.open, side, i):
                    first = arrival
        return first

    @lean_njit
    def sort_arrivals(wave, level):
        """Fill wave.inject for the levels from `level` on."""
        wave.inject[:] = np.uint32(0)
        for side in range(4):
            for i in range(size):
                after = wave.arrive[side, i] - level
                if 0 <= after < LEVELS_SORTED:
                    wave.inject[after, side] |= np.uint32(1) << np.uint32(i)

    @lean_njit
    def spread(level, wave, out, lane):
        """Run the wave from `level` on, until it has reached all that it can.

        out: (B * B,) int32 distances, or empty
        """
        while level < UNREACHED:
            sort_arrivals(wave, level)
            wave.front[1, 0], wave.front[1, size + 1] = wave.inject[0, NORTH], wave.inject[0, SOUTH]
            t = 0
            alive = True
            while alive and t < LEVELS_SORTED:
                now, before = t & 1, 1 - (t & 1)
                second = np.uint32(0xFFFFFFFF) if (level + t) & 2 else np.uint32(0)
                west, east = wave.inject[t, WEST], wave.inject[t, EAST]
                seen = np.uint32(0)
                for r in range(size):
                    f = wave.front[before, r + 1]
                    n = (f << np.uint32(1)) | (f >> np.uint32(1)) | wave.front[before, r] | wave.front[before, r + 2]
                    n |= ((west >> np.uint32(r)) & np.uint32(1)) | (
                        ((east >> np.uint32(r)) & np.uint32(1)) << np.uint32(last)
                    )
                    n &= wave.open[r]
                    wave.front[now, r + 1] = n
                    wave.open[r] ^= n
                    wave.bit_1[r] |= n & second
                    seen |= n
                if t + 1 < LEVELS_SORTED:  # the next level's arrivals, in the rows beyond the block
                    wave.front[now, 0], wave.front[now, size + 1] = wave.inject[t + 1, NORTH], wave.inject[t + 1, SOUTH]
                alive = seen != 0
                if alive:
                    note(level + t, now, seen, wave, out)
                    t += 1
            if alive:
                level += t
            else:
                level = next_arrival(wave, level + t)
                wave.front[1, 1 : size + 1] = np.uint32(0)

    @lean_njit
    def note(distance, now, seen, wave, out):
        """Note the distance of the border tiles just reached; of all tiles in `out`, unless it is empty."""
        _put_at_bits(wave.dist[NORTH], wave.front[now, 1], distance)
        _put_at_bits(wave.dist[SOUTH], wave.front[now, size], distance)
        if seen & np.uint32(1):
            for i in range(size):
                wave.dist[WEST, i] = distance if wave.front[now, i + 1] & np.uint32(1) else wave.dist[WEST, i]
        if (seen >> np.uint32(last)) & np.uint32(1):
            for i in range(size):
                wave.dist[EAST, i] = (
                    distance if (wave.front[now, i + 1] >> np.uint32(last)) & np.uint32(1) else wave.dist[EAST, i]
                )
        if len(out) > 0:
            for r in range(size):
                for c in range(size):
                    if (wave.front[now, r + 1] >> np.uint32(c)) & np.uint32(1):
                        out[r * size + c] = distance

    return spread


@functools.cache
def flood_function(size, make_spread=spread_on_cpu):
    """-> flood for blocks of this size."""
    side_bit, spread = side_function(size), make_spread(size)

    @lean_njit
    def outside(item, width, side):
        """-> the item beyond a side of a block, and its side that touches the block"""
        if side == NORTH:
            return item - width, SOUTH
        if side == EAST:
            return item + 1, WEST
        if side == SOUTH:
            return item + width, NORTH
        return item - 1, EAST

    @lean_njit
    def enter(visit, field, wave, lane):
        """Set wave.arrive and wave.dist by the tiles just outside the block -> when the wave first enters it"""
        first = UNREACHED
        for side in range(4):
            other, touching = outside(visit.item, field.width, side)
            for i in lane_range(0, size, lane):
                outer, free_here = field.edge[other, touching, i], side_bit(wave.open, side, i) != 0
                passable = free_here and outer != WALL
                wave.dist[side, i] = UNREACHED if free_here else WALL
                wave.arrive[side, i] = (outer + np.int32(1) if outer < UNREACHED else UNREACHED) if passable else WALL
                if passable and outer < UNREACHED:
                    first = min(first, outer + np.int32(1))
        return least_lane(first, first)[0]

    @lean_njit
    def begin_at(seed, wave, out):
        """The goal is the tile `seed`: the wave has reached it and nothing else."""
        row = seed // size
        wave.front[1, 1 + row] = np.uint32(1) << np.uint32(seed % size)
        wave.open[row] ^= wave.front[1, 1 + row]
        for side in range(4):
            for i in range(size):
                if side_bit(wave.front[1, 1:], side, i):
                    wave.dist[side, i] = 0
        if len(out) > 0:
            out[seed] = 0

    @lean_njit
    def flood(visit, field, wave, out, lane):
        """Find the distances inside a block from those just outside it.

        out: (B * B,) int32 gets all of them, or empty
        """
        for r in lane_range(0, size, lane):
            wave.open[r] = field.free[visit.block, r]
            wave.bit_1[r] = np.uint32(0)
            wave.front[1, r + 1] = np.uint32(0)
        sync_lanes()
        first = enter(visit, field, wave, lane)
        if visit.seed >= 0:
            sync_lanes()
            first = np.int32(1)
            if lane == 0:
                begin_at(visit.seed, wave, out)
            sync_lanes()
        spread(first, wave, out, lane)

    return flood


@functools.cache
def nearer_function(size):
    """-> nearer for blocks of this size."""
    last = size - 1

    @lean_njit
    def nearer(visit, field, r):
        """-> for each move 0 to 3, the tiles of row r whose neighbour that way is one step nearer to the goal."""
        item, width, bits = visit.item, field.width, field.bits
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

    return nearer


@functools.cache
def withdraw_function(size):
    """-> withdraw for blocks of this size."""
    side_bit, nearer = side_function(size), nearer_function(size)

    @lean_njit
    def drop(visit, field, wave, lane):
        """Take back the tiles of the block that nothing supports, until all that are left are supported."""
        item, bits = visit.item, field.bits
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

    @lean_njit
    def withdraw(visit, field, wave, lane):
        """Take back the distances of tiles that no nearer neighbour supports any more.

        Distances fall along supports, so there are no circles: what is left is exact.
        -> bits of the neighbours (0 to 3) that touch a tile taken back, and CHANGED when there is one
        """
        item, bits = visit.item, field.bits
        for r in lane_range(0, size, lane):
            wave.open[r] = bits[item, REACHED, r]  # the tiles reached before
        sync_lanes()
        drop(visit, field, wave, lane)
        answer = np.int32(0)
        changed = False
        for side in range(4):
            gone = False
            for i in lane_range(0, size, lane):
                if not side_bit(field.free[visit.block], side, i):
                    field.edge[item, side, i] = WALL
                elif not side_bit(bits[item, REACHED], side, i):
                    field.edge[item, side, i] = UNREACHED
                gone |= side_bit(wave.open, side, i) != side_bit(bits[item, REACHED], side, i)
            if any_lane(gone):
                answer |= np.int32(1 << side)
        for r in lane_range(0, size, lane):
            changed |= bits[item, REACHED, r] != wave.open[r]
        if any_lane(changed):
            answer |= np.int32(CHANGED)
        return answer

    return withdraw


@functools.cache
def direct_function(size):
    """-> direct for blocks of this size."""
    nearer = nearer_function(size)

    @lean_njit
    def octet(rows, w):
        """The bits of tiles 8 w to 8 w + 7 of a block."""
        if size == 4:
            return (rows[2 * w] & np.uint32(15)) | ((rows[2 * w + 1] & np.uint32(15)) << np.uint32(4))
        return (rows[8 * w // size] >> np.uint32(8 * w % size)) & np.uint32(255)

    @lean_njit
    def spaced(bits):
        """Move bits 0 to 7 to the lowest bits of eight nibbles."""
        bits = (bits | (bits << np.uint32(12))) & np.uint32(0x000F000F)
        bits = (bits | (bits << np.uint32(6))) & np.uint32(0x03030303)
        return (bits | (bits << np.uint32(3))) & np.uint32(0x11111111)

    @lean_njit
    def direct(visit, field, wave, lane):
        """Write the block's directions: of each tile the first move of 0 to 3 to a nearer tile, AT_GOAL or NOWHERE."""
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
            code = spaced(octet(bit_0, w)) | (spaced(octet(bit_1, w)) << np.uint32(1))
            code |= (spaced(octet(bit_2, w)) << np.uint32(2)) | (spaced(octet(bit_3, w)) << np.uint32(3))
            field.directions[visit.item, w] = code
        sync_lanes()

    return direct


@functools.cache
def bit_operations(size, make_spread=spread_on_cpu):
    """-> clear, relax, withdraw, direct for blocks of this size; each is called by all lanes of a worker.

    make_spread: size -> spread(level, wave, out, lane), see `spread_on_cpu`
    """
    side_bit, flood = side_function(size), flood_function(size, make_spread)

    @lean_njit
    def clear(slot, field, worker):
        """Make the field of a slot one without any distance: each worker its share."""
        for block in range(worker.number, field.blocks, worker.count):
            item = slot * field.blocks + block
            for r in lane_range(0, size, worker.lane):
                field.bits[item, BIT_1, r] = np.uint32(0)
                field.bits[item, REACHED, r] = np.uint32(0)
                for side in range(4):
                    field.edge[item, side, r] = UNREACHED if side_bit(field.free[block], side, r) else WALL

    @lean_njit
    def relax(visit, field, raw, wave, lane):
        """Find the exact distances inside a block, given its neighbours' border tiles. raw: without meaning here

        -> bits of the neighbours (0 to 3) that get better by it
        """
        item, edge = visit.item, field.edge
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

    return clear, relax, withdraw_function(size), direct_function(size)
