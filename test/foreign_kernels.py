"""A program of somebody else that compiles kernels for CUDA before, between and after ours, by what `numba-cuda` is
installed. No device is needed: one that is made up is asked for its capability, and nothing is launched. It prints what
differs from a numba-cuda that knows nothing of us."""

import sys
import types

from foreign_code import parts_of_numba
from numba import cuda, njit
from numba import types as kinds
from numba.cuda import api
from numba.cuda import dispatcher as dispatchers
from numba.cuda.codegen import CUDACodeLibrary
from numba.cuda.core.caching import NullCache
from numba.cuda.descriptor import cuda_target

CAPABILITY = (8, 0)
ARRAY = (kinds.Array(kinds.float64, 1, "C"),)


class Device:
    compute_capability = CAPABILITY


api.get_current_device = dispatchers.get_current_device = Device
dispatchers._Kernel.bind = lambda kernel: None  # would load it
CUDACodeLibrary._ensure_cc = lambda library, capability: capability or (*CAPABILITY, "")


@njit
def shared(x, k):
    return x * k + 1


def foreign_kernel(sources=shared):
    """A kernel, and a function that it calls with two constants, made anew."""

    @njit
    def scaled(x, k):
        return shared(x, k) + k

    @cuda.jit
    def kernel(values):
        values[0] = scaled(values[0], 2) + scaled(values[1], 3)

    return kernel, scaled


def compiled(kernel):
    """The library of a kernel that is compiled for an array."""
    kernel.compile(ARRAY)
    (found,) = kernel.overloads.values()
    return found._codelibrary


def device_types(function):
    """Types of arguments that numba-cuda compiled a function of numba.njit for."""
    return sorted(map(str, function._CUDATypingContext__dispatcher.overloads))


def libraries(library):
    found, todo = set(), [library]
    while todo:
        found.add(todo.pop())
        todo += {each for known in found for each in known._linking_libraries} - found
    return found


def foreign():
    """[difference] of a kernel of others, which is compiled anew."""
    kernel, scaled = foreign_kernel()
    others = {type(each).__module__ for each in libraries(compiled(kernel))} - {CUDACodeLibrary.__module__}
    constants = ["Literal[int](2)" in "".join(device_types(scaled)), len(device_types(scaled))]
    ptx, _ = cuda.compile_ptx(lambda x: x + 2, (kinds.int64,), device=True, cc=CAPABILITY)
    return (
        ([f"a kernel of others has {others}"] if others else [])
        + ([f"a function of others is compiled for {device_types(scaled)}"] if constants != [True, 2] else [])
        + ([] if ".visible .func" in ptx else ["no PTX"])
    )


OURS = """
from gpu_planners.device import cuda_jit, njit

@njit
def lowest(x, k):
    return x + k

@njit
def left(x, k):
    return lowest(x, k) * 2

@njit
def right(x, k):
    return lowest(x, k) * 3

@cuda_jit
def kernel(values):
    values[0] = left(values[0], 2) + right(values[0], 3) + left(values[1], 4) + shared(values[1], 5)
"""


def ours():
    """[difference] of a kernel of ours that calls a function of others."""
    module = types.ModuleType("gpu_planners.made")
    sys.modules[module.__name__], module.shared = module, shared
    exec(OURS, vars(module))
    module.kernel._cache = NullCache()
    library, differences = compiled(module.kernel), []
    names = [each.name for each in library.modules if "shared" not in each.name]
    if len(library.llvm_strs) != len(set(library.llvm_strs)) or len(names) != 4:
        differences.append(f"our kernel has {names}")
    if any(type(each) is not CUDACodeLibrary for each in libraries(library) - {library}):
        differences.append("a function's library is ours")
    if len(device_types(module.left)) != 1 or "Literal" in "".join(device_types(module.left)):
        differences.append(f"our function is compiled for {device_types(module.left)}")
    return differences


def main():
    differences = foreign()
    before = parts_of_numba()
    from gpu_planners import inner_code_cuda

    for step in (ours, foreign, ours, foreign):
        differences += step()
    after = parts_of_numba()
    differences += [key for key, value in before.items() if after.get(key) is not value]
    if vars(cuda_target.target_context.codegen()):
        differences.append("the code generator")
    print(f"fits {inner_code_cuda.FITS}; differences {differences}")


if __name__ == "__main__":
    main()
