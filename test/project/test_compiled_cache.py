"""Compiled code is found again by the next process, also that of factories, and never another one's."""

import fcntl
import os
import subprocess
import sys
import time

import pytest
from checkout import ROOT

from gpu_planners import code_cache, device

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


def run_made(folder, more=None):
    """What made.py in a folder prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(folder / "cache")} | (more or {})
    made = [sys.executable, folder / "made.py"]
    run = subprocess.run(made, env=environment, capture_output=True, text=True, timeout=580)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def outputs(folder):
    """What two runs of made.py in a folder print, one after the other."""
    return [run_made(folder) for _ in range(2)]


def test_closures_of_functions_are_found_again_and_told_apart(tmp_path):
    (tmp_path / "made.py").write_text(MODULE)
    expected = "[3, 4, 6, 7, 30, 31, 60, 61]"
    assert outputs(tmp_path) == [f"{expected} 0", f"{expected} 8"]


READY_MADE = """
from pathlib import Path
from gpu_planners import code_cache
code_cache.READY_MADE = Path({folder!r})
code_cache.FEATURES += {features}
"""


@pytest.mark.parametrize("features, hits", [((), 8), (("wings",), 0)])
def test_code_that_a_wheel_brings_is_used_where_the_processor_fits(tmp_path, features, hits):
    if not code_cache.fits_here():
        pytest.skip(f"this processor is no {code_cache.PROCESSOR}")
    (tmp_path / "made.py").write_text(MODULE)
    making = {code_cache.MAKING: str(tmp_path / "ready"), "NUMBA_CPU_NAME": code_cache.PROCESSOR}
    run_made(tmp_path, making | {"NUMBA_CPU_FEATURES": ""})
    assert len(list((tmp_path / "ready").rglob("outer-*.code"))) == 8
    wheel = READY_MADE.format(folder=str(tmp_path / "ready"), features=features)
    (tmp_path / "sitecustomize.py").write_text(wheel)
    loaded = run_made(tmp_path, {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])})
    assert loaded == f"[3, 4, 6, 7, 30, 31, 60, 61] {hits}"
    assert len(list((tmp_path / "cache").rglob("outer-*.code"))) == 8 - hits


DAMAGES = {
    "cut": lambda code: code[:-99],
    "other code": lambda code: code.replace(b"ELF", b"elf"),
    "zeros": lambda code: bytes(len(code)),
    "nothing": lambda code: b"",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_code_is_compiled_anew(tmp_path, damage):
    (tmp_path / "made.py").write_text(SERIAL_AND_PARALLEL)
    expected = run_made(tmp_path)
    kept = list((tmp_path / "cache").rglob("*.code"))
    for file in kept:
        whole = file.read_bytes()
        file.write_bytes(DAMAGES[damage](whole))
        assert file.read_bytes() != whole
    assert run_made(tmp_path) == expected == "[45, 45] 0"
    assert run_made(tmp_path) == "[45, 45] 2" and sorted((tmp_path / "cache").rglob("*.code")) == sorted(kept)


ADDING = """
from gpu_planners.device import njit
@njit
def add(x):
    return x + 1
