"""The end of a node: nothing of it is left, and a process that is told to stop says nothing of it, whatever it does."""

import gc
import os
import signal
import subprocess
import sys
import time

import pytest
import rclpy
from checkout import ROOT
from rclpy.node import Node
from running_node import new_context

from gpu_planners.nodes.arm.node import ArmPlannerNode
from gpu_planners.nodes.grid.node import GridPlannerNode
from gpu_planners.nodes.player.node import TrajectoryPlayer

pytestmark = pytest.mark.timeout(300)
DESK = [f"robot_description_file:={ROOT / 'urdf/desk_arm.urdf'}", f"srdf_file:={ROOT / 'urdf/desk_arm.srdf'}"]
MOMENTS = {  # what the process prints before it gets the signal, how long after that, its parameters
    "importing": ("begins", 0.3, []),
    "waiting": ("waiting for robot_description", 0.5, []),
    "compiling": ("compiling (once", 1.0, [*DESK, "group:=arm"]),
}


@pytest.mark.parametrize("kind", [ArmPlannerNode, GridPlannerNode, TrajectoryPlayer])
def test_a_closed_node_is_gone_before_its_garbage_is_collected(kind):
    context = new_context()
    looking = Node("looking", context=context)
    gc.disable()
    try:
        node = kind(context=context)
        name = node.get_name()
        assert node.close()
        end = time.monotonic() + 20
        while name in looking.get_node_names():
            assert time.monotonic() < end, "its actions keep it alive"
            time.sleep(0.05)
    finally:
        gc.enable()
        looking.destroy_node()
        rclpy.shutdown(context=context)


@pytest.fixture(scope="module")
def told_to_stop(tmp_path_factory):
    """{moment: (exit code, all output)} of processes that got SIGINT twice, as from a terminal through ros2 launch."""
    folder, running = tmp_path_factory.mktemp("logs"), {}
    code = (
        "import sys; print('begins', flush=True); from gpu_planners.nodes import arm_planner; sys.exit(arm_planner())"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cold"), "PYTHONUNBUFFERED": "1"}
    try:
        for moment, (_, _, parameters) in MOMENTS.items():
            given = [word for one in ["device:=cpu", *parameters] for word in ("-p", one)]
            command = [sys.executable, "-c", code, "--ros-args", *given]
            with open(folder / moment, "w") as log:
                running[moment] = subprocess.Popen(
                    command, env=environment, stdout=log, stderr=log, start_new_session=True
                )
        ended = {}
        for moment, (text, after, _) in MOMENTS.items():
            process, end = running[moment], time.monotonic() + 120
            while text not in (folder / moment).read_text():
                assert process.poll() is None and time.monotonic() < end, (folder / moment).read_text()
                time.sleep(0.05)
            time.sleep(after)
            for _ in range(2):
                os.killpg(process.pid, signal.SIGINT)
                time.sleep(0.01)
            ended[moment] = process.wait(30), (folder / moment).read_text()
        return ended
    finally:
        for process in running.values():
            if process.poll() is None:
                process.kill()
                process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_process_that_is_told_to_stop_ends_without_a_word(told_to_stop, moment):
    code, output = told_to_stop[moment]
    assert code == 0, output
    for word in ("Traceback", "KeyboardInterrupt", "Failed", "rror"):
        assert word not in output, output
