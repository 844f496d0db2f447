"""Nearest neighbours in joint space (L2) by scanning: trees of a query are small, and a scan vectorises."""

import numpy as np

from ..device import njit

BLOCK = 128  # nodes per step of the scan: their distances stay in registers and the first-level cache
FAR = np.float32(3e38)


@njit(fastmath=True)
def nearest(nodes, count, q, distances):
    """Index and squared distance of the node closest to q.

    nodes: (dof, capacity) float32, one row a joint, so that the scan runs along memory; distances: (BLOCK,) scratch.
    """
    best, index = FAR, -1
    for first in range(0, count, BLOCK):
        n = min(BLOCK, count - first)
        distances[:n] = np.float32(0)
        for k in range(nodes.shape[0]):
            row, qk = nodes[k], q[k]
            for i in range(n):
                d = row[first + i] - qk
                distances[i] += d * d
        for i in range(n):
            if distances[i] < best:
                best, index = distances[i], first + i
    return index, best


@njit
def nearest_each(nodes, count, q):
    """`nearest` for every row of q (n, dof) -> (n,) int64, (n,) float32 distances."""
    index, distance = np.empty(len(q), dtype=np.int64), np.empty(len(q), dtype=np.float32)
    scratch = np.empty(BLOCK, dtype=np.float32)
    for i in range(len(q)):
        index[i], squared = nearest(nodes, count, q[i], scratch)
        distance[i] = np.sqrt(squared)
    return index, distance
