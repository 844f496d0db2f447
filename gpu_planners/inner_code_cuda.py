"""Kernels for CUDA are compiled once from the code of each function.

Left to itself, numba-cuda hands NVVM the code of a function once for each chain of calls that leads to it: 4,074
modules for RRT-Connect's kernel, which consists of 297. Where it optimises as it links (its default) it first compiles
all of that to PTX, looks for a few names in it and throws it away. It saves the texts with the kernel. Here each module
is taken once, in the order of the calls; the names are looked for in the modules; texts are saved compressed.

A function that all kernels need, with all that it calls, may be compiled by one process for all: its code can be taken
from one process (`Shared`) to another.

It also compiles a function for each constant that a caller passes, `certify` for a lane 0 and for lanes that it does
not know. Here functions of the package get integers and booleans as such. Machine code stays the same byte for byte,
since NVVM sees the constants, too.

All this is done by the library of a kernel of ours and by our dispatchers: kernels and functions of others are
numba-cuda's own, also functions that ours call.

This reaches into numba-cuda (tried: 0.30.4). Where a name is missing, dispatchers stay as they are.
"""

import contextlib
import copy
import functools
import hashlib
import pickle
import re
import zlib
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

try:
    from numba.core.types import BooleanLiteral, Function, IntegerLiteral
    from numba.core.types.misc import unliteral
    from numba.cuda.api import get_current_device
    from numba.cuda.codegen import CUDACodeLibrary, JITCUDACodegen
    from numba.cuda.compiler import CUDACompiler, CUDACompileResult, compile_extra, cuda_compile_result
    from numba.cuda.core.callconv import CUDACallConv
    from numba.cuda.core.compiler_lock import global_compiler_lock
    from numba.cuda.descriptor import cuda_target
    from numba.cuda.dispatcher import CUDADispatcher
    from numba.cuda.flags import CUDAFlags
    from numba.cuda.target import CUDATypingContext
    from numba.cuda.utils import numba_target_override

    FITS = (
        all(hasattr(CUDACodeLibrary, name) for name in ("modules", "llvm_strs", "get_asm_str", "_reduce_states"))
        and hasattr(JITCUDACodegen, "_library_class")
        and all(hasattr(CUDADispatcher, name) for name in ("get_call_template", "compile_device"))
    )
except ImportError:  # of another numba-cuda, or of none
    FITS = False

_NAME = re.compile('@"([^"]+)"')  # of a function or global variable, in the text of a module

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

    class _TakenLibrary(CUDACodeLibrary):
        """The code of a function that another process has compiled."""

        def __init__(self, codegen, module):
            super().__init__(codegen, module.name)
            self._module, self._finalized = module, True

        @property
        def modules(self):
            return [library._module for library in _reached(self)]

    class _Flags(CUDAFlags):
        """Numba-cuda's flags, which are compared 40,000 times for a kernel, by what was set."""

        __slots__ = ()

        def __hash__(self):
            return hash(_Flags)

        def __eq__(self, other):
            return type(other) is _Flags and self._values == other._values

        def values(self):
            return self._values

    class _Typing(CUDATypingContext):
        """Numba-cuda's typing context, with all that it has, which notes how it found a function of Numba's called.

        known: {(function, types of arguments): signature}, for functions that are compiled with the same options
        """

        def __init__(self, numbas):
            vars(self).update(vars(numbas))
            self.known = {}

        def refresh(self):
            """Kernels refresh numba-cuda's."""

        def resolve_function_type(self, func, args, kws):
            if kws or not isinstance(func, Function):
                return super().resolve_function_type(func, args, kws)
            key = func, tuple(args)
            if key not in self.known:
                self.known[key] = super().resolve_function_type(func, args, kws)
            return self.known[key]

    @functools.cache
    def _typing():
        return _Typing(cuda_target.typing_context)

    class _InnerDispatcher(CUDADispatcher):
        """Numba-cuda's dispatcher of a function that kernels call."""

        known: dict[str, dict] = {}  # {options: of _Typing}

        def compile_device(self, args, return_type=None):
            if args not in self.overloads:
                with self._compiling_counter, self._typing_context() as context:
                    result = self._compile(context, args, return_type)
                self.overloads[args] = result
                result.target_context.insert_user_function(result.entry_point, result.fndesc, [result.library])
            return self.overloads[args]

        @contextlib.contextmanager
        def _typing_context(self):
            context = _typing()
            before = context.known
            context.known = self.known.setdefault(repr(sorted(self.targetoptions.items())), {})
            try:
                yield context
            finally:
                context.known = before

        @global_compiler_lock
        def _compile(self, context, args, return_type):
            flags, fastmath = _Flags(), self.targetoptions.get("fastmath")
            flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
            flags.error_model, flags.inline = "numpy", self.targetoptions.get("inline", "never")
            flags.compute_capability, flags.max_registers = get_current_device().compute_capability, None
            flags.nvvm_options = {"opt": 3 if self.targetoptions.get("opt") else 0, "fastmath": fastmath}
            if fastmath:
                flags.fastmath = fastmath
            with numba_target_override():
                result = compile_extra(
                    context, self.targetctx, self.py_func, args, return_type, flags, {}, pipeline_class=CUDACompiler
                )
            result.library.finalize()
            return result


