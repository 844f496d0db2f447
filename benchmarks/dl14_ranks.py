"""Table 1 of [DL14]: its three parallelizations over MPI ranks, with a device or a CPU for each.

    mpirun -n 4 gpu-planners bench --only dl14_ranks

measures 1, 2 and 4 ranks; without mpirun there is one.
"""

import time

import numba
import numpy as np

from gpu_planners.arm import CollisionChecker, MotionCheck, load_urdf
from gpu_planners.arm.collision.scene_file import fixed_frames, load_scene
from gpu_planners.arm.planners import prm
from gpu_planners.distributed import Ranks, mpi, run

from .dl14 import BATCH, GOAL, MILLION, RADIUS, ROOT, START, STEP
from .harness import Benchmark, Row, median, percentile, progress

PAPER, PAPER_CPU = "[DL14], K20m", "[DL14], CPU threads"
QUOTED = (  # version, who, how many, ms, checks, ms per 10^6
    (1, PAPER, (1, 2, 4), (6864, 1580, 869), (6171525, 4489213, 5853763), (1070, 342, 149)),
    (2, PAPER, (1, 2, 4), (2136, 1778, 1677), (6933768,) * 3, (337, 290, 279)),
    (3, PAPER, (1, 2, 4), (2492, 1345, 942), (19096275,) * 3, (130, 72, 52)),
    (3, PAPER_CPU, (4, 8, 16), (32730, 17676, 9936), (10038198,) * 3, (3281, 1785, 1012)),
)


class Watched:
    """A checker or an exchange whose calls are timed.  seconds: in them;  calls: how many;  checks: steps of motions"""

    def __init__(self, watched):
        self._watched, self.seconds, self.calls, self.checks = watched, 0.0, 0, 0

    def __getattr__(self, name):
        return getattr(self._watched, name)

    def motions_valid(self, q_from, q_to):
        """See CollisionChecker."""
        self.checks += int((np.ceil(np.linalg.norm(q_to - q_from, axis=1) / STEP) + 1).sum())
        return self._timed(self._watched.motions_valid, q_from, q_to)

    def all_gather(self, value):
        """See Exchange."""
        return self._timed(self._watched.all_gather, value)

    def _timed(self, call, *arguments):
        began = time.perf_counter()
        answer = call(*arguments)
        self.seconds += time.perf_counter() - began
        self.calls += 1
        return answer


def dl14_ranks(context):
    """Rows of each version by the number of ranks, and the paper's. Every rank calls it."""
    sizes = [1]
    while context.ranks and 2 * sizes[-1] <= context.ranks.size:
        sizes.append(2 * sizes[-1])
    rows = []
    for device, missing in context.asked_for():
        if missing:
            rows.append(Row("versions 1 to 3", f"gpu_planners, {device}", note=missing))
            continue
        for size in sizes:
            rows += _of_size(context, size, device)
    for version, who, counts, *columns in QUOTED:
        for count, ms, checks, million in zip(counts, *columns, strict=True):
            text = f"{ms} ms, {checks} checks, {million} ms for 10^6 (paper, table 1)"
            rows.append(Row(f"version {version}", f"{who}, {count}", quoted=text))
    return rows


def _of_size(context, size, device):
    """-> [Row] that the first `size` ranks measure; the others wait, and get none."""
    if context.ranks is None:
        return run(1, lambda alone: _measured(context, alone, device))[0]
    here = context.ranks.rank < size
    part = mpi.load().COMM_WORLD.Split(0 if here else 1)
    rows = []
    if here:
        with Ranks(part) as ranks:
            rows = _measured(context, ranks, device if device == "cpu" else ranks.device())
    context.ranks.all_gather(None)
    return rows


def _measured(context, ranks, device):
    robot = load_urdf(ROOT / "urdf" / "dl14_arm.urdf", ROOT / "urdf" / "dl14_arm.srdf")
    world = load_scene(ROOT / "config" / "scenes" / "dl14.yaml", fixed_frames(robot))
    collisions = CollisionChecker(robot, world, device, MotionCheck("joint", STEP))
    on_cpu, threads = device == "cpu", numba.get_num_threads()
    subject = f"gpu_planners, cpu, {threads} thread{'s' * (threads > 1)} a rank" if on_cpu else "gpu_planners, cuda"
    rows, versions = [], (1, 2, 3)
    for version in progress(versions, f"dl14_ranks, {ranks.size}, {device}") if ranks.rank == 0 else versions:
        settings = prm.Settings(
            version=version, radius=RADIUS, batch=0 if on_cpu else BATCH, shortcut_rounds=0, time_limit_s=60
        )
        results, watched = [], []
        for seed in range(3 if context.quick else 10):
            checker, exchange = Watched(collisions), Watched(ranks)
            results.append(prm.solve(START, GOAL, checker, settings, seed, ranks=exchange))
            everybody = ranks.all_gather((checker.checks, checker.seconds, exchange.seconds, exchange.calls))
            watched.append(np.array(everybody, dtype=float))  # (ranks, 4)
        taken = [result.time_s for result in results]
        checks, check_s, exchange_s, exchanges = np.moveaxis(np.array(watched), 2, 0)  # (seeds, ranks) each
        figures = {
            "ranks": ranks.size,
            "solved": f"{sum(result.solved for result in results)}/{len(results)}",
            "plan_ms": 1e3 * median(taken),
            "plan_p95_ms": 1e3 * percentile(taken, 95),
            "checks": int(median(checks.sum(axis=1))),
            "million_ms": 1e3 * sum(taken) * MILLION / checks.sum(),
            "check_ms": 1e3 * median(check_s.mean(axis=1)),
            "exchange_ms": 1e3 * median(exchange_s.mean(axis=1)),
            "exchanges": int(median(exchanges[:, 0])),
        }
        rows.append(Row(f"version {version}", subject, figures, taken))
    return rows


COLUMNS = {
    "ranks": "count",
    "solved": "text",
    "plan_ms": "ms",
    "plan_p95_ms": "ms",
    "checks": "count",
    "million_ms": "ms",
    "check_ms": "ms",
    "exchange_ms": "ms",
    "exchanges": "count",
}
TEXT = (
    "Table 1 of [DL14]: its arm and narrow passage, step 0.01 and radius 1.0 in joint space, by the number of MPI "
    "ranks, which have a device each, or share the CPU. Wall time from start to path, median and 95th percentile over "
    "10 seeds, warm; 256 samples a round of all ranks together on the CPU, 2048 on CUDA. A check is one step of a "
    "motion, also where an earlier one ended it: what the paper calls a GPU thread; time for 10^6 of them over all "
    "seeds. In checks and in exchanges, which includes waiting for slower ranks: of a mean rank, median over the seeds."
)

BENCHMARKS = (
    Benchmark("dl14_ranks", "Demmeler and Liebmann's table 1: MPI ranks", TEXT, COLUMNS, dl14_ranks, on_ranks=True),
)
