"""Blocks of a uniform 4-connected map, 32 tiles to a word: a breadth-first search by shifts inside a planning block.

Of a field only two bits a tile are kept: whether the tile is reached, and bit 1 of its distance. Bit 0 follows from the
tile's place, and distances of neighbours differ by one, so two bits tell which neighbour is nearer to the goal. Distances
in full are kept for the border tiles of a block, which is all that neighbouring blocks need.

Arrays, for items = goals x blocks (item = goal's slot x blocks + block):
    free (blocks, B) uint32     bit c of [b, r]: tile (r, c) of the block is free
    wave (items, 2, B) uint32   [i, ONE, r] bit 1 of the distances; [i, REACHED, r] which tiles are reached
    edge (items, 4, B) int32    distances of the border tiles: north row, east column, south row, west column; FAR where not
                                reached, WALL where blocked
"""

import functools
from typing import NamedTuple

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ..device import njit
from ..team import any_lane, lane_range, least_lane, sync_lanes

ONE, REACHED = 0, 1
NORTH, EAST, SOUTH, WEST = 0, 1, 2, 3
FAR = np.int32(0x7FFFFFFF)
WALL = np.int32(-1)
CHANGED = 256  # beside the bits 0 to 7 of neighbours
WINDOW = 64  # levels whose arrivals from outside are sorted at a time
AT_GOAL, NOWHERE = 8, 15  # direction codes beside the moves 0 to 7


class BitScratch(NamedTuple):
    """What a worker needs.

    front: (2, B + 2) uint32 the tiles reached in the last level and in this one; rows 0 and B + 1 stay empty
    open: (B,) uint32 free tiles not yet reached
    one: (B,) uint32 bit 1 of the distances
    inject: (WINDOW, 4) uint32 border tiles that the wave enters from outside, by level and side
    arrive: (4, B) int32 when the wave comes from outside; WALL where it cannot pass
    dist: (4, B) int32 distances of border tiles, FAR, WALL
    """

    front: np.ndarray
    open: np.ndarray
    one: np.ndarray
    inject: np.ndarray
    arrive: np.ndarray
    dist: np.ndarray


def bit_scratch(size):
    """CPU only: the scratch of one thread."""
    return BitScratch(
        np.zeros((2, size + 2), np.uint32),
        np.zeros(size, np.uint32),
        np.zeros(size, np.uint32),
        np.zeros((WINDOW, 4), np.uint32),
        np.zeros((4, size), np.int32),
        np.zeros((4, size), np.int32),
    )


@functools.cache
def side_function(size):
    """-> side_bit for blocks of this size."""
    last = size - 1

    @njit
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


@njit
def _put_at_bits(A, bits, value):
    """A[i] = value for every set bit i."""
    while bits != 0:
        A[np.intp(_lowest_bit(np.uint32(bits)))] = value
        bits = np.uint32(bits & (bits - np.uint32(1)))


@functools.cache
def spread_on_cpu(size):
    """-> spread for blocks of this size, by one thread; `block_kernels` has that of a warp."""
    last, side_bit = size - 1, side_function(size)

    @njit
    def next_arrival(S, level):
        """The first time from `level` on that the wave enters an open tile from outside."""
        first = FAR
        for side in range(4):
            for i in range(size):
                arrival = S.arrive[side, i]
                if level <= arrival < first and side_bit(S.open, side, i):
                    first = arrival
        return first

    @njit
    def sort_arrivals(S, level):
        """S.inject of the levels from `level` on."""
        S.inject[:] = np.uint32(0)
        for side in range(4):
            for i in range(size):
                after = S.arrive[side, i] - level
                if 0 <= after < WINDOW:
                    S.inject[after, side] |= np.uint32(1) << np.uint32(i)

    @njit
    def spread(level, S, out, lane):
        """The wave from `level` on, until all that it can reach is reached. out: (B * B,) int32 distances, or empty"""
        while level < FAR:
            sort_arrivals(S, level)
            S.front[1, 0], S.front[1, size + 1] = S.inject[0, NORTH], S.inject[0, SOUTH]
            t = 0
            alive = True
            while alive and t < WINDOW:
                now, before = t & 1, 1 - (t & 1)
                second = np.uint32(0xFFFFFFFF) if (level + t) & 2 else np.uint32(0)
                west, east = S.inject[t, WEST], S.inject[t, EAST]
                seen = np.uint32(0)
                for r in range(size):
                    f = S.front[before, r + 1]
                    n = (f << np.uint32(1)) | (f >> np.uint32(1)) | S.front[before, r] | S.front[before, r + 2]
                    n |= ((west >> np.uint32(r)) & np.uint32(1)) | (((east >> np.uint32(r)) & np.uint32(1)) << np.uint32(last))
                    n &= S.open[r]
                    S.front[now, r + 1] = n
                    S.open[r] ^= n
                    S.one[r] |= n & second
                    seen |= n
                if t + 1 < WINDOW:  # the next level's arrivals, in the rows beyond the block
                    S.front[now, 0], S.front[now, size + 1] = S.inject[t + 1, NORTH], S.inject[t + 1, SOUTH]
                alive = seen != 0
                if alive:
                    note(level + t, now, seen, S, out)
                    t += 1
            if alive:
                level += t
            else:
                level = next_arrival(S, level + t)
                S.front[1, 1 : size + 1] = np.uint32(0)

    @njit
    def note(distance, now, seen, S, out):
        """Write down the distance of the border tiles reached just now; of all tiles into `out`, unless it is empty."""
        _put_at_bits(S.dist[NORTH], S.front[now, 1], distance)
        _put_at_bits(S.dist[SOUTH], S.front[now, size], distance)
        if seen & np.uint32(1):
            for i in range(size):
                S.dist[WEST, i] = distance if S.front[now, i + 1] & np.uint32(1) else S.dist[WEST, i]
        if (seen >> np.uint32(last)) & np.uint32(1):
            for i in range(size):
                S.dist[EAST, i] = distance if (S.front[now, i + 1] >> np.uint32(last)) & np.uint32(1) else S.dist[EAST, i]
        if len(out) > 0:
            for r in range(size):
                for c in range(size):
                    if (S.front[now, r + 1] >> np.uint32(c)) & np.uint32(1):
                        out[r * size + c] = distance

    return spread


