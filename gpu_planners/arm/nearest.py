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
