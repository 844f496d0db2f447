"""Who goes first in a step, and who goes elsewhere for a while.

In a nearly full room goals draw agents together until nobody there can move, while other parts are empty. So agents of
low priority, which would mostly stand, also count how crowded it is where their options end: they go where there is
room, and those that are near their goals get through.

Whoever is nearest to its goal goes first, but where nearly all tiles are taken, one that gets no nearer comes last:
nobody may push those that go first, so they would be walls, and the longer a fleet runs, the more of them would stand.
"""

from typing import NamedTuple

import numpy as np
from numba import prange

from ...device import lean_njit, njit
from .epibt import FIRST_TIE, sort_in
from .state import Agents

PATIENCE = 64  # steps without coming nearer to its goal, after which an agent may go first, by lot
HINDERED = 16  # steps without coming nearer, after which an agent comes last where it is packed
RESTLESS = 4  # steps without coming nearer, after which an agent that waits turns now and then
LOST = 8  # steps without coming nearer, after which an agent may go elsewhere
WANDERING = 8  # steps for which it does
WANDERERS = 0.5  # the part of these agents that does so at a time, by lot
WISH = 10  # a move of its detour is worth so many moves along its path
LOTS = 200  # one agent of so many goes first at a time
FARTHER = 4  # moves: an agent whose path has become so much longer, by a changed map or its own move, begins anew
UNKNOWN = 2**31 - 1
REACH = 6  # tiles: crowding is averaged over squares of 2 REACH + 1 tiles, twice
AVERSION = 200  # moves that agents would make to leave a full place for an empty one
STEEPNESS = 4  # power of the share of taken tiles: where there is room, it hardly counts


class Progress(NamedTuple):
    """How agents get on; arrays (N,) int64."""

    since: np.ndarray  # steps since they had no goal, or were at it
    stalled: np.ndarray  # steps without coming nearer to it
    goal: np.ndarray  # of the last step
    left: np.ndarray  # cost to go of the last step
    nearest: np.ndarray  # the least cost to go since they have their goals
    away: np.ndarray  # steps away from a goal that was reached, or -1
    changed: np.ndarray  # since the last step, was an agent found elsewhere, or the map changed?


def new_progress(agents: int) -> Progress:
    zero, none = np.zeros(agents, np.int64), np.full(agents, -1)
    return Progress(zero, zero.copy(), none, zero.copy(), np.full(agents, UNKNOWN), none.copy(), zero.copy())


def note(agents: Agents, progress: Progress, nothing_to_do: np.ndarray, unit: int):
    """Note who has come nearer to its goal. nothing_to_do: (N,) bool; unit: what a move costs"""
    farther = (progress.changed > 0) & (agents.left > progress.left + FARTHER * unit)
    anew = farther | nothing_to_do | (agents.goal != progress.goal)
    nearer = anew | (agents.left < progress.nearest)
    progress.nearest[:] = np.where(nearer, agents.left, progress.nearest)
    progress.nearest[nothing_to_do] = UNKNOWN
    progress.stalled[:] = np.where(nearer, 0, progress.stalled + 1)
    reached = (agents.tile == agents.goal) & (agents.there > 0)
    away = np.where(agents.goal != progress.goal, -1, progress.away)
    progress.away[:] = np.where(reached, np.maximum(away, 0), away + (away >= 0))
    progress.goal[:], progress.left[:], progress.changed[:] = agents.goal, agents.left, 0


def idle(agents: Agents, part: np.ndarray) -> np.ndarray:
    """(N,) bool, has it nothing to do, or no path to its goal? part: (tiles,) as of `lanes.parts_of`"""
    here, there = part[agents.tile], part[agents.goal]
    return (agents.goal < 0) | (agents.tile == agents.goal) | (there == 0) | ((here > 0) & (here != there))


def restless(progress: Progress, step: int) -> np.ndarray:
    """(N,) bool, who turns instead of waiting, some at a time, so that agents that face each other find other ways"""
    stalled = progress.stalled
    return (stalled >= RESTLESS) & ((step + np.arange(len(stalled))) % RESTLESS == 0)


