"""Which vertices of a polytope can be farthest along a direction, tabulated over a cube of directions.

A support query then looks at two or three vertices instead of climbing the hull's edges, whose scattered reads limit
the rate of checks on a GPU.
"""

import numpy as np

from ...device import njit

CELLS = 16  # cells along each side of the cube's six faces
ZERO, HALF_CELLS = np.float32(0.0), np.float32(CELLS / 2)


@njit
def table_cell(x, y, z):
    """Cell of the support table that the direction (x, y, z) falls into."""
    ax, ay, az = abs(x), abs(y), abs(z)
    if ax >= ay and ax >= az:
        face, major, u, v = 0 if x > ZERO else 1, ax, y, z
    elif ay >= az:
        face, major, u, v = 2 if y > ZERO else 3, ay, z, x
    else:
        face, major, u, v = 4 if z > ZERO else 5, az, x, y
    scale = HALF_CELLS / max(major, np.float32(1e-30))
    i = min(int(u * scale + HALF_CELLS), CELLS - 1)
    j = min(int(v * scale + HALF_CELLS), CELLS - 1)
    return (face * CELLS + i) * CELLS + j


def support_table(vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """vertices: (V, 3) float64 of a convex hull.

    -> (6 * CELLS * CELLS, 2) int: first and number of each cell's candidates, in (C,) int vertex numbers. The vertex
    farthest along any direction of a cell is among its candidates. `table_cell` numbers the cells: faces x, -x, y, ...
    """
    lists, order, cells = {}, [], np.empty((6 * CELLS * CELLS, 2), dtype=np.int64)
    possible = _possible(np.ascontiguousarray(vertices, dtype=np.float64))
    first = 0
    for cell, row in enumerate(possible):
        candidates = np.flatnonzero(row)
        key = candidates.tobytes()
        if key not in lists:
            lists[key] = first, len(candidates)
            order.append(candidates)
            first += len(candidates)
        cells[cell] = lists[key]
    return cells, np.concatenate(order)


@njit
def _possible(vertices):
    """(cells, V) bool: v is left out of a cell if some vertex is farther than v along all four corner directions of the
    cell, hence along every direction between them."""
    count = len(vertices)
    possible = np.ones((6 * CELLS * CELLS, count), dtype=np.bool_)
    corners = np.empty((5, 3))
    along = np.empty((5, count))
    slack = 1e-7 * np.abs(vertices).max()
    for cell in range(6 * CELLS * CELLS):
        face, i, j = cell // (CELLS * CELLS), cell // CELLS % CELLS, cell % CELLS
        for c in range(5):
            u = -1 + 2 * (i + (0.5 if c == 4 else c // 2)) / CELLS
            v = -1 + 2 * (j + (0.5 if c == 4 else c % 2)) / CELLS
            axis = face // 2
            corners[c, axis] = 1.0 if face % 2 == 0 else -1.0
            corners[c, (axis + 1) % 3], corners[c, (axis + 2) % 3] = u, v
            for n in range(count):
                along[c, n] = (
                    vertices[n, 0] * corners[c, 0] + vertices[n, 1] * corners[c, 1] + vertices[n, 2] * corners[c, 2]
                )
        for c in range(5):
            w = np.argmax(along[c])
            for n in range(count):
                if possible[cell, n]:
                    ahead = -np.inf
                    for k in range(4):
                        ahead = max(ahead, along[k, n] - along[k, w])
                    possible[cell, n] = ahead >= -slack
    return possible
