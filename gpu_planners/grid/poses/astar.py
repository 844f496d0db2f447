"""A* over place and heading, for a single query, on the CPU (Hart, Nilsson, Raphael 1968).

Near the goal costs-to-go are exact: a search from there, backwards, settles all states from which less than `NEAR` is
to pay (a perimeter: Dillenburg, Nelson 1994). From any other state the robot pays that much, and before that at least
what the point robot pays to the perimeter's places (`bound`). So the bound knows which heading the goal asks for. A
point's alone does not, and then the search opens every detour that costs no more than the last turn.

The bound is consistent, so a state that leaves its bucket with its last g is not opened again where a bucket holds one
value; where prices are so high that it spans several, the search ends with the bucket after which nothing can be
better. What earlier searches wrote is told by their numbers, so that a search clears nothing.
"""

import math
from typing import NamedTuple

import numpy as np

from ...device import lean_njit, njit
from . import bound
from .bound import Passable, Point, bound_at, row_and_col, settle, sow
from .buckets import BUCKET, USED, WAITING, emptied, grown, new_queue, pop, push, release, with_room
from .cpu import CpuMap, box_of_both, new_box
from .moves import UNITS
from .pose_grid import INFINITE, MOST_MOVES, PoseGrid, Table

MOST_BUCKETS = 1 << 16
NEAR = 40  # tile lengths that are to pay at the perimeter
MOST_WINDOW = 1 << 22  # states about the goal: where its region is larger, the perimeter is the goal
MARGIN = 64  # units that the point robot's search goes ahead
START = 255  # in `Memory.came`
DONE, FULL_AHEAD, FULL_POINT = range(3)
BEST, GOAL, OPENED = range(3)  # in `result`
FIRST_ENDS = np.array([True, False, True, False])  # of a box


class Memory(NamedTuple):
    """Of each state, all layers of a place beside each other, written by the searches one after the other: (states,)
    int64 number of the search and g; (states,) uint8 which of the moves into its layer it came by."""

    known: np.ndarray
    came: np.ndarray


class Near(NamedTuple):
    """Costs-to-go about the goal.

    value: (layers * rows * cols,) int32, exact below `limit`;  row, col: of the first place
    """

    value: np.ndarray
    row: int
    col: int
    rows: int
    cols: int
    limit: int
    whole: bool  # are those all states from which there is a way?


class Ground(NamedTuple):
    """The map and the moves.

    cost: (rows, cols) uint8;  free: (planes, rows, words) uint32
    place: (T,) int32 where a move stands among those into its layer
    """

    cost: np.ndarray
    free: np.ndarray
    table: Table
    place: np.ndarray


