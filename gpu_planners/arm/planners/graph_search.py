"""Dijkstra's shortest paths (Numerische Mathematik 1959) on a graph given by its edges; the end of [DL14] algorithm
1."""

import numpy as np

from ...device import njit
from ...parallel.team import clock_ns
from .node_store import FAR

LOOK = 1024  # nodes between two looks at the clock


@njit
def adjacency(node_states, edges, edge_states):
    """CSR of an undirected graph: first (n + 1,), to and by (2 m,) int64: neighbours and the edges to them. A state of
    0 leaves a node (n,) or an edge (m,) out. edges: (m, 2) int32
    """
    n = len(node_states)
    usable = np.empty(len(edges), dtype=np.bool_)
    for e in range(len(edges)):
        usable[e] = edge_states[e] != 0 and node_states[edges[e, 0]] != 0 and node_states[edges[e, 1]] != 0
    first = np.zeros(n + 2, dtype=np.int64)
    for e in range(len(edges)):
        if usable[e]:
            first[edges[e, 0] + 2] += 1
            first[edges[e, 1] + 2] += 1
    for i in range(2, n + 2):
        first[i] += first[i - 1]
    to, by = np.empty(first[n + 1], dtype=np.int64), np.empty(first[n + 1], dtype=np.int64)
    for e in range(len(edges)):
        if usable[e]:
            for side in range(2):
                a, b = edges[e, side], edges[e, 1 - side]
                to[first[a + 1]], by[first[a + 1]] = b, e
                first[a + 1] += 1
    return first[: n + 1], to, by


@njit
def shortest_path(node_states, edges, edge_states, lengths, start, targets, deadline):
    """-> edges of the shortest path from the node `start` to the nearest target, in order, and that target; -1 where no
    path is, or none was found until the deadline. lengths: (m,) float32;  targets: (n,) bool. Equal lengths: the lower
    node first."""
    n = len(node_states)
    first, to, by = adjacency(node_states, edges, edge_states)
    distance, previous, done = np.full(n, FAR), np.full(n, -1, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    keys, heap, size, looks = np.empty(len(to) + 1, dtype=np.float32), np.empty(len(to) + 1, dtype=np.int64), 1, 0
    distance[start] = np.float32(0)
    keys[0], heap[0] = distance[start], start
    end = -1
    while size > 0:
        looks += 1
        if looks % LOOK == 0 and clock_ns() > deadline:
            break
        node = heap[0]
        size -= 1
        _sift_down(keys, heap, size, keys[size], heap[size])
        if done[node]:
            continue
        done[node] = True
        if targets[node]:
            end = node
            break
        for j in range(first[node], first[node + 1]):
            other, through = to[j], distance[node] + lengths[by[j]]
            if through < distance[other]:
                distance[other], previous[other] = through, by[j]
                _sift_up(keys, heap, size, through, other)
                size += 1
    steps = 0
    node = end
    while end >= 0 and node != start:
        node = edges[previous[node], 0] + edges[previous[node], 1] - node
        steps += 1
    path = np.empty(steps, dtype=np.int64)
    node = end
    for i in range(steps - 1, -1, -1):
        path[i] = previous[node]
        node = edges[path[i], 0] + edges[path[i], 1] - node
    return path, end


@njit
def _before(key_a, a, key_b, b):
    return key_a < key_b or (key_a == key_b and a < b)


@njit
def _sift_up(keys, heap, i, key, node):
    while i > 0:
        up = (i - 1) >> 1
        if not _before(key, node, keys[up], heap[up]):
            break
        keys[i], heap[i] = keys[up], heap[up]
        i = up
    keys[i], heap[i] = key, node


@njit
def _sift_down(keys, heap, size, key, node):
    i = 0
    while 2 * i + 1 < size:
        down = 2 * i + 1
        if down + 1 < size and _before(keys[down + 1], heap[down + 1], keys[down], heap[down]):
            down += 1
        if not _before(keys[down], heap[down], key, node):
            break
        keys[i], heap[i] = keys[down], heap[down]
        i = down
    keys[i], heap[i] = key, node
