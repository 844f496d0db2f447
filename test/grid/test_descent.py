"""Words of the next steps, by which agents go on CUDA; the same functions run here on the CPU."""

import numpy as np
import pytest
from grid_paths import random_costs

from gpu_planners.grid import BlockPlanner, GridMap
from gpu_planners.grid.exact.blocks import AT_GOAL, NOWHERE, FieldShape
from gpu_planners.grid.exact.cpu import CpuFields
from gpu_planners.grid.exact.descent import Directions, landing, word_from
from gpu_planners.grid.exact.rounds import Request
from gpu_planners.grid.paths import WORD_BITS


def directions_to(grid, block_size, goal):
    """The directions of a field, by the fields' own interface."""
    fields = CpuFields(FieldShape.of(grid, block_size))
    fields.set_map(grid)
    fields.allocate(1)
    blocks = fields.shape.blocks
    block, tile = blocks.of_tiles(*goal)
    fields.update(Request(np.array([[block, tile, goal.sum() & 1, 1]], np.int32), new=[0]))
    fields.unload("directions")
    return Directions(fields.shape.kind, fields.staged()["directions"], blocks.width, blocks.count)


MORE = (4, 1, 8), (4, 9, 8), (4, 9, 32), (8, 1, 8), (8, 1, 32), (8, 9, 32)


@pytest.mark.parametrize(
    ("connectivity", "highest", "block_size"),
    [(4, 1, 32), (8, 9, 8), *(pytest.param(*case, marks=pytest.mark.slow) for case in MORE)],
)
def test_words_are_those_of_the_paths(connectivity, highest, block_size):
    rng = np.random.default_rng(block_size)
    grid = GridMap(random_costs(rng, 70, 90, 0.3, highest), connectivity)
    starts = np.argwhere(grid.costs).astype(np.int32)
    goal = starts[len(starts) // 2]
    paths = BlockPlanner(grid, block_size=block_size, device="cpu").plan(starts, goal)
    directions = directions_to(grid, block_size, goal)
    per_word = WORD_BITS // paths.bits
    full = 0
    for i, (row, col) in enumerate(starts):
        word, length = int(word_from(row, col, 0, directions)), int(paths.length[i])
        if not paths.solved[i]:
            assert paths.bits == 2 or word >> 28 == NOWHERE
        elif length >= per_word:
            full += 1
            assert landing(row, col, word, directions) == tuple(paths.path(i)[per_word])
            if length % per_word == 0:
                assert word == paths.words[paths.first[i] + length // per_word - 1]
        elif paths.bits == 4:
            assert word >> 4 * (per_word - 1 - length) & 15 == AT_GOAL
            assert length == 0 or word >> 4 * (per_word - length) == paths.words[paths.first[i]]
    assert full > 1000
