"""PlanningResults: the answers of a batch as arrays, of which a PlanningResult is made where somebody asks for it.

To make an object of each answer takes longer than to search for it on a GPU, and holds up the threads of other devices.
"""

from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex, overload

import numpy as np

from ...arguments import whole
from .result import PlanningResult, Status

STATUSES = tuple(Status)
NUMBER_OF = {status: number for number, status in enumerate(STATUSES)}
_SOLVED = NUMBER_OF[Status.SOLVED]
ARRAYS = ("codes", "costs", "goal_indices", "samples", "times_s", "lengths")


class PlanningResults(Sequence[PlanningResult]):
    """The results of n problems: results[3], len(results) and loops as of a list; and arrays of all at once.

    codes: (n,) int8 numbers of `STATUSES`;  solved: (n,) bool
    costs: (n,) float64, inf where there is no path;  goal_indices: (n,) int64, -1 likewise;  samples: (n,) int64
    times_s: (n,) float64 seconds
    paths: (rows, dof) float64, rad or m: all paths, one after the other;  lengths: (n,) int64, rows of each, 0: none
    firsts: (n,) int64, where each begins
    """

    def __init__(self, fields: Iterable[np.ndarray], paths: np.ndarray, objects: dict[int, PlanningResult]) -> None:
        self.codes, self.costs, self.goal_indices, self.samples, self.times_s, self.lengths = fields  # as ARRAYS
        self.paths, lengths = paths, self.lengths
        self.firsts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64) if len(lengths) else lengths
        self._objects = objects  # those that were made, by their numbers

    @staticmethod
    def of(results: Sequence[PlanningResult], dof: int) -> "PlanningResults":
        """Of objects that are there."""
        if isinstance(results, PlanningResults):
            return results
        fields = [(NUMBER_OF[r.status], r.cost, r.goal_index, r.samples, r.time_s, len(r.path)) for r in results]
        types = np.int8, np.float64, np.int64, np.int64, np.float64, np.int64
        columns = zip(*fields) if fields else ((),) * len(types)
        arrays = [np.array(column, dtype) for column, dtype in zip(columns, types)]
        paths = np.concatenate([np.zeros((0, dof)), *(r.path for r in results if len(r.path))])
        return PlanningResults(arrays, paths, dict(enumerate(results)))

    @staticmethod
    def joined(parts: "Sequence[PlanningResults]", order: Iterable[int]) -> "PlanningResults":
        """Parts of a batch. order: the place of each of their results, one part after the other, in the batch"""
        places = np.fromiter(order, np.int64)
        back = np.empty(len(places), np.int64)
        back[places] = np.arange(len(places))
        fields = [np.concatenate([getattr(part, name) for part in parts]) for name in ARRAYS]
        before = np.cumsum([0, *map(len, parts)])
        objects = {int(places[a + i]): one for a, part in zip(before, parts) for i, one in part._objects.items()}
        paths, lengths = np.concatenate([part.paths for part in parts]), fields[-1]
        firsts = np.cumsum(lengths) - lengths
        return PlanningResults([field[back] for field in fields], paths[rows_of(firsts[back], lengths[back])], objects)

    @property
    def solved(self) -> np.ndarray:
        """(n,) bool: which have a path?"""
        return self.codes == _SOLVED

    def path(self, number: int) -> np.ndarray:
        """(K, dof) of a problem; (0, dof) where there is none. A part of `paths`."""
        number = whole("number", number, -len(self), len(self) - 1)
        return self.paths[self.firsts[number] :][: self.lengths[number]]

    def padded(self) -> np.ndarray:
        """(n, K, dof) float64, K rows for the longest path: shorter ones stay at their end, NaN where there is none."""
        most = int(self.lengths.max(initial=0))
        rows = self.firsts[:, None] + np.minimum(np.arange(most), np.maximum(self.lengths[:, None] - 1, 0))
        found = np.full((len(self), most, self.paths.shape[1]), np.nan)
        found[self.solved] = self.paths[rows[self.solved]]
        return found

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, number: SupportsIndex) -> PlanningResult: ...
    @overload
    def __getitem__(self, number: slice) -> list[PlanningResult]: ...
    def __getitem__(self, number):
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        i = range(len(self))[number]  # IndexError beyond
        if i not in self._objects:
            numbers = float(self.costs[i]), int(self.goal_indices[i]), int(self.samples[i]), float(self.times_s[i])
            self._objects[i] = PlanningResult(STATUSES[self.codes[i]], self.path(i).copy(), *numbers)
        return self._objects[i]

    def __eq__(self, other: Any) -> bool:
        return list(self) == list(other) if isinstance(other, (list, PlanningResults)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


class Found:
    """Answers of n problems while they come in, in any order.

    objects: {number: PlanningResult} of those that are no plain paths
    """

    def __init__(self, n: int, dof: int) -> None:
        self.objects: dict[int, PlanningResult] = {}
        self._there, self._dof = np.zeros(n, dtype=bool), dof
        self._fields = [np.zeros(n, dtype) for dtype in (np.float64, np.int64, np.int64, np.float64, np.int64)]
        self._firsts, self._rows, self._paths = np.zeros(n, np.int64), 0, [np.zeros((0, dof))]

    def put(self, numbers, costs, goals, samples, time_s, lengths, paths) -> None:
        """Paths (rows, dof) of these numbers, one after the other."""
        for field, values in zip(self._fields, (costs, goals, samples, time_s, lengths)):
            field[numbers] = values
        self._firsts[numbers] = self._rows + np.cumsum(lengths) - lengths
        self._rows += len(paths)
        self._paths.append(paths)
        self._there[numbers] = True

    def missing(self) -> list[int]:
        """Numbers of those that have not come in."""
        return [i for i in np.flatnonzero(~self._there).tolist() if i not in self.objects]

    def results(self) -> PlanningResults:
        """All of them, which have come in."""
        plain = PlanningResults.of(list(self.objects.values()), self._dof)
        others = np.fromiter(self.objects, np.int64, len(self.objects))
        codes, fields = np.full(len(self._there), _SOLVED, np.int8), [each.copy() for each in self._fields]
        codes[others] = plain.codes
        for field, name in zip(fields, ARRAYS[1:]):
            field[others] = getattr(plain, name)
        firsts, lengths = self._firsts.copy(), fields[-1]
        firsts[others] = self._rows + plain.firsts
        paths = np.concatenate([*self._paths, plain.paths])[rows_of(firsts, lengths)]
        return PlanningResults([codes, *fields], paths, dict(self.objects))


def rows_of(firsts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The rows first, first + 1, ... of many runs, one after the other."""
    shift = firsts - (np.cumsum(lengths) - lengths)
    return np.arange(lengths.sum()) + np.repeat(shift, lengths)
