"""`exact`: complete and optimal cost-to-go fields of many goals, and paths down them.

[CE12] searches inside planning blocks and joins what it finds at their borders; its joints can lead in circles, so paths are
lost. Here the blocks stay and the search is an exact relaxation (`block_rounds`): no path is lost, none is longer than need be.
"""

import functools
import math
import os
import time
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numba import prange

from ..device import njit
from ..errors import SettingsError
from ..team import run_team
from . import block_rounds as rounds
from .agents import AgentStatus, PathSet, check_words, first_words, step_bits, with_threads
from .bit_blocks import FAR, bit_operations, bit_scratch
from .blocks import Blocks
from .checks import number, whole
from .descent import walk_functions
from .value_blocks import NEVER, unit_of, value_scratch

SHARED_TILES = 1 << 26  # on larger maps each agent walks for itself: a word for each tile would be too much
SHARING_AGENTS = 256  # fewer agents hardly meet
SOLVED, NO_PATH = int(AgentStatus.SOLVED), int(AgentStatus.NO_PATH)  # for compiled code
MOST_REPAIRED = 1 / 16  # changed blocks, of all: with more, planning anew takes less time than a repair (measured on 1024x1024)
FEW_REPAIRED = 16  # changed blocks of all fields; one thread is done with fewer before several have met a few dozen times
MOST_ITEMS = 2**31 - 1  # blocks of all fields together: int32
BATCHES = 32  # at least about so many in a time limit
MOST_THREADS = 8  # a round has a few dozen blocks, and all threads wait for each other after it


@dataclass(frozen=True)
class Settings:
    """memory_limit_bytes: of all fields together; goals beyond it are planned in further batches. Where not even one field fits,
        its map is planned piece by piece (`streamed_field`), and the limit holds for a piece with its part of the map.
    time_limit_s: of a plan for several goals; agents to goals whose batch has not begun by then are TIMED_OUT. With a limit,
        batches are as small as it needs; one field is always planned to its end
    """

    memory_limit_bytes: int = 2 << 30
    time_limit_s: float = float("inf")

    def __post_init__(self):
        number("time_limit_s", self.time_limit_s, math.ulp(0.0), math.inf, " (seconds)", SettingsError)
        whole("memory_limit_bytes", self.memory_limit_bytes, 1, 2**62)


@dataclass
class FieldArrays:
    """What the compiled code works on beside the map; shapes in `block_rounds`."""

    V: np.ndarray
    E: np.ndarray
    directions: np.ndarray
    Q: np.ndarray
    goals: np.ndarray
    N: np.ndarray


