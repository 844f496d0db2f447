"""Fields of uniform 4-connected maps in two bits a tile, 32 tiles to a word. `wave` relaxes their blocks.

Of a field only two bits a tile are kept: whether the tile is reached, and bit 1 of its distance. Bit 0 follows from the
tile's place, and distances of neighbours differ by one, so two bits tell which neighbour is nearer to the goal.
Distances in full are kept for the border tiles of a block, which is all that neighbouring blocks need.

A `BitField` holds the fields of all goals. In the docstrings B is the side of a block; item = slot * blocks + block.
"""

from typing import NamedTuple

import numpy as np

from ...parallel.team import any_lane, lane_range, sync_lanes
from ..paths import EAST, NORTH, SOUTH
from .blocks import CHANGED, Kind, inner_njit, size_of

BIT_1 = 0  # in BitField.bits: bit 1 of the distance
REACHED = 1  # in BitField.bits: has it a distance?
UNREACHED = np.int32(0x7FFFFFFF)  # a distance
WALL = np.int32(-1)  # in place of a distance


class BitField(NamedTuple):
    """The fields of all goals on a uniform 4-connected map."""

    kind: Kind  # of the blocks
    width: int  # blocks in a row, with the ring
    blocks: int  # in all, with the ring
    free: np.ndarray  # (blocks, B) uint32; bit c of [b, r]: tile (r, c) of block b is free
    bits: np.ndarray  # (items, 2, B) uint32; [i, BIT_1, r] bit 1 of the distances, [i, REACHED, r] which are reached
    edge: np.ndarray  # (items, 4, B) int32 distances of the border tiles, by side NORTH ... WEST; UNREACHED, WALL
    directions: np.ndarray  # (items, B * B / 8) uint32; codes of 4 bits, tile by tile


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


@inner_njit
def next_hops(visit, field, r):
    """-> for each move 0 to 3, a mask of the tiles of row r from which it leads one step nearer to the goal"""
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
def _drop_unsupported(visit, field, wave, lane):
    """Drop the block's tiles that have no next hop, until all that are left have one."""
    item, bits, size = visit.item, field.bits, size_of(field.kind)
    again = True
    while again:
        again = False
        for r in lane_range(0, size, lane):
            north, east, south, west = next_hops(visit, field, r)
            supported = north | east | south | west
            if visit.seed >= 0 and visit.seed // size == r:
                supported |= np.uint32(1) << np.uint32(visit.seed % size)
            supported &= field.free[visit.block, r] & bits[item, REACHED, r]
            again |= supported != bits[item, REACHED, r]
            wave.bit_1[r] = supported
        sync_lanes()
        for r in lane_range(0, size, lane):
            bits[item, REACHED, r] = wave.bit_1[r]
            bits[item, BIT_1, r] &= wave.bit_1[r]
        sync_lanes()
        again = any_lane(again)


@inner_njit
def withdraw_bits(visit, field, wave, lane):
    """See `operations.withdraw`. Distances fall along supports, so there are no circles."""
    item, bits, kind = visit.item, field.bits, field.kind
    for r in lane_range(0, size_of(kind), lane):
        wave.open[r] = bits[item, REACHED, r]  # the tiles reached before
    sync_lanes()
    _drop_unsupported(visit, field, wave, lane)
    answer = np.int32(0)
    changed = False
    for side in range(4):
        gone = False
        for i in lane_range(0, size_of(kind), lane):
            if not side_bit(field.free[visit.block], side, i, kind):
                field.edge[item, side, i] = WALL
            elif not side_bit(bits[item, REACHED], side, i, kind):
                field.edge[item, side, i] = UNREACHED
            gone |= side_bit(wave.open, side, i, kind) != side_bit(bits[item, REACHED], side, i, kind)
        if any_lane(gone):
            answer |= np.int32(1 << side)
    for r in lane_range(0, size_of(kind), lane):
        changed |= bits[item, REACHED, r] != wave.open[r]
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
def direct_bits(visit, field, wave, lane):
    """See `operations.direct`."""
    size = size_of(field.kind)
    bit_0, bit_1, bit_2, bit_3 = wave.front[0], wave.front[1], wave.open, wave.bit_1  # of the codes, row by row
    for r in lane_range(0, size, lane):
        north, east, south, west = next_hops(visit, field, r)
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
    """Reset tile r along each side of an item's block to unreached."""
    for side in range(4):
        free = side_bit(field.free[block], side, r, field.kind)
        field.edge[item, side, r] = UNREACHED if free else WALL


@inner_njit
def clear_bits(slot, field, worker):
    """See `operations.clear`."""
    for block in range(worker.number, field.blocks, worker.count):
        item = slot * field.blocks + block
        for r in lane_range(0, size_of(field.kind), worker.lane):
            field.bits[item, BIT_1, r] = np.uint32(0)
            field.bits[item, REACHED, r] = np.uint32(0)
            blank_edge(block, item, r, field)