class Module(NamedTuple):
    """What a library needs of a module that another process has made.

    globals: the names that it declares or defines, in their order; functions: those that it defines; linked: the places
    of the modules that it calls, in Shared.modules
    """

    name: str
    text: str
    globals: Mapping[str, None]
    functions: tuple[SimpleNamespace, ...]
    linked: tuple[int, ...]

    def __str__(self) -> str:
        return self.text


class Shared(NamedTuple):
    """The code of a function that kernels call, with all that it calls, for other processes.

    modules: its own, a Module, first; signature, descriptor: of Numba's result of compiling it
    """

    modules: list[Module]
    signature: Any
    descriptor: Any


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


def shared(result: "CUDACompileResult") -> Shared | None:
    """What Numba's compiling of a function that kernels call has led to, for other processes; None where it is more
    than code.

    Its functions get names that no other process gives: Numba numbers functions as it meets them.
    """
    libraries = _reached(result.library)
    if any(each._linking_files or each.referenced_objects or each.use_cooperative for each in libraries):
        return None
    places = {library: number for number, library in enumerate(libraries)}
    modules, own = [], {}
    for library in libraries:
        module = library._module
        functions = [function for function in module.functions if not function.is_declaration]
        for function in functions:
            function.linkage = "linkonce_odr"  # as whoever links it would say
            own[function.name] = ""
        names = tuple(function.name for function in functions)
        modules.append((library.name, str(module), tuple(module.globals), names, _linked(library)))
    mark = hashlib.sha256("".join(module[1] for module in modules).encode()).hexdigest()[:12]
    own = {name: f"{name}_{mark}" for name in own}

    def named(name):
        return own.get(name, name)

    def taken(name, text, declared, functions, linked):
        text = _NAME.sub(lambda found: f'@"{named(found[1])}"', text)
        defined = tuple(SimpleNamespace(name=named(each), is_declaration=False) for each in functions)
        return Module(name, text, dict.fromkeys(map(named, declared)), defined, tuple(places[each] for each in linked))

    descriptor = copy.copy(result.fndesc)
    descriptor.mangled_name = named(descriptor.mangled_name)
    descriptor.typemap = descriptor.calltypes = descriptor.global_dict = descriptor.call_conv = None  # of this process
    return Shared([taken(*module) for module in modules], result.signature, descriptor)


def take(dispatcher: "CUDADispatcher", code: Shared) -> None:
    """Let a dispatcher have what another process has compiled."""
    context = dispatcher.targetctx
    libraries = [_TakenLibrary(context.codegen(), module) for module in code.modules]
    for library in libraries:
        library._linking_libraries = {libraries[place] for place in library._module.linked}
    code.descriptor.call_conv = CUDACallConv(context)
    result = cuda_compile_result(
        typing_context=dispatcher.typingctx,
        target_context=context,
        signature=code.signature,
        fndesc=code.descriptor,
        library=libraries[0],
        objectmode=False,
    )
    dispatcher.overloads[code.signature.args] = result
    context.insert_user_function(result.entry_point, result.fndesc, [result.library])


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
    return without_constants(_InnerDispatcher(py_func, {"debug": False, "opt": True} | options | {"device": True}))


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
