"""A roadmap: configurations, and motions between them that are free, blocked or not checked yet. It is kept for many queries.

When the obstacles change it is checked again, not rebuilt: what is blocked stays and is used again when the obstacle goes.
A lazy roadmap checks a motion only when the shortest path needs it (Bohlin and Kavraki, ICRA 2000).
"""

from contextlib import contextmanager

import numpy as np

from .block_index import insert_all, nearest_each, new_blocks, with_room
from .graph_search import shortest_path
from .prm_growth import weighted_lengths

FREE, BLOCKED, UNCHECKED = 1, 0, -1
FAR = 1e18


class Graph:
    """nodes: (n, dof) float32, rad or m;  edges: (m, 2) int32;  lengths: (m,) float32, weighted joint-space L2
    node_states: (n,) int8, edge_states: (m,) int8: FREE, BLOCKED or UNCHECKED
    """

    def __init__(self, nodes, edges, lengths, edge_states):
        self.nodes, self.edges, self.lengths, self.edge_states = nodes, edges, lengths, edge_states
        self.node_states = np.full(len(nodes), FREE, dtype=np.int8)

    def shortest_path(self, start, goals, checker):
        """-> nodes of the shortest free path from the node `start` to the nearest of the nodes `goals`; [] when there is none.

        Motions on it that nobody has checked are checked; the search is repeated until all of the path is free."""
        targets = np.zeros(len(self.nodes), dtype=np.bool_)
        targets[goals] = True
        while True:
            path, end = shortest_path(self.node_states, self.edges, self.edge_states, self.lengths, start, targets)
            unchecked = path[self.edge_states[path] == UNCHECKED]
            if end < 0 or not len(unchecked):
                break
            self.edge_states[unchecked] = self._motions(self.edges[unchecked], checker)
        if end < 0:
            return []
        chain = [start]
        for edge in path:
            chain.append(int(self.edges[edge].sum()) - chain[-1])
        return chain

    def _motions(self, edges, checker):
        return checker.motions_valid(self.nodes[edges[:, 0]], self.nodes[edges[:, 1]]).astype(np.int8)


class Roadmap(Graph):
    """As Graph, the lower node of an edge first.

    weights: (dof,) float32 of the lengths;  version: of the world that the states are true for;  drawn: samples so far;  blocks: the index of the nodes
    """

    def __init__(self, lower, upper, weights, version):
        self.weights, self.version, self.drawn = np.asarray(weights, dtype=np.float32), version, 0
        super().__init__(np.zeros((0, len(lower)), dtype=np.float32), np.zeros((0, 2), dtype=np.int32),
                         np.zeros(0, dtype=np.float32), np.zeros(0, dtype=np.int8))
        self.blocks = new_blocks(lower, upper, (np.asarray(upper) - lower).max() / 16)

    def add_nodes(self, q):
        """Append free configurations (N, dof); -> the number of the first one."""
        q = np.ascontiguousarray(q, dtype=np.float32)
        first = len(self.nodes)
        self.nodes = np.concatenate([self.nodes, q])
        self.node_states = np.concatenate([self.node_states, np.full(len(q), FREE, dtype=np.int8)])
        self.blocks = with_room(self.blocks, len(q))
        insert_all(self.blocks, first, q)
        return first

    def add_edges(self, edges, states):
        """Append edges (k, 2) with their states (k,); those that are there already are left out."""
        edges, first = np.unique(np.sort(np.asarray(edges, dtype=np.int32).reshape(-1, 2), axis=1), axis=0, return_index=True)
        new = ~np.isin(_keys(edges), _keys(self.edges)) & (edges[:, 0] != edges[:, 1])
        edges, states = edges[new], np.asarray(states, dtype=np.int8)[first[new]]
        self.edges = np.concatenate([self.edges, edges])
        self.lengths = np.concatenate([self.lengths, weighted_lengths(self.nodes, edges, self.weights)])
        self.edge_states = np.concatenate([self.edge_states, states])

    def nearest(self, q, count, reach=FAR):
        """q (N, dof) -> (N, count) int32 nodes within `reach` by their distance, -1 where there are no more."""
        return nearest_each(self.blocks, np.ascontiguousarray(q, dtype=np.float32), np.float32(reach), count)

    def connect(self, first, count, checker, lazy):
        """Try to join every node from `first` on with its `count` nearest nodes."""
        near = self.nearest(self.nodes[first:], count + 1)
        self._try_pairs(np.arange(first, len(self.nodes)), near, checker, lazy)

    def revalidate(self, checker, lazy):
        """Make the states true for the checker's world: all of them now, or (lazy) where a path needs them."""
        if self.version == checker.version:
            return
        version = checker.version
        self.node_states[:], self.edge_states[:] = UNCHECKED, UNCHECKED
        if not lazy:
            self.node_states[:] = checker.configurations_valid(self.nodes)
            ends_free = (self.node_states[self.edges] == FREE).all(axis=1)
            self.edge_states[:] = BLOCKED
            self.edge_states[ends_free] = self._motions(self.edges[ends_free], checker)
        self.version = version

    @contextmanager
    def visitors(self, q, count, checker, lazy):
        """Configurations (N, dof) that are nodes for the length of a query, tried with their `count` nearest nodes and, the
        first one, with the others. -> the number of the first one"""
        kept = self.nodes, self.node_states, self.edges, self.lengths, len(self.edge_states)
        first, near = len(self.nodes), self.nearest(q, count)
        try:
            self.nodes = np.concatenate([self.nodes, np.asarray(q, dtype=np.float32)])
            self.node_states = np.concatenate([self.node_states, np.full(len(q), FREE, dtype=np.int8)])
            near = np.concatenate([near, np.full((len(q), 1), first)], axis=1)
            self._try_pairs(np.arange(first, len(self.nodes)), near, checker, lazy)
            yield first
        finally:
            self.nodes, self.node_states, self.edges, self.lengths, m = kept
            self.edge_states = self.edge_states[:m]

    def _try_pairs(self, numbers, near, checker, lazy):
        """numbers: (N,) nodes;  near: (N, k) the nodes that they are tried with, -1: none"""
        pairs = np.stack([np.repeat(numbers, near.shape[1]), near.ravel()], axis=1)
        pairs = np.unique(np.sort(pairs[(pairs[:, 1] >= 0) & (pairs[:, 0] != pairs[:, 1])], axis=1), axis=0)
        self.add_edges(pairs, np.full(len(pairs), UNCHECKED) if lazy else self._motions(pairs, checker))


def _keys(edges):
    return edges[:, 0].astype(np.int64) << 32 | edges[:, 1]
