"""mpi4py, which is optional: it is imported, and starts MPI, when ranks are first made."""

import atexit
import faulthandler
import functools
import os
import sys
import threading
import time
from types import ModuleType

from ..errors import RanksError, shortened

SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")  # what launchers set
BEFORE_ABORT_S = 2.0  # for the other ranks to print their errors

unclean: set[int] = set()  # numbers in COMM_WORLD of processes that MPI_Finalize may wait for for ever


def launched() -> tuple[int, str]:
    """How many processes a launcher has started, and the variable that says so; 1 and "" without a launcher."""
    for name in SIZES:  # Slurm's last: inside mpirun it counts mpirun's own processes
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name]), name
    return 1, ""


def load(timeout_s: float = 600.0) -> ModuleType:
    """-> mpi4py.MPI, started.

    timeout_s: how long to wait until all processes start MPI. A process that has waited so long ends with a traceback
        to here, since Python can raise no error while MPI waits, and mpirun ends the others

    Raises RanksError without mpi4py or an MPI, and where MPI is not the launcher's: then every process believes that
    it is alone.
    """
    faulthandler.dump_traceback_later(min(timeout_s, threading.TIMEOUT_MAX), exit=True, file=2)
    try:
        mpi = _started_by_all_processes()
    finally:
        faulthandler.cancel_dump_traceback_later()
    if launched()[0] > 1 and mpi.COMM_WORLD.Get_size() == 1:
        raise _other_mpi(mpi)
    return mpi


def _other_mpi(mpi):
    count, name = launched()
    library = " ".join(mpi.Get_library_version().strip("\0").splitlines()[0].partition(",")[0].split())
    return RanksError(
        f"mpirun has started {count} processes ({name}), but mpi4py uses another MPI, {library}, in which each of them "
        "is alone. Use the mpirun that came with that MPI; the extra `mpi` puts it beside python"
    )


@functools.cache
def _started_by_all_processes():
    try:
        import mpi4py

        mpi4py.rc.initialize, mpi4py.rc.finalize = False, True
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py finds no MPI library
        raise RanksError(
            f"ranks need mpi4py and an MPI: {shortened(error)}. The extra `mpi` of gpu_planners brings both, "
            "beside a cluster's own MPI mpi4py is enough"
        ) from error
    if launched()[1] == SIZES[0] and "PMI_SIZE" not in os.environ and MPI.Get_library_version().startswith("MPICH"):
        raise _other_mpi(MPI)  # MPICH would end the process, and say something about PMIx
    if not MPI.Is_initialized():
        MPI.Init_thread()
    atexit.register(_abort_if_unclean, MPI)
    return MPI


def _abort_if_unclean(mpi):
    """Abort where ranks have failed: MPI_Finalize, which mpi4py calls next, would wait for one that hangs."""
    if unclean and not mpi.Is_finalized():
        sys.stdout.flush()
        sys.stderr.flush()
        time.sleep(BEFORE_ABORT_S)
        mpi.COMM_WORLD.Abort(1)
