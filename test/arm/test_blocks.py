"""Pairs of blocks that are passed over: checks agree with looking at every pair alone."""

import numpy as np
import pytest
from robots_at_hand import maker_of

from gpu_planners.arm import CollisionChecker, CollisionWorld
from gpu_planners.arm.collision.broad_phase import BLOCK, FEW_PAIRS, block_pairs


def test_pairs_of_two_blocks_stand_together():
    pairs = np.random.default_rng(0).integers(0, 30, (FEW_PAIRS + 100, 2))
    order, number, both = block_pairs(pairs)
    assert sorted(order) == list(range(len(pairs)))
    for p, (i, g) in enumerate(zip(order, number, strict=True)):
        first, end, *blocks = both[g]
        assert first <= p < end and blocks == sorted(pairs[i] // BLOCK)
    assert len(block_pairs(pairs[:FEW_PAIRS])[2]) == 0


@pytest.mark.parametrize("name", ["tiago", "baxter"])
def test_no_pair_that_meets_is_passed_over(name):
    robot = maker_of(name).model
    checker = CollisionChecker(robot, CollisionWorld(), "cpu")
    assert len(robot.self_collision_pairs) > FEW_PAIRS
    q = np.random.default_rng(1).uniform(robot.lower, robot.upper, (500, robot.dof))
    meets = checker.shape_pair_collisions(q).any(axis=1)
    assert meets.any() and not meets.all()
    np.testing.assert_array_equal(checker.configurations_valid(q), ~meets)
