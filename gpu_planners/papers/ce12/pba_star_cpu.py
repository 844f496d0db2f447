"""P-BA* on the CPU's threads."""

import time
from typing import NamedTuple

import numpy as np
from numba import prange

from ...device import lean_njit, njit
from ...grid.paths import check_words, first_words, step_bits
from .arena import PAGES, Arena, checked_page
from .pba_star_blocks import (
    LINK,
    GoalMap,
    Layout,
    Links,
    Maps,
    goal_map,
    heap_size,
    heuristic,
    links_of_goal,
    links_toward,
    load_window,
    own_link,
    own_window,
    window_size,
)
from .pba_star_paths import next_of, raise_tile, walk, write_moves
from .pba_star_search import SearchMemory, search_from_border, search_from_start

PAGE_WORDS = 1024  # of a page to begin with


class Found(NamedTuple):
    """Of N agents: status (N,) uint8, length (N,) int32, cost of straight and of diagonal steps (N,) int64."""

    status: np.ndarray
    length: np.ndarray
    straight: np.ndarray
    diagonal: np.ndarray


class CpuSearches:
    """The steps of P-BA* on the CPU's threads; `CudaSearches` has the same methods.

    Blocks and agents are dealt out to as many workers as an arena has pages.
    """

    def __init__(self, memory_mb: int):
        self._memory_mb = int(memory_mb)
        self._page_words = self._own_page_words = PAGE_WORDS
        self.memory_bytes = 0

    def set_map(self, costs: np.ndarray, layout: Layout):
        """costs: (rows, cols) uint8"""
        self._costs, self._layout = costs.reshape(-1), layout

    @property
    def _maps(self):
        return Maps(self._costs, self._h, self._goals)

    def mark(self, todo: np.ndarray):
        """todo: (blocks,) uint8, 1 where the next border-to-border step searches again."""
        self._todo |= np.tile(todo, len(self._goals))

    def border_to_border(self, goals: np.ndarray, again: bool, most_rounds: int, times: dict):
        """Find the links of all border tiles toward some goals.

        goals: (K,) int32 packed tiles; again: nothing is there yet; times: gets the seconds taken
        """
        began = time.perf_counter()
        if again:
            self._make_room(goals)
        elif not self._todo.any():
            return
        if again or self._raised.any():
            _heuristics(self._h, goals, self._layout)
            self._raises[:] = 0
        self._todo |= self._raised
        self._raised[:] = 0
        self._search(again)
        for _ in range(0 if self._layout.avoid else most_rounds):
            self._todo[:] = 0
            _raise_loops(self._numbers, self._goals, self._h, self._raises, self._todo, self._layout)
            if not self._todo.any():
                break
            self._raised |= self._todo
            self._search(False)
        self._todo[:] = 0
        kept = self._h, self._numbers, self._words, self._raises, self._todo, self._raised
        self.memory_bytes = sum(array.nbytes for array in kept)
        times["border_to_border"] += time.perf_counter() - began

    def _make_room(self, goals):
        layout = self._layout
        blocks = len(goals) * layout.block_rows * layout.block_cols
        self._goals = goals
        self._h = np.empty(len(goals) * layout.rows * layout.cols, np.int32 if layout.moves == 4 else np.int64)
        self._numbers = np.empty(len(goals) * links_of_goal(layout) * LINK, np.int32)
        self._words, self._used = np.empty(PAGES * self._page_words, np.uint32), np.zeros(PAGES, np.int32)
        self._raises = np.zeros(0 if layout.avoid else len(self._numbers) // LINK, np.uint8)
        self._todo, self._raised = np.ones(blocks, np.uint8), np.zeros(blocks, np.uint8)

    def _search(self, arena_is_empty):
        """Search the blocks of todo. Their links' moves follow those in the arena, which nobody may need any more."""
        jobs = np.flatnonzero(self._todo).astype(np.int32)
        while True:
            links, arena = Links(self._numbers, 0, self._words), Arena(self._words, self._used, 0, self._page_words)
            _border_to_border(jobs, self._maps, links, arena, self._layout)
            if self._used.max() <= self._page_words:
                return
            if arena_is_empty:
                self._page_words = checked_page(2 * int(self._used.max()), len(self._goals), self._memory_mb)
                self._words = np.empty(PAGES * self._page_words, np.uint32)
            arena_is_empty, self._used[:] = True, 0  # all blocks again, in an arena without what nobody needs
            jobs = np.arange(len(self._todo), dtype=np.int32)

    def paths(self, starts: np.ndarray, of_goal: np.ndarray, times: dict) -> tuple[np.ndarray, ...]:
        """starts: (N,) int32 packed tiles; of_goal: (N,) int32 into the goals of the last border-to-border step

        -> status (N,) uint8, length (N,) int32, cost of straight and of diagonal steps (N,) int64, first (N,) int64,
        words
        """
        began, n = time.perf_counter(), len(starts)
        own = self._own_links(starts, of_goal)
        searched = time.perf_counter()
        links = Links(self._numbers, 0, self._words)
        found = Found(*(np.empty(n, kind) for kind in (np.uint8, np.int32, np.int64, np.int64)))
        _walk_all(own, links, of_goal, self._goals, self._layout, found)
        first, total = first_words(found.length, step_bits(self._layout.moves))
        check_words(total)
        words = np.empty(total, np.uint32)
        _write_all(own, links, of_goal, self._goals, self._layout, found.length, (first, words))
        times["start_to_border"] += searched - began
        times["reconstruction"] += time.perf_counter() - searched
        return *found, first, words

    def _own_links(self, starts, of_goal):
        """The start-to-border step -> Links, one for each agent"""
        numbers, page_words = np.empty(len(starts) * LINK, np.int32), self._own_page_words
        while True:
            words, used = np.empty(PAGES * page_words, np.uint32), np.zeros(PAGES, np.int32)
            own, arena = Links(numbers, 0, words), Arena(words, used, 0, page_words)
            _start_to_border(starts, of_goal, self._maps, own, arena, self._layout)
            if used.max() <= page_words:
                return own
            self._own_page_words = page_words = checked_page(2 * int(used.max()), 1, self._memory_mb)


@njit
def new_memory(layout):
    size = window_size(layout.shift)
    return SearchMemory(np.zeros(size + 1, np.int64), np.empty(heap_size(layout.shift), np.int64))


@njit(parallel=True)
def _heuristics(h, goals, layout):
    for i in prange(len(goals) * layout.rows):
        for col in range(layout.cols):
            h[np.int64(i) * layout.cols + col] = heuristic(i % layout.rows, col, goals[i // layout.rows], layout)


@njit(parallel=True)
def _border_to_border(jobs, maps, links, arena, layout):
    """jobs: (M,) int32, goal * blocks + block"""
    for worker in prange(PAGES):
        _search_blocks(worker, jobs, maps, links, arena, layout)


@njit
def _search_blocks(worker, jobs, maps, links, arena, layout):
    """A worker's share of the blocks."""
    memory, size = new_memory(layout), window_size(layout.shift)
    room = GoalMap(np.empty(size, np.uint8), np.empty(size, maps.h.dtype))
    page = Arena(arena.words, arena.used, worker, arena.room)
    for j in range(worker, len(jobs), PAGES):
        _search_block(jobs[j], maps, room, memory, links, page, layout)


@lean_njit
def _search_block(job, maps, room, memory, links, arena, layout):
    """All border tiles of one block. room: for the costs and heuristics of its window"""
    n_blocks = layout.block_rows * layout.block_cols
    block, goal = job % n_blocks, job // n_blocks
    window = own_window(block, room.costs, room.h, layout)
    load_window(window, goal_map(maps, goal, layout), layout, 0, 1)
    toward = links_toward(links, goal, layout)
    for number in range(layout.ring):
        search_from_border(number, maps.goals[goal], window, layout, memory, toward, arena)


@njit(parallel=True)
def _start_to_border(starts, of_goal, maps, own, arena, layout):
    for worker in prange(PAGES):
        _search_starts(worker, starts, of_goal, maps, own, arena, layout)


@njit
def _search_starts(worker, starts, of_goal, maps, own, arena, layout):
    """A worker's share of the agents."""
    memory, page = new_memory(layout), Arena(arena.words, arena.used, worker, arena.room)
    for i in range(len(starts) * worker // PAGES, len(starts) * (worker + 1) // PAGES):
        _search_start(i, starts[i], of_goal[i], maps, memory, own, page, layout)


@lean_njit
def _search_start(i, start, goal, maps, memory, own, arena, layout):
    """The own link of agent i."""
    toward = goal_map(maps, goal, layout)
    search_from_start(start, maps.goals[goal], toward, layout, memory, own_link(own, i), arena)


@njit
def _raise_loops(numbers, goals, h, raises, todo, layout):
    """Find the links that are in loops, by following each until one that was met before, and raise their tiles."""
    n = len(numbers) // LINK
    met = np.zeros(n, np.int32)  # by which walk, from 1 on
    for i in range(n):
        j = np.int64(i)
        while j >= 0 and met[j] == 0:
            met[j] = i + 1
            j = next_of(j, numbers, goals, layout)
        if j >= 0 and met[j] == i + 1:
            while met[j] == i + 1:
                met[j] = -1
                raise_tile(j, h, raises, todo, layout)
                j = next_of(j, numbers, goals, layout)


@njit(parallel=True)
def _walk_all(own, links, of_goal, goals, layout, found):
    for i in prange(len(of_goal)):
        _walk_one(i, own, links, of_goal[i], goals, layout, found)


@lean_njit
def _walk_one(i, own, links, goal, goals, layout, found):
    toward = links_toward(links, goal, layout)
    found.status[i], found.length[i], found.straight[i], found.diagonal[i] = walk(
        own_link(own, i), toward, goals[goal], layout
    )


@njit(parallel=True)
def _write_all(own, links, of_goal, goals, layout, length, packed):
    for i in prange(len(of_goal)):
        if length[i] > 0:
            _write_one(i, own, links, of_goal[i], goals[of_goal[i]], layout, length[i], packed)


@lean_njit
def _write_one(i, own, links, of_goal, goal, layout, length, packed):
    """Write the moves of agent i."""
    first, words = packed
    toward = links_toward(links, of_goal, layout)
    write_moves(own_link(own, i), toward, goal, layout, length, words, first[i])
