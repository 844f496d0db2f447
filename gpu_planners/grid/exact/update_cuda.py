"""CUDA: the kernel that makes and repairs fields (`rounds`), in one cooperative launch."""

import functools

from numba import cuda, int32, int64, uint8, uint32
from numba.cuda.extending import overload

from ...device import cuda_jit, njit
from ...parallel.team import Worker, least_lane, sync_lanes
from ...parallel.team_cuda import ALL, WARP
from ..paths import EAST, NORTH, SOUTH, WEST
from . import operations
from .bits import UNREACHED, BitField, Wave, spread
from .blocks import BITS, VALUES, kind_of, size_of
from .rounds import Work, update_fields
from .values import Tiles, ValueField

WARPS_OF = {BITS: 12, VALUES: 4}  # of a CUDA block, one to a block of the map; shared memory bounds those of VALUES
BLOCKS_OF = {BITS: 1, VALUES: 2}  # on each multiprocessor: few, since they wait for each other once a round
MULTIPROCESSOR_REGISTERS = 65536  # of a multiprocessor
LEVELS = 4  # of a wave, between two looks whether it has died out
operations.choose(overload, "cuda")


@overload(spread, target="cuda")
def _spread(level, wave, out, lane):
    return lambda level, wave, out, lane: _spread_on_warp(level, wave, lane)


@njit
def _spread_on_warp(level, wave, lane):
    """`bits.spread` by a warp: a row to a lane, all in registers; rows reach each other by shuffles."""
    last = size_of(wave.kind) - 1
    one, everywhere = uint32(1), uint32(0xFFFFFFFF)
    row = min(lane, last)
    bit, edge = uint32(one << uint32(row)), uint32(one << uint32(last))
    own = everywhere if lane <= last else uint32(0)
    open_, bit1 = uint32(wave.open[row] & own), uint32(wave.bit_1[row] & own)
    front = uint32(wave.front[1, row + 1] & own)
    far = int32(UNREACHED)
    north = wave.arrive[NORTH, row] if lane <= last else far
    east = wave.arrive[EAST, row] if lane <= last else far
    south = wave.arrive[SOUTH, row] if lane <= last else far
    west = wave.arrive[WEST, row] if lane <= last else far
    d_north, d_east = wave.dist[NORTH, row], wave.dist[EAST, row]
    d_south, d_west = wave.dist[SOUTH, row], wave.dist[WEST, row]
    now = int32(level)
    while now < far:
        alive = True
        while alive:
            for _ in range(LEVELS):
                from_north, from_south = cuda.ballot_sync(ALL, north == now), cuda.ballot_sync(ALL, south == now)
                up = uint32(cuda.shfl_up_sync(ALL, int32(front), 1))
                down = uint32(cuda.shfl_down_sync(ALL, int32(front), 1))
                if lane == 0:
                    up = uint32(from_north)
                if lane == last:
                    down = uint32(from_south)
                new = (front << one) | (front >> one) | up | down
                if west == now:
                    new |= one
                if east == now:
                    new |= edge
                front = uint32(new & open_)
                open_ = uint32(open_ ^ front)
                if now & int32(2):
                    bit1 = uint32(bit1 | front)
                top = uint32(cuda.shfl_sync(ALL, int32(front), 0))
                bottom = uint32(cuda.shfl_sync(ALL, int32(front), last))
                if uint32(top & bit):
                    d_north = now
                if uint32(bottom & bit):
                    d_south = now
                if front & one:
                    d_west = now
                if uint32(front & edge):
                    d_east = now
                now = int32(now + int32(1))
            alive = cuda.any_sync(ALL, front != uint32(0))
        now = _next_on_warp(now, row, last, open_, (north, east, south, west))
    if lane <= last:
        wave.open[row], wave.bit_1[row] = open_, bit1
        wave.dist[NORTH, row], wave.dist[EAST, row] = d_north, d_east
        wave.dist[SOUTH, row], wave.dist[WEST, row] = d_south, d_west
    sync_lanes()


@njit
def _next_on_warp(now, row, last, open_, arrivals):
    """-> when the wave, which has died out, next arrives at a tile that is still open"""
    north, east, south, west = arrivals
    one, least = uint32(1), int32(UNREACHED)
    top, bottom = uint32(cuda.shfl_sync(ALL, int32(open_), 0)), uint32(cuda.shfl_sync(ALL, int32(open_), last))
    if north >= now and (top >> uint32(row)) & one:
        least = min(least, north)
    if south >= now and (bottom >> uint32(row)) & one:
        least = min(least, south)
    if west >= now and open_ & one:
        least = min(least, west)
    if east >= now and (open_ >> uint32(last)) & one:
        least = min(least, east)
    return int32(least_lane(least, least)[0])


@functools.cache
def update_kernel(layout, size, connectivity):
    """The kernel for fields of a layout. Its array arguments: the map's, those of `FieldShape.field_shapes`, a packed
    request, the team's memory."""
    kind, warps = kind_of(size, connectivity), WARPS_OF[layout]
    wide, pitch = size + 2, size + 3  # pitch: the values of a column lie in more banks of shared memory

    @cuda_jit(max_registers=min(255, MULTIPROCESSOR_REGISTERS // (WARP * warps * BLOCKS_OF[layout]) // 8 * 8))
    def update(width, blocks, map_array, values, edge, directions, goals, numbers, queue, memory):
        warp, lane = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP
        if layout == BITS:
            field = BitField(kind, width, blocks, map_array, values, edge, directions)
            scratch = Wave(
                kind,
                cuda.shared.array((warps, 2, wide), uint32)[warp],
                cuda.shared.array((warps, size), uint32)[warp],
                cuda.shared.array((warps, size), uint32)[warp],
                cuda.shared.array((warps, 1, 4), uint32)[warp],  # only the CPU sorts arrivals
                cuda.shared.array((warps, 4, size), int32)[warp],
                cuda.shared.array((warps, 4, size), int32)[warp],
            )
            if lane == 0:
                for k in range(2):
                    scratch.front[k, 0] = uint32(0)
                    scratch.front[k, wide - 1] = uint32(0)
        else:
            field = ValueField(kind, width, blocks, map_array, values, directions)
            scratch = Tiles(
                kind,
                cuda.shared.array((warps, wide, pitch), int64)[warp],
                cuda.shared.array((warps, wide, wide), uint8)[warp],
            )
        member, members = cuda.blockIdx.x, cuda.gridDim.x
        number = warp * members + member  # few blocks of the map: each on a multiprocessor of its own
        worker = Worker(number, members * warps, lane, member, members, memory, memory)
        update_fields(numbers, Work(field, goals, queue, scratch, worker, None))

    return update
