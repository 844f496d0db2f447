"""Fields after tiles were blocked or freed: what has changed is planned again, the rest stays.

First every state whose ways all led over blocked tiles is withdrawn, then those that come cheaper or again are planned
from the rest (Ramalingam and Reps, Journal of Algorithms 1996). A field holds costs modulo 256 only; that of a state is
known from one that an action joins with it, so the costs of what is touched are found by going from state to state.
"""

import heapq
from typing import NamedTuple

import numba
import numpy as np
from numba import prange

from ..device import njit
from ..parallel.threads import in_parts, one_thread
from .fields import SHARED_STATES, UNREACHED, WRAP, Lanes, ahead, cost_to_go, difference

KNOWN, WITHDRAWN = 1, 2  # what is known of a state: its old cost; that its old cost does not hold


class Change(NamedTuple):
    """What has changed on a map; arrays (tiles,) but the first two.

    blocked, freed: (K,) int32 tiles; before, after: uint8, which tiles are free
    part: int32, of tiles between which there were ways
    """

    blocked: np.ndarray
    freed: np.ndarray
    before: np.ndarray
    after: np.ndarray
    part: np.ndarray


class _Scratch(NamedTuple):
    """Of states: what is known, the old and the new cost, and which ones are not blank (a list, its length first)."""

    known: np.ndarray
    old: np.ndarray
    new: np.ndarray
    touched: np.ndarray


def repair_fields(goals: np.ndarray, slots: np.ndarray, values: np.ndarray, lanes: Lanes, change: Change):
    """Repair the fields of goals (K,) in rows `slots` (K,) of values; lanes: the map before"""
    with one_thread(len(goals) * len(change.before) < SHARED_STATES):
        for some, places in in_parts(goals, slots, size=numba.get_num_threads()):
            _repair_fields(some, places, values, lanes, change, min(numba.get_num_threads(), len(some)))


@njit(parallel=True)
def _repair_fields(goals, slots, values, lanes, change, members):
    states = values.shape[1]
    for member in prange(members):
        scratch = _Scratch(
            np.zeros(states, np.uint8),
            np.empty(states, np.int32),
            np.full(states, UNREACHED, np.int32),
            np.zeros(states + 1, np.int32),
        )
        for k in range(member, len(goals), members):
            _repair(goals[k], values[slots[k]], lanes, change, scratch)
            _forget(scratch)


@njit
def _forget(scratch):
    for i in range(scratch.touched[0]):
        state = scratch.touched[1 + i]
        scratch.known[state], scratch.new[state] = 0, UNREACHED
    scratch.touched[0] = 0


@njit
def _learn(state, old, scratch):
    """Note the old cost of a state that nothing is known of."""
    if scratch.known[state] == 0:
        scratch.touched[0] += 1
        scratch.touched[scratch.touched[0]] = state
        scratch.known[state], scratch.old[state] = KNOWN, old


@njit
def _action(state, k, lanes, time):
    """The state that action k of 4 leads to (time 1) or comes from (time -1), and its cost; -1, 0 where there is none.

    The map's borders are blocked, so that no tile lies outside.
    """
    headings = lanes.headings
    tile, heading = state // headings, state % headings
    if headings == 1:
        other = tile + time * ahead(k, lanes.width)
        return other, int(lanes.forward[tile if time > 0 else other, k])
    if k == 0:
        other = tile + time * ahead(heading, lanes.width)
        return other * 4 + heading, int(lanes.forward[tile if time > 0 else other, heading])
    if k == 3:
        return -1, 0
    return tile * 4 + (heading + (1 if k == 1 else 3)) % 4, lanes.turn


@njit
def _old_cost(state, goal, field, lanes, change):
    """By going down the old field."""
    tile = state // lanes.headings
    if change.part[tile] != change.part[goal]:
        return UNREACHED
    return cost_to_go(tile, state % lanes.headings, goal, field, lanes)


