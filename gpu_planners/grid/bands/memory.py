"""Checks that a machine has memory for all of its bands, before any of it is taken."""

import socket
from pathlib import Path

from ...distributed.exchange import Exchange
from ...errors import GridMapError

MEMORY_INFO = Path("/proc/meminfo")
GROUP = Path("/sys/fs/cgroup")  # of this process, where it runs in a container


def available_bytes() -> int | None:
    """Memory that this machine, or the container, has left; None where the system does not say."""
    try:
        lines = dict(line.split(":", 1) for line in MEMORY_INFO.read_text().splitlines())
        left = int(lines["MemAvailable"].split()[0]) << 10
    except (OSError, KeyError, ValueError):
        return None
    try:
        most, used = ((GROUP / name).read_text() for name in ("memory.max", "memory.current"))
        statistics = dict(line.split() for line in (GROUP / "memory.stat").read_text().splitlines())
        left = min(left, int(most) - int(used) + int(statistics["inactive_file"]))
    except (OSError, KeyError, ValueError):  # no such group, or "max"
        return left
    return left


def check_memory(exchange: Exchange, shape: tuple[int, int], need: int):
    """Raise GridMapError, on every rank, if the bands of a machine need more than it has. need: bytes of this rank"""
    told = exchange.all_gather((socket.gethostname(), need, available_bytes()))
    for machine in sorted({name for name, _, _ in told}):
        here = [(rank, *rest) for rank, (name, *rest) in enumerate(told) if name == machine]
        total, left = sum(bytes_ for _, bytes_, _ in here), [free for _, _, free in here if free is not None]
        if left and total > min(left):
            ranks = ", ".join(str(rank) for rank, *_ in here)
            raise GridMapError(
                f"the map of {shape[0]} x {shape[1]} tiles needs {total} bytes on the machine {machine} "
                f"(ranks {ranks}), which has {min(left)} left; allowed: more machines, smaller shares there, "
                "or a smaller map"
            )
