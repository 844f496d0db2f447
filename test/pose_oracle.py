"""What footprints meet, by shapely, and costs between poses, by a plain heap: of robots with a shape on a map."""

import heapq
import math

import numpy as np
import shapely
from shapely.geometry import Polygon

from gpu_planners.grid import MoveCosts, PoseGrid

BOX = [(0.45, 0.31), (-0.45, 0.31), (-0.45, -0.31), (0.45, -0.31)]
HOOK = [(0.5, 0.3), (0.2, 0.3), (0.2, 0.0), (-0.3, 0.0), (-0.3, -0.25), (0.5, -0.25)]
MODELS = {
    "differential": {"turning_radius": 0.4},
    "spinning": {"model": "differential"},
    "dubins": {"model": "DUBIN", "turning_radius": 0.4},
    "reeds_shepp": {"model": "REEDS_SHEPP", "turning_radius": 0.5, "move_costs": MoveCosts(change=0.5)},
    "omni": {"model": "OMNI"},
}


def cluttered(rng, side=70, boxes=14, costs=1):
    tiles = rng.integers(1, costs + 1, (side, side)).astype(np.uint8)
    for _ in range(boxes):
        row, col = rng.integers(0, side, 2)
        down, right = rng.integers(2, 9, 2)
        tiles[row : row + down, col : col + right] = 0
    return tiles


def grid(tiles, footprint=BOX, **how):
    return PoseGrid(tiles, footprint, resolution=0.1, **how)


def random_poses(rng, planner, count):
    side = planner.poses.map.shape[0] * planner.poses.resolution
    poses = np.column_stack([rng.uniform(0, side, (50 * count, 2)), rng.uniform(-7, 7, 50 * count)])
    return poses[planner.states_free(poses)][:count]


def placed(footprint, x, y, heading):
    cos, sin = np.cos(heading), np.sin(heading)
    points = np.asarray(footprint)
    return Polygon(
        np.column_stack([x + cos * points[:, 0] - sin * points[:, 1], y + sin * points[:, 0] + cos * points[:, 1]])
    )


def blocked_tree(tiles, resolution=0.1):
    """A tree of blocked tiles, with a ring of them around the map."""
    rows, cols = np.nonzero(np.pad(tiles, 1) == 0)
    rows, cols = rows - 1, cols - 1
    return shapely.STRtree(
        shapely.box(cols * resolution, rows * resolution, (cols + 1) * resolution, (rows + 1) * resolution)
    )


def meets(tree, shape):
    return len(tree.query(shape, predicate="intersects")) > 0


def plain_field(poses, tiles, goal):
    """Costs-to-go of all states to one, by a heap, moves free where their masks, as they are, meet no blocked tile of
    `tiles` (rows, cols), the costs -> {(layer, row, col): units}"""
    table, (rows, cols) = poses.table, tiles.shape
    padded = np.pad(tiles, poses.reach + 1)
    free = []
    for mask in poses.masks:
        met = np.zeros(tiles.shape, bool)
        for row, left, right in mask.runs:
            for col in range(left, right + 1):
                at = poses.reach + 1 + row, poses.reach + 1 + col
                met |= padded[at[0] : at[0] + rows, at[1] : at[1] + cols] == 0
        free.append(~met)
    value, queue = {state: 0 for state in goal}, [(0, state) for state in goal]
    while queue:
        known, (layer, row, col) = heapq.heappop(queue)
        if known > value[layer, row, col]:
            continue
        for i in range(table.into_first[layer], table.into_first[layer + 1]):
            move = table.into[i]
            r, c = row - int(table.down[move]), col - int(table.right[move])
            if 0 <= r < rows and 0 <= c < cols and free[table.plane[move]][r, c]:
                new = known + int(table.price[move]) * int(tiles[row, col])
                state = int(table.source[move]), r, c
                if new < value.get(state, math.inf):
                    value[state] = new
                    heapq.heappush(queue, (new, state))
    return value
