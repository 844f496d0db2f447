"""Wrong input to the Python API of grids raises the package's own errors, and a refused call changes nothing."""

import numpy as np
import pytest

from gpu_planners.errors import GridMapError, SettingsError
from gpu_planners.grid import AgentStatus, BlockPlanner, GridMap, astar, planner
from gpu_planners.grid import paths as agents
from gpu_planners.grid.exact import fields as exact
from gpu_planners.grid.maps import grid_map
from gpu_planners.papers.ce12 import pba_star, rtaa_star, shared

ONES = np.ones((6, 7), np.uint8)
HUGE = 10**400  # no float holds it


class Strange:
    def __float__(self):
        raise RuntimeError("not a number")


@pytest.mark.parametrize(
    "costs",
    [
        None,
        5,
        "map",
        b"map",
        {},
        [None],
        [[None, 1]],
        [[HUGE]],
        [[2**64]],
        [[-(2**63)]],
        [[1, "2"]],
        [["1"]],
        [[1j]],
        [[np.inf]],
        [[-1]],
        [[256]],
        [[-0.5]],
        [[np.nan]],
        ["a", ["b"]],
        [[[1]]],
        np.ones((2, 3), "M8[s]"),
        np.ones((2, 2), [("a", int)]),
        np.full((2, 2), 1e30),
        Strange(),
        [Strange()],
        np.array([[2**64 - 1]], np.uint64),
        np.float16([[0.5]]),
        np.longdouble([[300]]),
    ],
)
def test_costs(costs):
    with pytest.raises(GridMapError, match="costs|the map is empty"):
        GridMap(costs)


@pytest.mark.parametrize("kind", ["?", "i1", ">i2", "u4", ">f8", "f2", "g"])
def test_costs_of_every_type(kind):
    grid = GridMap(ONES.astype(kind)[::2, ::-1])
    assert grid.costs.dtype == np.uint8 and grid.costs.flags.c_contiguous and (grid.costs == 1).all()


@pytest.mark.parametrize("name", ["connectivity", "resolution", "origin"])
@pytest.mark.parametrize(
    "value",
    [
        None,
        "8",
        b"8",
        True,
        [4],
        np.array([4, 8]),
        np.nan,
        np.inf,
        -4,
        0,
        HUGE,
        1j,
        {},
        Strange(),
        (0, 0),
        (0, 0, None),
        (1e300, 0, 0),
        (0, 0, "1"),
    ],
)
def test_fields(name, value):
    with pytest.raises(GridMapError, match=f"{name} is .*; allowed: "):
        GridMap(ONES, **{name: value})


@pytest.mark.parametrize("resolution", [1e-300, 1e300, 1e-7])
def test_resolutions_at_which_tiles_cannot_be_told_apart(resolution):
    with pytest.raises(GridMapError, match="resolution"):
        GridMap(ONES, resolution=resolution)
    grid = GridMap(ONES, resolution=1e-6, origin=(1e9, -1e9, 3.0))
    tiles = np.argwhere(ONES)
    assert np.abs(grid.tiles_of(grid.centres_of(tiles)) - tiles).max() <= 1


def test_the_most_tiles(monkeypatch):
    monkeypatch.setattr(grid_map, "MOST_TILES", 41)
    with pytest.raises(GridMapError, match="the map has 6 x 7 tiles; allowed: at most 41 in all"):
        GridMap(ONES)
    with pytest.raises(GridMapError, match="number of cols is 42"):
        GridMap.from_occupancy([0], shape=(1, 42))


@pytest.mark.parametrize(
    ("data", "shape"),
    [
        ([[np.nan]], None),
        ([[0.5]], None),
        ([[255]], None),
        ([0], (1.0, 1)),
        ([0], 5),
        ([0], "ab"),
        ([0], (True, 1)),
        ([0], (-1, -1)),
        ([0], (HUGE, 1)),
        ("map", (1, 1)),
    ],
)
def test_occupancy(data, shape):
    with pytest.raises(GridMapError):
        GridMap.from_occupancy(data, shape=shape)


