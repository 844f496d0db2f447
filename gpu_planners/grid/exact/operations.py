"""What is done with a block of a field, by the kind of scratch that its worker has.

| scratch | fields of | relaxation |
|---|---|---|
| Wave | uniform 4-connected maps | `wave` |
| Tiles | all others, on CUDA | sweeps: `values` |
| Buckets | all others, on a CPU thread | a bucket queue: `queues` |

The kinds that a worker does not have are None: Numba leaves out what stands below `if ... is not None` for these.
"""

from typing import NamedTuple

import numpy as np

from .bits import clear_bits, direct_bits, withdraw_bits
from .blocks import inner_njit
from .directions import direct_on_thread
from .queues import Buckets, relax_by_queue
from .values import Tiles, clear_values, direct_values, relax_by_sweeps, withdraw_values
from .wave import Wave, relax_by_wave


class Scratch(NamedTuple):
    """A worker's scratch: one of the three, the others are None."""

    wave: Wave | None
    tiles: Tiles | None
    buckets: Buckets | None


@inner_njit
def clear(slot, field, worker, wave, tiles, buckets):
    """Reset a slot's field to unreached: each worker its share."""
    if wave is not None:
        clear_bits(slot, field, worker)
    if tiles is not None:
        clear_values(slot, field, worker)
    if buckets is not None:
        clear_values(slot, field, worker)


@inner_njit
def relax(visit, field, raw, lane, wave, tiles, buckets):
    """Find the exact values inside a block, given the tiles around it. All lanes of the worker call it.

    raw: the values inside need not fit each other, as after a withdrawal
    -> bits of the neighbours (move codes) that get better by it
    """
    better = np.int32(0)
    if wave is not None:
        better = relax_by_wave(visit, field, wave, lane)
    if tiles is not None:
        better = relax_by_sweeps(visit, field, raw, tiles, lane)
    if buckets is not None:
        better = relax_by_queue(visit, field, raw, buckets)
    return better


@inner_njit
def withdraw(visit, field, lane, wave, tiles, buckets):
    """Withdraw the values that no neighbour supports any more; what is left is exact.

    -> bits of the neighbours that touch a withdrawn tile, and CHANGED when there is one
    """
    changed = np.int32(0)
    if wave is not None:
        changed = withdraw_bits(visit, field, wave, lane)
    if tiles is not None:
        changed = withdraw_values(visit, field, tiles, lane)
    if buckets is not None:
        changed = withdraw_values(visit, field, buckets, lane)
    return changed


@inner_njit
def direct(visit, field, lane, wave, tiles, buckets):
    """Write the block's directions: of each tile the first of its best moves, AT_GOAL or NOWHERE."""
    if wave is not None:
        direct_bits(visit, field, wave, lane)
    if tiles is not None:
        direct_values(visit, field, tiles, lane)
    if buckets is not None:
        direct_on_thread(visit, field, buckets)
