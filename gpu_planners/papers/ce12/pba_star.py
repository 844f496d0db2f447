"""P-BA* [CE12]: paths of many agents through planning blocks, by A* searches that end where a block ends.

Border-to-border (III-B): from each border tile of each block an A* inside the block, until it takes a border tile of a
neighbouring block, or the goal, from the open list. Start-to-border: from each agent's start, until a border tile of
its own block or the goal. Paths are put together from these pieces on the device (III-C); only they are copied to the
host, so the paper's copy of the border-to-border step does not exist here. Heuristics are kept for the whole map, a
planning block's are in shared memory on the GPU (IV): Manhattan as in the paper, octile on 8-connected maps, times the
least cost of a tile.

The pieces may lead in circles, so that an agent never arrives. The paper names two treatments and details neither:
- loops="avoid", during the movement: an agent does not go back into the block that it has just come from; its search
  goes on to the first border tile of another block. Where there is none, and in circles through more blocks, the
  agent's status is LOOP. This reproduces the counts of table I on 4-connected maps (60 maps of 512x512, 10 %: 25, 46,
  59 % of A*'s paths for blocks of 4, 8, 16; paper 33, 45, 62 %); without the rule there are none. The lengths in table
  I are shorter than the Manhattan distance of the two corners, so they cannot be those of 4-connected paths; no variant
  of an 8-connected search that we tried gives both its counts and its lengths.
- loops="raise": the heuristic of a loop's border tiles is raised, by 1, 1, 2, 2, 4, 4... tiles each time the tile is in
  a loop, and the blocks that see them search again, until no loop is left, `most_rounds` are over or all tiles of the
  loops left have been raised 96 times, as in parts of the map that are cut off from the goal. Here an agent may turn
  back, and most paths are found. Raises of one tile each take more rounds, greater ones lead to longer paths.

Ties of f are broken by greater g (rounded down to multiples of the greatest power of two up to the least cost, and cut
off at 2047 of them), then by the lower row, then column. On 8-connected maps the searches count in units of 2**-20 tile
lengths; the costs of the answer are exact.
"""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba import prange

from ...device import lean_njit, njit
from ...errors import SettingsError, shown
from ...grid.exact.blocks import BLOCK_SIZES
from ...grid.maps.grid_map import GridMap
from ...grid.paths import PathSet, check_words, first_words, joined, step_bits
from ...settings import Described, setting
from . import pba_star_search as search
from .pba_star_blocks import (
    LINK,
    Layout,
    Links,
    Maps,
    links_of_goal,
    load_window,
    map_toward,
    mark_seen,
    own_window,
    window_size,
)
from .shared import (
    PAGES,
    Arena,
    MovesDoNotFit,
    check_sides,
    checked_page,
    heuristic,
    pack,
    pack_all,
    path_set,
    units_of,
)

PAGE_WORDS = 1024  # of a page to begin with
LENGTH_UNITS = 1 << 20  # of a tile length in 8-connected searches
RAISING_BYTES = 9  # of a link with loops="raise": how often it was raised, and two int32 to find loops
TIMES = "upload", "border_to_border", "start_to_border", "reconstruction", "transfer"


@dataclass(frozen=True)
class Settings(Described):
    """Settings of P-BA*."""

    loops: str = setting(
        "avoid",
        "What is done about loops of border tiles: avoid them while moving, or raise their heuristics",
        choices=("avoid", "raise"),
    )
    most_rounds: int = setting(256, "Rounds of raising heuristics", 1, 2**31 - 1)
    memory_mb: int = setting(
        2048,
        "Bound on the memory for heuristics and links of distinct goals, and again on that for the links' moves; "
        "one goal is always taken, others in batches",
        1,
        2**31 - 1,
        unit="MB",
    )


