"""`gpu-planners compile`: afterwards first requests compile nothing, and a second call has nothing to do."""

import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from checkout import ROOT

from gpu_planners import cli, compiling, parts
from gpu_planners.compiling import compile_parts, parts_of
from gpu_planners.device import njit
from gpu_planners.parts import Part, is_compiled

FIRST_REQUESTS = """
import sys
import numpy as np
from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf, rrt_connect
from gpu_planners.arm.trajectory import time_parameterize

robot = load_urdf(sys.argv[1])
world = CollisionWorld()
world.add_box("box", [0.2, 0.2, 0.2], np.eye(4) + np.eye(4, k=3) * 3)
world.add_convex("rock", np.random.default_rng(0).normal(size=(99, 3)), np.eye(4) + np.eye(4, k=3) * 9)
checker = CollisionChecker(robot, world, device="cpu")
q = np.random.default_rng(0).uniform(robot.lower, robot.upper, (200, robot.dof))
q = q[checker.configurations_valid(q)]
result = rrt_connect.solve(q[0], q[1], checker, rrt_connect.Settings(optimise_s=0.01))
time_parameterize(result.path, robot.velocity, robot.acceleration)
"""


@pytest.fixture
def cold(tmp_path):
    """The environment of processes with an empty cache."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("NUMBA_CACHE_DIR", None)
    return environment


@pytest.mark.slow
def test_what_was_compiled_is_not_compiled_by_first_requests(cold, tmp_path):
    def kept():
        return sorted(tmp_path.rglob("*.code"))

    asked = [sys.executable, "-m", "gpu_planners.cli", "compile", "--for", "arm", "--device", "cpu"]
    told = [subprocess.run(asked, env=cold, capture_output=True, text=True, timeout=580) for _ in range(2)]
    assert [each.returncode for each in told] == [0, 0], told
    assert "arm for cpu: 9 compiled in" in told[0].stderr and "nothing is left to compile" in told[1].stderr
    before = kept()
    first = [sys.executable, "-c", FIRST_REQUESTS, str(ROOT / "urdf" / "gantry.urdf")]
    ended = subprocess.run(first, env=cold, capture_output=True, text=True, timeout=580)
    assert (ended.returncode, ended.stderr) == (0, "") and before == kept() != []


def test_all_products_have_parts_that_are_told_apart():
    for device in ("cpu", "cuda:0"):
        parts = parts_of(compiling.PRODUCTS, device)
        assert len({part.what for part in parts}) == len(parts) >= 10
        assert all(part.seconds > 0 for part in parts)


def test_an_unknown_product_is_named(capsys):
    assert cli.main(["compile", "--for", "arm,leg"]) == 2
    assert "unknown leg; allowed: arm, grid, fleet" in capsys.readouterr().err


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """Where nothing is compiled: for this process and those that it starts."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "code"))
    monkeypatch.setattr(parts, "code_folder", lambda: tmp_path / "code")


def fail():
    raise ValueError("no wood")


def test_what_fails_is_named_and_progress_is_told(own_cache):
    seen = []
    parts = [Part("a", int, (), 1), Part("b", fail, (), 1), Part("c", int, (), 2)]
    assert compile_parts(parts, seen.append) == {"b": "ValueError: no wood"}
    assert [progress.total for progress in seen] == [3] * len(seen)
    assert seen[0].ended == () and seen[0].doing[0] == "a" and seen[0].left_s is None
    assert "s so far" in str(seen[0])


@pytest.mark.parametrize("seed", range(20))
def test_the_seconds_left_never_rise_but_where_nobody_knew(seed):
    """Of parts that take other times than they say, on one core or several, ten times as long or a tenth."""
    rng = np.random.default_rng(seed)
    cores, slower = int(rng.integers(1, 4)), 10 ** rng.uniform(-1, 1)
    parts = [Part(str(i), int, (), int(rng.integers(1, 30))) for i in range(rng.integers(1, 9))]
    takes = {part: slower * part.seconds * 2 ** rng.uniform(-1, 1) for part in parts}
    pace, waiting, ends, now, before = compiling._Pace(0.0, cores), list(parts), {}, 0.0, None
    known = 0
    while waiting:
        for part in waiting[:cores]:
            ends.setdefault(part, now + takes[part])
        left = pace.left_s(waiting, now)
        assert left is None or left > 0 and len(waiting) < len(parts)  # nobody knows before a part has ended
        assert left is None or before is None or left <= before + 1e-9
        known, before = known + (left is not None), left
        now += 0.2
        waiting = [part for part in waiting if ends.get(part, np.inf) > now]
    assert known or len(parts) <= cores + 1 or seed


