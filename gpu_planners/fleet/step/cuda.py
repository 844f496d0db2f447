"""Fields of a fleet and its agents' options, on a CUDA device."""

import functools
from typing import Any

import numpy as np
from numba import cuda

from ...device import cuda_jit
from ..fields.cost_to_go import UNREACHED, WRAP, plan_fields
from ..fields.lanes import Lanes, ahead
from ..fields.repair import Change
from ..motion import Options
from .epibt import rank_options, update_cost_to_go
from .state import Agents, Ranked, Rules

THREADS = 256
BLOCKS_OF = 4  # searches at once on each multiprocessor
RANK_THREADS = 128


class CudaFleet:
    """`CpuFleet` on a device "cuda:N"."""

    def __init__(self, lanes: Lanes, options: Options, rules: Rules, device: str):
        self._index = int(device.partition(":")[2] or 0)
        self._states = lanes.free.size * lanes.headings
        self._state: Any = None
        self._staged: Any = None
        self._ranked: Any = None
        with cuda.gpus[self._index]:
            blocks = BLOCKS_OF * cuda.get_current_device().MULTIPROCESSOR_COUNT
            self._blocks = min(blocks, max(1, (1 << 32) // (12 * self._states)))
            self._cost = cuda.device_array((self._blocks, self._states), np.int32)
            self._open = cuda.device_array((self._blocks, 2, self._states), np.int32)
            self._values = cuda.device_array((1, self._states), np.uint8)
        self._mirror, self._mirrored = np.zeros((0, self._states), np.uint8), np.zeros(0, bool)
        self.take_map(lanes)
        self.take_options(options, rules)

    def take_options(self, options: Options, rules: Rules):
        """See `CpuFleet`."""
        self._most_steps, self._n = int(np.diff(options.first_step).max()), -1  # room for agents is made anew
        with cuda.gpus[self._index]:
            arrays: Any = (cuda.to_device(a) if isinstance(a, np.ndarray) else a for a in options)
            self._options = Options(*arrays)
            self._rules = rules._replace(clearance=cuda.to_device(rules.clearance))

    @property
    def at_once(self) -> int:
        """See `CpuFleet`."""
        return self._blocks

    def grow(self, before: int, rows: int):
        """See `CpuFleet`."""
        with cuda.gpus[self._index]:
            grown = cuda.device_array((rows, self._states), np.uint8)
            if before:
                grown[:before].copy_to_device(self._values[:before])
            self._values = grown

    def host_fields(self, slots: np.ndarray) -> np.ndarray:
        """See `CpuFleet`; fields are copied when they are asked for."""
        rows = self._values.shape[0]
        if len(self._mirror) < rows:
            grown, known = np.empty((rows, self._states), np.uint8), np.zeros(rows, bool)
            grown[: len(self._mirror)], known[: len(self._mirror)] = self._mirror, self._mirrored
            self._mirror, self._mirrored = grown, known
        with cuda.gpus[self._index]:
            for slot in np.unique(slots[slots >= 0]).tolist():
                if not self._mirrored[slot]:
                    self._values[slot].copy_to_host(self._mirror[slot])
                    self._mirrored[slot] = True
        return self._mirror

    def plan(self, goals: np.ndarray, slots: np.ndarray):
        """See `CpuFleet`."""
        self._mirrored[slots[slots < len(self._mirrored)]] = False
        with cuda.gpus[self._index]:
            failed = cuda.to_device(np.zeros(len(goals), np.uint8))
            blocks = min(self._blocks, len(goals))
            plan_kernel()[blocks, THREADS](
                cuda.to_device(goals.astype(np.int32)), cuda.to_device(slots.astype(np.int32)), self._cost, self._open,
                self._values, self._lanes, failed,
            )  # fmt: skip
            for k in np.flatnonzero(failed.copy_to_host()):
                row = np.empty((1, self._states), np.uint8)
                plan_fields(goals[k : k + 1], np.zeros(1, np.int64), row, self._host_lanes)
                self._values[int(slots[k])].copy_to_device(row[0])

    def repair(self, goals: np.ndarray, slots: np.ndarray, _change: Change):
        """See `CpuFleet`; here they are planned anew, since that takes less time than to find what has changed."""
        self.plan(goals, slots)

    def take_map(self, lanes: Lanes):
        """See `CpuFleet`."""
        self._host_lanes = lanes
        with cuda.gpus[self._index]:
            self._lanes = lanes._replace(free=cuda.to_device(lanes.free), forward=cuda.to_device(lanes.forward))

    def rank(self, agents: Agents, ranked: Ranked):
        """See `CpuFleet`."""
        n, most = ranked.option.shape
        if not n:
            return
        with cuda.gpus[self._index]:
            if n != self._n:
                self._n, fields = n, len(agents)
                self._state = cuda.device_array((fields, n), np.int32)
                self._staged = cuda.pinned_array((fields, n), np.int32)
                self._ranked = Ranked(
                    cuda.device_array(n, np.int32), *(cuda.device_array((n, most), np.int32) for _ in range(2))
                )
                self._scratch = cuda.device_array((n, self._most_steps, 3), np.int32)
            for row, array in zip(self._staged, agents):
                row[:] = array
            self._state.copy_to_device(self._staged)
            rank_kernel()[-(-n // RANK_THREADS), RANK_THREADS](
                self._state, self._options, self._values, self._lanes, self._rules, self._ranked, self._scratch
            )
            for device_array, host_array in zip(self._ranked, ranked):
                device_array.copy_to_host(host_array)
            self._state.copy_to_host(self._staged)
        for name in ("left", "was_tile", "was_heading", "fresh"):
            getattr(agents, name)[:] = self._staged[agents._fields.index(name)]


@functools.cache
def rank_kernel():
    """kernel(state, options, values, lanes, rules, ranked, scratch): a thread for each agent. state: (fields, N) int32,
    the fields of `Agents`"""

    @cuda_jit
    def rank(state, options, values, lanes, rules, ranked, scratch):
        a = cuda.grid(1)
        if a >= state.shape[1]:
            return
        agents = Agents(
            state[0], state[1], state[2], state[3], state[4], state[5], state[6], state[7], state[8], state[9],
            state[10], state[11],
        )  # fmt: skip
        if agents.there[a] and not agents.still[a]:
            update_cost_to_go(a, agents, values, lanes)
            rank_options(a, agents, options, values, lanes, rules, scratch[a], ranked)

    return rank


@functools.cache
def plan_kernel():
    """kernel(goals, slots, cost, open, values, lanes, failed): a block plans one field after the other.

    cost: (blocks, states) int32 scratch; open: (blocks, 2, states) int32 scratch: the states of this wave and the next;
    failed: (K,) uint8, set where a wave had no room
    """

    @cuda_jit
    def plan(goals, slots, costs, opened, values, lanes, failed):
        numbers = cuda.shared.array(4, np.int32)  # how many states are open; in the next wave; the cost now; next
        block, lane, threads, headings = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x, lanes.headings
        cost = costs[block]
        most = cost.shape[0]
        for k in range(block, goals.shape[0], cuda.gridDim.x):
            for state in range(lane, most, threads):
                cost[state] = UNREACHED
            cuda.syncthreads()
            if lane < headings:
                cost[goals[k] * headings + lane] = 0
                opened[block, 0, lane] = goals[k] * headings + lane
            if lane == 0:
                numbers[0], numbers[1], numbers[2], numbers[3] = headings, 0, 0, UNREACHED
            cuda.syncthreads()
            wave = 0
            while numbers[0] > 0 and numbers[0] <= most:
                count, now = numbers[0], numbers[2]
                for i in range(lane, count, threads):
                    state = opened[block, wave, i]
                    there = cost[state]
                    if there > now:
                        _keep(state, there, opened[block, 1 - wave], numbers)
                    elif there == now:
                        tile, heading = state // headings, state % headings
                        for direction in range(heading, heading + 1 if headings == 4 else 4):
                            behind = tile - ahead(direction, lanes.width)
                            if lanes.free[behind]:
                                step = now + int(lanes.forward[behind, direction])
                                _offer(behind * headings + heading, step, cost, opened[block, 1 - wave], numbers)
                        if headings == 4:
                            for quarter in (1, 3):
                                turned = tile * 4 + (heading + quarter) % 4
                                _offer(turned, now + lanes.turn, cost, opened[block, 1 - wave], numbers)
                cuda.syncthreads()
                wave = 1 - wave
                if lane == 0:
                    numbers[0], numbers[1], numbers[2], numbers[3] = numbers[1], 0, numbers[3], UNREACHED
                cuda.syncthreads()
            if numbers[0] > most and lane == 0:
                failed[k] = 1
            for state in range(lane, most, threads):
                values[slots[k], state] = np.uint8(cost[state] & WRAP)
            cuda.syncthreads()

    return plan


@cuda_jit(device=True)
def _keep(state, cost, queue, numbers):
    place = cuda.atomic.add(numbers, 1, 1)
    if place < queue.shape[0]:
        queue[place] = state
    cuda.atomic.min(numbers, 3, cost)


@cuda_jit(device=True)
def _offer(state, new, cost, queue, numbers):
    if new < cuda.atomic.min(cost, state, new):
        _keep(state, new, queue, numbers)
