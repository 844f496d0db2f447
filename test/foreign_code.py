"""A program of somebody else that compiles by Numba before, between and after functions of ours, and in threads beside
them. It prints what differs from a Numba that knows nothing of us."""

import itertools
import sys
import threading
import types

import numba
import numpy as np
from numba import cfunc, float64, guvectorize, int64, njit, objmode, prange, vectorize
from numba.core.codegen import JITCodeLibrary
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target
from numba.experimental import jitclass
from numba.extending import overload
from numba.typed import Dict


@njit(cache=True)
def cached(values):
    return np.cumsum(values)[-1] + np.sort(values)[0]


def compiled_and_called():
    """[(name, answer, expected)] of all kinds of functions, each made anew and compiled."""
    values = np.array([3.0, 1.0, 2.0])

    @njit
    def plain(values):
        return np.cumsum(values)[-1] + np.sort(values)[0] + np.zeros_like(values).sum() + np.linalg.norm(values)

    @njit(parallel=True)
    def parallel(values):
        total = 0.0
        for i in prange(len(values)):
            total += values[i] ** 2
        return total

    @njit
    def generated(values):
        for value in values:
            yield value + 1

    @njit
    def drained(values):
        total = 0.0
        for value in generated(values):
            total += value
        return total

    @njit
    def with_python(values):
        with objmode(text="int64"):
            text = len(str(values))
        return text

    @njit
    def even(n):
        return True if n == 0 else odd(n - 1)

    @njit
    def odd(n):
        return False if n == 0 else even(n - 1)

    @njit
    def refused(x):
        if x < 0:
            raise ValueError("x is negative")
        return x

    @numba.jit(forceobj=True)
    def by_objects(values):
        return sorted(values.tolist())[1]

    @cfunc(float64(float64))
    def called_by_c(x):
        return x / 4

    @vectorize
    def each(x, y):
        return x * y + 1

    @vectorize([int64(int64)])
    def eager(x):
        return x * 3

    @guvectorize([(float64[:], float64[:])], "(n)->()")
    def summed(values, out):
        out[0] = values.sum()

    def of_kind(x):
        """What an overload stands for."""

    @overload(of_kind)
    def of_kind_compiled(x):
        if isinstance(x, numba.types.Float):
            return lambda x: x + 0.5
        return lambda x: x + 1

    @njit
    def overloaded(x, k):
        return of_kind(x) + of_kind(k)

    @jitclass([("total", float64)])
    class Counter:
        def __init__(self, start):
            self.total = start

        def add(self, values):
            self.total += values.sum()
            return self.total

    @njit
    def first_class(function, x):
        return function(x) + function(x + 1)

    @njit
    def typed(n):
        found = Dict.empty(int64, float64)
        for i in range(n):
            found[i] = i / 2
        return found[n - 1]

    table = Dict.empty(int64, float64)
    table[3] = 1.5
    try:
        message = refused(-1)
    except ValueError as error:
        message = str(error)
    dispatchers = (plain, parallel, generated, drained, with_python, even, odd, refused, overloaded, first_class, typed)
    answers = [
        ("njit", plain(values), 7 + np.sqrt(14)),
        ("parallel", parallel(values), 14.0),
        ("a generator", list(generated(values)), [4.0, 2.0, 3.0]),
        ("a generator for compiled code", drained(values), 9.0),
        ("objmode", with_python(values), len(str(values))),
        ("mutual recursion", even(5), False),
        ("an exception", message, "x is negative"),
        ("object mode", by_objects(values), 2.0),
        ("cfunc", called_by_c.ctypes(6.0), 1.5),
        ("vectorize", each(values, 2.0).tolist(), [7.0, 3.0, 5.0]),
        ("eager vectorize", eager(np.arange(3)).tolist(), [0, 3, 6]),
        ("guvectorize", summed(values), 6.0),
        ("overload", overloaded(1.0, 1), 3.5),
        ("jitclass", Counter(1.0).add(values), 7.0),
        ("a function as an argument", first_class(refused, 1), 3),
        ("typed.Dict in compiled code", typed(4), 1.5),
        ("typed.Dict", table[3], 1.5),
        ("cache=True", cached(values), 7.0),
    ]
    return [each for each in answers if each[1] != each[2]] + [
        (function.__name__, "has code of another kind", "Numba's") for function in dispatchers if of_ours(function)
    ]


def of_ours(function):
    """Is anything that a function is compiled from, or links, not Numba's own?"""
    todo, seen = [result.library for result in function.overloads.values()], set()
    while todo:
        library = todo.pop()
        if library not in seen:
            seen.add(library)
            todo += library._linking_libraries
    return type(function).__module__ != "numba.core.registry" or any(type(each) is not JITCodeLibrary for each in seen)


