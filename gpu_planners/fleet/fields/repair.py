"""Fields after tiles were blocked or freed: what has changed is planned again, the rest stays.

First states whose paths all led over blocked tiles are withdrawn; then these, and all that get cheaper, are planned
from the rest (Ramalingam and Reps, Journal of Algorithms 1996). A field holds costs modulo 256, so the cost of a state
is computed from that of a neighbour, going from state to state.
"""

import heapq
from typing import NamedTuple

import numba
import numpy as np
from numba import prange

from ...device import njit
from ...parallel.threads import in_parts, one_thread
from .cost_to_go import SHARED_STATES, UNREACHED, WRAP, cost_to_go, difference
from .lanes import Lanes, ahead

KNOWN = 1  # a state's old cost is known
WITHDRAWN = 2  # it is known, and no longer holds


class Change(NamedTuple):
    """What has changed on a map."""

    blocked: np.ndarray  # (K,) int32 tiles
    freed: np.ndarray  # (K,) int32 tiles
    before: np.ndarray  # (tiles,) uint8 which are free
    after: np.ndarray  # (tiles,) uint8
    part: np.ndarray  # (tiles,) int32 of `lanes.parts_of` before


class _Repair(NamedTuple):
    """The repair of a field; arrays (states,)."""

    goal: int
    field: np.ndarray  # uint8
    lanes: Lanes  # before
    change: Change
    known: np.ndarray  # uint8 KNOWN, WITHDRAWN or 0
    old: np.ndarray  # int32 old cost, where it is known
    new: np.ndarray  # int32
    touched: np.ndarray  # (states + 1,) int32 their number, then the states that are known


def repair_fields(goals: np.ndarray, slots: np.ndarray, values: np.ndarray, lanes: Lanes, change: Change):
    """Repair the fields of goals (K,) in rows `slots` (K,) of values; lanes: the map before"""
    with one_thread(len(goals) * len(change.before) < SHARED_STATES):
        for some, places in in_parts(goals, slots, size=numba.get_num_threads()):
            _repair_fields(some, places, values, lanes, change, min(numba.get_num_threads(), len(some)))


@njit(parallel=True)
def _repair_fields(goals, slots, values, lanes, change, members):
    states = values.shape[1]
    for member in prange(members):
        known, old = np.zeros(states, np.uint8), np.empty(states, np.int32)
        new, touched = np.full(states, UNREACHED, np.int32), np.zeros(states + 1, np.int32)
        for k in range(member, len(goals), members):
            repair = _Repair(goals[k], values[slots[k]], lanes, change, known, old, new, touched)
            _plan_again(_withdraw(repair), repair)
            _write(repair)


@njit
def _write(repair):
    """Enter new costs into the field and reset the scratch arrays. A function of its own: inside the parallel loop
    Numba takes writes to an array of a record for dead code."""
    for i in range(repair.touched[0]):
        state = repair.touched[1 + i]
        if repair.new[state] != UNREACHED:
            repair.field[state] = np.uint8(repair.new[state] & WRAP)
        repair.known[state], repair.new[state] = 0, UNREACHED
    repair.touched[0] = 0


@njit
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


@njit
def _old_cost(state, by, repair):
    """The old cost of a state. by: a neighbouring state whose old cost is known, or -1"""
    if repair.known[state] == 0:
        cost, tile, goal = int(UNREACHED), state // repair.lanes.headings, repair.goal
        if repair.change.part[tile] == repair.change.part[goal]:
            if by < 0:
                cost = cost_to_go(tile, state % repair.lanes.headings, goal, repair.field, repair.lanes)
            else:
                was = repair.old[by]
                cost = was + difference(repair.field[state], np.uint8(was & WRAP))
        repair.touched[0] += 1
        repair.touched[repair.touched[0]] = state
        repair.known[state], repair.old[state] = KNOWN, cost
    return repair.old[state]


@njit
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


@njit
def _withdraw(repair):
    """Withdraw states of changed tiles, and those that have lost all their paths. -> list of states"""
    lanes, change, known, headings = repair.lanes, repair.change, repair.known, repair.lanes.headings
    withdrawn = []
    for tile in change.blocked:
        for state in range(tile * headings, tile * headings + headings):
            _old_cost(state, -1, repair)
            known[state] = WITHDRAWN
            if change.part[tile] == change.part[repair.goal]:
                withdrawn.append(state)
    for tile in change.freed:
        for state in range(tile * headings, tile * headings + headings):
            for k in range(8):
                other, _ = _action(state, k % 4, 1 if k < 4 else -1, change.before, lanes)
                if other >= 0 and other // headings != tile:
                    _old_cost(other, -1, repair)
            _old_cost(state, -1, repair)
            known[state] = WITHDRAWN
    at = 0
    while at < len(withdrawn):
        state = withdrawn[at]
        at += 1
        for k in range(4):
            other, _ = _action(state, k, -1, change.before, lanes)
            if other >= 0 and known[other] != WITHDRAWN:
                _old_cost(other, state, repair)
                if not _supported(other, repair):
                    known[other] = WITHDRAWN
                    withdrawn.append(other)
    for tile in change.freed:
        for state in range(tile * headings, tile * headings + headings):
            withdrawn.append(state)
    return withdrawn


@njit
def _plan_again(withdrawn, repair):
    """Plan what was withdrawn, from the states that hold, and what becomes cheaper."""
    lanes, change, known, new = repair.lanes, repair.change, repair.known, repair.new
    queue = [(np.int64(0), np.int64(0))]
    queue.pop()
    for state in withdrawn:
        for k in range(4 if change.after[state // lanes.headings] else 0):
            other, cost = _action(state, k, 1, change.after, lanes)
            if other >= 0 and known[other] != WITHDRAWN:
                old = _old_cost(other, state, repair)
                if old != UNREACHED and old + cost < new[state]:
                    new[state] = old + cost
                    heapq.heappush(queue, (np.int64(new[state]), np.int64(state)))
    while len(queue):
        now, state = heapq.heappop(queue)
        if now > new[state]:
            continue
        for k in range(4):
            other, cost = _action(state, k, -1, change.after, lanes)
            if other < 0:
                continue
            old, later = _old_cost(other, state, repair), now + cost
            if later < new[other] and not (known[other] == KNOWN and old <= later):
                new[other] = later
                heapq.heappush(queue, (np.int64(later), np.int64(other)))
