"""What a search of RRT-Connect works on: the records of its compiled code, made of flat buffers."""

from typing import NamedTuple

import numpy as np

from ....device import lean_njit
from ....parallel.team import Worker
from ..node_store import Desk
from ..shorten import open_cuts, shorten_sizes
from .request import Request, shared_size

CORNERS = 1024  # of a path, at most
BOARD = 16  # numbers at the beginning of Buffers.tree_ints


class Buffers(NamedTuple):
    """Where a search works.

    tree_floats, tree_ints: what outlives a call: the trees and its Board
    floats, ints: what does not: the slots of a round, the request without its roots, the path that is shortened
    """

    tree_floats: np.ndarray
    tree_ints: np.ndarray
    floats: np.ndarray
    ints: np.ndarray


class Tree(NamedTuple):
    """One tree, or both, the start's before the goals'.

    nodes: in tiles of node_store; cost, domain: (capacity,) float32 of the way to a node, and the radius within which
    it takes samples
    parents: (capacity,) int32, at the roots -1 - their number
    """

    nodes: np.ndarray
    cost: np.ndarray
    domain: np.ndarray
    parents: np.ndarray


class Slots(NamedTuple):
    """One entry for each sample of a round.

    q: (batch * dof,) float32 the node that it may become; int32 (batch,) each: fate: what became of it; parent: in its
    own tree;
    target: the nearest node of the other tree; steps: of the way to there; reached: how many of them are free
    """

    q: np.ndarray
    fate: np.ndarray
    parent: np.ndarray
    target: np.ndarray
    steps: np.ndarray
    reached: np.ndarray


class Slot(NamedTuple):
    """What belongs to one slot alone. q: (dof,) float32"""

    q: np.ndarray


class Board(NamedTuple):
    """What the workers tell each other, and what outlives a call: int32, (1,) where nothing is said.

    drawn: samples; counts: (2,) nodes of the trees; free_goals, free_start: how many are; goal: that was reached;
    corners: of the path
    halt: (2,) is the time up: one flag for every other step, so that nobody raises it again before all have read it
    """

    drawn: np.ndarray
    counts: np.ndarray
    free_goals: np.ndarray
    free_start: np.ndarray
    goal: np.ndarray
    corners: np.ndarray
    halt: np.ndarray


class Search(NamedTuple):
    """A search, as one lane of one worker sees it. trees: both, in one; deadline: of clock_ns()"""

    request: Request
    trees: Tree
    slots: Slots
    board: Board
    desk: Desk
    deadline: int
    worker: Worker


@lean_njit
def tree_sizes(dof, capacity):
    """-> lengths of Buffers.tree_floats and tree_ints."""
    return 2 * capacity * (dof + 2), BOARD + 2 * capacity


@lean_njit
def work_sizes(dof, batch, workers):
    """-> lengths of Buffers.floats and ints."""
    floats, ints = shorten_sizes(dof, CORNERS, workers)
    return batch * dof + shared_size(dof) + floats, 5 * batch + ints


def state_sizes(dof: int, capacity: int, batch: int, workers: int) -> tuple[int, int]:
    """-> lengths of a float32 and an int32 buffer that have room for all of a search's Buffers."""
    trees, work = tree_sizes(dof, capacity), work_sizes(dof, batch, workers)
    return trees[0] + work[0], trees[1] + work[1]


@lean_njit
def divided(floats, ints, dof, capacity):
    """Buffers of a search that has one float32 and one int32 buffer. Trees come first, and so lie well for the GPU; the
    first int32 is left to the team's barrier."""
    n_floats, n_ints = tree_sizes(dof, capacity)
    return Buffers(floats[:n_floats], ints[:n_ints], floats[n_floats:], ints[n_ints:])


@lean_njit
def open_board(ints):
    """The Board at the beginning of Buffers.tree_ints."""
    return Board(ints[1:2], ints[2:4], ints[4:5], ints[5:6], ints[6:7], ints[7:8], ints[8:10])


@lean_njit
def open_search(request, buffers, desk, deadline, worker):
    """-> the Search, and the Cuts of the path that it will find."""
    dof, both, batch, floats, ints = request.dof, 2 * request.capacity, request.batch, buffers.floats, buffers.ints
    cost = both * dof
    domain = cost + both
    trees = Tree(
        buffers.tree_floats[:cost],
        buffers.tree_floats[cost:domain],
        buffers.tree_floats[domain:],
        buffers.tree_ints[BOARD:],
    )
    parent, target, steps, reached, end = batch, 2 * batch, 3 * batch, 4 * batch, 5 * batch
    slots = Slots(
        floats[: batch * dof],
        ints[:parent],
        ints[parent:target],
        ints[target:steps],
        ints[steps:reached],
        ints[reached:end],
    )
    cuts = open_cuts(floats[batch * dof + shared_size(dof) :], ints[end:], dof, CORNERS, worker)
    return Search(request, trees, slots, open_board(buffers.tree_ints), desk, deadline, worker), cuts


@lean_njit
def tree_at(s, which):
    """Tree 0, the start's, or 1, the goals'."""
    first = which * s.request.capacity
    return Tree(
        s.trees.nodes[first * s.request.dof :], s.trees.cost[first:], s.trees.domain[first:], s.trees.parents[first:]
    )


@lean_njit
def slot_at(s, w):
    """Slot w of the round. A record, since compiled code for CUDA returns no arrays by themselves."""
    return Slot(s.slots.q[w * s.request.dof : (w + 1) * s.request.dof])
