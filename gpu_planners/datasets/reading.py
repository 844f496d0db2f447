"""Reads a data set into NumPy arrays."""

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import checked
from ..arm import CollisionWorld
from ..arm.planners.result import Status
from ..errors import shown
from ..files import file_path
from .obstacles import PRIMITIVES, Obstacle, world_of
from .recipe import FORMAT
from .schema import KEY, arrow, facts_of, misfit
from .shards import DatasetError, Shards, problem_of_file, read_manifest

MOST_POINTS = 1_000_000  # of a resampled path


@checked(DatasetError)
class Dataset:
    """A data set in memory. Each column of docs/datasets.md is an attribute:

    a number for each row: (N,); `start`: (N, dof); `start_pose`, `goal_pose`: (N, 7); `status`, `message`: (N,) texts
    `waypoints`, `goals`, `times`, `positions`, ...: the parts of all rows in one array, (sum, dof) or (sum,); the part
        of row i is `of("waypoints", i)`, and begins at `offsets("waypoints")[i]`

    facts: the metadata: format, recipe;  table: the pyarrow.Table of all columns
    """

    def __init__(self, table: Any, facts: dict[str, Any]) -> None:
        self.table, self.facts = table.combine_chunks(), facts
        self._offsets: dict[str, np.ndarray] = {}

    def __len__(self) -> int:
        return self.table.num_rows

    def __getattr__(self, name: str) -> np.ndarray:
        if name.startswith("_") or name not in self.table.column_names:
            raise AttributeError(f"a data set has no '{name}'; it has {', '.join(self.table.column_names)}")
        values = self.__dict__[name] = self._values(name)
        return values

    @property
    def columns(self) -> list[str]:
        """Names of the columns that were loaded."""
        return list(self.table.column_names)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """(dof,) names, in the order of every configuration."""
        return tuple(self.facts["recipe"]["robot"]["joint_names"])

    @cached_property
    def solved(self) -> np.ndarray:
        """(N,) bool: has the row a path?"""
        return self.status == Status.SOLVED.value

    @cached_property
    def goal(self) -> np.ndarray:
        """(N, dof) the goal that was reached, or the first one."""
        return self.goals[self.offsets("goals")[:-1] + np.maximum(self.goal_index, 0)]

    def offsets(self, name: str) -> np.ndarray:
        """(N + 1,) where each row's part of a ragged column begins in it."""
        if name not in self._offsets:
            if name not in self.table.column_names or not arrow().types.is_list(self.table.schema.field(name).type):
                raise DatasetError(f"the data set has no ragged column {shown(name)}")
            offsets = self._array(name).offsets.to_numpy()
            self._offsets[name] = (offsets - offsets[0]).astype(np.int64)
        return self._offsets[name]

    def of(self, name: str, row: int) -> np.ndarray:
        """The part of one row of a ragged column: its path (K, dof), its times (K,)."""
        row = self._row(row)
        begin, end = self.offsets(name)[row : row + 2]
        return getattr(self, name)[begin:end]

    def _row(self, row):
        if not -len(self) <= row < len(self):
            raise DatasetError(f"row is {row}; allowed: 0 to {len(self) - 1}, or from the end -1 to {-len(self)}")
        return row % len(self)

    def path(self, row: int) -> np.ndarray:
        """(K, dof) the path of a row, rad or m; (0, dof) where there is none."""
        return self.of("waypoints", row)

    def resampled(self, count: int, rows: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
        """(R, count, dof) the paths of rows (R,), by default all that are solved, at equal lengths in joint space, ends
        included."""
        rows = np.flatnonzero(self.solved) if rows is None else np.asarray(rows)
        if rows.ndim != 1 or rows.dtype.kind not in "iu" and len(rows):
            raise DatasetError(f"rows is {shown(rows)}; allowed: (R,) integers")
        if not 2 <= count <= MOST_POINTS:
            raise DatasetError(f"the number of points of a path is {shown(count)}; allowed: from 2 to {MOST_POINTS}")
        found = np.empty((len(rows), count, self.start.shape[1]))
        for i, row in enumerate(rows):
            path = self.path(int(row))
            if not len(path):
                raise DatasetError(f"row {row} has no path: it is {self.status[row]!r}; allowed: rows that are solved")
            along = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1)))
            at = np.linspace(0.0, along[-1], count)
            found[i] = np.stack([np.interp(at, along, joint) for joint in path.T], axis=1)
        return found

    def obstacles_of(self, row: int) -> tuple[Obstacle, ...]:
        """The obstacles of a row."""
        found = self._array("obstacles")[self._row(row)].as_py()
        return tuple(Obstacle(**{name: _tuples(value) for name, value in one.items()}) for one in found)

    def world(self, row: int) -> CollisionWorld:
        """The world of a row, for a CollisionChecker."""
        return world_of(self.obstacles_of(row))

    def padded_obstacles(self, kind: str) -> dict[str, np.ndarray]:
        """The obstacles of one kind (box, cylinder, sphere) of all rows, padded with zeros.

        -> size (N, M, 3), position (N, M, 3), quat_xyzw (N, M, 4); there (N, M) bool, False for padding
        """
        if kind not in PRIMITIVES:
            raise DatasetError(f"the kind of obstacles is {shown(kind)}; allowed: {', '.join(PRIMITIVES)}")
        structs, offsets = self._array("obstacles").flatten(), self.offsets("obstacles")
        row = np.repeat(np.arange(len(self)), np.diff(offsets))
        chosen = np.array(structs.field("kind").to_pylist(), dtype=str) == kind
        row = row[chosen]
        counts = np.bincount(row, minlength=len(self))
        place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        there = np.zeros((len(self), counts.max(initial=0)), dtype=bool)
        there[row, place] = True
        padded = {"there": there}
        for name, width in (("size", 3), ("position", 3), ("quat_xyzw", 4)):
            values = np.zeros((*there.shape, width))
            values[row, place] = structs.field(name).flatten().to_numpy(zero_copy_only=False).reshape(-1, width)[chosen]
            padded[name] = values
        return padded

    def _array(self, name):
        if name not in self.table.column_names:
            raise DatasetError(f"the data set has no column '{name}'; it has {', '.join(self.table.column_names)}")
        column = self.table[name]
        return column.chunk(0) if column.num_chunks == 1 else arrow().concat_arrays(column.chunks)

    def _values(self, name):
        pa, array = arrow(), self._array(name)
        if name == "obstacles":
            raise AttributeError("obstacles are read by obstacles_of(row), world(row) or padded_obstacles(kind)")
        if pa.types.is_string(array.type):
            return np.array(array.to_pylist(), dtype=str)
        shape: tuple[int, ...] = (-1,)
        if pa.types.is_list(array.type):
            array = array.flatten()
        if pa.types.is_fixed_size_list(array.type):
            shape, array = (-1, array.type.list_size), array.flatten()
        return array.to_numpy(zero_copy_only=False).reshape(shape)


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


