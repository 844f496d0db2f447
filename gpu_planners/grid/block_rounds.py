"""Exact cost-to-go fields of many goals on one map, by rounds over the blocks that something new has reached.

A round relaxes every block on the list, in any order; a block whose neighbour it made better puts that neighbour on the
next round's list. When a list is empty every tile has its exact value: relaxation of positive costs has one fixed point,
whatever the order, so CPU, GPU and any number of workers give the same field, bit for bit.

A change of the map is repaired in two such runs: first values are withdrawn that nothing supports any more, then the
blocks concerned are relaxed. At last each tile of a block where something changed, and of its neighbours, gets its direction.

Arrays: M, V, E are free, wave, edge of `bit_blocks` (layout BITS) or cost, value and nothing of `value_blocks` (VALUES).
    directions (items, B * B / 8) uint32   codes of 4 bits, tile by tile
    Q (5, items) int32    STAMP: the latest round an item was listed for; DIRTY: twice the epoch (the number of the request) it was
                          last withdrawn from, plus 1 if it was relaxed since; two lists; TOUCHED
    N (8,) int32          the barrier, lengths of lists, the round, the epoch; all 0 at first. Rounds and epochs begin anew before
                          they are too many for int32
    R (r,) int32          request: NEW: how many slots of new goals; LIVE: slots in all; SEEDS: blocks to repair; RELAX: blocks to
                          go on from; DIRECT: which directions to write, NONE, CHANGES or ALL; from LISTS on: the goals of the
                          LIVE slots, the new slots, the blocks to repair, the blocks to go on from
    goals (slots, 4) int32    block, tile in the block, parity of the distance of a tile with even row and column, in use;
                          brought up to date from the request
"""

import functools
from typing import NamedTuple

import numpy as np

from ..device import njit
from ..team import add, lane_count, lane_range, raise_to, sync_team
from .bit_blocks import CHANGED, FAR, ONE, REACHED, WALL, bit_operations, side_function, spread_on_cpu
from .value_blocks import NEVER, value_operations

