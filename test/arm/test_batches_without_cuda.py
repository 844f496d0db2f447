"""The host's part of a batch on CUDA: arrays of the host stand for the device's, and one CPU thread runs the kernel's
source. Needs numba-cuda, but no device."""

from dataclasses import replace

import numpy as np
import pytest
from robots_at_hand import checker_among, maker_of, problem_of

from gpu_planners.arm import rrt_connect
from gpu_planners.arm.planners.host import OnThread
from gpu_planners.arm.planners.plain_queries import numbered, open_queries
from gpu_planners.arm.planners.rrt_connect.request import BatchShape, write_queue
from gpu_planners.arm.planners.rrt_connect.scene_store import SceneStore
from gpu_planners.arm.spaces.interface import Packed

check_path = pytest.importorskip("gpu_planners.verify", reason="coal and pinocchio are the oracle").check_path
pytest.importorskip("numba_cuda", reason="numba-cuda is not installed: pip install 'gpu_planners[gpu]'")
from gpu_planners.arm.planners.rrt_connect import cuda  # noqa: E402

GREY = 1e-4  # metres from contact where float32 may decide either way
RAW = rrt_connect.Settings(shortcut_rounds=0, range=0.3, max_samples=3000, time_limit_s=3600.0)


class OnHost(np.ndarray):
    """In place of a device's array."""

    def copy_to_device(self, values):
        self[:] = values


class InScene:
    """A checker whose scene lies where a batch has put it."""

    def __init__(self, checker, scene):
        self.robot, self.motion_args, self.new_scratch = checker.robot, checker.motion_args, checker.new_scratch
        self.packed_scene = Packed(*map(np.asarray, scene))


class Host(OnThread):
    """In place of an OnDevice: one team does the work of all. launches: how many there were of the search"""

    most_blocks = 4

    @property
    def workers(self):
        return self.most_blocks * cuda.WARPS

    def __init__(self, checker):
        super().__init__()
        self._checker, self.launches = checker, 0

    def memory(self, n_floats, n_ints):
        if not self.own or len(self.own[0]) < n_floats or len(self.own[1]) < n_ints:
            super().memory(n_floats, n_ints)

    def blocks_of_each(self, work, teams):
        return 1

    def start(self, work, blocks, *scene):
        self.launches += work is cuda.search_paths
        self._desk = None
        write_queue(*self._message, teams=1)
        self.run(InScene(self._checker, scene), work)

    def wait(self):
        pass


def solved(problems, checkers, settings):
    """-> results of a batch by a new engine, how many launches it took."""
    engine = object.__new__(cuda.CudaEngine)
    engine._dof, engine._many = checkers[0].robot.dof, Host(checkers[0])
    engine._scenes = SceneStore(lambda count, dtype: np.zeros(count, dtype).view(OnHost))
    starts, goals = [one.start for one in problems], [one.goals for one in problems]
    queries = open_queries(starts, goals, *numbered(checkers), settings)
    whole = BatchShape(len(queries), max(len(one.goals) for one in problems))
    found = engine.solve_many(queries, settings, list(range(len(queries))), whole)
    assert not found.missing()
    return found.results(), engine._many.launches


@pytest.fixture(scope="module")
def batch():
    problems = [problem_of("panda", family, i)[1] for family in ("shelf", "cage", "table", "box") for i in range(3)]
    return problems, [checker_among(maker_of("panda").model, problem) for problem in problems]


@pytest.mark.parametrize("blocks", [4, 100], ids=["many problems", "few"])
@pytest.mark.parametrize("settings", [RAW, replace(RAW, shortcut_rounds=3)], ids=["raw", "shortened"])
def test_paths_are_free_and_do_not_depend_on_the_room_for_them(batch, settings, blocks, monkeypatch):
    """Who finds no room is searched again as before."""
    monkeypatch.setattr(Host, "most_blocks", blocks)
    results, launches = solved(*batch, settings)
    assert sum(result.solved for result in results) > len(results) // 2
    rig = maker_of("panda").rig
    for problem, result in zip(batch[0], results):
        if result.solved:
            assert np.array_equal(result.path[0], problem.start)
            assert check_path(result.path, rig.coal_scene(problem.obstacles), tolerance=GREY).free
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
