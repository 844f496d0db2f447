"""P-BA* on a CUDA device: its buffers, which are kept between plans, the order of its launches, and the kernels.

Border-to-border: a thread block for each planning block (as many at a time as are resident), a thread for each border
tile, the window's costs and heuristics in shared memory. Start-to-border: a thread for each agent. Paths: a thread for
each agent counts its steps, a prefix sum gives its place, and it writes its words. Loops are found by doubling: after
enough doublings of "the link after", the links that are still met are those in loops.

Kernels share the int32 buffer `state`: JOBS how many jobs there are, ALL_JOBS: every block of every goal; the barrier;
TOTAL words of all paths; from USED and OWN_USED on, words taken of each page of the two arenas; from GOALS on, the
goals, then the jobs.
"""

import functools
from types import SimpleNamespace

import numpy as np
from numba import cuda, int32, int64, uint8

from ...device import cuda_jit
from ...grid.paths import MOST_WORDS, check_words, step_bits, word_count
from ...parallel.buffers import DeviceBuffers
from ...parallel.pinned import PinnedPool
from ...parallel.team import sync_team
from ...parallel.team_cuda import WARP, team_blocks
from . import pba_star_search as search
from .pba_star_blocks import LINK, Layout, Links, Maps, links_of_goal, load_window, map_toward, own_window, window_size
from .prefix_cuda import SUM_THREADS, clear, place_in_block, scan
from .shared import PAGES, Arena, checked_page, heuristic, pack

JOBS, STATE_BARRIER, TOTAL, USED, OWN_USED, GOALS = 0, 1, 2, 8, 8 + PAGES, 8 + 2 * PAGES
ALL_JOBS = -1
THREADS = 128
REGISTERS = 64
# of the border-to-border searches
PAGE_WORDS = 1024  # of a page to begin with, at least
LINK_WORDS = 0, 0, 0, 1, 2, 4  # of the arena for a link to begin with, by Layout.shift
# of the start-to-border searches
OWN_PAGE_WORDS = 256
OWN_LINK_WORDS = 0, 0, 0, 0, 1, 2
ANSWER_BYTES = 3 * 8 + 4 + 1  # of an agent: see `_answer_parts`
LOOP_BLOCKS = 8  # thread blocks on each multiprocessor of a kernel that loops over an array
BARRIER_BLOCKS = 4  # of one with barriers
RESIDENT = 512  # threads of a multiprocessor that have scratch; on an H200 twice as many are no faster


