"""MPI ranks: exchanges, every kind of fault, and prm.solve over ranks beside the same search over threads.

The ranks are processes of `mpirun` on this machine; each call of it runs one of the scripts rank_*.py, which tries many
things, because a process takes seconds to start.
"""

import functools
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import rank_planning
from mpi_harness import ROOT, mpirun
from rank_planning import VERSIONS

from benchmarks import __main__ as command
from gpu_planners.arm.planners import prm
from gpu_planners.device import cuda_problem
from gpu_planners.distributed import Exchange, Ranks, mpi, run
from gpu_planners.errors import RanksError, SettingsError


def said_by_ranks(size, script, *arguments, **more):
    """-> [what a rank printed, by rank]"""
    code, out, err = mpirun(size, ROOT / "test" / script, *arguments, **more)
    assert code == 0, f"exit code {code}:\n{out}\n{err}"
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert len(lines) == size
    return lines


@pytest.mark.parametrize("size", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_exchanges_and_faults(size):
    """The last rank fails in every way; all others say that it did and why, within seconds."""
    said = said_by_ranks(size, "rank_exchanges.py")
    assert [(each["rank"], each["size"], each["local"]) for each in said] == [(k, size, k) for k in range(size)]
    assert all(each["exchanges"] for each in said)
    for each in said:
        *communicators, gathered, swapped, entered = each["refused"]
        assert all(text.startswith("RanksError: communicator is ") for text in communicators)
        assert gathered == swapped == entered and gathered.endswith("make new ones: they have ended")
    last = size - 1
    for each in said[:last]:
        assert each["raises_without_text"] == f"RanksError: rank {last} failed: Mute"
        assert each["raises"] == f"RanksError: rank {last} failed: ValueError: the device is full"
        assert each["raises_while_others_swap"] == f"RanksError: rank {last} failed: KeyError: 'between two exchanges'"
        assert (
            each["cannot_be_sent"].startswith(f"RanksError: rank {last} failed: ")
            and "pickle" in each["cannot_be_sent"]
        )
        assert each["leaves"].startswith(f"RanksError: rank {last} ended while rank")
        assert each["hangs"].startswith(f"RanksError: rank {last} did not come in 1")
        assert "rank 0: all_gather" in each["waits_for_something_else"]
        assert f"rank {last}: swap with rank 0" in each["waits_for_something_else"]
        assert each["more_than_is_taken"].startswith("RanksError: rank 0 failed: in swap with rank")
        assert "MPI says" in each["more_than_is_taken"]
        assert f"in swap with rank {last}, rank {last} sent 8 bytes of 16" in each["less_than_is_taken"]
        assert "failed" in each["goes_on_after_a_fault"]
    for each in said[last:]:
        assert each["raises"] == "ValueError: the device is full" and "RanksError" in each["leaves"]
        assert f"rank {last} did not come" in each["hangs"] and "did not come" not in each["waits_for_something_else"]
    assert max((each[key] for each in said for key in each if key.endswith(" took")), default=0) < 60


def test_all_ranks_end_where_one_ends():
    """All programs at once, since they mostly wait."""
    ends = {
        "raises": ("MemoryError: the device is full", "RanksError: rank 1 failed: MemoryError: the device is full"),
        "killed": ("9",),  # mpirun's own words
        "hangs": ("RanksError: rank 1 did not come in 1",),
        "starts no MPI": ("no such file: robot.urdf",),
    }
    with ThreadPoolExecutor(len(ends)) as pool:
        said = pool.map(lambda how: mpirun(2, ROOT / "test" / "rank_ends.py", how, timeout_s=120), ends)
    for texts, (code, out, err) in zip(ends.values(), said):
        assert code != 0
        for text in texts:
            assert text in out + err


@pytest.fixture(scope="module")
def over_threads():
    """-> function: {name of a search: its answer} of threads on the CPU, whose checks need no MPI."""
    checker = rank_planning.new_checker()

    @functools.cache
    def answers(workers, names=None):
        with rank_planning.graphs_noted():
            return {
                name: rank_planning.answer(checker, arguments)
                for name, arguments in rank_planning.searches(workers=workers).items()
                if names is None or name in names
            }

    return answers


@pytest.mark.slow
def test_ranks_plan_as_threads_do(over_threads):
    """Four ranks, and their parts of two and of one."""
    size = 4
    said = said_by_ranks(size, "rank_planning.py", *["cpu"] * size, timeout_s=500, NUMBA_NUM_THREADS="1")
    full = [each.pop("full device") for each in said]
    assert full[-1] == "MemoryError: cuda:9 has no memory left"
    assert all(text == f"RanksError: rank {size - 1} failed: {full[-1]}" for text in full[:-1])
    assert all(each == said[0] for each in said)  # results and graphs
    said = said[0]
    alone = over_threads(1)
    for count, answers in ((1, said["parts"]["1"]), (2, said["parts"]["2"]), (4, said)):
        threads = over_threads(count, VERSIONS)
        for name in VERSIONS:
            assert answers[name][0] == "SOLVED" and len(answers[name][1]) > 2 and len(answers[name][4]) == 1
            assert answers[name] == threads[name]  # the graph too
            assert answers[name][:4] == alone[name][:4]
    for name in (
        "shortened",
        "two goals",
        "start in collision",
        "no numbers",
        *(f"few samples {k}" for k in (1, 2, 3)),
    ):
        assert said[name][:4] == alone[name][:4]
    assert all(said[f"little time {k}"][0] == "TIMED_OUT" for k in (1, 2, 3))
    assert said["two goals"][0] == "SOLVED" and said["start in collision"][0] == "START_IN_COLLISION"
    assert f"but seed of rank 0 is 2, and of rank {size - 1} 7" in said["other seed"]
    assert "start of rank 0" in said["other start"] and "0.01" in said["other start"]
    assert f"radius of rank 0 is 1.0, and of rank {size - 1} 0.9" in said["other settings"]
    assert "checksum of shapes and obstacles of rank 0 is" in said["other world"]
    assert f"and of rank {size - 1} (2.0, 0.5)" in said["other check"]
    assert said["other obstacles"][0] == "WORLD_CHANGED"


@pytest.mark.gpu
@pytest.mark.slow
def test_two_gpus_plan_as_one_does():
    """Each rank has its GPU; and a CPU beside a GPU gives the same result in both ranks."""
    if cuda_problem():
        pytest.skip(f"no CUDA device: {cuda_problem()}")
    from numba import cuda

    if len(cuda.gpus) < 2:
        pytest.skip(f"two CUDA devices are needed, and there are {len(cuda.gpus)}")
    both = said_by_ranks(2, "rank_planning.py", timeout_s=500)
    assert both[0].pop("full device") != both[1].pop("full device")
    one = said_by_ranks(1, "rank_planning.py", "cuda:0", timeout_s=500)[0]
    assert [each.pop("device") for each in both] == ["cuda:0", "cuda:1"]
    assert both[0] == both[1]
    for name in VERSIONS:
        assert both[0][name][0] == "SOLVED" and both[0][name][:4] == one[name][:4]
    mixed = said_by_ranks(2, "rank_planning.py", "cpu", "cuda:1", timeout_s=500)
    assert [each.pop("device") for each in mixed] == ["cpu", "cuda:1"]
    assert mixed[0].pop("full device") != mixed[1].pop("full device")
    assert mixed[0] == mixed[1] and mixed[0]["version 2"][0] == "SOLVED"


def test_an_exchange_between_threads_plans_too():
    """What `ranks` takes is any Exchange: here two threads with a checker each."""
    arguments = rank_planning.searches()["version 2"]
    one, two = run(2, lambda each: prm.solve(checker=rank_planning.new_checker(), ranks=each, **arguments))
    assert one.solved and np.array_equal(one.path, two.path)


def test_swaps_between_threads():
    def shift(exchange):
        near = [rank for rank in (exchange.rank - 1, exchange.rank + 1) if 0 <= rank < exchange.size]
        arrays = {rank: (np.full(3, exchange.rank), np.zeros(3, dtype=int)) for rank in near}
        for _ in range(20):
            exchange.swap(arrays)
        return {rank: received.tolist() for rank, (_, received) in arrays.items()}

    assert run(3, shift) == [{1: [1] * 3}, {0: [0] * 3, 2: [2] * 3}, {1: [1] * 3}]


def test_a_thread_that_ends_while_others_exchange():
    for call in (lambda exchange: exchange.all_gather(0), lambda exchange: exchange.swap({})):
        with pytest.raises(RanksError, match=r"rank 1 ended while ranks 0, 2 went on"):
            run(3, lambda exchange, call=call: exchange.rank == 1 or call(exchange))


class Doubting:
    """An Exchange of two, whose other rank answers as `other` says."""

    rank, size, local_rank = 0, 2, 0

    def __init__(self, other):
        self._other = other

    def all_gather(self, value):
        return [value, self._other(value)]

    def swap(self, arrays):
        raise AssertionError("nothing is swapped")


def test_graphs_that_differ_are_an_error():
    """Processors may round differently; then ranks would return paths of different graphs."""
    arguments = rank_planning.searches()["version 1"]
    exchange: Exchange = Doubting(lambda value: (value[0] + 1, value[1]) if is_fingerprint(value) else value)
    with pytest.raises(RanksError, match=r"different graphs \(rank 0: .* rank 1: .*round"):
        prm.solve(checker=rank_planning.new_checker(), ranks=exchange, **arguments)


def is_fingerprint(value):
    return isinstance(value, tuple) and [type(each) for each in value] == [int, int]


def test_what_ranks_do_not_do(over_threads):
    checker, exchange = rank_planning.new_checker(), Doubting(lambda value: value)
    with pytest.raises(SettingsError, match="version is 0; allowed with ranks: 1, 2, 3"):
        prm.solve(rank_planning.START, rank_planning.GOAL, checker, prm.Settings(), ranks=exchange)
    roadmap = prm.build(checker, prm.Settings(roadmap_nodes=2))
    with pytest.raises(SettingsError, match="roadmap and ranks"):
        prm.solve(
            rank_planning.START, rank_planning.GOAL, checker, prm.Settings(version=1), roadmap=roadmap, ranks=exchange
        )


def test_without_mpi4py(monkeypatch):
    mpi._started_by_all_processes.cache_clear()
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(RanksError, match="ranks need mpi4py and an MPI: .* extra `mpi`"):
        Ranks()
    with pytest.raises(RanksError, match="timeout_s is 0.*; allowed: more than 0"):
        Ranks(timeout_s=0)


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        ({"OMPI_COMM_WORLD_SIZE": "2"}, r"2 processes \(OMPI_COMM_WORLD_SIZE\), but .* another MPI, A 1.0, in"),
        ({"PMI_SIZE": "4"}, r"4 processes \(PMI_SIZE\)"),
        ({"SLURM_STEP_NUM_TASKS": "8"}, r"8 processes \(SLURM_STEP_NUM_TASKS\)"),
        ({"OMPI_COMM_WORLD_SIZE": "1", "SLURM_STEP_NUM_TASKS": "8"}, ""),  # one rank by mpirun in a step of Slurm's
        ({"PMI_SIZE": "1"}, ""),
        ({}, ""),
    ],
)
def test_an_mpirun_of_another_mpi(monkeypatch, environment, text):
    alone = SimpleNamespace(Get_size=lambda: 1)
    library = SimpleNamespace(COMM_WORLD=alone, Get_library_version=lambda: "A 1.0, of its makers\0")
    monkeypatch.setattr(mpi, "_started_by_all_processes", lambda: library)
    for name in mpi.SIZES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    if text:
        with pytest.raises(RanksError, match=text):
            mpi.load()
    else:
        assert mpi.load() is library


