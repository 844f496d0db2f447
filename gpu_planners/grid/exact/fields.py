"""`exact`: complete and optimal cost-to-go fields of many goals, and paths down them.

[CE12] searches inside planning blocks and joins what it finds at their borders; its joints can lead in circles, so
paths are lost. Here the blocks stay and the search is an exact relaxation (`rounds`): no path is lost, none is longer
than need be.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import prange

from ...device import njit
from ...distributed.executors import Split, devices_of, least_on, spread
from ...distributed.progress import Progress
from ...parallel.threads import in_parts
from ...settings import Described, setting, time_limit
from ..maps.grid_map import GridMap
from ..paths import NO_PATH, SOLVED, PathSet, joined, step_bits, with_threads
from .bits import UNREACHED
from .blocks import BITS, VALUES, FieldShape, Visit
from .cpu import CpuFields
from .rounds import GOAL_BLOCK, GOAL_TILE, GOAL_USED, Request
from .streamed import Cut, StreamedFields
from .toward import TowardStart
from .values import INFINITE, unit_of
from .wave import flood, new_wave

MOST_REPAIRED = 1 / 16  # changed blocks, of all: with more, planning anew takes less time (measured on 1024x1024)
MOST_ITEMS = 2**31 - 1  # blocks of all fields together: int32
BATCHES = 32  # at least about so many in a time limit
MOST_NOTED = 1 << 16  # goals of searches
FEW = 4  # agents of a plan that searches may answer on a CPU, one after the other


def open_fields(shape: FieldShape, device: str):
    """-> CpuFields or CudaFields, for a device "cpu" or "cuda:N" """
    if device == "cpu":
        return CpuFields(shape)
    from .cuda import CudaFields

    return CudaFields(shape, device)


@dataclass(frozen=True)
class Settings(Described):
    """Settings of `exact`."""

    memory_limit_bytes: int = setting(
        2 << 30,
        "Bound on the memory of all fields together: goals beyond it are planned in further batches, and a map of "
        "which not even one field fits is planned in pieces",
        1,
        2**62,
    )
    time_limit_s: float = time_limit(
        "Longest plan for several goals: agents to goals whose batch has not begun by then are timed out; one field is "
        "always planned to its end"
    )


class Exact:
    """The algorithm `exact` of `planner.BlockPlanner`. Fields are kept for goals that come again, and repaired then."""

    def __init__(self, grid: GridMap, block_size: int, device: str, settings: Settings | None = None):
        self.device = device
        self.settings = settings or Settings()
        self.block_size = block_size
        self._open(grid)

    def _open(self, grid):
        """Make an engine for the map's layout, without any field."""
        shape, limit = FieldShape.of(grid, self.block_size), self.settings.memory_limit_bytes
        if shape.field_bytes <= limit:
            fields = open_fields(shape, self.device)
        else:
            cut = Cut.of(shape, limit)
            fields = StreamedFields(cut, open_fields(cut.window, self.device))
        fields.set_map(grid)
        self.grid, self.shape, self._fields = grid, shape, fields
        self._most = max(1, min(limit // shape.field_bytes, MOST_ITEMS // shape.blocks.count))
        self._slot_of = OrderedDict()  # goal (row, col) -> slot; the goal used last comes last
        self._make_slots(0)
        self._may_search = self.device == "cpu" and TowardStart.fits(grid, limit)
        self._toward: TowardStart | None = None  # made when it is first asked for
        # by goal (row, col): tiles that searches have opened since the map changed, as a share of the map's
        self._opened: dict[tuple[int, int], float] = {}

    def _make_slots(self, slots):
        self._slot_of.clear()
        self._goals = np.zeros((slots, 4), np.int32)  # as of `Request`
        self._stale = np.zeros((slots, self.shape.blocks.count), np.bool_)  # blocks that changed since a field was made

    def plan(self, starts: np.ndarray, goals: np.ndarray) -> PathSet:
        """Paths of agents from free tiles to free tiles. starts, goals: (N, 2) int32 [row, col]"""
        if self._may_search and 0 < len(starts) <= FEW:
            agents = zip(starts, np.broadcast_to(goals, starts.shape))
            each = (self._plan_one(start, goal) for start, goal in agents)
            return joined(each, starts, np.arange(len(starts)), self.grid.connectivity)
        if len(starts) and (goals.strides[0] == 0 or (goals == goals[0]).all()):
            return self._follow(starts, self._slots(goals[:1]))
        distinct, which, order, firsts = by_goal(goals, self.grid.cols)

        def parts():
            for batch in self._batches(len(distinct)):
                agents = order[firsts[batch.start] : firsts[batch.stop]]
                slots = self._slots(distinct[batch])[which[agents] - batch.start]
                yield self._follow(starts[agents], slots)

        return joined(parts(), starts, order, self.grid.connectivity)

    def _plan_one(self, start, goal):
        """-> PathSet of one agent, by a search where the goal's field is not as the map is; the path is the same. Once
        searches have opened as many tiles as the map has, the field is made."""
        key = tuple(goal.tolist())
        slot, opened = self._slot_of.get(key), self._opened.get(key, 0.0)
        if (slot is None or self._stale[slot].any()) and opened < 1:
            toward = self._toward = self._toward or TowardStart(self.grid)
            paths = toward.find(start, goal)
            if len(self._opened) >= MOST_NOTED:
                self._opened.clear()
            self._opened[key] = opened + toward.opened / self.grid.costs.size if paths is not None else 1.0
            if paths is not None:
                return paths
        return self._follow(start[None], self._slots(goal[None]))

    def _follow(self, starts, slots):
        """-> PathSet of agents down the fields of some slots, (N,), or (1,) for all"""
        n, bits = len(starts), step_bits(self.grid.connectivity)
        length, first, value, words = self._fields.descend(starts, slots, bits)
        status, cost = np.empty(n, np.uint8), np.empty(n)
        uniform = self.grid.uniform_cost if self.shape.layout == BITS else 0
        _conclude(length, value, uniform, status, cost)
        if not uniform:
            cost /= unit_of(self.grid.connectivity)  # by NumPy: multiples of the unit become whole numbers
        return PathSet(starts, status, cost, length, first, words, bits)

    def _batches(self, goals: int) -> Iterator[slice]:
        """Slices of so many goals, each as large as memory allows, until the time is up.

        With a time limit a batch shall take a small part of it: the first one has one goal.
        """
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
    def memory_bytes(self) -> int:
        """What fields and, on a GPU, buffers for paths take on the device, without the map."""
        return self._fields.memory_bytes

    def prepare(self, goals: np.ndarray):
        """Plan the fields of goals (G, 2); of more than fit in at once, the first ones."""
        if len(goals):
            self._slots(goals[: self._most])
            self._fields.wait()

    def forget(self):
        """Keep nothing of the goals planned so far."""
        self._opened.clear()
        self._slot_of.clear()
        self._goals[:] = 0

    def _slots(self, goals):
        """Slots of the fields of some goals (G, 2), at most `_most` -> (G,) int32

        Missing fields are planned, those whose map has changed are repaired.
        """
        try:
            return self._planned(goals)
        except BaseException:  # Ctrl-C, for one: nobody knows which fields are whole
            self.forget()
            raise

    def _planned(self, goals):
        """As `_slots`; an error may leave fields half made."""
        wanted = [tuple(goal) for goal in goals.tolist()]
        if len(wanted) > len(self._goals):
            slots = min(self._most, max(len(wanted), 2 * len(self._goals)))
            self._fields.allocate(slots)
            self._make_slots(slots)
        for goal in wanted:
            if goal in self._slot_of:
                self._slot_of.move_to_end(goal)
        new = [goal for goal in dict.fromkeys(wanted) if goal not in self._slot_of]
        free = np.flatnonzero(self._goals[:, GOAL_USED] == 0)[: len(new)].tolist() if new else []
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
        goals[:, GOAL_USED] = 0
        goals[slots, GOAL_USED] = 1
        self._fields.update(Request(goals, new=new, seeds=blocks))
        self._stale[slots] = False

    def update(self, grid: GridMap, rows: np.ndarray, cols: np.ndarray):
        """The map has changed at some tiles (N,). Each field is repaired when it is needed again."""
        if FieldShape.of(grid, self.block_size) != self.shape:
            self._open(grid)
            return
        self.grid = grid
        self._opened.clear()
        if self._toward is not None:
            self._toward.update(grid, rows, cols)
        self._fields.change_map(grid, rows, cols)
        for goal in list(self._slot_of):
            if grid.costs[goal] == 0:
                self._goals[self._slot_of.pop(goal), GOAL_USED] = 0
        self._stale[:, self.shape.blocks_near(rows, cols)] = True

    def field(self, goal: tuple[int, int]) -> np.ndarray:
        """Cost-to-go of every tile to a goal (row, col): (rows, cols) float64 in tile lengths, inf without a path."""
        slot = int(self._slots(np.array([goal]))[0])
        field = self._fields.field(slot)
        rows, cols = self.grid.shape
        if self.shape.layout == VALUES:
            values = field.value[0, 1 : rows + 1, 1 : cols + 1]
            return np.where(values < INFINITE, values / unit_of(self.grid.connectivity), np.inf)
        steps = distances(self.shape.blocks, field, self._goals[slot])
        return np.where(steps < UNREACHED, steps.astype(float) * self.grid.uniform_cost, np.inf)


@with_threads
def _conclude(length, value, uniform, status, cost):
    """Status and cost of agents; length: -1 without a path, becomes 0.

    cost: in tile lengths; where uniform is 0 in units, as value
    """
    for i in prange(len(length)):
        status[i] = NO_PATH if length[i] < 0 else SOLVED
        cost[i] = (
            np.inf if length[i] < 0 else (length[i] * np.float64(uniform) if uniform > 0 else np.float64(value[i]))
        )
        length[i] = max(length[i], 0)


def distances(blocks, field, goal):
    """Distances of all tiles (rows, cols) int32 from those of the border tiles. goal: a row of `Request.goals`"""
    size = blocks.size
    out = np.full((blocks.count, size * size), UNREACHED, np.int32)
    wave = new_wave(size)
    for (inner,) in in_parts(blocks.inner()):
        _expand(inner, goal, field, wave, out)
    out = out.reshape(blocks.height, blocks.width, size, size).transpose(0, 2, 1, 3)
    out = out.reshape(blocks.height * size, blocks.width * size)
    return out[size : size + blocks.rows, size : size + blocks.cols]


@njit
def _expand(inner, goal, field, wave, out):
    for block in inner:
        seed = goal[GOAL_TILE] if goal[GOAL_BLOCK] == block else np.int32(-1)
        flood(Visit(block, 0, block, seed, 0), field, wave, out[block], 0)


def by_goal(goals: np.ndarray, cols: int) -> tuple[np.ndarray, ...]:
    """Which agents have one goal. goals: (N, 2), on a map of so many columns

    -> distinct goals (G, 2) int32; each agent's among them (N,); agents (N,), one goal's after the other's; where each
    goal's begin (G + 1,)
    """
    keys, which = np.unique(goals[:, 0].astype(np.int64) * cols + goals[:, 1], return_inverse=True)
    order = np.argsort(which, kind="stable")
    firsts = np.searchsorted(which[order], np.arange(len(keys) + 1))
    return np.column_stack(np.divmod(keys, cols)).astype(np.int32), which, order, firsts


class SharedMap:
    """The map and how it is planned on, which each worker gets once; it keeps the engine that it makes for it."""

    def __init__(self, grid: GridMap, block_size: int, settings: Settings):
        self._made_of = grid, block_size, settings
        self._engines: dict[str, Exact] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"_made_of": self._made_of, "_engines": {}}

    def engine(self, device: str) -> Exact:
        """On a device: made once."""
        if device not in self._engines:
            grid, block_size, settings = self._made_of
            self._engines[device] = Exact(grid, block_size, device, settings)
        return self._engines[device]


def plan_spread(
    engine: Exact,
    grid: GridMap,
    starts: np.ndarray,
    goals: np.ndarray,
    executor: Executor | None,
    devices: str | Sequence[str] | None,
    progress: Progress | None,
) -> PathSet:
    """`Exact.plan` by workers: each plans the fields of some goals, and the paths of their agents.

    engine: whose settings count; grid: its map; executor, devices, progress: as `spread` takes them, None: the engine's
        kind of device
    """
    distinct, _, order, firsts = by_goal(goals, grid.cols)
    shared, names = SharedMap(grid, engine.block_size, engine.settings), devices_of(devices, engine.device)

    def cut(first: int, last: int) -> tuple:
        agents = order[firsts[first] : firsts[last]]
        return starts[agents], goals[agents]

    split = Split("goals", len(distinct), cut, _plan, shared, least_on(names))
    return joined(spread(split, executor, names, progress), starts, order, grid.connectivity)


def _plan(shared, piece, device):
    return shared.engine(device).plan(*piece)