BITS, VALUES = 0, 1
STAMP, DIRTY, LIST, TOUCHED = 0, 1, 2, 4
BARRIER, COUNT, ROUND, TOUCHED_COUNT, EPOCH = 0, 1, 4, 5, 6
NEW, LIVE, SEEDS, RELAX, DIRECT, LISTS = 0, 1, 2, 3, 4, 5
MOST_COUNTED = 1 << 29  # rounds, epochs: then both begin anew. Four times as many fit, for the rounds of one request
NONE, CHANGES, ALL = 0, 1, 2
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
    side_bit = side_function(size)
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
    def call(item, neighbours, k, width, Q, N, lane):
        """Put the neighbours of an item whose bits (move codes) are set on the list of round k."""
        around = (-width, 1, width, -1, 1 - width, width + 1, width - 1, -width - 1)
        for j in lane_range(0, 8, lane):
            if (neighbours >> j) & 1:
                enlist(item + around[j], k, Q, N)

    @njit
    def touch(item, epoch, Q, N):
        """Note that something of an item has been taken back in this epoch."""
        if raise_to(Q[DIRTY], item, 2 * epoch) < 2 * epoch:
            Q[TOUCHED, add(N, TOUCHED_COUNT, 1)] = item

    @njit
    def inner(block, neighbours, width, blocks):
        """Those bits of `neighbours` whose blocks lie on the map."""
        row = np.int64(np.uint32(block) // np.uint32(width))
        col = block - row * width
        outer = 0
        if row == 1:
            outer |= 1 + 16 + 128
        if (row + 2) * width == blocks:
            outer |= 4 + 32 + 64
        if col == 1:
            outer |= 8 + 64 + 128
        if col == width - 2:
            outer |= 2 + 16 + 32
        return neighbours & ~outer

    @njit
    def split(item, blocks):
        """-> slot and block of an item"""
        slot = np.int64(np.uint32(item) // np.uint32(blocks))  # a division of 64 bits is long on CUDA
        return slot, np.int64(item) - slot * blocks

    @njit
    def seed_of(slot, block, goals):
        """The goal's tile if the goal lies in this block, else -1."""
        tile, its_block = goals[slot, GOAL_TILE], goals[slot, GOAL_BLOCK]  # both at once: no branch between two reads
        return tile if its_block == block else np.int32(-1)

    @njit
    def rounds(withdrawing, k, epoch, width, blocks, M, V, E, goals, Q, N, S, lane, place):
        """Rounds from k on until a list is empty -> the round after the last."""
        while True:
            w = place.worker
            item = np.int64(Q[LIST + k % 2, min(w, Q.shape[1] - 1)])  # before the list's length is known: that read takes as long
            n = N[COUNT + k % 3]
            if n == 0:
                return k
            while w < n:
                slot, block = split(item, blocks)
                seed = seed_of(slot, block, goals)
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
                        answer = relax_values(block, slot, width, seed, Q[DIRTY, item] == 2 * epoch, M, V, S, lane)
                if withdrawing:
                    if lane == 0 and answer & CHANGED:
                        touch(item, epoch, Q, N)
                elif lane == 0:
                    Q[DIRTY, item] = 2 * epoch + 1
                call(item, inner(block, answer, width, blocks), k + 1, width, Q, N, lane)
                w += place.workers
                if w < n:
                    item = np.int64(Q[LIST + k % 2, w])
            if place.worker == 0 and lane == 0:
                N[COUNT + (k + 2) % 3] = 0
            sync_team(N, BARRIER, place.member, place.members)
            k += 1

    @njit
    def clear(slot, blocks, epoch, M, V, E, Q, lane, place):
        """A field without any value."""
        lanes = lane_count()
        for b in range(place.worker, blocks, place.workers):
            item = slot * blocks + b
            if lane == 0:
                Q[DIRTY, item] = 2 * epoch + 1
            if layout == BITS:
                for r in range(lane, size, lanes):
                    V[item, ONE, r] = np.uint32(0)
                    V[item, REACHED, r] = np.uint32(0)
                    for side in range(4):
                        E[item, side, r] = FAR if side_bit(M[b], side, r) else WALL
        if layout == VALUES:
            for r in range(place.worker, V.shape[1], place.workers):
                for c in range(lane, V.shape[2], lanes):
                    V[slot, r, c] = NEVER

    @njit
    def direct(slot, every, epoch, width, blocks, M, V, directions, goals, Q, S, lane, place):
        """Directions of every block, or of those in which, or beside which, something changed in this epoch."""
        for b in range(place.worker, blocks, place.workers):
            if on_map(b, width, blocks):
                item = slot * blocks + b
                dirty = every
                if not every:
                    for row in range(-width, width + 1, width):
                        for beside in range(-1, 2):
                            dirty |= Q[DIRTY, item + row + beside] >= 2 * epoch
                if dirty:
                    seed = seed_of(slot, b, goals)
                    if layout == BITS:
                        direct_bits(item, b, width, seed, goals[slot, GOAL_PARITY], V, directions, S, lane)
                    else:
                        direct_values(item, b, slot, width, seed, M, V, directions, S, lane)

    @njit
    def update_fields(width, blocks, M, V, E, directions, goals, R, Q, N, S, lane, place):
        """Fields of new goals from scratch; with SEEDS, all fields after a change of those blocks."""
        fresh, live, seeds, more = R[NEW], R[LIVE], R[SEEDS], R[RELAX]
        new_list = LISTS + 4 * live
        seed_list = new_list + fresh
        more_list = seed_list + seeds
        k, epoch = np.int64(N[ROUND]) + 1, np.int64(N[EPOCH]) + 1
        if max(k, epoch) > MOST_COUNTED:
            k, epoch = np.int64(1), np.int64(1)
            for item in range(place.worker * lane_count() + lane, Q.shape[1], place.workers * lane_count()):
                Q[STAMP, item], Q[DIRTY, item] = 0, 0
            sync_team(N, BARRIER, place.member, place.members)
        if place.worker == 0 and lane == 0:
            N[TOUCHED_COUNT] = 0
            for i in range(3):
                N[COUNT + i] = 0
        for j in range(place.worker * lane_count() + lane, 4 * live, place.workers * lane_count()):
            goals[j // 4, j % 4] = R[LISTS + j]
        for j in range(fresh):
            clear(R[new_list + j], blocks, epoch, M, V, E, Q, lane, place)
        sync_team(N, BARRIER, place.member, place.members)
        if seeds > 0:
            if lane == 0:
                for j in range(place.worker, seeds * live, place.workers):
                    if goals[j // seeds, GOAL_USED]:
                        enlist(j // seeds * blocks + R[seed_list + j % seeds], k, Q, N)
                        touch(j // seeds * blocks + R[seed_list + j % seeds], epoch, Q, N)
            sync_team(N, BARRIER, place.member, place.members)
            k = rounds(True, k, epoch, width, blocks, M, V, E, goals, Q, N, S, lane, place)
            sync_team(N, BARRIER, place.member, place.members)  # all have seen the empty list
        if lane == 0:
            for j in range(place.worker, fresh, place.workers):
                enlist(R[new_list + j] * blocks + goals[R[new_list + j], GOAL_BLOCK], k, Q, N)
            for j in range(place.worker, N[TOUCHED_COUNT], place.workers):
                enlist(Q[TOUCHED, j], k, Q, N)
            for j in range(place.worker, more * live, place.workers):
                enlist(j // more * blocks + R[more_list + j % more], k, Q, N)
        sync_team(N, BARRIER, place.member, place.members)
        k = rounds(False, k, epoch, width, blocks, M, V, E, goals, Q, N, S, lane, place)
        if place.worker == 0 and lane == 0:
            N[ROUND], N[EPOCH] = k, epoch
        if R[DIRECT] == CHANGES:
            for j in range(fresh):
                direct(R[new_list + j], True, epoch, width, blocks, M, V, directions, goals, Q, S, lane, place)
        if R[DIRECT] == ALL or R[DIRECT] == CHANGES and seeds + more > 0:
            for slot in range(live):
                if goals[slot, GOAL_USED]:
                    direct(slot, R[DIRECT] == ALL, epoch, width, blocks, M, V, directions, goals, Q, S, lane, place)

    return update_fields
