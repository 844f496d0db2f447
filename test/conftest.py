"""How the tests run: one after the other, or by several workers of pytest-xdist, as `make test` has them.

Workers share the machine, its cache of compiled code and its network, so each takes ROS domains of its own, and threads
that wait let others run. From a cold cache the first tests of a kind compile for minutes. Tests that plan for arms come
first, those of grids from the middle on, and the others fill both halves: two workers, who each begin with one half of
the tests, then compile different code.
"""

import fcntl
import importlib.util
import os
import re
import sys
import tempfile
from enum import Enum
from functools import cache
from pathlib import Path

import pytest

# What a test file says that compiles what arms need.
ARMS = (
    r"CollisionChecker|gpu_planners\.arm\.(planners|collision|spaces)|arm_checks|(node|move)_harness|robots_at_hand|"
    r"arm_planner|soundness|README"
)
ROS = (
    r"(?m)^ *(from|import) (rclpy|running_node|(node|grid|fleet|move)_harness|gpu_planners\.nodes|gpu_planners_msgs)\b"
)
OPTIONAL = {  # modules that not every machine has: what brings them; the first that matches
    r"gpu_planners_msgs": "it is built by make setup or colcon",
    r"(control|map|moveit|nav2|octomap)_msgs|launch(_\w+)?|tf2_\w+": "it comes with a ROS installation",
    r"rclpy|ament_index_python|\w+_(msgs|srvs|interfaces)": "it comes with ROS 2 or the extra `ros`",
    r"coal|hypothesis|pinocchio": "it comes with the extra `test`",
    r"dask|distributed": "it comes with the extra `dask`",
    r"matplotlib|viser": "it comes with the extra `view`",
    r"mpi4py": "it comes with the extra `mpi`",
    r"mujoco": "it comes with the extra `sim`",
    r"numba_cuda": "it comes with the extra `gpu`",
    r"ompl|skimage|toppra|tqdm": "it comes with the extra `bench`",
    r"pyarrow": "it comes with the extra `dataset`",
}
MOST_WORKERS = 8
DOMAINS = 6  # of each worker: the first for what it starts as a process, the others for nodes that it runs itself
BLOCKS = 16  # of so many domains: 1 to 100 is what DDS has ports for on any system

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `benchmarks` and `soundness`, wherever pytest starts


def _share_the_machine():
    """To be set before NumPy, Numba and rclpy are imported; processes that tests start inherit it."""
    if os.environ.get("PYTEST_XDIST_WORKER"):
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ["ROS_DOMAIN_ID"] = str(1 + DOMAINS * _free_block())


_locks = []


def _free_block():
    """A block of ROS domains that no other test process of this machine has, as long as this one lives."""
    for block in range(BLOCKS):
        path = Path(tempfile.gettempdir()) / f"gpu_planners_ros_domains_{block}.lock"
        try:
            lock = open(path, "a")  # noqa: SIM115  # for as long as the process lives
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # another process has it, or it is another user's
            continue
        _locks.append(lock)
        return block
    return os.getpid() % BLOCKS  # more processes than domains: nodes find each other, and some tests may fail


_share_the_machine()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """`-n auto`: a worker for each core; none, which is no xdist, where there is one core."""
    cores = len(os.sched_getaffinity(0))
    return min(cores, MOST_WORKERS) if cores > 1 else 0


def pytest_pycollect_makemodule(module_path, parent):
    return TestFile.from_parent(parent, path=module_path)


class TestFile(pytest.Module):
    """A test file. One that an optional package is missing for is skipped, whichever of its imports finds that out."""

    def collect(self):
        try:
            return super().collect()
        except self.CollectError as error:
            name = (getattr(error.__cause__, "name", None) or "").split(".")[0]
            brings = next((text for words, text in OPTIONAL.items() if re.fullmatch(words, name)), None)
            if brings is None or not _absent(name):
                raise
            pytest.skip(f"{name} is not installed: {brings}", allow_module_level=True)


def _absent(module):
    """Can a module not be imported, or only as the folder of that name in the checkout?"""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return True
    return spec is None or spec.origin is None


def pytest_itemcollected(item):
    """Mark as `ros` what imports it."""
    if re.search(ROS, _text(item.path)):
        item.add_marker("ros")


@pytest.hookimpl(trylast=True)  # when -m and -k have left out what they do
def pytest_collection_modifyitems(items):
    arms, grids, others = ([item for item in items if _subject(item.path) == subject] for subject in Subject)
    fill = max(0, (len(items) + 1) // 2 - len(arms))
    items[:] = [*arms, *others[:fill], *grids, *others[fill:]]


class Subject(Enum):
    """What the compiled code of a test file is for."""

    ARMS, GRIDS, OTHERS = range(3)


@cache
def _text(file):
    return file.read_text()


@cache
def _subject(file):
    arms, grids = (re.search(words, _text(file)) for words in (ARMS, r"gpu_planners\.grid"))
    return Subject.ARMS if arms else Subject.GRIDS if grids else Subject.OTHERS
