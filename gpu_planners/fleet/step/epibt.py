"""Every agent gets an option, and no two options conflict.

Enhanced PIBT (Yukhnevich and Andreychuk, arXiv 2511.09193): each agent holds the tiles of its option, at first of what
is left of its previous one (the heir, which ends in waiting, so that heirs never conflict). One after the other, by
priority, agents take the best option whose tiles nobody holds, or only one other agent: that one is pushed and has to
find another option in turn, and so on; if it cannot, all is undone. The options never conflict, so a search may stop
at any time.
"""

from typing import NamedTuple

import numpy as np
from numba import prange

from ...device import lean_njit, njit
from ..fields.next_hops import NOBODY
from .crew import SEVERAL, Crew, drop, hold, in_the_way, take
from .pibt import DONE, FAILED, make_pibt

MOST_VISITS = 10  # of an agent in a pass


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


class Aim(NamedTuple):
    """One search of a pass."""

    square: int  # whose stack it uses
    row: int  # where the square begins
    col: int
    common: Pass


@lean_njit
def _enter(level, a, crew, aim):
    """Put an agent on the stack, without any tiles; whoever pushed it takes the option that needs them."""
    plans, stacks, k = crew.plans, crew.stacks, aim.square
    stacks.agent[k, level], stacks.place[k, level] = a, 0
    stacks.before[k, level], stacks.before_cost[k, level] = plans.option[a], plans.cost[a]
    stacks.loss[k, level] = -stacks.weight[a] * plans.cost[a]
    drop(a, crew)
    if stacks.seen[a] != aim.common.number:
        stacks.seen[a], stacks.visits[a] = aim.common.number, 0
    stacks.visits[a] += 1
    stacks.open[a] = 1
    if level > 0:
        pusher, place = stacks.agent[k, level - 1], stacks.place[k, level - 1] - 1
        cost = crew.ranked.cost[pusher, place]
        stacks.loss[k, level] += stacks.loss[k, level - 1] + stacks.weight[pusher] * cost
        take(pusher, crew.ranked.option[pusher, place], cost, crew)


@lean_njit
def _look(level, crew, aim):
    stacks, ranked, k = crew.stacks, crew.ranked, aim.square
    a = stacks.agent[k, level]
    while stacks.place[k, level] < ranked.many[a]:
        place = stacks.place[k, level]
        stacks.place[k, level] += 1
        option, cost = ranked.option[a, place], ranked.cost[a, place]
        if aim.common.improving and stacks.loss[k, level] + stacks.weight[a] * cost > 0:
            return FAILED  # so are the others, which cost more; whoever is pushed then seldom makes up for it
        other = in_the_way(a, option, crew)
        if other == NOBODY:
            take(a, option, cost, crew)
            return DONE
        if other != SEVERAL and level + 1 < stacks.agent.shape[1] and _may_be_pushed(other, crew, aim):
            return other
    return FAILED


@lean_njit
def _may_be_pushed(a, crew, aim):
    stacks, common = crew.stacks, aim.common
    root = stacks.agent[aim.square, 0]
    if crew.agents.still[a] or stacks.open[a] or not (common.improving or stacks.rank[a] > stacks.rank[root]):
        return False
    if stacks.seen[a] == common.number and stacks.visits[a] >= MOST_VISITS:
        return False
    row, col = divmod(crew.agents.tile[a], common.width)
    low, high = -common.margin, common.side + common.margin
    return low <= row - aim.row < high and low <= col - aim.col < high


@lean_njit
def _give_up(level, crew, aim):
    """Give an agent its previous option back, whose tiles its pusher lets go."""
    stacks, k = crew.stacks, aim.square
    if level > 0:
        drop(stacks.agent[k, level - 1], crew)
    a = stacks.agent[k, level]
    stacks.open[a] = 0
    take(a, stacks.before[k, level], stacks.before_cost[k, level], crew)


@lean_njit
def _finish(level, crew, aim):
    for i in range(level + 1):
        crew.stacks.open[crew.stacks.agent[aim.square, i]] = 0


_push = make_pibt(_enter, _look, _give_up, _finish)


