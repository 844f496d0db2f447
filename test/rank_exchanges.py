"""What a rank does in test_ranks.py: exchanges, and every fault that a process survives. Each rank prints its JSON."""

import json
import sys
import time

import numpy as np
from mpi4py import MPI

from gpu_planners.distributed import Ranks
from gpu_planners.errors import GpuPlannersError


def exchanges(ranks):
    """Values of every length come back by rank; neighbours swap arrays of any type."""
    right = True
    for length in (0, 1, 900, 1015, 1016, 5000, 300_000):
        values = [(rank, "x" * length * (rank % 2), np.arange(length)) for rank in range(ranks.size)]
        for value, expected in zip(ranks.all_gather(values[ranks.rank]), values, strict=True):
            right &= value[:2] == expected[:2] and bool((value[2] == expected[2]).all())
    for kind in (np.uint8, np.float64, np.uint16):
        for shape in ((3,), (1000, 70)):
            near = [rank for rank in (ranks.rank - 1, ranks.rank + 1) if 0 <= rank < ranks.size]
            arrays = {rank: (np.full(shape, 1 + ranks.rank, kind)[::-1], np.zeros(shape, kind)) for rank in near}
            ranks.swap(arrays)
            right &= all(bool((received == 1 + rank).all()) for rank, (_, received) in arrays.items())
    return right


def refused(ranks):
    """-> errors of what is no communicator, and of ranks that have ended."""
    freed, world = MPI.COMM_SELF.Dup(), MPI.COMM_WORLD
    freed.Free()
    half = world.Split(ranks.rank % 2)
    wrong = [MPI.COMM_NULL, freed, 5, half.Create_intercomm(0, world, 1 - ranks.rank % 2)]
    with Ranks(MPI.COMM_SELF) as ended:
        assert ended.size == 1 and exchanges(ended)
    calls = [lambda given=given: Ranks(given) for given in wrong]
    return [error_of(call) for call in (*calls, lambda: ended.all_gather(0), lambda: ended.swap({}), ended.__enter__)]


def error_of(call):
    try:
        return f"no error: {call()}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def raises(ranks, last):
    if last:
        raise ValueError("the device is full")
    ranks.all_gather(1)


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def raises_without_text(ranks, last):
    if last:
        raise Mute
    ranks.all_gather(1)


def raises_while_others_swap(ranks, last):
    if last:
        raise KeyError("between two exchanges")
    ranks.swap({ranks.size - 1: (np.zeros(9), np.zeros(9))})


def cannot_be_sent(ranks, last):
    ranks.all_gather((lambda: 0) if last else 0)


def leaves(ranks, last):
    if not last:
        ranks.all_gather(1)


def hangs(ranks, last):
    ranks.timeout_s = 1.0
    if last:
        time.sleep(4)
    ranks.all_gather(1)


def waits_for_something_else(ranks, last):
    ranks.timeout_s = 1.0
    if last:
        ranks.swap({0: (np.zeros(1), np.zeros(1))})
    else:
        ranks.all_gather(1)


def more_than_is_taken(ranks, last):
    if last:
        ranks.swap({0: (np.zeros(2), np.zeros(2))})
    elif ranks.rank == 0:
        ranks.swap({ranks.size - 1: (np.zeros(2), np.zeros(1))})
    ranks.all_gather(1)


def less_than_is_taken(ranks, last):
    if last:
        ranks.swap({0: (np.zeros(1), np.zeros(2))})
    elif ranks.rank == 0:
        ranks.swap({ranks.size - 1: (np.zeros(2), np.zeros(2))})
    ranks.all_gather(1)


def goes_on_after_a_fault(ranks, last):
    try:
        raises(ranks, last)
    except ValueError:
        ranks.__exit__(ValueError, ValueError("told"), None)
    except GpuPlannersError:
        pass
    ranks.all_gather(1)


FAULTS = (
    raises,
    raises_without_text,
    raises_while_others_swap,
    cannot_be_sent,
    leaves,
    hangs,
    waits_for_something_else,
    more_than_is_taken,
    less_than_is_taken,
    goes_on_after_a_fault,
)


def main():
    with Ranks() as ranks:
        found = {"rank": ranks.rank, "size": ranks.size, "local": ranks.local_rank, "device": ranks.device()}
        found["exchanges"], found["refused"] = exchanges(ranks), refused(ranks)
    for fault in FAULTS:
        began = time.monotonic()
        try:
            with Ranks(timeout_s=60.0) as ranks:
                fault(ranks, ranks.rank == ranks.size - 1)
            found[fault.__name__] = "no error"
        except Mute:
            found[fault.__name__] = "Mute"
        except Exception as error:
            found[fault.__name__] = f"{type(error).__name__}: {error}"
        found[f"{fault.__name__} took"] = time.monotonic() - began
    with Ranks() as ranks:  # the processes can still work together, so that they end as if nothing had happened
        for line in ranks.all_gather(json.dumps(found)):
            if ranks.rank == 0:
                print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
