"""Kernels are compiled once from the code of each function, and saved with it. Needs a device."""

import numpy as np
import pytest

from gpu_planners import code_cache
from gpu_planners.device import cuda_jit, cuda_problem, njit

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
