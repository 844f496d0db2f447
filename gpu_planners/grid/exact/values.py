"""Blocks of weighted and 8-connected maps: exact relaxation by sweeps in four directions, of dirty lines only.

Costs are integers, so that every order of relaxation ends at the same values: tile costs on 4-connected maps, units of
1 / STRAIGHT_8 tile lengths on 8-connected ones. DIAGONAL_8 / STRAIGHT_8 is a convergent of sqrt(2), off by 4.7e-14: no
fraction of smaller numbers is nearer. A path enters a tile once, so no path on a map of MOST_TILES costs INFINITE.

A line is a row or a column of a block. It is dirty for a sweep when the line before it on that sweep's way has changed,
so that its tiles may have become cheaper by way of that line. Dirty lines are bits of masks, a mask for each sweep.

CUDA relaxes so. The CPU has `queues` for it, and withdraws as CUDA does.
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...parallel.team import any_lane, join_bits, lane_count, lane_range, sync_lanes
from ..paths import COL_MOVES, ROW_MOVES
from .blocks import AT_GOAL, CHANGED, NOWHERE, Kind, bits_of, inner_njit, octile, size_of

INFINITE = np.int64(1) << np.int64(61)  # three of them can be added
STRAIGHT_8 = 2744210  # units of a tile length on 8-connected maps
DIAGONAL_8 = 3880899  # of a diagonal; 255 of them fit into 32 bits
SHIFT_8 = STRAIGHT_8.bit_length() - 1


@lean_njit
def unit_of(connectivity):
    """Units of a tile length."""
    return 1 if connectivity == 4 else STRAIGHT_8


@inner_njit
def shift_of(moves):
    """-> values that are the same when shifted right so far share a bucket, which spans no more than a step costs"""
    return SHIFT_8 if len(moves) == 8 else 0


class ValueField(NamedTuple):
    """The fields of all goals on a weighted or 8-connected map.

    cost and value are padded by one blocked tile on every side (tile (r, c) of the map is [r + 1, c + 1]) and to whole
    blocks.
    """

    kind: Kind  # of the blocks
    width: int  # blocks in a row, with the ring
    blocks: int  # in all, with the ring
    cost: np.ndarray  # (rows, cols) uint8 of entering a tile; 0 blocked
    value: np.ndarray  # (goals, rows, cols) int64 cost-to-go in units; INFINITE where the goal is not reached
    directions: np.ndarray  # (items, B * B / 8) uint32; codes of 4 bits, tile by tile


class Tiles(NamedTuple):
    """A worker's scratch: a block of side B with the tiles around it."""

    kind: Kind
    value: np.ndarray  # (B + 2, B + 2) int64
    cost: np.ndarray  # (B + 2, B + 2) uint8


@inner_njit
def barrier(tiles, r, c):
    """0 of a free tile, else INFINITE."""
    return np.int64(0) if tiles.cost[np.uintp(r), np.uintp(c)] != 0 else INFINITE


@inner_njit
def through(tiles, r, c, dr, dc):
    """Cost-to-go of tile (r, c) by way of tile (r + dr, c + dc); INFINITE or more where that is no move."""
    row, col = np.uintp(r + dr), np.uintp(c + dc)  # unsigned: Numba looks whether other indices are negative
    price = np.int64(tiles.cost[row, col])
    by = tiles.value[row, col]  # INFINITE of a blocked tile
    if dr != 0 and dc != 0:
        return by + price * DIAGONAL_8 + (barrier(tiles, r + dr, c) | barrier(tiles, r, c + dc))
    return by + price * unit_of(len(tiles.kind.moves))


@inner_njit
def best_move(tiles, r, c):
    """-> the least cost-to-go of tile (r, c) by way of a neighbour, and the first move that has it"""
    best, move = through(tiles, r, c, -1, 0), 0
    for k in range(1, len(tiles.kind.moves)):
        by = through(tiles, r, c, ROW_MOVES[k], COL_MOVES[k])
        if by < best:
            best, move = by, k
    return best, move


@inner_njit
def bit_of(line):
    """-> uint32 with the bit of a line"""
    return np.uint32(np.uint32(1) << np.uint32(line))


@inner_njit
def every_line(kind):
    """-> uint32 with the bits of all lines"""
    return np.uint32((1 << size_of(kind)) - 1)


@inner_njit
def beside(better, ahead, behind, kind):
    """Lines, or the tiles on them, got better: mark the lines after them as dirty -> ahead, behind"""
    after, before = better << np.uint32(1), better >> np.uint32(1)
    return np.uint32((ahead | after) & every_line(kind)), np.uint32(behind | before)


