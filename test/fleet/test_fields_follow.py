"""Fields follow the map when they are read. The oracle is a planner that was made of the map as it is then."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_planners.device import cuda_problem
from gpu_planners.fleet import FleetPlanner, Settings
from gpu_planners.grid import GridMap

no_cuda = pytest.mark.skipif(bool(cuda_problem()), reason=f"no CUDA device: {cuda_problem()}")
DEVICES = ["cpu", pytest.param("cuda", marks=no_cuda)]
SHAPE = (17, 22)


def fleet_on(free, goals, motion="turning", device="cpu", guidance=None):
    """A fleet whose agents are on the tiles of goals."""
    chosen = Settings(guidance="lanes") if guidance is None else None
    fleet = FleetPlanner(GridMap(free.astype(np.uint8)), motion, device, chosen, guidance)
    fleet.start(goals)
    return fleet


def ways(fleet, goals, free):
    """Costs to goals from all free tiles, in all headings."""
    tiles = np.argwhere(free)
    pairs = np.tile(np.repeat(tiles, fleet.motion.headings, axis=0), (len(goals), 1))
    faces = np.tile(np.arange(fleet.motion.headings), len(tiles) * len(goals))
    return fleet.distances(pairs, faces, np.repeat(goals, len(tiles) * fleet.motion.headings, axis=0))[0]


def counted(fleet):
    """-> list that gets ("plan" or "repair", number of fields) of each time the fleet's engine does that."""
    calls, engine = [], fleet._engine
    for name in ("plan", "repair"):

        def call(goals, *rest, name=name, done=getattr(engine, name)):
            calls.append((name, len(goals)))
            done(goals, *rest)

        setattr(engine, name, call)
    return calls


