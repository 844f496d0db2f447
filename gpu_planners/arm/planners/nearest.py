"""Nearest node of a tree in joint space (L2) by scanning: trees of a query are small, and a scan uses all lanes."""

from ...device import lean_njit
from ...parallel.team import lane_count, least_lane
from .node_store import FAR, TILE, ZERO, squared_distance


@lean_njit
def nearest(nodes, count, q, squared, lane):
    """-> (number, squared distance) of the node closest to q among the first `count`; all lanes get the answer.

    nodes: float32 in tiles; q: (dof,) float32; squared: (TILE,) float32 scratch. Of equals the first counts.
    """
    best, index = FAR, -1
    if lane_count() == 1:
        for first in range(0, count, TILE):
            n = min(TILE, count - first)
            tile_squares(nodes, first // TILE, n, q, squared)
            for j in range(n):
                if squared[j] < best:
                    best, index = squared[j], first + j
        return index, best
    for i in range(lane, count, lane_count()):
        distance = squared_distance(nodes, i, q)
        if distance < best:
            best, index = distance, i
    best, index = least_lane(best, index)
    return index, best


@lean_njit
def tile_squares(nodes, tile, count, q, squared):
    """squared: (count,) becomes the squared distances of a tile's first nodes from q.

    The loops have no constant bound: LLVM would unroll them before it looks for vectors, and find none.
    """
    dof = len(q)
    squared[:count] = ZERO
    for k in range(dof):
        at, qk = (tile * dof + k) * TILE, q[k]
        row = nodes[at : at + count]
        for j in range(count):
            d = row[j] - qk
            squared[j] += d * d
