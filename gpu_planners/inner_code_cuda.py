"""Kernels for CUDA are compiled once from the code of each function.

Left to itself, numba-cuda hands NVVM the code of a function once for each chain of calls that leads to it: 4,074
modules for RRT-Connect's kernel, which consists of 297. Where it optimises as it links (its default) it first compiles
all of that to PTX, looks for a few names in it and throws it away. It saves the texts with the kernel. Here each module
is taken once, in the order of the calls; the names are looked for in the modules; texts are saved compressed.

It also compiles a function for each constant that a caller passes, `certify` for a lane 0 and for lanes that it does
not know. Here functions of the package get integers and booleans as such. Machine code stays the same byte for byte,
since NVVM sees the constants, too.

This reaches into numba-cuda (tried: 0.30). Where a name is missing, `compile_once` leaves dispatchers as they are.
"""

import contextlib
import pickle
import zlib

try:
    from numba.core.types import BooleanLiteral, IntegerLiteral
    from numba.core.types.misc import unliteral
    from numba.cuda.codegen import CUDACodeLibrary, JITCUDACodegen
    from numba.cuda.core.compiler_lock import global_compiler_lock
    from numba.cuda.descriptor import cuda_target
    from numba.cuda.dispatcher import CUDADispatcher

    FITS = (
        all(hasattr(CUDACodeLibrary, name) for name in ("modules", "llvm_strs", "get_asm_str", "_reduce_states"))
        and hasattr(JITCUDACodegen, "_library_class")
        and hasattr(CUDADispatcher, "get_call_template")
    )
except ImportError:  # of another numba-cuda, or of none
    FITS = False

if FITS:

    class Library(CUDACodeLibrary):
        """The code of a kernel or of a function that kernels call. Saved kernels name this class."""

        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            self._linking_libraries = _Ordered()

        @property
        def modules(self):
            return [library._module for library in _reached(self)]

        @property
        def llvm_strs(self):
            if isinstance(self._llvm_strs, bytes):  # as saved
                self._llvm_strs = pickle.loads(zlib.decompress(self._llvm_strs))
            return super().llvm_strs

        def get_asm_str(self, cc=None):
            """PTX; of a kernel that is being made the modules, which have the names that are looked for."""
            making = cc is None and self._lto and self._entry_name and not self._cubin_cache
            if making and not cuda_target.target_context.enable_nrt:  # else PTX is searched for what it links
                return self.get_llvm_str()
            return super().get_asm_str(cc)

        def _reduce_states(self):
            texts = zlib.compress(pickle.dumps(self.llvm_strs), 1)
            return super()._reduce_states() | {"llvm_strs": texts}


class _Ordered(dict):
    """A set in the order in which its members came."""

    def add(self, member):
        self[member] = None


def _reached(library):
    """A library and all that it links, once each, callers first."""
    found, todo = {}, [library]
    while todo:
        each = todo.pop()
        if each not in found:
            found[each] = True
            todo += reversed(list(each._linking_libraries))
    return list(found)


@contextlib.contextmanager
def _our_libraries(codegen):
    before = vars(codegen).get("_library_class")
    codegen._library_class = Library
    try:
        yield
    finally:
        if before is None:
            del codegen._library_class
        else:
            codegen._library_class = before


def compile_once(dispatcher):
    """Let a dispatcher of `numba.cuda.jit` compile kernels from the code of each function once -> the dispatcher."""
    if not FITS:
        return dispatcher
    numba_compile, codegen = dispatcher.compile, dispatcher.targetctx.codegen()

    def compile_it(signature):
        with global_compiler_lock, _our_libraries(codegen):
            return numba_compile(signature)

    dispatcher.compile = compile_it
    return dispatcher


def _call_template(dispatcher, args, kws):
    """CUDADispatcher.get_call_template, in which functions of the package are not compiled for each constant."""
    if (dispatcher.py_func.__module__ or "").partition(".")[0] == __package__:
        args, kws = tuple(map(_without_value, args)), {name: _without_value(each) for name, each in dict(kws).items()}
    return _numba_call_template(dispatcher, args, kws)


def _without_value(kind):
    return unliteral(kind) if isinstance(kind, (IntegerLiteral, BooleanLiteral)) else kind


if FITS:
    _numba_call_template = CUDADispatcher.get_call_template
    CUDADispatcher.get_call_template = _call_template  # type: ignore[method-assign]
