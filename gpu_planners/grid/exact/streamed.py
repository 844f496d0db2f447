"""A field that does not fit into the memory limit, planned piece by piece; its whole state lies in the host's memory.

The map is cut into windows of whole blocks. The fields that plan a window see a smaller map: the window, and a ring of
blocks (BITS) or tiles (VALUES) that belongs to its neighbours and is only read. Blocks beyond the border that a visit
could improve seed the neighbour's next visit. The window with the least such value is visited next, until there is
none. Then no tile can get better by a neighbour, and that state is the same however it was reached (`rounds`): fields
and directions equal those made in one piece, bit for bit. Windows overlap, so most maps need one visit of each.
"""

from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...errors import SettingsError
from ...parallel.team import run_team
from ..paths import COL_MOVES, EAST, NORTH, ROW_MOVES, SOUTH, WEST
from .bits import UNREACHED, WALL, blank_edge
from .blocks import BITS, VALUES, Blocks, FieldShape, size_of
from .cpu import CpuFields, field_record
from .rounds import ALL_DIRECTIONS, GOAL_BLOCK, GOAL_USED, NO_DIRECTIONS, Request
from .values import INFINITE, Tiles, barrier, through

LEAST_SIDE = 2  # blocks; of a smaller window most would be its ring
OVERLAP = 8  # windows overlap by 1 / 8 of a side: a path that wavers along a border stays in one window
COPIERS = 8  # threads that copy: more do not move more


class Window(NamedTuple):
    """Blocks of the map from row top to bottom - 1, from column left to right - 1; the map's first block is 0, 0."""

    top: int
    bottom: int
    left: int
    right: int


class Seeds(NamedTuple):
    """The blocks that windows are visited for."""

    high: int  # as of `Cut`
    wide: int
    across: int  # windows in a row
    waiting: np.ndarray  # (height, width) bool, blocks with the ring
    # (windows + across,) int64 best new value that a neighbour offers each window, INFINITE: none. The last row stands
    # for what lies beyond the map, which others may own (`bands`)
    least: np.ndarray


