"""Functions that only compiled code calls are compiled for their callers alone.

Left to itself, Numba makes a library of every function: it links and optimises all that the function calls, emits
machine code and a wrapper for Python, and saves it; every caller then links and optimises the same code again. Of
several hundred functions Python calls a few dozen. Here every other function only hands its lowered code to its
callers. A function that Python calls, an entry, links all that it reaches once, optimises it as a whole, and alone is
saved. Answers and speed stay the same; compiling takes less than half of the time.

Who asks tells them apart: Numba notes which function's types it is working out, and for which target. Our functions
have a target of their own, a subclass of Numba's CPU, so a function that is asked for while it works on one of that
target serves that one. If Python, or a function of another package, calls it later, it is compiled once more, as an
entry.

All of it is bound to that target: its dispatchers, contexts and code generator are subclasses and copies of Numba's,
which share the engine that holds machine code. Functions of others keep Numba's own, also those that ours call.

This reaches into Numba (tried: 0.63.0, 0.68.1). Where a name is missing, all functions have Numba's target.
"""

import functools

import numba

try:
    from numba.core import sigutils, typing
    from numba.core.codegen import CPUCodeLibrary, JITCodeLibrary, JITCPUCodegen
    from numba.core.compiler import Compiler
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.environment import lookup_environment
    from numba.core.registry import CPUDispatcher, CPUTarget, cpu_target
    from numba.core.runtime import rtsys
    from numba.core.target_extension import CPU, dispatcher_registry, jit_registry, target_override, target_registry

    FITS = (
        all(hasattr(CPUCodeLibrary, name) for name in ("finalize", "add_linking_library", "_get_module_for_linking"))
        and hasattr(JITCodeLibrary, "get_pointer_to_function")
        and all(hasattr(JITCPUCodegen, name) for name in ("create_library", "unserialize_library", "set_env"))
        and all(hasattr(CPUDispatcher, name) for name in ("get_call_template", "nopython_signatures"))
        and all(hasattr(cpu_target.target_context, name) for name in ("subtarget", "target", "_internal_codegen"))
        and hasattr(cpu_target.typing_context, "callstack")
    )
except ImportError:  # of another Numba
    FITS = False

TARGET = __package__  # the name of our target among Numba's
ENVIRONMENT = "_ZN08NumbaEnv"  # begins the names of the global variables that hold functions' environments