def layout_of(grid: GridMap, block_size: int, avoid: bool) -> Layout:
    """How a GridMap is cut into planning blocks, for the compiled searches."""
    if block_size not in BLOCK_SIZES:
        raise SettingsError(f"block_size is {shown(block_size)}; allowed: {', '.join(map(str, BLOCK_SIZES))}")
    check_sides(grid, "pba_star")
    one, diagonal = units_of(grid.connectivity, LENGTH_UNITS)
    size, least = int(block_size), max(grid.least_cost, 1)
    blocks = size.bit_length() - 1, -(-grid.rows // size), -(-grid.cols // size), 4 * size - 4
    costs = grid.connectivity, one, diagonal, (least * one).bit_length() - 1
    return Layout(*grid.shape, *blocks, *costs, int(avoid), least)


class PbaStar:
    """P-BA* on one map.

    last_times: seconds of the last plan by step (`TIMES`; a step that was not needed takes 0)
    memory_bytes: what buffers on the device take, without the map of the host
    """

    def __init__(self, grid: GridMap, block_size: int = 8, device: str = "cpu", settings: Settings | None = None):
        self.settings = settings or Settings()
        self._grid, self._block_size = grid, block_size
        self._layout = layout_of(grid, block_size, self.settings.loops == "avoid")
        self.last_times = dict.fromkeys(TIMES, 0.0)
        if device == "cpu":
            self._searches: Any = CpuSearches(self.settings.memory_mb)
        else:
            from .pba_star_cuda import CudaSearches

            self._searches = CudaSearches(device, self.settings.memory_mb)
        self._searches.set_map(grid.costs, self._layout)
        self._goals = None  # whose border-to-border links are there

    @property
    def memory_bytes(self) -> int:
        return self._searches.memory_bytes

    def forget(self):
        """Let the next plan do the border-to-border step, also for the same goals and map."""
        self._goals = None

    def update(self, grid: GridMap, rows: np.ndarray, cols: np.ndarray):
        """Take a map of which some tiles have changed; the next plan searches again in the blocks that see them."""
        layout = layout_of(grid, self._block_size, self.settings.loops == "avoid")
        if layout != self._layout:
            self._goals = None
        self._grid, self._layout = grid, layout
        self._searches.set_map(grid.costs, layout)
        if self._goals is not None:
            todo = np.zeros(layout.block_rows * layout.block_cols, np.uint8)
            _mark_all(np.asarray(rows, np.int64), np.asarray(cols, np.int64), todo, layout)
            self._searches.mark(todo)

    def plan(self, starts: np.ndarray, goals: np.ndarray) -> PathSet:
        """Paths of agents. starts, goals: (N, 2) int32 [row, col], free tiles of the map"""
        self.last_times = dict.fromkeys(TIMES, 0.0)
        starts = np.ascontiguousarray(starts, np.int32)
        from_tile, to_tile = pack_all(starts), pack_all(np.asarray(goals, np.int32))
        if len(to_tile) and (to_tile == to_tile[0]).all():
            distinct, of_goal = to_tile[:1], np.zeros(len(to_tile), np.int32)
        else:
            distinct, which = np.unique(to_tile, return_inverse=True)
            of_goal = which.astype(np.int32)
        at_once, order = self._goals_at_once(), [np.zeros(0, int)]
        parts: list[PathSet] = []
        j = 0
        while j < len(distinct):
            agents: Any = slice(None)
            if len(distinct) > at_once:
                agents = np.flatnonzero((of_goal >= j) & (of_goal < j + at_once))
            try:
                answers = self._plan_batch(distinct[j : j + at_once], from_tile[agents], of_goal[agents] - np.int32(j))
            except MovesDoNotFit:
                at_once = min(at_once, len(distinct)) // 2
                continue
            part = path_set(starts[agents], self._grid.connectivity, *answers)
            if len(part) == len(starts):
                return part
            parts.append(replace(part, words=part.words.copy()))  # page-locked memory is scarce
            order.append(agents)
            j += at_once
        return joined(parts, starts, np.concatenate(order), self._grid.connectivity)

    def _goals_at_once(self):
        layout = self._layout
        links = links_of_goal(layout)
        bytes_per_link = LINK * 4 + (0 if layout.avoid else RAISING_BYTES)
        bytes_per_goal = layout.rows * layout.cols * (4 if layout.moves == 4 else 8) + links * bytes_per_link
        most_links = 2**31 // LINK  # their places are int32
        return max(1, min(int(self.settings.memory_mb) * 2**20 // bytes_per_goal, most_links // links))

    def _plan_batch(self, goals, starts, of_goal):
        again = self._goals is None or not np.array_equal(goals, self._goals)
        self._goals = None  # while the step is under way
        self._searches.border_to_border(goals, again, self.settings.most_rounds, self.last_times)
        self._goals = goals
        return self._searches.paths(starts, of_goal, self.last_times)


class CpuSearches:
    """The steps of P-BA* on the CPU's threads; `CudaSearches` has the same methods.

    As many workers as an arena has pages share the blocks and the agents.
    """

    def __init__(self, memory_mb: int):
        self._memory_mb = int(memory_mb)
        self._page_words = self._own_page_words = PAGE_WORDS
        self.memory_bytes = 0

    def set_map(self, costs: np.ndarray, layout: Layout):
        """costs: (rows, cols) uint8"""
        self._costs, self._layout = costs.reshape(-1), layout

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
            _raise_loops(self._links(), self._h, self._raises, self._todo, self._layout)
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
        self._scratch = np.zeros(PAGES * search.scratch_size(layout.shift), np.int64)
        size = PAGES * window_size(layout.shift)
        self._windows = Maps(np.empty(size, np.uint8), np.empty(size, self._h.dtype))
        self._raises = np.zeros(0 if layout.avoid else len(self._numbers) // LINK, np.uint8)
        self._todo, self._raised = np.ones(blocks, np.uint8), np.zeros(blocks, np.uint8)

    def _search(self, arena_is_empty):
        """Search the blocks of todo. Their links' moves follow those in the arena, which nobody may need any more."""
        jobs = np.flatnonzero(self._todo).astype(np.int32)
        while True:
            maps, arena = Maps(self._costs, self._h), Arena(self._words, self._used, 0, self._page_words)
            _border_to_border(jobs, maps, self._windows, self._scratch, self._links(), arena, self._layout)
            if self._used.max() <= self._page_words:
                return
            if arena_is_empty:
                self._page_words = checked_page(2 * int(self._used.max()), len(self._goals), self._memory_mb)
                self._words = np.empty(PAGES * self._page_words, np.uint32)
            arena_is_empty, self._used[:] = True, 0  # all blocks again, in an arena without what nobody needs
            jobs = np.arange(len(self._todo), dtype=np.int32)

    def _links(self):
        return Links(self._numbers, self._words, self._goals)

    def paths(self, starts: np.ndarray, of_goal: np.ndarray, times: dict) -> tuple[np.ndarray, ...]:
        """starts: (N,) int32 packed tiles; of_goal: (N,) int32 into the goals of the last border-to-border step

        -> status (N,) uint8, length (N,) int32, cost of straight and of diagonal steps (N,) int64, first (N,) int64,
        words
        """
        began, n = time.perf_counter(), len(starts)
        own = self._own_links(starts, of_goal)
        searched = time.perf_counter()
        status, length = np.empty(n, np.uint8), np.empty(n, np.int32)
        straight, diagonal = np.empty((2, n), np.int64)
        _walk_all(own, self._links(), of_goal, self._layout, status, length, straight, diagonal)
        first, total = first_words(length, step_bits(self._layout.moves))
        check_words(total)
        words = np.empty(total, np.uint32)
        _write_all(own, self._links(), of_goal, self._layout, length, words, first)
        times["start_to_border"] += searched - began
        times["reconstruction"] += time.perf_counter() - searched
        return status, length, straight, diagonal, first, words

    def _own_links(self, starts, of_goal):
        """The start-to-border step -> Links, one for each agent"""
        numbers, page_words = np.empty(len(starts) * LINK, np.int32), self._own_page_words
        while True:
            words, used = np.empty(PAGES * page_words, np.uint32), np.zeros(PAGES, np.int32)
            own, arena = Links(numbers, words, self._goals), Arena(words, used, 0, page_words)
            maps = Maps(self._costs, self._h)
            _start_to_border(starts, of_goal, maps, self._scratch, own, arena, self._layout)
            if used.max() <= page_words:
                return own
            self._own_page_words = page_words = checked_page(2 * int(used.max()), 1, self._memory_mb)


@njit
def _mark_all(rows, cols, todo, layout):
    for row, col in zip(rows, cols):
        mark_seen(row, col, todo, layout)


@njit(parallel=True)
def _heuristics(h, goals, layout):
    for i in prange(len(goals) * layout.rows):
        for col in range(layout.cols):
            tile = pack(i % layout.rows, col)
            h[np.int64(i) * layout.cols + col] = heuristic(tile, goals[i // layout.rows], layout)


@njit(parallel=True)
def _border_to_border(jobs, maps, windows, scratch, links, arena, layout):
    """jobs: (M,) int32, goal * blocks + block;  windows: the workers' own;  scratch: `memory_of` them"""
    for worker in prange(PAGES):
        _search_blocks(worker, jobs, maps, windows, scratch, links, arena, layout)


@lean_njit
def _search_blocks(worker, jobs, maps, windows, scratch, links, arena, layout):
    """A worker's share of the blocks: all border tiles of each."""
    n_blocks, size = layout.block_rows * layout.block_cols, window_size(layout.shift)
    memory, page = search.memory_of(scratch, worker, layout.shift), Arena(arena.words, arena.used, worker, arena.room)
    own = Maps(windows.costs[worker * size : (worker + 1) * size], windows.h[worker * size : (worker + 1) * size])
    for j in range(worker, len(jobs), PAGES):
        goal, block = jobs[j] // n_blocks, jobs[j] % n_blocks
        window = own_window(block, own.costs, own.h, layout)
        load_window(window, map_toward(goal, maps, layout), layout, 0, 1)
        for number in range(layout.ring):
            search.from_border(number, goal, window, layout, memory, links, page)


@njit(parallel=True)
def _start_to_border(starts, of_goal, maps, scratch, own, arena, layout):
    for worker in prange(PAGES):  # each its share of the agents
        memory = search.memory_of(scratch, worker, layout.shift)
        page = Arena(arena.words, arena.used, worker, arena.room)
        for i in range(len(starts) * worker // PAGES, len(starts) * (worker + 1) // PAGES):
            search.from_start(i, starts[i], of_goal[i], maps, layout, memory, own, page)


@njit
def _raise_loops(links, h, raises, todo, layout):
    """Find the links that are in loops, by following each until one that was met before, and raise their tiles."""
    n = len(links.numbers) // LINK
    met = np.zeros(n, np.int32)  # by which walk, from 1 on
    for i in range(n):
        j = np.int64(i)
        while j >= 0 and met[j] == 0:
            met[j] = i + 1
            j = search.next_of(j, links, layout)
        while j >= 0 and met[j] == i + 1:
            met[j] = -1
            search.raise_tile(j, h, raises, todo, layout)
            j = search.next_of(j, links, layout)


@njit(parallel=True)
def _walk_all(own, links, of_goal, layout, status, length, straight, diagonal):
    for i in prange(len(of_goal)):
        status[i], length[i], straight[i], diagonal[i] = search.walk(i, own, links, of_goal[i], layout)


@njit(parallel=True)
def _write_all(own, links, of_goal, layout, length, words, first):
    for i in prange(len(of_goal)):
        if length[i] > 0:
            search.write_moves(i, own, links, of_goal[i], layout, length[i], words, first[i])