@dataclass(frozen=True)
class FieldShape:
    """Of a map's fields: layout BITS or VALUES, the blocks, connectivity."""

    layout: int
    blocks: Blocks
    connectivity: int

    @staticmethod
    def of(grid, block_size):
        layout = rounds.BITS if grid.uniform_cost and grid.connectivity == 4 else rounds.VALUES
        return FieldShape(layout, Blocks(*grid.shape, block_size), grid.connectivity)

    @property
    def padded(self):
        """Rows and columns of the arrays of `value_blocks`."""
        return (self.blocks.height - 2) * self.blocks.size + 2, (self.blocks.width - 2) * self.blocks.size + 2

    @property
    def map_shape(self):
        """-> shape, type of M"""
        return ((self.blocks.count, self.blocks.size), np.uint32) if self.layout == rounds.BITS else (self.padded, np.uint8)

    def map_array(self, grid):
        """M of a map."""
        if self.layout == rounds.BITS:
            return self.blocks.free_rows(grid.costs > 0)
        cost = np.zeros(*self.map_shape)
        cost[1 : grid.rows + 1, 1 : grid.cols + 1] = grid.costs
        return cost

    def change_map(self, M, grid, rows, cols):
        """Bring some tiles (N,) of M up to date -> the first and the last row of M that changed"""
        if self.layout == rounds.BITS:
            return _set_bits(M, rows, cols, grid.costs, self.blocks.width)
        return _set_costs(M, rows, cols, grid.costs)

    def field_shapes(self, slots):
        """-> {name: (shape, type)} of the arrays of so many fields"""
        size, items = self.blocks.size, slots * self.blocks.count
        bits = self.layout == rounds.BITS
        return {
            "V": ((items, 2, size), np.uint32) if bits else ((slots, *self.padded), np.int64),
            "E": ((items, 4, size) if bits else (1, 1, 1), np.int32),
            "directions": ((items, size * size // 8), np.uint32),
            "Q": ((5, items), np.int32),
            "goals": ((slots, 4), np.int32),
        }

    @property
    def field_bytes(self):
        """Memory of one field."""
        return sum(_bytes(shape, kind) for shape, kind in self.field_shapes(1).values())

    @property
    def bytes_with_map(self):
        """Memory of one field and of M."""
        return self.field_bytes + _bytes(*self.map_shape)


def _bytes(shape, kind):
    return math.prod(shape) * np.dtype(kind).itemsize


def request(goals, new=(), seeds=(), relax=(), directions=rounds.CHANGES):
    """R of `update_fields`. goals: (slots, 4) of all slots; new: slots to plan from scratch; seeds: blocks to repair in all slots;
    relax: blocks to go on from; directions: NONE, CHANGES, ALL"""
    header = [len(new), len(goals), len(seeds), len(relax), directions]
    return np.concatenate([header, goals.ravel(), new, seeds, relax], dtype=np.int32, casting="unsafe")  # an empty () is of float64


class CpuFields:
    """Fields on the CPU. Not for several threads at once."""

    def __init__(self, shape):
        self.shape = shape
        self.members = min(MOST_THREADS, len(os.sched_getaffinity(0)))
        make = bit_scratch if shape.layout == rounds.BITS else value_scratch
        self._scratch = [make(shape.blocks.size) for _ in range(self.members)]
        self._update = rounds.field_functions(shape.layout, shape.blocks.size, shape.connectivity)
        self._count, self._write = walk_functions(shape.blocks.size)
        self._map = self._arrays = None

    def allocate(self, slots):
        """Room for so many fields; those there were are lost."""
        arrays = {name: np.zeros(shape, kind) for name, (shape, kind) in self.shape.field_shapes(slots).items()}
        self._arrays = FieldArrays(N=np.zeros(8, np.int32), **arrays)

    @property
    def memory_bytes(self):
        """What is kept, without the map."""
        return sum(a.nbytes for a in vars(self._arrays).values()) if self._arrays else 0

    def set_map(self, grid):
        """Before fields are made."""
        self._map = self.shape.map_array(grid)

    def change_map(self, grid, rows, cols):
        """Before fields are repaired."""
        self.shape.change_map(self._map, grid, rows, cols)

    def staged(self):
        """{name: array} M, V, E, directions of one slot, in place of `set_map`; what is written there counts after `load`, and
        what was computed lies there after `unload`. Here they are the very arrays that are worked on."""
        if self._map is None:
            self._map = np.zeros(*self.shape.map_shape)
        a = self._arrays
        return {"M": self._map, "V": a.V, "E": a.E, "directions": a.directions}

    def load(self, *names):
        """See `staged`."""

    def unload(self, *names):
        """See `staged`."""

    def update(self, R):
        """Run `update_fields`; it has ended after `wait`, `descend` or `unload`."""
        a, blocks = self._arrays, self.shape.blocks
        used = R[rounds.LISTS :][rounds.GOAL_USED : 4 * R[rounds.LIVE] : 4].sum()
        few = not R[rounds.NEW] and not R[rounds.RELAX] and used * R[rounds.SEEDS] <= FEW_REPAIRED
        members = 1 if few else self.members

        def work(member):
            place = rounds.Place(member, members, member, members)
            self._update(
                blocks.width, blocks.count, self._map, a.V, a.E, a.directions, a.goals, R, a.Q, a.N, self._scratch[member], 0, place
            )

        run_team(members, work)

    def wait(self):
        """Until fields are there."""

    def descend(self, starts, slots, bits):
        """Paths of agents. starts: (N, 2) int32; slots: (N,) int32, or (1,) for all -> length (N,) int32, -1 without a path; first (N,) int64;
        cost-to-go of the starts in units (N,) int64, empty of BITS; words"""
        n = len(starts)
        blocks, directions = self.shape.blocks, self._arrays.directions
        length, met, shared = (np.empty(n, np.int32) for _ in range(3))
        cuts = np.linspace(0, n, self.members + 1).astype(int)
        sharing = n >= SHARING_AGENTS and blocks.rows * blocks.cols <= SHARED_TILES

        def count(member):
            known = np.zeros((blocks.rows, blocks.cols) if sharing else (0, 0), np.int64)
            part = cuts[member], cuts[member + 1]
            self._count(*part, starts, slots, blocks.width, blocks.count, directions, known, length, met, shared)

        run_team(self.members, count)
        first, total = first_words(np.maximum(length, 0), bits)
        check_words(total)
        words = np.zeros(total, np.uint32)

        def write(member):
            part = cuts[member], cuts[member + 1]
            self._write(
                *part, starts, slots, blocks.width, blocks.count, directions, length, met, shared, first, bits, words
            )

        run_team(self.members, write)
        values = self.shape.layout == rounds.VALUES
        return length, first, self._arrays.V[slots, starts[:, 0] + 1, starts[:, 1] + 1] if values else np.zeros(0, np.int64), words

    def field(self, slot):
        """-> V, E, M of one slot, on the host"""
        a = self._arrays
        if self.shape.layout == rounds.VALUES:
            return a.V[slot], None, self._map
        items = slice(slot * self.shape.blocks.count, (slot + 1) * self.shape.blocks.count)
        return a.V[items], a.E[items], self._map


def open_fields(shape, device):
    """-> CpuFields or CudaFields, for a device "cpu" or "cuda:N" """
    if device == "cpu":
        return CpuFields(shape)
    from .block_kernels import CudaFields

    return CudaFields(shape, device)


class Exact:
    """The algorithm `exact` of `planner.BlockPlanner`. Fields are kept for goals that come again, and repaired then."""

    def __init__(self, grid, block_size, device, settings=None):
        self.device = device
        self.settings = settings or Settings()
        self.block_size = block_size
        self._open(grid)

    def _open(self, grid):
        """An engine for the map's layout, without any field."""
        shape, limit = FieldShape.of(grid, self.block_size), self.settings.memory_limit_bytes
        if shape.field_bytes <= limit:
            fields = open_fields(shape, self.device)
        else:
            from .streamed_field import StreamedFields

            fields = StreamedFields(shape, self.device, limit)
        fields.set_map(grid)
        self.grid, self.shape, self._fields = grid, shape, fields
        self._most = max(1, min(limit // shape.field_bytes, MOST_ITEMS // shape.blocks.count))
        self._slot_of = OrderedDict()  # goal (row, col) -> slot; the goal used last comes last
        self._goals = np.zeros((0, 4), np.int32)
        self._stale = np.zeros((0, self.shape.blocks.count), np.bool_)  # blocks where the map is not what a slot's field was made for

    def plan(self, starts, goals):
        """Paths of agents from free tiles to free tiles. starts, goals: (N, 2) int32 -> PathSet"""
        n, late = len(starts), slice(0)  # late: agents for whom there was no time
        bits = step_bits(self.grid.connectivity)
        if n and (goals.strides[0] == 0 or (goals == goals[0]).all()):
            length, first, value, words = self._fields.descend(starts, self._slots(goals[:1]), bits)
        else:
            keys, which = np.unique(goals[:, 0].astype(np.int64) * self.grid.cols + goals[:, 1], return_inverse=True)
            distinct = np.column_stack(np.divmod(keys, self.grid.cols)).astype(np.int32)
            length, first, value = np.full(n, -1, np.int32), np.zeros(n, np.int64), np.zeros(n, np.int64)
            parts, begin = [np.zeros(0, np.uint32)], 0
            order = np.argsort(which, kind="stable")
            firsts = np.searchsorted(which[order], np.arange(len(keys) + 1))  # of each goal's agents, in `order`
            for batch in self._batches(len(keys)):
                agents = order[firsts[batch.start] : firsts[batch.stop]]
                slots = self._slots(distinct[batch])[which[agents] - batch.start]
                length[agents], first[agents], values, words = self._fields.descend(starts[agents], slots, bits)
                if len(values):
                    value[agents] = values
                first[agents] += begin
                begin += len(words)
                check_words(begin)
                parts.append(words)
                late = order[firsts[batch.stop] :]
            words = np.concatenate(parts)
        status, cost = np.empty(n, np.uint8), np.empty(n)
        uniform = self.grid.uniform_cost if self.shape.layout == rounds.BITS else 0
        _conclude(length, value, uniform, status, cost)
        status[late] = AgentStatus.TIMED_OUT
        if not uniform:
            cost /= unit_of(self.grid.connectivity)  # by NumPy: multiples of the unit become whole numbers
        return PathSet(starts, status, cost, length, first, words, bits)

    def _batches(self, goals):
        """Slices of so many goals, each as large as memory allows, until the time is up. With a time limit a batch shall take a small
        part of it: the first one has one goal."""
        limit, began, first = self.settings.time_limit_s, time.perf_counter(), 0
        size = self._most if math.isinf(limit) else 1
        while first < goals and (first == 0 or time.perf_counter() - began < limit):
            begun = time.perf_counter()
            yield slice(first, min(first + size, goals))
            first += size
            if time.perf_counter() - begun > limit / BATCHES:
                size = max(size // 2, 1)
            elif not math.isinf(limit):
                size = min(2 * size, self._most)

    @property
    def memory_bytes(self):
        """What fields and, on a GPU, buffers for paths take on the device, without the map."""
        return self._fields.memory_bytes

    def prepare(self, goals):
        """Plan the fields of goals (G, 2); of more than fit in at once, the first ones."""
        if len(goals):
            self._slots(goals[: self._most])
            self._fields.wait()

    def forget(self):
        """Nothing is kept of the goals planned so far."""
        self._slot_of.clear()
        self._goals[:] = 0

    def _slots(self, goals):
        """Slots of the fields of some goals (G, 2), at most `_most`; planned where they are not there, repaired where the map has
        changed. -> (G,) int32"""
        wanted = [tuple(goal) for goal in goals.tolist()]
        if len(wanted) > len(self._goals):
            slots = min(self._most, max(len(wanted), 2 * len(self._goals)))
            self._fields.allocate(slots)
            self._slot_of.clear()
            self._goals = np.zeros((slots, 4), np.int32)
            self._stale = np.zeros((slots, self.shape.blocks.count), np.bool_)
        for goal in wanted:
            if goal in self._slot_of:
                self._slot_of.move_to_end(goal)
        new = [goal for goal in wanted if goal not in self._slot_of]
        free = [slot for slot in range(len(self._goals)) if not self._goals[slot, rounds.GOAL_USED]][: len(new)] if new else []
        while len(free) < len(new):
            free.append(self._slot_of.popitem(last=False)[1])
        for goal, slot in zip(new, free):
            self._slot_of[goal] = slot
            self._goals[slot] = *self.shape.blocks.of_tiles(*goal), sum(goal) & 1, 1
        self._stale[free] = False
        slots = np.array([self._slot_of[goal] for goal in wanted], np.int32)
        changed = slots[self._stale[slots].any(axis=1)]
        if len(free) or len(changed):
            self._bring_up_to_date(free, changed)
        return slots

    def _bring_up_to_date(self, new, changed):
        """Plan the fields of new slots, repair those of changed ones."""
        slots = np.array([*new, *changed], np.intp)
        blocks = np.flatnonzero(self._stale[changed].any(axis=0)) if len(changed) else ()
        if len(blocks) > MOST_REPAIRED * self.shape.blocks.count:
            new, blocks = slots, ()
        goals = self._goals.copy()
        goals[:, rounds.GOAL_USED] = 0
        goals[slots, rounds.GOAL_USED] = 1
        self._fields.update(request(goals, new=new, seeds=blocks))
        self._stale[slots] = False

    def update(self, grid, rows, cols):
        """The map has changed at some tiles (N,). Each field is repaired when it is needed again."""
        if FieldShape.of(grid, self.block_size) != self.shape:
            self._open(grid)
            return
        self.grid = grid
        self._fields.change_map(grid, rows, cols)
        for goal in list(self._slot_of):
            if grid.costs[goal] == 0:
                self._goals[self._slot_of.pop(goal), rounds.GOAL_USED] = 0
        self._stale[:, _blocks_near(rows, cols, *grid.shape, self.block_size, self.shape.blocks.width, self.shape.blocks.count)] = True

    def field(self, goal):
        """Cost-to-go to a goal (row, col) of every tile: (rows, cols) float64 in tile lengths, inf where no path leads."""
        slot = int(self._slots(np.array([goal]))[0])
        V, E, M = self._fields.field(slot)
        rows, cols = self.grid.shape
        if self.shape.layout == rounds.VALUES:
            values = V[1 : rows + 1, 1 : cols + 1]
            return np.where(values < NEVER, values / unit_of(self.grid.connectivity), np.inf)
        steps = _expand_bits(self.shape.blocks, E, M, self._goals[slot])
        return np.where(steps < FAR, steps.astype(float) * self.grid.uniform_cost, np.inf)


@njit
def _block_of(row, col, size, width):
    """The block of a tile, as `Blocks.of_tiles` has it."""
    return (row // size + 1) * width + col // size + 1


@njit
def _set_bits(M, rows, cols, costs, width):
    size, first, last = M.shape[1], M.shape[0], 0
    for i in range(len(rows)):
        block, row, bit = _block_of(rows[i], cols[i], size, width), rows[i] % size, np.uint32(1) << np.uint32(cols[i] % size)
        M[block, row] = M[block, row] | bit if costs[rows[i], cols[i]] > 0 else M[block, row] & ~bit
        first, last = min(first, block), max(last, block)
    return first, last


@njit
def _set_costs(M, rows, cols, costs):
    first, last = M.shape[0], 0
    for i in range(len(rows)):
        M[rows[i] + 1, cols[i] + 1] = costs[rows[i], cols[i]]
        first, last = min(first, rows[i] + 1), max(last, rows[i] + 1)
    return first, last


@njit
def _blocks_near(rows, cols, map_rows, map_cols, size, width, count):
    """Blocks of some tiles (N,) and of the tiles beside them -> (n,) int32"""
    near = np.zeros(count, np.bool_)
    for i in range(len(rows)):
        for row in range(max(rows[i] - 1, 0), min(rows[i] + 2, map_rows)):
            for col in range(max(cols[i] - 1, 0), min(cols[i] + 2, map_cols)):
                near[_block_of(row, col, size, width)] = True
    return np.flatnonzero(near).astype(np.int32)


@with_threads
def _conclude(length, value, uniform, status, cost):
    """Status and cost of agents; length: -1 without a path, becomes 0. cost: in tile lengths, where uniform is 0 in units as value"""
    for i in prange(len(length)):
        status[i] = NO_PATH if length[i] < 0 else SOLVED
        cost[i] = np.inf if length[i] < 0 else (length[i] * np.float64(uniform) if uniform > 0 else np.float64(value[i]))
        length[i] = max(length[i], 0)


def _expand_bits(blocks, E, M, goal):
    """Distances of all tiles (rows, cols) int32 from those of the border tiles."""
    out = np.full((blocks.count, blocks.size * blocks.size), FAR, np.int32)
    _expander(blocks.size)(blocks.inner(), blocks.width, goal, M, E, bit_scratch(blocks.size), out)
    out = out.reshape(blocks.height, blocks.width, blocks.size, blocks.size).transpose(0, 2, 1, 3)
    out = out.reshape(blocks.height * blocks.size, blocks.width * blocks.size)
    return out[blocks.size : blocks.size + blocks.rows, blocks.size : blocks.size + blocks.cols]


@functools.cache
def _expander(size):
    flood = bit_operations(size)[3]

    @njit
    def expand(inner, width, goal, M, E, S, out):
        for block in inner:
            seed = goal[rounds.GOAL_TILE] if goal[rounds.GOAL_BLOCK] == block else -1
            flood(block, block, width, seed, M, E, S, out[block], 0)

    return expand
