"""Distance fields to boxes: what a field does not prove free is an obstacle.

A field holds distances at the middles of the voxels of a grid. All that is assumed of it is `FieldRule`: where it holds
d, the true distance to the nearest obstacle is at least slope * d - error. True distances are 1-Lipschitz, so a voxel
whose half diagonal is h is free, all of it and not only its middle, where slope * d - error > h. Every other voxel is
part of the obstacle. These are merged into boxes whose union is the same, and boxes are exact for the checker, so
nothing is called free between samples.

An obstacle therefore grows by up to two half diagonals (1.73 voxels for cubes) and error / slope. Beyond the grid
nothing is an obstacle.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import array_of, checked, lies_on_cuda
from ...errors import ObstacleError
from ...ranges import GREATEST_LENGTH
from ...settings import Described, setting
from ..geometry.bricks import Bricks, refuse_far, voxel_size
from ..geometry.shapes import check_pose
from . import voxel_bits

__all__ = ("FieldRule", "block_bricks", "grid_bricks")

OCCUPIED, FREE = "occupied", "free"
MOST_VOXELS = 2**31  # of a grid, with what lies between sparse blocks: 256 MiB of bits
BLOCK_EDGES = 1, 2, 4, 8, 16, 32, 64  # voxels of a block's edge
NOT_OBSERVED = np.zeros((0, 0, 0), bool)  # no flags: every finite distance counts


@dataclass(frozen=True)
class FieldRule(Described):
    """What is known of a distance field. The true distance is at least slope * d - error where the field holds d."""

    error: float = setting(0.0, "Greatest error of a distance, at slope 1", 0.0, 100.0, unit="metres")
    slope: float = setting(
        1.0,
        "True distance over the field's, at least: 1 of Euclidean fields (ESDF); of a TSDF that holds distances along "
        "the ray, the cosine of the greatest angle between rays and normals of surfaces",
        must=("above 0 and at most 1", lambda slope: 0 < slope <= 1),
    )
    truncation: float = setting(
        np.inf,
        "Distances are cut off there: it stands for all that are greater, and greater ones are unknown",
        0.0,
        np.inf,
        unit="metres",
    )
    unknown: str = setting(
        OCCUPIED,
        "What voxels are that nobody observed, or whose distance is no number, infinite or above the truncation",
        choices=(OCCUPIED, FREE),
    )
    most_boxes: int = setting(
        200_000, "Where there are more boxes, voxels are made twice as large until there are not", 1, 10_000_000
    )


@checked(ObstacleError)
def grid_bricks(
    name: str, distances: Any, size: ArrayLike, pose: ArrayLike, rule: FieldRule | None = None, observed: Any = None
) -> Bricks:
    """A dense field as Bricks, for `CollisionWorld.add_shapes`.

    distances: (nx, ny, nz) floats, metres; voxel (i, j, k) spans (i, j, k) * size to (i + 1, j + 1, k + 1) * size in
        the frame of `pose`, and its distance is that of its middle; C order is fastest. An array on a CUDA device
        (torch, cupy, jax, numba) is looked at there; one bit for each voxel is copied to the host
    size: edge length of a voxel, or (3,) along x, y and z, metres
    pose: (4, 4) of the grid's lowest corner
    rule: FieldRule, None: its defaults
    observed: (nx, ny, nz) bool or 0 and 1, where the distances are; None: every finite distance counts
    """
    rule, size, pose = rule or FieldRule(), voxel_size(name, size), check_pose(name, pose)
    field = _field(name, distances, observed, 3)
    shape = field[0].shape
    _check_extent(name, np.zeros(3, np.int64), np.array(shape), size)
    bounds = _bounds(name, rule, size, field[0].dtype.type)
    return _bricks(name, _maker(distances).grid_bits(*field, *bounds), np.zeros(3, np.int64), shape, size, pose, rule)


@checked(ObstacleError)
def block_bricks(
    name: str,
    indices: ArrayLike,
    distances: Any,
    size: ArrayLike,
    pose: ArrayLike,
    rule: FieldRule | None = None,
    observed: Any = None,
) -> Bricks:
    """A field of sparse blocks, as nvblox and OpenVDB keep them, as Bricks.

    indices: (B, 3) whole numbers, distinct; block b begins at voxel indices[b] * n
    distances: (B, n, n, n) floats, metres, n a power of two up to 64; as in `grid_bricks`, also on a CUDA device
    size, pose, rule: as in `grid_bricks`
    observed: (B, n, n, n), as there
    Between the blocks, in the box that holds them all, nothing is observed.
    """
    rule, size, pose = rule or FieldRule(), voxel_size(name, size), check_pose(name, pose)
    blocks = array_of(f"'{name}': indices", indices, ObstacleError)
    if blocks.ndim != 2 or blocks.shape[1] != 3 or (blocks != np.floor(blocks)).any():
        raise ObstacleError(f"'{name}': indices must be whole numbers of shape (B, 3), got {blocks.shape}")
    field = _field(name, distances, observed, 4)
    count, *edges = field[0].shape
    if count != len(blocks) or len(set(edges)) != 1 or edges[0] not in BLOCK_EDGES:
        raise ObstacleError(
            f"'{name}': the distances of {len(blocks)} blocks must have shape ({len(blocks)}, n, n, n), n a power of "
            f"two up to 64, got {tuple(field[0].shape)}"
        )
    if not count:
        return Bricks(name, pose, size, np.zeros((0, 3), np.int64), np.zeros((0, 3), np.int64))
    edge = edges[0]
    if (np.abs(blocks) > GREATEST_LENGTH / size.min()).any():
        raise ObstacleError(f"'{name}': a block lies over {GREATEST_LENGTH:g} m out; allowed: +-{GREATEST_LENGTH:g} m")
    blocks = blocks.astype(np.int64)
    if len(np.unique(blocks, axis=0)) < count:
        raise ObstacleError(f"'{name}': a block is there twice; indices must be distinct")
    lowest = blocks.min(axis=0)
    shape = tuple(((blocks.max(axis=0) - lowest + 1) * edge).tolist())
    _check_extent(name, lowest * edge, np.array(shape), size)
    bounds = _bounds(name, rule, size, field[0].dtype.type)
    bits = _maker(distances).block_bits(blocks - lowest, *field, *bounds, shape)
    return _bricks(name, bits, lowest * edge, shape, size, pose, rule)


def _maker(distances: Any) -> Any:
    """The module that makes bits where the distances are."""
    if not lies_on_cuda(distances):
        return voxel_bits
    from . import voxel_bits_cuda

    return voxel_bits_cuda


def _field(name, distances, observed, axes):
    """(distances, flags of the same shape or NOT_OBSERVED), on the device where the distances are."""
    field = _read(name, "distances", distances, distances)
    if len(field.shape) != axes or field.dtype not in (np.float32, np.float64, np.float16):
        what = "(nx, ny, nz)" if axes == 3 else "(B, n, n, n)"
        raise ObstacleError(
            f"'{name}': distances must be float16, float32 or float64 of shape {what}, got {field.dtype} "
            f"{tuple(field.shape)}"
        )
    if observed is None:
        return field, NOT_OBSERVED if axes == 3 else NOT_OBSERVED[None]
    flags = _read(name, "observed", observed, distances)
    if tuple(flags.shape) != tuple(field.shape) or flags.dtype not in (np.bool_, np.uint8):
        raise ObstacleError(
            f"'{name}': observed must be bool or uint8 of shape {tuple(field.shape)}, got {flags.dtype} "
            f"{tuple(flags.shape)}"
        )
    return field, flags


def _read(name, what, array, beside):
    """An array on the host, or as Numba's on a CUDA device, where the array `beside` it is, too."""
    on_device = lies_on_cuda(beside)
    if on_device != lies_on_cuda(array):
        raise ObstacleError(f"'{name}': distances and observed must both lie on a CUDA device, or both on the host")
    return _maker(array).on_device(array) if on_device else array_of(f"'{name}': {what}", array, ObstacleError)


