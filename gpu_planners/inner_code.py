"""Functions that only compiled code calls are compiled for their callers alone.

Left to itself, Numba makes a library of every function: it links and optimises all that the function calls, emits
machine code and a wrapper for Python, and saves it; every caller then links and optimises the same code again. Of
several hundred functions Python calls a few dozen. Here every other function only hands its lowered code to its
callers. A function that Python calls, an entry, links all that it reaches once, optimises it as a whole, and alone is
saved. Answers and speed stay the same; compiling takes less than half of the time.

Who asks tells them apart: a dispatcher that is asked to compile while another of ours compiles serves that one. If
Python calls the function later, it is compiled once more, as an entry.

This reaches into the code generator of Numba (tried: 0.63.0, 0.68.1). Where a name is missing, `compile_as_asked`
leaves dispatchers as they are, and Numba compiles in its own way.
"""

import contextlib

try:
    from numba.core import sigutils
    from numba.core.codegen import CPUCodeLibrary, JITCodeLibrary, JITCPUCodegen
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher
    from numba.core.environment import lookup_environment
    from numba.core.runtime import rtsys

    FITS = (
        all(hasattr(CPUCodeLibrary, name) for name in ("finalize", "add_linking_library", "_get_module_for_linking"))
        and hasattr(JITCodeLibrary, "get_pointer_to_function")
        and all(hasattr(JITCPUCodegen, name) for name in ("create_library", "set_env"))
        and hasattr(Dispatcher, "get_call_template")
    )
except ImportError:  # of another Numba
    FITS = False

ENVIRONMENT = "_ZN08NumbaEnv"  # begins the names of the global variables that hold functions' environments
_under_way = 0  # functions of ours that are being compiled, each for the one before; guarded by Numba's lock

if FITS:

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
            """With all that it reaches: asked for by libraries that others compile, which look no further."""
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


@contextlib.contextmanager
def _compiling(codegen, kind_of=None):
    """Meanwhile a new library is of the class kind_of(its name); None: what Numba makes."""
    global _under_way
    before = {name: vars(codegen)[name] for name in ("create_library", "set_env") if name in vars(codegen)}

    def set_env(name, environment):  # inner code has no address; see _Entry
        if codegen._engine.is_symbol_defined(name):
            type(codegen).set_env(codegen, name, environment)

    def use(changes):
        for name in ("create_library", "set_env"):
            vars(codegen).pop(name, None)
        vars(codegen).update(changes)

    use({"create_library": lambda name: kind_of(name)(codegen, name), "set_env": set_env} if kind_of else {})
    _under_way += 1
    try:
        yield
    finally:
        _under_way -= 1
        use(before)


def _compile_foreign(dispatcher, signature):
    """Dispatcher.compile while functions of ours compile: functions of others stay what Python can call."""
    with global_compiler_lock:
        if not _under_way or _package_of(dispatcher) in ("numba", __package__):
            return _numba_compile(dispatcher, signature)  # of an @overload, which Python never calls
        with _compiling(dispatcher.targetctx.codegen()):
            return _numba_compile(dispatcher, signature)


def _package_of(dispatcher):
    return (dispatcher.py_func.__module__ or "").partition(".")[0]


def compile_as_asked(dispatcher):
    """Let a dispatcher of `numba.njit` compile entries for Python, and inner code for functions of ours that call it.

    A parallel function is an entry for all: what is loaded with it starts the threads. Functions of other packages stay
    as Numba makes them: what they may do, such as generators, objmode or mutual recursion, inner code cannot. Returns
    the dispatcher.
    """
    if not FITS or _package_of(dispatcher) != __package__:
        return dispatcher
    compile_entry, compiler, codegen = dispatcher.compile, dispatcher._compiler, dispatcher.targetctx.codegen()
    options, entry = compiler.targetoptions, dispatcher.py_func.__qualname__
    inner = set()  # types of arguments

    def compile_it(signature):
        with global_compiler_lock:
            rtsys.initialize(dispatcher.targetctx)  # makes a library that is neither
            types, returned = sigutils.normalize_signature(signature)
            if not _under_way or options.get("parallel"):
                if types in inner:
                    inner.discard(types)
                    del dispatcher.overloads[types]
                with _compiling(codegen, lambda name: _Entry if name == entry else _Inner):
                    return compile_entry(signature)
            if types not in dispatcher.overloads:
                compiler.targetoptions = options | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
                try:
                    with dispatcher._compiling_counter, _compiling(codegen, lambda _: _Inner):
                        result = compiler.compile(types, returned)
                finally:
                    compiler.targetoptions = options
                inner.add(types)
                dispatcher.overloads[types] = result  # where compiled callers look, and Python does not
            return dispatcher.overloads[types].entry_point

    dispatcher.compile = compile_it
    return dispatcher


if FITS:
    _numba_compile = Dispatcher.compile
    Dispatcher.compile = _compile_foreign  # type: ignore[method-assign]
