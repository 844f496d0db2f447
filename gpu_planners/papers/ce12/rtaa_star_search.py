"""RTAA* (Koenig & Likhachev 2006): one agent's walk. Compiled for a CPU thread and for a CUDA thread.

An agent searches with A* until `lookahead` states are closed or the goal would be, takes the state s* that would be
closed next, sets h[s] = g[s*] + h[s*] - g[s] for all closed s, walks to s* and searches again from there.

What an agent has learnt is in a hash table of int64 entries, (tile + 1) << 32 | h - initial h, 0: empty. Where the
PROBES entries that a tile may take are all taken, the one that has learnt least gives way; its tile has its initial h
again.

Moves go into chunks of CHUNK words from an arena: first the number of the chunk before (+ 1), then packed moves. Tiles
are packed (`shared`).
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...grid.paths import COL_STEP, NO_PATH, OUT_OF_MEMORY, ROW_STEP, SOLVED, STEP_LIMIT, WORD_BITS, step_bits
from .shared import col_of, heuristic, pack, row_of, take

PROBES = 8  # entries of a table that a tile may take
CHUNK = 32  # words
HASH = 2654435761  # Knuth's
TILE_SHIFT = 32  # of a table's entry
MOST_LEARNT = (1 << TILE_SHIFT) - 1
MOVE_BITS = 4  # of a state's link
STATUS, LENGTH, STRAIGHT, DIAGONALS, LAST_CHUNK = range(5)  # of an agent's record, int64
RECORD = 5


class World(NamedTuple):
    """The map's size and the settings, all int."""

    rows: int
    cols: int
    moves: int  # 4 or 8 of them
    one: int  # `shared.units_of`
    diagonal: int
    h_cost: int  # the least cost of a free tile
    lookahead: int
    most_moves: int
    table_bits: int  # a table has 1 << table_bits entries


class Quest(NamedTuple):
    """What an agent knows.

    goal: packed tile
    costs: (rows * cols,) uint8, 0 blocked
    table: int64 entries from table_at on, what it has learnt
    world: World
    """

    goal: int
    costs: np.ndarray
    table: np.ndarray
    table_at: int
    world: World


class MetStates(NamedTuple):
    """The states that one search meets, (state_count,) each.

    f, g: int64
    tile: int32, packed
    link: int32, state before << MOVE_BITS | move, ~ of that when the state is closed
    """

    f: np.ndarray
    g: np.ndarray
    tile: np.ndarray
    link: np.ndarray


class Trail(NamedTuple):
    """How an agent has come to a tile.

    length: moves;  straight, diagonals: cost of the straight, of the diagonal ones;  chunk, word: the last ones
    """

    tile: int
    length: int
    straight: int
    diagonals: int
    chunk: int
    word: np.uint32


@lean_njit
def cost_of(row, col, quest):
    """-> cost of a tile of the map"""
    return quest.costs[np.int64(row) * quest.world.cols + col]


@lean_njit
def entry_of(tile, quest):
    """-> place in the table of a tile's entry, or where it has none of the entry that it may take"""
    bits = quest.world.table_bits
    mask, first = (1 << bits) - 1, ((np.int64(tile) * HASH) & 0xFFFFFFFF) >> (32 - bits)
    chosen, least = first, np.int64(MOST_LEARNT) + 1
    for i in range(PROBES):
        at = (first + i) & mask
        entry = quest.table[quest.table_at + at]
        if entry == 0 or entry >> TILE_SHIFT == tile + 1:
            chosen = at
            break
        if entry & MOST_LEARNT < least:
            chosen, least = at, entry & MOST_LEARNT
    return quest.table_at + chosen


@lean_njit
def h_of(tile, quest):
    """-> h of a tile, as far as the agent has raised it."""
    entry, initial = quest.table[entry_of(tile, quest)], heuristic(tile, quest.goal, quest.world)
    return initial + (entry & MOST_LEARNT) if entry >> TILE_SHIFT == tile + 1 else initial


@lean_njit
def state_count(lookahead, moves):
    """-> how many states one search can meet."""
    return lookahead * moves + 1


@lean_njit
def is_closed(states, i):
    return states.link[i] < 0


@lean_njit
def move_of(link):
    return link & ((1 << MOVE_BITS) - 1)


@lean_njit
def best_open(states, n):
    """-> of n states the open one with the least f, then the greatest g; -1: nothing is open"""
    best = -1
    for i in range(n):
        if not is_closed(states, i) and (
            best < 0 or states.f[i] < states.f[best] or (states.f[i] == states.f[best] and states.g[i] > states.g[best])
        ):
            best = i
    return best


@lean_njit
def step_cost(row, col, k, quest):
    """-> cost of move k from a tile, 0 where it is not allowed"""
    r, c, world = row + ROW_STEP[k], col + COL_STEP[k], quest.world
    if r < 0 or r >= world.rows or c < 0 or c >= world.cols:
        return np.int64(0)
    cost = np.int64(cost_of(r, c, quest))
    if k < 4 or cost == 0:
        return cost * world.one
    return np.int64(0) if cost_of(r, col, quest) == 0 or cost_of(row, c, quest) == 0 else cost * world.diagonal


@lean_njit
def meet_state(before, k, tile, g, n, quest, states):
    """Move k from a closed state leads to a tile at cost g: note it if that is new, or better

    -> how many states there are
    """
    i = 0
    while i < n and states.tile[i] != tile:
        i += 1
    if i == n:
        states.f[n], states.g[n], states.tile[n] = g + h_of(tile, quest), g, tile
        states.link[n] = before << MOVE_BITS | k
        return n + 1
    if not is_closed(states, i) and g < states.g[i]:
        states.f[i], states.g[i] = states.f[i] - states.g[i] + g, g
        states.link[i] = before << MOVE_BITS | k
    return n


