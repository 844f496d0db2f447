"""Fields after tiles were blocked or freed: what has changed is planned again, the rest stays.

First states whose paths all led over blocked tiles are withdrawn; then these, and all that get cheaper, are planned
from the rest (Ramalingam and Reps, Journal of Algorithms 1996). A field holds costs modulo 256, so the cost of a state
is computed from that of a neighbour, going from state to state.
"""

from typing import NamedTuple

import numba
import numpy as np
from numba import prange

from ...device import lean_njit, njit
from ...parallel.threads import in_parts, one_thread
from .cost_to_go import SHARED_STATES, UNREACHED, WRAP, Buckets, difference, downhill, offer, pull
from .lanes import Lanes, ahead

KNOWN = 1  # a state's old cost is known
WITHDRAWN = 2  # it is known, and no longer holds
ROUND = 1 << 12  # costs between two states of one bucket


class Change(NamedTuple):
    """What has changed on a map."""

    blocked: np.ndarray  # (K,) int32 tiles
    freed: np.ndarray  # (K,) int32 tiles
    before: np.ndarray  # (tiles,) uint8 which are free
    after: np.ndarray  # (tiles,) uint8
    part: np.ndarray  # (tiles,) int32 of `lanes.parts_of` before


class _Repair(NamedTuple):
    """The repair of a field; arrays (states,) but for those of others."""

    goal: int
    field: np.ndarray  # uint8
    lanes: Lanes  # with the map before
    change: Change
    known: np.ndarray  # uint8 KNOWN, WITHDRAWN or 0
    old: np.ndarray  # int32 old cost, where it is known
    new: np.ndarray  # int32
    touched: np.ndarray  # int32 the states that are known
    withdrawn: np.ndarray  # int32
    many: np.ndarray  # (2,) int64 how many of these two there are
    queue: Buckets  # states by new cost


def repair_fields(goals: np.ndarray, slots: np.ndarray, values: np.ndarray, lanes: Lanes, change: Change):
    """Repair the fields of goals (K,) in rows `slots` (K,) of values; `change` has the maps, not the lanes"""
    lanes = lanes._replace(free=change.before)
    with one_thread(len(goals) * len(change.before) < SHARED_STATES):
        for some, places in in_parts(goals, slots, size=numba.get_num_threads()):
            _repair_fields(some, places, values, lanes, change, min(numba.get_num_threads(), len(some)))


@njit(parallel=True)
def _repair_fields(goals, slots, values, lanes, change, members):
    states = values.shape[1]
    for member in prange(members):
        known, old, new = np.zeros(states, np.uint8), np.empty(states, np.int32), np.full(states, UNREACHED, np.int32)
        touched, withdrawn, many = np.empty(states, np.int32), np.empty(states, np.int32), np.zeros(2, np.int64)
        queue = Buckets(np.full(ROUND, -1, np.int32), np.empty(states, np.int32), np.empty(states, np.int32))
        scratch = known, old, new, touched, withdrawn, many, queue
        for k in range(member, len(goals), members):
            _repair(_Repair(goals[k], values[slots[k]], lanes, change, *scratch))


@lean_njit
def _repair(repair):
    """Repair a field, and reset the scratch arrays."""
    _withdraw(repair)
    _plan_again(repair)
    for i in range(repair.many[0]):
        state = repair.touched[i]
        if repair.new[state] != UNREACHED:
            repair.field[state] = np.uint8(repair.new[state] & WRAP)
        repair.known[state], repair.new[state] = 0, UNREACHED
    repair.many[:] = 0


@lean_njit
def _action(state, k, time, free, lanes):
    """The state that action k of 4 leads to (time 1) or comes from (time -1), -1 where there is none or its tile is not
    free; and the action's cost. The map's border is blocked, so no tile lies outside."""
    headings = lanes.headings
    tile, heading = state // headings, state % headings
    if headings == 4 and k > 0:
        return (-1 if k == 3 else tile * 4 + (heading + (1 if k == 1 else 3)) % 4), lanes.turn
    direction = k if headings == 1 else heading
    other = tile + time * ahead(direction, lanes.width)
    cost = int(lanes.forward[tile if time > 0 else other, direction])
    return (other * headings + heading if free[other] else -1), cost


