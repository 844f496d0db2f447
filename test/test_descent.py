"""Words of the next steps, by which agents go on CUDA; the same functions run here on the CPU."""

import numpy as np
import pytest
from grid_oracle import random_costs

from gpu_planners.grid import BlockPlanner, GridMap
from gpu_planners.grid.agents import WORD_BITS
from gpu_planners.grid.bit_blocks import AT_GOAL, NOWHERE
from gpu_planners.grid.descent import word_functions


@pytest.mark.parametrize("block_size", [4, 32])
@pytest.mark.parametrize(("connectivity", "highest"), [(4, 1), (4, 9), (8, 1), (8, 9)])
def test_words_are_those_of_the_paths(connectivity, highest, block_size):
    rng = np.random.default_rng(block_size)
    grid = GridMap(random_costs(rng, 70, 90, 0.3, highest), connectivity)
    planner = BlockPlanner(grid, block_size=block_size, device="cpu")
    starts = np.argwhere(grid.costs)
    goal = starts[len(starts) // 2]
    paths, engine = planner.plan(starts, goal), planner._engine
    width, directions = engine.shape.blocks.width, engine._fields._arrays.directions
    per_word = WORD_BITS // paths.bits
    word_from, landing = word_functions(block_size, paths.bits)
    full = 0
    for i, (row, col) in enumerate(starts):
        word, length = int(word_from(row, col, 0, width, directions)), int(paths.length[i])
        if not paths.solved[i]:
            assert paths.bits == 2 or word >> 28 == NOWHERE
        elif length >= per_word:
            full += 1
            assert landing(row, col, word) == tuple(paths.path(i)[per_word])
            if length % per_word == 0:
                assert word == paths.words[paths.first[i] + length // per_word - 1]
        elif paths.bits == 4:
            assert word >> 4 * (per_word - 1 - length) & 15 == AT_GOAL
            assert length == 0 or word >> 4 * (per_word - length) == paths.words[paths.first[i]]
    assert full > 1000
