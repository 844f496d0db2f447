"""Which obstacles of a large world can a ball be near? Boxes around groups of neighbours leave most of them out.

The balls around the obstacles are sorted along a space-filling curve (Morton, 1966), large ones apart from small ones.
GROUP balls that follow one another share a box, GROUP such boxes another one, and so on: a tree of bounding volumes
whose nodes need no pointers. Walking along the balls, a group whose box is too far away is passed over as a whole.
"""

import numpy as np

from ...device import lean_njit
from ...parallel.memory import item
from .records import first_group

GROUP_BITS = 3
GROUP = 1 << GROUP_BITS
BOX = 6  # scalars: lowest x, y, z, highest x, y, z
FEW = 32  # balls that are looked at one by one
BITS = 21  # of a coordinate on the curve
SURE = np.float32(1e-5)  # metres: covers the rounding of float32


def neighbours_first(balls: np.ndarray) -> np.ndarray:
    """balls: (n, BALL) x, y, z, radius -> (n,) their numbers in an order where neighbours follow one another."""
    if len(balls) <= FEW:
        return np.arange(len(balls))
    centres = balls[:, :3].astype(np.float64)
    lowest = centres.min(axis=0)
    span = max(float((centres.max(axis=0) - lowest).max()), 1e-9)
    code = np.zeros(len(balls), np.uint64)
    for k, cells in enumerate(((centres - lowest) / span * (2**BITS - 1)).astype(np.uint64).T):
        code |= _every_third_bit(cells) << np.uint64(k)
    size = np.floor(np.log2(np.maximum(balls[:, 3], 1e-9)) / 2)  # large balls would make the boxes of small ones large
    return np.lexsort((code, size))


def _every_third_bit(cells):
    """(n,) uint64 below 2^BITS, with two zeros put before each bit."""
    for shift, mask in (
        (32, 0x1F00000000FFFF),
        (16, 0x1F0000FF0000FF),
        (8, 0x100F00F00F00F00F),
        (4, 0x10C30C30C30C30C3),
        (2, 0x1249249249249249),
    ):
        cells = (cells | (cells << np.uint64(shift))) & np.uint64(mask)
    return cells


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
        passed, bits, boxes = 0, GROUP_BITS, first_group(scene)
        while k & ((1 << bits) - 1) == 0 and 1 << bits < GROUP * balls:
            if not box_far(boxes + BOX * (k >> bits), centre, radius, scene):
                break
            passed = 1 << bits
            boxes += BOX * ((balls + passed - 1) >> bits)
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
