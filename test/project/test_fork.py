"""A child that is forked after its parent has planned gets an error that says what to do; otherwise OpenMP would end
it."""

import os
import subprocess
import sys

import pytest

PARENT = """
import os
import numpy as np
from gpu_planners.arm import prm, rrt, rrt_connect, rrt_star
from gpu_planners.papers.bkf11.planar import PlanarArm, PlanarChecker
from gpu_planners.errors import GpuPlannersError
from gpu_planners.grid import BlockPlanner, GridMap, PathSet

planner = BlockPlanner(GridMap(np.ones((8, 8), np.uint8)), device="cpu")
checker = PlanarChecker(PlanarArm([1.0, 1.0]), device="cpu")
paths = PathSet.of_moves([[3, 3]], [0], [2.0], [0, 1], [0, 2], 4)
entries = {
    "plan": lambda: planner.plan([[0, 0]], [1, 1]),
    "update": lambda: planner.update([0], [0], 0),
    "prepare": lambda: planner.prepare([1, 1]),
    "field": lambda: planner.field((1, 1)),
    "paths": lambda: paths.path(0),
    "a new one": lambda: BlockPlanner(GridMap(np.ones((8, 8), np.uint8)), device="cpu"),
    "warm_up": checker.warm_up,
    "configurations_valid": lambda: checker.configurations_valid(np.zeros((100, 2))),
    **{
        planner.__name__: lambda solve=planner.solve: solve([0, 0], [1, 1], checker)
        for planner in (prm, rrt, rrt_connect, rrt_star)
    },
    "solve_batch": lambda: rrt_connect.solve_batch([[0, 0]], [[1, 1]], checker),
    "motions_valid": lambda: checker.motions_valid(np.zeros((100, 2)), np.ones((100, 2))),
}

def in_child(entry):
    if not os.fork():
        try:
            entry()
            answer = "worked"
        except GpuPlannersError as error:
            answer = str(error)
        print(answer, flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""


def said_by(script):
    run = subprocess.run([sys.executable, "-c", PARENT + script], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_a_child_forked_after_use_is_told_what_to_do():
    lines = said_by(
        "paths.path(0)  # starts the threads\nfor entry in entries.values(): in_child(entry)\nprint(len(entries))"
    )
    assert len(lines) == int(lines[-1]) + 1
    for line in lines[:-1]:
        assert "threads" in line and "'spawn'" in line and "'forkserver'" in line, line


def test_a_child_forked_before_use_plans():
    assert said_by("in_child(entries['a new one']); in_child(entries['paths'])") == ["worked"] * 2


def test_a_pool_that_forks_after_use_is_told_what_to_do():
    lines = said_by(
        "import multiprocessing\nfrom concurrent.futures import ProcessPoolExecutor\npaths.path(0)\n"
        "with ProcessPoolExecutor(1, multiprocessing.get_context('fork')) as pool:\n"
        "    try: rrt_connect.solve_batch([[0, 0]], [[1, 1]], checker, executor=pool)\n"
        "    except GpuPlannersError as error: print(error)"
    )
    assert len(lines) == 1 and "worker" in lines[0] and "'spawn'" in lines[0]


ONE_PLAN = """
import os, select, signal, sys
import numpy as np
from gpu_planners.arm import rrt_connect
from gpu_planners.errors import GpuPlannersError
from gpu_planners.fleet import FleetPlanner
from gpu_planners.grid import BlockPlanner, GridMap
from gpu_planners.papers.bkf11.planar import PlanarArm, PlanarChecker

def grid():
    return BlockPlanner(GridMap(np.ones((9, 9), np.uint8)), device="cpu").plan([[0, 0]], [8, 8]).cost.tolist()

def arm():
    checker = PlanarChecker(PlanarArm([1.0, 1.0]), device="cpu")
    return rrt_connect.solve([0, 0], [1, 1], checker).path.tolist()

def fleet():
    planner = FleetPlanner(GridMap(np.ones((9, 9), np.uint8)), device="cpu")
    planner.start([[0, 0], [3, 3]])
    planner.step([[8, 8], [0, 0]])
    return planner.positions.tolist()

def solve():
    planner = FleetPlanner(GridMap(np.ones((9, 9), np.uint8)), device="cpu")
    return planner.solve([[0, 0], [3, 3]], [[8, 8], [0, 0]], 0.3).message

work = globals()[sys.argv[1]]
expected = work()
get, put = os.pipe()
child = os.fork()
if not child:
    try: answer = "right" if work() == expected else "wrong"
    except GpuPlannersError as error: answer = str(error)
    os.write(put, answer.encode())
    os._exit(0)
if not select.select([get], [], [], 60)[0]:
    os.kill(child, signal.SIGKILL)
    sys.exit("the child hangs")
os.waitpid(child, 0)
print(os.read(get, 10_000).decode())
"""


@pytest.mark.parametrize("kind", ["grid", "arm", "fleet", "solve"])
def test_a_child_forked_after_one_plan_plans_or_says_so(kind):
    """Team threads of the parent are not in the child, which waited for them for ever."""
    run = subprocess.run([sys.executable, "-c", ONE_PLAN, kind], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "right" or "'spawn'" in run.stdout, run.stdout


WHILE_COMPILING = """
import gc, os, select, signal, sys, threading, time
import numpy as np
from numba.core.registry import cpu_target
from gpu_planners.arm.geometry.poses import identity
from gpu_planners.errors import GpuPlannersError
from gpu_planners.grid import BlockPlanner, GridMap

planner = BlockPlanner(GridMap(np.ones((9, 9), np.uint8), 8), device="cpu")
thread = threading.Thread(target=planner.prepare, args=([[0, 0]],))
thread.start()
while not cpu_target.typing_context.callstack:  # of functions that are being compiled
    time.sleep(0.001)
get, put = os.pipe()
child = os.fork()
if not child:
    for work in (lambda: planner.plan([[0, 0]], [8, 8]), identity):
        try: answer = work()
        except GpuPlannersError as error: answer = error
        os.write(put, f"{answer}\\n".encode())
    os.write(put, f"garbage is looked for: {gc.isenabled()}\\n".encode())
    os._exit(0)
os.close(put)
while select.select([get], [], [], 60)[0]:
    if not (text := os.read(get, 10_000)):
        break
    print(text.decode(), end="")
else:
    os.kill(child, signal.SIGKILL)
    sys.exit("the child hangs")
os.waitpid(child, 0)
thread.join()
print(planner.plan([[0, 4]], [[0, 0]]).cost[0], gc.isenabled())
"""


def test_a_child_forked_while_another_thread_compiles_is_told_what_to_do(tmp_path):
    """Nobody gives back Numba's lock in it: whatever compiles or loads would wait for ever."""
    command, environment = [sys.executable, "-c", WHILE_COMPILING], {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    plan, compiled, garbage, parent = run.stdout.splitlines()
    for line in (plan, compiled):
        assert "compiling" in line and "'spawn'" in line and "'forkserver'" in line, line
    assert garbage == "garbage is looked for: True"
    assert parent == "4.0 True"
