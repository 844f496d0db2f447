"""The threads that plan, one for each device, and the changes of what is planned on, which wait until none plans."""

import collections
import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ...device import resolve_devices
from ...errors import error_text
from ...parallel.stopping import Stop, heeding
from .request_error import NotBegunError

Job = Callable[[], Any]
ENDING = "the node is ending"
_here = threading.local()


def seat() -> int:
    """Number of the calling thread of the worker, from 0; 0 on any other thread."""
    return getattr(_here, "seat", 0)


def device_of_seat(devices: str) -> str:
    """The calling thread's device, of a text with commas between devices."""
    named = resolve_devices(devices)
    return named[seat() % len(named)]


@dataclass(eq=False)
class QueuedRequest:
    """A request that waits, or waited, in a worker's queue.

    job: answers it, on the worker; must not raise
    refuse: answers it with a NotBegunError when it is never begun, or when the worker stops before the job has ended,
        whose answer then counts no more; must not raise
    after: number of the last change that came before it
    beside: may it run while others that may do so run?
    stop: ends what the job computes
    """

    job: Job
    refuse: Callable[[NotBegunError], Any]
    after: int = -1
    beside: bool = False
    stop: Stop = field(default_factory=Stop)

    def run(self) -> None:
        """Do the job; what it computes ends by a StoppedError once nobody wants it any more."""
        with heeding(self.stop):
            self.job()


