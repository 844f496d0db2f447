"""A wheel that is made on a machine with a GPU brings the kernels of robots of all sizes. It takes five minutes."""

import os
import subprocess
import sys
import zipfile

import pytest
from checkout import ROOT

from gpu_planners.arm.collision.scratch import SIZES
from gpu_planners.device import cuda_problem

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.skipif(bool(cuda_problem()), reason=f"no CUDA device: {cuda_problem()}"),
]

# Plans for a robot in a process that has nothing compiled, and prints its kernels' size and what it had to compile.
PLANNING = """
import sys
import numpy as np
from gpu_planners import code_cache
from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf, rrt_connect

asked, missing = code_cache._Cache.load_overload, []

def load_overload(cache, signature, context):
    found = asked(cache, signature, context)
    if found is None and "cuda" in type(context).__module__:
        missing.append(cache._dispatcher.py_func.__name__)
    return found

code_cache._Cache.load_overload = load_overload
robot = load_urdf(sys.argv[1])
checker = CollisionChecker(robot, CollisionWorld(), "cuda").of_size(int(sys.argv[2]))
q = 0.1 * np.random.default_rng(0).uniform(robot.lower, robot.upper, (99, robot.dof))
q = q[checker.configurations_valid(q)]
checker.motions_valid(q[1:], q[:-1])
assert rrt_connect.solve(q[0], q[1], checker).solved
print(*checker.scratch_sizes[1:3], *missing)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Where a wheel with the arm's code lies unpacked."""
    before = set((ROOT / "dist").glob("*.whl"))
    made = subprocess.run([sys.executable, ROOT / "tools" / "make_wheel.py", "--for", "arm"], cwd=ROOT, timeout=1200)
    assert made.returncode == 0
    wheels = sorted((ROOT / "dist").glob("gpu_planners-*.whl"), key=os.path.getmtime)
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheels[-1]) as wheel:
        wheel.extractall(folder)
    if wheels[-1] not in before:
        wheels[-1].unlink()
    return folder


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("size", range(len(SIZES)))
def test_robots_of_all_sizes_plan_with_what_a_wheel_brings(installed, tmp_path, size):
    others = [path for path in sys.path if path and path != str(ROOT)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(installed), *others])}
    environment |= {"XDG_CACHE_HOME": str(tmp_path), "GPU_PLANNERS_BESIDE": "0"}
    environment.pop("NUMBA_CACHE_DIR", None)
    asked = [sys.executable, "-c", PLANNING, str(ROOT / "urdf" / "desk_arm.urdf"), str(size)]
    run = subprocess.run(asked, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == [str(n) for n in SIZES[size][:2]]
