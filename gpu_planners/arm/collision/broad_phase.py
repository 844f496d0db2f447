"""What can be near? Boxes around neighbours leave most obstacles, and most of the robot's own pairs, out.

Obstacles: the balls around them are sorted along a space-filling curve (Morton, 1966), large ones apart from small
ones. GROUP balls that follow one another share a box, GROUP such boxes another one, and so on: a tree of bounding
volumes whose nodes need no pointers. Walking along the balls, a group whose box is too far away is passed over as a
whole.

The robot's own pairs: a block is BLOCK consecutive shapes, of one link or of neighbours, so mostly near each other. The
pairs of two blocks stand together; where the boxes around the two blocks' balls are too far apart, all these pairs are
passed over. Robots with FEW_PAIRS or less have no blocks.
"""

import numpy as np

from ...device import lean_njit
from ...parallel.memory import item, set_item
from ...parallel.team import lane_count, vote_lanes
from ..geometry.poses import ZERO
from . import records
from .scratch import block_speeds, triple

GROUP_BITS = 3
GROUP = 1 << GROUP_BITS
FEW = 32  # balls that are looked at one by one
BITS = 21  # of a coordinate on the curve
SPREAD = (  # shifts and masks that put two zeros before each of so many bits
    (32, 0x1F00000000FFFF),
    (16, 0x1F0000FF0000FF),
    (8, 0x100F00F00F00F00F),
    (4, 0x10C30C30C30C30C3),
    (2, 0x1249249249249249),
)
BLOCK = 4
FEW_PAIRS = 64
SURE = np.float32(1e-5)  # metres: covers the rounding of float32
FAR_AWAY = np.float32(1e30)


def neighbours_first(balls: np.ndarray) -> np.ndarray:
    """balls: (n, BALL) x, y, z, radius -> (n,) their numbers in an order where neighbours follow one another."""
    if len(balls) <= FEW:
        return np.arange(len(balls))
    centres = balls[:, :3].astype(np.float64)
    lowest = centres.min(axis=0)
    span = max(float((centres.max(axis=0) - lowest).max()), 1e-9)
    code = np.zeros(len(balls), np.uint64)
    for k, cells in enumerate(((centres - lowest) / span * (2**BITS - 1)).astype(np.uint64).T):
        for shift, mask in SPREAD:
            cells = (cells | (cells << np.uint64(shift))) & np.uint64(mask)
        code |= cells << np.uint64(k)
    size = np.floor(np.log2(np.maximum(balls[:, 3], 1e-9)) / 2)  # large balls would make the boxes of small ones large
    return np.lexsort((code, size))


def group_boxes(balls: np.ndarray) -> np.ndarray:
    """balls: (n, BALL) in the order of `neighbours_first` -> (boxes * BOX,) float32: of all groups of GROUP balls, then
    of all groups of GROUP groups, up to one that holds everything."""
    low, high = balls[:, :3] - balls[:, 3:].astype(np.float64), balls[:, :3] + balls[:, 3:].astype(np.float64)
    boxes = []
    while len(low):
        first = np.arange(0, len(low), GROUP)
        low, high = np.minimum.reduceat(low, first), np.maximum.reduceat(high, first)
        boxes.append(np.hstack([low, high]))
        if len(low) == 1:
            break
    return np.concatenate(boxes).astype(np.float32).ravel() if boxes else np.zeros(0, np.float32)


@lean_njit
def next_near(k, balls, centre, radius, scene):
    """The first of the balls k, k + 1, ... below `balls` whose group can be near a ball in the world; if none can,
    `balls` or more. For more than FEW balls."""
    while k < balls:
        passed, bits, boxes = 0, GROUP_BITS, records.first_group(scene)
        while k & ((1 << bits) - 1) == 0 and 1 << bits < GROUP * balls:
            if not box_far(boxes + records.BOX * (k >> bits), centre, radius, scene):
                break
            passed = 1 << bits
            boxes += records.BOX * ((balls + passed - 1) >> bits)
            bits += GROUP_BITS
        if passed == 0:
            return k
        k += passed
    return k


