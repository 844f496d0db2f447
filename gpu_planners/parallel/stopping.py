"""What nobody waits for any more ends soon: whoever computes for long looks now and then whether it shall stop.

Who has a thread compute lends it a Stop, and sets it from another thread:

    stop = Stop()
    with heeding(stop):            # on the thread that computes
        rrt_connect.solve(...)     # raises StoppedError soon after stop.set()

`heed` stands where Python gets control: between launches of compiled code, and before checks of many motions.
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from ..errors import StoppedError

_here = threading.local()


class Stop:
    """A flag that ends what is computed. outer: another Stop, with which this one counts as set, too: so a query ends
    its own threads, and whoever ends the query ends them all"""

    def __init__(self, outer: Any = None) -> None:
        self._outer, self._set = outer, False

    def set(self) -> None:
        """From any thread."""
        self._set = True

    def is_set(self) -> bool:
        """From any thread."""
        return self._set or (self._outer is not None and self._outer.is_set())


def heeded() -> Any:
    """The Stop that the calling thread heeds, or None."""
    return getattr(_here, "stop", None)


@contextlib.contextmanager
def heeding(stop: Any) -> Iterator[None]:
    """Inside, a StoppedError ends what the calling thread computes soon after `stop` is set. None: nothing ends it"""
    before, _here.stop = heeded(), stop
    try:
        yield
    finally:
        _here.stop = before


def heed() -> None:
    """Raise StoppedError if the calling thread is told to stop."""
    stop = heeded()
    if stop is not None and stop.is_set():
        raise StoppedError("stopped before its end: nobody waits for it any more")
