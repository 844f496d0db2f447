"""Which device computes, how compiled code is cached, and page-locked buffers.

`njit` here is numba's with an on-disk cache whose folder is keyed on the sources of the whole package:
numba itself looks only at the file of the decorated function, so a change in a callee of another module
would bring an old answer back (GPU_NOTES). CUDA is imported only when a device is asked for.

Processes: threads (GNU OpenMP's, which Numba uses) and CUDA contexts do not survive os.fork. A child forked after its parent
has planned cannot plan, and every entry point of the package says so in it (`refuse_forked`). Start processes by "spawn" or
"forkserver" (multiprocessing.get_context, or a ProcessPoolExecutor's mp_context) or by subprocess, or fork before planning.
"""

import contextlib
import functools
import hashlib
import os
from pathlib import Path

import numba

from .errors import DeviceError, GpuPlannersError

_lost = ""  # what this process inherited from its parent by a fork and cannot use


def cache_folder():
    """$XDG_CACHE_HOME/gpu_planners or ~/.cache/gpu_planners."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpu_planners"


@functools.cache
def _numba_cache_folder():
    if os.environ.get("NUMBA_CACHE_DIR"):
        return os.environ["NUMBA_CACHE_DIR"]
    digest = hashlib.sha256(numba.__version__.encode())
    root = Path(__file__).parent
    for source in sorted(root.rglob("*.py")):
        if "nodes" not in source.relative_to(root).parts:
            digest.update(source.read_bytes())
    return str(cache_folder() / "numba" / digest.hexdigest()[:16])


def njit(function=None, **options):
    """numba.njit with fused multiply-add allowed and the package-wide cache."""
    if function is None:
        return functools.partial(njit, **options)
    options = {"cache": True, "fastmath": {"contract", "nsz", "arcp"}, "error_model": "numpy", "nogil": True} | options
    return _with_stable_key(_with_package_cache(lambda: numba.njit(**options)(function)))


def cuda_jit(function=None, **options):
    """numba.cuda.jit with the package-wide cache; imports CUDA. No fast mathematics: its square roots and divisions make the
    exact search call pairs half a millimetre apart colliding."""
    from numba import cuda

    if function is None:
        return functools.partial(cuda_jit, **options)
    return _with_package_cache(lambda: cuda.jit(**({"cache": True} | options))(function))


def _with_package_cache(decorate):
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = _numba_cache_folder()
    try:
        return decorate()
    finally:
        numba.config.CACHE_DIR = previous


def _with_stable_key(dispatcher):
    """Numba finds a function's compiled code by, among others, a pickle of its closure. One that holds compiled functions is
    pickled differently in every process, so that all that a factory makes would be compiled anew in each. Nor does it tell one
    function's serial code from its parallel code."""
    cache, parallel = dispatcher._cache, dispatcher.targetoptions.get("parallel", False)
    if hasattr(cache, "_index_key"):
        cache._index_key = lambda signature, codegen: (signature, codegen.magic_tuple(), _described(dispatcher), parallel)
    return dispatcher


def _described(value):
    """A text that tells closure values apart and is the same in every process. The sources are in the folder's name already."""
    function = getattr(value, "py_func", value)
    if hasattr(function, "__code__"):
        inner = [_described(cell.cell_contents) for cell in function.__closure__ or ()]
        return f"{function.__module__}.{function.__qualname__}:{function.__code__.co_firstlineno}({', '.join(inner)})"
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_described, value))})"
    if hasattr(value, "tobytes"):  # numpy shortens long arrays
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    return f"{type(value).__name__} {value!r}"


def _note_fork():
    """In a forked child: note whether the parent had started what does not survive a fork."""
    global _lost
    if cuda_problem.cache_info().currsize and not cuda_problem():
        _lost = "CUDA"
    with contextlib.suppress(ValueError):  # no threads yet
        if numba.threading_layer() != "tbb":
            _lost = "threads"


os.register_at_fork(after_in_child=_note_fork)


def refuse_forked():
    """Raise GpuPlannersError in a child that was forked after its parent had used threads or CUDA: the child would crash."""
    if _lost:
        raise GpuPlannersError(f"this process was forked from one that had used gpu_planners with {_lost}, which does not survive a fork; "
                               "start processes by 'spawn' or 'forkserver' (multiprocessing.get_context), or by subprocess")


@functools.cache
def cuda_problem():
    """Why CUDA cannot be used here, or "" when it can."""
    try:
        from numba import cuda
    except Exception as error:  # numba-cuda is absent or does not fit the installed numpy
        return f"numba's CUDA target does not import: {error}"
    try:
        if cuda.is_available() and len(cuda.gpus) > 0:
            return ""
    except Exception as error:  # the driver is there but refuses
        return f"the CUDA driver answered: {error}"
    return "no CUDA driver or device was found"


def resolve_device(device):
    """"auto", "cpu", "cuda" or "cuda:N" -> "cpu" or "cuda:N".

    Raises DeviceError when the name is unknown or the device is not there; GpuPlannersError in a child forked too late.
    """
    refuse_forked()
    if device == "cpu":
        return "cpu"
    if device == "auto":
        return "cpu" if cuda_problem() else "cuda:0"
    name, _, number = str(device).partition(":")
    if name != "cuda" or not (number.isdigit() or device == "cuda"):
        raise DeviceError(f"unknown device {device!r}: use 'auto', 'cpu', 'cuda' or 'cuda:N'")
    if cuda_problem():
        raise DeviceError(f"device {device!r} was asked for, but {cuda_problem()}")
    from numba import cuda

    index = int(number or 0)
    if index >= len(cuda.gpus):
        raise DeviceError(f"device {device!r} was asked for, but this machine has {len(cuda.gpus)} CUDA device(s)")
    return f"cuda:{index}"
