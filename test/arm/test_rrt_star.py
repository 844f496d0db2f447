"""rrt_star: known optima, a serial reference, the tree's consistency, budgets, bad input; paths re-checked by other
code."""

import math
from dataclasses import replace

import numpy as np
import pytest
from plane_oracle import along, arm_meets_boxes
from rrt_star_oracle import least_gamma
from rrt_star_oracle import rrt_star as reference
from walled_point import DEVICES, GOAL, OPTIMUM, PLAIN, START, free_by_oracle, walled

from gpu_planners.arm.planners.node_store import TILE
from gpu_planners.arm.planners.query import open_query
from gpu_planners.arm.planners.tree import growth, rrt, rrt_star
from gpu_planners.arm.planners.tree import search as tree_search
from gpu_planners.arm.planners.tree.search import TreeSearch
from gpu_planners.papers.bkf11.planar import PlanarChecker, equal_links, nine_link_scene


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "settings",
    [
        {"batch": 1, "informed": False},
        {"batch": 64, "informed": False},
        {"batch": 1024, "informed": False},
        {"batch": 64},
        {"batch": 64, "range": 0.2},
    ],
    ids=str,
)
def test_cost_falls_to_the_optimum(device, settings):
    checker = walled(device)
    costs = []
    for samples in (300, 1200, 6000):
        results = [
            rrt_star.solve(START, GOAL, checker, rrt_star.Settings(max_samples=samples, **PLAIN, **settings), seed)
            for seed in range(3)
        ]
        assert all(result.solved and result.samples == samples for result in results)
        assert all(free_by_oracle(result.path[:-1], result.path[1:]).all() for result in results)
        costs.append(np.mean([result.cost for result in results]))
    assert costs[0] > costs[2] > OPTIMUM
    assert costs[2] < 1.02 * OPTIMUM


def test_rrt_does_not_get_there():
    """What rewiring is for: RRT with the same samples stays well above the optimum."""
    settings = rrt.Settings(max_samples=6000, stop_at_first=False, **PLAIN)
    costs = [rrt.solve(START, GOAL, walled(), settings, seed).cost for seed in range(5)]
    assert np.mean(costs) > 1.03 * OPTIMUM


@pytest.mark.parametrize("batch", [1, 64])
def test_no_worse_than_the_serial_reference(batch):
    seeds, looks = range(6), (200, 400, 800)
    serial = np.mean(
        [
            reference(START, GOAL, [0, 0], [1, 1], free_by_oracle, looks[-1], seed)[np.array(looks) - 1]
            for seed in seeds
        ],
        axis=0,
    )
    for samples, reference_cost in zip(looks, serial):
        settings = rrt_star.Settings(max_samples=samples, batch=batch, informed=False, **PLAIN)
        ours = np.mean([rrt_star.solve(START, GOAL, walled(), settings, seed).cost for seed in seeds])
        assert ours < 1.01 * reference_cost


def test_no_worse_than_the_serial_reference_on_an_arm():
    arm, boxes = equal_links(3), np.array([[0.3, 0.2, 0.5, 0.6], [-0.5, 0.3, -0.2, 0.5]])
    start, goal, full = np.zeros(3), np.array([2.8, 0.3, 0.0]), np.full(3, np.pi)
    checker = PlanarChecker(arm, boxes, "cpu")
    seeds, samples = range(8), 800
    serial = np.mean([reference(start, goal, -full, full, checker.motions_valid, samples, seed)[-1] for seed in seeds])
    for batch in (1, 64, 256):
        settings = rrt_star.Settings(max_samples=samples, batch=batch, informed=False, **PLAIN)
        ours = np.mean([rrt_star.solve(start, goal, checker, settings, seed).cost for seed in seeds])
        assert ours < 1.05 * serial


