"""What a step of a fleet works on: agents, their options in order, who holds which tiles, who is in whose way."""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...parallel.memory import item, set_item
from ..fields.next_hops import NOBODY
from ..motion import Options

SEVERAL = -2  # in place of an agent in the way
BUSY, STANDS = 1, 2  # in this step; until it is said otherwise, and an obstacle in the fields


class Agents(NamedTuple):
    """Agents, for compiled code; arrays (N,) int32."""

    tile: np.ndarray  # where it stands, or what it moves to
    heading: np.ndarray
    origin: np.ndarray  # the tile that it still leaves, or `tile`
    table: np.ndarray  # of its options
    goal: np.ndarray  # tile or -1
    slot: np.ndarray  # its goal's field or -1
    there: np.ndarray  # does it take part?
    still: np.ndarray  # does it obey nobody? 0, BUSY or STANDS
    left: np.ndarray  # cost to go when it was at `was_tile`, heading `was_heading`
    was_tile: np.ndarray
    was_heading: np.ndarray
    fresh: np.ndarray  # is `left` unknown?


class Ranked(NamedTuple):
    """The options of every agent, the best one first; waiting costs 0."""

    many: np.ndarray  # (N,) int32
    option: np.ndarray  # (N, most) int32
    cost: np.ndarray  # (N, most) int32


class Rules(NamedTuple):
    """When agents conflict."""

    near: np.ndarray  # (K,) int32 offsets of the tiles that must be free of others around an agent; 0 is one of them
    following: bool  # may an agent move to a tile that another one leaves meanwhile?
    horizon: int  # ticks that are looked ahead
    holding: bool  # do agents stay at their goals? Else they get new ones there
    plain: bool  # one tile is near, following is allowed, and actions take a tick


class Plans(NamedTuple):
    """The options that agents hold, and the tiles of these."""

    option: np.ndarray  # (N,) int32
    cost: np.ndarray  # (N,) int32
    held: np.ndarray  # (tiles, horizon + 1) int32 agents or NOBODY, by ticks from now


class Stacks(NamedTuple):
    """Who pushes whom: a stack for each concurrent search, and what all searches know of agents."""

    loss: np.ndarray  # (searches, depth) int64 by how much the weighted costs have risen so far
    seen: np.ndarray  # (N,) int64 the pass that `visits` counts for
    weight: np.ndarray  # (N,) int64 of its costs
    open: np.ndarray  # (N,) uint8 is it on a stack?
    agent: np.ndarray  # (searches, depth) int32 who looks for an option
    place: np.ndarray  # (searches, depth) int32 which of its options it is at
    before: np.ndarray  # (searches, depth) int32 the option that it had before the search
    before_cost: np.ndarray  # (searches, depth) int32
    visits: np.ndarray  # (N,) int32 how often it was pushed
    rank: np.ndarray  # (N,) int32 place in the order of priorities


class Crew(NamedTuple):
    """All that a step works on."""

    agents: Agents
    options: Options
    rules: Rules
    ranked: Ranked
    plans: Plans
    stacks: Stacks


@lean_njit
def hold(a, option, who, crew):
    """Enter `who` (a itself, or NOBODY to give them back) at the tiles of an option of agent a."""
    agents, options, held = crew.agents, crew.options, crew.plans.held
    track, heading, tile = options.track[option], agents.heading[a], int(agents.tile[a])
    if crew.rules.plain:
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
def take(a, option, cost, crew):
    """Give agent a an option whose tiles nobody holds."""
    crew.plans.option[a], crew.plans.cost[a] = option, cost
    hold(np.int64(a), option, np.int64(a), crew)


@lean_njit
def drop(a, crew):
    hold(np.int64(a), crew.plans.option[a], np.int64(NOBODY), crew)


@lean_njit
def _met(tile, tick, a, found, held, near):
    """Join whoever but a is near a tile at a tick with those found before -> an agent, NOBODY or SEVERAL"""
    for i in range(len(near)):
        other = held[tile + near[i], tick]
        if other != NOBODY and other != a and other != found:
            if found != NOBODY:
                return SEVERAL
            found = other
    return found


@lean_njit
def _swaps(a, tile, before, tick, held, near):
    """-> an agent that leaves `tile` for `before`, or NOBODY"""
    for i in range(len(near)):
        other = held[tile + near[i], tick - 1]
        if other != NOBODY and other != a:
            for j in range(len(near)):
                if held[before + near[j], tick] == other:
                    return other
    return NOBODY


@lean_njit
def in_the_way(a, option, crew):
    """Who holds tiles that agent a, which holds none now, needs for an option? -> an agent, NOBODY or SEVERAL"""
    agents, options, held, rules = crew.agents, crew.options, crew.plans.held, crew.rules
    if rules.plain:
        return _in_the_plain_way(a, option, agents, options, held)
    track, heading, tile, near = options.track[option], agents.heading[a], agents.tile[a], rules.near
    rest, found = options.tick[options.first_step[agents.table[a]]], NOBODY
    before, before_also = tile, tile
    for tick in range(1, held.shape[1]):
        here, also = tile + options.here[track, heading, tick], tile + options.also[track, heading, tick]
        found = _met(here, tick, a, found, held, near)
        if also != here:
            found = _met(also, tick, a, found, held, near)
        if tick < rest or (tick == rest and not rules.following):
            found = _met(agents.origin[a], tick, a, found, held, near)
        if here != before and rules.following:
            other = _swaps(a, here, before, tick, held, near)
            if other != NOBODY and other != found:
                found = other if found == NOBODY else SEVERAL
        elif here != before:
            found = _met(before, tick, a, _met(here, tick - 1, a, found, held, near), held, near)
            if tick == 1 and held[here, 0] != NOBODY and held[here, 0] != a:
                return SEVERAL  # somebody is there now, whatever it does
        if not rules.following and before_also != here and before_also != before:
            found = _met(before_also, tick, a, found, held, near)
        if found == SEVERAL:
            return SEVERAL
        before, before_also = here, also
    return found


@lean_njit
def _in_the_plain_way(a, option, agents, options, held):
    """`in_the_way` for rules that are `plain`."""
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
