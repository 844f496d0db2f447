"""What the growth of a tree works on: the records of its compiled code, made of two flat buffers, for the CPU and for
CUDA.

Goals are nodes from the beginning, without a parent until a new node reaches them; they come first, the start follows
in the next tile. Coordinates of nodes are scaled by the square roots of the weights, so that distances are costs. Costs
are not
stored: the cost of a node is the sum of the edges up to the root, taken when it is asked for. So a better parent
reaches all descendants at once, and the few nodes near a sample are not deep in the tree.
"""

import math
from typing import NamedTuple

import numpy as np

from ....device import lean_njit
from ....parallel.team import Worker
from ..node_store import FAR, TILE, ZERO, Desk, place

NEAR = 256  # near nodes of a sample at most
WORKERS = 4096  # at most
ROOT, UNREACHED, NONE = -1, -2, -1


class Ask(NamedTuple):
    """What does not change during a query, in the order of the int32 buffer, behind the team's barrier.

    batch: samples of a round at most; most: samples of the query; star: rewire, as RRT* does; informed: draw where a
    shorter path may pass
    """

    dof: int
    goals: int
    capacity: int
    batch: int
    most: int
    star: bool
    informed: bool


class Measures(NamedTuple):
    """The same at the beginning of the float32 buffer.

    reach: longest motion that is added at once; goal_radius: a path may end so close to a goal; goal_bias: share of
    samples drawn at one
    log_factor: logarithm of the factor of the near radius; log_ball: of the unit ball's volume; log_measure: of the box
    that samples are drawn from
    """

    reach: float
    goal_radius: float
    goal_bias: float
    log_factor: float
    log_ball: float
    log_measure: float


class Board(NamedTuple):
    """What the workers tell each other, and what outlives a launch: (1,) each, int32 but `best`.

    count: nodes; drawn: samples; best_node: the end of the best path, -1: none; best: its cost, FAR: none
    inside: how many of the first `looked` nodes lie in the informed set; halt: 1 when the time is up
    """

    count: np.ndarray  # type: ignore[assignment]  # tuples have a method of this name, which nobody calls
    drawn: np.ndarray
    best_node: np.ndarray
    inside: np.ndarray
    looked: np.ndarray
    halt: np.ndarray
    best: np.ndarray


INT_HEAD, FLOAT_HEAD = (
    16,
    8,
)  # numbers before the parts of each buffer: the barrier and Ask, or Measures, then the Board


class Tree(NamedTuple):
    """The tree itself.

    nodes: float32 in tiles of node_store, scaled; edge: (capacity,) float32 length of the motion from the parent
    offered, taker: (capacity,) float32: the least cost offered by a new parent, and which sample of the round it is
    parent: (capacity,) int32; region: (capacity,) int32: the goal in whose region a node lies, or -1
    """

    nodes: np.ndarray
    edge: np.ndarray
    offered: np.ndarray
    taker: np.ndarray
    parent: np.ndarray
    region: np.ndarray


class Slots(NamedTuple):
    """One row for each sample of a round: what it becomes, and the nodes near it.

    x: (batch * dof,) float32, scaled; edge: (batch,) float32; near_edge, near_cost: (batch * NEAR,) float32
    joined: (batch,) int32: the parent of a sample, then its node, -1 when it is not joined; near: (batch * NEAR,) int32
    nodes, -1: refused
    near_count: (batch,) int32
    """

    x: np.ndarray
    edge: np.ndarray
    near_edge: np.ndarray
    near_cost: np.ndarray
    joined: np.ndarray
    near: np.ndarray
    near_count: np.ndarray


class Looks(NamedTuple):
    """What each worker has found when the best path is looked for: (WORKERS,) cost float32, node, inside int32"""

    cost: np.ndarray
    node: np.ndarray
    inside: np.ndarray


class Growth(NamedTuple):
    """A tree and all that belongs to it. lower, upper, scale: (dof,) sqrt(weight), and the bounds scaled by it
    points: ((goals + 1) * dof,) the goals and the start, as they are"""

    ask: Ask
    measures: Measures
    board: Board
    lower: np.ndarray
    upper: np.ndarray
    scale: np.ndarray
    points: np.ndarray
    tree: Tree
    slots: Slots
    looks: Looks


class Job(NamedTuple):
    """A Growth, as one lane of one worker sees it. seed: uint64; deadline: of clock_ns()"""

    growth: Growth
    desk: Desk
    seed: int
    deadline: int
    worker: Worker