def parts_of_numba():
    """{(where, name): each function and class of Numba's that can be replaced, with those inside its classes}"""
    found = {}
    modules = [(name, module) for name, module in sys.modules.items() if name.split(".")[0] in ("numba", "llvmlite")]
    for where, module in modules:
        for name, value in list(vars(module).items()):
            found[where, name] = value
            if isinstance(value, type) and value.__module__ == where:
                found |= {(f"{where}.{name}", inner): part for inner, part in vars(value).items()}
    kinds = (type, types.FunctionType, types.BuiltinFunctionType, property, classmethod, staticmethod, Dispatcher)
    return {key: value for key, value in found.items() if isinstance(value, kinds)}


OURS = """
import numba
import numpy as np
from gpu_planners.device import lean_njit, njit

@njit
def quarter(x):
    return x / 4

@lean_njit
def lean(x):
    return quarter(x) + 1

@njit
def summed(values):
    return np.cumsum(values)[-1] + np.sort(values)[0] + np.zeros_like(values).sum() + called(values)

@njit
def called(values):
    return foreign(values[0]) + lean(values[1]) + calls_back(values[2])

@njit(parallel=True)
def loop(values, out):
    for i in numba.prange(len(values)):
        out[i] = quarter(values[i])

@njit
def raises(x):
    if x < 0:
        raise ValueError("x is negative")
    return x
"""


def our_functions(foreign):
    """A module of the package with functions made anew. foreign: a function of others that they call"""
    module = types.ModuleType("gpu_planners.made")
    sys.modules[module.__name__] = module
    module.foreign = foreign
    exec(OURS, vars(module))
    return module


def use_ours(foreign):
    """[(name, answer, expected)] of functions of ours that differ, and of others that call them or that they call."""
    ours, values = our_functions(foreign), np.array([3.0, 1.0, 2.0])
    between, quarter = foreign_function(), ours.quarter

    @njit
    def calls_back(x):
        return quarter(x) * between(x)

    ours.calls_back = calls_back

    @njit
    def calls_ours(values):
        return ours_summed(values) + np.sort(values)[1] + raises(1.0)

    ours_summed, raises = ours.summed, ours.raises
    out = np.zeros(3)
    ours.loop(values, out)
    expected = 7 + 6 + 1.25 + 2
    messages = []
    for function in (raises, lambda x: calls_ours(np.array([x, -1.0, -2.0]))):
        try:
            messages.append(function(-1.0))
        except ValueError as error:
            messages.append(str(error))
    answers = [
        ("ours", ours.summed(values), expected),
        ("ours in parallel", out.tolist(), [0.75, 0.25, 0.5]),
        ("another one's that calls ours", calls_ours(values), expected + 2 + 1),
        ("exceptions", messages[0], "x is negative"),
        ("another one's that ours call", calls_back(values[2]), 2.0),
        ("its code is ours", of_ours(between) or of_ours(foreign), False),
    ]
    return [each for each in answers if each[1] != each[2]]


def foreign_function():
    @njit
    def double(x):
        return 2 * x

    return double


def in_threads():
    """Both kinds at once."""
    differences, start = [], threading.Barrier(2)

    def work(compile_them):
        start.wait()
        try:
            differences.extend(compile_them())
        except BaseException as error:  # a thread's error would be lost
            differences.append(repr(error))

    kinds = (compiled_and_called, lambda: use_ours(foreign_function()))
    threads = [threading.Thread(target=work, args=(kind,)) for kind in kinds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return differences


def main(quick):
    steps = [lambda: use_ours(foreign_function())]
    steps += [] if quick else [compiled_and_called, in_threads, compiled_and_called]
    differences = [] if quick else compiled_and_called()
    cached(np.arange(3.0))
    before, codegen = parts_of_numba(), dict(vars(cpu_target.target_context.codegen()))
    differences += itertools.chain.from_iterable(step() for step in steps)
    after = parts_of_numba()
    differences += [key for key, value in before.items() if after.get(key) is not value]
    if vars(cpu_target.target_context.codegen()) != codegen:
        differences.append("the code generator")
    kept = cpu_target.target_context.cached_internal_func.values()  # for all functions
    differences += [str(result.fndesc) for result in kept if type(result.library) is not JITCodeLibrary]
    print(f"differences {differences}; loaded {sum(cached.stats.cache_hits.values())}")


if __name__ == "__main__":
    main("quick" in sys.argv)
