"""P-BA* [CE12]: the searches inside planning blocks, paths along the links that they find, and loops of links.

Compiled for CPU threads and CUDA. A search's memory is two int64 arrays: `nodes`, one word for each tile of the window
(stamp of the search, g, closed, move that led there), which need not be cleared between searches, with the last stamp
after them, and `heap`, a binary heap of keys (f, then greater g, then tile).
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...grid.paths import LOOP, MOST_STEPS, NO_PATH, SOLVED, STEP_LIMIT, WORD_BITS, step_bits, word_count
from .pba_star_blocks import (
    DIAGONALS,
    END,
    LINK,
    MOVES,
    STEPS,
    STEPS_SHIFT,
    BlockWindow,
    block_of,
    border_tile,
    col_in,
    corner_of,
    h_of,
    heap_size,
    link_of,
    links_of_goal,
    map_tile,
    map_toward,
    map_window,
    mark_seen,
    move_in,
    on_border,
    outside,
    place_in,
    read_link,
    row_in,
    step_cost,
    tile_in,
    window_size,
    window_tile,
)
from .shared import take

MOST_RAISES = 96  # of one border tile
MOST_DOUBLINGS = 12  # of the amount it is raised by
TILE_BITS = 12  # of a key, the lowest
TIE_BITS = 11  # of a key, between the tile and f
TIE_TOP = (1 << TIE_BITS) - 1
# of a node; the move is below
CLOSED_BIT = 8
G_SHIFT = 4
STAMP_SHIFT = 48
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
def scratch_size(shift):
    """-> int64 that the memory of one search takes."""
    return window_size(shift) + 1 + heap_size(shift)


@lean_njit
def memory_of(scratch, number, shift):
    """-> the memory of one of the searches that run at once. scratch: int64 of all, 0 at first"""
    begin = number * np.int64(scratch_size(shift))
    end = begin + scratch_size(shift)
    return SearchMemory(scratch[begin : end - heap_size(shift)], scratch[end - heap_size(shift) : end])


@lean_njit
def g_of(node):
    return (node >> G_SHIFT) & ((1 << (STAMP_SHIFT - G_SHIFT)) - 1)


@lean_njit
def move_of(node):
    return node & 7


@lean_njit
def key_of(f, g, tile, layout):
    tie = TIE_TOP - min(g >> layout.tie_shift, TIE_TOP)
    return min(max(f, -F_MOST), F_MOST) << (TILE_BITS + TIE_BITS) | tie << TILE_BITS | tile


@lean_njit
def tile_of_key(key):
    return np.int64(key & ((1 << TILE_BITS) - 1))


@lean_njit
def pop(heap, size):
    """Take the least key from the open list -> its tile, the new size"""
    tile, size, i = tile_of_key(heap[0]), size - 1, 0
    key = heap[size]  # goes where it belongs, from the top down
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= key:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = key
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
    while i > 0 and heap[(i - 1) >> 1] > key:
        heap[i] = heap[(i - 1) >> 1]
        i = (i - 1) >> 1
    heap[i] = key
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
        to = tile + move_in(k, layout)
        if row_in(to, layout) > window.last_row or col_in(to, layout) > window.last_col:
            continue
        cost = step_cost(window, tile, to, k, layout)
        if cost == 0:
            continue
        new_g, old = g + cost, nodes[to]
        seen = old >> STAMP_SHIFT == search.stamp
        if seen and g_of(old) <= new_g:
            continue
        nodes[to] = np.int64(search.stamp) << STAMP_SHIFT | new_g << G_SHIFT | k
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
def put_link(numbers, at, search, found, arena, layout):
    """Write the link of a search that ended at tile `found` of its window, -1: nowhere.

    Moves that do not fit into the link go into the arena; where these do not fit there, the link leads nowhere.
    """
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
        tile -= move_in(k, layout)
    if steps * bits > WORD_BITS:
        first, tile, word = take(arena, word_count(steps, bits)), found, np.uint32(0)
        if first < 0:
            return
        for number in range(steps):
            k = move_of(search.nodes[tile])
            place = number * bits % WORD_BITS
            word |= np.uint32(k) << np.uint32(place)
            if place + bits == WORD_BITS or number == steps - 1:
                arena.words[first + number * bits // WORD_BITS] = word
                word = np.uint32(0)
            tile -= move_in(k, layout)
        word = np.uint32(first)
    numbers[at + END] = map_tile(found, window.block, layout)
    numbers[at + MOVES] = np.int32(word)
    numbers[at + STEPS] = steps << STEPS_SHIFT | straight
    numbers[at + DIAGONALS] = diagonal


@lean_njit
def from_border(number, goal, window, layout, memory, links, arena):
    """Border-to-border: the links of one border tile of a block, to the first tile of a neighbouring block or the goal.

    goal: a number of links.goals
    With layout.avoid the search goes on to the first tile of another neighbouring block, for agents that have come from
    the first one, if it borders on the tile.
    """
    row, col = border_tile(number, layout)
    start = tile_in(row + 1, col + 1, layout)
    link = goal * links_of_goal(layout) + (np.int64(window.block) * layout.ring + number) * (1 + layout.avoid)
    at = link * LINK
    links.numbers[at + END] = -1
    if layout.avoid:
        links.numbers[at + LINK + END] = -1
    if window.costs[start] == 0 or start == window_tile(links.goals[goal], window.block, layout):
        return
    search = begin(start, links.goals[goal], window, memory, layout)
    found, size = search_on(search, 1, False, 0, layout)
    put_link(links.numbers, at, search, found, arena, layout)
    if layout.avoid == 0 or found < 0 or found == search.goal:
        return
    first = outside(found, layout)
    for k in range(layout.moves):
        to = start + move_in(k, layout)
        if outside(to, layout) == first and step_cost(window, start, to, k, layout) > 0:
            found, size = search_on(search, size, False, first, layout)
            put_link(links.numbers, at + LINK, search, found, arena, layout)
            return


@lean_njit
def from_start(i, start, goal, maps, layout, memory, own, arena):
    """Start-to-border: agent i's own link, to the first border tile of its block or the goal.

    start: packed;  goal: a number of own.goals
    """
    block = block_of(start, layout)
    window = map_window(block, map_toward(goal, maps, layout), layout)
    search = begin(window_tile(start, block, layout), own.goals[goal], window, memory, layout)
    found, _ = search_on(search, 1, True, 0, layout)
    put_link(own.numbers, i * LINK, search, found, arena, layout)


@lean_njit
def next_link(links, goal, tile, came_from, layout):
    """-> the link that an agent takes from a border tile. came_from: its block before, -1: it began here"""
    at = (goal * links_of_goal(layout) + link_of(tile, layout)) * LINK
    if layout.avoid and came_from >= 0:
        to = links.numbers[at + END]
        if to >= 0 and to != links.goals[goal] and block_of(to, layout) == came_from:
            at += LINK
    return read_link(links.numbers, at)


@lean_njit
def walk(i, own, links, goal, layout):
    """Follow links from agent i's own one toward its goal, a number of links.goals.

    -> status, steps, cost of straight steps, cost of diagonal steps. A loop is noticed by Brent's algorithm. NO_PATH is
    proven: the start's tiles do not reach their block's border.
    """
    link = read_link(own.numbers, i * LINK)
    tile, steps = link.end, link.steps
    if tile < 0:
        return NO_PATH, 0, np.int64(0), np.int64(0)
    straight, diagonal = np.int64(link.straight), np.int64(link.diagonal)
    came_from, marked, marked_from, left, power = -1, -1, -1, 1, 1
    while tile != links.goals[goal]:
        link = next_link(links, goal, tile, came_from, layout)
        came_from, tile = block_of(tile, layout), link.end
        again = tile == marked and (came_from == marked_from or not layout.avoid)
        if tile < 0 or again:  # no link: the only way on leads back
            return LOOP, 0, np.int64(0), np.int64(0)
        left -= 1
        if left == 0:
            power *= 2
            left, marked, marked_from = power, tile, came_from
        steps += link.steps
        straight += link.straight
        diagonal += link.diagonal
    if steps > MOST_STEPS:
        return STEP_LIMIT, 0, np.int64(0), np.int64(0)
    return SOLVED, steps, straight, diagonal


@lean_njit
def _write_piece(link, source, end, word, words, at, bits):
    """Write the moves of a link below bit `end` of an agent's words, which begin at words[at].

    source: where long moves lie;  word: the bits after `end` of its word
    -> the bit where the moves begin, the bits after it of its word
    """
    length = link.steps * bits
    for chunk in range((length - 1) // WORD_BITS, -1, -1):  # the piece's words, from the highest
        value = link.moves
        if length > WORD_BITS:
            value = source[link.moves + chunk]
        count = min(WORD_BITS, length - chunk * WORD_BITS)
        begin_bit = end - count
        place = begin_bit % WORD_BITS
        if place + count > WORD_BITS:  # its upper part ends a word
            words[at + (end - 1) // WORD_BITS] = word | value >> np.uint32(WORD_BITS - place)
            word = np.uint32(0)
        word |= value << np.uint32(place)
        if place == 0:
            words[at + begin_bit // WORD_BITS] = word
            word = np.uint32(0)
        end = begin_bit
    return end, word


@lean_njit
def write_moves(i, own, links, goal, layout, steps, words, at):
    """Write the packed moves of agent i's walk of some steps, from its first (the highest bits) to its last."""
    bits = step_bits(layout.moves)
    link, source, came_from = read_link(own.numbers, i * LINK), own.words, -1
    end, word = steps * bits, np.uint32(0)
    while True:
        end, word = _write_piece(link, source, end, word, words, at, bits)
        tile = link.end
        if tile == links.goals[goal]:
            return
        link, source = next_link(links, goal, tile, came_from, layout), links.words
        came_from = block_of(tile, layout)