def order_of(
    agents: Agents, progress: Progress, nothing_to_do: np.ndarray, leaving: np.ndarray, step: int, holding: bool,
    packed: bool,
) -> np.ndarray:  # fmt: skip
    """Agents on the map (K,) int32 by priority: who is `leaving` a dead end (N,); some that get no nearer, by lot; then
    by cost to go; then, where it is `packed`, others that get no nearer; last those with nothing to do (N,). If agents
    are `holding` their goals, whoever was at its goal longest ago comes first."""
    count, keys = np.count_nonzero(agents.there), (agents.left, -progress.since)
    if not holding:
        lot = np.random.default_rng(step // PATIENCE).random(len(agents.left))
        drawn = np.where(progress.stalled > PATIENCE, lot, 2.0)
        most = -(-count // LOTS)
        if most < len(lot):
            drawn[drawn > np.partition(drawn, most)[most]] = 2.0
        hindered = packed & (progress.stalled > HINDERED) & (drawn > 1)
        keys = agents.left, hindered, drawn, nothing_to_do, ~leaving
    return np.lexsort((*keys, agents.there == 0))[:count].astype(np.int32)


def wishes(progress: Progress, step: int, unit: int) -> np.ndarray:
    """(N, 2) int32 what a row down and a column right cost in a step: agents that get no nearer go elsewhere for a
    while, by lot."""
    lot = np.random.default_rng(step // WANDERING).random((len(progress.stalled), 2))
    angle = 2 * np.pi * lot[:, 0]
    wish = WISH * unit * np.stack([np.sin(angle), np.cos(angle)], axis=1)
    wish[(progress.stalled < LOST) | (lot[:, 1] > WANDERERS)] = 0
    return wish.astype(np.int32)


def crowd_around(counts: np.ndarray, cols: int) -> np.ndarray:
    """(tiles,) int32 -> (tiles,) int32, sums over squares around each tile, twice"""
    counts = counts.reshape(-1, cols)
    sums, across = np.empty_like(counts), np.empty_like(counts)
    for given in (counts, sums):
        _sums_across(given, across)
        _sums_down(across, sums)
    return sums.ravel()


@njit(parallel=True)
def _sums_across(counts, sums):
    """Sums over the tiles of a row that are at most REACH away."""
    rows, cols = counts.shape
    for row in prange(rows):
        total = np.int32(0)
        for col in range(-REACH, cols):
            if col + REACH < cols:
                total += counts[row, col + REACH]
            if col > REACH:
                total -= counts[row, col - REACH - 1]
            if col >= 0:
                sums[row, col] = total


@njit(parallel=True)
def _sums_down(counts, sums):
    """Sums over the tiles of a column that are at most REACH away."""
    rows, cols = counts.shape
    for row in prange(rows):
        sums[row] = 0
        for other in range(max(0, row - REACH), min(rows, row + REACH + 1)):
            for col in range(cols):
                sums[row, col] += counts[other, col]


@njit(parallel=True)
def keep_away(minding, wish, taken, room, lanes, agents, options, ranked):
    """Add crowding and wishes to the costs of agents' options, and sort these again.

    minding: (N,) bool, who avoids crowds; wish: (N, 2) int32 of `wishes`
    taken, room: (tiles,) int32 of `crowd_around` the taken and the free tiles
    """
    for a in prange(len(minding)):
        if not (minding[a] or wish[a, 0] != 0 or wish[a, 1] != 0):
            continue
        tile, heading, last = agents.tile[a], agents.heading[a], options.here.shape[2] - 1
        now = _aversion(tile, taken, room, lanes.unit)
        row, col = divmod(tile, lanes.width)
        for i in range(ranked.length[a]):
            option = ranked.option[a, i]
            end = tile + options.here[options.track[option], heading, last]
            down, right = divmod(end, lanes.width)
            more = wish[a, 0] * (down - row) + wish[a, 1] * (right - col)
            if minding[a]:
                more += _aversion(end, taken, room, lanes.unit) - now
            sort_in(i, option, ranked.cost[a, i] + more * FIRST_TIE, ranked.option[a], ranked.cost[a])


@lean_njit
def _aversion(tile, taken, room, unit):
    share = min(taken[tile] / room[tile], 1.0)
    return int(AVERSION * unit * share**STEEPNESS)
