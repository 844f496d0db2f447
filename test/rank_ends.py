"""What a rank does in test_ranks.py that ends the whole program: the last rank ends by the way that is named."""

import os
import signal
import sys
import time

from gpu_planners.distributed import Ranks

with Ranks(timeout_s=60.0) as ranks:
    ranks.timeout_s = 1.0
    if ranks.rank == ranks.size - 1:
        if sys.argv[1] == "raises":
            raise MemoryError("the device is full")
        if sys.argv[1] == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if sys.argv[1] == "hangs":
            time.sleep(600)
    ranks.all_gather(0)
