"""RRT-Connect (Kuffner and LaValle, ICRA 2000, figures 2 and 5), compiled for the workers of a team (`team`).

    RRT_CONNECT(start, goals)                     here, for a round of samples against the trees as they are
        T_a, T_b <- start; goals                  plant
        repeat                                    search
            q_rand <- RANDOM_CONFIG               draw
            if EXTEND(T_a, q_rand) -> q_new       extend: the step from the node nearest to q_rand towards it
                if CONNECT(T_b, q_new) = Reached  connect: from the node nearest to q_new as far as it is free
                    return PATH(T_a, T_b)         append, path
            SWAP(T_a, T_b)                        extended: a round extends both, the smaller one with more samples

EXTEND and CONNECT propose motions, which are then proven (`check`), by any worker; `append` numbers new nodes in the
order of the samples, so that the trees never depend on timing. A round of one sample extends the smaller tree. The
first rounds are smaller where the request says so: easy problems end early, and hard ones take fewer rounds, of which
each lasts as long as its longest check, so that two workers share each motion of a small round. Before the first one,
straight rounds try to connect the start with each goal; start and goals are checked in the first of them.

Two lengths follow from how samples fare, unless the settings fix them. Blocked samples make motions shorter and free
ones longer, as the one-fifth rule of evolution strategies does (Rechenberg 1973): no one length suits all robots, or
all obstacles. Blocked samples also make the dynamic domain smaller, and those that lie in no node's domain make it
larger (after Jaillet et al., "Adaptive tuning of the sampling domain for dynamic-domain RRTs", IROS 2005).

Most paths stay near the start and the goals, so the first samples are drawn there; the box that they are drawn from
grows to the joints' whole ranges.
"""

import math

import numpy as np

from ....device import lean_njit
from ....parallel.sampling import joined_halves, uniform01
from ....parallel.team import lane_count, least_lane, meet, sum_lanes, sync_lanes
from ..blocked import clear_log, log_blocked
from ..node_store import FAR, ZERO, load, nearest, put, steer, weighted_distance
from .request import FULL, GOALS_COLLIDE, SEARCHING, SOLVED, START_COLLIDES, STOPPED
from .round import (
    ADVANCED,
    CHECKING,
    CONNECT,
    EXTEND,
    OUTSIDE,
    PROPOSING,
    TRAPPED,
    Round,
    copy,
    copy_all,
    copy_root,
    count_of,
    extended,
    roots_in,
    stops,
)
from .state import slot_at, tree_at

MOST_STEPS = np.float32(1 << 16)  # of a connection: it has longer ones then
FIRST_ROUNDS = 4  # of Request.first samples, then of twice as many, until they have Request.batch
PER_SAMPLE = 0.01  # by which part a blocked sample makes motions shorter, and the dynamic domain smaller
PER_FREE = 40  # blocked samples that a free one makes up for
PER_OUTSIDE = 3  # blocked samples that one outside of all domains makes up for
MOST_CHANGE = 40  # blocked samples that count in a round
WHOLE = np.float32(1000.0)  # samples until they are drawn from all of the joints' ranges
TRIES = 8  # samples that a slot draws until one lies in the domain of its nearest node


@lean_njit
def search(s):
    """Let the trees grow until they meet.

    -> status, the slot whose connection joined the trees, and its Round. Goes on where it stopped, unless the request
    is fresh; a round that the deadline cuts is lost.
    """
    now = begin(s)
    if not (now.straight or now.drawn < s.request.until):
        return SEARCHING, 0, now
    meet(s.worker)
    operation = CONNECT if now.straight else EXTEND
    while True:
        if operation == EXTEND:
            extend(s, now)
        else:
            connect(s, now)
        meet(s.worker)
        if s.board.halt[PROPOSING] != 0:
            return STOPPED, 0, now
        check(s, now, operation)
        meet(s.worker)
        if s.board.halt[CHECKING] != 0:
            return STOPPED, 0, now
        if roots_in(s, now) > 0 and s.board.free_start[0] == 0:
            return START_COLLIDES, 0, now
        if roots_in(s, now) > 0 and s.board.free_goals[0] == 0:
            return GOALS_COLLIDE, 0, now
        if operation == EXTEND:
            operation = CONNECT
            continue
        status, winner, now = append(s, now)
        if status != SEARCHING:
            return status, winner, now
        meet(s.worker)
        if not now.straight and now.drawn >= s.request.until:
            return SEARCHING, 0, now
        operation = CONNECT if now.straight else EXTEND


