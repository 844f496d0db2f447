"""RTAA*: walks against a serial one in plain Python, against Dijkstra; bounded tables, moves and memory."""

import numpy as np
import pytest
from grid_paths import random_costs, random_tiles, same_paths, steps_from

from gpu_planners.device import cuda_problem
from gpu_planners.errors import SettingsError
from gpu_planners.grid import AgentStatus, GridMap
from gpu_planners.papers.ce12.rtaa_star import RtaaStar, Settings
from gpu_planners.verify import broken_paths, costs_to_goal

CUDA = pytest.mark.skipif(bool(cuda_problem()), reason=cuda_problem() or "CUDA is there")
MAPS = [(4, 1), (8, 1), (4, 5), (8, 5)]  # connectivity, greatest cost


def serial_rtaa_star(costs, connectivity, lookahead, start, goal, most_moves):
    """Koenig & Likhachev 2006, figure 1, with all it learns kept in a dictionary. -> status, tiles"""
    least, one, diagonal = int(costs[costs > 0].min()), (1 if connectivity == 4 else 2**12), 5793
    raised = {}

    def h(tile):
        down, right = abs(tile[0] - goal[0]), abs(tile[1] - goal[1])
        if connectivity == 4:
            initial = down + right
        else:
            initial = max(down, right) * one + min(down, right) * (diagonal - one)
        return raised.get(tile, initial * least)

    walked = [start]
    while walked[-1] != goal:
        g, before, order, closed = {walked[-1]: 0}, {}, [walked[-1]], []
        while True:
            opened = [tile for tile in order if tile not in closed]
            if not opened:
                return AgentStatus.NO_PATH, []
            best = min(opened, key=lambda tile: (g[tile] + h(tile), -g[tile], order.index(tile)))
            if len(closed) == lookahead or best == goal:
                break
            closed.append(best)
            for k, r, c, w in steps_from(costs, connectivity, *best):
                new = g[best] + w * (one if k < 4 else diagonal)
                if (r, c) not in closed and new < g.get((r, c), np.inf):
                    if (r, c) not in g:
                        order.append((r, c))
                    g[r, c], before[r, c] = new, best
        f = g[best] + h(best)
        for tile in closed:
            raised[tile] = max(f - g[tile], h(tile))
        way = [best]
        while way[-1] != walked[-1]:
            way.append(before[way[-1]])
        walked += way[-2::-1]
        if len(walked) - 1 > most_moves:
            return AgentStatus.STEP_LIMIT, []
    return AgentStatus.SOLVED, walked


