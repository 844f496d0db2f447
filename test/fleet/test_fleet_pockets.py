"""Dead ends of full rooms: who is inside makes way for who wants in."""

from collections import deque

import numpy as np
import pytest

from gpu_planners.fleet import FleetPlanner, conflicts
from gpu_planners.fleet.step.pockets import DEEPEST, pockets_of
from gpu_planners.grid import GridMap


def reached(free, start, without):
    """Tiles that are reached from one without another. free: (rows, cols) bool"""
    seen, queue = {start}, deque([start])
    while queue:
        row, col = queue.popleft()
        for there in ((row, col + 1), (row + 1, col), (row, col - 1), (row - 1, col)):
            if free[there] and there != without and there not in seen:
                seen.add(there)
                queue.append(there)
    return seen


@pytest.mark.parametrize("seed", range(6))
def test_dead_ends_are_what_one_tile_cuts_off(seed):
    """Of each tile of a dead end, the next one on the way out cuts it off from all that is no dead end."""
    rng = np.random.default_rng(seed)
    free = np.pad(rng.random((14, 17)) > 0.1 + 0.06 * seed, 1)
    found = pockets_of(free.astype(np.uint8).ravel(), free.shape[1])
    number, out = found.number.reshape(free.shape), found.out.reshape(free.shape)
    assert not number[~free].any()
    inside = 0
    for tile in map(tuple, np.argwhere(free).tolist()):
        near = [(tile[0] + r, tile[1] + c) for r, c in ((0, 1), (1, 0), (0, -1), (-1, 0))]
        if not number[tile]:
            around = sum(free[other] and not number[other] for other in near)
            assert around != 1 or any(number[other] for other in near)  # else the end is longer than DEEPEST
            continue
        there = tuple(np.array(divmod(np.ravel_multi_index(tile, free.shape) + out[tile], free.shape[1])).tolist())
        assert there in near and free[there]
        cut_off = reached(free, tile, without=there)
        if len(reached(free, tile, None)) > 2 * DEEPEST + 2:
            assert all(number[other] == number[tile] for other in cut_off)
            inside += 1
    assert inside > 0 or seed == 0


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_who_has_nothing_to_do_in_a_dead_end_makes_way(depth):
    """A room with a dead end, most tiles taken. Three agents before it want its last tile, one after the other; those
    that have been there have nothing to do from then on."""
    rng, free = np.random.default_rng(depth), np.zeros((13 + depth, 14), bool)
    free[depth:] = True
    free[:depth, 6] = True
    tiles = np.argwhere(free[depth:]) + [depth, 0]
    mouth = np.abs(tiles - [depth, 6]).sum(axis=1)
    tiles = tiles[np.argsort(mouth, kind="stable")]
    starts = np.concatenate([[[row, 6] for row in range(depth)], tiles[:3], rng.permutation(tiles[3:])[:140]])
    fleet = FleetPlanner(GridMap(free.astype(np.uint8), 4), "turning", "cpu")
    fleet.start(starts, rng.integers(4, size=len(starts)))
    goals = np.full((len(starts), 2), -1)
    goals[depth : depth + 3] = [0, 6]
    walked, done = [fleet.positions], 0
    for _ in range(400):
        fleet.step(goals)
        walked.append(fleet.positions)
        there = (fleet.positions == goals).all(axis=1)
        done += there.sum()
        goals[there] = -1
    assert conflicts(np.array(walked), ~free) == []
    assert done == 3
