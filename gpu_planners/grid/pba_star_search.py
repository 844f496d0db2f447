"""P-BA* [CE12]: the searches inside planning blocks, and the paths along their links. Compiled for a CPU thread and for CUDA.

A search works on a *window*: a block of n x n tiles and the ring of neighbouring tiles around it. Tiles of the window are
numbered row << (shift + 1) | column, row and column 0..n+1, so that no index is divided. Tiles of the map are those of
`packed_tiles`.

A search's memory is two int64 arrays: `nodes`, one word for each tile of the window (stamp of the search, g, closed, move that
led there), which need not be cleared between searches, with the last stamp after them, and `heap`, a binary heap of keys
(f, then greater g, then tile).

A *link* is what a search found, LINK int32: at END the tile where it ended (-1: none), at MOVES its moves (packed as in PathSet,
counted from the end; where they do not fit into 32 bits, the number of their first word in the arena), at STEPS their number
and the cost of the straight ones, at DIAGONALS the cost of the diagonal ones. The arena has pages, so that few workers share
the counter of a page.
"""

from typing import NamedTuple

import numpy as np

from ..device import njit
from ..team import add
from .agents import COL_STEP, MOST_STEPS, ROW_STEP, WORD_BITS, AgentStatus, step_bits, word_count
from .packed_tiles import col_of, least_cost_between, pack, row_of

ONE, DIAGONAL = 1 << 20, 1482910  # 8-connected searches: a tile length, a diagonal of sqrt(2), in fixed point
TILE_BITS, TIE_BITS = 12, 11  # of a key, below f
TILE_MASK = (1 << TILE_BITS) - 1
TIE_TOP = (1 << TIE_BITS) - 1
CLOSED, G_SHIFT, STAMP_SHIFT = 8, 4, 48  # of a node
G_MASK = (1 << (STAMP_SHIFT - G_SHIFT)) - 1
MOST_STAMP = (1 << 15) - 1
MOVE_MASK = 7
END, MOVES, STEPS, DIAGONALS = range(4)  # of a link
LINK = 4
STEPS_SHIFT = 19  # of STEPS: steps << STEPS_SHIFT | cost of the straight ones
STRAIGHT_MASK = (1 << STEPS_SHIFT) - 1
F_MOST = (1 << 40) - 1  # of a key; only heuristics raised many times come there
MOST_RAISES = 96  # of one border tile
MOST_DOUBLINGS = 12  # of the amount it is raised by
SOLVED, NO_PATH, LOOP, STEP_LIMIT = (int(AgentStatus[s]) for s in ("SOLVED", "NO_PATH", "LOOP", "STEP_LIMIT"))


def units_of(moves):
    """-> cost of a straight step and of a diagonal one onto a tile of cost 1, as the searches count."""
    return (1, 0) if moves == 4 else (ONE, DIAGONAL)


class Layout(NamedTuple):
    """The map and its planning blocks, all int."""

    rows: int
    cols: int
    shift: int  # blocks are 1 << shift tiles wide
    block_rows: int
    block_cols: int
    ring: int  # border tiles of a block
    moves: int  # 4 or 8 of them
    one: int  # `units_of`
    diagonal: int
    tie_shift: int  # g >> tie_shift breaks ties
    avoid: int  # 1: an agent does not go back into the block it came from, and each border tile has two links
    h_cost: int  # the least cost of a free tile


@njit
def window_size(shift):
    """-> places for a window's tiles."""
    return ((1 << shift) + 2) << (shift + 1)


@njit
def heap_size(shift):
    """-> the most tiles that can be open at once: the block and its ring."""
    return ((1 << shift) + 2) ** 2


@njit
def heuristic(row, col, goal, B):
    """Of a tile: what a way to the goal costs at least. goal: packed"""
    return least_cost_between(row - row_of(goal), col - col_of(goal), B.moves, B.one, B.diagonal) * B.h_cost


@njit
def block_of(tile, B):
    """-> number of the block of a packed tile."""
    return (row_of(tile) >> B.shift) * B.block_cols + (col_of(tile) >> B.shift)


