"""Devices, and the decorators of what is compiled for them.

CUDA is imported only when a device is asked for.

Threads (GNU OpenMP's, which Numba uses) and CUDA contexts do not survive os.fork. A child that was forked after its
parent had started them cannot plan, nor can one that was forked while another thread compiled (`code_cache`); entry
points of the package say so in it (`refuse_forked`). A child of a parent that had planned without them plans: its teams
start threads of its own (`parallel/team.py`). Start processes by "spawn" or "forkserver" (multiprocessing.get_context,
or the mp_context of a ProcessPoolExecutor) or by subprocess, or fork before planning.
"""

import atexit
import contextlib
import functools
import logging
import os
import re
import threading
import warnings
from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numba

from . import code_cache, inner_code
from .errors import DeviceError, GpuPlannersError, shown

SOON_S = 3.0  # loading compiled code takes less
_loaded: set[tuple] = set()  # what this process has compiled or loaded
_put_off = contextlib.ExitStack()  # what Numba would free on CUDA devices when Python ends
_lost = ""  # what this process inherited from its parent by a fork and cannot use


def njit(function=None, **options):
    """numba.njit with the cache of the package, and with fused multiply-add allowed."""
    if function is None:
        return functools.partial(njit, **options)
    options = {"fastmath": {"contract", "nsz", "arcp"}, "error_model": "numpy", "nogil": True} | options
    return code_cache.keep(numba.njit(_target=inner_code.target_of(function), **options)(function))


def lean_njit(function):
    """njit for code that allocates nothing: without the counting of references to arrays.

    Numba counts references by atomic additions, also for each array of each record that a function is given or makes:
    half the time of a collision check. A function compiled so may return arrays only to others compiled so, or parts of
    what was lent (`team.borrowed`); Python would get the whole array in place of a part.
    """
    return njit(function, _nrt=False)


def shared_by_kernels(dispatcher):
    """Let CUDA's code of a function that njit returned, with all that it calls, be compiled by one process for the
    kernels of all -> the dispatcher. For what is large and the same in many kernels."""
    if inner_code.FITS:
        dispatcher.keep_for_kernels = code_cache.keep_shared
    return dispatcher


def cuda_jit(function=None, missed=None, **options):
    """numba.cuda.jit with the cache of the package; imports CUDA. Without fast mathematics: with its square roots and
    divisions the exact search calls pairs half a millimetre apart colliding. missed: see `code_cache.keep`"""
    from numba import cuda

    # single queries are small by nature; numba would warn at every launch
    warnings.filterwarnings("ignore", message=".*Grid size .* low occupancy")
    if function is None:
        return functools.partial(cuda_jit, missed=missed, **options)
    from . import inner_code_cuda

    return code_cache.keep(inner_code_cuda.compile_once(cuda.jit(**options)(function)), missed)


