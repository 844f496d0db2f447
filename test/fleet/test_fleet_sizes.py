"""Agents of unlike sizes on one map, judged by shapely: steps, whole plans, and what the action graph lets them do."""

import numpy as np
import pytest
import shapely
from fleet_oracle import faults, meet, places_for, squares

from gpu_planners.errors import GridMapError
from gpu_planners.fleet import FleetPlanner, FleetStatus, Settings
from gpu_planners.fleet.action_graph import ActionGraph
from gpu_planners.grid import GridMap

SIZES = (1, 2, 3)


def hall_of(seed, apart, most=14, shape=(18, 22), blocked=0.06):
    """-> costs, starts (N, 2), sizes (N,): as many as fit of so many"""
    rng = np.random.default_rng(seed)
    costs = (rng.random(shape) > blocked).astype(np.uint8)
    walls = shapely.union_all([shapely.box(r, c, r + 1, c + 1) for r, c in np.argwhere(costs == 0)])
    hall, tiles, sizes = shapely.box(0, 0, *shape), [], []
    for tile in rng.permutation(np.argwhere(costs)).tolist():
        size = int(rng.choice(SIZES))
        mine = squares([tile], [size])[0]
        if not shapely.covers(hall, mine) or shapely.area(shapely.intersection(mine, walls)) > 1e-9:
            continue
        if tiles and meet(squares([tile], [size], apart / 2), squares(tiles, sizes, apart / 2)).any():
            continue
        tiles.append(tile)
        sizes.append(size)
        if len(tiles) == most:
            break
    return costs, np.array(tiles), np.array(sizes)


@pytest.mark.parametrize("motion", ["four", "turning"])
@pytest.mark.parametrize("following", [True, False])
@pytest.mark.parametrize("apart, ticks", [(0, 1), (1, 1), (0, 2)])
def test_agents_of_unlike_sizes_never_meet_and_get_on(motion, following, apart, ticks):
    reached = {size: 0 for size in SIZES}
    for seed in range(3):
        costs, starts, sizes = hall_of(seed, apart)
        settings = Settings(following=following, safety_distance=apart, ticks_per_move=ticks, horizon=2 * ticks + 1)
        fleet = FleetPlanner(GridMap(costs), motion, "cpu", settings, sizes=SIZES)
        fleet.start(starts, sizes=sizes)
        rng, walked = np.random.default_rng(seed), [fleet.positions]
        places = {size: places_for(costs, size) for size in SIZES}
        goals = np.array([rng.choice(places[size]) for size in sizes.tolist()])
        for step in range(120):
            if step == 40:  # one breaks down
                fleet.observe(np.full((len(sizes), 2), -1), still=[0])
            fleet.step(goals, 0.002 if step % 3 == 0 else 0.0)
            walked.append(fleet.positions)
            for a in np.flatnonzero((fleet.positions == goals).all(axis=1)):
                reached[sizes[a]] += 1
                goals[a] = rng.choice(places[sizes[a]])
        assert faults(np.array(walked), sizes, costs, apart, following) == []
    assert sum(reached.values()) > 40 and all(reached.values()), reached


def test_agents_may_come_and_go_and_the_map_may_change():
    costs, starts, sizes = hall_of(7, 0, blocked=0.0)
    fleet = FleetPlanner(GridMap(costs), "turning", "cpu", Settings(size=2), sizes=SIZES)
    half = len(sizes) // 2
    fleet.start(starts[:half], sizes=sizes[:half])
    numbers = fleet.add(starts[half:], sizes=sizes[half:])
    assert numbers.tolist() == list(range(half, len(sizes))) and (fleet.positions == starts).all()
    with pytest.raises(GridMapError, match="too near to another one"):
        fleet.add(starts[:1], sizes=[1])
    goals, walked = starts[::-1].copy(), [fleet.positions]
    for step in range(60):
        if step == 10:
            tile = next(
                t
                for t in np.argwhere(costs).tolist()
                if not meet(squares([t], [1]), squares(fleet.positions, sizes)).any()
            )
            fleet.update([tile[0]], [tile[1]], [0])
            costs[tuple(tile)] = 0
        fleet.step(goals)
        walked.append(fleet.positions)
    assert faults(np.array(walked[11:]), sizes, costs, 0, True) == []
    fleet.remove([0])
    fleet.step(goals)
    copy = __import__("pickle").loads(__import__("pickle").dumps(fleet))
    assert copy.sizes == fleet.sizes == (2, 1, 3)


@pytest.mark.parametrize("motion", ["four", "turning"])
@pytest.mark.parametrize("following", [True, False])
def test_whole_plans_of_unlike_sizes(motion, following):
    solved = 0
    for seed in range(3):
        costs, starts, sizes = hall_of(seed, 0, most=5, shape=(14, 16), blocked=0.02)
        fleet = FleetPlanner(GridMap(costs), motion, "cpu", Settings(following=following))
        rng, goals = np.random.default_rng(seed), []
        for size in sizes.tolist():  # goals that are apart from each other
            for tile in rng.permutation(places_for(costs, size)):
                if not goals or not meet(squares([tile], [size]), squares(goals, sizes[: len(goals)])).any():
                    goals.append(tile)
                    break
        plan = fleet.solve(starts, goals, 20.0, sizes=sizes)
        assert faults(plan.positions, sizes, costs, 0, following) == []
        done = plan.status == FleetStatus.SOLVED
        assert (plan.positions[-1][done] == np.array(goals)[done]).all()
        solved += int(done.all())
    assert solved >= 2


