"""The one thread that plans: CUDA contexts belong to one thread, and jobs must keep the order in which they came."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .request_error import error_text


class Worker:
    """Runs jobs one after another on a thread of its own.

    on_failure: called on that thread with the text of a failed job that nobody waits for
    """

    def __init__(self, on_failure: Callable[[str], None]) -> None:
        self._on_failure = on_failure
        self._thread, self._busy = ThreadPoolExecutor(1, "planning"), threading.Lock()

    def do(self, job: Callable[..., Any], *arguments: Any) -> None:
        """Queue a job; its failure is reported and changes nothing else."""
        self._thread.submit(self._run_reporting, job, arguments)

    def call(self, job: Callable[..., Any], *arguments: Any) -> Any:
        """Queue a job and wait for what it returns or raises. Not to be called on the worker's thread."""
        return self._thread.submit(self._run, job, arguments).result()

    def stop(self, patience_s: float = -1.0) -> bool:
        """Drop what is queued; False when the job under way has not ended within patience_s seconds (negative: wait).

        A compilation, for one, cannot be interrupted.
        """
        self._thread.shutdown(wait=False, cancel_futures=True)
        if not self._busy.acquire(timeout=patience_s):
            return False
        self._busy.release()
        self._thread.shutdown()
        return True

    def _run(self, job, arguments):
        with self._busy:
            return job(*arguments)

    def _run_reporting(self, job, arguments):
        try:
            self._run(job, arguments)
        except Exception as error:  # the thread must live on
            self._on_failure(error_text(error))
