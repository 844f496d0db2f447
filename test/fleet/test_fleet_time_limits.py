"""Time limits of whole plans: kept whatever takes long, and what is answered holds.

CPU time of the process is counted, since the wall clock goes on while others work.
"""

import time

import numpy as np
import pytest

from gpu_planners.fleet import FleetStatus, Settings, conflicts
from gpu_planners.fleet.fields.next_hops import ground_of
from gpu_planners.fleet.plan import instance, oneshot, retime
from gpu_planners.fleet.plan.fleet_plan import OUT_OF_TIME
from gpu_planners.fleet.plan.instance import Model
from gpu_planners.fleet.plan.retime import LOOK, timed
from gpu_planners.grid import FleetPlanner, GridMap
from gpu_planners.grid.maps.generated import largest_component
from gpu_planners.parallel.team import clock_ns

SLACK = 0.3  # seconds of CPU, beyond what all cores do within the limit; without limits each of these takes 2 to 30
CORES = 2


def crowd(agents, side):
    rng = np.random.default_rng(0)
    free = largest_component(rng.uniform(size=(side, side)) > 0.2)
    tiles = np.argwhere(free)
    return free, tiles[rng.permutation(len(tiles))[:agents]], tiles[rng.permutation(len(tiles))[:agents]]


def rooms(agents, side):
    """Rooms of 15 x 15 tiles with doors, half full: where nobody follows closely, a plan takes tens of thousands of
    steps."""
    free = np.ones((side, side), bool)
    free[15::16], free[:, 15::16] = False, False
    rng = np.random.default_rng(1)
    for k in range(15, side, 16):
        for begin in range(0, side, 16):
            free[k, min(begin + rng.integers(15), side - 1)] = free[min(begin + rng.integers(15), side - 1), k] = True
    free = largest_component(free)
    tiles = np.argwhere(free)
    return free, tiles[rng.permutation(len(tiles))[:agents]], tiles[rng.permutation(len(tiles))[:agents]]


