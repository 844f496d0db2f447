"""A roadmap for many queries: configurations, and motions between them that are free, blocked or not checked yet.

When the obstacles change it is checked again, not rebuilt: what is blocked stays and is used again when the obstacle
goes. A lazy roadmap checks a motion only when the shortest path needs it (Bohlin and Kavraki, ICRA 2000). Paths are
Dijkstra's (Numerische Mathematik 1959): the end of [DL14] algorithm 1.
"""

import functools
import heapq
import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import ArrayLike

from ....device import njit
from ....parallel.team import NEVER, clock_ns
from ..node_store import FAR, ZERO
from ..query import in_pieces
from .block_index import insert_all, nearest_each, new_blocks, with_room
from .growth import NONE, UNTRIED

FREE, BLOCKED, UNCHECKED = 1, 0, -1  # states of nodes and edges
LOOK = 4096  # nodes that are collected between two looks at the clock
LOOK_ON_WAY = 1024  # nodes that are taken off Dijkstra's heap between two looks at the clock


@functools.cache
def warm_up_roadmaps() -> None:
    """Compile what roadmaps need, or load it from the cache, before the clock of a query starts."""
    q = np.array([[0], [1]], dtype=np.float32)
    roadmap = Roadmap(q[0], q[1], np.ones(1), 0)
    roadmap.nearest(q, 1)
    roadmap.add_nodes(q)
    roadmap.add_edges([[0, 1]], [FREE])
    roadmap.shortest_path(0, [1], None)


class Graph:
    """nodes: (n, dof) float32, rad or m;  edges: (m, 2) int32;  lengths: (m,) float32, weighted joint-space L2
    node_states: (n,) int8, edge_states: (m,) int8: FREE, BLOCKED or UNCHECKED
    """

    def __init__(self, nodes: np.ndarray, edges: np.ndarray, lengths: np.ndarray, edge_states: np.ndarray):
        self.nodes, self.edges, self.lengths, self.edge_states = nodes, edges, lengths, edge_states
        self.node_states: np.ndarray = np.full(len(nodes), FREE, dtype=np.int8)

    def shortest_path(self, start: int, goals: ArrayLike, checker, deadline: int = NEVER) -> list[int]:
        """-> nodes of the shortest free path from the node `start` to the nearest of the nodes `goals`; [] when there
        is none, or none was found until the deadline, of clock_ns().

        Motions on it that nobody has checked are checked; the search is repeated until all of the path is free."""
        targets = np.zeros(len(self.nodes), dtype=np.bool_)
        targets[np.asarray(goals)] = True
        while True:
            graph = self.node_states, self.edges, self.edge_states, self.lengths
            path, end = shortest_path(*graph, start, targets, deadline)
            unchecked = path[self.edge_states[path] == UNCHECKED]
            if end < 0:
                return []
            if not len(unchecked):
                break
            if clock_ns() > deadline:
                return []
            self.edge_states[unchecked] = self._motions(self.edges[unchecked], checker, deadline)
        chain = [start]
        for edge in path:
            chain.append(int(self.edges[edge].sum()) - chain[-1])
        return chain

    def _motions(self, edges, checker, deadline):
        """-> states (m,) of edges (m, 2); UNCHECKED those that there was no time for."""
        states = np.full(len(edges), UNCHECKED, dtype=np.int8)
        free = in_pieces(checker.motions_valid, deadline, self.nodes[edges[:, 0]], self.nodes[edges[:, 1]])
        states[: len(free)] = free
        return states


