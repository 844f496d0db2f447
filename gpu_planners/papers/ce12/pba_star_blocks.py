"""P-BA*: planning blocks, the windows that their searches see, and links. Compiled for CPU threads and CUDA.

A *window* is a block of n x n tiles and the ring of neighbouring tiles around it. Tiles of the window are numbered
row << (shift + 1) | column, row and column 0..n+1, so that no index is divided. Tiles of the map are packed (`shared`).

A *link* is what a search found: the tile where it ended and the moves that lead there. Moves that do not fit into a
link lie in an arena. Each border tile has a link toward each goal, or two with `avoid`.
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...grid.paths import COL_STEP, ROW_STEP
from .shared import col_of, pack, row_of

LINK = 4  # int32 of a link
END, MOVES, STEPS, DIAGONALS = range(LINK)  # their places
STEPS_SHIFT = 19  # of STEPS: steps << STEPS_SHIFT | cost of the straight ones


class Layout(NamedTuple):
    """The map and its planning blocks, all int."""

    rows: int
    cols: int
    shift: int  # blocks are 1 << shift tiles wide
    block_rows: int
    block_cols: int
    ring: int  # border tiles of a block
    moves: int  # 4 or 8 of them
    one: int  # `shared.units_of`
    diagonal: int
    tie_shift: int  # g >> tie_shift breaks ties
    avoid: int  # 1: an agent does not go back into the block it came from, and each border tile has two links
    h_cost: int  # the least cost of a free tile


class Maps(NamedTuple):
    """The map for K goals: costs (rows * cols,) uint8, 0 blocked; h (K * rows * cols,) heuristics."""

    costs: np.ndarray
    h: np.ndarray


class BlockWindow(NamedTuple):
    """A block's window: tile (row, column) is at base + row * width + column of costs and h.

    last_row, last_col: where the map ends
    """

    block: int
    costs: np.ndarray
    h: np.ndarray
    base: int
    width: int
    last_row: int
    last_col: int


class Links(NamedTuple):
    """The links of all border tiles toward K goals, goal by goal, or the own ones of agents.

    numbers: int32, LINK of each;  words: uint32 long moves;  goals: (K,) int32 packed tiles
    """

    numbers: np.ndarray
    words: np.ndarray
    goals: np.ndarray


class Link(NamedTuple):
    """end: the tile where the search ended, -1: none
    moves: packed as in PathSet, counted from the end; where they do not fit into 32 bits, the number of their first
        word
    steps: how many
    straight, diagonal: cost of the straight ones, of the diagonal ones
    """

    end: int
    moves: int
    steps: int
    straight: int
    diagonal: int


@lean_njit
def read_link(numbers, at):
    steps = numbers[at + STEPS]
    return Link(
        numbers[at + END],
        np.uint32(numbers[at + MOVES]),
        steps >> STEPS_SHIFT,
        steps & ((1 << STEPS_SHIFT) - 1),
        numbers[at + DIAGONALS],
    )


@lean_njit
def map_toward(goal, maps, layout):
    """The map for one of several goals."""
    tiles = layout.rows * layout.cols
    return Maps(maps.costs, maps.h[goal * tiles : (goal + 1) * tiles])


@lean_njit
def window_size(shift):
    """-> places for a window's tiles."""
    return ((1 << shift) + 2) << (shift + 1)


@lean_njit
def heap_size(shift):
    """-> the most tiles that can be open at once: the block and its ring."""
    return ((1 << shift) + 2) ** 2


@lean_njit
def block_of(tile, layout):
    """-> number of the block of a packed tile."""
    return (row_of(tile) >> layout.shift) * layout.block_cols + (col_of(tile) >> layout.shift)


