"""Where compiled code is kept, and how one process finds what another one has compiled.

Each piece of code is a file. Its name is a digest of all that the code follows from: the function with its options and
the values of its closure, the types of its arguments, the sources of its product (`sources`), the versions of Python
and Numba, and the processor or GPU. (Numba's own cache has an index for each function, goes by the time of its file,
and by a pickle of the closure, which is another one in every process.) Of processes that need the same code at once,
one compiles it, and the others wait and load it. Code that comes from no file is not kept.

A wheel may bring code that was compiled for many machines (`READY_MADE`). It is used where this machine has none of its
own that fits better.

Files of code are pickles: whoever can write to their folder can make a program that loads them do anything. So they
are taken only where nobody but this user and root can (`open_to`). A file begins with a digest of the rest, for damaged
code crashes, or answers wrong.

Numba compiles and loads under one lock. A child that was forked while another thread held it would wait for ever: it is
told so (`refuse_forked`).

This reaches into Numba and numba-cuda, as `inner_code` does (tried: Numba 0.63.0, 0.68.1; numba-cuda 0.30.4).
"""

import contextlib
import fcntl
import functools
import gc
import grp
import hashlib
import importlib.metadata
import logging
import os
import pickle
import pwd
import stat
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
from llvmlite import binding
from numba.core import serialize
from numba.core.compiler_lock import global_compiler_lock

from . import sources
from .ctrl_c import ctrl_c_later
from .errors import GpuPlannersError

READY_MADE = Path(__file__).parent / "ready_made"  # what a wheel brings
PROCESSOR = "x86-64-v3"  # that its code for the CPU is for: any since 2013 that has AVX2
FEATURES = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")  # of that processor
CAPABILITIES = ((8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0))  # of the GPUs that its code for CUDA is for
MAKING = "GPU_PLANNERS_READY_MADE"  # the variable that names the folder where such code is being made
PATIENCE_S = 300.0  # for another process that compiles the same function
LOOK_S = 0.02  # how often a process looks whether the other one is done
DIGEST_BYTES = 32
SPAWN = "start processes by 'spawn' or 'forkserver' (multiprocessing.get_context), or by subprocess"
unkept = ""  # why this process could not keep code
_forked_too_soon = False  # was this process forked while another thread of its parent compiled?


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/gpu_planners, or ~/.cache/gpu_planners. A user without a home has one that cannot be made."""
    given, home = os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser("~")
    if not os.path.isabs(given):  # XDG's rule
        given = os.path.join(home if os.path.isabs(home) else os.devnull, ".cache")
    return Path(given) / "gpu_planners"


@functools.cache
def code_folder() -> Path:
    """Where compiled code is kept: $NUMBA_CACHE_DIR, or a folder of cache_folder()."""
    return Path(os.environ.get(MAKING) or os.environ.get("NUMBA_CACHE_DIR") or cache_folder() / "code").absolute()


def making() -> bool:
    """Does this process make what a wheel brings?"""
    return MAKING in os.environ


def keep(dispatcher, missed=None):
    """Let a dispatcher of numba.njit or numba.cuda.jit keep here what comes from a file -> the dispatcher.

    missed: called, if given, when this process begins to compile it, since nobody has
    """
    try:
        cache = dispatcher._cache = _Cache(dispatcher, missed)
    except sources.NoSourceError:
        return dispatcher
    compile_it = dispatcher.compile

    def compile_fast(*arguments):
        refuse_forked()
        with _compiling, ctrl_c_outside_llvm():
            try:
                return compile_it(*arguments)
            finally:
                cache.release()

    dispatcher.compile = compile_fast
    return dispatcher


def keep_shared(dispatcher):
    """Let a dispatcher of a function that kernels call keep its code here, with all that it calls, for kernels of other
    processes -> the dispatcher. A wheel brings kernels alone."""
    from . import inner_code_cuda

    try:
        cache = _Cache(dispatcher, None, lambda kept, context: kept)
    except sources.NoSourceError:
        return dispatcher
    compile_it, context = dispatcher.compile_device, dispatcher.targetctx

    def compile_once(types, return_type=None):
        if types in dispatcher.overloads or making():
            return compile_it(types, return_type)
        try:
            if found := cache.load_overload(types, context):
                inner_code_cuda.take(dispatcher, found)
            else:
                result = compile_it(types, return_type)
                cache.save(types, context.codegen(), lambda: inner_code_cuda.shared(result))
        finally:
            cache.release()
        return dispatcher.overloads[types]

    dispatcher.compile_device = compile_once
    return dispatcher


def is_kept(dispatcher, signature) -> bool:
    """Is the code for a signature there, of a dispatcher that `keep` returned?"""
    cache = dispatcher._cache
    if not isinstance(cache, _Cache):
        return False
    return any(file and file.exists() for file in cache._files(signature, dispatcher.targetctx.codegen()))


class _Compiling:
    """A context in which Python looks for no garbage; threads may be in it at once, and again.

    Numba makes millions of objects that live until it is done, through which Python would go again and again: a quarter
    of the time that a kernel takes to compile.
    """

    def __init__(self):
        self.lock, self._inside, self._enabled = threading.Lock(), [], False

    def __enter__(self):
        with self.lock:
            if not self._inside:
                self._enabled = gc.isenabled()
                gc.disable()
            self._inside.append(threading.get_ident())

    def __exit__(self, *_):
        with self.lock:
            self._inside.remove(threading.get_ident())
            self._look_again()

    def _look_again(self):
        if not self._inside and self._enabled:
            gc.enable()

    def leave_others(self):
        """In a forked child: only the thread that forked goes on."""
        self._inside = [thread for thread in self._inside if thread == threading.get_ident()]
        self._look_again()


_compiling = _Compiling()


def _note_fork():
    """In a forked child: does a thread that is not there hold Numba's lock?"""
    global _forked_too_soon
    _compiling.leave_others()
    _compiling.lock.release()
    lock = global_compiler_lock._lock
    if lock.acquire(blocking=False):
        lock.release()
    else:
        _forked_too_soon = True


