"""Agents that block each other: two never do for good where a search over joint states finds a plan."""

import threading

import numpy as np
import pytest
from fleet_devices import needs_gpu, walked_on_both
from fleet_oracle import MODELS, free_tiles, joint_optimum, random_query

from benchmarks.fleet_lanes import by_steps, cases, comb, halls
from benchmarks.fleets_late import run
from gpu_planners.fleet import Settings, conflicts
from gpu_planners.fleet.fields.next_hops import ground_of
from gpu_planners.fleet.plan.turns import lanes_of, narrow_tiles
from gpu_planners.fleet.step import deadlock
from gpu_planners.grid import FleetPlanner, GridMap
from gpu_planners.grid.maps.generated import warehouse_map

LONGEST_WAIT = 400  # steps for an errand, on maps where up to half of all tiles are taken


def fleet_on(free, starts, motion, following, **settings):
    fleet = FleetPlanner(GridMap(free, connectivity=4), motion, "cpu", Settings(following=following, **settings))
    fleet.start(starts)
    return fleet


def steps_until_all_are_there(fleet, free, goals, most):
    """-> how many steps it took, or None; no step has a conflict"""
    walked = [fleet.positions]
    while not (walked[-1] == goals).all() and len(walked) <= most:
        fleet.step(goals)
        walked.append(fleet.positions)
    assert conflicts(np.array(walked), ~free, following=fleet.settings.following) == []
    return len(walked) - 1 if (walked[-1] == goals).all() else None


def corridor(tiles, bay):
    return free_tiles("." * tiles + " " + "#" * bay + "." + "#" * (tiles - bay - 1))


@pytest.mark.parametrize(("motion", "following"), MODELS)
@pytest.mark.parametrize(("tiles", "bay"), [(12, 1), (12, 6), (12, 10), (60, 30)])
def test_two_agents_change_places_where_a_corridor_has_one_bay(motion, following, tiles, bay):
    free, ends = corridor(tiles, bay), [[0, 0], [0, tiles - 1]]
    fleet = fleet_on(free, ends, motion, following)
    assert steps_until_all_are_there(fleet, free, ends[::-1], 6 * tiles + 100) is not None


@pytest.mark.parametrize(("motion", "following"), MODELS)
def test_two_agents_arrive_on_every_small_map_where_they_can(motion, following):
    """Among them maps where they push each other off their goals by turns."""
    solvable = 0
    for seed in [*range(40), 165, 186, 236, 356, 362]:
        rng = np.random.default_rng(seed)
        free, starts, goals = random_query(seed, tuple(rng.integers(2, 7, size=2)), rng.uniform(0.2, 0.55), 2)
        if len(starts) < 2 or joint_optimum(free, starts, goals, motion, following) is None:
            continue
        solvable += 1
        fleet = fleet_on(free, starts, motion, following)
        assert steps_until_all_are_there(fleet, free, goals, 500) is not None, (seed, free, starts, goals)
    assert solvable > 15


@pytest.mark.parametrize(("motion", "following"), MODELS)
def test_each_of_two_agents_gets_to_its_goal_where_they_cannot_both_be_there(motion, following):
    free, goals = free_tiles("........"), [[0, 5], [0, 2]]
    fleet, reached = fleet_on(free, [[0, 0], [0, 7]], motion, following), set()
    for _ in range(400):
        fleet.step(goals)
        reached |= set(np.flatnonzero((fleet.positions == goals).all(axis=1)).tolist())
    assert reached == {0, 1}


@pytest.mark.parametrize(("motion", "following"), MODELS)
def test_errands_go_on_in_a_corridor(motion, following):
    """Two agents that go from end to end for life."""
    free, ends = corridor(12, 6), np.array([[0, 0], [0, 11]])
    fleet, goals, done = fleet_on(free, ends, motion, following), ends[::-1].copy(), np.zeros(2, int)
    walked = [fleet.positions]
    for _ in range(1500):
        fleet.step(goals)
        walked.append(fleet.positions)
        there = (walked[-1] == goals).all(axis=1)
        done += there
        goals[there] = ends[::-1][(goals[there, 1] > 0).astype(int)]
    assert conflicts(np.array(walked), ~free, following=following) == []
    assert (done > 5).all()


