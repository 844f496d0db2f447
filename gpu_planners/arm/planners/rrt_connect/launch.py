"""What a launch works on: queries in the message of a host, and the memory of its teams."""

import functools
from collections.abc import Sequence
from typing import Any

from ....parallel.layout import on_host
from ....parallel.team import left_ms
from ..blocked import read_log
from ..node_store import whole_tiles
from ..plain_queries import checkers_of, most_goals
from ..query import Query
from ..result import PlanningResult
from . import request
from .request import (
    ANSWER,
    INTS,
    NO_PLACES,
    NODES,
    SAMPLES,
    Problems,
    open_queue,
    queue_sizes,
    row_size,
    walk_of,
    write_queue,
    write_request,
    write_requests,
)
from .state import CORNERS, TEAM, open_trees, tree_sizes, work_sizes

_trees, _work = functools.cache(on_host(tree_sizes)), functools.cache(work_sizes)
_trees_on_host = on_host(open_trees)


class Requests:
    """Queries in the message of a host. room: for so many numbers of paths; same: see `write_requests`"""

    def __init__(self, host: Any, problems: Problems, settings, room: int, **same: Any) -> None:
        queries = problems.queries
        n, dof = len(queries), len(queries[0].start)
        self._host, self._capacity, self._dof = host, same["capacity"], dof
        self._walk = max(map(walk_of, checkers_of(queries)[0]))
        row = row_size(dof, most_goals(queries))
        self._message = host.message(*queue_sizes.py_func(n, row, room))
        write_queue(*self._message, n, row, room, dof=dof, mode=0, step=0, total=n, row=row, room=room, written=0)
        queue = open_queue.py_func(*self._message)
        self._rows, self.paths, self.written = queue.rows.reshape(n, row), queue.paths, queue.written
        self._numbers = queue.numbers
        self.ints = queue.requests.reshape(n, INTS)
        write_requests(self._rows, self.ints, problems, settings, **same)

    def write(self, numbers: Any, **fields: Any) -> None:
        """Set fields of the Requests of these numbers."""
        ints = self.ints[numbers]
        write_request(self._rows[:0], ints, **fields)
        self.ints[numbers] = ints

    def ask(self, numbers: Sequence[int], deadline: int, **fields: Any) -> None:
        """What the next launch works on. fields: of Queue"""
        place = len(self.ints), self._rows.shape[1], len(self.paths)
        asked = {"asked": len(numbers), "left_ms": left_ms(deadline), "taken": 0}
        write_queue(*self._message, *place, **asked, **fields)
        self._numbers[: len(numbers)] = numbers

    def log(self, tree: int = 0, barriers: int = TEAM) -> dict[str, Any]:
        """What tree number `tree` in the host's own memory has logged: see `read_log`."""
        places = [tree * size + first for size, first in zip(_trees(self._dof, self._capacity), (0, barriers))]
        return read_log(_trees_on_host(*self._host.fetch(*_trees(self._dof, 0), places), self._dof, 0))

    def reserve(self, trees: int, teams: int, batch: int, workers: int, barriers: int = TEAM) -> None:
        """Memory for so many trees and teams, which are of so many workers in all, with `batch` samples in a round."""
        parts = (
            _trees(self._dof, self._capacity),
            _work(self._dof, batch, 0, self._walk),
            _work(self._dof, batch, workers, self._walk),
        )
        floats, ints = (trees * tree + (teams - 1) * shared + work for tree, shared, work in zip(*parts))
        self._host.memory(floats, barriers + ints)


class SingleRequest(Requests):
    """One query, which all workers of a host share. first: samples of the first rounds; batch: of a round at most"""

    def __init__(self, host: Any, query: Query, settings, seed: int, first: int, batch: int, split: int) -> None:
        problem, dof = Problems([query], [seed], NO_PLACES), len(query.start)
        same = {"first": first, "batch": batch, "split": split, "capacity": whole_tiles(NODES + len(query.goals))}
        super().__init__(host, problem, settings, 2 * CORNERS * dof, **same)
        self.reserve(1, 1, batch, host.workers)
        floats, ints = _work(dof, batch, host.workers, self._walk)
        self._query, where = query, {"teams": 1, "blocks": 0, "barriers": TEAM, "trees": 1, "keep": 1}
        self._where = where | {"work_floats": floats, "work_ints": ints}

    def ask_it(self, **fields: Any) -> None:
        """The next launch works on it. fields: of Request"""
        write_request(self._rows[0], self.ints[0], **fields)
        self.ask([0], self._query.deadline, **self._where)

    @property
    def status(self) -> int:
        """What has become of it: SEARCHING, ..."""
        return self.ints[0, ANSWER]

    @property
    def drawn(self) -> int:
        """Samples."""
        return int(self.ints[0, SAMPLES])

    def result(self, samples: int | None = None) -> PlanningResult:
        """samples: of all searches of the query; none: there was only this one"""
        return request.read_answer(self.ints[0].tolist(), self.paths, self._query, samples=samples, log=self.log)