@pytest.mark.parametrize("name", ["unknown", "occupied_from", "free_below", "highest_cost"])
@pytest.mark.parametrize("value", [None, "x", True, 1.0, np.nan, HUGE, -1, [1], np.array([1, 2])])
def test_occupancy_options(name, value):
    with pytest.raises(GridMapError, match=f"{name} is .*; allowed: "):
        GridMap.from_occupancy([[0]], **{name: value})


@pytest.mark.parametrize(
    "points",
    [None, "ab", [["0", "1"]], [[1j, 0]], [[None, 0]], [[HUGE, 0]], [1, 2], [[1, 2, 3]], [[1], [2, 3]], Strange()],
)
def test_points_and_tiles(points):
    for convert in (GridMap(ONES).tiles_of, GridMap(ONES).centres_of):
        with pytest.raises(GridMapError, match="points|tiles"):
            convert(points)


@pytest.mark.parametrize("radius", [None, "1", -1, np.nan, np.inf, HUGE, [1]])
def test_radius(radius):
    with pytest.raises(GridMapError, match="radius is"):
        GridMap(ONES).inflated(radius)


@pytest.mark.parametrize(
    "arguments",
    [
        {"algorithm": None},
        {"algorithm": []},
        {"algorithm": "Exact"},
        {"algorithm": HUGE},
        {"block_size": 12},
        {"block_size": True},
        {"block_size": "8"},
        {"block_size": np.array([8, 16])},
        {"block_size": np.nan},
        {"block_size": None},
        {"settings": {}},
        {"settings": astar.Settings()},
        {"settings": "fast"},
    ],
)
def test_planner_arguments(arguments):
    with pytest.raises(SettingsError):
        BlockPlanner(GridMap(ONES), device="cpu", **arguments)


@pytest.mark.parametrize("grid", [None, ONES, [[1]], "map", GridMap])
def test_planner_of_no_map(grid):
    with pytest.raises(GridMapError, match="grid is a .*; allowed: a GridMap"):
        BlockPlanner(grid, device="cpu")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (exact.Settings, "memory_limit_bytes"),
        (pba_star.Settings, "loops"),
        (pba_star.Settings, "most_rounds"),
        (pba_star.Settings, "memory_mb"),
        (rtaa_star.Settings, "lookahead"),
        (rtaa_star.Settings, "most_moves"),
        (rtaa_star.Settings, "table_size"),
        (rtaa_star.Settings, "memory_mb"),
        (astar.Settings, "time_limit_s"),
        (exact.Settings, "time_limit_s"),
    ],
)
@pytest.mark.parametrize("value", [None, "16", True, np.nan, -1, HUGE, -HUGE, [16], np.array([16, 32]), 1j, Strange()])
def test_settings(kind, name, value):
    if name == "time_limit_s" and value is HUGE:
        return  # longer than anybody waits
    with pytest.raises(SettingsError, match=f"{name} is .*; allowed: "):
        kind(**{name: value})


def test_numbers_that_python_refuses_to_write_out():
    with pytest.raises(SettingsError, match="memory_mb is a value of type int; allowed"):
        pba_star.Settings(memory_mb=10**5000)
    with pytest.raises(GridMapError, match="resolution is a value of type int"):
        GridMap(ONES, resolution=10**5000)


def test_settings_of_numpys_types():
    exact.Settings(memory_limit_bytes=np.int64(10**6))
    astar.Settings(time_limit_s=np.float32(0.5))
    rtaa_star.Settings(lookahead=np.uint8(7))


BAD_TILES = [None, "ab", [["0", "1"]], [["0", 1]], [[1j, 0]], [[None, 0]], [[HUGE, 0]], [1, 2, 3], [[1, 2, 3]], [[1],
[2, 3]], [[True, False]],
             np.zeros((3, 0)), np.zeros((0, 3)), np.zeros((1, 1, 2)), 7, {}, Strange(), np.zeros((1, 2),
             "M8[s]")]  # fmt: skip


