"""RRT-Connect on the CPU: a search is one thread's work, some samples at a time; hard problems get several searches.

How long a search takes is a matter of luck: of ten seeds of one problem the slowest often needs a hundred times the
samples of the quickest. So independent searches race, a thread each. Search k begins when search 0 has drawn
k * LEAD samples without a path, so that easy problems, which are most, cost no more than one search. The winner is the
one with the least number of samples, its lead added, whoever came first by the clock: the same seed gives the same path
on any number of cores.
"""

import os
import threading
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from ....device import njit
from ....parallel.sampling import folded_seed
from ....parallel.team import Worker, borrowed, left_ms
from ...spaces.interface import space_of
from ..node_store import new_desk
from ..query import Query
from ..result import PlanningResult
from .answer import solve_one
from .request import (
    ANSWER,
    INTS,
    NODES,
    SEARCHING,
    SOLVED,
    STOPPED,
    order_of,
    read_answer,
    request_size,
    room_for,
    write_request,
)
from .settings import Settings
from .state import CORNERS, state_sizes

CHUNK = 32  # samples between two returns to Python, where a search sees Ctrl-C and how far the others are
SEARCHES, LEAD = 2, 64  # searches of a query, where the settings do not say; samples by which one is ahead of the next
APART = 1 << 39  # between the seeds of a query's searches


class CpuEngine:
    """What answers queries on the CPU."""

    def solve(self, query: Query, checker, settings: Settings, seed: int) -> PlanningResult:
        """One query: a search, or several that race."""
        if query.late():
            return query.timed_out()
        first, searches = _Search(query, checker, settings, seed), settings.searches or SEARCHES
        if searches > 1:
            while first.goes_on(max(LEAD, first.batch)):
                pass
            if not first.ended:
                others = (folded_seed(seed + k * APART) for k in range(1, searches))
                return _race([first, *(_Search(query, checker, settings, other) for other in others)])
        while first.goes_on(settings.max_samples):
            pass
        return first.result(first.drawn)

    def solve_each(
        self, query: Query, checker, settings: Settings, seeds: Iterable[int]
    ) -> Generator[PlanningResult, None, None]:
        """Yield the results of one query with each seed, in their order; threads work ahead."""
        settings, threads = replace(settings, searches=1), os.cpu_count() or 1
        ahead: deque[Future] = deque()
        with ThreadPoolExecutor(threads) as pool:
            try:
                for seed in seeds:
                    ahead.append(pool.submit(self.solve, query, checker, settings, seed))
                    if len(ahead) > threads:
                        yield ahead.popleft().result()
                while ahead:
                    yield ahead.popleft().result()
            finally:
                for future in ahead:
                    future.cancel()

    def solve_many(
        self, queries: Sequence[Query], checkers: Sequence, settings: Settings, seeds: Sequence[int]
    ) -> list[PlanningResult]:
        """The results of many queries, a thread each."""
        answers: list = [None] * len(queries)
        numbers, threads = iter(range(len(queries))), os.cpu_count() or 1

        def work(_):
            for i in numbers:
                answers[i] = self.solve(queries[i], checkers[i], settings, seeds[i])

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(threads)))
        return answers


class _Search:
    """One search of a query. Memory is only touched as far as trees grow."""

    def __init__(self, query, checker, settings, seed):
        batch, dof = settings.batch or 1, len(query.start)
        capacity = room_for(NODES, len(query.goals))
        n_floats, n_ints = state_sizes(dof, capacity, batch, 1)
        self._query, self._until, self.batch, self.most = query, 0, batch, settings.max_samples
        self._floats, self._memory = np.empty(n_floats, dtype=np.float32), np.empty(n_ints, dtype=np.int32)
        self._row = np.empty(request_size(dof, len(query.goals)), dtype=np.float32)
        self._ints = np.empty(INTS, dtype=np.int32)
        self._paths, self._desk = np.empty(CORNERS * dof, dtype=np.float32), new_desk(space_of(checker), dof)
        self._chunk = batch * -(-CHUNK // batch)  # whole rounds
        self._order = order_of(query, settings, batch, 1, seed, checker, capacity)
        write_request(self._row, self._ints, self._order, query, settings, checker)

    def goes_on(self, until):
        """Draw some samples, at most `until` in all -> False when that many are drawn, or the search has ended."""
        until = (
            until // self.batch * self.batch if until < self.most else self.most
        )  # whole rounds: only numbers decide
        if self.status != SEARCHING or self._until >= until:
            return False
        fresh, self._until = self._until == 0, min(self._until + self._chunk, until)
        left = left_ms(self._query.deadline)
        self._ints[:ANSWER] = self._order._replace(fresh=int(fresh), until=self._until, left_ms=left)
        _solve(self._row, self._ints, self._paths, self._floats, self._memory, self._desk)
        return True

    @property
    def status(self):
        return self._ints[ANSWER]

    @property
    def drawn(self):
        return int(self._ints[ANSWER + 2])

    @property
    def ended(self):
        return self.status != SEARCHING or self._until >= self.most

    def whole(self, until):
        """How many samples it draws in rounds that end by the time that `until` are drawn."""
        return min(self.drawn, self._rounds(until))

    def _rounds(self, until):
        return self.most if until >= self.most else max(until // self.batch * self.batch, 0)

    def result(self, samples):
        return read_answer(self._ints, self._paths, self._query, samples=samples)


def _race(searches):
    """The result of the search that wins; the first one has a lead of LEAD samples."""
    least, lock = [searches[0].most], threading.Lock()  # the number of samples, with the lead, that is to beat

    def run(k):
        while searches[k].goes_on(least[0] - k * LEAD):
            pass
        if searches[k].status == SOLVED:
            with lock:
                least[0] = min(least[0], searches[k].drawn + k * LEAD)

    others = deque(range(1, len(searches)))
    with ThreadPoolExecutor(len(others)) as pool:
        try:
            futures = []
            while searches[0].goes_on(least[0]):
                while others and searches[0].drawn >= others[0] * LEAD:
                    futures.append(pool.submit(run, others.popleft()))
            run(0)
            for future in [*futures, *(pool.submit(run, k) for k in others)]:
                future.result()
        except BaseException:
            least[0] = 0  # the others stop
            raise
    numbers = [search.drawn + k * LEAD for k, search in enumerate(searches)]
    solved = [k for k, search in enumerate(searches) if search.status == SOLVED]
    if not solved:
        late = [search for search in searches if search.status == STOPPED]
        return (late or searches)[0].result(sum(search.drawn for search in searches))
    winner = min(solved, key=lambda k: numbers[k])
    others = [search.whole(numbers[winner] - k * LEAD) for k, search in enumerate(searches) if k != winner]
    return searches[winner].result(searches[winner].drawn + sum(others))


@njit
def _solve(row, ints, paths, floats, memory, desk):
    worker = Worker(0, 1, 0, 0, 1, borrowed(memory), borrowed(memory))
    solve_one(borrowed(row), borrowed(ints), borrowed(paths), borrowed(floats), borrowed(desk), worker)
