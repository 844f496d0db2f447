"""The operations of `team` on CUDA: importing this module gives them to kernels. A worker is a warp."""

import numpy as np
from llvmlite import ir
from numba import cuda, types
from numba.cuda.extending import intrinsic, overload

from .team import (
    TURN,
    add,
    any_lane,
    clock_ns,
    from_lane,
    greatest_lane,
    join_bits,
    lane_count,
    lane_range,
    least_lane,
    lower,
    peek,
    raise_to,
    rank_lanes,
    sum_lanes,
    sync_lanes,
    sync_team,
    vote_lanes,
)

WARP = 32
ALL = np.uint32(0xFFFFFFFF)


def team_blocks(kernel, threads, most):
    """How many blocks, at most `most`, a launch may have whose blocks wait for each other: those that run at once.

    Before the kernel's first launch, when that is not known, one.
    """
    return (
        max(1, min([most, *(compiled.max_cooperative_grid_blocks(threads) for compiled in kernel.overloads.values())]))
        if kernel.overloads
        else 1
    )


@overload(lane_count, target="cuda")
def _lane_count():
    return lambda: WARP


@overload(lane_range, target="cuda")
def _lane_range(begin, end, lane):
    return lambda begin, end, lane: range(begin + lane, end, WARP)


@overload(vote_lanes, target="cuda")
def _vote_lanes(flag):
    return lambda flag: np.int64(cuda.ballot_sync(ALL, flag)) & np.int64(0xFFFFFFFF)


@overload(from_lane, target="cuda")
def _from_lane(value, lane):
    return lambda value, lane: cuda.shfl_sync(ALL, value, lane)


@overload(rank_lanes, target="cuda")
def _rank_lanes(flag):
    def rank(flag):
        votes = cuda.ballot_sync(ALL, flag)
        return cuda.popc(votes & cuda.lanemask_lt()), cuda.popc(votes)

    return rank


@overload(greatest_lane, target="cuda")
def _greatest_lane(value):
    def greatest(value):
        for offset in (16, 8, 4, 2, 1):
            value = max(value, cuda.shfl_xor_sync(ALL, value, offset))
        return value

    return greatest


@overload(lower, target="cuda")
def _lower(A, i, value):
    def implementation(A, i, value):
        cuda.atomic.min(A, i, value)

    return implementation


@overload(add, target="cuda")
def _add(N, i, value):
    def implementation(N, i, value):
        return cuda.atomic.add(N, i, np.int32(value))

    return implementation


@overload(raise_to, target="cuda")
def _raise_to(N, i, value):
    return lambda N, i, value: cuda.atomic.max(N, i, np.int32(value))


@overload(join_bits, target="cuda")
def _join_bits(bits):
    return lambda bits: np.uint32(cuda.ballot_sync(ALL, bits != 0))


@intrinsic
def _global_timer(context):
    def read(context, builder, signature, arguments):
        wide = ir.IntType(64)
        return builder.call(
            ir.InlineAsm(ir.FunctionType(wide, []), "mov.u64 $0, %globaltimer;", "=l", side_effect=True), []
        )

    return types.int64(), read


@overload(clock_ns, target="cuda")
def _clock_ns():
    return lambda: _global_timer()


@overload(peek, target="cuda")
def _peek(N, i):
    return lambda N, i: cuda.atomic.add(N, i, np.int32(0))  # as in sync_team


@overload(any_lane, target="cuda")
def _any_lane(flag):
    return lambda flag: cuda.any_sync(ALL, flag)


@overload(least_lane, target="cuda")
def _least_lane(value, index):
    def least(value, index):
        for offset in (16, 8, 4, 2, 1):
            other, at = cuda.shfl_xor_sync(ALL, value, offset), cuda.shfl_xor_sync(ALL, index, offset)
            if other < value or (other == value and at < index):
                value, index = other, at
        return value, index

    return least


@overload(sum_lanes, target="cuda")
def _sum_lanes(value):
    def total(value):
        for offset in (16, 8, 4, 2, 1):
            value += cuda.shfl_xor_sync(ALL, value, offset)
        return value

    return total


@overload(sync_lanes, target="cuda")
def _sync_lanes():
    return lambda: cuda.syncwarp()


@overload(sync_team, target="cuda")
def _sync_team(N, at, member, members):
    def sync(N, at, member, members):
        cuda.syncthreads()
        if members > 1 and cuda.threadIdx.x == 0:
            cuda.threadfence()
            arrive = 1 if member > 0 else TURN - (members - 1)
            old = cuda.atomic.add(N, at, np.int32(arrive))
            while (
                (old ^ cuda.atomic.add(N, at, np.int32(0))) & TURN
            ) == 0:  # an atomic: numba lets LLVM move a volatile load
                pass
            cuda.threadfence()
        cuda.syncthreads()

    return sync
