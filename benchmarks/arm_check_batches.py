"""Checks in batches of the same sizes, by us and by mujoco_warp, in the same run on the same device."""

import time

import numpy as np

from gpu_planners.arm import CollisionWorld, load_urdf

from . import coal_peer, mujoco_warp_peer
from .arm_checks import (
    CONTACT,
    RATE,
    STEP,
    along_segments,
    checker_among,
    first_scenes,
    random_configurations,
    spread,
    stepped,
)
from .harness import Benchmark, Row, median, places, progress, seconds
from .problems import add_obstacles, robot_files

SIZES = {"cpu": (1_000,), "cuda": (1_000, 100_000)}
COMPARED = 500  # configurations of a scene whose verdicts are compared with coal's


def check_batches(context):
    """Rows of each mix and size: ours, and mujoco_warp's, where it is installed."""
    robot, rows = load_urdf(*robot_files("panda", context.data)), []
    for device, missing in context.asked_for():
        kind = device.partition(":")[0]
        for mix, draw in (("random", random_configurations), ("along problem segments", along_segments)):
            truth = None if missing else _Truth(context, robot, draw)
            for size in SIZES["cuda" if context.full else kind]:
                case = f"{mix}, {size:,} at once"
                for subject, measured, why in (
                    ("gpu_planners", _ours, missing),
                    ("mujoco_warp", _theirs, missing or mujoco_warp_peer.unavailable(device)),
                ):
                    if why:
                        rows.append(Row(case, f"{subject}, {device}", note=why))
                    else:
                        rows += _rows(case, f"{subject}, {device}", measured, context, robot, draw, size, device, truth)
        rows += [] if missing else _motions(context, robot, SIZES["cuda" if context.full else kind], device)
    return rows


class _Truth:
    """Configurations of each scene, ours and coal's verdicts of them, and where coal's are clear of contact."""

    def __init__(self, context, robot, draw):
        self.q, self.free, self.clear = [], [], []
        missing = coal_peer.unavailable()
        self.oracle = "ours on the CPU" if missing else "coal"
        for problem in first_scenes(context):
            q = draw(robot, problem, COMPARED)
            free, clear = checker_among(robot, problem, "cpu").configurations_valid(q), np.ones(len(q), bool)
            if not missing:
                scene = coal_peer.scene("panda", problem.obstacles, context.data)
                free = coal_peer.all_valid(coal_peer.validity(scene), q)
                clear = np.array([abs(scene.distance(row)) > CONTACT for row in q])
            self.q.append(q)
            self.free.append(free)
            self.clear.append(clear)

    def figures(self, verdicts):
        """{compared, false_free, false_hit} of the verdicts (N,) of each scene."""
        told, free, clear = np.concatenate(verdicts), np.concatenate(self.free), np.concatenate(self.clear)
        return {
            "compared": int(clear.sum()),
            "false_free": int((told & ~free & clear).sum()),
            "false_hit": int((~told & free & clear).sum()),
        }


def _rows(case, subject, measured, context, robot, draw, size, device, truth):
    rates, verdicts, compiled = {}, [], []
    for number, problem in enumerate(progress(first_scenes(context), f"{subject}, {size}")):
        q = draw(robot, problem, size)
        calls, told, first_s = measured(robot, problem, device, q, truth.q[number])
        verdicts.append(told)
        compiled.append(first_s)
        for where, call in calls.items():
            taken = seconds(call, 3 if context.quick else 7, warm_up=2)
            rates.setdefault(where, []).append(size / median(taken))
    note = f"compared with {truth.oracle}; first check {max(compiled):.1f} s"
    return [
        Row(case, subject + where, spread(each) | truth.figures(verdicts), each, note=note)
        for where, each in rates.items()
    ]


def _ours(robot, problem, device, q, compared):
    """{where the arrays are: call}, the verdicts of `compared`, seconds of the first check, which may compile."""
    began = time.perf_counter()
    checker = checker_among(robot, problem, device)
    checker.configurations_valid(q)
    first_s = time.perf_counter() - began
    calls = {where: (lambda given=given: checker.configurations_valid(given)) for where, (given,) in places(device, q)}
    return calls, checker.configurations_valid(compared), first_s


def _theirs(robot, problem, device, q, compared):
    """As _ours, of mujoco_warp."""
    checks = mujoco_warp_peer.Checks(robot, add_obstacles(CollisionWorld(), problem.obstacles), len(q), device)
    given = checks.positions(q)
    calls = {"": lambda: checks.valid(given)}
    if device != "cpu":
        uploaded = checks.uploaded(given)
        calls[", arrays on the device"] = lambda: checks.hit(uploaded)
    filled = np.resize(compared, q.shape)
    told = checks.valid(checks.positions(filled))[: len(compared)]
    if checks.overflowed():
        raise RuntimeError("mujoco_warp had no room for some contacts")
    return calls, told, checks.compiled_s


def _motions(context, robot, sizes, device):
    """What configurations do not say: whole motions, proven free."""
    rows = []
    for size in sizes:
        rates = {}
        for problem in progress(first_scenes(context), f"motions, {device}"):
            rng, checker = np.random.default_rng(problem.index), checker_among(robot, problem, device)
            q_from = rng.uniform(robot.lower, robot.upper, (3 * size, robot.dof))
            q_from = q_from[checker.configurations_valid(q_from)][:size]
            for where, ends in places(device, q_from, stepped(rng, q_from, robot)):
                taken = seconds(lambda c=checker, e=ends: c.motions_valid(*e), 3 if context.quick else 7)
                rates.setdefault(where, []).append(len(q_from) / median(taken))
        rows += [
            Row(
                f"motions of {STEP} rad, {size:,} at once", f"gpu_planners, {device}{where}, proven", spread(each), each
            )
            for where, each in rates.items()
        ]
    return rows


BENCHMARKS = (
    Benchmark(
        "check_batches",
        "Checks in batches, beside mujoco_warp",
        "Panda hulls among one MotionBenchMaker scene of each family; median, lowest and highest configurations per "
        "second over the scenes, float32 arrays on the host, verdicts to the host, unless a row says otherwise. "
        "mujoco_warp has the same hulls, obstacles and pairs, a world for each configuration, kinematics and "
        "collisions alone, on CUDA as one graph, on the CPU on one thread, where we have all; it finds all contacts, "
        "one of each pair, where we stop at the first. Both check configurations, so a motion is sampled; the rows of "
        "motions prove each of them free all along. "
        "False: free, or hit, against the oracle that the note names (coal where no pair is within 0.1 mm of contact).",
        RATE | {"compared": "count", "false_free": "count", "false_hit": "count"},
        check_batches,
    ),
)
