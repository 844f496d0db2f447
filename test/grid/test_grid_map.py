"""GridMap: what it refuses, where its tiles lie, and its changes against plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_planners.errors import GridMapError
from gpu_planners.grid import GridMap

OPEN = np.ones((3, 5), np.uint8)


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        (np.zeros((0, 4), np.uint8), r"empty.*\(0, 4\)"),
        ([], r"\(0,\); allowed: \(rows, cols\)"),
        (np.ones(7), r"\(7,\); allowed: \(rows, cols\)"),
        (np.ones((2, 2, 2)), r"\(2, 2, 2\)"),
        ([[1, 2], [3, 256]], r"tile \(1, 1\) is 256; allowed: whole numbers 0"),
        ([[1, -1], [300, 1]], r"tile \(0, 1\) is -1"),
        ([[1, 1.5]], r"tile \(0, 1\) is 1.5"),
        ([[np.nan, 1]], r"tile \(0, 0\) is nan"),
        ([["a", "b"]], "costs has the type <U1; allowed: numbers"),
        ([[1, 2], [3]], "costs is no array of numbers; allowed: numbers in rows of the same length"),
    ],
)
def test_bad_costs_are_named(costs, words):
    with pytest.raises(GridMapError, match=words):
        GridMap(costs)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"connectivity": 6}, "connectivity is 6; allowed: 4 or 8"),
        ({"resolution": 0}, "resolution is 0; allowed: a number from 1e-06 to 1e.06"),
        ({"resolution": np.inf}, "resolution is inf"),
        ({"resolution": "fine"}, "resolution is 'fine'"),
        ({"origin": (0, np.nan, 0)}, "origin is nan; allowed: a number from -1e.09 to 1e.09"),
        ({"origin": (0, 0)}, r"origin is \(0, 0\); allowed: three"),
        ({"origin": None}, "origin is None; allowed: three"),
    ],
)
def test_bad_fields_are_named(arguments, words):
    with pytest.raises(GridMapError, match=words):
        GridMap(OPEN, **arguments)


def test_what_converts_exactly_is_taken_and_kept_from_change():
    given_costs = np.array([[0, 1], [255, 7]])
    for dtype in (np.uint8, np.int16, np.int64, np.float32):
        costs = given_costs.astype(dtype)
        grid = GridMap(costs)
        costs[0, 0] = 9
        assert grid.costs.dtype == np.uint8 and np.array_equal(grid.costs, given_costs)
    assert np.array_equal(GridMap(given_costs > 0).costs, given_costs > 0)
    for array in (grid.costs, grid.blocked):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1
    assert type(GridMap(OPEN, np.int8(4)).connectivity) is type(GridMap(OPEN, 8.0).connectivity) is int
    assert (grid.rows, grid.cols, grid.shape) == (2, 2, (2, 2)) and np.array_equal(grid.blocked, given_costs == 0)


def test_uniform_cost():
    for costs, uniform, least in (
        ([[0, 3], [3, 0]], 3, 3),
        ([[0, 3], [2, 3]], 0, 2),
        ([[0, 0]], 0, 0),
        ([[255]], 255, 255),
    ):
        assert (GridMap(costs).uniform_cost, GridMap(costs).least_cost) == (uniform, least)


@given(st.floats(-9, 9), st.floats(-9, 9), st.floats(-7, 7), st.floats(0.01, 5))
def test_tiles_and_centres_with_a_turned_origin(x, y, yaw, resolution):
    grid = GridMap(OPEN, 8, resolution, (x, y, yaw))
    tiles = np.argwhere(OPEN)
    centres = grid.centres_of(tiles)
    assert np.array_equal(grid.tiles_of(centres), tiles)
    rotation = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    local = np.stack([(tiles[:, 1] + 0.5), (tiles[:, 0] + 0.5)], axis=1) * resolution  # x with columns, y with rows
    np.testing.assert_allclose(centres, local @ rotation.T + [x, y], atol=1e-9)
    for inside, corner in ((0.01, True), (-0.01, False)):  # just inside and outside of the outer corner
        row, col = grid.tiles_of((rotation @ [inside * resolution, inside * resolution] + [x, y])[None])[0]
        assert ((row, col) == (0, 0)) == corner


def test_points_that_are_not_finite_have_no_tile():
    tiles = GridMap(OPEN).tiles_of([[np.nan, 1.0], [1.0, np.inf], [-0.5, 7.2]])
    assert np.isnan(tiles[0, 1]) and tiles[1, 0] == np.inf and tuple(tiles[2]) == (7, -1)
    with pytest.raises(GridMapError, match=r"points has the shape \(2,\); allowed: \(N, 2\)"):
        GridMap(OPEN).tiles_of([1.0, 2.0])
    with pytest.raises(GridMapError, match="tiles has the type <U"):
        GridMap(OPEN).centres_of([("a", 1)])


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 12), st.floats(0, 4))
def test_inflation_by_a_plain_double_loop(seed, rows, cols, tiles):
    rng = np.random.default_rng(seed)
    grid = GridMap((rng.random((rows, cols)) > 0.1) * rng.integers(1, 256, (rows, cols)), resolution=0.3)
    expected = grid.costs.copy()
    for row, col in np.argwhere(grid.blocked):
        for r in range(rows):
            for c in range(cols):
                if np.hypot(r - row, c - col) < tiles - 1e-6:
                    expected[r, c] = 0
    assert np.array_equal(grid.inflated(tiles * 0.3).costs, expected)


def test_inflation_up_to_a_multiple_of_the_resolution():
    grid = GridMap([[0, 1, 1, 1, 1]], resolution=0.1)
    assert grid.inflated(0.1 * 3).costs.tolist() == [[0, 0, 0, 1, 1]]
    for radius in (-0.1, np.nan, np.inf, "wide"):
        with pytest.raises(GridMapError, match="radius"):
            grid.inflated(radius)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 20), st.booleans())
def test_changed_tiles_one_after_the_other(seed, count, counted):
    rng = np.random.default_rng(seed)
    grid = GridMap(rng.integers(0, 3, (4, 6)), 4, 0.5, (1, 2, 3))
    before = grid.costs.copy()
    assert not counted or grid.uniform_cost in (0, 1, 2)
    rows, cols, costs = rng.integers(0, 4, count), rng.integers(0, 6, count), rng.integers(0, 256, count)
    changed, expected = grid.changed(rows, cols, costs), before.copy()
    for row, col, cost in zip(rows, cols, costs, strict=True):
        expected[row, col] = cost
    assert np.array_equal(changed.costs, expected) and np.array_equal(grid.costs, before)
    fresh = GridMap(expected, 4, 0.5, (1, 2, 3))
    for name in ("uniform_cost", "least_cost", "connectivity", "resolution", "origin"):
        assert getattr(changed, name) == getattr(fresh, name)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (([0, 3], [0, 0], 1), r"changed tile 1 is \(3, 0\); allowed: rows 0 .. 2, cols 0 .. 4"),
        (([0], [-1], 1), r"is \(0, -1\)"),
        (([1, 2], [1, 2], [1, 256]), r"tile \(2, 2\) gets the cost 256"),
        (([1], [1], [0.5]), r"tile \(1, 1\) gets the cost 0.5"),
        (([1, 2], [1], 1), r"rows \(2,\), cols \(1,\)"),
        (([1, 2], [1, 1], [1, 2, 3]), r"costs \(3,\)"),
        (([0.5], [1], 1), "rows of type float64"),
        (([0], [1], ["a"]), "costs of changed tiles has the type <U1; allowed: numbers"),
    ],
)
def test_bad_changes_are_named(change, words):
    with pytest.raises(GridMapError, match=words):
        GridMap(OPEN).changed(*change)


def test_occupancy_values():
    data = np.array([[-1, 0, 1, 64, 65, 100]], np.int8)

    def costs(**options):
        return GridMap.from_occupancy(data, **options).costs.tolist()[0]

    assert costs() == [0, 1, 1, 1, 0, 0]
    assert costs(unknown="free", occupied_from=100) == [1, 1, 1, 1, 1, 0]
    assert costs(unknown=77, occupied_from=1) == [77, 1, 0, 0, 0, 0]
    assert costs(highest_cost=65) == [0, 1, 2, 65, 0, 0]
    assert costs(highest_cost=11, free_below=55, occupied_from=65)[:4] == [0, 1, 1, 11]
    ramp = (
        GridMap.from_occupancy(np.arange(101)[None], occupied_from=90, free_below=20, highest_cost=200)
        .costs[0]
        .astype(int)
    )
    assert (ramp[:20] == 1).all() and (np.diff(ramp[19:90]) > 0).all() and ramp[89] == 200 and (ramp[90:] == 0).all()


def test_occupancy_of_a_message():
    flat = np.arange(6, dtype=np.int8)
    grid = GridMap.from_occupancy(flat, 0.05, (1, 2, 0.5), 4, shape=(2, 3), occupied_from=4)
    assert grid.costs.tolist() == [[1, 1, 1], [1, 0, 0]]
    assert (grid.connectivity, grid.resolution, grid.origin) == (4, 0.05, (1, 2, 0.5))


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        ([[0, 101]], {}, r"data at tile \(0, 1\) is 101; allowed: -1"),
        ([[0], [-2]], {}, r"tile \(1, 0\) is -2"),
        ([0, 1, 2], {"shape": (2, 2)}, r"shape \(3,\); allowed: \(4,\) for 2 rows and 2 cols"),
        ([], {"shape": (0, 7)}, "number of rows is 0; allowed: whole numbers 1 .. 2000000000"),
        ([[0]], {"unknown": "void"}, "unknown is 'void'; allowed: 'free', 'blocked' or a cost 0 .. 255"),
        ([[0]], {"unknown": 256}, "unknown is 256"),
        ([[0]], {"unknown": 1.5}, "unknown is 1.5"),
        ([[0]], {"occupied_from": 0}, "occupied_from is 0; allowed: 1 .. 100"),
        ([[0]], {"free_below": 70}, "free_below is 70; allowed: 0 .. 65"),
        ([[0]], {"highest_cost": 0}, "highest_cost is 0; allowed: 1 .. 255"),
    ],
)
def test_bad_occupancy_is_named(data, options, words):
    with pytest.raises(GridMapError, match=words):
        GridMap.from_occupancy(data, **options)