@lean_njit
def begin(s):
    """-> the Round that comes next. All must meet before it begins."""
    board, worker = s.board, s.worker
    if s.request.fresh:
        if worker.number == 0 and worker.lane == 0:
            board.drawn[0], board.counts[0], board.counts[1] = 0, 1, s.request.goal_count
            board.free_goals[0], board.free_start[0], board.lengths[0], board.lengths[1] = 0, 0, 0, 0
        if worker.number == 0:
            clear_log(s.trees, worker.lane)
        meet(worker)
    if worker.number == 0 and worker.lane == 0:
        board.halt[0], board.halt[1] = 0, 0
    counts = np.int64(board.counts[0]), np.int64(board.counts[1])
    drawn = np.int64(board.drawn[0])
    lengths = np.int64(board.lengths[0]), np.int64(board.lengths[1])
    return Round(s.request.fresh, 0, drawn, batch_after(s.request, drawn), *counts, *lengths)


@lean_njit
def batch_after(request, drawn):
    """How many samples a round takes after so many: twice as many after every FIRST_ROUNDS of a size."""
    size, end = request.first, FIRST_ROUNDS * request.first
    while size < request.batch and drawn >= end:
        size = min(2 * size, request.batch)
        end += FIRST_ROUNDS * size
    return size


@lean_njit
def less(length, samples):
    """A length after so many blocked samples."""
    return length * np.float32(math.exp(-PER_SAMPLE * samples))


@lean_njit
def extend(s, now):
    """EXTEND: each slot draws samples until one lies in the domain of its nearest node, and proposes the step from
    there."""
    slots, worker = s.slots, s.worker
    for w in range(worker.number, now.batch, worker.count):
        if stops(s, PROPOSING):
            break
        if worker.lane == 0:
            slots.result[w], slots.steps[w], slots.reached[w], slots.grown[w] = OUTSIDE, 0, 0, 0
        if now.drawn + w < s.request.until:
            step_to_sample(s, now, w)
        sync_lanes()


@lean_njit
def connect(s, now):
    """CONNECT: each slot that was extended proposes to go straight to the nearest node of the other tree; in a straight
    round, from the start to a goal."""
    slots, worker = s.slots, s.worker
    for root in range(worker.number, roots_in(s, now), worker.count):
        plant(s, root)
    for w in range(worker.number, now.batch, worker.count):
        if stops(s, PROPOSING):
            break
        if now.straight:
            if worker.lane == 0:
                slots.result[w], slots.steps[w], slots.reached[w], slots.grown[w] = OUTSIDE, 0, 0, 0
            go_to_goal(s, now, w)
        elif slots.result[w] == ADVANCED:
            go_to_nearest(s, now, w)
        sync_lanes()


@lean_njit
def step_to_sample(s, now, w):
    """The step of slot w from the node nearest to a sample in its domain."""
    request, desk, lane = s.request, s.desk, s.worker.lane
    which, seed = extended(now, w), joined_halves(request.seed_low, request.seed_high)
    tree, number = tree_at(s, which), (now.drawn + w) * TRIES
    reach, radius = less(request.reach, now.shorter), less(request.radius, now.closer)
    width = min(np.float32(now.drawn + w) / WHOLE, np.float32(1.0))
    for t in range(TRIES):
        draw(s.bounds, seed, number + t, width, desk.b)
        parent, squared = nearest(tree.nodes, count_of(now, which), desk.b, desk.squared, lane)
        distance = math.sqrt(squared)
        if distance <= radius or tree.blocked[parent] == ZERO:
            load(tree.nodes, parent, desk.a)
            steer(desk.a, desk.b, distance, reach)
            copy(desk.b, slot_at(s, w).q, lane)
            if lane == 0:
                s.slots.result[w], s.slots.parent[w], s.slots.grown[w] = ADVANCED, parent, 1
            return