@njit
def _neighbour_cost(state, by, field, goal, lanes, change, scratch):
    """The old cost of a state that an action joins with `by`, whose old cost is known."""
    if scratch.known[state] == 0:
        if change.part[state // lanes.headings] != change.part[goal]:
            _learn(state, UNREACHED, scratch)
        else:
            was = scratch.old[by]
            _learn(state, was + difference(field[state], np.uint8(was & WRAP)), scratch)
    return scratch.old[state]


@njit
def _supported(state, goal, field, lanes, change, scratch):
    """Does a way of the old cost lead on from a state, over states that hold?"""
    headings = lanes.headings
    if state // headings == goal:
        return True
    for k in range(4):
        other, cost = _action(state, k, lanes, 1)
        if other >= 0 and change.after[other // headings] and change.before[other // headings]:
            if scratch.known[other] != WITHDRAWN and difference(field[state], field[other]) == cost:
                return True
    return False


@njit
def _repair(goal, field, lanes, change, scratch):
    headings = lanes.headings
    reached = change.part[goal]
    # the old costs of what is blocked, and of what lies beside freed tiles, while the field still is the old one
    for i in range(len(change.blocked)):
        for heading in range(headings):
            state = change.blocked[i] * headings + heading
            _learn(state, _old_cost(state, goal, field, lanes, change), scratch)
            scratch.known[state] = WITHDRAWN
    for i in range(len(change.freed)):
        for heading in range(headings):
            state = change.freed[i] * headings + heading
            for time in (1, -1):
                for k in range(4):
                    other, _ = _action(state, k, lanes, time)
                    if other >= 0 and change.before[other // headings]:
                        if scratch.known[other] == 0:
                            _learn(other, _old_cost(other, goal, field, lanes, change), scratch)
    for i in range(len(change.freed)):
        for heading in range(headings):
            _learn(change.freed[i] * headings + heading, UNREACHED, scratch)
            scratch.known[change.freed[i] * headings + heading] = WITHDRAWN
    # withdraw what has lost all its ways
    withdrawn = [np.int64(0)]
    withdrawn.pop()
    for i in range(len(change.blocked)):
        if change.part[change.blocked[i]] == reached:
            for heading in range(headings):
                withdrawn.append(change.blocked[i] * headings + heading)
    at = 0
    while at < len(withdrawn):
        state = withdrawn[at]
        at += 1
        for k in range(4):
            other, _ = _action(state, k, lanes, -1)
            if other < 0 or not change.before[other // headings] or scratch.known[other] == WITHDRAWN:
                continue
            _neighbour_cost(other, state, field, goal, lanes, change, scratch)
            if not _supported(other, goal, field, lanes, change, scratch):
                scratch.known[other] = WITHDRAWN
                withdrawn.append(other)
    for i in range(len(change.freed)):
        for heading in range(headings):
            withdrawn.append(change.freed[i] * headings + heading)
    # plan them again from those that hold, and what becomes cheaper
    queue = [(np.int64(0), np.int64(0))]
    queue.pop()
    for state in withdrawn:
        if change.after[state // headings]:
            for k in range(4):
                other, cost = _action(state, k, lanes, 1)
                if other < 0 or not change.after[other // headings] or scratch.known[other] == WITHDRAWN:
                    continue
                if scratch.known[other] == 0:
                    _neighbour_cost(other, state, field, goal, lanes, change, scratch)
                if scratch.old[other] != UNREACHED and scratch.old[other] + cost < scratch.new[state]:
                    scratch.new[state] = scratch.old[other] + cost
                    heapq.heappush(queue, (np.int64(scratch.new[state]), np.int64(state)))
    while len(queue):
        now, state = heapq.heappop(queue)
        if now > scratch.new[state]:
            continue
        for k in range(4):
            other, cost = _action(state, k, lanes, -1)
            if other < 0 or not change.after[other // headings]:
                continue
            if scratch.known[other] == 0:
                _neighbour_cost(other, state, field, goal, lanes, change, scratch)
            holds = scratch.known[other] == KNOWN
            if now + cost < scratch.new[other] and not (holds and scratch.old[other] <= now + cost):
                scratch.new[other] = now + cost
                heapq.heappush(queue, (np.int64(now + cost), np.int64(other)))
    for i in range(scratch.touched[0]):
        state = scratch.touched[1 + i]
        if scratch.new[state] != UNREACHED:
            field[state] = np.uint8(scratch.new[state] & WRAP)
