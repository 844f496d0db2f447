"""Which vertices of a polytope can be farthest along a direction, tabulated over a cube of directions.

A support query then looks at two or three vertices instead of climbing the hull's edges, whose scattered reads limit
the rate of checks on a GPU. A cell of the cube to which many vertices belong, as around the normal of a flat face with
a round rim, is divided again, as often as float32 can tell its directions apart.
"""

import numpy as np

from ...device import njit

CELLS = 16  # cells along each side of the cube's six faces
PARTS = 4  # and of a cell that is divided
SMALLEST = CELLS * PARTS**10  # cells along a face's side: each is 2^-23 of its half wide, and one vertex stands for all
MANY = (12, 48, 192, 768)  # candidates of a cell: the first of these for which the table has room
ROOM, CANDIDATES = 1 << 17, 1 << 21  # for cells besides the first, and for the candidates of all
SLACK = 1e-8  # of the greatest coordinate, at each division: what float32 does not tell apart either
MISSED = 5  # roundings of float32, relative to a hull's radius: all its slacks, and the width of the smallest cell
ZERO, HALF_CELLS = np.float32(0.0), np.float32(CELLS / 2)


@njit
def table_cell(x, y, z):
    """-> cell of the support table that the direction (x, y, z) falls into, and where in it: two numbers, 0 to 1."""
    ax, ay, az = abs(x), abs(y), abs(z)
    if ax >= ay and ax >= az:
        face, major, u, v = 0 if x > ZERO else 1, ax, y, z
    elif ay >= az:
        face, major, u, v = 2 if y > ZERO else 3, ay, z, x
    else:
        face, major, u, v = 4 if z > ZERO else 5, az, x, y
    scale = HALF_CELLS / max(major, np.float32(1e-30))
    u, v = u * scale + HALF_CELLS, v * scale + HALF_CELLS
    i, j = min(int(u), CELLS - 1), min(int(v), CELLS - 1)
    return (face * CELLS + i) * CELLS + j, u - np.float32(i), v - np.float32(j)


@njit
def table_part(u, v):
    """-> part of a divided cell, by where in the cell a direction is, and where it is in the part."""
    u, v = u * np.float32(PARTS), v * np.float32(PARTS)
    i, j = min(int(u), PARTS - 1), min(int(v), PARTS - 1)
    return i * PARTS + j, u - np.float32(i), v - np.float32(j)


def support_table(vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """vertices: (V, 3) float64 of a convex hull.

    -> (6 * CELLS * CELLS and more, 2) int: first and number of each cell's candidates, in (C,) int vertex numbers. The
    vertex farthest along any direction of a cell, or one as far but for a few SLACK, is among its candidates. Where the
    number is 0 the cell is divided, and its parts follow one another from row `first`. `table_cell` numbers the cells:
    faces x, -x, y, ...; `table_part` the parts. Both are empty where too many vertices are as far as each other.
    """
    for many in MANY:
        cells, members = _divided(np.ascontiguousarray(vertices, dtype=np.float64), many)
        if len(cells):
            break
    lists, order, length = {}, [], 0
    for cell in np.flatnonzero(cells[:, 1]):
        first, number = cells[cell]
        candidates = members[first : first + number]
        key = candidates.tobytes()
        if key not in lists:
            lists[key] = length
            order.append(candidates)
            length += number
        cells[cell, 0] = lists[key]
    return cells, np.concatenate(order) if order else members


@njit
def _divided(vertices, many):
    """-> the cells as in `support_table`, each with at most `many` candidates of its own, and these; no cells where
    there is no room for them."""
    faces = 6 * CELLS * CELLS
    cells, n_cells = np.zeros((faces + ROOM, 2), dtype=np.int64), faces
    members, n_members = np.empty(CANDIDATES, dtype=np.int64), 0
    everyone = np.arange(len(vertices))
    for face in range(6):
        # cells to be divided: where the result goes, row, column, cells along the face's side; the parents' candidates
        stack, lists = [(-1, 0, 0, 1)], [everyone]
        while len(stack) > 0:
            (one, i, j, side), parents = stack.pop(), lists.pop()
            candidates = _possible(vertices, parents, face, i, j, side)
            if side == CELLS:
                one = (face * CELLS + i) * CELLS + j
            if side == SMALLEST:
                candidates = candidates[:1]
            if side >= CELLS and len(candidates) <= many:
                if n_members + len(candidates) > len(members):
                    return cells[:0], members[:0]
                members[n_members : n_members + len(candidates)] = candidates
                cells[one] = n_members, len(candidates)
                n_members += len(candidates)
                continue
            first = -1
            if side >= CELLS:
                first = n_cells
                n_cells += PARTS * PARTS
                if n_cells > len(cells):
                    return cells[:0], members[:0]
                cells[one] = first, 0
            for part in range(PARTS * PARTS):
                stack.append((first + part, i * PARTS + part // PARTS, j * PARTS + part % PARTS, side * PARTS))
                lists.append(candidates)
    return cells[:n_cells], members[:n_members]


@njit
def _possible(vertices, among, face, i, j, side):
    """Those of the vertices `among` that can be farthest along a direction of cell i, j of a face of side x side cells,
    by more than SLACK; first the farthest along its middle.

    A vertex is left out if another one is as far along all four corner directions, hence along all between them.
    """
    along = np.empty((5, len(among)))
    axis, greatest = face // 2, 0.0
    for c in range(5):
        u = -1 + 2 * (i + (0.5 if c == 4 else c // 2)) / side
        v = -1 + 2 * (j + (0.5 if c == 4 else c % 2)) / side
        major = 1.0 if face % 2 == 0 else -1.0
        for n in range(len(among)):
            vertex = vertices[among[n]]
            along[c, n] = major * vertex[axis] + u * vertex[(axis + 1) % 3] + v * vertex[(axis + 2) % 3]
            greatest = max(greatest, abs(vertex[axis]), abs(vertex[(axis + 1) % 3]), abs(vertex[(axis + 2) % 3]))
    chosen = np.empty(len(among), dtype=np.int64)
    left = np.ones(len(among), dtype=np.bool_)
    count = 0
    for c in (4, 0, 1, 2, 3):
        count = _choose(np.argmax(along[c]), along, SLACK * greatest, chosen, left, count)
    for n in range(len(among) if side >= CELLS else 0):
        count = _choose(n, along, SLACK * greatest, chosen, left, count)
    if side < CELLS:  # all that are left
        for n in np.flatnonzero(left):
            chosen[count] = n
            count += 1
    return among[chosen[:count]]


@njit
def _choose(w, along, slack, chosen, left, count):
    """Choose vertex w, if it is left, and leave out those that it stands for; -> how many are chosen."""
    if not left[w]:
        return count
    chosen[count] = w
    for n in range(len(left)):
        if left[n]:
            left[n] = False
            for k in range(4):
                if along[k, n] > along[k, w] + slack:
                    left[n] = True
                    break
    return count + 1
