"""Enhanced PIBT: every agent gets an option, and no two options conflict (Yukhnevich and Andreychuk, arXiv 2511.09193).

    rank      each agent's options by what they cost if nobody is in the way
    inherit   each agent reserves what is left of its previous option: its tail, which ends in waiting, so that tails
              never conflict
    EPIBT(a)  for each of a's options, the best one first:
                  nobody has reserved its tiles: a takes it
                  one other agent b has, which may be pushed: b gives its option up and a takes this one; if EPIBT(b)
                      fails, both are as before
    advance   carry out the first tick of all options

A pass calls EPIBT for one agent after the other, by priority. As the options never conflict, it may end at any time.
Departures: passes in which agents push others of higher priority too, as long as the weighted costs of all do not rise;
and the map is cut into squares, whose searches run side by side.
"""

from typing import NamedTuple

import numpy as np
from numba import prange

from ...device import lean_njit, njit
from ...parallel.memory import item, set_item
from ..fields.cost_to_go import FAR, cost_to_go, difference, exits, gain, leaving
from ..fields.next_hops import NOBODY
from .state import Agents, FleetState, Ranked

MOST_VISITS = 10  # of an agent in a pass
SEVERAL = -2  # in place of an agent: more than one
NO_OPTION = np.int32(2**30)  # a cost that no option has
FIRST_TIE = 4096  # what a unit of cost is worth against coming nearer early


# ---------------------------------------------------------------------------------------------------- rank


@njit(parallel=True)
def rank(agents: Agents, options, values, lanes, rules, ranked: Ranked, most_steps, members):
    """Find every agent's cost to go, and rank its options. most_steps: of a table; members: threads"""
    for member in prange(members):
        step_cost = np.empty((most_steps, 3), np.int32)
        for a in range(member, len(agents.tile), members):
            if agents.there[a] and not agents.still[a]:
                update_cost_to_go(a, agents, values, lanes)
                rank_options(a, agents, options, values, lanes, rules, step_cost, ranked)


@lean_njit
def update_cost_to_go(a, agents, values, lanes):
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
    slot, goal = agents.slot[a], agents.goal[a]
    around = lanes.headings - 1  # 3 or 0: divisions would take longer than all the rest
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
            was, now = (heading + options.turn[parent]) & around, (heading + options.turn[step]) & around
            cost += gain(there, was, here, now, slot, values, lanes, out)
            if here == goal and not rules.holding:
                arrived = options.tick[step]
                cost -= (rules.horizon - arrived) * lanes.unit
        step_cost[row, 0], step_cost[row, 1], step_cost[row, 2] = cost, step_cost[up, 1] + ticks * cost, arrived
    count, option, end = np.int64(0), options.first_option[table], options.first_option[table + 1]
    while option < end:  # those of a track stand together; the cheapest stays
        track, best, least = options.track[option], np.int32(-1), np.int64(0)
        while option < end and options.track[option] == track:
            row = options.leaf[option] - first
            if step_cost[row, 0] != NO_OPTION:
                cost = np.int64(step_cost[row, 0]) * FIRST_TIE + step_cost[row, 1]
                if best < 0 or cost < least:
                    best, least = np.int32(option), cost
            option += 1
        if best >= 0:
            sort_in(count, best, least, ranked.option[a], ranked.cost[a])
            count += 1
    ranked.length[a] = count


@lean_njit
def sort_in(place, option, cost, option_of, cost_of):
    """Insert an option into a sorted list, at `place` or before it."""
    while place > 0 and cost_of[place - 1] > cost:
        option_of[place], cost_of[place] = option_of[place - 1], cost_of[place - 1]
        place -= 1
    option_of[place], cost_of[place] = option, cost


# ----------------------------------------------------------------------------------------- reserve, and who has


@lean_njit
def reserve(a, option, who, state):
    """Enter `who` (a itself, or NOBODY to release them) at the tiles of an option of agent a."""
    agents, options, reserved = state.agents, state.options, state.plans.reserved
    track, heading, tile = options.track[option], agents.heading[a], int(agents.tile[a])
    if state.rules.plain:
        ticks = reserved.shape[1]
        row = (track * options.here.shape[1] + heading) * ticks
        offsets, table = options.here.reshape(options.here.size), reserved.reshape(reserved.size)
        for tick in range(1, ticks):
            set_item(table, (tile + item(offsets, row + tick)) * ticks + tick, who)
        return
    rest = options.tick[options.first_step[agents.table[a]]]
    for tick in range(1, reserved.shape[1]):
        reserved[tile + options.here[track, heading, tick], tick] = who
        reserved[tile + options.also[track, heading, tick], tick] = who
        if tick < rest or agents.still[a]:
            reserved[agents.origin[a], tick] = who