if FITS:

    class _OurCPU(CPU):
        """The target of our functions."""

    class _Inner(JITCodeLibrary):
        """The code of a function for those that link it. It is never optimised as a whole, nor made machine code."""

        def finalize(self):
            self._raise_if_finalized()
            self._finalized = True

        def add_linking_library(self, library):
            self._linking_libraries.append(library)

        def get_pointer_to_function(self, name):
            self._ensure_finalized()
            return 0

        def _optimize_functions(self, module):
            """Entries optimise all."""

        def own_module(self):
            return super()._get_module_for_linking()

        def _get_module_for_linking(self):
            """With all that it reaches: asked for by Numba's own libraries, which look no further."""
            module = self.own_module().clone()
            for library in _reached(self):
                _link(library, module)
            return module

    class _Entry(JITCodeLibrary):
        """The code of a function that Python calls, with all that it reaches."""

        def finalize(self):
            for library in _reached(self):
                self._reload_init.update(library._reload_init)
                _link(library, self._final_module)
            self._linking_libraries = []
            super().finalize()
            for variable in self._final_module.global_variables:
                if variable.name.startswith(ENVIRONMENT) and not variable.is_declaration:
                    environment = lookup_environment(variable.name)
                    if environment is not None:
                        self._codegen.set_env(variable.name, environment)

    class _EntryCompiler(Compiler):
        """Numba's compiler of one function, whose library is an entry."""

        def compile_extra(self, function):
            library = self.state.library = _Entry(self.state.targetctx.codegen(), function.__qualname__)
            library.enable_object_caching()
            return super().compile_extra(function)

    class _Codegen(JITCPUCodegen):
        """Numba's code generator, with its engine and all else that it has; but libraries that it makes are inner."""

        _library_class = _Inner

        def __init__(self, numbas):
            vars(self).update(vars(numbas))
            self.unserialize_library = numbas.unserialize_library

        def set_env(self, name, environment):  # inner code has no address; see _Entry
            if self._engine.is_symbol_defined(name):
                super().set_env(name, environment)

    class _OurTarget(CPUTarget):
        """What Numba's target is made of, with parts of ours."""

        @functools.cached_property
        def typing_context(self):
            """It keeps what it finds out, such as the code for an @overload, apart from what Numba's own does."""
            context = typing.Context()
            context.callstack = cpu_target.typing_context.callstack  # who asks, one of ours or another
            return context

        @functools.cached_property
        def target_context(self):
            numbas = cpu_target.target_context
            codegen = _Codegen(numbas.codegen())
            return numbas.subtarget(typing_context=self.typing_context, target=_OurCPU, _internal_codegen=codegen)

    class Dispatcher(CPUDispatcher):
        """A dispatcher of `numba.njit` that compiles entries for Python, and inner code for functions of ours.

        A parallel function is an entry for all: what is loaded with it starts the threads.
        """

        targetdescr = _OurTarget("cpu")

        def __init__(self, py_func, locals=None, targetoptions=None, pipeline_class=_EntryCompiler):
            super().__init__(py_func, locals, targetoptions, pipeline_class)
            self._inner = set()  # types of arguments
            self.keep_for_kernels = lambda dispatcher: dispatcher  # what is done with its dispatcher on CUDA

        @functools.cached_property
        def _inner_compiler(self):
            bare = self.targetoptions | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
            return type(self._compiler)(self.py_func, self.targetdescr, bare, self.locals, Compiler)

        def compile(self, signature):
            with global_compiler_lock, target_override(TARGET):  # else Numba loads what its own target needs, too
                rtsys.initialize(cpu_target.target_context)  # makes a library that is neither
                types, _ = sigutils.normalize_signature(signature)
                if types in self._inner:
                    self._inner.discard(types)
                    del self.overloads[types]
                return super().compile(signature)

        def get_call_template(self, args, kws):
            """How a compiled caller calls it with these types."""
            with global_compiler_lock:
                callers = self.typingctx.callstack
                if not callers or callers[0].target is not _OurCPU or self.targetoptions.get("parallel"):
                    return super().get_call_template(args, kws)
                signature, types = self._compiler.fold_argument_types(args, kws)
                if types not in self.overloads:
                    with self._compiling_counter:
                        result = self._inner_compiler.compile(types, None)
                    self._inner.add(types)
                    self.overloads[types] = result  # where compiled callers look, and Python does not
                name = self.py_func.__name__
                template = typing.make_concrete_template(name, key=name, signatures=self.nopython_signatures)
                return template, signature, types, {}

        @functools.cached_property
        def _CUDATypingContext__dispatcher(self):  # noqa: N802
            """What kernels call: numba-cuda looks for this name, and makes a dispatcher itself if there is none."""
            from . import inner_code_cuda

            return self.keep_for_kernels(inner_code_cuda.device_function(self.py_func, self.targetoptions))

    def _jit(**options):
        """How Numba decorates an implementation that an @overload found for a function of ours."""
        return lambda function: numba.jit(_target=target_of(function, TARGET, "numba"), **options)(function)

    target_registry[TARGET] = _OurCPU
    dispatcher_registry[_OurCPU] = Dispatcher
    jit_registry[_OurCPU] = _jit


def target_of(function, *packages):
    """The name of the target of a function of these packages, or of ours: TARGET. Functions of others have Numba's:
    what they may do, such as generators, objmode or mutual recursion, inner code cannot."""
    package = (function.__module__ or "").partition(".")[0]
    return TARGET if FITS and package in (packages or (TARGET,)) else "cpu"


def _link(library, module):
    linked = library.own_module() if isinstance(library, _Inner) else library._get_module_for_linking()
    module.link_in(linked, preserve=True)


def _reached(library):
    """All libraries that a library links, and those that inner ones among them link, once each. Callers come first: of
    a module LLVM links only what is asked for by then."""
    found = {}  # callees first

    def visit(each):
        if each not in found:
            for linked in reversed(each._linking_libraries) if each is library or isinstance(each, _Inner) else ():
                visit(linked)
            found[each] = True

    visit(library)
    return list(found)[-2::-1]
