"""Processes of this machine that work for one program, leave Ctrl-C to it and end with it."""

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import resource_tracker

from ..ctrl_c import ctrl_c_later

SOON_S = 2.0  # the pool's thread sees to cancelled work in milliseconds


@contextlib.contextmanager
def processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of `count` processes, which end at once with an error in the block, also Ctrl-C."""
    others, pool = set(multiprocessing.active_children()), None
    try:
        with ctrl_c_later():  # a pool that is half started could not be ended
            pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _begin)
            _start(pool, count)
        yield pool
    except BaseException:
        if pool is not None:
            with ctrl_c_later():  # whoever is impatient would leave behind what is ended here
                _end(pool, set(multiprocessing.active_children()) - others)
        raise
    finally:
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)


def _start(pool, count):
    """Start the processes, which are deaf to Ctrl-C from the beginning: they inherit what this thread blocks."""
    resource_tracker.ensure_running()  # else it begins with them, and blocks nothing any more
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        for _ in range(count):
            pool.submit(int)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(pool, children):
    """End a pool at once, with the processes that work for it."""
    work, answers = (getattr(pool, name, None) for name in ("_call_queue", "_result_queue"))
    end = time.monotonic() + SOON_S
    thread = getattr(pool, "_executor_manager_thread", None)
    pool.shutdown(wait=False, cancel_futures=True)
    while getattr(pool, "_cancel_pending_futures", False) and time.monotonic() < end:
        time.sleep(0.001)  # before Python 3.12 a pool hangs that loses its processes while cancelled work is left
    for child in children:
        child.terminate()
    # the last ends of two pipes: the pool would wait for the rest of an answer, and until all of a call is read
    for last in (getattr(answers, "_writer", None), getattr(work, "_reader", None)):
        if last is not None:
            last.close()
    if thread is not None:  # it holds the semaphores, which a program that ends by os._exit would leave behind
        thread.join(SOON_S)


def _begin():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent():
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
