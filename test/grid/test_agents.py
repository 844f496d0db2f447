"""PathSet: packed steps against plain lists, and which agents are chosen."""

import numpy as np
import pytest
from grid_paths import STEPS
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_planners.errors import GridMapError
from gpu_planners.grid import AgentStatus, PathSet


def random_set(rng, connectivity, lengths, status=AgentStatus.SOLVED):
    """-> PathSet, the tiles of each path"""
    moves = [rng.integers(0, connectivity, length).astype(np.uint8) for length in lengths]
    starts = rng.integers(-9, 9, (len(lengths), 2))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(int)
    status = np.broadcast_to(status, len(lengths))
    paths = PathSet.of_moves(
        starts, status, lengths, np.concatenate([np.zeros(0, np.uint8), *moves]), offsets, connectivity
    )
    tiles = [np.cumsum([start, *(STEPS[k] for k in m)], axis=0).tolist() for start, m in zip(starts, moves)]
    return paths, [t if s == AgentStatus.SOLVED else [] for t, s in zip(tiles, status)]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([4, 8]), st.lists(st.integers(0, 70), max_size=6))
def test_what_is_packed_comes_back(seed, connectivity, lengths):
    paths, expected = random_set(np.random.default_rng(seed), connectivity, lengths)
    assert len(paths) == len(lengths) and paths.bits == (2 if connectivity == 4 else 4)
    assert [paths.path(i).tolist() for i in range(len(paths))] == expected
    tiles, offsets = paths.paths()
    assert [tiles[a:b].tolist() for a, b in zip(offsets[:-1], offsets[1:])] == expected
    assert len(paths.words) == sum(-(-length * paths.bits // 32) for length in lengths)  # no word is wasted


def test_which_agents_are_chosen():
    status = [AgentStatus.SOLVED, AgentStatus.NO_PATH, AgentStatus.SOLVED, AgentStatus.LOOP]
    paths, expected = random_set(np.random.default_rng(0), 8, [5, 0, 40, 0], status)
    for chosen in (
        [2, 0, 2],
        range(4),
        3,
        [],
        np.array([-1, -2]),
        paths.solved,
        [True, False, True, True],
        [False] * 4,
    ):
        tiles, offsets = paths.paths(chosen)
        indices = np.arange(4)[list(chosen) if isinstance(chosen, range) else chosen] if np.size(chosen) else []
        assert [tiles[a:b].tolist() for a, b in zip(offsets[:-1], offsets[1:])] == [
            expected[i] for i in np.atleast_1d(indices).astype(int)
        ]
    assert paths.path(-2).tolist() == expected[2] and paths.path(1).shape == (0, 2)
    assert paths.message(1) == "no path leads from the start to the goal" and "loop" in paths.message(3)
    for wrong in (4, [0, 7], -5, [True], [1.0], ["a"], [[0, 1]], [2**64], np.array([2**64 - 1], np.uint64), "all"):
        with pytest.raises(GridMapError, match="agent"):
            paths.paths(wrong)
    for wrong in (4, -5, 1.0, True, None, "1", [1], 2**70):
        for asked in (paths.path, paths.message):
            with pytest.raises(GridMapError, match="agent is .*; allowed: whole numbers -4 .. 3"):
                asked(wrong)
