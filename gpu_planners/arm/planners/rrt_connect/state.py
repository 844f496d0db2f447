"""What a search of RRT-Connect works on: the records of its compiled code, made of two flat buffers."""

from typing import NamedTuple

import numpy as np

from ....device import lean_njit
from ....parallel.team import Worker
from ..node_store import Desk
from ..shorten import open_cuts, shorten_sizes
from .request import Request, shared_size

CORNERS = 1024  # of a path, at most
BOARD = 16  # numbers at the beginning of the int32 buffer


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
    problem: which one the team is at, of many; halt: (2,) is the time up: one flag for every other step, so that nobody
    raises it again before all have read it
    """

    drawn: np.ndarray
    counts: np.ndarray
    free_goals: np.ndarray
    free_start: np.ndarray
    goal: np.ndarray
    corners: np.ndarray
    problem: np.ndarray
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
def state_sizes(dof, capacity, batch, workers):
    """-> lengths of the float32 and int32 buffer of a search."""
    floats, ints = shorten_sizes(dof, CORNERS, workers)
    return request_at(dof, capacity, batch) + shared_size(dof) + floats, BOARD + 2 * capacity + 5 * batch + ints


@lean_njit
def request_at(dof, capacity, batch):
    """Where the float32 buffer has the request, without the roots: behind trees and slots, which thus lie well for the
    GPU."""
    return 2 * capacity * (dof + 2) + batch * dof


@lean_njit
def open_board(ints):
    """The Board at the beginning of the int32 buffer, whose first number is the team's barrier."""
    return Board(ints[1:2], ints[2:4], ints[4:5], ints[5:6], ints[6:7], ints[7:8], ints[8:9], ints[10:12])


@lean_njit
def open_search(request, floats, desk, deadline, worker):
    """-> the Search whose buffers are `floats` and worker.memory, and the Cuts of the path that it will find."""
    dof, both, batch, ints = request.dof, 2 * request.capacity, request.batch, worker.memory
    cost = both * dof
    domain, q = cost + both, cost + 2 * both
    end_q = q + batch * dof
    rest = end_q + shared_size(dof)
    trees = Tree(floats[:cost], floats[cost:domain], floats[domain:q], ints[BOARD : BOARD + both])
    fate = BOARD + both
    parent, target, steps, reached = fate + batch, fate + 2 * batch, fate + 3 * batch, fate + 4 * batch
    end = reached + batch
    slots = Slots(
        floats[q:end_q],
        ints[fate:parent],
        ints[parent:target],
        ints[target:steps],
        ints[steps:reached],
        ints[reached:end],
    )
    cuts = open_cuts(floats[rest:], ints[end:], dof, CORNERS, worker)
    return Search(request, trees, slots, open_board(ints), desk, deadline, worker), cuts


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
