"""Work for the workers of executors, and what they do wrong on request: a module that their processes can import."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
from walled_point import walled

from gpu_planners.arm import PlanningResult, PlanningResults, Status, rrt_connect
from gpu_planners.distributed.executors import Split

SETTINGS = rrt_connect.Settings(time_limit_s=60.0)


class Shared:
    """What all pieces share; it counts, in a folder, how often it is unpickled. base: is added to each answer"""

    def __init__(self, base, folder):
        self.base, self.folder = base, str(folder)

    def __setstate__(self, state):
        self.__dict__.update(state)
        Path(self.folder, f"unpickled-{os.getpid()}-{os.urandom(4).hex()}").touch()


def answer(shared, numbers, device):
    """-> [(square of the number and the shared base, device, number of the process)]; a text is a fault to make"""
    for fault in (number for number in numbers if isinstance(number, str)):
        if fault == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "exit":
            sys.exit(3)
        if fault == "always" or not Path(shared.folder, "failed").exists():
            Path(shared.folder, "failed").touch()
            raise MemoryError("no room on the device")
    return [(-1 if isinstance(n, str) else n * n + shared.base, device, os.getpid()) for n in numbers]


def split_of(numbers, shared):
    """The work to square numbers."""
    return Split("numbers", len(numbers), lambda first, last: numbers[first:last], answer, shared)


def squares(numbers, shared):
    """What comes of it."""
    return [number * number + shared.base for number in numbers]


def seeds_of(batch, device):
    """In place of solve_part: results with each problem's seed as its number of samples."""
    none = np.zeros((0, 2))
    return PlanningResults.of([PlanningResult(Status.TIMED_OUT, none, samples=seed) for seed in batch.seeds], 2)


def problems(count=40, seed=0):
    """Starts, goals and a checker: free points around a wall, an occupied start, a start that is no number."""
    rng, checker = np.random.default_rng(seed), walled()
    q = rng.uniform(0, 1, (4 * count, 2))
    q = q[checker.configurations_valid(q)]
    starts, goals = list(q[:count]), list(q[count : 2 * count])
    if count > 5:
        starts[3], starts[5] = np.array([0.5, 0.5]), None
    return starts, goals, checker


def assert_same_results(some, others):
    assert len(some) == len(others)
    for one, other in zip(some, others):
        assert (one.status, one.cost, one.samples, one.message) == (
            other.status,
            other.cost,
            other.samples,
            other.message,
        )
        assert one.path.tobytes() == other.path.tobytes()
