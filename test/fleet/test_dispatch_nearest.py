"""The cheapest tasks by the straight distance are what a look at all pairs finds; large fleets keep their time."""

import time

import numpy as np
import pytest

from gpu_planners.fleet import Dispatcher, DispatchSettings, FleetPlanner, Task
from gpu_planners.fleet.dispatch.matching import NONE
from gpu_planners.fleet.dispatch.nearest import cheapest
from gpu_planners.grid import GridMap


@pytest.mark.parametrize("seed", range(8))
def test_the_cheapest_are_those_of_all_pairs(seed):
    rng = np.random.default_rng(seed)
    robots, tasks, most = rng.integers(1, 40), rng.integers(1, 60), rng.integers(1, 12)
    most = int(min(most, tasks))
    tiles, first = rng.integers(0, 9, (robots, 2)), rng.integers(0, 9, (tasks, 2))
    rank = rng.integers(-4, 5, tasks) / 2.0  # many are equal
    own = np.where(rng.random(robots) < 0.3, rng.integers(0, tasks, robots), NONE)
    refused = rng.random((robots, tasks)) < 0.3 if seed % 2 else None
    found, cost = cheapest(tiles, first, rank, own, most, refused)
    every = np.abs(tiles[:, None] - first).sum(axis=2) + rank
    for r in range(robots):
        allowed = [t for t in range(tasks) if refused is None or not refused[r, t]]
        best = sorted(allowed, key=lambda t: (t != own[r], every[r, t], t))[:most]
        assert found[r, : len(best)].tolist() == best and (found[r, len(best) :] == NONE).all()
        assert cost[r, : len(best)].tolist() == every[r, best].tolist()
        assert np.isinf(cost[r, len(best) :]).all()


def test_a_short_budget_serves_all_in_a_few_calls():
    """However short the time is, some robots get tasks in each call, and in the end all do."""
    rng = np.random.default_rng(0)
    fleet = FleetPlanner(GridMap(np.ones((30, 30), np.uint8)), "turning", "cpu")
    dispatcher = Dispatcher(fleet, DispatchSettings(new_fields=1))
    for id in range(450):
        dispatcher.submit(Task(rng.integers(0, 30, (2, 2))), id)
    tiles, busy = rng.integers(0, 30, (300, 2)), []
    for _ in range(5):
        began = time.process_time()
        dispatcher.assign(range(300), tiles, arrived=np.zeros(300, bool), budget_s=1e-6)
        assert time.process_time() - began < 5.0
        busy.append(len(dispatcher.holders()))
    assert busy[0] == 64 and busy == sorted(busy) and busy[-1] == 300
