"""Reads the octrees of OctoMap (Hornung et al., Autonomous Robots 2013), as its messages carry them, without OctoMap.

A tree of depth 16 is written depth first. Binary: two bytes for each inner node, two bits for each of its children:
01 (read from the lower bit: 1, 0) free, 10 occupied, 11 an inner node that follows, 00 unknown. Full: for each node its
log-odds as a float32, then for a ColorOcTree three bytes of colour, then a byte with a bit for each child that follows.
Bit 0 of a child's number is its half along x, bit 1 along y, bit 2 along z.
"""

import numpy as np

from ...device import njit
from ...errors import ObstacleError

DEPTH = 16
MIDDLE = 1 << (DEPTH - 1)  # the cell at the origin of the map
NODE_BYTES = {"OcTree": 4, "ColorOcTree": 7}  # of a full tree, before its byte of children
FREE, OCCUPIED, INNER = 1, 2, 3  # two bits
OCCUPIED_FROM = np.float32(0.0)  # log-odds: a probability of a half
COMPLETE, CUT, TOO_DEEP = 0, 1, 2


def octree_leaves(name: str, data: bytes | np.ndarray, binary: bool, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """The occupied leaves of a tree -> (N, 3) int64 cells of the finest level, from the origin of the map, and (N,)
    int64 edge lengths in cells.

    name: what error texts call it; data: bytes; kind: "OcTree" or "ColorOcTree"
    Raises ObstacleError for another kind, and where the data are cut off or do not end with the tree.
    """
    if kind not in NODE_BYTES:
        raise ObstacleError(f"'{name}': an octree of kind '{kind}' is not known; known are {', '.join(NODE_BYTES)}")
    stream = np.ascontiguousarray(np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data.view(np.uint8))
    if not len(stream):
        return np.zeros((0, 3), np.int64), np.zeros(0, np.int64)
    node_bytes = 0 if binary else NODE_BYTES[kind]
    count, read, outcome = _decode(stream, node_bytes, np.empty((0, 4), np.int32))
    if outcome == TOO_DEEP:
        raise ObstacleError(f"'{name}': the octree is deeper than {DEPTH} levels")
    if outcome == CUT or read != len(stream):
        raise ObstacleError(f"'{name}': the octree's data have {len(stream)} bytes, its nodes end after {read}")
    leaves = np.empty((count, 4), np.int32)
    _decode(stream, node_bytes, leaves)
    return leaves[:, :3].astype(np.int64) - MIDDLE, leaves[:, 3].astype(np.int64)


@njit
def _decode(stream, node_bytes, leaves):
    """-> number of leaves, bytes read, outcome; fills leaves (n, 4), lowest cell and edge length, as far as they go.

    node_bytes: of a full tree, before its byte of children; 0: the tree is binary
    """
    stack = np.empty((8 * DEPTH + 8, 4), np.int32)  # nodes to read: lowest cell and edge length
    stack[0, 0] = stack[0, 1] = stack[0, 2] = 0
    stack[0, 3] = 1 << DEPTH
    waiting, read, count = 1, 0, 0
    while waiting:
        waiting -= 1
        x, y, z, size = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2], stack[waiting, 3]
        first, read = read, read + (node_bytes + 1 if node_bytes else 2)
        if read > len(stream):
            return count, first, CUT
        children = 0  # two bits each
        if not node_bytes:
            children = np.int64(stream[first]) | np.int64(stream[first + 1]) << 8
        else:
            for child in range(8):
                children |= (np.int64(stream[read - 1]) >> child & 1) * INNER << 2 * child
            if children == 0 and stream[first : first + 4].view(np.float32)[0] >= OCCUPIED_FROM:
                count = _put(leaves, count, x, y, z, size, 0)
        if size == 1 and (children or not node_bytes):
            return count, read, TOO_DEEP
        for child in range(7, -1, -1):  # the first on top
            what = children >> 2 * child & 3
            if what == OCCUPIED:
                count = _put(leaves, count, x, y, z, size >> 1, child)
            elif what == INNER:
                waiting = _put(stack, waiting, x, y, z, size >> 1, child)
    return count, read, COMPLETE


@njit
def _put(rows, count, x, y, z, size, child):
    """Append the lowest cell and the edge length of a child of the node at (x, y, z), if there is room -> count + 1"""
    if count < len(rows):
        row = rows[count]
        row[0], row[1], row[2] = x + size * (child & 1), y + size * (child >> 1 & 1), z + size * (child >> 2)
        row[3] = size
    return count + 1
