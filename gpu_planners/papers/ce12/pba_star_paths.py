"""P-BA*: paths along links, and loops of links. Compiled for CPU threads and CUDA."""

import numpy as np

from ...device import lean_njit
from ...grid.paths import LOOP, MOST_STEPS, NO_PATH, SOLVED, STEP_LIMIT, WORD_BITS, step_bits, word_count
from .pba_star_blocks import END, LINK, block_of, border_tile, corner_of, link_of, links_of_goal, read_link

MOST_RAISES = 96  # of one border tile
MOST_DOUBLINGS = 12  # of the amount it is raised by


@lean_njit
def next_link(links, tile, came_from, goal, layout):
    """-> place of the link that an agent takes from a border tile. came_from: its block before, -1: it began here"""
    at = (links.at + link_of(tile, layout)) * LINK
    if layout.avoid and came_from >= 0:
        to = links.numbers[at + END]
        if to >= 0 and to != goal and block_of(to, layout) == came_from:
            at += LINK
    return at


@lean_njit
def walk(own, links, goal, layout):
    """Follow links from the agent's own.

    -> status, steps, cost of straight steps, cost of diagonal steps. A loop is noticed by Brent's algorithm. NO_PATH is
    proven: the start's tiles do not reach their block's border.
    """
    link = read_link(own.numbers, own.at)
    tile, steps = link.end, link.steps
    if tile < 0:
        return NO_PATH, 0, np.int64(0), np.int64(0)
    straight, diagonal = np.int64(link.straight), np.int64(link.diagonal)
    came_from, marked, marked_from, left, power = -1, -1, -1, 1, 1
    while tile != goal:
        link = read_link(links.numbers, next_link(links, tile, came_from, goal, layout))
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
    for chunk in range(word_count(length, 1) - 1, -1, -1):  # the piece's words, from the highest
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
def write_moves(own, links, goal, layout, steps, words, at):
    """Write the packed moves of an agent's walk of some steps, from its first (the highest bits) to its last."""
    bits = step_bits(layout.moves)
    link, source, came_from = read_link(own.numbers, own.at), own.words, -1
    end, word = steps * bits, np.uint32(0)
    while True:
        end, word = _write_piece(link, source, end, word, words, at, bits)
        tile = link.end
        if tile == goal:
            return
        link, source = read_link(links.numbers, next_link(links, tile, came_from, goal, layout)), links.words
        came_from = block_of(tile, layout)


@lean_njit
def next_of(i, numbers, goals, layout):
    """-> the link that follows link i of all goals' links, -1: none, or it ends at the goal. Without layout.avoid"""
    of_goal = i // links_of_goal(layout)
    tile = numbers[i * LINK + END]
    if tile < 0 or tile == goals[of_goal]:
        return np.int64(-1)
    return of_goal * links_of_goal(layout) + link_of(tile, layout)


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


@lean_njit
def mark_seen(row, col, todo, layout):
    """Set todo of the blocks whose windows hold a tile that their searches look at."""
    for r in range(max(row - 1, 0), min(row + 2, layout.rows)):
        for c in range(max(col - 1, 0), min(col + 2, layout.cols)):
            if layout.moves == 8 or r == row or c == col:
                todo[(r >> layout.shift) * layout.block_cols + (c >> layout.shift)] = 1
