"""What agents are told: the actions of a plan as numbers, tiles and headings."""

import numpy as np

from ..action_graph import ActionGraph
from ..motion import MOTIONS
from ..settings import Settings


def ticks_of(actions: np.ndarray, motion: str, fleet: Settings) -> np.ndarray:
    """(K,) steps that actions of the planner take"""
    rules = MOTIONS[motion]
    turns = (actions > 0) & (rules.headings > 1)
    return np.where(actions == rules.wait, 0, np.where(turns, fleet.ticks_per_turn, fleet.ticks_per_move))


def lasts(graph: ActionGraph, fleet: Settings) -> np.ndarray:
    """(N,) steps until one can see that an agent has done the action which it may do: who does not tell its heading
    must have moved after its turns"""
    if not len(graph.planned):
        return np.zeros(0, np.int64)
    moves = (graph.tiles[:, 1:] != graph.tiles[:, :-1]).any(axis=2)
    moves &= np.arange(1, graph.most + 1) <= graph.allowed[:, None]
    turns = np.where(moves.any(axis=1), moves.argmax(axis=1), np.maximum(graph.allowed, 1))
    chain = turns * fleet.ticks_per_turn + moves.any(axis=1) * fleet.ticks_per_move
    first = np.where(turns > 0, fleet.ticks_per_turn, fleet.ticks_per_move)
    return np.where(graph.blind, chain, first)


def actions_of(graph: ActionGraph, motion: str, agents: np.ndarray, states: np.ndarray) -> np.ndarray:
    """The planner's actions (A,) by which agents (A,) come to their states (A,), counted from 1."""
    rows, cols = (graph.tiles[agents, states] - graph.tiles[agents, states - 1]).T
    if MOTIONS[motion].headings == 1:
        return np.where(cols != 0, 1 - cols, 2 - rows)
    turn = (graph.headings[agents, states] - graph.headings[agents, states - 1]) % 4
    return np.where((rows != 0) | (cols != 0), 0, np.where(turn == 1, 1, 2))