def test_the_seconds_left_are_right_where_parts_take_what_they_say():
    parts, cores = [Part(str(i), int, (), 10) for i in range(8)], 2
    pace = compiling._Pace(0.0, cores)
    assert pace.left_s(parts, 0.0) is None and pace.left_s(parts, 39.0) is None  # four times as long as they say
    assert pace.left_s(parts[2:], 40.0) == pytest.approx(120.0)
    assert pace.left_s(parts[2:], 70.0) == pytest.approx(90.0)
    assert pace.left_s(parts[2:], 85.0) is None  # those two take longer
    assert pace.left_s(parts[4:], 100.0) == pytest.approx(100.0)  # 50 s for each of two, after two more of 50


def test_it_stops_when_it_is_asked_to(own_cache):
    stop = threading.Event()
    assert compile_parts([Part("a", signal.pause, (), 1)], lambda _: stop.set(), stop.is_set) == {}


def slow(folder):
    """Says that it is run, and takes until somebody says that it may end."""
    with open(folder / "runs", "a") as runs:
        runs.write("x")
    while not (folder / "end").exists():
        time.sleep(0.02)


IN_TURN = """
import sys
from pathlib import Path
from gpu_planners.parts import Part, compile_in_turn
from test_compiling import slow
compile_in_turn([Part("first", slow, (Path(sys.argv[1]),), 1), Part("second", slow, (Path(sys.argv[1]),), 1)])
"""


@pytest.fixture
def other_process(own_cache, tmp_path):
    """It makes the parts "first" and "second", one after the other."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen([sys.executable, "-c", IN_TURN, str(tmp_path)], env=environment)
    end = time.monotonic() + 60
    while not (tmp_path / "runs").exists() and time.monotonic() < end:
        time.sleep(0.02)
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("name", ["first", "second"])
def test_a_part_that_another_process_makes_or_will_make_is_waited_for(other_process, tmp_path, name):
    """Each process that makes parts of the arm finds out anew what Numba finds out about their functions."""
    seen = []

    def told(progress):
        seen.append(progress)
        if len(seen) == 3:
            (tmp_path / "end").touch()

    assert compile_parts([Part(name, slow, (tmp_path,), 1)], told) == {}
    assert is_compiled(name) and other_process.wait(60) == 0
    assert (tmp_path / "runs").read_text() == "xx" and len(seen) >= 3


def test_a_part_of_a_process_that_died_is_made(other_process, tmp_path):
    def told(progress):
        other_process.kill()
        (tmp_path / "end").touch()

    assert compile_parts([Part("second", slow, (tmp_path,), 1)], told) == {}
    assert (tmp_path / "runs").read_text() == "xx" and is_compiled("second") and not is_compiled("first")


def twice(x):
    return 2 * x


def compile_twice():
    assert njit(twice)(2) == 4


def test_what_cannot_be_kept_has_failed(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    (why,) = compile_parts([Part("twice", compile_twice, (), 1)]).values()
    assert "could not be kept" in why and "Not a directory" in why


def test_what_another_python_or_processor_has_compiled_is_not_compiled_here(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "code_folder", lambda: tmp_path)
    Part("wood", int, (), 1).run()
    assert is_compiled("wood") and not is_compiled("stone")
    with monkeypatch.context() as other:
        other.setattr(parts, "sys", SimpleNamespace(version_info=(3, 99)))
        assert not is_compiled("wood")
    with monkeypatch.context() as other:
        other.setattr(type(parts.cpu_target.target_context.codegen()), "magic_tuple", lambda self: ("a 486",))
        assert not is_compiled("wood")
    assert is_compiled("wood")
