"""One step of a fleet: every agent gets an option, and no two options conflict.

Enhanced PIBT (Yukhnevich and Andreychuk, arXiv 2511.09193): all agents hold the tiles of the option that they have, at
first what is left of the one before. That, its heir, ends in waiting, so all heirs together are free of conflicts. One
agent after the other, by priority, takes the best of its options that nobody holds tiles of, or one agent alone: that
agent is pushed and has to find another option in turn, and so on; where it cannot, all goes back. So the options are
free of conflicts at any time, and a search may end whenever it likes.
"""

from typing import NamedTuple

import numpy as np
from numba import prange

from ...device import lean_njit, njit
from ...parallel.memory import item, set_item
from .fields import ahead, difference

NOBODY, SEVERAL = -1, -2
NO_OPTION = np.int32(2**30)  # a rank that nobody has
FIRST_TIE = 4096  # what a unit of cost is worth against coming nearer early
DONE, FAILED, REFUSED = range(3)


class Agents(NamedTuple):
    """Agents, for compiled code; arrays (N,).

    tile: int32 where it stands, or what it moves to; heading: int32; origin: int32 the tile that it still leaves, or
        `tile`
    table: int32 of its options; goal: int32 tile or -1; slot: int32 its goal's field or -1
    there: int32, does it take part? still: int32, does it stand and obey nobody?
    left: int32 cost to go to its goal when it was at `was_tile`, heading `was_heading`; fresh: int32, is that unknown?
    """

    tile: np.ndarray
    heading: np.ndarray
    origin: np.ndarray
    table: np.ndarray
    goal: np.ndarray
    slot: np.ndarray
    there: np.ndarray
    still: np.ndarray
    left: np.ndarray
    was_tile: np.ndarray
    was_heading: np.ndarray
    fresh: np.ndarray


class Ranked(NamedTuple):
    """The options of every agent, the best one first.

    many: (N,) int32; option, cost: (N, most) int32; waiting costs 0
    """

    many: np.ndarray
    option: np.ndarray
    cost: np.ndarray


class Rules(NamedTuple):
    """When agents conflict.

    near: (K,) int32 how far tiles are from one that must be free of others while an agent is there; 0 is one of them
    following: may an agent move to a tile that another one leaves meanwhile?
    horizon: ticks that are looked ahead
    holding: do agents stay at their goals? Else they get new ones there
    plain: one tile is near, following is allowed, and actions take a tick
    """

    near: np.ndarray
    following: bool
    horizon: int
    holding: bool
    plain: bool


class Plans(NamedTuple):
    """Who holds what.

    option, cost: (N,) int32; held: (tiles, horizon + 1) int32 agents or NOBODY, by ticks from now
    """

    option: np.ndarray
    cost: np.ndarray
    held: np.ndarray


# ---------------------------------------------------------------------------------------------------- options


@lean_njit
def follow(a, agents, values, lanes):
    """Keep agents.left[a] true: after a move by the difference of the field, for a new goal by going down its field."""
    slot, tile, heading, headings = agents.slot[a], agents.tile[a], agents.heading[a], lanes.headings
    if slot < 0:
        agents.left[a] = 0
    elif agents.fresh[a]:
        agents.left[a] = cost_to_go(tile, heading, agents.goal[a], values[slot], lanes)
    else:
        was = agents.was_tile[a] * headings + agents.was_heading[a]
        agents.left[a] += difference(values[slot, tile * headings + heading], values[slot, was])
    agents.was_tile[a], agents.was_heading[a], agents.fresh[a] = tile, heading, 0


@lean_njit
def cost_to_go(tile, heading, goal, field, lanes):
    """What the cheapest way from a state to the goal costs; as far as it goes where it is cut off."""
    cost, headings = 0, lanes.headings
    while tile != goal:
        now, down, next_tile, next_heading = field[tile * headings + heading], 0, tile, heading
        for direction in range(4):
            there = tile + ahead(direction, lanes.width)
            if (headings == 1 or direction == heading) and lanes.free[there]:
                change = difference(field[there * headings + heading], now)
                if change < down and -change == lanes.forward[tile, direction]:
                    down, next_tile = change, there
        if headings == 4:
            for quarter in (1, 3):
                turned = (heading + quarter) % 4
                change = difference(field[tile * 4 + turned], now)
                if change < down and -change == lanes.turn:
                    down, next_tile, next_heading = change, tile, turned
        if down == 0:
            break  # the tile is blocked, or cut off
        cost -= down
        tile, heading = next_tile, next_heading
    return cost


