"""Blocks of weighted and 8-connected maps: exact relaxation by sweeps in four directions, of the lines beside a change only.

Costs are integers, so that every order of relaxation ends at the same values: tile costs on 4-connected maps, units of
1 / STRAIGHT_8 tile lengths on 8-connected ones. DIAGONAL_8 / STRAIGHT_8 is a convergent of sqrt(2), off by 4.7e-14: no
fraction of smaller numbers is nearer. A path enters a tile once, so that none on a map of MOST_TILES costs NEVER.

Arrays, padded by one blocked tile on every side (tile (r, c) of the map is [r + 1, c + 1]) and to whole blocks:
    cost (rows, cols) uint8             of entering a tile; 0 blocked
    value (goals, rows, cols) int64     cost-to-go in units; NEVER where the goal is not reached
"""

import functools
from typing import NamedTuple

import numpy as np

from ..device import njit
from ..team import any_lane, join_bits, lane_count, lane_range, sync_lanes
from .agents import COL_MOVES, ROW_MOVES
from .bit_blocks import AT_GOAL, CHANGED, NOWHERE

NEVER = np.int64(1) << np.int64(61)  # three of them can be added
ONE = np.uint32(1)
STRAIGHT_8 = 2744210  # units of a tile length on 8-connected maps
DIAGONAL_8 = 3880899  # of a diagonal; 255 of them fit into 32 bits


def unit_of(connectivity):
    """Units of a tile length."""
    return 1 if connectivity == 4 else STRAIGHT_8


class ValueScratch(NamedTuple):
    """What a worker needs: a block with the tiles around it.

    value: (B + 2, B + 2) int64
    cost: (B + 2, B + 2) uint8
    """

    value: np.ndarray
    cost: np.ndarray


def value_scratch(size):
    """CPU only: the scratch of one thread."""
    return ValueScratch(np.zeros((size + 2, size + 2), np.int64), np.zeros((size + 2, size + 2), np.uint8))


@functools.cache
def step_functions(connectivity):
    """-> barrier, through: of tiles of S, a ValueScratch or anything with such `value` and `cost`."""
    straight, diagonal = unit_of(connectivity), DIAGONAL_8

    @njit
    def barrier(S, r, c):
        """0 of a free tile, else NEVER."""
        return np.int64(0) if S.cost[np.uintp(r), np.uintp(c)] != 0 else NEVER

    @njit
    def through(S, r, c, dr, dc):
        """Cost-to-go of tile (r, c) by way of its neighbour (r + dr, c + dc); NEVER or more where that is no move."""
        row, col = np.uintp(r + dr), np.uintp(c + dc)  # unsigned: Numba looks whether other indices are negative
        price = np.int64(S.cost[row, col])
        by = S.value[row, col]  # NEVER of a blocked tile
        if dr != 0 and dc != 0:
            return by + price * diagonal + (barrier(S, r + dr, c) | barrier(S, r, c + dc))
        return by + price * straight

    return barrier, through


@njit
def bit_of(line):
    return np.uint32(ONE << np.uint32(line))


def _lower_function(size, connectivity, rows):
    """-> lower, of rows or of columns"""
    barrier, through = step_functions(connectivity)

    @njit
    def lower_tile(S, line, step, i):
        """-> does tile i of the line get better?"""
        if rows:
            r, c = line + 1, i + 1
            best = through(S, r, c, step, 0)
            if connectivity == 8:
                best = min(best, through(S, r, c, step, -1), through(S, r, c, step, 1))
        else:
            r, c = i + 1, line + 1
            best = through(S, r, c, 0, step)
            if connectivity == 8:
                best = min(best, through(S, r, c, -1, step), through(S, r, c, 1, step))
        at = np.uintp(r), np.uintp(c)
        before = S.value[at]
        best |= barrier(S, r, c)
        S.value[at] = min(before, best)
        return best < before

    @njit
    def lower(S, line, step, lane):
        """The tiles of a line get better by way of the line `step` beside it -> bits of those that do"""
        better = np.uint32(0)
        if lane_count() == 1:
            for i in range(size):
                better = np.uint32(better | np.uint32(lower_tile(S, line, step, i)) << np.uint32(i))
        elif lane < size:
            better = np.uint32(lower_tile(S, line, step, lane))
        better = join_bits(better)
        sync_lanes()
        return better

    return lower


