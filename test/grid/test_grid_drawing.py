"""Pictures of grid maps: what is where, seen in the pixels."""

import numpy as np
import pytest

from gpu_planners.errors import GridMapError
from gpu_planners.grid import GridMap
from gpu_planners.grid.drawing import MOST_SINGLE_PATHS, draw_map


def pixels(*arguments, **options):
    return np.asarray(draw_map(*arguments, **options)).astype(int)


def tile(picture, row, col, scale):
    """Mean colour in the middle of a tile."""
    middle = slice(scale // 3, 2 * scale // 3)
    return picture[row * scale : (row + 1) * scale, col * scale : (col + 1) * scale][middle, middle].mean(axis=(0, 1))


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((30, 60), (100, 200)), ((500, 100), (200, 40)), ((1, 1), (200, 200)), ((3000, 10), (200, 1))],
)
def test_the_longer_side_has_the_size_asked_for(shape, expected):
    assert pixels(GridMap(np.ones(shape)), size=200).shape == (*expected, 3)


def test_walls_are_dark_and_costs_shade():
    picture = pixels(GridMap([[0, 1, 1], [1, 1, 5]]), size=60)
    brightness = np.array([[tile(picture, r, c, 20).mean() for c in range(3)] for r in range(2)])
    assert brightness[0, 0] < 60 and brightness[0, 2] > 200 and 120 < brightness[1, 2] < 190
    upside = pixels(GridMap([[0, 1, 1], [1, 1, 5]]), size=60, row_0_below=True)
    assert np.array_equal(upside, picture[::-1])


def test_a_field_darkens_with_its_cost_and_ends_at_the_goal():
    cols = np.arange(40.0)
    field = np.tile(cols, (4, 1))
    field[3] = np.inf
    picture = pixels(GridMap(np.ones((4, 40))), field, size=800)
    brightness = [tile(picture, 1, c, 20).mean() for c in (5, 15, 25, 38)]
    assert all(a > b + 10 for a, b in zip(brightness, brightness[1:], strict=False))
    grey = tile(picture, 3, 20, 20)
    assert np.ptp(grey) < 15  # not reached: no colour
    red = tile(picture, 1, 0, 20)
    assert red[0] > red[1] + 60 and red[0] > red[2] + 60


@pytest.mark.parametrize("count", [1, MOST_SINGLE_PATHS + 1])
def test_paths_lie_where_they_lead(count):
    grid, field = GridMap(np.ones((20, 20))), np.full((20, 20), 30.0)
    path = np.array([[5, c] for c in range(3, 15)] + [[r, 14] for r in range(6, 12)])
    without, drawn = pixels(grid, field, size=400), pixels(grid, field, [path] * count + [np.zeros((0, 2))], size=400)
    changed = np.abs(drawn - without).sum(axis=2) > 60
    on_path = np.zeros((20, 20), bool)
    on_path[tuple(path.T)] = True
    for row, col in np.ndindex(20, 20):
        assert changed[row * 20 + 7 : row * 20 + 13, col * 20 + 7 : col * 20 + 13].any() == on_path[row, col]


def test_agents_are_dots():
    grid = GridMap(np.ones((10, 10)))
    changed = np.abs(pixels(grid, agents=[[2, 7], [9, 0]], size=200) - pixels(grid, size=200)).sum(axis=2) > 30
    seen = changed.reshape(10, 20, 10, 20).any(axis=(1, 3))
    assert np.argwhere(seen).tolist() == [[2, 7], [9, 0]]


def test_a_large_map_is_thinned():
    costs = np.ones((1000, 1000))
    costs[:, 500:] = 0
    picture = pixels(GridMap(costs), np.zeros((1000, 1000)) + [np.arange(1000)], size=50)
    assert picture[25, 40].mean() < 60 < picture[25, 20].mean()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"field": np.ones((2, 2))}, r"field has the shape \(2, 2\); allowed: the map's, \(3, 3\)"),
        ({"size": 0}, "size is 0; allowed: pixels 1 .. 20000"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(GridMapError, match=words):
        draw_map(GridMap(np.ones((3, 3))), **options)
