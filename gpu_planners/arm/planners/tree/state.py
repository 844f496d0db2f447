"""What the growth of a tree works on: its message to and from the host, and the records in the team's own memory.

Goals are nodes from the beginning, without a parent until a new node reaches them; they come first, the start follows
in the next tile. Coordinates of nodes are scaled by the square roots of the weights, so that distances are costs. Costs
are not stored: the cost of a node is the sum of the edges up to the root, taken when it is asked for. So a better
parent reaches all descendants at once, and the few nodes near a sample are not deep in the tree.
"""

import math
from typing import NamedTuple

import numpy as np

from ....device import lean_njit
from ....parallel.layout import Float32, Int32, floats, ints, layout
from ....parallel.team import Worker
from ..blocked import KEPT
from ..message import BARRIER
from ..node_store import FAR, TILE, ZERO, Desk, place

NEAR = 256  # near nodes of a sample at most
WORKERS = 4096  # at most
ROOT, UNREACHED, NONE = -1, -2, -1


class TreeRequest(NamedTuple):
    """The message (`host`): some rounds of samples, and what has become of the tree after them."""

    dof: Int32 = ints()
    mode: Int32 = ints()  # of the motion check
    goals: Int32 = ints()
    capacity: Int32 = ints()
    batch: Int32 = ints()  # samples of a round at most
    most: Int32 = ints()  # samples of the query
    star: bool = ints()  # rewire, as RRT* does
    informed: bool = ints()  # draw where a shorter path may pass
    fresh: bool = ints()  # a new tree; else it grows on
    rounds: int = ints()
    left_ms: int = ints()  # until the deadline
    seed_low: int = ints()
    seed_high: int = ints()
    count: np.ndarray = ints("1")  # type: ignore[assignment]  # the answer: nodes; nobody calls the method of this name
    drawn: np.ndarray = ints("1")  # samples
    best_node: np.ndarray = ints("1")  # the end of the best path, -1: none
    step: Float32 = floats()  # of the motion check
    reach: Float32 = floats()  # longest motion that is added at once
    goal_radius: Float32 = floats()  # a path may end so close to a goal
    goal_bias: Float32 = floats()  # share of the samples that are drawn at a goal
    log_factor: Float32 = floats()  # logarithm of the factor of the near radius,
    log_ball: Float32 = floats()  # of the unit ball's volume,
    log_measure: Float32 = floats()  # and of the measure of the box that samples are drawn from
    best: np.ndarray = floats("1")  # the answer: cost of the best path, FAR: none
    lower: np.ndarray = floats("dof")  # bounds of samples, scaled
    upper: np.ndarray = floats("dof")
    scale: np.ndarray = floats("dof")  # sqrt(weight)
    ends: np.ndarray = floats("(goals + 1) * dof")  # the goals and the start


class TreeBoard(NamedTuple):
    """What the workers tell each other, and what outlives a launch; the barrier of the team lies before it."""

    count: np.ndarray = ints("1", gap=f"{BARRIER}")  # type: ignore[assignment]  # nodes
    drawn: np.ndarray = ints("1")  # samples
    best_node: np.ndarray = ints("1")  # the end of the best path, -1: none
    inside: np.ndarray = ints("1")  # how many of the first `looked` nodes lie in the informed set
    looked: np.ndarray = ints("1")
    halt: np.ndarray = ints("1")  # 1 when the time is up
    best: np.ndarray = floats("1")  # cost of the best path, FAR: none


class Tree(NamedTuple):
    """The sampled space and the tree in it, behind the board. A row of a tile begins a line of the cache."""

    lower: np.ndarray = floats("dof", gap="BOARD_FLOATS")  # of the request
    upper: np.ndarray = floats("dof")
    scale: np.ndarray = floats("dof")
    nodes: np.ndarray = floats("capacity * dof", gap="-(BOARD_FLOATS + 3 * dof) % 32")  # in tiles, scaled
    edge: np.ndarray = floats("capacity")  # length of the motion from the parent
    offered: np.ndarray = floats("capacity")  # the least cost offered by a new parent,
    taker: np.ndarray = floats("capacity")  # and which sample of the round that is
    parent: np.ndarray = ints("capacity", gap="BOARD_INTS")
    region: np.ndarray = ints("capacity")  # the goal in whose region a node lies, or -1
    log_ends: np.ndarray = floats(f"2 * {KEPT} * dof")  # see `blocked`
    log_seen: np.ndarray = ints(f"{KEPT}")
    log_tree: np.ndarray = ints(f"{KEPT}")


class TreeSlots(NamedTuple):
    """One row for each sample of a round: what it becomes, and the nodes near it. Then what each worker has found when
    the best path is looked for."""

    x: np.ndarray = floats("batch * dof")  # scaled
    edge: np.ndarray = floats("batch")
    near_edge: np.ndarray = floats("batch * NEAR")
    near_cost: np.ndarray = floats("batch * NEAR")
    joined: np.ndarray = ints("batch")  # the parent of a sample, then its node; -1: not joined
    near: np.ndarray = ints("batch * NEAR")  # nodes, -1: refused
    near_count: np.ndarray = ints("batch")
    least_cost: np.ndarray = floats("WORKERS")
    least_node: np.ndarray = ints("WORKERS")
    inside: np.ndarray = ints("WORKERS")


request_sizes, open_request, write_request = layout(TreeRequest, "dof goals")
board_sizes, open_board, _ = layout(TreeBoard)
BOARD_FLOATS, BOARD_INTS = board_sizes.py_func()
tree_sizes, open_tree, _ = layout(Tree, "dof capacity")
slots_sizes, open_slots, _ = layout(TreeSlots, "dof batch")


class Growth(NamedTuple):
    """A tree and all that belongs to it."""

    ask: TreeRequest
    board: TreeBoard
    tree: Tree
    slots: TreeSlots


class TreeJob(NamedTuple):
    """A Growth, as one lane of one worker sees it. seed: uint64; deadline: of clock_ns()"""

    growth: Growth
    desk: Desk
    seed: int
    deadline: int
    worker: Worker


@lean_njit
def open_growth(ask, floats, ints):
    """-> Growth. floats, ints: the team's own memory"""
    n_floats, n_ints = tree_sizes(ask.dof, ask.capacity)
    slots = open_slots(floats[n_floats:], ints[n_ints:], ask.dof, ask.batch)
    return Growth(ask, open_board(floats, ints), open_tree(floats, ints, ask.dof, ask.capacity), slots)


def own_sizes(dof: int, capacity: int, batch: int) -> tuple[int, int]:
    """-> lengths of the float32 and of the int32 of the team's own memory."""
    (floats, ints), more = tree_sizes.py_func(dof, capacity), slots_sizes.py_func(dof, batch)
    return floats + more[0], ints + more[1]


@lean_njit
def first_node(g):
    """The start; goals lie before it."""
    return (g.ask.goals + TILE - 1) // TILE * TILE


@lean_njit
def fetch(g, i, q):
    """q: (dof,) becomes the configuration of node i."""
    for k in range(len(q)):
        q[k] = g.tree.nodes[place(i, k, len(q))] / g.tree.scale[k]


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
    """Length of the way from the start to node i, or FAR; in float64, so that no parent's cost is above its child's."""
    total = 0.0
    while g.tree.parent[i] >= 0:
        total += g.tree.edge[i]
        i = g.tree.parent[i]
    return np.float32(total) if g.tree.parent[i] == ROOT else FAR
