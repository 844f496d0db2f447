"""CUDA: the kernel that makes and repairs fields (`rounds`), in one cooperative launch."""

import functools

from numba import cuda, int32, int64, uint8, uint32

from ...device import cuda_jit
from ...parallel.team import Worker
from ...parallel.team_cuda import WARP
from .bits import BitField
from .blocks import BITS, VALUES, kind_of
from .operations import Scratch
from .rounds import Work, update_fields
from .values import Tiles, ValueField
from .wave import Wave

WARPS_OF = {BITS: 12, VALUES: 4}  # of a CUDA block, one to a block of the map; shared memory bounds those of VALUES
BLOCKS_OF = {BITS: 1, VALUES: 2}  # on each multiprocessor: few, since they wait for each other once a round
MULTIPROCESSOR_REGISTERS = 65536  # of a multiprocessor


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
            wave = Wave(
                kind,
                cuda.shared.array((warps, 2, wide), uint32)[warp],
                cuda.shared.array((warps, size), uint32)[warp],
                cuda.shared.array((warps, size), uint32)[warp],
                None,
                cuda.shared.array((warps, 4, size), int32)[warp],
                cuda.shared.array((warps, 4, size), int32)[warp],
            )
            if lane == 0:
                for k in range(2):
                    wave.front[k, 0] = uint32(0)
                    wave.front[k, wide - 1] = uint32(0)
            scratch = Scratch(wave, None, None)
        else:
            field = ValueField(kind, width, blocks, map_array, values, directions)
            tiles = Tiles(
                kind,
                cuda.shared.array((warps, wide, pitch), int64)[warp],
                cuda.shared.array((warps, wide, wide), uint8)[warp],
            )
            scratch = Scratch(None, tiles, None)
        member, members = cuda.blockIdx.x, cuda.gridDim.x
        number = warp * members + member  # few blocks of the map: each on a multiprocessor of its own
        worker = Worker(number, members * warps, lane, member, members, memory, memory)
        update_fields(numbers, Work(field, goals, queue, scratch, worker, None))

    return update
