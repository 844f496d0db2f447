"""Agents of different speeds in one fleet never meet, with faults too. The validator shares no code."""

import numpy as np
import pytest

from gpu_planners.device import cuda_problem
from gpu_planners.fleet import FleetStatus, Settings, conflicts
from gpu_planners.grid import FleetPlanner, GridMap
from gpu_planners.grid.maps.generated import largest_component

NEAR = [(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1)]


def step_by_step(*places):
    """(steps + 1, N, 2) from lists of places, one for each step"""
    return np.array(places).reshape(len(places), -1, 2)


@pytest.mark.parametrize(
    ("walked", "ticks", "following", "kinds"),
    [
        ([[(0, 0)], [(0, 1)], [(0, 2)]], 1, True, []),
        ([[(0, 0)], [(0, 1)], [(0, 2)]], 2, True, ["hurry"]),
        ([[(0, 0)], [(0, 1)], [(0, 1)], [(0, 2)]], 2, True, []),
        ([[(0, 0), (1, 0)], [(0, 1), (0, 0)]], [1, 1], True, []),
        ([[(0, 0), (1, 0)], [(0, 1), (0, 0)]], [1, 1], False, ["following"]),
        ([[(0, 0), (1, 0)], [(0, 1), (0, 0)]], [2, 1], True, ["vertex"]),  # it is on (0, 0) still
        ([[(0, 0), (1, 0)], [(0, 1), (1, 0)], [(0, 1), (0, 0)]], [2, 1], True, []),
        ([[(0, 0), (1, 0)], [(0, 1), (1, 0)], [(0, 1), (0, 0)]], [3, 1], True, ["vertex"]),
        ([[(0, 0), (1, 0)], [(0, 1), (1, 0)], [(0, 1), (0, 0)]], [2, 1], False, ["following"]),
        ([[(0, 0), (0, 1)], [(0, 1), (0, 0)]], [1, 1], True, ["swap"]),
    ],
)
def test_the_validator_knows_how_long_a_move_takes(walked, ticks, following, kinds):
    found = conflicts(step_by_step(*walked), following=following, ticks=ticks)
    assert [conflict.kind for conflict in found] == kinds


def mixed(n, longest, rng):
    """(n, 2) ticks of moves and turns, some of each."""
    return rng.integers(1, longest + 1, (n, 2))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("motion", ["four", "turning"])
def test_agents_of_all_speeds_never_meet_whatever_fails(motion, seed):
    """Random maps, sizes and rules; agents that do not set out, that stand for a while, that come and go."""
    rng = np.random.default_rng(100 + seed)
    shape, size = rng.integers(14, 22, 2), 1 if seed % 3 else 2
    free = largest_component(rng.uniform(size=shape) > (0.1 if size == 1 else 0.02))
    following = bool(seed % 2)
    settings = Settings(following=following, size=size, horizon=4)
    planner = FleetPlanner(GridMap(free, connectivity=4), motion, "cpu", settings)
    fits = free if size == 1 else free & np.pad(free[1:, 1:] & free[1:, :-1] & free[:-1, 1:], ((0, 1), (0, 1)))
    tiles = rng.permutation(np.argwhere(fits))
    starts = np.array([tile for tile in tiles if size == 1 or (tile % 3 == 0).all()])[: 60 if size == 1 else 12]
    n = len(starts)
    speeds, there, still = mixed(n, 3, rng), np.ones(n, bool), np.zeros(n, bool)
    planner.start(starts, rng.integers(4, size=n), speeds)
    goals = tiles[rng.integers(len(tiles), size=n)]
    walked, began, done = [planner.positions], np.full(n, -9), 0
    for step in range(1, 161):
        before, faced = planner.positions, planner.headings
        planner.step(np.where(there[:, None], goals, -1))
        now, faces = planner.positions, planner.headings
        sets_out = (now != before).any(axis=1) | (faces != faced)
        late = sets_out & (rng.uniform(size=n) < 0.1)  # they did not set out; with following they would be run into
        late &= not following
        if step % 20 == 0:
            still = there & (rng.uniform(size=n) < 0.1)
        planner.observe(np.where(late[:, None], before, now), np.where(late, faced, faces), np.flatnonzero(still))
        now = planner.positions
        moved = (now != before).any(axis=1)
        assert (step - began[moved] >= speeds[moved, 0]).all()
        began[moved] = step
        walked.append(np.where(there[:, None], now, -1))
        at = there & (now == goals).all(axis=1)
        done += int(at.sum())
        goals[at] = tiles[rng.integers(len(tiles), size=at.sum())]
        if step == 60:
            gone = np.flatnonzero(there & ~still)[:3]
            planner.remove(gone)
            there[gone], walked[-1][gone] = False, -1
        if step == 80:  # one comes that is slower than all
            taken = np.concatenate([places[there] for places in walked[-5:]])
            new = next(t for t in tiles if (np.abs(t - taken).max(axis=1) > 2 * size - 1).all())
            assert planner.add([new], speeds=[[4, 2]]).tolist() == [n]
            speeds, there, still = np.r_[speeds, [[4, 2]]], np.r_[there, True], np.r_[still, False]
            goals, began, n = np.r_[goals, [new]], np.r_[began, -9], n + 1
    near = [(0, 0)] if size == 1 else NEAR
    full = np.full((len(walked), n, 2), -1)
    for step, places in enumerate(walked):
        full[step, : len(places)] = places
    assert conflicts(full, ~free, near, following, ticks=speeds[:, 0]) == []
    assert done > 15


