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
    decode, node_bytes = _binary if binary else _full, NODE_BYTES[kind]
    count, read, outcome = decode(stream, node_bytes, np.empty((0, 4), np.int32))
    if outcome == TOO_DEEP:
        raise ObstacleError(f"'{name}': the octree is deeper than {DEPTH} levels")
    if outcome == CUT or read != len(stream):
        raise ObstacleError(f"'{name}': the octree's data have {len(stream)} bytes, its nodes end after {read}")
    leaves = np.empty((count, 4), np.int32)
    decode(stream, node_bytes, leaves)
    return leaves[:, :3].astype(np.int64) - MIDDLE, leaves[:, 3].astype(np.int64)


@njit
def _set_child(row, x, y, z, half, child):
    """row: (4,) lowest cell and edge length of the child of a node whose lowest cell is (x, y, z)"""
    row[0], row[1], row[2] = x + half * (child & 1), y + half * (child >> 1 & 1), z + half * (child >> 2)
    row[3] = half


@njit
def _binary(stream, _, leaves):
    """-> number of leaves, bytes read, outcome; fills leaves (n, 4), lowest cell and edge length, as far as they go."""
    stack = np.empty((8 * DEPTH + 8, 4), np.int32)  # nodes to read: lowest cell and edge length
    stack[0, 0] = stack[0, 1] = stack[0, 2] = 0
    stack[0, 3] = 1 << DEPTH
    waiting, read, count = 1, 0, 0
    while waiting:
        waiting -= 1
        x, y, z, half = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2], stack[waiting, 3] >> 1
        if read + 2 > len(stream):
            return count, read, CUT
        if half == 0:
            return count, read, TOO_DEEP
        children = int(stream[read]) | int(stream[read + 1]) << 8
        read += 2
        for child in range(7, -1, -1):  # the first on top
            what = (children >> (2 * child)) & 3
            if what == OCCUPIED:
                if count < len(leaves):
                    _set_child(leaves[count], x, y, z, half, child)
                count += 1
            elif what == INNER:
                _set_child(stack[waiting], x, y, z, half, child)
                waiting += 1
    return count, read, COMPLETE


@njit
def _full(stream, node_bytes, leaves):
    """As `_binary`."""
    stack = np.empty((8 * DEPTH + 8, 4), np.int32)
    stack[0, 0] = stack[0, 1] = stack[0, 2] = 0
    stack[0, 3] = 1 << DEPTH
    waiting, read, count = 1, 0, 0
    while waiting:
        waiting -= 1
        x, y, z, size = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2], stack[waiting, 3]
        if read + node_bytes + 1 > len(stream):
            return count, read, CUT
        value, children = stream[read : read + 4].view(np.float32)[0], stream[read + node_bytes]
        read += node_bytes + 1
        if children and size == 1:
            return count, read, TOO_DEEP
        if children == 0 and value >= OCCUPIED_FROM:
            if count < len(leaves):
                _set_child(leaves[count], x, y, z, size, 0)
            count += 1
        for child in range(7, -1, -1):
            if children >> child & 1:
                _set_child(stack[waiting], x, y, z, size >> 1, child)
                waiting += 1
    return count, read, COMPLETE