@lean_njit
def sow(row, col, value, seeds):
    """A tile of block (row, col) gets better by a value: the block seeds the next visit of its window."""
    window = row // seeds.high * seeds.across + col // seeds.wide
    seeds.waiting[row + 1, col + 1] = True
    seeds.least[window] = min(seeds.least[window], value)


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
    def margin(self) -> int:
        return min(self.high, self.wide) // OVERLAP

    @staticmethod
    def of(shape: FieldShape, limit_bytes: int) -> "Cut":
        """The fewest windows of which one fits into the limit, its part of the map included; of those the squarest.

        Raises SettingsError where windows would have to be smaller than LEAST_SIDE.
        """
        rows, cols = shape.blocks.height - 2, shape.blocks.width - 2
        least_high, least_wide = min(LEAST_SIDE, rows), min(LEAST_SIDE, cols)
        cuts = []
        for high in {-(-rows // n) for n in range(1, rows + 1)} | {least_high}:
            widest = bisect_right(
                range(1, cols + 1), limit_bytes, key=lambda wide: Cut(shape, high, wide).window.bytes_with_map
            )
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
    def window(self) -> FieldShape:
        """The shape of a window's fields."""
        blocks = self.shape.blocks
        rows = min(self.high + 2 * self.margin, blocks.height - 2) * blocks.size
        cols = min(self.wide + 2 * self.margin, blocks.width - 2) * blocks.size
        return FieldShape(self.shape.layout, Blocks(rows, cols, blocks.size), self.shape.connectivity)

    @property
    def down(self) -> int:
        """Windows in a column."""
        return -(-(self.shape.blocks.height - 2) // self.high)

    @property
    def across(self) -> int:
        """Windows in a row."""
        return -(-(self.shape.blocks.width - 2) // self.wide)

    def place(self, window: int) -> Window:
        """The blocks of a window, without the ring."""
        whole, part = self.shape.blocks, self.window.blocks
        row, col = window // self.across * self.high, window % self.across * self.wide
        top = max(0, min(row - self.margin, whole.height - part.height))
        left = max(0, min(col - self.margin, whole.width - part.width))
        return Window(top, top + part.height - 2, left, left + part.width - 2)


def _part(shape, arrays, name, window, ring):
    """View of a field's staged array: the blocks of a window, with the ring around them (1) or without (0)."""
    array, size = arrays[name], 1
    if shape.layout == VALUES and name in ("map", "values"):
        array, size = array.reshape(array.shape[-2:]), shape.blocks.size
    else:
        array = array.reshape(shape.blocks.height, shape.blocks.width, *array.shape[1:])
    rows = slice(window.top * size + 1 - ring, window.bottom * size + 1 + ring)
    return array[rows, window.left * size + 1 - ring : window.right * size + 1 + ring]


class StreamedFields:
    """One field at a time, window by window, with the methods of `CpuFields`.

    cut: how the map is cut
    piece: the fields that plan a window, of the shape `cut.window`
    visits: how often windows were relaxed for the latest field
    """

    def __init__(self, cut: Cut, piece):
        self.cut, self.visits = cut, 0
        self._host, self._piece = CpuFields(cut.shape), piece
        self._piece.allocate(1)
        self.allocate, self.set_map, self.change_map = self._host.allocate, self._host.set_map, self._host.change_map
        self.descend, self.field, self.wait = self._host.descend, self._host.field, self._host.wait
        self.read, self.write = self._host.read, self._host.write

    @property
    def memory_bytes(self) -> int:
        """What a window takes on its device, without its map."""
        return self._piece.memory_bytes

    def update(self, request: Request):
        """Plan the field of slot 0, from nothing or from the blocks `request.relax` on."""
        cut, state, goal = self.cut, self._host.staged(), request.goals[0]
        if not goal[GOAL_USED]:
            return
        changing = ("values",) if cut.shape.layout == VALUES else ("values", "edge")
        blocks = request.relax
        if len(request.new) or len(request.seeds):
            self._blank(state)
            self.visits, blocks = 0, goal[[GOAL_BLOCK]]
        windows, seeds = cut.down * cut.across, self._seeds(blocks)
        while (least := seeds.least[:windows]).min() < INFINITE:
            number = int(np.argmin(least))
            seeds.least[number] = INFINITE
            window = cut.place(number)
            part = seeds.waiting[window.top + 1 : window.bottom + 1, window.left + 1 : window.right + 1]
            row, col = np.nonzero(part)
            if len(row) == 0:  # a window that overlaps this one has been there
                continue
            part[:] = False
            relax = (row + 1) * cut.window.blocks.width + col + 1
            self._visit(window, goal, ("map", *changing), changing, relax=relax, directions=NO_DIRECTIONS)
            field = field_record(cut.shape, state["map"], state)
            (_bits_beyond if cut.shape.layout == BITS else _values_beyond)(window, field, seeds)
            self.visits += 1
        for number in range(windows if request.directions != NO_DIRECTIONS else 0):
            self._visit(cut.place(number), goal, ("map", "values"), ("directions",), directions=ALL_DIRECTIONS)

    def _blank(self, state):
        """Make the field one where nothing is reached."""
        state["values"].fill(INFINITE if self.cut.shape.layout == VALUES else 0)
        if self.cut.shape.layout == BITS:
            _blank_edges(field_record(self.cut.shape, state["map"], state))

    def _seeds(self, numbers):
        """Blocks, by their numbers, that seed the first visits."""
        cut, blocks = self.cut, self.cut.shape.blocks
        waiting = np.zeros((blocks.height, blocks.width), np.bool_)
        seeds = Seeds(cut.high, cut.wide, cut.across, waiting, np.full((cut.down + 1) * cut.across, INFINITE))
        for number in np.asarray(numbers).tolist():
            row, col = divmod(number, blocks.width)
            sow(row - 1, col - 1, np.int64(0), seeds)
        return seeds

    def _visit(self, window, goal, before, after, **asked):
        """Work on a window, which gets the arrays `before` and gives the arrays `after`. asked: see `Request`"""
        cut, inner = self.cut, self.cut.window
        state, staged = self._host.staged(), self._piece.staged()
        own = Window(0, inner.blocks.height - 2, 0, inner.blocks.width - 2)
        for name in before:
            self._copy(_part(inner, staged, name, own, 1), _part(cut.shape, state, name, window, 1))
        self._piece.load(*before)
        row, col = np.divmod(goal[GOAL_BLOCK], cut.shape.blocks.width) - np.int32(1)
        goals, block = goal[None].copy(), -1
        if window.top <= row < window.bottom and window.left <= col < window.right:
            block = (row - window.top + 1) * inner.blocks.width + col - window.left + 1
        goals[0, GOAL_BLOCK] = block
        self._piece.update(Request(goals, **asked))
        self._piece.unload(*after)
        for name in after:
            self._copy(_part(cut.shape, state, name, window, 0), _part(inner, staged, name, own, 0))

    def _copy(self, to, source):
        """to[:] = source, by several threads."""
        members = min(self._host.members, COPIERS)
        cuts = np.linspace(0, len(to), members + 1).astype(int)
        run_team(members, lambda k: np.copyto(to[cuts[k] : cuts[k + 1]], source[cuts[k] : cuts[k + 1]]))


@lean_njit
def _blank_edges(field):
    """Make the edges those of a field where nothing is reached."""
    for block in range(field.blocks):
        for r in range(size_of(field.kind)):
            blank_edge(block, block, r, field)


@lean_njit
def _bits_offer(row, col, side, field, seeds):
    """Sow the block beyond one side of block (row, col), if it gets better by it."""
    block, beyond_row, beyond_col = (row + 1) * field.width + col + 1, row + ROW_MOVES[side], col + COL_MOVES[side]
    beyond = (beyond_row + 1) * field.width + beyond_col + 1
    for i in range(size_of(field.kind)):
        steps = field.edge[block, side, i]
        if WALL < steps < UNREACHED and steps + 1 < field.edge[beyond, (side + 2) % 4, i]:
            sow(beyond_row, beyond_col, np.int64(steps + 1), seeds)


@lean_njit
def _bits_beyond(window, field, seeds):
    """Sow the blocks that can get better by a window."""
    for col in range(window.left, window.right):
        _bits_offer(window.top, col, NORTH, field, seeds)
        _bits_offer(window.bottom - 1, col, SOUTH, field, seeds)
    for row in range(window.top, window.bottom):
        _bits_offer(row, window.right - 1, EAST, field, seeds)
        _bits_offer(row, window.left, WEST, field, seeds)


@lean_njit
def _values_offer(r, c, window, tiles, seeds):
    """Sow the block of a tile just outside the window, if the tile gets better by it."""
    if barrier(tiles, r, c) != 0:
        return
    best, size = tiles.value[r, c], size_of(tiles.kind)
    for k in range(len(tiles.kind.moves)):
        row, col = r + ROW_MOVES[k], c + COL_MOVES[k]
        if window.top * size < row <= window.bottom * size and window.left * size < col <= window.right * size:
            best = min(best, through(tiles, r, c, ROW_MOVES[k], COL_MOVES[k]))
    if best < tiles.value[r, c]:
        sow((r - 1) // size, (c - 1) // size, best, seeds)


@lean_njit
def _values_beyond(window, field, seeds):
    """Sow the blocks that can get better by a window."""
    tiles, size = Tiles(field.kind, field.value[0], field.cost), size_of(field.kind)  # of the whole map, padded
    top, bottom, left, right = window.top * size, window.bottom * size, window.left * size, window.right * size
    for c in range(left, right + 2):
        _values_offer(top, c, window, tiles, seeds)
        _values_offer(bottom + 1, c, window, tiles, seeds)
    for r in range(top + 1, bottom + 1):
        _values_offer(r, left, window, tiles, seeds)
        _values_offer(r, right + 1, window, tiles, seeds)
