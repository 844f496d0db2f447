"""Inner functions are compiled for their callers alone, and nobody else can tell."""

import os
import subprocess
import sys

import pytest
from checkout import ROOT

from gpu_planners import inner_code

MODULE = """
import sys
import numba
import numpy as np
from gpu_planners import device, inner_code

__name__ = "gpu_planners.made"  # functions of other packages are compiled by Numba alone
sys.modules |= {{name: sys.modules["__main__"] for name in (__name__, "elsewhere")}}

inner_code.FITS = inner_code.FITS and {fits}
njit = device.njit

@njit
def half(x):
    return x / 2

@njit
def quarter(x):
    return half(x) / 2

@njit
def checked(x):
    if x < 0:
        raise ValueError("x is negative")
    return quarter(x)

def foreign(x):
    return checked(x) + quarter(x)

foreign.__module__ = "elsewhere"
foreign = numba.njit(foreign)

@njit
def entry(x):
    return foreign(x) + checked(x)

@njit(parallel=True)
def loop(values, out):
    for i in numba.prange(len(values)):
        out[i] = checked(values[i])

def others(x):
    return checked(x) + 1

others.__module__ = "elsewhere"
others = numba.njit(others)

values, out = np.arange(6.0), np.zeros(6)
print(entry(3.0), others(3.0))
loop(values, out)
print(out.tolist())
if {more}:
    print(quarter(6.0), checked(9.0), foreign(6.0))
for function in (entry, checked, others):
    try:
        print(function(-1.0))
    except ValueError as error:
        print(error)
OURS = (half, quarter, checked, entry, loop)
print("saved", sum(sum(f.stats.cache_misses.values()) for f in OURS),
      "loaded", sum(sum(f.stats.cache_hits.values()) for f in OURS))
"""


def printed(folder, fits=True, more=False):
    folder.mkdir(exist_ok=True)
    if not (folder / "made.py").exists():  # Numba before 0.68 compiles again what is written again
        (folder / "made.py").write_text(MODULE.format(fits=fits, more=more))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, folder / "made.py"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=580)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_answers_are_those_of_numba_also_when_loaded_and_when_called_both_ways(tmp_path):
    *first, _ = printed(tmp_path / "a", more=True)
    *again, _ = printed(tmp_path / "a", more=True)
    *as_numba, _ = printed(tmp_path / "b", fits=False, more=True)
    assert first == again == as_numba
    assert first[:3] == ["2.25 1.75", str([i / 4 for i in range(6)]), "1.5 2.25 3.0"]
    assert first[3:] == ["x is negative"] * 3


@pytest.mark.skipif(not inner_code.FITS, reason="this Numba compiles in its own way")
def test_only_what_python_calls_is_saved(tmp_path):
    assert printed(tmp_path)[-1] == "saved 4 loaded 0"  # entry, loop, and what functions of others call: all but half
    assert printed(tmp_path)[-1] == "saved 0 loaded 3"  # entry, which has the code of `foreign`; loop; checked
