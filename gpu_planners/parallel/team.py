"""How one source runs on a CPU thread and on a team of CUDA warps.

A planner's compiled code is written for *workers*, each of several *lanes*, that share arrays and meet at barriers:

    for item in range(worker.number, batch, worker.count):     # each worker takes its share of a round
        for i in range(worker.lane, n, lane_count()): ...      # its lanes share the work inside
        best, index = least_lane(best, index)                  # every lane gets the answer
    meet(worker)                                               # all workers have written before anybody reads

On CUDA a worker is a warp of 32 lanes and a team is some blocks of one cooperative launch (`team_cuda` defines the
operations there). On the CPU a worker has one lane and is a thread of its own, a member of the team by itself;
exchanges between lanes do nothing there. The work of a round never depends on the number of workers or lanes, so both
give the same answer up to rounding.

A worker that is `late` leaves out the rest of its share and raises a flag in memory. All read it after the next
barrier, so that all stop at the same place; nobody may raise it again before all have read it.
"""

import functools
import os
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from ..device import lean_njit, njit

TURN = -0x80000000  # the bit of a barrier that flips when everybody has arrived
NEVER = (1 << 63) - 1  # a deadline
DAY_MS = 86_400_000  # the longest time limit
HEAR_S = 0.1  # a signal that another thread takes does not wake the one that waits
SPINS = 2000  # looks at a barrier before the thread lets others run


class Worker(NamedTuple):
    """Who runs compiled code: one lane of one worker of a team.

    number, count: of the worker in its team, and how many workers the team has; lane: of the worker
    block, blocks: the CUDA block or CPU thread that the worker belongs to, and how many of them meet at the team's
    barrier
    barrier: int32 array whose first number is the team's barrier, 0 at first; memory: int32 that the team shares. Where
    a team has one array for both, that number is left to the barrier
    """

    number: int
    count: int  # type: ignore[assignment]  # tuples have a method of this name, which nobody calls
    lane: int
    block: int
    blocks: int
    barrier: np.ndarray
    memory: np.ndarray


@njit
def lone_worker():
    """-> a team of one CPU thread."""
    memory = np.zeros(1, dtype=np.int32)
    return Worker(0, 1, 0, 0, 1, memory, memory)


@lean_njit
def meet(worker):
    """Wait for the whole team; what any of its workers wrote before is seen by all afterwards."""
    sync_team(worker.barrier, 0, worker.block, worker.blocks)


def run_team(members, work, stop=None):
    """Call work(member) for each member on a thread of its own, the first one on this thread; work must release the
    GIL.

    stop: for work that may take seconds. This thread then only waits, so that it hears Ctrl-C, and calls stop(), which
        tells the members to end.
    Raises what a member raised, also Ctrl-C, once no member works any more. All run at once, since they may wait for
    each other.
    """
    if members == 1 and not stop:
        work(0)
        return
    with _POOL_LOCK:
        futures: list[Future] = []
        try:
            for member in range(0 if stop else 1, members):
                futures.append(_pool(members).submit(work, member))
            if not stop:
                work(0)
            while stop and wait(futures, HEAR_S).not_done:
                pass
            for future in futures:
                future.result()
        except BaseException:
            if stop:
                stop()
            wait(futures)
            raise


_POOL_LOCK = threading.Lock()


@functools.cache
def _pool(members):
    return ThreadPoolExecutor(members, thread_name_prefix="team")


def _renew_pools():
    """In a forked child: its parent's threads are not there, nor would one of them give back the lock."""
    global _POOL_LOCK
    _POOL_LOCK = threading.Lock()
    _pool.cache_clear()


os.register_at_fork(after_in_child=_renew_pools)


def lane_count():
    """How many lanes a worker has: 1 or 32, a constant of the target."""
    return 1


def lane_range(begin, end, lane):
    """This lane's part of range(begin, end); the CPU's compiler sees that it is all of it."""
    return range(begin, end)


def any_lane(flag):
    """Is the flag true in any lane of the worker?"""
    return flag


def vote_lanes(flag):
    """-> int64, bit i set where the flag is true in lane i of the worker."""
    return int(flag)


def from_lane(value, lane):
    """A float32 or int32 value of another lane of the worker."""
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


def raise_to(N, i, value):
    """N[i] = max(N[i], value), also where several workers do it at once; -> what it was before. N: int32"""
    N[i], before = max(N[i], value), N[i]
    return before


