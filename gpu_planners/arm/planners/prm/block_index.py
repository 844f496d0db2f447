"""Neighbours in blocks, [DL14] section 3.1 and algorithm 4: points lie in blocks of fixed size, and a key computed from
a point names the chain of blocks that holds it. A node is inserted at once; nothing is rebuilt.

Departure: the key takes two components of a point, (floor(x0 / H), floor(x1 / H)), and a search goes outwards from the
cell of the query, ring by ring, until no cell farther out can hold a nearer point.
"""

from typing import NamedTuple

import numpy as np

from ....device import njit
from ..node_store import FAR, ZERO

BLOCK = 16  # points of a block
CELLS = 16  # cells along each of the two keyed components at most
ANY = -1  # label of every point
EVERYWHERE = np.float32(1e18)  # a radius


class Blocks(NamedTuple):
    """Chains of blocks, one for each cell.

    first, last: (CELLS * CELLS,) int32 first and last block of a cell's chain, -1: none
    next, count: (blocks,) int32 the block that follows, and how many points a block has
    ids: (blocks, BLOCK) int32 numbers of the points;  points: (blocks, dof, BLOCK) float32
    used: (1,) int64 blocks in use;  low, width: (2,) float32 origin and H of the key;  cells: (2,) int64
    """

    first: np.ndarray
    last: np.ndarray
    next: np.ndarray
    count: np.ndarray  # type: ignore[assignment]  # tuples have a method of this name, which nobody calls
    ids: np.ndarray
    points: np.ndarray
    used: np.ndarray
    low: np.ndarray
    width: np.ndarray
    cells: np.ndarray


def new_blocks(lower: np.ndarray, upper: np.ndarray, width: float) -> Blocks:
    """An empty index for points between lower and upper, (dof,); width: H, the least size of a cell."""
    dof = len(lower)
    low, cells, widths = np.zeros(2, dtype=np.float32), np.ones(2, dtype=np.int64), np.ones(2, dtype=np.float32)
    for k in range(min(dof, 2)):
        extent = max(float(upper[k] - lower[k]), 1e-6)
        cells[k] = min(CELLS, max(1, int(extent / width)))
        low[k], widths[k] = lower[k], extent / cells[k]
    chains = np.full(CELLS * CELLS, -1, dtype=np.int32)
    following, count, ids, points = _storage(64, dof)
    used = np.zeros(1, dtype=np.int64)
    return Blocks(chains, chains.copy(), following, count, ids, points, used, low, widths, cells)


def with_room(blocks: Blocks, points: int) -> Blocks:
    """The index with storage for `points` more points, whatever their cells."""
    need, have = int(blocks.used[0]) + points, len(blocks.next)
    if need <= have:
        return blocks
    more = _storage(max(need, 2 * have) - have, blocks.points.shape[1])
    names = ("next", "count", "ids", "points")
    grown = {name: np.concatenate([getattr(blocks, name), part]) for name, part in zip(names, more)}
    return blocks._replace(**grown)


def _storage(blocks, dof):
    return (
        np.full(blocks, -1, dtype=np.int32),
        np.zeros(blocks, dtype=np.int32),
        np.zeros((blocks, BLOCK), dtype=np.int32),
        np.zeros((blocks, dof, BLOCK), dtype=np.float32),
    )


@njit
def cell_of(blocks, x, k):
    """Which cell x falls in along component k; points outside the bounds belong to the cells at the edge."""
    return min(max(int((x[k] - blocks.low[k]) / blocks.width[k]), 0), blocks.cells[k] - 1) if k < len(x) else 0


@njit
def insert(blocks, number, x):
    """Put the point x (dof,) with its number into the index ([DL14] algorithm 4)."""
    cell = cell_of(blocks, x, 0) * CELLS + cell_of(blocks, x, 1)
    b = blocks.last[cell]
    if b < 0 or blocks.count[b] == BLOCK:
        new = blocks.used[0]
        blocks.used[0] = new + 1
        blocks.next[new], blocks.count[new] = -1, 0
        if b < 0:
            blocks.first[cell] = new
        else:
            blocks.next[b] = new
        blocks.last[cell] = new
        b = new
    i = blocks.count[b]
    blocks.ids[b, i] = number
    for k in range(len(x)):
        blocks.points[b, k, i] = x[k]
    blocks.count[b] = i + 1


@njit
def insert_all(blocks, first, q):
    """Put the points q (N, dof), numbered from `first` on, into the index."""
    for i in range(len(q)):
        insert(blocks, first + i, q[i])


@njit
def nearest_each(blocks, q, count):
    """(N, count) int32: the nearest points to each of q (N, dof), by distance; -1: no more."""
    found = np.full((len(q), count), -1, dtype=np.int32)
    distance = np.empty(count, dtype=np.float32)
    anybody = np.zeros(1, dtype=np.int32)
    for i in range(len(q)):
        nearest(blocks, q[i], EVERYWHERE, anybody, ANY, found[i], distance)
    return found


@njit(fastmath=True)
def nearest(blocks, x, reach, labels, label, found, distance):
    """The nearest points to x within `reach`, at most len(found), in the order of their distance; -> how many.

    labels: (n,) int32: only points whose label is `label` are taken; label ANY: all.
    found (k,) int32: their numbers, distance (k,) float32: squared.
    """
    k_most, dof = len(found), len(x)
    n, limit = 0, reach * reach
    c0, c1 = cell_of(blocks, x, 0), cell_of(blocks, x, 1)
    squared = np.empty(BLOCK, dtype=np.float32)
    for ring in range(max(blocks.cells[0], blocks.cells[1])):
        gap = ZERO if ring == 0 else _gap(blocks, x, c0, c1, ring)
        if gap * gap > limit:
            break
        for i in range(max(c0 - ring, 0), min(c0 + ring + 1, blocks.cells[0])):
            step = 1 if abs(i - c0) == ring else max(2 * ring, 1)
            for j in range(c1 - ring, c1 + ring + 1, step):
                if j < 0 or j >= blocks.cells[1]:
                    continue
                b = blocks.first[i * CELLS + j]
                while b >= 0:
                    points = blocks.points[b]
                    squared[:] = ZERO
                    for k in range(dof):
                        xk = x[k]
                        for m in range(BLOCK):
                            d = points[k, m] - xk
                            squared[m] += d * d
                    for m in range(blocks.count[b]):
                        if squared[m] > limit or (n == k_most and squared[m] >= distance[n - 1]):
                            continue
                        number = blocks.ids[b, m]
                        if label != ANY and labels[number] != label:
                            continue
                        at = min(n, k_most - 1)
                        while at > 0 and distance[at - 1] > squared[m]:
                            found[at], distance[at] = found[at - 1], distance[at - 1]
                            at -= 1
                        found[at], distance[at] = number, squared[m]
                        n = min(n + 1, k_most)
                        if n == k_most:
                            limit = distance[n - 1]
                    b = blocks.next[b]
    return n


@njit
def _gap(blocks, x, c0, c1, ring):
    """Distance of x from the nearest cell of a ring around its own cell."""
    gap = FAR
    for k in range(2):
        c = c0 if k == 0 else c1
        if k < len(x):
            if c + ring < blocks.cells[k]:
                gap = min(gap, blocks.low[k] + (c + ring) * blocks.width[k] - x[k])
            if c - ring >= 0:
                gap = min(gap, x[k] - (blocks.low[k] + (c - ring + 1) * blocks.width[k]))
    return max(gap, ZERO)
