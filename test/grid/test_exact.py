"""`exact` against Dijkstra, against MovingAI's published lengths, and against itself from scratch after changes."""

import time

import numpy as np
import pytest
from grid_paths import random_costs
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.problems import data_dir, missing_data
from gpu_planners.device import cuda_problem
from gpu_planners.errors import GridMapError, SettingsError
from gpu_planners.grid import AgentStatus, BlockPlanner, GridMap, load_movingai_map, load_movingai_scen
from gpu_planners.grid.exact import rounds
from gpu_planners.grid.exact.blocks import FieldShape
from gpu_planners.grid.exact.cpu import field_record, new_scratch, thread_work
from gpu_planners.grid.exact.fields import Exact, Settings
from gpu_planners.grid.exact.operations import Scratch
from gpu_planners.grid.exact.rounds import Request
from gpu_planners.grid.exact.values import INFINITE, Tiles
from gpu_planners.parallel.team import Worker
from gpu_planners.verify import broken_paths, costs_to_goal

CASES = {
    "seed": st.integers(0, 2**32 - 1),
    "rows": st.integers(1, 50),
    "cols": st.integers(1, 50),
    "connectivity": st.sampled_from([4, 8]),
    "highest": st.sampled_from([1, 255]),
    "blocked": st.sampled_from([0.0, 0.2, 0.4]),
    "block_size": st.sampled_from([8, 32]),  # each compiles code of its own: the others have a test of their own
}


def random_problem(seed, rows, cols, connectivity, highest, blocked):
    """-> generator, map with a free tile, free tiles"""
    rng = np.random.default_rng(seed)
    costs = random_costs(rng, rows, cols, blocked, highest)
    costs[rng.integers(rows), rng.integers(cols)] = highest
    return rng, GridMap(costs, connectivity), np.argwhere(costs)


def same(a, b):
    """Are two PathSets equal, bit for bit?"""
    return all(
        np.array_equal(getattr(a, name), getattr(b, name)) for name in ("status", "cost", "length", "first", "words")
    )


@settings(max_examples=20, deadline=None)
@given(**CASES)
def test_fields_are_dijkstras(seed, rows, cols, connectivity, highest, blocked, block_size):
    rng, grid, free = random_problem(seed, rows, cols, connectivity, highest, blocked)
    goal = free[rng.integers(len(free))]
    planner = BlockPlanner(grid, block_size=block_size, device="cpu")
    expected = costs_to_goal(grid.costs, connectivity, goal)
    np.testing.assert_allclose(planner.field(goal), expected, rtol=1e-10)
    starts = free[rng.integers(len(free), size=40)]
    paths = planner.plan(starts, goal)
    assert np.array_equal(paths.solved, np.isfinite(expected[starts[:, 0], starts[:, 1]]))
    np.testing.assert_allclose(paths.cost, expected[starts[:, 0], starts[:, 1]], rtol=1e-10)
    assert not broken_paths(grid, paths, starts, goal)


@settings(max_examples=20, deadline=None)
@given(**CASES, changes=st.lists(st.integers(1, 120), min_size=1, max_size=4), near=st.booleans())
def test_repair_equals_planning_from_scratch(
    seed, rows, cols, connectivity, highest, blocked, block_size, changes, near
):
    """Fields are repaired when they are asked for: some after each change, all at last.

    near: changes lie within a few tiles, so that few blocks change, which are repaired; else many, and a field of
    small blocks is planned anew.
    """
    rng, grid, free = random_problem(seed, rows, cols, connectivity, highest, blocked)
    goals = free[rng.integers(len(free), size=3)]
    planner = BlockPlanner(grid, block_size=block_size, device="cpu")
    for goal in goals:
        planner.field(goal)
    for turn, count in enumerate(changes):
        row, col = rng.integers(rows, size=count), rng.integers(cols, size=count)
        if near:
            row, col = np.minimum(row[0] + row % 5, rows - 1), np.minimum(col[0] + col % 5, cols - 1)
        planner.update(row, col, random_costs(rng, 1, count, 0.5, highest)[0])
        scratch = BlockPlanner(planner.grid, block_size=block_size, device="cpu")
        asked = goals if turn == len(changes) - 1 else goals[rng.random(3) < 0.5]
        starts = rng.integers([rows, cols], size=(40, 2))
        if len(asked):
            choice = asked[rng.integers(len(asked), size=40)]
            assert same(planner.plan(starts, choice), scratch.plan(starts, choice))
        for goal in asked:
            if planner.grid.costs[tuple(goal)]:
                assert np.array_equal(planner.field(goal), scratch.field(goal))


