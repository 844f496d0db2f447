"""Fleets for life: no step ever has a conflict, agents arrive, faults are met. The validator shares no code."""

import numpy as np
import pytest

from gpu_planners.errors import GridMapError, SettingsError
from gpu_planners.grid import FleetPlanner, GridMap
from gpu_planners.grid.fleet import Settings, conflicts


def room(seed=0, shape=(16, 20), blocked=0.15):
    """A map whose free tiles all hang together."""
    from scipy.ndimage import label

    free = np.random.default_rng(seed).uniform(size=shape) > blocked
    parts, _ = label(free)
    return parts == np.argmax(np.bincount(parts[parts > 0]))


def places(free, n, rng):
    tiles = np.argwhere(free)
    return tiles[rng.permutation(len(tiles))[:n]]


def run(fleet, free, steps, seed=0, budget_s=0.0, each=None):
    """Errands until the end -> positions (steps + 1, N, 2), goals reached by each agent"""
    rng = np.random.default_rng(seed)
    n = len(fleet.positions)
    goals, done, walked = places(free, n, rng) if n <= free.sum() else None, np.zeros(n, int), [fleet.positions]
    for step in range(steps):
        fleet.step(goals, budget_s)
        if each:
            each(step, fleet)
        walked.append(fleet.positions)
        there = (walked[-1] == goals).all(axis=1)
        done += there
        goals[there] = np.argwhere(free)[rng.integers(free.sum(), size=there.sum())]
    return np.array(walked), done


@pytest.mark.parametrize("motion", ["four", "turning"])
@pytest.mark.parametrize("following", [True, False])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_no_step_has_a_conflict_and_agents_arrive(motion, following, share):
    free = room()
    fleet = FleetPlanner(GridMap(free, connectivity=4), motion, "cpu", Settings(following=following))
    fleet.start(places(free, int(share * free.sum()), np.random.default_rng(1)))
    walked, done = run(fleet, free, 150)
    assert conflicts(walked, ~free, following=following) == []
    assert done.sum() > (150 if share < 0.9 and (following or share < 0.5) else 0)