class Worker:
    """Runs changes of what is planned on, and requests, on threads of its own.

    Changes, and requests that are not `beside`, run alone, on the first thread. Requests that may run beside each other
    are begun by whichever of the first `seats` threads is free. Nothing begins before a change or request that waits to
    run alone.

    Requests wait in a line for each service or action, and the lines take turns: a thousand requests to one do not hold
    up another. A change that is queued runs before the requests that wait: a map or an obstacle that was published
    before a request counts for it.

    on_failure: called with the text of a job that raised
    most_waiting: how many requests may wait, all lines together
    seats: how many threads may answer requests at once; asked when a request comes
    first_apart: of several threads, the first one leaves requests that may run beside others to those others
    """

    def __init__(
        self,
        on_failure: Callable[[str], None],
        most_waiting: Callable[[], int] = lambda: 1000,
        seats: Callable[[], int] = lambda: 1,
        first_apart: bool = False,
    ) -> None:
        self._on_failure, self._most_waiting, self._seats = on_failure, most_waiting, seats
        self._first_apart = first_apart
        self._changes: collections.deque[tuple[int, Job]] = collections.deque()
        self._asides: collections.deque[tuple[int, Job]] = collections.deque()  # with the change that comes before it
        self._lines: dict[str, collections.deque[QueuedRequest]] = {}
        self._latest = -1  # number of the latest change
        self._until = -1  # last change queued when the previous request began; it must run before the next request
        self._stopping, self._refusal = False, ""
        self._wake = threading.Condition()
        self._alone, self._beside = False, 0  # does a job run that runs alone? how many run beside each other?
        self._released: set[int] = set()  # threads whose job changes do not wait for any more
        self._under_way: dict[int, QueuedRequest] = {}  # by thread
        self._open = 1  # threads that may begin something
        self._threads = [self._thread(0)]

    def _thread(self, number):
        name = "planning" if number == 0 else f"planning {number}"
        return threading.Thread(target=self._run, args=(number,), name=name, daemon=True)

    def start(self) -> None:
        with self._wake:
            self._threads[0].start()
            self._start_threads()

    def do(self, job: Callable[..., Any], *arguments: Any) -> None:
        """Queue a change; its failure is reported."""
        with self._wake:
            if not self._stopping:
                self._latest += 1
                self._changes.append((self._latest, functools.partial(job, *arguments)))
                self._wake.notify_all()

    def do_aside(self, job: Callable[..., Any], *arguments: Any) -> None:
        """Queue a change of something that requests answered beside each other do not read. With several threads it
        waits neither for them nor for later changes."""
        if self._seats() == 1:
            self.do(job, *arguments)
            return
        with self._wake:
            if not self._stopping:
                self._asides.append((self._latest, functools.partial(job, *arguments)))
                self._wake.notify_all()

    def ask(self, line: str, job: Job, refuse: Callable[[NotBegunError], Any], beside: bool = False) -> QueuedRequest:
        """Queue a request; one too many, or one that comes while the worker stops, is refused at once."""
        seats = self._seats() if beside else 1
        with self._wake:
            request = QueuedRequest(job, refuse, self._latest, beside)
            if beside and not self._stopping:
                self._open = seats
                self._start_threads()
            waiting, most = self.waiting, self._most_waiting()
            if not self._stopping and not self._refusal and waiting < most:
                self._lines.setdefault(line, collections.deque()).append(request)
                self._wake.notify_all()
                return request
            text = ENDING if self._stopping else self._refusal
        refuse(NotBegunError(text or f"{waiting} requests wait already; allowed: {most}, the parameter max_waiting"))
        return request

    def cancel(self, request: QueuedRequest) -> bool:
        """Take a request out of its line; False when it has begun, and is told to stop, or was answered."""
        with self._wake:
            for line in self._lines.values():
                if request in line:
                    line.remove(request)
                    return True
        request.stop.set()
        return False

    def release(self) -> None:
        """Called by a request that runs beside others: the rest of it reads nothing that changes change, so they need
        not wait for its end."""
        with self._wake:
            if seat() in self._under_way and not self._alone and seat() not in self._released:
                self._released.add(seat())
                self._beside -= 1
                self._wake.notify_all()

    @contextlib.contextmanager
    def refusing(self, text: str, after_s: float) -> Iterator[None]:
        """While a job takes longer than so many seconds, answer requests with a text; they do not wait for it."""
        over = threading.Event()

        def begin():
            with self._wake:
                if over.is_set():
                    return
                self._refusal, left = text, self._take_requests()
            for request in left:
                request.refuse(NotBegunError(text))

        timer = threading.Timer(after_s, begin)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            with self._wake:
                over.set()
                self._refusal = ""

    @property
    def waiting(self) -> int:
        return sum(map(len, list(self._lines.values())))

    def stop(self, patience_s: float = -1.0) -> bool:
        """Refuse the requests that wait, and those under way that have not ended within patience_s seconds (negative:
        wait for them), since a compilation, for one, cannot be interrupted -> have all ended?"""
        with self._wake:
            self._stopping, left = True, self._take_requests()
            self._changes.clear()
            self._asides.clear()
            self._wake.notify_all()
        for request in left:
            request.refuse(NotBegunError(ENDING))
        until = time.monotonic() + patience_s
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(None if patience_s < 0 else max(0.0, until - time.monotonic()))
        with self._wake:
            under_way = list(self._under_way.values())
        for request in under_way:
            request.refuse(NotBegunError(ENDING))
        return not any(thread.is_alive() for thread in self._threads)

    def _take_requests(self):
        left = [request for line in self._lines.values() for request in line]
        self._lines.clear()
        return left

    def _start_threads(self):
        """Start the threads that are open and were not needed before; the first one is started by `start`."""
        while len(self._threads) < self._open and self._threads[0].ident is not None:
            self._threads.append(self._thread(len(self._threads)))
            self._threads[-1].start()

    def _run(self, number):
        _here.seat = number
        while job := self._next(number):
            try:
                job()
            except Exception as error:  # the thread must live on
                if not self._stopping:  # else what it works with may be gone
                    self._on_failure(error_text(error))
            finally:
                with self._wake:
                    self._under_way.pop(number, None)
                    if number in self._released:
                        self._released.remove(number)
                    elif self._alone:
                        self._alone = False
                    else:
                        self._beside -= 1
                    self._wake.notify_all()

    def _next(self, number):
        """The next job for a thread, when there is one; None when the worker stops."""
        with self._wake:
            while not self._stopping:
                line = next((line for line in self._lines.values() if line), None)
                if job := self._begun(number, line):
                    return job
                self._wake.wait()
            return None

    def _begun(self, number, line):
        """The next job, if this thread may begin it now. line: the one whose turn it is, or None"""
        if self._alone:
            return None
        first = int(self._first_apart and self._open > 1)  # thread that takes requests beside others
        due = self._changes and (line is None or self._changes[0][0] <= max(self._until, line[0].after))
        alone = due or (line and not line[0].beside)
        if number == 0 and self._asides:
            older = due and self._asides[0][0] < self._changes[0][0]
            if self._beside or older or not alone:
                self._beside += 1
                return self._asides.popleft()[1]
        if alone:
            if number > 0 or self._beside:
                return None
            self._alone = True
        elif line is None or not first <= number < self._open:
            return None
        else:
            self._beside += 1
        if due:
            return self._changes.popleft()[1]
        self._until = self._latest
        name = next(name for name, each in self._lines.items() if each is line)
        self._lines[name] = self._lines.pop(name)  # at the end now: the next turn is another's
        self._under_way[number] = line.popleft()
        return self._under_way[number].run
