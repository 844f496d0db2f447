"""Other processes compile what a first plan on CUDA needs, beside the one that asks for it.

Numba holds Python's lock while it compiles, so threads would not help. The first checker whose size of kernels this
machine has not compiled starts a process for each kernel of a plan; they go on with those of other sizes. Nobody waits
for a process: whoever needs a kernel loads it, waits while another one compiles it, or compiles it where that one fails
(`code_cache`). Processes run no code of the program that starts them, hear no Ctrl-C, start no others, and end with the
program, or soon after where it ends well. On few cores there are none, since two processes that compile kernels do much
of the work twice.
"""

import atexit
import contextlib
import fcntl
import functools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from . import code_cache, parts
from .ctrl_c import ctrl_c_later

KERNELS = ("search", "shortening", "motions", "configurations")  # of a first plan, the longest first
SWITCH = "GPU_PLANNERS_BESIDE"  # the variable that, as 0, has no process compile beside another
FEWEST_CORES = 4
MEMORY = 2 * 2**30  # bytes that a process takes, of what the system has to give
NICE = 10  # of processes that compile for other robots
REST_S = 120.0  # that processes have when their program has ended well
GO_ON = b"go on\n"
# -I: a folder that the program is started in brings no modules
PROGRAM = (
    "import json, sys; asked = json.loads(sys.stdin.buffer.readline()); sys.path[:] = asked['path']; "
    "from gpu_planners import beside; beside.serve(asked)"
)

_asked: set[tuple[str, int]] = set()  # devices and sizes that processes were started for
_processes: list[subprocess.Popen] = []


def compile_kernels(device: str, sizes: Iterable[int]) -> None:
    """Start a process for each of the KERNELS of the first size of robots that nobody has compiled, or compiles, if
    there is room; whoever is done goes on with those of the other sizes. device: "cuda:N"; sizes: numbers of
    arm.collision.scratch.SIZES"""
    own, *others = sizes
    if (device, own) in _asked or not _allowed():
        return
    _asked.add((device, own))
    then = [(kernel, size) for size in others for kernel in KERNELS]
    for kernel in KERNELS:
        if sum(process.poll() is None for process in _processes) >= _room():
            return
        if not parts.is_compiled(parts.kernel_name(kernel, device, own)):
            with contextlib.suppress(OSError), ctrl_c_later():
                _start(device, [(kernel, own), *then])


def _allowed():
    """May this process start others, and would what they compile be found?"""
    if parts.for_others or code_cache.making() or os.environ.get(SWITCH) == "0":
        return False
    if not sys.executable or getattr(sys, "frozen", False):  # Python is part of another program
        return False
    folder = code_cache.code_folder()
    return not code_cache.open_to(folder) and os.access(folder, os.W_OK | os.X_OK)


def _room():
    """How many processes may run at once beside this one."""
    cores = min(len(os.sched_getaffinity(0)), _quota())
    return 0 if cores < FEWEST_CORES else min(int(cores) - 1, int(_memory() / MEMORY))


def _quota():
    """The cores that a container may use at most."""
    with contextlib.suppress(OSError, ValueError):
        most, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return float(most) / float(period)  # "max" is no number
    return float("inf")


@functools.cache
def _memory():
    """Bytes that the system, or the container, had to give when this was asked first."""
    found = []
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found.append(1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")))
    with contextlib.suppress(OSError, ValueError):
        most, used = (Path(f"/sys/fs/cgroup/memory.{name}").read_text(encoding="ascii") for name in ("max", "current"))
        found.append(int(most) - int(used))
    return min(found, default=0)


@contextlib.contextmanager
def _alone(kernel, device, size):
    """A file that is locked meanwhile, and by a process that inherits it; OSError where another one has it."""
    what = parts.kernel_name(kernel, device, size)
    lock = os.open(parts.mark(what, parts.here(what)).with_suffix(".beside"), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield lock
    finally:
        os.close(lock)


def _start(device, todo):
    """Start a process that compiles kernels (kernel, size), unless one is at the first of them on this machine."""
    (kernel, size), *_ = todo
    with _alone(kernel, device, size) as lock:
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the program
            pass_fds=(lock,),
        )
    if not _processes:
        atexit.register(_let_go, os.getpid())
    _processes.append(process)
    process.stdin.write(json.dumps({"path": sys.path, "device": device, "todo": todo, "lock": lock}).encode() + b"\n")
    process.stdin.flush()
    threading.Thread(target=process.wait, name="compiling beside", daemon=True).start()  # leaves no zombie


def _let_go(owner):
    """When Python ends: processes go on for a while, but after Ctrl-C. They end when a pipe closes without a word."""
    if os.getpid() == owner and not isinstance(getattr(sys, "last_value", None), KeyboardInterrupt):
        for process in _processes:
            with contextlib.suppress(OSError, ValueError):
                process.stdin.write(GO_ON)
                process.stdin.flush()


def serve(asked: dict) -> None:
    """In a process of its own: compile the first kernel, whose file it holds, then those that no other one is at."""
    threading.Thread(target=_end_with_program, daemon=True).start()
    kernels = import_module(".kernels", __package__)  # which stands above whoever starts this
    (kernel, size), *others = asked["todo"]
    parts.compile_in_turn([kernels.kernel_part(kernel, asked["device"], size)])
    os.close(asked["lock"])
    os.nice(NICE)
    for kernel, size in others:
        with contextlib.suppress(OSError), _alone(kernel, asked["device"], size):
            parts.compile_in_turn([kernels.kernel_part(kernel, asked["device"], size)])


def _end_with_program():
    if sys.stdin.buffer.read() == GO_ON:
        threading.Event().wait(REST_S)
    os._exit(1)
