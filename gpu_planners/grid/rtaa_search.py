"""RTAA* (Koenig & Likhachev 2006): one agent's walk. Compiled for a CPU thread and for a CUDA thread.

An agent searches with A* until `lookahead` states are closed or the goal would be, takes the state s* that would be closed next,
sets h[s] = g[s*] + h[s*] - g[s] for all closed s, walks to s* and searches again from there.

What an agent has learnt is in a hash table of int64 entries, (tile + 1) << 32 | h - initial h, 0: empty. Where the WINDOW
entries that a tile may take are all taken, the one that has learnt least gives way; its tile has its initial h again.

Moves go into chunks of CHUNK words from an arena: first the number of the chunk before (+ 1), then packed moves. Tiles are those
of `packed_tiles`.
"""

from typing import NamedTuple

import numpy as np

from ..device import njit
from ..team import add
from .agents import COL_STEP, ROW_STEP, WORD_BITS, AgentStatus, step_bits
from .packed_tiles import col_of, least_cost_between, pack, row_of

ONE, DIAGONAL = 1 << 12, 5793  # 8-connected: a tile length, a diagonal of sqrt(2), in fixed point
WINDOW = 8
CHUNK = 32
HASH = 2654435761  # Knuth's
TILE_SHIFT = 32  # of a table's entry
MOST_LEARNT = (1 << TILE_SHIFT) - 1
MOVE_BITS = 4  # of a state's P
MOVE_MASK = (1 << MOVE_BITS) - 1
SOLVED, NO_PATH, OUT_OF_MEMORY, STEP_LIMIT = (int(AgentStatus[s]) for s in ("SOLVED", "NO_PATH", "OUT_OF_MEMORY", "STEP_LIMIT"))
STATUS, LENGTH, STRAIGHT, DIAGONALS, LAST = range(5)  # of an agent's record, int64
RECORD = 5


def units_of(moves):
    """-> cost of a straight step and of a diagonal one onto a tile of cost 1, as the searches count."""
    return (1, 0) if moves == 4 else (ONE, DIAGONAL)


class World(NamedTuple):
    """The map's size and the settings, all int."""

    rows: int
    cols: int
    moves: int  # 4 or 8 of them
    one: int  # `units_of`
    diagonal: int
    h_cost: int  # the least cost of a free tile
    lookahead: int
    most_moves: int
    table_bits: int  # a table has 1 << table_bits entries


@njit
def initial_h(tile, goal, W):
    """What a way from a tile to the goal costs at least."""
    return least_cost_between(row_of(tile) - row_of(goal), col_of(tile) - col_of(goal), W.moves, W.one, W.diagonal) * W.h_cost


@njit
def first_entry(tile, W):
    """-> the first of the entries that a tile may take."""
    return ((np.int64(tile) * HASH) & 0xFFFFFFFF) >> (32 - W.table_bits)


@njit
def learnt(table, table_at, tile, W):
    """-> how much an agent has raised the h of a tile."""
    mask, first = (1 << W.table_bits) - 1, first_entry(tile, W)
    for i in range(WINDOW):
        entry = table[table_at + ((first + i) & mask)]
        if entry == 0:
            break
        if entry >> TILE_SHIFT == tile + 1:
            return entry & MOST_LEARNT
    return np.int64(0)


@njit
def learn(table, table_at, tile, amount, W):
    """Keep how much the h of a tile is raised."""
    mask, first = (1 << W.table_bits) - 1, first_entry(tile, W)
    chosen, least = first, np.int64(MOST_LEARNT) + 1
    for i in range(WINDOW):
        at = (first + i) & mask
        entry = table[table_at + at]
        if entry == 0 or entry >> TILE_SHIFT == tile + 1:
            chosen = at
            break
        if entry & MOST_LEARNT < least:
            chosen, least = at, entry & MOST_LEARNT
    table[table_at + chosen] = np.int64(tile + 1) << TILE_SHIFT | min(amount, MOST_LEARNT)


@njit
def state_count(lookahead, moves):
    """-> how many states one search can meet."""
    return lookahead * moves + 1


