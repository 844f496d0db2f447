"""LaCAM: a search over the places of all agents together (Okumura, AAAI 2023; IJCAI 2023; AAMAS 2024).

A node is a configuration: where every agent is. Its successors are made one at a time by PIBT, which moves all agents
one step, each under constraints on the first few agents, which a breadth-first search adds one by one. The search over
nodes is depth-first and goes on from a configuration that it meets again, so it is complete: whatever can be solved is
solved, given time and memory. PIBT lets agents that stand in each other's way in a corridor change places where it
widens (LaCAM's "swap").

Departures: a tile and a goal have four bits, which neighbours are nearer, in place of distances; the order of
priorities is kept as a list, in place of numbers that are sorted; and with `rings` False agents never move around in a
ring, so that a plan holds also where nobody may enter a tile that is left in the same step (see retime.py).
"""

from typing import NamedTuple

import numpy as np

from ..device import lean_njit, njit
from .spread import GUIDE_SHIFT

NOBODY, UNDECIDED = -1, -1
SOLVED, EXHAUSTED, MORE, FULL = range(4)
(NODES, LOWS, DEPTH, LOOPS, BEST, BEST_AWAY, RANDOM) = range(7)  # places in `Search.count`


class Task(NamedTuple):
    """What is searched for.

    goal: (N,) int32 tiles, -1 none; field: (N,) int32 rows of nearer, -1 none
    nearer: (K, T + 1) uint8 (ways.py, spread.py)
    first: (N,) int32 agents, of whom the first has the highest priority at the start
    rings: may agents move around in a ring? swaps: do agents change places where a corridor widens?
    straight: do agents that may choose rather go straight on?
    """

    goal: np.ndarray
    field: np.ndarray
    nearer: np.ndarray
    first: np.ndarray
    rings: bool
    swaps: bool
    straight: bool


class Tree(NamedTuple):
    """Nodes and constraints; M nodes, L constraints.

    place: (M, N) int32 tiles; order: (M, N) int32 agents by priority; parent: (M,) int32
    head, tail: (M,) int32 the constraints that a node has still to try
    up, agent, tile, depth, next: (L,) int32 of a constraint: the one that it adds to, whom it sends where, how many
        agents are sent, and the one that is tried after it
    table: (H,) int32 nodes by their hash, -1 none; H a power of two
    stack: (S,) int32 nodes, the last one is expanded next
    """

    place: np.ndarray
    order: np.ndarray
    parent: np.ndarray
    head: np.ndarray
    tail: np.ndarray
    up: np.ndarray
    agent: np.ndarray
    tile: np.ndarray
    depth: np.ndarray
    next: np.ndarray
    table: np.ndarray
    stack: np.ndarray


class Scratch(NamedTuple):
    """now, then: (T + 1,) int32 who is on a tile before and after the step, or NOBODY
    chain, place, many, partner: (N,) int32, option: (N, 5) int32 stack of agents that are being moved: which option is
        tried, how many there are, with whom they are to change places
    mark: (N,) int32
    """

    now: np.ndarray
    then: np.ndarray
    chain: np.ndarray
    place: np.ndarray
    many: np.ndarray
    option: np.ndarray
    partner: np.ndarray
    mark: np.ndarray


def new_scratch(agents: int, tiles: int) -> Scratch:
    def numbers(*shape):
        return np.full(shape, -1, np.int32)

    n = agents
    now, then = numbers(tiles + 1), numbers(tiles + 1)
    return Scratch(now, then, numbers(n), numbers(n), numbers(n), numbers(n, 5), numbers(n), numbers(n))


@lean_njit
def _chance(count):
    """-> a random number of 31 bits (xorshift; Marsaglia 2003)"""
    x = np.uint64(count[RANDOM])
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    count[RANDOM] = np.int64(x)
    return np.int64(x >> np.uint64(33))


@lean_njit
def _random(count, below):
    """-> a random number from 0 to below - 1"""
    return _chance(count) % below


@lean_njit
def _is_nearer(agent, tile, direction, task):
    """Is the neighbour in a direction nearer to the agent's goal?"""
    field = task.field[agent]
    return field >= 0 and (task.nearer[field, tile] >> direction) & 1 == 1


