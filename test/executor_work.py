"""Work for the workers of executors, and what they do wrong on request: a module that their processes can import."""

import os
import signal
import sys
from pathlib import Path

from gpu_planners.distributed.executors import Split


class Shared:
    """What all pieces share; it counts, in a folder, how often it is unpickled. base: is added to each answer"""

    def __init__(self, base, folder):
        self.base, self.folder = base, str(folder)

    def __setstate__(self, state):
        self.__dict__.update(state)
        Path(self.folder, f"unpickled-{os.getpid()}-{os.urandom(4).hex()}").touch()


def answer(piece, device):
    """-> [(square of the number and the shared base, device, number of the process)]; a text is a fault to make"""
    numbers, shared = piece
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
    return Split("numbers", len(numbers), lambda first, last: (numbers[first:last], shared), answer, (shared,))


def squares(numbers, shared):
    """What comes of it."""
    return [number * number + shared.base for number in numbers]


def seeds_of(batch, device):
    """In place of solve_part: each problem's seed as its result."""
    return list(batch.seeds)
