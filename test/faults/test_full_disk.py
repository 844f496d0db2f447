"""A disk that is full, by the system's own limit on the size of files: what is written fails in the middle."""

import contextlib
import os
import resource
import subprocess
import sys

import numpy as np
from checkout import ROOT

from gpu_planners.errors import SettingsError
from gpu_planners.fleet import FleetPlanner
from gpu_planners.fleet.dispatch import Dispatcher, DispatchSettings, Task
from gpu_planners.fleet.dispatch import journal as journals
from gpu_planners.grid import GridMap

MODULE = """
import numpy as np, resource, sys
from gpu_planners.device import njit
if sys.argv[1:]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))

@njit
def doubled(x):
    return 2 * x

print(doubled(4), sum(doubled.stats.cache_hits.values()))
"""


@contextlib.contextmanager
def full_at(size):
    """Inside, no file of this process grows beyond so many bytes: writing raises OSError, Python ignores the signal."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_journal_takes_no_task_and_goes_on_where_it_was(tmp_path):
    path = tmp_path / "tasks.journal"
    fleet = FleetPlanner(GridMap(np.ones((6, 8), np.uint8)), device="cpu")
    dispatcher = Dispatcher(fleet, journal=path)
    taken = [dispatcher.submit(Task([[0, 3]])) for _ in range(5)]
    for room in range(0, 400, 37):  # the line is cut anywhere
        with full_at(path.stat().st_size + room), contextlib.suppress(SettingsError):
            while True:
                taken.append(dispatcher.submit(Task([[1, 1]])))
    taken.append(dispatcher.submit(Task([[2, 2]])))
    dispatcher.close()
    again = Dispatcher(fleet, journal=path)
    assert set(again.states()) == set(taken)
    again.close()


def test_a_journal_that_has_no_room_to_be_written_anew_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(journals, "LEAST_BYTES", 2000)
    path = tmp_path / "tasks.journal"
    fleet = FleetPlanner(GridMap(np.ones((6, 8), np.uint8)), device="cpu")
    dispatcher = Dispatcher(fleet, DispatchSettings(keep_ended=5), journal=path)
    whole, failed = journals.write_whole, []

    def full(file, data):
        failed.append(len(data))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(journals, "write_whole", full)
    place, longest = [0, 0], 0
    for step in range(150):
        if step == 100:
            longest = path.stat().st_size
            monkeypatch.setattr(journals, "write_whole", whole)
        last = dispatcher.submit(Task([[step % 6, step % 8]]))
        place = dispatcher.assign(["a"], [place], now=float(step))[0].tolist()
    assert 2 <= len(failed) < 10 and longest > 2000
    dispatcher.close()
    again = Dispatcher(fleet, DispatchSettings(keep_ended=5), journal=path)
    assert last in again.states()
    again.close()


def test_compiled_code_is_used_though_it_cannot_be_kept(tmp_path):
    (tmp_path / "made.py").write_text(MODULE)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def run(*limit):
        made = [sys.executable, str(tmp_path / "made.py"), *map(str, limit)]
        return subprocess.run(made, env=environment, capture_output=True, text=True, timeout=580)

    for size in (0, 500):  # nothing, and a file that is cut off
        told = run(size)
        assert told.stdout == "8 0\n" and told.returncode == 0, told.stderr
        assert "compiled code cannot be kept" in told.stderr and len(told.stderr.splitlines()) == 1
    assert run().stdout == "8 0\n"  # what was left is not taken for code
    assert run().stdout == "8 1\n"
