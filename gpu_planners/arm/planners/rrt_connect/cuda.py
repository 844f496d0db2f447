"""CUDA: the kernels around `answer`. Requests and answers lie in page-locked memory that both sides see."""

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numba import cuda, float32

from ....device import cuda_jit
from ....parallel.team_cuda import WARP
from ...spaces.cuda import REGISTERS, WARPS, warp_scratch
from ...spaces.interface import Space
from ..launch_cuda import TeamLaunch, grid_worker, team_worker
from ..node_store import Desk
from ..query import Query
from ..result import PlanningResult, Status
from . import answer
from .request import (
    INTS,
    NODES,
    Problems,
    Whole,
    order_of,
    read_answer,
    read_answers,
    request_size,
    room_for,
    write_request,
    write_requests,
)
from .scene_store import GREATEST, SceneStore, sizes_of
from .state import CORNERS, state_sizes

BLOCKS_FOR_ONE, BLOCKS_FOR_MANY = 2, 4  # on each multiprocessor
SPLIT = 2  # warps that share a leg of a path that is shortened: a round lasts as long as its longest check
FIRST_FOR_ONE, BATCH_FOR_ONE = 128, 1024  # samples of a round: see Order
NODES_FOR_MANY = 8192  # of a tree; a problem that needs more is solved by itself afterwards
CORNERS_FOR_MANY = 32  # of a path, on average


class Pass(NamedTuple):
    """How the problems of a batch are searched until they have drawn `until` samples. Those that are left begin anew in
    the next pass, where each has a larger part of the device: a team of more blocks.

    batch: samples of a round; split: warps that share a leg of a path that is shortened
    """

    batch: int
    split: int
    until: int


# a pass is left out where the problems of a batch are so few that a team has more blocks than a round has samples
PASSES = (Pass(4, 1, 256), Pass(8, 1, 1024), Pass(32, 1, 4096), Pass(128, SPLIT, 16384), Pass(256, SPLIT, GREATEST))


