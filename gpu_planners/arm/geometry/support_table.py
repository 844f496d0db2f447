"""Which vertices of a polytope can be farthest along a direction, tabulated over a cube of directions.

A support query then looks at two or three vertices instead of climbing the hull's edges, whose scattered reads limit
the rate of checks on a GPU. A cell of the cube to which many vertices belong, as around the normal of a flat face with
a round rim, is divided again, as often as float32 can tell its directions apart.
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit, njit

CELLS = 16  # cells along each side of the cube's six faces
PARTS = 4  # and of a cell that is divided
SMALLEST = CELLS * PARTS**10  # cells along a face's side: each is 2^-23 of its half wide, and one vertex stands for all
DEPTHS = 12  # divisions of a face down to the smallest cells
MANY = (12, 48, 192, 768)  # candidates of a cell: the first of these for which the table has room
ROOM = 1 << 17  # cells besides the first
CANDIDATES = 1 << 21  # of all cells
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


class Cell(NamedTuple):
    """A cell to be divided. one: where its result goes, -1: it has none; i, j: its row and column among side x side
    cells of a face; depth: how many cells hold it; parents: how many candidates of the last of these there are"""

    face: int
    one: int
    i: int
    j: int
    side: int
    depth: int
    parents: int


class TableDesk(NamedTuple):
    """What `_divide` works in: it allocates nothing and calls nothing of NumPy, which would take seconds to compile.

    todo: (rows, 7) int: Cells, the next one last; lists: (DEPTHS + 2, V) int: candidates of the cell at each depth,
        behind all vertices
    along: (5, V) float64: how far candidates are along a cell's directions; left: (V,) bool: which are not yet chosen
    """

    todo: np.ndarray
    lists: np.ndarray
    along: np.ndarray
    left: np.ndarray


def support_table(vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """vertices: (V, 3) float64 of a convex hull.

    -> (6 * CELLS * CELLS and more, 2) int: first and number of each cell's candidates, in (C,) int vertex numbers. The
    vertex farthest along any direction of a cell, or one as far but for a few SLACK, is among its candidates. Where the
    number is 0 the cell is divided, and its parts follow one another from row `first`. `table_cell` numbers the cells:
    faces x, -x, y, ...; `table_part` the parts. Both are empty where too many vertices are as far as each other.
    """
    vertices = np.array(vertices, dtype=np.float64, order="C")
    for many in MANY:
        cells = np.zeros((6 * CELLS * CELLS + ROOM, 2), dtype=np.int64)
        members = np.empty(CANDIDATES, dtype=np.int64)
        n_cells, n_members = _divide(vertices, many, cells, members, _new_desk(len(vertices)))
        if n_cells:
            break
    cells, members = cells[:n_cells], members[:n_members]
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


def _new_desk(count):
    todo = np.empty((6 + (DEPTHS + 1) * PARTS * PARTS, len(Cell._fields)), dtype=np.int64)
    todo[:6] = [Cell(face, -1, 0, 0, 1, 0, count) for face in (5, 4, 3, 2, 1, 0)]
    lists = np.tile(np.arange(count), (DEPTHS + 2, 1))
    return TableDesk(todo, lists, np.empty((5, count)), np.empty(count, dtype=np.bool_))


@lean_njit
def _divide(vertices, many, cells, members, desk):
    """Fill `cells` as in `support_table`, each with at most `many` candidates of its own, and `members` with these.

    -> how many there are of both; 0, 0 where there is no room for them
    """
    todo, n_cells, n_members = desk.todo, 6 * CELLS * CELLS, 0
    waiting = 6
    while waiting > 0:
        waiting -= 1
        cell = todo[waiting]
        cell = Cell(cell[0], cell[1], cell[2], cell[3], cell[4], cell[5], cell[6])
        one, count, candidates = cell.one, _possible(vertices, cell, desk), desk.lists[cell.depth + 1]
        if cell.side == CELLS:
            one = (cell.face * CELLS + cell.i) * CELLS + cell.j
        if cell.side == SMALLEST:
            count = 1
        if cell.side >= CELLS and count <= many:
            if n_members + count > len(members):
                return 0, 0
            for k in range(count):
                members[n_members + k] = candidates[k]
            cells[one, 0], cells[one, 1] = n_members, count
            n_members += count
            continue
        first = -1
        if cell.side >= CELLS:
            first = n_cells
            n_cells += PARTS * PARTS
            if n_cells > len(cells):
                return 0, 0
            cells[one, 0], cells[one, 1] = first, 0
        for part in range(PARTS * PARTS):
            row = todo[waiting]
            row[0], row[1] = cell.face, first + part
            row[2], row[3] = cell.i * PARTS + part // PARTS, cell.j * PARTS + part % PARTS
            row[4], row[5], row[6] = cell.side * PARTS, cell.depth + 1, count
            waiting += 1
    return n_cells, n_members


@lean_njit
def _possible(vertices, cell, desk):
    """Write to the next row of desk.lists which of the cell's parents' candidates can be farthest along a direction of
    the cell, by more than SLACK; first the farthest along its middle. -> how many

    A vertex is left out if another one is as far along all four corner directions, hence along all between them.
    """
    among, chosen, along, left = desk.lists[cell.depth], desk.lists[cell.depth + 1], desk.along, desk.left
    axis, greatest, count = cell.face // 2, 0.0, 0
    for c in range(5):
        u = -1 + 2 * (cell.i + (0.5 if c == 4 else c // 2)) / cell.side
        v = -1 + 2 * (cell.j + (0.5 if c == 4 else c % 2)) / cell.side
        major = 1.0 if cell.face % 2 == 0 else -1.0
        for n in range(cell.parents):
            vertex = vertices[among[n]]
            along[c, n] = major * vertex[axis] + u * vertex[(axis + 1) % 3] + v * vertex[(axis + 2) % 3]
            greatest = max(greatest, abs(vertex[axis]), abs(vertex[(axis + 1) % 3]), abs(vertex[(axis + 2) % 3]))
    for n in range(cell.parents):
        left[n] = True
    for k in range(5 + (cell.parents if cell.side >= CELLS else 0)):
        w = k - 5
        if k < 5:  # the middle, then the corners
            c, w = (k + 4) % 5, 0
            for n in range(cell.parents):
                if along[c, n] > along[c, w]:
                    w = n
        if left[w]:
            chosen[count] = w
            count += 1
            _leave_out(w, along, SLACK * greatest, left, cell.parents)
    for n in range(cell.parents if cell.side < CELLS else 0):  # all that are left
        if left[n]:
            chosen[count] = n
            count += 1
    for k in range(count):
        chosen[k] = among[chosen[k]]
    return count


@lean_njit
def _leave_out(w, along, slack, left, count):
    """Leave out those of the first `count` candidates that candidate w stands for."""
    for n in range(count):
        if left[n]:
            left[n] = False
            for k in range(4):
                if along[k, n] > along[k, w] + slack:
                    left[n] = True
                    break
