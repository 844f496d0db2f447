"""CUDA: kernels around rrt_connect_search and shortcut. Requests and answers lie in page-locked memory that both sides see."""

import functools
import threading

import numpy as np
from numba import cuda, float32
from numba.cuda.extending import overload

from ..device import cuda_jit
from ..team import deadline_in, least_lane, left_ms, sync_team
from ..team_kernels import WARP, team_blocks
from . import rrt_connect_search as core
from .collision_kernels import REGISTERS, THREADS, WARPS, warp_scratch
from .nearest import BLOCK, FAR, ZERO, nearest
from .query import dry_query
from .rrt_connect import NODES, Settings, halves, read_answer, read_answers, request_size, write_request, write_requests
from .shortcut import POINTS, shorten, shorten_sizes

BLOCKS_FOR_ONE, BLOCKS_FOR_MANY = 1, 4  # on each multiprocessor
SPLIT = 8  # warps that share a motion of a single query: a round lasts as long as its longest check
BATCH_FOR_ONE, BATCH_FOR_MANY = 64, 4
NODES_FOR_MANY = 8192  # of a tree; a problem that needs more is solved by itself afterwards
GREATEST = (1 << 31) - 1  # of an int32
# the int32 request of `shorten_one` and, in NEW_LENGTH, its answer; the float32 request: step, (dof,) weights, the path
LENGTH, CORNERS, PASSES, SEED, SEED_HIGH, MODE, NEW_LENGTH, SPLIT_AT, DOF, LIMIT = range(10)


@overload(nearest, target="cuda")
def _nearest(nodes, count, q, distances, lane):
    def scan(nodes, count, q, distances, lane):
        best, index, dof = FAR, -1, len(q)
        for i in range(lane, count, WARP):
            squared, at = ZERO, i // BLOCK * dof * BLOCK + i % BLOCK
            for k in range(dof):
                d = nodes[at + k * BLOCK] - q[k]
                squared += d * d
            if squared < best:
                best, index = squared, i
        best, index = least_lane(best, index)
        return index, best

    return scan


@functools.cache
def _kernels(kind, n_q, n_poses=8, n_speeds=8):
    """-> kernels (solve one, solve many, shorten) for a checker's scratch_sizes."""
    scratch = warp_scratch(kind, n_q, n_poses, n_speeds)

    @cuda_jit(max_registers=REGISTERS)
    def solve_one(R, K, P, F, I, A, N):
        warp, lane = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP
        S = scratch(warp)
        dof = K[core.DOF]
        qa, qb = cuda.local.array(n_q, float32)[:dof], cuda.local.array(n_q, float32)[:dof]
        core.solve_one(R, K, P, F, I, A, N, S, qa, qb, qa, cuda.blockIdx.x * WARPS + warp, cuda.gridDim.x * WARPS, lane,
                       cuda.blockIdx.x, cuda.gridDim.x)

    @cuda_jit(max_registers=REGISTERS)
    def solve_many(R, K, P, Q, F, I, A, N):
        warp, lane = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP
        S = scratch(warp)
        dof = K[0, core.DOF]
        qa, qb = cuda.local.array(n_q, float32)[:dof], cuda.local.array(n_q, float32)[:dof]
        core.solve_many(R, K, P, Q, F, I, A[cuda.blockIdx.x], N[cuda.blockIdx.x], S, qa, qb, qa, warp, WARPS, lane)

    @cuda_jit(max_registers=REGISTERS)
    def shorten_one(R, K, F, I, A, N):
        warp, lane = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP
        S = scratch(warp)
        dof = K[DOF]
        qa, qb = cuda.local.array(n_q, float32)[:dof], cuda.local.array(n_q, float32)[:dof]
        worker, workers = cuda.blockIdx.x * WARPS + warp, cuda.gridDim.x * WARPS
        for k in range(worker * WARP + lane, K[LENGTH] * dof, workers * WARP):
            A[k] = R[1 + dof + k]
        sync_team(N, 0, cuda.blockIdx.x, cuda.gridDim.x)
        seed = np.uint64(K[SEED]) | np.uint64(K[SEED_HIGH]) << np.uint64(31)
        at, length = shorten(K[LENGTH], K[CORNERS], K[PASSES], deadline_in(K[LIMIT]), R[1:1 + dof], seed, K[SPLIT_AT], np.int32(K[MODE]), R[0],
                             F, I, A, N[1:], N, 0, S, qa, qb, worker, workers, lane, cuda.blockIdx.x, cuda.gridDim.x)
        if worker == 0:
            for k in range(lane, length * dof, WARP):
                R[1 + dof + k] = A[at + k]
            if lane == 0:
                K[NEW_LENGTH] = length

    return solve_one, solve_many, shorten_one


