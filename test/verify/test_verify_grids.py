"""The check of paths on grids: its costs are those of plain relaxation, and whatever is wrong with a path is found."""

import numpy as np
import pytest
from grid_paths import random_costs, steps_from

from gpu_planners.errors import GridMapError
from gpu_planners.grid import GridMap, PathSet
from gpu_planners.verify import BrokenPathError, broken_paths, costs_to_goal, walk


def relaxed(costs, connectivity, goal):
    """Costs to the goal, lowered until nothing changes. A step costs the tile that it enters."""
    lengths = np.full(costs.shape, np.inf)
    lengths[tuple(goal)] = 0
    for _ in range(costs.size):
        before = lengths.copy()
        for row, col in np.argwhere(costs):
            for k, r, c, entered in steps_from(costs, connectivity, row, col):
                lengths[row, col] = min(lengths[row, col], lengths[r, c] + entered * (2**0.5 if k > 3 else 1.0))
        if np.array_equal(lengths, before):
            return lengths


@pytest.mark.parametrize("connectivity", [4, 8])
def test_costs_are_those_of_plain_relaxation(connectivity):
    costs = random_costs(np.random.default_rng(1), 17, 23, 0.3, 9)
    goal = np.argwhere(costs)[100]
    expected = relaxed(costs, connectivity, goal)
    assert np.allclose(costs_to_goal(costs, connectivity, goal), expected, rtol=1e-12) and np.isinf(expected).any()


def test_broken_paths_are_found():
    costs = np.ones((4, 6), np.uint8)
    costs[1, 2] = 0
    grid, start, goal = GridMap(costs), [(0, 0)], [(0, 4)]

    def broken(*moves, cost=None, status=0, grid=grid, goal=goal):
        length = sum(2**0.5 if move > 3 else 1.0 for move in moves) if cost is None else cost
        paths = PathSet.of_moves(start, [status], [length], moves, [0, len(moves)], 8)
        return broken_paths(grid, paths, start, goal).get(0, "")

    assert broken(1, 1, 1, 1) == ""
    assert "not 4 and 4.5" in broken(1, 1, 1, 1, cost=4.5)
    assert "leads from [0 0] to [0 3]" in broken(1, 1, 1)
    assert "[1, 2] is blocked" in broken(2, 1, 1, 4, 1)
    assert broken(5, 2, 1, 1, 4, 0) == ""
    assert "a corner is cut" in broken(2, 1, 5, 1, 4, 0)
    assert "no neighbour" in broken(5, 2, 1, 1, 4, 0, grid=GridMap(costs, 4))
    assert "not solved" in broken(1, 1, status=1)


def test_a_walk_refuses_what_is_no_path():
    costs = np.ones((3, 3))
    assert walk(costs, 8, [[0, 0], [1, 1], [1, 2]], [0, 0], [1, 2]) == pytest.approx(1 + 2**0.5)
    for path, word in (
        ([[0, 0], [2, 2]], "no neighbour"),
        ([[0, 0], [0, 0]], "no neighbour"),
        ([[0, 0], [0, -1]], "outside"),
    ):
        with pytest.raises(BrokenPathError, match=word):
            walk(costs, 8, path, path[0], path[-1])
    with pytest.raises(BrokenPathError, match="integers"):
        walk(costs, 8, np.zeros((0, 2)), [0, 0], [0, 0])
    with pytest.raises(GridMapError, match="goal is"):
        costs_to_goal(costs, 8, [3, 0])
