"""Cost-to-go fields of fleets: for each goal, how far every state (tile, or tile and heading) is from it.

Costs are kept modulo 256, in a byte: agents compare only states that one action joins, and `Guidance` keeps these less
than 128 apart, so differences are exact.
"""

from collections import OrderedDict
from typing import NamedTuple

import numba
import numpy as np
from numba import prange

from ...device import lean_njit, njit
from ...errors import SettingsError
from ...parallel.team import NEVER, clock_ns
from ...parallel.threads import in_parts, one_thread
from ..clock import fits
from .lanes import ahead

WRAP = 255  # mask of a cost in a field
HALF = 128  # differences of costs are less
BUCKETS = 128  # more than an action costs
FIELD_NS = 60  # to plan a state of a field
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


class FieldStore:
    """Which goals have fields: those in use, and as many of those used last as the memory holds.

    engine: a `CpuFleet` or `CudaFleet`, which holds the fields; field_bytes: of one field; limit: bytes of all
    most: fields that the memory holds
    """

    def __init__(self, engine, field_bytes: int, limit: int):
        self._engine, self._field_bytes, self._limit = engine, field_bytes, limit
        self.most, self._rows = limit // field_bytes, 0
        self._batch_ns = float(FIELD_NS * field_bytes)  # to plan as many fields as the engine plans at once; a guess
        self._free: list[int] = []
        self._slot_of: OrderedDict[int, int] = OrderedDict()  # goal tile -> slot; the one used last comes last

    @property
    def memory_bytes(self) -> int:
        """Memory of the fields that there is room for."""
        return self._rows * self._field_bytes

    def known(self, goals: np.ndarray) -> np.ndarray:
        """(K,) tiles -> (K,) bool, are their fields planned?"""
        return np.fromiter((goal in self._slot_of for goal in goals.tolist()), bool, len(goals))

    def slots(
        self, goals: np.ndarray, deadline: int = NEVER, least: int = 0, urgency: np.ndarray | None = None
    ) -> np.ndarray:
        """Plan the fields that are missing, as many as the time allows, but at least so many.

        goals: (N,) tiles, -1 none; urgency: (N,) of agents, those of the highest come first
        -> (N,) int32 slots of their fields, -1 where there is none

        Raises SettingsError where they do not fit into the memory; nothing has changed then.
        """
        wanted, slot = np.unique(goals[goals >= 0]), np.full(len(goals), -1, np.int32)
        if len(wanted) > self.most:
            raise SettingsError(
                f"the fields of {len(wanted)} goals take {len(wanted) * self._field_bytes} bytes; memory_limit_bytes "
                f"allows {self._limit}, which is {self.most} goals"
            )
        known = self._slot_of
        for goal in wanted.tolist():
            if goal in known:
                known.move_to_end(goal)
        new = np.array([goal for goal in wanted.tolist() if goal not in known], np.int64)
        if len(new):
            if urgency is not None:
                highest = np.full(len(wanted), urgency.min())
                np.maximum.at(highest, np.searchsorted(wanted, goals[goals >= 0]), urgency[goals >= 0])
                new = new[np.argsort(-highest[np.searchsorted(wanted, new)], kind="stable")]
            self._plan(new, deadline, least)
        if len(wanted):
            table = np.array([known.get(goal, -1) for goal in wanted.tolist()], np.int32)
            slot[goals >= 0] = table[np.searchsorted(wanted, goals[goals >= 0])]
        return slot

    def _plan(self, new, deadline, least):
        """Plan fields of goals (K,), in this order, as many as the time allows, but at least so many."""
        self._make_rows(len(new))
        together = len(new) if deadline == NEVER else self._engine.at_once
        done = 0
        while done < len(new) and (done < least or fits(deadline, self._batch_ns)):
            some, began = new[done : done + together], clock_ns()
            places = self._places(len(some))
            self._engine.plan(some, places)
            self._slot_of.update(zip(some.tolist(), places.tolist()))
            done += len(some)
            if deadline != NEVER:
                self._batch_ns = clock_ns() - began

    def _make_rows(self, count):
        """Make room for so many fields more, at once: room that grows is copied."""
        used = len(self._slot_of)
        if used + count > self._rows and self._rows < self.most:
            rows = min(max(used + count, 2 * self._rows), self.most)
            self._engine.grow(self._rows, rows)
            self._free += range(self._rows, rows)
            self._rows = rows

    def _places(self, count):
        """Slots for new fields: free ones, then those whose goals were used longest ago."""
        places, self._free = self._free[:count], self._free[count:]
        return np.array(places + [self._slot_of.popitem(last=False)[1] for _ in range(count - len(places))])

    def repair(self, change, after):
        """Let the engine and its fields follow a `repair.Change` of the map. after: Lanes"""
        for tile in list(self._slot_of):
            if not (change.before[tile] and change.after[tile]):  # a field to a blocked goal is planned anew each time
                self._free.append(self._slot_of.pop(tile))
        goals, slots = (np.array([*numbers], np.int64) for numbers in (self._slot_of, self._slot_of.values()))
        self._engine.repair(goals, slots, change, after)


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
def _push(state, cost, queue):
    bucket = cost & (BUCKETS - 1)
    head = queue.first[bucket]
    queue.after[state], queue.before[state] = head, -1
    if head >= 0:
        queue.before[head] = state
    queue.first[bucket] = state


@lean_njit
def _pull(state, cost, queue):
    after, before = queue.after[state], queue.before[state]
    if after >= 0:
        queue.before[after] = before
    if before >= 0:
        queue.after[before] = after
    else:
        queue.first[cost & (BUCKETS - 1)] = after


@lean_njit
def _offer(state, new, cost, queue):
    """A path of cost `new` from a state to the goal. -> 1 where the state joins the queue, else 0"""
    old = cost[state]
    if new >= old:
        return 0
    if old != UNREACHED:
        _pull(state, np.int64(old), queue)
    cost[state] = new
    _push(state, new, queue)
    return 1 if old == UNREACHED else 0


@lean_njit
def search_back(goal, cost, queue, lanes):
    """Dijkstra's search from a goal backwards over all states. cost: (states,) int32 is written"""
    headings = lanes.headings
    cost[:] = UNREACHED
    waiting, now = headings, np.int64(0)
    for heading in range(headings):
        cost[goal * headings + heading] = 0
        _push(goal * headings + heading, now, queue)
    while waiting:
        bucket = now & (BUCKETS - 1)
        while queue.first[bucket] >= 0:
            state = np.int64(queue.first[bucket])
            _pull(state, now, queue)
            waiting -= 1
            tile, heading = state // headings, state % headings
            for direction in range(heading, heading + 1 if headings == 4 else 4):
                behind = tile - ahead(direction, lanes.width)
                if lanes.free[behind]:
                    step = int(lanes.forward[behind, direction])
                    waiting += _offer(behind * headings + heading, now + step, cost, queue)
            if headings == 4:
                for quarter in (1, 3):
                    waiting += _offer(tile * 4 + (heading + quarter) % 4, now + lanes.turn, cost, queue)
        now += 1