def mapped(shape, dtype):
    """Page-locked memory that host and device see. A kernel takes it whole: views of it have no address on the device."""
    return cuda.mapped_array(shape, dtype)


class CudaEngine:
    """Solves on one device, one call at a time, for robots of one size. Buffers grow by doubling and are used again."""

    def __init__(self, device, dof, scratch_sizes):
        self._index = int(device.partition(":")[2])
        self._dof = dof
        self._one, self._many, self._shorten = _kernels(*scratch_sizes)
        self._lock = threading.Lock()
        self._held, self._warm, self._scenes = {}, set(), ((), None)
        with cuda.gpus[self._index]:
            self._multiprocessors = cuda.get_current_device().MULTIPROCESSOR_COUNT
            self._stream = cuda.stream()

    def warm_up(self, checker, many=False):
        """Compile what solve or solve_many runs, or load it from the cache, so that no query is charged for it."""
        if many not in self._warm:
            self._warm.add(many)
            query = dry_query(checker)
            if many:
                self.solve_many([query], [checker], Settings(max_samples=1), [0])
            else:
                self.solve(query, checker, Settings(max_samples=1), 0)

    def solve(self, query, checker, settings, seed):
        """-> PlanningResult"""
        if query.late():
            return query.timed_out()
        batch, workers = settings.batch or BATCH_FOR_ONE, BLOCKS_FOR_ONE * self._multiprocessors * WARPS
        capacity = -(-(NODES + len(query.goals)) // BLOCK) * BLOCK
        floats, ints = core.state_sizes(self._dof, capacity, batch, workers)
        with self._lock, cuda.gpus[self._index]:
            scene = checker.device_scene()
            R, K = self._buffer("R", request_size(query), np.float32, mapped), self._buffer("K", core.INTS, np.int32, mapped)
            P = self._buffer("P", core.CORNERS * self._dof, np.float32, mapped)
            A, N = self._buffer("A", floats, np.float32, cuda.device_array), self._buffer("N", ints, np.int32, zeros)
            write_request(R, K, query, settings, batch, SPLIT, seed, checker, capacity)
            blocks = team_blocks(self._one, THREADS, BLOCKS_FOR_ONE * self._multiprocessors)
            self._one[blocks, THREADS, self._stream](R, K, P, *scene, A, N)
            self._stream.synchronize()
            return read_answer(K, P, query)

    def solve_many(self, queries, checkers, settings, seeds):
        """-> list of PlanningResult, None for those that need more room than there is in a batch"""
        n, batch, blocks = len(queries), settings.batch or BATCH_FOR_MANY, BLOCKS_FOR_MANY * self._multiprocessors
        goals = max(len(query.goals) for query in queries)
        size = core.VECTORS + (4 + goals) * self._dof
        if n > 1 and n * max(size, core.CORNERS * self._dof) + _scene_size(checkers) > GREATEST:  # offsets are int32
            parts = [(part[:n // 2], part[n // 2:]) for part in (queries, checkers, seeds)]
            return [result for q, c, s in zip(*parts) for result in self.solve_many(q, c, settings, s)]
        capacity = -(-(NODES_FOR_MANY + goals) // BLOCK) * BLOCK
        floats, ints = core.state_sizes(self._dof, capacity, batch, WARPS)
        with self._lock, cuda.gpus[self._index]:
            F, I, places = self._scene(checkers)
            R, K = self._buffer(("Rs", size), n, np.float32, mapped, size), self._buffer("Ks", n, np.int32, mapped, core.INTS)
            P, Q = self._buffer("Ps", n * 32 * self._dof, np.float32, mapped), self._buffer("Q", 4, np.int32, zeros)
            A = self._buffer("As", blocks * floats, np.float32, cuda.device_array)[:blocks * floats].reshape(blocks, floats)
            N = self._buffer("Ns", blocks * ints, np.int32, zeros)[:blocks * ints].reshape(blocks, ints)
            write_requests(R, K, queries, checkers, settings, batch, seeds, capacity)
            K[:n, [core.SCENE_FLOATS, core.SCENE_INTS]] = places
            Q.copy_to_device(np.array([0, 0, n, 0], dtype=np.int32), self._stream)
            self._many[min(blocks, n), THREADS, self._stream](R, K, P, Q, F, I, A, N)
            self._stream.synchronize()
            return read_answers(K, P, queries)

    def shorten(self, path, checker, passes, deadline, weights, seed):
        """`shortcut` of a path (K, dof) -> (K', dof) float32"""
        length, dof = path.shape
        corners, workers = 2 * (length + POINTS), BLOCKS_FOR_ONE * self._multiprocessors * WARPS
        floats, ints = shorten_sizes(dof, corners, workers)
        with self._lock, cuda.gpus[self._index]:
            mode, step = checker.motion_args
            R, K = self._buffer("shorten R", 1 + (1 + corners) * dof, np.float32, mapped), self._buffer("shorten K", 16, np.int32, mapped)
            A, N = self._buffer("shorten A", floats, np.float32, cuda.device_array), self._buffer("shorten N", 1 + ints, np.int32, zeros)
            R[0], R[1:1 + dof], R[1 + dof:1 + dof + path.size] = step, weights, path.ravel()
            K[:LIMIT + 1] = length, corners, passes, *halves(seed), mode, 0, SPLIT, dof, left_ms(deadline)
            blocks = team_blocks(self._shorten, THREADS, BLOCKS_FOR_ONE * self._multiprocessors)
            self._shorten[blocks, THREADS, self._stream](R, K, *checker.device_scene(), A, N)
            self._stream.synchronize()
            return R[1 + dof:1 + dof + K[NEW_LENGTH] * dof].reshape(-1, dof)

    def _scene(self, checkers):
        """All scenes one after the other on the device, and where each problem's begins, (n, 2)."""
        distinct = list({id(checker): checker for checker in checkers}.values())
        scenes = [checker.packed_scene for checker in distinct]
        if self._scenes[0] != tuple(map(id, scenes)):
            F, I = (cuda.to_device(np.concatenate(part)) for part in zip(*scenes))
            ends = np.cumsum([[0, 0]] + [[len(scene.floats), len(scene.ints)] for scene in scenes], axis=0)
            self._scenes = tuple(map(id, scenes)), (scenes, F, I, {id(checker): end for checker, end in zip(distinct, ends)})
        _, F, I, places = self._scenes[1]
        return F, I, [places[id(checker)] for checker in checkers]

    def _buffer(self, name, n, dtype, make, columns=None):
        """An array of at least n entries or rows, as `make` allocates it."""
        held = self._held.get(name)
        if held is None or len(held) < n:
            rows = 1 << int(n - 1).bit_length()
            held = self._held[name] = make(rows if columns is None else (rows, columns), dtype)
        return held


def _scene_size(checkers):
    """Numbers in the larger buffer of all their scenes."""
    scenes = [checker.packed_scene for checker in {id(checker): checker for checker in checkers}.values()]
    return max(sum(map(len, part)) for part in zip(*scenes))


def zeros(n, dtype):
    return cuda.to_device(np.zeros(n, dtype))


@functools.cache
def _engine(device, dof, scratch_sizes):
    return CudaEngine(device, dof, scratch_sizes)


def engine_on(checker):
    """The engine for a checker; checkers of robots of one size share it."""
    return _engine(checker.device, checker.robot.dof, checker.scratch_sizes)
