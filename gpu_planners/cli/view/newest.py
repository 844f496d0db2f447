"""A thread that does the newest job of each kind: what comes faster than it can be done is skipped."""

import threading
from collections.abc import Callable


class Newest:
    """Runs jobs one after another; one that is still waiting when the next of its kind comes is dropped.

    on_failure: called on the thread with what a job raised
    """

    def __init__(self, on_failure: Callable[[Exception], None]) -> None:
        self._on_failure, self._ended, self._running = on_failure, False, False
        self._jobs: dict[str, Callable[[], None]] = {}
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="newest", daemon=True)
        self._thread.start()

    def do(self, kind: str, job: Callable[[], None]) -> None:
        """Do this in place of what waits of its kind."""
        with self._changed:
            self._jobs[kind] = job
            self._changed.notify()

    @property
    def busy(self) -> bool:
        """Does a job run or wait?"""
        with self._changed:
            return self._running or bool(self._jobs)

    def stop(self) -> None:
        """Drop what waits and end, when the job under way is done."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join(timeout=5.0)

    def _work(self):
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended or self._jobs)
                if self._ended:
                    return
                job, self._running = self._jobs.pop(next(iter(self._jobs))), True
            try:
                job()
            except Exception as error:  # the page must live on
                self._on_failure(error)
            finally:
                self._running = False