def comb(rows, cols):
    """Dead ends that point at a goal on the right."""
    costs = np.ones((rows, cols), np.uint8)
    costs[2:-2, cols // 2] = 0
    costs[2, cols // 4 : cols // 2] = costs[-3, cols // 4 : cols // 2] = 0
    return costs


@pytest.mark.parametrize("connectivity, weights", MAPS)
@pytest.mark.parametrize("lookahead", [1, 3, 20])
def test_agents_walk_as_a_serial_rtaa_star(connectivity, weights, lookahead):
    rng = np.random.default_rng(lookahead)
    weight = rng.integers(1, weights + 1, (30, 40)).astype(np.uint8)
    for costs in (random_costs(rng, 30, 41, 0.25, weights), comb(30, 40) * weight):
        starts, goals = random_tiles(rng, costs, 25), random_tiles(rng, costs, 25)
        starts[0] = goals[0]
        paths = RtaaStar(GridMap(costs, connectivity), 8, "cpu", Settings(lookahead, 400, table_size=16384)).plan(
            starts, goals
        )
        assert not broken_paths(GridMap(costs, connectivity), paths, starts, goals)
        assert paths.solved.sum() > 15
        for i, (start, goal) in enumerate(zip(starts.tolist(), goals.tolist())):
            status, tiles = serial_rtaa_star(costs, connectivity, lookahead, tuple(start), tuple(goal), 400)
            assert paths.status[i] == status
            assert paths.path(i).tolist() == [list(t) for t in tiles]


@pytest.mark.parametrize("connectivity, weights", MAPS)
@pytest.mark.parametrize("lookahead", [1, 3, 30])
def test_goals_are_reached_where_there_is_a_way(connectivity, weights, lookahead):
    rng = np.random.default_rng(5)
    for costs in (random_costs(rng, 60, 50, 0.3, weights), comb(24, 40)):
        starts, goals = random_tiles(rng, costs, 60), random_tiles(rng, costs, 1).repeat(60, axis=0)
        best = costs_to_goal(costs, connectivity, goals[0])[tuple(starts.T)]
        planner = RtaaStar(GridMap(costs, connectivity), 8, "cpu", Settings(lookahead, 12000, table_size=8192))
        paths = planner.plan(starts, goals)
        assert not broken_paths(GridMap(costs, connectivity), paths, starts, goals)
        np.testing.assert_array_equal(paths.solved, np.isfinite(best))
        assert (paths.cost >= best * (1 - 1e-9)).all()
        assert np.isin(paths.status, [AgentStatus.SOLVED, AgentStatus.NO_PATH, AgentStatus.STEP_LIMIT]).all()
        assert planner.memory_bytes > 0 and planner.last_times["search"] > 0


def test_a_full_table_forgets_and_moves_are_bounded():
    costs = comb(20, 32)
    starts, goals = np.array([[10, 2]]).repeat(3, axis=0), np.array([[10, 30]]).repeat(3, axis=0)
    small, large = (
        RtaaStar(GridMap(costs, 4), 8, "cpu", Settings(3, 20000, size)).plan(starts, goals) for size in (16, 8192)
    )
    assert large.solved.all()
    assert not np.array_equal(small.length, large.length)
    for paths in (small, large):
        assert not broken_paths(GridMap(costs, 4), paths, starts, goals)
    few = RtaaStar(GridMap(costs, 4), 8, "cpu", Settings(3, 27, 8192)).plan(starts, goals)
    assert (few.status == AgentStatus.STEP_LIMIT).all() and np.isinf(few.cost).all()
    just = RtaaStar(GridMap(np.ones((3, 71), np.uint8), 4), 8, "cpu", Settings(3, 70)).plan([[1, 0]], [[1, 70]])
    assert just.solved.all() and just.length[0] == 70


def test_agents_that_do_not_fit_go_in_batches():
    rng = np.random.default_rng(2)
    costs = random_costs(rng, 200, 200, 0.25, 1)
    starts, goals = random_tiles(rng, costs, 20000), random_tiles(rng, costs, 1).repeat(20000, axis=0)
    planner, whole = RtaaStar(GridMap(costs, 4), 8, "cpu", Settings(memory_mb=1)), RtaaStar(GridMap(costs, 4), 8)
    few, all_at_once = planner.plan(starts, goals), whole.plan(starts, goals)
    same_paths(few, all_at_once)
    chunks = 128 * (-(-all_at_once.length // 496)).sum()  # what the moves take at least, in bytes
    assert chunks > 2 * 2**20  # more than two batches of 1 MB
    again = planner.plan(starts[:100], goals[:100])
    np.testing.assert_array_equal(again.cost, few.cost[:100])


def test_an_agent_whose_moves_fit_nowhere():
    """A corridor of more moves than 1 MB holds for a worker; another agent still gets its path."""
    costs = np.ones((601, 200), np.uint8)
    costs[1::4, :-1] = costs[3::4, 1:] = 0
    starts, goals = np.array([[0, 0], [600, 10]]), np.full((2, 2), [600, 0])
    planner = RtaaStar(GridMap(costs, 8), 8, "cpu", Settings(most_moves=10**6, memory_mb=1))
    paths = planner.plan(starts, goals)
    assert paths.status.tolist() == [AgentStatus.OUT_OF_MEMORY, AgentStatus.SOLVED]
    assert not broken_paths(GridMap(costs, 8), paths, starts, goals)


def test_update_takes_the_new_map():
    rng = np.random.default_rng(4)
    grid = GridMap(random_costs(rng, 50, 50, 0.2, 1), 8)
    planner = RtaaStar(grid)
    starts, goals = random_tiles(rng, grid.costs, 50), random_tiles(rng, grid.costs, 50)
    planner.plan(starts, goals)
    rows, cols = np.nonzero(grid.costs)
    changed = grid.changed(rows, cols, rng.integers(1, 9, len(rows)))
    planner.update(changed, rows, cols)
    same_paths(planner.plan(starts, goals), RtaaStar(changed).plan(starts, goals))


def test_settings_are_refused():
    for wrong in ({"lookahead": 0}, {"most_moves": -1}, {"table_size": 100}, {"table_size": 8}, {"memory_mb": "all"}):
        with pytest.raises(SettingsError, match=next(iter(wrong))):
            Settings(**wrong)


def test_settings_of_numpys_types_are_taken():
    few = {
        "lookahead": np.int8(3),
        "most_moves": np.uint8(100),
        "table_size": np.int16(64),
        "memory_mb": np.int32(4096),
    }
    grid, starts, goals = GridMap(np.ones((9, 9), np.uint8)), [[0, 0]], [[8, 5]]
    same_paths(RtaaStar(grid, 8, "cpu", Settings(**few)).plan(starts, goals), RtaaStar(grid).plan(starts, goals))


@pytest.mark.gpu
@CUDA
@pytest.mark.parametrize("connectivity, weights", MAPS)
@pytest.mark.parametrize("lookahead", [1, 3, 20])
def test_cuda_walks_as_the_cpu(connectivity, weights, lookahead):
    rng = np.random.default_rng(9)
    grid = GridMap(random_costs(rng, 120, 140, 0.25, weights), connectivity)
    starts, goals = random_tiles(rng, grid.costs, 3000), random_tiles(rng, grid.costs, 3000)
    for size in (16, 1024):  # the small table forgets
        cpu, cuda = (RtaaStar(grid, 8, device, Settings(lookahead, 3000, size)) for device in ("cpu", "cuda:0"))
        paths = cuda.plan(starts, goals)
        same_paths(cpu.plan(starts, goals), paths)
        assert not broken_paths(grid, paths, starts, goals)
        same_paths(cpu.plan(starts[:10], goals[:10]), cuda.plan(starts[:10], goals[:10]))