os.register_at_fork(before=_compiling.lock.acquire, after_in_parent=_compiling.lock.release, after_in_child=_note_fork)


def refuse_forked() -> None:
    """Raise GpuPlannersError in a child forked while another thread compiled: it would wait for ever."""
    if _forked_too_soon:
        raise GpuPlannersError(
            f"this process was forked while a thread of its parent was compiling, and inherited Numba's lock; {SPAWN}"
        )


def ctrl_c_outside_llvm() -> contextlib.AbstractContextManager:
    """Meanwhile a Ctrl-C that comes while LLVM calls Python is heard when the block ends.

    What is raised there is lost, and with it the machine code that LLVM was handing over: the next call would fail.
    """
    return ctrl_c_later(_in_llvm)


def _in_llvm(frame):
    while frame and not frame.f_code.co_name.startswith("_raw_object_cache_"):  # of llvmlite's ExecutionEngine
        frame = frame.f_back
    return frame is not None


class _Cache:
    """The cache of a function, as Numba's dispatchers use one."""

    def __init__(self, dispatcher, missed, rebuilt=None):
        self._dispatcher, self._missed, self._rebuilt = dispatcher, missed, rebuilt or _rebuilt
        self._turns = contextlib.ExitStack()
        self.cache_path = str(code_folder())
        self.source = _source(dispatcher.py_func)  # now: the file may be edited before the function is compiled
        self._options = sorted(
            (name, str(sorted(value) if isinstance(value, set) else value))
            for name, value in dispatcher.targetoptions.items()
        )

    def load_overload(self, signature, context):
        """The code for a signature, or None; then no other process compiles it until it is saved here."""
        context.refresh()
        try:
            own, ready = self._files(signature, context.codegen())
        except sources.NoSourceError:
            return None
        if why := open_to(own.parent):
            _complain(why)
            return self._load(ready, context) if ready else None
        for file in (own, ready):
            if file and (found := self._load(file, context)):
                return found
        self._turns.enter_context(Turn(own.with_suffix(".lock"), PATIENCE_S, LOOK_S))
        found = self._load(own, context)  # another process may have made it
        if found is None and self._missed:
            self._missed()
        return found

    def save_overload(self, signature, code):
        self.save(signature, code.codegen, functools.partial(_reduced, code))

    def save(self, signature, codegen, reduced):
        """reduced() -> what pickle takes of the code; None: nothing is to be kept."""
        try:
            own, _ = self._files(signature, codegen)
            if not open_to(own.parent) and (kept := reduced()) is not None:
                _write(own, kept)
        except sources.NoSourceError:
            pass
        except OSError as error:
            _complain(f"{code_folder()}: {error.strerror or error}")

    def flush(self):
        """Numba asks for it when it shall compile all anew; files are replaced then."""

    def _load(self, file, context):
        try:
            if READY_MADE not in file.parents and _writers(file.stat()):
                return None
            data = file.read_bytes()
            if not data.startswith(hashlib.sha256(data[DIGEST_BYTES:]).digest()):
                return None
            kept = pickle.loads(data[DIGEST_BYTES:])
        except Exception:  # there is none, or it is broken, which pickle has many words for
            return None
        return self._rebuilt(kept, context)

    def release(self):
        """Let other processes go on that wait for this one."""
        self._turns.close()

    def _files(self, signature, codegen):
        """The file for a signature on this machine, and that which a wheel may have brought, or None."""
        name = self._dispatcher.py_func.__name__
        made_from = [
            f"{sys.version_info[:2]} {numba.__version__} {_described(self._dispatcher)} {signature}",
            f"{self._options}",
            *sorted(_classes(signature)),
        ]
        target, portable = _targets(codegen)
        own, ready = (hashlib.sha256("\n".join([*made_from, each]).encode()).hexdigest() for each in (target, portable))
        if making():
            own = ready
        file, brought = (Path(self.source) / f"{name}-{key[:24]}.code" for key in (own, ready))
        return code_folder() / file, READY_MADE / brought if portable else None