@functools.cache
def _kernels(*scratch_sizes):
    """-> kernels (solve one, solve many) for a checker's scratch_sizes."""
    scratch, n_q = warp_scratch(*scratch_sizes), scratch_sizes[1]

    @cuda_jit(max_registers=REGISTERS)
    def solve_one(row, ints, paths, scene_floats, scene_ints, floats, memory):
        dof = ints[0]
        a, b = cuda.local.array(n_q, float32)[:dof], cuda.local.array(n_q, float32)[:dof]
        space = Space(np.int32(0), np.float32(0), scene_floats, scene_ints, scratch(cuda.threadIdx.x // WARP))
        answer.solve_one(row, ints, paths, floats, Desk(space, a, b, a), grid_worker(memory))

    @cuda_jit(max_registers=REGISTERS)
    def solve_many(rows, ints, paths, counters, scene_floats, scene_ints, floats, memory):
        dof, queue = ints[0], answer.open_queue(counters)
        team = cuda.blockIdx.x // queue.blocks
        a, b = cuda.local.array(n_q, float32)[:dof], cuda.local.array(n_q, float32)[:dof]
        space = Space(np.int32(0), np.float32(0), scene_floats, scene_ints, scratch(cuda.threadIdx.x // WARP))
        own_floats = floats[team * queue.floats : (team + 1) * queue.floats]
        own_memory = memory[team * queue.ints : (team + 1) * queue.ints]
        worker = team_worker(queue.blocks, counters[answer.QUEUE + team :], own_memory)
        answer.solve_many(rows, ints, paths, queue, own_floats, Desk(space, a, b, a), worker)

    return solve_one, solve_many


class CudaEngine:
    """Solves on one device, one call at a time, for robots of one size."""

    def __init__(self, device, dof, scratch_sizes):
        one, many = _kernels(*scratch_sizes)
        self._one, self._many = TeamLaunch(device, one, BLOCKS_FOR_ONE), TeamLaunch(device, many, BLOCKS_FOR_MANY)
        self._dof, self._scenes = dof, SceneStore(cuda.device_array)

    def solve(self, query: Query, checker, settings, seed: int) -> PlanningResult:
        """One query on all multiprocessors."""
        if query.late():
            return query.timed_out()
        launch, goals, batch = self._one, len(query.goals), settings.batch or BATCH_FOR_ONE
        first = settings.batch or FIRST_FOR_ONE
        capacity = room_for(NODES, goals)
        n_floats, n_ints = state_sizes(self._dof, capacity, batch, launch.workers)
        with launch.held():
            row = launch.mapped("row", request_size(self._dof, goals), np.float32)
            ints = launch.mapped("ints", INTS, np.int32)
            paths = launch.mapped("paths", CORNERS * self._dof, np.float32)
            order = order_of(query, settings, batch, SPLIT, seed, checker, capacity, first)
            write_request(row, ints, order, query, settings, checker)
            floats = launch.device_array("floats", n_floats, np.float32)
            memory = launch.zeroed("memory", n_ints, np.int32)
            launch.run(row, ints, paths, *checker.device_scene(), floats, memory)
            return read_answer(ints, paths, query)

    def solve_each(self, query: Query, checker, settings, seeds: Iterable[int]) -> Iterator[PlanningResult]:
        """One query with each seed, one after the other."""
        for seed in seeds:
            yield self.solve(query, checker, settings, seed)

    def solve_many(
        self, queries: Sequence[Query], checkers: Sequence, settings, seeds: Sequence[int], whole: Whole
    ) -> list[PlanningResult | None]:
        """Many queries at once, by PASSES; None for those that need more room than there is in a batch.

        whole: the batch that they are of. By it passes are chosen, so that a part of it is searched as it would be with
        the others
        """
        n = len(queries)
        numbers = n * max(self._row(queries), CORNERS * self._dof) + sizes_of(_scenes(checkers)).max()
        if n > 1 and numbers > GREATEST:
            halves = [(each[: n // 2], each[n // 2 :]) for each in (queries, checkers, seeds)]  # offsets are int32
            return [result for q, c, s in zip(*halves) for result in self.solve_many(q, c, settings, s, whole)]
        results: list[PlanningResult | None] = [None] * n
        left = list(range(n))
        with self._many.held():
            *scene, places = self._scene(checkers)
            for search in PASSES:
                if search.batch < self._many.blocks_of_each(whole.problems) and search is not PASSES[-1]:
                    continue
                team = self._many.blocks_of_each(len(left))
                given = [queries[i] for i in left], [checkers[i] for i in left], [seeds[i] for i in left]
                until = min(search.until, settings.max_samples)
                limited = replace(settings, max_samples=until, batch=settings.batch or search.batch)
                for i, result in zip(
                    left, self._run(Problems(*given, places[left]), limited, search.split, team, scene, whole.goals)
                ):
                    results[i] = result
                left = [i for i in left if _exhausted(results[i])]
                if until == settings.max_samples or not left:
                    break
        return results

    def _row(self, queries):
        """Length of a float32 request of these."""
        return request_size(self._dof, max(len(query.goals) for query in queries))

    def _run(self, problems, settings, split, team, scene, goals, room=0):
        """One pass, with `team` blocks for each problem, and room for so many goals; room: for so many numbers of paths
        at least."""
        launch, n, row = self._many, len(problems.queries), self._row(problems.queries)
        capacity = room_for(NODES_FOR_MANY, goals)
        teams = min(launch.most_blocks // team, n)
        n_floats, n_ints = state_sizes(self._dof, capacity, settings.batch, team * WARPS)
        rows, ints = launch.mapped("rows", n * row, np.float32), launch.mapped("ints", n * INTS, np.int32)
        paths = launch.mapped("paths", max(max(n * CORNERS_FOR_MANY, CORNERS) * self._dof, room), np.float32)
        by_query = ints[: n * INTS].reshape(n, INTS)
        write_requests(rows[: n * row].reshape(n, row), by_query, problems, settings, split, capacity)
        queue = np.zeros(answer.QUEUE + teams, np.int32)  # and behind it the teams' barriers
        queue[: answer.QUEUE] = 0, 0, n, row, n_floats, n_ints, team
        counters = launch.device_array("counters", answer.QUEUE + launch.most_blocks, np.int32)
        counters[: len(queue)].copy_to_device(queue)
        floats = launch.device_array("floats", teams * n_floats, np.float32)
        memory = launch.device_array("memory", teams * n_ints, np.int32)
        launch.start(teams * team, rows, ints, paths, counters, *scene, floats, memory)
        launch.stream.synchronize()
        results = read_answers(by_query, paths, problems.queries)
        full = [i for i, result in enumerate(results) if result is None]
        if full and (written := int(counters[:2].copy_to_host()[1])) > len(paths):  # whose path came last found no room
            lists = ([each[i] for i in full] for each in problems[:3])
            again = self._run(Problems(*lists, problems.places[full]), settings, split, team, scene, goals, written)
            for i, result in zip(full, again):
                results[i] = result
        return results

    def _scene(self, checkers):
        """Scenes on the device, one after the other, and where each problem's begins, (n, 2)."""
        scenes = _scenes(checkers)
        floats, ints, places = self._scenes.placed(scenes.values())
        return floats, ints, np.array([places[id(scenes[id(checker)].own)] for checker in checkers])


def _exhausted(result):
    return result is not None and result.status is Status.SAMPLES_EXHAUSTED


def _scenes(checkers):
    """{id of the checker: its SceneParts}"""
    return {key: checker.scene_parts for key, checker in {id(checker): checker for checker in checkers}.items()}


@functools.cache
def engine_on(device: str, dof: int, scratch_sizes: tuple) -> CudaEngine:
    """The engine for a kind of checker: made once, kept."""
    return CudaEngine(device, dof, scratch_sizes)
