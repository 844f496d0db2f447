"""Work that is split over executors: the answers do not depend on who did what, and who fails is named."""

import io
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from checkout import ROOT
from executor_work import SETTINGS, Shared, assert_same_results, problems, seeds_of, split_of, squares
from walled_point import walled

from gpu_planners.arm import CollisionChecker, CollisionWorld, MotionCheck, load_urdf, rrt_connect
from gpu_planners.arm.planners.rrt_connect import batch, cpu
from gpu_planners.arm.planners.rrt_connect.request import BatchShape
from gpu_planners.distributed import executors, progress, worker
from gpu_planners.distributed.executors import KEPT, Split, spread
from gpu_planners.errors import DeviceError, GridMapError, SettingsError, WorkerError
from gpu_planners.fleet import Settings, solve_batch
from gpu_planners.grid import BlockPlanner, FleetPlanner, GridMap
from gpu_planners.grid.maps.generated import caves_and_rooms, random_free_tiles
from gpu_planners.papers.bkf11.planar import PlanarChecker, nine_link_scene

SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture(scope="module")
def pool():
    with ProcessPoolExecutor(2, mp_context=SPAWN) as executor:
        yield executor


def values(parts):
    return [value for part in parts for value, _, _ in part]


def test_answers_are_in_order_and_what_is_shared_goes_to_a_worker_once(pool, tmp_path):
    shared, numbers = Shared(3, tmp_path), list(range(200))
    for _ in range(2):
        assert values(spread(split_of(numbers, shared), pool, "cpu")) == squares(numbers, shared)
    unpickled = [name.split("-")[1] for name in os.listdir(tmp_path)]
    assert 1 <= len(unpickled) <= 2 and len(set(unpickled)) == len(unpickled)


@pytest.mark.parametrize("workers", (1, 2, 3, 5))
def test_threads_do_the_same(workers, tmp_path):
    shared, numbers = Shared(7, tmp_path), list(range(50))
    assert values(spread(split_of(numbers, shared), None, ",".join(["cpu"] * workers))) == squares(numbers, shared)
    with ThreadPoolExecutor(workers) as threads:
        assert values(spread(split_of(numbers, shared), threads, "cpu")) == squares(numbers, shared)


def test_nothing_to_do_is_nothing_done(pool, tmp_path):
    assert list(spread(split_of([], Shared(0, tmp_path)), pool, "cpu")) == []


def test_answers_are_in_order_and_few_are_kept():
    """The first piece is late: no more than a few others are done meanwhile, and all come in their order."""
    late, done = threading.Event(), []

    def answer(_, piece, device):
        assert piece[0] or late.wait(30)
        done.append(piece[0])
        return piece

    split = Split(
        "numbers", 400, lambda first, last: list(range(first, last)), answer, size=lambda first: 5 - first % 5
    )
    with ThreadPoolExecutor(2) as threads:
        answers = spread(split, threads, "cpu")
        threading.Timer(1.0, late.set).start()
        first = next(answers)
        assert first == [0, 1, 2, 3, 4] and len(done) <= KEPT * 2
        assert [first, *answers] == [list(range(k, k + 5)) for k in range(0, 400, 5)]


def test_who_wants_no_more_answers_gives_out_no_more_pieces(pool, tmp_path):
    shared = Shared(0, tmp_path)
    answers = spread(split_of(list(range(1000)), shared), pool, "cpu")
    next(answers)
    answers.close()
    assert values(spread(split_of([3], shared), pool, "cpu")) == [9]  # the pool goes on


def test_an_error_names_the_worker_and_its_piece(pool, tmp_path):
    with pytest.raises(WorkerError, match=r"worker .*process \d+.* failed with numbers \d.*: MemoryError: no room"):
        list(spread(split_of([*range(5), "always"], Shared(1, tmp_path)), pool, "cpu"))


class Inline(Executor):
    """An executor that works at once, in `submit`, and keeps what it was given."""

    def __init__(self):
        self.orders = []

    def submit(self, function, order, shared):
        self.orders.append(order)
        future = Future()
        try:
            future.set_result(function(order, shared))
        except BaseException as error:
            future.set_exception(error)
        return future