@pytest.mark.parametrize("agents", [3, 20])
def test_some_of_many_agents_plan_their_ways_out_of_a_corridor(agents):
    """Two that face each other in a corridor, the others have nothing to do in a hall beside it."""
    free = np.zeros((8, 14), bool)
    free[0], free[1, 6], free[3:] = True, True, True
    free[1:4, 0] = True  # the way into the hall, which is longer than to the bay
    hall = np.argwhere(free)[-(agents - 2) :].tolist()
    starts = [[0, 4], [0, 13], *hall]
    goals = np.array([[0, 13], [0, 4], *hall])
    fleet = fleet_on(free, starts, "turning", False)
    assert steps_until_all_are_there(fleet, free, goals, 1000) is not None


@pytest.mark.parametrize("motion", ["four", "turning"])
def test_two_agents_that_are_late_change_places(motion):
    """What they were to do they have not always done when the next step begins."""
    free, goals, rng = corridor(12, 6), [[0, 11], [0, 0]], np.random.default_rng(0)
    fleet = fleet_on(free, goals[::-1], motion, False)
    walked = [fleet.positions]
    for _ in range(2000):
        faces = fleet.headings
        fleet.step(goals)
        late = rng.uniform(size=2) < 0.1
        fleet.observe(np.where(late[:, None], walked[-1], fleet.positions), np.where(late, faces, fleet.headings))
        walked.append(fleet.positions)
        if (walked[-1] == goals).all():
            break
    assert (walked[-1] == goals).all() and conflicts(np.array(walked), ~free, following=False) == []


def test_the_same_fleet_makes_the_same_steps():
    free, ends = corridor(12, 1), [[0, 0], [0, 11]]
    both = []
    for _ in range(2):
        fleet = fleet_on(free, ends, "turning", False)
        both.append([(fleet.step(ends[::-1]), fleet.positions)[1].tolist() for _ in range(120)])
    assert both[0] == both[1]


def test_steps_with_a_budget_do_not_wait_until_the_search_is_compiled(monkeypatch):
    compiled = threading.Event()
    monkeypatch.setattr(deadlock, "_search_once", lambda *_: compiled.wait(60))
    free, ends = corridor(12, 6), np.array([[0, 0], [0, 11]])
    fleet = fleet_on(free, ends, "turning", True, neighbourhood_search=False)
    try:
        for _ in range(200):
            fleet.step(ends[::-1], budget_s=1e-3)
        assert not (fleet.positions == ends[::-1]).all()
    finally:
        compiled.set()
    assert steps_until_all_are_there(fleet, free, ends[::-1], 400) is not None


ROOM = "....." + "#" * 5 + "..... "
TWO_ROOMS = free_tiles(2 * ROOM + "." * 15 + " " + 2 * ROOM)
COMB = free_tiles("." * 13 + 5 * (" " + ".#" * 6 + "."))
RING = free_tiles("." * 9 + 4 * " .#######." + " " + "." * 9)


@pytest.mark.parametrize(("free", "agents"), [(TWO_ROOMS, 14), (COMB, 9), (RING, 9)])
@pytest.mark.parametrize("motion", ["four", "turning"])
def test_everybody_gets_a_turn_where_lanes_join_rooms(free, agents, motion):
    rng, tiles = np.random.default_rng(0), np.argwhere(free)
    fleet = fleet_on(free, tiles[rng.permutation(len(tiles))[:agents]], motion, False)
    goals, done, walked = tiles[rng.integers(len(tiles), size=agents)], np.zeros(agents, int), [fleet.positions]
    for _ in range(600):
        fleet.step(goals)
        walked.append(fleet.positions)
        there = (walked[-1] == goals).all(axis=1)
        done += there
        goals[there] = tiles[rng.integers(len(tiles), size=int(there.sum()))]
    assert conflicts(np.array(walked), ~free, following=False) == []
    assert done.min() >= 3, done


def test_nobody_waits_without_bound_in_a_comb_that_is_nearly_half_full():
    """An errand takes some seven steps of all, so each agent waits for 120 on average."""
    free, agents = comb(6, 5), 17
    fleet = FleetPlanner(GridMap(free.astype(np.uint8), 4), "turning", "cpu", Settings(following=False))
    done, longest, walked = by_steps(fleet, np.argwhere(free), agents, 1500, 0.0)
    assert conflicts(walked, ~free, following=False) == []
    assert done.min() >= 3 and longest <= 1000, (done, longest)


def test_more_than_a_hundred_agents_get_on_where_halls_are_joined_by_lanes():
    """In small groups, or by options alone, they jam within a few hundred steps, after some fifty errands."""
    free, agents = halls(6, 11, 9), 150
    fleet = FleetPlanner(GridMap(free.astype(np.uint8), 4), "turning", "cpu", Settings(following=False))
    done, _, walked = by_steps(fleet, np.argwhere(free), agents, 200, 0.0)
    assert conflicts(walked, ~free, following=False) == []
    assert done.sum() > 80, done