def test_bad_sizes_starts_and_goals_are_told():
    grid = GridMap(np.ones((6, 6), np.uint8))
    fleet = FleetPlanner(grid, "four", "cpu")
    plan = fleet.solve([[0, 0], [3, 3], [0, 1], [5, 0]], [[5, 5], [0, 0], [5, 4], [2, 2]], sizes=[1, 3, 1, 2])
    names = [FleetStatus(status).name for status in plan.status]
    assert names == ["SOLVED", "GOAL_BLOCKED", "SOLVED", "START_BLOCKED"]
    plan = fleet.solve([[1, 1], [2, 2], [4, 4]], [[4, 1], [1, 4], [1, 1]], sizes=[3, 1, 1])
    assert FleetStatus(plan.status[1]).name == "SAME_START"
    wall = np.ones((6, 7), np.uint8)
    wall[:, 3], wall[2, 3] = 0, 1
    plan = FleetPlanner(GridMap(wall), "four", "cpu").solve([[0, 0], [4, 1]], [[0, 6], [4, 5]], sizes=[1, 2])
    assert [FleetStatus(status).name for status in plan.status] == ["SOLVED", "NO_PATH"]
    with pytest.raises(GridMapError, match=r"sizes\[1\] is 4; allowed: 1, the planner's `sizes`"):
        fleet.start([[0, 0], [3, 3]], sizes=[1, 4])
    with pytest.raises(Exception, match=r"sizes\[0\] is 16; allowed: whole numbers 1 .. 15"):
        FleetPlanner(grid, "four", "cpu", sizes=[16])


def test_all_of_one_size_take_the_same_steps_however_that_is_said():
    costs, starts, _ = hall_of(3, 1, most=8)
    fits = places_for(costs, 2)
    starts = np.array([t for t in fits.tolist() if t[0] % 3 == 0 and t[1] % 3 == 0])[:10]
    fleets = [
        FleetPlanner(GridMap(costs), "turning", "cpu", Settings(size=2)),
        FleetPlanner(GridMap(costs), "turning", "cpu", Settings(size=2), sizes=[2]),
    ]
    for fleet in fleets:
        fleet.start(starts)
    for _ in range(30):
        one, other = (fleet.step(starts[::-1]) for fleet in fleets)
        assert (one == other).all()


@pytest.mark.parametrize("following", [False, True])
@pytest.mark.parametrize("apart", [0, 1])
@pytest.mark.parametrize("size", [1, 2])
def test_the_action_graph_keeps_unlike_sizes_apart(following, apart, size):
    reached = 0
    for seed in range(3):
        costs, starts, sizes = hall_of(seed, apart, most=12)
        settings = Settings(size=size, following=following, safety_distance=apart)
        fleet = FleetPlanner(GridMap(costs), "turning", "cpu", settings, sizes=SIZES)
        fleet.start(starts, sizes=sizes)
        graph = ActionGraph(costs.shape, size - 1 + apart, following, 3, size, SIZES)
        assert graph.is_free(starts, sizes).all()
        graph.add(starts, np.zeros(len(starts), int), sizes)
        rng = np.random.default_rng(seed)
        places = {one: places_for(costs, one) for one in SIZES}
        goals = np.array([rng.choice(places[one]) for one in sizes.tolist()])
        others = ~np.eye(len(sizes), dtype=bool)
        for step in range(150):
            fleet.observe(*graph.ends(), busy=np.flatnonzero(graph.planned == graph.most))
            begun = np.flatnonzero(fleet.step(goals) != fleet.motion.wait)
            graph.plan(begun, fleet.positions[begun], fleet.headings[begun])
            graph.allow()
            held = [shapely.union_all(squares(t, [s] * len(t), apart / 2)) for t, s in
                    ((graph.held(np.array([a])), int(sizes[a])) for a in range(len(sizes)))]  # fmt: skip
            if not following:
                assert not (meet(np.array(held), np.array(held)) & others).any(), "two may be on one place"
            some = np.flatnonzero((graph.allowed > 0) & (rng.random(len(sizes)) < 0.7))
            graph.arrive(some, np.ones(len(some), int))
            if step % 40 == 39:
                graph.forget()
            there = (graph.tiles[:, 0] == goals).all(axis=1)
            reached += int(there.sum())
            for a in np.flatnonzero(there):
                goals[a] = rng.choice(places[int(sizes[a])])
        for _ in range(50):
            graph.allow()
            graph.arrive(np.arange(len(sizes)), graph.allowed.copy())
        free = np.argwhere(np.ones(costs.shape, bool))
        for one in SIZES:
            expected = ~meet(
                squares(free, [one] * len(free), apart / 2), squares(graph.tiles[:, 0], sizes, apart / 2)
            ).any(axis=1)
            assert (graph.is_free(free, np.full(len(free), one)) == expected).all()
    assert reached > 10
