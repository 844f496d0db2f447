"""Blocks of weighted and 8-connected maps: exact relaxation by sweeps in four directions, of dirty lines only.

Costs are integers, so that every order of relaxation ends at the same values: tile costs on 4-connected maps, units of
1 / STRAIGHT_8 tile lengths on 8-connected ones. DIAGONAL_8 / STRAIGHT_8 is a convergent of sqrt(2), off by 4.7e-14: no
fraction of smaller numbers is nearer. A path enters a tile once, so no path on a map of MOST_TILES costs INFINITE.

A line is a row or a column of a block. It is dirty for a sweep when the line before it on that sweep's way has changed,
so that its tiles may have become cheaper by way of that line. Dirty lines are bits of masks, a mask for each sweep.

CUDA relaxes so. The CPU has `queues` for it, and withdraws as CUDA does.
"""

import functools
from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...parallel.team import any_lane, join_bits, lane_count, lane_range, sync_lanes
from ..paths import COL_MOVES, ROW_MOVES
from .blocks import AT_GOAL, CHANGED, NOWHERE, corner_bits, side_bits

INFINITE = np.int64(1) << np.int64(61)  # three of them can be added
STRAIGHT_8 = 2744210  # units of a tile length on 8-connected maps
DIAGONAL_8 = 3880899  # of a diagonal; 255 of them fit into 32 bits


def unit_of(connectivity):
    """Units of a tile length."""
    return 1 if connectivity == 4 else STRAIGHT_8


class ValueField(NamedTuple):
    """The fields of all goals on a weighted or 8-connected map.

    cost and value are padded by one blocked tile on every side (tile (r, c) of the map is [r + 1, c + 1]) and to whole
    blocks.

    width, blocks: blocks in a row, blocks in all, with the ring
    cost: (rows, cols) uint8 of entering a tile; 0 blocked
    value: (goals, rows, cols) int64 cost-to-go in units; INFINITE where the goal is not reached
    directions: (items, B * B / 8) uint32; codes of 4 bits, tile by tile
    """

    width: int
    blocks: int
    cost: np.ndarray
    value: np.ndarray
    directions: np.ndarray


class Tiles(NamedTuple):
    """A worker's scratch: a block of side B with the tiles around it.

    value: (B + 2, B + 2) int64
    cost: (B + 2, B + 2) uint8
    """

    value: np.ndarray
    cost: np.ndarray


class Dirty(NamedTuple):
    """Masks of dirty lines, uint32: rows for the sweeps south and north, columns for those east and west."""

    south: np.uint32
    east: np.uint32
    north: np.uint32
    west: np.uint32


def new_tiles(size):
    """CPU only: the scratch of one thread that sweeps, which tests do."""
    return Tiles(np.zeros((size + 2, size + 2), np.int64), np.zeros((size + 2, size + 2), np.uint8))


@functools.cache
def step_functions(connectivity):
    """-> barrier, through, for tiles of a `Tiles`."""
    straight, diagonal = unit_of(connectivity), DIAGONAL_8

    @lean_njit
    def barrier(tiles, r, c):
        """0 of a free tile, else INFINITE."""
        return np.int64(0) if tiles.cost[np.uintp(r), np.uintp(c)] != 0 else INFINITE

    @lean_njit
    def through(tiles, r, c, dr, dc):
        """Cost-to-go of tile (r, c) by way of tile (r + dr, c + dc); INFINITE or more where that is no move."""
        row, col = np.uintp(r + dr), np.uintp(c + dc)  # unsigned: Numba looks whether other indices are negative
        price = np.int64(tiles.cost[row, col])
        by = tiles.value[row, col]  # INFINITE of a blocked tile
        if dr != 0 and dc != 0:
            return by + price * diagonal + (barrier(tiles, r + dr, c) | barrier(tiles, r, c + dc))
        return by + price * straight

    return barrier, through


@lean_njit
def bit_of(line):
    """-> uint32 with the bit of a line"""
    return np.uint32(np.uint32(1) << np.uint32(line))


