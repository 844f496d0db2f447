"""P-BA*: its searches against a plain A*, its paths against Dijkstra, table I of [CE12], changes against scratch."""

import heapq

import numpy as np
import pytest
from grid_paths import random_costs, random_tiles, same_paths, steps_from
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_planners.device import cuda_problem
from gpu_planners.errors import SettingsError
from gpu_planners.grid import AgentStatus, GridMap
from gpu_planners.papers.ce12.pba_star import BLOCK_SIZES, PbaStar, Settings
from gpu_planners.verify import broken_paths, costs_to_goal

CUDA = pytest.mark.skipif(bool(cuda_problem()), reason=cuda_problem() or "CUDA is there")
MAPS = [(4, 1), (8, 1), (4, 5), (8, 5)]  # connectivity, greatest cost


def serial_p_ba_star(costs, connectivity, n, start, goal, avoid):
    """[CE12] by plain A* searches on the whole map that stay in one block, one agent. -> status, tiles"""
    least, one, diagonal = int(costs[costs > 0].min()), 2**20, 1482910

    def h(tile):
        down, right = abs(tile[0] - goal[0]), abs(tile[1] - goal[1])
        if connectivity == 4:
            return (down + right) * one * least
        return (max(down, right) * one + min(down, right) * (diagonal - one)) * least

    def block(tile):
        return tile[0] // n, tile[1] // n

    def border(tile):
        return tile[0] % n in (0, n - 1) or tile[1] % n in (0, n - 1)

    def piece(origin, barred, to_border):
        """A* in the block of origin -> tiles after origin, None when the open list is empty"""
        g, before, closed = {origin: 0}, {}, set()
        queue = [(h(origin), 0, origin)]
        while queue:
            _, _, tile = heapq.heappop(queue)
            if tile in closed:
                continue
            closed.add(tile)
            inside = block(tile) == block(origin)
            if tile == goal or (border(tile) if to_border else not inside and block(tile) != barred):
                tiles = [tile]
                while tiles[-1] != origin:
                    tiles.append(before[tiles[-1]])
                return tiles[-2::-1]
            if not inside:
                continue
            for k, r, c, w in steps_from(costs, connectivity, *tile):
                new = g[tile] + w * (one if k < 4 else diagonal)
                if new < g.get((r, c), np.inf):
                    g[r, c], before[r, c] = new, tile
                    tie = min((new if connectivity == 8 else new // one) // 2**shift, 2047)
                    heapq.heappush(queue, (new + h((r, c)), -tie, (r, c)))
        return None

    shift = (least * (one if connectivity == 8 else 1)).bit_length() - 1
    tiles, came_from, met = [start], None, set()
    part = piece(start, None, True)
    if part is None:
        return AgentStatus.NO_PATH, []
    while part is not None:
        tiles += part
        tile = tiles[-1]
        if tile == goal:
            return AgentStatus.SOLVED, tiles
        if (tile, came_from) in met:
            return AgentStatus.LOOP, []
        met.add((tile, came_from))
        left, part = block(tile), piece(tile, came_from if avoid else None, False)
        came_from = left
    return AgentStatus.LOOP, []  # only the way back is left


@pytest.mark.parametrize("connectivity, weights", MAPS)
@pytest.mark.parametrize("n", BLOCK_SIZES)
def test_agents_walk_as_a_serial_p_ba_star(connectivity, weights, n):
    rng = np.random.default_rng(n)
    costs = random_costs(rng, 45, 61, 0.12, weights)
    starts, goals = random_tiles(rng, costs, 40), np.repeat(random_tiles(rng, costs, 4), 10, axis=0)
    starts[0] = goals[0]
    paths = PbaStar(GridMap(costs, connectivity), n).plan(starts, goals)
    assert not broken_paths(GridMap(costs, connectivity), paths, starts, goals)
    assert paths.solved.any()
    for i, (start, goal) in enumerate(zip(starts.tolist(), goals.tolist())):
        status, tiles = serial_p_ba_star(costs, connectivity, n, tuple(start), tuple(goal), True)
        assert paths.status[i] == status
        assert paths.path(i).tolist() == [list(t) for t in tiles]


@pytest.mark.parametrize("connectivity, weights", MAPS)
@pytest.mark.parametrize("loops", ["avoid", "raise"])
def test_paths_can_be_walked_and_cost_no_less_than_dijkstras(connectivity, weights, loops):
    rng = np.random.default_rng(7)
    costs = random_costs(rng, 70, 50, 0.2, weights)
    starts, goals = random_tiles(rng, costs, 300), np.repeat(random_tiles(rng, costs, 3), 100, axis=0)
    distances = {tuple(goal): costs_to_goal(costs, connectivity, goal) for goal in goals[::100]}
    best = np.array([distances[tuple(goal)][tuple(start)] for start, goal in zip(starts, goals)])
    for n in BLOCK_SIZES:
        paths = PbaStar(GridMap(costs, connectivity), n, "cpu", Settings(loops=loops)).plan(starts, goals)
        assert not broken_paths(GridMap(costs, connectivity), paths, starts, goals)
        assert (paths.cost >= best * (1 - 1e-9)).all()
        assert np.isin(paths.status, [AgentStatus.SOLVED, AgentStatus.NO_PATH, AgentStatus.LOOP]).all()
        assert np.isinf(best[paths.status == AgentStatus.NO_PATH]).all()
        if loops == "raise":
            assert paths.solved.sum() >= PbaStar(GridMap(costs, connectivity), n).plan(starts, goals).solved.sum()
            assert paths.solved.sum() >= 0.98 * np.isfinite(best).sum()


# paths found of 100 in table I, by size, obstacles: A*, blocks of 4, 8, 16
TABLE_I = {
    (64, 0.1): (97, 85, 90, 95),
    (64, 0.2): (85, 30, 42, 53),
    (128, 0.1): (99, 82, 86, 94),
    (128, 0.2): (85, 10, 19, 34),
    (512, 0.1): (99, 33, 45, 61),
    (512, 0.2): (91, 0, 0, 3),
}


@pytest.mark.parametrize("size, obstacles", TABLE_I)
def test_table_1_paths_found(size, obstacles):
    runs = 100 if size < 512 else 20
    rng, found = np.random.default_rng(1), np.zeros(3, int)
    for _ in range(runs):
        costs = random_costs(rng, size, size, obstacles, 1)
        costs[0, 0] = costs[-1, -1] = 1
        found += [
            int(PbaStar(GridMap(costs, 4), n).plan([[0, 0]], [[size - 1, size - 1]]).solved[0]) for n in (4, 8, 16)
        ]
    expected = np.array(TABLE_I[size, obstacles][1:]) / 100
    spread = np.sqrt(
        np.maximum(expected * (1 - expected), 0.01) * (1 / runs + 1 / 100)
    )  # of the difference of two samples
    assert (np.abs(found / runs - expected) <= 3 * spread + 0.05).all(), (found / runs, expected)


def changes(rng, costs, count):
    rows, cols = rng.integers(costs.shape[0], size=count), rng.integers(costs.shape[1], size=count)
    return rows, cols, rng.integers(0, 4, count).astype(np.uint8)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.sampled_from(BLOCK_SIZES),
    connectivity=st.sampled_from([4, 8]),
    loops=st.sampled_from(["avoid", "raise"]),
)
def test_update_equals_planning_from_scratch(seed, n, connectivity, loops):
    rng = np.random.default_rng(seed)
    grid = GridMap(random_costs(rng, rng.integers(9, 50), rng.integers(9, 50), 0.15, rng.integers(1, 4)), connectivity)
    if not (grid.costs > 0).any():
        return
    goals = random_tiles(rng, grid.costs, 2)
    planner = PbaStar(grid, n, "cpu", Settings(loops=loops))
    for _ in range(4):
        rows, cols, costs = changes(rng, grid.costs, rng.integers(1, 6))
        costs[np.isin(rows * grid.cols + cols, goals[:, 0] * grid.cols + goals[:, 1])] = 1
        starts = random_tiles(rng, grid.costs, 20)
        planner.plan(starts, np.repeat(goals, 10, axis=0))
        grid = grid.changed(rows, cols, costs)
        planner.update(grid, rows, cols)
        starts = random_tiles(rng, grid.costs, 20)
        same_paths(
            planner.plan(starts, np.repeat(goals, 10, axis=0)),
            PbaStar(grid, n, "cpu", Settings(loops=loops)).plan(starts, np.repeat(goals, 10, axis=0)),
        )


def test_an_unchanged_goal_is_not_searched_again():
    rng = np.random.default_rng(0)
    costs = random_costs(rng, 64, 64, 0.1, 1)
    starts, goal = random_tiles(rng, costs, 50), random_tiles(rng, costs, 1).repeat(50, axis=0)
    for loops in ("avoid", "raise"):
        planner = PbaStar(GridMap(costs, 4), 8, "cpu", Settings(loops=loops))
        first = planner.plan(starts, goal)
        assert planner.last_times["border_to_border"] > 0
        again = planner.plan(starts, goal)
        assert planner.last_times["border_to_border"] == 0
        same_paths(first, again)
        planner.forget()
        same_paths(first, planner.plan(starts, goal))
        assert planner.last_times["border_to_border"] > 0 and planner.memory_bytes > 0


def test_goals_in_batches_and_agents_at_their_goal():
    rng = np.random.default_rng(3)
    costs = random_costs(rng, 300, 200, 0.1, 1)
    starts, goals = random_tiles(rng, costs, 60), random_tiles(rng, costs, 60)
    starts[5] = goals[5]
    whole, few = PbaStar(GridMap(costs, 4), 8), PbaStar(GridMap(costs, 4), 8, "cpu", Settings(memory_mb=3))
    same_paths(whole.plan(starts, goals), few.plan(starts, goals))
    assert few.memory_bytes < 7 * 2**20 < 25 * 2**20 < whole.memory_bytes  # 3 MB twice, and an arena to begin with
    numpys = PbaStar(GridMap(costs, 4), np.int8(8), "cpu", Settings(memory_mb=np.int32(2048)))
    same_paths(whole.plan(starts, goals), numpys.plan(starts, goals))
    assert numpys.memory_bytes == whole.memory_bytes
    assert len(whole.plan(starts[:0], goals[:0])) == 0


def snake():
    """A way of 64x64 tiles whose pieces in 32x32 blocks have hundreds of moves, which do not fit into a link."""
    costs = np.ones((64, 64), np.uint8)
    costs[1::4, :-1] = costs[3::4, 1:] = 0
    return costs


def test_long_ways_through_blocks():
    costs = snake()
    starts, goals = np.array([[0, 0], [62, 0], [20, 20]]), np.full((3, 2), [62, 0])
    for connectivity in (4, 8):
        for loops in ("avoid", "raise"):
            paths = PbaStar(GridMap(costs, connectivity), 32, "cpu", Settings(loops=loops)).plan(starts, goals)
            assert not broken_paths(GridMap(costs, connectivity), paths, starts, goals)
            if loops == "raise":
                assert paths.solved.all()
                assert paths.cost[0] == costs_to_goal(costs, connectivity, goals[0])[0, 0]


def the_arena_does_not_grow_with_changes(device):
    costs = snake()
    starts, goals = np.array([[0, 0], [33, 33]]), np.full((2, 2), [62, 0])
    planner = PbaStar(GridMap(costs, 4), 32, device, Settings(loops="raise"))
    planner.plan(starts, goals)
    memory = []
    for change in range(60):
        costs[10, 10] = change % 2
        planner.update(GridMap(costs, 4), [10], [10])
        paths = planner.plan(starts, goals)
        memory.append(planner.memory_bytes)
    same_paths(paths, PbaStar(GridMap(costs, 4), 32, device, Settings(loops="raise")).plan(starts, goals))
    assert memory[-1] <= 2 * memory[0]


def test_the_arena_does_not_grow_with_changes():
    the_arena_does_not_grow_with_changes("cpu")


def test_settings_are_refused():
    grid = GridMap(np.ones((8, 8), np.uint8))
    for wrong in ({"loops": "ignore"}, {"most_rounds": 0}, {"memory_mb": 1.5}):
        with pytest.raises(SettingsError, match=next(iter(wrong))):
            Settings(**wrong)
    with pytest.raises(SettingsError, match="block_size is 12"):
        PbaStar(grid, 12)


@pytest.mark.gpu
@CUDA
@pytest.mark.parametrize("connectivity, weights", MAPS)
@pytest.mark.parametrize("loops", ["avoid", "raise"])
def test_cuda_plans_as_the_cpu(connectivity, weights, loops):
    rng = np.random.default_rng(11)
    grid = GridMap(random_costs(rng, 150, 131, 0.15, weights), connectivity)
    starts, goals = random_tiles(rng, grid.costs, 3000), np.repeat(random_tiles(rng, grid.costs, 3), 1000, axis=0)
    for n in BLOCK_SIZES:
        cpu, cuda = (PbaStar(grid, n, device, Settings(loops=loops)) for device in ("cpu", "cuda:0"))
        paths = cuda.plan(starts, goals)
        same_paths(cpu.plan(starts, goals), paths)
        assert not broken_paths(grid, paths, starts, goals)
        rows, cols, costs = changes(rng, grid.costs, 20)
        costs[np.isin(rows * grid.cols + cols, [t[0] * grid.cols + t[1] for t in (*starts, *goals)])] = 1
        changed = grid.changed(rows, cols, costs)
        for planner in (cpu, cuda):
            planner.update(changed, rows, cols)
        same_paths(cpu.plan(starts[::-1], goals[::-1]), cuda.plan(starts[::-1], goals[::-1]))


@pytest.mark.gpu
@CUDA
def test_cuda_makes_room_for_long_pieces():
    the_arena_does_not_grow_with_changes("cuda:0")
    costs = snake()
    rng = np.random.default_rng(0)
    starts, goals = random_tiles(rng, costs, 500), np.full((500, 2), [62, 0])
    cpu, cuda = (PbaStar(GridMap(costs, 8), 32, device, Settings(loops="raise")) for device in ("cpu", "cuda:0"))
    same_paths(cpu.plan(starts, goals), cuda.plan(starts, goals))
    same_paths(cpu.plan(goals[:3], starts[:3]), cuda.plan(goals[:3], starts[:3]))
