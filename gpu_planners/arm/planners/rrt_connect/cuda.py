"""CUDA: the kernels around `answer`. Requests and answers lie in page-locked memory that both sides see.

A batch of problems is searched in passes: easy problems, which are most, get little of the device each, hard ones more.
"""

import functools
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numba import cuda
from numba.cuda.extending import overload  # type: ignore[attr-defined]

from ...spaces.cuda import WARPS
from ..host import host_for
from ..node_store import whole_tiles
from ..plain_queries import checkers_of, most_goals
from ..query import Query
from ..result import PlanningResult
from ..results import Found
from . import request
from .answer import search_paths, shorten_paths
from .apart import parts_of, solve_apart
from .launch import Requests, SingleRequest
from .request import ANSWER, SEARCHING, SOLVED, STOPPED, BatchShape, Problems, row_size, walk_of
from .scene_store import GREATEST, SceneStore, sizes_of
from .search import batch_after
from .state import CORNERS, TEAM, tree_sizes, work_sizes
from .walk import choose_by_space

BLOCKS_FOR_ONE = 2  # on each multiprocessor
BLOCKS_FOR_MANY = 4
FIRST_FOR_ONE = 128  # samples of the first rounds: see Request
BATCH_FOR_ONE = 1024  # samples of a round
AT_ONCE = 1 << 15  # samples of a launch at first, between two looks at whether the search shall stop,
WALKS_AT_ONCE = 1 << 12  # where they walk; half as many, or twice as many, where a launch takes more than
LAUNCH_S = 0.05  # twice this, or less than half of it
NODES_OF_MANY = 8192  # of a tree; a problem that needs more is solved by itself afterwards
NODES_OF_WALKS = 4 * NODES_OF_MANY  # where samples walk: a step is a node
CORNERS_OF_MANY = 32  # of a path, on average
SPLIT = 2  # workers that share a leg where several blocks shorten a path: a round lasts as long as its longest check
KEPT = 1 << 29  # numbers of trees that wait for the next pass, at once


choose_by_space("cuda", overload)