class Turn:
    """A context in which no other process makes what a file stands for.

    If none does when this is made, the turn begins then; else the context looks every look_s seconds whether it can,
    and goes on without after patience_s. Where no file can be written nobody waits.
    """

    def __init__(self, path: Path, patience_s: float, look_s: float) -> None:
        self._path, self._patience_s, self._look_s, self._file = path, patience_s, look_s, None
        with contextlib.suppress(OSError):
            _make_folder(path.parent)
            self._file = open(path, "w")
        self._mine = self._take()

    @staticmethod
    def is_taken(path: Path) -> bool:
        """Does a process make it?"""
        try:
            with open(path) as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def _take(self):
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (OSError, TypeError):  # another one's; no file
            return False
        return True

    def __enter__(self) -> None:
        end = time.monotonic() + self._patience_s
        while self._file and not self._mine and time.monotonic() < end:
            time.sleep(self._look_s)
            self._mine = self._take()

    def __exit__(self, *_: object) -> None:
        if not self._file:
            return
        if self._mine:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
                fcntl.flock(self._file, fcntl.LOCK_UN)  # children that were forked meanwhile have the file open, too
        self._file.close()


def _architecture(capability):
    """A capability as numba-cuda asks for the code of a device: from 9.0 on with all that this very device can do."""
    return *capability, "a" if capability >= (9, 0) else ""


def _reduced(code):
    """What pickle takes of a kernel of CUDA, or of code for the CPU; None: it is for this process alone."""
    if hasattr(code, "_codelibrary"):
        if making():
            with ThreadPoolExecutor(len(CAPABILITIES)) as threads:
                list(threads.map(code._codelibrary.get_cubin, map(_architecture, CAPABILITIES)))
        return code._reduce_states()
    if code.library.has_dynamic_globals or any(not each.can_cache for each in code.lifted):
        return None
    return code._reduce()


def _rebuilt(kept, context):
    if isinstance(kept, dict):  # of CUDA
        from numba.cuda.dispatcher import _Kernel

        return _Kernel._rebuild(**kept)
    from numba.core.compiler import CompileResult

    return CompileResult._rebuild(context, *kept)


def _targets(codegen):
    """Texts for what this machine compiles for, and for what a wheel brings; "": nothing that would run here."""
    name, *more = codegen.magic_tuple()
    if not isinstance(name, str):  # CUDA's version and the device's capability
        version = importlib.metadata.version("numba-cuda")
        return f"cuda {version} {name} {more}", f"cuda {version} {name[0]}"
    return f"{name} {more}", f"{name} {PROCESSOR}" if fits_here() else ""