@lean_njit
def draw(bounds, seed, number, width, q):
    """Write the sample `number` of a seed into q. width: of the box, 0 (the near one) to 1 (the whole one)"""
    for k in range(len(q)):
        low = bounds.near_lower[k] + width * (bounds.lower[k] - bounds.near_lower[k])
        high = bounds.near_upper[k] + width * (bounds.upper[k] - bounds.near_upper[k])
        q[k] = low + (high - low) * uniform01(seed, number, k)


@lean_njit
def go_to_nearest(s, now, w):
    """The straight motion of slot w to the nearest node of the other tree."""
    desk, which = s.desk, 1 - extended(now, w)
    copy_all(slot_at(s, w).q, desk.b)
    target, squared = nearest(tree_at(s, which).nodes, count_of(now, which), desk.b, desk.squared, s.worker.lane)
    go_to(s, now, w, target, squared)


@lean_njit
def go_to_goal(s, now, w):
    """The straight motion of slot w from the start to a goal."""
    desk, dof, goal = s.desk, s.request.dof, now.goal + w
    if goal < s.request.goal_count:
        copy_all(s.ends.start, desk.b)
        copy_all(s.ends.goals[goal * dof :], desk.a)
        copy(desk.b, slot_at(s, w).q, s.worker.lane)
        if s.worker.lane == 0:
            s.slots.parent[w] = 0
        squared = ZERO
        for k in range(dof):
            squared += (desk.b[k] - desk.a[k]) * (desk.b[k] - desk.a[k])
        go_to(s, now, w, goal, squared)


@lean_njit
def go_to(s, now, w, target, squared):
    """The motion of slot w to a node of the other tree, in steps as short as motions are now."""
    slots = s.slots
    reach = less(s.request.reach, now.shorter)
    steps = max(1, int(math.ceil(min(math.sqrt(squared) / reach, MOST_STEPS))))
    if s.worker.lane == 0:
        slots.result[w], slots.target[w], slots.steps[w], slots.reached[w] = ADVANCED, target, steps, steps


def check(s, now, k):
    """Check the motions of operation k of a round. By the space: `straight.check_straight`, or `walk.check_walks`."""
    raise NotImplementedError("compiled code only")


@lean_njit
def plant(s, root):
    """A root: the start, or goal `root` - 1."""
    tree, i, lane = tree_at(s, 0 if root == 0 else 1), max(root - 1, 0), s.worker.lane
    copy_root(s, root, s.desk.a)
    put(tree.nodes, i, s.desk.a, lane)
    if lane == 0:
        tree.cost[i], tree.blocked[i], tree.parents[i] = ZERO, ZERO, -1 - i


@lean_njit
def append(s, now):
    """The end of a round -> SOLVED and the slot that joined the trees at the least cost; or FULL; or SEARCHING and the
    Round that comes next, when all have met."""
    request, worker = s.request, s.worker
    new_a, new_b, shorter, closer, winner = outcome(s, now)
    drawn = now.drawn if now.straight else now.drawn + now.batch
    count_a, count_b = now.count_a + new_a, now.count_b + new_b
    first = worker.number == 0 and worker.lane == 0
    if winner >= 0:
        if first:
            s.board.drawn[0] = drawn
        return SOLVED, winner, now
    if max(count_a, count_b) > request.capacity:
        return FULL, 0, now
    for w in range(worker.number, now.batch, worker.count):
        if s.slots.result[w] == ADVANCED:
            add_nodes(s, now, w)
        elif s.slots.result[w] == TRAPPED:
            note_blocked(s, now, w)
    if first:
        s.board.drawn[0], s.board.counts[0], s.board.counts[1] = drawn, count_a, count_b
        s.board.lengths[0], s.board.lengths[1] = shorter, closer
    goal, batch = now.goal + now.batch, batch_after(request, drawn)
    straight = now.straight and goal < request.goal_count
    return SEARCHING, 0, Round(straight, goal, drawn, batch, count_a, count_b, shorter, closer)


