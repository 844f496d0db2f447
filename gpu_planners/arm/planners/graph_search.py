"""Dijkstra's shortest paths (Numerische Mathematik 1959) on a graph of edges: the end of [DL14] algorithm 1."""

import heapq

import numpy as np

from ...device import njit
from ...parallel.team import clock_ns
from .node_store import FAR, ZERO

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
    """-> edges of the shortest path from the node `start` to the nearest target, in order, and that target; -1 where
    none was found until the deadline. lengths: (m,) float32;  targets: (n,) bool. Of equal lengths the lower node."""
    n = len(node_states)
    first, to, by = adjacency(node_states, edges, edge_states)
    distance, previous, done = np.full(n, FAR), np.full(n, -1, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    distance[start] = ZERO
    heap, looks, end = [(ZERO, np.int64(start))], 0, -1
    while len(heap) > 0:
        looks += 1
        if looks % LOOK == 0 and clock_ns() > deadline:
            break
        _, node = heapq.heappop(heap)
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
                heapq.heappush(heap, (through, other))
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
