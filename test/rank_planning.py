"""What a rank does in test_ranks.py that plans: versions 1 to 3 on the scene of [DL14], and what ends a search early.

Each rank prints its JSON, {name of a search: its answer}. Arguments: the device of each rank, or none.
"""

import dataclasses
import hashlib
import json
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from gpu_planners.arm import CollisionChecker, MotionCheck, load_urdf
from gpu_planners.arm.collision.scene_file import fixed_frames, load_scene
from gpu_planners.arm.planners import prm
from gpu_planners.arm.planners.prm import versions
from gpu_planners.distributed import Ranks, mpi
from gpu_planners.errors import GpuPlannersError

ROOT = Path(__file__).resolve().parent.parent
START, GOAL, COLLIDING = np.zeros(4), np.full(4, 1.5), np.array([1.8, -1.0, -2.7, -2.9])
FAR = np.full(4, 3.0)  # [DL14]'s goal, which takes several times as long
VERSIONS = ("version 1", "version 2", "version 3")
GRAPHS = []


def new_checker(device="cpu"):
    arm = load_urdf(ROOT / "urdf" / "dl14_arm.urdf", ROOT / "urdf" / "dl14_arm.srdf")
    world = load_scene(ROOT / "config" / "scenes" / "dl14.yaml", fixed_frames(arm))
    return CollisionChecker(arm, world, device, MotionCheck("joint", 0.01))


def searches(**more):
    """{name: arguments of prm.solve}.  more: settings"""
    all_settings = {
        f"version {version}": dict(version=version, time_limit_s=300, batch=128, shortcut_rounds=0)
        for version in (1, 2, 3)
    }
    all_settings["shortened"] = dict(version=2, time_limit_s=300, batch=128)
    all_settings |= {f"few samples {version}": dict(version=version, max_samples=7) for version in (1, 2, 3)}
    all_settings |= {f"little time {version}": dict(version=version, time_limit_s=0.01) for version in (1, 2, 3)}
    found = {
        name: dict(start=START, goals=GOAL, settings=prm.Settings(**settings, **more), seed=2)
        for name, settings in all_settings.items()
    }
    for version in (1, 2, 3):
        found[f"little time {version}"]["goals"] = FAR
    found["two goals"] = found["version 2"] | dict(goals=np.stack([COLLIDING, GOAL]))
    found["start in collision"] = found["version 2"] | dict(start=COLLIDING)
    found["no numbers"] = found["version 2"] | dict(start=np.array([np.nan, 0, 0, 0]))
    return found


def answer(checker, arguments, ranks=None):
    """-> [status, path, samples, cost, fingerprints of the graphs], or the error as a text"""
    GRAPHS.clear()
    try:
        result = prm.solve(checker=checker, ranks=ranks, **arguments)
    except GpuPlannersError as error:
        return f"{type(error).__name__}: {error}"
    return [result.status.name, result.path.tolist(), result.samples, str(result.cost), sorted(set(GRAPHS))]


@contextmanager
def graphs_noted():
    """Inside, the fingerprint of each graph that a path is taken from is kept: of nodes and edges, bit for bit."""
    shortest_path = versions.Roadmap.shortest_path

    def noting(roadmap, *arguments):
        if len(roadmap.nodes) > 100:  # not the one of the warm-up
            data = roadmap.nodes.tobytes() + roadmap.edges.astype(np.int64).tobytes()
            GRAPHS.append(hashlib.sha256(data).hexdigest())
        return shortest_path(roadmap, *arguments)

    versions.Roadmap.shortest_path = noting
    try:
        yield
    finally:
        versions.Roadmap.shortest_path = shortest_path


def in_parts(checker, ranks):
    """{number of ranks: {version: answer}} of parts of these ranks: each alone, and in pairs."""
    world, found = mpi.load().COMM_WORLD, {}
    for size in (1, 2):
        with Ranks(world.Split(ranks.rank // size)) as part:
            found[size] = {name: answer(checker, searches()[name], part) for name in VERSIONS}
    return found


def different_problems(ranks, checker):
    """{what is different in the last rank: the error}"""
    same, last = searches()["version 2"], ranks.rank == ranks.size - 1
    other = {
        "seed": same | dict(seed=7),
        "start": same | dict(start=np.full(4, 0.01)),
        "settings": same | dict(settings=dataclasses.replace(same["settings"], radius=0.9)),
    }
    errors = {f"other {what}": answer(checker, other[what] if last else same, ranks) for what in other}
    for what, change in (("world", {"margin": 0.01}), ("check", {"motion": MotionCheck("joint", 0.5)})):
        mine = new_checker()
        for name, value in change.items() if last else ():
            setattr(mine, name, value)
        errors[f"other {what}"] = answer(mine, same, ranks)
    return errors


def obstacles_that_change(ranks, checker):
    """In the last rank, while it plans."""
    if ranks.rank == ranks.size - 1:
        motions_valid = checker.motions_valid

        def change(*motions):
            if "late" not in checker.world.names:
                checker.world.add_sphere("late", 0.1, np.eye(4) + np.eye(4, k=3) * 50)
            return motions_valid(*motions)

        checker.motions_valid = change
    return answer(checker, searches()["version 2"], ranks)


def a_device_that_is_full(ranks, checker):
    """In the last rank, while it plans, as a thread of its own finds out."""

    def full(*motions):
        raise MemoryError("cuda:9 has no memory left")

    if ranks.rank == ranks.size - 1:
        checker.motions_valid = full
    return answer(checker, searches()["version 3"], ranks)


def main(devices):
    with graphs_noted(), Ranks() as ranks:
        checker = new_checker(devices[ranks.rank] if devices else ranks.device())
        found = {name: answer(checker, arguments, ranks) for name, arguments in searches().items()}
        if ranks.size == 4:
            found["parts"] = in_parts(checker, ranks)
        if ranks.size > 1:
            found |= different_problems(ranks, checker)
            found["other obstacles"] = obstacles_that_change(ranks, checker)
        found["device"] = checker.device
    try:
        with Ranks() as ranks:
            found["full device"] = a_device_that_is_full(ranks, new_checker(checker.device))
    except Exception as error:
        found["full device"] = f"{type(error).__name__}: {error}"
    with Ranks() as ranks:
        for line in ranks.all_gather(json.dumps(found)):
            if ranks.rank == 0:
                print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
