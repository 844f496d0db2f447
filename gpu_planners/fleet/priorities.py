"""Who goes first in a step."""

from typing import NamedTuple

import numpy as np

from .state import Agents

PATIENCE = 64  # steps without coming nearer to its goal, after which an agent may go first, by lot
RESTLESS = 4  # steps without coming nearer, after which an agent that waits turns now and then
LOST, WANDERING = 8, 8  # steps without coming nearer, after which an agent may go elsewhere, and for how long
WANDERERS = 0.5  # of these agents that do so at a time, by lot
WISH = 10  # moves against its wish are worth so many moves along its way
LOTS = 200  # of so many agents one goes first at a time
FARTHER = 4  # moves that the way to a goal is longer by, after an agent or the map was changed, and it begins anew
UNKNOWN = 2**31 - 1


class Progress(NamedTuple):
    """How agents get on; arrays (N,) int64.

    since: steps since they had no goal, or were at it; stalled: steps without coming nearer to it
    goal, left: the goal and the cost to go of the last step; nearest: the least cost to go since they have their goals
    changed: since the last step, was an agent found elsewhere, or the map changed?
    """

    since: np.ndarray
    stalled: np.ndarray
    goal: np.ndarray
    left: np.ndarray
    nearest: np.ndarray
    changed: np.ndarray


def new_progress(agents: int) -> Progress:
    since, stalled, left, changed = np.zeros((4, agents), np.int64)
    return Progress(since, stalled, np.full(agents, -1), left, np.full(agents, UNKNOWN), changed)


def note(agents: Agents, progress: Progress, nothing_to_do: np.ndarray, unit: int):
    """Note who has come nearer to its goal. nothing_to_do: (N,) bool; unit: what a move costs"""
    farther = (progress.changed > 0) & (agents.left > progress.left + FARTHER * unit)
    anew = farther | nothing_to_do | (agents.goal != progress.goal)
    nearer = anew | (agents.left < progress.nearest)
    progress.nearest[:] = np.where(nearer, agents.left, progress.nearest)
    progress.nearest[nothing_to_do] = UNKNOWN
    progress.stalled[:] = np.where(nearer, 0, progress.stalled + 1)
    progress.goal[:], progress.left[:], progress.changed[:] = agents.goal, agents.left, 0


def idle(agents: Agents, part: np.ndarray) -> np.ndarray:
    """(N,) bool, has it nothing to do, or no way to its goal?

    part: (tiles,) int32 of tiles between which there are ways, 0 where a tile is blocked
    """
    here, there = part[agents.tile], part[agents.goal]
    return (agents.goal < 0) | (agents.tile == agents.goal) | (there == 0) | ((here > 0) & (here != there))


def restless(progress: Progress, step: int) -> np.ndarray:
    """(N,) bool agents that turn, if they would wait in a step: where agents face each other, they find other ways once
    they look elsewhere. Not all do at once."""
    stalled = progress.stalled
    return (stalled >= RESTLESS) & ((step + np.arange(len(stalled))) % RESTLESS == 0)


def wishes(progress: Progress, step: int, unit: int) -> np.ndarray:
    """(N, 2) int32 what a row down and a column right cost agents in a step: those that get no nearer go elsewhere for
    a while, by lot."""
    lot = np.random.default_rng(step // WANDERING).random((len(progress.stalled), 2))
    angle = 2 * np.pi * lot[:, 0]
    wish = WISH * unit * np.stack([np.sin(angle), np.cos(angle)], axis=1)
    wish[(progress.stalled < LOST) | (lot[:, 1] > WANDERERS)] = 0
    return wish.astype(np.int32)


def order_of(agents: Agents, progress: Progress, nothing_to_do: np.ndarray, step: int) -> np.ndarray:
    """Agents on the map (K,) int32 by priority: those that get no nearer, by lot, those that have the shortest way to
    go, those that have nothing to do (N,)."""
    stalled = progress.stalled > PATIENCE
    lot = np.random.default_rng(step // PATIENCE).random(len(stalled))
    drawn = np.where(stalled, lot, 2.0)
    most = -(-_count(agents) // LOTS)
    if most < len(lot):
        drawn[drawn > np.partition(drawn, most)[most]] = 2.0
    return np.lexsort((agents.left, drawn, nothing_to_do, agents.there == 0))[: _count(agents)].astype(np.int32)


def order_of_holders(agents: Agents, progress: Progress) -> np.ndarray:
    """Agents on the map (K,) int32 that stay at their goals, by priority: who was at its goal longest ago comes
    first."""
    return np.lexsort((agents.left, -progress.since, agents.there == 0))[: _count(agents)].astype(np.int32)


def _count(agents):
    return int(np.count_nonzero(agents.there))
