"""A round of RRT-Connect's search (`search`): what its samples meet, and what the checks of its motions share, whether
these go straight (`straight`) or walk (`walk`)."""

from typing import NamedTuple

import numpy as np

from ....device import lean_njit
from ....parallel.team import add, lane_count, late, sum_lanes
from ..node_store import place
from .state import tree_at

AWAY = np.float32(1e18)  # where goals in collision are put
EXTEND, CONNECT = range(2)  # operations of a round
PROPOSING, CHECKING = range(2)  # their halves, each with a flag of Board.halt
SHARES = 64  # of the slots of a round
SPREAD = 37  # prime to that, so that neighbours extend different trees
OUTSIDE, TRAPPED, ADVANCED = range(3)  # results of EXTEND; OUTSIDE: of the domains of all nodes


class Round(NamedTuple):
    """What the samples of a round meet.

    straight: are goals tried from the start, `goal` and those after it, and no samples drawn? drawn: samples before
    batch: its samples; count_a, count_b: nodes of the trees
    shorter, closer: by how many blocked samples motions are shorter than at first, and domains smaller
    """

    straight: bool
    goal: int
    drawn: int
    batch: int
    count_a: int
    count_b: int
    shorter: int
    closer: int


@lean_njit
def stops(s, half):
    """Is the worker late? Then all will know after they met."""
    stop = late(s.deadline)
    if stop and s.worker.lane == 0:
        s.board.halt[half] = 1
    return stop


@lean_njit
def extended(now, w):
    """SWAP: the tree that slot w extends, the smaller one for the first slot. Slots are shared by the squares of the
    trees' sizes, so that a tree that hardly grows gets nearly all."""
    a, b = now.count_a * now.count_a, now.count_b * now.count_b
    smaller, larger = (0, b) if a <= b else (1, a)
    return 0 if now.straight else smaller if w * SPREAD % SHARES * (a + b) < SHARES * larger else 1 - smaller


@lean_njit
def count_of(now, tree):
    """How many nodes a tree had when the round began."""
    return now.count_a if tree == 0 else now.count_b


@lean_njit
def roots_in(s, now):
    """How many roots a round plants and checks: all, in the first one."""
    return s.request.goal_count + 1 if now.straight and now.goal == 0 else 0


@lean_njit
def copy_root(s, root, q):
    """q becomes the start, or goal `root` - 1."""
    if root == 0:
        copy_all(s.ends.start, q)
    else:
        copy_all(s.ends.goals[(root - 1) * len(q) :], q)


@lean_njit
def note_root(s, root):
    """A root is free."""
    add(s.board.free_start if root == 0 else s.board.free_goals, 0, 1)


@lean_njit
def remove(s, root):
    """A goal in collision keeps its number, but lies where no sample is near. Workers that go straight to it meanwhile
    find no way: the first part of it ends there."""
    tree, dof = tree_at(s, 0 if root == 0 else 1), s.request.dof
    for k in range(s.worker.lane, dof, lane_count()):
        tree.nodes[place(max(root - 1, 0), k, dof)] = AWAY


@lean_njit
def nodes_before(s, now, w):
    """How many nodes the slots before slot w add to its tree, and to the other one."""
    this, that = 0, 0
    for v in range(s.worker.lane, w, lane_count()):
        if s.slots.result[v] == ADVANCED:
            same = extended(now, v) == extended(now, w)
            grown, met = int(s.slots.grown[v]), int(s.slots.reached[v])
            this += grown if same else met
            that += met if same else grown
    return sum_lanes(this), sum_lanes(that)


@lean_njit
def copy(q, to, lane):
    """to[:] = q; the lanes of the worker share the work."""
    for k in range(lane, len(q), lane_count()):
        to[k] = q[k]


@lean_njit
def copy_all(q, to):
    """to[:] = q[: len(to)], by each lane for itself."""
    for k in range(len(to)):
        to[k] = q[k]
