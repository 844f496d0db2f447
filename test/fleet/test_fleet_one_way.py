"""Moves that nobody may make: none is made, whoever pushes, and whatever the fields say the way around is taken."""

from collections import deque

import numpy as np
import pytest

from gpu_planners.errors import GridMapError, SettingsError
from gpu_planners.fleet import FleetPlanner, Guidance, Settings
from gpu_planners.grid import GridMap

MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))


def reachable(free, barred, start):
    """(rows, cols) bool, by a plain breadth-first search"""
    found, queue = np.zeros(free.shape, bool), deque([tuple(start)])
    found[tuple(start)] = True
    while queue:
        row, col = queue.popleft()
        for way, (down, right) in enumerate(MOVES):
            there = row + down, col + right
            inside = 0 <= there[0] < free.shape[0] and 0 <= there[1] < free.shape[1]
            if inside and free[there] and not barred[row, col, way] and not found[there]:
                found[there] = True
                queue.append(there)
    return found


def check(before, now, barred):
    for (row, col), (to_row, to_col) in zip(before.tolist(), now.tolist()):
        if (row, col) != (to_row, to_col):
            assert not barred[row, col, MOVES.index((to_row - row, to_col - col))], (row, col, to_row, to_col)


@pytest.mark.parametrize("motion", ["four", "turning"])
def test_the_way_around_is_taken_however_long_it_is(motion):
    """A ring of 400 tiles; one tile of it is one-way, and the goal lies just behind it."""
    free = np.zeros((3, 200), np.uint8)
    free[[0, 2]], free[1, [0, -1]] = 1, 1
    barred = np.zeros((3, 200, 4), bool)
    barred[0, 10, 0] = True
    guidance = Guidance(np.full((3, 200, 4), 4), 4, 1, barred)
    fleet = FleetPlanner(GridMap(free), motion, "cpu", guidance=guidance)
    fleet.start([[0, 5], [0, 100]])
    goals, before, reached = np.array([[0, 11], [0, 5]]), fleet.positions, np.zeros(2, int)
    for step in range(600):
        fleet.step(goals)
        check(before, fleet.positions, barred)
        before = fleet.positions
        reached[(reached == 0) & (before == goals).all(axis=1)] = step
        if reached.all():
            break
    assert 385 < reached[0] < 500 and 90 < reached[1] < 300, reached


@pytest.mark.parametrize("motion", ["four", "turning"])
@pytest.mark.parametrize("following, ticks, budget", [(True, 1, 0.0), (False, 1, 0.003), (False, 2, 0.0)])
def test_no_barred_move_is_made_in_traffic_and_errands_are_done(motion, following, ticks, budget):
    done = 0
    for seed in range(2):
        rng = np.random.default_rng(seed)
        free = (rng.random((16, 18)) > 0.08).astype(np.uint8)
        barred = rng.random((16, 18, 4)) < 0.15
        tiles = np.argwhere(free)
        from_first = max((reachable(free, barred, tile) for tile in tiles[:20]), key=np.count_nonzero)
        core = [t for t in np.argwhere(from_first).tolist() if reachable(free, barred, t).sum() >= from_first.sum()]
        core = np.array([t for t in core if from_first[tuple(t)]])
        settings = Settings(following=following, ticks_per_move=ticks, horizon=2 * ticks + 1)
        guidance = Guidance(np.full(barred.shape, 4), 4, 1, barred)
        fleet = FleetPlanner(GridMap(free), motion, "cpu", settings, guidance)
        n = len(core) // 5
        fleet.start(rng.permutation(core)[:n])
        goals, before = core[rng.integers(len(core), size=n)], fleet.positions
        for step in range(120):
            fleet.step(goals, budget)
            check(before, fleet.positions, barred)
            before = fleet.positions
            there = (before == goals).all(axis=1)
            done += int(there.sum())
            goals[there] = core[rng.integers(len(core), size=there.sum())]
            if step == 50:
                fleet.update([core[0][0]], [core[0][1]], [0])
    assert done > 60, done


def test_who_has_no_way_stands_and_is_stuck():
    free = np.ones((1, 8), np.uint8)
    barred = np.zeros((1, 8, 4), bool)
    barred[0, 4, 0] = True
    fleet = FleetPlanner(
        GridMap(free), "four", "cpu", Settings(stuck_after=5), Guidance(np.ones((1, 8, 4), int), barred=barred)
    )
    fleet.start([[0, 1]])
    for _ in range(20):
        fleet.step([[0, 7]])
    assert fleet.positions.tolist()[0][1] <= 4 and fleet.stuck.tolist() == [0]


def test_barred_moves_are_kept_in_files_and_refused_where_they_cannot_be(tmp_path):
    barred = np.zeros((2, 3, 4), bool)
    barred[0, 0, 0] = True
    guidance = Guidance(np.ones((2, 3, 4), int), barred=barred)
    guidance.save(tmp_path / "g.npz")
    assert (Guidance.load(tmp_path / "g.npz").barred == barred).all() and guidance.moves[0, 0, 0] == 123
    with pytest.raises(GridMapError, match="barred is int64"):
        Guidance(np.ones((2, 3, 4), int), barred=barred.astype(int))
    with pytest.raises(SettingsError, match="`barred`; allowed for solve: None"):
        FleetPlanner(GridMap(np.ones((2, 3), np.uint8)), "four", "cpu", guidance=guidance).solve([[0, 0]], [[1, 1]])