@lean_njit
def _old_cost(state, by, repair):
    """The old cost of a state. by: a neighbouring state whose old cost is known, or -1"""
    if repair.known[state] == 0:
        if repair.change.part[state // repair.lanes.headings] != repair.change.part[repair.goal]:
            _know(state, UNREACHED, repair)
        elif by < 0:
            _go_down(state, repair)
        else:
            was = repair.old[by]
            _know(state, was + difference(repair.field[state], np.uint8(was & WRAP)), repair)
    return repair.old[state]


@lean_njit
def _know(state, cost, repair):
    repair.touched[repair.many[0]] = state
    repair.many[0] += 1
    repair.known[state], repair.old[state] = KNOWN, cost


@lean_njit
def _go_down(state, repair):
    """Find the old costs of a state and of those on its way to the goal, as far as they are not known."""
    headings, first, gone = repair.lanes.headings, repair.many[0], 0
    while repair.known[state] == 0:
        _know(state, gone, repair)
        tile, heading = state // headings, state % headings
        if tile == repair.goal:
            break
        down, tile, heading = downhill(tile, heading, repair.field, repair.lanes)
        gone -= down
        state = tile * headings + heading
    else:
        gone += repair.old[state]
    for i in range(first, repair.many[0]):
        repair.old[repair.touched[i]] = gone - repair.old[repair.touched[i]]


@lean_njit
def _supported(state, repair):
    """Does a state have a path of its old cost over states that hold?"""
    lanes, field = repair.lanes, repair.field
    if state // lanes.headings == repair.goal:
        return True
    for k in range(4):
        other, cost = _action(state, k, 1, repair.change.after, lanes)
        if other >= 0 and repair.change.before[other // lanes.headings] and repair.known[other] != WITHDRAWN:
            if difference(field[state], field[other]) == cost:
                return True
    return False


@lean_njit
def _withdraw(repair):
    """Withdraw states of changed tiles, and those that have lost all their paths."""
    lanes, change, known, headings = repair.lanes, repair.change, repair.known, repair.lanes.headings
    withdrawn, many = repair.withdrawn, repair.many
    for tile in change.blocked:
        for state in range(tile * headings, tile * headings + headings):
            _old_cost(state, -1, repair)
            known[state] = WITHDRAWN
            if change.part[tile] == change.part[repair.goal]:
                withdrawn[many[1]] = state
                many[1] += 1
    for tile in change.freed:
        for state in range(tile * headings, tile * headings + headings):
            for k in range(8):
                other, _ = _action(state, k % 4, 1 if k < 4 else -1, change.before, lanes)
                if other >= 0 and other // headings != tile:
                    _old_cost(other, -1, repair)
            _old_cost(state, -1, repair)
            known[state] = WITHDRAWN
    at = 0
    while at < many[1]:
        state = np.int64(withdrawn[at])
        at += 1
        for k in range(4):
            other, _ = _action(state, k, -1, change.before, lanes)
            if other >= 0 and known[other] != WITHDRAWN:
                _old_cost(other, state, repair)
                if not _supported(other, repair):
                    known[other] = WITHDRAWN
                    withdrawn[many[1]] = other
                    many[1] += 1
    for tile in change.freed:
        for state in range(tile * headings, tile * headings + headings):
            withdrawn[many[1]] = state
            many[1] += 1


@lean_njit
def _plan_again(repair):
    """Plan what was withdrawn, from the states that hold, and what becomes cheaper."""
    lanes, change, known, new, queue = repair.lanes, repair.change, repair.known, repair.new, repair.queue
    waiting, now = 0, np.int64(UNREACHED)
    for i in range(repair.many[1]):
        state = np.int64(repair.withdrawn[i])
        for k in range(4 if change.after[state // lanes.headings] else 0):
            other, cost = _action(state, k, 1, change.after, lanes)
            if other >= 0 and known[other] != WITHDRAWN:
                old = _old_cost(other, state, repair)
                if old != UNREACHED:
                    waiting += offer(state, np.int64(old) + cost, new, queue)
                    now = min(now, np.int64(old) + cost)
    while waiting:
        state = np.int64(queue.first[now & (len(queue.first) - 1)])
        while state >= 0:
            if new[state] != now:  # its turn comes in a later round
                state = np.int64(queue.after[state])
                continue
            pull(state, now, queue)
            waiting -= 1
            for k in range(4):
                other, cost = _action(state, k, -1, change.after, lanes)
                if other >= 0:
                    old, later = _old_cost(other, state, repair), now + cost
                    if known[other] != KNOWN or old > later:
                        waiting += offer(other, later, new, queue)
            state = np.int64(queue.first[now & (len(queue.first) - 1)])
        now += 1
