"""Compiling in another process, while the node goes on serving: it fills the cache, from which the node then loads.

Numba holds Python's lock while it compiles, for tens of seconds, so a thread would stall the node as a request does.
"""

import contextlib
import hashlib
import multiprocessing
import signal
import threading
from collections.abc import Callable
from multiprocessing import resource_tracker
from typing import Any

from ... import sources
from ...code_cache import code_folder


def is_compiled(what: str) -> bool:
    """Has a process on this machine said that the cache holds this?"""
    return _mark(what).exists()


def say_compiled(what: str) -> None:
    """Say that the cache holds this, where the cache can be written to."""
    with contextlib.suppress(OSError):
        _mark(what).touch()


def _mark(what):
    key = hashlib.sha256((what + sources.digest_of_all()).encode()).hexdigest()[:16]
    return code_folder() / f"compiled-{key}"


class Background:
    """Compiles one thing at a time in a process of its own, and tells `done` what, and whether that succeeded, on a
    thread of its own."""

    def __init__(self, done: Callable[[str, bool], None]) -> None:
        self._done, self._stopped = done, False
        self._under_way: set[str] = set()
        self._process: Any = None  # the latest
        self._lock, self._one = threading.Lock(), threading.Lock()

    def start(self, what: str, compile_it: Callable[..., Any], *arguments: Any) -> None:
        """Begin, unless that is under way. compile_it, arguments: as pickle takes them"""
        with self._lock:
            if what in self._under_way or self._stopped:
                return
            self._under_way.add(what)
        threading.Thread(target=self._follow, args=(what, compile_it, arguments), daemon=True).start()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.terminate()

    def _follow(self, what, compile_it, arguments):
        process = multiprocessing.get_context("spawn").Process(
            target=compile_it, args=arguments, name="compiling", daemon=True
        )
        resource_tracker.ensure_running()  # else it begins with the process, and takes signals
        # Ctrl-C reaches the whole group, but the process, which inherits this thread's mask, is ended by the node
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with self._one:
                with self._lock:
                    if self._stopped:
                        return
                    process.start()
                    self._process = process
                process.join()
        finally:  # also where it could not start, for somebody waits
            with self._lock:
                self._under_way.remove(what)
                stopped = self._stopped
            if not stopped:
                self._done(what, process.exitcode == 0)