# ---------------------------------------------------------------------------------------------------- passes


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
    """Let the agents in squares of one colour, 0 .. 3, look for better options, one after the other in each square."""
    down, across = (common.rows - colour // 2 + 1) // 2, (common.cols - colour % 2 + 1) // 2
    for i in prange(down * across):
        crew = Crew(agents, options, rules, ranked, plans, stacks)
        r, c = 2 * (i // across) + colour // 2, 2 * (i % across) + colour % 2
        k = r * common.cols + c
        aim = Aim(k, common.row + r * common.side, common.col + c * common.side, common)
        for j in range(common.first[k], common.first[k + 1]):
            a = common.order[j]
            if agents.there[a] and not agents.still[a] and stacks.seen[a] != common.number:
                _push(a, crew, aim)


def inherit(broken, free, agents, options, rules, ranked, plans, stacks):
    """Each agent reserves what is left of its previous option, or a better one on the same tiles; broken ones wait.

    broken: (N,) uint8, agents that are not where they were to be; those whose way is blocked join them
    free: (tiles,) uint8
    plans.option: what is left of the options before; plans.held: NOBODY everywhere
    """
    there = np.flatnonzero(agents.there)
    plans.held[agents.origin[there], 0] = there
    # after the origins: who was observed on a tile that another one leaves wins
    _inherit_each(broken, free, agents, options, rules, ranked, plans, stacks)


@njit(parallel=True)
def _inherit_each(broken, free, agents, options, rules, ranked, plans, stacks):
    for a in prange(len(agents.tile)):
        if agents.there[a]:
            _inherit(np.int64(a), broken, free, Crew(agents, options, rules, ranked, plans, stacks))


@lean_njit
def _inherit(a, broken, free, crew):
    agents, options, ranked, plans = crew.agents, crew.options, crew.ranked, crew.plans
    plans.held[agents.tile[a], 0] = a
    track, before = options.track[plans.option[a]], agents.tile[a]
    for tick in range(1, plans.held.shape[1]):
        here = agents.tile[a] + options.here[track, agents.heading[a], tick]
        if here != before and not free[here]:
            broken[a] = 1
        before = here
    if agents.still[a] or broken[a]:
        broken[a] = 1
        plans.option[a], plans.cost[a] = options.stay[agents.table[a]], 0
        return
    for place in range(ranked.many[a]):
        if options.track[ranked.option[a, place]] == track:
            plans.option[a], plans.cost[a] = ranked.option[a, place], ranked.cost[a, place]
    hold(a, plans.option[a], a, crew)


@njit
def settle(broken, crew):
    """Broken agents hold their tiles; whoever would come too near to a waiting one waits too."""
    agents, plans = crew.agents, crew.plans
    standing, count = np.empty(len(agents.tile), np.int32), 0
    for a in range(len(agents.tile)):
        if agents.there[a] and broken[a]:
            standing[count] = a
            count += 1
    at = 0
    while at < count:
        a = standing[at]
        other = _intruder(a, broken, crew)
        if other == NOBODY:
            hold(np.int64(a), plans.option[a], np.int64(a), crew)
            at += 1
        else:
            drop(other, crew)
            plans.option[other], plans.cost[other] = crew.options.stay[agents.table[other]], 0
            broken[other], standing[count] = 1, other
            count += 1


@lean_njit
def _intruder(a, broken, crew):
    """A moving agent that would come too near to agent a, which stands, or NOBODY."""
    held, near = crew.plans.held, crew.rules.near
    for tick in range(1, held.shape[1]):
        for i in range(len(near)):
            for tile in (crew.agents.tile[a], crew.agents.origin[a]):
                other = held[tile + near[i], tick]
                if other != NOBODY and other != a and broken[other] == 0:
                    return other
    return NOBODY


@njit
def advance(restless, headings, ticks, rests, crew, action):
    """Carry out the first tick of all options; plans.option becomes what is left of them.

    restless: (N,) bool, who turns where it would only wait; headings: 1 or 4
    ticks: (K, 2) int32 of a move and of a turn; rests: tables of a speed
    action: (N,) int32, written: what each begins to do; unchanged for those that go on
    """
    agents, options, plans = crew.agents, crew.options, crew.plans
    for a in range(len(agents.tile)):
        if not agents.there[a] or agents.still[a]:
            continue
        option, table = plans.option[a], agents.table[a]
        rest, heading = table % rests, agents.heading[a]
        if restless[a] and option == options.stay[table]:
            option = options.fidget[table]
        plans.option[a] = options.heir[option]
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
