"""Cost-to-go fields of fleets: for each goal, how far every state (tile, or tile and heading) is from it.

Costs are kept modulo 256, in a byte: agents compare only states that one action joins, and `Guidance` keeps these less
than 128 apart, so differences are exact.
"""

from typing import NamedTuple

import numba
import numpy as np
from numba import prange

from ...device import lean_njit, njit
from ...parallel.threads import in_parts, one_thread
from .lanes import ahead

WRAP = 255  # mask of a cost in a field
HALF = 128  # differences of costs are less
BUCKETS = 128  # more than an action costs
SHARED_STATES = 1 << 20  # fewer are planned on one thread: others take long to wake up
UNREACHED = np.int32(2**31 - 1)
FAR = 1 << 30  # cost of a path that does not exist


@lean_njit
def difference(after, before):
    """-> int, cost-to-go of one state minus that of another which an action joins with it. after, before: uint8"""
    return ((int(after) - int(before) + HALF) & WRAP) - HALF


@lean_njit
def exits(tile, goal, slot, values, lanes):
    """-> for a blocked tile, of which fields say nothing, the cost of the cheapest path that leaves it to the east,
    south, west, north and leads to the goal, or beside a blocked goal; FAR where there is none. All 0 for a free tile

    values: fields (slots, states), of which `slot` is that of the goal, -1 without one
    """
    if lanes.free[tile] or slot < 0:
        return np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    field = values[slot]
    return (
        _exit(tile, 0, goal, field, lanes),
        _exit(tile, 1, goal, field, lanes),
        _exit(tile, 2, goal, field, lanes),
        _exit(tile, 3, goal, field, lanes),
    )


@lean_njit
def _exit(tile, direction, goal, field, lanes):
    there = tile + ahead(direction, lanes.width)
    if not lanes.free[there]:
        return np.int64(FAR)
    cost, end = _descend(there, direction % lanes.headings, goal, field, lanes)
    arrives = end == goal
    for side in range(4):
        arrives |= not lanes.free[goal] and end + ahead(side, lanes.width) == goal
    return np.int64(cost + int(lanes.forward[tile, direction]) if arrives else FAR)


@lean_njit
def leaving(heading, out, lanes):
    """-> cost to go of an agent with a heading on a blocked tile, whose `exits` are `out`, or FAR"""
    least = np.int64(FAR)
    for direction in range(4):
        quarters = (direction - heading) & 3 if lanes.headings == 4 else 0
        turns = 1 if quarters == 3 else quarters
        least = min(least, out[direction] + turns * lanes.turn)
    return least


@lean_njit
def gain(tile, heading, there, turned, slot, values, lanes, out):
    """-> cost-to-go of the state (there, turned) minus that of (tile, heading), from which an action leads to it, at
    most 127 either way. out: `exits` of the tile, if it is blocked; it may be left, not entered"""
    headings = lanes.headings
    if lanes.free[tile]:
        return difference(values[slot, there * headings + turned], values[slot, tile * headings + heading])
    after = leaving(turned, out, lanes)
    for direction in range(4):
        if tile + ahead(direction, lanes.width) == there:
            after = out[direction] - int(lanes.forward[tile, direction])
    return min(max(after - leaving(heading, out, lanes), 1 - HALF), HALF - 1)


@lean_njit
def cost_to_go(tile, heading, goal, field, lanes):
    """-> cost of the cheapest path from a state on a free tile to the goal, or as far as it leads"""
    return _descend(tile, heading, goal, field, lanes)[0]


@lean_njit
def _descend(tile, heading, goal, field, lanes):
    """-> cost of the cheapest path from a state on a free tile to the goal, or as far as it leads; where it ends"""
    cost = 0
    for _ in range(len(field)):  # where the goal is cut off, a field may lead round and round
        if tile == goal:
            break
        down, tile, heading = downhill(tile, heading, field, lanes)
        if down == 0:
            break  # the tile is blocked, or cut off
        cost -= down
    return cost, tile


