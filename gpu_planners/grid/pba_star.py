"""P-BA* [CE12]: paths of many agents through planning blocks, by A* searches that end where a block ends.

Border-to-border (III-B): from each border tile of each block an A* inside the block, until it takes a border tile of a
neighbouring block, or the goal, from the open list. Start-to-border: from each agent's start, until a border tile of its own
block or the goal. Paths are put together from these pieces on the device (III-C); only they are copied to the host, so the
paper's copy of the border-to-border step does not exist here. Heuristics are kept for the whole map, a planning block's are in
shared memory on the GPU (IV): Manhattan as in the paper, octile on 8-connected maps, times the least cost of a tile.

The pieces may lead in circles, and then there is no path. The paper names two treatments and details neither:
- loops="avoid", during the movement: an agent does not go back into the block that it has just come from; its search goes on
  to the first border tile of another block. Where there is none, and in circles through more blocks, the agent's status is LOOP. This
  reproduces the counts of table I on 4-connected maps (60 maps of 512x512, 10 %: 25, 46, 59 % of A*'s paths for blocks of 4, 8,
  16; paper 33, 45, 62 %); without the rule there are none. The lengths in table I are shorter than the Manhattan
  distance of the two corners, so they cannot be those of 4-connected paths; no variant of an 8-connected search that
  we tried gives both its counts and its lengths.
- loops="raise": the heuristic of a loop's border tiles is raised, by 1, 1, 2, 2, 4, 4... tiles each time the tile is in a
  loop, and the blocks that see them search again, until no loop is left, `most_rounds` are over or all tiles of the loops left
  have been raised 96 times, as in parts of the map that are cut off from the goal. Here an agent may turn back, and most paths
  are found. Raises of one tile each take more rounds, greater ones lead to longer paths.

Ties of f are broken by greater g (rounded down to multiples of the greatest power of two up to the least cost, and cut off at
2047 of them), then by the lower row, then column. On 8-connected maps the searches count in units of 2**-20 tile lengths; the
costs of the answer are exact.
"""

import time
from dataclasses import dataclass

import numpy as np
from numba import prange

from ..device import njit
from ..errors import SettingsError, shown
from .agents import check_words, first_words, step_bits
from .answers import Answers
from .blocks import BLOCK_SIZES
from .checks import whole
from .packed_tiles import check_sides, pack_all
from .pba_star_search import (
    LINK,
    Layout,
    heap_size,
    heuristic,
    links_of_goal,
    load_window,
    mark_seen,
    next_of,
    raise_tile,
    search_from_border,
    search_from_start,
    units_of,
    walk,
    window_size,
    write_moves,
)

LOOPS = "avoid", "raise"
PAGES = 64  # of an arena on the CPU
PAGE_WORDS = 1024  # of a page to begin with
MOST_PAGE_WORDS = 2**32 // PAGES  # a word's number in the arena is a uint32
RAISING_BYTES = 9  # of a link with loops="raise": how often it was raised, and two int32 to find loops
TIMES = "upload", "border_to_border", "start_to_border", "reconstruction", "transfer"


@dataclass(frozen=True)
class Settings:
    """loops: "avoid" or "raise", see above
    most_rounds: rounds of raising, for "raise"
    memory_mb: bound on the memory for heuristics and links of distinct goals, MB, and again on that for the links' moves; one goal is
        always taken, others in batches
    """

    loops: str = "avoid"
    most_rounds: int = 256
    memory_mb: int = 2048

    def __post_init__(self):
        if not isinstance(self.loops, str) or self.loops not in LOOPS:
            raise SettingsError(f"loops is {shown(self.loops)}; allowed: 'avoid' or 'raise'")
        for name in ("most_rounds", "memory_mb"):
            whole(name, getattr(self, name), 1, 2**31 - 1)


