"""CUDA: the kernels of P-BA* and their buffers, which are kept between plans.

Border-to-border: a thread block for each planning block (as many at a time as are resident), a thread for each border tile, the
window's costs and heuristics in shared memory. Start-to-border: a thread for each agent. Paths: a thread for each agent counts
its steps, a prefix sum gives its place, and it writes its words. Loops are found by doubling: after enough doublings of
"the link after", the links that are still met are those in loops.
"""

import functools
from typing import NamedTuple

import numpy as np
from numba import cuda, int32, int64, uint8

from ..device import cuda_jit
from ..team import sync_team
from ..team_kernels import team_blocks
from .agents import MOST_WORDS, step_bits, word_count
from .device_buffers import DeviceBuffers
from .pba_star import checked_page
from .pba_star_search import (
    LINK,
    Layout,
    heap_size,
    heuristic,
    links_of_goal,
    load_window,
    next_of,
    raise_tile,
    search_from_border,
    search_from_start,
    units_of,
    walk,
    window_size,
    write_moves,
)
from .pinned import PinnedPool
from .prefix_kernels import SCAN_THREADS, SUM_THREADS, clear_kernel, place_in_block, scan_kernel

PAGES = 64  # of an arena
PAGE_WORDS, OWN_PAGE_WORDS = 1024, 256  # of a page to begin with at least, border-to-border and start-to-border
LINK_WORDS, OWN_LINK_WORDS = (0, 0, 0, 1, 2, 4), (0, 0, 0, 0, 1, 2)  # arena to begin with, words for a link by Layout.shift
ANSWER_BYTES = 3 * 8 + 4 + 1  # of an agent: see `_answer_parts`
THREADS = 128
LOOP_BLOCKS = 8  # thread blocks on each multiprocessor of a kernel that loops over an array
BARRIER_BLOCKS = 4  # of one with barriers
RESIDENT = 512  # threads of a multiprocessor that have scratch; on an H200 twice as many are no faster
REGISTERS = 64
# the int32 buffer N begins with
JOBS, BARRIER, TOTAL, USED, OWN_USED, GOALS = 0, 1, 2, 8, 8 + PAGES, 8 + 2 * PAGES
ALL = -1  # N[JOBS]: every block of every goal; else how many jobs follow the goals in N