@lean_njit
def rank_options(a, agents, options, values, lanes, rules, step_cost, ranked):
    """Find the options of agent a on the map and sort them by cost.

    values: fields (slots, states); step_cost: (S, 3) int32 scratch: cost to go against now, the sum over ticks, tick of
        arrival or -1
    """
    table, heading, tile = agents.table[a], agents.heading[a], agents.tile[a]
    first, last = options.first_step[table], options.first_step[table + 1]
    slot, goal, headings = agents.slot[a], agents.goal[a], lanes.headings
    for step in range(first, last):
        parent = options.parent[step]
        here = tile + options.ahead[step, heading]
        row = step - first
        if parent < 0:
            step_cost[row, 0], step_cost[row, 1], step_cost[row, 2] = 0, 0, -1
            continue
        up = parent - first
        if step_cost[up, 0] == NO_OPTION or not lanes.free[here]:
            step_cost[row, 0] = NO_OPTION
            continue
        ticks = options.tick[step] - options.tick[parent]
        arrived, cost = step_cost[up, 2], step_cost[up, 0]
        if slot < 0:
            cost = options.moves[step]
        elif arrived < 0:
            there = tile + options.ahead[parent, heading]
            was = values[slot, there * headings + (heading + options.turn[parent]) % headings]
            cost += difference(values[slot, here * headings + (heading + options.turn[step]) % headings], was)
            if here == goal and not rules.holding:
                arrived = options.tick[step]
                cost -= (rules.horizon - arrived) * lanes.unit
        step_cost[row, 0], step_cost[row, 1], step_cost[row, 2] = cost, step_cost[up, 1] + ticks * cost, arrived
    count = 0
    for option in range(options.first_option[table], options.first_option[table + 1]):
        row = options.leaf[option] - first
        if step_cost[row, 0] == NO_OPTION:
            continue
        cost = step_cost[row, 0] * FIRST_TIE + step_cost[row, 1]
        count = _insert(ranked.option[a], ranked.cost[a], count, option, cost, options.track)
    ranked.many[a] = count


@lean_njit
def _insert(option_of, cost_of, count, option, cost, track):
    """Put an option where it belongs, of every track only the cheapest. -> how many there are"""
    at = -1
    for i in range(count):
        if track[option_of[i]] == track[option]:
            if cost_of[i] <= cost:
                return count
            at = i
            break
    if at < 0:
        at, count = count, count + 1
    while at > 0 and cost_of[at - 1] > cost:
        option_of[at], cost_of[at] = option_of[at - 1], cost_of[at - 1]
        at -= 1
    option_of[at], cost_of[at] = option, cost
    return count


@njit(parallel=True)
def rank_all(agents, options, values, lanes, rules, ranked, most_steps, members):
    for member in prange(members):
        step_cost = np.empty((most_steps, 3), np.int32)
        for a in range(member, len(agents.tile), members):
            if agents.there[a] and not agents.still[a]:
                follow(a, agents, values, lanes)
                rank_options(a, agents, options, values, lanes, rules, step_cost, ranked)


# ---------------------------------------------------------------------------------------------------- holding


@lean_njit
def hold(a, option, agents, options, held, plain, who):
    """Let agent a hold the tiles of an option, as `who`: itself, or NOBODY to give them back."""
    track, heading, tile = options.track[option], agents.heading[a], int(agents.tile[a])
    if plain:
        ticks = held.shape[1]
        row = (track * options.here.shape[1] + heading) * ticks
        ahead_of, holders = options.here.reshape(options.here.size), held.reshape(held.size)
        for tick in range(1, ticks):
            set_item(holders, (tile + item(ahead_of, row + tick)) * ticks + tick, who)
        return
    rest = options.tick[options.first_step[agents.table[a]]]
    for tick in range(1, held.shape[1]):
        held[tile + options.here[track, heading, tick], tick] = who
        held[tile + options.also[track, heading, tick], tick] = who
        if tick < rest:
            held[agents.origin[a], tick] = who


