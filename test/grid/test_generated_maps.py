"""Generated maps: the same for a seed, connected by an independent flood, with the density asked for."""

import numpy as np
import pytest

from gpu_planners.errors import GridMapError
from gpu_planners.grid import GridMap
from gpu_planners.grid.maps.generated import caves_and_rooms, largest_component, random_free_tiles, random_map

MAKERS = [random_map, caves_and_rooms]


def flood(free, row, col):
    """Tiles reached by 4-connected steps, a plain stack."""
    seen, stack = np.zeros(free.shape, bool), [(row, col)]
    while stack:
        row, col = stack.pop()
        if 0 <= row < free.shape[0] and 0 <= col < free.shape[1] and free[row, col] and not seen[row, col]:
            seen[row, col] = True
            stack += [(row - 1, col), (row + 1, col), (row, col - 1), (row, col + 1)]
    return seen


@pytest.mark.parametrize("shape", [(90, 131), (200, 64)])
def test_all_free_tiles_are_connected(shape):
    grid = caves_and_rooms(*shape, seed=3, connectivity=4)
    free = ~grid.blocked
    assert grid.shape == shape and grid.connectivity == 4 and 0.3 < free.mean() < 0.95
    assert np.array_equal(flood(free, *np.argwhere(free)[0]), free)


@pytest.mark.parametrize("make", MAKERS)
def test_a_seed_gives_one_map(make):
    first, again, other = make(60, 70, seed=5), make(60, 70, seed=5), make(60, 70, seed=6)
    assert np.array_equal(first.costs, again.costs) and not np.array_equal(first.costs, other.costs)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (1, 50), (17, 5)])
def test_small_maps(make, shape):
    assert make(*shape).shape == shape


def test_density_and_tiles_kept_free():
    grid = random_map(500, 400, density=0.2, seed=1)
    assert abs(grid.blocked.mean() - 0.2) < 5 * np.sqrt(0.16 / 200_000)
    assert random_map(5, 6, 0.0).blocked.sum() == 0
    assert np.argwhere(~random_map(5, 6, 1.0, free=[(2, 3), (0, 0)]).blocked).tolist() == [[0, 0], [2, 3]]


def test_largest_component_and_its_tiles():
    grid = GridMap([[1, 0, 1, 1], [0, 1, 0, 1], [1, 0, 0, 3]])
    expected = [[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 1]]
    assert largest_component(grid).astype(int).tolist() == expected
    tiles = random_free_tiles(grid, 200, seed=2)
    assert tiles.shape == (200, 2) and {tuple(tile) for tile in tiles} == {
        tuple(tile) for tile in np.argwhere(expected)
    }
    assert not largest_component(np.zeros((2, 2), bool)).any()
    with pytest.raises(GridMapError, match="no free tile"):
        random_free_tiles(GridMap([[0]]), 1)


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (random_map, {"density": 1.5}, "density is 1.5; allowed: a number from 0 to 1"),
        (
            random_map,
            {"free": [(0, 0), (3, -1)]},
            r"free tile \(3, -1\) lies outside; allowed: rows 0 .. 3, cols 0 .. 8",
        ),
        (caves_and_rooms, {"seed": -1}, "seed is -1; allowed: "),
    ],
)
def test_bad_options_are_named(make, options, words):
    with pytest.raises(GridMapError, match=words):
        make(4, 9, **options)


@pytest.mark.parametrize("make", MAKERS)
def test_empty_maps_are_refused(make):
    with pytest.raises(GridMapError, match="empty: 0 rows, 3 cols"):
        make(0, 3)