def test_what_is_asked_twice_is_done_twice(tmp_path):
    """For Dask, equal orders are one."""
    executor, shared = Inline(), Shared(1, tmp_path)
    for _ in range(2):
        assert values(spread(split_of([3, 4], shared), executor, "cpu")) == [10, 17]
    assert len(set(executor.orders)) == len(executor.orders)


def test_a_worker_that_ends_itself_does_not_end_the_caller(tmp_path):
    with ThreadPoolExecutor(2) as threads, pytest.raises(WorkerError, match="SystemExit: 3"):
        list(spread(split_of([1, "exit"], Shared(1, tmp_path)), threads, "cpu"))


def test_ctrl_c_in_a_worker_ends_its_pieces_of_the_same_work():
    begun = []

    def answer(_, piece, device):
        begun.append(piece)
        if len(begun) == 1:
            raise KeyboardInterrupt
        return piece

    split = Split("numbers", 9, lambda first, last: first, answer, size=lambda first: 1)
    with pytest.raises(KeyboardInterrupt):
        list(spread(split, Inline(), "cpu"))
    assert begun == [0]
    assert list(spread(split, Inline(), "cpu")) == list(range(9))


def test_ctrl_c_ends_the_threads_of_a_batch(monkeypatch):
    begun = []

    def interrupted(split, *_):
        begun.append((split, split.cut(0, 2)))
        raise KeyboardInterrupt

    monkeypatch.setattr(batch, "spread", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rrt_connect.solve_batch(*problems(2), SETTINGS, devices="cpu")
    split, part = begun[0]
    with pytest.raises(CancelledError):
        split.answer(split.shared, part, "cpu")


def test_processes_end_with_an_error_while_much_waits_for_them():
    """Work that is cancelled, and answers that are half written, with more in them than a pipe holds."""
    code = """
from gpu_planners.distributed.processes import processes
if __name__ == "__main__":
    with processes(2) as pool:
        given = [pool.submit(bytes, bytes(1_000_000)) for _ in range(30)]
        given[0].result()
        for future in given:
            future.cancel()
        raise SystemExit(3)
"""
    for _ in range(5):
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert (ended.returncode, ended.stderr) == (3, "")


def test_processes_that_are_starting_leave_ctrl_c_to_the_program():
    code = """
import os, signal, sys, time
from gpu_planners.distributed.processes import processes
if __name__ == "__main__":
    try:
        with processes(3) as pool:
            pool.submit(int)
            time.sleep(float(sys.argv[1]))
            os.killpg(0, signal.SIGINT)
    except KeyboardInterrupt:
        sys.exit(3)
"""
    for delay in ("0", "0.02", "0.05", "0.1", "0.2"):
        command = [sys.executable, "-c", code, delay]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, start_new_session=True)
        assert (ended.returncode, ended.stderr) == (3, "")


