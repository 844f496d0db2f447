"""Many boxes on one grid, kept as arrays: what voxels, octrees and point clouds become.

Voxels that touch are merged into larger boxes whose union is the same: into rows, rows into plates, plates into blocks.
Corners are whole numbers until the boxes are placed, so nothing is lost or gained.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import numbers
from ...errors import ObstacleError, shown
from ...ranges import GREATEST_LENGTH
from .shapes import ConvexShape, ShapeKind, check_lengths, check_pose

GREATEST_CELL = 2**40  # numbers of cells that float64 and int64 hold exactly, with room
NO_NUMBERS, NO_POINTS = np.zeros(0, np.int32), np.zeros((0, 3))


@dataclass(frozen=True, eq=False)
class Bricks:
    """Boxes along the axes of one grid. Equal only to itself, as ConvexShape.

    name: brick i is called 'name#i'
    pose: (4, 4) T_frame_grid, metres
    size: (3,) edge lengths of a cell along x, y, z, metres
    low, high: (B, 3) int64 corners in cells: a brick spans low * size to high * size in the grid's frame
    """

    name: str
    pose: np.ndarray
    size: np.ndarray
    low: np.ndarray = field(repr=False)
    high: np.ndarray = field(repr=False)

    @staticmethod
    def of_voxels(name: str, cells: ArrayLike, size: ArrayLike, pose: ArrayLike, extents: ArrayLike = 1) -> "Bricks":
        """Voxels of a grid, merged.

        cells: (N, 3) whole numbers; one spans cells * size to (cells + extents) * size in the frame of `pose`
        size: edge length of a cell, or (3,) along x, y and z, metres
        extents: (N,) or one whole number from 1, edge lengths in cells
        """
        pose, size = check_pose(name, pose), voxel_size(name, size)
        low, extents = _whole(name, "cells", cells), _whole(name, "extents", extents)
        low = low.reshape(-1, 3) if not low.size else low
        if low.ndim != 2 or low.shape[1] != 3:
            raise ObstacleError(f"'{name}': cells must have shape (N, 3), got {low.shape}")
        if extents.shape not in ((), low.shape[:1]) or (extents < 1).any():
            raise ObstacleError(f"'{name}': extents must be whole numbers from 1, one or {len(low)}")
        high = low + np.atleast_1d(extents)[:, None]
        refuse_far(name, low, high, size)
        return Bricks(name, pose, size, *merged(low, high))

    def __len__(self) -> int:
        return len(self.low)

    @cached_property
    def half_extents(self) -> np.ndarray:
        """(B, 3) metres."""
        return (self.high - self.low) * (self.size / 2)

    @cached_property
    def poses(self) -> np.ndarray:
        """(B, 4, 4) of the bricks' middles, turned as the grid is, in the frame that the grid is given in."""
        poses = np.tile(self.pose, (len(self), 1, 1))
        poses[:, :3, 3] += (self.low + self.high) * (self.size / 2) @ self.pose[:3, :3].T
        return poses

    @cached_property
    def shapes(self) -> tuple[ConvexShape, ...]:
        """The bricks one by one."""
        return tuple(
            ConvexShape(f"{self.name}#{i}", ShapeKind.BOX, pose, half, NO_POINTS, NO_NUMBERS, NO_NUMBERS)
            for i, (pose, half) in enumerate(zip(self.poses, self.half_extents, strict=True))
        )

    def moved(self, T_new_frame: ArrayLike, name: str | None = None) -> "Bricks":
        """The bricks seen from another frame: the grid's pose becomes T_new_frame @ pose."""
        return replace(self, name=name or self.name, pose=np.asarray(T_new_frame) @ self.pose)


def voxel_size(name: str, size: ArrayLike) -> np.ndarray:
    """(3,) edge lengths of a voxel, metres, of one or three; ObstacleError names `name`."""
    length = check_lengths(name, "size", size)
    if length.shape not in ((), (3,)) or not (length > 0).all():
        raise ObstacleError(f"'{name}': size must be one number above 0 (metres) or three, got {shown(size)}")
    return np.broadcast_to(length, 3).copy()


def refuse_far(name: str, low: np.ndarray, high: np.ndarray, size: np.ndarray) -> None:
    """ObstacleError, which names `name`, for voxels of a size (3,), metres, between corners (..., 3) that lie farther
    out than is looked at."""
    farthest = float((np.maximum(np.abs(low), np.abs(high)) * size).max(initial=0.0))
    if farthest > GREATEST_LENGTH:
        raise ObstacleError(f"'{name}': a voxel lies {farthest:.6g} m out; allowed: +-{GREATEST_LENGTH:g} m")


def merged(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Boxes (N, 3), (N, 3) int64 from `low` to `high` -> fewer, whose union is the same.

    The boxes should not overlap, else fewer are merged; the same box twice is one.
    """
    for axis in (0, 1, 2):
        others = [a for a in (2, 1, 0) if a != axis]
        order = _sorted(low[:, [*others, axis]])
        low, high = low[order], high[order]
        same = (low[1:, others] == low[:-1, others]).all(axis=1) & (high[1:, others] == high[:-1, others]).all(axis=1)
        goes_on = same & (low[1:, axis] <= high[:-1, axis]) & (high[1:, axis] >= high[:-1, axis])
        first = np.flatnonzero(np.concatenate([[True], ~goes_on])[: len(low)])
        last = np.append(first[1:], len(low)) - 1 if len(low) else first
        low, high = low[first], high[last]
    return low, high


def cells_of(points: np.ndarray, size: float) -> np.ndarray:
    """(N, 3) metres -> (M, 3) int64, the distinct cells of a grid that hold a point, sorted."""
    cells = np.floor(points / size).astype(np.int64)
    cells = cells[_sorted(cells)]
    return cells[np.concatenate([[True], (cells[1:] != cells[:-1]).any(axis=1)])[: len(cells)]]


def _sorted(rows):
    """(N,) order that sorts int64 rows (N, 3) by their first column, then the second, then the third."""
    if not len(rows):
        return np.zeros(0, int)
    lowest = rows.min(axis=0)
    spans = [int(span) + 1 for span in rows.max(axis=0) - lowest]
    if spans[0] * spans[1] * spans[2] >= 2**62:
        return np.lexsort(rows.T[::-1])
    a, b, c = (rows - lowest).T
    return np.argsort((a * spans[1] + b) * spans[2] + c, kind="stable")


def _whole(name: str, what: str, values: Any) -> np.ndarray:
    """values as int64, or ObstacleError where they are not whole numbers."""
    array = np.asarray(numbers(f"'{name}': {what}", values, error=ObstacleError, finite=False))
    if (np.abs(array) > GREATEST_CELL).any() or (array != np.floor(array)).any():
        raise ObstacleError(f"'{name}': {what} must be whole numbers up to {GREATEST_CELL}, got {shown(values)}")
    return array.astype(np.int64)
