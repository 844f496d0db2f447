"""Directions of a block of a weighted or 8-connected map on a CPU thread, several tiles to an instruction."""

import numpy as np

from ..paths import EAST, NORTH, NORTH_EAST, NORTH_WEST, SOUTH, SOUTH_EAST, SOUTH_WEST, WEST
from .blocks import AT_GOAL, NOWHERE, inner_njit, octile, size_of
from .queues import BLOCKED, DIAGONAL, ONE, OWN, STRAIGHT, corner_of
from .values import DIAGONAL_8, unit_of


@inner_njit
def load_offers(visit, field, queue):
    """Fill queue.offers."""
    slot, row, col = corner_of(visit, field)
    offers, straight, wide = queue.offers, np.uint32(unit_of(len(queue.kind.moves))), size_of(queue.kind) + 2
    for i in range(wide):
        r = np.uint64(i)
        for j in range(wide):
            c = np.uint64(j)
            value, cost = np.uint32(field.value[slot, row + r, col + c]), np.uint32(field.cost[row + r, col + c])
            offers[OWN, r, c] = value
            offers[BLOCKED, r, c] = np.uint32(cost == 0)
            offers[STRAIGHT, r, c] = value + cost * straight
            if octile(queue.kind):
                offers[DIAGONAL, r, c] = value + cost * np.uint32(DIAGONAL_8)


@inner_njit
def choose(here, queue):
    """Fill queue.codes for row `here`: of each tile the first of its best moves, NOWHERE where there is none.

    A tile's value is what its best neighbours offer, and no neighbour offers 2^32 more, so equality of the lowest 32
    bits tells which ones are best. The loop is such that one instruction takes several tiles.
    """
    offers, above, below, size = queue.offers, here - ONE, here + ONE, size_of(queue.kind)
    for i in range(1, size + 1):
        c = np.uint64(i)
        east, west = c + ONE, c - ONE
        own, code = offers[OWN, here, c], np.uint32(NOWHERE)
        north_wall, east_wall = offers[BLOCKED, above, c], offers[BLOCKED, here, east]
        south_wall, west_wall = offers[BLOCKED, below, c], offers[BLOCKED, here, west]
        if octile(queue.kind):
            walls = north_wall | west_wall | offers[BLOCKED, above, west]
            code = np.uint32(NORTH_WEST) if (offers[DIAGONAL, above, west] ^ own) | walls == 0 else code
            walls = south_wall | west_wall | offers[BLOCKED, below, west]
            code = np.uint32(SOUTH_WEST) if (offers[DIAGONAL, below, west] ^ own) | walls == 0 else code
            walls = south_wall | east_wall | offers[BLOCKED, below, east]
            code = np.uint32(SOUTH_EAST) if (offers[DIAGONAL, below, east] ^ own) | walls == 0 else code
            walls = north_wall | east_wall | offers[BLOCKED, above, east]
            code = np.uint32(NORTH_EAST) if (offers[DIAGONAL, above, east] ^ own) | walls == 0 else code
        code = np.uint32(WEST) if (offers[STRAIGHT, here, west] ^ own) | west_wall == 0 else code
        code = np.uint32(SOUTH) if (offers[STRAIGHT, below, c] ^ own) | south_wall == 0 else code
        code = np.uint32(EAST) if (offers[STRAIGHT, here, east] ^ own) | east_wall == 0 else code
        code = np.uint32(NORTH) if (offers[STRAIGHT, above, c] ^ own) | north_wall == 0 else code
        code = np.uint32(NOWHERE) if offers[BLOCKED, here, c] != 0 else code
        queue.codes[(here - ONE) * np.uint64(size) + west] = np.uint8(code)


@inner_njit
def nibbles(octets):
    """The low halves of eight bytes."""
    octets = (octets | octets >> np.uint64(4)) & np.uint64(0x00FF00FF00FF00FF)
    octets = (octets | octets >> np.uint64(8)) & np.uint64(0x0000FFFF0000FFFF)
    return np.uint32(octets | octets >> np.uint64(16))


@inner_njit
def direct_on_thread(visit, field, queue):
    """See `operations.direct`."""
    size = size_of(field.kind)
    load_offers(visit, field, queue)
    for row in range(1, size + 1):
        choose(np.uint64(row), queue)
    if visit.seed >= 0:
        queue.codes[visit.seed] = AT_GOAL
    item = np.uint64(visit.item)
    for i in range(size * size // 8):
        field.directions[item, np.uint64(i)] = nibbles(queue.octets[np.uint64(i)])
