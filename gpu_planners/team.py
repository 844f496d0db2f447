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


def lane_count():
    """How many lanes a worker has: 1 or 32, a constant of the target."""
    return 1


def any_lane(flag):
    """Is the flag true in any lane of the worker?"""
    return flag


def vote_lanes(flag):
    """-> int64, bit i set where the flag is true in lane i of the worker."""
    return int(flag)


def from_lane(value, lane):
    """A float32 value of another lane of the worker."""
    return value


def rank_lanes(flag):
    """-> how many of the lanes before this one have the flag, and how many of all."""
    return 0, int(flag)


def greatest_lane(value):
    """The greatest float32 value of the worker's lanes."""
    return value


def least_lane(value, index):
    """-> the least float32 value of the worker's lanes, and its index; the lower index where values are equal."""
    return value, index


def sum_lanes(value):
    """Sum of an int32 over the lanes of the worker."""
    return value


def lower(A, i, value):
    """A[i] = min(A[i], value), also where several lanes do it at once. A: float32"""
    A[i] = min(A[i], value)


def add(N, i, value):
    """N[i] += value, also where several workers do it at once; -> what it was before. N: int32"""
    N[i] += value
    return N[i] - value


def clock_ns():
    """Nanoseconds since some moment, on CUDA; 0 on the CPU, where the caller of compiled code looks at the time."""
    return 0


def peek(N, i):
    """N[i] as it is now, though another worker may be writing it. N: int32"""
    return N[i]


def sync_lanes():
    """What the lanes of the worker have written is seen by all of them."""


def sync_team(N, at, member, members):
    """Wait for all of the team's `members` blocks; what any of them wrote before is seen by all afterwards.

    N: int32 array whose entry `at` is the team's barrier, 0 at first; member: this block's number in the team
    """


@overload(lane_count, target="cpu")
def _lane_count():
    return lambda: 1


@overload(vote_lanes, target="cpu")
def _vote_lanes(flag):
    return lambda flag: 1 if flag else 0


@overload(from_lane, target="cpu")
def _from_lane(value, lane):
    return lambda value, lane: value


@overload(rank_lanes, target="cpu")
def _rank_lanes(flag):
    return lambda flag: (0, 1 if flag else 0)


@overload(greatest_lane, target="cpu")
def _greatest_lane(value):
    return lambda value: value


@overload(lower, target="cpu")
def _lower(A, i, value):
    def implementation(A, i, value):
        A[i] = min(A[i], value)

    return implementation


@overload(add, target="cpu")
def _add(N, i, value):
    def implementation(N, i, value):
        N[i] += value
        return N[i] - value

    return implementation


@overload(clock_ns, target="cpu")
def _clock_ns():
    return lambda: 0


@overload(peek, target="cpu")
def _peek(N, i):
    return lambda N, i: N[i]


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
