"""Voxels that are the robot's own: left out of what sensors see."""

from collections.abc import Callable

import numpy as np

Near = Callable[[np.ndarray, float], np.ndarray]  # (N, 3) points in the root frame, metres -> (N,) are they near?


def without_own(
    cells: np.ndarray, extents: np.ndarray | int, size: np.ndarray | float, T_root_grid: np.ndarray, near: Near
) -> tuple[np.ndarray, np.ndarray]:
    """(cells, extents) of the voxels that are not near; what is larger than a cell is split where it may be.

    cells, size: as of Bricks.of_voxels; extents: as there, powers of two
    near: whether the robot, and the padding about it, comes within so many metres of points
    """
    size = np.broadcast_to(size, 3)
    extents = np.broadcast_to(extents, len(cells))
    kept = [(np.zeros((0, 3), np.int64), np.zeros(0, np.int64))]
    for extent in sorted(2 ** np.arange(int(extents.max(initial=1)).bit_length()), reverse=True):
        these, others = cells[extents == extent], extents != extent
        centres = ((these + extent / 2) * size) @ T_root_grid[:3, :3].T + T_root_grid[:3, 3]
        own = near(centres, float(np.linalg.norm(size)) * extent / 2) if len(these) else np.zeros(0, bool)
        kept.append((these[~own], np.full(np.count_nonzero(~own), extent)))
        half = extent // 2
        corners = half * np.stack(np.meshgrid(*3 * [[0, 1]]), axis=-1).reshape(-1, 3)
        parts = (these[own][:, None] + corners).reshape(-1, 3) if half else np.zeros((0, 3), np.int64)
        cells = np.concatenate([cells[others], parts])
        extents = np.concatenate([extents[others], np.full(len(parts), half)])
    return np.concatenate([one for one, _ in kept]), np.concatenate([one for _, one in kept])
