"""Whole plans of few agents are optimal, and called so: against a search over joint states that shares nothing."""

import heapq
from itertools import product

import numpy as np
import pytest
from fleet_oracle import MODELS, MOVES, free_tiles, random_query

from gpu_planners.fleet import FleetPlanner, FleetStatus, Settings, conflicts
from gpu_planners.fleet.plan import oneshot
from gpu_planners.fleet.plan.fleet_plan import NO_PLAN
from gpu_planners.grid import GridMap


def least_sum(free, starts, goals, motion, following):
    """The lowest sum of costs, by Dijkstra's search over places, headings, and who stays for good; None without one."""

    def after(state, goal):
        """-> (next state, cost)"""
        row, col, heading, stays = state
        if stays:
            return [(state, 0)]
        found = [((row, col, heading, False), 1)]
        if (row, col) == goal:
            found.append(((row, col, heading, True), 0))
        for direction, (r, c) in enumerate(MOVES):
            if motion == "turning":
                if (direction - heading) % 4 in (1, 3):
                    found.append(((row, col, direction, False), 1))
                if direction != heading:
                    continue
            there = row + r, col + c
            if 0 <= there[0] < free.shape[0] and 0 <= there[1] < free.shape[1] and free[there]:
                found.append(((*there, heading, False), 1))
        return found

    first, ends = tuple((*start, 0, False) for start in starts), [tuple(goal) for goal in goals]
    best, heap = {first: 0}, [(0, first)]
    while heap:
        cost, state = heapq.heappop(heap)
        if cost > best[state]:
            continue
        if all(each[3] for each in state):
            return cost
        old = [each[:2] for each in state]
        for chosen in product(*map(after, state, ends)):
            then = tuple(each for each, _ in chosen)
            new = [each[:2] for each in then]
            if len(set(new)) < len(new):
                continue
            pairs = [(i, j) for i in range(len(new)) for j in range(len(new)) if i != j and new[i] == old[j]]
            if any(new[j] == old[i] or not following for i, j in pairs):
                continue
            price = cost + sum(each for _, each in chosen)
            if price < best.get(then, np.inf):
                best[then] = price
                heapq.heappush(heap, (price, then))
    return None


def solved(free, starts, goals, motion, following, limit=60.0, **settings):
    fleet = FleetPlanner(GridMap(free, 4), motion, "cpu", Settings(following=following, **settings))
    plan = fleet.solve(starts, goals, limit)
    assert conflicts(plan.positions, ~free, following=following) == []
    return plan


@pytest.mark.parametrize(("motion", "following"), MODELS)
def test_small_plans_are_optimal(motion, following):
    compared = 0
    for seed in range(12):
        free, starts, goals = random_query(seed + 100, (3, 3), 0.2, 2 if motion == "turning" else 3)
        best = least_sum(free, starts, goals, motion, following)
        plan = solved(free, starts, goals, motion, following)
        if (plan.status == FleetStatus.NO_PATH).any():
            continue
        assert plan.solved == (best is not None), seed
        if best is None:
            assert plan.message == NO_PLAN and not plan.optimal
            continue
        assert plan.sum_of_costs == best and plan.optimal, seed
        compared += best > plan.lower_bound
    assert compared > 2


TREE = ".TTT .... .TTT .TTT .TTT .TTT".replace("T", "#")


@pytest.mark.parametrize(("following", "best"), [(True, 53), (False, 88)])
@pytest.mark.parametrize("improve_until", ["limit", "settled"])
def test_four_that_hand_on_their_places_in_a_dead_end(following, best, improve_until):
    starts, goals = [[5, 0], [4, 0], [3, 0], [1, 0]], [[2, 0], [3, 0], [4, 0], [5, 0]]
    plan = solved(free_tiles(TREE), starts, goals, "four", following, improve_until=improve_until)
    assert plan.solved and plan.sum_of_costs == best and plan.optimal


def test_the_first_plan_alone_is_asked_for(monkeypatch):
    starts, goals = [[5, 0], [4, 0], [3, 0], [1, 0]], [[2, 0], [3, 0], [4, 0], [5, 0]]
    monkeypatch.setattr(oneshot.Moving, "improve", lambda *_: pytest.fail("it goes on"))
    plan = solved(free_tiles(TREE), starts, goals, "four", True, improve_until="first")
    assert plan.solved and not plan.optimal and plan.sum_of_costs > 53