@lean_njit
def note_blocked(s, now, w):
    """The extension of slot w is blocked: its node takes samples of its domain only from now on."""
    which, parent, lane = extended(now, w), s.slots.parent[w], s.worker.lane
    tree, seed = tree_at(s, which), joined_halves(s.request.seed_low, s.request.seed_high)
    if lane == 0:
        tree.blocked[parent] = 1
    load(tree.nodes, parent, s.desk.a)
    log_blocked(s.trees, seed, now.drawn + w, w, which, s.desk.a, slot_at(s, w).q, lane)


@lean_njit
def outcome(s, now):
    """-> how many nodes a round adds to each tree; Round.shorter and closer of the next one; the slot that joins the
    trees at the least cost, or -1."""
    request, slots, new_a, new_b, best, winner = s.request, s.slots, 0, 0, FAR, -1
    blocked, free, outside = 0, 0, 0
    for w in range(s.worker.lane, now.batch, lane_count()):
        blocked += slots.result[w] == TRAPPED
        outside += slots.result[w] == OUTSIDE
        if slots.result[w] == ADVANCED:
            which, reached, q = extended(now, w), int(slots.reached[w]), slot_at(s, w).q
            grown = int(slots.grown[w])
            free += min(grown, 1)
            new_a += grown if which == 0 else reached
            new_b += reached if which == 0 else grown
            if reached == slots.steps[w]:
                this, that, parent, target = tree_at(s, which), tree_at(s, 1 - which), slots.parent[w], slots.target[w]
                cost = that.cost[target] + this.cost[parent]
                cost += weighted_distance(this.nodes, parent, q, s.bounds.weights)
                cost += weighted_distance(that.nodes, target, q, s.bounds.weights)
                if cost < best:
                    best, winner = cost, w
    best, winner = least_lane(best, winner)
    blocked, free, outside = sum_lanes(blocked), sum_lanes(free), sum_lanes(outside)
    shorter = changed(now.shorter, blocked - PER_FREE * free, request.shortest)
    closer = changed(now.closer, blocked - PER_OUTSIDE * outside, request.closest)
    return sum_lanes(new_a), sum_lanes(new_b), shorter, closer, winner


@lean_njit
def changed(samples, more, most):
    return min(max(samples + min(max(more, -MOST_CHANGE), MOST_CHANGE), 0), most)


def add_nodes(s, now, k):
    """The nodes of slot k. By the space: `straight.add_straight`, or `walk.add_walks`."""
    raise NotImplementedError("compiled code only")


@lean_njit
def path(s, now, w, room, out):
    """PATH: write the path that slot w closed to `out`, its goal's number to the board -> its corners, 0: no room."""
    dof, start, goals = s.request.dof, tree_at(s, 0), tree_at(s, 1)
    ends = int(s.slots.parent[w]), int(s.slots.target[w])
    at_start, at_goal = ends if extended(now, w) == 0 else (ends[1], ends[0])
    before, _ = chain(start.parents, at_start)
    after, root = chain(goals.parents, at_goal)
    s.board.goal[0] = -1 - root
    middle = count_between(s, now, w)
    if before + middle + after > room:
        return 0
    node = at_start
    for i in range(before):
        load(start.nodes, node, out[(before - 1 - i) * dof : (before - i) * dof])
        node = start.parents[node]
    write_between(s, now, w, out[before * dof :])
    node = at_goal
    for i in range(before + middle, before + middle + after):
        load(goals.nodes, node, out[i * dof : (i + 1) * dof])
        node = goals.parents[node]
    return before + middle + after


def count_between(s, now, k):
    """How many configurations a path has between the trees' nodes that slot k joined."""
    raise NotImplementedError("compiled code only")


def write_between(s, now, k, out):
    """Write these configurations to `out`, from the start's tree to the goals'."""
    raise NotImplementedError("compiled code only")


def cut_across(s, now, k, out):
    """Shorten the path of k corners in `out` by what the space has for that, before straight motions do it -> its
    corners. All workers of the team call it."""
    raise NotImplementedError("compiled code only")


@lean_njit
def chain(parents, node):
    """-> how many nodes lie on the way from a node to its root, and what stands at the root: -1 - its number."""
    length = 0
    while node >= 0:
        length, node = length + 1, int(parents[node])
    return length, node
