"""Fields on the CPU's threads, and paths down them."""

import math
import os
from dataclasses import replace
from functools import partial

import numpy as np

from ...parallel.team import Worker, run_team
from ...parallel.threads import in_parts
from ..maps.grid_map import GridMap
from ..paths import check_words, first_words
from . import rounds
from .bits import BitField
from .blocks import BITS, VALUES, FieldShape
from .descent import Directions, Walks, count_steps, write_steps
from .front import CHUNK, LISTS, MOST_FOUND, NOTES, STOPPED, Front, search
from .operations import Scratch
from .queues import new_buckets
from .rounds import GOAL_BLOCK, GOAL_TILE, GOAL_USED, Request
from .values import DIAGONAL_8, INFINITE, ValueField, unit_of
from .wave import new_wave

SHARED_TILES = 1 << 26  # on larger maps each agent walks by itself: `known`, a word a tile, would be too large
MANY_AGENTS = 1 << 14  # that walk until Ctrl-C is heard
SHARING_AGENTS = 256  # fewer agents hardly meet
FEW_REPAIRED = 16  # changed blocks of all fields: one thread repairs so few sooner than several meet
NO_CODES = np.zeros((0, 0), np.uint32)
MOST_THREADS = 8  # a round has a few dozen blocks, and all threads wait for each other after it
LONG = 1 << 21  # tiles of fields: with more, they may take so long that Ctrl-C must stop them
STRIPE_ROWS = 64
LEAST_TOGETHER = 100  # tiles in a bucket, about: with fewer, threads would meet too often
LEAST_ROOM = 1 << 16
MOST_NUMBERED = 1 << 31  # of a padded map: goals, offers and owners have tiles' numbers in 32 bits
SOME = slice(1, None, 5), slice(1, None, 7)  # some of the tiles of a map, which tell what the others are like
LINE = 64  # numbers between what two threads write: they would wait for each other's writes to the same cache line


def thread_work(
    shape: FieldShape, map_array: np.ndarray, arrays: dict, least: np.ndarray, scratch, worker: Worker
) -> rounds.Work:
    """The work of a thread. arrays: those of `field_shapes`; least: as of `Work`; scratch: of `new_scratch`"""
    field, in_order = field_record(shape, map_array, arrays), least if shape.layout == VALUES else None
    return rounds.Work(field, arrays["goals"], arrays["queue"], scratch, worker, in_order)


def new_scratch(shape: FieldShape) -> Scratch:
    """The scratch of a thread."""
    size = shape.blocks.size
    if shape.layout == BITS:
        return Scratch(new_wave(size), None, None)
    return Scratch(None, None, new_buckets(size, shape.connectivity))


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
        self._worked = False

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
        return bool((new[:, [GOAL_BLOCK, GOAL_TILE]] >= 0).all()) and costs_vary(self._map)

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

        # the first time it compiles: were this thread a member that Ctrl-C ends before it begins, the others would wait
        long = not self._worked or used * self.shape.blocks.rows * self.shape.blocks.cols > LONG
        try:
            run_team(members, work, stop if long else None)
            self._worked = True
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