@lean_njit
def _take(a, option, cost, state):
    """Give agent a an option whose tiles nobody has reserved."""
    state.plans.option[a], state.plans.cost[a] = option, cost
    reserve(np.int64(a), option, np.int64(a), state)


@lean_njit
def release(a, state):
    reserve(np.int64(a), state.plans.option[a], np.int64(NOBODY), state)


@lean_njit
def _near(tile, tick, a, found, reserved, clearance, layer):
    """Join whoever but a is too near to a tile at a tick with those found before -> an agent, NOBODY or SEVERAL"""
    for i in range(clearance.shape[1]):
        other = reserved[tile + clearance[layer, i], tick]
        if other != NOBODY and other != a and other != found:
            if found != NOBODY:
                return SEVERAL
            found = other
    return found


@lean_njit
def _swaps(a, tile, before, tick, reserved, clearance, layer):
    """-> an agent that leaves `tile` for `before`, or NOBODY"""
    for i in range(clearance.shape[1]):
        other = reserved[tile + clearance[layer, i], tick - 1]
        if other != NOBODY and other != a:
            for j in range(clearance.shape[1]):
                if reserved[before + clearance[layer, j], tick] == other:
                    return other
    return NOBODY


@lean_njit
def _conflicting(a, option, state):
    """Who has reserved tiles that agent a, which has none now, needs for an option? -> an agent, NOBODY or SEVERAL"""
    agents, options, reserved, rules = state.agents, state.options, state.plans.reserved, state.rules
    if rules.plain:
        return _conflicting_plain(a, option, agents, options, reserved)
    track, heading, tile, clearance = options.track[option], agents.heading[a], agents.tile[a], rules.clearance
    layer = tile // rules.layer
    rest, found = options.tick[options.first_step[agents.table[a]]], NOBODY
    before, before_also = tile, tile
    for tick in range(1, reserved.shape[1]):
        here, also = tile + options.here[track, heading, tick], tile + options.also[track, heading, tick]
        found = _near(here, tick, a, found, reserved, clearance, layer)
        if also != here:
            found = _near(also, tick, a, found, reserved, clearance, layer)
        if tick < rest or (tick == rest and not rules.following):
            found = _near(agents.origin[a], tick, a, found, reserved, clearance, layer)
        if here != before and rules.following:
            other = _swaps(a, here, before, tick, reserved, clearance, layer)
            if other != NOBODY and other != found:
                found = other if found == NOBODY else SEVERAL
        elif here != before:
            found = _near(here, tick - 1, a, found, reserved, clearance, layer)
            found = _near(before, tick, a, found, reserved, clearance, layer)
            if tick == 1 and reserved[here, 0] != NOBODY and reserved[here, 0] != a:
                return SEVERAL  # somebody is there now, whatever it does
        if not rules.following and before_also != here and before_also != before:
            found = _near(before_also, tick, a, found, reserved, clearance, layer)
        if found == SEVERAL:
            return SEVERAL
        before, before_also = here, also
    return found


@lean_njit
def _conflicting_plain(a, option, agents, options, reserved):
    """`_conflicting` for rules that are `plain`."""
    tile, ticks = int(agents.tile[a]), reserved.shape[1]
    row = (options.track[option] * options.here.shape[1] + agents.heading[a]) * ticks
    offsets, table = options.here.reshape(options.here.size), reserved.reshape(reserved.size)
    found, before = NOBODY, tile
    for tick in range(1, ticks):
        here = tile + item(offsets, row + tick)
        at = here * ticks + tick
        other = item(table, at)
        if other != NOBODY and other != found:
            if found != NOBODY:
                return SEVERAL
            found = other
        if here != before:
            other = item(table, at - 1)
            if other != NOBODY and other != found and item(table, before * ticks + tick) == other:
                if found != NOBODY:
                    return SEVERAL
                found = other
        before = here
    return found


# ---------------------------------------------------------------------------------------------------- EPIBT(a)


class Pass(NamedTuple):
    """What all searches of a pass share. The map is cut into squares of four colours. Searches push agents only so far
    beyond their square that those of one colour never meet, so the answer does not depend on the number of threads."""

    number: int
    improving: bool  # push agents of higher priority too, as long as that does not raise the weighted costs of all
    order: np.ndarray  # (N,) int32 agents, square by square
    first: np.ndarray  # (squares + 1,) int32 where each square's agents begin in `order`
    side: int  # of a square
    margin: int  # how far outside its square a search may push agents
    rows: int  # how many squares there are
    cols: int
    row: int  # where the first one begins, not positive
    col: int
    width: int  # of the map


