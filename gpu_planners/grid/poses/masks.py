"""Masks of states and moves: which cells, counted from a state's own, must not be blocked.

What is promised. Let a cell be the closed square of its tile, and a heading's sector the closed range of angles up to
half way to the headings beside it.

    A state is free only if no blocked cell meets the footprint at any place of the state's cell, at any angle of its
    heading's sector.
    A move is free only if both of its end states are, and no blocked cell meets the footprint at any pose of the move,
    shifted by up to half a cell along each axis.

Why it holds. Between two poses of a move the robot turns about one point or moves straight, so each vertex of a convex
piece of the footprint goes along an arc, no farther than (chord / 2) tan(angle / 4) from the chord: at every moment the
piece lies in the convex hull of its vertices at both poses, grown by the greatest of these. A state's sector is cut
into such turns of at most SECTOR_STEP. A place in the cell, and a blocked cell about its centre, add a square of half a
cell each; a square of half side w about the hull holds a disc of radius w. So what is in the way has its centre in
hull + square, and for a row of cells this is a range: the hull's part within w of the row's centre line, widened by w.
Squares touching count, and EPSILON covers rounding. Masks are unions of such ranges, held as runs of bits.
"""

import math
from typing import NamedTuple

import numpy as np

from ...device import njit
from ...errors import GridMapError, shown
from .moves import Move

SECTOR_STEP = math.radians(2.5)
EPSILON = 1e-6  # cells
LARGEST = 512  # cells that a mask reaches at most


class Mask(NamedTuple):
    """Runs of bits: (R, 3) int32 row, first column, last column, counted from the state's cell."""

    runs: np.ndarray
    reach: int


def convex_pieces(polygon: np.ndarray) -> list[np.ndarray]:
    """Convex polygons (V, 2) that cover a simple polygon (N, 2): itself, or triangles by ear clipping.

    Raises GridMapError where its sides cross.
    """
    points = polygon if _area(polygon) > 0 else polygon[::-1]
    count = len(points)
    for i in range(count):
        for j in range(i + 2, count):
            if (j + 1) % count != i and _cross(points[i], points[i + 1], points[j], points[(j + 1) % count]):
                raise GridMapError(f"footprint's sides {i} and {j} cross; allowed: a polygon whose sides do not")
    if count < 3 or abs(_area(points)) < 1e-12:
        raise GridMapError(f"footprint is {shown(polygon.tolist())}; allowed: three or more points around an area")
    if all(_turn(points[k - 2], points[k - 1], points[k]) >= 0 for k in range(count)):
        return [points]
    left, pieces = [*points], []
    while len(left) > 3:
        for k in range(len(left)):
            a, b, c = left[k - 1], left[k], left[(k + 1) % len(left)]
            others = [p for p in left if not any(p is q for q in (a, b, c))]
            if _turn(a, b, c) >= 0 and not any(_inside(p, a, b, c) for p in others):
                pieces.append(np.array([a, b, c]))
                del left[k]
                break
        else:
            raise GridMapError(f"footprint {shown(polygon.tolist())} is no simple polygon")
    return [*pieces, np.array(left)]


def _area(points):
    x, y = points.T
    return float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


def _turn(a, b, c):
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _inside(p, a, b, c):
    return _turn(a, b, p) >= 0 and _turn(b, c, p) >= 0 and _turn(c, a, p) >= 0


def _cross(a, b, c, d):
    return _turn(a, b, c) * _turn(a, b, d) < 0 and _turn(c, d, a) * _turn(c, d, b) < 0


