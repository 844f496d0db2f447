"""What nvblox publishes as obstacles: ~/distance_slice (nvblox_msgs/DistanceMapSlice) and ~/voxel_blocks
(nvblox_msgs/VoxelBlockLayer, of a TSDF or an occupancy layer).

A layer comes in pieces: a message has the blocks that changed, unless it says that it has them all. So the blocks of a
topic and frame are kept here, and every message that arrives counts.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...arm.distance_fields import FieldRule, grid_bricks
from ...arm.geometry.bricks import Bricks, cells_of
from ...errors import ObstacleError
from ..common.request_error import check_count
from . import codes

THIN = 1e-6  # metres: a plane has no height of its own
Left = Callable[[np.ndarray, int, Any, np.ndarray], tuple[np.ndarray, Any]]  # as cloud_topics.without_own


def slice_bricks(name: str, message: Any, T_root_frame: np.ndarray, values: Any) -> Bricks:
    """The cells of a DistanceMapSlice that it does not prove free, as high as slice_heights says.

    values: ArmParameters
    """
    width, height, size = message.width, message.height, message.resolution
    check_count("cells in a distance slice", width * height, "points_max", values, codes.FAILURE)
    held = np.array(message.data, np.float32)
    if len(held) != width * height:
        raise ObstacleError(
            f"'{name}': a slice of {width} x {height} cells has {len(held)} distances; allowed: {width * height}"
        )
    field = held.reshape(height, width).T[:, :, None]  # rows are along y
    observed = (field != np.float32(message.unknown_value)) & np.isfinite(field)
    rule = FieldRule(error=values.slice_error, unknown=values.slice_unknown, most_boxes=values.points_max_voxels)
    flat, T_frame_grid = bool(values.slice_heights), np.eye(4)
    low, high = values.slice_heights or (message.origin.z - size / 2, message.origin.z + size / 2)
    T_frame_grid[:3, 3] = message.origin.x, message.origin.y, low
    # distances within a band of heights are those in the plane: the height does not make a cell's diagonal longer
    edges = (size, size, THIN if flat else size)
    bricks = grid_bricks(name, field, edges, T_root_frame @ T_frame_grid, rule, observed)
    return replace(bricks, size=np.array([*bricks.size[:2], high - low])) if len(bricks) else bricks


@dataclass(frozen=True, eq=False)
class Block:
    """centres: of the voxels of a block, geometry_msgs/Point32 in the layer's frame"""

    centres: Any
    size: float

    @cached_property
    def cells(self) -> np.ndarray:
        """(N, 3) int64, distinct."""
        points = np.array([(one.x, one.y, one.z) for one in self.centres], np.float64).reshape(-1, 3)
        if not np.isfinite(points).all():
            raise ObstacleError("a voxel's centre is not finite")
        return cells_of(points, self.size)


@dataclass(frozen=True, eq=False)
class Layer:
    """All blocks of a layer so far. problem: why it cannot be taken; the rest as the last message has it."""

    header: Any
    size: float
    blocks: dict[tuple[int, int, int], Block]
    problem: str = ""

    @property
    def data(self) -> dict:
        return self.blocks


@dataclass
class LayerKeeper:
    """The layers of a topic, by name. most: voxels of one, a function since parameters change"""

    most: Callable[[], int]
    layers: dict[str, Layer] = field(default_factory=dict)

    def take(self, name: str, message: Any) -> Layer:
        """The Layer with a message in it. Cheap, and raises nothing: the caller takes messages."""
        before = None if message.clear else self.layers.get(name)
        blocks = dict(before.blocks) if before else {}
        problem, size = before.problem if before else "", float(message.voxel_size_m)
        if len(message.block_indices) != len(message.blocks):
            problem = f"{len(message.block_indices)} indices of {len(message.blocks)} blocks; allowed: as many"
        elif not 0 < size < np.inf or (before and before.blocks and size != before.size):
            problem = (
                f"voxels of {size:g} m; allowed: above 0, and another size only in a message that clears the layer"
            )
        else:
            for index, block in zip(message.block_indices, message.blocks, strict=True):
                blocks[index.x, index.y, index.z] = Block(block.centers, size)
            blocks = {index: block for index, block in blocks.items() if len(block.centres)}
            count = sum(len(block.centres) for block in blocks.values())
            if count > self.most():
                problem = f"{count} voxels in the layer; allowed: up to {self.most()}, the parameter points_max"
        if problem:  # a layer with a hole is none: it takes one that is whole
            problem, blocks = problem.removesuffix(UNTIL) + UNTIL, {}
        self.layers[name] = Layer(message.header, size, blocks, problem)
        return self.layers[name]

    def forget(self, name: str) -> None:
        self.layers.pop(name, None)


UNTIL = "; nothing of it is taken until a message clears it"


def layer_bricks(name: str, layer: Layer, T_root_frame: np.ndarray, left: Left | None = None) -> Bricks:
    """The voxels of a Layer: all that are listed, whatever their colours. left: leaves out the robot's own"""
    if layer.problem:
        raise ObstacleError(f"'{name}': {layer.problem}")
    cells = np.concatenate([np.zeros((0, 3), np.int64), *(block.cells for block in layer.blocks.values())])
    extents: Any = 1
    if left is not None:
        cells, extents = left(cells, 1, layer.size, T_root_frame)
    return Bricks.of_voxels(name, cells, layer.size, T_root_frame, extents)


def cells_in(bricks: Bricks) -> np.ndarray:
    """(N, 3) int64 cells that Bricks fill."""
    parts = [np.zeros((0, 3), np.int64)]
    for low, high in zip(bricks.low, bricks.high, strict=True):
        parts.append(low + np.indices(tuple(high - low)).reshape(3, -1).T)
    return np.concatenate(parts)
