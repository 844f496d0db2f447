"""CUDA: the kernels around `answer`. Requests and answers lie in page-locked memory that both sides see."""

import functools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numba import cuda

from ....device import cuda_jit
from ...spaces.cuda import REGISTERS
from ..launch_cuda import TeamLaunch, desk_of_lane, grid_worker, team_worker
from ..query import Query
from ..result import PlanningResult
from . import answer
from .passes_cuda import SPLIT, Passes
from .request import INTS, NODES, BatchShape, Problems, read_answer, request_size, room_for, write_requests
from .scene_store import GREATEST, SceneStore, sizes_of
from .state import CORNERS, state_sizes

BLOCKS_FOR_ONE, BLOCKS_FOR_MANY = 2, 4  # on each multiprocessor
FIRST_FOR_ONE, BATCH_FOR_ONE = 128, 1024  # samples of a round: see Request


@functools.cache
def _kernels(*scratch_sizes):
    """-> kernels (solve one, solve many, shorten many) for a checker's scratch_sizes."""
    desk_of = desk_of_lane(scratch_sizes)

    @cuda_jit(max_registers=REGISTERS)
    def solve_one(row, ints, paths, scene_floats, scene_ints, floats, memory, spill):
        desk = desk_of(ints[0], np.int32(0), np.float32(0), scene_floats, scene_ints, spill)
        answer.solve_one(row, ints, paths, floats, desk, grid_worker(memory))

    @cuda.jit(device=True)
    def member(queue, team, memory):
        """The warp as a Worker of its team."""
        own = memory[team * queue.work_ints : (team + 1) * queue.work_ints]
        return team_worker(queue.blocks, queue.barriers[answer.TEAM * team :], own)

    @cuda_jit(max_registers=REGISTERS)
    def solve_many(
        rows, ints, paths, counters, scene_floats, scene_ints, tree_floats, tree_ints, floats, memory, spill
    ):
        requests = answer.Requests(answer.open_queue(counters), rows, ints, paths)
        queue = requests.queue
        team = cuda.blockIdx.x // queue.blocks
        desk = desk_of(ints[0], np.int32(0), np.float32(0), scene_floats, scene_ints, spill)
        own = floats[team * queue.work_floats : (team + 1) * queue.work_floats]
        answer.solve_many(requests, tree_floats, tree_ints, own, desk, member(queue, team, memory), team)

    @cuda_jit(max_registers=REGISTERS)
    def shorten_many(rows, ints, paths, counters, scene_floats, scene_ints, floats, memory, spill):
        requests = answer.Requests(answer.open_queue(counters), rows, ints, paths)
        queue = requests.queue
        team = cuda.blockIdx.x // queue.blocks
        desk = desk_of(ints[0], np.int32(0), np.float32(0), scene_floats, scene_ints, spill)
        own = floats[team * queue.work_floats : (team + 1) * queue.work_floats]
        answer.shorten_many(requests, own, desk, member(queue, team, memory))

    return solve_one, solve_many, shorten_many


class CudaEngine:
    """Solves on one device, one call at a time, for robots of one size."""

    def __init__(self, device, dof, scratch_sizes):
        one, many, shortening = _kernels(*scratch_sizes)
        self._one = TeamLaunch(device, one, scratch_sizes, BLOCKS_FOR_ONE)
        self._many = TeamLaunch(device, many, scratch_sizes, BLOCKS_FOR_MANY)
        self._shortening = TeamLaunch(device, shortening, scratch_sizes, BLOCKS_FOR_MANY)
        self._dof, self._scenes = dof, SceneStore(cuda.device_array)

    def solve(self, query: Query, checker, settings, seed: int) -> PlanningResult:
        """One query on all multiprocessors."""
        if query.late():
            return query.timed_out()
        launch, goals, batch = self._one, len(query.goals), settings.batch or BATCH_FOR_ONE
        first = settings.batch or FIRST_FOR_ONE
        capacity, n_row = room_for(NODES, goals), request_size(self._dof, goals)
        n_floats, n_ints = state_sizes(self._dof, capacity, batch, launch.workers)
        with launch.held():
            row = launch.mapped("row", n_row, np.float32)
            ints = launch.mapped("ints", INTS, np.int32)
            paths = launch.mapped("paths", CORNERS * self._dof, np.float32)
            problem = Problems([query], [checker], [seed], np.zeros((1, 2), dtype=int))
            same = {"batch": batch, "first": first, "split": SPLIT, "capacity": capacity}
            write_requests(row[None, :n_row], ints[None, :INTS], problem, settings, **same)
            floats = launch.device_array("floats", n_floats, np.float32)
            memory = launch.zeroed("memory", n_ints, np.int32)
            launch.run(row, ints, paths, *checker.device_scene(), floats, memory)
            return read_answer(ints, paths, query)

    def solve_each(self, query: Query, checker, settings, seeds: Iterable[int]) -> Iterator[PlanningResult]:
        """One query with each seed, one after the other."""
        for seed in seeds:
            yield self.solve(query, checker, settings, seed)

    def solve_many(
        self, queries: Sequence[Query], checkers: Sequence, settings, seeds: Sequence[int], whole: BatchShape
    ) -> list[PlanningResult | None]:
        """Many queries at once, in passes; None for those that need more room than there is in a batch.

        whole: sizes of the batch that they are of, which fix the passes
        """
        n, row = len(queries), request_size(self._dof, max(len(query.goals) for query in queries))
        numbers = n * max(row, 2 * CORNERS * self._dof) + sizes_of(_scenes(checkers)).max()
        if n > 1 and numbers > GREATEST:
            halves = [(each[: n // 2], each[n // 2 :]) for each in (queries, checkers, seeds)]  # offsets are int32
            return [result for q, c, s in zip(*halves) for result in self.solve_many(q, c, settings, s, whole)]
        with self._many.held(), self._shortening.held():
            *scene, places = self._scene(checkers)
            problems, launches = Problems(queries, checkers, seeds, places), (self._many, self._shortening)
            passes = Passes(*launches, problems, settings, scene, whole)
            results = passes.solve()
            while passes.wanting:  # whose paths found no room are searched again
                again = [i for i, result in enumerate(results) if result is None]
                passes = Passes(*launches, problems.chosen(again), settings, scene, whole, passes.wanting)
                for i, result in zip(again, passes.solve()):
                    results[i] = result
        return results

    def _scene(self, checkers):
        """Scenes on the device, one after the other, and where each problem's begins, (n, 2)."""
        scenes = _scenes(checkers)
        floats, ints, places = self._scenes.placed(scenes.values())
        return floats, ints, np.array([places[id(scenes[id(checker)].own)] for checker in checkers])


def _scenes(checkers):
    """{id of the checker: its SceneParts}"""
    return {key: checker.scene_parts for key, checker in {id(checker): checker for checker in checkers}.items()}


@functools.cache
def engine_on(device: str, dof: int, scratch_sizes: tuple) -> CudaEngine:
    """The engine for a kind of checker: made once, kept."""
    return CudaEngine(device, dof, scratch_sizes)
