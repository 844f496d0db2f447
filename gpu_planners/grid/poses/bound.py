"""What a point robot still has to pay at least: the bound of `astar`.

The point robot makes steps in 16 directions over the places that are *passable*: where some heading is free, or that
lie beside a free move. Beside every move leads a way of such steps from its first tile to its last, of the two steps
between whose directions the last one lies. So where the move is free the steps are, and they cost no more than its
price: the bound is consistent, and A* needs no state twice.

Its costs-to-go are found by an A* of its own, from the goal toward the start, which goes on as far as the search over
states asks (Silver 2005 calls it reverse resumable A*). What is still open has at least the limit so far, less its
distance from the start.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numba import prange

from ...device import lean_njit, njit
from .buckets import BUCKET, ITEM, USED, WAITING, Queue, pop, push
from .free import word_at
from .moves import UNITS, Move
from .pose_grid import INFINITE, PoseGrid

STEPS = (1, 0), (2, 1), (1, 1), (1, 2)  # of a quadrant: of two beside each other the determinant is 1
WALL = -1
LIMIT = 0  # in `Point.notes`: all places are settled whose value and distance from the start are less


class Point(NamedTuple):
    """The point robot's search, on places row * cols + col.

    value: (rows * cols,) int32: WALL, INFINITE where nothing is known, or what is still to pay at most
    down, right, offset, price: (16,) int64 its steps, in rows, columns and places, and what they cost
    norm: (4,) int64 of `_distance`;  start_row, start_col: where A* starts;  cols: of a row
    times: the least cost of a free tile
    """

    value: np.ndarray
    down: np.ndarray
    right: np.ndarray
    offset: np.ndarray
    price: np.ndarray
    norm: np.ndarray
    start_row: int
    start_col: int
    cols: int
    times: int
    queue: Queue
    notes: np.ndarray


@lean_njit
def _distance(row, col, point):
    """The least that the point robot pays from the start to a place where all is passable: a norm."""
    down, right = abs(row - point.start_row), abs(col - point.start_col)
    far, near = max(down, right), min(down, right)
    return max(far * point.norm[0] + near * point.norm[1], far * point.norm[2] + near * point.norm[3])


@lean_njit
def row_and_col(place, cols):
    """Of a place. Numbers of 32 bits are divided in a third of the time."""
    row = np.int64(np.uint32(place) // np.uint32(cols))
    return row, place - row * cols


@njit
def sow(edge, paid, point):
    """The search begins at places; there must be room. edge: (n, 2) places, what is to pay from each, more than `paid`
    in the robot's units: here `paid` counts as nothing"""
    for k in range(len(edge)):
        place, value = edge[k, 0], (edge[k, 1] - paid) // point.times
        if value < point.value[place]:
            point.value[place] = value
            f = value + _distance(*row_and_col(place, point.cols), point)
            point.queue.notes[BUCKET] = min(point.queue.notes[BUCKET], f)
            push(place, value, f, point.queue)


@lean_njit
def settle(limit, point):
    """Raise the limit -> False: there is no room in the queue, and the limit is as before."""
    queue, value = point.queue, point.value
    while queue.notes[WAITING] > 0 and queue.notes[BUCKET] < limit:
        if queue.notes[USED] + 17 > len(queue.entry):
            return False
        place, here = pop(queue, True)
        if place < 0 or value[np.uint64(place)] != here:
            continue
        row, col = row_and_col(place, point.cols)
        f = here + _distance(row, col, point)
        if f > queue.notes[BUCKET]:
            push(place, here, f, queue)
            continue
        for k in range(16):
            near, new = np.uint64(place + point.offset[k]), here + point.price[k]
            if new < value[near]:
                value[near] = new
                push(near, new, new + _distance(row + point.down[k], col + point.right[k], point), queue)
    point.notes[LIMIT] = limit if queue.notes[WAITING] > 0 else INFINITE
    return True


@lean_njit
def bound_at(row, col, point):
    """-> what a robot at a place still has to pay at least, in units; INFINITE: there is no way"""
    known = np.int64(point.value[np.uint64(row * point.cols + col)])
    least = max(min(known, point.notes[LIMIT] - _distance(row, col, point)), 0)
    return np.int64(INFINITE) if least >= INFINITE else least * point.times


@njit
def forget(point):
    """Reset the places that were reached."""
    for entry in range(point.queue.notes[USED]):
        point.value[point.queue.entry[entry, ITEM]] = INFINITE


