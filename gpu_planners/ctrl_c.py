"""Ctrl-C at moments at which what it raises would be lost, or leave something behind."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def ctrl_c_later(waits: Callable[[FrameType | None], bool] = lambda frame: True) -> Iterator[None]:
    """Meanwhile a Ctrl-C is heard when the block ends, if it `waits` in the frame in which it comes.

    Signals go to the main thread, whichever thread the system gives them to; in others this does nothing.
    """
    before, waiting = signal.getsignal(signal.SIGINT), []
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return

    def hear(number, frame):
        if waits(frame):
            waiting.append(number)
        else:
            before(number, frame)

    signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if waiting:
            signal.raise_signal(signal.SIGINT)