@settings(max_examples=25, deadline=None)
@given(st.data())
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("motion", ["four", "turning"])
def test_what_is_read_is_what_a_new_planner_reads(motion, device, data):
    """Tiles change and robots stand and go on, by few and by many; some fields are read now and then."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    free = rng.random(SHAPE) > data.draw(st.sampled_from([0.02, 0.3]))
    goals = np.argwhere(free)[rng.permutation(int(free.sum()))[:12]]
    fleet, still = fleet_on(free, goals, motion, device), np.zeros(0, int)
    ways(fleet, goals, free)
    for _ in range(data.draw(st.integers(1, 40))):
        what = data.draw(st.sampled_from(["tiles", "tiles", "many", "still", "read"]))
        if what in ("tiles", "many"):
            tiles = rng.integers(SHAPE, size=(rng.integers(1, 4) if what == "tiles" else 60, 2))
            on_agent = (tiles[:, None] == goals).all(axis=2).any(axis=1)
            tiles = tiles[~on_agent]
            free[tuple(tiles.T)] = rng.random(len(tiles)) < 0.7
            fleet.update(*tiles.T, free[tuple(tiles.T)].astype(int))
        elif what == "still":
            still = rng.permutation(len(goals))[: rng.integers(5)]
            fleet.observe(goals, still=still)
        else:
            now = free.copy()
            now[tuple(goals[still].T)] = False
            moving = np.setdiff1d(np.arange(len(goals)), still)
            asked = goals[rng.choice(moving, rng.integers(1, 4), replace=False)]
            new = fleet_on(now, goals[moving], motion, "cpu", fleet.guidance)
            assert np.array_equal(ways(fleet, asked, now), ways(new, asked, now))


@pytest.mark.parametrize("motion", ["four", "turning"])
def test_a_step_is_that_of_a_fleet_whose_fields_are_all_read_after_each_change(motion):
    """The same agents, once with fields that follow at once."""
    rng = np.random.default_rng(3)
    free = rng.random(SHAPE) > 0.1
    tiles = np.argwhere(free)
    starts = tiles[rng.permutation(len(tiles))[:40]]
    late, prompt = (fleet_on(free, starts, motion) for _ in range(2))
    goals, seen = tiles[rng.integers(len(tiles), size=40)], tiles[:0]
    for step in range(120):
        there = (late.positions == goals).all(axis=1)
        goals[there] = tiles[rng.integers(len(tiles), size=there.sum())]
        seen = np.unique(np.concatenate([seen, goals]), axis=0)
        still = rng.permutation(40)[: rng.integers(4)] if step % 3 == 0 else np.zeros(0, int)
        for fleet in (late, prompt):
            fleet.observe(fleet.positions, fleet.headings, still)
        prompt.distances(seen, np.full(len(seen), -1), seen)
        assert (late.step(goals) == prompt.step(goals)).all(), step


@pytest.mark.parametrize("device", DEVICES)
def test_fields_cost_nothing_until_they_are_read(device):
    free = np.ones(SHAPE, bool)
    goals = np.argwhere(free[:-1])[3::37]
    fleet = fleet_on(free, goals + [1, 0], "turning", device)
    before, calls = ways(fleet, goals, free), counted(fleet)
    for _ in range(50):
        fleet.update([8, 9], [11, 12], [0, 0])
        fleet.observe(goals + [1, 0], still=[4])
        fleet.observe(goals + [1, 0])
        fleet.update([8, 9], [11, 12], [1, 1])
    assert np.array_equal(ways(fleet, goals, free), before) and calls == []  # it is all over
    fleet.update([8], [11], [0])
    free[8, 11] = False
    ways(fleet, goals[:2], free)
    assert sum(count for _, count in calls) == 2  # of those that were read
    fleet.update([9], [11], [0])
    free[9, 11] = False
    ways(fleet, goals[:3], free)
    assert sum(count for _, count in calls) == 5
    ways(fleet, goals[:3], free)
    assert sum(count for _, count in calls) == 5


def test_after_many_changes_a_field_is_planned_anew():
    rng, free = np.random.default_rng(0), np.ones(SHAPE, bool)
    goals = np.argwhere(free)[3::37]
    fleet = fleet_on(free, goals)
    ways(fleet, goals, free)
    tiles = rng.permutation(np.argwhere(free))
    tiles = tiles[~(tiles[:, None] == goals).all(axis=2).any(axis=1)][:30]
    fleet.update(*tiles.T, np.zeros(30, int))
    free[tuple(tiles.T)] = False
    calls = counted(fleet)
    found = ways(fleet, goals, free)
    assert calls == [("plan", len(goals))]
    assert np.array_equal(found, ways(fleet_on(free, goals, guidance=fleet.guidance), goals, free))


def test_fields_that_nobody_asks_for_go_in_time():
    """One goal is read after each of many changes: the first ones are forgotten, and there when asked for."""
    free = np.ones(SHAPE, bool)
    goals = np.argwhere(np.arange(SHAPE[0])[:, None] % 4 + 0 * free == 0)[::3]
    fleet = fleet_on(free, goals)
    for change, goal in enumerate(goals):
        free[9, 11 + change % 3] ^= True
        fleet.update([9], [11 + change % 3], [int(free[9, 11 + change % 3])])
        ways(fleet, goal[None], free)
    known = fleet.has_fields(goals)
    assert len(goals) > 30 and not known[:10].any() and known[-10:].all()
    assert np.array_equal(ways(fleet, goals, free), ways(fleet_on(free, goals, guidance=fleet.guidance), goals, free))


def test_fields_are_right_after_an_interrupted_repair():
    free = np.ones(SHAPE, bool)
    goals = np.argwhere(free)[3::37]
    fleet = fleet_on(free, goals)
    ways(fleet, goals, free)
    fleet.update([8], [11], [0])
    free[8, 11] = False
    repair = fleet._engine.repair

    def interrupted(goals, slots, change):
        repair(goals[:3], slots[:3], change)
        raise KeyboardInterrupt

    fleet._engine.repair = interrupted
    with pytest.raises(KeyboardInterrupt):
        ways(fleet, goals, free)
    fleet._engine.repair = repair
    assert np.array_equal(ways(fleet, goals, free), ways(fleet_on(free, goals, guidance=fleet.guidance), goals, free))


@pytest.mark.parametrize("motion", ["four", "turning"])
def test_changes_that_lie_far_apart_on_a_long_way(motion):
    """A way to and fro, whose rows have a second tile here and there; its ends are thousands of moves apart."""
    free = np.zeros((60, 41), bool)
    free[::2] = True
    free[1::4, -1] = free[3::4, 0] = True
    bays = np.argwhere(~free)[::40]
    goals = np.array([[0, 0], [58, 3], [30, 30]])
    fleet = fleet_on(free, goals, motion)
    ways(fleet, goals, free)
    for turn in range(4):
        ends = bays[[turn, -1 - turn]]
        free[tuple(ends.T)] = turn < 2
        fleet.update(*ends.T, np.full(2, int(turn < 2)))
        free[2 * turn + 1, 20] = True  # a way across
        fleet.update([2 * turn + 1], [20], [1])
        new = fleet_on(free, goals, motion, guidance=fleet.guidance)
        assert np.array_equal(ways(fleet, goals, free), ways(new, goals, free)), turn
