"""CUDA: a batch of problems in passes. Easy problems, which are most, get little of the device each, hard ones more."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ....parallel.team import left_ms
from ...spaces.cuda import WARPS
from ..launch_cuda import TeamLaunch
from ..result import PlanningResult
from .answer import queue_sizes
from .request import (
    ANSWER,
    INTS,
    SEARCHING,
    SOLVED,
    BatchShape,
    Problems,
    read_answers,
    request_size,
    room_for,
    set_fields,
    write_requests,
)
from .scene_store import GREATEST
from .state import CORNERS, tree_sizes, work_sizes

NODES_OF_MANY = 8192  # of a tree; a problem that needs more is solved by itself afterwards
CORNERS_OF_MANY = 32  # of a path, on average
SPLIT = 2  # workers that share a leg where several blocks shorten a path: a round lasts as long as its longest check
KEPT = 1 << 29  # numbers of trees that wait for the next pass, at once


class Pass(NamedTuple):
    """How problems are searched until they have drawn `until` samples. Those that are left go on in the next pass,
    where each has a larger part of the device: a team of more blocks.

    batch: samples of a round; fresh: do problems begin anew? Their luck may be better
    """

    batch: int
    fresh: bool
    until: int


FIRST = Pass(4, True, 256)  # no trees are kept of so many problems
LATER = (
    Pass(8, True, 512),
    Pass(16, False, 1024),
    Pass(32, False, 2048),
    Pass(64, False, 4096),
    Pass(128, True, 8192),
    Pass(256, False, 16384),
    Pass(256, True, GREATEST),
)


class Passes:
    """A batch on its way through the passes on one device, whose launches are held.

    search, shortening: of `solve_many` and `shorten_many`; scene: float32 and int32 array of the device
    whole: the batch that the problems are of; by it passes and teams are chosen, wherever results depend on these
    room: for so many numbers of paths at least;  wanting: where there was too little, how many there are
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
        self._problems, self._settings, self._capacity = problems, settings, room_for(NODES_OF_MANY, whole.goals)
        self._blocks, self._team = (launch.blocks_of_each(whole.problems) for launch in (search, shortening))
        row = request_size(self._dof, max(len(query.goals) for query in problems.queries))
        self._rows_whole = search.mapped("rows", n * row, np.float32)  # a view has no address on the device
        self._ints_whole = search.mapped("ints", n * INTS, np.int32)
        self._rows = self._rows_whole[: n * row].reshape(n, row)
        self._ints = self._ints_whole[: n * INTS].reshape(n, INTS)
        self._paths = search.mapped("paths", max(max(n * CORNERS_OF_MANY, CORNERS) * self._dof, room), np.float32)
        split = SPLIT if self._team > 1 else 1
        write_requests(self._rows, self._ints, problems, settings, split=split, capacity=self._capacity)
        self._results: list[PlanningResult | None] = [None] * n
        self._raw: list[int] = []  # problems whose paths are to be shortened
        self._ready: list[int] = []  # those whose answers are to be read
        self._written = self.wanting = 0

    def solve(self) -> list[PlanningResult | None]:
        """The results; None for those that need more room than there is."""
        left = list(range(len(self._results)))
        # where problems are few, a pass is left out in which a team has more blocks than a round has samples
        if FIRST.batch >= self._blocks:
            left = self._pass(FIRST, left, 0)
            self._shorten()
        passes = [one for one in LATER if one.batch >= self._blocks] or [LATER[-1]]
        passes[0] = passes[0]._replace(fresh=True)
        most = max(1, KEPT // tree_sizes(self._dof, self._capacity)[0])
        for group in np.array_split(left, -(-len(left) // most)) if left else ():
            at_work = group.tolist()
            self._ask(at_work, trees=np.arange(len(group)))
            for one in passes:
                at_work = self._pass(one, at_work, len(group)) if at_work else []
        self._shorten()
        self._read()
        return self._results

    def _ask(self, numbers, **fields):
        """Set fields of the Requests of problems."""
        rows = self._ints[numbers]
        set_fields(rows, **fields)
        self._ints[numbers] = rows

    def _pass(self, one, numbers, kept):
        """Search problems of these numbers -> those that are left. kept: how many problems' trees are, 0: none"""
        until = min(one.until, self._settings.max_samples)
        batch = self._settings.batch or one.batch
        self._ask(numbers, fresh=int(one.fresh), until=until, batch=batch, first=batch)
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
        counters = np.zeros(queue_sizes.py_func(len(numbers), teams)[1], np.int32)
        head = 0, self._written, len(numbers), self._rows.shape[1], *sizes, team, kept, teams, *numbers
        counters[: len(head)] = head
        on_device = launch.device_array("counters", len(counters), np.int32)
        on_device[: len(counters)].copy_to_device(counters)
        set_fields(self._ints[0], left_ms=left_ms(self._problems.queries[0].deadline))
        work = self._work(launch, "work", teams, sizes)
        request = self._rows_whole, self._ints_whole, self._paths, on_device
        launch.start(teams * team, *request, *self._scene, *trees, *work)
        self._read()
        launch.stream.synchronize()
        self._written = int(on_device[:2].copy_to_host()[1])
        if self._written > len(self._paths):
            self.wanting = self._written

    def _work(self, launch, name, count, sizes):
        """Memory of the device for so many teams or problems: a float32 and an int32 array."""
        types = np.float32, np.int32
        return [launch.device_array(f"{name} {t.__name__}", count * size, t) for size, t in zip(sizes, types)]

    def _read(self):
        """The results of problems that have ended."""
        numbers, self._ready = self._ready, []
        if numbers:
            queries = [self._problems.queries[i] for i in numbers]
            for number, result in zip(numbers, read_answers(self._ints[numbers], self._paths, queries)):
                self._results[number] = result
