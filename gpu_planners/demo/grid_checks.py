"""Checks paths on grids by other means than the planner's: scipy's Dijkstra, and a walk along each path."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from ..grid import GridMap, PathSet

NEIGHBOURS = ((-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def costs_to_goal(grid: GridMap, goal: ArrayLike) -> np.ndarray:
    """(rows, cols) cost of a shortest path from each tile to the goal (row, col), tile lengths; inf without one."""
    goal_row, goal_col = np.asarray(goal)
    free, costs = np.pad(~grid.blocked, 1), grid.costs.astype(float)
    number = np.arange(free.size, dtype=np.int32).reshape(free.shape)
    entering = np.pad(costs, 1)
    tails, heads, weights = [], [], []
    for down, right in NEIGHBOURS[: grid.connectivity]:
        allowed = free & _moved(free, down, right)
        if down and right:
            allowed &= _moved(free, down, 0) & _moved(free, 0, right)
        tails.append(number[allowed])
        heads.append(_moved(number, down, right)[allowed])
        weights.append(_moved(entering, down, right)[allowed] * np.hypot(down, right))
    edges = np.concatenate(weights), (np.concatenate(heads), np.concatenate(tails))  # from the goal outwards
    found = dijkstra(csr_array(edges, shape=(free.size, free.size)), indices=int(number[goal_row + 1, goal_col + 1]))
    return found.reshape(free.shape)[1:-1, 1:-1]


def broken_paths(grid: GridMap, paths: PathSet, agents: Iterable[int], starts: np.ndarray, goals: np.ndarray) -> int:
    """How many paths leave the free tiles, jump, cut a corner, begin or end elsewhere, or cost something else.

    agents: whose paths are looked at; starts, goals: (N, 2) tiles of all agents
    """
    broken, free = 0, ~grid.blocked
    for agent in agents:
        tiles = paths.path(agent)
        if not len(tiles) or (tiles[0] != starts[agent]).any() or (tiles[-1] != goals[agent]).any():
            broken += 1
            continue
        rows, cols = tiles.T
        down, right = np.diff(tiles, axis=0).T
        diagonal = (down != 0) & (right != 0)
        good = free[rows, cols].all() and (np.maximum(abs(down), abs(right)) == 1).all()
        good = good and (free[rows[1:], cols[:-1]] & free[rows[:-1], cols[1:]])[diagonal].all()
        good = good and (grid.connectivity == 8 or not diagonal.any())
        cost = (grid.costs[rows[1:], cols[1:]] * np.where(diagonal, np.sqrt(2), 1.0)).sum()
        broken += not (good and np.isclose(cost, paths.cost[agent]))
    return broken


def _moved(values, down, right):
    """values[row + down, col + right] at (row, col)"""
    return np.roll(values, (-down, -right), axis=(0, 1))