def layout_of(grid, block_size, avoid):
    """How a GridMap is cut into planning blocks, for the compiled searches."""
    if block_size not in BLOCK_SIZES:
        raise SettingsError(f"block_size is {shown(block_size)}; allowed: {', '.join(map(str, BLOCK_SIZES))}")
    check_sides(grid, "pba_star")
    one, diagonal = units_of(grid.connectivity)
    size, least = int(block_size), max(grid.least_cost, 1)
    return Layout(grid.rows, grid.cols, size.bit_length() - 1, -(-grid.rows // size), -(-grid.cols // size), 4 * size - 4,
                  grid.connectivity, one, diagonal, (least * one).bit_length() - 1, int(avoid), least)


class PbaStar:
    """P-BA* on one map.

    last_times: seconds of the last plan by step (`TIMES`; a step that was not needed takes 0)
    memory_bytes: what buffers on the device take, without the map of the host
    """

    def __init__(self, grid, block_size=8, device="cpu", settings=None):
        self.settings = settings or Settings()
        self._grid, self._block_size = grid, block_size
        self._blocks = layout_of(grid, block_size, self.settings.loops == "avoid")
        self.last_times = dict.fromkeys(TIMES, 0.0)
        if device == "cpu":
            self._searches = CpuSearches(self.settings.memory_mb)
        else:
            from .pba_star_kernels import CudaSearches

            self._searches = CudaSearches(device, self.settings.memory_mb)
        self._searches.set_map(grid.costs, self._blocks)
        self._goals = None  # whose border-to-border links are there

    @property
    def memory_bytes(self):
        return self._searches.memory_bytes

    def forget(self):
        """The next plan does the border-to-border step again, though goals and map have not changed."""
        self._goals = None

    def update(self, grid, rows, cols):
        """Some tiles have changed: the blocks whose searches look at them search again, on the next plan."""
        blocks = layout_of(grid, self._block_size, self.settings.loops == "avoid")
        if blocks != self._blocks:
            self._goals = None
        self._grid, self._blocks = grid, blocks
        self._searches.set_map(grid.costs, blocks)
        if self._goals is not None:
            todo = np.zeros(blocks.block_rows * blocks.block_cols, np.uint8)
            _mark_all(np.asarray(rows, np.int64), np.asarray(cols, np.int64), todo, blocks)
            self._searches.mark(todo)

    def plan(self, starts, goals):
        """starts, goals: (N, 2) int32 [row, col], free tiles of the map -> PathSet"""
        self.last_times = dict.fromkeys(TIMES, 0.0)
        starts = np.ascontiguousarray(starts, np.int32)
        from_tile, to_tile = pack_all(starts), pack_all(np.asarray(goals, np.int32))
        if len(to_tile) and (to_tile == to_tile[0]).all():
            distinct, of_goal = to_tile[:1], np.zeros(len(to_tile), np.int32)
        else:
            distinct, of_goal = np.unique(to_tile, return_inverse=True)
            of_goal = of_goal.astype(np.int32)
        at_once, answers = self._goals_at_once(), Answers(len(starts))
        j = 0
        while j < len(distinct):
            agents = slice(None) if len(distinct) <= at_once else np.flatnonzero((of_goal >= j) & (of_goal < j + at_once))
            try:
                *columns, words = self._plan_batch(distinct[j:j + at_once], from_tile[agents], of_goal[agents] - np.int32(j))
            except MovesDoNotFit:
                at_once = min(at_once, len(distinct)) // 2
                continue
            answers.put(agents, *columns, words=words)
            j += at_once
        return answers.path_set(starts, self._grid.connectivity)

    def _goals_at_once(self):
        B = self._blocks
        links = links_of_goal(B)
        bytes_per_link = LINK * 4 + (0 if B.avoid else RAISING_BYTES)
        bytes_per_goal = B.rows * B.cols * (4 if B.moves == 4 else 8) + links * bytes_per_link
        return max(1, min(int(self.settings.memory_mb) * 2**20 // bytes_per_goal, 2**31 // (LINK * links)))  # links have int32 numbers

    def _plan_batch(self, goals, starts, of_goal):
        again = self._goals is None or not np.array_equal(goals, self._goals)
        self._goals = None  # while the step is under way
        self._searches.border_to_border(goals, again, self.settings.most_rounds, self.last_times)
        self._goals = goals
        return self._searches.paths(starts, of_goal, self.last_times)


class MovesDoNotFit(Exception):
    """The moves of several goals' links take more memory than is allowed: fewer goals at once."""


def checked_page(words, goals, memory_mb):
    """-> words, of each page of an arena for the links toward some goals. Raises MovesDoNotFit, MemoryError where it is one goal"""
    if goals > 1 and 4 * PAGES * words > memory_mb * 2**20:
        raise MovesDoNotFit
    if words > MOST_PAGE_WORDS:
        raise MemoryError(f"the moves of P-BA*'s links take more than {4 * PAGES * MOST_PAGE_WORDS} bytes; allowed: fewer agents, smaller blocks")
    return words


class CpuSearches:
    """The steps of P-BA* on the CPU's threads; `CudaSearches` has the same methods.

    Blocks and agents are dealt out to as many workers as pages of the arena.
    """

    def __init__(self, memory_mb):
        self._memory_mb = int(memory_mb)
        self._page_words = self._own_page_words = PAGE_WORDS
        self.memory_bytes = 0

    def set_map(self, costs, blocks):
        self._costs, self._blocks = costs.reshape(-1), blocks

    def mark(self, todo):
        """todo: (blocks,) uint8, 1 where the next border-to-border step searches again."""
        self._todo |= np.tile(todo, len(self._goals))

    def border_to_border(self, goals, again, most_rounds, times):
        """The links of all border tiles toward some goals. goals: (K,) int32 packed tiles; again: nothing is there yet"""
        began, B = time.perf_counter(), self._blocks
        if again:
            n_blocks = B.block_rows * B.block_cols
            self._goals = goals
            self._H = np.empty(len(goals) * B.rows * B.cols, np.int32 if B.moves == 4 else np.int64)
            self._links = np.empty(len(goals) * links_of_goal(B) * LINK, np.int32)
            self._arena, self._used = np.empty(PAGES * self._page_words, np.uint32), np.zeros(PAGES, np.int32)
            self._raises = np.zeros(0 if B.avoid else len(self._links) // LINK, np.uint8)
            self._todo, self._raised = np.ones(len(goals) * n_blocks, np.uint8), np.zeros(len(goals) * n_blocks, np.uint8)
        elif not self._todo.any():
            return
        if again or self._raised.any():
            _heuristics(self._H, goals, B)
            self._raises[:] = 0
        self._todo |= self._raised
        self._raised[:] = 0
        self._search(again)
        for _ in range(0 if B.avoid else most_rounds):
            self._todo[:] = 0
            _raise_loops(self._links, self._goals, self._H, self._raises, self._todo, B)
            if not self._todo.any():
                break
            self._raised |= self._todo
            self._search(False)
        self._todo[:] = 0
        self.memory_bytes = sum(a.nbytes for a in (self._H, self._links, self._arena, self._raises, self._todo, self._raised))
        times["border_to_border"] += time.perf_counter() - began

    def _search(self, arena_is_empty):
        """The searches of the blocks of todo. Their links' moves follow those in the arena, which nobody may need any more."""
        jobs = np.flatnonzero(self._todo).astype(np.int32)
        while True:
            _border_to_border(self._costs, self._H, self._goals, jobs, self._links, self._arena, self._used, self._page_words,
                              self._blocks)
            if self._used.max() <= self._page_words:
                return
            if arena_is_empty:
                self._page_words = checked_page(2 * int(self._used.max()), len(self._goals), self._memory_mb)
                self._arena = np.empty(PAGES * self._page_words, np.uint32)
            arena_is_empty, self._used[:] = True, 0  # all blocks again, in an arena without what nobody needs
            jobs = np.arange(len(self._todo), dtype=np.int32)

    def paths(self, starts, of_goal, times):
        """starts: (N,) int32 packed tiles; of_goal: (N,) int32 into the goals of the last border-to-border step

        -> status (N,) uint8, length (N,) int32, cost of straight and of diagonal steps (N,) int64, first (N,) int64, words
        """
        began, B, n = time.perf_counter(), self._blocks, len(starts)
        own, page_words = np.empty((n, LINK), np.int32), self._own_page_words
        while True:
            own_arena, used = np.empty(PAGES * page_words, np.uint32), np.zeros(PAGES, np.int32)
            _start_to_border(starts, of_goal, self._goals, self._costs, self._H, own, own_arena, used, page_words, B)
            if used.max() <= page_words:
                break
            self._own_page_words = page_words = checked_page(2 * int(used.max()), 1, self._memory_mb)
        searched = time.perf_counter()
        status, length = np.empty(n, np.uint8), np.empty(n, np.int32)
        straight, diagonal = np.empty(n, np.int64), np.empty(n, np.int64)
        _walk_all(own, of_goal, self._goals, self._links, status, length, straight, diagonal, B)
        first, total = first_words(length, step_bits(B.moves))
        check_words(total)
        words = np.empty(total, np.uint32)
        _write_all(own, own_arena, of_goal, self._goals, self._links, self._arena, length, first, words, B)
        times["start_to_border"] += searched - began
        times["reconstruction"] += time.perf_counter() - searched
        return status, length, straight, diagonal, first, words


@njit
def _mark_all(rows, cols, todo, B):
    for row, col in zip(rows, cols):
        mark_seen(row, col, todo, B)


@njit(parallel=True)
def _heuristics(H, goals, B):
    for i in prange(len(goals) * B.rows):
        for col in range(B.cols):
            H[np.int64(i) * B.cols + col] = heuristic(i % B.rows, col, goals[i // B.rows], B)


@njit(parallel=True)
def _border_to_border(costs, H, goals, jobs, links, arena, used, page_words, B):
    """jobs: (M,) int32, goal * blocks + block"""
    n_blocks = B.block_rows * B.block_cols
    for worker in prange(PAGES):
        nodes, heap = np.zeros(window_size(B.shift) + 1, np.int64), np.empty(heap_size(B.shift), np.int64)
        window, h = np.empty(window_size(B.shift), np.uint8), np.empty(window_size(B.shift), H.dtype)
        for j in range(worker, len(jobs), PAGES):
            block, of_goal = jobs[j] % n_blocks, jobs[j] // n_blocks
            load_window(costs, H, np.int64(of_goal) * B.rows * B.cols, block, B, 0, 1, window, h)
            for number in range(B.ring):
                search_from_border(number, block, goals[of_goal], window, h, B, nodes, heap, links, of_goal * links_of_goal(B),
                                   arena, used, worker, page_words)


@njit(parallel=True)
def _start_to_border(starts, of_goal, goals, costs, H, own, arena, used, page_words, B):
    flat = own.reshape(-1)
    for worker in prange(PAGES):
        nodes, heap = np.zeros(window_size(B.shift) + 1, np.int64), np.empty(heap_size(B.shift), np.int64)
        for i in range(len(starts) * worker // PAGES, len(starts) * (worker + 1) // PAGES):
            search_from_start(starts[i], goals[of_goal[i]], costs, H, np.int64(of_goal[i]) * B.rows * B.cols, B, nodes, heap,
                              flat, LINK * i, arena, used, worker, page_words)


@njit
def _raise_loops(links, goals, H, raises, todo, B):
    """Find the links that are in loops, by following each until one that was met before, and raise their tiles."""
    n = len(links) // LINK
    met = np.zeros(n, np.int32)  # by which walk, from 1 on
    for i in range(n):
        j = np.int64(i)
        while j >= 0 and met[j] == 0:
            met[j] = i + 1
            j = next_of(j, links, goals, B)
        if j >= 0 and met[j] == i + 1:
            while met[j] == i + 1:
                met[j] = -1
                raise_tile(j, H, raises, todo, B)
                j = next_of(j, links, goals, B)


@njit(parallel=True)
def _walk_all(own, of_goal, goals, links, status, length, straight, diagonal, B):
    for i in prange(len(own)):
        goal = of_goal[i]
        status[i], length[i], straight[i], diagonal[i] = walk(own[i], links, goal * links_of_goal(B), goals[goal], B)


@njit(parallel=True)
def _write_all(own, own_arena, of_goal, goals, links, arena, length, first, words, B):
    for i in prange(len(own)):
        if length[i] > 0:
            goal = of_goal[i]
            write_moves(own[i], own_arena, links, goal * links_of_goal(B), goals[goal], B, arena, words, first[i], length[i])
