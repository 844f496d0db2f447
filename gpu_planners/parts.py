"""What one kind of request needs as a part: compiled once on a machine, by one process, which says so in the cache."""

import contextlib
import hashlib
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from numba.core.registry import cpu_target

from . import code_cache, sources
from . import device as devices
from .code_cache import CAPABILITIES, READY_MADE, Turn, code_folder, fits_here, making
from .errors import shortened

LOOK_S = 0.2  # how often it looks whether it shall stop, or go on
PATIENCE_S = 900.0  # for another process that makes the same part
for_others = False  # does this process compile what others ask for?


@dataclass(frozen=True)
class Part:
    """What one kind of request needs.

    what: in words, which also tell parts apart in the cache
    compile_it, arguments: make it, in any process; pickle takes them
    seconds: of CPU that it takes by itself, roughly, on one core of 2023
    """

    what: str
    compile_it: Callable[..., Any]
    arguments: tuple
    seconds: float

    def run(self) -> None:
        """Compile it, or load it from the cache, in this process."""
        self.compile_it(*self.arguments)
        if not code_cache.unkept:
            with contextlib.suppress(OSError):  # the cache cannot be written to
                mark(self.what, here(self.what)).touch()


def place(device: str, size: int) -> str:
    """Device and number of the size of kernels in words. Code for the CPU serves robots of all sizes."""
    return "cpu" if kind(device) == "cpu" else f"{kind(device)} for robots of size {size}"


def kind(device: str) -> str:
    return device.partition(":")[0]


def kernel_name(kernel: str, device: str, size: int) -> str:
    """What the part is called that is one kernel of a first plan."""
    return f"kernel of {kernel} on {place(device, size)}"


def is_compiled(what: str) -> bool:
    """Does the cache hold this part, as a process on this machine has said, or a wheel that fits it?"""
    ready = READY_MADE / mark(what, "").name
    return mark(what, _machine(what)).exists() or ready.exists() and _fits(what)


def mark(what: str, machine: str) -> Path:
    """The file that says that a part is compiled."""
    key = hashlib.sha256((what + machine + sources.digest_of_all()).encode()).hexdigest()[:16]
    return code_folder() / f"compiled-{key}"


def here(what: str) -> str:
    """What tells the code that this process makes apart."""
    return "" if making() else _machine(what)


def _machine(what):
    """What, beside the sources, tells this machine's code apart."""
    here = f"{sys.version_info[:2]} {cpu_target.target_context.codegen().magic_tuple()}"
    return f"{here} {devices.model_of('cuda')} {version('numba-cuda')}" if "cuda" in what else here


def _fits(what):
    if "cuda" not in what:
        return fits_here()
    from numba import cuda

    return tuple(cuda.gpus[0].compute_capability) in CAPABILITIES


def compile_in_turn(parts: Sequence[Part]) -> dict[str, str]:
    """Compile parts in this process, one after the other -> {what could not be compiled: why}.

    Other processes wait for them, as this one does for those that another one makes.
    """
    global for_others
    for_others = True
    devices.SOON_S = threading.TIMEOUT_MAX  # whoever waits is told by the process that asked for the parts
    turns = [Turn(turn_file(part.what), PATIENCE_S, LOOK_S) for part in parts]
    failed: dict[str, str] = {}
    for turn, part in zip(turns, parts):
        with turn:
            if is_compiled(part.what):
                continue
            try:
                part.run()
            except Exception as error:
                failed[part.what] = words_of(error)
            else:
                if code_cache.unkept:
                    failed[part.what] = f"its code could not be kept: {code_cache.unkept}"
    return failed


def turn_file(what: str) -> Path:
    """Locked while a process makes a part."""
    return mark(what, here(what)).with_suffix(".turn")


def words_of(error: BaseException) -> str:
    return f"{type(error).__name__}: {shortened(error)}"
