"""A bit for each voxel that may be occupied, and the boxes that these bits are merged into.

Bits lie in (nx, ny, words) uint64, bit k of a row's words for voxel z = k. Bits beyond nz are not looked at.

Boxes are merged as in `bricks.merged`, without lists of cells: runs along z that are alike in neighbouring rows become
plates, plates that are alike in neighbouring slabs become boxes. Both are sorted as they arise, so one pass compares
each with its neighbour.
"""

import numba
import numpy as np

from ...device import lean_njit, njit

WORD = 64
NONE, ALL, ONE = np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(1)
GATHER = np.uint64(0x0102040810204080)  # times eight bytes of 0 or 1: one byte of their bits, on top
LAST = np.uint64(WORD - 1)
PLATES = 64  # for each box that is allowed: more are not looked at, which bounds the memory


@lean_njit
def may_be_occupied(distance, least, most, unknown):
    """Of a voxel by the distance of its middle: free above `least`, known up to `most`; unknown: what others are.

    A distance below -most is unknown too, but what it stands for is no free space."""
    return distance <= least or (not distance <= most and unknown)  # neither holds of what is no number


def grid_bits(distances, observed, least, most, unknown):
    """(nx, ny, words) uint64 of a field (nx, ny, nz). observed: of its shape, or (0, 0, 0)"""
    nx, ny, nz = distances.shape
    bits = np.empty((nx, ny, -(-nz // WORD)), np.uint64)
    _grid_bits(*map(_plain, (distances, observed)), least, most, unknown, bits)
    return bits


def block_bits(blocks, distances, observed, least, most, unknown, shape):
    """(nx, ny, words) uint64 of a grid of `shape` voxels. blocks: (B, 3) int64 from 0; distances: (B, n, n, n)"""
    nx, ny, nz = shape
    bits = np.full((nx, ny, -(-nz // WORD)), ALL if unknown else NONE)
    order = np.lexsort(blocks.T[::-1])  # by x, y, z: one thread has all blocks of a column
    column = (blocks[order, :2] != np.roll(blocks[order, :2], 1, axis=0)).any(axis=1)
    column[0] = True
    first = np.append(np.flatnonzero(column), len(order))
    _block_bits(blocks, *map(_plain, (distances, observed)), least, most, unknown, order, first, bits)
    return bits


def boxes_of(bits, nz, most):
    """(N, 6) int32 lowest and highest corner of the boxes, in voxels; None where there are more than `most`."""
    counts = np.zeros(len(bits) + 1, np.int64)
    _plates(bits, nz, counts, np.zeros((0, 4), np.int32))
    first = np.cumsum(counts)
    if first[-1] > PLATES * most:
        return None
    plates = np.empty((first[-1], 4), np.int32)
    _plates(bits, nz, first, plates)
    boxes = np.empty((len(plates), 6), np.int32)
    count = _boxes(first, plates, boxes)
    return boxes[:count] if count <= most else None


def coarser(bits, shape):
    """(bits, shape) of voxels twice as large; one is occupied where one of its eight is."""
    nx, ny, nz = shape
    half = (nx + 1) // 2, (ny + 1) // 2, (nz + 1) // 2
    result = np.zeros((*half[:2], -(-half[2] // WORD)), np.uint64)
    _coarser(bits, nz, result)
    return result, half


def _plain(array):
    """An array that Numba takes, in C order: half precision becomes single."""
    return np.ascontiguousarray(array, np.float32 if array.dtype == np.float16 else None)


@njit(parallel=True)
def _grid_bits(distances, observed, least, most, unknown, bits):
    nx, ny, nz = distances.shape
    flagged = observed.size > 0
    for i in numba.prange(nx):
        flags = np.zeros(WORD, np.uint8)  # of a word's voxels: the loop that fills it is one of vector instructions
        bytes_of = flags.view(np.uint64)
        for j in range(ny):
            for w in range(bits.shape[2]):
                first, count = WORD * w, min(WORD, nz - WORD * w)
                for k in range(count):
                    flags[k] = may_be_occupied(distances[i, j, first + k], least, most, unknown)
                if flagged:
                    for k in range(count):
                        if not observed[i, j, first + k]:
                            flags[k] = unknown
                word = NONE
                for k in range(8):
                    word |= ((bytes_of[k] * GATHER) >> np.uint64(56)) << np.uint64(8 * k)
                bits[i, j, w] = word


@njit(parallel=True)
def _block_bits(blocks, distances, observed, least, most, unknown, order, first, bits):
    n = distances.shape[1]
    flagged = observed.size > 0
    full = ALL >> np.uint64(WORD - n)
    for c in numba.prange(len(first) - 1):
        for b in order[first[c] : first[c + 1]]:
            x, y, z = n * blocks[b, 0], n * blocks[b, 1], n * blocks[b, 2]
            shift = np.uint64(z % WORD)
            for i in range(n):
                for j in range(n):
                    word = NONE
                    for k in range(n):
                        occupied = may_be_occupied(distances[b, i, j, k], least, most, unknown)
                        if unknown if flagged and not observed[b, i, j, k] else occupied:
                            word |= ONE << np.uint64(k)
                    old = bits[x + i, y + j, z // WORD]
                    bits[x + i, y + j, z // WORD] = (old & ~(full << shift)) | (word << shift)


@lean_njit
def lowest_bit(word):
    """Number of the lowest bit that is set; 64 where none is."""
    x = (word & (~word + ONE)) - ONE if word != NONE else ALL
    x = x - ((x >> ONE) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@lean_njit
def _runs(row, nz, runs):
    """Fill runs (R, 2) with first and one after the last bit of each run of a row's words -> how many there are."""
    count, within = 0, NONE
    for w in range(len(row)):
        word = row[w]
        if WORD * (w + 1) > nz:
            word &= ALL >> np.uint64(WORD * (w + 1) - nz)
        changes = word ^ ((word << ONE) | within)  # where a run begins or has ended
        within = word >> LAST
        while changes != NONE:
            at = lowest_bit(changes)
            changes &= changes - ONE
            if word >> np.uint64(at) & ONE:
                runs[count, 0] = WORD * w + at
            else:
                runs[count, 1] = WORD * w + at
                count += 1
    if within:
        runs[count, 1] = nz
        count += 1
    return count


@njit(parallel=True)
def _plates(bits, nz, first, plates):
    """Plates of each slab of x: y from, to, z from, to. Without room, their numbers, into first[1:]; else slab i's go
    to first[i]."""
    counting = len(plates) == 0
    for i in numba.prange(len(bits)):
        most = nz // 2 + 1
        runs, before = np.empty((most, 2), np.int32), np.empty((most, 2), np.int32)
        plate_of, plate_before = np.empty(most, np.int64), np.empty(most, np.int64)
        count, known, at = 0, 0, first[i]
        for j in range(bits.shape[1]):
            found, p = _runs(bits[i, j], nz, runs), 0
            for r in range(found):
                while p < known and before[p, 0] < runs[r, 0]:
                    p += 1
                if p < known and before[p, 0] == runs[r, 0] and before[p, 1] == runs[r, 1]:
                    plate_of[r] = plate_before[p]
                else:
                    plate_of[r] = count
                    if not counting:
                        plates[at + count, 0], plates[at + count, 2], plates[at + count, 3] = j, runs[r, 0], runs[r, 1]
                    count += 1
                if not counting:
                    plates[at + plate_of[r], 1] = j + 1
            runs, before = before, runs
            plate_of, plate_before = plate_before, plate_of
            known = found
        if counting:
            first[i + 1] = count


@njit
def _boxes(first, plates, boxes):
    """Merge plates of neighbouring slabs -> how many boxes. A slab's plates are sorted by y from, then z from."""
    box_of, count = np.empty(len(plates), np.int64), 0
    for i in range(len(first) - 1):
        p, end = (first[i - 1] if i else first[i]), first[i]
        for q in range(first[i], first[i + 1]):
            y, z = plates[q, 0], plates[q, 2]
            while p < end and (plates[p, 0] < y or (plates[p, 0] == y and plates[p, 2] < z)):
                p += 1
            same = p < end
            for n in range(4):
                same = same and plates[p, n] == plates[q, n]
            box = box_of[p] if same else count
            if not same:
                boxes[box, 0], boxes[box, 1], boxes[box, 2] = i, y, z
                boxes[box, 4], boxes[box, 5] = plates[q, 1], plates[q, 3]
                count += 1
            boxes[box, 3] = i + 1
            box_of[q] = box
    return count


@njit(parallel=True)
def _coarser(bits, nz, result):
    for i in numba.prange(len(result)):
        for x in range(2 * i, min(2 * i + 2, bits.shape[0])):
            for y in range(bits.shape[1]):
                for z in range(nz):
                    if bits[x, y, z // WORD] >> np.uint64(z % WORD) & ONE:
                        result[i, y // 2, z // 2 // WORD] |= ONE << np.uint64(z // 2 % WORD)
