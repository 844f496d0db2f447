"""Exact cost-to-go fields of many goals on one map, by rounds over the blocks that something new has reached.

A round relaxes every block on the list, in any order; a block whose neighbour it made better puts that neighbour on the
next round's list. When a list is empty every tile has its exact value: relaxation of positive costs has one fixed point,
whatever the order, so CPU, GPU and any number of workers give the same field, bit for bit.

A change of the map is repaired in two such runs: first values are withdrawn that nothing supports any more, then the
blocks concerned are relaxed. At last each tile of a block where something changed, and of its neighbours, gets its direction.

Arrays: M, V, E are free, wave, edge of `bit_blocks` (layout BITS) or cost, value and nothing of `value_blocks` (VALUES).
    directions (items, B * B / 8) uint32   codes of 4 bits, tile by tile
    Q (5, items) int32    STAMP: the latest round an item was listed for; DIRTY: the epoch it last changed in; two lists; TOUCHED
    N (8,) int32          the barrier, lengths of lists, the round
    R (r,) int32          request: EPOCH, NEW, LIVE, SEEDS: how many slots of new goals, slots in all, blocks to repair; from
                          LISTS on: the new slots, or the blocks
    goals (slots, 4) int32    block, tile in the block, parity of the distance of a tile with even row and column; in use
"""

import functools
from typing import NamedTuple

import numpy as np

from ..device import njit
from ..team import add, lane_count, raise_to, sync_team
from .bit_blocks import CHANGED, FAR, ONE, REACHED, bit_operations, spread_on_cpu
from .value_blocks import NEVER, value_operations

BITS, VALUES = 0, 1
STAMP, DIRTY, LIST, TOUCHED = 0, 1, 2, 4
BARRIER, COUNT, ROUND, TOUCHED_COUNT = 0, 1, 4, 5
EPOCH, NEW, LIVE, SEEDS, LISTS = 0, 1, 2, 3, 4
GOAL_BLOCK, GOAL_TILE, GOAL_PARITY, GOAL_USED = 0, 1, 2, 3


class Place(NamedTuple):
    """Who works: worker of workers; member of members (threads or CUDA blocks, which meet at barriers)."""

    worker: int
    workers: int
    member: int
    members: int


