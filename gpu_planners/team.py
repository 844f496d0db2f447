"""How one source runs on a CPU thread and on a team of CUDA warps.

A planner's compiled code is written for *workers*, each of several *lanes*, that share arrays and meet at barriers:

    for w in range(worker, batch, workers):        # each worker takes its share of a round
        for i in range(lane, n, lanes): ...        # its lanes share the work inside
        best, index = least_lane(best, index)      # every lane gets the answer
    sync_team(N, at, member, members)              # all workers have written before anybody reads

On CUDA a worker is a warp of 32 lanes and a team is some blocks of one cooperative launch (`team_kernels` defines the
operations there). On the CPU there is one worker with one lane, and the operations below do nothing. The work of a
round never depends on the number of workers or lanes, so both give the same answer up to rounding.
"""

from numba.extending import overload


def any_lane(flag):
    """Is the flag true in any lane of the worker?"""
    return flag


def least_lane(value, index):
    """-> the least float32 value of the worker's lanes, and its index; the lower index where values are equal."""
    return value, index


def sum_lanes(value):
    """Sum of an int32 over the lanes of the worker."""
    return value


def sync_lanes():
    """What the lanes of the worker have written is seen by all of them."""


def sync_team(N, at, member, members):
    """Wait for all of the team's `members` blocks; what any of them wrote before is seen by all afterwards.

    N: int32 array whose entry `at` is the team's barrier, 0 at first; member: this block's number in the team
    """


@overload(any_lane, target="cpu")
def _any_lane(flag):
    return lambda flag: flag


@overload(least_lane, target="cpu")
def _least_lane(value, index):
    return lambda value, index: (value, index)


@overload(sum_lanes, target="cpu")
def _sum_lanes(value):
    return lambda value: value


@overload(sync_lanes, target="cpu")
def _sync_lanes():
    return lambda: None


@overload(sync_team, target="cpu")
def _sync_team(N, at, member, members):
    return lambda N, at, member, members: None
