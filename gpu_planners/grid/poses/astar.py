"""A* over place and heading, for a single query, on the CPU (Hart, Nilsson, Raphael 1968).

Near the goal costs-to-go are exact: a search from there, backwards, settles all states from which less than `NEAR` is
to pay (a perimeter: Dillenburg, Nelson 1994). From any other state the robot pays that much, and before that at least
what the point robot pays to the perimeter's places (`bound`). So the bound knows which heading the goal asks for. A
point's alone does not, and then the search opens every detour that costs no more than the last turn.

The bound is consistent, so a state that leaves its bucket with its last g is not opened again where a bucket holds one
value; where prices are so high that it spans several, the search ends with the bucket after which nothing can be
better. What earlier searches wrote is told by their numbers, so that a search clears nothing.

Moves that are dearer than the way that they lead on, such as curves and driving backwards, raise a path's bound by the
difference at least. They are tried when the search comes to states whose bound is as much higher (partial expansion,
with a bound for each move: Felner et al. 2012); most never are.
"""

import math
from typing import NamedTuple

import numpy as np

from ...device import lean_njit, njit
from . import bound
from .bound import Passable, Point, bound_at, row_and_col, settle, sow
from .buckets import AFTER, BUCKET, ITEM, USED, WAITING, emptied, grown, new_queue, pop, push, with_room
from .cpu import CpuMap, box_of_both, new_box
from .moves import UNITS
from .pose_grid import INFINITE, MOST_MOVES, PoseGrid