@functools.cache
def fits_here() -> bool:
    """Does this processor run the code for the CPU that a wheel may bring?"""
    features = binding.get_host_cpu_features()
    return all(features.get(each) for each in FEATURES)


@functools.cache
def open_to(folder: Path) -> str:
    """Who else than this user and root can put files into a folder, or another folder in its place; "": nobody. A
    folder that is not there is made so that nobody can."""
    with contextlib.suppress(OSError):
        _make_folder(folder)
    place = folder.resolve()
    for each in (place, *place.parents):
        with contextlib.suppress(OSError):
            if who := _writers(each.stat(), on_the_way=each != place):
                return f"{each} can be written to by {who}, who could have any program that plans do anything"
    return ""


def _writers(status, on_the_way=False):
    """Who else may write to a file or folder by its os.stat_result; "": nobody.

    on_the_way: the folder holds the one that matters. In a sticky one, such as /tmp, nobody renames what is another
    user's. One of a user whom the container does not know, as a rule root of the machine, cannot be closed from here
    """
    if status.st_uid not in (0, os.geteuid(), *([_nobody()] if on_the_way else [])):
        return f"its owner, user {status.st_uid}"
    by_others = status.st_mode & stat.S_IWOTH or (
        status.st_mode & stat.S_IWGRP and status.st_gid not in (0, _own_group())
    )
    return "others" if by_others and not (on_the_way and status.st_mode & stat.S_ISVTX) else ""


@functools.cache
def _nobody():
    """The number that users have in a container that does not know them."""
    with contextlib.suppress(OSError, ValueError):
        return int(Path("/proc/sys/kernel/overflowuid").read_text(encoding="ascii"))
    return 0


@functools.cache
def _own_group():
    """The group that has only this user in it, as many systems give one to each; -1: there is none."""
    with contextlib.suppress(KeyError):
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(os.getegid())
        if user.pw_name == group.gr_name and set(group.gr_mem) <= {user.pw_name}:
            return group.gr_gid
    return -1


def _make_folder(folder):
    """With its parents, so that only this user can write to it, whatever the umask is."""
    for each in (*reversed(folder.parents), folder):
        with contextlib.suppress(FileExistsError):
            if not each.is_dir():
                os.mkdir(each, 0o755)


def _write(file, value):
    """Replace a file at once, so that no process sees half of it."""
    _make_folder(file.parent)
    new = file.with_suffix(f".{os.urandom(8).hex()}")  # containers that share a folder may have the same process ids
    try:
        data = serialize.dumps(value)
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as out:
            out.write(hashlib.sha256(data).digest() + data)
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)


def _complain(why):
    global unkept
    if not unkept:
        logging.getLogger("gpu_planners").warning(
            "compiled code cannot be kept, so every process compiles anew: %s; NUMBA_CACHE_DIR may name another folder",
            why,
        )
    unkept = why


def _classes(types) -> set[str]:
    """The classes among types, and inside them, with digests of their sources: functions are registered for these."""
    found = set()
    if cls := getattr(types, "instance_class", None):
        found.add(f"{cls.__module__}.{cls.__qualname__} {sources.digest(cls.__module__)}")
    for inner in types if isinstance(types, tuple) else getattr(types, "types", ()):
        found |= _classes(inner)
    return found


def _source(value):
    """A digest of what a function, or a dispatcher's function, is compiled from. Raises NoSourceError."""
    cache = getattr(value, "_cache", None)
    if isinstance(cache, _Cache):
        return cache.source
    function = getattr(value, "py_func", value)
    return sources.digest(function.__module__, function.__code__.co_filename)


def _described(value):
    """A text that tells functions and the values of their closures apart, and is the same in every process."""
    function = getattr(value, "py_func", value)
    if hasattr(function, "__code__"):
        inner = [_described(cell.cell_contents) for cell in function.__closure__ or ()]
        place = f"{function.__module__}.{function.__qualname__}:{function.__code__.co_firstlineno}"
        return f"{place}({', '.join(inner)}) {_source(value)}"
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_described, value))})"
    if hasattr(value, "tobytes"):  # numpy shortens long arrays
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    return f"{type(value).__name__} {value!r}"