@functools.cache
def bit_operations(size, make_spread=spread_on_cpu):
    """-> relax, withdraw, direct, flood for blocks of this size; each is called by all lanes of a worker.

    make_spread: size -> spread(level, S, out, lane), see `spread_on_cpu`
    """
    last, side_bit, spread = size - 1, side_function(size), make_spread(size)

    @njit
    def outside(item, width, side):
        """-> the item beyond a side, and its side that touches"""
        if side == NORTH:
            return item - width, SOUTH
        if side == EAST:
            return item + 1, WEST
        if side == SOUTH:
            return item + width, NORTH
        return item - 1, EAST

    @njit
    def flood(item, block, width, seed, free, edge, S, out, lane):
        """The distances inside a block from those just outside it."""
        for r in lane_range(0, size, lane):
            S.open[r] = free[block, r]
            S.one[r] = np.uint32(0)
            S.front[1, r + 1] = np.uint32(0)
        sync_lanes()
        first = FAR
        for side in range(4):
            other, touching = outside(item, width, side)
            for i in lane_range(0, size, lane):
                outer, free_here = edge[other, touching, i], side_bit(S.open, side, i) != 0
                passable = free_here and outer != WALL
                S.dist[side, i] = FAR if free_here else WALL
                S.arrive[side, i] = (outer + np.int32(1) if outer < FAR else FAR) if passable else WALL
                if passable and outer < FAR:
                    first = min(first, outer + np.int32(1))
        first = least_lane(first, first)[0]
        if seed >= 0:
            sync_lanes()
            first = np.int32(1)
            if lane == 0:
                S.front[1, 1 + seed // size] = np.uint32(1) << np.uint32(seed % size)
                S.open[seed // size] ^= S.front[1, 1 + seed // size]
                for side in range(4):
                    for i in range(size):
                        if side_bit(S.front[1, 1:], side, i):
                            S.dist[side, i] = 0
                if len(out) > 0:
                    out[seed] = 0
            sync_lanes()
        spread(first, S, out, lane)

    @njit
    def relax(item, block, width, seed, free, wave, edge, S, lane):
        """Exact distances inside a block, given its neighbours' border tiles.

        -> bits of the neighbours (0 to 3) that get better by it
        """
        flood(item, block, width, seed, free, edge, S, edge[item, 0, :0], lane)
        answer = np.int32(0)
        for side in range(4):
            better = False
            for i in lane_range(0, size, lane):
                d = S.dist[side, i]
                edge[item, side, i] = d
                better |= d < FAR and d + np.int32(2) < S.arrive[side, i]  # one step to get out, one that `arrive` has added
            if any_lane(better):
                answer |= np.int32(1 << side)
        for r in lane_range(0, size, lane):
            wave[item, ONE, r] = S.one[r]
            wave[item, REACHED, r] = free[block, r] & ~S.open[r]
        return answer

    @njit
    def nearer(item, block, width, odd, wave, r):
        """-> for each move 0 to 3, the tiles of row r whose neighbour that way is one step nearer to the goal.

        odd: parity of the block's tile (0, 0)'s distance
        """
        one, reached = wave[item, ONE, r], wave[item, REACHED, r]
        parity = np.uint32(0x55555555) if (r + odd) & 1 else np.uint32(0xAAAAAAAA)  # tiles at an odd distance
        want = one ^ ~parity
        up, up_row = (item, r - 1) if r > 0 else (item - width, last)
        down, down_row = (item, r + 1) if r < last else (item + width, 0)
        north = wave[up, REACHED, up_row] & ~(wave[up, ONE, up_row] ^ want)
        south = wave[down, REACHED, down_row] & ~(wave[down, ONE, down_row] ^ want)
        carry = np.uint32(last)
        east_one = (one >> np.uint32(1)) | ((wave[item + 1, ONE, r] & np.uint32(1)) << carry)
        east_reached = (reached >> np.uint32(1)) | ((wave[item + 1, REACHED, r] & np.uint32(1)) << carry)
        west_one = (one << np.uint32(1)) | ((wave[item - 1, ONE, r] >> carry) & np.uint32(1))
        west_reached = (reached << np.uint32(1)) | ((wave[item - 1, REACHED, r] >> carry) & np.uint32(1))
        east = east_reached & ~(east_one ^ want)
        west = west_reached & ~(west_one ^ want)
        return north & reached, east & reached, south & reached, west & reached

    @njit
    def withdraw(item, block, width, seed, odd, free, wave, edge, S, lane):
        """Take back the distances of tiles that no nearer neighbour supports any more.

        Distances fall along supports, so there are no circles: what is left is exact.
        -> bits of the neighbours (0 to 3) that touch a tile taken back, and CHANGED when there is one
        """
        for r in lane_range(0, size, lane):
            S.open[r] = wave[item, REACHED, r]
        sync_lanes()
        again = True
        while again:
            again = False
            for r in lane_range(0, size, lane):
                north, east, south, west = nearer(item, block, width, odd, wave, r)
                held = north | east | south | west
                if seed >= 0 and seed // size == r:
                    held |= np.uint32(1) << np.uint32(seed % size)
                held &= free[block, r] & wave[item, REACHED, r]
                again |= held != wave[item, REACHED, r]
                S.one[r] = held
            sync_lanes()
            for r in lane_range(0, size, lane):
                wave[item, REACHED, r] = S.one[r]
                wave[item, ONE, r] &= S.one[r]
            sync_lanes()
            again = any_lane(again)
        answer = np.int32(0)
        changed = False
        for side in range(4):
            gone = False
            for i in lane_range(0, size, lane):
                if not side_bit(free[block], side, i):
                    edge[item, side, i] = WALL
                elif not side_bit(wave[item, REACHED], side, i):
                    edge[item, side, i] = FAR
                gone |= side_bit(S.open, side, i) != side_bit(wave[item, REACHED], side, i)
            if any_lane(gone):
                answer |= np.int32(1 << side)
        for r in lane_range(0, size, lane):
            changed |= wave[item, REACHED, r] != S.open[r]
        if any_lane(changed):
            answer |= np.int32(CHANGED)
        return answer

    @njit
    def direct(item, block, width, seed, odd, wave, directions, S, lane):
        """directions[item]: a code of 4 bits for each tile: the first move of 0 to 3 to a nearer tile, AT_GOAL, NOWHERE."""
        for r in lane_range(0, size, lane):
            north, east, south, west = nearer(item, block, width, odd, wave, r)
            goal = np.uint32(0)
            if seed >= 0 and seed // size == r:
                goal = np.uint32(1) << np.uint32(seed % size)
            rest = ~(north | goal)
            east &= rest
            rest &= ~east
            south &= rest
            rest &= ~south
            west &= rest
            none = rest & ~west
            S.front[0, r] = east | west | none
            S.front[1, r] = south | west | none
            S.open[r] = none
            S.one[r] = goal | none
        sync_lanes()
        for w in lane_range(0, size * size // 8, lane):
            code = _spaced(_octet(S.front[0], w)) | (_spaced(_octet(S.front[1], w)) << np.uint32(1))
            code |= (_spaced(_octet(S.open, w)) << np.uint32(2)) | (_spaced(_octet(S.one, w)) << np.uint32(3))
            directions[item, w] = code
        sync_lanes()

    @njit
    def _octet(rows, w):
        """The bits of tiles 8 w to 8 w + 7 of a block."""
        if size == 4:
            return (rows[2 * w] & np.uint32(15)) | ((rows[2 * w + 1] & np.uint32(15)) << np.uint32(4))
        return (rows[8 * w // size] >> np.uint32(8 * w % size)) & np.uint32(255)

    @njit
    def _spaced(bits):
        """Bits 0 to 7 to the lowest bits of eight nibbles."""
        bits = (bits | (bits << np.uint32(12))) & np.uint32(0x000F000F)
        bits = (bits | (bits << np.uint32(6))) & np.uint32(0x03030303)
        return (bits | (bits << np.uint32(3))) & np.uint32(0x11111111)

    return relax, withdraw, direct, flood
