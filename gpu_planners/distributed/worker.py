"""What a worker of an executor does: it takes a device, keeps what all pieces of the work share, and answers pieces.

A worker is a thread: the one of a process of a pool, one of several of a Dask worker, or one of a pool of threads, each
with a device of its own. Checkers and planners are not for several threads at once, so that each keeps its own.
"""

import contextlib
import io
import os
import pickle
import queue
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numba

from ..device import resolve_devices
from ..errors import GpuPlannersError, shortened
from . import leases

KEPT = 2  # of different works, what their pieces share
BUSY = "cores"  # what a worker on the CPU leases while it works
PAUSE_S = 0.05  # of a worker that leaves a piece to others
DONE, REFUSED, FAILED, MISSING, LEFT = range(5)  # how it ended: see Outcome


class Order(NamedTuple):
    """A piece of work.

    answer: answer(piece, device) -> any value; a function of a module
    piece: pickled by `pickled`; as it is, where the digest is empty
    digest: of what the pieces share; shared: that, pickled, or None where the worker should have it
    devices: names, of which the worker takes one
    avoid: the name of a worker that is to leave this to others; or ""
    work, number: the call that this is a part of, and which part: Dask would do equal orders once
    """

    answer: Callable[[Any, str], Any]
    piece: Any
    digest: bytes
    shared: bytes | None
    devices: tuple[str, ...]
    avoid: str
    work: bytes
    number: int


class Outcome(NamedTuple):
    """What became of an Order.

    worker: its name
    ended: DONE, value: what `answer` gave; REFUSED: a GpuPlannersError; FAILED: the text of another error; MISSING: the
        worker wants `shared`; LEFT: it was told to leave it to others
    """

    worker: str
    ended: int
    value: Any = None


class _Here(threading.local):
    own = ""  # the device that this thread was started for
    lease: leases.Lease | None = None
    interrupted = b""  # the work that Ctrl-C ended

    def __init__(self) -> None:
        self.shared: OrderedDict[bytes, Any] = OrderedDict()


_here = _Here()


def pickled(value: Any, shared: tuple = ()) -> bytes:
    """A pickle that has references in place of the objects that are in `shared`."""
    numbers, file = {id(each): number for number, each in enumerate(shared)}, io.BytesIO()
    pickler = pickle.Pickler(file, pickle.HIGHEST_PROTOCOL)
    pickler.persistent_id = lambda each: numbers.get(id(each))  # type: ignore[method-assign]
    pickler.dump(value)
    return file.getvalue()


def _unpickled(data, shared):
    unpickler = pickle.Unpickler(io.BytesIO(data))
    unpickler.persistent_load = lambda number: shared[number]  # type: ignore[method-assign, assignment]
    return unpickler.load()


def answer(order: Order) -> Outcome:
    """Do a piece of work. An error becomes an Outcome that names the worker; Ctrl-C ends all pieces of the work."""
    if order.work == _here.interrupted:
        raise KeyboardInterrupt
    try:
        device = _device(order.devices)
        if order.avoid == name():
            time.sleep(PAUSE_S)
            return Outcome(name(), LEFT)
        piece = _piece_of(order)
        if piece is None:
            return Outcome(name(), MISSING)
        with _share_of_threads(device):
            return Outcome(name(), DONE, order.answer(piece, device))
    except GpuPlannersError as error:
        return Outcome(name(), REFUSED, error)
    except KeyboardInterrupt:
        _here.interrupted = order.work
        raise
    except (Exception, SystemExit) as error:  # a device that runs out of memory, for one
        _here.shared.clear()  # what it kept there is free for the next try
        return Outcome(name(), FAILED, shortened(f"{type(error).__name__}: {error}"))


def _piece_of(order):
    """The piece, or None where what pieces share is not there."""
    if not order.digest:
        return order.piece
    if order.digest in _here.shared:
        _here.shared.move_to_end(order.digest)
    elif order.shared is None:
        return None
    else:
        while len(_here.shared) >= KEPT:
            _here.shared.popitem(last=False)
        _here.shared[order.digest] = pickle.loads(order.shared)
    return _unpickled(order.piece, _here.shared[order.digest])


def take_device(devices: queue.SimpleQueue) -> None:
    """At the start of a thread: its device is the next one, whatever others have."""
    _here.own = devices.get()


def name() -> str:
    """This worker, for people."""
    thread = threading.current_thread()
    own = "" if thread is threading.main_thread() else f", {thread.name}"
    device = _here.lease.device if _here.lease else "no device"
    return f"{socket.gethostname()}, process {os.getpid()}{own} ({device})"


def _device(devices):
    """The device of this worker, one of `devices`; it keeps the one that it has."""
    lease = _here.lease
    if lease and lease.process == os.getpid() and lease.device in devices:
        return lease.device
    named = (_here.own,) if _here.own else resolve_devices(devices)
    if not (lease and lease.process == os.getpid() and lease.device in named):
        if lease:
            lease.give_back()
        lease = _here.lease = leases.take(named)
    return lease.device


@contextlib.contextmanager
def _share_of_threads(device: str) -> Iterator[None]:
    """Inside, a worker on the CPU uses its part of the machine's cores: those of others that wait are its own, too."""
    if device != "cpu":
        yield
        return
    before, busy = numba.get_num_threads(), leases.take([BUSY])
    share = (os.cpu_count() or 1) // leases.held(BUSY)
    numba.set_num_threads(max(1, min(before, len(os.sched_getaffinity(0)), share)))
    try:
        yield
    finally:
        numba.set_num_threads(before)
        busy.give_back()
