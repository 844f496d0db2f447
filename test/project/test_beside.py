"""Processes compile kernels beside the program that asks. Here they make files in place of kernels, which needs no
device; what they compile on one is at the end."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from checkout import ROOT

from gpu_planners import beside, code_cache, parts
from gpu_planners.device import cuda_problem

# In place of gpu_planners.kernels: a kernel is a file, or, where FOLDER has one of its name, an error or endless.
STUB = """
import os, sys, time, types
from pathlib import Path
from gpu_planners import parts
FOLDER = Path({folder!r})
parts.kernel_name = lambda kernel, device, size: f"{{kernel}} {{size}}"
def make(what):
    told = os.getpid(), os.getppid(), os.getsid(0), os.nice(0), parts.for_others
    (FOLDER / "of" / what).write_text(" ".join(map(str, told)))
    if (FOLDER / "fail").exists():
        raise ValueError(what)
    while (FOLDER / "endless").exists():
        time.sleep(0.02)
def kernel_part(kernel, device, size):
    what = parts.kernel_name(kernel, device, size)
    return parts.Part(what, make, (what,), 1)
sys.modules["gpu_planners.kernels"] = types.SimpleNamespace(kernel_part=kernel_part)
"""

# A program that asks twice, and ends as it is told.
ASKING = """
import sys, time
{stub}
from gpu_planners import beside
beside.PROGRAM, beside._room = {program!r}, lambda: {room}
for _ in range(2):
    beside.compile_kernels("cuda:0", [0, 2])
print(*(process.pid for process in beside._processes), flush=True)
{end}
"""
WAITS = "[process.wait() for process in beside._processes]"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "of").mkdir()
    return tmp_path


def asking(folder, room=3, end=WAITS):
    """-> the program that asks, started, with nothing compiled."""
    stub = STUB.format(folder=str(folder))
    first, last = beside.PROGRAM.rsplit("; ", 1)
    program = f"{first}\n{stub}\n{last}".replace("; from gpu_planners", "\nfrom gpu_planners")
    text = ASKING.format(stub=stub, program=program, room=room, end=end)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(folder / "code")}
    environment.pop(beside.SWITCH, None)
    return subprocess.Popen([sys.executable, "-c", text], env=environment, stdout=subprocess.PIPE, text=True)


def told(folder):
    """{kernel and size: (process, parent, session, nice, does it compile for others?)}"""
    return {file.name: file.read_text().split() for file in (folder / "of").iterdir()}


def compiled(folder):
    """How many parts the cache calls compiled."""
    return sum(not file.suffix for file in folder.rglob("compiled-*"))


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def is_gone(pid):
    """No process, not even a zombie."""
    return not Path(f"/proc/{pid}").exists()


def test_a_process_for_each_kernel_goes_on_with_other_sizes_in_a_session_of_its_own(folder):
    program = asking(folder, room=6)
    pids, _ = program.communicate(timeout=120)
    seen = told(folder)
    assert set(seen) == {f"{kernel} {size}" for kernel in beside.KERNELS for size in (0, 2)}
    assert len(pids.split()) == 4 and {each[0] for each in seen.values()} <= set(pids.split())
    for what, (pid, parent, session, nice, for_others) in seen.items():
        assert parent == str(program.pid) and session == pid and for_others == "True"
        assert int(nice) == min(os.nice(0) + (0 if what.endswith("0") else beside.NICE), 19)
    assert compiled(folder) == 8
    again, _ = asking(folder, room=99).communicate(timeout=120)
    assert again.split() == []  # what is compiled has no process


def test_no_more_than_there_is_room_for(folder):
    pids, _ = asking(folder, room=2).communicate(timeout=120)
    assert len(pids.split()) == 2 and compiled(folder) == 6  # the own ones of two are for whoever needs them


def test_what_fails_leaves_nothing_behind(folder):
    (folder / "fail").touch()
    pids, _ = asking(folder).communicate(timeout=120)
    assert len(told(folder)) == 7 and compiled(folder) == 0
    assert all(is_gone(pid) for pid in pids.split())


def test_two_programs_start_one_process_for_a_kernel(folder):
    (folder / "endless").touch()
    first = asking(folder)
    pids = first.stdout.readline().split()
    second = asking(folder, room=99)
    assert len(pids) == 3 and len(second.stdout.readline().split()) == 1
    (folder / "endless").unlink()
    assert first.wait(60) == second.wait(60) == 0


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_processes_end_with_a_program_that_is_stopped(folder, how):
    (folder / "endless").touch()
    program = asking(folder)
    pids = program.stdout.readline().split()
    assert until(lambda: len(told(folder)) == 3)
    program.send_signal(how)
    program.wait(60)
    assert len(pids) == 3 and until(lambda: all(is_gone(pid) for pid in pids))


def test_processes_hear_no_ctrl_c_of_a_terminal_and_leave_no_zombies(folder):
    (folder / "endless").touch()
    program = asking(folder, end="time.sleep(60)")
    pids = program.stdout.readline().split()
    assert until(lambda: len(told(folder)) == 3)
    assert all(os.getpgid(int(pid)) == int(pid) for pid in pids)
    (folder / "endless").unlink()
    assert until(lambda: all(is_gone(pid) for pid in pids)) and program.poll() is None
    program.kill()
    program.wait()
    program.stdout.close()


def test_processes_of_a_program_that_ends_well_go_on(folder):
    (folder / "endless").touch()
    program = asking(folder, end="")
    pids, _ = program.communicate(timeout=60)
    assert until(lambda: len(told(folder)) == 3) and not any(is_gone(pid) for pid in pids.split())
    (folder / "endless").unlink()
    assert until(lambda: all(is_gone(pid) for pid in pids.split()))
    assert compiled(folder) == 7


@pytest.fixture
def allowed(tmp_path, monkeypatch):
    """Where processes may be started."""
    monkeypatch.delenv(beside.SWITCH, raising=False)
    monkeypatch.setattr(parts, "for_others", False)
    monkeypatch.setattr(code_cache, "code_folder", lambda: tmp_path / "code")
    assert beside._allowed()
    return monkeypatch


def test_whoever_compiles_for_others_starts_none(allowed):
    allowed.setattr(parts, "for_others", True)
    assert not beside._allowed()


def test_none_where_somebody_says_so(allowed):
    allowed.setenv(beside.SWITCH, "0")
    assert not beside._allowed()


def test_none_while_a_wheel_is_made(allowed, tmp_path):
    allowed.setenv(code_cache.MAKING, str(tmp_path))
    assert not beside._allowed()


def test_none_where_python_is_part_of_a_program(allowed):
    allowed.setattr(sys, "executable", "")
    assert not beside._allowed()


def test_none_where_nothing_can_be_kept(allowed, tmp_path):
    (tmp_path / "file").touch()
    allowed.setattr(code_cache, "code_folder", lambda: tmp_path / "file" / "code")
    assert not beside._allowed()


@pytest.mark.parametrize(
    ("cores", "quota", "memory", "room"), [(2, 9, 99, 0), (9, 2.5, 99, 0), (16, 8, 99, 7), (8, 9, 4, 2)]
)
def test_room_follows_from_cores_quota_and_memory(monkeypatch, cores, quota, memory, room):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)))
    monkeypatch.setattr(beside, "_quota", lambda: quota)
    monkeypatch.setattr(beside, "_memory", lambda: memory * 2**30)
    assert beside._room() == room


def test_the_machine_tells_what_it_has():
    assert beside._quota() > 0 and beside._memory() > 0


def test_a_lock_of_another_process_is_no_error(allowed, tmp_path):
    allowed.setattr(parts, "kernel_name", lambda kernel, device, size: f"{kernel} {size}")
    allowed.setattr(parts, "mark", lambda what, machine: tmp_path / what)
    allowed.setattr(beside, "_room", lambda: 1)
    allowed.setattr(beside, "KERNELS", ("search",))
    allowed.setattr(beside, "_asked", set())
    with open(tmp_path / "search 0.beside", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        beside.compile_kernels("cuda:0", [0])
    assert not beside._processes


FIRST_PLAN = """
import numpy as np
from gpu_planners import beside
from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf, rrt_connect
from gpu_planners.share import share_folder

