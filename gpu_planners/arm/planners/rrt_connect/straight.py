"""What the search of RRT-Connect does where motions go straight: CONNECT goes in steps, which any workers check, also
parts of them. Where motions keep a constraint, `walk` has the same functions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ....device import lean_njit
from ....parallel.team import greatest_lane, lane_count, lower, peek, sum_lanes, sync_lanes
from ...spaces.interface import END_FREE, NOTHING, motion_free
from ..node_store import ZERO, place, put, weighted_distance
from .round import (
    ADVANCED,
    CHECKING,
    CONNECT,
    EXTEND,
    TRAPPED,
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
from .state import slot_at, tree_at


@lean_njit
def check_straight(s, now, operation):
    """Check the motions of an operation in one place, whatever they are for: the check is most of a kernel, and each
    further place would hold a copy."""
    worker, desk = s.worker, s.desk
    for item in range(worker.number, motions_of(s, now, operation), worker.count):
        if stops(s, CHECKING):
            break
        if motion_of(s, now, operation, item):
            parts = split(s, now) * s.slots.steps[item % now.batch]
            last = operation == CONNECT and item // now.batch + 1 == parts
            # a connection ends at a sample that was found free
            is_free = motion_free(desk.a, desk.b, END_FREE if last else NOTHING, desk.space, worker.lane)
            conclude(s, now, operation, item, is_free)
        sync_lanes()


@lean_njit
def split(s, now):
    """How many workers share a motion of a slot: several where a round is small and leaves workers idle."""
    return max(1, min(s.request.split, s.request.batch // now.batch))


@lean_njit
def motions_of(s, now, operation):
    """How many motions an operation checks: `roots_in` the round, then parts of what the slots' motions consist of."""
    batch = now.batch
    if operation == EXTEND:
        return split(s, now) * batch
    most = ZERO
    for w in range(s.worker.lane, batch, lane_count()):
        most = max(most, np.float32(s.slots.steps[w]))
    return roots_in(s, now) + int(greatest_lane(most)) * split(s, now) * batch


@lean_njit
def motion_of(s, now, operation, item):
    """desk.a, desk.b become the ends of a motion -> must it be checked? A part of its way that is nearer to the
    tree may be known to be blocked; one lane looks, so that all agree."""
    desk, slots, lane, roots = s.desk, s.slots, s.worker.lane, roots_in(s, now)
    if item < roots:
        copy_root(s, item, desk.a)
        copy_all(desk.a, desk.b)
        return True
    item -= roots
    w, part = item % now.batch, item // now.batch
    which, q, near, parts = extended(now, w), slot_at(s, w).q, 0, split(s, now)
    if operation == EXTEND:
        if sum_lanes(peek(slots.result, w) if lane == 0 else 0) != ADVANCED:
            return False
        near = int(slots.parent[w])
    else:
        if part // parts >= sum_lanes(peek(slots.reached, w) if lane == 0 else 0):
            return False
        which, near, parts = 1 - which, int(slots.target[w]), parts * int(slots.steps[w])
    nodes = tree_at(s, which).nodes
    between(nodes, near, q, part, parts, desk.a)
    between(nodes, near, q, part + 1, parts, desk.b)
    return True


@lean_njit
def conclude(s, now, operation, item, is_free):
    """Write down whether a motion is free: of a root, of a slot's sample, or of a part of its connection."""
    lane, roots = s.worker.lane, roots_in(s, now)
    if item < roots:
        if not is_free:
            remove(s, item)
        elif lane == 0:
            note_root(s, item)
    elif not is_free and lane == 0:
        item -= roots
        w, part = item % now.batch, item // now.batch
        if operation == EXTEND:
            s.slots.result[w] = TRAPPED
        else:
            lower(s.slots.reached, w, part // split(s, now))


@lean_njit
def between(nodes, i, q, part, parts, out):
    """The point `part` of `parts` from node i to q."""
    share = np.float32(part) / np.float32(parts)
    for k in range(len(out)):
        near = nodes[place(i, k, len(out))]
        out[k] = q[k] if part == parts else near + share * (q[k] - near)


@lean_njit
def add_straight(s, now, w):
    """The nodes of slot w: the sample, and the way from the other tree towards it as far as it is free."""
    slots, weights, dof, lane = s.slots, s.bounds.weights, s.request.dof, s.worker.lane
    which, reached, steps = extended(now, w), int(slots.reached[w]), int(slots.steps[w])
    this, that, parent, target = tree_at(s, which), tree_at(s, 1 - which), int(slots.parent[w]), int(slots.target[w])
    before_this, before_that = nodes_before(s, now, w)
    a, b, q = count_of(now, which) + before_this, count_of(now, 1 - which) + before_that, slot_at(s, w).q
    if not now.straight:
        put(this.nodes, a, q, lane)
        if lane == 0:
            this.cost[a] = this.cost[parent] + weighted_distance(this.nodes, parent, q, weights)
            this.blocked[a], this.parents[a] = ZERO, parent
    whole = weighted_distance(that.nodes, target, q, weights)
    for i in range(lane, reached, lane_count()):
        part = np.float32(i + 1) / np.float32(steps)
        for k in range(dof):
            near = that.nodes[place(target, k, dof)]
            that.nodes[place(b + i, k, dof)] = near + part * (q[k] - near) if i + 1 < steps else q[k]
        that.cost[b + i] = that.cost[target] + part * whole
        that.blocked[b + i], that.parents[b + i] = ZERO, target if i == 0 else b + i - 1


@lean_njit
def count_straight(s, now, w):
    return 0 if now.straight else 1


@lean_njit
def write_straight(s, now, w, out):
    if not now.straight:
        copy_all(slot_at(s, w).q, out[: s.request.dof])


@lean_njit
def stay(s, now, length, paths):
    return length


STRAIGHT: dict[Callable, Any] = {  # what the search does by its space, where motions go straight
    check: check_straight,
    add_nodes: add_straight,
    count_between: count_straight,
    write_between: write_straight,
    cut_across: stay,
}
