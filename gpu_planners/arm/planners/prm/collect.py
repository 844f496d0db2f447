"""The graph that PRM's trees have become, as nodes and edges."""

import math

import numpy as np

from ....device import njit
from ....parallel.team import clock_ns
from ..node_store import ZERO
from .state import NONE, UNTRIED

FREE, BLOCKED, UNCHECKED = 1, 0, -1  # states of nodes and edges
LOOK = 4096  # nodes between two looks at the clock, where each is little work


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
