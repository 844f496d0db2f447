"""Calls of many rows stop soon after Ctrl-C, though compiled code does not hear it."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from checkout import ROOT
from robots_at_hand import READY, panda

from gpu_planners.arm import CollisionChecker, CollisionWorld
from gpu_planners.arm.collision.point_cloud import near_robot
from gpu_planners.code_cache import ctrl_c_outside_llvm
from gpu_planners.grid import BlockPlanner, GridMap

T_ROOT_BOX = np.eye(4) + 0.6 * np.eye(4, k=3)
WHOLE_S = 20.0  # what a call of many rows would take


@pytest.fixture(scope="module")
def checker():
    world = CollisionWorld()
    world.add_box("box", (0.3, 0.3, 0.3), T_ROOT_BOX)
    return CollisionChecker(panda(), world, device="cpu")


def poses(checker, q):
    return checker.robot.link_poses(q)[checker.robot.tip_link]


CALLS = {
    "configurations_valid": lambda checker, q: checker.configurations_valid(q),
    "motions_valid": lambda checker, q: checker.motions_valid(q, q[::-1]),
    "clearances": lambda checker, q: checker.clearances(q),
    "shape_pair_collisions": lambda checker, q: checker.shape_pair_collisions(q),
    "inverse_kinematics": lambda checker, q: checker.robot.inverse_kinematics(poses(checker, q)),
    "near_robot": lambda checker, q: near_robot(checker.robot, READY, q[:, :3]),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_of_many_rows_stops_soon(checker, name):
    call, rows = CALLS[name], 200
    rng = np.random.default_rng(0)
    while True:  # how many rows take a tenth of a second; the first call compiles
        q = rng.uniform(checker.robot.lower, checker.robot.upper, (rows, checker.robot.dof))
        call(checker, q)
        took = seconds(lambda q=q: call(checker, q))
        if took > 0.1:
            break
        rows *= 2
    stops_soon(lambda q=np.tile(q, (int(WHOLE_S / took), 1)): call(checker, q), WHOLE_S)


@pytest.mark.parametrize(("high", "connectivity", "goals"), [(1, 4, 200), (1, 8, 48), (255, 8, 32)])
def test_fields_stop_soon_and_are_right_afterwards(high, connectivity, goals):
    """By bits, by rounds of values, and by one queue."""
    costs = np.random.default_rng(0).integers(1, high + 1, (1600, 1600)).astype(np.uint8)
    first, second, third = (np.stack([np.arange(goals), np.arange(goals)[::-1] + k], axis=1) for k in (0, 300, 600))
    planner, other = (BlockPlanner(GridMap(costs, connectivity), device="cpu") for _ in range(2))
    planner.prepare(first)  # compiles, and has the memory from now on
    stops_soon(lambda: planner.prepare(third), seconds(lambda: planner.prepare(second)))
    for goal in third[[0, -1]]:
        assert np.array_equal(planner.field(goal), other.field(goal))


COMPILING = """
import os, signal, sys, threading, time
import numpy as np
from numba.core.registry import cpu_target
from gpu_planners.grid import BlockPlanner, GridMap

signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background may have it ignored

def interrupt():
    while not cpu_target.typing_context.callstack:  # of functions that are being compiled
        time.sleep(0.001)
    time.sleep(float(sys.argv[1]))
    os.kill(os.getpid(), signal.SIGINT)

planner = BlockPlanner(GridMap(np.ones((64, 64), np.uint8), 8), device="cpu")
threading.Thread(target=interrupt, daemon=True).start()
goals = np.zeros((1, 2))
try:
    planner.prepare(goals)
except KeyboardInterrupt:
    print("heard")
planner.prepare(goals)
print(planner.plan([[0, 4]], goals).cost[0])
"""


@pytest.mark.parametrize("moment_s", [0.05, 0.3, 0.6, 1.0])
def test_fields_that_compile_hear_ctrl_c_and_are_right_afterwards(tmp_path, moment_s):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", COMPILING, str(moment_s)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["heard", "4.0"]


def test_ctrl_c_while_llvm_calls_python_is_heard_afterwards():
    """There it would be lost, with the code that LLVM hands over."""
    done = []

    def _raw_object_cache_notify():  # called as llvmlite's method is
        signal.raise_signal(signal.SIGINT)
        done.append("handed over")

    others = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), ctrl_c_outside_llvm():
            _raw_object_cache_notify()
            done.append("compiled")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        with pytest.raises(KeyboardInterrupt), ctrl_c_outside_llvm():
            signal.raise_signal(signal.SIGINT)
            done.append("never")
    finally:
        signal.signal(signal.SIGINT, others or signal.default_int_handler)
    assert done == ["handed over", "compiled"]


def stops_soon(work, whole_s):
    """Does work that would take so long hear Ctrl-C long before it is done?"""
    timer = threading.Timer(whole_s / 20, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
    others = signal.signal(signal.SIGINT, signal.default_int_handler)  # rclpy's, where a test before this one used it
    began = time.perf_counter()
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            work()
        assert time.perf_counter() - began < whole_s / 2
    finally:
        timer.join()
        signal.signal(signal.SIGINT, others or signal.default_int_handler)


def seconds(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