@njit
def search(start, goal, costs, table, table_at, W, F, G, T, P):
    """One search. F, G: (state_count,) int64 f and g; T: (state_count,) int32 tile; P: (state_count,) int32
    state before << MOVE_BITS | move, ~ of that when closed

    -> the state s* (-1: nothing is open), how many states there are
    """
    F[0], G[0], T[0], P[0] = initial_h(start, goal, W) + learnt(table, table_at, start, W), 0, start, 0
    n, closed = 1, 0
    while True:
        best = -1
        for i in range(n):
            if P[i] >= 0 and (best < 0 or F[i] < F[best] or (F[i] == F[best] and G[i] > G[best])):
                best = i
        if best < 0 or closed == W.lookahead or T[best] == goal:
            return best, n
        P[best] = ~P[best]
        closed += 1
        row, col = row_of(T[best]), col_of(T[best])
        for k in range(W.moves):
            r, c = row + ROW_STEP[k], col + COL_STEP[k]
            if r < 0 or r >= W.rows or c < 0 or c >= W.cols:
                continue
            cost = np.int64(costs[np.int64(r) * W.cols + c])
            if cost == 0 or (k >= 4 and (costs[np.int64(r) * W.cols + col] == 0 or costs[np.int64(row) * W.cols + c] == 0)):
                continue
            g, tile = G[best] + cost * (W.one if k < 4 else W.diagonal), np.int32(pack(r, c))
            i = 0
            while i < n and T[i] != tile:
                i += 1
            if i == n:
                F[n], G[n], T[n] = g + initial_h(tile, goal, W) + learnt(table, table_at, tile, W), g, tile
                P[n] = best << MOVE_BITS | k
                n += 1
            elif P[i] >= 0 and g < G[i]:
                F[i], G[i] = F[i] - G[i] + g, g
                P[i] = best << MOVE_BITS | k


@njit
def walk(start, goal, costs, table, table_at, W, F, G, T, P, chunks, used, page, page_chunks, record, at):
    """One agent from start to goal. The table is empty before; record[at:at + RECORD] is written."""
    bits = step_bits(W.moves)
    per_word = WORD_BITS // bits
    per_chunk = (CHUNK - 1) * per_word
    tile, length, straight, diagonals, chunk, word = start, 0, np.int64(0), np.int64(0), np.int64(-1), np.uint32(0)
    status = SOLVED
    while tile != goal and status == SOLVED:
        best, n = search(tile, goal, costs, table, table_at, W, F, G, T, P)
        if best < 0:
            status = NO_PATH
            break
        for i in range(n):
            if P[i] < 0:
                raised = F[best] - G[i] - initial_h(T[i], goal, W)
                if raised > F[i] - G[i] - initial_h(T[i], goal, W):
                    learn(table, table_at, T[i], raised, W)
        i, after = best, -1  # turn the way to s* round: P[i] becomes the state after i
        while i != 0:
            link = P[i] if P[i] >= 0 else ~P[i]
            P[i] = after << MOVE_BITS | (link & MOVE_MASK)
            after, i = i, link >> MOVE_BITS
        while after >= 0:
            if length == W.most_moves:
                status = STEP_LIMIT
                break
            if length % per_chunk == 0:
                new = np.int64(add(used, page, 1))
                if new >= page_chunks:
                    status = OUT_OF_MEMORY
                    break
                new += np.int64(page) * page_chunks
                chunks[new * CHUNK] = chunk + 1
                chunk = new
            k = P[after] & MOVE_MASK
            tile, after = T[after], P[after] >> MOVE_BITS
            word |= np.uint32(k) << np.uint32(length % per_word * bits)
            length += 1
            if length % per_word == 0:
                chunks[chunk * CHUNK + 1 + (length - 1) % per_chunk // per_word] = word
                word = np.uint32(0)
            cost = np.int64(costs[np.int64(row_of(tile)) * W.cols + col_of(tile)])
            if k < 4:
                straight += cost
            else:
                diagonals += cost
    if length % per_word > 0:
        chunks[chunk * CHUNK + 1 + (length - 1) % per_chunk // per_word] = word
    record[at + STATUS], record[at + LENGTH] = status, length if status == SOLVED else 0
    record[at + STRAIGHT], record[at + DIAGONALS], record[at + LAST] = straight, diagonals, chunk


@njit
def write_moves(record, at, chunks, moves, words, first):
    """Write an agent's packed moves, the last one first."""
    bits = step_bits(moves)
    per_word = WORD_BITS // bits
    per_chunk = (CHUNK - 1) * per_word
    chunk, length, word = record[at + LAST], record[at + LENGTH], np.uint32(0)
    source = np.uint32(0)
    for number in range(length):
        step = length - 1 - number
        if number == 0 or step % per_word == per_word - 1:
            source = chunks[chunk * CHUNK + 1 + step % per_chunk // per_word]
        code = (source >> np.uint32(step % per_word * bits)) & np.uint32((1 << bits) - 1)
        word |= code << np.uint32(number % per_word * bits)
        if number % per_word == per_word - 1 or step == 0:
            words[first + number // per_word] = word
            word = np.uint32(0)
        if step % per_chunk == 0:
            chunk = np.int64(chunks[chunk * CHUNK]) - 1
