"""CUDA: the kernels around `answer`. Requests and answers lie in page-locked memory that both sides see.

A batch of problems is searched in passes: easy problems, which are most, get little of the device each, hard ones more.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numba import cuda

from ....device import cuda_jit
from ....parallel.team import left_ms
from ...spaces.cuda import REGISTERS, WARPS
from ..blocked import read_log
from ..launch_cuda import TeamLaunch, desk_of_lane, grid_worker, team_worker
from ..node_store import whole_tiles
from ..query import Query
from ..result import PlanningResult
from . import answer, request
from .apart import solve_apart
from .request import (
    ANSWER,
    INTS,
    NO_PLACES,
    NODES,
    SEARCHING,
    SOLVED,
    STOPPED,
    BatchShape,
    Problems,
    request_size,
    set_fields,
)
from .scene_store import GREATEST, SceneStore, sizes_of
from .state import CORNERS, state_sizes, tree_sizes, trees_on_host, work_sizes

BLOCKS_FOR_ONE, BLOCKS_FOR_MANY = 2, 4  # on each multiprocessor
FIRST_FOR_ONE, BATCH_FOR_ONE = 128, 1024  # samples of a round: see Request
NODES_OF_MANY = 8192  # of a tree; a problem that needs more is solved by itself afterwards
CORNERS_OF_MANY = 32  # of a path, on average
SPLIT = 2  # workers that share a leg where several blocks shorten a path: a round lasts as long as its longest check
KEPT = 1 << 29  # numbers of trees that wait for the next pass, at once


@functools.cache
def _kernels(*scratch_sizes):
    """-> kernels (search one, shorten one, search many, shorten many) for a checker's scratch_sizes."""
    desk_of = desk_of_lane(scratch_sizes)

    @cuda_jit(max_registers=REGISTERS)
    def search_one(row, ints, paths, scene_floats, scene_ints, floats, memory, spill):
        desk = desk_of(ints[0], np.int32(0), np.float32(0), scene_floats, scene_ints, spill)
        answer.search_one(row, ints, paths, floats, desk, grid_worker(memory))

    @cuda_jit(max_registers=REGISTERS)
    def shorten_one(row, ints, paths, scene_floats, scene_ints, floats, memory, spill):
        desk = desk_of(ints[0], np.int32(0), np.float32(0), scene_floats, scene_ints, spill)
        answer.shorten_one(row, ints, paths, floats, desk, grid_worker(memory))

    @cuda.jit(device=True)
    def member(queue, team, memory):
        """The warp as a Worker of its team."""
        own = memory[team * queue.work_ints : (team + 1) * queue.work_ints]
        return team_worker(queue.blocks, queue.barriers[answer.TEAM * team :], own)

    @cuda_jit(max_registers=REGISTERS)
    def solve_many(
        rows, ints, paths, counters, scene_floats, scene_ints, tree_floats, tree_ints, floats, memory, spill
    ):
        requests = answer.Requests(answer.open_queue(counters), rows, ints, paths)
        queue = requests.queue
        team = cuda.blockIdx.x // queue.blocks
        desk = desk_of(ints[0], np.int32(0), np.float32(0), scene_floats, scene_ints, spill)
        own = floats[team * queue.work_floats : (team + 1) * queue.work_floats]
        answer.solve_many(requests, tree_floats, tree_ints, own, desk, member(queue, team, memory), team)

    @cuda_jit(max_registers=REGISTERS)
    def shorten_many(rows, ints, paths, counters, scene_floats, scene_ints, floats, memory, spill):
        requests = answer.Requests(answer.open_queue(counters), rows, ints, paths)
        queue = requests.queue
        team = cuda.blockIdx.x // queue.blocks
        desk = desk_of(ints[0], np.int32(0), np.float32(0), scene_floats, scene_ints, spill)
        own = floats[team * queue.work_floats : (team + 1) * queue.work_floats]
        answer.shorten_many(requests, own, desk, member(queue, team, memory))

    return search_one, shorten_one, solve_many, shorten_many