MOST_BUCKETS = 1 << 16
NEAR = 40  # tile lengths that are to pay at the perimeter
MOST_WINDOW = 1 << 22  # states about the goal: where its region is larger, the perimeter is the goal
MARGIN = 64  # units that the point robot's search goes ahead
START = 255  # in place of a move that a state was reached by
MOST_SEARCHES = 1 << 22  # until what they wrote is cleared
DONE, FULL_AHEAD, FULL_POINT = range(3)
BEST, GOAL, OPENED = range(3)  # in `result`
SOURCE, TO, DOWN, RIGHT, PRICE, PLACES, PLANE, SORT = range(8)  # in `Ground.moves`
DEAR = UNITS // 4  # what a move adds at least to a path's bound that is tried later
FIRST_ENDS = np.array([True, False, True, False])  # of a box


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

    cost: (rows * cols,) uint8;  free: (planes * rows * words,) uint32;  rows, cols, words: of a plane
    moves: (T, 8) int64, a cache line for each move: the layers that it leads from and to, rows, columns, price, how
        many places it leads on, where its plane begins in `free`, where it stands among those into its layer
    first: (L + 1,) where those from a layer begin;  dear: (L,) where among them those begin that are tried later;
        dearer: (L,) what these add at least
    into, into_first: those that lead to a layer, as in `Table`;  reach: rows or columns that one leads at most
    known: (states,) int64, all layers of a place beside each other, written by the searches one after the other: the
        number of the search << 40 | g << 8 | which of the moves into its layer it came by
    """

    cost: np.ndarray
    free: np.ndarray
    rows: int
    cols: int
    words: int
    moves: np.ndarray
    first: np.ndarray
    dear: np.ndarray
    dearer: np.ndarray
    into: np.ndarray
    into_first: np.ndarray
    reach: int
    known: np.ndarray


class Search:
    """Searches one after the other on a map."""

    def __init__(self, poses: PoseGrid, on: CpuMap):
        layout, table = on.layout, poses.table
        self._on, self._table, self._number = on, table, 0
        steps, price = bound.steps_and_prices(
            poses.moves, [m.price(poses.move_costs, poses.resolution) for m in poses.moves]
        )
        added = bound.least_added(poses, steps, price)
        self._order = np.lexsort((added, table.source))
        sort = np.empty(len(added), np.int64)
        sort[table.into] = np.arange(len(added)) - table.into_first[table.to[table.into]]
        places = table.down.astype(np.int64) * layout.cols + table.right
        plane = table.plane.astype(np.int64) * layout.rows * layout.words
        moves = np.column_stack(
            [table.source, table.to, table.down, table.right, table.price, places, plane, sort]
        ).astype(np.int64)
        added, layers = added[self._order], range(layout.layers)
        each = [added[table.first[k] : table.first[k + 1]] for k in layers]
        farthest = np.maximum(abs(table.down), abs(table.right))
        self._reach, self._tiles_a_unit = int(farthest.max()), float((farthest / table.price).max())
        self._ground = Ground(
            on.cost.reshape(-1),
            on.free.reshape(-1),
            layout.rows,
            layout.cols,
            layout.words,
            moves[self._order],
            table.first,
            np.array([table.first[k] + (each[k] < DEAR).sum() for k in layers]),
            np.array([each[k][each[k] >= DEAR].min(initial=INFINITE) for k in layers]),
            np.argsort(self._order)[table.into],
            table.into_first,
            self._reach,
            np.zeros(layout.states, np.int64),
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
        layout, ground = self._on.layout, self._ground
        if self._stale is not None:
            self._passable.fill(self._on.free, self._stale, self._point.value)
            self._stale = None
        self._number += 1
        if self._number == MOST_SEARCHES:
            ground.known[:], self._number = 0, 1
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
        _begin(starts, near, point, ahead, ground, self._number)
        while (outcome := _search(near, point, ahead, ground, self._number, result)) != DONE:
            if outcome == FULL_AHEAD:
                ahead = grown(ahead)
            else:
                point = point._replace(queue=grown(point.queue))
        bound.forget(point)
        self._point, self._ahead = point, ahead
        g, goal, self.opened = result.tolist()
        if goal < 0:
            return INFINITE, np.zeros(0, np.int32), -1
        back, start = _way_back(goal, ground)
        moves = np.concatenate([back[::-1], _way_on(goal, near, ground)])
        return g, self._order[moves].astype(np.int32), int(start)

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
    moves, value, area = ground.moves, near.value, near.rows * near.cols
    while queue.notes[WAITING] > 0 and queue.notes[BUCKET] << queue.shift < near.limit:
        if queue.notes[USED] + MOST_MOVES > len(queue.entry):
            return False
        at, here = pop(queue, False)
        if at < 0 or value[np.uint64(at)] != here:
            continue
        if here >= near.limit:  # it shares the last bucket
            push(at, here, near.limit + (1 << queue.shift), queue)
            continue
        layer, place = row_and_col(at, area)
        row, col = row_and_col(place, near.cols)
        price = np.int64(ground.cost[np.uint64((near.row + row) * ground.cols + near.col + col)])
        for i in range(ground.into_first[layer], ground.into_first[layer + 1]):
            k = np.uint64(ground.into[np.uint64(i)])
            up, left, new = row - moves[k, DOWN], col - moves[k, RIGHT], here + price * moves[k, PRICE]
            if up < 0 or left < 0 or up >= near.rows or left >= near.cols:
                continue
            to = np.uint64((moves[k, SOURCE] * near.rows + up) * near.cols + left)
            if new >= value[to] or not _is_free(k, near.row + up, near.col + left, ground):
                continue
            value[to] = new
            push(to, new, min(new, near.limit + (1 << queue.shift)), queue)
    return True


@njit
def _edge(near, queue, cols):
    """-> (n, 2) int64 places of the states that wait at the limit, what is to pay from each"""
    edge, count = np.empty((queue.notes[WAITING], 2), np.int64), 0
    for slot in range(len(queue.head)):
        entry = queue.head[slot]
        while entry >= 0:
            at = np.int64(queue.entry[entry, ITEM])
            if near.value[at] >= near.limit:
                row, col = at // near.cols % near.rows, at % near.cols
                edge[count, 0], edge[count, 1] = (near.row + row) * cols + near.col + col, near.value[at]
                count += 1
            entry = queue.entry[entry, AFTER]
    return edge[:count]


@lean_njit
def _is_free(k, row, col, ground):
    """k: uint64 of a move, here as elsewhere, so that no index is looked at for being negative"""
    word = ground.free[np.uint64(ground.moves[k, PLANE] + row * ground.words + (col >> 5))]
    return word >> np.uint32(col & 31) & np.uint32(1) != 0


@lean_njit
def _left(layer, row, col, near, point):
    """-> what is still to pay from a state at least;  is that exact, and a way from there known?"""
    r, c = row - near.row, col - near.col
    if 0 <= r < near.rows and 0 <= c < near.cols:
        value = np.int64(near.value[np.uint64((layer * near.rows + r) * near.cols + c)])
        if value < near.limit:
            return value, True
    if near.whole:
        return np.int64(INFINITE), False
    return bound_at(row, col, point) + near.limit, False


@lean_njit
def _layer_row_col(at, layers, cols):
    """Of a state, by its place in `Ground.known`."""
    place, layer = row_and_col(at, layers)
    row, col = row_and_col(place, cols)
    return layer, row, col


@njit
def _begin(starts, near, point, ahead, ground, number):
    layers = len(ground.first) - 1
    for k in range(len(starts)):
        layer, place = divmod(starts[k], ground.rows * ground.cols)
        h, _ = _left(layer, place // ground.cols, place % ground.cols, near, point)
        if h < INFINITE:
            at = place * layers + layer
            ground.known[at] = np.int64(number) << 40 | START
            ahead.notes[BUCKET] = min(ahead.notes[BUCKET], h >> ahead.shift)
            push(at, 0, h, ahead)


@njit
def _search(near, point, ahead, ground, number, result):
    """Go on with a search -> DONE, or where there is no room. result: (3,) int64 the best g + what is left, its state
    inside the perimeter, how many states were opened"""
    known, first, moves, best = ground.known, ground.first, ground.moves, result[BEST]
    layers, stamp, notes, eight = len(first) - 1, np.int64(number) << 40, ahead.notes, np.uint64(8)
    while notes[WAITING] > 0 and notes[BUCKET] <= best >> ahead.shift:
        bucket = notes[BUCKET]
        if ahead.head[np.uint64(bucket & len(ahead.head) - 1)] >= 0:
            far = (bucket + 1 << ahead.shift) - near.limit
            if far >= point.notes[bound.LIMIT] * point.times and not near.whole:
                if not settle(far // point.times + 1 + MARGIN, point):
                    return FULL_POINT
            if notes[USED] + MOST_MOVES > len(ahead.entry):
                return FULL_AHEAD
        at, cost = pop(ahead, False)
        later = cost < 0  # are its dear moves left?
        g = ~cost if later else cost
        if at < 0 or (known[np.uint64(at)] - stamp) >> 8 != g:
            continue
        place, layer = row_and_col(at, layers)
        row, col = row_and_col(place, ground.cols)
        h, exact = _left(layer, row, col, near, point)
        f = g + h + (ground.dearer[layer] * point.times if later else 0)
        if f >= best:
            continue
        if f >> ahead.shift > bucket:
            push(at, cost, f, ahead)
            continue
        if exact:
            best = result[BEST] = f
            result[GOAL] = at
            continue
        begin, end = first[layer], first[layer + 1]
        if later:
            begin = ground.dear[layer]
        elif ground.dear[layer] < end and not _leads_near(row, col, near, ground.reach):
            end = ground.dear[layer]
            push(at, ~g, f + ground.dearer[layer] * point.times, ahead)
        result[OPENED] += not later
        for k in range(np.uint64(begin), np.uint64(end)):
            if not _is_free(k, row, col, ground):
                continue
            beside = np.uint64(place + moves[k, PLACES])
            new = g + moves[k, PRICE] * ground.cost[beside]
            to = beside * np.uint64(layers) + np.uint64(moves[k, TO])
            if np.uint64(known[to] - stamp) >> eight <= np.uint64(new) or new >= best:
                continue
            h, _ = _left(moves[k, TO], row + moves[k, DOWN], col + moves[k, RIGHT], near, point)
            if new + h >= min(best, INFINITE):
                continue
            known[to] = stamp | new << 8 | moves[k, SORT]
            push(to, new, new + h, ahead)
    return DONE


@lean_njit
def _leads_near(row, col, near, reach):
    """May a move from a place end where costs-to-go are exact? There, no move adds as much as elsewhere."""
    down, right = row - near.row + reach, col - near.col + reach
    return 0 <= down < near.rows + 2 * reach and 0 <= right < near.cols + 2 * reach


@njit
def _extended(array):
    larger = np.empty(2 * len(array), array.dtype)
    larger[: len(array)] = array
    return larger


@njit
def _way_back(goal, ground):
    """-> moves from a state, by its place in `known`, back (M,) int32; number of the state where they begin"""
    layers = len(ground.first) - 1
    moves, count, at = np.empty(256, np.int32), 0, np.int64(goal)
    while ground.known[at] & 255 != START:
        k = ground.into[ground.into_first[at % layers] + (ground.known[at] & 255)]
        if count == len(moves):
            moves = _extended(moves)
        moves[count] = k
        count += 1
        at = (at // layers - ground.moves[k, PLACES]) * layers + ground.moves[k, SOURCE]
    return moves[:count], at % layers * (ground.rows * ground.cols) + at // layers


@njit
def _way_on(goal, near, ground):
    """-> moves from a state inside the perimeter, by its place in `known`, to the goal (M,) int32"""
    first = ground.first
    layer, row, col = _layer_row_col(np.int64(goal), len(first) - 1, ground.cols)
    moves, count, left = np.empty(256, np.int32), 0, _value(layer, row, col, near)
    while left > 0:
        for k in range(np.uint64(first[layer]), np.uint64(first[layer + 1])):
            down, right = row + ground.moves[k, DOWN], col + ground.moves[k, RIGHT]
            to, price = ground.moves[k, TO], ground.moves[k, PRICE] * ground.cost[down * ground.cols + right]
            if _value(to, down, right, near) + price == left and _is_free(k, row, col, ground):
                break
        if count == len(moves):
            moves = _extended(moves)
        moves[count] = k
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
