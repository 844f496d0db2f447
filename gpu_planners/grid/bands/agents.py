"""Paths that cross bands: the rank that holds an agent's tile follows it to a stop, and hands it on there.

Stops lie a row of blocks beyond the band (`Region.finish`), so that no agent that wavers along a border is handed to
and fro. A rank keeps the pieces that it has followed; at the end all ranks get all pieces and join them.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...distributed.exchange import Exchange
from ..paths import COL_STEP, MOST_STEPS, ROW_STEP, WORD_BITS, check_words
from .cut import Band
from .region import Region

# of an agent that is handed on
AGENT = 0  # its number
ORDER = 1  # how often it was handed on before
ROW = 2  # of its tile
COL = 3


class Pieces(NamedTuple):
    """Parts of paths."""

    agents: np.ndarray  # (n,) int64 whose
    orders: np.ndarray  # (n,) int64 which part of its path
    lengths: np.ndarray  # (n,) int64 steps
    words: np.ndarray  # of the steps, as of PathSet, one part after the other


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
    -> Pieces of what this rank followed; an agent without a path has none
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
            if band and (len(to[side]) or counts[band.rank][1 - side])
        }
        exchange.swap(swapped)
        handed = np.concatenate([np.zeros((0, 4), np.int64), *(received for _, received in swapped.values())])


def _followed(region, handed, bits):
    """-> Pieces; (m, 4) of those that have a path, where they are now"""
    length, _, words = region.follow(handed[:, ROW:], bits)
    there = length >= 0
    pieces = Pieces(handed[there, AGENT], handed[there, ORDER], length[there].astype(np.int64), words)
    ends = handed[there] + (0, 1, 0, 0)
    for part, steps in unpacked(pieces, bits):
        owner = np.repeat(np.arange(part.start, part.stop), pieces.lengths[part])
        for column, move in ((ROW, ROW_STEP), (COL, COL_STEP)):
            ends[:, column] += np.bincount(owner, move[steps], len(ends)).astype(np.int64)
    return pieces, ends


def unpacked(pieces: Pieces, bits: int, steps_a_time: int = 1 << 22) -> Iterator[tuple[slice, np.ndarray]]:
    """Pieces in turn, about so many steps at a time -> which pieces; (n,) uint8 move codes of their steps, each piece
    from its end to its begin"""
    per_word = WORD_BITS // bits
    words = _words(pieces.lengths, bits)
    upto, begin = np.cumsum(words), 0
    while begin < len(words):
        before = upto[begin] - words[begin]
        end = max(begin + 1, int(np.searchsorted(upto, before + steps_a_time // per_word, side="right")))
        octets = pieces.words[before : upto[end - 1]].astype("<u4").view(np.uint8)
        codes = (octets[:, None] >> np.arange(0, 8, bits, dtype=np.uint8) & ((1 << bits) - 1)).reshape(-1)
        rooms = words[begin:end] * per_word
        ends = np.cumsum(rooms) - rooms + pieces.lengths[begin:end]
        yield slice(begin, end), codes[np.arange(len(codes)) < np.repeat(ends, rooms)]
        begin = end


def _words(lengths, bits):
    """Words of so many steps each."""
    return -(-lengths * bits // WORD_BITS)


def joined(exchange: Exchange, found: list[Pieces], count: int, bits: int) -> tuple[np.ndarray, ...]:
    """All agents' steps, on every rank, from what each has found.

    -> has each agent a path: (count,) bool; moves (M,) uint8 from start to goal; offsets (count + 1,) int64
    """
    told = exchange.all_gather([tuple(pieces) for pieces in found])
    pieces = [Pieces(*each) for of_rank in told for each in of_rank]
    agents, orders, lengths = (
        np.concatenate([np.zeros(0, np.int64), *(each[column] for each in pieces)]) for column in range(3)
    )
    reached, total = np.zeros(count, bool), np.zeros(count, np.int64)
    reached[agents] = True
    np.add.at(total, agents, lengths)
    if total.max(initial=0) > MOST_STEPS:
        raise MemoryError(f"a path has {total.max()} steps; allowed: at most {MOST_STEPS}")
    check_words(int(_words(total, bits).sum()))
    offsets = np.concatenate([[0], np.cumsum(total)])
    along = np.lexsort((orders, agents))
    places = np.empty(len(agents), np.int64)  # in moves: all paths lie one after the other
    places[along] = np.cumsum(lengths[along]) - lengths[along]
    moves, number = np.empty(offsets[-1], np.uint8), 0
    for each in pieces:
        for part, steps in unpacked(each, bits):
            ends = np.cumsum(each.lengths[part])
            for end, length, place in zip(ends, each.lengths[part], places[number + part.start :]):
                moves[place : place + length] = steps[end - length : end][::-1]
        number += len(each.agents)
    return reached, moves, offsets