QUERIES = {  # motion, agents, side of the map, settings, what is asked
    "turning": ("turning", 3000, 200, {}, "goals"),
    "four": ("four", 6000, 300, {}, "goals"),
    "without following": ("turning", 3000, 200, {"following": False}, "goals"),
    "long plans": ("turning", 1500, 60, {"following": False}, "goals"),
    "half full rooms": ("turning", 1800, 64, {"following": False}, "goals"),
    "tiles for any": ("turning", 3000, 200, {}, "assign"),
    "sink": ("turning", 3000, 200, {}, "sink"),
    "large agents": ("turning", 600, 300, {"size": 2, "safety_distance": 1}, "goals"),
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("limit", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("name", QUERIES)
def test_a_plan_ends_in_time_and_is_true(name, limit):
    motion, agents, side, settings, asked = QUERIES[name]
    free, starts, goals = (rooms if "rooms" in name else crowd)(agents, side)
    fleet = FleetPlanner(GridMap(free, connectivity=4), motion, "cpu", Settings(**settings))
    more = {"assign": True} if asked == "assign" else {}
    goals = goals[0] if asked == "sink" else goals
    fleet.solve(starts[:2], goals if asked != "goals" else goals[:2], 0.1, **more)  # compiles, and knows the map
    began = time.process_time()
    plan = fleet.solve(starts, goals, limit, **more)
    assert time.process_time() - began < CORES * limit + SLACK
    near = settings.get("size", 1) - 1 + settings.get("safety_distance", 0)
    offsets = [(r, c) for r in range(-near, near + 1) for c in range(-near, near + 1)]
    assert conflicts(plan.positions, ~free, offsets, fleet.settings.following) == []
    reached = plan.status == FleetStatus.SOLVED
    if asked != "sink":
        assert (plan.positions[-1][reached] == plan.goals[reached]).all()
        assert (plan.positions[-1] != plan.goals).any(axis=1)[plan.status == FleetStatus.NOT_REACHED].all()
    assert (plan.costs >= plan.lower_bounds)[reached].all() and plan.sum_of_costs >= plan.lower_bound


@pytest.mark.parametrize("name", QUERIES)
def test_no_search_goes_on_that_leaves_no_time_to_tell_of_it(name, monkeypatch):
    """It would take a minute for each agent and step."""
    monkeypatch.setattr(instance, "TIME_NS", 60 * 10**9)
    monkeypatch.setattr(oneshot, "WALKED_NS", 60 * 10**9)
    motion, _, _, settings, asked = QUERIES[name]
    free, starts, goals = crowd(8, 16)
    fleet = FleetPlanner(GridMap(free, connectivity=4), motion, "cpu", Settings(**settings))
    plan = fleet.solve(starts, goals[0] if asked == "sink" else goals, 0.5, assign=asked == "assign")
    assert plan.makespan <= 3 and plan.message == OUT_OF_TIME  # a move, and turns before it


def test_bounds_without_time_are_bounds():
    """Those of a plan that had no time are no higher than those of one that had."""
    free, starts, goals = crowd(60, 20)
    fleet = FleetPlanner(GridMap(free, connectivity=4), "turning", "cpu")
    hasty, slow = (fleet.solve(starts, goals, limit) for limit in (0.0, 3.0))
    assert (hasty.lower_bounds <= slow.lower_bounds).all() and hasty.lower_bounds.sum() > 0


def test_a_small_plan_is_told_however_late_it_is(monkeypatch):
    """A busy machine may have left the process no time at all."""
    monkeypatch.setattr(oneshot, "deadline_after", lambda _: clock_ns() - 10**10)
    monkeypatch.setattr(oneshot, "first_plan", lambda instance, *_: (walked[instance.number.size], "solved"))
    walked = {60: np.array([[0], [1], [2], [3]], np.int32)}
    plan = FleetPlanner(GridMap(np.ones((1, 60)), 4), "four", "cpu").solve([[0, 0]], [[0, 3]], 1.0)
    assert plan.solved and plan.makespan == 3


def test_an_agent_that_passes_its_goal_when_the_plan_is_cut_is_there():
    query = instance.Instance(
        ground_of(np.ones((1, 9), bool)), np.array([[0.0, 0], [0, 8]]), np.array([[0.0, 2], [0, 5]])
    )
    tiles = np.array([[0, 1, 2, 3, 2], [8, 8, 7, 6, 5]], np.int32)
    for steps, costs in ((2, [2, 0]), (3, [0, 0]), (4, [4, 4])):
        told = query.told(tiles[:, : steps + 1], np.zeros((2, steps + 1), np.uint8))
        plan = query.plan_of(*told, np.array([4, 4]), np.array([2, 3]), "solved", time.perf_counter())
        assert plan.costs.tolist() == costs and (plan.status == FleetStatus.SOLVED).tolist() == [c > 0 for c in costs]
        assert plan.solved == (plan.message == "solved") and (steps == 4 or plan.message == OUT_OF_TIME)


def test_a_motion_that_takes_longer_to_tell_is_cut(monkeypatch):
    """What is left of it is its beginning: of a train that nobody may follow closely, one tile after the other."""
    free = np.ones((1, 60), bool)
    starts = np.array([[0, col] for col in range(20)])
    query = instance.Instance(ground_of(free), starts.astype(float), starts + [0.0, 39.0])
    walked = np.arange(20)[None] + np.arange(40)[:, None]
    how = np.zeros(20, np.int32), Model(True, False)
    tiles, headings, ends, is_whole = timed(query, walked.astype(np.int32), *how)
    assert is_whole and tiles.shape[1] > 2 * LOOK and (tiles[:, -1] == np.arange(20) + 39).all()
    monkeypatch.setattr(retime, "GRACE_NS", 0)
    monkeypatch.setattr(instance, "GRACE_NS", 0)
    some, faces, until, is_whole = timed(query, walked.astype(np.int32), *how, deadline=clock_ns() + 1)
    assert not is_whole and some.shape[1] <= LOOK + 1
    assert (some == tiles[:, : some.shape[1]]).all() and (faces == headings[:, : some.shape[1]]).all()
    assert (until <= ends).all()
    positions, _ = query.told(tiles, headings, clock_ns())
    assert len(positions) == 1 and (positions[0] == starts).all()