@lean_njit
def _met(tile, tick, a, found, held, near):
    """Who but a is near a tile at a tick, together with those found already? -> an agent, NOBODY or SEVERAL"""
    for i in range(len(near)):
        other = held[tile + near[i], tick]
        if other != NOBODY and other != a and other != found:
            if found != NOBODY:
                return SEVERAL
            found = other
    return found


@lean_njit
def _swaps(a, tile, before, tick, held, near):
    """Does somebody who leaves the tile come to the one before? -> that agent or NOBODY"""
    for i in range(len(near)):
        other = held[tile + near[i], tick - 1]
        if other != NOBODY and other != a:
            for j in range(len(near)):
                if held[before + near[j], tick] == other:
                    return other
    return NOBODY


@lean_njit
def in_the_way(a, option, agents, options, held, rules):
    """Who holds what agent a, which holds nothing, would hold with an option? -> an agent, NOBODY or SEVERAL"""
    if rules.plain:
        return _in_the_plain_way(a, option, agents, options, held)
    track, heading, tile = options.track[option], agents.heading[a], agents.tile[a]
    rest = options.tick[options.first_step[agents.table[a]]]
    found = NOBODY
    before, before_also = tile, tile
    for tick in range(1, held.shape[1]):
        here, also = tile + options.here[track, heading, tick], tile + options.also[track, heading, tick]
        found = _met(here, tick, a, found, held, rules.near)
        if found != SEVERAL and also != here:
            found = _met(also, tick, a, found, held, rules.near)
        if found != SEVERAL and tick < rest:
            found = _met(agents.origin[a], tick, a, found, held, rules.near)
        if found != SEVERAL and here != before:
            if rules.following:
                other = _swaps(a, here, before, tick, held, rules.near)
                if other != NOBODY and other != found:
                    found = other if found == NOBODY else SEVERAL
            else:
                found = _met(here, tick - 1, a, found, held, rules.near)
                if tick == 1 and found != NOBODY and held[here, 0] == found:
                    return SEVERAL  # it is there now, whatever it does
        if found != SEVERAL and not rules.following:
            if before != here:
                found = _met(before, tick, a, found, held, rules.near)
            if found != SEVERAL and before_also != here and before_also != before:
                found = _met(before_also, tick, a, found, held, rules.near)
            if found != SEVERAL and tick <= rest:
                found = _met(agents.origin[a], tick, a, found, held, rules.near)
        if found == SEVERAL:
            return SEVERAL
        before, before_also = here, also
    return found


@lean_njit
def _in_the_plain_way(a, option, agents, options, held):
    """The same for rules that are `plain`."""
    tile, ticks = int(agents.tile[a]), held.shape[1]
    row = (options.track[option] * options.here.shape[1] + agents.heading[a]) * ticks
    ahead_of, holders = options.here.reshape(options.here.size), held.reshape(held.size)
    found, before = NOBODY, tile
    for tick in range(1, ticks):
        here = tile + item(ahead_of, row + tick)
        at = here * ticks + tick
        other = item(holders, at)
        if other != NOBODY and other != found:
            if found != NOBODY:
                return SEVERAL
            found = other
        if here != before:
            other = item(holders, at - 1)
            if other != NOBODY and other != found and item(holders, before * ticks + tick) == other:
                if found != NOBODY:
                    return SEVERAL
                found = other
        before = here
    return found


# ---------------------------------------------------------------------------------------------------- search


class Search(NamedTuple):
    """Who is pushed by whom, and how often.

    agent, place, before, before_cost: (depth,) int32 stack of agents that look for an option: which of their options
        they are at, and the option that they had
    open: (N,) uint8, is it on the stack? visits: (N,) int32 how often it was pushed in the pass `seen`, (N,) int32
    rank: (N,) int32 place in the order of priorities; weight: (N,) int64 of its costs against others'
    most_visits: of an agent in a pass
    """

    agent: np.ndarray
    place: np.ndarray
    before: np.ndarray
    before_cost: np.ndarray
    open: np.ndarray
    visits: np.ndarray
    seen: np.ndarray
    rank: np.ndarray
    weight: np.ndarray
    most_visits: int


@lean_njit
def take(a, option, cost, agents, options, rules, plans):
    """Give agent a an option whose tiles nobody holds."""
    plans.option[a], plans.cost[a] = option, cost
    hold(a, option, agents, options, plans.held, rules.plain, a)


