"""Processes of this machine that work for one program, leave Ctrl-C to it and end with it."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor


@contextlib.contextmanager
def processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of `count` processes, which end at once with an error in the block, also Ctrl-C."""
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _begin)
    try:
        yield pool
    except BaseException:
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _begin():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent():
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