def _between(x, y):
    """-> [(step, how often), (step, how often)] that lead (x, y) far"""
    turned = 0
    while not (x > 0 and y >= 0):
        x, y, turned = y, -x, turned + 1
    steps = [*STEPS, (0, 1)]
    for (a, b), (c, d) in zip(steps, steps[1:]):
        first, second = x * d - y * c, a * y - b * x
        if first >= 0 and second >= 0:
            return [(_turned((a, b), turned), first), (_turned((c, d), turned), second)]
    raise AssertionError


def _turned(step, times):
    for _ in range(times):
        step = -step[1], step[0]
    return step


def way_beside(move: Move) -> list[tuple[int, int]]:
    """Tiles (x, y) from a move's first to its last, by the steps of the point robot, close to the line between them."""
    if move.right == move.down == 0:
        return [(0, 0)]
    (first, a), (second, b) = _between(move.right, move.down)
    way, done = [(0, 0)], 0
    for k in range(a + b):
        as_second = (k + 1) * b // (a + b) > done
        done += as_second
        step = second if as_second else first
        way.append((way[-1][0] + step[0], way[-1][1] + step[1]))
    return way


def steps_and_prices(moves: Iterable[Move], prices: Iterable[int]) -> tuple[np.ndarray, np.ndarray]:
    """-> the point robot's steps (16, 2) x, y; what each costs (16,) int, so that no way costs more than its move"""
    steps = [_turned(step, times) for times in range(4) for step in STEPS]
    whole, share = {step: round(UNITS * math.hypot(*step)) for step in steps}, 1.0
    for move, price in zip(moves, prices):
        if parts := _parts(move):
            share = min(share, price / sum(whole[step] * often for step, often in parts))
    return np.array(steps), np.array([math.floor(share * whole[step]) for step in steps])


def least_added(poses: PoseGrid, steps: np.ndarray, price: np.ndarray) -> np.ndarray:
    """(T,) what each move of `poses.table` costs more, on tiles of cost 1, than the point robot's way beside it: by so
    much at least a path's bound rises. steps, price: of `steps_and_prices`"""
    of_step = {tuple(step): int(cost) for step, cost in zip(steps.tolist(), price)}
    beside = [sum(of_step[step] * often for step, often in _parts(move)) for move in poses.moves]
    return poses.table.price - np.array([beside[k] if k >= 0 else 0 for _, _, k in poses.table_moves])


def _parts(move):
    """The point robot's steps beside a move: [(step, how often)]"""
    return _between(move.right, move.down) if move.right or move.down else []


def norm_of(price: np.ndarray) -> np.ndarray:
    """(4,) int64 for `_distance`. price: of STEPS, the first of each quadrant"""
    straight, knight, diagonal = (int(price[k]) for k in range(3))
    inner = straight, knight - 2 * straight, knight - diagonal, 2 * diagonal - knight
    good = (
        min(inner) >= 0
        and inner[1] <= inner[0]
        and inner[3] <= inner[2] <= straight
        and inner[0] + inner[1] <= diagonal
    )
    return np.array(inner if good else (0, 0, 0, 0), np.int64)


class Passable:
    """Which places are passable: a bit for each, (rows, words) uint32 as `free`."""

    def __init__(self, poses: PoseGrid):
        beside = [(k, y, x) for k, move in enumerate(poses.moves) for x, y in way_beside(move)[1:-1]] or np.zeros(
            (0, 3)
        )
        self._beside = np.array(beside, np.int32)
        self._first = len(poses.moves)
        self.reach = int(np.abs(self._beside[:, 1:]).max(initial=0))

    def fill(self, free: np.ndarray, box: np.ndarray, value: np.ndarray):
        """Write WALL or INFINITE to `value` (rows * cols,) in a box of rows and words. free: (planes, rows, words)"""
        _fill(free, self._first, self._beside, tuple(int(n) for n in box), value.reshape(free.shape[1], -1))


@njit(parallel=True)
def _fill(free, first, beside, box, value):
    for i in prange(box[1] - box[0]):
        row = box[0] + i
        for word in range(box[2], box[3]):
            bits = np.uint32(0)
            for plane in range(first, free.shape[0]):
                bits |= free[plane, row, word]
            for k in range(len(beside)):
                if bits == np.uint32(0xFFFFFFFF):
                    break
                bits |= np.uint32(word_at(free[beside[k, 0], row - beside[k, 1]], 32 * word - beside[k, 2]))
            for bit in range(32):
                value[row, 32 * word + bit] = INFINITE if bits >> np.uint32(bit) & np.uint32(1) else WALL