class Fronts:
    """Makes new fields of one shape (`front`): each thread makes some of them, or all threads make one together.

    members: threads, at most
    room: offers, and tiles of a bucket, that a thread has memory for
    """

    def __init__(self, shape: FieldShape, members: int, room: int | None = None):
        tiles = math.prod(shape.padded)
        offers, fresh = (min(most, part + LEAST_ROOM) for most, part in ((2 * tiles, tiles // 8), (tiles, tiles // 16)))
        if room is not None:
            offers = fresh = room
        buckets = self._buckets_for(shape, 255)
        chunks = -(-offers // (CHUNK - 1)) + 2 * LISTS * buckets
        self.shape = shape
        self._tiles = [np.empty(tiles, np.uint16) for _ in range(members)]  # each alone: most are often never touched
        self._pool = np.empty((members, chunks * CHUNK), np.uint64)
        self._head, self._tail = (np.zeros((members + 2, LISTS, buckets + LINE), np.uint64)[1:-1] for _ in range(2))
        self._spare = np.empty((members, chunks), np.uint64)
        self._found = np.empty((members, MOST_FOUND + LINE), np.uint64)
        self._fresh = np.empty((members, fresh + MOST_FOUND + 1), np.uint32)
        self._notes = np.zeros((members + 2, NOTES + LINE), np.int64)[1:-1]
        self._memory = np.zeros(3 * LINE, np.int32)[LINE:-LINE]

    @staticmethod
    def _buckets_for(shape, highest):
        """A power of two, with room for the longest step beside the bucket that is worked on."""
        unit = unit_of(shape.connectivity)
        longest = highest * (DIAGONAL_8 if shape.connectivity == 8 else 1)
        return 1 << ((longest >> (unit.bit_length() - 1)) + 2).bit_length()

    def make(
        self, cost: np.ndarray, values: np.ndarray, goals: np.ndarray, slots: list[int], members: int
    ) -> list[int]:
        """Make the fields of some slots. cost, values: of `ValueField`; goals: as of `Request`; members: threads to use

        -> slots for which there was no room: their values mean nothing
        """
        wide, mask = self.shape.padded[1], self._buckets_for(self.shape, int(cost.max())) - 1
        together = members > 1 and self._tiles_in_a_bucket(cost) >= LEAST_TOGETHER
        alone = len(slots) // members * members if together else len(slots)
        failed: list[int] = []
        self._notes[:, STOPPED] = 0
        stop = partial(self._notes[:, STOPPED].fill, 1) if cost.size * len(slots) > LONG else None

        def make_one(slot, first, member, count):
            """As thread `member` of `count` ones, whose memory is that of the threads from `first` on."""
            lists = (self._pool, self._head, self._tail, self._spare, self._found, self._fresh, self._notes)
            sizes = self.shape.kind.moves, wide, mask, STRIPE_ROWS * wide, count
            arrays = (array[first : first + count] for array in lists)
            front = Front(*sizes, cost.ravel(), values[slot].ravel(), self._tiles[first], *arrays)
            worker = Worker(member, count, 0, member, count, self._memory, self._memory)
            if not search(self._tile(goals[slot]), front, worker) and member == 0:
                failed.append(slot)

        def make_alone(member):
            for slot in slots[member:alone:members]:
                if not self._notes[member, STOPPED]:
                    make_one(slot, member, 0, 1)

        if alone:
            run_team(min(alone, members), make_alone, stop)
        for slot in slots[alone:]:
            run_team(members, lambda member, slot=slot: make_one(slot, 0, member, members), stop)
        return failed

    def _tile(self, goal):
        """The number of a goal's tile in the padded map. goal: a row of `Request.goals`"""
        size, width = self.shape.blocks.size, self.shape.blocks.width
        row, col = (goal[GOAL_BLOCK] // width - 1) * size + 1, (goal[GOAL_BLOCK] % width - 1) * size + 1
        return int((row + goal[GOAL_TILE] // size) * self.shape.padded[1] + col + goal[GOAL_TILE] % size)

    def _tiles_in_a_bucket(self, cost):
        """About how many, by some of the map's tiles."""
        some = cost[SOME]
        free = np.count_nonzero(some)
        return math.sqrt(free / some.size * cost.size) / (some.sum(dtype=np.int64) / free) if free else 0.0


def has_numbers(shape: FieldShape) -> bool:
    """Are there numbers for all tiles of a padded map? One of a single row is padded to many times its size."""
    return math.prod(shape.padded) <= MOST_NUMBERED


def costs_vary(cost: np.ndarray) -> bool:
    """Do fewer than half of some of a map's free tiles cost the same? Where more do, most offers are ties, and fields
    are made as fast by blocks, or faster where the map is open."""
    count = np.bincount(cost[SOME].ravel(), minlength=2)[1:]
    return bool(2 * count.max() < count.sum())