@lean_njit
def search(start, quest, states):
    """A*, until `lookahead` states are closed or the goal would be

    -> the state s* (-1: nothing is open), how many there are
    """
    states.f[0], states.g[0] = h_of(start, quest), 0
    states.tile[0], states.link[0] = start, 0
    n, closed = 1, 0
    while True:
        best = best_open(states, n)
        if best < 0 or closed == quest.world.lookahead or states.tile[best] == quest.goal:
            return best, n
        states.link[best] = ~states.link[best]
        closed += 1
        row, col = row_of(states.tile[best]), col_of(states.tile[best])
        for k in range(quest.world.moves):
            cost = step_cost(row, col, k, quest)
            if cost > 0:
                tile = np.int32(pack(row + ROW_STEP[k], col + COL_STEP[k]))
                n = meet_state(best, k, tile, states.g[best] + cost, n, quest, states)


@lean_njit
def raise_closed(best, n, quest, states):
    """Set h[s] = f[s*] - g[s] for all closed s where that is more."""
    for i in range(n):
        if is_closed(states, i) and states.f[i] < states.f[best]:
            tile = states.tile[i]
            learnt = states.f[best] - states.g[i] - heuristic(tile, quest.goal, quest.world)
            quest.table[entry_of(tile, quest)] = np.int64(tile + 1) << TILE_SHIFT | min(learnt, MOST_LEARNT)


@lean_njit
def turn_round(best, states):
    """Let the links on the way to s* lead from each state to the one after it

    -> the state after the first, -1: there is none
    """
    i, after = best, -1
    while i != 0:
        link = ~states.link[i] if is_closed(states, i) else states.link[i]
        states.link[i] = after << MOVE_BITS | move_of(link)
        after, i = i, link >> MOVE_BITS
    return after


@lean_njit
def word_place(chunk, number, bits):
    """-> where in the arena the word of an agent's move lies, its chunk being known"""
    per_word = WORD_BITS // bits
    return chunk * CHUNK + 1 + number % ((CHUNK - 1) * per_word) // per_word


@lean_njit
def follow(trail, k, tile, bits, quest, arena):
    """-> the trail after move k to a tile; its chunk is -1 where the arena has no room for the move"""
    per_word, chunk = WORD_BITS // bits, trail.chunk
    if trail.length % ((CHUNK - 1) * per_word) == 0:
        chunk = take(arena, 1)
        if chunk >= 0:
            arena.words[chunk * CHUNK] = trail.chunk + 1
    word = np.uint32(trail.word | np.uint32(k) << np.uint32(trail.length % per_word * bits))
    if trail.length % per_word == per_word - 1:
        arena.words[word_place(chunk, trail.length, bits)] = word
        word = np.uint32(0)
    cost = np.int64(cost_of(row_of(tile), col_of(tile), quest))
    straight, diagonal = (cost, np.int64(0)) if k < 4 else (np.int64(0), cost)
    return Trail(tile, trail.length + 1, trail.straight + straight, trail.diagonals + diagonal, chunk, word)


@lean_njit
def walk(start, quest, states, arena, record, at):
    """One agent from start to goal. The table is empty before; record[at:at + RECORD] is written. arena: of chunks"""
    bits = step_bits(quest.world.moves)
    trail, status = Trail(start, 0, np.int64(0), np.int64(0), np.int64(-1), np.uint32(0)), SOLVED
    while trail.tile != quest.goal and status == SOLVED:
        best, n = search(trail.tile, quest, states)
        if best < 0:
            status = NO_PATH
            break
        raise_closed(best, n, quest, states)
        i = turn_round(best, states)
        while i >= 0:
            if trail.length == quest.world.most_moves:
                status = STEP_LIMIT
                break
            after = follow(trail, move_of(states.link[i]), states.tile[i], bits, quest, arena)
            if after.chunk < 0:
                status = OUT_OF_MEMORY
                break
            trail, i = after, states.link[i] >> MOVE_BITS
    if trail.length % (WORD_BITS // bits) > 0:
        arena.words[word_place(trail.chunk, trail.length - 1, bits)] = trail.word
    record[at + STATUS], record[at + LENGTH] = status, trail.length if status == SOLVED else 0
    record[at + STRAIGHT], record[at + DIAGONALS] = trail.straight, trail.diagonals
    record[at + LAST_CHUNK] = trail.chunk


@lean_njit
def write_moves(record, at, chunks, moves, words, first):
    """Write an agent's packed moves, the last one first."""
    bits = step_bits(moves)
    per_word = WORD_BITS // bits
    per_chunk = (CHUNK - 1) * per_word
    chunk, length, word = record[at + LAST_CHUNK], record[at + LENGTH], np.uint32(0)
    source = np.uint32(0)
    for number in range(length):
        step = length - 1 - number
        if number == 0 or step % per_word == per_word - 1:
            source = chunks[word_place(chunk, step, bits)]
        code = (source >> np.uint32(step % per_word * bits)) & np.uint32((1 << bits) - 1)
        word |= code << np.uint32(number % per_word * bits)
        if number % per_word == per_word - 1 or step == 0:
            words[first + number // per_word] = word
            word = np.uint32(0)
        if step % per_chunk == 0:
            chunk = np.int64(chunks[chunk * CHUNK]) - 1
