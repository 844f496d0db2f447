"""From one step to the next: agents inherit what is left of their options, and carry out the first tick of new ones."""

import numpy as np
from numba import prange

from ...device import lean_njit, njit
from ..fields.next_hops import NOBODY
from .epibt import release, reserve
from .state import FleetState


def inherit(broken, free, agents, options, rules, ranked, plans, stacks):
    """Each agent reserves what is left of its previous option, or a better one on the same tiles; broken ones wait.

    broken: (N,) uint8, agents that are not where they were to be; those whose path is blocked join them
    free: (tiles,) uint8
    plans.option: what is left of the options before; plans.reserved: NOBODY everywhere
    """
    there = np.flatnonzero(agents.there)
    plans.reserved[agents.origin[there], 0] = there
    # after the origins: who was observed on a tile that another one leaves wins
    _inherit_each(broken, free, agents, options, rules, ranked, plans, stacks)


@njit(parallel=True)
def _inherit_each(broken, free, agents, options, rules, ranked, plans, stacks):
    for a in prange(len(agents.tile)):
        if agents.there[a]:
            _inherit(np.int64(a), broken, free, FleetState(agents, options, rules, ranked, plans, stacks))


@lean_njit
def _inherit(a, broken, free, state):
    agents, options, ranked, plans = state.agents, state.options, state.ranked, state.plans
    plans.reserved[agents.tile[a], 0] = a
    track, before = options.track[plans.option[a]], agents.tile[a]
    for tick in range(1, plans.reserved.shape[1]):
        here = agents.tile[a] + options.here[track, agents.heading[a], tick]
        if here != before and not free[here]:
            broken[a] = 1
        before = here
    if agents.still[a] or broken[a]:
        broken[a] = 1
        plans.option[a], plans.cost[a] = options.stay[agents.table[a]], 0
        return
    for place in range(ranked.length[a]):
        if options.track[ranked.option[a, place]] == track:
            plans.option[a], plans.cost[a] = ranked.option[a, place], ranked.cost[a, place]
    reserve(a, plans.option[a], a, state)


@njit
def settle(broken, state):
    """Broken agents reserve their tiles; whoever would come too near to a waiting one waits too."""
    agents, plans = state.agents, state.plans
    standing, count = np.empty(len(agents.tile), np.int32), 0
    for a in range(len(agents.tile)):
        if agents.there[a] and broken[a]:
            standing[count] = a
            count += 1
    at = 0
    while at < count:
        a = standing[at]
        other = _intruder(a, broken, state)
        if other == NOBODY:
            reserve(np.int64(a), plans.option[a], np.int64(a), state)
            at += 1
        else:
            release(other, state)
            plans.option[other], plans.cost[other] = state.options.stay[agents.table[other]], 0
            broken[other], standing[count] = 1, other
            count += 1


@lean_njit
def _intruder(a, broken, state):
    """A moving agent that would come too near to agent a, which stands, or NOBODY."""
    reserved, clearance = state.plans.reserved, state.rules.clearance
    layer = state.agents.tile[a] // state.rules.layer
    for tick in range(1, reserved.shape[1]):
        for i in range(clearance.shape[1]):
            for tile in (state.agents.tile[a], state.agents.origin[a]):
                other = reserved[tile + clearance[layer, i], tick]
                if other != NOBODY and other != a and broken[other] == 0:
                    return other
    return NOBODY


@njit
def advance(restless, headings, ticks, rests, state, action):
    """Carry out the first tick of all options; plans.option becomes what is left of them.

    restless: (N,) bool, who turns where it would only wait; headings: 1 or 4
    ticks: (K, 2) int32 of a move and of a turn; rests: tables of a speed
    action: (N,) int32, written: what each begins to do; unchanged for those that go on
    """
    agents, options, plans = state.agents, state.options, state.plans
    for a in range(len(agents.tile)):
        if not agents.there[a] or agents.still[a]:
            continue
        option, table = plans.option[a], agents.table[a]
        rest, heading = table % rests, agents.heading[a]
        if restless[a] and option == options.stay[table]:
            option = options.fidget[table]
        plans.option[a] = options.tail[option]
        if rest > 0:
            agents.table[a] = table - 1
            if rest == 1:
                agents.origin[a] = agents.tile[a]
            continue
        opening = options.opening[option]
        action[a] = opening
        here = agents.tile[a] + options.here[options.track[option], heading, 1]
        turned = heading
        if headings == 4 and (opening == 1 or opening == 2):
            turned = (heading + (1 if opening == 1 else 3)) % 4
        if here == agents.tile[a] and turned == heading:
            continue
        lasts = ticks[table // rests, 0 if here != agents.tile[a] else 1]
        agents.table[a] = table + lasts - 1
        agents.origin[a] = agents.tile[a] if lasts > 1 else here
        agents.tile[a], agents.heading[a] = here, turned