def test_informed_samples_help_and_stay_inside():
    """After a path is known, samples lie where the sum of the distances to start and goal is below its cost."""
    checker = walled()
    found = {
        informed: np.mean(
            [
                rrt_star.solve(
                    START, GOAL, checker, rrt_star.Settings(max_samples=600, informed=informed, **PLAIN), seed
                ).cost
                for seed in range(5)
            ]
        )
        for informed in (True, False)
    }
    assert found[True] < found[False]
    search = grown(checker, START, GOAL, rrt_star.Settings(max_samples=1500, **PLAIN), informed=True, samples=500)
    before, cost = search.count, search.cost
    while search.drawn < 1500:
        search.advance()
    q = tree_of(search)[0][before:]
    sums = np.linalg.norm(q - START, axis=1) + np.linalg.norm(q - GOAL, axis=1)
    assert len(q) > 300 and sums.max() <= cost * (1 + 1e-5)
    assert (q >= 0).all() and (q <= 1).all()
    assert (
        abs(q[:, 1].mean() - 0.5) < 0.1 and q[:, 1].min() < 0.2 and q[:, 1].max() > 0.8
    )  # both ways around are sampled


def grown(checker, start, goals, settings, star=True, informed=False, seed=0, samples=None):
    """-> TreeSearch after all of its samples, or after so many."""
    settings = replace(settings, time_limit_s=3600.0)  # a search that is late draws no more
    search = TreeSearch(open_query(start, goals, checker, settings), settings, seed, star, 1.1, informed)
    while search.drawn < (samples or settings.max_samples):
        search.advance()
    return search


