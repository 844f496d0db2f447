"""The tree of `rrt` and `rrt_star` as two flat buffers, for the CPU and for CUDA.

Goals are nodes from the beginning, without a parent until a new node reaches them; they come first, the start follows in
the next tile. Coordinates of nodes are scaled by the square roots of the weights, so that distances are costs. Costs are not
stored: the cost of a node is the sum of the edges up to the root, taken when it is asked for. So a better parent reaches all
descendants at once, and the few nodes near a sample are not deep in the tree.
"""

import math
from typing import NamedTuple

import numpy as np

from ..device import njit

TILE = 32  # nodes whose values of one joint lie side by side
TILES = 4  # tiles that a CUDA lane looks at together, so that its loads overlap: room for so many behind the last node
NEAR = 256  # near nodes of a sample at most
WORKERS = 4096  # at most
ROOT, UNREACHED, NONE = -1, -2, -1
ZERO, FAR = np.float32(0), np.float32(3e38)

# heads of the two buffers
BARRIER, DOF, GOALS, CAPACITY, BATCH, COUNT, DRAWN, MOST, STAR, INFORMED, BEST_NODE, INSIDE, LOOKED, HALT = range(14)
RANGE, GOAL_RADIUS, GOAL_BIAS, LOG_FACTOR, LOG_BALL, LOG_MEASURE, BEST = range(7)
INT_HEAD, FLOAT_HEAD = 16, 8


class Tree(NamedTuple):
    """A tree: its two buffers and where their parts begin. Their heads come first.

    A: float32.  lower, upper, scale (dof,): sqrt(weight), and the bounds scaled by it; points (goals + 1, dof): the goals and
    the start, as they are; x: nodes in tiles of (dof, TILE); edge (capacity,): length of the motion from the parent; offered,
    taker (capacity,): the least cost offered by a new parent, and which sample of the round it is; new_x (batch, dof), new_edge
    (batch,): what a sample becomes; near_edge, near_cost (batch, NEAR); squared (TILE,); look_cost (WORKERS,)
    N: int32.  parent (capacity,); region (capacity,): the goal in whose region a node lies, or -1; joined (batch,): the parent
    of a sample, then its node, -1 when it is not joined; near (batch, NEAR): nodes, -1: refused; near_count (batch,);
    look_node, look_inside (WORKERS,)
    """

    A: np.ndarray
    N: np.ndarray
    lower: int
    upper: int
    scale: int
    points: int
    x: int
    edge: int
    offered: int
    taker: int
    new_x: int
    new_edge: int
    near_edge: int
    near_cost: int
    squared: int
    look_cost: int
    parent: int
    region: int
    joined: int
    near: int
    near_count: int
    look_node: int
    look_inside: int


@njit
def tree_of(A, N):
    """The buffers as a Tree."""
    dof, capacity, batch = N[DOF], N[CAPACITY], N[BATCH]
    lower, parent = FLOAT_HEAD, INT_HEAD
    points = lower + 3 * dof
    x = points + (N[GOALS] + 1) * dof
    edge = x + (capacity + TILES * TILE) * dof
    new_x = edge + 3 * capacity
    near_edge = new_x + batch * (dof + 1)
    squared = near_edge + 2 * batch * NEAR
    joined = parent + 2 * capacity
    near_count = joined + batch * (1 + NEAR)
    return Tree(A, N, lower, lower + dof, lower + 2 * dof, points, x, edge, edge + capacity, edge + 2 * capacity, new_x,
                new_x + batch * dof, near_edge, near_edge + batch * NEAR, squared, squared + TILE,
                parent, parent + capacity, joined, joined + batch, near_count, near_count + batch, near_count + batch + WORKERS)


@njit
def buffer_sizes(N):
    """-> lengths of the float32 and of the int32 buffer for a head N."""
    T = tree_of(N, N)
    return T.look_cost + WORKERS, T.look_inside + WORKERS


@njit
def first_node(T):
    """The start; goals lie before it."""
    return (T.N[GOALS] + TILE - 1) // TILE * TILE


@njit
def place(T, i, k):
    """Where T.A holds coordinate k of node i."""
    return T.x + ((i >> 5) * T.N[DOF] + k) * TILE + (i & 31)


@njit
def fetch(T, i, q):
    """q: (dof,) becomes the configuration of node i."""
    for k in range(len(q)):
        q[k] = T.A[place(T, i, k)] / T.A[T.scale + k]


@njit
def distance(T, i, q):
    """Scaled distance of node i from the scaled q."""
    s = ZERO
    for k in range(len(q)):
        d = T.A[place(T, i, k)] - q[k]
        s += d * d
    return math.sqrt(s)


@njit
def between(T, i, j):
    """Distance of nodes i and j."""
    s = ZERO
    for k in range(T.N[DOF]):
        d = T.A[place(T, i, k)] - T.A[place(T, j, k)]
        s += d * d
    return math.sqrt(s)


@njit
def cost_of(T, i):
    """Length of the way from the start to node i, FAR where there is none. Summed in float64, so that no parent's cost is
    above its child's."""
    total = 0.0
    while T.N[T.parent + i] >= 0:
        total += T.A[T.edge + i]
        i = T.N[T.parent + i]
    return np.float32(total) if T.N[T.parent + i] == ROOT else FAR