def _lower_function(size, connectivity, rows):
    """-> lower, of rows or of columns"""
    barrier, through = step_functions(connectivity)

    @lean_njit
    def lower_tile(tiles, line, step, i):
        """-> does tile i of the line get better?"""
        if rows:
            r, c = line + 1, i + 1
            best = through(tiles, r, c, step, 0)
            if connectivity == 8:
                best = min(best, through(tiles, r, c, step, -1), through(tiles, r, c, step, 1))
        else:
            r, c = i + 1, line + 1
            best = through(tiles, r, c, 0, step)
            if connectivity == 8:
                best = min(best, through(tiles, r, c, -1, step), through(tiles, r, c, 1, step))
        at = np.uintp(r), np.uintp(c)
        before = tiles.value[at]
        best |= barrier(tiles, r, c)
        tiles.value[at] = min(before, best)
        return best < before

    @lean_njit
    def lower(tiles, line, step, lane):
        """Lower the tiles of a line by way of the line `step` beside it -> bits of the tiles that got better"""
        better = np.uint32(0)
        if lane_count() == 1:
            for i in range(size):
                better = np.uint32(better | np.uint32(lower_tile(tiles, line, step, i)) << np.uint32(i))
        elif lane < size:
            better = np.uint32(lower_tile(tiles, line, step, lane))
        better = join_bits(better)
        sync_lanes()
        return better

    return lower


@functools.cache
def _beside_function(size):
    """-> beside for blocks of this size."""
    every = np.uint32((1 << size) - 1)

    @lean_njit
    def beside(better, ahead, behind):
        """Lines, or the tiles on them, got better: mark the lines after them as dirty -> ahead, behind"""
        after, before = better << np.uint32(1), better >> np.uint32(1)
        return np.uint32((ahead | after) & every), np.uint32(behind | before)

    return beside


@functools.cache
def settle_function(size, connectivity):
    """-> settle for blocks of this size."""
    beside = _beside_function(size)

    def sweep_function(rows, step):
        lower = _lower_function(size, connectivity, rows)

        @lean_njit
        def sweep(tiles, ahead, behind, right, left, lane):
            """Lower the dirty lines one after the other, each by way of the line before it.

            Masks of dirty lines: `ahead` for this sweep, `behind` for the reverse one, `right` and `left` for the
            perpendicular ones -> the same afterwards
            """
            line = 0 if step > 0 else size - 1
            while ahead:
                bit = bit_of(line)
                if ahead & bit:
                    ahead = np.uint32(ahead ^ bit)
                    better = lower(tiles, line, -step, lane)
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

    @lean_njit
    def settle(tiles, dirty, lane):
        """Lower rows and columns until no tile gets better."""
        south, east, north, west = dirty
        while south | east | north | west:
            south, north, east, west = sweep_south(tiles, south, north, east, west, lane)
            east, west, south, north = sweep_east(tiles, east, west, south, north, lane)
            north, south, east, west = sweep_north(tiles, north, south, east, west, lane)
            west, east, south, north = sweep_west(tiles, west, east, south, north, lane)

    return settle