@lean_njit
def corner_of(block, layout):
    """-> row, column of the first tile of a block."""
    return (block // layout.block_cols) << layout.shift, (block % layout.block_cols) << layout.shift


@lean_njit
def border_tile(number, layout):
    """-> row, column in the block of a border tile: top row, bottom row, the rest of the left, of the right column"""
    n = 1 << layout.shift
    if number < n:
        return 0, number
    if number < 2 * n:
        return n - 1, number - n
    if number < 3 * n - 2:
        return number - 2 * n + 1, 0
    return number - 3 * n + 3, n - 1


@lean_njit
def link_of(tile, layout):
    """-> number of the (first) link of a packed border tile toward one goal. See `border_tile`"""
    n = 1 << layout.shift
    row, col = row_of(tile) & (n - 1), col_of(tile) & (n - 1)
    if row == 0:
        number = col
    elif row == n - 1:
        number = n + col
    elif col == 0:
        number = 2 * n + row - 1
    else:
        number = 3 * n - 3 + row
    return (np.int64(block_of(tile, layout)) * layout.ring + number) * (1 + layout.avoid)


@lean_njit
def links_of_goal(layout):
    """-> how many links the border tiles have toward one goal."""
    return np.int64(layout.block_rows) * layout.block_cols * layout.ring * (1 + layout.avoid)


@lean_njit
def row_in(tile, layout):
    """-> row of a window's tile"""
    return tile >> (layout.shift + 1)


@lean_njit
def col_in(tile, layout):
    return tile & ((2 << layout.shift) - 1)


@lean_njit
def tile_in(row, col, layout):
    return row << (layout.shift + 1) | col


@lean_njit
def move_in(k, layout):
    """-> what move k adds to the number of a window's tile"""
    return (ROW_STEP[k] << (layout.shift + 1)) + COL_STEP[k]


@lean_njit
def place_in(window, row, col):
    """-> where a window's tile lies in its costs and h"""
    return window.base + row * window.width + col


@lean_njit
def h_of(window, tile, layout):
    return np.int64(window.h[place_in(window, row_in(tile, layout), col_in(tile, layout))])


@lean_njit
def outside(tile, layout):
    """-> 0 for a tile of the block; for a tile of the ring, which of the eight neighbouring blocks it belongs to."""
    row, col, end = row_in(tile, layout), col_in(tile, layout), (1 << layout.shift) + 1
    return (1 if row == 0 else 2 if row == end else 0) + (3 if col == 0 else 6 if col == end else 0)


@lean_njit
def on_border(tile, layout):
    """Is a tile of the block one of its border tiles?"""
    row, col, n = row_in(tile, layout), col_in(tile, layout), 1 << layout.shift
    return row == 1 or row == n or col == 1 or col == n


@lean_njit
def window_tile(tile, block, layout):
    """-> tile of a block's window of a packed tile of the map; -1 when the window does not hold it."""
    top, left = corner_of(block, layout)
    row, col, last = row_of(tile) - top + 1, col_of(tile) - left + 1, (1 << layout.shift) + 1
    return tile_in(row, col, layout) if 0 <= row <= last and 0 <= col <= last else -1


@lean_njit
def map_tile(tile, block, layout):
    """-> packed tile of the map of a tile of a block's window."""
    top, left = corner_of(block, layout)
    return pack(top - 1 + row_in(tile, layout), left - 1 + col_in(tile, layout))


@lean_njit
def own_window(block, costs, h, layout):
    """A window of its own memory, for `load_window`. costs, h: (window_size,)"""
    last = (1 << layout.shift) + 1
    return BlockWindow(block, costs, h, 0, 2 << layout.shift, last, last)


@lean_njit
def map_window(block, maps, layout):
    """A block's window as a part of the map."""
    top, left = corner_of(block, layout)
    base = (top - 1) * np.int64(layout.cols) + left - 1
    return BlockWindow(block, maps.costs, maps.h, base, layout.cols, layout.rows - top, layout.cols - left)


@lean_njit
def load_window(window, maps, layout, lane, lanes):
    """Copy costs (0 outside the map) and heuristics into a window's own memory: this lane's share."""
    top, left = corner_of(window.block, layout)
    for i in range(lane, window_size(layout.shift), lanes):
        row, col = top - 1 + row_in(i, layout), left - 1 + col_in(i, layout)
        if 0 <= row < layout.rows and 0 <= col < layout.cols and col_in(i, layout) <= window.last_col:
            at = np.int64(row) * layout.cols + col
            window.costs[i], window.h[i] = maps.costs[at], maps.h[at]
        else:
            window.costs[i], window.h[i] = 0, 0


@lean_njit
def step_cost(window, tile, to, k, layout):
    """-> cost of move k between two tiles of a window, 0 when it is not allowed."""
    row, col = row_in(to, layout), col_in(to, layout)
    cost = np.int64(window.costs[place_in(window, row, col)])
    if k < 4 or cost == 0:
        return cost * layout.one
    across = window.costs[place_in(window, row_in(tile, layout), col)]
    if across == 0 or window.costs[place_in(window, row, col_in(tile, layout))] == 0:
        return np.int64(0)
    return cost * layout.diagonal


@lean_njit
def mark_seen(row, col, todo, layout):
    """Set todo of the blocks whose windows hold a tile that their searches look at."""
    for r in range(max(row - 1, 0), min(row + 2, layout.rows)):
        for c in range(max(col - 1, 0), min(col + 2, layout.cols)):
            if layout.moves == 8 or r == row or c == col:
                todo[(r >> layout.shift) * layout.block_cols + (c >> layout.shift)] = 1
