"""Compiling in other processes, while the node goes on serving: they fill the cache, from which the node then loads."""

import threading
from collections.abc import Callable, Sequence

from ...compiling import Progress, compile_parts
from ...parts import Part
from .request_error import NotBegunError
from .worker import ENDING


class Background:
    """Compiles lists of parts, one list at a time, in processes that end with the node.

    told: called with a Progress now and then
    done: called with {what was compiled: "", or why it was not} at the end of a list

    Both on a thread of its own.
    """

    def __init__(self, told: Callable[[Progress], object], done: Callable[[dict[str, str]], object]) -> None:
        self._told, self._done, self._stopped = told, done, False
        self._under_way: set[str] = set()
        self._change, self._one = threading.Condition(), threading.Lock()

    def start(self, parts: Sequence[Part]) -> None:
        """Begin with those that are not under way."""
        with self._change:
            due = {part.what: part for part in parts if part.what not in self._under_way}
            if not due or self._stopped:
                return
            self._under_way |= due.keys()
        threading.Thread(target=self._follow, args=(list(due.values()),), name="compiling", daemon=True).start()

    def wait(self, parts: Sequence[Part]) -> None:
        """Until none of them is under way. Raises NotBegunError when the node ends."""
        names = {part.what for part in parts}
        with self._change:
            self._change.wait_for(lambda: self._stopped or not names & self._under_way)
            if self._stopped:
                raise NotBegunError(ENDING)

    def stop(self) -> None:
        with self._change:
            self._stopped = True
            self._change.notify_all()

    def _follow(self, parts):
        with self._one:
            failed = compile_parts(parts, self._tell, lambda: self._stopped)
        with self._change:
            if self._stopped:
                return
        self._done({part.what: failed.get(part.what, "") for part in parts})
        self._end({part.what for part in parts})

    def _tell(self, progress):
        self._end(set(progress.ended))
        self._told(progress)

    def _end(self, names):
        with self._change:
            self._under_way -= names
            self._change.notify_all()
