"""Fields that take longer than a step's budget are planned over several steps; agents wait for them where they are."""

import numpy as np
import pytest

from gpu_planners.fleet import FleetPlanner, Settings, conflicts
from gpu_planners.fleet.fields import store as fields
from gpu_planners.grid import GridMap

N = 24


@pytest.fixture
def slow_fields(monkeypatch):
    """Each field takes ten times the budgets of these tests, by a clock of their own. -> how many were planned"""
    clock, planned = [0], []
    monkeypatch.setattr(fields, "fits", lambda deadline, ns: clock[0] + ns <= deadline - began)
    began = fields.clock_ns()
    monkeypatch.setattr(fields, "clock_ns", lambda: began + clock[0])

    class Counted(fields.FieldStore):
        def __init__(self, engine, *sizes):
            super().__init__(engine, *sizes)
            plan = engine.plan

            def slowly(goals, slots):
                clock[0] += 10**12
                planned.append(len(goals))
                plan(goals, slots)

            engine.plan = slowly

    monkeypatch.setattr("gpu_planners.fleet.planner.FieldStore", Counted)
    return planned


@pytest.mark.parametrize("following", [True, False])
@pytest.mark.parametrize("motion", ["four", "turning"])
def test_fields_are_spread_over_steps_and_agents_wait_for_them(motion, following, slow_fields):
    fleet = FleetPlanner(GridMap(np.ones((12, 14)), 4), motion, "cpu", Settings(following=following))
    rng = np.random.default_rng(0)
    tiles = np.argwhere(np.ones((12, 14)))
    fleet.start(tiles[rng.permutation(len(tiles))[:N]])
    goals, walked, waited = tiles[rng.permutation(len(tiles))[:N]], [fleet.positions], []
    while len(waited) < 200 and not (fleet.positions == goals).all():
        before = len(slow_fields)
        fleet.step(goals, 0.005)
        assert len(slow_fields) - before == (fleet.waiting.size > 0 or len(slow_fields) > before)  # one lot a step
        walked.append(fleet.positions)
        waited.append(len(fleet.waiting))
    assert conflicts(np.array(walked), following=following) == []
    assert (fleet.positions == goals).all()
    lot = slow_fields[0]
    assert sum(slow_fields) == N and waited[:3] == [N - lot, max(0, N - 2 * lot), max(0, N - 3 * lot)]


def test_without_a_budget_all_fields_are_there_at_once(slow_fields):
    fleet = FleetPlanner(GridMap(np.ones((6, 8)), 4), "four", "cpu")
    fleet.start([[0, 0], [5, 7]])
    fleet.step([[5, 5], [2, 0]])
    assert slow_fields == [2] and not fleet.waiting.size


def test_whoever_has_waited_longest_gets_its_field_first(slow_fields):
    """Agents with low numbers get new goals all the time; none of the others starves."""
    fleet = FleetPlanner(GridMap(np.ones((10, 10)), 4), "four", "cpu")
    tiles = np.argwhere(np.ones((10, 10)))
    fleet.start(tiles[:20])
    goals, moved = tiles[40:60].copy(), np.zeros(20, bool)
    for step in range(30):
        before = fleet.positions
        goals[:4] = tiles[60 + (step + np.arange(4) * 9) % 40]
        fleet.step(goals, 0.005)
        moved |= ~np.isin(np.arange(20), fleet.waiting)
        assert (np.abs(fleet.positions - before).sum(axis=1) <= 1).all()
    assert moved[4:].all()


def test_prepare_says_which_fields_are_there(slow_fields):
    fleet = FleetPlanner(GridMap(np.ones((10, 10)), 4), "four", "cpu")
    tiles = np.argwhere(np.ones((10, 10)))
    fleet.start(tiles[:20])
    ready = fleet.prepare(tiles[40:60], 1e-3, least=5)
    assert 5 <= ready.sum() == sum(slow_fields) < 20
    assert fleet.prepare(tiles[40:60]).all() and sum(slow_fields) == 20


def test_fields_stay_when_their_room_grows():
    """Whatever the order in which goals come, ways from all tiles cost the same."""
    tiles = np.argwhere(np.ones((9, 11)))

    def costs_to(fleet, goals):
        """(K, tiles), asked for one after the other"""
        return np.array([fleet.steps_to_go(np.broadcast_to(goal, tiles.shape)) for goal in goals])

    fleets = [FleetPlanner(GridMap(np.ones((9, 11)), 4), "turning", "cpu") for _ in range(3)]
    for fleet in fleets:
        fleet.start(tiles)
    before, grown = costs_to(fleets[0], tiles[:5]), costs_to(fleets[0], tiles)
    assert (before == grown[:5]).all() and (costs_to(fleets[0], tiles[:5]) == before).all()
    assert (costs_to(fleets[1], tiles) == grown).all()
    assert len(np.unique(grown, axis=0)) == len(tiles)
    fleets[2].step(tiles)
    moved = [tiles.tolist().index(place) for place in fleets[2].positions.tolist()]
    assert (fleets[2].headings == 0).all() and (costs_to(fleets[2], tiles[::-1]) == grown[::-1][:, moved]).all()
