"""Paths of many agents: a status for each, and steps packed into words.

A step is a move code of 2 bits (4-connected) or 4 bits (8-connected). An agent's steps are counted from its goal: the
step that enters the goal is number 0, in the lowest bits of the agent's first word. So agents that take one way to one
goal from some tile on have the same words up to there.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numba import prange
from numpy.typing import ArrayLike

from ..arguments import array_of, whole
from ..device import njit, refuse_forked
from ..errors import GridMapError

NORTH, EAST, SOUTH, WEST, NORTH_EAST, SOUTH_EAST, SOUTH_WEST, NORTH_WEST = range(8)  # move codes
ROW_MOVES = -1, 0, 1, 0, -1, 1, 1, -1  # rows that a move of each code goes down
COL_MOVES = 0, 1, 0, -1, 1, 1, -1, -1  # columns that it goes right
ROW_STEP = np.array(ROW_MOVES, np.int32)
COL_STEP = np.array(COL_MOVES, np.int32)
WORD_BITS = 32
MOST_WORDS = 1 << 30  # of a plan's paths: 4 GiB. Kernels count in int32, and one more stands for all that is more
MOST_STEPS = 2**31 - 1  # of a path
MANY = 16384  # agents; below this size threads cost more than they save


def with_threads(function):
    """Compile function(array, ...), whose loop over the array is a prange: several threads where it has MANY items."""
    few, many = njit(function), njit(parallel=True)(function)
    return lambda array, *others: (many if len(array) >= MANY else few)(array, *others)


class AgentStatus(IntEnum):
    """How one agent's query ended."""

    SOLVED = 0
    NO_PATH = 1
    START_OUTSIDE = 2
    GOAL_OUTSIDE = 3
    START_BLOCKED = 4
    GOAL_BLOCKED = 5
    START_NOT_FINITE = 6
    GOAL_NOT_FINITE = 7
    OUT_OF_MEMORY = 8
    LOOP = 9
    STEP_LIMIT = 10
    TIMED_OUT = 11


# the same as plain integers, for compiled code
SOLVED, NO_PATH, START_OUTSIDE, _, START_BLOCKED, _, START_NOT_FINITE, _, *_OTHERS = map(int, AgentStatus)
OUT_OF_MEMORY, LOOP, STEP_LIMIT, TIMED_OUT = _OTHERS
STATUS_TEXT = {
    AgentStatus.SOLVED: "a path was found",
    AgentStatus.NO_PATH: "no path leads from the start to the goal",
    AgentStatus.START_OUTSIDE: "the start lies outside the map",
    AgentStatus.GOAL_OUTSIDE: "the goal lies outside the map",
    AgentStatus.START_BLOCKED: "the start lies on a blocked tile",
    AgentStatus.GOAL_BLOCKED: "the goal lies on a blocked tile",
    AgentStatus.START_NOT_FINITE: "the start has a coordinate that is not finite",
    AgentStatus.GOAL_NOT_FINITE: "the goal has a coordinate that is not finite",
    AgentStatus.OUT_OF_MEMORY: "the paths of all agents do not fit into the memory allowed",
    AgentStatus.LOOP: "the search ran into a loop of border tiles",
    AgentStatus.STEP_LIMIT: "the agent used up its moves before it reached the goal",
    AgentStatus.TIMED_OUT: "the time limit was reached",
}


@njit
def step_bits(connectivity):
    """-> bits that a packed step takes."""
    return 2 if connectivity == 4 else 4


@njit
def word_count(steps, bits):
    """-> words that packed steps take."""
    return (steps * bits + WORD_BITS - 1) // WORD_BITS


def check_words(count: int):
    """Raises MemoryError where the paths of a plan take more than MOST_WORDS."""
    if count > MOST_WORDS:
        raise MemoryError(f"the paths take more than {4 * MOST_WORDS} bytes; allowed: fewer agents at once")