def test_mpich_under_open_mpis_mpirun(monkeypatch):
    """MPICH would end the process when it starts."""
    fake = SimpleNamespace(Get_library_version=lambda: "MPICH Version:      5.0\nMPICH Release date")
    monkeypatch.setitem(sys.modules, "mpi4py", SimpleNamespace(rc=SimpleNamespace(), MPI=fake))
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    monkeypatch.delenv("PMI_SIZE", raising=False)
    mpi._started_by_all_processes.cache_clear()
    with pytest.raises(RanksError, match=r"2 processes \(OMPI_COMM_WORLD_SIZE\), .* another MPI, MPICH Version: 5.0,"):
        Ranks()


ONE_SOLVE = """
import sys
from benchmarks import __main__ as command
from gpu_planners.arm.planners import prm
solve, few = prm.solve, prm.Settings(version=1, max_samples=300)
prm.solve = lambda start, goal, checker, settings, seed, ranks: solve(start, goal, checker, few, 0, ranks=ranks)
sys.exit(command.main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_the_benchmark_of_ranks(tmp_path):
    """The first rank alone prints and writes, rows for one and two ranks; other benchmarks are refused."""
    options = "--only", "dl14_ranks", "--quick", "--device", "cpu", "--out", tmp_path
    code, out, err = mpirun(2, "-c", ONE_SOLVE, *options, timeout_s=300, NUMBA_NUM_THREADS="1")
    assert code == 0, err
    assert out.count("Demmeler") == 1
    rows = [row for row in json.loads((tmp_path / "results.json").read_text())["tables"][0]["rows"] if row["figures"]]
    assert [row["figures"]["ranks"] for row in rows] == [1, 1, 1, 2, 2, 2]
    checks = {row["figures"]["checks"] for row in rows}
    assert len(checks) == 1 and checks.pop() > 300  # the work of one search, however many ranks share it


@pytest.mark.parametrize("rank", [0, 1])
def test_benchmarks_that_are_not_for_ranks(rank, tmp_path, monkeypatch, capsys):
    """mpirun of any other benchmark measures nothing, and says so once."""
    monkeypatch.setattr(command.mpi, "launched", lambda: (2, "PMI_SIZE"))
    monkeypatch.setattr(command, "Ranks", lambda **more: nullcontext(SimpleNamespace(rank=rank, size=2)))
    assert command.main(["--only", "dl14_ranks", "sizes", "--out", str(tmp_path / "no")]) == 2
    said = capsys.readouterr().err
    assert ("mpirun runs only --only dl14_ranks, banded; sizes runs without it" in said) == (rank == 0)
    assert not (tmp_path / "no").exists()