class Roadmap(Graph):
    """As Graph, the lower node of an edge first.

    weights: (dof,) float32 of the lengths;  version: of the world that the states are true for;  drawn: samples so far;
     blocks: the index of the nodes
    """

    def __init__(self, lower: np.ndarray, upper: np.ndarray, weights: ArrayLike, version):
        self.weights, self.version, self.drawn = np.asarray(weights, dtype=np.float32), version, 0
        super().__init__(
            np.zeros((0, len(lower)), dtype=np.float32),
            np.zeros((0, 2), dtype=np.int32),
            np.zeros(0, dtype=np.float32),
            np.zeros(0, dtype=np.int8),
        )
        self.blocks = new_blocks(lower, upper, (np.asarray(upper) - lower).max() / 16)

    def add_nodes(self, q: ArrayLike) -> int:
        """Append free configurations (N, dof); -> the number of the first one."""
        q = np.ascontiguousarray(q, dtype=np.float32)
        first = len(self.nodes)
        self.nodes = np.concatenate([self.nodes, q])
        self.node_states = np.concatenate([self.node_states, np.full(len(q), FREE, dtype=np.int8)])
        self.blocks = with_room(self.blocks, len(q))
        insert_all(self.blocks, first, q)
        return first

    def add_edges(self, edges: ArrayLike, states: ArrayLike) -> None:
        """Append edges (k, 2) of two nodes each with their states (k,), none of which are there."""
        edges = np.sort(np.asarray(edges, dtype=np.int32).reshape(-1, 2), axis=1)
        self.edges = np.concatenate([self.edges, edges])
        self.lengths = np.concatenate([self.lengths, weighted_lengths(self.nodes, edges, self.weights)])
        self.edge_states = np.concatenate([self.edge_states, np.asarray(states, dtype=np.int8)])

    def nearest(self, q: np.ndarray, count: int) -> np.ndarray:
        """q (N, dof) -> (N, count) int32 nodes by their distance, -1 where there are no more."""
        return nearest_each(self.blocks, np.ascontiguousarray(q, dtype=np.float32), count)

    def connect(self, first: int, count: int, checker, lazy: bool, deadline: int = NEVER) -> None:
        """Try to join every node from `first` on, none of which has an edge, with its `count` nearest nodes. Motions
        that there is no time for stay UNCHECKED, and nodes without edges."""
        near = in_pieces(lambda q: self.nearest(q, count + 1), deadline, self.nodes[first:])
        self._try_pairs(np.arange(first, first + len(near)), near.reshape(-1, count + 1), checker, lazy, deadline)

    def revalidate(self, checker, lazy: bool, deadline: int = NEVER) -> None:
        """Make the states true for the checker's world: all of them now, or (lazy, and those that there is no time for)
        where a path needs them."""
        if self.version == checker.version:
            return
        self.version = checker.version
        self.node_states[:], self.edge_states[:] = UNCHECKED, UNCHECKED
        if not lazy:
            free = in_pieces(checker.configurations_valid, deadline, self.nodes)
            self.node_states[: len(free)] = free
            ends_free = (self.node_states[self.edges] != BLOCKED).all(axis=1)
            self.edge_states[:] = BLOCKED
            self.edge_states[ends_free] = self._motions(self.edges[ends_free], checker, deadline)

    @contextmanager
    def visitors(self, q: np.ndarray, count: int, checker, lazy: bool, deadline: int = NEVER) -> Iterator[int]:
        """Configurations (N, dof) that are nodes for the length of a query, tried with their `count` nearest nodes and,
        the first one, with the others. -> the number of the first one"""
        kept = self.nodes, self.node_states, self.edges, self.lengths, len(self.edge_states)
        first, near = len(self.nodes), in_pieces(lambda q: self.nearest(q, count), deadline, q).reshape(-1, count)
        try:
            self.nodes = np.concatenate([self.nodes, np.asarray(q, dtype=np.float32)])
            self.node_states = np.concatenate([self.node_states, np.full(len(q), FREE, dtype=np.int8)])
            near = np.concatenate([near, np.full((len(near), 1), first)], axis=1)
            self._try_pairs(np.arange(first, first + len(near)), near, checker, lazy, deadline)
            yield first
        finally:
            self.nodes, self.node_states, self.edges, self.lengths, m = kept
            self.edge_states = self.edge_states[:m]

    def _try_pairs(self, numbers, near, checker, lazy, deadline):
        """numbers: (N,) nodes;  near: (N, k) the nodes that they are tried with, -1: none"""
        pairs = np.stack([np.repeat(numbers, near.shape[1]), near.ravel()], axis=1)
        pairs = np.sort(pairs[(pairs[:, 1] >= 0) & (pairs[:, 0] != pairs[:, 1])], axis=1).astype(np.int64)
        pairs = np.unique(pairs[:, 0] << 32 | pairs[:, 1])
        pairs = np.stack([pairs >> 32, pairs & 0xFFFFFFFF], axis=1)
        self.add_edges(pairs, np.full(len(pairs), UNCHECKED) if lazy else self._motions(pairs, checker, deadline))


@njit
def collect(ask, report, weights, deadline):
    """The graph that has grown: nodes (n, dof), the start first, then its tree, the goals, their tree; edges (m, 2)
    int32; lengths (m,) float32 weighted; states (m,) int8. Without edges where the deadline was before."""
    dof, capacity, tried, n0 = ask.dof, ask.capacity, ask.tried, ask.counts_0
    n = n0 + ask.counts_1
    nodes = np.empty((n, dof), dtype=np.float32)
    edges, states = np.empty((n * (tried + 1), 2), dtype=np.int32), np.empty(n * (tried + 1), dtype=np.int8)
    m = 0
    for i in range(n):
        if i % LOOK == 0 and clock_ns() > deadline:
            m = 0
            break
        node = i if i < n0 else capacity + i - n0
        for k in range(dof):
            nodes[i, k] = report.nodes[node * dof + k]
        for r in range(tried + 1):
            other = report.parents[node] if r == tried else report.neighbours[node * tried + r]
            if other != NONE:
                states[m] = FREE if other >= 0 else UNCHECKED
                other = other if other >= 0 else UNTRIED - other
                edges[m, 0], edges[m, 1] = i, other if other < capacity else other - capacity + n0
                m += 1
    return nodes, edges[:m], weighted_lengths(nodes, edges[:m], weights), states[:m]


@njit
def weighted_lengths(nodes, edges, weights):
    """(m,) float32: sqrt(sum of weight * difference squared) of each edge; weights: (dof,) float32"""
    lengths = np.empty(len(edges), dtype=np.float32)
    for e in range(len(edges)):
        squared = ZERO
        for k in range(nodes.shape[1]):
            difference = nodes[edges[e, 0], k] - nodes[edges[e, 1], k]
            squared += weights[k] * difference * difference
        lengths[e] = math.sqrt(squared)
    return lengths


@njit
def adjacency(node_states, edges, edge_states):
    """CSR of an undirected graph: first (n + 1,), to and by (2 m,) int64: neighbours and the edges to them. A state of
    0 leaves a node (n,) or an edge (m,) out. edges: (m, 2) int32
    """
    n = len(node_states)
    usable, first = np.empty(len(edges), dtype=np.bool_), np.zeros(n + 2, dtype=np.int64)
    for e in range(len(edges)):
        usable[e] = edge_states[e] != 0 and node_states[edges[e, 0]] != 0 and node_states[edges[e, 1]] != 0
        if usable[e]:
            first[edges[e, 0] + 2] += 1
            first[edges[e, 1] + 2] += 1
    first = np.cumsum(first)
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
        if looks % LOOK_ON_WAY == 0 and clock_ns() > deadline:
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
    path, steps, node = np.empty(n, dtype=np.int64), 0, end
    while end >= 0 and node != start:
        path[steps] = previous[node]
        node = edges[path[steps], 0] + edges[path[steps], 1] - node
        steps += 1
    return path[:steps][::-1], end
