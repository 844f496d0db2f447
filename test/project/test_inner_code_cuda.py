"""Kernels are compiled once from the code of each function, and saved with it. Needs a device."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from checkout import ROOT

from gpu_planners import code_cache
from gpu_planners.device import cuda_jit, cuda_problem, njit, shared_by_kernels

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(cuda_problem()), reason=f"no CUDA device: {cuda_problem()}")]


@njit
def twice(x):
    return x + x


@njit
def left(x):
    return twice(x) + 1


@njit
def right(x):
    return twice(x) - 1


def both(values):
    values[0] = left(values[0]) * right(values[0])


def test_a_function_that_two_others_call_is_compiled_once(monkeypatch, tmp_path):
    monkeypatch.setattr(code_cache, "code_folder", lambda: tmp_path)
    texts = []
    for _ in range(2):  # compiled, then loaded
        kernel, values = cuda_jit(both), np.array([3.0])
        kernel[1, 1](values)
        assert values[0] == 35
        (compiled,) = kernel.overloads.values()
        texts.append(compiled.library.llvm_strs)
    assert len(texts[0]) == len(set(texts[0])) == 4
    assert texts[1] == texts[0]
    assert len(list(tmp_path.rglob("*.code"))) == 1


def of_the_package(function):
    function.__module__ = "gpu_planners.of_a_test"
    return njit(function)


@of_the_package
def double(x):
    return x + x


@shared_by_kernels
@of_the_package
def triple(x):
    return double(x) + x


def plus(values):
    values[0] = triple(values[0]) + double(values[0])


def minus(values):
    values[0] = triple(values[0]) - double(values[0])


def what_it_calls(kernel):
    """Run a kernel -> its answer to 3; was `triple` taken from another process?; the texts of functions."""
    kernel, values = cuda_jit(kernel), np.array([3.0])
    kernel[1, 1](values)
    (compiled,) = kernel.overloads.values()
    (result,) = triple._CUDATypingContext__dispatcher.overloads.values()
    return values[0], type(result.library).__name__ == "_TakenLibrary", len(compiled.library.llvm_strs)


@pytest.mark.parametrize("kernels", [("plus", "minus"), ("plus", "plus")])
def test_one_process_compiles_what_kernels_share(kernels, tmp_path):
    answers = []
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{Path(__file__).parent}", "NUMBA_CACHE_DIR": str(tmp_path)}
    for kernel in kernels:
        for file in tmp_path.rglob(f"{kernel}-*.code"):
            file.unlink()
        text = f"import test_inner_code_cuda as test; print(*test.what_it_calls(test.{kernel}))"
        command = [sys.executable, "-c", text]
        answers.append(
            subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split()
        )
    of = {"plus": "15.0", "minus": "3.0"}
    # a kernel, `triple`, `double`; the second process has `triple` and its `double` from the first
    assert answers == [[of[kernels[0]], "False", "3"], [of[kernels[1]], "True", "4"]]
    assert len(list(tmp_path.rglob("triple-*.code"))) == 1