class CudaEngine:
    """Solves on one device, one call at a time, for robots of one size."""

    def __init__(self, device, dof, scratch_sizes):
        self._search_one, self._shorten_one, many, shortening = _kernels(*scratch_sizes)
        self._one = TeamLaunch(device, self._search_one, scratch_sizes, BLOCKS_FOR_ONE)
        self._many = TeamLaunch(device, many, scratch_sizes, BLOCKS_FOR_MANY)
        self._shortening = TeamLaunch(device, shortening, scratch_sizes, BLOCKS_FOR_MANY)
        self._dof, self._scenes = dof, SceneStore(cuda.device_array)

    def solve(self, query: Query, settings, seed: int) -> PlanningResult:
        """One query on all multiprocessors."""
        return solve_apart(self._solve_together, query, settings, seed)

    def _solve_together(self, query, settings, seed):
        if query.late():
            return query.timed_out()
        launch, goals, batch = self._one, len(query.goals), settings.batch or BATCH_FOR_ONE
        first = settings.batch or FIRST_FOR_ONE
        capacity, n_row = whole_tiles(NODES + goals), request_size(self._dof, goals)
        n_floats, n_ints = state_sizes(self._dof, capacity, batch, launch.workers)
        with launch.held():
            row, ints = launch.mapped("row", n_row, np.float32), launch.mapped("ints", INTS, np.int32)
            paths = launch.mapped("paths", CORNERS * self._dof, np.float32)
            problem = Problems([query], [seed], NO_PLACES)
            same = {"batch": batch, "first": first, "split": SPLIT, "capacity": capacity}
            request.write_requests(row.host[None, :n_row], ints.host[None, :INTS], problem, settings, **same)
            floats = launch.device_array("floats", n_floats, np.float32)
            memory = launch.zeroed("memory", n_ints, np.int32)
            given, scene = (row.device, ints.device, paths.device), launch.scene(query.checker.device_scene())
            kernels = (self._search_one, self._shorten_one)[: 2 if settings.shortcut_rounds else 1]
            launch.run_again(kernels, *given, *scene, floats, memory)
            where = floats, memory, self._dof, capacity
            return request.read_answer(ints.host.tolist(), paths.host, query, log=lambda: trees_on_host(*where))

    def solve_each(self, query: Query, settings, seeds: Iterable[int]) -> Iterator[PlanningResult]:
        """One query with each seed, one after the other."""
        for seed in seeds:
            yield self.solve(query, settings, seed)

    def solve_many(
        self, queries: Sequence[Query], settings, seeds: Sequence[int], whole: BatchShape
    ) -> list[PlanningResult | None]:
        """Many queries at once, in passes; None for those that need more room than there is in a batch.

        whole: sizes of the batch that they are of, which fix the passes
        """
        n, row = len(queries), request_size(self._dof, max(len(query.goals) for query in queries))
        checkers = {id(query.checker): query.checker for query in queries}
        scenes = {key: checker.scene_parts for key, checker in checkers.items()}
        if n > 1 and n * max(row, 2 * CORNERS * self._dof) + sizes_of(scenes).max() > GREATEST:
            halves = [(each[: n // 2], each[n // 2 :]) for each in (queries, seeds)]  # offsets are int32
            return [result for some, own in zip(*halves) for result in self.solve_many(some, settings, own, whole)]
        with self._many.held(), self._shortening.held():
            floats, ints, begin = self._scenes.placed(scenes.values())
            places = np.array([begin[id(scenes[id(query.checker)].own)] for query in queries])
            problems, launches = Problems(queries, seeds, places), (self._many, self._shortening)
            passes = Passes(*launches, problems, settings, (floats, ints), whole)
            results = passes.solve()
            while passes.required:  # whose paths found no room are searched again
                again = [i for i, result in enumerate(results) if result is None]
                passes = Passes(*launches, problems.chosen(again), settings, (floats, ints), whole, passes.required)
                for i, result in zip(again, passes.solve()):
                    results[i] = result
        return results


engine_on = functools.cache(CudaEngine)  # (device, dof, scratch_sizes) -> that of a kind of checker: made once, kept


class Pass(NamedTuple):
    """How problems are searched, with `batch` samples in a round, until they have drawn `until`. Those that are left go
    on in the next pass, where each has a larger part of the device: a team of more blocks."""

    batch: int
    until: int


FIRST = Pass(4, 128)  # no trees are kept of so many problems, so those that are left begin anew
LATER = (
    Pass(8, 512),
    Pass(16, 1024),
    Pass(32, 2048),
    Pass(64, 4096),
    Pass(128, 8192),
    Pass(256, 16384),
    Pass(512, 65536),
    Pass(1024, 131072),
    Pass(1024, GREATEST),
)
# of at most as many problems as blocks, many of which are idle soon
FEW = (Pass(32, 1024), Pass(64, 2048), *LATER[4:])


class Passes:
    """A batch on its way through the passes on one device, whose launches are held.

    search, shortening: of `solve_many` and `shorten_many`; scene: float32 and int32 array of the device
    whole: the batch that the problems are of; by it passes and teams are chosen, wherever results depend on these
    room: for so many numbers of paths at least;  required: how many there were, if those found no room, else 0
    """

    def __init__(
        self,
        search: TeamLaunch,
        shortening: TeamLaunch,
        problems: Problems,
        settings,
        scene: Sequence,
        whole: BatchShape,
        room: int = 0,
    ) -> None:
        n, self._dof = len(problems.queries), len(problems.queries[0].start)
        self._search, self._shortening, self._scene = search, shortening, scene
        self._problems, self._settings, self._capacity = problems, settings, whole_tiles(NODES_OF_MANY + whole.goals)
        self._blocks, self._team = (launch.blocks_of_each(whole.problems) for launch in (search, shortening))
        self._later = FEW if whole.problems <= search.most_blocks else LATER
        row = request_size(self._dof, max(len(query.goals) for query in problems.queries))
        rows, ints = search.mapped("rows", n * row, np.float32), search.mapped("ints", n * INTS, np.int32)
        paths = search.mapped("paths", max(max(n * CORNERS_OF_MANY, CORNERS) * self._dof, room), np.float32)
        self._given = rows.device, ints.device, paths.device
        self._rows, self._ints = rows.host[: n * row].reshape(n, row), ints.host[: n * INTS].reshape(n, INTS)
        self._paths = paths.host
        split = SPLIT if self._team > 1 else 1
        request.write_requests(self._rows, self._ints, problems, settings, split=split, capacity=self._capacity)
        self._results: list[PlanningResult | None] = [None] * n
        self._raw: list[int] = []  # problems whose paths are to be shortened
        self._ready: list[int] = []  # those whose answers are to be read
        self._logs: dict[int, dict] = {}  # of problems without a path, as `read_log` has them
        self._written = self.required = 0

    def solve(self) -> list[PlanningResult | None]:
        """The results; None for those that need more room than there is."""
        left = list(range(len(self._results)))
        # where problems are few, a pass is left out in which a team has more blocks than a round has samples
        if FIRST.batch >= self._blocks:
            left = self._pass(FIRST, left, 0)
            self._shorten()
        passes = [one for one in self._later if one.batch >= self._blocks] or [LATER[-1]]
        most = max(1, KEPT // tree_sizes(self._dof, self._capacity)[0])
        for group in np.array_split(left, -(-len(left) // most)) if left else ():
            at_work = group.tolist()
            self._ask(at_work, trees=np.arange(len(group)))
            for one in passes:
                at_work = self._pass(one, at_work, len(group))
                if not at_work:
                    break
                self._ask(at_work, fresh=0)
            self._keep_logs(group.tolist())
        self._shorten()
        self._read()
        return [replace(found, **self._logs.get(i, {})) if found else None for i, found in enumerate(self._results)]

    def _keep_logs(self, numbers):
        """Bring what the searches logged that found no path, before others use the memory of their trees."""
        sizes = tree_sizes(self._dof, self._capacity)
        trees = self._work(self._search, "trees", len(numbers), sizes)
        for at, number in enumerate(numbers):
            if self._ints[number, ANSWER] in (SEARCHING, STOPPED):
                own = (part[at * size : (at + 1) * size] for part, size in zip(trees, sizes))
                self._logs[number] = read_log(trees_on_host(*own, self._dof, self._capacity))

    def _ask(self, numbers, **fields):
        """Set fields of the Requests of problems."""
        rows = self._ints[numbers]
        set_fields(rows, **fields)
        self._ints[numbers] = rows

    def _pass(self, one, numbers, kept):
        """Search problems of these numbers -> those that are left. kept: how many problems' trees are, 0: none"""
        until = min(one.until, self._settings.max_samples)
        batch = self._settings.batch or one.batch
        self._ask(numbers, until=until, batch=batch, first=batch)
        team = self._search.blocks_of_each(len(numbers))
        teams = min(self._search.most_blocks // team, len(numbers))
        trees = self._work(self._search, "trees", kept or teams, tree_sizes(self._dof, self._capacity))
        self._run(self._search, numbers, teams, team, work_sizes(self._dof, batch, team * WARPS), kept, *trees)
        ended = self._ints[numbers, ANSWER].tolist()
        left = [i for i, status in zip(numbers, ended) if status == SEARCHING]
        if until == self._settings.max_samples:
            left = []
        shortened = (SOLVED,) if self._settings.shortcut_rounds else ()
        self._raw += [i for i, status in zip(numbers, ended) if status in shortened]
        unread = {*left, *self._raw}
        self._ready += [i for i in numbers if i not in unread]
        return left

    def _shorten(self):
        """Shorten the paths that were found since the last time."""
        numbers, self._raw, launch = self._raw, [], self._shortening
        if not self._settings.shortcut_rounds:
            return
        teams = max(1, min(launch.most_blocks // self._team, len(numbers)))
        self._run(launch, numbers, teams, self._team, work_sizes(self._dof, 0, self._team * WARPS), 0)
        self._ready += numbers

    def _run(self, launch, numbers, teams, team, sizes, kept, *trees):
        """Launch a kernel for problems of these numbers, and read answers while it works. team: blocks of each; sizes:
        of what a team works in"""
        counters = np.zeros(answer.queue_sizes.py_func(len(numbers), teams)[1], np.int32)
        head = 0, self._written, len(numbers), self._rows.shape[1], *sizes, team, kept, teams, *numbers
        counters[: len(head)] = head
        on_device = launch.device_array("counters", len(counters), np.int32)
        on_device[: len(counters)].copy_to_device(counters)
        set_fields(self._ints[0], left_ms=left_ms(self._problems.queries[0].deadline))
        work = self._work(launch, "work", teams, sizes)
        launch.start(teams * team, *self._given, on_device, *self._scene, *trees, *work)
        self._read()
        launch.stream.synchronize()
        self._written = int(on_device[:2].copy_to_host()[1])
        if self._written > len(self._paths):
            self.required = self._written

    def _work(self, launch, name, count, sizes):
        """Memory of the device for so many teams or problems: a float32 and an int32 array."""
        types = np.float32, np.int32
        return [launch.device_array(f"{name} {t.__name__}", count * size, t) for size, t in zip(sizes, types)]

    def _read(self):
        """The results of problems that have ended."""
        numbers, self._ready = self._ready, []
        if numbers:
            queries = [self._problems.queries[i] for i in numbers]
            for number, result in zip(numbers, request.read_answers(self._ints[numbers], self._paths, queries)):
                self._results[number] = result
