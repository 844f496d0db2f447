"""Ways of agents that cross bands: an agent is followed by the rank that holds its tile, and handed on at a stop.

Stops lie a row of blocks beyond the band (`Region.finish`), so that an agent that wavers along a border is not handed
to and fro. A rank holds only the pieces that it has followed; at the end all ranks get all pieces and join them.
"""

from typing import NamedTuple

import numpy as np

from ...distributed.exchange import Exchange
from ..paths import COL_STEP, MOST_STEPS, ROW_STEP, WORD_BITS, check_words
from .cut import Band
from .region import Region

AGENT, ORDER, ROW, COL = range(4)  # of an agent that is handed on: which one, how often it was, its tile


class Pieces(NamedTuple):
    """Parts of paths.

    agents, orders: (n,) int64 whose, and which part of its path
    lengths: (n,) int64 steps;  words: of the steps, as of PathSet, one part after the other
    """

    agents: np.ndarray
    orders: np.ndarray
    lengths: np.ndarray
    words: np.ndarray


def follow_agents(
    exchange: Exchange,
    region: Region | None,
    sides: tuple[Band | None, Band | None],
    handed: np.ndarray,
    goal: tuple[int, int],
    bits: int,
) -> list[Pieces]:
    """Follow agents to the goal, all ranks together.

    sides: bands north and south of this rank's
    handed: (n, 4) int64 AGENT, ORDER, ROW, COL of those that start in this rank's band
    -> Pieces of what this rank followed, and of every agent that has no path one without steps: none
    """
    found = []
    while True:
        beyond = np.zeros((0, 4), np.int64)
        if len(handed) and region is not None:
            pieces, ends = _followed(region, handed, bits)
            found.append(pieces)
            beyond = ends[(ends[:, ROW:] != goal).any(axis=1)]
        to = [beyond[beyond[:, ROW] < region.band.first], beyond[beyond[:, ROW] >= region.band.last]] if region else []
        counts = exchange.all_gather([len(agents) for agents in to] or [0, 0])
        if not np.any(counts):
            return found
        swapped = {
            band.rank: (to[side], np.empty((counts[band.rank][1 - side], 4), np.int64))
            for side, band in enumerate(sides)
            if band
        }
        exchange.swap(swapped)
        handed = np.concatenate([np.zeros((0, 4), np.int64), *(received for _, received in swapped.values())])


def _followed(region, handed, bits):
    """-> Pieces; (m, 4) of those that have a path, where they are now"""
    length, _, words = region.follow(handed[:, ROW:], bits)
    there = length >= 0
    lengths, ends = length[there].astype(np.int64), handed[there]
    steps = steps_of(words, lengths, bits)
    ends = ends + (0, 1, 0, 0)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    for column, move in ((ROW, ROW_STEP), (COL, COL_STEP)):
        ends[:, column] += np.bincount(owner, move[steps], len(lengths)).astype(np.int64)
    return Pieces(handed[there, AGENT], handed[there, ORDER], lengths, words), ends


def steps_of(words: np.ndarray, lengths: np.ndarray, bits: int) -> np.ndarray:
    """-> (sum of lengths,) uint8 move codes of parts, each from its end to its begin. words, lengths: of `Pieces`"""
    per_word = WORD_BITS // bits
    octets = words.astype("<u4").view(np.uint8)[:, None] >> np.arange(0, 8, bits, dtype=np.uint8) & ((1 << bits) - 1)
    rooms = _words(lengths, bits) * per_word
    begins = np.cumsum(rooms) - rooms
    there = np.repeat(begins + lengths, rooms) > np.arange(octets.size)
    return octets.reshape(-1)[there]


def _words(lengths, bits):
    """Words of so many steps each."""
    return -(-lengths * bits // WORD_BITS)


def joined(exchange: Exchange, found: list[Pieces], count: int, bits: int) -> tuple[np.ndarray, ...]:
    """All agents' steps, on every rank, from what each has found.

    -> has each agent a path: (count,) bool; moves (M,) uint8 from start to goal; offsets (count + 1,) int64
    """
    own = Pieces(*(np.concatenate(arrays) for arrays in zip(*found))) if found else None
    pieces = [Pieces(*part) for part in exchange.all_gather(own and tuple(own)) if part is not None]
    reached, total = np.zeros(count, bool), np.zeros(count, np.int64)
    for part in pieces:
        reached[part.agents] = True
        np.add.at(total, part.agents, part.lengths)
    if total.max(initial=0) > MOST_STEPS:
        raise MemoryError(f"a path has {total.max()} steps; allowed: at most {MOST_STEPS}")
    check_words(int(_words(total, bits).sum()))
    offsets = np.concatenate([[0], np.cumsum(total)])
    moves, at = np.empty(offsets[-1], np.uint8), offsets[:-1].copy()
    steps = [steps_of(part.words, part.lengths, bits) for part in pieces]
    begins = [np.cumsum(part.lengths) - part.lengths for part in pieces]
    which = np.repeat(np.arange(len(pieces)), [len(part.agents) for part in pieces])
    number = np.concatenate([np.zeros(0, int), *(np.arange(len(part.agents)) for part in pieces)])
    order = np.concatenate([np.zeros(0, np.int64), *(part.orders for part in pieces)])
    for k in np.argsort(order, kind="stable").tolist():
        part, i = pieces[which[k]], number[k]
        agent, begin, length = part.agents[i], begins[which[k]][i], part.lengths[i]
        moves[at[agent] : at[agent] + length] = steps[which[k]][begin : begin + length][::-1]
        at[agent] += length
    return reached, moves, offsets
