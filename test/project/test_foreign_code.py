"""Numba stays as it was for everybody else: foreign_code.py and foreign_kernels.py compile all kinds of functions
before, between and after ours, and beside them, and compare Numba's own functions and classes."""

import importlib.util
import os
import subprocess
import sys

import pytest
from checkout import ROOT


def printed(folder, *arguments, program="foreign_code.py"):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, ROOT / "test" / program, *arguments]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=580)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_nothing_of_numba_is_replaced(tmp_path):
    assert printed(tmp_path, "quick") == "differences []; loaded 0"
    assert printed(tmp_path, "quick") == "differences []; loaded 1"


@pytest.mark.slow
def test_code_of_others_is_compiled_by_numba_alone(tmp_path):
    assert printed(tmp_path) == "differences []; loaded 0"


@pytest.mark.skipif(importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed")
def test_kernels_of_others_are_compiled_by_numba_cuda_alone(tmp_path):
    assert printed(tmp_path, program="foreign_kernels.py") == "fits True; differences []"