def _sweep_function(rows, step):
    """-> sweep of rows or of columns, from the first line (step 1) or the last (step -1) on"""

    @inner_njit
    def lower_tile(tiles, line, i):
        """-> does tile i of the line get better?"""
        if rows:
            r, c = line + 1, i + 1
            best = through(tiles, r, c, -step, 0)
            if octile(tiles.kind):
                best = min(best, through(tiles, r, c, -step, -1), through(tiles, r, c, -step, 1))
        else:
            r, c = i + 1, line + 1
            best = through(tiles, r, c, 0, -step)
            if octile(tiles.kind):
                best = min(best, through(tiles, r, c, -1, -step), through(tiles, r, c, 1, -step))
        at = np.uintp(r), np.uintp(c)
        before = tiles.value[at]
        best |= barrier(tiles, r, c)
        tiles.value[at] = min(before, best)
        return best < before

    @inner_njit
    def lower(tiles, line, lane):
        """Lower the tiles of a line by way of the line before it -> bits of the tiles that got better"""
        better = np.uint32(0)
        if lane_count() == 1:
            for i in range(size_of(tiles.kind)):
                better = np.uint32(better | np.uint32(lower_tile(tiles, line, i)) << np.uint32(i))
        elif lane < size_of(tiles.kind):
            better = np.uint32(lower_tile(tiles, line, lane))
        better = join_bits(better)
        sync_lanes()
        return better

    @inner_njit
    def sweep(tiles, ahead, behind, right, left, lane):
        """Lower the dirty lines one after the other, each by way of the line before it.

        Masks of dirty lines: `ahead` for this sweep, `behind` for the reverse one, `right` and `left` for the
        perpendicular ones -> the same afterwards
        """
        kind = tiles.kind
        line = 0 if step > 0 else size_of(kind) - 1
        while ahead:
            bit = bit_of(line)
            if ahead & bit:
                ahead = np.uint32(ahead ^ bit)
                better = lower(tiles, line, lane)
                if better:
                    if step > 0:
                        ahead, behind = beside(bit, ahead, behind, kind)
                    else:
                        behind, ahead = beside(bit, behind, ahead, kind)
                    right, left = beside(better, right, left, kind)
            line += step
        return ahead, behind, right, left

    return sweep


_sweep_south, _sweep_north = _sweep_function(True, 1), _sweep_function(True, -1)
_sweep_east, _sweep_west = _sweep_function(False, 1), _sweep_function(False, -1)


@inner_njit
def settle(tiles, dirty, lane):
    """Lower rows and columns until no tile gets better.

    dirty: masks of dirty lines, uint32: rows for the sweep south, columns east, rows north, columns west
    """
    south, east, north, west = dirty
    while south | east | north | west:
        south, north, east, west = _sweep_south(tiles, south, north, east, west, lane)
        east, west, south, north = _sweep_east(tiles, east, west, south, north, lane)
        north, south, east, west = _sweep_north(tiles, north, south, east, west, lane)
        west, east, south, north = _sweep_west(tiles, west, east, south, north, lane)


