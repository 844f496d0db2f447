"""Fields on the CPU's threads."""

import os
from dataclasses import replace

import numpy as np

from ...parallel.team import Worker, run_team
from ...parallel.threads import in_parts
from ..maps.grid_map import GridMap
from ..paths import check_words, first_words
from . import rounds
from .bits import BitField, new_wave
from .blocks import BITS, VALUES, FieldShape
from .descent import Directions, Walks, count_steps, write_steps
from .fronts import LONG, Fronts, costs_vary, has_numbers
from .queues import new_buckets
from .rounds import GOAL_USED, Request
from .values import INFINITE, ValueField

SHARED_TILES = 1 << 26  # on larger maps each agent walks by itself: `known`, a word a tile, would be too large
MANY_AGENTS = 1 << 14  # that walk until Ctrl-C is heard
SHARING_AGENTS = 256  # fewer agents hardly meet
FEW_REPAIRED = 16  # changed blocks of all fields: one thread repairs so few sooner than several meet
NO_CODES = np.zeros((0, 0), np.uint32)
MOST_THREADS = 8  # a round has a few dozen blocks, and all threads wait for each other after it


def thread_work(
    shape: FieldShape, map_array: np.ndarray, arrays: dict, least: np.ndarray, scratch, worker: Worker
) -> rounds.Work:
    """The work of a thread. arrays: those of `field_shapes`; least: as of `Work`; scratch: of `new_scratch`"""
    field, in_order = field_record(shape, map_array, arrays), least if shape.layout == VALUES else None
    return rounds.Work(field, arrays["goals"], arrays["queue"], scratch, worker, in_order)


def new_scratch(shape: FieldShape):
    """The scratch of a thread."""
    size = shape.blocks.size
    return new_wave(size) if shape.layout == BITS else new_buckets(size, shape.connectivity)


def field_record(shape: FieldShape, map_array: np.ndarray, arrays: dict) -> BitField | ValueField:
    """The arrays of fields, those of `field_shapes`, as compiled code takes them."""
    blocks = shape.kind, shape.blocks.width, shape.blocks.count
    directions = arrays.get("directions", NO_CODES)
    if shape.layout == BITS:
        return BitField(*blocks, map_array, arrays["values"], arrays["edge"], directions)
    return ValueField(*blocks, map_array, arrays["values"], directions)


