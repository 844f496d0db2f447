"""A field that does not fit into the memory limit, planned piece by piece; its whole state lies in the host's memory.

The map is cut into windows of whole blocks. A window, with the ring of blocks (BITS) or of tiles (VALUES) that its
neighbours have around it, is to the inner engine just a smaller map, whose ring it reads and does not work on. What
a visit can make better beyond the window's border is where a visit of the neighbour goes on from. The window with the
least such value is next, until there is none. Then no tile can get better by any of its neighbours, and that state is the
same however it was reached (`block_rounds`): fields and directions equal those made in one piece, bit for bit. Windows
overlap, so that most maps need one visit of each.
"""

import functools
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from ..device import njit
from ..errors import SettingsError
from ..team import run_team
from . import block_rounds as rounds
from .agents import COL_MOVES, ROW_MOVES
from .bit_blocks import FAR, WALL, side_function
from .block_field import CpuFields, FieldShape, open_fields, request
from .blocks import Blocks
from .value_blocks import NEVER, ValueScratch, step_functions

LEAST_SIDE = 2  # blocks; of a smaller window most would be its ring
OVERLAP = 8  # windows overlap by this part of a side: a way that wavers along a border need not change windows each time
COPIERS = 8  # threads that copy: more do not move more


@dataclass(frozen=True)
class Cut:
    """How a map is cut into windows, row by row.

    shape: FieldShape of the map
    high, wide: blocks that windows lie apart, from the first ones at the map's corner
    margin: blocks that a window reaches further; all windows have one size, so that it is more at the map's sides
    """

    shape: FieldShape
    high: int
    wide: int

    @property
    def margin(self):
        return min(self.high, self.wide) // OVERLAP

    @staticmethod
    def of(shape, limit_bytes):
        """The fewest windows of which one fits into the limit, its part of the map included; of those the squarest.

        Raises SettingsError where windows would have to be smaller than LEAST_SIDE.
        """
        rows, cols = shape.blocks.height - 2, shape.blocks.width - 2
        least_high, least_wide = min(LEAST_SIDE, rows), min(LEAST_SIDE, cols)
        cuts = []
        for high in {-(-rows // n) for n in range(1, rows + 1)} | {least_high}:
            widest = bisect_right(range(1, cols + 1), limit_bytes, key=lambda wide: Cut(shape, high, wide).window.bytes_with_map)
            if high >= least_high and widest >= least_wide:
                cuts.append(Cut(shape, high, -(-cols // -(-cols // widest))))
        if not cuts:
            least = Cut(shape, least_high, least_wide).window.bytes_with_map
            raise SettingsError(
                f"memory_limit_bytes is {limit_bytes}: too little for a piece of {least_high} x {least_wide} blocks of "
                f"{shape.blocks.size} x {shape.blocks.size} tiles; use at least {least}"
            )
        return min(cuts, key=lambda cut: (cut.down * cut.across, cut.high + cut.wide))

    @property
    def window(self):
        """FieldShape of a window."""
        size = self.shape.blocks.size
        return FieldShape(self.shape.layout, Blocks(self._rows * size, self._cols * size, size), self.shape.connectivity)

    @property
    def _rows(self):
        return min(self.high + 2 * self.margin, self.shape.blocks.height - 2)

    @property
    def _cols(self):
        return min(self.wide + 2 * self.margin, self.shape.blocks.width - 2)

    @property
    def down(self):
        """Windows in a column."""
        return -(-(self.shape.blocks.height - 2) // self.high)

    @property
    def across(self):
        """Windows in a row."""
        return -(-(self.shape.blocks.width - 2) // self.wide)

    def place(self, window):
        """-> rows, cols of the blocks of a window: (first, end) each, without the ring, the map's first block being 0"""
        row, col = window // self.across * self.high, window % self.across * self.wide
        top = max(0, min(row - self.margin, self.shape.blocks.height - 2 - self._rows))
        left = max(0, min(col - self.margin, self.shape.blocks.width - 2 - self._cols))
        return (top, top + self._rows), (left, left + self._cols)

    def part(self, arrays, name, blocks, rows, cols, ring):
        """View of one of the arrays M, V, E, directions: the blocks rows x cols, with the ring around them or without (1, 0)."""
        array, size = arrays[name], 1
        if self.shape.layout == rounds.VALUES and name in ("M", "V"):
            array, size = array.reshape(array.shape[-2:]), blocks.size
        else:
            array = array.reshape(blocks.height, blocks.width, *array.shape[1:])
        (top, bottom), (left, right) = rows, cols
        return array[top * size + 1 - ring : bottom * size + 1 + ring, left * size + 1 - ring : right * size + 1 + ring]


class StreamedFields:
    """One field at a time, window by window on a device. The same as `block_field.CpuFields`, but for `visits`.

    visits: how often a window was worked on for the latest field, the last visits for the directions not counted
    """

    def __init__(self, shape, device, limit_bytes):
        self.cut, self.visits = Cut.of(shape, limit_bytes), 0
        self._host = CpuFields(shape)
        self._window = open_fields(self.cut.window, device)
        self._window.allocate(1)
        self.allocate, self.set_map, self.change_map = self._host.allocate, self._host.set_map, self._host.change_map
        self.descend, self.field, self.wait = self._host.descend, self._host.field, self._host.wait

    @property
    def memory_bytes(self):
        """What a window takes on its device, without its map."""
        return self._window.memory_bytes

    def update(self, R):
        """Plan the field of slot 0 from nothing, for the goal that the request of `block_rounds` holds."""
        cut, state, goal = self.cut, self._host.staged(), R[rounds.LISTS : rounds.LISTS + 4]
        if not goal[rounds.GOAL_USED]:
            return
        blocks, bits = cut.shape.blocks, cut.shape.layout == rounds.BITS
        changing = ("V", "E") if bits else ("V",)
        if bits:
            state["V"].fill(0)
            _edge_functions(blocks.size)[0](state["M"], state["E"])
        else:
            state["V"].fill(NEVER)
        waiting = np.zeros((blocks.height, blocks.width), np.bool_)  # blocks to go on from
        least = np.full(cut.down * cut.across, NEVER)  # best new value that a window gets from its neighbours
        row, col = np.divmod(goal[rounds.GOAL_BLOCK], blocks.width)
        waiting[row, col] = True
        least[(row - 1) // cut.high * cut.across + (col - 1) // cut.wide] = 0
        self.visits = 0
        while least.min() < NEVER:
            window = int(np.argmin(least))
            least[window] = NEVER
            rows, cols = cut.place(window)
            part = waiting[rows[0] + 1 : rows[1] + 1, cols[0] + 1 : cols[1] + 1]
            row, col = np.nonzero(part)
            if len(row) == 0:  # a window that overlaps this one has been there
                continue
            part[:] = False
            relax = (row + 1) * cut.window.blocks.width + col + 1
            self._visit(rows, cols, goal, ("M", *changing), changing, relax=relax, directions=rounds.NONE)
            where = *rows, *cols, cut.high, cut.wide, cut.across
            if bits:
                _edge_functions(blocks.size)[1](*where, blocks.width, state["E"], waiting.reshape(-1), least)
            else:
                _value_function(blocks.size, cut.shape.connectivity)(*where, ValueScratch(state["V"][0], state["M"]), waiting, least)
            self.visits += 1
        for window in range(len(least)):
            self._visit(*cut.place(window), goal, ("M", "V"), ("directions",), directions=rounds.ALL)

    def _visit(self, rows, cols, goal, before, after, **asked):
        """Run `update_fields` in a window, which gets the arrays `before` and gives the arrays `after`."""
        cut, inner, blocks = self.cut, self.cut.window.blocks, self.cut.shape.blocks
        state, staged = self._host.staged(), self._window.staged()
        local = (0, rows[1] - rows[0]), (0, cols[1] - cols[0])
        for name in before:
            _copy(cut.part(staged, name, inner, *local, 1), cut.part(state, name, blocks, rows, cols, 1), self._host.members)
        self._window.load(*before)
        row, col = np.divmod(goal[rounds.GOAL_BLOCK], blocks.width) - np.int32(1)
        goals = goal[None].copy()
        inside = rows[0] <= row < rows[1] and cols[0] <= col < cols[1]
        goals[0, rounds.GOAL_BLOCK] = (row - rows[0] + 1) * inner.width + col - cols[0] + 1 if inside else -1
        self._window.update(request(goals, **asked))
        self._window.unload(*after)
        for name in after:
            _copy(cut.part(state, name, blocks, rows, cols, 0), cut.part(staged, name, inner, *local, 0), self._host.members)


def _copy(to, source, members):
    """to[:] = source, by several threads."""
    members = min(members, COPIERS)
    cuts = np.linspace(0, len(to), members + 1).astype(int)

    def work(member):
        part = slice(cuts[member], cuts[member + 1])
        np.copyto(to[part], source[part])

    run_team(members, work)


@functools.cache
def _edge_functions(size):
    """-> blank, better_beyond for BITS of this block size"""
    side_bit = side_function(size)

    @njit
    def blank(M, E):
        """The edges where nothing is reached."""
        for block in range(len(E)):
            for side in range(4):
                for i in range(size):
                    E[block, side, i] = FAR if side_bit(M[block], side, i) else WALL

    @njit
    def offer(row, col, side, high, wide, across, width, E, waiting, least):
        """As `better_beyond`, beyond one side of a block."""
        block = (row + 1) * width + col + 1
        row += (-1, 0, 1, 0)[side]
        col += (0, 1, 0, -1)[side]
        other = (row + 1) * width + col + 1
        for i in range(size):
            steps = E[block, side, i]
            if WALL < steps < FAR and steps + 1 < E[other, (side + 2) % 4, i]:
                window = row // high * across + col // wide
                waiting[other] = True
                least[window] = min(least[window], np.int64(steps + 1))

    @njit
    def better_beyond(top, bottom, left, right, high, wide, across, width, E, waiting, least):
        """Mark the blocks beside a window that can get better by it. waiting: (blocks,) bool; least: (windows,) int64"""
        for col in range(left, right):
            offer(top, col, 0, high, wide, across, width, E, waiting, least)
            offer(bottom - 1, col, 2, high, wide, across, width, E, waiting, least)
        for row in range(top, bottom):
            offer(row, right - 1, 1, high, wide, across, width, E, waiting, least)
            offer(row, left, 3, high, wide, across, width, E, waiting, least)

    return blank, better_beyond


@functools.cache
def _value_function(size, connectivity):
    """-> better_beyond for VALUES"""
    barrier, through = step_functions(connectivity)

    @njit
    def offer(r, c, top, bottom, left, right, high, wide, across, S, waiting, least):
        """As `better_beyond`, one tile just outside of the window."""
        if barrier(S, r, c) != 0:
            return
        best = S.value[r, c]
        for k in range(connectivity):
            dr, dc = ROW_MOVES[k], COL_MOVES[k]
            if top * size < r + dr <= bottom * size and left * size < c + dc <= right * size:
                best = min(best, through(S, r, c, dr, dc))
        if best < S.value[r, c]:
            row, col = (r - 1) // size, (c - 1) // size
            window = row // high * across + col // wide
            waiting[row + 1, col + 1] = True
            least[window] = min(least[window], best)

    @njit
    def better_beyond(top, bottom, left, right, high, wide, across, S, waiting, least):
        """Mark the blocks beside a window that can get better by it. S: value, cost of the whole map, padded;
        waiting: (height, width) bool; least: (windows,) int64"""
        for c in range(left * size, right * size + 2):
            offer(top * size, c, top, bottom, left, right, high, wide, across, S, waiting, least)
            offer(bottom * size + 1, c, top, bottom, left, right, high, wide, across, S, waiting, least)
        for r in range(top * size + 1, bottom * size + 1):
            offer(r, left * size, top, bottom, left, right, high, wide, across, S, waiting, least)
            offer(r, right * size + 1, top, bottom, left, right, high, wide, across, S, waiting, least)

    return better_beyond
