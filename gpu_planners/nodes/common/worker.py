"""The one thread that plans: CUDA contexts belong to one thread, and what is planned on must not change meanwhile."""

import collections
import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from .request_error import NotBegunError, error_text

Job = Callable[[], Any]
ENDING = "the node is ending"


class Request:
    """A request that waits, or waited, in a worker's queue.

    job: answers it, on the worker; refuse: answers it with a NotBegunError when it is never begun. Neither may raise
    after: number of the last change that came before it
    """

    def __init__(self, job: Job, refuse: Callable[[NotBegunError], Any], after: int = -1) -> None:
        self.job, self.refuse, self.after = job, refuse, after


class Worker:
    """Runs jobs one at a time on a thread of its own: changes of what is planned on, and requests.

    Requests wait in a line of their own for each service or action, and the lines take turns, so that a thousand
    requests to one do not hold up another. Changes are made before the requests that came after them, and before those
    that came earlier but still wait: a map or an obstacle that was published before a request counts for it.

    on_failure: called on that thread with the text of a failed change
    most_waiting: how many requests may wait, all lines together
    """

    def __init__(self, on_failure: Callable[[str], None], most_waiting: Callable[[], int] = lambda: 1000) -> None:
        self._on_failure, self._most_waiting = on_failure, most_waiting
        self._changes: collections.deque[tuple[int, Job]] = collections.deque()
        self._lines: dict[str, collections.deque[Request]] = {}
        self._latest = -1  # number of the latest change
        self._until = -1  # of the latest one when the last request began: those up to it are made before the next
        self._stopping, self._refusal = False, ""
        self._wake = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="planning", daemon=True)

    def start(self) -> None:
        """Begin with what is queued."""
        self._thread.start()

    def do(self, job: Callable[..., Any], *arguments: Any) -> None:
        """Queue a change; its failure is reported and changes nothing else."""
        with self._wake:
            if not self._stopping:
                self._latest += 1
                self._changes.append((self._latest, lambda: self._report(job, arguments)))
                self._wake.notify()

    def ask(self, line: str, job: Job, refuse: Callable[[NotBegunError], Any]) -> Request:
        """Queue a request in a line. One too many, or one that comes while the worker stops, is refused at once."""
        with self._wake:
            request = Request(job, refuse, self._latest)
            waiting, most = self.waiting, self._most_waiting()
            if not self._stopping and not self._refusal and waiting < most:
                self._lines.setdefault(line, collections.deque()).append(request)
                self._wake.notify()
                return request
            text = ENDING if self._stopping else self._refusal
        refuse(NotBegunError(text or f"{waiting} requests wait already; allowed: {most}, the parameter max_waiting"))
        return request

    def cancel(self, request: Request) -> bool:
        """Take a request out of its line; False when it has begun or was answered."""
        with self._wake:
            for line in self._lines.values():
                if request in line:
                    line.remove(request)
                    return True
        return False

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
        """How many requests wait."""
        return sum(map(len, list(self._lines.values())))

    def stop(self, patience_s: float = -1.0) -> bool:
        """Refuse the requests that wait; False when the job under way has not ended within patience_s seconds
        (negative: wait for it).

        A compilation, for one, cannot be interrupted.
        """
        with self._wake:
            self._stopping, left = True, self._take_requests()
            self._changes.clear()
            self._wake.notify()
        for request in left:
            request.refuse(NotBegunError(ENDING))
        if self._thread.ident is not None:
            self._thread.join(None if patience_s < 0 else patience_s)
        return not self._thread.is_alive()

    def _take_requests(self):
        left = [request for line in self._lines.values() for request in line]
        self._lines.clear()
        return left

    def _run(self):
        while job := self._next():
            job()

    def _next(self):
        """The next job, when there is one; None when the worker stops."""
        with self._wake:
            self._wake.wait_for(lambda: self._stopping or self._changes or self.waiting)
            if self._stopping:
                return None
            name = next((name for name, line in self._lines.items() if line), None)
            if name is None:
                return self._changes.popleft()[1]
            if self._changes and self._changes[0][0] <= max(self._until, self._lines[name][0].after):
                return self._changes.popleft()[1]
            self._until = self._latest
            line = self._lines[name] = self._lines.pop(name)  # at the end now: the next turn is another's
            return line.popleft().job

    def _report(self, job, arguments):
        try:
            job(*arguments)
        except Exception as error:  # the thread must live on
            self._on_failure(error_text(error))