@pytest.mark.parametrize("tiles", BAD_TILES)
def test_starts_and_goals(tiles):
    made = BlockPlanner(GridMap(ONES), device="cpu")
    with pytest.raises(GridMapError, match="starts"):
        made.plan(tiles, [0, 0])
    with pytest.raises(GridMapError, match="goals"):
        made.plan([[0, 0]], tiles)
    with pytest.raises(GridMapError, match="goals"):
        made.prepare(tiles)
    with pytest.raises(GridMapError, match="goal"):
        made.field(tiles)


@pytest.mark.parametrize("kind", ["i1", "u1", ">i2", "i4", ">i4", "u4", "i8", "u8", "f2", "f4", ">f4", "f8", "g"])
def test_tiles_of_every_type(kind):
    paths = BlockPlanner(GridMap(ONES), device="cpu").plan(
        np.array([[0, 0], [5, 6]], kind)[:, :], np.array([3, 3], kind)
    )
    assert paths.solved.all() and paths.path(0)[0].tolist() == [0, 0]


def test_tiles_far_outside_are_outside():
    made, outside = BlockPlanner(GridMap(ONES), device="cpu"), AgentStatus.START_OUTSIDE
    for tile in (2**63, 2**64 - 1, 2**32, 2**31, -(2**63), 6):
        assert made.plan([[tile, 0]], [0, 0]).status[0] == outside, tile
    assert (
        made.plan([[-0.001, 0], [1e300, 0], [5.999, 0]], [0, 0]).status == [outside, outside, AgentStatus.SOLVED]
    ).all()
    for goal in ([-0.5, 0], [6, 0], [np.nan, 0], [np.inf, 0], [[0, 0], [1, 1]], []):
        with pytest.raises(GridMapError, match="not a free tile"):
            made.field(goal)


def test_no_agents():
    for algorithm in planner.ALGORITHMS:
        made = BlockPlanner(GridMap(ONES), algorithm, device="cpu")
        for starts, goals in (([], [0, 0]), ([], []), (np.zeros((0, 2)), np.zeros((0, 2)))):
            paths = made.plan(starts, goals)
            assert len(paths) == 0 and paths.paths()[0].shape == (0, 2) and len(paths.words) == 0


BAD_CHANGES = [
    ([0], [0, 1], 1), ([0, 1], [0, 1], [1]), ([0.0], [0], 1), ([np.nan], [0], 1), (["0"], [0], 1), ([True], [0], 1),
    ([None], [0], 1), ([[0]], [[0]], 1),
    ([0], [0], None), ([0], [0], "1"), ([0], [0], np.nan), ([0], [0], -1), ([0], [0], 256), ([0], [0], 0.5), ([0],
    [0], np.inf), ([0], [0], HUGE),
    ([0], [0], [[1]]), ([6], [0], 1), ([-1], [0], 1), ([0], [7], 1), ([2**64 - 1], [0], 1), ([2**40], [0], 1),
    ([HUGE], [0], 1), ([0, [1]], [0, 1], 1),
    ([0, 1, 2], [0, 1, 9], [0, 0, 0]), ([0, 1], [0, 1], [0, 300]), (np.array([2**63], np.uint64), [0], 1),
]  # fmt: skip


@pytest.mark.parametrize("change", BAD_CHANGES)
def test_changes(change):
    costs = np.random.default_rng(1).integers(0, 9, (6, 7)).astype(np.uint8)
    costs[0, 0] = costs[-1, -1] = 1
    made = BlockPlanner(GridMap(costs), device="cpu")
    before, field = made.plan([[0, 0]], [5, 6]), made.field((5, 6))
    for call in (made.update, made.grid.changed):
        with pytest.raises(GridMapError):
            call(*change)
    assert np.array_equal(made.grid.costs, costs) and np.array_equal(made.field((5, 6)), field)
    assert np.array_equal(made.plan([[0, 0]], [5, 6]).words, before.words)