@lean_njit
def next_of(i, links, layout):
    """-> the link that follows link i of all goals' links, -1: none, or it ends at the goal. Without layout.avoid"""
    goal, tile = i // links_of_goal(layout), links.numbers[i * LINK + END]
    if tile < 0 or tile == links.goals[goal]:
        return np.int64(-1)
    return goal * links_of_goal(layout) + link_of(tile, layout)


@lean_njit
def raise_tile(i, h, raises, todo, layout):
    """Raise the heuristic of the border tile of a link in a loop, and note the blocks that see it. Without layout.avoid

    h: (goals * tiles,) of all goals; raises: (links,) uint8, how often; todo: (goals * blocks,) uint8, set to 1
    """
    if raises[i] == MOST_RAISES:
        return
    of_goal, link = i // links_of_goal(layout), i % links_of_goal(layout)
    top, left = corner_of(link // layout.ring, layout)
    row, col = border_tile(link % layout.ring, layout)
    row, col = top + row, left + col
    amount = np.int64(layout.h_cost) * layout.one << min(np.int64(raises[i]) >> 1, MOST_DOUBLINGS)
    h[(of_goal * layout.rows + row) * layout.cols + col] += amount
    raises[i] += 1
    mark_seen(row, col, todo[of_goal * layout.block_rows * layout.block_cols :], layout)
