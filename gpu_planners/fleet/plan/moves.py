"""One step of all agents by PIBT, as LaCAM (lacam.py) wants it: an agent takes the best tile that it can get, and
pushes whoever is there (Okumura et al., Artif. Intelligence, 2022).

Agents that stand in each other's way in a corridor change places where it widens (LaCAM's "swap"; Okumura, IJCAI 2023).
Departures: four bits for a tile and a goal say which neighbours are nearer, in place of distances; with `rings` False
agents never move around in a ring, so the plan also serves where nobody may enter a tile in the step that empties it
(retime.py). Of equally good tiles an agent often takes one that is empty and not in its pusher's way, in the spirit of
"hindrance" (Okumura and Nagai, arXiv 2505.12623).
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ..fields.next_hops import LANE_SHIFT, NOBODY, Ground

UNDECIDED = -1


class Task(NamedTuple):
    """What agents are to do."""

    goal: np.ndarray  # (N,) int32 tiles, -1 none
    field: np.ndarray  # (N,) int32 rows of next_hops, -1 none
    next_hops: np.ndarray  # (K, T + 1) uint8 (next_hops.py, spread.py)
    rings: bool  # may agents move around in a ring?
    swaps: bool  # do agents change places where a corridor widens?
    straight: bool  # do agents prefer to go straight on?
    lanes: bool  # do agents prefer the directions in bits 4 to 7 of next_hops?


class Mover(NamedTuple):
    """What a step works on; arrays are scratch."""

    task: Task
    ground: Ground
    random: np.ndarray  # (1,) int64 state of the random numbers, not 0
    now: np.ndarray  # (T + 1,) int32 who is on a tile before the step, or NOBODY
    then: np.ndarray  # (T + 1,) int32 and after it
    chain: np.ndarray  # (N,) int32 stack of agents that are being moved
    place: np.ndarray  # (N,) int32 by place in the chain: the option that is tried next
    many: np.ndarray  # (N,) int32 how many options it has
    option: np.ndarray  # (N, 5) int32 tiles
    partner: np.ndarray  # (N,) int32 with whom it is to change places
    mark: np.ndarray  # (N,) int32


class Step(NamedTuple):
    """Where agents are; arrays (N,) int32 tiles."""

    then: np.ndarray  # after the step, or UNDECIDED
    now: np.ndarray
    before: np.ndarray  # a step earlier


def new_mover(task: Task, ground: Ground, seed: int) -> Mover:
    """seed: not 0"""
    n, tiles = len(task.goal), len(ground.neighbour)
    arrays = (np.full(shape, -1, np.int32) for shape in (tiles, tiles, n, n, n, (n, 5), n, n))
    return Mover(task, ground, np.array([seed], np.int64), *arrays)


@lean_njit
def chance(random):
    """-> a random number of 31 bits (xorshift; Marsaglia 2003)"""
    x = np.uint64(random[0])
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    random[0] = np.int64(x)
    return np.int64(x >> np.uint64(33))


@lean_njit
def _is_nearer(agent, tile, direction, task):
    field = task.field[agent]
    return field >= 0 and (task.next_hops[field, tile] >> direction) & 1 == 1


@lean_njit
def _rooms(tile, but, mover):
    """-> how many neighbours a tile has, without `but` and dead ends where an agent is at its goal; direction of
    the last one"""
    ground, many, last = mover.ground, 0, -1
    for direction in range(4):
        there = ground.neighbour[tile, direction]
        if there == len(ground.neighbour) - 1 or there == but:
            continue
        directions, other = ground.directions[there], mover.now[there]
        if directions & (directions - 1) == 0 and other != NOBODY and mover.task.goal[other] == there:
            continue
        many, last = many + 1, direction
    return many, last


@lean_njit
def _must_swap(pusher, puller, at, direction, mover):
    """Do two agents in a corridor have to change places? The pusher is at a tile, the puller next to it."""
    task, neighbour = mover.task, mover.ground.neighbour
    there = neighbour[at, direction]
    while _is_nearer(pusher, at, direction, task):
        many, last = _rooms(there, at, mover)
        if many >= 2:
            return False
        if many == 0:
            break
        at, direction = there, last
        there = neighbour[there, last]
    at_goal = task.goal[pusher] == at
    return _is_nearer(puller, there, (direction + 2) % 4, task) and (at_goal or _is_nearer(pusher, at, direction, task))


@lean_njit
def _can_swap(at, direction, mover):
    """Does the corridor from a tile in a direction widen before it ends or comes back?"""
    first, there = at, mover.ground.neighbour[at, direction]
    while there != first:
        many, last = _rooms(there, at, mover)
        if many >= 2:
            return True
        if many == 0:
            return False
        at, there = there, mover.ground.neighbour[there, last]
    return False


@lean_njit
def _partner(agent, at, best, mover, step):
    """With whom an agent has to change places. best: direction of its best option, -1 staying -> agent or NOBODY"""
    if best < 0:
        return NOBODY
    neighbour, blocked, now = mover.ground.neighbour, len(mover.ground.neighbour) - 1, mover.now
    there = neighbour[at, best]
    other = np.int64(now[there])
    many, _ = _rooms(there, at, mover)
    narrow, back = many < 2, (best + 2) % 4
    if narrow and other != NOBODY and other != agent and step.then[other] == UNDECIDED:
        if _must_swap(agent, other, at, best, mover) and _can_swap(there, back, mover):
            return other
    for direction in range(4):
        behind = neighbour[at, direction]
        if behind == blocked or behind == there:
            continue
        other = np.int64(now[behind])
        if other == NOBODY or (not narrow and mover.task.goal[other] != at):
            continue
        if _must_swap(other, agent, at, best, mover) and _can_swap(there, back, mover):
            return other
    return NOBODY


@lean_njit
def _enter(level, agent, mover, step):
    """Put an agent on the chain, with its options, the best one first."""
    task, neighbour, at, before = mover.task, mover.ground.neighbour, step.now[agent], step.before[agent]
    mover.chain[level], mover.place[level] = agent, 0
    field = task.field[agent]
    byte = np.int64(task.next_hops[field, at]) if field >= 0 else 0
    next_hops, liked, best = byte & 15, byte >> LANE_SHIFT if task.lanes else 0, -1
    lot = chance(mover.random)
    turn = lot & 3
    if task.straight and before != at and lot & 28:
        for direction in range(4):
            if neighbour[before, direction] == at:
                turn = direction
    for k in range(4):
        if best < 0 and ((liked or next_hops) >> ((turn + k) & 3)) & 1:
            best = (turn + k) & 3
    partner = _partner(agent, at, best, mover, step) if task.swaps else NOBODY
    mover.partner[level] = partner
    option, many = mover.option[level], 0
    if best >= 0:
        option[0], many = neighbour[at, best], 1
        if partner == NOBODY and mover.then[option[0]] == NOBODY and mover.now[option[0]] == NOBODY:
            mover.many[level] = 1
            return
        next_hops &= ~(1 << best)
    wanted = np.int64(-1)  # bits of the directions in which the pusher will go on
    if lot & 32:  # if always, agents may push each other for ever
        pusher = task.field[mover.chain[level - 1]] if level > 0 else -1
        wanted = np.int64(task.next_hops[pusher, at]) & 15 if pusher >= 0 else np.int64(0)
    for better in (True, False):
        bits = next_hops if better else np.int64(mover.ground.directions[at]) & ~byte
        for k in range(16):
            direction = (k + turn) & 3
            there = neighbour[at, direction]
            rank = 2 * (mover.now[there] != NOBODY) + ((wanted >> direction) & 1) if wanted >= 0 else 0
            if (bits >> direction) & 1 and (better or direction != best) and rank == k >> 2:
                option[many] = there
                many += 1
        if better:
            option[many] = at
            many += 1
    if partner != NOBODY:
        for k in range(many // 2):
            option[k], option[many - 1 - k] = option[many - 1 - k], option[k]
    mover.many[level] = many


@lean_njit
def _leads_to(tile, end, mover, step):
    """Does the row of agents that follow each other from a tile reach `end`?"""
    agent = mover.now[tile]
    while agent != NOBODY and step.then[agent] != UNDECIDED and step.then[agent] != tile:
        tile = step.then[agent]
        if tile == end:
            return True
        agent = mover.now[tile]
    return False


@lean_njit
def _swap_partners(level, mover, step):
    """Let partners follow the agents that got the tile they like best."""
    for k in range(level, -1, -1):
        agent, other = mover.chain[k], mover.partner[k]
        if other == NOBODY or mover.place[k] != 1 or step.then[other] != UNDECIDED:
            continue
        at = step.now[agent]
        if mover.then[at] == NOBODY and (mover.task.rings or mover.then[step.now[other]] == NOBODY):
            mover.then[at], step.then[other] = other, at


@lean_njit
def pibt(agent, mover, step):
    """Find a tile for an agent by pushing whoever is there, and so on. -> found? If not, it stays"""
    now, then, top = mover.now, mover.then, np.int64(0)
    _enter(top, np.int64(agent), mover, step)
    while True:
        a = mover.chain[top]
        at = step.now[a]
        if mover.place[top] == mover.many[top]:  # it stays, and whoever pushed it looks on
            then[at], step.then[a] = a, at
            if top == 0:
                return False
            top -= 1
            continue
        there = mover.option[top, mover.place[top]]
        mover.place[top] += 1
        if then[there] != NOBODY:
            continue
        other = now[there]
        free = other == NOBODY or other == a
        pushes = not free and step.then[other] == UNDECIDED
        if not (free or pushes) and step.then[other] != at:  # it moves on
            free = mover.task.rings or not _leads_to(there, at, mover, step)
        if free or pushes:
            then[there], step.then[a] = a, there
        if free:
            _swap_partners(top, mover, step)
            return True
        if pushes:
            top += 1
            _enter(top, np.int64(other), mover, step)


@lean_njit
def move(agent, mover, step):
    """Find next tiles for an agent and all that are in its way. -> found?"""
    at = step.now[agent]
    if at == mover.task.goal[agent] and mover.then[at] == NOBODY:  # nobody wants it to go
        mover.then[at], step.then[agent] = agent, at
        return True
    return pibt(agent, mover, step)


@lean_njit
def has_ring(mover, step):
    """Do agents move around in a ring? Changing places is one."""
    mark = mover.mark
    mark[:] = -1
    for first in range(len(step.now)):
        agent = first
        while agent != NOBODY and mark[agent] < 0 and step.then[agent] != step.now[agent]:
            mark[agent] = first
            agent = mover.now[step.then[agent]]
        if agent != NOBODY and mark[agent] == first and step.then[agent] != step.now[agent]:
            return True
    return False
