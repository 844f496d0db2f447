"""RRT-Connect where motions keep a constraint: EXTEND and CONNECT walk, as in CBiRRT2 (Berenson, Srinivasa and Kuffner,
"Task Space Regions", IJRR 2011, section 5).

    WALK(q_near, q)                               walk
        repeat
            q_s <- q_near, moved towards q by a step
            q_s <- PROJECT(q_s)                   onto the constraint (`projecting`)
            if (q_near, q_s) is not kept          a bound proves the constraint along the motion (`keeping`)
                halve the step
            else if (q_near, q_s) is not free
                return
            add q_s; q_near <- q_s                until q is reached

Departures: a step must bring the walk nearer to q; one that fails to, or is not proven to keep the constraint, is tried
again at half its length, and later steps are longer again; EXTEND walks no farther than an extension goes elsewhere.

The walks of a round are shared by the workers, whole, since each step begins where the one before it ended. A path is
first made shorter by walks between its corners (`cut_walks`): where a constraint is thin, no straight motion is kept
that is long enough to help.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import overload

from ....device import lean_njit
from ....parallel.sampling import joined_halves, uniform01
from ....parallel.team import meet, peek, sum_lanes, sync_lanes
from ...constraints.keeping import KEPT, kept
from ...constraints.measures import KeepingScratch
from ...constraints.projecting import project
from ...spaces.interface import Space, choose, motion_free
from ..node_store import FAR, ONE, ZERO, Desk, load, put, weighted_distance
from ..shorten import distance
from .round import (
    ADVANCED,
    CHECKING,
    CONNECT,
    EXTEND,
    TRAPPED,
    copy,
    copy_all,
    copy_root,
    count_of,
    extended,
    nodes_before,
    note_root,
    remove,
    roots_in,
    stops,
)
from .search import add_nodes, check, count_between, cut_across, write_between
from .state import CORNERS, Search, slot_at, tree_at, walk_at
from .straight import STRAIGHT

STRIDE = np.float32(0.25)  # rad or m, L2: of a step at most
LEAST = np.float32(1 / 64)  # of that: a walk whose steps would be shorter ends
PROGRESS = np.float32(0.1)  # of a step, by which it brings a walk nearer at least
LONGER = np.float32(2)  # steps that a projected step may be long
CUTS = 24  # walks that a worker alone tries for each pass of shortening,
ROUNDS = 2  # rounds for each pass of a team that tries many at once
HALF = np.float32(0.5)
SAVING = np.float32(0.98)  # of a stretch of a path: a straight way that is hardly shorter is not tried
REACHED, MET, ENDED = range(3)  # how a walk ends
STUCK = -1  # result of EXTEND beside those of `round`: the constraint lets it go nowhere
PAIRS = np.uint64(0x9E6C63D0876A9A35)  # sets the corners that walks join apart from the samples of the same seed


@lean_njit
def walk(s, q, steps, on_rule, most):
    """Walk from desk.a towards q, (dof,) -> how many steps are written to `steps`; REACHED: q, or the configuration
    near it, is the last of them; MET: something is in the way; ENDED: for another reason.

    on_rule: q keeps the constraint; most: weighted length from which on the walk is given up
    """
    desk, space, dof, lane, weights = s.desk, s.desk.space, s.request.dof, s.worker.lane, s.bounds.weights
    stride = min(STRIDE, s.request.reach)
    left, size, count, length = apart(desk.a, q), stride, 0, ZERO
    while count < s.request.walk and size >= LEAST * stride and not stops(s, CHECKING):
        last = left <= size
        share = ONE if last else size / left
        for k in range(dof):
            desk.b[k] = q[k] if last else desk.a[k] + share * (q[k] - desk.a[k])
        good = (last and on_rule) or project(desk.b, desk.a, s.bounds.lower, s.bounds.upper, space)
        after = apart(desk.b, q)
        good = good and apart(desk.a, desk.b) <= LONGER * size and (last or after <= left - PROGRESS * size)
        if not (good and kept(desk.a, desk.b, space, lane)):
            size *= HALF
            continue
        if not motion_free(desk.a, desk.b, KEPT, space, lane):
            return count, MET
        length += distance(desk.a, desk.b, weights)
        copy(desk.b, steps[count * dof : (count + 1) * dof], lane)
        copy_all(desk.b, desk.a)
        count, left, size = count + 1, after, min(LONGER * size, stride)
        if last:
            return count, REACHED
        if length + distance(desk.a, q, weights) >= most:
            break
    return count, ENDED


@lean_njit
def apart(a, b):
    """L2 distance of b from a, (dof,)."""
    squared = ZERO
    for k in range(len(a)):
        squared += (b[k] - a[k]) * (b[k] - a[k])
    return math.sqrt(squared)


@lean_njit
def check_walks(s, now, operation):
    """The walks of all slots, and the check of the roots, which are walks that do not move."""
    worker, desk, slots, lane = s.worker, s.desk, s.slots, s.worker.lane
    roots = roots_in(s, now) if operation == CONNECT else 0
    for item in range(worker.number, roots + now.batch, worker.count):
        if stops(s, CHECKING):
            break
        w, near, which = max(item - roots, 0), 0, 0
        if item < roots:
            copy_root(s, item, desk.a)
        else:
            which = extended(now, w) if operation == EXTEND else 1 - extended(now, w)
            near = int(slots.parent[w] if operation == EXTEND else slots.target[w])
            if sum_lanes(peek(slots.result, w) if lane == 0 else 0) != ADVANCED:
                continue
            load(tree_at(s, which).nodes, near, desk.a)
        q = slot_at(s, w).q if item >= roots else desk.a
        count, end = walk(s, q, walk_at(s, w, operation).q, operation == CONNECT, FAR)
        sync_lanes()
        if item < roots:
            if count == 0:
                remove(s, item)
            elif lane == 0:
                note_root(s, item)
        elif operation == EXTEND:
            copy(desk.a if count > 0 else desk.b, slot_at(s, w).q, lane)
            if lane == 0:
                slots.grown[w] = count
                slots.result[w] = ADVANCED if count > 0 else TRAPPED if end == MET else STUCK
        elif lane == 0:
            slots.reached[w], slots.steps[w] = count, count if end == REACHED else count + 1
        sync_lanes()


@lean_njit
def add_walks(s, now, w):
    """The nodes of slot w: the steps of its extension, and of its connection."""
    which, slots = extended(now, w), s.slots
    before_this, before_that = nodes_before(s, now, w)
    first, second = count_of(now, which) + before_this, count_of(now, 1 - which) + before_that
    add_walk(s, which, first, walk_at(s, w, EXTEND).q, int(slots.grown[w]), int(slots.parent[w]))
    add_walk(s, 1 - which, second, walk_at(s, w, CONNECT).q, int(slots.reached[w]), int(slots.target[w]))


@lean_njit
def add_walk(s, which, first, steps, count, parent):
    """The steps of a walk from a node, as nodes from number `first` on."""
    tree, dof, lane = tree_at(s, which), s.request.dof, s.worker.lane
    for i in range(count):
        q, node = steps[i * dof : (i + 1) * dof], first + i
        before = parent if i == 0 else node - 1
        put(tree.nodes, node, q, lane)
        if lane == 0:
            tree.cost[node] = tree.cost[before] + weighted_distance(tree.nodes, before, q, s.bounds.weights)
            tree.blocked[node], tree.parents[node] = ZERO, before
        sync_lanes()


@lean_njit
def count_walks(s, now, w):
    return int(s.slots.grown[w]) + int(s.slots.reached[w]) - 1


@lean_njit
def write_walks(s, now, w, out):
    """The last step of the connection is that of the extension."""
    dof, there, back = s.request.dof, int(s.slots.grown[w]), int(s.slots.reached[w]) - 1
    extension, connection, from_start = walk_at(s, w, EXTEND).q, walk_at(s, w, CONNECT).q, extended(now, w) == 0
    for i in range(there):
        k = i if from_start else back + there - 1 - i
        copy_all(extension[i * dof : (i + 1) * dof], out[k * dof : (k + 1) * dof])
    for i in range(back):
        k = there + back - 1 - i if from_start else i
        copy_all(connection[i * dof : (i + 1) * dof], out[k * dof : (k + 1) * dof])


@lean_njit
def cut_walks(s, now, length, paths):
    """Rounds of random cuts (Geraerts and Overmars, IJRR 2007, section 4.1): of walks between two corners of the path
    in `paths` the one that saves the most takes the place of the way between them."""
    worker, slots, dof, lane, weights = s.worker, s.slots, s.request.dof, s.worker.lane, s.bounds.weights
    seed, batch = joined_halves(s.request.seed_low, s.request.seed_high) ^ PAIRS, s.request.batch
    rounds = s.request.passes * max(ROUNDS, (CUTS + length // 4) // batch)
    for turn in range(rounds):
        if length < 3:
            break
        for w in range(worker.number, batch, worker.count):
            number = turn * batch + w
            i = int(uniform01(seed, number, 0) * np.float32(length))
            j = int(uniform01(seed, number, 1) * np.float32(length))
            i, j, saved, count = min(i, j), max(i, j), ZERO, 0
            along = length_of(paths, i, j, weights)
            straight = distance(paths[i * dof :], paths[j * dof :], weights)
            if j > i + 1 and straight < SAVING * along:
                copy_all(paths[i * dof : (i + 1) * dof], s.desk.a)
                q, steps = paths[j * dof : (j + 1) * dof], walk_at(s, w, EXTEND).q
                count, end = walk(s, q, steps, True, along)
                sync_lanes()
                if end == REACHED and length - (j - i) + count <= CORNERS:
                    saved = along - distance(paths[i * dof :], steps, weights) - length_of(steps, 0, count - 1, weights)
            if lane == 0:
                slots.q[w * dof], slots.parent[w], slots.target[w], slots.grown[w] = saved, i, j, count
            sync_lanes()
        meet(worker)
        if s.board.halt[CHECKING] != 0:
            break
        if worker.number == 0 and lane == 0:
            best = 0
            for w in range(1, batch):
                if slots.q[w * dof] > slots.q[best * dof]:
                    best = w
            s.board.corners[0] = length
            if slots.q[best * dof] > ZERO:
                replace(s, best, length, paths)
        meet(worker)
        length = int(s.board.corners[0])
    meet(worker)
    return length


@lean_njit
def replace(s, w, length, paths):
    """The walk of slot w takes the place of the way between the corners that it joins. One lane does it."""
    dof, i, j, count = s.request.dof, int(s.slots.parent[w]), int(s.slots.target[w]), int(s.slots.grown[w])
    more, size = count - (j - i), (length - j) * dof  # the walk's last step is corner j
    if more > 0:
        for k in range(size - 1, -1, -1):
            paths[(j + more) * dof + k] = paths[j * dof + k]
    elif more < 0:
        for k in range(size):
            paths[(j + more) * dof + k] = paths[j * dof + k]
    copy_all(walk_at(s, w, EXTEND).q[: (count - 1) * dof], paths[(i + 1) * dof : (i + count) * dof])
    s.board.corners[0] = length + more


@lean_njit
def length_of(paths, i, j, weights):
    """Length of a path from corner i to corner j."""
    dof, length = len(weights), ZERO
    for k in range(i, j):
        length += distance(paths[k * dof :], paths[(k + 1) * dof :], weights)
    return length


WALKING: dict[Callable, Any] = {
    check: check_walks,
    add_nodes: add_walks,
    count_between: count_walks,
    write_between: write_walks,
    cut_across: cut_walks,
}


def choose_by_space(target: str, overload: Callable) -> None:
    """Let compiled code of a target do as STRAIGHT or as WALKING says, by the scratch of the Search's Space."""
    for function, straight in STRAIGHT.items():
        choose(function, target, overload, straight, WALKING[function], _keeps)


def _keeps(search):
    """Of the type of a Search: does its space keep a constraint?"""
    desk = search.types[Search._fields.index("desk")]
    space = desk.types[Desk._fields.index("space")]
    scratch = space.types[Space._fields.index("scratch")]
    return getattr(scratch, "instance_class", None) is KeepingScratch


choose_by_space("cpu", overload)
