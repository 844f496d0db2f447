"""P-BA* [CE12]: the searches inside planning blocks. Compiled for CPU threads and CUDA.

A search's memory is two int64 arrays: `nodes`, one word for each tile of the window (stamp of the search, g, closed,
move that led there), which need not be cleared between searches, with the last stamp after them, and `heap`, a binary
heap of keys (f, then greater g, then tile).
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...grid.paths import WORD_BITS, step_bits, word_count
from .arena import take
from .pba_star_blocks import (
    END,
    LINK,
    BlockWindow,
    Link,
    after_move,
    before_move,
    block_of,
    border_tile,
    col_in,
    h_of,
    map_tile,
    map_window,
    on_border,
    outside,
    place_in,
    row_in,
    step_cost,
    tile_in,
    window_tile,
    write_link,
)

TILE_BITS, TIE_BITS = 12, 11  # of a key, below f
TIE_TOP = (1 << TIE_BITS) - 1
CLOSED_BIT, G_SHIFT, STAMP_SHIFT = 8, 4, 48  # of a node; the move is below
MOST_STAMP = (1 << 15) - 1
F_MOST = (1 << 40) - 1  # of a key; only heuristics raised many times come there


class SearchMemory(NamedTuple):
    """Of one search at a time, see above."""

    nodes: np.ndarray
    heap: np.ndarray


class BlockSearch(NamedTuple):
    """A search that has begun.

    start, goal: tiles of the window, -1 where it does not hold the goal
    h_start: heuristic of the start
    nodes, heap: as of `SearchMemory`;  stamp: of this search
    """

    window: BlockWindow
    start: int
    goal: int
    h_start: int
    nodes: np.ndarray
    heap: np.ndarray
    stamp: int


@lean_njit
def node_of(stamp, g, move):
    return np.int64(stamp) << STAMP_SHIFT | g << G_SHIFT | move


@lean_njit
def g_of(node):
    return (node >> G_SHIFT) & ((1 << (STAMP_SHIFT - G_SHIFT)) - 1)


@lean_njit
def move_of(node):
    return node & 7


@lean_njit
def is_of(node, search):
    """Has this search met the node's tile?"""
    return node >> STAMP_SHIFT == search.stamp


@lean_njit
def key_of(f, g, tile, layout):
    tie = TIE_TOP - min(g >> layout.tie_shift, TIE_TOP)
    return min(max(f, -F_MOST), F_MOST) << (TILE_BITS + TIE_BITS) | tie << TILE_BITS | tile


@lean_njit
def tile_of_key(key):
    return np.int64(key & ((1 << TILE_BITS) - 1))


@lean_njit
def _rise(heap, i, key):
    """Put a key at place i of the heap, or above."""
    while i > 0:
        above = (i - 1) >> 1
        if heap[above] <= key:
            break
        heap[i] = heap[above]
        i = above
    heap[i] = key


@lean_njit
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


@lean_njit
def pop(heap, size):
    """Take the least key from the open list -> its tile, the new size"""
    tile = tile_of_key(heap[0])
    size -= 1
    _sink(heap, size, heap[size])
    return tile, size


@lean_njit
def put(heap, size, key, is_open):
    """Put a tile on the open list, or, if it is open already, lower its key -> the new size"""
    i = size
    if is_open:
        i = 0
        while tile_of_key(heap[i]) != tile_of_key(key):
            i += 1
    else:
        size += 1
    _rise(heap, i, key)
    return size


@lean_njit
def begin(start, goal, window, memory, layout):
    """Begin a search: the start tile alone is open, so that the heap has one key. start: of the window; goal: packed"""
    nodes, last = memory.nodes, len(memory.nodes) - 1
    if nodes[last] == MOST_STAMP:
        for i in range(last + 1):
            nodes[i] = 0
    nodes[last] += 1
    nodes[start] = nodes[last] << STAMP_SHIFT
    memory.heap[0] = start
    goal_tile, h_start = window_tile(goal, window.block, layout), h_of(window, start, layout)
    return BlockSearch(window, start, goal_tile, h_start, nodes, memory.heap, nodes[last])


@lean_njit
def expand(tile, search, size, layout):
    """Close a tile: its neighbours are open, if this way to them is the best known -> the open list's new size"""
    window, nodes = search.window, search.nodes
    g = g_of(nodes[tile])
    for k in range(layout.moves):
        to = after_move(tile, k, layout)
        if row_in(to, layout) > window.last_row or col_in(to, layout) > window.last_col:
            continue
        cost = step_cost(window, tile, to, k, layout)
        if cost == 0:
            continue
        new_g, old = g + cost, nodes[to]
        seen = is_of(old, search)
        if seen and g_of(old) <= new_g:
            continue
        nodes[to] = node_of(search.stamp, new_g, k)
        f = new_g + h_of(window, to, layout) - search.h_start
        size = put(search.heap, size, key_of(f, new_g, to, layout), seen and old & CLOSED_BIT == 0)
    return size