class CudaSearches:
    """As CpuSearches, on a CUDA device. One plan at a time."""

    def __init__(self, device: str, memory_mb: int):
        self._memory_mb = int(memory_mb)
        self._index = int(device.partition(":")[2])
        self._buffers = DeviceBuffers(cuda.device_array)
        self._page_words = self._own_page_words = 0
        with cuda.gpus[self._index]:
            self._stream = cuda.stream()
            self._multiprocessors = cuda.get_current_device().MULTIPROCESSOR_COUNT
            self._pool = PinnedPool(cuda.pinned_array)
            self._events = [cuda.event() for _ in range(5)]
            self._head = cuda.pinned_array(GOALS, np.int32)

    @property
    def memory_bytes(self) -> int:
        return self._buffers.nbytes

    def set_map(self, costs: np.ndarray, layout: Layout):
        self._layout = layout
        self._kernels = _kernels(layout.shift, layout.moves, layout.ring, layout.one, layout.diagonal)
        self._ring_threads = -(-layout.ring // WARP) * WARP
        with cuda.gpus[self._index]:
            buffer = self._buffers.room("costs", costs.size, np.uint8)[: costs.size]
            buffer.copy_to_device(np.ascontiguousarray(costs.reshape(-1)), self._stream)
            self._stream.synchronize()

    def mark(self, todo: np.ndarray):
        self._todo |= np.tile(todo, len(self._goals))

    def border_to_border(self, goals: np.ndarray, again: bool, most_rounds: int, times: dict):
        layout, n_blocks = self._layout, self._layout.block_rows * self._layout.block_cols
        with cuda.gpus[self._index]:
            if again:
                self._goals, self._todo = goals, np.ones(len(goals) * n_blocks, np.uint8)
                links = len(goals) * links_of_goal(layout)
                self._page_words = max(self._page_words, PAGE_WORDS, links * LINK_WORDS[layout.shift] // PAGES)
                self._buffers.room(
                    "h", len(goals) * layout.rows * layout.cols, np.int32 if layout.moves == 4 else np.int64
                )
                self._links = self._buffers.room("links", links * LINK, np.int32)[: links * LINK]
                self._buffers.room("state", GOALS + len(goals) + len(self._todo), np.int32)
                if not layout.avoid:
                    self._buffers.room("jumps", 2 * links, np.int32)
                    self._buffers.room("raises", links + 2 * len(self._todo), np.uint8)
            elif not self._todo.any():
                return
            self._events[0].record(self._stream)
            self._prepare(again)
            while not self._search(most_rounds):
                if again:
                    self._page_words = checked_page(_grown(self._most_used(USED)), len(self._goals), self._memory_mb)
                again, self._todo[:] = True, 1  # in an arena that is greater, or without what nobody needs any more
                self._prepare(again)
            self._events[1].record(self._stream)
            self._events[1].synchronize()
            self._todo[:] = 0
        times["border_to_border"] += self._seconds(0)

    def _prepare(self, again):
        """Bring jobs, goals and heuristics to the device. again: all jobs, into an empty arena"""
        layout, state, n, links = self._layout, self._buffers["state"], len(self._todo), len(self._links) // LINK
        self._arena = self._buffers.room("arena", PAGES * self._page_words, np.uint32)
        if again:
            self._head[:] = 0
        else:
            self._read_head()
        if not layout.avoid:
            raises = self._buffers["raises"]
            if not again:
                raised = raises[links : links + n].copy_to_host(stream=self._stream)
                self._stream.synchronize()
                self._todo |= raised
            clear[self._multiprocessors * LOOP_BLOCKS, THREADS, self._stream](raises)
        jobs = np.flatnonzero(self._todo).astype(np.int32)
        self._jobs = len(jobs)
        self._head[JOBS] = ALL_JOBS if len(jobs) == n else len(jobs)
        goals_end = GOALS + len(self._goals)
        if len(jobs) < n:
            state[goals_end : goals_end + len(jobs)].copy_to_device(jobs, self._stream)
        state[:GOALS].copy_to_device(self._head, self._stream)
        state[GOALS:goals_end].copy_to_device(np.ascontiguousarray(self._goals), self._stream)
        if again or not layout.avoid:
            self._kernels.heuristics[self._multiprocessors * LOOP_BLOCKS, THREADS, self._stream](
                self._buffers["h"], state, len(self._goals), layout
            )
        self._stream.synchronize()

    def _search(self, most_rounds):
        """Search for all jobs, with the rounds of raising -> was the arena large enough?"""
        layout, n, kernels = self._layout, len(self._todo), self._kernels
        self._launch_border(self._jobs)
        for _ in range(0 if layout.avoid else most_rounds):
            blocks = team_blocks(kernels.raise_loops, THREADS, self._multiprocessors * BARRIER_BLOCKS)
            arrays = (self._buffers[name] for name in ("state", "jumps", "h", "raises"))
            sizes = len(self._goals), len(self._links) // LINK, n
            kernels.raise_loops[blocks, THREADS, self._stream](self._links, *arrays, *sizes, layout)
            self._launch_border(n)
            if self._read_head()[JOBS] == 0 or self._most_used(USED) > self._page_words:
                break
        else:
            self._read_head()
        return self._most_used(USED) <= self._page_words

    def _launch_border(self, jobs):
        scratch, resident = self._scratch(self._ring_threads)
        maps = (self._buffers[name] for name in ("costs", "h", "state"))
        self._kernels.border_to_border[max(1, min(jobs, resident)), self._ring_threads, self._stream](
            *maps, self._links, self._arena, scratch, len(self._goals), self._page_words, self._layout
        )

    def _read_head(self):
        self._buffers["state"][:GOALS].copy_to_host(self._head, self._stream)
        self._stream.synchronize()
        return self._head

    def _most_used(self, at):
        """-> words taken of the fullest page. at: USED or OWN_USED, of the head as it was read last"""
        return int(self._head[at : at + PAGES].max())

    def paths(self, starts: np.ndarray, of_goal: np.ndarray, times: dict) -> tuple[np.ndarray, ...]:
        n, shift = len(starts), self._layout.shift
        with cuda.gpus[self._index]:
            agents, staged = self._buffers.room("agents", 2 * n, np.int32)[: 2 * n], self._pool.take(2 * n, np.int32)
            staged[:n], staged[n:] = starts, of_goal
            self._events[0].record(self._stream)
            agents.copy_to_device(staged, self._stream)
            self._events[1].record(self._stream)
            self._own_page_words = max(self._own_page_words, OWN_PAGE_WORDS, n * OWN_LINK_WORDS[shift] // PAGES)
            while not self._start_to_border(agents, n):
                self._own_page_words = checked_page(_grown(self._most_used(OWN_USED)), 1, self._memory_mb)
                self._events[1].record(self._stream)
            self._events[2].record(self._stream)
            total = self._reconstruct(agents, n)
            self._events[3].record(self._stream)
            answers, words = self._pool.take(ANSWER_BYTES * n, np.uint8), self._pool.take(total, np.uint32)
            self._buffers["answers"][: len(answers)].copy_to_host(answers, self._stream)
            if total:
                self._buffers["words"][:total].copy_to_host(words, self._stream)
            self._events[4].record(self._stream)
            self._events[4].synchronize()
        for i, name in enumerate(("upload", "start_to_border", "reconstruction", "transfer")):
            times[name] += self._seconds(i)
        wide, length, status = _answer_parts(answers, n)
        return status, length, wide[:n], wide[n : 2 * n], wide[2 * n :], words

    def _start_to_border(self, agents, n):
        """Search from all starts -> was the arena of the agents' own links large enough?"""
        scratch, resident = self._scratch(THREADS)
        own = self._buffers.room("own", n * LINK, np.int32)
        own_arena = self._buffers.room("own_arena", PAGES * self._own_page_words, np.uint32)
        self._head[OWN_USED:] = 0
        state = self._buffers["state"]
        state[OWN_USED:GOALS].copy_to_device(self._head[OWN_USED:], self._stream)
        maps = self._buffers["costs"], self._buffers["h"], state
        self._kernels.start_to_border[min(-(-n // THREADS), resident), THREADS, self._stream](
            agents, *maps, own, own_arena, scratch, n, self._own_page_words, self._layout
        )
        self._read_head()
        return self._most_used(OWN_USED) <= self._own_page_words

    def _reconstruct(self, agents, n):
        """Put the paths together -> how many words they take"""
        parts = _answer_parts(self._buffers.room("answers", ANSWER_BYTES * n, np.uint8), n)
        blocks = -(-n // SUM_THREADS)
        sums = self._buffers.room("sums", blocks, np.int64)
        own, own_arena, state = self._buffers["own"], self._buffers["own_arena"], self._buffers["state"]
        kernels, layout = self._kernels, self._layout
        kernels.count_words[blocks, SUM_THREADS, self._stream](own, agents, self._links, state, *parts, sums, n, layout)
        scan[1, SUM_THREADS, self._stream](sums, state, TOTAL, blocks)

        def write(words):
            kernels.write[blocks, SUM_THREADS, self._stream](
                own, own_arena, agents, self._links, self._arena, state, *parts[:2], sums, words, n, layout
            )
            return int(self._read_head()[TOTAL])

        return self._buffers.filled("words", np.uint32, write, check_words)

    def _scratch(self, threads):
        """-> the searches' memory, and how many blocks of some threads it is for"""
        resident = self._multiprocessors * RESIDENT // threads
        if "scratch" not in self._buffers:
            scratch = self._buffers.room(
                "scratch", self._multiprocessors * RESIDENT * search.scratch_size(self._layout.shift), np.int64
            )
            clear[self._multiprocessors * LOOP_BLOCKS, THREADS, self._stream](scratch)
        return self._buffers["scratch"], resident

    def _seconds(self, i):
        return cuda.event_elapsed_time(self._events[i], self._events[i + 1]) / 1e3


def _grown(words):
    """The size of a page that has to hold so many words: half as many more, since pages fill differently every time."""
    return words + words // 2


def _answer_parts(answers, n):
    """Parts of a uint8 array: costs of straight, of diagonal steps and first words (3 * n,) int64; lengths (n,) int32;
    statuses (n,) uint8"""
    return answers[: 24 * n].view(np.int64), answers[24 * n : 28 * n].view(np.int32), answers[28 * n : 29 * n]


@functools.cache
def _kernels(shift, moves, ring, one, diagonal):
    """The kernels for a size of planning blocks and a number of moves, by name."""

    @cuda_jit(device=True)
    def fixed(layout):
        """A layout with what is known when the kernels are compiled."""
        rows, cols, block_rows, block_cols = layout.rows, layout.cols, layout.block_rows, layout.block_cols
        tie_shift, avoid, h_cost = layout.tie_shift, layout.avoid, layout.h_cost
        return Layout(rows, cols, shift, block_rows, block_cols, ring, moves, one, diagonal, tie_shift, avoid, h_cost)

    kernels = _search_kernels(fixed, shift, moves, ring) | _path_kernels(fixed, step_bits(moves))
    return SimpleNamespace(**kernels, raise_loops=_loop_kernel(fixed))


def _search_kernels(fixed, shift, moves, ring):
    window_tiles, h_type = window_size(shift), int32 if moves == 4 else int64

    @cuda_jit
    def heuristics(h, state, goals, layout):
        tiles = int64(layout.rows) * layout.cols
        for i in range(cuda.grid(1), goals * tiles, cuda.gridsize(1)):
            at = i % tiles
            h[i] = heuristic(pack(at // layout.cols, at % layout.cols), state[GOALS + i // tiles], layout)

    @cuda_jit(max_registers=REGISTERS)
    def border_to_border(costs, h, state, links, words, scratch, goals, page_words, given):
        layout, memory = fixed(given), search.memory_of(scratch, cuda.grid(1), shift)
        arena = Arena(words, state[USED : USED + PAGES], cuda.blockIdx.x % PAGES, page_words)
        tiles = cuda.shared.array(window_tiles, uint8)
        tiles_h = cuda.shared.array(window_tiles, h_type)
        maps, found = Maps(costs, h), Links(links, words, state[GOALS : GOALS + goals])
        n_blocks = layout.block_rows * layout.block_cols
        jobs, of_all = (goals * n_blocks, True) if state[JOBS] == ALL_JOBS else (state[JOBS], False)
        for j in range(cuda.blockIdx.x, jobs, cuda.gridDim.x):
            job = j if of_all else state[GOALS + goals + j]
            goal, block = job // n_blocks, job % n_blocks
            window = own_window(block, tiles, tiles_h, layout)
            cuda.syncthreads()
            load_window(window, map_toward(goal, maps, layout), layout, cuda.threadIdx.x, cuda.blockDim.x)
            cuda.syncthreads()
            if cuda.threadIdx.x < ring:
                search.from_border(cuda.threadIdx.x, goal, window, layout, memory, found, arena)

    @cuda_jit(max_registers=REGISTERS)
    def start_to_border(agents, costs, h, state, own_links, words, scratch, n, page_words, given):
        layout, memory = fixed(given), search.memory_of(scratch, cuda.grid(1), shift)
        arena = Arena(words, state[OWN_USED : OWN_USED + PAGES], cuda.blockIdx.x % PAGES, page_words)
        maps, own = Maps(costs, h), Links(own_links, words, state[GOALS:])
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            search.from_start(int64(i), agents[i], agents[n + i], maps, layout, memory, own, arena)

    return {"heuristics": heuristics, "border_to_border": border_to_border, "start_to_border": start_to_border}


def _loop_kernel(fixed):
    @cuda_jit(device=True)
    def meet_all(state):
        sync_team(state, STATE_BARRIER, cuda.blockIdx.x, cuda.gridDim.x)

    @cuda_jit
    def raise_loops(links, state, jumps, h, raises, goals, n, n_todo, given):
        """Raise the tiles of links in loops.

        jumps: (2 * n,) int32
        raises: (n + 2 * n_todo,) uint8: of each link; of each block, whether it was raised ever, and now
        """
        layout = fixed(given)
        first, step = cuda.grid(1), cuda.gridsize(1)
        found = Links(links, links, state[GOALS : GOALS + goals])  # no moves are looked up
        raised, todo = raises[n : n + n_todo], raises[n + n_todo : n + 2 * n_todo]
        for i in range(first, n, step):
            jumps[i] = search.next_of(int64(i), found, layout)
        if first == 0:
            state[JOBS] = 0
        at, other, reach = 0, n, 1
        while reach < n:
            meet_all(state)
            for i in range(first, n, step):
                jumps[other + i] = jumps[at + jumps[at + i]] if jumps[at + i] >= 0 else -1
            at, other, reach = other, at, 2 * reach
        meet_all(state)
        for i in range(first, n, step):
            jumps[other + i] = 0
        meet_all(state)
        for i in range(first, n, step):
            if jumps[at + i] >= 0:
                jumps[other + jumps[at + i]] = 1
        meet_all(state)
        for i in range(first, n, step):
            if jumps[other + i] == 1:
                search.raise_tile(int64(i), h, raises, todo, layout)
        meet_all(state)
        for i in range(first, n_todo, step):
            if todo[i] == 1:
                todo[i], raised[i] = 0, 1
                state[GOALS + goals + cuda.atomic.add(state, JOBS, 1)] = i

    return raise_loops


def _path_kernels(fixed, bits):
    @cuda_jit
    def count(own_links, agents, links, state, wide, length, status, sums, n, given):
        """Count the agents' steps.

        wide: (3 * n,) int64: straight and diagonal cost, words of the agents before in this thread block
        sums: (thread blocks,) int64 words of each
        """
        i, words = cuda.grid(1), 0
        layout = fixed(given)
        if i < n:
            own, found = Links(own_links, own_links, state[GOALS:]), Links(links, links, state[GOALS:])  # no moves
            status[i], steps, wide[i], wide[n + i] = search.walk(i, own, found, agents[n + i], layout)
            length[i] = steps
            words = word_count(steps, bits)
        place = place_in_block(words, sums)
        if i < n:
            wide[2 * n + i] = place

    @cuda_jit
    def write(own_links, own_words, agents, links, link_words, state, wide, length, sums, words, n, given):
        i = cuda.grid(1)
        layout = fixed(given)
        if i < n and state[TOTAL] <= min(len(words), MOST_WORDS):
            first = wide[2 * n + i] + sums[cuda.blockIdx.x]
            wide[2 * n + i] = first
            if length[i] > 0:
                own, found = Links(own_links, own_words, state[GOALS:]), Links(links, link_words, state[GOALS:])
                search.write_moves(i, own, found, agents[n + i], layout, length[i], words, first)

    return {"count_words": count, "write": write}