class Square(NamedTuple):
    """Where a search is."""

    number: int  # its stack
    row: int  # where the square begins
    col: int
    common: Pass


@lean_njit
def epibt(agent, square, state):
    """Find a better option for an agent, by pushing others where that is needed. -> found? If not, all is as before"""
    ranked, stacks, k = state.ranked, state.stacks, square.number
    top = np.int64(0)
    _look_for_option(np.int64(agent), top, square, state)
    while True:
        a, place = stacks.agent[k, top], stacks.place[k, top]
        fails = place == ranked.length[a]
        if square.common.improving and not fails:  # options to come cost more, and pushes seldom make up for that
            fails = stacks.rise[k, top] + stacks.weight[a] * ranked.cost[a, place] > 0
        if fails:
            if top > 0:
                release(stacks.agent[k, top - 1], state)
            _take(a, stacks.before[k, top], stacks.before_cost[k, top], state)
            stacks.open[a] = 0
            if top == 0:
                return False
            top -= 1
            continue
        stacks.place[k, top] += 1
        option, cost = ranked.option[a, place], ranked.cost[a, place]
        other = _conflicting(a, option, state)
        if other == NOBODY:
            _take(a, option, cost, state)
            for level in range(top + 1):
                stacks.open[stacks.agent[k, level]] = 0
            return True
        if other != SEVERAL and top + 1 < stacks.agent.shape[1] and _may_be_pushed(other, square, state):
            rise = stacks.rise[k, top] + stacks.weight[a] * cost
            top += 1
            _look_for_option(other, top, square, state)
            stacks.rise[k, top] += rise
            _take(a, option, cost, state)


@lean_njit
def _look_for_option(a, top, square, state):
    """Agent a gives its option up; it is put on the stack."""
    plans, stacks, k = state.plans, state.stacks, square.number
    stacks.agent[k, top], stacks.place[k, top] = a, 0
    stacks.before[k, top], stacks.before_cost[k, top] = plans.option[a], plans.cost[a]
    stacks.rise[k, top] = -stacks.weight[a] * plans.cost[a]
    release(a, state)
    if stacks.seen[a] != square.common.number:
        stacks.seen[a], stacks.visits[a] = square.common.number, 0
    stacks.visits[a] += 1
    stacks.open[a] = 1


@lean_njit
def _may_be_pushed(a, square, state):
    stacks, common = state.stacks, square.common
    root = stacks.agent[square.number, 0]
    if state.agents.still[a] or stacks.open[a] or not (common.improving or stacks.rank[a] > stacks.rank[root]):
        return False
    if stacks.seen[a] == common.number and stacks.visits[a] >= MOST_VISITS:
        return False
    if common.rows * common.cols == 1:
        return True
    row, col = divmod(state.agents.tile[a], common.width)
    low, high = -common.margin, common.side + common.margin
    return low <= row - square.row < high and low <= col - square.col < high


@njit
def sort_by_square(agents, tile, common):
    """Write agents (N,) int32 into common.order, square by square, those of a square in the order given, and
    common.first, which is all 0."""
    first, square = common.first, np.empty(len(agents), np.int32)
    for i in range(len(agents)):
        row, col = divmod(tile[agents[i]], common.width)
        square[i] = (row - common.row) // common.side * common.cols + (col - common.col) // common.side
        first[square[i] + 1] += 1
    for k in range(1, len(first)):
        first[k] += first[k - 1]
    place = first[:-1].copy()
    for i in range(len(agents)):
        common.order[place[square[i]]] = agents[i]
        place[square[i]] += 1


@njit(parallel=True)
def pass_over(common, colour, agents, options, rules, ranked, plans, stacks):
    """Call EPIBT for the agents in squares of one colour, 0 .. 3, one after the other in each square."""
    down, across = (common.rows - colour // 2 + 1) // 2, (common.cols - colour % 2 + 1) // 2
    for i in prange(down * across):
        state = FleetState(agents, options, rules, ranked, plans, stacks)
        r, c = 2 * (i // across) + colour // 2, 2 * (i % across) + colour % 2
        k = r * common.cols + c
        square = Square(k, common.row + r * common.side, common.col + c * common.side, common)
        for j in range(common.first[k], common.first[k + 1]):
            a = common.order[j]
            if agents.there[a] and not agents.still[a] and stacks.seen[a] != common.number:
                epibt(a, square, state)