def inner_radius(polygon: np.ndarray) -> float:
    """Radius of a disc about the origin inside a polygon (N, 2); 0 where the origin lies outside."""
    following = np.roll(polygon, -1, axis=0)
    x, y = polygon.T
    ahead = (following[:, 1] > 0) != (y > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = ahead & (x - y * (following[:, 0] - x) / (following[:, 1] - y) > 0)
    if crossings.sum() % 2 == 0:
        return 0.0
    along = following - polygon
    share = np.clip(-(polygon * along).sum(axis=1) / np.maximum((along**2).sum(axis=1), 1e-300), 0, 1)
    return float(np.hypot(*(polygon + share[:, None] * along).T).min())


def state_masks(pieces: list[np.ndarray], sectors: np.ndarray) -> list[np.ndarray]:
    """Cells of each heading's states. pieces: in cells; sectors: (H, 2) rad -> (side, side) bool, the state's in the
    middle"""
    reach = _reach(pieces, 0)
    masks = []
    for low, high in sectors:
        count = math.ceil((high - low) / SECTOR_STEP) + 1
        poses = np.zeros((count, 3))
        poses[:, 2] = np.linspace(low, high, count)
        masks.append(swept(pieces, poses, reach))
    return masks


def move_mask(pieces: list[np.ndarray], move: Move, states: list[np.ndarray]) -> np.ndarray:
    """Cells of a move. states: of `state_masks`"""
    reach = _reach(pieces, np.abs(move.poses[:, :2]).max())
    mask = swept(pieces, move.poses, reach)
    for heading, down, right in ((move.start, 0, 0), (move.end, move.down, move.right)):
        inner = len(states[heading]) // 2
        rows, cols = (slice(reach + far - inner, reach + far + inner + 1) for far in (down, right))
        mask[rows, cols] |= states[heading]
    return mask


def _reach(pieces, far):
    reach = math.ceil(max(np.hypot(*piece.T).max() for piece in pieces) + far) + 3
    if reach > LARGEST:
        raise GridMapError(f"the footprint and a move reach {reach} cells; allowed: up to {LARGEST}: a coarser map")
    return reach


def swept(pieces: list[np.ndarray], poses: np.ndarray, reach: int, place: float = 0.5) -> np.ndarray:
    """Cells that pieces (V, 2) may meet along poses (K, 3), each shifted by up to `place` along each axis

    -> (2 reach + 1, 2 reach + 1) bool, from the centre of the cell in the middle
    """
    mask = np.zeros((2 * reach + 1, 2 * reach + 1), np.bool_)
    for piece in pieces:
        _sweep(np.ascontiguousarray(piece), np.ascontiguousarray(poses), reach, place + 0.5 + EPSILON, mask)
    return mask


@njit
def _sweep(piece, poses, reach, w, mask):
    count = len(piece)
    points = np.empty((2 * count, 2))
    for k in range(max(len(poses) - 1, 1)):
        last = min(k + 1, len(poses) - 1)
        grown, angle = 0.0, abs(poses[last, 2] - poses[k, 2])
        for side in range(2):
            x, y, heading = poses[last if side else k]
            cos, sin = np.cos(heading), np.sin(heading)
            for v in range(count):
                points[side * count + v, 0] = x + cos * piece[v, 0] - sin * piece[v, 1]
                points[side * count + v, 1] = y + sin * piece[v, 0] + cos * piece[v, 1]
        for v in range(count):
            chord = np.hypot(points[count + v, 0] - points[v, 0], points[count + v, 1] - points[v, 1])
            grown = max(grown, chord / 2 * np.tan(angle / 4))
        _fill(points, w + grown, reach, mask)


@njit
def _fill(points, w, reach, mask):
    """Cells whose centres lie in the convex hull of points plus a square of half side w."""
    for row in range(-reach, reach + 1):
        low, high = row - w, row + w
        left, right = np.inf, -np.inf
        for i in range(len(points)):
            x, y = points[i]
            if low <= y <= high:
                left, right = min(left, x), max(right, x)
            for j in range(i):
                other_x, other_y = points[j]
                for edge in (low, high):
                    if (y < edge) != (other_y < edge):
                        at = x + (edge - y) / (other_y - y) * (other_x - x)
                        left, right = min(left, at), max(right, at)
        if left <= right:
            for col in range(max(int(np.ceil(left - w)), -reach), min(int(np.floor(right + w)), reach) + 1):
                mask[row + reach, col + reach] = True


def along_free(pieces: list[np.ndarray], poses: np.ndarray, costs: np.ndarray, place: float) -> bool:
    """Does the footprint meet no blocked tile along poses (K, 3), in tiles: (0, 0) is the outer corner of the first?

    pieces: in tiles; costs: (rows, cols) uint8; beyond the map all is blocked; place: as of `swept`. Between two poses
    the robot turns about one point or moves straight, by at most half a turn.
    """
    for k in range(max(len(poses) - 1, 1)):
        part = poses[k : k + 2].copy()
        col, row = np.floor(part[0, :2]).astype(int)
        part[:, :2] -= col + 0.5, row + 0.5
        if len(part) == 2 and (abs(part[1, 2] - part[0, 2]) > math.pi or np.abs(part[1, :2]).max() > LARGEST):
            return False
        reach = _reach(pieces, np.abs(part[:, :2]).max())
        at = np.argwhere(swept(pieces, part, reach, place)) + (row - reach, col - reach)
        if (at < 0).any() or (at >= costs.shape).any() or (costs[at[:, 0], at[:, 1]] == 0).any():
            return False
    return True


def runs_of(mask: np.ndarray) -> Mask:
    """A mask (side, side) as runs, and how many cells it reaches."""
    reach = len(mask) // 2
    edges = np.diff(np.pad(mask, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    rows, first = np.nonzero(edges == 1)
    _, last = np.nonzero(edges == -1)
    runs = np.column_stack([rows - reach, first - reach, last - 1 - reach]).astype(np.int32)
    return Mask(runs, int(np.abs(runs).max()))