@functools.cache
def copy_functions(size):
    """-> load, store for blocks of this size."""
    wide = size + 2

    @lean_njit
    def corner_of(visit, field):
        """-> row, column in the padded arrays of the tile diagonally before the block's first"""
        return (visit.block // field.width - 1) * size, (visit.block % field.width - 1) * size

    @lean_njit
    def load(visit, field, tiles, lane):
        """Copy a block and the tiles around it from the field."""
        row, col = corner_of(visit, field)
        if lane_count() == 1:
            for r in range(wide):
                for c in range(wide):
                    tiles.value[r, c] = field.value[visit.slot, row + r, col + c]
                    tiles.cost[r, c] = field.cost[row + r, col + c]
        else:
            for tile in range(lane, wide * wide, lane_count()):  # one loop: each lane has several reads on their way
                r = np.int64(np.uint32(tile) // np.uint32(wide))
                c = tile - r * wide
                at, from_row, from_col = (np.uintp(r), np.uintp(c)), np.uintp(row + r), np.uintp(col + c)
                tiles.value[at] = field.value[np.uintp(visit.slot), from_row, from_col]
                tiles.cost[at] = field.cost[from_row, from_col]
        sync_lanes()

    @lean_njit
    def store(visit, field, tiles, lane):
        """Copy a block's values back to the field."""
        row, col = corner_of(visit, field)
        for r in range(1, size + 1):
            for c in lane_range(1, size + 1, lane):
                field.value[visit.slot, row + r, col + c] = tiles.value[r, c]

    return corner_of, load, store


@functools.cache
def beyond_function(size, connectivity):
    """-> better_beyond for blocks of this size."""
    _, through = step_functions(connectivity)
    far = size + 1

    @lean_njit
    def by_row(tiles, r, c, dr):
        """Does tile (r, c) just outside get better by way of the block's own tiles in row r + dr?"""
        if tiles.cost[r, c] == 0:
            return False
        best = through(tiles, r, c, dr, 0)
        if connectivity == 8 and c > 1:
            best = min(best, through(tiles, r, c, dr, -1))
        if connectivity == 8 and c < size:
            best = min(best, through(tiles, r, c, dr, 1))
        return best < tiles.value[r, c]

    @lean_njit
    def by_col(tiles, r, c, dc):
        """As `by_row`, by way of column c + dc."""
        if tiles.cost[r, c] == 0:
            return False
        best = through(tiles, r, c, 0, dc)
        if connectivity == 8 and r > 1:
            best = min(best, through(tiles, r, c, -1, dc))
        if connectivity == 8 and r < size:
            best = min(best, through(tiles, r, c, 1, dc))
        return best < tiles.value[r, c]

    @lean_njit
    def by_corner(tiles, r, c, dr, dc):
        """Does tile (r, c) at a corner just outside get better by its diagonal?"""
        return tiles.cost[r, c] != 0 and through(tiles, r, c, dr, dc) < tiles.value[r, c]

    @lean_njit
    def better_beyond(tiles, lane):
        """-> bits of the neighbours (move codes) in which tiles beside the block get better by it"""
        north, east, south, west = False, False, False, False
        for i in lane_range(1, size + 1, lane):
            north |= by_row(tiles, 0, i, 1)
            south |= by_row(tiles, far, i, -1)
            west |= by_col(tiles, i, 0, 1)
            east |= by_col(tiles, i, far, -1)
        answer = np.int32(side_bits(any_lane(north), any_lane(east), any_lane(south), any_lane(west)))
        if connectivity == 8:
            north_east, south_east = by_corner(tiles, 0, far, 1, -1), by_corner(tiles, far, far, -1, -1)
            south_west, north_west = by_corner(tiles, far, 0, -1, 1), by_corner(tiles, 0, 0, 1, 1)
            answer |= np.int32(corner_bits(north_east, south_east, south_west, north_west))
        return answer

    return better_beyond


@functools.cache
def move_function(connectivity):
    """-> best_move"""
    _, through = step_functions(connectivity)

    @lean_njit
    def best_move(tiles, r, c):
        """-> the least cost-to-go of tile (r, c) by way of a neighbour, and the first move that has it"""
        best, move = through(tiles, r, c, -1, 0), 0
        for k in range(1, connectivity):
            by = through(tiles, r, c, ROW_MOVES[k], COL_MOVES[k])
            if by < best:
                best, move = by, k
        return best, move

    return best_move


@functools.cache
def withdraw_function(size, connectivity):
    """-> withdraw for blocks of this size."""
    best_move, beside = move_function(connectivity), _beside_function(size)
    corner_of, load, store = copy_functions(size)
    every = np.uint32((1 << size) - 1)

    @lean_njit
    def drop_row(visit, tiles, line, lane):
        """Take back the values of a row that nothing supports -> was there one, in this lane's part?"""
        gone = False
        for i in lane_range(0, size, lane):
            r, c = line + 1, i + 1
            if (
                tiles.value[r, c] < INFINITE
                and line * size + i != visit.seed
                and (tiles.cost[r, c] == 0 or best_move(tiles, r, c)[0] > tiles.value[r, c])
            ):
                tiles.value[r, c] = INFINITE
                gone = True
        return gone

    @lean_njit
    def gone_at_sides(visit, field, tiles, lane):
        """-> bits of the neighbours that touch a tile whose value in the field is not that of `tiles`"""
        row, col = corner_of(visit, field)
        north, east, south, west = False, False, False, False
        for i in lane_range(1, size + 1, lane):
            north |= field.value[visit.slot, row + 1, col + i] != tiles.value[1, i]
            south |= field.value[visit.slot, row + size, col + i] != tiles.value[size, i]
            west |= field.value[visit.slot, row + i, col + 1] != tiles.value[i, 1]
            east |= field.value[visit.slot, row + i, col + size] != tiles.value[i, size]
        north, east, south, west = any_lane(north), any_lane(east), any_lane(south), any_lane(west)
        answer = np.int32(side_bits(north, east, south, west))
        if connectivity == 8:
            answer |= np.int32(corner_bits(north & east, south & east, south & west, north & west))
        return answer

    @lean_njit
    def withdraw(visit, field, tiles, lane):
        """Take back the values that no neighbour supports any more; they fall along supports, so there are no circles.

        -> bits of the neighbours that touch a tile taken back, and CHANGED when there is one
        """
        load(visit, field, tiles, lane)
        answer, line, todo = np.int32(0), 0, every
        while todo:  # rows where something may not be supported
            bit = bit_of(line)
            if todo & bit:
                gone = drop_row(visit, tiles, line, lane)
                sync_lanes()
                if any_lane(gone):
                    answer = np.int32(CHANGED)
                    after, before = beside(bit, todo, todo)
                    todo = np.uint32(after | before)
                else:
                    todo = np.uint32(todo ^ bit)
            line = line + 1 if line < size - 1 else 0
        if answer == 0:
            return answer
        answer |= gone_at_sides(visit, field, tiles, lane)
        store(visit, field, tiles, lane)
        return answer

    return withdraw


@functools.cache
def value_operations(size, connectivity):
    """-> clear, relax, withdraw, direct for blocks of this size; each is called by all lanes of a worker."""
    settle, better_beyond = settle_function(size, connectivity), beyond_function(size, connectivity)
    best_move, beside = move_function(connectivity), _beside_function(size)
    _, load, store = copy_functions(size)
    every, first, last = np.uint32((1 << size) - 1), np.uint32(1), np.uint32(1 << (size - 1))

    @lean_njit
    def clear(slot, field, worker):
        """Make the field of a slot one without any value: each worker its share."""
        for r in range(worker.number, field.value.shape[1], worker.count):
            for c in range(worker.lane, field.value.shape[2], lane_count()):
                field.value[slot, r, c] = INFINITE

    @lean_njit
    def relax(visit, field, raw, tiles, lane):
        """Find the exact values inside a block, given the tiles around it.

        raw: the values inside need not fit each other, as after a withdrawal
        -> bits of the neighbours (move codes) that get better by it
        """
        load(visit, field, tiles, lane)
        dirty = Dirty(every, every, every, every) if raw else Dirty(first, first, last, last)
        if visit.seed >= 0:
            row, col = visit.seed // size, visit.seed % size
            if lane == 0:
                tiles.value[1 + row, 1 + col] = np.int64(0)
            south, north = beside(bit_of(row), dirty.south, dirty.north)
            east, west = beside(bit_of(col), dirty.east, dirty.west)
            dirty = Dirty(south, east, north, west)
            sync_lanes()
        settle(tiles, dirty, lane)
        store(visit, field, tiles, lane)
        answer = better_beyond(tiles, lane)
        sync_lanes()
        return answer

    @lean_njit
    def direct(visit, field, tiles, lane):
        """Write the block's directions: of each tile the first of its best moves, AT_GOAL or NOWHERE."""
        load(visit, field, tiles, lane)
        for w in lane_range(0, size * size // 8, lane):
            word = np.uint32(0)
            for k in range(8):
                tile = 8 * w + k
                r, c = tile // size + 1, tile % size + 1
                code = NOWHERE
                if tile == visit.seed:
                    code = AT_GOAL
                elif tiles.value[r, c] < INFINITE:
                    code = best_move(tiles, r, c)[1]
                word |= np.uint32(code) << np.uint32(4 * k)
            field.directions[visit.item, w] = word
        sync_lanes()

    return clear, relax, withdraw_function(size, connectivity), direct
