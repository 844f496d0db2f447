"""Whole ways within a window: against a search by hand, and in the hands of those who interfere."""

import heapq

import numpy as np
import pytest

from gpu_planners.fleet import FleetPlanner, Guidance, Settings, conflicts
from gpu_planners.fleet.guidance import one_way
from gpu_planners.fleet.step import stepper, window
from gpu_planners.grid import GridMap

BUDGET_S = 0.01
STEPS = ((0, 1), (1, 0), (0, -1), (-1, 0))


def fleet_of(seed, motion="turning", following=True, agents=25, shape=(12, 12), guidance=one_way):
    rng = np.random.default_rng(seed)
    grid = GridMap(rng.random(shape) > 0.15, 4)
    given = guidance(grid, 10) if guidance is one_way else guidance(grid)
    fleet = FleetPlanner(grid, motion, "cpu", Settings(following=following), given)
    tiles = np.argwhere(~grid.blocked)
    fleet.start(rng.permutation(tiles)[:agents])
    return fleet, tiles, rng


def has_windows(fleet):
    return fleet._stepper._window is not None


def cheapest(a, fleet, others, following):
    """What the cheapest way of agent a costs, that meets none of the ways of others (K, ticks + 1) in padded tiles."""
    lanes, agents, turning = fleet._lanes, fleet._stepper.state.agents, fleet.motion.headings > 1
    goal, slot = agents.goal[a], agents.slot[a]
    on = [{int(way[tick]): k for k, way in enumerate(others)} for tick in range(others.shape[1])]
    offsets = [row * lanes.width + col for row, col in STEPS]

    def to_go(tile, heading):  # exactly, by Dijkstra from the state
        best, open_ = {}, [(0, tile, heading)]
        while open_:
            cost, tile, heading = heapq.heappop(open_)
            if tile == goal:
                return cost
            if (tile, heading) in best:
                continue
            best[tile, heading] = cost
            for price, there, turned in moves(tile, heading):
                heapq.heappush(open_, (cost + price, there, turned))
        raise AssertionError("no way")

    def moves(tile, heading):
        for direction in [heading] if turning else range(4):
            there = tile + offsets[direction]
            if lanes.free[there]:
                yield int(lanes.forward[tile, direction]), there, heading
        for quarter in (1, 3) if turning else ():
            yield lanes.turn, tile, (heading + quarter) % 4

    first = (int(agents.tile[a]), int(agents.heading[a]), slot < 0)
    front = {first: 0}
    for tick in range(others.shape[1] - 1):
        after = {}
        for (tile, heading, arrived), cost in front.items():
            wait = 0 if arrived else int(window.WAIT * lanes.unit)
            for price, there, turned in [(wait, tile, heading), *moves(tile, heading)]:
                if there in on[tick + 1]:
                    continue
                if there != tile:
                    k = on[tick].get(there)
                    if k is not None and (not following or others[k, tick + 1] == tile):
                        continue
                    if not following and tile in on[tick + 1]:
                        continue
                paid = cost + (min(price, 1) if arrived else price)
                state = (there, turned, arrived or there == goal)
                if paid < after.get(state, 10**9):
                    after[state] = paid
        front = after
    begin = 0 if slot < 0 else to_go(*first[:2])
    return (
        min(cost + (0 if arrived else to_go(tile, heading)) for (tile, heading, arrived), cost in front.items()) - begin
    )


@pytest.mark.parametrize("following", [True, False])
@pytest.mark.parametrize("motion", ["turning", "four"])
def test_the_way_of_an_agent_is_the_cheapest_one_among_the_others(motion, following):
    fleet, tiles, rng = fleet_of(4, motion, following, agents=14, shape=(7, 8))
    part = fleet._parts[fleet._map.tiles(tiles)]
    tiles = tiles[part == np.bincount(part).argmax()]
    fleet.start(rng.permutation(tiles)[:14])
    fleet.step(tiles[:14], BUDGET_S)  # which may have to compile
    compared = 0
    for _ in range(6):
        goals = tiles[rng.integers(len(tiles), size=14)]
        fleet.step(goals, 10 * BUDGET_S)  # a busy machine may take as long elsewhere
        assert has_windows(fleet)
        fleet._rank(goals)
        engine, state, ways = fleet._engine, fleet._stepper.state, fleet._stepper._window
        window.go_on(np.zeros(14, np.uint8), fleet._lanes.free, state.agents, ways)
        given = state.agents, engine.host_fields(state.agents.slot), fleet._lanes, fleet._stepper.rules, ways
        window.improve(np.arange(14, dtype=np.int32), np.zeros(14, np.int64), 0, 0, *given)  # each one by itself
        for a in range(14):
            others = np.delete(ways.tile, a, axis=0)
            best = cheapest(a, fleet, others, following)
            assert best <= ways.cost[a]  # others may have given way since
            compared += best == ways.cost[a]
        assert cheapest(13, fleet, ways.tile[:13], following) == ways.cost[13]  # nobody came after it
        state.agents.tile[:], state.agents.heading[:] = ways.tile[:, 1], ways.heading[:, 1]
        state.agents.origin[:] = state.agents.tile
    assert compared > 60


