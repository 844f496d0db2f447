"""Which of the robot's own pairs can meet? Boxes around shapes that follow one another leave most of them out.

A block is BLOCK consecutive shapes: of one link or of neighbours, so mostly near each other. The pairs of two blocks
stand together; where the boxes around the two blocks' balls are too far apart, all these pairs are passed over. Robots
with FEW_PAIRS or less have no blocks.
"""

import numpy as np

from ...device import lean_njit
from ...parallel.memory import item, set_item
from ..geometry.poses import ZERO
from .broad_phase import BOX, SURE
from .records import (
    block_count,
    block_pair,
    block_pair_count,
    moving_count,
    robot_shape,
    self_pair,
    self_pair_count,
    shape_count,
    sphere_radius,
)
from .scratch import block_speeds, own_balls, own_blocks, triple

BLOCK = 4
FEW_PAIRS = 64
FAR_AWAY = np.float32(1e30)


def block_pairs(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """pairs: (P, 2) numbers of shapes -> (P,) an order in which the pairs of two blocks stand together; (P,) the pair
    of blocks of each, in that order; (B, 4) BlockPair of each pair of blocks. None for FEW_PAIRS."""
    if len(pairs) <= FEW_PAIRS:
        return np.arange(len(pairs)), np.zeros(len(pairs), int), np.zeros((0, 4), int)
    both, number = np.unique(np.sort(pairs // BLOCK, axis=1), axis=0, return_inverse=True)
    number = number.reshape(-1)
    order = np.argsort(number, kind="stable")
    ends = np.cumsum(np.bincount(number))
    return order, number[order], np.column_stack([ends - np.bincount(number), ends, both])


@lean_njit
def box_blocks(scene, poses):
    """Write the boxes around the blocks, from where their shapes' balls are."""
    for b in range(block_count(scene)):
        low, high = (FAR_AWAY, FAR_AWAY, FAR_AWAY), (-FAR_AWAY, -FAR_AWAY, -FAR_AWAY)
        for s in range(BLOCK * b, min(BLOCK * (b + 1), shape_count(scene))):
            x, y, z = triple(poses, own_balls(scene), s)
            r = sphere_radius(scene, robot_shape(scene, s), 0)
            low = (min(low[0], x - r), min(low[1], y - r), min(low[2], z - r))
            high = (max(high[0], x + r), max(high[1], y + r), max(high[2], z + r))
        at = own_blocks(scene) + BOX * b
        for n in range(3):
            set_item(poses, at + n, low[n])
            set_item(poses, at + 3 + n, high[n])


@lean_njit
def set_block_speeds(scene, speeds, lane, lanes):
    """The greatest speed of a pair of two blocks, after those of all pairs."""
    for g in range(lane, block_pair_count(scene), lanes):
        pairs, greatest = block_pair(scene, g), ZERO
        for p in range(pairs.first, pairs.end):
            greatest = max(greatest, item(speeds, moving_count(scene) + p))
        set_item(speeds, block_speeds(scene) + g, greatest)


@lean_njit
def next_pair(p, spread, array, boxes, speeds, scene):
    """The first of the self pairs p, p + 1, ... whose blocks can meet within `spread` of the motion parameter, or the
    number of all pairs. array, boxes: where the blocks' boxes are"""
    while p < self_pair_count(scene):
        g = self_pair(scene, p).blocks
        both = block_pair(scene, g)
        reach = spread * item(speeds, block_speeds(scene) + g) + SURE
        if boxes_near(array, boxes + BOX * both.a, boxes + BOX * both.b, reach):
            return p
        p = both.end
    return p


@lean_njit
def boxes_near(array, a, b, reach):
    """Are two boxes, lowest and highest x, y, z, at most `reach` apart?"""
    squared = ZERO
    for n in range(3):
        gap = max(item(array, a + n) - item(array, b + 3 + n), item(array, b + n) - item(array, a + 3 + n))
        gap = max(gap, ZERO)
        squared += gap * gap
    return squared <= reach * reach


@lean_njit
def last_of_run(p, last, scene):
    """Where a run of self pairs that begins at p ends: with the pairs of two blocks, or at `last`."""
    return min(last, block_pair(scene, self_pair(scene, p).blocks).end) if p < last else last