def _check_extent(name, low, shape, size):
    refuse_far(name, low, low + shape, size)
    voxels = int(np.prod(shape, dtype=object))
    if voxels > MOST_VOXELS:
        raise ObstacleError(
            f"'{name}': a box of {' x '.join(map(str, shape.tolist()))} voxels holds the field, {voxels} in all; "
            f"allowed: {MOST_VOXELS}"
        )


def _bounds(name, rule, size, kind):
    """(least distance of a free voxel, greatest that is known, are unknown ones occupied) in the field's precision."""
    half = float(np.linalg.norm(size)) / 2
    least = (half + rule.error) / rule.slope
    if rule.truncation <= least:
        raise ObstacleError(
            f"'{name}': distances cut off at {rule.truncation:g} m prove no voxel free: a free one needs more than "
            f"{least:.6g} m, half of its diagonal and the error, over the slope; allowed: a greater truncation or "
            "smaller voxels"
        )
    wide = np.float64 if kind is np.float64 else np.float32
    least_in_kind = np.nextafter(wide(least), wide(np.inf))  # free is what is greater
    most = np.nextafter(wide(rule.truncation), wide(np.inf)) if rule.truncation < np.inf else np.finfo(wide).max
    if kind is np.float16 and rule.truncation < np.inf:  # the field rounded its truncation
        most = wide(rule.truncation * (1 + 2.0**-10))
    return least_in_kind, most, rule.unknown == OCCUPIED


def _bricks(name, bits, low, shape, size, pose, rule):
    """Bricks of the bits of a grid whose lowest voxel is `low`."""
    origin, scale = low * size, 1
    T_frame_low = pose.copy()
    T_frame_low[:3, 3] += pose[:3, :3] @ origin
    while True:
        boxes = voxel_bits.boxes_of(bits, shape[2], rule.most_boxes)
        if boxes is not None:
            break
        bits, shape = voxel_bits.coarser(bits, shape)
        scale *= 2
    lows, highs = boxes[:, :3].astype(np.int64), boxes[:, 3:].astype(np.int64)
    return Bricks(name, T_frame_low, size * scale, lows, highs)
