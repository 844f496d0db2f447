"""On the CPU: fields, and each agent's options sorted by what they cost if nobody is in the way."""

import mmap
from typing import Any

import numba
import numpy as np
from numba import prange

from ...device import lean_njit, njit
from ...parallel.threads import one_thread
from ..fields.cost_to_go import FAR, cost_to_go, difference, exits, gain, leaving, plan_fields
from ..fields.lanes import Lanes
from ..fields.repair import Change, repair_fields
from ..motion import Options
from .crew import Agents, Ranked, Rules

SHARED_AGENTS = 2048  # fewer are ranked, and moved, on one thread: others take long to wake up
PRIVATE: dict[str, int] = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS}
NO_OPTION = np.int32(2**30)  # a cost that no option has
FIRST_TIE = 4096  # what a unit of cost is worth against coming nearer early


class CpuFleet:
    """Plans fields and ranks the options of each agent by itself. Not for several threads at once."""

    def __init__(self, lanes: Lanes, options: Options, rules: Rules):
        self._lanes = lanes
        self.take_options(options, rules)
        self._values = np.zeros((0, lanes.free.size * lanes.headings), np.uint8)
        self._memory: Any = None  # of the values

    def take_options(self, options: Options, rules: Rules):
        """Take what agents can do now, and when they conflict."""
        self._options, self._rules = options, rules
        self._most_steps = int(np.diff(options.first_step).max())

    @property
    def at_once(self) -> int:
        """Fields that take together hardly longer than one."""
        return numba.get_num_threads()

    def grow(self, before: int, rows: int):
        """Make room for `rows` fields; the first `before` stay."""
        states, memory, self._values = self._values.shape[1], self._memory, np.zeros((0, 0), np.uint8)
        if memory is None:
            self._memory = mmap.mmap(-1, rows * states, **PRIVATE)
        else:
            try:  # the kernel moves pages; to copy gigabytes would take longer than a step
                memory.resize(rows * states)
            except (BufferError, SystemError):  # somebody holds a view, or it cannot
                self._memory = mmap.mmap(-1, rows * states, **PRIVATE)
                self._memory[: before * states] = memory[: before * states]
        self._values = np.frombuffer(self._memory, np.uint8).reshape(rows, states)

    def host_fields(self, slots: np.ndarray) -> np.ndarray:
        """-> (rows, states) uint8 fields, of which those in `slots`, where not negative, can be read here"""
        return self._values

    def plan(self, goals: np.ndarray, slots: np.ndarray):
        """Plan the fields of goals (K,) tiles into slots (K,)."""
        plan_fields(goals, slots, self._values, self._lanes)

    def repair(self, goals: np.ndarray, slots: np.ndarray, change: Change, after: Lanes):
        """Take the map after a change, and let the fields of goals (K,) in slots (K,) follow it."""
        if len(goals):
            repair_fields(goals, slots, self._values, self._lanes, change)
        self._lanes = after

    def rank(self, agents: Agents, ranked: Ranked):
        """Find every agent's options and cost to go."""
        with one_thread(len(agents.tile) < SHARED_AGENTS):
            members = numba.get_num_threads()
            _rank(agents, self._options, self._values, self._lanes, self._rules, ranked, self._most_steps, members)


@njit(parallel=True)
def _rank(agents, options, values, lanes, rules, ranked, most_steps, members):
    for member in prange(members):
        step_cost = np.empty((most_steps, 3), np.int32)
        for a in range(member, len(agents.tile), members):
            if agents.there[a] and not agents.still[a]:
                follow(a, agents, values, lanes)
                rank_options(a, agents, options, values, lanes, rules, step_cost, ranked)


@lean_njit
def follow(a, agents, values, lanes):
    """Update agents.left[a]: after a move by the difference of the field, for a new goal by going down its field."""
    slot, tile, heading, headings = agents.slot[a], agents.tile[a], agents.heading[a], lanes.headings
    if slot < 0:
        agents.left[a] = 0
    elif not lanes.free[tile]:
        cost = leaving(heading, exits(tile, agents.goal[a], slot, values, lanes), lanes)
        agents.left[a] = cost if cost < FAR else 0
    elif agents.fresh[a] or not lanes.free[agents.was_tile[a]]:
        agents.left[a] = cost_to_go(tile, heading, agents.goal[a], values[slot], lanes)
    else:
        was = agents.was_tile[a] * headings + agents.was_heading[a]
        agents.left[a] += difference(values[slot, tile * headings + heading], values[slot, was])
    agents.was_tile[a], agents.was_heading[a], agents.fresh[a] = tile, heading, 0


@lean_njit
def rank_options(a, agents, options, values, lanes, rules, step_cost, ranked):
    """Sort the options of agent a that enter free tiles alone by cost.

    values: fields (slots, states)
    step_cost: (S, 3) int32 scratch: cost to go minus that now, its sum over ticks, tick of arrival or -1
    """
    table, heading, tile = agents.table[a], agents.heading[a], agents.tile[a]
    first, last = options.first_step[table], options.first_step[table + 1]
    slot, goal, headings = agents.slot[a], agents.goal[a], lanes.headings
    out = exits(tile, goal, slot, values, lanes)
    for step in range(first, last):
        parent = options.parent[step]
        here = tile + options.ahead[step, heading]
        row = step - first
        if parent < 0:
            step_cost[row, 0], step_cost[row, 1], step_cost[row, 2] = 0, 0, -1
            continue
        up = parent - first
        there = tile + options.ahead[parent, heading]
        if step_cost[up, 0] == NO_OPTION or (here != there and not lanes.free[here]):
            step_cost[row, 0] = NO_OPTION
            continue
        ticks = options.tick[step] - options.tick[parent]
        arrived, cost = step_cost[up, 2], step_cost[up, 0]
        if slot < 0:
            cost = options.moves[step]
        elif arrived < 0:
            was, now = (heading + options.turn[parent]) % headings, (heading + options.turn[step]) % headings
            cost += gain(there, was, here, now, slot, values, lanes, out)
            if here == goal and not rules.holding:
                arrived = options.tick[step]
                cost -= (rules.horizon - arrived) * lanes.unit
        step_cost[row, 0], step_cost[row, 1], step_cost[row, 2] = cost, step_cost[up, 1] + ticks * cost, arrived
    count = np.int64(0)
    for option in range(options.first_option[table], options.first_option[table + 1]):
        row = options.leaf[option] - first
        if step_cost[row, 0] == NO_OPTION:
            continue
        cost = step_cost[row, 0] * FIRST_TIE + step_cost[row, 1]
        count = _insert(ranked.option[a], ranked.cost[a], count, option, cost, options.track)
    ranked.many[a] = count


@lean_njit
def _insert(option_of, cost_of, count, option, cost, track):
    """Put an option where it belongs; of each track only the cheapest stays. -> how many options there are"""
    at = 0
    while at < count and track[option_of[at]] != track[option]:
        at += 1
    if at == count or cost_of[at] > cost:
        sort_in(at, option, cost, option_of, cost_of)
    return max(count, at + 1)


@lean_njit
def sort_in(place, option, cost, option_of, cost_of):
    """Insert an option into a sorted list, at `place` or before it."""
    while place > 0 and cost_of[place - 1] > cost:
        option_of[place], cost_of[place] = option_of[place - 1], cost_of[place - 1]
        place -= 1
    option_of[place], cost_of[place] = option, cost
