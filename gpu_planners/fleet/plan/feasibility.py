"""Proofs that no plan brings all agents of a connected part of the map to their goals, without a search over the places
of all.

**One agent among others that are alike.** Agents move into blanks, tiles that nobody is on. As long as one agent stays
on its tile, the others can rearrange themselves at will within each component of the map without that tile, so of them
only the number of blanks in each component counts. Hence where one agent can get to is found exactly, by union-find
over its tile and these numbers; of a tile with three components and more it only matters whether all blanks are in one
of them. An agent that cannot get to its goal so cannot get there among others with goals of their own either: two in a
lane change neither places nor the number of agents ahead of them. Where agents may follow each other closely they also
move around in full rings; any edge that is no bridge is taken for part of one.

**Rings and single blanks.** On a map that is one ring the cyclic order stays. With a single blank, where nobody follows
closely, the blank's closed walks permute the agents of each block by themselves: cyclically on a ring, and evenly on
any other, since grids are bipartite (Wilson, J. Combinatorial Theory B 1974; Kornhauser, Miller and Spirakis, FOCS
1984).

What none of these refuses is left to the search. Speeds, sizes and distances between agents are not looked at; they
only forbid more.
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit, njit
from ...parallel.team import clock_ns
from ..fields.next_hops import Ground

MOST_STATES = 1 << 24  # of an agent; a larger part of the map is left to the search
LOOK = 64  # tiles between two checks of the clock
DONE, LATE = range(2)


class Survey(NamedTuple):
    """A connected part of the map, n tiles, numbered 0 .. n - 1 as a depth-first search meets them."""

    tile: np.ndarray  # (n,) int32 of the ground
    number: np.ndarray  # (T + 1,) int32 of each tile, -1 elsewhere
    neighbour: np.ndarray  # (n, 4) int32 numbers of neighbours, -1 none
    parent: np.ndarray  # (n,) int32, -1 of the first
    size: np.ndarray  # (n,) int32 of its subtree
    low: np.ndarray  # (n,) int32 the least number that its subtree is next to
    many: np.ndarray  # (n,) int32 components of the part without the tile
    side: np.ndarray  # (n, 4) int32 component of each neighbour, -1 none
    room: np.ndarray  # (n, 4) int32 tiles of a component
    head: np.ndarray  # (n, 4) int32 the child whose subtree a component is, -1: all the rest


class Reach(NamedTuple):
    """Where one agent can get to among others that are alike. A state is a tile and where the blanks are: their number
    in the first of two components; of more components the one that has all, or, as the last state, none has."""

    first: np.ndarray  # (n + 1,) int64 the first state of each tile
    least: np.ndarray  # (n,) int64 blanks in the first of two components, in the first state
    up: np.ndarray  # (states,) int32 of a union-find


def unsolvable(start: np.ndarray, goal: np.ndarray, ground: Ground, following: bool, deadline: int) -> bool:
    """Is it proven that agents (K,) of one connected part cannot all get to their goals? False where the proofs of
    this module do not say so, or take longer than the deadline.

    start, goal: (K,) int32 tiles of the ground, -1 without a goal; following: of instance.Model
    """
    part = np.flatnonzero(ground.part[:-1] == ground.part[start[0]])
    blanks, wanted = len(part) - len(start), goal >= 0
    if not wanted.any():
        return False
    root = part[0]
    if blanks == 1 and wanted.all():
        root = np.setdiff1d(part, goal)[0]
    survey = survey_of(root, len(part), ground.neighbour)
    here, there = survey.number[start], np.where(wanted, survey.number[goal], -1)
    ring = len(part) > 2 and survey.low[-1] == 0 and ((survey.neighbour >= 0).sum(axis=1) == 2).all()
    if ring and not _same_round(here[wanted], there[wanted]):
        return True
    if blanks == 1 and wanted.all() and not following:
        return not _blank_carries(here, there, survey)
    one, two = survey.room[:, :2].T.astype(np.int64)
    least = np.maximum(0, blanks - two)
    states = np.where(survey.many == 2, np.minimum(blanks, one) - least + 1, survey.many + 1)
    states[(survey.many < 2) | (blanks == 0)] = 1
    first = np.r_[0, np.cumsum(states)]
    if first[-1] > MOST_STATES:
        return False
    reach = Reach(first, least, np.arange(first[-1], dtype=np.int32))
    if join_states(blanks, following, survey, reach, deadline) == LATE:
        return False
    counts = (np.cumsum(np.r_[0, np.bincount(numbers, minlength=len(part))]) for numbers in (here, there[wanted]))
    return not all_reach(here, there, *counts, blanks, len(start) - int(wanted.sum()), survey, reach)


@njit
def survey_of(root, count, near_tile):
    """-> Survey of the part, of `count` tiles, around a tile. near_tile: of Ground"""
    blocked = len(near_tile) - 1
    tile, number = np.empty(count, np.int32), np.full(len(near_tile), -1, np.int32)
    neighbour, parent = np.full((count, 4), -1, np.int32), np.full(count, -1, np.int32)
    size, low, turn = np.ones(count, np.int32), np.arange(count).astype(np.int32), np.zeros(count, np.int32)
    tile[0], number[root] = root, 0
    at, known = 0, 1
    while at >= 0:
        if turn[at] == 4:
            up = parent[at]
            if up >= 0:
                size[up] += size[at]
                low[up] = min(low[up], low[at])
            at = up
            continue
        direction = turn[at]
        turn[at] += 1
        there = near_tile[tile[at], direction]
        if there == blocked:
            continue
        other = number[there]
        if other < 0:
            other = known
            tile[other], number[there], parent[other] = there, other, at
            known += 1
            neighbour[at, direction] = other
            at = other
        else:
            neighbour[at, direction] = other
            if other != parent[at]:
                low[at] = min(low[at], other)
    many, side = np.zeros(count, np.int32), np.full((count, 4), -1, np.int32)
    room, head = np.zeros((count, 4), np.int32), np.full((count, 4), -1, np.int32)
    for v in range(count):
        rest = count - 1
        for direction in range(4):
            child = neighbour[v, direction]
            if child >= 0 and parent[child] == v and low[child] >= v:
                room[v, many[v]], head[v, many[v]] = size[child], child
                rest -= size[child]
                many[v] += 1
        if rest > 0:
            room[v, many[v]] = rest
            many[v] += 1
        for direction in range(4):
            other = neighbour[v, direction]
            for k in range(many[v] if other >= 0 else 0):
                child = head[v, k]
                if side[v, direction] < 0 and (child < 0 or child <= other < child + size[child]):
                    side[v, direction] = k
    return Survey(tile, number, neighbour, parent, size, low, many, side, room, head)


@lean_njit
def _find(state, up):
    while up[state] != state:
        up[state] = up[up[state]]
        state = up[state]
    return state


@lean_njit
def _join(one, other, up):
    a, b = _find(one, up), _find(other, up)
    if a < b:
        up[b] = a
    else:
        up[a] = b


@njit
def join_states(blanks, rings, survey, reach, deadline):
    """Join the states between which one move of the agent, and others within their components, lead. -> DONE or LATE"""
    n, first, many, room = len(survey.tile), reach.first, survey.many, survey.room
    for v in range(n):
        if v % LOOK == 0 and clock_ns() > deadline:
            return LATE
        for direction in range(4):
            other = survey.neighbour[v, direction]
            if other < 0:
                continue
            k = survey.side[v, direction]
            for state in range(first[v + 1] - first[v]):
                low, high = blanks, blanks  # blanks in the component that the agent moves into
                if blanks > 0 and many[v] == 2:
                    number = reach.least[v] + state
                    low = high = number if k == 0 else blanks - number
                elif blanks > 0 and many[v] > 2 and state < many[v]:
                    low = high = blanks if state == k else 0
                    if room[v, state] < blanks:
                        continue
                elif blanks > 0 and many[v] > 2:
                    if blanks < 2:
                        continue
                    low, high = max(0, blanks - (n - 1 - room[v, k])), min(blanks - 1, room[v, k])
                    if low > high:
                        continue
                _move(first[v] + state, v, other, direction, low, high, blanks, rings, survey, reach)
    return DONE


@lean_njit
def _move(state, v, other, direction, low, high, blanks, rings, survey, reach):
    """Join a state of tile v with those after a move to a neighbour. low, high: blanks in the component around it"""
    n = len(survey.tile)
    back = survey.side[other, (direction + 2) % 4]
    behind = survey.room[other, back]  # v's component without the neighbour
    between = behind + survey.room[v, survey.side[v, direction]] - n  # tiles that lie in both components
    beyond = n - 1 - behind
    if high > 0:  # into a blank, which is then behind
        _arrive(state, other, back, max(0, max(low, 1) - 1 - between), min(high - 1, beyond), blanks, survey, reach)
    if rings and between > 0:
        _arrive(state, other, back, max(0, low - between), min(high, beyond), blanks, survey, reach)


@lean_njit
def _arrive(state, v, back, low, high, blanks, survey, reach):
    """Join a state with those of tile v that have low .. high blanks in components other than `back`."""
    first, many = reach.first[v], survey.many[v]
    if low > high:
        return
    if many < 2 or blanks == 0:
        _join(state, first, reach.up)
    elif many == 2:
        for beyond in range(low, high + 1):
            there = first + (blanks - beyond if back == 0 else beyond) - reach.least[v]
            if first <= there < reach.first[v + 1]:
                _join(state, there, reach.up)
    else:
        if low == 0:
            _join(state, first + back, reach.up)
        if max(low, 1) <= min(high, blanks - 1) or (high >= blanks and many > 2 and blanks > 1):
            _join(state, first + many, reach.up)
        if high >= blanks:
            for k in range(many):
                if k != back and survey.room[v, k] >= blanks:
                    _join(state, first + k, reach.up)


@lean_njit
def _free_of(v, k, count, survey):
    """-> tiles of component k without v that are not counted. count: (n + 1,) running sum"""
    child = survey.head[v, k]
    if child >= 0:
        return survey.room[v, k] - (count[child + survey.size[child]] - count[child])
    taken = count[len(survey.tile)] - (count[v + 1] - count[v])
    for other in range(survey.many[v]):
        child = survey.head[v, other]
        if child >= 0:
            taken -= count[child + survey.size[child]] - count[child]
    return survey.room[v, k] - taken


@njit
def all_reach(here, there, started, ended, blanks, others, survey, reach):
    """Can each agent get to its goal?

    here, there: (K,) numbers of starts and goals, -1 none; started, ended: (n + 1,) running sums of these by number
    others: agents without goals
    """
    first, many, up = reach.first, survey.many, reach.up
    for a in range(len(here)):
        v, goal = here[a], there[a]
        if goal < 0:
            continue
        state = first[v]
        if blanks > 0 and many[v] == 2:
            state += _free_of(v, 0, started, survey) - reach.least[v]
        elif blanks > 0 and many[v] > 2:
            which, filled = many[v], 0
            for k in range(many[v]):
                if _free_of(v, k, started, survey) > 0:
                    which, filled = k, filled + 1
            state += which if filled == 1 else many[v]
        root, reached = _find(state, up), False
        if blanks == 0 or many[goal] < 2:
            reached = _find(first[goal], up) == root
        elif many[goal] == 2:
            one, two = _free_of(goal, 0, ended, survey), _free_of(goal, 1, ended, survey)
            for number in range(max(0, one - others, blanks - two), min(one, blanks - two + others, blanks) + 1):
                there_then = first[goal] + number - reach.least[goal]
                if first[goal] <= there_then < first[goal + 1]:
                    reached |= _find(there_then, up) == root
        else:
            free, filled = 0, 0
            for k in range(many[goal]):
                free += _free_of(goal, k, ended, survey)
                filled += _free_of(goal, k, ended, survey) > 0
            for k in range(many[goal]):
                if free - _free_of(goal, k, ended, survey) <= others:
                    reached |= _find(first[goal] + k, up) == root
            if filled > 1 and blanks > 1:
                reached |= _find(first[goal] + many[goal], up) == root
        if not reached:
            return False
    return True


def _same_round(here, there):
    """On a ring, whose tiles are numbered one after the other: is the order of agents (K,) the same in the end?"""
    before, after = np.argsort(here), np.argsort(there)
    at = int(np.flatnonzero(after == before[0])[0])
    return bool((np.roll(after, -at) == before).all())


def _blank_carries(here, there, survey):
    """With one blank, which ends at number 0: can its walks carry agents from `here` to `there`? (K,) numbers"""
    n, parent = len(survey.tile), survey.parent
    agent = np.full(n, -1)
    agent[here] = np.arange(len(here))
    at = int(np.flatnonzero(agent < 0)[0])
    while at != 0:  # the blank goes to the root; agents move along its path into the other direction
        agent[at], at = agent[parent[at]], int(parent[at])
    agent[0] = -1
    block = np.zeros(n, np.int64)  # the first tile of the block that joins a tile with its parent
    for v in range(1, n):
        block[v] = v if survey.low[v] >= parent[v] else block[parent[v]]
    goal = np.zeros(n, np.int64)
    goal[1:] = there[agent[1:]]
    if (block[goal[1:]] != block[1:]).any():
        return False
    for first in np.unique(block[1:]):
        tiles = np.flatnonzero(block == first)  # along a ring, one after the other
        whole = {*tiles.tolist(), int(parent[first])}
        ends = sum(other in whole for v in whole for other in survey.neighbour[v].tolist())
        order = np.searchsorted(tiles, goal[tiles])
        if ends == 2 * len(whole):
            if not _same_round(np.arange(len(tiles)), order):
                return False
        elif _is_odd(order):
            return False
    return True


def _is_odd(order):
    """Is a permutation odd?"""
    seen, odd = np.zeros(len(order), bool), False
    for first in range(len(order)):
        at, length = first, 0
        while not seen[at]:
            seen[at], at, length = True, int(order[at]), length + 1
        odd ^= length > 0 and length % 2 == 0
    return odd