@pytest.mark.parametrize(("connectivity", "highest", "block_size"), [(4, 1, 4), (8, 255, 16)])
def test_other_block_sizes_plan_and_repair_the_same(connectivity, highest, block_size):
    rng, grid, free = random_problem(5, 61, 83, connectivity, highest, 0.3)
    goal = free[len(free) // 3]
    planner, other = (BlockPlanner(grid, block_size=size, device="cpu") for size in (block_size, 32))
    np.testing.assert_allclose(planner.field(goal), costs_to_goal(grid.costs, connectivity, goal), rtol=1e-10)
    for _ in range(4):
        assert same(planner.plan(free, goal), other.plan(free, goal))
        row, col = goal[:, None] + rng.integers(2, 12, (2, 5))
        for each in (planner, other):
            each.update(row, col, random_costs(np.random.default_rng(row.sum()), 1, 5, 0.5, highest)[0])
    np.testing.assert_allclose(planner.field(goal), costs_to_goal(planner.grid.costs, connectivity, goal), rtol=1e-10)


@pytest.mark.parametrize("connectivity", [4, 8])
def test_a_repair_of_many_blocks_by_all_threads(connectivity):
    """More changed blocks than one thread repairs alone, fewer than are planned anew."""
    rng, grid, free = random_problem(8, 600, 600, connectivity, 1, 0.2)
    goals = free[[10, len(free) // 2, -10]]
    planner = BlockPlanner(grid, block_size=8, device="cpu")
    planner.prepare(goals)
    row, col = rng.integers(600, size=(2, 100))
    keep = ~((row[:, None] == goals[:, 0]) & (col[:, None] == goals[:, 1])).any(axis=1)
    planner.update(row[keep], col[keep], rng.integers(0, 2, keep.sum()))
    scratch = BlockPlanner(planner.grid, block_size=8, device="cpu")
    starts = free[rng.integers(len(free), size=500)]
    for goal in goals:
        assert same(planner.plan(starts, goal), scratch.plan(starts, goal))
        assert np.array_equal(planner.field(goal), scratch.field(goal))


def seconds_of(call):
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


@pytest.mark.parametrize("connectivity", [4, 8])
def test_a_change_costs_little_until_a_field_is_needed_and_then_less_than_a_field(connectivity):
    """As seen from outside: changes near each other, in a map so large that planning a field takes much longer."""
    grid = GridMap(np.ones((1500, 1500), np.uint8), connectivity)
    goals, start = np.array([[5, 5], [700, 20], [1490, 1300]]), np.array([[20, 30]])
    planner = BlockPlanner(grid, block_size=8, device="cpu")
    planner.prepare(goals)  # compiles
    planner.update([1480], [1480], 0)
    planner.plan(start, goals[0])
    anew = min(
        seconds_of(lambda: BlockPlanner(grid, block_size=8, device="cpu").plan(start, goals[0])) for _ in range(3)
    )
    changes, repairs = [], []
    for turn in range(1, 6):
        changes.append(seconds_of(lambda turn=turn: planner.update([1480], [1480], turn % 2)))
        changes.append(seconds_of(lambda turn=turn: planner.update([1470], [1475], turn % 2)))
        repairs.append(seconds_of(lambda: planner.plan(start, goals[0])))  # both changes, one field of three
    assert min(changes) < anew / 10 and min(repairs) < anew / 4
    scratch = BlockPlanner(planner.grid, block_size=8, device="cpu")
    for goal in goals:
        assert same(planner.plan(start, goal), scratch.plan(start, goal))


@pytest.mark.skipif(missing_data() is not None, reason=missing_data() or "")
@pytest.mark.parametrize(
    "scen", sorted(p.name for p in (data_dir() / "movingai").glob("*.scen")) if missing_data() is None else []
)
def test_published_lengths(scen):
    """A dozen scenarios of every file."""
    scenarios = load_movingai_scen(data_dir() / "movingai" / scen)
    grid = load_movingai_map(data_dir() / "movingai" / scenarios.map_name.split("/")[-1])
    every = max(1, len(scenarios.goals) // 12)
    starts, goals, lengths = scenarios.starts[::every], scenarios.goals[::every], scenarios.lengths[::every]
    paths = BlockPlanner(grid, device="cpu").plan(starts, goals)
    assert paths.solved.all()
    assert (np.abs(paths.cost - lengths) <= scenarios.precisions[::every] + 1e-7 * paths.cost).all()
    assert not broken_paths(grid, paths, starts, goals)


def test_the_memory_limit_only_splits_the_work():
    _, grid, free = random_problem(3, 60, 60, 8, 1, 0.2)
    starts, goals = free[:50], free[-50:]
    one = BlockPlanner(grid, device="cpu")
    limit = 3 * FieldShape.of(grid, 32).field_bytes
    few = BlockPlanner(grid, device="cpu", settings=Settings(memory_limit_bytes=limit))
    a, b = one.plan(starts, goals), few.plan(starts, goals)
    assert np.array_equal(a.cost, b.cost)
    assert not broken_paths(grid, b, starts, goals)
    whole, limited = Exact(grid, 32, "cpu"), Exact(grid, 32, "cpu", Settings(memory_limit_bytes=limit))
    for engine in (whole, limited):
        engine.plan(starts.astype(np.int32), goals.astype(np.int32))
    assert limited.memory_bytes <= limit < whole.memory_bytes


def test_goals_beyond_the_time_limit_are_timed_out():
    _, grid, free = random_problem(3, 60, 60, 8, 1, 0.2)
    starts, goals = free[:90], free[-90:]
    expected = BlockPlanner(grid, device="cpu").plan(starts, goals)
    few = BlockPlanner(grid, device="cpu", settings=Settings(time_limit_s=1e-9)).plan(starts, goals)
    late = few.status == AgentStatus.TIMED_OUT
    assert late.sum() == 89 and np.isinf(few.cost[late]).all() and not few.length[late].any()
    assert few.cost[~late] == expected.cost[~late]
    for limit in (0.05, 1000.0):  # in batches of other sizes
        paths = BlockPlanner(grid, device="cpu", settings=Settings(time_limit_s=limit)).plan(starts, goals)
        done = paths.status != AgentStatus.TIMED_OUT
        assert done.sum() > 0 and (limit < 1 or done.all())
        assert np.array_equal(paths.cost[done], expected.cost[done])
        assert not broken_paths(grid, paths, starts, goals)


def test_fields_are_kept_for_goals_that_come_again():
    """The first plan makes fields, which takes much longer than following them."""
    grid = GridMap(np.ones((800, 800), np.uint8), 4)
    starts = np.array([[0, 0], [1, 5], [2, 9], [3, 1], [4, 4]])  # more than searches answer
    goals = np.array([[0, 1], [0, 2], [0, 3], [0, 4], [0, 5]])
    planner = BlockPlanner(grid, device="cpu")
    planner.plan(starts, goals[::-1] + 20)  # compiles
    first, again = (seconds_of(lambda: planner.plan(starts, goals)) for _ in range(2))
    again = min(again, *(seconds_of(lambda: planner.plan(starts, goals)) for _ in range(4)))
    assert again < first / 4
    memory = planner.plan(starts, goals)
    assert same(memory, BlockPlanner(grid, device="cpu").plan(starts, goals))


@settings(max_examples=15, deadline=None)
@given(**CASES)
def test_a_few_agents_get_the_paths_of_fields_on_maps_that_change(
    seed, rows, cols, connectivity, highest, blocked, block_size
):
    """Whoever answers, a search or a field: the path is the same to the step, and costs what Dijkstra says."""
    rng, grid, free = random_problem(seed, rows, cols, connectivity, highest, blocked)
    planner = BlockPlanner(grid, block_size=block_size, device="cpu")
    for _ in range(4):
        goal, starts = free[rng.integers(len(free))], free[rng.integers(len(free), size=3)]
        expected = costs_to_goal(planner.grid.costs, connectivity, goal)[tuple(starts.T)]
        for _ in range(3):  # the goal's field is there at last
            paths = planner.plan(starts, goal)
            np.testing.assert_allclose(paths.cost, expected, rtol=1e-10)
        other = BlockPlanner(planner.grid, block_size=block_size, device="cpu")
        other.prepare(goal)
        for some in (paths, BlockPlanner(planner.grid, block_size=block_size, device="cpu").plan(starts, goal)):
            assert same(some, other.plan(starts, goal))
        tiles = rng.integers((rows, cols), size=(20, 2))
        planner.update(*tiles.T, np.where(rng.random(20) < 0.3, 0, rng.integers(1, highest + 1, 20)))
        free = np.argwhere(planner.grid.costs)
        if not len(free):
            break


def test_a_change_of_one_cost_leaves_the_uniform_map():
    planner = BlockPlanner(GridMap(np.ones((40, 50), np.uint8), 4), device="cpu")
    assert planner.plan([[0, 0]], [39, 49]).cost[0] == 88
    planner.update(np.arange(40), np.full(40, 20), 7)
    assert planner.plan([[0, 0]], [39, 49]).cost[0] == 94


def test_each_agent_has_its_own_status():
    costs = np.ones((8, 8), np.uint8)
    costs[4], costs[0, 7] = 0, 0
    starts = [[0, 0], [-1, 0], [0, 8], [0, 7], [np.nan, 0], [0, 0], [0, 0], [0, 0], [0, np.inf], [1, 1], [3, 3]]
    goals = [[1, 1], [1, 1], [1, 1], [1, 1], [1, 1], [9, 1], [4, 4], [1, np.inf], [np.nan, 1], [7, 7], [3, 3]]
    paths = BlockPlanner(GridMap(costs), device="cpu").plan(starts, goals)
    S = AgentStatus
    assert paths.status.tolist() == [
        S.SOLVED,
        S.START_OUTSIDE,
        S.START_OUTSIDE,
        S.START_BLOCKED,
        S.START_NOT_FINITE,
        S.GOAL_OUTSIDE,
        S.GOAL_BLOCKED,
        S.GOAL_NOT_FINITE,
        S.START_NOT_FINITE,
        S.NO_PATH,
        S.SOLVED,
    ]
    assert paths.path(0).tolist() == [[0, 0], [1, 1]] and paths.path(10).tolist() == [[3, 3]] and paths.cost[10] == 0
    assert np.isinf(paths.cost[1:10]).all() and "outside" in paths.message(1)


def test_bad_input_names_what_is_allowed():
    grid = GridMap(np.ones((8, 8), np.uint8))
    planner = BlockPlanner(grid, device="cpu")
    with pytest.raises(GridMapError, match=r"starts has shape \(2, 3\)"):
        planner.plan(np.zeros((2, 3)), [1, 1])
    with pytest.raises(GridMapError, match="goals has 3 rows; allowed: one goal"):
        planner.plan(np.zeros((2, 2)), np.zeros((3, 2)))
    with pytest.raises(GridMapError, match="starts has the type <U1; allowed: numbers"):
        planner.plan([["a", "b"]], [1, 1])
    with pytest.raises(SettingsError, match="block_size is 12: use one of 4, 8, 16, 32"):
        BlockPlanner(grid, block_size=12)
    with pytest.raises(SettingsError, match="algorithm is 'dijkstra': use one of exact"):
        BlockPlanner(grid, "dijkstra")
    with pytest.raises(SettingsError, match="memory_limit_bytes is 0"):
        Settings(memory_limit_bytes=0)
    with pytest.raises(GridMapError, match="not a free tile"):
        planner.field([8, 0])
    with pytest.raises(GridMapError):
        planner.update([0, 9], [0, 0], 0)
    assert planner.grid is grid and planner.plan([[0, 0]], [7, 7]).solved.all()
    assert len(planner.plan(np.zeros((0, 2)), [1, 1])) == 0


class OneField:
    """A field in arrays of its own, made and repaired by the compiled code alone."""

    def __init__(self, grid, block_size, goal):
        self.shape, self.grid = FieldShape.of(grid, block_size), grid
        self.arrays = {name: np.zeros(shape, kind) for name, (shape, kind) in self.shape.field_shapes(1).items()}
        self.map, self.memory = self.shape.map_array(grid), np.zeros(rounds.MEMORY, np.int32)
        block, tile = self.shape.blocks.of_tiles(*goal)
        self.goals = np.array([[block, tile, sum(goal) & 1, 1]], np.int32)
        self.update(new=[0])

    def update(self, **asked):
        shape = self.shape
        worker = Worker(0, 1, 0, 0, 1, self.memory, self.memory)
        least = np.full(shape.blocks.count, INFINITE)
        work = thread_work(shape, self.map, self.arrays, least, new_scratch(shape), worker)
        rounds.update_fields(Request(self.goals, **asked).packed(), work)

    def change(self, rows, cols, costs):
        self.grid = self.grid.changed(rows, cols, costs)
        self.shape.change_map(self.map, self.grid, rows, cols)
        self.update(seeds=self.shape.blocks_near(rows, cols))


class SweptField(OneField):
    """The same by the sweeps that CUDA has, on one thread."""

    def update(self, **asked):
        wide, worker = self.shape.blocks.size + 2, Worker(0, 1, 0, 0, 1, self.memory, self.memory)
        field = field_record(self.shape, self.map, self.arrays)
        tiles = Tiles(self.shape.kind, np.zeros((wide, wide), np.int64), np.zeros((wide, wide), np.uint8))
        work = rounds.Work(field, self.arrays["goals"], self.arrays["queue"], Scratch(None, tiles, None), worker, None)
        rounds.update_fields(Request(self.goals, **asked).packed(), work)


@pytest.mark.slow
@pytest.mark.parametrize("connectivity", [4, 8])
@pytest.mark.parametrize("highest", [2, 255])
def test_sweeps_and_queues_make_and_repair_the_same_fields(connectivity, highest):
    rng, grid, free = random_problem(3, 70, 50, connectivity, highest, 0.25)
    goal = tuple(free[len(free) // 2].tolist())
    queued, swept = OneField(grid, 8, goal), SweptField(grid, 8, goal)
    for _ in range(4):
        for name in ("values", "directions"):
            assert np.array_equal(queued.arrays[name], swept.arrays[name]), name
        row, col = rng.integers([[70], [50]], size=(2, 9))
        keep = (row != goal[0]) | (col != goal[1])
        costs = random_costs(rng, 1, 9, 0.5, highest)[0]
        for field in (queued, swept):
            field.change(row[keep], col[keep], costs[keep])


@pytest.mark.parametrize("connectivity", [4, 8])
@pytest.mark.parametrize("place", ["ROUND", "EPOCH"])
def test_rounds_and_requests_do_not_run_out(connectivity, place):
    """A planner that has been running for days: its counters begin anew in the middle of a repair, or of a new goal."""
    rng, grid, free = random_problem(6, 60, 60, connectivity, 1, 0.2)
    goal = tuple(free[100].tolist())
    field = OneField(grid, 8, goal)
    for k in range(6):
        field.memory[getattr(rounds, place)] = rounds.MOST_COUNTED - 1 + k % 2
        row, col = rng.integers(60, size=(2, 9))
        keep = (field.grid.costs[row, col] > 0) & ((row != goal[0]) | (col != goal[1]))
        field.change(row[keep], col[keep], k % 2)
        if k == 3:
            field.update(new=[0])
        scratch = OneField(field.grid, 8, goal)
        for name in ("values", "edge", "directions"):
            assert np.array_equal(field.arrays[name], scratch.arrays[name]), name
        assert 0 < field.memory[rounds.ROUND] < 2**30 and 0 < field.memory[rounds.EPOCH] < 2**30


def test_maps_given_and_got_do_not_change():
    given_map = GridMap(np.ones((8, 8), np.uint8))
    planner = BlockPlanner(given_map, device="cpu")
    planner.update([1], [2], 0)
    got = planner.grid
    assert got is planner.grid and np.argwhere(got.blocked).tolist() == [[1, 2]]
    planner.update([1, 3], [2, 4], [5, 0])
    planner.update([3], [4], 0)  # as it is already
    assert (
        np.argwhere(planner.grid.blocked).tolist() == [[3, 4]]
        and planner.grid.costs[1, 2] == 5
        and planner.grid.uniform_cost == 0
    )
    assert np.argwhere(got.blocked).tolist() == [[1, 2]] and not given_map.blocked.any() and given_map.uniform_cost == 1
    with pytest.raises(GridMapError, match="tile 1 is"):
        planner.update([0, 9], [0, 0], 7)
    assert planner.grid.costs[0, 0] == 1


@pytest.mark.gpu
@pytest.mark.skipif(bool(cuda_problem()), reason=cuda_problem() or "")
@pytest.mark.parametrize(
    ("connectivity", "highest", "block_size"), [(4, 1, 32), (4, 1, 8), (4, 255, 32), (8, 1, 32), (8, 255, 16)]
)
def test_cuda_equals_cpu(connectivity, highest, block_size):
    rng, grid, free = random_problem(7, 300, 410, connectivity, highest, 0.25)
    goals = free[rng.integers(len(free), size=9)]
    planners = [BlockPlanner(grid, block_size=block_size, device=device) for device in ("cpu", "cuda")]
    expected = costs_to_goal(grid.costs, connectivity, goals[1])
    for planner in planners:
        np.testing.assert_allclose(planner.field(goals[1]), expected, rtol=1e-10)
    for _ in range(3):
        starts = rng.integers([300, 410], size=(5000, 2))
        for choice in (goals[rng.integers(9, size=5000)], goals[0]):  # to many goals step by step, to one by words
            a, b = (planner.plan(starts, choice) for planner in planners)
            assert same(a, b) and a.solved.sum() > 1000
        row, col = rng.integers(300, size=500), rng.integers(410, size=500)
        costs = random_costs(rng, 1, 500, 0.5, highest)[0]
        costs[(row[:, None] == goals[:, 0]).any(1)] = highest  # goals stay free
        for planner in planners:
            planner.update(row, col, costs)
        assert np.array_equal(planners[0].field(goals[1]), planners[1].field(goals[1]))


@pytest.mark.gpu
@pytest.mark.skipif(bool(cuda_problem()), reason=cuda_problem() or "")
@pytest.mark.parametrize("connectivity", [4, 8])
def test_cuda_equals_cpu_on_a_large_map(connectivity):
    """Few agents walk step by step there, even to one goal; many by words."""
    rng, grid, free = random_problem(9, 1600, 1500, connectivity, 1, 0.2)
    planners = [BlockPlanner(grid, device=device) for device in ("cpu", "cuda")]
    for count in (100, 5000):
        starts = free[rng.integers(len(free), size=count)]
        a, b = (planner.plan(starts, free[1000]) for planner in planners)
        assert same(a, b) and a.solved.mean() > 0.9


def test_prepared_fields_are_only_followed():
    grid = GridMap(np.ones((800, 800), np.uint8), 4)
    goals, starts = np.array([[0, 1], [700, 3], [5, 700], [50, 50]]), np.array([[3, 3], [4, 4]])
    planner = BlockPlanner(grid, device="cpu")
    planner.plan(starts, [60, 60])  # compiles
    prepared = seconds_of(lambda: planner.prepare([*goals, [-1, 0], [np.nan, 0]]))
    followed = min(seconds_of(lambda: planner.plan(starts, [0, 1])) for _ in range(3))
    assert followed < prepared / 4
    assert np.array_equal(planner.plan(starts, [0, 1]).cost, planner.field([0, 1])[tuple(starts.T)])
    with pytest.raises(SettingsError, match="only 'exact' has fields"):
        BlockPlanner(grid, "astar").prepare(goals[0])