urdf = share_folder() / "urdf" / "desk_arm.urdf"
checker = CollisionChecker(load_urdf(urdf, urdf.with_suffix(".srdf")), CollisionWorld(), "cuda")
q = np.random.default_rng(0).uniform(checker.robot.lower, checker.robot.upper, (99, checker.robot.dof))
q = q[checker.configurations_valid(q)]
print(len(beside._processes), rrt_connect.solve(q[0], q[1], checker).path.tobytes().hex())
"""


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.skipif(bool(cuda_problem()), reason=f"no CUDA device: {cuda_problem()}")
def test_a_first_plan_is_the_same_and_its_kernels_are_there_afterwards(tmp_path):
    found = []
    for switch in ("1", "0"):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), *sys.path]))}
        environment |= {beside.SWITCH: switch, "XDG_CACHE_HOME": str(tmp_path / switch)}
        run = subprocess.run(
            [sys.executable, "-c", FIRST_PLAN], env=environment, capture_output=True, text=True, timeout=300
        )
        assert run.returncode == 0, run.stderr
        found.append(run.stdout.split())
    (many, path), (none, same) = found
    assert path == same and none == "0" and (int(many) >= 3) == (beside._room() >= 3)
    if many != "0":
        assert until(lambda: compiled(tmp_path / "1") >= 4, 120)
        for name in ("search_paths", "shorten_paths", "motions", "configurations"):
            assert list((tmp_path / "1").rglob(f"{name}-*.code"))
        before = sorted((tmp_path / "1").rglob("*.code"))
        environment |= {beside.SWITCH: "1", "XDG_CACHE_HOME": str(tmp_path / "1")}
        again = subprocess.run([sys.executable, "-c", FIRST_PLAN], env=environment, capture_output=True, text=True)
        assert again.stdout.split() == ["0", path] and before == sorted((tmp_path / "1").rglob("*.code"))
