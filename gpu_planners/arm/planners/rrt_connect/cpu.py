"""RRT-Connect on the CPU: a search is one thread's work, some samples at a time; hard problems get several searches.

How long a search takes is a matter of luck: of ten seeds of one problem the slowest often needs a hundred times the
samples of the quickest. So independent searches race, a thread each. Search k begins when search 0 has drawn
k * LEAD samples without a path, so that easy problems, which are most, cost no more than one search. The winner is the
one with the least number of samples, its lead added, whoever came first by the clock: the same seed gives the same path
on any number of cores.
"""

import contextlib
import functools
import os
import threading
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from numba import get_num_threads

from ....device import njit
from ....parallel.sampling import folded_seed
from ....parallel.team import Worker, borrowed, left_ms
from ...spaces.interface import space_of
from ..node_store import new_desk, whole_tiles
from ..query import Query
from ..result import PlanningResult
from . import request
from .answer import solve_one
from .apart import solve_apart
from .request import ANSWER, INTS, NODES, SEARCHING, SOLVED, STOPPED, BatchShape, Problems
from .state import CORNERS, state_sizes, trees_on_host

CHUNK = 32  # samples between two returns to Python, where a search sees Ctrl-C and how far the others are
SEARCHES, LEAD = 2, 64  # searches of a query, where the settings do not say; samples by which one is ahead of the next
APART = 1 << 39  # between the seeds of a query's searches


def solve(query: Query, settings, seed: int, stop: threading.Event | None = None) -> PlanningResult:
    """One query. stop: ends its searches soon after it is set, whatever they say then"""
    return solve_apart(functools.partial(_solve_together, stop=stop or threading.Event()), query, settings, seed)


def _solve_together(query, settings, seed, stop):
    """A search in all joints, or several that race."""
    if query.late():
        return query.timed_out()
    searches = settings.searches or SEARCHES
    with contextlib.ExitStack() as stack:
        first = _Search(query, settings, seed, stop, stack)
        if searches > 1:
            while first.goes_on(max(LEAD, first.batch)):
                pass
            if not first.ended:
                seeds = (folded_seed(seed + k * APART) for k in range(1, searches))
                others = [_Search(query, settings, each, stop, stack) for each in seeds]
                return _race([first, *others], stop)
        while first.goes_on(settings.max_samples):
            pass
        return first.result()


def solve_each(query: Query, settings, seeds: Iterable[int]) -> Generator[PlanningResult, None, None]:
    """Yield the results of one query with each seed, in their order; threads work ahead."""
    settings, threads, stop = replace(settings, searches=1), get_num_threads(), threading.Event()
    ahead: deque[Future] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for seed in seeds:
                ahead.append(pool.submit(solve, query, settings, seed, stop))
                if len(ahead) > threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            stop.set()
            for future in ahead:
                future.cancel()


def solve_many(queries: Sequence[Query], settings, seeds: Sequence[int], whole: BatchShape) -> list[PlanningResult]:
    """The results of many queries, a thread each. whole: the batch that they are of

    Raises CancelledError where the batch is stopped."""
    answers: list = [None] * len(queries)
    numbers, threads, stop = iter(range(len(queries))), get_num_threads(), whole.stop or threading.Event()

    def work(_):
        for i in numbers:
            if stop.is_set():
                return
            answers[i] = solve(queries[i], settings, seeds[i], stop)

    with ThreadPoolExecutor(threads) as pool:
        try:
            list(pool.map(work, range(threads)))
        except BaseException:
            stop.set()
            raise
    if stop.is_set():
        raise CancelledError
    return answers


_free: list[tuple[np.ndarray, np.ndarray]] = []  # buffers of earlier searches
_free_lock = threading.Lock()


def _renew_lock():
    """In a forked child: a thread of the parent may have held it."""
    global _free_lock
    _free_lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


@contextlib.contextmanager
def _memory(n_floats, n_ints):
    """A float32 and an int32 array, at least so long, which hold what others left there.

    They are kept for the next searches: the system clears fresh memory, two megabytes at a time, which takes longer
    than an easy search. Of a buffer only so much is ever touched as the trees in it grew."""
    with _free_lock:
        fitting = (k for k, (floats, ints) in enumerate(_free) if len(floats) >= n_floats and len(ints) >= n_ints)
        number = next(fitting, None)
        kept = None if number is None else _free.pop(number)
    buffers = kept or (np.empty(n_floats, dtype=np.float32), np.empty(n_ints, dtype=np.int32))
    try:
        yield buffers
    finally:
        with _free_lock:
            _free[:] = [buffers, *_free[: 2 * get_num_threads() - 1]]


class _Search:
    """One search of a query. stack: gives its memory back"""

    def __init__(self, query, settings, seed, stop, stack):
        batch, dof, capacity = settings.batch or 1, len(query.start), whole_tiles(NODES + len(query.goals))
        self._query, self._until, self._stop, self._capacity = query, 0, stop, capacity
        self.batch, self.most = batch, settings.max_samples
        self._buffers = stack.enter_context(_memory(*state_sizes(dof, capacity, batch, 1)))
        self._row = np.empty(request.request_size(dof, len(query.goals)), dtype=np.float32)
        self._ints = np.empty(INTS, dtype=np.int32)
        self._paths, self._desk = np.empty(CORNERS * dof, dtype=np.float32), new_desk(space_of(query.checker), dof)
        self._chunk = batch * -(-CHUNK // batch)  # whole rounds
        problem = Problems([query], [seed], request.NO_PLACES)
        same = {"batch": batch, "first": batch, "split": 1, "capacity": capacity}
        request.write_requests(self._row[None], self._ints[None], problem, settings, **same)

    def goes_on(self, until):
        """Draw some samples, at most `until` in all -> False when that many are drawn, or the search has ended."""
        until = self._rounds(until)
        if self.status != SEARCHING or self._until >= until or self._stop.is_set():
            return False
        fresh, self._until = self._until == 0, min(self._until + self._chunk, until)
        request.set_fields(self._ints, fresh=fresh, until=self._until, left_ms=left_ms(self._query.deadline))
        _solve(self._row, self._ints, self._paths, *self._buffers, self._desk)
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

    def result(self, samples=None):
        """samples: of all searches of the query; none: there was only this one"""
        ints = self._ints.tolist()
        return request.read_answer(ints, self._paths, self._query, samples=samples, log=self._trees)

    def _trees(self):
        return trees_on_host(*self._buffers, len(self._query.start), self._capacity)


def _race(searches, stop):
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
            stop.set()
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
