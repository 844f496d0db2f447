"""Compiled code is found again by the next process, also that of factories, and never another one's."""

import os
import subprocess
import sys

from checkout import ROOT

MODULE = """
import sys
import numpy as np
from gpu_planners.device import njit

def factory(n, twice, table):
    if twice:
        @njit
        def inner(x):
            return 2 * n * x
    else:
        @njit
        def inner(x):
            return n * x

    @njit
    def outer(x):
        return inner(x) + table[-2]

    return outer

long = np.zeros(5000)
other = long.copy()
other[-2] = 1
made = [factory(n, twice, table) for n in (1, 10) for twice in (False, True) for table in (long, other)]
print([int(f(3)) for f in made], sum(sum(f.stats.cache_hits.values()) for f in made))
"""


def outputs(folder):
    """What two runs of made.py in a folder print, one after the other."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(folder / "cache")}
    answers = []
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, folder / "made.py"], env=environment, capture_output=True, text=True, timeout=240
        )
        assert run.returncode == 0, run.stderr
        answers.append(run.stdout.strip())
    return answers


def test_closures_of_functions_are_found_again_and_told_apart(tmp_path):
    (tmp_path / "made.py").write_text(MODULE)
    expected = "[3, 4, 6, 7, 30, 31, 60, 61]"
    assert outputs(tmp_path) == [f"{expected} 0", f"{expected} 8"]


SERIAL_AND_PARALLEL = """
from numba import prange
from gpu_planners.device import njit

def total(n):
    total = 0
    for i in prange(n):
        total += i
    return total

made = [njit(total), njit(parallel=True)(total)]
print([f(10) for f in made], sum(sum(f.stats.cache_hits.values()) for f in made))
"""


def test_serial_and_parallel_code_of_a_function_are_told_apart(tmp_path):
    (tmp_path / "made.py").write_text(SERIAL_AND_PARALLEL)
    assert outputs(tmp_path) == ["[45, 45] 0", "[45, 45] 2"]
