"""What a rank does in test_ranks.py that ends the whole program: the last rank ends by the way that is named."""

import os
import signal
import sys
import time

from gpu_planners.distributed import Ranks, mpi
from gpu_planners.errors import RanksError

HOW = sys.argv[1]
if HOW == "starts no MPI":
    number, count = (int(os.environ.get(f"PMI_{x}", os.environ.get(f"OMPI_COMM_WORLD_{x}"))) for x in ("RANK", "SIZE"))
    if number == count - 1:
        sys.exit("no such file: robot.urdf")
    mpi.load(timeout_s=2.0)

with Ranks(timeout_s=60.0) as ranks:
    ranks.timeout_s = 1.0
    if ranks.rank == ranks.size - 1:
        if HOW == "raises":
            raise MemoryError("the device is full")
        if HOW == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if HOW == "hangs":
            time.sleep(600)
    try:
        ranks.all_gather(0)
    except RanksError:
        with Ranks(mpi.load().COMM_SELF) as alone:  # that it ends well says nothing of the other ranks
            alone.all_gather(0)
        raise