@lean_njit
def downhill(tile, heading, field, lanes):
    """-> change of the cost by the best action of a state, and the state after it; 0 where none leads nearer"""
    headings = lanes.headings
    now, down, next_tile, next_heading = field[tile * headings + heading], 0, tile, heading
    for direction in range(4):
        there = tile + ahead(direction, lanes.width)
        if (headings == 1 or direction == heading) and lanes.free[there]:
            change = difference(field[there * headings + heading], now)
            if change < down:
                down, next_tile = change, there
    if headings == 4:
        for quarter in (1, 3):
            turned = (heading + quarter) % 4
            change = difference(field[tile * 4 + turned], now)
            if change < down:
                down, next_tile, next_heading = change, tile, turned
    return down, next_tile, next_heading


def plan_fields(goals, slots, values, lanes):
    """Plan fields of goals (K,) into the rows `slots` (K,) of values (slots, states) uint8, on all threads."""
    with one_thread(len(goals) * values.shape[1] < SHARED_STATES):
        for some, places in in_parts(goals, slots, size=numba.get_num_threads()):
            _plan_fields(some, places, values, lanes, min(numba.get_num_threads(), len(some)))


@njit(parallel=True)
def _plan_fields(goals, slots, values, lanes, members):
    states = values.shape[1]
    for member in prange(members):
        cost = np.empty(states, np.int32)
        queue = Buckets(np.full(BUCKETS, -1, np.int32), np.empty(states, np.int32), np.empty(states, np.int32))
        for k in range(member, len(goals), members):
            search_back(goals[k], cost, queue, lanes)
            row = values[slots[k]]
            for s in range(states):
                row[s] = np.uint8(cost[s] & WRAP)


class Buckets(NamedTuple):
    """A ring of lists of states, one for each cost that may be open (Dial 1969)."""

    first: np.ndarray  # (BUCKETS,) int32 state, -1 none
    after: np.ndarray  # (states,) int32 the next one in a state's list
    before: np.ndarray  # (states,) int32


@lean_njit
def push(state, cost, queue):
    bucket = cost & (len(queue.first) - 1)
    head = queue.first[bucket]
    queue.after[state], queue.before[state] = head, -1
    if head >= 0:
        queue.before[head] = state
    queue.first[bucket] = state


@lean_njit
def pull(state, cost, queue):
    after, before = queue.after[state], queue.before[state]
    if after >= 0:
        queue.before[after] = before
    if before >= 0:
        queue.after[before] = after
    else:
        queue.first[cost & (len(queue.first) - 1)] = after


@lean_njit
def offer(state, new, cost, queue):
    """A path of cost `new` from a state to the goal. -> 1 where the state joins the queue, else 0"""
    old = cost[state]
    if new >= old:
        return 0
    if old != UNREACHED:
        pull(state, np.int64(old), queue)
    cost[state] = new
    push(state, new, queue)
    return 1 if old == UNREACHED else 0


@lean_njit
def search_back(goal, cost, queue, lanes):
    """Dijkstra's search from a goal backwards over all states. cost: (states,) int32 is written"""
    headings = lanes.headings
    cost[:] = UNREACHED
    waiting, now = headings, np.int64(0)
    for heading in range(headings):
        cost[goal * headings + heading] = 0
        push(goal * headings + heading, now, queue)
    while waiting:
        bucket = now & (len(queue.first) - 1)
        while queue.first[bucket] >= 0:
            state = np.int64(queue.first[bucket])
            pull(state, now, queue)
            waiting -= 1
            tile, heading = state // headings, state % headings
            for direction in range(heading, heading + 1 if headings == 4 else 4):
                behind = tile - ahead(direction, lanes.width)
                if lanes.free[behind]:
                    step = int(lanes.forward[behind, direction])
                    waiting += offer(behind * headings + heading, now + step, cost, queue)
            if headings == 4:
                for quarter in (1, 3):
                    waiting += offer(tile * 4 + (heading + quarter) % 4, now + lanes.turn, cost, queue)
        now += 1
