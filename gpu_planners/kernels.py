"""Each kernel of a first plan on CUDA by itself, for processes that compile one (`beside`), or many (`compiling`).

They are compiled for the types of arguments that launches have, without a robot or a launch.
"""

import functools
from collections.abc import Callable
from typing import Any

from .device import resolve_device
from .parts import Part, kernel_name


def kernel_part(kernel: str, device: str, size: int) -> Part:
    """kernel: one of beside.KERNELS; size: a number of arm.collision.scratch.SIZES"""
    return Part(kernel_name(kernel, device, size), _compile_kernel, (kernel, device, size), 9)


def _compile_kernel(kernel, device, size):
    index = int(resolve_device(device).partition(":")[2])
    from numba import cuda

    with cuda.gpus[index]:
        function, types = _kernel(kernel, size)
        function.compile(types)


def _kernel(kernel: str, size: int) -> tuple[Any, tuple]:
    """-> a kernel, and the types of its arguments."""
    from .arm.collision import checker_cuda
    from .arm.planners import host_cuda
    from .arm.planners.rrt_connect.cuda import search_paths, shorten_paths
    from .arm.spaces import cuda as spaces

    kernels: dict[str, tuple[Callable, Callable]] = {
        "configurations": (checker_cuda.configuration_kernel, checker_cuda.configuration_types),
        "motions": (spaces.motion_kernel, spaces.motion_types),
        "search": (functools.partial(_work, host_cuda.kernel_of, search_paths), host_cuda.work_types),
        "shortening": (functools.partial(_work, host_cuda.kernel_of, shorten_paths), host_cuda.work_types),
    }
    make, types = kernels[kernel]
    sizes = checker_cuda.sizes_of(size)
    return make(*sizes), types(*sizes)


def _work(kernel_of, work, *sizes):
    return kernel_of(work, sizes)
