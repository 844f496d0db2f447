"""Costs far beyond those of everyday maps: corridors whose sum of costs a narrower number could not hold."""

import numpy as np
import pytest
from grid_oracle import check_paths, cost_of, dijkstra

from gpu_planners.grid import AgentStatus, BlockPlanner, GridMap, block_field, rtaa_star
from gpu_planners.grid.grid_map import HIGHEST_COST, MOST_TILES
from gpu_planners.grid.value_blocks import DIAGONAL_8, NEVER, STRAIGHT_8

SIDE = 2056  # of a map with a corridor of more than 2**29 / 255 tiles
ALGORITHMS = {
    "exact": None,
    "streamed": block_field.Settings(memory_limit_bytes=20 << 20),
    "pba_star": None,
    "rtaa_star": rtaa_star.Settings(most_moves=2**31 - 1),
    "astar": None,
}


def serpentine(side, costs):
    """(side, side) uint8: one corridor, to and fro over every second row, of costs (M,) from its one end on, M long enough
    -> map, tiles of the corridor (K, 2)"""
    rows = np.arange(0, side, 2)
    there = np.stack([np.repeat(rows, side).reshape(-1, side), np.tile(np.arange(side), (len(rows), 1))], axis=2)
    there[1::2, :, 1] = there[1::2, ::-1, 1]
    doors = np.stack([rows[:-1] + 1, np.where(np.arange(len(rows) - 1) % 2, 0, side - 1)], axis=1)
    tiles = np.concatenate([np.concatenate([there[:-1], doors[:, None]], axis=1).reshape(-1, 2), there[-1]])
    grid = np.zeros((side, side), np.uint8)
    grid[tiles[:, 0], tiles[:, 1]] = costs[: len(tiles)]
    return grid, tiles


def test_no_path_on_the_largest_map_costs_as_much_as_none():
    """A path enters a tile once at most."""
    assert DIAGONAL_8**2 - 2 * STRAIGHT_8**2 == 1  # no fraction with smaller numbers is nearer to sqrt(2)
    assert MOST_TILES * HIGHEST_COST * DIAGONAL_8 < int(NEVER)
    assert 3 * int(NEVER) < 2**63


@pytest.mark.parametrize("connectivity", [4, 8])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_corridor_beyond_two_to_the_29(algorithm, connectivity):
    """Before and after a repair that takes the cost beyond, and one that brings it back."""
    rng = np.random.default_rng(3)
    costs, tiles = serpentine(SIDE, rng.integers(253, 256, SIDE * SIDE))
    goal, start = tiles[0], tiles[-1]
    behind = np.cumsum(costs[tiles[:, 0], tiles[:, 1]].astype(np.int64)[:-1])  # by index + 1; all steps are straight
    assert behind[-1] > 2**29
    planner = BlockPlanner(GridMap(costs, connectivity), algorithm.replace("streamed", "exact"), device="cpu", settings=ALGORITHMS[algorithm])
    starts = np.array([start, tiles[len(tiles) // 2], tiles[-2]])
    expected = np.array([behind[-1], behind[len(tiles) // 2 - 1], behind[-2]], float)
    paths = planner.plan(starts, goal)
    assert (paths.status == AgentStatus.SOLVED).all()
    np.testing.assert_array_equal(paths.cost, expected)
    check_paths(planner.grid, paths, starts, goal, agents=[1])
    cheap = tiles[1:400_000]
    planner.update(cheap[:, 0], cheap[:, 1], 1)
    saved = int((costs[cheap[:, 0], cheap[:, 1]].astype(int) - 1).sum())
    np.testing.assert_array_equal(planner.plan(starts, goal).cost, expected - saved)
    planner.update(cheap[:, 0], cheap[:, 1], costs[cheap[:, 0], cheap[:, 1]])
    np.testing.assert_array_equal(planner.plan(starts, goal).cost, expected)


def test_corridors_and_halls_beyond_two_to_the_29_are_dijkstras():
    """A corridor that leads into a hall where diagonals and detours compete."""
    rng = np.random.default_rng(4)
    corridor, tiles = serpentine(SIDE, np.full(SIDE * SIDE, 255))
    hall = 40
    costs = np.zeros((SIDE + hall, SIDE), np.uint8)
    costs[:SIDE] = corridor
    costs[SIDE:, :hall] = costs[SIDE:, -hall:] = rng.integers(0, 256, (hall, hall))
    end = tiles[-1]
    at_end = slice(0, hall) if end[1] == 0 else slice(SIDE - hall, SIDE)
    costs[SIDE - 1, end[1]] = 255
    costs[SIDE, end[1]] = 9
    planner = BlockPlanner(GridMap(costs, 8), device="cpu")
    field = planner.field(tiles[0])[SIDE:, at_end]
    local = np.concatenate([np.zeros((1, hall), np.uint8), costs[SIDE:, at_end]])
    local[0, 0 if end[1] == 0 else hall - 1] = 255
    pairs, inside = dijkstra(local, 8, (0, int(np.argmax(local[0]))))
    before = int(costs[tiles[:, 0], tiles[:, 1]].astype(int).sum())  # the corridor, entered up to its end
    expected = np.where(np.isfinite(inside), cost_of(before + pairs[..., 0], pairs[..., 1]), np.inf)[1:]
    np.testing.assert_allclose(field, expected, rtol=1e-13)
    assert np.isfinite(expected).sum() > 500
