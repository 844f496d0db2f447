"""Who holds which tiles at which ticks, and who is in whose way."""

from ..device import lean_njit
from ..parallel.memory import item, set_item
from .state import NOBODY

SEVERAL = -2  # agents are in the way


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
        if tick < rest or agents.still[a]:
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


@lean_njit
def take(a, option, cost, agents, options, rules, plans):
    """Give agent a an option whose tiles nobody holds."""
    plans.option[a], plans.cost[a] = option, cost
    hold(a, option, agents, options, plans.held, rules.plain, a)


@lean_njit
def drop(a, agents, options, rules, plans):
    hold(a, plans.option[a], agents, options, plans.held, rules.plain, NOBODY)