def tree_of(search):
    """-> configurations (n, dof), parents (n,): -1 at the root, -2 where none, and edges (n,).

    The goals come first, then rows that are not used, then the start, `search.first`."""
    growth, n = search.growth(), search.count
    tree, dof = growth.tree, len(growth.tree.scale)
    tiles = tree.nodes[: len(tree.nodes) // (dof * TILE) * dof * TILE].reshape(-1, dof, TILE)
    q = tiles.transpose(0, 2, 1).reshape(-1, dof)[:n] / growth.tree.scale
    parents, edges = tree.parent[:n].copy(), tree.edge[:n].copy()
    unused = slice(len(search.query.goals), search.first)
    q[unused], parents[unused], edges[unused] = 0, -2, 0
    return q, parents, edges


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("star", [True, False], ids=["rrt_star", "rrt"])
def test_the_tree_is_consistent(device, star):
    """Every node hangs on the start, edges have the length of their motion and are free, the best cost is the least."""
    arm, boxes, start, goal = nine_link_scene()
    settings = rrt_star.Settings(max_samples=1500, batch=128, **PLAIN)
    search = grown(PlanarChecker(arm, boxes, device), start, [goal, goal + 0.1], settings, star)
    q, parents, edges = tree_of(search)
    reached = np.flatnonzero(parents >= 0)
    reached = reached[(reached < 2) | (reached > search.first)]
    assert len(reached) > 300 and parents[search.first] == -1
    np.testing.assert_allclose(
        edges[reached], np.linalg.norm(q[reached] - q[parents[reached]], axis=1), rtol=1e-5, atol=1e-6
    )
    for i in reached[::7]:
        assert not arm_meets_boxes(arm.lengths, along(q[parents[i]], q[i], 100), boxes, -2e-6).any()
    costs = {search.first: 0.0}
    for i in reached:
        chain = [i]
        while chain[-1] not in costs:
            chain.append(parents[chain[-1]])
            assert len(chain) <= len(q), "a cycle"
        for child, parent in zip(chain[-2::-1], chain[:0:-1]):
            costs[child] = costs[parent] + edges[child]
    at_goal = [costs[g] for g in range(2) if g in costs]
    assert search.cost == pytest.approx(min(at_goal), rel=1e-5)


def test_near_radius_is_the_bound():
    checker = walled(upper=(2.0, 3.0))
    settings = rrt_star.Settings(max_samples=400, weights=(4.0, 1.0), **PLAIN)
    search = grown(checker, 2 * START, 2 * GOAL, settings)
    n = search.count - search.first
    expected = 1.1 * least_gamma(4.0 * 3.0, 2) * math.sqrt(math.log(n) / n)
    assert growth.near_radius(search.growth(), search.count) == pytest.approx(expected, rel=1e-4)


def test_weights():
    """Sideways costs double: lengths of the scaled space."""
    settings = rrt_star.Settings(max_samples=5000, weights=(4.0, 1.0), **PLAIN)
    result = rrt_star.solve(START, GOAL, walled(), settings)
    optimum = 2 * math.sqrt(4 * 0.3**2 + 0.3**2) + 2 * 0.2
    assert optimum < result.cost < 1.02 * optimum
    assert result.cost == pytest.approx(np.sqrt((np.diff(result.path, axis=0) ** 2) @ [4.0, 1.0]).sum())


def test_the_cheapest_goal_and_a_straight_way_at_once():
    goals = np.array([[0.9, 0.9], [0.2, 0.9], [0.3, 0.5]])
    result = rrt_star.solve(START, goals, walled())
    assert result.goal_index == 2 and result.samples == 0 and result.cost == pytest.approx(0.2)


def test_history_is_anytime():
    settings = rrt_star.Settings(max_samples=3000, **PLAIN)
    result = rrt_star.solve(START, GOAL, walled(), settings, seed=2)
    samples, seconds, cost = result.history.T
    assert len(cost) > 5 and (np.diff(samples) > 0).all() and (np.diff(seconds) > 0).all() and (np.diff(cost) < 0).all()
    assert cost[-1] == pytest.approx(result.cost, rel=1e-5) and samples[-1] <= 3000 and seconds[-1] <= result.time_s
    half = rrt_star.solve(START, GOAL, walled(), rrt_star.Settings(max_samples=1500, **PLAIN), seed=2)
    assert (
        cost[samples <= 1600][-1] * (1 - 1e-5) < half.cost < cost[samples <= 1500][-1] * (1 + 1e-5)
    )  # its last round is cut short


def test_time_limit_ends_with_the_best_so_far():
    settings = rrt_star.Settings(max_samples=10_000_000, time_limit_s=0.15, shortcut_rounds=0)
    rrt_star.solve(START, GOAL, walled(), settings)  # compiles
    result = rrt_star.solve(START, GOAL, walled(), settings)
    assert result.solved and result.samples < 10_000_000


@pytest.mark.parametrize("device", DEVICES)
def test_more_nodes_than_there_was_room(device, monkeypatch):
    """The buffers grow during a query, and the tree stays the same."""
    checker, settings = walled(device), rrt_star.Settings(max_samples=20_000, batch=1024, **PLAIN)
    nodes = tree_of(grown(checker, START, GOAL, settings))
    monkeypatch.setattr(tree_search, "FIRST_NODES", 64)
    assert all(np.array_equal(a, b) for a, b in zip(nodes, tree_of(grown(checker, START, GOAL, settings))))


@pytest.mark.parametrize("device", DEVICES[1:])
def test_cuda_does_what_the_cpu_does(device):
    """Rounding apart, the tree does not depend on who works on it; its path is free by other code."""
    arm, boxes, start, goal = nine_link_scene()
    settings = rrt_star.Settings(max_samples=5000, batch=256, informed=False, **PLAIN)
    for seed in range(4):
        on_cpu, on_cuda = (
            rrt_star.solve(start, goal, PlanarChecker(arm, boxes, d), settings, seed) for d in ("cpu", device)
        )
        assert on_cuda.cost == pytest.approx(on_cpu.cost, rel=1e-4)
        for a, b in zip(on_cuda.path, on_cuda.path[1:]):
            assert not arm_meets_boxes(arm.lengths, along(a, b, 100), boxes, -2e-6).any()