@pytest.mark.parametrize("guidance", [one_way, Guidance.plain])
@pytest.mark.parametrize("following", [True, False])
@pytest.mark.parametrize("motion", ["turning", "four"])
def test_nobody_meets_and_errands_are_done(motion, following, guidance):
    fleet, tiles, rng = fleet_of(1, motion, following, guidance=guidance)
    goals, walked, faces, done = tiles[rng.integers(len(tiles), size=25)], [fleet.positions], [fleet.headings], 0
    by_ways = 0
    while len(walked) <= 150 or (by_ways <= 75 and len(walked) <= 600):  # a busy machine leaves some steps no time
        actions = fleet.step(goals, BUDGET_S)
        by_ways += has_windows(fleet)
        walked.append(fleet.positions)
        faces.append(fleet.headings)
        for a, action in enumerate(actions):  # actions are what was done
            row, col, heading = fleet.motion.after(int(action), int(faces[-2][a]))
            assert (walked[-2][a] + (row, col)).tolist() == walked[-1][a].tolist() and heading == faces[-1][a]
        there = (walked[-1] == goals).all(axis=1)
        done += int(there.sum())
        goals[there] = tiles[rng.integers(len(tiles), size=there.sum())]
    assert by_ways > 75 and done > 60
    assert conflicts(np.array(walked), fleet.grid.blocked, following=following) == []


def test_nobody_meets_whatever_happens_between_steps():
    """Agents stand, are busy, are found elsewhere, come and go, tiles change, and there is no time now and then."""
    fleet, tiles, rng = fleet_of(2, following=False, agents=20)
    goals, walked = tiles[rng.integers(len(tiles), size=20)], []
    there, still = np.ones(20, bool), np.zeros(20, bool)
    for step in range(200):
        chance = rng.random(5)
        places, still = fleet.positions, still & (rng.random(len(still)) > 0.2)
        if chance[0] < 0.2:
            still[rng.integers(len(still))] = True
        busy = np.flatnonzero(there & ~still & (rng.random(len(there)) < 0.1))
        if chance[1] < 0.1:
            a, tile = rng.integers(len(places)), tiles[rng.integers(len(tiles))]
            if there[a] and not (places[there] == tile).all(axis=1).any() and not fleet.grid.blocked[tuple(tile)]:
                places[a] = tile
        fleet.observe(np.where(there[:, None], places, -1), still=np.flatnonzero(there & still), busy=busy)
        if chance[2] < 0.05:
            gone = int(rng.choice(np.flatnonzero(there)))
            fleet.remove([gone])
            there[gone] = still[gone] = False
        if chance[3] < 0.05:
            tile = tiles[rng.integers(len(tiles))]
            if not (fleet.positions[there] == tile).all(axis=1).any() and not fleet.grid.blocked[tuple(tile)]:
                fleet.add(tile[None])
                there, still, goals = (
                    np.append(there, True),
                    np.append(still, False),
                    np.append(goals, tile[None], axis=0),
                )
        if chance[4] < 0.1:
            tile = tiles[rng.integers(len(tiles))]
            if not (fleet.positions[there] == tile).all(axis=1).any():
                fleet.update([tile[0]], [tile[1]], [rng.integers(2)])
        stood, before, there_now = np.r_[np.flatnonzero(there & still), busy], fleet.positions, there.copy()
        fleet.step(np.where(there[:, None], goals, -1), 0.0 if step % 9 == 0 else BUDGET_S / 2)
        after = fleet.positions
        stood = stood[there[stood]]
        assert (after[stood] == before[stood]).all()
        pair = np.array([before, after])[:, there_now]
        assert [c for c in conflicts(pair, np.zeros(fleet.grid.shape, bool), following=False)] == []
        walked.append(int((after != before).any(axis=1).sum()))
        reached = (after == goals).all(axis=1)
        goals[reached] = tiles[rng.integers(len(tiles), size=reached.sum())]
    assert np.mean(walked) > 2


def test_agents_that_jam_push_for_a_while_and_windows_come_back(monkeypatch):
    """Two streams through a door one tile wide, with nothing but their own ways in mind."""
    monkeypatch.setattr(stepper, "JAM", 0.0)
    free = np.ones((9, 9), bool)
    free[:, 4] = False
    free[4, 4] = True
    fleet = FleetPlanner(GridMap(free, 4), "turning", "cpu", Settings(guidance="plain"))
    starts = np.array([(row, col) for row in range(0, 9, 2) for col in (0, 1, 7, 8)])
    fleet.start(starts)
    goals, kinds = starts[::-1].copy(), []
    for _ in range(250):
        fleet.step(goals, BUDGET_S / 2)
        kinds.append(has_windows(fleet))
        if (fleet.positions == goals).all():
            break
    assert (fleet.positions == goals).all() and any(kinds)