@njit
def corner_of(block, B):
    """-> row, column of the first tile of a block."""
    return (block // B.block_cols) << B.shift, (block % B.block_cols) << B.shift


@njit
def border_number(row, col, B):
    """-> 0..ring-1 of a border tile, from its row and column in the block; -1 for the others.

    Top row, bottom row, then the rest of the left and of the right column.
    """
    n = 1 << B.shift
    if row == 0:
        return col
    if row == n - 1:
        return n + col
    if col == 0:
        return 2 * n + row - 1
    if col == n - 1:
        return 3 * n - 3 + row
    return -1


@njit
def border_tile(number, B):
    """-> row, column in the block of a border tile."""
    n = 1 << B.shift
    if number < n:
        return 0, number
    if number < 2 * n:
        return n - 1, number - n
    if number < 3 * n - 2:
        return number - 2 * n + 1, 0
    return number - 3 * n + 3, n - 1


@njit
def link_of(tile, B):
    """-> number of the (first) link of a packed tile; -1 when it is no border tile."""
    mask = (1 << B.shift) - 1
    number = border_number(row_of(tile) & mask, col_of(tile) & mask, B)
    return -1 if number < 0 else (np.int64(block_of(tile, B)) * B.ring + number) * (1 + B.avoid)


@njit
def links_of_goal(B):
    """-> how many links the border tiles have toward one goal."""
    return np.int64(B.block_rows) * B.block_cols * B.ring * (1 + B.avoid)


@njit
def load_window(costs, H, H_at, block, B, lane, lanes, window, h):
    """Copy a block's window: costs (0 outside the map) and heuristics. costs: (rows * cols,) uint8; H[H_at:]: of all tiles"""
    stride_shift = B.shift + 1
    mask, last = (1 << stride_shift) - 1, (1 << B.shift) + 1
    top, left = corner_of(block, B)
    for i in range(lane, window_size(B.shift), lanes):
        row, col = top - 1 + (i >> stride_shift), left - 1 + (i & mask)
        if 0 <= row < B.rows and 0 <= col < B.cols and i & mask <= last:
            at = np.int64(row) * B.cols + col
            window[i], h[i] = costs[at], H[H_at + at]
        else:
            window[i], h[i] = 0, 0


@njit
def _rise(heap, i, key):
    """Put a key at place i of the heap, or above."""
    while i > 0:
        above = (i - 1) >> 1
        if heap[above] <= key:
            break
        heap[i] = heap[above]
        i = above
    heap[i] = key


@njit
def _sink(heap, size, key):
    """Put a key at the top of a heap of some size, or below."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        least = heap[child]
        if child + 1 < size and heap[child + 1] < least:
            child += 1
            least = heap[child]
        if least >= key:
            break
        heap[i] = least
        i = child
    heap[i] = key


@njit
def outside(tile, n, stride_shift):
    """-> 0 for a tile of the block; for a tile of the ring around it, which of the eight neighbouring blocks it belongs to."""
    row, col = tile >> stride_shift, tile & ((1 << stride_shift) - 1)
    return (1 if row == 0 else 2 if row == n + 1 else 0) + (3 if col == 0 else 6 if col == n + 1 else 0)


@njit
def step_cost(window, base, width, tile, to, k, B):
    """-> cost of move k between two tiles of a window, 0 when it is not allowed. window[base + row * width + column]"""
    stride_shift = B.shift + 1
    mask = (1 << stride_shift) - 1
    cost = np.int64(window[base + (to >> stride_shift) * width + (to & mask)])
    if k < 4 or cost == 0:
        return cost * B.one
    if (window[base + (tile >> stride_shift) * width + (to & mask)] == 0
            or window[base + (to >> stride_shift) * width + (tile & mask)] == 0):
        return np.int64(0)
    return cost * B.diagonal


@njit
def begin(start, nodes, heap):
    """Begin a search: the start tile alone is open. -> stamp of the search; the heap has one key"""
    last = len(nodes) - 1
    if nodes[last] == MOST_STAMP:
        for i in range(last + 1):
            nodes[i] = 0
    nodes[last] += 1
    nodes[start] = nodes[last] << STAMP_SHIFT
    heap[0] = start
    return nodes[last]


@njit
def search(window, h, base, width, last_row, last_col, start, goal, to_border, barred, B, nodes, heap, size, stamp):
    """Go on with an A* until it takes a tile where it ends from the open list.

    window, h: of tile (row, column) of the window at base + row * width + column; the map ends at last_row, last_col
    goal: tile of the window or -1; to_border: end at border tiles of the block, instead of at tiles of neighbouring blocks
    barred: the neighbouring block (of `outside`) where the search may not end; 0: none
    -> the tile, or -1 when the open list is empty; size of the heap. The path can be read from nodes.
    """
    n, stride_shift = 1 << B.shift, B.shift + 1
    mask = (1 << stride_shift) - 1
    h_start = np.int64(h[base + (start >> stride_shift) * width + (start & mask)])
    while size > 0:
        tile = np.int64(heap[0] & TILE_MASK)
        size -= 1
        _sink(heap, size, heap[size])
        node = nodes[tile]
        nodes[tile] = node | CLOSED
        if tile == goal:
            return tile, size
        row, col = tile >> stride_shift, tile & mask
        if to_border:
            if row == 1 or row == n or col == 1 or col == n:
                return tile, size
        else:
            side = outside(tile, n, stride_shift)
            if side > 0:
                if side != barred:
                    return tile, size
                continue
        g = (node >> G_SHIFT) & G_MASK
        for k in range(B.moves):
            to = tile + (ROW_STEP[k] << stride_shift) + COL_STEP[k]
            if to >> stride_shift > last_row or to & mask > last_col:
                continue
            cost = step_cost(window, base, width, tile, to, k, B)
            if cost == 0:
                continue
            new_g, old = g + cost, nodes[to]
            seen = old >> STAMP_SHIFT == stamp
            if seen and (old >> G_SHIFT) & G_MASK <= new_g:
                continue
            nodes[to] = np.int64(stamp) << STAMP_SHIFT | new_g << G_SHIFT | k
            f = min(max(new_g + np.int64(h[base + (to >> stride_shift) * width + (to & mask)]) - h_start, -F_MOST), F_MOST)
            key = f << (TILE_BITS + TIE_BITS) | (TIE_TOP - min(new_g >> B.tie_shift, TIE_TOP)) << TILE_BITS | to
            i = size
            if seen and old & CLOSED == 0:  # open: its key goes down
                i = 0
                while heap[i] & TILE_MASK != to:
                    i += 1
            else:
                size += 1
            _rise(heap, i, key)
    return np.int64(-1), size


@njit
def put_link(links, at, block, found, start, window, base, width, B, nodes, arena, used, page, page_words):
    """Write the link of a search that ended at tile `found` of the window (-1: nowhere).

    used: (pages,) int32 words taken of each page of the arena, also counted when they do not fit
    """
    links[at + END] = -1
    if found < 0:
        return
    stride_shift, bits = B.shift + 1, step_bits(B.moves)
    mask = (1 << stride_shift) - 1
    steps, straight, diagonal, word, tile = 0, 0, 0, np.uint32(0), found
    while tile != start:
        k = nodes[tile] & MOVE_MASK
        if steps < WORD_BITS // bits:
            word |= np.uint32(k) << np.uint32(steps * bits)
        cost = np.int32(window[base + (tile >> stride_shift) * width + (tile & mask)])
        if k < 4:
            straight += cost
        else:
            diagonal += cost
        steps += 1
        tile -= (ROW_STEP[k] << stride_shift) + COL_STEP[k]
    if steps * bits > WORD_BITS:
        words = word_count(steps, bits)
        first = add(used, page, words)
        if first + words > page_words:
            return
        first += page * page_words
        tile, word = found, np.uint32(0)
        for number in range(steps):
            k = nodes[tile] & MOVE_MASK
            place = number * bits % WORD_BITS
            word |= np.uint32(k) << np.uint32(place)
            if place + bits == WORD_BITS or number == steps - 1:
                arena[first + number * bits // WORD_BITS] = word
                word = np.uint32(0)
            tile -= (ROW_STEP[k] << stride_shift) + COL_STEP[k]
        word = np.uint32(first)
    top, left = corner_of(block, B)
    links[at + END] = pack(top - 1 + (found >> stride_shift), left - 1 + (found & mask))
    links[at + MOVES] = np.int32(word)
    links[at + STEPS] = steps << STEPS_SHIFT | straight
    links[at + DIAGONALS] = diagonal


@njit
def window_tile(tile, block, B):
    """-> tile of a block's window of a packed tile of the map; -1 when the window does not hold it."""
    top, left = corner_of(block, B)
    row, col, last = row_of(tile) - top + 1, col_of(tile) - left + 1, (1 << B.shift) + 1
    return row << (B.shift + 1) | col if 0 <= row <= last and 0 <= col <= last else -1


@njit
def search_from_border(number, block, goal, window, h, B, nodes, heap, links, links_at, arena, used, page, page_words):
    """Border-to-border: the links of one border tile of a block, to the first tile of a neighbouring block or the goal.

    With B.avoid the search goes on to the first tile of another neighbouring block, for agents that have come from the first
    one, if it borders on the tile.
    links_at: of the links of this goal
    """
    stride_shift, last, width = B.shift + 1, (1 << B.shift) + 1, 2 << B.shift
    row, col = border_tile(number, B)
    start = (row + 1) << stride_shift | (col + 1)
    at = (links_at + (np.int64(block) * B.ring + number) * (1 + B.avoid)) * LINK
    links[at + END] = -1
    if B.avoid:
        links[at + LINK + END] = -1
    in_window = window_tile(goal, block, B)
    if window[start] == 0 or start == in_window:
        return
    stamp = begin(start, nodes, heap)
    found, size = search(window, h, 0, width, last, last, start, in_window, False, 0, B, nodes, heap, 1, stamp)
    put_link(links, at, block, found, start, window, 0, width, B, nodes, arena, used, page, page_words)
    if B.avoid == 0 or found < 0 or found == in_window:
        return
    first = outside(found, 1 << B.shift, stride_shift)
    for k in range(B.moves):
        to = start + (ROW_STEP[k] << stride_shift) + COL_STEP[k]
        if outside(to, 1 << B.shift, stride_shift) == first and step_cost(window, 0, width, start, to, k, B) > 0:
            found, size = search(window, h, 0, width, last, last, start, in_window, False, first, B, nodes, heap, size, stamp)
            put_link(links, at + LINK, block, found, start, window, 0, width, B, nodes, arena, used, page, page_words)
            return


@njit
def search_from_start(start, goal, costs, H, H_at, B, nodes, heap, links, at, arena, used, page, page_words):
    """Start-to-border: the link of one agent, to the first border tile of its block or the goal, by the map in global memory."""
    block = block_of(start, B)
    top, left = corner_of(block, B)
    base = (top - 1) * np.int64(B.cols) + left - 1
    tile = window_tile(start, block, B)
    stamp = begin(tile, nodes, heap)
    found, _ = search(costs, H[H_at:], base, B.cols, B.rows - top, B.cols - left, tile, window_tile(goal, block, B), True, 0, B,
                      nodes, heap, 1, stamp)
    put_link(links, at, block, found, tile, costs, base, B.cols, B, nodes, arena, used, page, page_words)


@njit
def next_link(links, links_at, tile, came_from, goal, B):
    """-> place of the link that an agent takes from a border tile, having come from a block (-1: it began in this one)."""
    at = (links_at + link_of(tile, B)) * LINK
    if B.avoid and came_from >= 0:
        to = links[at + END]
        if to >= 0 and to != goal and block_of(to, B) == came_from:
            at += LINK
    return at


@njit
def walk(first, links, links_at, goal, B):
    """Follow links from the agent's own, `first`.

    -> status, steps, cost of straight steps, cost of diagonal steps. A loop is noticed by Brent's algorithm. NO_PATH is proven: the
    start's tiles do not reach their block's border.
    """
    tile = first[END]
    if tile < 0:
        return NO_PATH, 0, np.int64(0), np.int64(0)
    steps = first[STEPS] >> STEPS_SHIFT
    straight, diagonal = np.int64(first[STEPS] & STRAIGHT_MASK), np.int64(first[DIAGONALS])
    came_from, marked, marked_from, left, power = -1, -1, -1, 1, 1
    while tile != goal:
        at = next_link(links, links_at, tile, came_from, goal, B)
        came_from, tile = block_of(tile, B), links[at + END]
        if tile < 0 or (tile == marked and (came_from == marked_from or not B.avoid)):  # no link: the only way on leads back
            return LOOP, 0, np.int64(0), np.int64(0)
        left -= 1
        if left == 0:
            power *= 2
            left, marked, marked_from = power, tile, came_from
        steps += links[at + STEPS] >> STEPS_SHIFT
        straight += links[at + STEPS] & STRAIGHT_MASK
        diagonal += links[at + DIAGONALS]
    if steps > MOST_STEPS:
        return STEP_LIMIT, 0, np.int64(0), np.int64(0)
    return SOLVED, steps, straight, diagonal


@njit
def write_moves(first, first_arena, links, links_at, goal, B, arena, words, words_at, steps):
    """Write the packed moves of an agent whose walk has `steps` steps, from its first (the highest bits) to its last.

    first: the agent's own link, with its arena
    """
    bits = step_bits(B.moves)
    tile, came_from = first[END], -1
    end, word = steps * bits, np.uint32(0)  # bits before `end` are still to write; `word` has the bits after it of its word
    moves, length = np.uint32(first[MOVES]), (first[STEPS] >> STEPS_SHIFT) * bits  # of a piece; length in bits
    while True:
        for chunk in range(word_count(length, 1) - 1, -1, -1):  # the piece's words, from the highest
            value = moves
            if length > WORD_BITS:
                value = first_arena[moves + chunk] if came_from < 0 else arena[moves + chunk]
            count = min(WORD_BITS, length - chunk * WORD_BITS)
            begin_bit = end - count
            place = begin_bit % WORD_BITS
            if place + count > WORD_BITS:  # its upper part ends a word
                words[words_at + (end - 1) // WORD_BITS] = word | value >> np.uint32(WORD_BITS - place)
                word = np.uint32(0)
            word |= value << np.uint32(place)
            if place == 0:
                words[words_at + begin_bit // WORD_BITS] = word
                word = np.uint32(0)
            end = begin_bit
        if tile == goal:
            break
        at = next_link(links, links_at, tile, came_from, goal, B)
        came_from, tile = block_of(tile, B), links[at + END]
        moves, length = np.uint32(links[at + MOVES]), (links[at + STEPS] >> STEPS_SHIFT) * bits


@njit
def next_of(i, links, goals, B):
    """-> the link that follows link i (of all goals' links) without B.avoid; -1 after the goal and where there is none."""
    of_goal = i // links_of_goal(B)
    tile = links[i * LINK + END]
    return np.int64(-1) if tile < 0 or tile == goals[of_goal] else of_goal * links_of_goal(B) + link_of(tile, B)


@njit
def raise_tile(i, H, raises, todo, B):
    """Raise the heuristic of the border tile of a link that is in a loop, and note the blocks that see it. Without B.avoid

    raises: (links,) uint8, how often; todo: (goals * blocks,) uint8, set to 1
    """
    if raises[i] == MOST_RAISES:
        return
    of_goal, link = i // links_of_goal(B), i % links_of_goal(B)
    top, left = corner_of(link // B.ring, B)
    row, col = border_tile(link % B.ring, B)
    row, col = top + row, left + col
    H[(of_goal * B.rows + row) * B.cols + col] += np.int64(B.h_cost) * B.one << min(np.int64(raises[i]) >> 1, MOST_DOUBLINGS)
    raises[i] += 1
    mark_seen(row, col, todo[of_goal * B.block_rows * B.block_cols:], B)


@njit
def mark_seen(row, col, todo, B):
    """Set todo of the blocks whose windows hold a tile that their searches look at."""
    for r in range(max(row - 1, 0), min(row + 2, B.rows)):
        for c in range(max(col - 1, 0), min(col + 2, B.cols)):
            if B.moves == 8 or r == row or c == col:
                todo[(r >> B.shift) * B.block_cols + (c >> B.shift)] = 1