@functools.cache
def field_functions(layout, size, connectivity, make_spread=spread_on_cpu):
    """-> update_fields(width, blocks, M, V, E, directions, goals, R, Q, N, S, lane, place)"""
    relax_bits, withdraw_bits, direct_bits, _ = bit_operations(size, make_spread)
    relax_values, withdraw_values, direct_values = value_operations(size, connectivity)

    @njit
    def on_map(block, width, blocks):
        """Is a block one of the map, not of the ring around it?"""
        row, col = block // width, block % width
        return 0 < row < blocks // width - 1 and 0 < col < width - 1

    @njit
    def enlist(item, k, Q, N):
        """Put an item on the list of round k, once."""
        if raise_to(Q[STAMP], item, k) < k:
            Q[LIST + k % 2, add(N, COUNT + k % 3, 1)] = item

    @njit
    def notify(item, answer, k, width, blocks, epoch, Q, N, lane):
        """Put the neighbours that an answer of `relax` or `withdraw` names on the list of round k."""
        around = (-width, 1, width, -1, 1 - width, width + 1, width - 1, -width - 1)
        for j in range(lane, 8, lane_count()):
            if (answer >> j) & 1 and on_map(item % blocks + around[j], width, blocks):
                enlist(item + around[j], k, Q, N)
        if lane == 0 and answer & CHANGED and raise_to(Q[DIRTY], item, epoch) < epoch:
            Q[TOUCHED, add(N, TOUCHED_COUNT, 1)] = item

    @njit
    def seed_of(item, blocks, goals):
        """The goal's tile if the goal lies in this block, else -1."""
        slot = item // blocks
        return goals[slot, GOAL_TILE] if goals[slot, GOAL_BLOCK] == item % blocks else -1

    @njit
    def rounds(withdrawing, k, epoch, width, blocks, M, V, E, goals, Q, N, S, lane, place):
        """Rounds from k on until a list is empty -> the round after the last."""
        n = N[COUNT + k % 3]
        while n > 0:
            for w in range(place.worker, n, place.workers):
                item = Q[LIST + k % 2, w]
                slot, block, seed = item // blocks, item % blocks, seed_of(item, blocks, goals)
                if layout == BITS:
                    if withdrawing:
                        odd = goals[slot, GOAL_PARITY]
                        answer = withdraw_bits(item, block, width, seed, odd, M, V, E, S, lane)
                    else:
                        answer = relax_bits(item, block, width, seed, M, V, E, S, lane)
                else:
                    if withdrawing:
                        answer = withdraw_values(block, slot, width, seed, M, V, S, lane)
                    else:
                        answer = relax_values(block, slot, width, seed, M, V, S, lane)
                notify(item, answer, k + 1, width, blocks, epoch, Q, N, lane)
            if place.worker == 0 and lane == 0:
                N[COUNT + (k + 2) % 3] = 0
            sync_team(N, BARRIER, place.member, place.members)
            k += 1
            n = N[COUNT + k % 3]
        return k

    @njit
    def clear(slot, blocks, epoch, V, E, Q, lane, place):
        """A field without any value."""
        lanes = lane_count()
        for b in range(place.worker, blocks, place.workers):
            item = slot * blocks + b
            if lane == 0:
                Q[DIRTY, item] = epoch
            if layout == BITS:
                for r in range(lane, size, lanes):
                    V[item, ONE, r] = np.uint32(0)
                    V[item, REACHED, r] = np.uint32(0)
                    for side in range(4):
                        E[item, side, r] = FAR
        if layout == VALUES:
            for r in range(place.worker, V.shape[1], place.workers):
                for c in range(lane, V.shape[2], lanes):
                    V[slot, r, c] = NEVER

    @njit
    def direct(slot, epoch, width, blocks, M, V, directions, goals, Q, S, lane, place):
        """Directions of the blocks in which, or beside which, something changed in this epoch."""
        for b in range(place.worker, blocks, place.workers):
            if on_map(b, width, blocks):
                item = slot * blocks + b
                dirty = False
                for row in range(-width, width + 1, width):
                    for beside in range(-1, 2):
                        dirty |= Q[DIRTY, item + row + beside] == epoch
                if dirty:
                    seed = seed_of(item, blocks, goals)
                    if layout == BITS:
                        direct_bits(item, b, width, seed, goals[slot, GOAL_PARITY], V, directions, S, lane)
                    else:
                        direct_values(item, b, slot, width, seed, M, V, directions, S, lane)

    @njit
    def update_fields(width, blocks, M, V, E, directions, goals, R, Q, N, S, lane, place):
        """Fields of new goals from scratch; or, with SEEDS, all fields after a change of those blocks."""
        epoch, fresh, live, seeds = R[EPOCH], R[NEW], R[LIVE], R[SEEDS]
        first = place.worker == 0 and lane == 0
        k = N[ROUND]
        if first:
            N[TOUCHED_COUNT] = 0
        for j in range(fresh):
            clear(R[LISTS + j], blocks, epoch, V, E, Q, lane, place)
        sync_team(N, BARRIER, place.member, place.members)
        if lane == 0:
            for j in range(place.worker, fresh, place.workers):
                enlist(R[LISTS + j] * blocks + goals[R[LISTS + j], GOAL_BLOCK], k, Q, N)
            for j in range(place.worker, seeds * live, place.workers):
                if goals[j // seeds, GOAL_USED]:
                    item = j // seeds * blocks + R[LISTS + j % seeds]
                    enlist(item, k, Q, N)
                    if raise_to(Q[DIRTY], item, epoch) < epoch:
                        Q[TOUCHED, add(N, TOUCHED_COUNT, 1)] = item
        sync_team(N, BARRIER, place.member, place.members)
        if seeds > 0:
            k = rounds(True, k, epoch, width, blocks, M, V, E, goals, Q, N, S, lane, place)
            sync_team(N, BARRIER, place.member, place.members)  # all have seen the empty list
            if lane == 0:
                for j in range(place.worker, N[TOUCHED_COUNT], place.workers):
                    enlist(Q[TOUCHED, j], k, Q, N)
            sync_team(N, BARRIER, place.member, place.members)
        k = rounds(False, k, epoch, width, blocks, M, V, E, goals, Q, N, S, lane, place)
        if first:
            N[ROUND] = k
        for j in range(fresh):
            direct(R[LISTS + j], epoch, width, blocks, M, V, directions, goals, Q, S, lane, place)
        if seeds > 0:
            for slot in range(live):
                if goals[slot, GOAL_USED]:
                    direct(slot, epoch, width, blocks, M, V, directions, goals, Q, S, lane, place)

    return update_fields