@pytest.mark.parametrize("others", [0, 8])
def test_three_at_a_junction_are_out_of_it_soon_while_others_are_busy_elsewhere(others):
    free = np.zeros((18, 13), bool)
    free[1, 1:12] = free[2:7, 6] = free[8:17, 1:12] = True
    rng, hall = np.random.default_rng(0), np.argwhere(free[8:]) + (8, 0)
    starts = np.array([[1, 1], [1, 11], [1, 9], *hall[rng.permutation(len(hall))[:others]].tolist()])
    goals = starts.copy()
    goals[:3] = [1, 4], [1, 2], [1, 3]
    fleet = fleet_on(free, starts, "four", True)
    for _ in range(2 * 11):  # twice the optimum
        fleet.step(goals)
        there = (fleet.positions == goals).all(axis=1)
        if there[:3].all():
            return
        busy = np.flatnonzero(there[3:]) + 3
        goals[busy] = hall[rng.integers(len(hall), size=len(busy))]
    raise AssertionError(f"after twice the optimum they are at {fleet.positions[:3].tolist()}")


@pytest.mark.parametrize(("name", "free", "agents"), cases(), ids=[f"{case[0]}, {case[2]}" for case in cases()])
def test_nobody_waits_long_on_the_maps_of_the_benchmark(name, free, agents):
    fleet = FleetPlanner(GridMap(free.astype(np.uint8), 4), "turning", "cpu", Settings(following=False))
    _, longest, walked = by_steps(fleet, np.argwhere(free), agents, 450, 0.0)
    assert conflicts(walked, ~free, following=False) == []
    assert longest <= LONGEST_WAIT, name


def test_lanes_and_what_is_narrow_are_known_from_the_map():
    ground, _, place = ground_of(TWO_ROOMS)
    narrow = narrow_tiles(ground)
    assert place[narrow[:-1]].tolist() == [[2, col] for col in range(4, 11)]
    lanes = lanes_of(ground, place, TWO_ROOMS.shape)
    assert set(map(tuple, place[lanes[:-1]].tolist())) >= {(2, col) for col in range(5, 10)}


@pytest.mark.slow
def test_a_warehouse_does_not_fill_up_where_agents_may_not_follow():
    """1,000 agents in aisles two tiles wide: when all went headlong for their goals, ever more of them stood, and after
    20 minutes they did half as many errands a minute."""
    grid, rng = warehouse_map(80, 140, apron=6), np.random.default_rng(0)
    tiles, errands = np.argwhere(~grid.blocked), np.zeros(20, int)
    fleet = FleetPlanner(grid, "turning", "cpu", Settings(following=False))
    fleet.start(rng.permutation(tiles)[:1000])
    goals = tiles[rng.integers(len(tiles), size=1000)]
    for step in range(120 * len(errands)):
        fleet.step(goals)
        there = (fleet.positions == goals).all(axis=1)
        goals[there] = tiles[rng.integers(len(tiles), size=there.sum())]
        errands[step // 120] += there.sum()
    assert errands[-3:].mean() > 0.65 * errands.max(), errands


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize(("free", "agents"), [(TWO_ROOMS, 14), (COMB, 20), (RING, 9)])
@pytest.mark.parametrize("motion", ["four", "turning"])
def test_lanes_give_the_same_steps_on_cuda(free, agents, motion):
    tiles = np.argwhere(free)

    def begun(device):
        rng, settings = np.random.default_rng(5), Settings(following=False)
        fleet = FleetPlanner(GridMap(free.astype(np.uint8), 4), motion, device, settings)
        fleet.start(tiles[rng.permutation(len(tiles))[:agents]])
        return (
            fleet,
            tiles[rng.integers(len(tiles), size=agents)],
            lambda some: tiles[rng.integers(len(tiles), size=len(some))],
        )

    one, other = walked_on_both(begun, 200)
    assert np.array_equal(one, other) and conflicts(one, ~free, following=False) == []


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, needs_gpu])])
def test_late_robots_get_through_lanes(device):
    robots, *_ = run(GridMap(TWO_ROOMS.astype(np.uint8), 4), 10, 90.0, late=0.2, device=device)
    assert robots.overlaps == 0 and robots.errands > 10
