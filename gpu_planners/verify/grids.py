"""Checks of paths on grids: costs by scipy's Dijkstra, and a walk along each path.

costs: (rows, cols), 0 blocked. A step costs what the entered tile costs, times sqrt(2) where it is diagonal; a diagonal
step needs both tiles beside it free.
"""

from collections.abc import Iterable
from typing import Annotated, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from ..arguments import Numbers, checked
from ..errors import GpuPlannersError, GridMapError

Costs = Annotated[ArrayLike, Numbers((None, None), kinds="biuf")]
Tile = Annotated[ArrayLike, Numbers((2,))]
Tiles = Annotated[ArrayLike, Numbers((None, 2))]
NEIGHBOURS = ((-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


class BrokenPathError(GpuPlannersError):
    """Something is no path; the text says why."""


@checked(GridMapError)
def costs_to_goal(costs: Costs, connectivity: int, goal: Tile) -> np.ndarray:
    """(rows, cols) cost of a shortest path from each tile to the goal (row, col), tile lengths; inf without one.

    connectivity: 4 or 8
    """
    goal_row, goal_col = np.asarray(goal).astype(int)
    if connectivity not in (4, 8) or not ((np.asarray(goal) >= 0) & (np.asarray(goal) < np.shape(costs))).all():
        raise GridMapError(f"goal is {np.asarray(goal)}, connectivity {connectivity}; allowed: a tile, and 4 or 8")
    entering = np.pad(np.asarray(costs).astype(float), 1)
    free, number = entering > 0, np.arange(entering.size, dtype=np.int32).reshape(entering.shape)
    tails, heads, weights = [], [], []
    for down, right in NEIGHBOURS[:connectivity]:
        allowed = free & _moved(free, down, right)
        if down and right:
            allowed &= _moved(free, down, 0) & _moved(free, 0, right)
        tails.append(number[allowed])
        heads.append(_moved(number, down, right)[allowed])
        weights.append(_moved(entering, down, right)[allowed] * np.hypot(down, right))
    edges = np.concatenate(weights), (np.concatenate(heads), np.concatenate(tails))  # from the goal outwards
    found = dijkstra(csr_array(edges, shape=(free.size, free.size)), indices=int(number[goal_row + 1, goal_col + 1]))
    return found.reshape(free.shape)[1:-1, 1:-1]


def _moved(values, down, right):
    """values[row + down, col + right] at (row, col)"""
    return np.roll(values, (-down, -right), axis=(0, 1))


@checked(GridMapError)
def walk(costs: Costs, connectivity: int, path: ArrayLike, start: Tile, goal: Tile) -> float:
    """The cost of a path (K, 2) [row, col] from start to goal, tile lengths.

    Raises BrokenPathError where it begins or ends elsewhere, leaves the free tiles, jumps or cuts a corner.
    """
    costs, tiles, start, goal = map(np.asarray, (costs, path, start, goal))
    if tiles.ndim != 2 or tiles.shape[1] != 2 or not len(tiles) or tiles.dtype.kind not in "iu":
        raise BrokenPathError(f"a path is {tiles.dtype} {tiles.shape}; allowed: integers (K, 2), K at least 1")
    if connectivity not in (4, 8):
        raise GridMapError(f"connectivity is {connectivity}; allowed: 4 or 8")
    tiles = tiles.astype(np.int64)
    if not np.array_equal(tiles[0], start) or not np.array_equal(tiles[-1], goal):
        raise BrokenPathError(f"it leads from {tiles[0]} to {tiles[-1]}, not from {start} to {goal}")
    (rows, cols), (down, right) = tiles.T, np.diff(tiles, axis=0).T
    _refuse(tiles, ((tiles < 0) | (tiles >= costs.shape)).any(axis=1), "is outside")
    _refuse(tiles, costs[rows, cols] == 0, "is blocked")
    diagonal = (down != 0) & (right != 0)
    far = np.maximum(abs(down), abs(right)) != 1
    _refuse(tiles, far | (diagonal if connectivity == 4 else False), "is no neighbour of the next one")
    cut = diagonal & ((costs[rows[1:], cols[:-1]] == 0) | (costs[rows[:-1], cols[1:]] == 0))
    _refuse(tiles, cut, "and the next one: a corner is cut between them")
    entered = costs[rows[1:], cols[1:]].astype(float)
    return float(entered[~diagonal].sum() + entered[diagonal].sum() * np.sqrt(2))


def _refuse(tiles, wrong, why):
    if wrong.any():
        raise BrokenPathError(f"tile {tiles[np.argmax(wrong)].tolist()} {why}")


class Grid(Protocol):
    """A GridMap."""

    costs: Any
    connectivity: int


class Paths(Protocol):
    """A PathSet."""

    solved: np.ndarray
    cost: np.ndarray
    length: np.ndarray

    def paths(self, agents: Any) -> tuple[np.ndarray, np.ndarray]: ...


@checked(GridMapError)
def broken_paths(
    grid: Grid, paths: Paths, starts: Tiles, goals: ArrayLike, agents: Iterable[int] | None = None
) -> dict[int, str]:
    """{agent: what is wrong}: its path is none (see `walk`), or its stated cost and length are not its path's.

    grid: GridMap; paths: PathSet; starts: (N, 2) tiles of all agents; goals: likewise, or one; agents: whose paths are
    looked at, None: all. An agent without a solution has no path, length 0 and an infinite cost.
    """
    starts, goals = np.asarray(starts), np.asarray(goals)
    if goals.shape not in ((2,), (1, 2), starts.shape):
        raise GridMapError(f"goals has the shape {goals.shape}; allowed: (2,) or {starts.shape}")
    goals = np.broadcast_to(goals, starts.shape)
    looked_at = np.arange(len(starts)) if agents is None else np.asarray(agents)
    tiles, offsets = paths.paths(looked_at)
    broken = {}
    for i, begin, end in zip(looked_at.tolist(), offsets[:-1], offsets[1:], strict=True):
        length, cost, steps = paths.length[i], paths.cost[i], end - begin - 1
        if not paths.solved[i]:
            if end > begin or length or np.isfinite(cost):
                broken[i] = f"it is not solved, but has {end - begin} tiles, length {length} and cost {cost}"
            continue
        try:
            walked = walk(grid.costs, grid.connectivity, tiles[begin:end], starts[i], goals[i])
        except BrokenPathError as error:
            broken[i] = str(error)
            continue
        if abs(walked - cost) > 1e-9 * max(1, walked) or length != steps:
            broken[i] = f"it has {steps} steps and costs {walked}, not {length} and {cost}"
    return broken
