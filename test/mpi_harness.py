"""Programs as ranks of MPI, on this machine's CPU, with a time limit."""

import functools
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# More ranks than cores, on any core, and as root, for whichever MPI mpirun is of; threads that wait let others run.
ALLOWED = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "OMP_WAIT_POLICY": "PASSIVE",
}


@functools.cache
def no_mpi():
    """Why there are no ranks here, or ""."""
    if importlib.util.find_spec("mpi4py") is None:
        return "mpi4py is not installed (extra `mpi`)"
    if not _mpirun():
        return "there is no mpirun (extra `mpi`)"
    one = subprocess.run([sys.executable, "-c", "from mpi4py import MPI"], capture_output=True, text=True, timeout=60)
    return "" if one.returncode == 0 else f"MPI does not start: {one.stderr.strip()[-200:]}"


def _mpirun():
    beside = Path(sys.executable).parent / "mpirun"
    return str(beside) if beside.exists() else shutil.which("mpirun")


def mpirun(size, *command, timeout_s=120, **environment):
    """-> (exit code, stdout, stderr) of `size` ranks of python with these arguments.

    Skips the test where there is no MPI; fails it when the ranks do not end in `timeout_s`.
    """
    if no_mpi():
        pytest.skip(no_mpi())
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    process = subprocess.Popen(
        [_mpirun(), "-n", str(size), sys.executable, *map(str, command)],
        env={**os.environ, **ALLOWED, "PYTHONPATH": path, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.terminate()  # mpirun ends its ranks
        try:
            out, err = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
        pytest.fail(f"{size} ranks of {command} did not end in {timeout_s} s:\n{out}\n{err}")
    return process.returncode, out, err