def test_the_fast_are_faster():
    """In its own row, no agent is quicker than it can be, and none is much slower."""
    planner = FleetPlanner(GridMap(np.ones((3, 12), np.uint8)), "turning", "cpu", Settings(horizon=4))
    planner.start([[0, 0], [1, 0], [2, 0]], speeds=[[1, 1], [2, 1], [4, 1]])
    goals, arrived = [[0, 11], [1, 11], [2, 11]], np.zeros(3, int)
    for step in range(1, 60):
        planner.step(goals)
        there = (planner.positions == goals).all(axis=1)
        arrived[there & (arrived == 0)] = step
    soonest = np.array([11, 2 * 10 + 1, 4 * 10 + 1])  # an agent counts where it moves to
    assert (arrived >= soonest).all() and (arrived <= soonest + 8).all()


def test_speeds_are_kept_when_slower_ones_come():
    planner = FleetPlanner(GridMap(np.ones((3, 12), np.uint8)), "turning", "cpu", Settings(horizon=4))
    planner.start([[0, 0], [1, 0]], speeds=[[1, 1], [2, 1]])
    walked = [planner.positions]
    for step in range(20):
        goals = [[0, 11], [1, 11], [2, 11]][: len(walked[-1])]
        planner.step(goals)
        walked.append(planner.positions)
        if step == 4:  # the second one is between two tiles
            assert planner.add([[2, 0]], speeds=[[4, 4]]).tolist() == [2]
            walked[-1] = planner.positions
    first, second, third = (np.array([w[k, 1] for w in walked if len(w) > k]) for k in range(3))
    assert first.tolist() == [*range(12), *[11] * 9]
    assert second.tolist() == [0, *[1 + k // 2 for k in range(20)]]
    assert third.tolist() == [0, *[1 + k // 4 for k in range(15)]]


@pytest.mark.parametrize("following", [True, False])
def test_a_plan_knows_each_agents_speed(following):
    free = np.ones((8, 9), bool)
    free[3, 2:7] = False
    rng = np.random.default_rng(3)
    tiles = rng.permutation(np.argwhere(free))
    starts, goals, speeds = tiles[:10], tiles[20:30], mixed(10, 3, rng)
    planner = FleetPlanner(GridMap(free, connectivity=4), "four", "cpu", Settings(horizon=5, following=following))
    plan = planner.solve(starts, goals, 20.0, speeds=speeds)
    assert conflicts(plan.positions, ~free, following=following, ticks=speeds[:, 0]) == []
    assert (plan.status == FleetStatus.SOLVED).all() and (plan.costs >= plan.lower_bounds).all()
    away = np.abs(starts - goals).sum(axis=1)
    assert (plan.lower_bounds >= away * speeds[:, 0] - (speeds[:, 0] - 1)).all()


@pytest.mark.gpu
@pytest.mark.skipif(bool(cuda_problem()), reason=f"no CUDA device: {cuda_problem()}")
@pytest.mark.parametrize("motion", ["four", "turning"])
def test_cuda_moves_agents_of_all_speeds_as_the_cpu(motion):
    """Also when slower ones come, whose options the device does not have yet."""
    free = largest_component(np.random.default_rng(4).uniform(size=(40, 50)) > 0.1)
    tiles = np.random.default_rng(5).permutation(np.argwhere(free))
    starts, goals, speeds = tiles[:300], tiles[500:801], mixed(300, 2, np.random.default_rng(6))
    both = []
    for device in ("cpu", "cuda"):
        planner = FleetPlanner(GridMap(free, connectivity=4), motion, device, Settings(horizon=4))
        planner.start(starts, speeds=speeds)
        walked = []
        for step in range(60):
            if step == 20:
                taken = set(map(tuple, np.concatenate([planner.positions, *walked[-2:]])))
                planner.add([next(tile for tile in tiles if tuple(tile) not in taken)], speeds=[[4, 3]])
            planner.step(goals[: len(planner.positions)])
            walked.append(planner.positions)
        both.append(walked)
    assert all((one == other).all() for one, other in zip(*both))
