"""Curves in joint space: quintic pieces one after the other, each given by its ends.

A piece of length L is the quintic polynomial with given position, first and second derivative at both of its ends. Such
are straight lines, rounded corners and the way of a tool on a line; and, with time for s, what a joint trajectory
controller plays between two points of a trajectory.
"""

from collections.abc import Callable
from math import comb
from typing import NamedTuple

import numpy as np
from scipy.interpolate import make_interp_spline

# Bernstein coefficients of the quintic over 0..1 from position, derivative and second derivative at 0, then at 1
_FROM_START = np.array([[1, 0, 0], [1, 1 / 5, 0], [1, 2 / 5, 1 / 20]])
_FROM_END = np.array([[1, -2 / 5, 1 / 20], [1, -1 / 5, 0], [1, 0, 0]])
# powers of x from Bernstein coefficients
POWERS = np.array([[(-1.0) ** (i - j) * comb(5, i) * comb(i, j) for j in range(6)] for i in range(6)])
_RAISED = np.array(  # Bernstein coefficients of degree 5 from those of degree 3
    [[1, 0, 0, 0], [0.4, 0.6, 0, 0], [0.1, 0.6, 0.3, 0], [0, 0.3, 0.6, 0.1], [0, 0, 0.6, 0.4], [0, 0, 0, 1]]
)


class Curve(NamedTuple):
    """K pieces. s: (K + 1,) increasing, rad or m; starts, ends: (K, 3, dof) position and derivatives by s at both ends

    A piece begins where the one before it ends, but at a corner that is not rounded in another direction.
    """

    s: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    @property
    def length(self) -> float:
        return float(self.s[-1] - self.s[0])


def straight(q_from: np.ndarray, q_to: np.ndarray) -> Curve:
    """The straight line between two configurations (dof,), by its length."""
    step = q_to - q_from
    length = float(np.linalg.norm(step))
    starts, ends = (np.array([[q, step / length, np.zeros_like(step)]]) for q in (q_from, q_to))
    return Curve(np.array([0.0, length]), starts, ends)


def is_straight(curve: Curve) -> bool:
    """Is it one straight line?"""
    unbent = len(curve.starts) == 1 and not curve.starts[0, 2].any()
    return unbent and np.array_equal(curve.starts[0, 1], curve.ends[0, 1])


def through(path: np.ndarray) -> Curve:
    """The smooth curve through configurations (K, dof), K > 1, by the length of the polyline: a spline of degree 5, or
    K - 1 where that is less, with continuous derivatives up to the fourth."""
    if len(path) == 2:
        return straight(*path)
    s = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))]
    degree = 5 if len(path) > 5 else 3 if len(path) > 3 else 2
    spline = make_interp_spline(s, path, k=degree)
    knots = np.stack([spline(s), spline(s, 1), spline(s, 2)], axis=1)
    knots[:, 0] = path
    return Curve(s, knots[:-1], knots[1:])


def smooth_parts(path: np.ndarray, fits: Callable[[Curve], np.ndarray]) -> list[np.ndarray]:
    """Cut a path (K, dof), K > 1, where it bends most, until the smooth curve `through` each part fits.

    fits: curve -> (pieces,) bool; parts of two rows are straight and fit always
    -> [(k, dof)], each of which begins with the row that the one before it ends with
    """
    if len(path) == 2:
        return [path]
    bad = ~fits(through(path))
    if not bad.any():
        return [path]
    slopes = np.diff(path, axis=0)
    slopes /= np.linalg.norm(slopes, axis=1)[:, None]
    bends = np.linalg.norm(np.diff(slopes, axis=0), axis=1)  # at the inner rows 1, 2, ...
    row = 1 + int(np.argmax(np.where(bad[:-1] | bad[1:], bends, -1.0)))  # beside a piece that does not fit
    return smooth_parts(path[: row + 1], fits) + smooth_parts(path[row:], fits)


def turn(before: Curve, after: Curve, cut: float) -> Curve:
    """The rounded corner from `cut` before the end of a curve to `cut` after the start of the next.

    Between straight lines it stays in the triangle of its ends and the corner.
    """
    start, end = at(before, [before.s[-1] - cut])[0], at(after, [after.s[0] + cut])[0]
    return Curve(np.array([0.0, 2 * cut]), start[None], end[None])