@lean_njit
def box_far(at, centre, radius, scene):
    """Is a ball too far from a box to reach anything in it?"""
    floats, squared = scene.floats, np.float32(0.0)
    for axis in range(3):
        beyond = max(
            item(floats, at + axis) - centre[axis], centre[axis] - item(floats, at + 3 + axis), np.float32(0.0)
        )
        squared += beyond * beyond
    return squared > (radius + SURE) * (radius + SURE)


def block_pairs(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """pairs: (P, 2) numbers of shapes -> (P,) an order in which the pairs of two blocks stand together; (P,) the pair
    of blocks of each, in that order; (B, 4) BlockPair of each pair of blocks. No blocks for FEW_PAIRS or less."""
    if len(pairs) <= FEW_PAIRS:
        return np.arange(len(pairs)), np.zeros(len(pairs), int), np.zeros((0, 4), int)
    both, number = np.unique(np.sort(pairs // BLOCK, axis=1), axis=0, return_inverse=True)
    number = number.reshape(-1)
    order = np.argsort(number, kind="stable")
    ends = np.cumsum(np.bincount(number))
    return order, number[order], np.column_stack([ends - np.bincount(number), ends, both])


@lean_njit
def box_block(b, scene, array, balls, boxes):
    """Write the box around block b. balls, boxes: where the centres of the shapes' balls begin in the array, and where
    the boxes are to"""
    low, high = (FAR_AWAY, FAR_AWAY, FAR_AWAY), (-FAR_AWAY, -FAR_AWAY, -FAR_AWAY)
    for s in range(BLOCK * b, min(BLOCK * (b + 1), records.shape_count(scene))):
        x, y, z = triple(array, balls, s)
        r = records.sphere_radius(scene, records.robot_shape(scene, s), 0)
        low = (min(low[0], x - r), min(low[1], y - r), min(low[2], z - r))
        high = (max(high[0], x + r), max(high[1], y + r), max(high[2], z + r))
    at = boxes + records.BOX * b
    for n in range(3):
        set_item(array, at + n, low[n])
        set_item(array, at + 3 + n, high[n])


@lean_njit
def set_block_speeds(scene, speeds, lane, lanes):
    """Write the greatest speed of the pairs of each two blocks; the pairs' own speeds are there."""
    for g in range(lane, records.block_pair_count(scene), lanes):
        pairs, greatest = records.block_pair(scene, g), ZERO
        for p in range(pairs.first, pairs.end):
            greatest = max(greatest, item(speeds, records.moving_count(scene) + p))
        set_item(speeds, block_speeds(scene) + g, greatest)


@lean_njit
def next_pair(p, spread, array, boxes, speeds, scene):
    """The first of the self pairs p, p + 1, ... whose blocks can meet within `spread` of the motion parameter, or the
    number of all pairs. array, boxes: where the blocks' boxes are"""
    while p < records.self_pair_count(scene):
        g = records.self_pair(scene, p).blocks
        both = records.block_pair(scene, g)
        reach = spread * item(speeds, block_speeds(scene) + g) + SURE
        if boxes_near(array, boxes + records.BOX * both.a, boxes + records.BOX * both.b, reach):
            return p
        p = both.end
    return p


@lean_njit
def near_pairs(p, spread, array, boxes, speeds, scene, lane):
    """`next_pair` for lanes that share the boxes, each of which looks at two blocks -> the first pair, and where the
    pairs end that follow it without a gap. p: where the pairs of two blocks begin"""
    pairs, blocks = records.self_pair_count(scene), records.block_pair_count(scene)
    while p < pairs:
        first = records.self_pair(scene, p).blocks
        g = first + lane
        near = False
        if g < blocks:
            both = records.block_pair(scene, g)
            reach = spread * item(speeds, block_speeds(scene) + g) + SURE
            near = boxes_near(array, boxes + records.BOX * both.a, boxes + records.BOX * both.b, reach)
        votes = vote_lanes(near)
        if votes != 0:
            while votes & 1 == 0:
                first, votes = first + 1, votes >> 1
            end = first
            while votes & 1 != 0:
                end, votes = end + 1, votes >> 1
            return records.block_pair(scene, first).first, records.block_pair(scene, end - 1).end
        p = records.block_pair(scene, min(first + lane_count(), blocks) - 1).end
    return pairs, pairs


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
def end_of_blocks(p, scene):
    """Where the pairs of two blocks end, of which self pair p is one."""
    return records.block_pair(scene, records.self_pair(scene, p).blocks).end