@lean_njit
def drop(a, agents, options, rules, plans):
    hold(a, plans.option[a], agents, options, plans.held, rules.plain, NOBODY)


@lean_njit
def _push(depth, a, number, agents, options, rules, plans, search):
    """Put an agent on the stack: it holds nothing until it has found an option."""
    search.agent[depth], search.place[depth] = a, 0
    search.before[depth], search.before_cost[depth] = plans.option[a], plans.cost[a]
    drop(a, agents, options, rules, plans)
    if search.seen[a] != number:
        search.seen[a], search.visits[a] = number, 0
    search.visits[a] += 1
    search.open[a] = 1


@lean_njit
def _may_be_pushed(a, root, number, improving, agents, search):
    """May the search that began with agent `root` in pass `number` push agent a?"""
    if agents.still[a] or search.open[a]:
        return False
    if search.seen[a] == number and search.visits[a] >= search.most_visits:
        return False
    return improving or search.rank[a] > search.rank[root]


@lean_njit
def improve(root, number, improving, agents, options, rules, ranked, plans, search):
    """Give an agent the best option that can be had by pushing others, or leave all as it is.

    number: of the pass; improving: take it only where the costs of all, weighted, do not rise; agents of higher
    priority may be pushed then
    -> has anything changed?
    """
    depth, loss, outcome = 0, -search.weight[root] * plans.cost[root], FAILED
    _push(0, root, number, agents, options, rules, plans, search)
    while outcome == FAILED:
        a, deeper = search.agent[depth], False
        while outcome == FAILED and not deeper and search.place[depth] < ranked.many[a]:
            place = search.place[depth]
            search.place[depth] += 1
            option, cost = ranked.option[a, place], ranked.cost[a, place]
            other = in_the_way(a, option, agents, options, plans.held, rules)
            if other == NOBODY:
                outcome = DONE if not improving or loss + search.weight[a] * cost <= 0 else REFUSED
                if outcome == DONE:
                    take(a, option, cost, agents, options, rules, plans)
            elif other != SEVERAL and depth + 1 < len(search.agent):
                if _may_be_pushed(other, root, number, improving, agents, search):
                    loss += search.weight[a] * cost - search.weight[other] * plans.cost[other]
                    _push(depth + 1, other, number, agents, options, rules, plans, search)
                    take(a, option, cost, agents, options, rules, plans)
                    deeper = True
        if deeper:
            depth += 1
        elif outcome == FAILED:  # it found nothing: whoever pushed it tries the next option
            search.open[a] = 0
            if depth == 0:
                take(a, search.before[0], search.before_cost[0], agents, options, rules, plans)
                return False
            depth -= 1
            pusher = search.agent[depth]
            drop(pusher, agents, options, rules, plans)
            loss += search.weight[a] * search.before_cost[depth + 1] - search.weight[pusher] * plans.cost[pusher]
            take(a, search.before[depth + 1], search.before_cost[depth + 1], agents, options, rules, plans)
    if outcome == REFUSED:
        for k in range(depth):
            drop(search.agent[k], agents, options, rules, plans)
    for k in range(depth + 1):
        search.open[search.agent[k]] = 0
        if outcome == REFUSED:
            take(search.agent[k], search.before[k], search.before_cost[k], agents, options, rules, plans)
    return outcome == DONE


@njit
def first_pass(order, number, agents, options, rules, ranked, plans, search):
    """Every agent, by priority, gets the best option that it can have. order: (N,) int32"""
    for i in range(len(order)):
        a = order[i]
        if agents.there[a] and not agents.still[a] and search.seen[a] != number:
            improve(a, number, False, agents, options, rules, ranked, plans, search)