def join_bits(bits):
    """-> uint32, the bits of all lanes of the worker; on CUDA lane i may set bit i only."""
    return bits


def clock_ns():
    """Nanoseconds since some moment."""
    return time.monotonic_ns()


def left_ms(deadline):
    """Milliseconds until clock_ns() reaches the deadline, for `deadline_in` on a device with another clock; a day at
    most."""
    return min(max(-((clock_ns() - deadline) // 1_000_000), 0), DAY_MS)


@lean_njit
def deadline_in(left_ms):
    """What clock_ns() will be in `left_ms` milliseconds."""
    return clock_ns() + 1_000_000 * left_ms


@lean_njit
def late(deadline):
    """Has the deadline passed? All lanes of the worker get the same answer; another worker may get another one."""
    return any_lane(clock_ns() > deadline)


def peek(N, i):
    """N[i] as it is now, though another worker may be writing it. N: int32"""
    return N[i]


def borrowed(value):
    """Lend an array, or a tuple of arrays, that the caller keeps alive: on the CPU, compiled code counts no references
    to what this returns.

    Without it, each call that takes a record of many arrays would count all of them, one atomic operation each.
    """
    return value


def sync_lanes():
    """What the lanes of the worker have written is seen by all of them."""


def sync_team(N, at, member, members):
    """Wait for all of the team's `members` blocks; what any of them wrote before is seen by all afterwards.

    N: int32 array whose entry `at` is the team's barrier, 0 at first; member: this block's number in the team
    """


@overload(lane_count, target="cpu")
def _lane_count():
    return lambda: 1


@overload(lane_range, target="cpu")
def _lane_range(begin, end, lane):
    return lambda begin, end, lane: range(begin, end)


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


def _atomic(operation):
    @intrinsic
    def change(context, N, i, value):
        def build(context, builder, signature, arguments):
            array, index, amount = arguments
            struct = context.make_array(signature.args[0])(context, builder, value=array)
            at = cgutils.get_item_pointer(context, builder, signature.args[0], struct, [index], wraparound=False)
            return builder.atomic_rmw(operation, at, amount, "seq_cst")

        return types.int32(N, types.intp, types.int32), build

    return change


_atomic_add, _atomic_max = _atomic("add"), _atomic("max")
_sched_yield = types.ExternalFunction("sched_yield", types.int32())


@overload(add, target="cpu")
def _add(N, i, value):
    return lambda N, i, value: _atomic_add(N, i, np.int32(value))


@overload(raise_to, target="cpu")
def _raise_to(N, i, value):
    return lambda N, i, value: _atomic_max(N, i, np.int32(value))


@overload(join_bits, target="cpu")
def _join_bits(bits):
    return lambda bits: np.uint32(bits)


@intrinsic
def _monotonic_ns(context):
    def read(context, builder, signature, arguments):
        word, wide = ir.IntType(32), ir.IntType(64)
        timespec = cgutils.alloca_once(builder, ir.ArrayType(wide, 2))
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(word, [word, timespec.type]), "clock_gettime"
        )
        builder.call(function, [ir.Constant(word, time.CLOCK_MONOTONIC), timespec])
        seconds, nanoseconds = (builder.extract_value(builder.load(timespec), k) for k in range(2))
        return builder.add(builder.mul(seconds, ir.Constant(wide, 10**9)), nanoseconds)

    return types.int64(), read


@overload(clock_ns, target="cpu")
def _clock_ns():
    return lambda: _monotonic_ns()


def _without_owner(context, builder, kind, value):
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value=value)
        array.meminfo, array.parent = (cgutils.get_null_value(owner.type) for owner in (array.meminfo, array.parent))
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        for i, item in enumerate(kind):
            part = _without_owner(context, builder, item, builder.extract_value(value, i))
            value = builder.insert_value(value, part, i)
    return value


@intrinsic
def _borrowed_on_cpu(context, value):
    def build(context, builder, signature, arguments):
        return _without_owner(context, builder, value, arguments[0])

    return value(value), build


@overload(borrowed, target="cpu")
def _borrowed(value):
    return lambda value: _borrowed_on_cpu(value)


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
    def sync(N, at, member, members):
        if members > 1:
            arrive = 1 if member > 0 else TURN - (members - 1)
            old = _atomic_add(N, at, np.int32(arrive))
            spins = 0
            while ((old ^ _atomic_add(N, at, np.int32(0))) & TURN) == 0:
                spins += 1
                if spins > SPINS:
                    _sched_yield()

    return sync
