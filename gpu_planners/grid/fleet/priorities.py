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
UNKNOWN = 2**31 - 1


class Progress(NamedTuple):
    """How agents get on; arrays (N,) int64.

    since: steps since they had no goal, or were at it; stalled: steps without coming nearer to it
    nearest: the least cost to go since they have their goals
    """

    since: np.ndarray
    stalled: np.ndarray
    nearest: np.ndarray


def new_progress(agents: int) -> Progress:
    return Progress(np.zeros(agents, np.int64), np.zeros(agents, np.int64), np.full(agents, UNKNOWN, np.int64))


def forget(progress: Progress, agents: np.ndarray):
    """Agents (K,) have new goals."""
    progress.nearest[agents], progress.stalled[agents] = UNKNOWN, 0


def note(agents: Agents, progress: Progress):
    """Note who has come nearer to its goal."""
    nearer = agents.left < progress.nearest
    progress.nearest[:] = np.where(nearer, agents.left, progress.nearest)
    progress.stalled[:] = np.where(nearer | idle(agents), 0, progress.stalled + 1)


def idle(agents: Agents) -> np.ndarray:
    """(N,) bool, has it nothing to do?"""
    return (agents.goal < 0) | (agents.tile == agents.goal)


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


def order_of(agents: Agents, progress: Progress, step: int) -> np.ndarray:
    """(N,) int32 agents by priority: those that get no nearer, by lot, those that have the shortest way to go, those
    that have none."""
    stalled = progress.stalled > PATIENCE
    lot = np.random.default_rng(step // PATIENCE).random(len(stalled))
    drawn = np.where(stalled, lot, 2.0)
    most = -(-len(lot) // LOTS)
    if most < len(lot):
        drawn[drawn > np.partition(drawn, most)[most]] = 2.0
    return np.lexsort((agents.left, drawn, idle(agents))).astype(np.int32)


def order_of_holders(agents: Agents, progress: Progress) -> np.ndarray:
    """(N,) int32 agents that stay at their goals, by priority: who was at its goal longest ago comes first."""
    return np.lexsort((agents.left, -progress.since)).astype(np.int32)
