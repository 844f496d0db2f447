"""A CUDA device whose memory others have taken, and one that is lost: what the library says and a node answers."""

import os
import subprocess
import sys

import pytest
from checkout import ROOT

from gpu_planners.device import cuda_problem
from gpu_planners.errors import SettingsError, error_text, is_device_lost, is_out_of_memory

LOST = "[700] Call to cuCtxSynchronize results in CUDA_ERROR_ILLEGAL_ADDRESS"
needs_gpu = pytest.mark.skipif(bool(cuda_problem()), reason=f"no CUDA device: {cuda_problem()}")

ROBOT = """
import numpy as np
from numba import cuda
from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf, rrt_connect
from gpu_planners.errors import error_text, is_device_lost, is_out_of_memory
from gpu_planners.share import share_folder

urdf = share_folder() / "urdf" / "desk_arm"
robot = load_urdf(urdf.with_suffix(".urdf"), urdf.with_suffix(".srdf"))
checker = CollisionChecker(robot, CollisionWorld(), "cuda")
q = np.random.default_rng(0).uniform(robot.lower, robot.upper, (200_000, robot.dof))
few = checker.configurations_valid(q[:1000])
"""
TAKEN = """
free, held = cuda.current_context().get_memory_info().free, []
piece = free
while piece > 1 << 16:
    try:
        held.append(cuda.device_array(piece, np.uint8))
    except Exception:
        piece //= 2
texts = []
for _ in range(3):
    try:
        checker.configurations_valid(np.tile(q, (10, 1)))
    except Exception as error:
        texts.append(error_text(error))
        assert is_out_of_memory(error) and not is_device_lost(error), error
assert texts and all(text.startswith("out of memory: ") for text in texts), texts
assert (checker.configurations_valid(q[:1000]) == few).all()  # what fits is answered
held.clear()
assert (checker.configurations_valid(q)[:1000] == few).all()
print("served", flush=True)
"""
BROKEN = """
@cuda.jit
def wild(out):
    out[(1 << 40) + cuda.grid(1)] = 1.0

try:
    wild[1, 32](cuda.device_array(1, np.float32))
    cuda.synchronize()
except Exception:
    pass
for ask in (
    lambda: checker.configurations_valid(q),
    lambda: checker.motions_valid(q[:9], q[:9]),
    lambda: rrt_connect.solve(q[few.argmax()], q[few.argmax()], checker),
):
    try:
        print("answered", ask())
    except Exception as error:
        assert is_device_lost(error), repr(error)
        assert error_text(error).startswith("the CUDA device is lost to this process"), error_text(error)
other = CollisionChecker(robot, CollisionWorld(), "cpu")
assert (other.configurations_valid(q[:1000]) == few).all()  # the CPU goes on
print("served", flush=True)
"""


def test_losses_are_told_from_other_errors():
    assert is_device_lost(RuntimeError(LOST)) and not is_out_of_memory(RuntimeError(LOST))
    assert error_text(RuntimeError(LOST)) == (
        f"the CUDA device is lost to this process, and only a new one can use it: {LOST}"
    )
    for error in (RuntimeError("[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY"), ValueError("700")):
        assert not is_device_lost(error)
    assert not is_device_lost(SettingsError(f"a name that somebody gave: {LOST}"))


@pytest.mark.gpu
@needs_gpu
@pytest.mark.skipif("PYTEST_XDIST_WORKER" in os.environ, reason="takes the device from tests beside it; run with -n0")
@pytest.mark.parametrize("fault", (TAKEN, BROKEN), ids=("memory", "lost"))
def test_a_process_says_so_and_ends_well(fault):
    """In a process of its own, which a lost device does not keep from ending."""
    run = subprocess.run([sys.executable, "-c", ROBOT + fault], cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert run.returncode == 0 and run.stdout == "served\n", run.stdout + run.stderr


@pytest.mark.parametrize("kind", ("arm", "grid", "fleet"))
def test_nodes_answer_with_a_code_and_tell_of_it(kind, monkeypatch):
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    import fleet_harness
    import grid_harness
    import node_harness
    from geometry_msgs.msg import PoseArray

    from gpu_planners.arm import rrt_connect
    from gpu_planners.fleet import FleetPlanner
    from gpu_planners.grid import BlockPlanner
    from gpu_planners.nodes.arm.codes import COLLISION_CHECKING_UNAVAILABLE
    from gpu_planners.nodes.common.map_codes import NO_DEVICE
    from gpu_planners_msgs.srv import PlanFleet

    starts, goals = (
        [fleet_harness.pose_at(*tile, 0) for tile in tiles] for tiles in (((0, 0), (7, 9)), ((4, 4), (3, 3)))
    )

    harness, (owner, name), request, code = {
        "arm": (node_harness, (rrt_connect, "solve"), node_harness.request(), COLLISION_CHECKING_UNAVAILABLE),
        "grid": (grid_harness, (BlockPlanner, "plan"), grid_harness.request(), NO_DEVICE),
        "fleet": (
            fleet_harness,
            (FleetPlanner, "solve"),
            PlanFleet.Request(starts=PoseArray(poses=starts), goals=PoseArray(poses=goals)),
            NO_DEVICE,
        ),
    }[kind]
    running = harness.RunningNode()
    try:
        running.plan(request)

        def lost(*_, **__):
            raise RuntimeError(LOST)

        monkeypatch.setattr(owner, name, lost)
        response = running.plan(request)
        assert response.code == code and response.message.startswith("the CUDA device is lost"), response.message
        running.wait_until(lambda: LOST in running.problem, 30)
    finally:
        running.close()