@njit
def inherit(broken, agents, options, rules, ranked, plans, search):
    """Let everybody hold the tiles of its option of before, or of the best one along the same tiles; whom that does not
    suit stands.

    broken: (N,) uint8, agents that are not where they were to be, or whose way is blocked; those that cannot go on
        because of them join. plans.option: what is left of the options before; plans.held must be empty
    """
    for a in range(len(agents.tile)):
        if not agents.there[a]:
            continue
        plans.held[agents.tile[a], 0] = a
        plans.held[agents.origin[a], 0] = a
        if agents.still[a]:
            broken[a] = 1
        if broken[a]:
            plans.option[a], plans.cost[a] = options.stay[agents.table[a]], 0
        else:
            track = options.track[plans.option[a]]
            for place in range(ranked.many[a]):
                if options.track[ranked.option[a, place]] == track:
                    plans.option[a], plans.cost[a] = ranked.option[a, place], ranked.cost[a, place]
            hold(a, plans.option[a], agents, options, plans.held, rules.plain, a)
    for first in range(len(agents.tile)):
        if agents.there[first] and broken[first] == 1:
            _stand(first, broken, agents, options, rules, plans, search)


@lean_njit
def _stand(first, broken, agents, options, rules, plans, search):
    """Let an agent that is `broken` stand, and whoever comes too near to it, and so on."""
    depth = 0
    search.agent[0] = first
    broken[first] = 2
    while depth >= 0:
        a = search.agent[depth]
        other = _intruder(a, broken, agents, options, rules, plans)
        if other == NOBODY or depth + 1 == len(search.agent):
            hold(a, plans.option[a], agents, options, plans.held, rules.plain, a)
            depth -= 1
            continue
        if broken[other] == 0:
            drop(other, agents, options, rules, plans)
            plans.option[other], plans.cost[other] = options.stay[agents.table[other]], 0
        broken[other] = 2
        depth += 1
        search.agent[depth] = other


@lean_njit
def _intruder(a, broken, agents, options, rules, plans):
    """An agent that moves and would come too near to agent a, which stands, or NOBODY."""
    for tick in range(1, plans.held.shape[1]):
        for i in range(len(rules.near)):
            for tile in (agents.tile[a], agents.origin[a]):
                other = plans.held[tile + rules.near[i], tick]
                if other != NOBODY and other != a and broken[other] == 0:
                    return other
    return NOBODY


@njit
def find_blocked(broken, agents, options, free, plans):
    """Note agents whose options lead over tiles that are blocked now."""
    for a in range(len(agents.tile)):
        track, heading = options.track[plans.option[a]], agents.heading[a]
        for tick in range(1, plans.held.shape[1]):
            here = agents.tile[a] + options.here[track, heading, tick]
            if here != agents.tile[a] and not free[here]:
                broken[a] = 1


@njit
def clear(agents, options, rules, plans):
    """Empty plans.held again."""
    for a in range(len(agents.tile)):
        if agents.there[a]:
            drop(a, agents, options, rules, plans)
            plans.held[agents.tile[a], 0] = NOBODY
            plans.held[agents.origin[a], 0] = NOBODY


@njit
def advance(agents, options, headings, speeds, rests, plans, action):
    """Let agents do the first tick of their options, and note what is left of these.

    headings: 1 or 4; speeds: (2,) int32 ticks of a move and of a turn; rests: tables of a speed
    action: (N,) int32 what each begins to do, or waiting
    """
    for a in range(len(agents.tile)):
        if not agents.there[a] or agents.still[a]:
            continue
        option, table = plans.option[a], agents.table[a]
        rest, heading = table % rests, agents.heading[a]
        plans.option[a] = options.heir[option]
        if rest > 0:
            agents.table[a] = table - 1
            if rest == 1:
                agents.origin[a] = agents.tile[a]
            continue
        opening = options.opening[option]
        action[a] = opening
        track = options.track[option]
        here = agents.tile[a] + options.here[track, heading, 1]
        turned = heading
        if headings == 4 and (opening == 1 or opening == 2):
            turned = (heading + (1 if opening == 1 else 3)) % 4
        if here == agents.tile[a] and turned == heading:
            continue
        ticks = speeds[0] if here != agents.tile[a] else speeds[1]
        agents.table[a] = table + ticks - 1
        agents.origin[a] = agents.tile[a] if ticks > 1 else here
        agents.tile[a], agents.heading[a] = here, turned


@njit
def improving_passes(order, begin, end, number, agents, options, rules, ranked, plans, search):
    """Let the agents order[begin:end] try to better the whole fleet's options. -> how many did"""
    better = 0
    for i in range(begin, end):
        a = order[i]
        if agents.there[a] and not agents.still[a] and search.seen[a] != number:
            better += improve(a, number, True, agents, options, rules, ranked, plans, search)
    return better
