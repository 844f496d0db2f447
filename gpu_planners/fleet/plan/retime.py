"""Other times for the same paths: agents pass each tile in the same order, each as early as that allows.

The order of agents on each tile, and of each agent's own visits, are precedences that the plan itself satisfies; so any
motion, with turns or without, can carry it out in finite time (Hönig et al., ICAPS 2016). A plan in which agents never
move around in a ring also serves where nobody may enter a tile in the step that empties it.
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit, njit
from ...parallel.team import NEVER, clock_ns
from ..clock import at_least
from ..fields.next_hops import NOBODY, direction_to
from .instance import GRACE_NS, TELL_NS

STANDS, ASKS, WALKS, MOVES = range(4)  # in a step; ASKS until it is known whether it may move, WALKS while it is asked
CUTS = 4  # rounds of loop cutting
LOOK = 16  # steps between two checks of the clock


class Visits(NamedTuple):
    """Agents' visits of tiles, each agent's one after the other."""

    first: np.ndarray  # (N + 1,) int64 each agent's first visit
    tile: np.ndarray  # (V,) int32
    rank: np.ndarray  # (V,) int32 earlier visits of the tile
    begin: np.ndarray  # (V,) int32 the step at which it begins in the new plan


class March(NamedTuple):
    """How far agents have got."""

    at: np.ndarray  # (N,) int64 the visit that each is making
    ready: np.ndarray  # (N,) int32 the step from which on an agent faces its next tile
    left: np.ndarray  # (T + 1,) int32 how many visits of a tile are over
    occupant: np.ndarray  # (T + 1,) int32
    does: np.ndarray  # (N,) uint8 STANDS, ...
    active: np.ndarray  # (N,) int32 agents that are not done yet, in front
    chain: np.ndarray  # (N,) int32 scratch
    leaves: np.ndarray  # (N,) bool, does an agent leave the map in the step after its last visit?
    neighbour: np.ndarray  # (T + 1, 4) int32
    turning: bool  # do turns take a step each?
    following: bool


def timed(instance, tiles, faces, model, leaves=None, deadline=NEVER):
    """The motion that carries out tiles (steps + 1, N), changed, or as much of it as can be told until the deadline:
    where agents may not follow each other closely it may take a hundred times as many steps.

    leaves: (N,) bool, who leaves the map in the step after its last tile; None: nobody

    -> (N, steps + 1) int32 tiles, -1 off the map; the same of uint8 headings; (N,) int32 when each one's last visit
    begins; is this the whole motion?
    """
    return visits_timed(instance, visits_without_loops(tiles, len(instance.place)), faces, model, leaves, deadline)


def visits_without_loops(tiles, count):
    """tiles: (steps + 1, N) int32, changed; count: T -> Visits"""
    last, when = np.empty(count, np.int32), np.zeros(count, np.int32)
    for _ in range(CUTS):
        if not cut_loops(tiles, last, when):
            break
    return visits_of(tiles, count)


def visits_timed(instance, visits, faces, model, leaves=None, deadline=NEVER):
    """The motion that carries out visits; other arguments and results as of `timed`"""
    neighbour, n = instance.ground.neighbour, len(faces)
    leaves = np.zeros(n, bool) if leaves is None else leaves
    left, occupant = np.zeros(len(neighbour), np.int32), np.full(len(neighbour), NOBODY, np.int32)
    scratch = np.zeros(n, np.uint8), np.empty(n, np.int32), np.empty(n, np.int32)
    march = March(visits.first[:n].copy(), np.zeros(n, np.int32), left, occupant, *scratch, leaves, neighbour, *model)
    by = at_least(deadline, GRACE_NS // 2)
    motion = motion_of(visits, faces, march, carry_out(visits, faces, march, by, TELL_NS * n))
    return *motion, bool((march.at + 1 >= visits.first[1:]).all())


@njit
def cut_loops(tiles, last, when):
    """Let agents stay that leave a tile and come back before anybody else was there. -> how many such loops there were

    tiles: (steps + 1, N) int32, changed; last, when: (T,) int32 scratch
    """
    last[:] = NOBODY
    cut = 0
    for step in range(len(tiles)):
        for a in range(tiles.shape[1]):
            tile = tiles[step, a]
            if tile < 0:
                continue
            if last[tile] == a and when[tile] < step - 1 and tiles[when[tile], a] == tile:
                if tiles[step - 1, a] != tile:
                    for between in range(when[tile] + 1, step):
                        tiles[between, a] = tile
                    cut += 1
            last[tile], when[tile] = a, step
    return cut


@njit
def visits_of(tiles, count):
    """tiles: (steps + 1, N) int32, -1 where an agent is not there; count: T -> Visits"""
    agents = tiles.shape[1]
    first = np.zeros(agents + 1, np.int64)
    for a in range(agents):
        visits = 0
        for step in range(len(tiles)):
            if tiles[step, a] >= 0 and (step == 0 or tiles[step, a] != tiles[step - 1, a]):
                visits += 1
        first[a + 1] = first[a] + visits
    tile, rank = np.empty(first[agents], np.int32), np.empty(first[agents], np.int32)
    at, seen = first.copy(), np.zeros(count, np.int32)
    for step in range(len(tiles)):
        for a in range(agents):
            now = tiles[step, a]
            if now >= 0 and (step == 0 or now != tiles[step - 1, a]):
                tile[at[a]], rank[at[a]] = now, seen[now]
                seen[now] += 1
                at[a] += 1
    return Visits(first, tile, rank, np.zeros(first[agents], np.int32))


@njit
def rest_of(visits, at, left):
    """The visits that are not over. at: (N,) int64 the one that each agent is making; left: (T,) int32 how many of
    each tile are over -> Visits"""
    first = np.zeros(len(at) + 1, np.int64)
    for a in range(len(at)):
        first[a + 1] = first[a] + visits.first[a + 1] - at[a]
    tile, rank = np.empty(first[-1], np.int32), np.empty(first[-1], np.int32)
    for a in range(len(at)):
        for k in range(first[a + 1] - first[a]):
            tile[first[a] + k] = visits.tile[at[a] + k]
            rank[first[a] + k] = visits.rank[at[a] + k] - left[visits.tile[at[a] + k]]
    return Visits(first, tile, rank, np.zeros(len(tile), np.int32))


@lean_njit
def _quarters(visit, heading, visits, march):
    """-> quarter turns clockwise, 0 .. 3, of an agent that goes on to a visit"""
    if not march.turning:
        return 0
    return (direction_to(visits.tile[visit - 1], visits.tile[visit], march.neighbour) - heading) & 3


@njit
def carry_out(visits, heading, march, deadline, step_ns):
    """Let agents make their visits as early as they may. heading: (N,) int32 at the start; step_ns: to tell of a step
    -> steps"""
    first, many, step, facing = visits.first, 0, np.int32(0), heading.copy()
    for a in range(len(heading)):
        if first[a + 1] > first[a]:
            march.occupant[visits.tile[first[a]]] = a
            if first[a + 1] - first[a] > 1 or march.leaves[a]:
                march.active[many] = a
                many += 1
                _face_next(a, np.int32(0), facing, visits, march)
    while many > 0:
        if step % LOOK == 0 and clock_ns() + step_ns * step > deadline:
            break
        for k in range(many):
            march.does[march.active[k]] = _intent(march.active[k], step, visits, march)
        _ask(many, visits, march)
        step += 1
        many = _go(many, step, facing, visits, march)
    return step


@lean_njit
def _face_next(a, step, facing, visits, march):
    """Let an agent that has come to a tile turn to the next one."""
    march.ready[a] = step
    if march.at[a] + 1 < visits.first[a + 1]:
        quarters = _quarters(march.at[a] + 1, facing[a], visits, march)
        march.ready[a] += 1 if quarters == 3 else quarters
        facing[a] = (facing[a] + quarters) & 3


@lean_njit
def _intent(a, step, visits, march):
    visit = march.at[a] + 1
    if visit == visits.first[a + 1]:
        return MOVES  # it leaves the map
    if step < march.ready[a]:
        return STANDS
    there = visits.tile[visit]
    waits = visits.rank[visit] - march.left[there]
    if waits == 0:
        return MOVES
    return ASKS if march.following and waits == 1 and march.occupant[there] != NOBODY else STANDS


@lean_njit
def _ask(many, visits, march):
    """Let those that ask move if the agent ahead of them does."""
    does, chain = march.does, march.chain
    for k in range(many):
        a, length = march.active[k], 0
        while does[a] == ASKS:
            chain[length], does[a] = a, WALKS
            length += 1
            a = march.occupant[visits.tile[march.at[a] + 1]]
        outcome = STANDS if does[a] == STANDS else MOVES  # WALKS: the chain is a ring
        for i in range(length):
            does[chain[i]] = outcome


@lean_njit
def _go(many, step, facing, visits, march):
    """Move all that may, to be there at a step. -> how many are not done yet"""
    for k in range(many):
        a = march.active[k]
        if march.does[a] == MOVES:
            tile = visits.tile[march.at[a]]
            march.occupant[tile] = NOBODY
            march.left[tile] += 1
    left = 0
    for k in range(many):
        a = march.active[k]
        done = False
        if march.does[a] == MOVES:
            march.at[a] += 1
            done = march.at[a] == visits.first[a + 1]
            if not done:
                visits.begin[march.at[a]] = step
                march.occupant[visits.tile[march.at[a]]] = a
                _face_next(a, step, facing, visits, march)
                done = march.at[a] + 1 == visits.first[a + 1] and not march.leaves[a]
        if done:
            march.does[a] = STANDS
        else:
            march.active[left] = a
            left += 1
    return left


@njit
def motion_of(visits, heading, march, steps):
    """-> as of `timed`"""
    agents, first = len(heading), visits.first
    tiles, headings = np.full((agents, steps + 1), -1, np.int32), np.empty((agents, steps + 1), np.uint8)
    last = np.zeros(agents, np.int32)
    for a in range(agents):
        facing, step = heading[a], 0
        gone = march.leaves[a] and march.at[a] == first[a + 1]
        for visit in range(first[a], min(march.at[a] + 1, first[a + 1])):
            last[a], end, quarters = visits.begin[visit], steps + 1, 0
            if visit + 1 < first[a + 1]:
                quarters = _quarters(visit + 1, facing, visits, march)
            if visit < march.at[a] and visit + 1 < first[a + 1]:
                end = visits.begin[visit + 1]
            elif gone:
                end = last[a] + 1
            while step < end:
                tiles[a, step], headings[a, step] = visits.tile[visit], facing
                facing = (facing + (3 if quarters == 3 else min(quarters, 1))) & 3
                quarters = 1 if quarters == 2 else 0
                step += 1
        headings[a, step:] = facing
    return tiles, headings, last
