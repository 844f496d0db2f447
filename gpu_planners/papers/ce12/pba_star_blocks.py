"""P-BA*: planning blocks, the windows that their searches see, and links. Compiled for CPU threads and CUDA.

A *window* is a block of n x n tiles and the ring of neighbouring tiles around it. Tiles of the window are numbered
row << (shift + 1) | column, row and column 0..n+1, so that no index is divided. Tiles of the map are those of
`packed_tiles`.

A *link* is what a search found: the tile where it ended and the moves that lead there. Moves that do not fit into a
link lie in an arena.
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...grid.paths import COL_STEP, ROW_STEP
from .packed_tiles import col_of, least_cost_between, pack, row_of

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
    one: int  # `packed_tiles.units_of`
    diagonal: int
    tie_shift: int  # g >> tie_shift breaks ties
    avoid: int  # 1: an agent does not go back into the block it came from, and each border tile has two links
    h_cost: int  # the least cost of a free tile


class Maps(NamedTuple):
    """The map for K goals.

    costs: (rows * cols,) uint8, 0 blocked;  h: (K * rows * cols,) heuristics;  goals: (K,) int32 packed tiles
    """

    costs: np.ndarray
    h: np.ndarray
    goals: np.ndarray


class GoalMap(NamedTuple):
    """The map for one goal: costs (rows * cols,) uint8, 0 blocked; h (rows * cols,) heuristics."""

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
    """Links of one goal, or an agent's own: the first is at numbers[at:]; long moves are in words."""

    numbers: np.ndarray
    at: int
    words: np.ndarray


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
def write_link(numbers, at, link):
    numbers[at + END] = link.end
    numbers[at + MOVES] = np.int32(link.moves)
    numbers[at + STEPS] = link.steps << STEPS_SHIFT | link.straight
    numbers[at + DIAGONALS] = link.diagonal


@lean_njit
def goal_map(maps, goal, layout):
    """The map for one of several goals."""
    tiles = layout.rows * layout.cols
    return GoalMap(maps.costs, maps.h[goal * tiles : (goal + 1) * tiles])


@lean_njit
def links_toward(links, goal, layout):
    """Of all goals' links those toward one goal."""
    return Links(links.numbers, goal * links_of_goal(layout), links.words)


@lean_njit
def own_link(own, i):
    """Of all agents' own links that of agent i."""
    return Links(own.numbers, LINK * i, own.words)


@lean_njit
def window_size(shift):
    """-> places for a window's tiles."""
    return ((1 << shift) + 2) << (shift + 1)


@lean_njit
def heap_size(shift):
    """-> the most tiles that can be open at once: the block and its ring."""
    return ((1 << shift) + 2) ** 2


@lean_njit
def heuristic(row, col, goal, layout):
    """What a way from a tile to the goal costs at least. goal: packed"""
    down, right = row - row_of(goal), col - col_of(goal)
    return least_cost_between(down, right, layout.moves, layout.one, layout.diagonal) * layout.h_cost


@lean_njit
def block_of(tile, layout):
    """-> number of the block of a packed tile."""
    return (row_of(tile) >> layout.shift) * layout.block_cols + (col_of(tile) >> layout.shift)


@lean_njit
def corner_of(block, layout):
    """-> row, column of the first tile of a block."""
    return (block // layout.block_cols) << layout.shift, (block % layout.block_cols) << layout.shift


@lean_njit
def border_number(row, col, layout):
    """-> 0..ring-1 of a border tile, from its row and column in the block; -1 for the others.

    Top row, bottom row, then the rest of the left and of the right column.
    """
    n = 1 << layout.shift
    if row == 0:
        return col
    if row == n - 1:
        return n + col
    if col == 0:
        return 2 * n + row - 1
    if col == n - 1:
        return 3 * n - 3 + row
    return -1


@lean_njit
def border_tile(number, layout):
    """-> row, column in the block of a border tile."""
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
    """-> number of the (first) link of a packed tile; -1 when it is no border tile."""
    mask = (1 << layout.shift) - 1
    number = border_number(row_of(tile) & mask, col_of(tile) & mask, layout)
    return -1 if number < 0 else (np.int64(block_of(tile, layout)) * layout.ring + number) * (1 + layout.avoid)


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
def after_move(tile, k, layout):
    """-> the tile of a window that move k leads to"""
    return tile + (ROW_STEP[k] << (layout.shift + 1)) + COL_STEP[k]


@lean_njit
def before_move(tile, k, layout):
    """-> the tile of a window that move k comes from"""
    return tile - ((ROW_STEP[k] << (layout.shift + 1)) + COL_STEP[k])


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
def map_window(block, goal_map, layout):
    """A block's window as a part of the map."""
    top, left = corner_of(block, layout)
    base = (top - 1) * np.int64(layout.cols) + left - 1
    return BlockWindow(block, goal_map.costs, goal_map.h, base, layout.cols, layout.rows - top, layout.cols - left)


@lean_njit
def load_window(window, goal_map, layout, lane, lanes):
    """Copy costs (0 outside the map) and heuristics into a window's own memory: this lane's share."""
    top, left = corner_of(window.block, layout)
    for i in range(lane, window_size(layout.shift), lanes):
        row, col = top - 1 + row_in(i, layout), left - 1 + col_in(i, layout)
        if 0 <= row < layout.rows and 0 <= col < layout.cols and col_in(i, layout) <= window.last_col:
            at = np.int64(row) * layout.cols + col
            window.costs[i], window.h[i] = goal_map.costs[at], goal_map.h[at]
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
