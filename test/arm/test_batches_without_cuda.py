"""The host's part of a batch on CUDA: arrays of the host stand for the device's, and one CPU thread runs the kernel's
source. Needs numba-cuda, but no device."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from robots_at_hand import checker_among, maker_of, problem_of

from gpu_planners.arm import rrt_connect
from gpu_planners.arm.planners.node_store import TILE, Desk
from gpu_planners.arm.planners.query import open_queries
from gpu_planners.arm.planners.rrt_connect import answer
from gpu_planners.arm.planners.rrt_connect.request import BatchShape
from gpu_planners.arm.planners.rrt_connect.scene_store import SceneStore
from gpu_planners.arm.spaces.interface import Space
from gpu_planners.device import lean_njit
from gpu_planners.parallel.team import Worker

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed: pip install 'gpu_planners[gpu]'")
from gpu_planners.arm.planners.launch_cuda import Mapped  # noqa: E402
from gpu_planners.arm.planners.rrt_connect import cuda  # noqa: E402

RAW = rrt_connect.Settings(shortcut_rounds=0, range=0.3, max_samples=3000, time_limit_s=100.0)


class OnHost(np.ndarray):
    """In place of a device's array."""

    def copy_to_device(self, values):
        self[:] = values

    def copy_to_host(self):
        return np.array(self)


@lean_njit
def member(requests, work):
    return Worker(0, 1, 0, 0, 1, requests.queue.barriers, work[1])


@lean_njit
def solve_many(rows, ints, paths, counters, space, trees, work, vectors, squared):
    requests = answer.Requests(answer.open_queue(counters), rows, ints, paths)
    worker, desk = member(requests, work), Desk(space, vectors[0], vectors[1], squared)
    answer.solve_many(requests, trees[0], trees[1], work[0], desk, worker, 0)


@lean_njit
def shorten_many(rows, ints, paths, counters, space, work, vectors, squared):
    requests = answer.Requests(answer.open_queue(counters), rows, ints, paths)
    answer.shorten_many(requests, work[0], Desk(space, vectors[0], vectors[1], squared), member(requests, work))


class Launch:
    """In place of a TeamLaunch of either kernel. launches: how many there were"""

    most_blocks = 4

    def __init__(self, checker):
        self.stream, self.launches = self, 0
        self._room, self._scratch, self._dof = {}, checker.new_scratch(), checker.robot.dof

    def held(self):
        return contextlib.nullcontext()

    def synchronize(self):
        pass

    def blocks_of_each(self, teams):
        return 1

    def mapped(self, name, count, dtype):
        return Mapped(*2 * (self.device_array(name, count, dtype),))

    def device_array(self, name, count, dtype):
        if len(self._room.get(name, ())) < count:
            self._room[name] = np.zeros(count, dtype).view(OnHost)
        return self._room[name]

    def start(self, blocks, *arrays):
        self.launches += 1
        request, scene, rest = (tuple(map(np.asarray, each)) for each in (arrays[:4], arrays[4:6], arrays[6:]))
        space = Space(np.int32(0), np.float32(0), *scene, self._scratch)
        vectors, squared = np.empty((2, self._dof), np.float32), np.empty(TILE, np.float32)
        if len(rest) == 4:
            solve_many(*request, space, rest[:2], rest[2:], vectors, squared)
        else:
            shorten_many(*request, space, rest, vectors, squared)


def solved(problems, checkers, settings):
    """-> results of a batch by a new engine, how many launches it took."""
    engine = object.__new__(cuda.CudaEngine)
    engine._dof, engine._many, engine._shortening = checkers[0].robot.dof, Launch(checkers[0]), Launch(checkers[0])
    engine._scenes = SceneStore(lambda count, dtype: np.zeros(count, dtype).view(OnHost))
    queries = open_queries([one.start for one in problems], [one.goals for one in problems], checkers, settings)
    whole = BatchShape(len(queries), max(len(one.goals) for one in problems))
    results = engine.solve_many(queries, settings, list(range(len(queries))), whole)
    return results, engine._many.launches


@pytest.fixture(scope="module")
def batch():
    problems = [problem_of("panda", family, i)[1] for family in ("shelf", "cage", "table", "box") for i in range(3)]
    return problems, [checker_among(maker_of("panda").model, problem) for problem in problems]


@pytest.mark.parametrize("blocks", [4, 100], ids=["many problems", "few"])
@pytest.mark.parametrize("settings", [RAW, replace(RAW, shortcut_rounds=3)], ids=["raw", "shortened"])
def test_paths_are_free_and_do_not_depend_on_the_room_for_them(batch, settings, blocks, monkeypatch):
    """Who finds no room is searched again as before."""
    monkeypatch.setattr(Launch, "most_blocks", blocks)
    results, launches = solved(*batch, settings)
    assert sum(result.solved for result in results) > len(results) // 2
    for problem, checker, result in zip(*batch, results):
        if result.solved:
            assert np.array_equal(result.path[0], problem.start)
            assert checker.motions_valid(result.path[:-1], result.path[1:]).mean() > 0.9
    monkeypatch.setattr(cuda, "CORNERS_OF_MANY", 1)
    monkeypatch.setattr(cuda, "CORNERS", 1)
    again, more = solved(*batch, settings)
    assert more > launches
    assert_same(results, again)


def assert_same(results, others):
    for one, other in zip(results, others, strict=True):
        assert np.array_equal(one.path, other.path)
        assert (one.status, one.samples, one.cost) == (other.status, other.samples, other.cost)


def test_problems_go_on_where_they_stopped(batch, monkeypatch):
    """In many passes as in one, and in groups as all at once."""
    monkeypatch.setattr(cuda, "FIRST", cuda.Pass(4, 20))
    monkeypatch.setattr(cuda, "LATER", (cuda.Pass(8, cuda.GREATEST),))
    results, launches = solved(*batch, RAW)
    assert launches == 2 and sum(result.samples > 100 for result in results) > 2
    steps = tuple(cuda.Pass(8, until) for until in (40, 80, 160, 800, cuda.GREATEST))
    monkeypatch.setattr(cuda, "LATER", steps)
    in_steps, more = solved(*batch, RAW)
    assert more > 4
    assert_same(results, in_steps)
    monkeypatch.setattr(cuda, "KEPT", 1)
    in_groups, most = solved(*batch, RAW)
    assert most > more
    assert_same(results, in_groups)


def test_a_problem_is_solved_as_it_is_without_those_that_follow(batch, monkeypatch):
    """The robot's data lie elsewhere then."""
    monkeypatch.setattr(cuda, "FEW", cuda.LATER)  # the passes are the same
    problems, checkers = batch
    results, _ = solved(problems, checkers, RAW)
    for count in (1, 5, 10):
        few, _ = solved(problems[:count], checkers[:count], RAW)
        assert all(np.array_equal(one.path, other.path) for one, other in zip(results, few))