@contextlib.contextmanager
def told_if_slow(what: str, *kind: Hashable) -> Iterator[None]:
    """Log a warning if what is done meanwhile, compiling or loading `what`, takes longer than loading does. Once it is
    done, it costs nothing for the same kind of it: starting a thread takes 0.2 ms."""
    if (what, *kind) in _loaded:
        yield
        return
    text = f"compiling {what}: once on this machine, then it is loaded from {code_cache.code_folder()}"
    timer = threading.Timer(SOON_S, logging.getLogger("gpu_planners").warning, (text,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    _loaded.add((what, *kind))


def _note_fork():
    """In a forked child: note whether the parent had started what does not survive a fork."""
    global _lost
    if cuda_problem.cache_info().currsize and not cuda_problem():
        _lost = "CUDA"
    with contextlib.suppress(ValueError):  # no threads yet
        if numba.threading_layer() != "tbb":
            _lost = "threads"


os.register_at_fork(after_in_child=_note_fork)


def refuse_forked() -> None:
    """Raise GpuPlannersError in a child that was forked too late: after its parent had used threads or CUDA, it would
    crash; while the parent compiled, it would wait for ever."""
    code_cache.refuse_forked()
    if _lost:
        raise GpuPlannersError(
            f"this process was forked from one that had used gpu_planners with {_lost}, which does not survive a fork; "
            f"{code_cache.SPAWN}"
        )


@functools.cache
def cuda_problem() -> str:
    """Why CUDA cannot be used here, or "" when it can."""
    try:
        from numba import cuda
    except Exception as error:  # numba-cuda is absent or does not fit the installed numpy
        return f"numba's CUDA target does not import: {error}"
    if "numba_cuda" not in str(cuda.__file__):  # Numba's own, older one
        return "numba-cuda is not installed: pip install 'gpu_planners[gpu]'"
    try:
        if cuda.is_available() and len(cuda.gpus) > 0:
            return ""
    except Exception as error:  # the driver is there but refuses
        return f"the CUDA driver answered: {error}"
    return "no CUDA driver or device was found"


ALL_CUDA = "cuda:all"  # every CUDA device of the machine, in a list of devices
_NAME = re.compile(r"auto|cpu|cuda(:\d+)?", re.ASCII)
_ALLOWED = "'auto', 'cpu', 'cuda', 'cuda:N' or 'cuda:all'"  # in a list of devices


def resolve_device(device: str) -> str:
    """ "auto", "cpu", "cuda" or "cuda:N" -> "cpu" or "cuda:N".

    Raises DeviceError when the name is unknown or the device is not there; GpuPlannersError in a child forked too late.
    """
    refuse_forked()
    if not isinstance(device, str) or not _NAME.fullmatch(device):
        raise DeviceError(f"unknown device {shown(device)}: use 'auto', 'cpu', 'cuda' or 'cuda:N'")
    if device == "auto":
        device = "cpu" if cuda_problem() else "cuda:0"
    if device == "cpu":
        return device
    count, index = _cuda_devices(device), int(device.partition(":")[2] or 0)
    if index >= count:
        raise DeviceError(f"device {device!r} was asked for, but this machine has {count} CUDA device(s)")
    _keep_open(index)
    return f"cuda:{index}"


def _cuda_devices(asked: str) -> int:
    """How many CUDA devices there are. asked: the name that someone gave, for the DeviceError where there are none"""
    if cuda_problem():
        raise DeviceError(f"device {asked!r} was asked for, but {cuda_problem()}")
    from numba import cuda

    return len(cuda.gpus)


@functools.cache
def _keep_open(index: int) -> None:
    """Open the primary context of a CUDA device and keep it for as long as the process lives.

    cuda-core lets go of a context when the thread ends that was the first to ask for it, though Numba goes on using it
    in others, and frees in it what is left when Python ends; and from the main thread it does so after Python has
    ended. Either may crash the end of a process (github.com/NVIDIA/cuda-python/issues/2743). So a thread that ends at
    once asks first, and the context is retained once more.

    Devices of one kind share what Numba has compiled, and each would unload it when Python ends, the second one
    what is gone. The driver frees it all with the process, so from then on Numba's cleaning up is put off.
    """
    from cuda.bindings import driver
    from numba import cuda

    def open_it() -> None:
        error, device = driver.cuDeviceGet(index)
        if error == driver.CUresult.CUDA_SUCCESS:
            error, _ = driver.cuDevicePrimaryCtxRetain(device)
        if error != driver.CUresult.CUDA_SUCCESS:
            raise DeviceError(f"device 'cuda:{index}' cannot be opened: {error.name}")
        context = cuda.gpus[index].get_primary_context()
        atexit.register(_put_off.enter_context, context.defer_cleanup())

    with ThreadPoolExecutor(1) as thread:
        thread.submit(open_it).result()


def model_of(device: str) -> str:
    """The model of a CUDA device, "cuda:N"; or "cpu"."""
    device = resolve_device(device)
    if device == "cpu":
        return device
    from numba import cuda

    return str(cuda.gpus[int(device.removeprefix("cuda:"))].name)


def device_names(devices: str | Sequence[str]) -> tuple[str, ...]:
    """The names in a list, or in a text with commas between them, whether or not the devices are there.

    Raises DeviceError where there is no name, or one that no device has.
    """
    names = devices.split(",") if isinstance(devices, str) else devices
    if not isinstance(names, (list, tuple)) or not names or not all(isinstance(name, str) for name in names):
        raise DeviceError(f"devices is {shown(devices)}; allowed: {_ALLOWED}, one or more")
    names = tuple(name.strip() for name in names)
    unknown = next((name for name in names if name != ALL_CUDA and not _NAME.fullmatch(name)), None)
    if unknown is not None:
        among = f" in {shown(devices)}" if len(names) > 1 else ""
        raise DeviceError(f"unknown device {shown(unknown)}{among}: use {_ALLOWED}")
    return names


def resolve_devices(devices: str | Sequence[str]) -> tuple[str, ...]:
    """Names of devices, or a text of names with commas between them -> what `resolve_device` makes of each.

    "cuda:all" stands for every CUDA device of the machine. Raises what resolve_device and device_names do, and
    DeviceError where a CUDA device is named twice. "cpu" may be there several times: workers that share its cores.
    """
    resolved: list[str] = []
    for name in device_names(devices):
        every = [f"cuda:{index}" for index in range(_cuda_devices(name))] if name == ALL_CUDA else [name]
        resolved += [resolve_device(each) for each in every]
    twice = next((name for name in resolved if name != "cpu" and resolved.count(name) > 1), None)
    if twice:
        raise DeviceError(f"devices is {shown(devices)}, which has {twice} twice; allowed: each CUDA device once")
    return tuple(resolved)
