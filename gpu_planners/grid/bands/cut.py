"""How a map is cut into bands of whole rows of blocks, one for each rank, and whether machines have memory for them."""

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...arguments import whole
from ...distributed.exchange import Exchange
from ...errors import GridMapError, SettingsError, shown
from ..exact.blocks import checked_size

OVERLAP = 1  # rows of blocks that a rank works on beyond its band: a path that wavers along a border stays on it
MEMORY_INFO = Path("/proc/meminfo")
GROUP = Path("/sys/fs/cgroup")  # of this process, where it runs in a container


@dataclass(frozen=True)
class Band:
    """The rows of one rank; empty where first == last.

    rank: whose
    first, last: its rows are first .. last - 1 of the map
    top, bottom: those that it works on, top .. bottom - 1: OVERLAP blocks more on each side, within the map
    rings: does the map go on north and south of those?
    """

    rank: int
    first: int
    last: int
    top: int
    bottom: int
    rings: tuple[bool, bool]

    @property
    def rows(self) -> int:
        """How many rows the band has."""
        return self.last - self.first

    @property
    def held(self) -> tuple[int, int]:
        """(first, last) of the rows that its rank reads: those that it works on and one of each ring."""
        return self.top - self.rings[0], self.bottom + self.rings[1]


def plan_bands(rows: int, ranks: int, block_size: int = 32, shares: Sequence[float] | None = None) -> list[Band]:
    """Bands of a map of so many rows, from the first row to the last.

    shares: (ranks,) how much each rank takes, in proportion; none: all the same. Bands are whole rows of blocks, so
        that some are empty where there are more ranks than those
    -> a Band for each rank; together they are all rows, once

    Raises GridMapError, SettingsError.
    """
    whole("number of rows", rows, 1, 2**31 - 1, error=GridMapError)
    whole("number of ranks", ranks, 1, 2**31 - 1)
    block_size = checked_size(block_size)
    try:
        weights = np.ones(ranks) if shares is None else np.asarray(shares, float)
    except Exception:  # numpy's, and whatever an object of the caller raises
        weights = np.zeros(0)
    if weights.shape != (ranks,) or not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise SettingsError(f"shares is {shown(shares)}; allowed: {ranks} numbers of 0 or more, not all 0")
    blocks = -(-rows // block_size)
    upto = np.cumsum(weights / weights.max())
    cuts = np.rint(np.concatenate([[0], upto / upto[-1]]) * blocks).astype(int)
    bands = []
    for rank, (first, last) in enumerate(zip(cuts[:-1].tolist(), cuts[1:].tolist())):
        top, bottom = max(0, first - OVERLAP), min(blocks, last + OVERLAP)
        if first == last:
            top = bottom = first
        begin, end, upper, lower = (min(rows, block * block_size) for block in (first, last, top, bottom))
        bands.append(Band(rank, begin, end, upper, lower, (top > 0, bottom < blocks)))
    return bands


def neighbours(bands: Sequence[Band], rank: int) -> tuple[Band | None, Band | None]:
    """The bands north and south of a rank's, without the empty ones; None at the map's ends and for an empty band."""
    held = [band for band in bands if band.rows]
    if not bands[rank].rows:
        return None, None
    at = held.index(bands[rank])
    return (held[at - 1] if at else None), (held[at + 1] if at + 1 < len(held) else None)


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
    """Raise GridMapError, on every rank, if the bands of a machine need more than it has; before any of it is taken.

    shape: of the map;  need: bytes of this rank
    """
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
