"""A queue of items in buckets by their keys, the last one first.

Buckets go around. What lies farther ahead waits in the last bucket: who takes an item compares its key with the bucket,
and puts it back where it is too early.
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit

USED, SPARE, WAITING, BUCKET = range(4)  # notes: entries in use or spare; a spare one, -1; items; the present bucket
FIRST_ROOM = 1 << 14


class Queue(NamedTuple):
    """head: (buckets,) int32;  item, cost, after: (n,) int32;  notes: (4,) int64;  shift: keys >> shift are buckets"""

    head: np.ndarray
    item: np.ndarray
    cost: np.ndarray
    after: np.ndarray
    notes: np.ndarray
    shift: int


def new_queue(buckets: int, shift: int = 0) -> Queue:
    """An empty queue. buckets: a power of two"""
    item, cost, after = (np.empty(FIRST_ROOM, np.int32) for _ in range(3))
    return emptied(Queue(np.empty(buckets, np.int32), item, cost, after, np.empty(4, np.int64), shift))


def emptied(queue: Queue) -> Queue:
    """Take all out. The first key says where the buckets begin: it is set by the least of the items to begin with."""
    queue.head[:], queue.notes[:] = -1, (0, -1, 0, 1 << 60)
    return queue


def grown(queue: Queue) -> Queue:
    """The same with twice the room."""
    item, cost, after = (np.resize(array, 2 * len(array)) for array in (queue.item, queue.cost, queue.after))
    return queue._replace(item=item, cost=cost, after=after)


def with_room(queue: Queue, count: int) -> Queue:
    """The same with room for so many more."""
    while queue.notes[USED] + count > len(queue.item):
        queue = grown(queue)
    return queue


@lean_njit
def push(item, cost, key, queue):
    """Put an item in; there must be room."""
    notes = queue.notes
    entry = notes[SPARE]
    if entry >= 0:
        notes[SPARE] = queue.after[entry]
    else:
        entry = notes[USED]
        notes[USED] += 1
    ahead = min((key >> queue.shift) - notes[BUCKET], len(queue.head) - 1)
    slot = (notes[BUCKET] + max(ahead, 0)) & (len(queue.head) - 1)
    queue.item[entry], queue.cost[entry], queue.after[entry] = item, cost, queue.head[slot]
    queue.head[slot] = entry
    notes[WAITING] += 1


@lean_njit
def pop(queue):
    """-> an entry of the present bucket; -1: it is empty, and the next one is the present one"""
    notes = queue.notes
    slot = notes[BUCKET] & (len(queue.head) - 1)
    entry = np.int64(queue.head[slot])
    if entry < 0:
        notes[BUCKET] += 1
        return entry
    queue.head[slot] = queue.after[entry]
    notes[WAITING] -= 1
    return entry


@lean_njit
def release(entry, queue):
    """An entry that was taken is free for others."""
    queue.after[entry] = queue.notes[SPARE]
    queue.notes[SPARE] = entry