def test_ctrl_c_while_processes_are_starting_leaves_no_semaphores():
    """The system may give it to another thread, in which it is not blocked; the program ends by os._exit."""
    code = """
import multiprocessing.context, os, signal, threading, time
from gpu_planners.distributed.processes import processes
start, other = multiprocessing.context.SpawnProcess.start, threading.Thread(target=threading.Event().wait, daemon=True)
def interrupted(process):
    signal.pthread_kill(other.ident, signal.SIGINT)
    start(process)
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    other.start()
    multiprocessing.context.SpawnProcess.start = interrupted
    try:
        with processes(2):
            while True:  # the other thread may be told late
                time.sleep(0.01)
    except KeyboardInterrupt:
        os._exit(3)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert (ended.returncode, ended.stderr) == (3, "")


def test_a_worker_that_is_killed_is_an_error_at_once(tmp_path):
    with ProcessPoolExecutor(1, mp_context=SPAWN) as executor:
        for work, when in (([*range(9), "die"], r"with numbers \d+"), ([1], "with numbers 0 alone")):
            with pytest.raises(WorkerError, match=f"{when}.*BrokenProcessPool"):
                list(spread(split_of(work, Shared(1, tmp_path)), executor, "cpu"))


def test_errors_of_a_worker_keep_their_kind_and_name_it(pool, tmp_path):
    with pytest.raises(DeviceError, match=r"worker .*process \d+.*device 'cuda:99'"):
        list(spread(split_of([1], Shared(1, tmp_path)), pool, "cuda:99"))
    with pytest.raises(DeviceError, match="^device 'cuda:99'"):
        list(spread(split_of([1], Shared(1, tmp_path)), None, "cuda:99"))


def test_bad_arguments_are_named(pool, tmp_path):
    shared = Shared(1, tmp_path)
    for executor in (3, ProcessPoolExecutor, mock.Mock()):  # the last one has a `submit`, as Dask's Client has
        with pytest.raises(SettingsError, match="executor is .*3|ProcessPoolExecutor|Mock"):
            list(spread(split_of([1], shared), executor, "cpu"))
    for devices in ((), (0,), 7, {}):
        for workers in (pool, None):
            with pytest.raises(DeviceError, match="^devices is .*'cuda:all', one or more"):
                list(spread(split_of([1], shared), workers, devices))
    for devices in ("", "tpu", "CUDA:0", "cpu:1", "cuda:", "cuda:²", "cuda:-1", "cpu,gpu", ["cpu", "cuda:al"]):
        for workers in (pool, None):  # no worker is asked what nobody can have meant
            with pytest.raises(
                DeviceError, match="^unknown device '.*use 'auto', 'cpu', 'cuda', 'cuda:N' or 'cuda:all'"
            ):
                list(spread(split_of([1], shared), workers, devices))
    with pytest.raises(SettingsError, match=r"numbers \d.* cannot be sent"):
        list(spread(split_of([1, lambda: 0], shared), pool, "cpu"))
    with pytest.raises(SettingsError, match="progress is 'bar'"):
        list(spread(split_of([1], shared), None, "cpu", "bar"))


def test_progress_counts_up_to_the_end(pool, tmp_path):
    told = []
    shared = Shared(1, tmp_path)
    list(spread(split_of(list(range(30)), shared), pool, "cpu", lambda done, total: told.append((done, total))))
    assert told[-1] == (30, 30) and [done for done, _ in told] == sorted({done for done, _ in told})


def test_a_bar_is_shown_before_anything_is_done(monkeypatch):
    shown = io.StringIO()
    shown.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(executors, "SOON_S", 0.01)
    monkeypatch.setattr(progress, "SOON_S", 0.0)
    seen = threading.Event()

    def answer(_, piece, device):
        assert seen.wait(30)
        return piece

    def look():
        while "0/3" not in shown.getvalue():
            time.sleep(0.01)
        seen.set()

    threading.Thread(target=look, daemon=True).start()
    split = Split("numbers", 3, lambda first, last: last, answer, size=lambda first: 3)
    with ThreadPoolExecutor(1) as threads:
        assert list(spread(split, threads, "cpu")) == [3]


def test_a_process_without_stderr_works(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stderr", None)
    assert values(spread(split_of([3], Shared(1, tmp_path)), None, "cpu")) == [10]


def devices_of_threads(count):
    """Which device each of `count` new workers takes."""
    together = threading.Barrier(count)

    def answer(_, piece, device):
        together.wait(30)
        return device

    with ThreadPoolExecutor(count) as threads:
        return sorted(spread(Split("numbers", count, lambda *_: 0, answer, size=lambda _: 1), threads, "cuda:all"))


def test_each_worker_has_a_device_that_it_gives_back_when_it_ends(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(worker, "resolve_devices", lambda _: ("some:0", "some:1"))
    for _ in range(2):
        assert devices_of_threads(1) == ["some:0"]
        assert devices_of_threads(3) == ["some:0", "some:0", "some:1"]


def test_the_device_of_a_worker_that_is_killed_is_free(monkeypatch, tmp_path):
    take = (
        "import os; from gpu_planners.distributed import worker;"
        "worker.resolve_devices = lambda _: ('some:0', 'some:1');"
        "order = worker.Order('numbers', lambda *_: os.kill(os.getpid(), 9), 0, b'', ('cuda:all',), b'1');"
        "worker.answer(order, None)"
    )
    ended = subprocess.run([sys.executable, "-c", take], env={**os.environ, "TMPDIR": str(tmp_path)}, timeout=120)
    assert ended.returncode == -signal.SIGKILL
    test_each_worker_has_a_device_that_it_gives_back_when_it_ends(monkeypatch, tmp_path)


def test_a_temporary_folder_that_cannot_be_used_is_named_and_may_be_mended(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder, shared = tmp_path / f"gpu_planners-{os.getuid()}", Shared(1, tmp_path)
    folder.touch()
    for _ in range(2):
        with pytest.raises(WorkerError, match=f"{folder} is not this user's alone; allowed: a folder"):
            list(spread(split_of([3], shared), None, "cpu"))
    folder.unlink()
    assert values(spread(split_of([3], shared), None, "cpu")) == [10]


@pytest.mark.parametrize("workers", (1, 2, 3, 5))
def test_a_batch_does_not_depend_on_who_solved_what(workers):
    starts, goals, checker = problems()
    plain = rrt_connect.solve_batch(starts, goals, checker, SETTINGS, seed=-4)
    assert sum(result.solved for result in plain) == len(starts) - 2
    devices = ",".join(["cpu"] * workers)
    assert_same_results(plain, rrt_connect.solve_batch(starts, goals, checker, SETTINGS, seed=-4, devices=devices))


def test_problems_that_need_many_samples_come_after_all_others(monkeypatch):
    starts, goals, checker = problems()
    plain, tried, solve = rrt_connect.solve_batch(starts, goals, checker, SETTINGS), [], cpu.solve

    def told(query, settings, seed, stop):
        tried.append((seed, settings.max_samples))
        return solve(query, settings, seed, stop)

    monkeypatch.setattr(cpu, "solve", told)
    monkeypatch.setattr(cpu, "FIRST_OF_MANY", 40)
    assert_same_results(plain, rrt_connect.solve_batch(starts, goals, checker, SETTINGS))
    asked = [i for i, start in enumerate(starts) if start is not None]
    hard = [i for i in asked if plain[i].samples > 40]
    assert 3 < len(hard) < len(asked) / 2
    assert sorted(tried[: len(asked)]) == [(i, 40) for i in asked]
    assert sorted(tried[len(asked) :]) == [(i, SETTINGS.max_samples) for i in hard]


def test_a_batch_over_processes(pool):
    starts, goals, checker = problems()
    plain = rrt_connect.solve_batch(starts, goals, checker, SETTINGS, seed=2**70)
    for _ in range(2):
        assert_same_results(plain, rrt_connect.solve_batch(starts, goals, checker, SETTINGS, 2**70, executor=pool))


def test_a_batch_of_robots_and_worlds_over_processes(pool):
    robot = load_urdf(ROOT / "urdf/dl14_arm.urdf", srdf=ROOT / "urdf/dl14_arm.srdf")
    worlds = [CollisionWorld() for _ in range(3)]
    for k, world in enumerate(worlds):
        world.add_cylinder("post", 0.1, 2.0, np.array([[1, 0, 0, 2.0 + k], [0, 1, 0, k], [0, 0, 1, 1], [0, 0, 0, 1.0]]))
    checkers = [CollisionChecker(robot, world, "cpu") for world in worlds]
    q = np.random.default_rng(0).uniform(robot.lower, robot.upper, (24, robot.dof))
    given = q[:12], q[12:], checkers * 4, SETTINGS, 5
    assert_same_results(rrt_connect.solve_batch(*given), rrt_connect.solve_batch(*given, executor=pool))


def test_more_checkers_than_every_worker_gets_travel_with_their_problems(monkeypatch):
    monkeypatch.setattr(batch, "MOST_SHARED", 2)
    starts, goals, _ = problems(12)
    checkers = [walled() for _ in starts]
    plain = rrt_connect.solve_batch(starts, goals, checkers, SETTINGS)
    assert_same_results(plain, rrt_connect.solve_batch(starts, goals, checkers, SETTINGS, devices="cpu,cpu"))


class AtOnce(Executor):
    """An executor that says that it has so many workers, and answers pieces of a batch when they come, on the CPU."""

    def __init__(self, workers):
        self._max_workers, self.pieces = workers, []

    def submit(self, _, order, shared):
        piece, future = pickle.loads(order.piece), Future()
        self.pieces.append(list(piece.seeds))
        future.set_result(order.answer(pickle.loads(shared), piece, "cpu"))
        return future


@pytest.mark.parametrize(
    "count, sizes", [(300, [100, 100, 100]), (400, [134, 134, 132]), (1500, [250, 209, 174, 160, 160])]
)
def test_workers_on_cuda_get_equal_parts_up_to_a_size(count, sizes, monkeypatch):
    monkeypatch.setattr(batch, "LEAST_ALIKE", 160)
    monkeypatch.setattr(batch, "solve_part", seeds_of)
    checker, executor = SimpleNamespace(robot="robot", device="cuda:0"), AtOnce(3)
    none, each = np.zeros(count, int), np.arange(count)
    asked = batch.Batch(none, none, [checker], none, SETTINGS, each, BatchShape(count, 1))
    assert batch.spread_batch(asked, executor, "cuda:all", None).samples.tolist() == list(range(count))
    assert [len(piece) for piece in executor.pieces][: len(sizes)] == sizes
    assert executor.pieces[0] == list(range(0, 3 * sizes[0], 3))


def test_checkers_travel():
    robot = load_urdf(ROOT / "urdf/dl14_arm.urdf", srdf=ROOT / "urdf/dl14_arm.srdf")
    world = CollisionWorld()
    world.add_box("box", [0.5, 0.5, 0.5], np.eye(4))
    world.add_voxels("cells", [[0, 0, 0], [1, 0, 0], [5, 5, 5]], 0.1, np.eye(4))
    arm, rectangles, _, _ = nine_link_scene()
    for checker in (
        CollisionChecker(robot, world, "cpu", MotionCheck("joint", 0.1), margin=0.02),
        CollisionChecker(robot, world, "cpu").thickened(0.05),
        PlanarChecker(arm, rectangles, "cpu", MotionCheck("count", 50)),
        walled(),
    ):
        other = pickle.loads(pickle.dumps(checker))
        assert type(other) is type(checker) and other.device == "cpu" and other.on("cpu") is other
        assert other.motion_args == checker.motion_args
        for one, two in zip(checker.packed_scene, other.packed_scene):
            assert one.tobytes() == two.tobytes()
    copied = pickle.loads(pickle.dumps(world))
    assert copied.names == world.names and copied.version != world.version
    copied.remove("box")
    assert "box" in world.names


def test_a_plan_of_many_goals_does_not_depend_on_who_planned_what(pool):
    for connectivity in (4, 8):
        grid = GridMap(caves_and_rooms(96, 96).costs, connectivity)
        starts, goals = random_free_tiles(grid, 300), random_free_tiles(grid, 40, seed=1)[np.arange(300) * 7 % 40]
        starts[5], goals[9] = (-1, 3), (200, 0)
        planner = BlockPlanner(grid, device="cpu")
        planner.update([50], [50], 0)
        plain = planner.plan(starts, goals)
        assert 250 < plain.solved.sum() < 300
        for how in ({"devices": "cpu"}, {"devices": "cpu,cpu,cpu"}, {"executor": pool}):
            shared = planner.plan(starts, goals, **how)
            for field in ("starts", "status", "cost", "length", "first", "words", "bits"):
                assert np.array_equal(getattr(plain, field), getattr(shared, field)), field
        assert not len(planner.plan(np.zeros((0, 2)), np.zeros((0, 2)), executor=pool))
    with pytest.raises(SettingsError, match="'astar'"):
        BlockPlanner(grid, "astar", device="cpu").plan(starts, goals, executor=pool)


def test_fleets_do_not_depend_on_who_planned_which():
    grids = [caves_and_rooms(20, 20, seed=seed) for seed in range(3)]
    settled = Settings(improve_until="settled")
    fleets = [FleetPlanner(grid, motion, "cpu", settled) for grid, motion in zip(grids, ("four", "turning", "four"))]
    starts = [random_free_tiles(grid, 6, seed=1) for grid in grids]
    goals = [random_free_tiles(grid, 6, seed=2) for grid in grids]
    plain = solve_batch(starts, goals, fleets, 1e6, seed=3)
    for plan, fleet, start, goal, seed in zip(plain, fleets, starts, goals, range(3, 6)):
        assert np.array_equal(plan.positions, fleet.solve(start, goal, 1e6, seed).positions)
    for devices in ("cpu", "cpu,cpu"):
        for one, other in zip(plain, solve_batch(starts, goals, fleets, 1e6, seed=3, devices=devices)):
            for field in ("status", "positions", "headings", "costs"):
                assert np.array_equal(getattr(one, field), getattr(other, field)), field
    again = solve_batch(iter(starts), (goal for goal in goals), fleets, 1e6, np.int64(3), iter([None] * 3))
    assert all(np.array_equal(one.positions, other.positions) for one, other in zip(plain, again))
    with pytest.raises(SettingsError, match="2 starts, 3 goals"):
        solve_batch(starts[:2], goals, fleets)
    for wrong in (None, 3):
        for given in ((wrong, goals, fleets), (starts, wrong, fleets), (starts, goals, fleets, 1.0, 0, 3)):
            with pytest.raises(SettingsError, match="are no sequences; allowed"):
                solve_batch(*given)
        with pytest.raises(SettingsError, match=f"fleets holds {wrong}"):
            solve_batch(starts, goals, wrong)
    for seed in (None, "1", True, -1, 2**63 - 2):
        with pytest.raises(SettingsError, match="seed is"):
            solve_batch(starts, goals, fleets, seed=seed)
    with pytest.raises(GridMapError, match=r"worker .*goals has 5 rows"):
        solve_batch(starts, [goals[0], goals[1][:5], goals[2]], fleets, devices="cpu")


@pytest.mark.slow
def test_mpi_workers():
    pytest.importorskip("mpi4py.futures", reason="mpi4py, the extra `mpi`, is not installed")
    beside = shutil.which("mpirun", path=os.path.dirname(sys.executable)) or shutil.which("mpirun")
    if not beside:
        pytest.skip("there is no mpirun: install the extra `mpi`")
    command = [beside, "-n", "4", sys.executable, "-m", "mpi4py.futures", executor_script(), "mpi"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0 and "the same" in ended.stdout, ended.stdout + ended.stderr


@pytest.mark.slow
def test_dask_workers():
    pytest.importorskip("distributed", reason="Dask's distributed, the extra `dask`, is not installed")
    ended = subprocess.run([sys.executable, executor_script(), "dask"], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0 and "the same" in ended.stdout, ended.stdout + ended.stderr
    assert "after a fault: [[(-1, " in ended.stdout, ended.stdout
    assert "WorkerError" in ended.stdout and "KilledWorker" in ended.stdout, ended.stdout


def executor_script():
    return str(ROOT / "test" / "solve_over_executors.py")


@pytest.mark.parametrize("made", ["link", "open"])
def test_a_foreign_folder_of_slots_is_refused(tmp_path, monkeypatch, made):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / f"gpu_planners-{os.geteuid()}"
    if made == "link":
        (tmp_path / "other").mkdir()
        folder.symlink_to(tmp_path / "other")
    else:
        folder.mkdir()
        folder.chmod(0o777)
    with pytest.raises(WorkerError, match="allowed: a folder"):
        worker._take_slot(["cpu"])
