"""CUDA: the kernels of P-BA*.

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

from numba import cuda, int32, int64, uint8

from ...device import cuda_jit
from ...grid.paths import MOST_WORDS, step_bits, word_count
from ...parallel.team import sync_team
from .pba_star_blocks import Layout, Links, Maps, load_window, map_toward, own_window, window_size
from .pba_star_search import memory_of, next_of, raise_tile, search_from_border, search_from_start, walk, write_moves
from .prefix_cuda import clear_kernel, place_in_block, scan_kernel
from .shared import PAGES, Arena, heuristic, pack

JOBS, STATE_BARRIER, TOTAL, USED, OWN_USED, GOALS = 0, 1, 2, 8, 8 + PAGES, 8 + 2 * PAGES
ALL_JOBS = -1
THREADS = 128
REGISTERS = 64


def kernels_for(layout: Layout) -> SimpleNamespace:
    """The kernels for a size of planning blocks and a number of moves, by name."""
    return _kernels(layout.shift, layout.moves, layout.ring, layout.one, layout.diagonal)


@functools.cache
def _kernels(*known):
    kernels = _search_kernels(*known) | _path_kernels(*known) | {"raise_loops": _loop_kernel(*known)}
    return SimpleNamespace(**kernels, scan=scan_kernel(), clear=clear_kernel())


@functools.cache
def _fixed_function(shift, moves, ring, one, diagonal):
    @cuda_jit(device=True)
    def fixed(layout):
        """A layout with what is known when the kernels are compiled."""
        rows, cols, block_rows, block_cols = layout.rows, layout.cols, layout.block_rows, layout.block_cols
        tie_shift, avoid, h_cost = layout.tie_shift, layout.avoid, layout.h_cost
        return Layout(rows, cols, shift, block_rows, block_cols, ring, moves, one, diagonal, tie_shift, avoid, h_cost)

    return fixed


def _search_kernels(shift, moves, ring, one, diagonal):
    fixed = _fixed_function(shift, moves, ring, one, diagonal)
    window_tiles, h_type = window_size(shift), int32 if moves == 4 else int64

    @cuda_jit(device=True)
    def own_page(words, used, page_words):
        """An arena as this thread sees it."""
        return Arena(words, used, cuda.blockIdx.x % PAGES, page_words)

    @cuda_jit
    def heuristics(h, state, goals, layout):
        tiles = int64(layout.rows) * layout.cols
        for i in range(cuda.grid(1), goals * tiles, cuda.gridsize(1)):
            at = i % tiles
            h[i] = heuristic(pack(at // layout.cols, at % layout.cols), state[GOALS + i // tiles], layout)

    @cuda_jit(max_registers=REGISTERS)
    def border_to_border(costs, h, state, links, words, scratch, goals, page_words, given):
        layout, memory = fixed(given), memory_of(scratch, cuda.grid(1), shift)
        arena = own_page(words, state[USED : USED + PAGES], page_words)
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
                search_from_border(cuda.threadIdx.x, goal, window, layout, memory, found, arena)

    @cuda_jit(max_registers=REGISTERS)
    def start_to_border(agents, costs, h, state, own_links, words, scratch, n, page_words, given):
        layout, memory = fixed(given), memory_of(scratch, cuda.grid(1), shift)
        arena = own_page(words, state[OWN_USED : OWN_USED + PAGES], page_words)
        maps, own = Maps(costs, h), Links(own_links, words, state[GOALS:])
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            search_from_start(int64(i), agents[i], agents[n + i], maps, layout, memory, own, arena)

    return {"heuristics": heuristics, "border_to_border": border_to_border, "start_to_border": start_to_border}


def _loop_kernel(shift, moves, ring, one, diagonal):
    fixed = _fixed_function(shift, moves, ring, one, diagonal)

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
            jumps[i] = next_of(int64(i), found, layout)
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
                raise_tile(int64(i), h, raises, todo, layout)
        meet_all(state)
        for i in range(first, n_todo, step):
            if todo[i] == 1:
                todo[i], raised[i] = 0, 1
                state[GOALS + goals + cuda.atomic.add(state, JOBS, 1)] = i

    return raise_loops


def _path_kernels(shift, moves, ring, one, diagonal):
    fixed, bits = _fixed_function(shift, moves, ring, one, diagonal), step_bits(moves)

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
            status[i], steps, wide[i], wide[n + i] = walk(i, own, found, agents[n + i], layout)
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
                write_moves(i, own, found, agents[n + i], layout, length[i], words, first)

    return {"count_words": count, "write": write}