class Search:
    """Searches one after the other on a map."""

    def __init__(self, poses: PoseGrid, on: CpuMap):
        layout, table = on.layout, poses.table
        self._on, self._table, self._number = on, table, 0
        self._memory = Memory(np.zeros(layout.states, np.int64), np.zeros(layout.states, np.uint8))
        place = np.empty(len(table.into), np.int32)
        moves = np.arange(len(table.into), dtype=np.int32)
        place[table.into] = moves - table.into_first[table.to[table.into]]
        self._ground = Ground(on.cost, on.free, table, place)
        farthest = np.maximum(abs(table.down), abs(table.right))
        self._reach, self._tiles_a_unit = int(farthest.max()), float((farthest / table.price).max())
        steps, price = bound.steps_and_prices(
            poses.moves, [m.price(poses.move_costs, poses.resolution) for m in poses.moves]
        )
        right, down, price = steps[:, 0].astype(np.int64), steps[:, 1].astype(np.int64), price.astype(np.int64)
        self._passable = Passable(poses)
        value = np.full(layout.rows * layout.cols, bound.WALL, np.int32)
        queue = new_queue(1 << (4 * int(price.max()) + 2).bit_length())
        self._point = Point(
            value,
            down,
            right,
            down * layout.cols + right,
            price,
            bound.norm_of(price),
            0,
            0,
            layout.cols,
            1,
            queue,
            np.zeros(1, np.int64),
        )
        self._ahead = new_queue(1)
        self._stale: np.ndarray | None = new_box(layout)  # rows and words where the point robot's map is an older one

    def change(self, box: np.ndarray):
        """The map has changed. box: of `cpu.box_about`"""
        whole, reach = new_box(self._on.layout), self._passable.reach
        wide = box + np.array([-reach, reach, -reach // 32, -(-reach // 32)])
        wide = np.where(FIRST_ENDS, np.maximum(wide, whole), np.minimum(wide, whole))
        self._stale = wide if self._stale is None else box_of_both(self._stale, wide)

    def find(self, starts: np.ndarray, seeds: np.ndarray, least: int) -> tuple[int, np.ndarray, int]:
        """From the best of some states of one place to the nearest of some. starts, seeds: (n,) int64 numbers of free
        states; least: cost of a free tile

        -> cost in units, INFINITE: there is no way; numbers of moves (M,) int32; the state where they begin
        """
        layout, ground, memory = self._on.layout, self._ground, self._memory
        if self._stale is not None:
            self._passable.fill(ground.free, self._stale, self._point.value)
            self._stale = None
        self._number += 1
        highest = int(ground.cost.max())
        jump = 2 * int(self._table.price.max()) * highest + 2
        shift = max(0, (jump // (MOST_BUCKETS - 2)).bit_length())
        row, col = divmod(int(starts[0]) % (layout.rows * layout.cols), layout.cols)
        point = self._point._replace(start_row=row, start_col=col, times=least)
        point = point._replace(queue=emptied(point.queue))
        point.notes[bound.LIMIT] = 0
        near, edge = self._perimeter(seeds, least)
        point = point._replace(queue=with_room(point.queue, len(edge)))
        sow(edge, near.limit, point)
        ahead = self._ahead._replace(head=np.empty(1 << ((jump >> shift) + 2).bit_length(), np.int32), shift=shift)
        ahead = emptied(ahead)
        result = np.array([INFINITE, -1, 0], np.int64)
        _begin(starts, near, point, ahead, memory, self._number, layout.rows, layout.layers)
        while (outcome := _search(near, point, ahead, ground, memory, self._number, result)) != DONE:
            if outcome == FULL_AHEAD:
                ahead = grown(ahead)
            else:
                point = point._replace(queue=grown(point.queue))
        bound.forget(point)
        self._point, self._ahead = point, ahead
        g, goal, self.opened = result.tolist()
        if goal < 0:
            return INFINITE, np.zeros(0, np.int32), -1
        back, start = _way_back(goal, ground, memory)
        moves = np.concatenate([back[::-1], _way_on(goal, near, ground)])
        return g, moves.astype(np.int32), int(start)

    def _perimeter(self, seeds, least):
        """-> Near; (n, 2) places of the states outside that have a move inside, what they pay by such a move"""
        layout = self._on.layout
        rows, cols, size = seeds // layout.cols % layout.rows, seeds % layout.cols, layout.rows * layout.cols
        limit = max(1, int(NEAR * UNITS * least))
        while True:
            far = 2 * self._reach + math.ceil(self._tiles_a_unit * limit / least) if limit > 1 else self._reach
            first_row, first_col = max(rows.min() - far, 0), max(cols.min() - far, 0)
            height, width = (
                min(rows.max() + far + 1, layout.rows) - first_row,
                min(cols.max() + far + 1, layout.cols) - first_col,
            )
            if limit == 1 or layout.layers * height * width <= MOST_WINDOW:
                break
            limit = 1
        near = Near(
            np.full(layout.layers * height * width, INFINITE, np.int32),
            int(first_row),
            int(first_col),
            int(height),
            int(width),
            limit,
            False,
        )
        layers = seeds // size
        inside = ((layers * height + rows - first_row) * width + cols - first_col).astype(np.int32)
        shift = max(0, (limit // (1 << 14)).bit_length())
        queue = emptied(new_queue(1 << ((limit >> shift) + 2).bit_length(), shift))
        queue = with_room(queue, len(inside))
        _sow_near(inside, near, queue)
        while not _settle_near(near, queue, self._ground):
            queue = grown(queue)
        edge = _edge(near, queue, layout.cols)
        return near._replace(whole=len(edge) == 0), edge


@njit
def _sow_near(states, near, queue):
    queue.notes[BUCKET] = 0
    for state in states:
        near.value[state] = 0
        push(state, 0, 0, queue)


@njit
def _settle_near(near, queue, ground):
    """Settle all states below the limit -> False: there is no room in the queue."""
    table, area = ground.table, near.rows * near.cols
    while queue.notes[WAITING] > 0 and queue.notes[BUCKET] << queue.shift < near.limit:
        if queue.notes[USED] + MOST_MOVES > len(queue.item):
            return False
        entry = pop(queue)
        if entry < 0:
            continue
        at, here = np.int64(queue.item[entry]), np.int64(queue.cost[entry])
        release(entry, queue)
        if near.value[at] != here:
            continue
        if here >= near.limit:  # it shares the last bucket
            push(at, here, near.limit + (1 << queue.shift), queue)
            continue
        layer, row, col = at // area, at // near.cols % near.rows, at % near.cols
        price = np.int64(ground.cost[near.row + row, near.col + col])
        for i in range(table.into_first[layer], table.into_first[layer + 1]):
            move = table.into[i]
            up, left = row - table.down[move], col - table.right[move]
            if up < 0 or left < 0 or up >= near.rows or left >= near.cols:
                continue
            new = here + price * table.price[move]
            to = (np.int64(table.source[move]) * near.rows + up) * near.cols + left
            if new >= near.value[to] or not _is_free(table.plane[move], near.row + up, near.col + left, ground):
                continue
            near.value[to] = new
            push(to, new, min(new, near.limit + (1 << queue.shift)), queue)
    return True


@njit
def _edge(near, queue, cols):
    """-> (n, 2) int64 places of the states that wait at the limit, what is to pay from each"""
    edge, count = np.empty((queue.notes[WAITING], 2), np.int64), 0
    for slot in range(len(queue.head)):
        entry = queue.head[slot]
        while entry >= 0:
            at = np.int64(queue.item[entry])
            if near.value[at] >= near.limit:
                row, col = at // near.cols % near.rows, at % near.cols
                edge[count, 0], edge[count, 1] = (near.row + row) * cols + near.col + col, near.value[at]
                count += 1
            entry = queue.after[entry]
    return edge[:count]


@lean_njit
def _is_free(plane, row, col, ground):
    return ground.free[plane, row, col >> 5] >> np.uint32(col & 31) & np.uint32(1) != 0


@lean_njit
def _left(layer, row, col, near, point):
    """-> what is still to pay from a state at least;  is that exact, and a way from there known?"""
    r, c = row - near.row, col - near.col
    if 0 <= r < near.rows and 0 <= c < near.cols:
        value = np.int64(near.value[(layer * near.rows + r) * near.cols + c])
        if value < near.limit:
            return value, True
    if near.whole:
        return np.int64(INFINITE), False
    return bound_at(row, col, point) + near.limit, False


@lean_njit
def _layer_row_col(at, layers, cols):
    """Of a state, by its place in `Memory`."""
    place, layer = row_and_col(at, layers)
    row, col = row_and_col(place, cols)
    return layer, row, col


@njit
def _begin(starts, near, point, ahead, memory, number, rows, layers):
    for k in range(len(starts)):
        state = starts[k]
        layer, row, col = state // (rows * point.cols), state // point.cols % rows, state % point.cols
        h, _ = _left(layer, row, col, near, point)
        if h < INFINITE:
            at = (row * point.cols + col) * layers + layer
            memory.known[at], memory.came[at] = np.int64(number) << 32, START
            ahead.notes[BUCKET] = min(ahead.notes[BUCKET], h >> ahead.shift)
            push(at, 0, h, ahead)


@njit
def _search(near, point, ahead, ground, memory, number, result):
    """Go on with a search -> DONE, or where there is no room. result: (3,) int64 the best g + what is left, its state
    inside the perimeter, how many states were opened"""
    known, came = memory
    table, cols, layers = ground.table, point.cols, len(ground.table.first) - 1
    stamp = np.int64(number) << 32
    while ahead.notes[WAITING] > 0 and ahead.notes[BUCKET] <= result[BEST] >> ahead.shift:
        bucket = ahead.notes[BUCKET]
        limit = ((bucket + 1 << ahead.shift) - near.limit) // point.times + 1
        if not near.whole and limit > point.notes[bound.LIMIT] and not settle(limit + MARGIN, point):
            return FULL_POINT
        if ahead.notes[USED] + MOST_MOVES > len(ahead.item):
            return FULL_AHEAD
        entry = pop(ahead)
        if entry < 0:
            continue
        at, g = np.int64(ahead.item[entry]), np.int64(ahead.cost[entry])
        release(entry, ahead)
        if known[at] != stamp | g:
            continue
        layer, row, col = _layer_row_col(at, layers, cols)
        h, exact = _left(layer, row, col, near, point)
        if g + h >= result[BEST]:
            continue
        if (g + h) >> ahead.shift > bucket:
            push(at, g, g + h, ahead)
            continue
        if exact:
            result[BEST], result[GOAL] = g + h, at
            continue
        result[OPENED] += 1
        word, bit = col >> 5, np.uint32(col & 31)
        for move in range(table.first[layer], table.first[layer + 1]):
            if ground.free[np.uint64(table.plane[move]), row, word] >> bit & np.uint32(1) == 0:
                continue
            down, right = row + table.down[move], col + table.right[move]
            new = g + np.int64(table.price[move]) * ground.cost[down, right]
            to = np.uint64((down * cols + right) * layers + table.to[move])
            seen = known[to]
            if (seen >> 32 == number and seen & 0xFFFFFFFF <= new) or new >= result[BEST]:
                continue
            h, _ = _left(np.int64(table.to[move]), down, right, near, point)
            if new + h >= INFINITE or new + h >= result[BEST]:
                continue
            known[to], came[to] = stamp | new, ground.place[move]
            push(to, new, new + h, ahead)
    return DONE


@njit
def _extended(array):
    larger = np.empty(2 * len(array), array.dtype)
    larger[: len(array)] = array
    return larger


@njit
def _way_back(goal, ground, memory):
    """-> moves from a state, by its place in `memory`, back (M,) int32; number of the state where they begin"""
    table, (rows, cols) = ground.table, ground.cost.shape
    layers = len(table.first) - 1
    moves, count, at = np.empty(256, np.int32), 0, np.int64(goal)
    while memory.came[at] != START:
        layer, row, col = _layer_row_col(at, layers, cols)
        move = table.into[table.into_first[layer] + memory.came[at]]
        if count == len(moves):
            moves = _extended(moves)
        moves[count] = move
        count += 1
        at = ((row - table.down[move]) * cols + col - table.right[move]) * layers + table.source[move]
    layer, row, col = _layer_row_col(at, layers, cols)
    return moves[:count], (layer * rows + row) * cols + col


@njit
def _way_on(goal, near, ground):
    """-> moves from a state inside the perimeter, by its place in `Memory`, to the goal (M,) int32"""
    table, cols = ground.table, ground.cost.shape[1]
    layer, row, col = _layer_row_col(np.int64(goal), len(table.first) - 1, cols)
    moves, count, left = np.empty(256, np.int32), 0, _value(layer, row, col, near)
    while left > 0:
        for move in range(table.first[layer], table.first[layer + 1]):
            down, right, to = row + table.down[move], col + table.right[move], np.int64(table.to[move])
            price = np.int64(table.price[move]) * ground.cost[down, right]
            if _value(to, down, right, near) + price == left and _is_free(table.plane[move], row, col, ground):
                break
        if count == len(moves):
            moves = _extended(moves)
        moves[count] = move
        count += 1
        layer, row, col, left = to, down, right, left - price
    return moves[:count]


@lean_njit
def _value(layer, row, col, near):
    """-> the exact cost-to-go of a state of the window, INFINITE: beyond the limit"""
    r, c = row - near.row, col - near.col
    if not (0 <= r < near.rows and 0 <= c < near.cols):
        return np.int64(INFINITE)
    value = np.int64(near.value[(layer * near.rows + r) * near.cols + c])
    return value if value < near.limit else np.int64(INFINITE)
