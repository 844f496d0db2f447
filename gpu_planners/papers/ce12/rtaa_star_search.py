"""RTAA* (Koenig & Likhachev 2006): one agent's walk. Compiled for a CPU thread and for a CUDA thread.

An agent searches with A* until `lookahead` states are closed or the goal would be, takes the state s* that would be
closed next, sets h[s] = g[s*] + h[s*] - g[s] for all closed s, walks to s* and searches again from there.

What an agent has learnt is in a hash table of int64 entries, (tile + 1) << 32 | h - initial h, 0: empty. Where the
PROBES entries that a tile may take are all taken, the one that has learnt least gives way; its tile has its initial h
again.

Moves go into chunks of CHUNK words from an arena: first the number of the chunk before (+ 1), then packed moves. Tiles
are those of `packed_tiles`.
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...grid.paths import COL_STEP, NO_PATH, OUT_OF_MEMORY, ROW_STEP, SOLVED, STEP_LIMIT, WORD_BITS, step_bits
from .arena import take
from .packed_tiles import col_of, least_cost_between, pack, row_of

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
    one: int  # `packed_tiles.units_of`
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
def initial_h(tile, quest):
    """What a way from a tile to the goal costs at least."""
    world, goal = quest.world, quest.goal
    down, right = row_of(tile) - row_of(goal), col_of(tile) - col_of(goal)
    return least_cost_between(down, right, world.moves, world.one, world.diagonal) * world.h_cost


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
def learnt(tile, quest):
    """-> how much the agent has raised the h of a tile."""
    entry = quest.table[entry_of(tile, quest)]
    return entry & MOST_LEARNT if entry >> TILE_SHIFT == tile + 1 else np.int64(0)


@lean_njit
def learn(tile, amount, quest):
    """Keep how much the h of a tile is raised."""
    quest.table[entry_of(tile, quest)] = np.int64(tile + 1) << TILE_SHIFT | min(amount, MOST_LEARNT)


@lean_njit
def state_count(lookahead, moves):
    """-> how many states one search can meet."""
    return lookahead * moves + 1


@lean_njit
def is_closed(states, i):
    return states.link[i] < 0


@lean_njit
def before_of(link):
    """-> the state that a link names"""
    return link >> MOVE_BITS


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
        states.f[n], states.g[n], states.tile[n] = g + initial_h(tile, quest) + learnt(tile, quest), g, tile
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
    states.f[0], states.g[0] = initial_h(start, quest) + learnt(start, quest), 0
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
        if is_closed(states, i):
            initial = initial_h(states.tile[i], quest)
            raised = states.f[best] - states.g[i] - initial
            if raised > states.f[i] - states.g[i] - initial:
                learn(states.tile[i], raised, quest)


@lean_njit
def turn_round(best, states):
    """Let the links on the way to s* lead from each state to the one after it

    -> the state after the first, -1: there is none
    """
    i, after = best, -1
    while i != 0:
        link = ~states.link[i] if is_closed(states, i) else states.link[i]
        states.link[i] = after << MOVE_BITS | move_of(link)
        after, i = i, before_of(link)
    return after


@lean_njit
def word_place(chunk, number, bits):
    """-> where in the arena the word of an agent's move lies, its chunk being known"""
    per_word = WORD_BITS // bits
    return chunk * CHUNK + 1 + number % ((CHUNK - 1) * per_word) // per_word


@lean_njit
def with_room(trail, bits, arena):
    """-> the trail with a chunk for its next move; its chunk is -1 where there is none"""
    if trail.length % ((CHUNK - 1) * (WORD_BITS // bits)) > 0:
        return trail
    new = take(arena, 1)
    if new >= 0:
        arena.words[new * CHUNK] = trail.chunk + 1
    return Trail(trail.tile, trail.length, trail.straight, trail.diagonals, new, trail.word)


@lean_njit
def follow(trail, k, tile, bits, quest, arena):
    """-> the trail after move k to a tile"""
    per_word = WORD_BITS // bits
    word = np.uint32(trail.word | np.uint32(k) << np.uint32(trail.length % per_word * bits))
    if trail.length % per_word == per_word - 1:
        arena.words[word_place(trail.chunk, trail.length, bits)] = word
        word = np.uint32(0)
    cost = np.int64(cost_of(row_of(tile), col_of(tile), quest))
    straight, diagonal = (cost, np.int64(0)) if k < 4 else (np.int64(0), cost)
    length = trail.length + 1
    return Trail(tile, length, trail.straight + straight, trail.diagonals + diagonal, trail.chunk, word)


@lean_njit
def walk(start, quest, states, arena, record, at):
    """One agent from start to goal. The table is empty before; record[at:at + RECORD] is written. arena: of chunks"""
    bits = step_bits(quest.world.moves)
    trail = Trail(start, 0, np.int64(0), np.int64(0), np.int64(-1), np.uint32(0))
    chunk, status = trail.chunk, SOLVED
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
            trail = with_room(trail, bits, arena)
            if trail.chunk < 0:
                status = OUT_OF_MEMORY
                break
            chunk = trail.chunk
            trail = follow(trail, move_of(states.link[i]), states.tile[i], bits, quest, arena)
            i = before_of(states.link[i])
    if trail.length % (WORD_BITS // bits) > 0:
        arena.words[word_place(chunk, trail.length - 1, bits)] = trail.word
    record[at + STATUS], record[at + LENGTH] = status, trail.length if status == SOLVED else 0
    record[at + STRAIGHT], record[at + DIAGONALS], record[at + LAST_CHUNK] = trail.straight, trail.diagonals, chunk


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
