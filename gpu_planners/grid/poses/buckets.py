"""A queue of items in buckets by their keys, the last one first.

Buckets go around. What lies farther ahead waits in the last bucket: who takes an item compares its key with the bucket,
and puts it back where it is too early.
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit

USED, SPARE, WAITING, BUCKET = range(4)  # notes: entries in use or spare; a spare one, -1; items; the present bucket
ITEM, COST, AFTER = range(3)  # of an entry
FIRST_ROOM = 1 << 14


class Queue(NamedTuple):
    """head: (buckets,) int32;  entry: (n, 4) int32 item, its cost, the entry after it, nothing: a quarter of a cache
    line;  notes: (4,) int64;  shift: keys >> shift are buckets"""

    head: np.ndarray
    entry: np.ndarray
    notes: np.ndarray
    shift: int


def new_queue(buckets: int, shift: int = 0) -> Queue:
    """An empty queue. buckets: a power of two"""
    head, entry = np.empty(buckets, np.int32), np.empty((FIRST_ROOM, 4), np.int32)
    return emptied(Queue(head, entry, np.empty(4, np.int64), shift))


def emptied(queue: Queue) -> Queue:
    """Take all out. The first key says where the buckets begin: it is set by the least of the items to begin with."""
    queue.head[:], queue.notes[:] = -1, (0, -1, 0, 1 << 60)
    return queue


def grown(queue: Queue) -> Queue:
    """The same with twice the room."""
    return queue._replace(entry=np.concatenate([queue.entry, np.empty_like(queue.entry)]))


def with_room(queue: Queue, count: int) -> Queue:
    """The same with room for so many more."""
    while queue.notes[USED] + count > len(queue.entry):
        queue = grown(queue)
    return queue


@lean_njit
def push(item, cost, key, queue):
    """Put an item in; there must be room."""
    notes, entries = queue.notes, queue.entry
    at = np.uint64(notes[SPARE])
    if notes[SPARE] >= 0:
        notes[SPARE] = entries[at, AFTER]
    else:
        at = np.uint64(notes[USED])
        notes[USED] += 1
    ahead = min((key >> queue.shift) - notes[BUCKET], len(queue.head) - 1)
    slot = np.uint64(notes[BUCKET] + max(ahead, 0) & len(queue.head) - 1)
    entries[at, ITEM], entries[at, COST], entries[at, AFTER] = item, cost, queue.head[slot]
    queue.head[slot] = np.int32(at)
    notes[WAITING] += 1


@lean_njit
def pop(queue, keeping):
    """-> the last item of the present bucket, its cost; -1, 0: it is empty, and the next one is the present one.
    keeping: nothing takes the place of its entry, which goes on telling that the item was there"""
    notes, entries = queue.notes, queue.entry
    slot = np.uint64(notes[BUCKET] & len(queue.head) - 1)
    if queue.head[slot] < 0:
        notes[BUCKET] += 1
        return np.int64(-1), np.int64(0)
    at = np.uint64(queue.head[slot])
    queue.head[slot] = entries[at, AFTER]
    notes[WAITING] -= 1
    if not keeping:
        entries[at, AFTER] = np.int32(notes[SPARE])
        notes[SPARE] = np.int64(at)
    return np.int64(entries[at, ITEM]), np.int64(entries[at, COST])
