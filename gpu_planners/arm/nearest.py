"""Nearest node of a tree in joint space (L2) by scanning: trees of a query are small, and a scan uses all lanes.

Nodes lie in blocks of BLOCK, one row a joint: coordinate k of node i is nodes[place(i, k, dof)].
"""

import numpy as np
from numba.extending import overload

from ..device import njit

BLOCK = 128
FAR = np.float32(3e38)
ZERO = np.float32(0)


@njit
def place(i, k, dof):
    return (i // BLOCK * dof + k) * BLOCK + i % BLOCK


def nearest(nodes, count, q, distances, lane):
    """-> (number, squared distance) of the node closest to q among the first `count`; the first of equals.

    nodes: float32 in blocks; q: (dof,) float32; distances: (BLOCK,) float32 scratch. All lanes of the worker get the answer.
    """
    raise NotImplementedError("compiled code only")


@overload(nearest, target="cpu", jit_options={"fastmath": True, "error_model": "numpy"})
def _nearest(nodes, count, q, distances, lane):
    def scan(nodes, count, q, distances, lane):
        best, index, dof = FAR, -1, len(q)
        for first in range(0, count, BLOCK):
            n = min(BLOCK, count - first)
            distances[:n] = ZERO
            for k in range(dof):
                at, qk = (first // BLOCK * dof + k) * BLOCK, q[k]
                row = nodes[at:at + n]
                for i in range(n):
                    d = row[i] - qk
                    distances[i] += d * d
            for i in range(n):
                if distances[i] < best:
                    best, index = distances[i], first + i
        return index, best

    return scan
