"""What the growth of PRM's trees works on: the records of its compiled code, made of four flat buffers.

floats, ints: read again and again (on CUDA: of the device). told, found: float32 and int32 that the host asks with and
reads, written once (on CUDA: page-locked memory of the host). A node is tree * capacity + its number in the tree.
"""

from typing import NamedTuple

import numpy as np

from ....device import lean_njit
from ....parallel.layout import floats, ints, layout
from ....parallel.team import Worker
from ..node_store import Desk

CLASSES = 32  # neighbours are the nearest nodes among the nearest of each residue class of node numbers
NONE, UNTRIED = -1, -2  # entries of neighbours: no edge; UNTRIED - node: an edge that nobody has checked


class GrowthCall(NamedTuple):
    """Scalars of one call of `grow`."""

    dof: int
    first: int  # 1: nothing but the roots is there yet; 2: buffers were reallocated; reload the trees
    counts_0: int  # nodes of the trees
    counts_1: int
    drawn: int  # samples
    until: int
    batch: int  # samples of a round
    tried: int  # neighbours tried of a node
    capacity: int  # nodes of a tree
    lazy: int  # 1: leave motions within a tree unchecked
    left_ms: int  # until the deadline
    seed: int
    radius: np.float32
    near: np.float32  # share of the samples that are moved to within the radius


class PrmTrees(NamedTuple):
    """What the workers share, and one worker's scratch."""

    nodes: np.ndarray = floats("2 * capacity * dof")  # in tiles of node_store
    bounds: np.ndarray = floats("2 * dof")  # lower and upper
    drafts: np.ndarray = floats("batch * dof")  # samples that may become nodes
    met: np.ndarray = ints("1", gap="1")  # have the trees met? Before it lies the team's barrier
    halt: np.ndarray = ints("1")  # is the time up?
    parents: np.ndarray = ints("batch", gap="1")  # the node that each sample comes from, in its tree
    new: np.ndarray = ints("batch")  # the samples that became nodes
    near: np.ndarray = ints("2 * batch * tried")  # neighbours of the samples of two rounds in turn
    distances: np.ndarray = floats("2 * CLASSES", own=True)
    numbers: np.ndarray = ints("2 * CLASSES", own=True)


class Report(NamedTuple):
    """What host and compiled code tell each other."""

    bounds: np.ndarray = floats("2 * dof")  # lower and upper
    nodes: np.ndarray = floats("2 * capacity * dof")  # row by row, the roots in place
    met: np.ndarray = ints("1")
    counts: np.ndarray = ints("2")  # nodes of the trees
    drawn: np.ndarray = ints("1")
    parents: np.ndarray = ints("2 * capacity")  # nodes
    neighbours: np.ndarray = ints("2 * capacity * tried")  # nodes, NONE or UNTRIED - node


class PrmJob(NamedTuple):
    """A growth, as one lane of one worker sees it. deadline: of clock_ns()"""

    ask: GrowthCall
    trees: PrmTrees
    report: Report
    desk: Desk
    deadline: int
    worker: Worker


trees_sizes, open_trees = layout(PrmTrees, "dof batch tried capacity")
report_sizes, open_report = layout(Report, "dof tried capacity")


def buffer_sizes(ask: GrowthCall, workers: int) -> tuple[int, int, int, int]:
    """Lengths of floats, ints, told, found."""
    trees = trees_sizes.py_func(ask.dof, ask.batch, ask.tried, ask.capacity, workers)
    return *trees, *report_sizes.py_func(ask.dof, ask.tried, ask.capacity)


@lean_njit
def open_job(ask, buffers, desk, deadline, worker):
    """buffers: floats, told, found; worker.memory: ints"""
    trees = open_trees(buffers[0], worker.memory, ask.dof, ask.batch, ask.tried, ask.capacity, worker)
    report = open_report(buffers[1], buffers[2], ask.dof, ask.tried, ask.capacity)
    return PrmJob(ask, trees, report, desk, deadline, worker)
