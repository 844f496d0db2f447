"""What a search of RRT-Connect works on: the records of its compiled code, made of flat buffers."""

from typing import NamedTuple

import numpy as np

from ....device import lean_njit
from ....parallel.layout import floats, ints, layout, on_host
from ....parallel.team import Worker
from ..blocked import KEPT
from ..node_store import Desk
from ..shorten import cuts_sizes, open_cuts
from .request import HEAD, Bounds, Ends, Request, bounds_sizes, open_bounds, open_ends

CORNERS = 1024  # of a path, at most
TEAM = 2  # int32 of a team at the beginning of the memory: its barrier, and the request that it is at


class Buffers(NamedTuple):
    """Where a search works.

    tree_floats, tree_ints: what outlives a call: the trees and the Board
    floats, ints: what does not: the slots of a round, the bounds, the path that is shortened
    """

    tree_floats: np.ndarray
    tree_ints: np.ndarray
    floats: np.ndarray
    ints: np.ndarray


class Board(NamedTuple):
    """What the workers tell each other, and what outlives a call."""

    drawn: np.ndarray = ints("1")  # samples
    counts: np.ndarray = ints("2")  # nodes of the trees
    free_goals: np.ndarray = ints("1")  # how many are free
    free_start: np.ndarray = ints("1")
    goal: np.ndarray = ints("1")  # which one was reached
    corners: np.ndarray = ints("1")  # of the path
    lengths: np.ndarray = ints("2")  # Round.shorter and closer
    # is the time up? A flag for each half of an operation, so that nobody raises it again before all have read it
    halt: np.ndarray = ints("2")


board_sizes, open_board, _ = layout(Board)
_, BOARD = board_sizes.py_func()


class SearchTree(NamedTuple):
    """One tree, or both, the start's before the goals'."""

    log_ends: np.ndarray = floats(f"2 * {KEPT} * dof")  # of both trees: see `blocked`
    log_seen: np.ndarray = ints(f"{KEPT}", gap=f"{BOARD}")
    log_tree: np.ndarray = ints(f"{KEPT}")
    nodes: np.ndarray = floats("2 * capacity * dof")  # in tiles of node_store
    cost: np.ndarray = floats("2 * capacity")  # of the path to a node
    blocked: np.ndarray = floats("2 * capacity")  # not 0: a node failed to extend, and takes samples of its domain only
    parents: np.ndarray = ints("2 * capacity")  # of a root: -1 - its number


class Slots(NamedTuple):
    """One entry for each sample of a round."""

    q: np.ndarray = floats("batch * dof")  # the node that it may become
    walks: np.ndarray = floats("2 * batch * walk * dof")  # the steps of EXTEND and of CONNECT, of walks alone
    result: np.ndarray = ints("batch")  # of EXTEND: OUTSIDE, ...
    parent: np.ndarray = ints("batch")  # in its own tree
    target: np.ndarray = ints("batch")  # the nearest node of the other tree
    steps: np.ndarray = ints("batch")  # of the way to there
    reached: np.ndarray = ints("batch")  # how many of them are free
    grown: np.ndarray = ints("batch")  # how many nodes EXTEND adds


class Slot(NamedTuple):
    """What belongs to one slot alone. q: (dof,) float32"""

    q: np.ndarray


class Search(NamedTuple):
    """A search, as one lane of one worker sees it. trees: both, in one; deadline: of clock_ns()"""

    request: Request
    bounds: Bounds
    ends: Ends
    trees: SearchTree
    slots: Slots
    board: Board
    desk: Desk
    deadline: int
    worker: Worker


tree_sizes, open_trees, _ = layout(SearchTree, "dof capacity")
slots_sizes, open_slots, _ = layout(Slots, "dof batch walk")
_slots, _bounds, _cuts = map(on_host, (slots_sizes, bounds_sizes, cuts_sizes))


def work_sizes(dof: int, batch: int, workers: int, walk: int = 0) -> tuple[int, int]:
    """-> lengths of Buffers.floats and ints."""
    parts = _slots(dof, batch, walk), _bounds(dof), _cuts(dof, CORNERS, workers)
    return sum(part[0] for part in parts), sum(part[1] for part in parts)


@lean_njit
def open_search(request, row, buffers, desk, deadline, worker):
    """-> the Search, and the Cuts of the path that it will find."""
    dof, floats, ints = request.dof, buffers.floats, buffers.ints
    trees = open_trees(buffers.tree_floats, buffers.tree_ints, dof, request.capacity)
    slots, board = open_slots(floats, ints, dof, request.batch, request.walk), open_board(buffers.tree_ints)
    n_floats, n_ints = slots_sizes(dof, request.batch, request.walk)
    n_bounds, _ = bounds_sizes(dof)
    bounds, ends = open_bounds(floats[n_floats:], dof), open_ends(row[HEAD + n_bounds :], dof, request.goal_count)
    cuts = open_cuts(floats[n_floats + n_bounds :], ints[n_ints:], dof, CORNERS, worker)
    return Search(request, bounds, ends, trees, slots, board, desk, deadline, worker), cuts


@lean_njit
def tree_at(s, which):
    """SearchTree 0, the start's, or 1, the goals'."""
    trees, first = s.trees, which * s.request.capacity
    own = trees.nodes[first * s.request.dof :], trees.cost[first:], trees.blocked[first:], trees.parents[first:]
    return SearchTree(trees.log_ends, trees.log_seen, trees.log_tree, *own)


@lean_njit
def walk_at(s, w, operation):
    """Room for the steps of slot w's walk in an operation of its round, (walk * dof,). A record: see `slot_at`."""
    size = s.request.walk * s.request.dof
    return Slot(s.slots.walks[(2 * w + operation) * size : (2 * w + operation + 1) * size])


@lean_njit
def slot_at(s, w):
    """Slot w of the round. A record, since compiled code for CUDA returns no arrays by themselves."""
    return Slot(s.slots.q[w * s.request.dof : (w + 1) * s.request.dof])