def new_ints(ask: Ask) -> np.ndarray:
    """(INT_HEAD,) int32: the beginning of a new tree's int32 buffer."""
    ints = np.zeros(INT_HEAD, dtype=np.int32)
    ints[1 : 1 + len(ask)] = ask
    ints[10] = -1  # Board.best_node
    return ints


def new_floats(measures: Measures, *vectors: np.ndarray) -> np.ndarray:
    """The beginning of a new tree's float32 buffer; vectors: lower, upper, scale, goals and start."""
    head = np.zeros(FLOAT_HEAD)
    head[: len(measures) + 1] = *measures, FAR  # Board.best
    return np.concatenate([head, *(vector.ravel() for vector in vectors)]).astype(np.float32)


@lean_njit
def open_board(floats, ints):
    """The Board behind the heads."""
    return Board(ints[8:9], ints[9:10], ints[10:11], ints[11:12], ints[12:13], ints[13:14], floats[6:7])


@lean_njit
def open_growth(floats, ints):
    """The two buffers as a Growth."""
    ask = Ask(ints[1], ints[2], ints[3], ints[4], ints[5], ints[6] != 0, ints[7] != 0)
    measures = Measures(floats[0], floats[1], floats[2], floats[3], floats[4], floats[5])
    board = open_board(floats, ints)
    dof, capacity, batch = ask.dof, ask.capacity, ask.batch
    points = FLOAT_HEAD + 3 * dof
    nodes = nodes_at(dof, ask.goals)
    edge = nodes + capacity * dof
    x = edge + 3 * capacity
    near_edge = x + batch * (dof + 1)
    cost = near_edge + 2 * batch * NEAR
    tree = Tree(
        floats[nodes:edge],
        floats[edge : edge + capacity],
        floats[edge + capacity : edge + 2 * capacity],
        floats[edge + 2 * capacity : x],
        ints[INT_HEAD : INT_HEAD + capacity],
        ints[INT_HEAD + capacity : INT_HEAD + 2 * capacity],
    )
    joined = INT_HEAD + 2 * capacity
    near = joined + batch
    near_count = near + batch * NEAR
    node = near_count + batch
    slots = Slots(
        floats[x : x + batch * dof],
        floats[x + batch * dof : near_edge],
        floats[near_edge : near_edge + batch * NEAR],
        floats[near_edge + batch * NEAR : cost],
        ints[joined:near],
        ints[near:near_count],
        ints[near_count:node],
    )
    looks = Looks(floats[cost : cost + WORKERS], ints[node : node + WORKERS], ints[node + WORKERS : node + 2 * WORKERS])
    return Growth(
        ask,
        measures,
        board,
        floats[FLOAT_HEAD : FLOAT_HEAD + dof],
        floats[FLOAT_HEAD + dof : FLOAT_HEAD + 2 * dof],
        floats[FLOAT_HEAD + 2 * dof : points],
        floats[points : points + (ask.goals + 1) * dof],
        tree,
        slots,
        looks,
    )


@lean_njit
def nodes_at(dof, goals):
    """Where the float32 buffer has the nodes: behind heads and goals, where a row of a tile begins a line of the
    cache."""
    return (FLOAT_HEAD + (4 + goals) * dof + 31) // 32 * 32


def growth_sizes(dof: int, goals: int, capacity: int, batch: int) -> tuple[int, int]:
    """-> lengths of the float32 and of the int32 buffer of a Growth."""
    slots = batch * (dof + 1 + 2 * NEAR)
    floats = nodes_at(dof, goals) + capacity * (dof + 3) + slots + WORKERS
    return floats, INT_HEAD + 2 * capacity + batch * (2 + NEAR) + 2 * WORKERS


@lean_njit
def first_node(g):
    """The start; goals lie before it."""
    return (g.ask.goals + TILE - 1) // TILE * TILE


@lean_njit
def fetch(g, i, q):
    """q: (dof,) becomes the configuration of node i."""
    for k in range(len(q)):
        q[k] = g.tree.nodes[place(i, k, len(q))] / g.scale[k]


@lean_njit
def apart(g, i, j):
    """Distance of nodes i and j."""
    s = ZERO
    for k in range(g.ask.dof):
        d = g.tree.nodes[place(i, k, g.ask.dof)] - g.tree.nodes[place(j, k, g.ask.dof)]
        s += d * d
    return math.sqrt(s)


@lean_njit
def cost_of(g, i):
    """Length of the way from the start to node i, FAR where there is none. Summed in float64, so that no parent's cost
    is above its child's."""
    total = 0.0
    while g.tree.parent[i] >= 0:
        total += g.tree.edge[i]
        i = g.tree.parent[i]
    return np.float32(total) if g.tree.parent[i] == ROOT else FAR
