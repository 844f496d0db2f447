"""Other times for the same ways: agents pass each tile in the same order, each as early as that allows.

The order of agents on each tile, and of each agent's own visits, are precedences that the plan itself satisfies; so any
motion, with turns or without, can carry it out in finite time (Hönig et al., ICAPS 2016). A plan in which agents never
move around in a ring also serves where nobody may enter a tile in the step that empties it.
"""

from typing import NamedTuple

import numpy as np

from ..device import lean_njit, njit
from .ways import NOBODY, direction_to

STANDS, ASKS, WALKS, MOVES = range(4)  # in a step; ASKS until it is known whether it may move, WALKS while it is asked
CUTS = 4  # rounds of loop cutting


class Visits(NamedTuple):
    """Agents' visits of tiles, each agent's one after the other."""

    first: np.ndarray  # (N + 1,) int64 each agent's first visit
    tile: np.ndarray  # (V,) int32
    rank: np.ndarray  # (V,) int32 earlier visits of the tile


class March(NamedTuple):
    """How far agents have got."""

    at: np.ndarray  # (N,) int64 the visit that each is making
    left: np.ndarray  # (T + 1,) int32 how many visits of a tile are over
    occupant: np.ndarray  # (T + 1,) int32
    does: np.ndarray  # (N,) uint8 STANDS, ...
    chain: np.ndarray  # (N,) int32 scratch
    leaves: np.ndarray  # (N,) bool, does an agent leave the map in the step after its last visit?
    near: np.ndarray  # (T + 1, 4) int32
    turning: bool  # do turns take a step each?
    following: bool


def timed(instance, tiles, faces, model, leaves=None):
    """-> tiles and headings, (steps + 1, N), of the motion that carries out tiles (steps + 1, N), changed

    leaves: (N,) bool, who leaves the map in the step after its last tile; None: nobody
    """
    count, near, n = len(instance.place), instance.ground.near, len(faces)
    last, when = np.empty(count, np.int32), np.zeros(count, np.int32)
    for _ in range(CUTS):
        if not cut_loops(tiles, last, when):
            break
    visits = visits_of(tiles, count)
    leaves = np.zeros(n, bool) if leaves is None else leaves
    most, done = (3 if model.turning else 1) * len(tiles) + 2, False
    while not done:
        left, occupant = np.zeros(len(near), np.int32), np.full(len(near), NOBODY, np.int32)
        scratch = np.empty(n, np.uint8), np.empty(n, np.int32)
        march = March(visits.first[:n].copy(), left, occupant, *scratch, leaves, near, *model)
        tiles, headings, done = carry_out(visits, faces, march, most)
        most *= 2
    return tiles, headings


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
    return Visits(first, tile, rank)


@njit
def carry_out(visits, heading, march, most):
    """Let agents make their visits as early as they may. heading: (N,) int32 at the start; most: steps

    -> (steps + 1, N) int32 tiles and headings, and whether all visits were made
    """
    first, agents, waiting, step = visits.first, len(heading), 0, np.int64(0)
    tiles, headings = np.empty((most + 1, agents), np.int32), np.empty((most + 1, agents), np.int32)
    for a in range(agents):
        headings[0, a] = heading[a]
        tiles[0, a] = visits.tile[first[a]] if first[a + 1] > first[a] else -1
        if first[a + 1] > first[a]:
            march.occupant[tiles[0, a]] = a
            waiting += first[a + 1] - first[a] > 1 or march.leaves[a]
    while waiting > 0 and step < most:
        turned = _intend(tiles, headings, step, visits, march)
        _ask(visits, march)
        moved, done = _go(tiles, step, visits, march)
        waiting -= done
        step += 1
        if not (turned or moved):
            return tiles[:step].copy(), headings[:step].copy(), False
    return tiles[: step + 1].copy(), headings[: step + 1].copy(), waiting == 0


@lean_njit
def _intend(tiles, headings, step, visits, march):
    """Decide who turns, who moves and who has to ask. -> does anybody turn?"""
    turned = False
    for a in range(len(march.at)):
        tiles[step + 1, a], headings[step + 1, a], march.does[a] = tiles[step, a], headings[step, a], STANDS
        visit = march.at[a] + 1
        if visit >= visits.first[a + 1]:
            if march.leaves[a] and tiles[step, a] >= 0:
                march.does[a] = MOVES
            continue
        there = visits.tile[visit]
        wanted = direction_to(tiles[step, a], there, march.near)
        if march.turning and wanted != headings[step, a]:
            quarters = (wanted - headings[step, a]) % 4
            headings[step + 1, a] = (headings[step, a] + (3 if quarters == 3 else 1)) % 4
            turned = True
        elif march.left[there] == visits.rank[visit]:
            march.does[a] = MOVES
        elif march.following and march.left[there] + 1 == visits.rank[visit] and march.occupant[there] != NOBODY:
            march.does[a] = ASKS
    return turned


@lean_njit
def _ask(visits, march):
    """Let those that ask move if the agent ahead of them does."""
    does, chain = march.does, march.chain
    for first_one in range(len(does)):
        a, length = first_one, 0
        while does[a] == ASKS:
            chain[length], does[a] = a, WALKS
            length += 1
            a = march.occupant[visits.tile[march.at[a] + 1]]
        outcome = STANDS if does[a] == STANDS else MOVES  # WALKS: the chain is a ring
        for k in range(length):
            does[chain[k]] = outcome


@lean_njit
def _go(tiles, step, visits, march):
    """Move all that may. -> does anybody move? how many have made their last move?"""
    moved, done = False, 0
    for a in range(len(march.at)):
        if march.does[a] == MOVES:
            march.occupant[tiles[step, a]] = NOBODY
            march.left[tiles[step, a]] += 1
    for a in range(len(march.at)):
        if march.does[a] != MOVES:
            continue
        moved = True
        if march.at[a] + 1 == visits.first[a + 1]:
            tiles[step + 1, a] = -1
            done += 1
            continue
        march.at[a] += 1
        tiles[step + 1, a] = visits.tile[march.at[a]]
        march.occupant[tiles[step + 1, a]] = a
        done += march.at[a] + 1 == visits.first[a + 1] and not march.leaves[a]
    return moved, done
