"""Proofs that there is no plan: never where a search over all places finds one, and of nearly all others."""

from itertools import permutations, product

import numpy as np
import pytest
from fleet_oracle import MOVES, free_tiles

from gpu_planners.fleet.fields.next_hops import ground_of
from gpu_planners.fleet.plan.feasibility import unsolvable
from gpu_planners.grid.maps.generated import largest_component
from gpu_planners.parallel.team import NEVER


def neighbours(free):
    """[tiles next to tile k], tiles numbered row by row"""
    number = {tuple(tile): k for k, tile in enumerate(np.argwhere(free).tolist())}
    return [[number[r + i, c + j] for i, j in MOVES if (r + i, c + j) in number] for r, c in number]


def reached(near, start, following):
    """All places of agents that plans lead to from `start`, tuples of tiles."""
    known, queue = {start}, [start]
    while queue:
        old = queue.pop()
        if following:
            moves = product(*[[tile, *near[tile]] for tile in old])
        else:  # one after the other does the same
            moves = [(*old[:k], there, *old[k + 1 :]) for k in range(len(old)) for there in near[old[k]]]
        for new in moves:
            if new in known or len(set(new)) < len(new):
                continue
            pairs = [(i, j) for i in range(len(new)) for j in range(len(new)) if new[i] == old[j] and i != j]
            if any(new[j] == old[i] or (not following and new[i] != old[i]) for i, j in pairs):
                continue
            known.add(new)
            queue.append(new)
    return known


def maps(count, most):
    """Connected maps of 3 .. `most` tiles."""
    rng, found = np.random.default_rng(7), []
    while len(found) < count:
        free = largest_component(rng.random((rng.integers(1, 4), rng.integers(2, 6))) > rng.uniform(0.1, 0.6))
        if 3 <= free.sum() <= most:
            found.append(free)
    return found


def proven(ground, start, goal, following):
    return unsolvable(np.array(start, np.int32), np.array(goal, np.int32), ground, following, NEVER)


@pytest.mark.parametrize("following", [True, False])
def test_what_is_refused_has_no_plan_and_nearly_all_that_has_none_is_refused(following):
    rng, refused, missed = np.random.default_rng(3), 0, []
    for free in maps(40, 7):
        near, ground = neighbours(free), ground_of(free)[0]
        for agents in range(1, len(near) + 1):
            if following and agents > 4:
                continue
            start = tuple(rng.permutation(len(near))[:agents].tolist())
            known = reached(near, start, following)
            goals = list(permutations(range(len(near)), agents))
            for k in rng.permutation(len(goals))[:120]:
                found = proven(ground, start, goals[k], following)
                assert not (found and goals[k] in known), (free, start, goals[k])
                refused += found
                if not found and goals[k] not in known:
                    missed.append((free.astype(int).tolist(), start, goals[k]))
    assert refused > 1000 and not missed, missed[:3]


@pytest.mark.parametrize("following", [True, False])
def test_agents_without_a_goal_are_in_the_way_but_go_anywhere(following):
    rng, refused = np.random.default_rng(4), 0
    for free in maps(60, 7):
        near, ground = neighbours(free), ground_of(free)[0]
        agents = int(rng.integers(2, min(len(near), 5 if following else 7) + 1))
        start = tuple(rng.permutation(len(near))[:agents].tolist())
        known = reached(near, start, following)
        for _ in range(60):
            goal = rng.permutation(len(near))[:agents]
            goal[rng.random(agents) < 0.4] = -1
            there = any(all(g in (-1, at) for g, at in zip(goal, places)) for places in known)
            found = proven(ground, start, goal, following)
            assert not (found and there), (free, start, goal)
            refused += found
    assert refused > 50


CASES = {
    "two in a lane of ten thousand": ("." * 10_000, [0, 9_999], [9_999, 0], (True, True)),
    "two in a lane": ("......", [0, 5], [5, 0], (True, True)),
    "three in a lane, the last two": ("......", [0, 2, 5], [0, 5, 2], (True, True)),
    "in their order": ("......", [0, 1, 2], [3, 4, 5], (False, False)),
    "a bay in the middle": ("...... ###.##", [0, 5], [5, 0], (False, False)),
    "a bay, too many agents": ("...... ###.##", [0, 1, 2, 4, 5], [5, 1, 2, 4, 0], (True, True)),
    "two rooms, a lane that is too long": (
        "..###.. ....... ..###..",
        [0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14],
        [14, 1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 0],
        (True, True),
    ),
    "a ring": ("... .#. ...", [0, 1, 2], [1, 0, 2], (True, True)),
    "a full ring turns if agents follow": ("... .#. ...", [*range(8)], [1, 2, 4, 0, 7, 3, 5, 6], (False, True)),
    "fifteen": (".... .... .... ....", [*range(15)], [1, 0, *range(2, 15)], (False, True)),
    "fifteen, evenly": (".... .... .... ....", [*range(15)], [1, 2, 0, *range(3, 15)], (False, False)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_cases(name):
    text, start, goal, refused = CASES[name]
    ground = ground_of(free_tiles(text))[0]
    assert (proven(ground, start, goal, True), proven(ground, start, goal, False)) == refused


def test_a_large_map_with_a_lane_at_its_end():
    """Two agents behind each other in a dead end, and thousands of free tiles: they change places, unless a wall is
    put up."""
    free = np.ones((120, 120), bool)
    free[:, 100:] = False
    free[60, 100:] = True
    for row, count in ((60, False), (None, True)):
        free[60, 100] = row is not None
        ground, number, _ = ground_of(free)
        start, goal = number[60, 110:112], number[60, [111, 110]]
        assert proven(ground, start, goal, False) == count
