"""A worker of an executor: it takes a device, keeps what all pieces of a work share, and answers pieces.

A worker is a thread: that of a process of a pool, one of a Dask worker, or one of a pool of threads. Each has a device
and keeps its own checkers and planners, which are not for several threads at once.

All workers of a machine, of whatever programs, share its devices by slots: files in the temporary folder, each locked
by the worker that has it. The system unlocks them when a process ends, however it ends.
"""

import contextlib
import os
import pickle
import socket
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numba

from ..device import resolve_devices
from ..errors import GpuPlannersError, WorkerError, shortened
from ..files import locked_file

KEPT = 2  # works of which a worker keeps what the pieces share
CORES = "cores"  # the slot of a worker on the CPU while it works


class Order(NamedTuple):
    """A piece of work.

    what: for errors
    answer: answer(shared, piece, device) -> any value; a function of a module
    piece: pickled, unless the digest is empty
    digest: of the pickled data that the pieces share
    devices: names, of which the worker takes one
    work: identifies the call that this is a part of
    """

    what: str
    answer: Callable[[Any, Any, str], Any]
    piece: Any
    digest: bytes
    devices: tuple[str, ...]
    work: bytes


class _Here(threading.local):
    device, own = "", False  # own: was this thread started for its device?
    slot: IO | None = None
    process = 0  # that took the slot
    interrupted = b""  # the work that Ctrl-C ended

    def __init__(self) -> None:
        self.shared: dict[bytes, Any] = {}  # by its digest


_here = _Here()


def answer(order: Order, shared: Any) -> Any:
    """Do a piece of work. shared: pickled, unless the order's digest is empty

    Errors name this worker. Ctrl-C ends all pieces that it has of the work.
    """
    if order.work == _here.interrupted:
        raise KeyboardInterrupt
    try:
        device = _device(order.devices)
        with _share_of_cores(device):
            kept, piece = _unpickled(order, shared)
            return order.answer(kept, piece, device)
    except GpuPlannersError as error:
        raise type(error)(f"worker {name()}: {error}") from error
    except KeyboardInterrupt:
        _here.interrupted = order.work
        raise
    except (Exception, SystemExit) as error:  # a device that runs out of memory, for one
        _here.shared.clear()  # what it kept there is free for the next try
        text = f"worker {name()} failed with {order.what}: {type(error).__name__}: {shortened(error)}"
        raise WorkerError(text) from error


def _unpickled(order, shared):
    if not order.digest:
        return shared, order.piece
    if order.digest not in _here.shared:
        if len(_here.shared) == KEPT:
            del _here.shared[next(iter(_here.shared))]
        _here.shared[order.digest] = pickle.loads(shared)
    return _here.shared[order.digest], pickle.loads(order.piece)


def work_on(device: str) -> None:
    """Give this thread a device, whatever devices others have."""
    _here.device, _here.own = device, True


def name() -> str:
    """This worker's name in error texts."""
    thread = threading.current_thread()
    own = "" if thread is threading.main_thread() else f", {thread.name}"
    return f"{socket.gethostname()}, process {os.getpid()}{own} ({_here.device or 'no device'})"


def _device(devices):
    """The device of this worker, one of `devices`, which it keeps."""
    if not _here.own:
        named = resolve_devices(devices)
        if _here.device not in named or _here.process != os.getpid():
            if _here.slot:
                _here.slot.close()
            _here.process = os.getpid()
            _here.device, _here.slot = _take_slot(named)
    return _here.device


@contextlib.contextmanager
def _share_of_cores(device: str) -> Iterator[None]:
    """Gives a worker on the CPU its part of the machine's cores, shared with other workers that are at work."""
    if device != "cpu":
        yield
        return
    before = numba.get_num_threads()
    with _take_slot([CORES])[1]:
        busy = sum(map(_is_taken, _folder().glob(f"{CORES}.*")))
        share = (os.cpu_count() or 1) // max(1, busy)
        numba.set_num_threads(max(1, min(before, len(os.sched_getaffinity(0)), share)))
        try:
            yield
        finally:
            numba.set_num_threads(before)


def _folder():
    return Path(tempfile.gettempdir()) / f"gpu_planners-{os.geteuid()}" / "slots"


def _make_folder():
    """Others can write to the temporary folder, but must not be able to choose what is opened here."""
    for folder in (_folder().parent, _folder()):
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise WorkerError(
                f"{folder} is not this user's alone; allowed: a folder that no other user owns or can write: "
                "remove it, or chmod go-w"
            )


def _take_slot(names: Sequence[str]) -> tuple[str, IO]:
    """-> the name that the fewest workers have, and a file that is locked until it is closed"""
    _make_folder()
    number = 0
    while True:
        for each in dict.fromkeys(names):
            if file := locked_file(_folder() / f"{each.replace(':', '-')}.{number}"):
                return each, file
        number += 1


def _is_taken(path):
    with locked_file(path, shared=True) or contextlib.nullcontext() as file:
        return file is None