@inner_njit
def corner_of(visit, field):
    """-> row, column in the padded arrays of the tile diagonally before the block's first"""
    size = size_of(field.kind)
    return (visit.block // field.width - 1) * size, (visit.block % field.width - 1) * size


@inner_njit
def load(visit, field, tiles, lane):
    """Copy a block and the tiles around it from the field."""
    row, col = corner_of(visit, field)
    wide = size_of(field.kind) + 2
    for tile in lane_range(0, wide * wide, lane):  # one loop: each lane has several reads on their way
        r = np.int64(np.uint32(tile) // np.uint32(wide))
        c = tile - r * wide
        at, from_row, from_col = (np.uintp(r), np.uintp(c)), np.uintp(row + r), np.uintp(col + c)
        tiles.value[at] = field.value[np.uintp(visit.slot), from_row, from_col]
        tiles.cost[at] = field.cost[from_row, from_col]
    sync_lanes()


@inner_njit
def store(visit, field, tiles, lane):
    """Copy a block's values back to the field."""
    row, col = corner_of(visit, field)
    size = size_of(field.kind)
    for r in range(1, size + 1):
        for c in lane_range(1, size + 1, lane):
            field.value[visit.slot, row + r, col + c] = tiles.value[r, c]


@inner_njit
def improves(tiles, r, c, dr, dc):
    """Does tile (r, c) just outside of a side get better by way of the block's own tiles in row r + dr, or column
    c + dc?"""
    if tiles.cost[r, c] == 0:
        return False
    best, i = through(tiles, r, c, dr, dc), c if dc == 0 else r
    if octile(tiles.kind) and i > 1:
        best = min(best, through(tiles, r, c, dr - abs(dc), dc - abs(dr)))
    if octile(tiles.kind) and i < size_of(tiles.kind):
        best = min(best, through(tiles, r, c, dr + abs(dc), dc + abs(dr)))
    return best < tiles.value[r, c]


@inner_njit
def improves_corner(tiles, r, c, dr, dc):
    """Does tile (r, c) at a corner just outside get better by its diagonal?"""
    return tiles.cost[r, c] != 0 and through(tiles, r, c, dr, dc) < tiles.value[r, c]


@inner_njit
def better_beyond(tiles, lane):
    """-> bits of the neighbours (move codes) in which tiles beside the block get better by it"""
    far = size_of(tiles.kind) + 1
    north, east, south, west = False, False, False, False
    for i in lane_range(1, far, lane):
        north |= improves(tiles, 0, i, 1, 0)
        south |= improves(tiles, far, i, -1, 0)
        west |= improves(tiles, i, 0, 0, 1)
        east |= improves(tiles, i, far, 0, -1)
    answer = bits_of((any_lane(north), any_lane(east), any_lane(south), any_lane(west)))
    if octile(tiles.kind):
        north_east, south_east = improves_corner(tiles, 0, far, 1, -1), improves_corner(tiles, far, far, -1, -1)
        south_west, north_west = improves_corner(tiles, far, 0, -1, 1), improves_corner(tiles, 0, 0, 1, 1)
        answer |= np.int32(bits_of((north_east, south_east, south_west, north_west)) << 4)
    return answer


@inner_njit
def clear_values(slot, field, worker):
    """See `operations.clear`."""
    for r in range(worker.number, field.value.shape[1], worker.count):
        for c in range(worker.lane, field.value.shape[2], lane_count()):
            field.value[slot, r, c] = INFINITE


@inner_njit
def relax_by_sweeps(visit, field, raw, tiles, lane):
    """See `operations.relax`."""
    load(visit, field, tiles, lane)
    kind, size = field.kind, size_of(field.kind)
    every, first, last = every_line(kind), np.uint32(1), bit_of(size - 1)
    south, east, north, west = (every, every, every, every) if raw else (first, first, last, last)
    if visit.seed >= 0:
        row, col = visit.seed // size, visit.seed % size
        if lane == 0:
            tiles.value[1 + row, 1 + col] = np.int64(0)
        south, north = beside(bit_of(row), south, north, kind)
        east, west = beside(bit_of(col), east, west, kind)
        sync_lanes()
    settle(tiles, (south, east, north, west), lane)
    store(visit, field, tiles, lane)
    answer = better_beyond(tiles, lane)
    sync_lanes()
    return answer


@inner_njit
def drop_row(visit, tiles, line, lane):
    """Take back the values of a row that nothing supports -> was there one, in this lane's part?"""
    gone, size = False, size_of(tiles.kind)
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


@inner_njit
def gone_at_sides(visit, field, tiles, lane):
    """-> bits of the neighbours that touch a tile whose value in the field is not that of `tiles`"""
    row, col = corner_of(visit, field)
    size = size_of(field.kind)
    north, east, south, west = False, False, False, False
    for i in lane_range(1, size + 1, lane):
        north |= field.value[visit.slot, row + 1, col + i] != tiles.value[1, i]
        south |= field.value[visit.slot, row + size, col + i] != tiles.value[size, i]
        west |= field.value[visit.slot, row + i, col + 1] != tiles.value[i, 1]
        east |= field.value[visit.slot, row + i, col + size] != tiles.value[i, size]
    north, east, south, west = any_lane(north), any_lane(east), any_lane(south), any_lane(west)
    answer = bits_of((north, east, south, west))
    if octile(field.kind):
        answer |= np.int32(bits_of((north & east, south & east, south & west, north & west)) << 4)
    return answer


@inner_njit
def withdraw_values(visit, field, tiles, lane):
    """See `operations.withdraw`. Values fall along supports, so there are no circles."""
    load(visit, field, tiles, lane)
    kind = field.kind
    answer, line, todo = np.int32(0), 0, every_line(kind)
    while todo:  # rows where something may not be supported
        bit = bit_of(line)
        if todo & bit:
            gone = drop_row(visit, tiles, line, lane)
            sync_lanes()
            if any_lane(gone):
                answer = np.int32(CHANGED)
                after, before = beside(bit, todo, todo, kind)
                todo = np.uint32(after | before)
            else:
                todo = np.uint32(todo ^ bit)
        line = line + 1 if line < size_of(kind) - 1 else 0
    if answer == 0:
        return answer
    answer |= gone_at_sides(visit, field, tiles, lane)
    store(visit, field, tiles, lane)
    return answer


@inner_njit
def direct_values(visit, field, tiles, lane):
    """See `operations.direct`."""
    load(visit, field, tiles, lane)
    size = size_of(field.kind)
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