class CpuFields:
    """Fields on the CPU. Not for several threads at once.

    members: threads that work
    """

    def __init__(self, shape: FieldShape):
        self.shape = shape
        self.members = min(MOST_THREADS, len(os.sched_getaffinity(0)))
        self._scratch = [new_scratch(shape) for _ in range(self.members)]
        self._map = np.zeros((0, 0), np.uint8)
        self._arrays: dict[str, np.ndarray] = {}
        self._fronts: Fronts | None = None

    def allocate(self, slots: int):
        """Make room for so many fields; those there were are lost."""
        self._arrays = {name: np.zeros(shape, kind) for name, (shape, kind) in self.shape.field_shapes(slots).items()}
        self._memory = np.zeros(rounds.MEMORY, np.int32)
        self._least = np.full(slots * self.shape.blocks.count, INFINITE)

    @property
    def memory_bytes(self) -> int:
        """What is kept of fields, without the map and what threads work with."""
        return sum(array.nbytes for array in self._arrays.values())

    def set_map(self, grid: GridMap):
        """Take a map, before fields are made."""
        self._map = self.shape.map_array(grid)

    def change_map(self, grid: GridMap, rows: np.ndarray, cols: np.ndarray):
        """Take some tiles (N,) of a map, before fields are repaired."""
        self.shape.change_map(self._map, grid, rows, cols)

    def staged(self) -> dict[str, np.ndarray]:
        """{name: array} "map", "values", "edge", "directions" of one slot, in place of `set_map`.

        `load` takes what the caller wrote there, `unload` puts there what was computed. Here both are the arrays that
        are worked on.
        """
        if not self._map.size:
            self._map = np.zeros(*self.shape.map_shape)
        return {"map": self._map} | {name: self._arrays[name] for name in ("values", "edge", "directions")}

    def load(self, *names: str):
        """See `staged`."""

    def unload(self, *names: str):
        """See `staged`."""

    def read(self, name: str, part) -> np.ndarray:
        """A part of an array of `staged`, contiguous. Here it is no copy. part: as for NumPy"""
        return self.staged()[name][part]

    def write(self, name: str, part, values: np.ndarray):
        """Replace a part of an array of `staged`, contiguous; parts of the map also in place of `set_map`."""
        self.staged()[name][part] = values

    def update(self, request: Request):
        """Begin with a request; `wait`, `descend` and `unload` wait for its end."""
        if self._is_for_fronts(request):
            self._make_new(request)
            goals = request.goals.copy()
            goals[np.asarray(request.new), GOAL_USED] = 0
            request = replace(request, goals=goals, new=())
            if not len(request.seeds) or not goals[:, GOAL_USED].any():
                return
        self._work(request)

    def _is_for_fronts(self, request):
        """Does it ask for fields from nothing, of goals on this map, and are these faster by `front`?"""
        new = request.goals[np.asarray(request.new, int)]
        if self.shape.layout != VALUES or not len(new) or len(request.relax) or not has_numbers(self.shape):
            return False
        return bool((new[:, [rounds.GOAL_BLOCK, rounds.GOAL_TILE]] >= 0).all()) and costs_vary(self._map)

    def _make_new(self, request):
        """Make fields from nothing, by `front`; by rounds where it has no room."""
        self._fronts = self._fronts or Fronts(self.shape, len(self._scratch))
        goals, new = request.goals.copy(), [int(slot) for slot in request.new]
        failed = self._fronts.make(self._map, self._arrays["values"], goals, new, self.members)
        goals[:, GOAL_USED] = 0
        goals[new, GOAL_USED] = 1
        asked = request.directions != rounds.NO_DIRECTIONS
        self._work(Request(goals, new=failed, directions=rounds.ALL_DIRECTIONS if asked else rounds.NO_DIRECTIONS))

    def _work(self, request):
        """Do what is asked by `rounds`."""
        used = request.goals[:, GOAL_USED].sum()
        few = not len(request.new) and not len(request.relax) and 0 < used * len(request.seeds) <= FEW_REPAIRED
        members = 1 if few else self.members
        numbers = request.packed()

        def work(member):
            worker = Worker(member, members, 0, member, members, self._memory, self._memory)
            thread = thread_work(self.shape, self._map, self._arrays, self._least, self._scratch[member], worker)
            rounds.update_fields(numbers, thread)

        def stop():
            self._memory[rounds.STOP] = 1

        try:
            run_team(members, work, stop if used * self.shape.blocks.rows * self.shape.blocks.cols > LONG else None)
        finally:
            if self._memory[rounds.STOP]:
                self._memory[rounds.STOP] = 0
                self._least[:] = INFINITE

    def wait(self):
        """Wait until fields are there."""

    def descend(self, starts: np.ndarray, slots: np.ndarray, bits: int) -> tuple[np.ndarray, ...]:
        """Paths of agents. starts: (N, 2) int32; slots: (N,) int32, or (1,) for all; bits: of a step

        -> length (N,) int32, -1 without a path; first (N,) int64; cost-to-go of the starts in units (N,) int64, empty
        of BITS; words
        """
        length, first, words = follow(self.shape, self._arrays["directions"], starts, slots, bits, self.members)
        value = np.zeros(0, np.int64)
        if self.shape.layout == VALUES:
            value = self._arrays["values"][slots, starts[:, 0] + 1, starts[:, 1] + 1]
        return length, first, value, words

    def field(self, slot: int) -> BitField | ValueField:
        """The field of one slot, on the host, without its directions."""
        arrays = {name: self._arrays[name][part] for name, part in self.shape.parts_of(slot).items()}
        return field_record(self.shape, self._map, arrays)


def follow(
    shape: FieldShape, codes: np.ndarray, starts: np.ndarray, slots: np.ndarray, bits: int, members: int
) -> tuple[np.ndarray, ...]:
    """Paths of agents down fields of a shape, by so many threads. codes: as of `Directions`; starts, slots, bits: as
    of `CpuFields.descend`

    -> length (N,) int32, -1 without a path; first (N,) int64; words
    """
    n, blocks = len(starts), shape.blocks
    directions = Directions(shape.kind, codes, blocks.width, blocks.count)
    walks = Walks(starts, slots, *(np.empty(n, np.int32) for _ in range(3)))
    sharing = n >= SHARING_AGENTS and blocks.rows * blocks.cols <= SHARED_TILES
    known = [np.zeros((blocks.rows, blocks.cols) if sharing else (0, 0), np.int64) for _ in range(members)]
    shares = []  # an agent joins one of its own thread, or of a share before
    for (some,) in in_parts(range(n), size=MANY_AGENTS):
        cuts = (some.start + np.linspace(0, len(some), members + 1).astype(int)).tolist()
        shares.append(list(zip(cuts, cuts[1:])))
        run_team(members, lambda k, share=shares[-1]: count_steps(*share[k], walks, directions, known[k]))
    first, total = first_words(np.maximum(walks.length, 0), bits)
    check_words(total)
    words = np.zeros(total, np.uint32)
    for share in shares:
        run_team(members, lambda k, share=share: write_steps(*share[k], walks, directions, first, bits, words))
    return walks.length, first, words
