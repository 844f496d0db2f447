"""Steps on grids, one at a time in plain Python, and what tests of several planners of paths need."""

import numpy as np

STRAIGHT = ((-1, 0), (0, 1), (1, 0), (0, -1))
STEPS = (*STRAIGHT, (-1, 1), (1, 1), (1, -1), (-1, -1))  # in the order of move codes


def steps_from(costs, connectivity, row, col):
    """Allowed moves from a tile: (move code, row, col, cost of the entered tile)."""
    rows, cols = costs.shape
    for k, (down, right) in enumerate(STEPS[:connectivity]):
        r, c = row + down, col + right
        if 0 <= r < rows and 0 <= c < cols and costs[r, c] and (k < 4 or (costs[r, col] and costs[row, c])):
            yield k, r, c, int(costs[r, c])


def random_costs(rng, rows, cols, blocked, highest):
    """(rows, cols) uint8: a share `blocked` of obstacles, else costs 1 .. highest."""
    return np.where(rng.random((rows, cols)) < blocked, 0, rng.integers(1, highest + 1, (rows, cols))).astype(np.uint8)


def random_tiles(rng, costs, count):
    """(count, 2) int32 free tiles"""
    free = np.argwhere(np.asarray(costs) > 0)
    return free[rng.integers(len(free), size=count)].astype(np.int32)


def same_paths(one, other):
    """Two PathSets give every agent the same answer."""
    for name in ("status", "cost", "length"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_array_equal(one.paths()[0], other.paths()[0])
