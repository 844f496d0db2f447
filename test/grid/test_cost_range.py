"""Costs far beyond those of everyday maps: corridors whose sum of costs a narrower number could not hold."""

import itertools

import numpy as np
import pytest

from gpu_planners.grid import AgentStatus, BlockPlanner, GridMap
from gpu_planners.grid.exact import fields as exact
from gpu_planners.grid.exact.values import DIAGONAL_8, INFINITE, STRAIGHT_8
from gpu_planners.grid.maps.grid_map import HIGHEST_COST, MOST_TILES
from gpu_planners.papers.ce12 import rtaa_star
from gpu_planners.verify import costs_to_goal

ALGORITHMS = {
    "exact": None,
    "streamed": exact.Settings(memory_limit_bytes=20 << 20),
    "pba_star": None,
    "astar": None,
    "rtaa_star": rtaa_star.Settings(most_moves=2**31 - 1),
}


def serpentine(side, apart, costs):
    """A map with one corridor, to and fro over rows some `apart`.

    costs: (M,) of its tiles from its one end on, M long enough
    -> map (side, side) uint8, tiles of the corridor (K, 2)
    """
    rows, across, down = np.arange(0, side - apart, apart), np.arange(side), np.arange(1, apart)
    tiles = []
    for i, row in enumerate(rows):
        tiles += [
            np.column_stack([np.full(side, row), across[:: -1 if i % 2 else 1]]),
            np.column_stack([row + down, np.full(apart - 1, tiles_end(i, side))]),
        ]
    tiles = np.concatenate(tiles)
    grid = np.zeros((side, side), np.uint8)
    grid[tiles[:, 0], tiles[:, 1]] = costs[: len(tiles)]
    return grid, tiles


def tiles_end(i, side):
    """The column where a corridor's row number i ends."""
    return 0 if i % 2 else side - 1


def corridor(side, apart, costs):
    """As `serpentine`, but up and down from column to column, and at last back along the upper edge
    -> map (side + apart, side) uint8, tiles of the corridor (K, 2)

    The windows of a streamed field lie side by side here: only the last tiles, which cost most, lead back through them.
    """
    tiles = serpentine(side, apart, costs)[1][:, ::-1]
    if tiles[-1, 0]:
        tiles = [side - 1, 0] - tiles * [1, -1]
    tiles, last = tiles + [apart, 0], tiles[-1, 1]
    up, left = np.arange(apart - 1, 0, -1), np.arange(last, -1, -1)
    tiles = np.concatenate([tiles, [(row, last) for row in up], [(0, column) for column in left]])
    grid = np.zeros((side + apart, side), np.uint8)
    grid[tiles[:, 0], tiles[:, 1]] = costs[: len(tiles)]
    return grid, tiles


def test_no_path_on_the_largest_map_costs_as_much_as_none():
    """A path enters a tile once at most."""
    assert DIAGONAL_8**2 - 2 * STRAIGHT_8**2 == 1  # no fraction with smaller numbers is nearer to sqrt(2)
    assert MOST_TILES * HIGHEST_COST * DIAGONAL_8 < int(INFINITE)
    assert 3 * int(INFINITE) < 2**63


@pytest.mark.parametrize(
    ("algorithm", "connectivity"),
    [
        case if case == ("exact", 8) else pytest.param(*case, marks=pytest.mark.slow)
        for case in itertools.product(ALGORITHMS, (4, 8))
    ],
)
def test_a_corridor_beyond_two_to_the_29(algorithm, connectivity):
    """Then an update near the starts, which `exact` repairs, takes the cost below, and another beyond again."""
    rng = np.random.default_rng(3)
    side, apart, size = 2057, 2, 32
    if algorithm == "pba_star":  # it does not turn back into a block
        side, apart, size = 2944, 4, 4
    lowest = 255 if algorithm == "rtaa_star" else 253  # where costs differ it walks to and fro for minutes
    winding = serpentine if algorithm == "rtaa_star" else corridor  # and where the goal looks near but is far, too
    costs, tiles = winding(side, apart, rng.integers(lowest, 256, side * side))
    along = costs[tiles[:, 0], tiles[:, 1]].astype(np.int64)
    starts, goal = tiles[:-4:-1], tiles[0]
    expected = (np.cumsum(along) - along)[:-4:-1]  # all steps are straight, and a start's own tile costs nothing
    planner = BlockPlanner(
        GridMap(costs, connectivity), algorithm.replace("streamed", "exact"), size, "cpu", ALGORITHMS[algorithm]
    )

    def check(expected):
        paths = planner.plan(starts, goal)
        assert (paths.status == AgentStatus.SOLVED).all()
        if algorithm == "rtaa_star":  # walks some tiles twice
            assert (paths.cost >= expected).all() and (paths.cost < 1.01 * expected).all()
        else:
            np.testing.assert_array_equal(paths.cost, expected)
            assert np.array_equal(paths.path(0), tiles[::-1])

    assert expected.min() > 2**29
    check(expected)
    if algorithm == "rtaa_star":  # keeps nothing between plans
        return
    few = len(tiles) // 400 if algorithm != "pba_star" else len(tiles) // 10
    changed = slice(-few, -len(starts))
    planner.update(*tiles[changed].T, 1)
    lower = expected - (along[changed] - 1).sum()
    assert lower.max() < 2**29
    check(lower)
    planner.update(*tiles[changed].T, along[changed])
    check(expected)


@pytest.mark.parametrize("algorithm", ["exact", "astar"])
def test_a_hall_behind_such_a_corridor_is_dijkstras(algorithm):
    """Diagonals and detours compete where costs are beyond 2**29."""
    rng = np.random.default_rng(4)
    side, hall = 2064, 40
    costs, tiles = serpentine(side, 2, np.full(side * side, 255))
    inside = rng.integers(0, 256, (hall, hall)).astype(np.uint8)
    inside[0] = 255  # beside the corridor's end
    end = 0 if tiles[-1, 1] == 0 else side - hall
    costs = np.concatenate([costs[: tiles[-1, 0] + 1], np.zeros((hall, side), np.uint8)])
    costs[-hall:, end : end + hall] = inside
    planner = BlockPlanner(GridMap(costs, 8), algorithm, device="cpu")
    local = np.concatenate([costs[tiles[-1, 0], None, end : end + hall], inside])
    reached = costs_to_goal(local, 8, (0, tiles[-1, 1] - end))
    corridor = costs[tiles[:, 0], tiles[:, 1]].astype(np.int64)[:-1].sum()  # from its end to the goal
    starts = np.argwhere(np.isfinite(reached[1:]) & (inside > 0))
    paths = planner.plan(starts[::40] + [len(costs) - hall, end], tiles[0])
    np.testing.assert_allclose(paths.cost, (corridor + reached[1 + starts[:, 0], starts[:, 1]])[::40], rtol=1e-14)
    assert paths.solved.all() and len(paths) > 20 and paths.cost.min() > 2**29