@dataclass(frozen=True)
class PathSet:
    """Answer of a plan for N agents.

    starts: (N, 2) int32 [row, col]; meaningful where status is SOLVED
    status: (N,) uint8 values of AgentStatus
    cost: (N,) float64 in tile lengths, start tile not counted; inf where there is no path
    length: (N,) int32 steps; 0 where there is no path
    first: (N,) int64 index of the agent's first word
    words: (W,) uint32 packed steps, counted from the goal
    bits: bits a step takes
    time_s: wall time of the plan in seconds
    """

    starts: np.ndarray
    status: np.ndarray
    cost: np.ndarray
    length: np.ndarray
    first: np.ndarray
    words: np.ndarray
    bits: int
    time_s: float = 0.0

    @staticmethod
    def of_moves(
        starts: ArrayLike, status: ArrayLike, cost: ArrayLike, moves: ArrayLike, offsets: ArrayLike, connectivity: int
    ) -> "PathSet":
        """Paths from move codes.

        moves: (M,) uint8; moves[offsets[i]:offsets[i + 1]] are agent i's from start to goal; offsets: (N + 1,)
        """
        length = np.diff(offsets).astype(np.int32)
        bits = step_bits(connectivity)
        first, total = first_words(length, bits)
        words = np.zeros(total, np.uint32)
        _pack(np.asarray(moves, np.uint8), np.asarray(offsets, np.int64), first, words, bits)
        answers = np.asarray(starts, np.int32), np.asarray(status, np.uint8), np.asarray(cost, float)
        return PathSet(*answers, length, first, words, bits)

    def __len__(self) -> int:
        return len(self.status)

    @property
    def solved(self) -> np.ndarray:
        """(N,) bool"""
        return self.status == AgentStatus.SOLVED

    def path(self, i: int) -> np.ndarray:
        """-> (K, 2) int32 tiles [row, col] from start to goal, both included; (0, 2) where there is none.

        Raises GridMapError.
        """
        return self.paths(self._index(i))[0]

    def paths(self, agents: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray]:
        """All tiles of some agents' paths, one after the other.

        agents: indices -N .. N - 1, or (N,) bool; None: all
        -> tiles (T, 2) int32, offsets (len(agents) + 1,) int64
        Agent agents[j]'s path is tiles[offsets[j]:offsets[j + 1]].

        Raises GridMapError.
        """
        refuse_forked()
        chosen = self._indices(agents)
        offsets = np.zeros(len(chosen) + 1, np.int64)
        np.cumsum(np.where(self.solved[chosen], self.length[chosen].astype(np.int64) + 1, 0), out=offsets[1:])
        tiles = np.empty((offsets[-1], 2), np.int32)
        _expand(self.starts, self.first, self.words, self.bits, chosen, offsets, tiles)
        return tiles, offsets

    def message(self, i: int) -> str:
        """What status i means, a sentence. Raises GridMapError."""
        return STATUS_TEXT[AgentStatus(self.status[self._index(i)])]

    def _index(self, i):
        return whole("agent", i, -len(self), len(self) - 1, error=GridMapError)

    def _indices(self, agents):
        """What `paths` takes -> (M,) int64"""
        if agents is None:
            return np.arange(len(self))
        agents = np.atleast_1d(array_of("agents", agents, GridMapError))
        if agents.dtype == bool and agents.shape == (len(self),):
            return np.flatnonzero(agents)
        if agents.ndim != 1 or (len(agents) and agents.dtype.kind not in "iu"):
            raise GridMapError(
                f"agents have the shape {agents.shape}, the type {agents.dtype}; "
                f"allowed: (M,) integers, ({len(self)},) bool"
            )
        if len(agents):
            for i in (agents.min(), agents.max()):
                self._index(i)
        return agents.astype(np.int64)

    @property
    def nbytes(self) -> int:
        """Host memory of the set in bytes."""
        return sum(a.nbytes for a in (self.starts, self.status, self.cost, self.length, self.first, self.words))


def joined(parts: Iterable[PathSet], starts: np.ndarray, order: np.ndarray, connectivity: int) -> PathSet:
    """The answers of all agents. order: (N,) agents in the order in which the parts have them; who is in none is timed
    out"""
    n = len(starts)
    status, cost = np.full(n, TIMED_OUT, np.uint8), np.full(n, np.inf)
    length, first = np.zeros(n, np.int32), np.zeros(n, np.int64)
    words, begin, total = [np.zeros(0, np.uint32)], 0, 0
    for part in parts:
        agents = order[begin : begin + len(part)]
        status[agents], cost[agents], length[agents] = part.status, part.cost, part.length
        first[agents] = part.first + total
        begin, total = begin + len(part), total + len(part.words)
        check_words(total)
        words.append(part.words)
    return PathSet(starts, status, cost, length, first, np.concatenate(words), step_bits(connectivity))


@njit
def first_words(length, bits):
    """Where each agent's words begin, and how many there are. length: (N,) steps -> (N,) int64, int"""
    first, total = np.empty(len(length), np.int64), 0
    for i in range(len(length)):
        first[i] = total
        total += word_count(length[i], bits)
    return first, total


@njit
def put_step(words, first, number, code, bits):
    """Write step `number`, counted from the goal; the words are zero before."""
    per_word = WORD_BITS // bits
    words[np.uintp(first + number // per_word)] |= np.uint32(code) << np.uint32(bits * (number % per_word))


@njit
def _pack(moves, offsets, first, words, bits):
    for i in range(len(first)):
        for number in range(offsets[i + 1] - offsets[i]):
            put_step(words, first[i], number, moves[offsets[i + 1] - 1 - number], bits)


@njit(parallel=True)
def _expand(starts, first, words, bits, agents, offsets, tiles):
    per_word, mask = WORD_BITS // bits, (1 << bits) - 1
    for j in prange(len(agents)):
        begin, end = offsets[j], offsets[j + 1]
        if end > begin:
            row, col = starts[agents[j], 0], starts[agents[j], 1]
            tiles[begin, 0], tiles[begin, 1] = row, col
            for k in range(begin + 1, end):
                number = end - 1 - k  # of the step, from the goal
                word = words[np.uintp(first[agents[j]] + number // per_word)]
                code = np.int32(word >> np.uint32(bits * (number % per_word))) & mask
                row += ROW_STEP[code]
                col += COL_STEP[code]
                tiles[k, 0], tiles[k, 1] = row, col