@functools.cache
def value_operations(size, connectivity):
    """-> relax, withdraw, direct for blocks of this size; each is called by all lanes of a worker."""
    barrier, through = step_functions(connectivity)
    every, wide = np.uint32((1 << size) - 1), size + 2

    @njit
    def load(block, slot, width, cost, value, S, lane):
        """-> row and column of the block's corner in the padded arrays, one tile outside the block"""
        row, col = (block // width - 1) * size, (block % width - 1) * size
        if lane_count() == 1:
            for r in range(wide):
                for c in range(wide):
                    S.value[r, c], S.cost[r, c] = value[slot, row + r, col + c], cost[row + r, col + c]
        else:
            for tile in range(lane, wide * wide, lane_count()):  # one loop, so that each lane has several reads on their way
                r = np.int64(np.uint32(tile) // np.uint32(wide))
                c = tile - r * wide
                at, from_row, from_col = (np.uintp(r), np.uintp(c)), np.uintp(row + r), np.uintp(col + c)
                S.value[at], S.cost[at] = value[np.uintp(slot), from_row, from_col], cost[from_row, from_col]
        sync_lanes()
        return row, col

    @njit
    def beside(better, on, back):
        """Lines, or their tiles, got better: the lines on and back from there may follow."""
        return np.uint32((on | better << ONE) & every), np.uint32(back | better >> ONE)

    def sweep_function(rows, step):
        lower = _lower_function(size, connectivity, rows)

        @njit
        def sweep(S, ahead, behind, right, left, lane):
            """Lower lines one after the other, by way of the line before each. Bits of the lines that may get better by way of the line
            before them: ahead on this way, behind on the way back; right, left: of the lines across, on their ways.
            -> the same afterwards
            """
            line = 0 if step > 0 else size - 1
            while ahead:
                bit = bit_of(line)
                if ahead & bit:
                    ahead = np.uint32(ahead ^ bit)
                    better = lower(S, line, -step, lane)
                    if better:
                        if step > 0:
                            ahead, behind = beside(bit, ahead, behind)
                        else:
                            behind, ahead = beside(bit, behind, ahead)
                        right, left = beside(better, right, left)
                line += step
            return ahead, behind, right, left

        return sweep

    sweep_south, sweep_north = sweep_function(True, 1), sweep_function(True, -1)
    sweep_east, sweep_west = sweep_function(False, 1), sweep_function(False, -1)

    @njit
    def settle(S, south, east, north, west, lane):
        """Lower rows and columns until no tile gets better. south, ...: bits of the lines that may get better by way of the line
        before them on the way south, ..."""
        while south | east | north | west:
            south, north, east, west = sweep_south(S, south, north, east, west, lane)
            east, west, south, north = sweep_east(S, east, west, south, north, lane)
            north, south, east, west = sweep_north(S, north, south, east, west, lane)
            west, east, south, north = sweep_west(S, west, east, south, north, lane)

    @njit
    def store(row, col, slot, value, S, lane):
        for r in range(1, size + 1):
            for c in lane_range(1, size + 1, lane):
                value[slot, row + r, col + c] = S.value[r, c]

    @njit
    def relax(block, slot, width, seed, raw, cost, value, S, lane):
        """Exact values inside a block, given the tiles around it; raw: those inside need not fit each other.

        -> bits of the neighbours (move codes) that get better by it
        """
        row, col = load(block, slot, width, cost, value, S, lane)
        first, last = (every, every) if raw else (bit_of(0), bit_of(size - 1))
        south, east, north, west = first, first, last, last
        if seed >= 0:
            if lane == 0:
                S.value[1 + seed // size, 1 + seed % size] = np.int64(0)
            south, north = beside(bit_of(seed // size), south, north)
            east, west = beside(bit_of(seed % size), east, west)
            sync_lanes()
        settle(S, south, east, north, west, lane)
        store(row, col, slot, value, S, lane)
        north, east, south, west = False, False, False, False
        for i in lane_range(1, size + 1, lane):
            north |= S.cost[0, i] != 0 and inner_of_row(S, 0, i, 1) < S.value[0, i]
            south |= S.cost[size + 1, i] != 0 and inner_of_row(S, size + 1, i, -1) < S.value[size + 1, i]
            west |= S.cost[i, 0] != 0 and inner_of_col(S, i, 0, 1) < S.value[i, 0]
            east |= S.cost[i, size + 1] != 0 and inner_of_col(S, i, size + 1, -1) < S.value[i, size + 1]
        answer = np.int32(1 * any_lane(north) + 2 * any_lane(east) + 4 * any_lane(south) + 8 * any_lane(west))
        if connectivity == 8:
            far = size + 1
            answer |= np.int32(16 * corner(S, 0, far, 1, -1) + 32 * corner(S, far, far, -1, -1))
            answer |= np.int32(64 * corner(S, far, 0, -1, 1) + 128 * corner(S, 0, 0, 1, 1))
        sync_lanes()
        return answer

    @njit
    def inner_of_row(S, r, c, dr):
        """The least of `through` by the block's own tiles in row r + dr, for tile (r, c) just outside."""
        best = through(S, r, c, dr, 0)
        if connectivity == 8 and c > 1:
            best = min(best, through(S, r, c, dr, -1))
        if connectivity == 8 and c < size:
            best = min(best, through(S, r, c, dr, 1))
        return best

    @njit
    def inner_of_col(S, r, c, dc):
        best = through(S, r, c, 0, dc)
        if connectivity == 8 and r > 1:
            best = min(best, through(S, r, c, -1, dc))
        if connectivity == 8 and r < size:
            best = min(best, through(S, r, c, 1, dc))
        return best

    @njit
    def corner(S, r, c, dr, dc):
        return 1 if S.cost[r, c] != 0 and through(S, r, c, dr, dc) < S.value[r, c] else 0

    @njit
    def best_move(S, r, c):
        """-> least of `through` over all moves, and the first move that has it"""
        best, move = through(S, r, c, -1, 0), 0
        for k in range(1, connectivity):
            by = through(S, r, c, ROW_MOVES[k], COL_MOVES[k])
            if by < best:
                best, move = by, k
        return best, move

    @njit
    def withdraw(block, slot, width, seed, cost, value, S, lane):
        """Take back the values that no neighbour supports any more; they fall along supports, so there are no circles.

        -> bits of the neighbours that touch a tile taken back, and CHANGED when there is one
        """
        row, col = load(block, slot, width, cost, value, S, lane)
        answer, line, todo = np.int32(0), 0, every
        while todo:  # rows where something may not be supported
            bit = bit_of(line)
            if todo & bit:
                gone = False
                for i in lane_range(0, size, lane):
                    r, c = line + 1, i + 1
                    if S.value[r, c] < NEVER and line * size + i != seed and (S.cost[r, c] == 0 or best_move(S, r, c)[0] > S.value[r, c]):
                        S.value[r, c] = NEVER
                        gone = True
                sync_lanes()
                if any_lane(gone):
                    answer = np.int32(CHANGED)
                    on, back = beside(bit, todo, todo)
                    todo = np.uint32(on | back)
                else:
                    todo = np.uint32(todo ^ bit)
            line = line + 1 if line < size - 1 else 0
        if answer == 0:
            return answer
        north, east, south, west = False, False, False, False
        for i in lane_range(1, size + 1, lane):
            north |= value[slot, row + 1, col + i] != S.value[1, i]
            south |= value[slot, row + size, col + i] != S.value[size, i]
            west |= value[slot, row + i, col + 1] != S.value[i, 1]
            east |= value[slot, row + i, col + size] != S.value[i, size]
        north, east, south, west = any_lane(north), any_lane(east), any_lane(south), any_lane(west)
        answer |= np.int32(1 * north + 2 * east + 4 * south + 8 * west)
        if connectivity == 8:
            answer |= np.int32(16 * (north & east) + 32 * (south & east) + 64 * (south & west) + 128 * (north & west))
        store(row, col, slot, value, S, lane)
        return answer

    @njit
    def direct(item, block, slot, width, seed, cost, value, directions, S, lane):
        """directions[item]: a code of 4 bits for each tile: the first of the best moves, AT_GOAL, NOWHERE."""
        load(block, slot, width, cost, value, S, lane)
        for w in lane_range(0, size * size // 8, lane):
            word = np.uint32(0)
            for k in range(8):
                tile = 8 * w + k
                r, c = tile // size + 1, tile % size + 1
                code = NOWHERE
                if tile == seed:
                    code = AT_GOAL
                elif S.value[r, c] < NEVER:
                    code = best_move(S, r, c)[1]
                word |= np.uint32(code) << np.uint32(4 * k)
            directions[item, w] = word
        sync_lanes()

    return relax, withdraw, direct