def part(curve: Curve, first: float, last: float) -> Curve:
    """The curve from s = first to s = last, first < last."""
    if is_straight(curve):  # its derivatives are exact, however short the part is
        q = at(curve, [first, last])[:, 0]
        starts, ends = (np.stack([each, *curve.starts[0, 1:]])[None] for each in q)
        return Curve(np.array([0.0, last - first]), starts, ends)
    inner = (curve.s > first + 1e-12) & (curve.s < last - 1e-12)
    s = np.r_[first, curve.s[inner], last]
    pieces = np.clip(np.searchsorted(curve.s, (s[1:] + s[:-1]) / 2, side="right") - 1, 0, len(curve.starts) - 1)
    return Curve(s - first, at(curve, s[:-1], pieces), at(curve, s[1:], pieces))


def joined(curves: list[Curve]) -> Curve:
    """One after the other."""
    offsets = np.r_[0.0, np.cumsum([curve.length for curve in curves])]
    s = [curve.s[:-1] - curve.s[0] + offset for curve, offset in zip(curves, offsets, strict=False)]
    return Curve(
        np.concatenate([*s, offsets[-1:]]),
        np.concatenate([curve.starts for curve in curves]),
        np.concatenate([curve.ends for curve in curves]),
    )


def at(curve: Curve, s, pieces=None) -> np.ndarray:
    """(N, 3, dof) position and derivatives at s (N,). pieces: (N,) their numbers, where they are known"""
    s = np.asarray(s, dtype=float)
    if pieces is None:
        pieces = np.clip(np.searchsorted(curve.s, s, side="right") - 1, 0, len(curve.starts) - 1)
    length = (curve.s[pieces + 1] - curve.s[pieces])[:, None]
    x = (s - curve.s[pieces])[:, None] / length
    q, dq, ddq = derivatives(powers(curve, pieces).swapaxes(0, 1), x)
    return np.stack([q, dq / length, ddq / length**2], axis=1)


def derivatives(c: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, first and second derivatives of polynomials at x (..., 1); c: (6, ..., dof) coefficients of 1, x, ..."""
    q, dq, ddq = c[5], 5 * c[5], 20 * c[5]
    for k in range(4, -1, -1):
        q = c[k] + x * q
        if k > 0:
            dq = k * c[k] + x * dq
        if k > 1:
            ddq = k * (k - 1) * c[k] + x * ddq
    return q, dq, ddq


def third(curve: Curve, pieces: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(N, dof) third derivatives by s at the fractions x (N,) of pieces (N,)."""
    c, x = powers(curve, pieces), x[:, None]
    length = (curve.s[pieces + 1] - curve.s[pieces])[:, None]
    return (6 * c[:, 3] + x * (24 * c[:, 4] + x * 60 * c[:, 5])) / length**3


def powers(curve: Curve, pieces) -> np.ndarray:
    """(N, 6, dof) coefficients of the powers of x in 0..1."""
    return POWERS @ bernstein(np.diff(curve.s)[pieces], curve.starts[pieces], curve.ends[pieces])


def bernstein(lengths: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """(N, 6, dof) control points of quintics: each lies in the convex hull of its six.

    lengths: (N,); starts, ends: (N, 3, dof) position, first and second derivative
    """
    scale = np.stack([np.ones_like(lengths), lengths, lengths**2], axis=1)[:, :, None]
    return np.concatenate([_FROM_START @ (starts * scale), _FROM_END @ (ends * scale)], axis=1)


def cubic_bernstein(lengths: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """(N, 6, dof) control points of the cubics through the same positions and first derivatives, as of degree 5."""
    third_part = lengths[:, None] / 3
    cubic = np.stack(
        [starts[:, 0], starts[:, 0] + third_part * starts[:, 1], ends[:, 0] - third_part * ends[:, 1], ends[:, 0]],
        axis=1,
    )
    return _RAISED @ cubic


def aside(points: np.ndarray) -> np.ndarray:
    """(N, dof) by how much each joint leaves the chord at most, wherever a curve with these control points is.

    points: (N, 6, dof). A place of the curve is a mean of its control points. The same mean of the points of the chord
    that are nearest to them lies on the chord, so the place is no farther from it than the control points are.
    """
    start = points[:, :1]
    chord = points[:, -1:] - start
    squared = np.maximum((chord**2).sum(axis=2, keepdims=True), 1e-300)
    along = np.clip(((points - start) * chord).sum(axis=2, keepdims=True) / squared, 0.0, 1.0)
    return np.abs(points - start - along * chord).max(axis=1)