@pytest.mark.parametrize("algorithm", planner.ALGORITHMS)
def test_changes_that_are_none(algorithm):
    made = BlockPlanner(GridMap(ONES), algorithm, device="cpu")
    for rows, cols, costs in (
        ([], [], 1),
        ([], [], []),
        ([0], [0], 1),
        (0, 0, 1),
        ([1, 1], [2, 2], [0, 1]),
    ):  # the last one of a tile counts
        made.update(rows, cols, costs)
    assert np.array_equal(made.grid.costs, ONES) and made.plan([[0, 0]], [5, 6]).solved.all()
    made.update([1, 1], [2, 2], [1, 0])
    assert np.argwhere(made.grid.blocked).tolist() == [[1, 2]]


def test_a_change_that_the_memory_limit_does_not_allow():
    """Weighted fields take more memory than uniform ones."""
    costs = np.ones((300, 300), np.uint8)
    made = BlockPlanner(GridMap(costs, 4), device="cpu", settings=exact.Settings(memory_limit_bytes=30_000))
    before = made.plan([[0, 0]], [299, 299])
    for _ in range(2):
        with pytest.raises(SettingsError, match="memory_limit_bytes is 30000: too little"):
            made.update([5, 5], [5, 5], [3, 7])
        assert np.array_equal(made.grid.costs, costs) and made.grid.uniform_cost == 1
    made.update([5], [5], 0)
    after = made.plan([[0, 0]], [299, 299])
    assert after.cost == before.cost and np.argwhere(made.grid.blocked).tolist() == [[5, 5]]


@pytest.mark.parametrize("connectivity", [4, 8])
def test_moves_of_links_are_within_the_memory_allowed(connectivity, monkeypatch):
    """P-BA*: fewer goals at once, the same answers; one goal is always taken, up to what numbers of words allow."""
    costs = np.zeros((96, 96), np.uint8)
    costs[::2], costs[1::4, -1], costs[3::4, 0] = 1, 1, 1
    tiles = np.argwhere(costs)[::100]
    starts, goals = np.repeat(tiles, len(tiles), axis=0), np.tile(tiles, (len(tiles), 1))
    monkeypatch.setattr(pba_star, "PAGE_WORDS", 8)
    expected = BlockPlanner(GridMap(costs, connectivity), "pba_star", 32, "cpu").plan(starts, goals)
    tried = []
    checked_page = shared.checked_page
    monkeypatch.setattr(
        pba_star, "checked_page", lambda words, count, _: tried.append(count) or checked_page(words, count, 0.03)
    )
    paths = BlockPlanner(GridMap(costs, connectivity), "pba_star", 32, "cpu").plan(starts, goals)
    assert max(tried) == len(tiles) and 1 < len(set(tried))
    for name in ("status", "cost", "length"):
        assert np.array_equal(getattr(paths, name), getattr(expected, name))
    monkeypatch.setattr(shared, "MOST_PAGE_WORDS", 9)
    with pytest.raises(MemoryError, match="links take more than .* bytes; allowed: fewer agents, smaller blocks"):
        BlockPlanner(GridMap(costs, connectivity), "pba_star", 32, "cpu").plan(starts[:1], goals[:1])


@pytest.mark.parametrize("algorithm", planner.ALGORITHMS)
def test_paths_that_take_too_much_memory(algorithm, monkeypatch):
    """A plan is refused before the memory is asked for."""
    made = BlockPlanner(GridMap(np.ones((40, 40), np.uint8)), algorithm, device="cpu")
    starts = np.zeros((50, 2), int)
    made.plan(starts, [39, 39])
    monkeypatch.setattr(agents, "MOST_WORDS", 100)
    for goals in ([39, 39], np.column_stack([np.full(50, 39), np.arange(50) % 40])):
        with pytest.raises(MemoryError, match="the paths take more than .* bytes; allowed: fewer agents at once"):
            made.plan(starts, goals)
    assert made.plan(starts[:1], [39, 39]).solved.all()
