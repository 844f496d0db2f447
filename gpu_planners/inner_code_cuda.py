"""Kernels for CUDA are compiled once from the code of each function.

Left to itself, numba-cuda hands NVVM the code of a function once for each chain of calls that leads to it: 4,074
modules for RRT-Connect's kernel, which consists of 297. Where it optimises as it links (its default) it first compiles
all of that to PTX, looks for a few names in it and throws it away. It saves the texts with the kernel. Here each module
is taken once, in the order of the calls; the names are looked for in the modules; texts are saved compressed.

It also compiles a function for each constant that a caller passes, `certify` for a lane 0 and for lanes that it does
not know. Here functions of the package get integers and booleans as such. Machine code stays the same byte for byte,
since NVVM sees the constants, too.

The first is done by the library of a kernel of ours, the second by our dispatchers: kernels and functions of others are
numba-cuda's own, also functions that ours call.

This reaches into numba-cuda (tried: 0.30.4). Where a name is missing, dispatchers stay as they are.
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
        """The code of a kernel, with that of the functions that it calls. Saved kernels name this class."""

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


def _reached(library):
    """A library and all that it links, once each, callers first."""
    found, todo = {}, [library]
    while todo:
        each = todo.pop()
        if each not in found:
            found[each] = True
            todo += reversed(_linked(each))
    return list(found)


def _linked(library):
    """What a library links, which numba-cuda holds in a set, in the order of the calls: its module declares a function
    when the first call is compiled."""
    place = {name: number for number, name in enumerate(library._module.globals)}
    last = len(place)

    def first(linked):
        functions = (function.name for function in linked._module.functions if not function.is_declaration)
        return min(place.get(name, last) for name in functions)

    return sorted(library._linking_libraries, key=first)


@contextlib.contextmanager
def _kernels_of_ours(codegen, kernel):
    """Meanwhile the library of a function with this name is ours. Numba-cuda's lock keeps other threads out."""

    def library(codegen, name, **options):
        return (Library if name == kernel else CUDACodeLibrary)(codegen, name, **options)

    codegen._library_class = library
    try:
        yield
    finally:
        del codegen._library_class


def compile_once(dispatcher):
    """Let a dispatcher of `numba.cuda.jit` compile kernels from the code of each function once -> the dispatcher."""
    if FITS:
        numba_compile, codegen = dispatcher.compile, dispatcher.targetctx.codegen()

        def compile_it(signature):
            with global_compiler_lock, _kernels_of_ours(codegen, dispatcher.py_func.__qualname__):
                return numba_compile(signature)

        dispatcher.compile = compile_it
        without_constants(dispatcher)
    return dispatcher


def device_function(py_func, options):
    """The dispatcher that numba-cuda makes of a function of `numba.njit` with these options, for kernels that call it.

    Raises AttributeError where this is another numba-cuda.
    """
    if not FITS:
        raise AttributeError
    return without_constants(CUDADispatcher(py_func, {"debug": False, "opt": True} | options | {"device": True}))


def without_constants(dispatcher):
    """Let a dispatcher not compile a function for each constant -> the dispatcher."""
    numbas = dispatcher.get_call_template

    def get_call_template(args, kws):
        named = {name: _without_value(each) for name, each in dict(kws).items()}
        return numbas(tuple(map(_without_value, args)), named)

    dispatcher.get_call_template = get_call_template
    return dispatcher


def _without_value(kind):
    return unliteral(kind) if isinstance(kind, (IntegerLiteral, BooleanLiteral)) else kind