@lean_njit
def _rooms(tile, but, now, task, ground):
    """Neighbours of a tile, but for one and for dead ends where an agent is at its goal.

    -> how many, direction of the last of them
    """
    many, last = 0, -1
    for direction in range(4):
        there = ground.near[tile, direction]
        if there == len(ground.ways) - 1 or there == but:
            continue
        ways, other = ground.ways[there], now[there]
        if ways & (ways - 1) == 0 and other != NOBODY and task.goal[other] == there:
            continue
        many, last = many + 1, direction
    return many, last


@lean_njit
def _must_swap(pusher, puller, at, direction, now, task, ground):
    """Do two agents in a corridor have to change places? The pusher is at a tile, the puller at its neighbour."""
    there = ground.near[at, direction]
    while _is_nearer(pusher, at, direction, task):
        many, last = _rooms(there, at, now, task, ground)
        if many >= 2:
            return False
        if many == 0:
            break
        at, direction = there, last
        there = ground.near[there, last]
    at_goal = task.goal[pusher] == at
    return _is_nearer(puller, there, (direction + 2) % 4, task) and (at_goal or _is_nearer(pusher, at, direction, task))


@lean_njit
def _can_swap(at, direction, now, task, ground):
    """Does a corridor widen, when one goes from a tile in a direction, before it comes back?"""
    first, there = at, ground.near[at, direction]
    while there != first:
        many, last = _rooms(there, at, now, task, ground)
        if many >= 2:
            return True
        if many == 0:
            return False
        at, there = there, ground.near[there, last]
    return False


@lean_njit
def _partner(agent, at, best, then_of, now, task, ground):
    """With whom an agent has to change places. best: direction of its best option, -1 staying -> agent or NOBODY"""
    if best < 0:
        return NOBODY
    there = ground.near[at, best]
    other = now[there]
    many, _ = _rooms(there, at, now, task, ground)
    narrow, back = many < 2, (best + 2) % 4
    if narrow and other != NOBODY and other != agent and then_of[other] == UNDECIDED:
        if _must_swap(agent, other, at, best, now, task, ground) and _can_swap(there, back, now, task, ground):
            return other
    for direction in range(4):
        behind = ground.near[at, direction]
        if behind == len(ground.ways) - 1 or behind == there:
            continue
        other = now[behind]
        if other == NOBODY or (not narrow and task.goal[other] != at):
            continue
        if _must_swap(other, agent, at, best, now, task, ground) and _can_swap(there, back, now, task, ground):
            return other
    return NOBODY