"""


@pytest.mark.parametrize("given", [["-c"], ["-"]])
def test_code_that_comes_from_no_file_is_not_taken_for_another(tmp_path, given):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path)}
    for added in (1, 2):
        text = ADDING.replace("+ 1", f"+ {added}") + "print(add(10))"
        command = [sys.executable, *given, *([text] if given == ["-c"] else [])]
        run = subprocess.run(command, input=text, env=environment, capture_output=True, text=True, timeout=580)
        assert run.stdout == f"{10 + added}\n", run.stderr


EDITED = """
import pathlib
import adding
file = pathlib.Path(adding.__file__)
text = file.read_text()
file.write_text(text.replace("+ 1", "+ 2"))
print(adding.add(10))
"""


def test_an_edit_between_import_and_compiling_brings_no_old_code(tmp_path):
    (tmp_path / "adding.py").write_text(ADDING)
    (tmp_path / "made.py").write_text(EDITED)
    paths = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]), "PYTHONDONTWRITEBYTECODE": "1"}
    assert [run_made(tmp_path, paths) for _ in range(2)] == ["11", "12"]


def test_a_process_that_was_started_meanwhile_holds_nobody_up(tmp_path):
    turn = code_cache.Turn(tmp_path / "made.lock", 1.0, 0.02)
    with (
        open(tmp_path / "made.lock") as another,
        subprocess.Popen(["sleep", "600"], pass_fds=[turn._file.fileno()]) as child,
    ):
        with turn, pytest.raises(BlockingIOError):
            fcntl.flock(another, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(another, fcntl.LOCK_EX | fcntl.LOCK_NB)
        child.kill()


def test_a_cache_that_cannot_be_written_to_is_named_once(tmp_path):
    (tmp_path / "made.py").write_text(MODULE)
    run_made(tmp_path)
    for file in (tmp_path / "cache").rglob("*.code"):
        file.unlink()
        file.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    made = [sys.executable, tmp_path / "made.py"]
    run = subprocess.run(made, env=environment, capture_output=True, text=True, timeout=580)
    assert run.stdout == "[3, 4, 6, 7, 30, 31, 60, 61] 0\n"
    assert "compiled code cannot be kept" in run.stderr and len(run.stderr.splitlines()) == 1


def test_a_cache_lies_below_home_but_where_an_absolute_path_is_given(tmp_path, monkeypatch):
    for given, folder in (
        (str(tmp_path), tmp_path),
        ("here", tmp_path / "home/.cache"),
        ("", tmp_path / "home/.cache"),
    ):
        monkeypatch.setenv("XDG_CACHE_HOME", given)
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        assert code_cache.cache_folder() == folder / "gpu_planners"
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as for a user whom the machine does not know
    with pytest.raises(OSError):
        code_cache.cache_folder().mkdir(parents=True)


AT_ONCE = """
import sys
import time
from gpu_planners.device import njit

def factory(n):
    @njit
    def made(x):
        return n * x

    return made

while time.time() < float(sys.argv[2]):
    pass
first = int(sys.argv[1])
made = [factory(n) for n in range(first, first + 3)]
print(*(f(10) == 10 * n and sum(f.stats.cache_misses.values()) for n, f in zip(range(first, first + 3), made)))
"""


@pytest.mark.slow
def test_processes_that_compile_at_once_share_the_work_and_do_not_mix_it_up(tmp_path):
    (tmp_path / "made.py").write_text(AT_ONCE)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for compiled in (9, 0):
        runs = [
            subprocess.Popen(
                [sys.executable, tmp_path / "made.py", str(3 * (i // 2)), str(time.time() + 3)],
                env=environment,
                stdout=subprocess.PIPE,
            )
            for i in range(6)
        ]
        counts = [int(word) for run in runs for word in run.communicate(timeout=580)[0].split()]
        assert len(counts) == 18 and sum(counts) == compiled  # two need the same: one waits for the other
    kept = [file.suffix for file in (tmp_path / "cache").rglob("*") if file.is_file()]
    assert kept == [".code"] * 9


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


OPTIONS = """
from gpu_planners.device import njit

def ratio(x, y):
    return x / y

made = [njit(ratio), njit(ratio, error_model="python")]
assert made[0](1.0, 0.0) > 0
try:
    made[1](1.0, 0.0)
except ZeroDivisionError:
    print(sum(sum(f.stats.cache_hits.values()) for f in made))
"""


def test_functions_that_are_compiled_with_other_options_are_told_apart(tmp_path):
    (tmp_path / "made.py").write_text(OPTIONS)
    assert outputs(tmp_path) == ["0", "2"]


def test_whoever_waits_for_the_compiler_is_told(monkeypatch, caplog):
    monkeypatch.setattr(device, "SOON_S", 0.05)
    with device.told_if_slow("kernels of wood"):
        time.sleep(0.5)
    assert "compiling kernels of wood" in caplog.text and "loaded from" in caplog.text
    caplog.clear()
    with device.told_if_slow("kernels of stone"):
        pass
    time.sleep(0.2)
    assert not caplog.text


def test_what_is_loaded_needs_no_thread(monkeypatch):
    with device.told_if_slow("kernels of wax", 1):
        pass
    started = []
    monkeypatch.setattr(device.threading.Timer, "start", lambda timer: started.append(timer))
    with device.told_if_slow("kernels of wax", 1):
        assert not started
    with device.told_if_slow("kernels of wax", 2):
        assert started