class CudaEngine:
    """Solves on the device of a checker, one call at a time, for robots of one size."""

    def __init__(self, checker: Any) -> None:
        self._one = host_for(checker, search_paths, shorten_paths, blocks=BLOCKS_FOR_ONE)
        self._many = host_for(checker, search_paths, shorten_paths, blocks=BLOCKS_FOR_MANY)
        self._dof, self._scenes = checker.robot.dof, SceneStore(cuda.device_array)

    def solve(self, query: Query, settings, seed: int, apart: bool = True) -> PlanningResult:
        """One query on all multiprocessors. apart: may arms move one after the other?"""
        if apart and len(parts_of(query.checker)):
            return solve_apart(functools.partial(self.solve, apart=False), query, settings, seed)
        if query.late():
            return query.timed_out()
        # each walk is one warp's work
        first = settings.batch or (BATCH_FOR_ONE if walk_of(query.checker) else FIRST_FOR_ONE)
        batch = settings.batch or BATCH_FOR_ONE
        works = (search_paths, shorten_paths)[: 2 if settings.shortcut_rounds else 1]
        with self._one.held():
            asked = SingleRequest(self._one, query, settings, seed, first, batch, SPLIT)
            until, some = 0, WALKS_AT_ONCE if walk_of(query.checker) else AT_ONCE
            while asked.status == SEARCHING and until < settings.max_samples:
                fresh, until = until == 0, min(_whole_rounds(first, batch, until, until + some), settings.max_samples)
                began = time.perf_counter()
                asked.ask_it(fresh=fresh, until=until)
                self._one.run(query.checker, *works, again=True)
                took = time.perf_counter() - began
                some = max(some // 2, 1) if took > 2 * LAUNCH_S else 2 * some if took < LAUNCH_S / 2 else some
            return asked.result()

    def solve_each(self, query: Query, settings, seeds: Iterable[int]) -> Iterator[PlanningResult]:
        """One query with each seed, one after the other."""
        for seed in seeds:
            yield self.solve(query, settings, seed)

    def solve_many(self, queries: Sequence[Query], settings, seeds: Sequence[int], whole: BatchShape) -> Found:
        """Many queries at once, in passes; those are missing that need more room than there is in a batch.

        whole: sizes of the batch that they are of, which fix the passes
        """
        found = Found(len(queries), self._dof)
        self._solve_some(found, range(len(queries)), queries, settings, seeds, whole)
        return found

    def _solve_some(self, found, numbers, queries, settings, seeds, whole):
        """Put the results of queries into `found`, under these numbers."""
        n, row = len(queries), row_size(self._dof, most_goals(queries))
        checkers, which = checkers_of(queries)
        there = _lying_together(checkers)
        scenes = [] if there else [checker.scene_parts for checker in checkers]
        if n > 1 and n * max(row, 2 * CORNERS * self._dof) + sizes_of(scenes).max() > GREATEST:
            for part in (slice(None, n // 2), slice(n // 2, None)):  # offsets are int32
                self._solve_some(found, numbers[part], queries[part], settings, seeds[part], whole)
            return
        with self._many.held():
            if there:
                floats, ints, places = there
            else:
                floats, ints, begin = self._scenes.placed(scenes)
                places = np.array([begin[id(scene.own)] for scene in scenes])
            problems = Problems(queries, np.asarray(seeds), places[which])
            required, left = 0, list(range(n))
            while left:  # those whose paths found no room are searched again
                chosen = problems.chosen(left) if len(left) < n else problems
                passes = Passes(self._many, chosen, settings, (floats, ints), whole, required)
                passes.solve(found, [numbers[i] for i in left])
                if not (required := passes.required):
                    return
                missing = set(found.missing())
                left = [i for i in left if numbers[i] in missing]


def _lying_together(checkers):
    """Floats, ints of the device and (n, 2) where the scenes begin, of the checkers of one SceneBatch; else None."""
    batch = getattr(checkers[0], "batch", None)
    if batch is None or any(getattr(checker, "batch", None) is not batch for checker in checkers):
        return None
    return *batch.buffers, batch.places[[checker.number for checker in checkers]]


@functools.lru_cache(maxsize=256)  # a query asks for the same
def _whole_rounds(first, batch, drawn, samples):
    """At which number of samples, `samples` or more, a round ends, if one ends at `drawn`."""
    sizes = SimpleNamespace(first=first, batch=batch)
    while drawn < samples:
        drawn += batch_after.py_func(sizes, drawn)
    return drawn


_engines: dict[tuple, CudaEngine] = {}  # those of kinds of checkers are made once, and kept


def engine_of(checker: Any) -> CudaEngine:
    """The CudaEngine of a kind of checker."""
    kind = checker.device, checker.robot.dof, checker.scratch_sizes
    if kind not in _engines:
        _engines[kind] = CudaEngine(checker)
    return _engines[kind]


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
    """A batch on its way through the passes on one device, whose host is held.

    scene: float32 and int32 array of the device
    whole: the batch that the problems are of; by it passes and teams are chosen, wherever results depend on these
    room: for so many numbers of paths at least;  required: how many there were, if those found no room, else 0
    """

    def __init__(
        self, host: Any, problems: Problems, settings, scene: Sequence, whole: BatchShape, room: int = 0
    ) -> None:
        n, first = len(problems.queries), problems.queries[0]
        self._dof, self._walk, self._deadline = len(first.start), walk_of(first.checker), first.deadline
        self._host, self._scene, self._problems, self._settings, self._size = host, scene, problems, settings, n
        self._capacity = whole_tiles((NODES_OF_WALKS if self._walk else NODES_OF_MANY) + whole.goals)
        works = search_paths, shorten_paths
        self._blocks, self._team = (host.blocks_of_each(work, whole.problems) for work in works)
        self._later = FEW if whole.problems <= host.most_blocks else LATER
        room, split = max(max(n * CORNERS_OF_MANY, CORNERS) * self._dof, room), SPLIT if self._team > 1 else 1
        self._requests = Requests(host, problems, settings, room, split=split, capacity=self._capacity)
        self._raw: list[int] = []  # problems whose paths are to be shortened
        self._ready: list[int] = []  # those whose answers are to be read
        self._logs: dict[int, dict] = {}  # of problems without a path, as `read_log` has them
        self.required = 0

    def solve(self, found: Found, names: Sequence[int]) -> None:
        """Put the results into `found` under these numbers, but for those that need more room than there is."""
        self._found, self._names = found, names
        left = list(range(self._size))
        # where problems are few, a pass is left out in which a team has more blocks than a round has samples
        if FIRST.batch >= self._blocks:
            teams = min(self._host.most_blocks, len(left))
            self._reserve(teams, teams, FIRST.batch)
            left = self._pass(FIRST, left, 0)
            self._shorten()
        passes = [one for one in self._later if one.batch >= self._blocks] or [LATER[-1]]
        most = max(1, KEPT // tree_sizes.py_func(self._dof, self._capacity)[0])
        for group in np.array_split(left, -(-len(left) // most)) if left else ():
            at_work = group.tolist()
            self._reserve(len(group), len(group), max(one.batch for one in passes))
            self._requests.write(at_work, trees=np.arange(len(group)))
            for one in passes:
                at_work = self._pass(one, at_work, len(group))
                if not at_work:
                    break
                self._requests.write(at_work, fresh=0)
            self._keep_logs(group.tolist())
        self._shorten()
        self._read()
        for i, log in self._logs.items():
            if (result := found.objects.get(names[i])) is not None:
                found.objects[names[i]] = replace(result, **log)

    def _keep_logs(self, numbers):
        """Bring what the searches logged that found no path, before others use the memory of their trees."""
        for at, number in enumerate(numbers):
            if self._requests.ints[number, ANSWER] in (SEARCHING, STOPPED):
                self._logs[number] = self._requests.log(at, self._barriers)

    @property
    def _barriers(self):
        return TEAM * self._host.most_blocks

    def _reserve(self, trees, problems, batch):
        """Memory for so many trees, and for teams that are at work on so many problems."""
        teams, batch = min(self._host.most_blocks, problems), self._settings.batch or batch
        self._requests.reserve(trees, teams, batch, self._host.workers, self._barriers)

    def _pass(self, one, numbers, kept):
        """Search problems of these numbers -> those that are left. kept: how many problems' trees are, 0: none"""
        until = min(one.until, self._settings.max_samples)
        batch = self._settings.batch or one.batch
        self._requests.write(numbers, until=until, batch=batch, first=batch)
        self._run(search_paths, numbers, self._host.blocks_of_each(search_paths, len(numbers)), batch, kept)
        ended = self._requests.ints[numbers, ANSWER].tolist()
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
        numbers, self._raw = self._raw, []
        if self._settings.shortcut_rounds:
            self._reserve(0, max(1, len(numbers)), 0)
            self._run(shorten_paths, numbers, self._team, 0)
            self._ready += numbers

    def _run(self, work, numbers, team, batch, kept=0):
        """Launch a kernel for problems of these numbers, and read answers while it works. team: blocks of each; kept:
        see `_pass`"""
        host, teams = self._host, max(1, min(self._host.most_blocks // team, len(numbers)))
        floats, ints = work_sizes(self._dof, batch, team * WARPS, self._walk)
        trees = kept or (teams if work is search_paths else 0)
        where = {"teams": teams, "blocks": team, "barriers": self._barriers, "trees": trees, "keep": int(kept > 0)}
        self._requests.ask(numbers, self._deadline, **where, work_floats=floats, work_ints=ints)
        host.start(work, teams * team, *self._scene)
        self._read()
        host.wait()
        written = int(self._requests.written[0])
        if written > len(self._requests.paths):
            self.required = written

    def _read(self):
        """The results of problems that have ended."""
        numbers, self._ready = self._ready, []
        if numbers:
            queries, names = self._problems.chosen(numbers).queries, [self._names[i] for i in numbers]
            request.read_answers(self._found, names, self._requests.ints[numbers], self._requests.paths, queries)