@lean_njit
def _open(level, agent, then_of, now_of, before_of, task, ground, scratch, count):
    """Put an agent on the chain of those that are being moved, with its options, the best one first."""
    at, before = now_of[agent], before_of[agent]
    scratch.chain[level], scratch.place[level] = agent, 0
    field = task.field[agent]
    byte = np.int64(task.nearer[field, at]) if field >= 0 else 0
    nearer, best = byte & 15, (byte >> GUIDE_SHIFT) - 1
    chance = _chance(count)
    turn = chance & 3
    if task.straight and before != at and chance & 28:
        for direction in range(4):
            if ground.near[before, direction] == at:
                turn = direction
    k = 0
    while best < 0 and k < 4:
        direction = (turn + k) & 3
        if (nearer >> direction) & 1:
            best = direction
        k += 1
    partner = _partner(agent, at, best, then_of, scratch.now, task, ground) if task.swaps else NOBODY
    scratch.partner[level] = partner
    option, many = scratch.option[level], 0
    if best >= 0:
        option[0], many = ground.near[at, best], 1
        if partner == NOBODY and scratch.then[option[0]] == NOBODY and scratch.now[option[0]] == NOBODY:
            scratch.many[level] = 1
            return
        nearer &= ~(1 << best)
    for better in (True, False):
        bits = nearer if better else np.int64(ground.ways[at]) & ~byte
        for k in range(4):
            direction = (k + turn) & 3
            if (bits >> direction) & 1 and (better or direction != best):
                option[many] = ground.near[at, direction]
                many += 1
        if better:
            option[many] = at
            many += 1
    if partner != NOBODY:
        for k in range(many // 2):
            option[k], option[many - 1 - k] = option[many - 1 - k], option[k]
    scratch.many[level] = many


@lean_njit
def _settle(level, then_of, now_of, task, scratch):
    """An agent of the chain has found its next tile; if it was its best option, whoever changes places follows."""
    agent, other = scratch.chain[level], scratch.partner[level]
    if other == NOBODY or scratch.place[level] != 1 or then_of[other] != UNDECIDED:
        return
    at = now_of[agent]
    if scratch.then[at] == NOBODY and (task.rings or scratch.then[now_of[other]] == NOBODY):
        scratch.then[at], then_of[other] = other, at


@lean_njit
def _move(agent, then_of, now_of, before_of, task, ground, scratch, count):
    """PIBT: find a next tile for an agent, and for all that are in its way. -> has it one?"""
    level, then, now = 0, scratch.then, scratch.now
    if now_of[agent] == task.goal[agent] and then[now_of[agent]] == NOBODY:  # nobody wants it to go
        then[now_of[agent]], then_of[agent] = agent, now_of[agent]
        return True
    _open(0, agent, then_of, now_of, before_of, task, ground, scratch, count)
    while True:
        a, deeper, found = scratch.chain[level], False, False
        at = now_of[a]
        while scratch.place[level] < scratch.many[level]:
            there = scratch.option[level, scratch.place[level]]
            scratch.place[level] += 1
            if then[there] != NOBODY:
                continue
            other = now[there]
            if other != NOBODY and other != a and then_of[other] != UNDECIDED:
                if then_of[other] == at:
                    continue
                if not task.rings and _leads_to(there, at, then_of, now):
                    continue
            then[there], then_of[a] = a, there
            if other != NOBODY and other != a and then_of[other] == UNDECIDED:
                level, deeper = level + 1, True
                _open(level, other, then_of, now_of, before_of, task, ground, scratch, count)
            else:
                found = True
            break
        if deeper:
            continue
        if found:
            for k in range(level, -1, -1):
                _settle(k, then_of, now_of, task, scratch)
            return True
        then[at], then_of[a] = a, at
        if level == 0:
            return False
        level -= 1


@lean_njit
def _leads_to(tile, end, then_of, now):
    """Does the row of agents that follow each other from a tile come to another tile?"""
    agent = now[tile]
    while agent != NOBODY and then_of[agent] != UNDECIDED and then_of[agent] != tile:
        tile = then_of[agent]
        if tile == end:
            return True
        agent = now[tile]
    return False


@lean_njit
def _has_ring(now_of, then_of, scratch):
    """Do agents move around in a ring? Changing places is one."""
    mark = scratch.mark
    mark[:] = -1
    for first in range(len(now_of)):
        agent = first
        while agent != NOBODY and mark[agent] < 0 and then_of[agent] != now_of[agent]:
            mark[agent] = first
            agent = scratch.now[then_of[agent]]
        if agent != NOBODY and mark[agent] == first and then_of[agent] != now_of[agent]:
            return True
    return False


@lean_njit
def _successor(node, low, then_of, tree, task, ground, scratch, count):
    """Move all agents of a node's configuration one step, under a constraint. -> could all be moved?"""
    now_of = tree.place[node]
    before_of = tree.place[max(0, tree.parent[node])]
    agents, fine = len(now_of), True
    then_of[:] = UNDECIDED
    for a in range(agents):
        scratch.now[now_of[a]] = a
    while low >= 0 and tree.depth[low] > 0 and fine:
        a, there = tree.agent[low], tree.tile[low]
        other = scratch.now[there]
        swaps = other != NOBODY and other != a and then_of[other] == now_of[a]
        if scratch.then[there] != NOBODY or swaps:
            fine = False
        else:
            scratch.then[there], then_of[a] = a, there
            low = tree.up[low]
    for k in range(agents):
        a = tree.order[node, k]
        if fine and then_of[a] == UNDECIDED:
            fine = _move(a, then_of, now_of, before_of, task, ground, scratch, count)
    if fine and not task.rings:
        fine = not _has_ring(now_of, then_of, scratch)
    for a in range(agents):
        scratch.now[now_of[a]] = NOBODY
        if then_of[a] != UNDECIDED:
            scratch.then[then_of[a]] = NOBODY
        scratch.then[now_of[a]] = NOBODY
    return fine


@lean_njit
def _hash(place):
    h = np.uint64(1469598103934665603)
    for a in range(len(place)):
        x = (np.uint64(a) << np.uint64(32)) ^ np.uint64(place[a])
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        h += x ^ (x >> np.uint64(31))
    return np.int64(h >> np.uint64(1))


@lean_njit
def _slot(place, tree):
    """Where a configuration is in the table, or where it would be."""
    mask = len(tree.table) - 1
    slot = _hash(place) & mask
    while tree.table[slot] >= 0:
        other, same = tree.place[tree.table[slot]], True
        for a in range(len(place)):
            if other[a] != place[a]:
                same = False
                break
        if same:
            return slot
        slot = (slot + 1) & mask
    return slot


@lean_njit
def _add_low(node, up, agent, tile, depth, tree, count):
    low = count[LOWS]
    count[LOWS] += 1
    tree.up[low], tree.agent[low], tree.tile[low], tree.depth[low], tree.next[low] = up, agent, tile, depth, -1
    if tree.head[node] < 0:
        tree.head[node] = low
    else:
        tree.next[tree.tail[node]] = low
    tree.tail[node] = low


@lean_njit
def _add_node(slot, parent, tree, task, count):
    """Make a node of the configuration that place[count[NODES]] holds."""
    node = count[NODES]
    count[NODES] += 1
    place, order = tree.place[node], tree.order[node]
    tree.parent[node], tree.head[node], tree.table[slot] = parent, -1, node
    before = task.first if parent < 0 else tree.order[parent]
    away = 0
    for k in range(len(place)):
        a = before[k]
        if task.goal[a] >= 0 and place[a] != task.goal[a]:
            order[away] = a
            away += 1
    last = away
    for k in range(len(place)):
        a = task.first[k]
        if task.goal[a] < 0 or place[a] == task.goal[a]:
            order[last] = a
            last += 1
    if away < count[BEST_AWAY]:
        count[BEST], count[BEST_AWAY] = node, away
    _add_low(node, -1, -1, -1, 0, tree, count)
    return node


@njit
def begin(start, tree, task, count):
    """Put the configuration of the start into an empty tree. start: (N,) int32"""
    tree.place[0] = start
    count[BEST_AWAY] = len(start) + 1
    node = _add_node(_slot(start, tree), -1, tree, task, count)
    tree.stack[0], count[DEPTH] = node, 1


@njit
def rehash(tree, nodes):
    """Enter the nodes into an empty table."""
    for node in range(nodes):
        tree.table[_slot(tree.place[node], tree)] = node


@njit
def search(loops, tree, task, ground, scratch, count):
    """Go on with the search for some loops -> SOLVED, EXHAUSTED, MORE, or FULL: the tree needs more memory"""
    agents = tree.place.shape[1]
    blocked = len(ground.ways) - 1
    for _ in range(loops):
        if count[BEST_AWAY] == 0:
            return SOLVED
        if count[DEPTH] == 0:
            return EXHAUSTED
        if (
            count[NODES] == len(tree.place)
            or count[LOWS] + 6 > len(tree.up)
            or count[DEPTH] == len(tree.stack)
            or 2 * count[NODES] > len(tree.table)
        ):
            return FULL
        count[LOOPS] += 1
        node = tree.stack[count[DEPTH] - 1]
        low = tree.head[node]
        if low < 0:
            count[DEPTH] -= 1
            continue
        tree.head[node] = tree.next[low]
        depth = tree.depth[low]
        if depth < agents:
            a = tree.order[node, depth]
            at, turn = tree.place[node, a], _random(count, 5)
            for k in range(5):
                direction = (k + turn) % 5
                there = at if direction == 4 else ground.near[at, direction]
                if there != blocked:
                    _add_low(node, low, a, there, depth + 1, tree, count)
        then_of = tree.place[count[NODES]]
        if not _successor(node, low, then_of, tree, task, ground, scratch, count):
            continue
        slot = _slot(then_of, tree)
        known = tree.table[slot]
        if known < 0:
            known = _add_node(slot, node, tree, task, count)
        tree.stack[count[DEPTH]] = known
        count[DEPTH] += 1
    return MORE