@checked(DatasetError)
def load(path: str | os.PathLike, columns: Sequence[str] | None = None, partial: bool = False) -> Dataset:
    """Read a data set: a folder, or one of its files.

    columns: only these;  partial: read a folder that is not whole, too
    Raises DatasetError for what is no data set of this version, for a column that there is not, and for a folder that
    is not whole unless `partial`.
    """
    pa, path = arrow(), file_path(path, "a data set", DatasetError)
    files = files_of(path, partial) if path.is_dir() else [path]
    try:
        schema = pa.parquet.read_schema(files[0])
        if (facts := facts_of(schema)) is None:
            raise DatasetError(f"'{files[0]}' is no file of a data set: its metadata has no '{KEY.decode()}'")
        if facts.get("format") != FORMAT:
            raise DatasetError(f"'{files[0]}' is of format {facts.get('format')}; this version reads format {FORMAT}")
        unknown = [name for name in columns or () if name not in schema.names]
        if unknown:
            raise DatasetError(f"'{path}' has no column '{unknown[0]}'; it has {', '.join(schema.names)}")
        only = list(columns) if columns else None
        table = pa.parquet.read_table(files, columns=only, page_checksum_verification=True)
    except (OSError, pa.ArrowException, ValueError) as error:
        raise DatasetError(f"'{path}' cannot be read: {error}") from error
    if wrong := misfit(table):
        raise DatasetError(f"'{path}': {wrong}")
    return Dataset(table, facts)


def files_of(folder: Path, partial: bool) -> list[Path]:
    """The files of a folder in their order. Raises DatasetError where one is missing, unless `partial`."""
    shards = Shards(folder, read_manifest(folder))
    whole = []
    for number in range(shards.count):
        problem = problem_of_file(shards, number)
        if problem and not partial:
            raise DatasetError(
                f"'{folder}' is not whole: '{shards.file(number).name}' {problem}; make it whole by the command that "
                "began it, or read what there is with partial=True"
            )
        if not problem:
            whole.append(shards.file(number))
    if not whole:
        raise DatasetError(f"'{folder}' has no rows yet")
    return whole
