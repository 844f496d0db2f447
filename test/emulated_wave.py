"""Runs a wave through blocks as Python, by a CPU thread's code and by a warp's, with a thread for each lane; prints how
many tiles both reach. A process of its own, since functions are no longer compiled in it."""

import numpy as np
from emulated_warp import Warp

import gpu_planners.device as device

SIZE = 8


def main():
    device.njit = lambda function=None, **options: function or (lambda given: given)
    device.lean_njit = device.njit
    from gpu_planners.grid.exact import wave as waves
    from gpu_planners.grid.exact.bits import UNREACHED, WALL, side_bit
    from gpu_planners.grid.exact.blocks import kind_of

    warp, kind = Warp(SIZE), kind_of(SIZE, 4)
    waves._lowest_bit = lambda bits: (int(bits) & -int(bits)).bit_length() - 1
    waves.from_lane = lambda value, lane: warp.exchange(value)[int(lane)]
    waves.vote_lanes = warp.vote_lanes
    waves.any_lane = lambda flag: any(warp.exchange(bool(flag)))
    waves.least_lane = lambda value, index: min(warp.exchange((int(value), int(index))))
    waves.sync_lanes = lambda: warp.exchange(None)

    def wave_of(inject):
        distances = np.full((4, SIZE), UNREACHED)
        front, nothing = np.zeros((2, SIZE + 2), np.uint32), np.zeros(SIZE, np.uint32)
        return waves.Wave(kind, front, free.copy(), nothing, inject, arrive.copy(), distances)

    rng, reached = np.random.default_rng(0), 0
    for case in range(20):
        free = np.bitwise_or(*rng.integers(0, 256, (2, SIZE)).astype(np.uint32))
        arrive = np.where(rng.random((4, SIZE)) < 0.3, rng.integers(1, 90, (4, SIZE)), UNREACHED).astype(np.int32)
        for side, i in np.ndindex(4, SIZE):
            if not side_bit(free, side, i, kind):
                arrive[side, i] = WALL
        first = np.int32(arrive[arrive >= 0].min())
        by_thread, by_warp = wave_of(np.zeros((waves.LEVELS_SORTED, 4), np.uint32)), wave_of(None)
        waves._spread_on_thread(first, by_thread, np.zeros(0, np.int32))
        warp.run(lambda lane, wave=by_warp, first=first: waves._spread_on_warp(first, wave, lane))
        for name in ("open", "bit_1", "dist"):
            assert np.array_equal(getattr(by_warp, name), getattr(by_thread, name)), (case, name)
        reached += int(np.bitwise_count(by_warp.open ^ free).sum())
    print(reached)


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
