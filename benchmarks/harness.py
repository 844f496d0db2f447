"""What every benchmark shares: timing with warm-up and repeats, rows of figures, and what a run knows."""

import statistics
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from .problems import MissingDataError


@dataclass(frozen=True, eq=False)
class Context:
    """One run. devices: names for CollisionChecker that are there; missing: {device asked for: why it is not there};
    quick: few problems and repeats; full: on the CPU too what takes long there;
    data: the shared data's folder, or None for the default place, where it may be missing;
    ranks: all the ranks of MPI (distributed.Ranks) that this process runs with, or None without mpirun;
    instances: names of the instances that the benchmark `fleets` is to run, or None for all."""

    devices: tuple
    missing: dict
    quick: bool = False
    data: str | None = None
    full: bool = False
    ranks: Any = None
    instances: list | None = None

    def asked_for(self):
        """Devices in the order of the table: (name, None) or (name, why it is not there)."""
        return [(device, None) for device in self.devices] + list(self.missing.items())


@dataclass(frozen=True)
class Row:
    """One line of a table.

    case: what was asked;  subject: who answered, with its device
    figures: {column: number}, in the columns' units, or empty when the row is skipped or only quoted
    samples: single measurements behind the figures, for plots
    note: why it was skipped, or what to know
    quoted: figures from a source other than this run, as text with their source
    unchecked: {problem: [path, ...]} that wait for the re-checker, which this machine lacks
    """

    case: str
    subject: str
    figures: dict = field(default_factory=dict)
    samples: list = field(default_factory=list)
    note: str = ""
    quoted: str = ""
    unchecked: dict = field(default_factory=dict)

    def as_dict(self):
        return asdict(self)


@dataclass(frozen=True)
class Benchmark:
    """name: for --only; title and text: of the table; columns: {column: format}; run(context) -> [Row]

    on_ranks: every rank of mpirun runs it, and the first one's rows count
    """

    name: str
    title: str
    text: str
    columns: dict
    run: object
    on_ranks: bool = False


def with_data(case, rows):
    """The rows [Row] that rows() returns; where it finds no shared data, one row that says so."""
    try:
        return rows()
    except MissingDataError as error:
        return [Row(case, "all", note=str(error))]


def seconds(call, repeats, warm_up=1):
    """(repeats,) wall seconds of call(), after `warm_up` calls that are not counted."""
    for _ in range(warm_up):
        call()
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return np.array(taken)


def places(device, *arrays):
    """How the arrays can reach a checker: [(words for the row's subject, float32 arrays)], in the host's memory and,
    for CUDA, in the device's before the clock starts."""
    arrays = [np.ascontiguousarray(array, dtype=np.float32) for array in arrays]
    if device == "cpu":
        return [("", arrays)]
    from numba import cuda

    with cuda.gpus[int(device.partition(":")[2] or 0)]:
        return [("", arrays), (", arrays on the device", [cuda.to_device(array) for array in arrays])]


def exponents(rows, columns):
    """Row of how each cost grows with the size: the slope of log(cost) over log(size) in the upper half of the sizes.

    rows: [Row] of one subject, whose figures hold their `size`, in rising order; those without figures are left out
    columns: {column: format}; a cost is the inverse of a rate, or the milliseconds; other columns have no exponent
    """
    measured, slopes = [row for row in rows if row.figures], {}
    if len(measured) < 2:
        return Row("exponent", rows[0].subject, note="fewer than two sizes were measured")
    upper = measured[min(len(measured) // 2, len(measured) - 2) :]
    x = np.log([row.figures["size"] for row in upper])
    for column, kind in columns.items():
        costs = np.array([row.figures.get(column, np.nan) for row in upper]) if kind in ("rate", "ms") else np.zeros(0)
        if len(costs) and np.isfinite(costs).all():
            slopes[column] = f"{np.polyfit(x, np.log(costs if kind == 'ms' else 1 / costs), 1)[0]:.2f}"
    return Row(f"exponent, {upper[0].case} to {upper[-1].figures['size']}", upper[0].subject, slopes)


def told(row):
    """The row, after it was printed: a run cut short has told what it measured."""
    print(f"{row.case}, {row.subject}: {row.figures}", file=sys.stderr, flush=True)
    return row


def median(values):
    return float(statistics.median(values)) if len(values) else float("nan")


def percentile(values, percent):
    return float(np.percentile(values, percent)) if len(values) else float("nan")


def progress(items, what):
    """A progress bar in a terminal, silence elsewhere and on a bare machine without tqdm."""
    try:
        from tqdm import tqdm
    except ImportError:
        return items
    return tqdm(items, desc=what, leave=False, disable=None)
