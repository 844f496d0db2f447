"""What the growth of PRM's trees works on: the records of its compiled code, made of four flat buffers.

floats, ints: read again and again (on CUDA: of the device). told, found: float32 and int32 that the host asks with and
reads, written once (on CUDA: page-locked memory of the host). A node is tree * capacity + its number in the tree.
"""

from typing import NamedTuple

import numpy as np

from ....device import lean_njit
from ....parallel.team import Worker
from ..node_store import Desk

CLASSES = 32  # neighbours are the nearest nodes among the nearest of each residue class of node numbers
NONE, UNTRIED = -1, -2  # entries of neighbours: no edge; UNTRIED - node: an edge that nobody has checked
INT_HEAD = FOUND_HEAD = 4  # numbers before the parts of `ints` and of `found`


class Ask(NamedTuple):
    """Scalars of one call of `grow`.

    first: 1 when nothing but the roots is there yet, 2 when the buffers are new but the trees are not
    counts_0, counts_1: nodes of the trees; drawn, until: samples; batch, tried, capacity: samples a round, neighbours
    tried of a node, nodes of a tree; lazy: 1: leave motions within a tree unchecked; left_ms: until the deadline; seed:
    int
    radius: float32, rad; near: float32, share of the samples that are moved to within the radius
    """

    dof: int
    first: int
    counts_0: int
    counts_1: int
    drawn: int
    until: int
    batch: int
    tried: int
    capacity: int
    lazy: int
    left_ms: int
    seed: int
    radius: np.float32
    near: np.float32


class Trees(NamedTuple):
    """What the workers share, and one worker's scratch.

    nodes: (2 * capacity * dof,) float32 in tiles of node_store; bounds: (2 * dof,) float32 lower and upper
    drafts: (batch * dof,) float32 of the samples that may become nodes; parents: (batch,) int32: the node that each
    comes from, in its tree
    new: (batch,) int32: the samples that became nodes; near: (2 * batch * tried,) int32 neighbours of the samples of
    two rounds in turn
    distances, numbers: (2 * CLASSES,) float32, int32 of the worker; met, halt: (1,) int32: have the trees met, is the
    time up
    """

    nodes: np.ndarray
    bounds: np.ndarray
    drafts: np.ndarray
    parents: np.ndarray
    new: np.ndarray
    near: np.ndarray
    distances: np.ndarray
    numbers: np.ndarray
    met: np.ndarray
    halt: np.ndarray


class Report(NamedTuple):
    """What host and compiled code tell each other.

    bounds: (2 * dof,) float32 lower and upper; nodes: (2 * capacity * dof,) float32, row by row, the roots in place
    met, drawn: (1,) int32; counts: (2,) int32 nodes of the trees; parents: (2 * capacity,) int32 nodes; neighbours: (2
    * capacity * tried,) int32 nodes, NONE or UNTRIED - node
    """

    bounds: np.ndarray
    nodes: np.ndarray
    met: np.ndarray
    counts: np.ndarray
    drawn: np.ndarray
    parents: np.ndarray
    neighbours: np.ndarray


class Job(NamedTuple):
    """A growth, as one lane of one worker sees it. deadline: of clock_ns()"""

    ask: Ask
    trees: Trees
    report: Report
    desk: Desk
    deadline: int
    worker: Worker


def buffer_sizes(dof: int, batch: int, tried: int, capacity: int, workers: int) -> tuple[int, int, int, int]:
    """Lengths of floats, ints, told, found."""
    scratch = 2 * CLASSES * workers
    return (
        2 * dof * (capacity + 1) + batch * dof + scratch,
        INT_HEAD + 2 * batch * (tried + 1) + scratch,
        2 * dof * (capacity + 1),
        FOUND_HEAD + 2 * capacity * (tried + 1),
    )


@lean_njit
def open_trees(ask, floats, worker):
    """floats and worker.memory, whose first number is the team's barrier, as Trees."""
    ints = worker.memory
    bounds = 2 * ask.capacity * ask.dof
    drafts = bounds + 2 * ask.dof
    distances = drafts + ask.batch * ask.dof + 2 * CLASSES * worker.number
    new = INT_HEAD + ask.batch
    near = new + ask.batch
    end = near + 2 * ask.batch * ask.tried
    numbers = end + 2 * CLASSES * worker.number
    return Trees(
        floats[:bounds],
        floats[bounds:drafts],
        floats[drafts : drafts + ask.batch * ask.dof],
        ints[INT_HEAD:new],
        ints[new:near],
        ints[near:end],
        floats[distances : distances + 2 * CLASSES],
        ints[numbers : numbers + 2 * CLASSES],
        ints[1:2],
        ints[2:3],
    )


@lean_njit
def open_report(ask, told, found):
    """told and found as a Report."""
    nodes, both = 2 * ask.dof, 2 * ask.capacity
    neighbours = FOUND_HEAD + both
    return Report(
        told[:nodes],
        told[nodes : nodes + both * ask.dof],
        found[0:1],
        found[1:3],
        found[3:4],
        found[FOUND_HEAD:neighbours],
        found[neighbours : neighbours + both * ask.tried],
    )
