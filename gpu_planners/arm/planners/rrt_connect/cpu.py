"""RRT-Connect on the CPU: a search is one thread's work, some samples at a time; hard problems get several searches.

How long a search takes is a matter of luck: of ten seeds of one problem the slowest often needs a hundred times the
samples of the quickest. So independent searches race, a thread each. Search k begins when search 0 has drawn
k * LEAD samples without a path, so that easy problems, which are most, cost no more than one search. The winner is the
one with the least number of samples, its lead added, whoever came first by the clock: the same seed gives the same path
on any number of cores.
"""

import contextlib
import functools
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from numba import get_num_threads

from ....parallel.sampling import folded_seed
from ....parallel.stopping import Stop, heed, heeded
from ..host import host_for
from ..query import Query
from ..result import PlanningResult, Status
from ..results import Found
from .answer import solve_paths
from .apart import parts_of, solve_apart
from .launch import SingleRequest
from .request import SEARCHING, SOLVED, STOPPED, BatchShape

CHUNK = 32  # samples between two returns to Python, where a search sees Ctrl-C, stops and how far the others are,
LONGER = 16  # or this part of those that it has drawn, where that is more
CHUNK_S = 0.02  # a search for which they take longer returns more often
SEARCHES = 2  # of a query, where the settings do not say
LEAD = 64  # samples by which a search is ahead of the next
FIRST_OF_MANY = 2048  # samples of a problem before all others of its batch have had as many
APART = 1 << 39  # between the seeds of a query's searches


def solve(query: Query, settings, seed: int, stop: Any = None, apart: bool = True) -> PlanningResult:
    """One query, by one search or several that race. stop: a Stop or an Event, which ends them soon after it is set,
    whatever they say then; apart: may arms move one after the other?"""
    stop = stop or Stop(heeded())
    if apart and len(parts_of(query.checker)):
        return solve_apart(functools.partial(solve, stop=stop, apart=False), query, settings, seed)
    if query.late():
        return query.timed_out()
    searches = settings.searches or SEARCHES
    with contextlib.ExitStack() as stack:
        first = _Search(query, settings, seed, stop, stack)
        if searches > 1:
            while first.goes_on(max(LEAD, first.batch)):
                pass
            if not first.ended:
                return _race(
                    first,
                    lambda k: _Search(query, settings, folded_seed(seed + k * APART), stop, stack),
                    searches,
                    stop,
                )
        while first.goes_on(settings.max_samples):
            pass
        return first.result()


def solve_each(query: Query, settings, seeds: Iterable[int]) -> Generator[PlanningResult, None, None]:
    """Yield the results of one query with each seed, in their order; threads work ahead."""
    settings, threads, stop = replace(settings, searches=1), get_num_threads(), Stop(heeded())
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


def solve_many(queries: Sequence[Query], settings, seeds: Sequence[int], whole: BatchShape) -> Found:
    """The results of many queries, a thread each. Those that FIRST_OF_MANY samples do not solve begin anew when all
    others are done, so that hard ones take nobody's time. whole: the batch that they are of

    Raises CancelledError where the batch is stopped."""
    found, stop, threads = Found(len(queries), len(queries[0].start)), whole.stop or Stop(heeded()), get_num_threads()
    results, left, few = found.objects, list(range(len(queries))), min(FIRST_OF_MANY, settings.max_samples)

    def work(numbers, settings):
        for i in numbers:
            if stop.is_set():
                return
            results[i] = solve(queries[i], settings, int(seeds[i]), stop)

    with ThreadPoolExecutor(threads) as pool:
        try:
            for most in sorted({few, settings.max_samples}):
                numbers, some = iter(left), replace(settings, max_samples=most)
                list(pool.map(work, [numbers] * threads, [some] * threads))
                left = [i for i in left if i in results and results[i].status == Status.SAMPLES_EXHAUSTED]
        except BaseException:
            stop.set()
            raise
    if stop.is_set():
        heed()
        raise CancelledError
    return found


class _Search(SingleRequest):
    """One search of a query. stack: gives its memory back"""

    def __init__(self, query, settings, seed, stop, stack):
        host, batch = host_for(query.checker, solve_paths), settings.batch or 1
        stack.enter_context(host.held())
        super().__init__(host, query, settings, seed, batch, batch, 1)
        self._until, self._stop, self.batch, self.most = 0, stop, batch, settings.max_samples
        self._rounds_at_once = self._most_at_once = -(-CHUNK // batch)

    def goes_on(self, until):
        """Draw some samples, at most `until` in all -> False when that many are drawn, or the search has ended."""
        until = self._rounds(until)
        if self.status != SEARCHING or self._until >= until or self._stop.is_set():
            return False
        fresh, self._until = self._until == 0, min(self._until + self.batch * self._rounds_at_once, until)
        began = time.perf_counter()
        self.ask_it(fresh=fresh, until=self._until)
        self._host.run(self._query.checker)
        took = time.perf_counter() - began
        if took > CHUNK_S:
            self._rounds_at_once = -(-self._rounds_at_once // 2)
        elif took < CHUNK_S / 4:
            most = max(self._most_at_once, self._until // (LONGER * self.batch))
            self._rounds_at_once = min(2 * self._rounds_at_once, most)
        return True

    @property
    def ended(self):
        return self.status != SEARCHING or self._until >= self.most

    def whole(self, until):
        """How many samples it draws in rounds that end by the time that `until` are drawn."""
        return min(self.drawn, self._rounds(until))

    def _rounds(self, until):
        return self.most if until >= self.most else max(until // self.batch * self.batch, 0)


def _race(first, another, count, stop):
    """The result of the search that wins of `count`; the first one has a lead of LEAD samples.

    another: k -> search k, which its thread makes, while the first one goes on
    """
    searches, least, lock = {0: first}, [first.most], threading.Lock()  # least: samples, with the lead, to beat

    def run(k):
        search = searches[k] = searches.get(k) or another(k)
        while search.goes_on(least[0] - k * LEAD):
            pass
        if search.status == SOLVED:
            with lock:
                least[0] = min(least[0], search.drawn + k * LEAD)

    def race(k):
        try:
            run(k)
        except BaseException as error:
            failures.append(error)
            stop.set()

    def begin(k):
        thread = threading.Thread(target=race, args=(k,), name=f"search {k}")
        thread.start()
        threads.append(thread)

    others, threads, failures = deque(range(1, count)), [], []
    try:
        while first.goes_on(least[0]):
            while others and first.drawn >= others[0] * LEAD:
                begin(others.popleft())
        run(0)
        for k in others:
            begin(k)
        for thread in threads:
            thread.join()
    except BaseException:
        stop.set()
        raise
    finally:
        for thread in threads:  # they use memory of the query
            thread.join()
    if failures:
        raise failures[0]
    numbers = [searches[k].drawn + k * LEAD for k in range(count)]
    solved = [k for k in range(count) if searches[k].status == SOLVED]
    if not solved:
        late = [k for k in range(count) if searches[k].status == STOPPED]
        return searches[(late or [0])[0]].result(sum(search.drawn for search in searches.values()))
    winner = min(solved, key=lambda k: numbers[k])
    drawn = [searches[k].whole(numbers[winner] - k * LEAD) for k in range(count) if k != winner]
    return searches[winner].result(searches[winner].drawn + sum(drawn))