class CudaSearches:
    """As CpuSearches, on a CUDA device. One plan at a time."""

    def __init__(self, device, memory_mb):
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
    def memory_bytes(self):
        return self._buffers.nbytes

    def set_map(self, costs, blocks):
        self._blocks, self._kernels = blocks, _kernels(blocks.shift, blocks.moves)
        self._ring_threads = -(-blocks.ring // 32) * 32
        with cuda.gpus[self._index]:
            buffer = self._buffers.room("costs", costs.size, np.uint8)[:costs.size]
            buffer.copy_to_device(np.ascontiguousarray(costs.reshape(-1)), self._stream)
            self._stream.synchronize()

    def mark(self, todo):
        self._todo |= np.tile(todo, len(self._goals))

    def border_to_border(self, goals, again, most_rounds, times):
        B, n_blocks = self._blocks, self._blocks.block_rows * self._blocks.block_cols
        with cuda.gpus[self._index]:
            if again:
                self._goals, self._todo = goals, np.ones(len(goals) * n_blocks, np.uint8)
                links = len(goals) * links_of_goal(B)
                self._page_words = max(self._page_words, PAGE_WORDS, links * LINK_WORDS[B.shift] // PAGES)
                self._buffers.room("H", len(goals) * B.rows * B.cols, np.int32 if B.moves == 4 else np.int64)
                self._links = self._buffers.room("links", links * LINK, np.int32)[:links * LINK]
                self._buffers.room("N", GOALS + len(goals) + len(self._todo), np.int32)
                if not B.avoid:
                    self._buffers.room("J", 2 * links, np.int32)
                    self._buffers.room("raises", links + 2 * len(self._todo), np.uint8)
            elif not self._todo.any():
                return
            self._events[0].record(self._stream)
            self._prepare(again)
            while not self._search(most_rounds):
                if again:
                    self._page_words = checked_page(_grown(self._most_used(USED)), len(self._goals), self._memory_mb)
                again, self._todo[:] = True, 1  # all again, in an arena that is greater or without what nobody needs any more
                self._prepare(again)
            self._events[1].record(self._stream)
            self._events[1].synchronize()
            self._todo[:] = 0
        times["border_to_border"] += self._seconds(0)

    def _prepare(self, again):
        """Jobs, goals and heuristics to the device. again: all jobs, into an empty arena"""
        B, N, n, links = self._blocks, self._buffers["N"], len(self._todo), len(self._links) // LINK
        self._arena = self._buffers.room("arena", PAGES * self._page_words, np.uint32)
        if again:
            self._head[:] = 0
        else:
            self._read_head()
        if not B.avoid:
            raises = self._buffers["raises"]
            if not again:
                raised = raises[links:links + n].copy_to_host(stream=self._stream)
                self._stream.synchronize()
                self._todo |= raised
            self._kernels.clear[self._multiprocessors * LOOP_BLOCKS, THREADS, self._stream](raises)
        jobs = np.flatnonzero(self._todo).astype(np.int32)
        self._jobs = len(jobs)
        self._head[JOBS] = ALL if len(jobs) == n else len(jobs)
        goals_end = GOALS + len(self._goals)
        if len(jobs) < n:
            N[goals_end:goals_end + len(jobs)].copy_to_device(jobs, self._stream)
        N[:GOALS].copy_to_device(self._head, self._stream)
        N[GOALS:goals_end].copy_to_device(np.ascontiguousarray(self._goals), self._stream)
        if again or not B.avoid:
            self._kernels.heuristics[self._multiprocessors * LOOP_BLOCKS, THREADS, self._stream](
                self._buffers["H"], N, len(self._goals), B)
        self._stream.synchronize()

    def _search(self, most_rounds):
        """The searches of all jobs, and the rounds of raising -> whether the arena was large enough."""
        B, n, K = self._blocks, len(self._todo), self._kernels
        self._launch_border(self._jobs)
        for _ in range(0 if B.avoid else most_rounds):
            blocks = team_blocks(K.raise_loops, THREADS, self._multiprocessors * BARRIER_BLOCKS)
            K.raise_loops[blocks, THREADS, self._stream](self._links, *(self._buffers[name] for name in ("N", "J", "H", "raises")),
                                                         len(self._goals), len(self._links) // LINK, n, B)
            self._launch_border(n)
            if self._read_head()[JOBS] == 0 or self._most_used(USED) > self._page_words:
                break
        else:
            self._read_head()
        return self._most_used(USED) <= self._page_words

    def _launch_border(self, jobs):
        scratch, resident = self._scratch(self._ring_threads)
        self._kernels.border_to_border[max(1, min(jobs, resident)), self._ring_threads, self._stream](
            self._buffers["costs"], self._buffers["H"], self._buffers["N"], self._links, self._arena, scratch, len(self._goals),
            self._page_words, self._blocks)

    def _read_head(self):
        self._buffers["N"][:GOALS].copy_to_host(self._head, self._stream)
        self._stream.synchronize()
        return self._head

    def _most_used(self, at):
        """-> words taken of the fullest page. at: USED or OWN_USED, of the head as it was read last"""
        return int(self._head[at:at + PAGES].max())

    def paths(self, starts, of_goal, times):
        n, shift = len(starts), self._blocks.shift
        with cuda.gpus[self._index]:
            agents, staged = self._buffers.room("agents", 2 * n, np.int32)[:2 * n], self._pool.take(2 * n, np.int32)
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
            self._buffers["answers"][:len(answers)].copy_to_host(answers, self._stream)
            if total:
                self._buffers["words"][:total].copy_to_host(words, self._stream)
            self._events[4].record(self._stream)
            self._events[4].synchronize()
        for i, name in enumerate(("upload", "start_to_border", "reconstruction", "transfer")):
            times[name] += self._seconds(i)
        wide, length, status = _answer_parts(answers, n)
        return status, length, wide[:n], wide[n:2 * n], wide[2 * n:], words

    def _start_to_border(self, agents, n):
        """-> whether the arena of the agents' own links was large enough"""
        scratch, resident = self._scratch(THREADS)
        own = self._buffers.room("own", n * LINK, np.int32)
        own_arena = self._buffers.room("own_arena", PAGES * self._own_page_words, np.uint32)
        self._head[OWN_USED:] = 0
        N = self._buffers["N"]
        N[OWN_USED:GOALS].copy_to_device(self._head[OWN_USED:], self._stream)
        self._kernels.start_to_border[min(-(-n // THREADS), resident), THREADS, self._stream](
            agents, self._buffers["costs"], self._buffers["H"], N, own, own_arena, scratch, n, self._own_page_words, self._blocks)
        self._read_head()
        return self._most_used(OWN_USED) <= self._own_page_words

    def _reconstruct(self, agents, n):
        """-> how many words the paths take"""
        parts = _answer_parts(self._buffers.room("answers", ANSWER_BYTES * n, np.uint8), n)
        blocks = -(-n // SUM_THREADS)
        sums = self._buffers.room("sums", blocks, np.int64)
        own, own_arena, N = self._buffers["own"], self._buffers["own_arena"], self._buffers["N"]
        K, B = self._kernels, self._blocks
        K.count[blocks, SUM_THREADS, self._stream](own, agents, self._links, N, *parts, sums, n, B)
        K.scan[1, SCAN_THREADS, self._stream](sums, N, TOTAL, blocks)

        def write(words):
            K.write[blocks, SUM_THREADS, self._stream](own, own_arena, agents, self._links, self._arena, N, *parts[:2], sums, words,
                                                       n, B)
            return int(self._read_head()[TOTAL])

        return self._buffers.filled("words", np.uint32, write)

    def _scratch(self, threads):
        """-> the searches' memory, and how many blocks of some threads it is for"""
        resident = self._multiprocessors * RESIDENT // threads
        if "scratch" not in self._buffers:
            scratch = self._buffers.room("scratch", self._multiprocessors * RESIDENT * _scratch_size(self._blocks.shift), np.int64)
            self._kernels.clear[self._multiprocessors * LOOP_BLOCKS, THREADS, self._stream](scratch)
        return self._buffers["scratch"], resident

    def _seconds(self, i):
        return cuda.event_elapsed_time(self._events[i], self._events[i + 1]) / 1e3


def _grown(words):
    """Of a page that has to hold so many words: half as many more, since the pages are filled differently every time."""
    return words + words // 2


def _answer_parts(answers, n):
    """Of uint8: costs of straight, costs of diagonal steps, first words (3 * n,) int64; lengths (n,) int32; statuses (n,) uint8"""
    return answers[:24 * n].view(np.int64), answers[24 * n:28 * n].view(np.int32), answers[28 * n:29 * n]


def _scratch_size(shift):
    """int64 that one thread's search takes: nodes, the last stamp, heap."""
    return window_size(shift) + 1 + heap_size(shift)


class Kernels(NamedTuple):
    heuristics: object
    border_to_border: object
    start_to_border: object
    raise_loops: object
    count: object
    scan: object
    write: object
    clear: object


@functools.cache
def _kernels(shift, moves):
    """The kernels for a size of planning blocks and a number of moves."""
    window_tiles, scratch_size = window_size(shift), _scratch_size(shift)
    nodes_size, ring, bits = window_tiles + 1, 4 * ((1 << shift) - 1), step_bits(moves)
    one, diagonal = units_of(moves)
    h_type = int32 if moves == 4 else int64

    @cuda_jit(device=True)
    def fixed(B):
        """B with what is known when the kernels are compiled."""
        return Layout(B.rows, B.cols, shift, B.block_rows, B.block_cols, ring, moves, one, diagonal, B.tie_shift, B.avoid,
                      B.h_cost)

    @cuda_jit
    def heuristics(H, N, goals, B):
        tiles = int64(B.rows) * B.cols
        for i in range(cuda.grid(1), goals * tiles, cuda.gridsize(1)):
            at = i % tiles
            H[i] = heuristic(at // B.cols, at % B.cols, N[GOALS + i // tiles], B)

    @cuda_jit(max_registers=REGISTERS)
    def border_to_border(costs, H, N, links, arena, scratch, goals, page_words, B):
        window = cuda.shared.array(window_tiles, uint8)
        h = cuda.shared.array(window_tiles, h_type)
        own = cuda.grid(1) * int64(scratch_size)
        nodes, heap = scratch[own:own + nodes_size], scratch[own + nodes_size:own + scratch_size]
        G = fixed(B)
        n_blocks = G.block_rows * G.block_cols
        jobs, of_all = (goals * n_blocks, True) if N[JOBS] == ALL else (N[JOBS], False)
        for j in range(cuda.blockIdx.x, jobs, cuda.gridDim.x):
            job = j if of_all else N[GOALS + goals + j]
            of_goal, block = job // n_blocks, job % n_blocks
            cuda.syncthreads()
            load_window(costs, H, int64(of_goal) * G.rows * G.cols, block, G, cuda.threadIdx.x, cuda.blockDim.x, window, h)
            cuda.syncthreads()
            if cuda.threadIdx.x < ring:
                search_from_border(cuda.threadIdx.x, block, N[GOALS + of_goal], window, h, G, nodes, heap, links,
                                   of_goal * links_of_goal(G), arena, N[USED:USED + PAGES], cuda.blockIdx.x % PAGES, page_words)

    @cuda_jit(max_registers=REGISTERS)
    def start_to_border(agents, costs, H, N, own_links, arena, scratch, n, page_words, B):
        own = cuda.grid(1) * int64(scratch_size)
        nodes, heap = scratch[own:own + nodes_size], scratch[own + nodes_size:own + scratch_size]
        G = fixed(B)
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            of_goal = agents[n + i]
            search_from_start(agents[i], N[GOALS + of_goal], costs, H, int64(of_goal) * G.rows * G.cols, G, nodes, heap,
                              own_links, int64(LINK) * i, arena, N[OWN_USED:OWN_USED + PAGES], cuda.blockIdx.x % PAGES,
                              page_words)

    @cuda_jit
    def raise_loops(links, N, J, H, raises, goals, n, n_todo, B):
        """J: (2 * n,) int32; raises: (n + 2 * n_todo,) uint8: of each link; of each block, whether it was raised ever, and now"""
        G = fixed(B)
        first, step = cuda.grid(1), cuda.gridsize(1)
        goal_tiles, raised, todo = N[GOALS:GOALS + goals], raises[n:n + n_todo], raises[n + n_todo:n + 2 * n_todo]
        for i in range(first, n, step):
            J[i] = next_of(int64(i), links, goal_tiles, G)
        if first == 0:
            N[JOBS] = 0
        at, other, reach = 0, n, 1
        while reach < n:
            sync_team(N, BARRIER, cuda.blockIdx.x, cuda.gridDim.x)
            for i in range(first, n, step):
                J[other + i] = J[at + J[at + i]] if J[at + i] >= 0 else -1
            at, other, reach = other, at, 2 * reach
        sync_team(N, BARRIER, cuda.blockIdx.x, cuda.gridDim.x)
        for i in range(first, n, step):
            J[other + i] = 0
        sync_team(N, BARRIER, cuda.blockIdx.x, cuda.gridDim.x)
        for i in range(first, n, step):
            if J[at + i] >= 0:
                J[other + J[at + i]] = 1
        sync_team(N, BARRIER, cuda.blockIdx.x, cuda.gridDim.x)
        for i in range(first, n, step):
            if J[other + i] == 1:
                raise_tile(int64(i), H, raises, todo, G)
        sync_team(N, BARRIER, cuda.blockIdx.x, cuda.gridDim.x)
        for i in range(first, n_todo, step):
            if todo[i] == 1:
                todo[i], raised[i] = 0, 1
                N[GOALS + goals + cuda.atomic.add(N, JOBS, 1)] = i

    @cuda_jit
    def count(own_links, agents, links, N, wide, length, status, sums, n, B):
        """wide: (3 * n,) int64: straight and diagonal cost, words of the agents before in this thread block; sums: of a block"""
        i, words = cuda.grid(1), 0
        G = fixed(B)
        if i < n:
            of_goal = agents[n + i]
            links_at = of_goal * links_of_goal(G)
            own = own_links[LINK * i:LINK * i + LINK]
            status[i], steps, wide[i], wide[n + i] = walk(own, links, links_at, N[GOALS + of_goal], G)
            length[i] = steps
            words = word_count(steps, bits)
        place = place_in_block(words, sums)
        if i < n:
            wide[2 * n + i] = place

    @cuda_jit
    def write(own_links, own_arena, agents, links, arena, N, wide, length, sums, words, n, B):
        i = cuda.grid(1)
        G = fixed(B)
        if i < n and N[TOTAL] <= min(len(words), MOST_WORDS):
            of_goal = agents[n + i]
            first = wide[2 * n + i] + sums[cuda.blockIdx.x]
            wide[2 * n + i] = first
            if length[i] > 0:
                links_at = of_goal * links_of_goal(G)
                own = own_links[LINK * i:LINK * i + LINK]
                write_moves(own, own_arena, links, links_at, N[GOALS + of_goal], G, arena, words, first, length[i])

    return Kernels(heuristics, border_to_border, start_to_border, raise_loops, count, scan_kernel(), write, clear_kernel())