@lean_njit
def search_on(search, size, at_border, barred, layout):
    """Go on with an A* until it takes the goal from the open list, or a tile where it may end: with at_border a border
    tile of the block, else one of a neighbouring block that is not `barred` (of `outside`, 0: none)

    -> the tile, -1 when the open list is empty; size of the open list
    """
    while size > 0:
        tile, size = pop(search.heap, size)
        search.nodes[tile] |= CLOSED_BIT
        side = outside(tile, layout)
        may_end = on_border(tile, layout) if at_border else side > 0 and side != barred
        if tile == search.goal or may_end:
            return tile, size
        if side == 0:
            size = expand(tile, search, size, layout)
    return np.int64(-1), size


@lean_njit
def _write_long_moves(search, found, steps, arena, layout):
    """Write moves that do not fit into a link into the arena

    -> number of the first word, -1 where they do not fit there
    """
    bits = step_bits(layout.moves)
    first, tile, word = take(arena, word_count(steps, bits)), found, np.uint32(0)
    if first >= 0:
        for number in range(steps):
            k = move_of(search.nodes[tile])
            place = number * bits % WORD_BITS
            word |= np.uint32(k) << np.uint32(place)
            if place + bits == WORD_BITS or number == steps - 1:
                arena.words[first + number * bits // WORD_BITS] = word
                word = np.uint32(0)
            tile = before_move(tile, k, layout)
    return first


@lean_njit
def put_link(numbers, at, search, found, arena, layout):
    """Write the link of a search that ended at tile `found` of its window (-1: nowhere)."""
    numbers[at + END] = -1
    if found < 0:
        return
    window, bits = search.window, step_bits(layout.moves)
    steps, straight, diagonal, word, tile = 0, 0, 0, np.uint32(0), found
    while tile != search.start:
        k = move_of(search.nodes[tile])
        if steps < WORD_BITS // bits:
            word |= np.uint32(k) << np.uint32(steps * bits)
        cost = np.int32(window.costs[place_in(window, row_in(tile, layout), col_in(tile, layout))])
        if k < 4:
            straight += cost
        else:
            diagonal += cost
        steps += 1
        tile = before_move(tile, k, layout)
    if steps * bits > WORD_BITS:
        first = _write_long_moves(search, found, steps, arena, layout)
        if first < 0:
            return
        word = np.uint32(first)
    write_link(numbers, at, Link(map_tile(found, window.block, layout), word, steps, straight, diagonal))


@lean_njit
def search_from_border(number, goal, window, layout, memory, links, arena):
    """Border-to-border: the links of one border tile of a block, to the first tile of a neighbouring block or the goal.

    With layout.avoid the search goes on to the first tile of another neighbouring block, for agents that have come from
    the first one, if it borders on the tile.
    """
    row, col = border_tile(number, layout)
    start = tile_in(row + 1, col + 1, layout)
    at = (links.at + (np.int64(window.block) * layout.ring + number) * (1 + layout.avoid)) * LINK
    links.numbers[at + END] = -1
    if layout.avoid:
        links.numbers[at + LINK + END] = -1
    if window.costs[start] == 0 or start == window_tile(goal, window.block, layout):
        return
    search = begin(start, goal, window, memory, layout)
    found, size = search_on(search, 1, False, 0, layout)
    put_link(links.numbers, at, search, found, arena, layout)
    if layout.avoid == 0 or found < 0 or found == search.goal:
        return
    first = outside(found, layout)
    for k in range(layout.moves):
        to = after_move(start, k, layout)
        if outside(to, layout) == first and step_cost(window, start, to, k, layout) > 0:
            found, size = search_on(search, size, False, first, layout)
            put_link(links.numbers, at + LINK, search, found, arena, layout)
            return


@lean_njit
def search_from_start(start, goal, goal_map, layout, memory, own, arena):
    """Start-to-border: an agent's own link, to the first border tile of its block or the goal."""
    block = block_of(start, layout)
    window = map_window(block, goal_map, layout)
    search = begin(window_tile(start, block, layout), goal, window, memory, layout)
    found, _ = search_on(search, 1, True, 0, layout)
    put_link(own.numbers, own.at, search, found, arena, layout)