def test_more_agents_than_plan_together_begin_again_until_the_limit(monkeypatch):
    seeds = []
    first_plan = oneshot.first_plan

    def seen(instance, model, deadline, seed, memory):
        seeds.append(seed)
        return first_plan(instance, model, deadline, seed, memory)

    monkeypatch.setattr(oneshot, "first_plan", seen)
    monkeypatch.setattr(oneshot.joint, "MOST_AGENTS", 4)
    free, starts, goals = random_query(5, (5, 5), 0.1, 12)
    settled = solved(free, starts, goals, "turning", False, improve_until="settled")
    assert max(seeds) < oneshot.FIRST_AGAIN
    plan = solved(free, starts, goals, "turning", False, 4.0)
    assert plan.solved and plan.sum_of_costs <= settled.sum_of_costs and not plan.optimal
    assert max(seeds) >= oneshot.FIRST_AGAIN


def test_agents_of_other_parts_and_without_goals_take_part():
    """Two parts of the map, one without a better plan than its agents' own ways; an agent without a goal gives way."""
    free = free_tiles("...#... .#.#.#. ...#...")
    starts, goals = [[0, 0], [0, 2], [0, 4], [2, 6]], [[0, 2], [0, 0], [2, 6], [0, 4]]
    plan = solved(free, starts, goals, "four", False)
    assert plan.solved and plan.optimal
    both = [least_sum(free, starts[k : k + 2], goals[k : k + 2], "four", False) for k in (0, 2)]
    assert plan.sum_of_costs == sum(both)
    plan = solved(free_tiles("..... ..#.."), [[0, 0], [0, 2]], [[0, 4], [9, 9]], "four", True)
    assert plan.costs.tolist() == [4, 0] and plan.optimal
    assert [FleetStatus(int(s)).name for s in plan.status] == ["SOLVED", "GOAL_OUTSIDE"]


def test_a_proof_ends_the_search_at_once(monkeypatch):
    """Also where the agents are larger or slower, and beside a part that has a plan."""
    monkeypatch.setattr(oneshot.Moving, "improve", lambda *_: pytest.fail("it goes on"))
    lane = np.ones((1, 300), bool)
    starts, goals = [[0, 0], [0, 299]], [[0, 299], [0, 0]]
    for motion, following in MODELS:
        plan = solved(lane, starts, goals, motion, following, 1e5)
        assert plan.message == NO_PLAN and FleetStatus.NO_JOINT_PLAN in plan.status
        assert (plan.status[(plan.positions[-1] != goals).any(axis=1)] == FleetStatus.NO_JOINT_PLAN).all()
    for settings in ({"ticks_per_move": 2}, {"safety_distance": 1}, {"size": 2}):
        wide = np.ones((settings.get("size", 1), 40), bool)
        plan = FleetPlanner(GridMap(wide, 4), "turning", "cpu", Settings(**settings)).solve(
            [[0, 1], [0, 38]], [[0, 38], [0, 1]], 1e5
        )
        assert plan.message == NO_PLAN and (plan.status == FleetStatus.NO_JOINT_PLAN).all(), settings
    both = np.ones((3, 300), bool)
    both[1] = False
    starts, goals = [[0, 0], [0, 299], [2, 0]], [[0, 299], [0, 0], [2, 20]]
    plan = solved(both, starts, goals, "four", True, 1e5)
    assert plan.status[2] == FleetStatus.SOLVED and FleetStatus.NO_JOINT_PLAN in plan.status[:2]


@pytest.mark.parametrize("following", [True, False])
def test_many_that_only_make_way_are_searched_together(following):
    """Two change places in a lane with a bay, ten others stand at their goals beside it; the two would be as quick
    without them."""
    free = free_tiles("....... ###.### ....... .......")
    starts, goals = [[0, 0], [0, 6]], [[0, 6], [0, 0]]
    alone = least_sum(free[:2], starts, goals, "four", following)
    others = [[row, col] for row in (2, 3) for col in (0, 1, 2, 4, 5)]
    plan = solved(free, starts + others, goals + others, "four", following)
    assert plan.solved and plan.optimal and plan.sum_of_costs == alone > plan.lower_bound
