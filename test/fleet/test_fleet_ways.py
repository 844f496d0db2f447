"""Whole ways of agents that get errand after errand."""

import numpy as np
import pytest
from fleet_oracle import free_tiles

from gpu_planners.fleet import conflicts
from gpu_planners.fleet.fields.next_hops import ground_of, next_hops_to
from gpu_planners.fleet.step.ways import LOOK, UNSERVED, cost_of, enter, improve, new_ways
from gpu_planners.parallel.team import NEVER

BAY = free_tiles("." * 9 + " " + "#######.#")  # one may let the other pass
STATES = 20_000


def ways_on(free, starts, goals, turning, following):
    ground, number, place = ground_of(free)
    tiles, ends = (number[tuple(np.array(places).T)] for places in (starts, goals))
    ways = new_ways(tiles, np.zeros(len(tiles), np.int32), ground.neighbour, turning, following)
    for k, end in enumerate(ends):
        ways.steps[k] = next_hops_to(end, ground, NEVER)[1]
    ways.goal[:] = ends
    ways.cost[:] = cost_of(ways, ways.tile)
    ways.least[:] = ways.steps[np.arange(len(tiles)), tiles]
    return ways, place


def checked(free, ways, place):
    """No conflict; turns and moves take a step each; everybody stays at the end."""
    walked, faces = place[ways.tile.T], ways.heading.T
    assert conflicts(walked, ~free, following=ways.following) == []
    moved, turned = np.abs(np.diff(walked, axis=0)).sum(axis=2), np.diff(faces, axis=0) % 4
    assert not moved[-1].any() and moved.max() <= 1
    if ways.turning:
        assert not (moved.astype(bool) & (turned != 0)).any() and not (turned == 2).any()
        ahead = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])[faces[:-1]]
        assert (np.diff(walked, axis=0)[moved > 0] == ahead[moved > 0]).all()
    assert (ways.cost == cost_of(ways, ways.tile)).all()


@pytest.mark.parametrize("following", [False, True])
@pytest.mark.parametrize("turning", [False, True])
def test_two_pass_each_other_by_a_bay(turning, following):
    ways, place = ways_on(BAY, [[0, 0], [0, 8]], [[0, 8], [0, 0]], turning, following)
    improve(np.arange(2), STATES, 0, ways)
    checked(BAY, ways, place)
    assert (ways.cost < UNSERVED).all() and (ways.cost >= ways.least).all()


def test_who_cannot_come_to_its_goal_waits_near_it():
    free = free_tiles(".........")
    ways, place = ways_on(free, [[0, 0], [0, 8]], [[0, 5], [0, 2]], False, False)
    improve(np.arange(2), STATES, 0, ways)
    checked(free, ways, place)
    assert np.count_nonzero(ways.cost == UNSERVED) == 1


@pytest.mark.parametrize("seed", range(4))
def test_ways_of_many_do_not_conflict_and_only_get_better(seed):
    rng = np.random.default_rng(seed)
    free = np.ones((8, 17), bool)
    free[:, 8] = False
    free[3, 8] = True
    tiles = np.argwhere(free)
    ways, place = ways_on(free, *(tiles[rng.permutation(len(tiles))[:20]] for _ in range(2)), True, False)
    before = ways.cost.sum()
    for _ in range(4):
        improve(np.arange(0), STATES, 0, ways)
        checked(free, ways, place)
        assert ways.cost.sum() <= before
        before = ways.cost.sum()
    assert np.count_nonzero(ways.cost < UNSERVED) >= 15


def test_longer_ways_are_the_same():
    ways, place = ways_on(BAY, [[0, 0], [0, 8]], [[0, 8], [0, 0]], True, False)
    improve(np.arange(2), STATES, 0, ways)
    longer = ways.longer(2 * LOOK)
    enter(longer)
    assert (longer.tile[:, : LOOK + 1] == ways.tile).all()
    improve(np.arange(0), STATES, 0, longer)
    checked(BAY, longer, place)
