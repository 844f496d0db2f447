"""Distances of convex shapes, many pairs at a time, in NumPy: for what is computed once, while a robot is loaded.

For a unit vector n, min over B of n . b less max over A of n . a bounds the distance of A and B from below, whatever n
is. So the search for n (Wolfe, Finding the nearest point in a polytope, 1976, on the difference of the two shapes) may
stop anywhere, and rounding moves a bound by no more than 1e-14 of the lengths.
"""

from collections.abc import Sequence

import numpy as np

from .shapes import BOX_CORNERS, ConvexShape, ShapeKind

ITERATIONS = 12  # of the search for n
CORRAL = 4  # points of the difference of two shapes that hold the nearest one
TINY = 1e-9  # metres: shapes that are no farther apart meet
NEAR_ENOUGH = 1e-3  # share of a distance between its bounds


class Supports:
    """The shapes of some bodies, as what lies farthest along a direction: a hull's vertices, and a disc or ball there.

    shapes: posed in their body's frame, metres
    """

    def __init__(self, shapes: Sequence[ConvexShape]) -> None:
        self._points = [_points(shape) for shape in shapes]
        self._ball = np.array([shape.half_extents[0] * (shape.kind == ShapeKind.SPHERE) for shape in shapes])
        self._disc = np.array([shape.half_extents[0] * (shape.kind == ShapeKind.CYLINDER) for shape in shapes])
        self._axis = np.array([shape.pose[:3, 2] for shape in shapes]).reshape(-1, 3)
        self.centre = np.array([(p.min(axis=0) + p.max(axis=0)) / 2 for p in self._points]).reshape(-1, 3)
        spread = [np.linalg.norm(p - c, axis=1).max() for p, c in zip(self._points, self.centre, strict=True)]
        self.radius = np.array(spread).reshape(-1) + self._ball + self._disc  # of a ball about `centre`
        self.reach = np.linalg.norm(self.centre, axis=1) + self.radius  # farthest from the body's origin

    def farthest(self, which: np.ndarray, n: np.ndarray) -> np.ndarray:
        """(N, 3) points of the shapes `which` (N,) that lie farthest along unit vectors n (N, 3), metres."""
        found = np.empty((len(which), 3))
        order = np.argsort(which, kind="stable")
        kinds, begins = np.unique(which[order], return_index=True)
        for shape, rows in zip(kinds, np.split(order, begins[1:])):
            points = self._points[shape]
            found[rows] = points[0] if len(points) == 1 else points[np.argmax(n[rows] @ points.T, axis=1)]
        found += self._ball[which, None] * n
        if self._disc.any():
            axis = self._axis[which]
            across = n
            for _ in range(2):  # once more, since what little is left where n is almost the axis is off by rounding
                across = across - (across * axis).sum(axis=1, keepdims=True) * axis
            length = np.linalg.norm(across, axis=1, keepdims=True)
            found += np.where(length > 1e-15, self._disc[which, None] * across / np.maximum(length, 1e-15), 0.0)
        return found


def _points(shape):
    """(V, 3) whose hull, with a disc or ball about each point, is the shape; in the frame of its pose."""
    h = shape.half_extents
    points = {
        ShapeKind.POLYTOPE: lambda: shape.vertices,
        ShapeKind.BOX: lambda: h * BOX_CORNERS,
        ShapeKind.CYLINDER: lambda: np.array([[0, 0, -h[2]], [0, 0, h[2]]]),
        ShapeKind.SPHERE: lambda: np.zeros((1, 3)),
    }[shape.kind]()
    return points @ shape.pose[:3, :3].T + shape.pose[:3, 3]


def gaps(
    supports: Supports,
    a: np.ndarray,
    b: np.ndarray,
    T_a_b: np.ndarray,
    n: np.ndarray,
    enough: np.ndarray,
    iterations: int = ITERATIONS,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bounds of the distances of shapes a (N,) and b (N,) of `supports`, b's body at T_a_b (N, 4, 4) in a's.

    n: (N, 3) unit vectors from a to b, where the search begins
    enough: (N,) metres: of shapes that do not meet it is enough to know whether they are farther apart
    Returns (lower, (N,) bounds, negative where the shapes may meet; upper, (N,); the unit vectors of the lower, (N, 3))
    """
    count = len(a)
    lower, upper, best = np.full(count, -np.inf), np.full(count, np.inf), n.copy()
    left = np.arange(count)
    x, corral, weight = n.copy(), np.zeros((count, CORRAL, 3)), np.zeros((count, CORRAL))
    for _ in range(iterations):
        R, t = T_a_b[left, :3, :3], T_a_b[left, :3, 3]
        length = np.linalg.norm(x, axis=1)
        n = x / length[:, None]
        of_b = supports.farthest(b[left], -(n[:, None] @ R)[:, 0])
        w = (R @ of_b[:, :, None])[:, :, 0] + t - supports.farthest(a[left], n)
        gap = (w * n).sum(axis=1)
        better = gap > lower[left]
        lower[left[better]], best[left[better]] = gap[better], n[better]
        x, corral, weight = _nearest(w, corral, weight)
        length = np.linalg.norm(x, axis=1)
        upper[left] = np.minimum(upper[left], length)
        low, high = lower[left], upper[left]
        known = (low > enough[left]) | ((low > 0) & (high <= enough[left])) | (high <= TINY)
        going = ~known & (high - low > NEAR_ENOUGH * high)
        left, x, corral, weight = left[going], x[going], corral[going], weight[going]
        if not len(left):
            break
    return lower, upper, best


def _nearest(w, corral, weight):
    """Add points w (N, 3) to corrals (N, 4, 3) with weights (N, 4), 0 where free: -> (nearest point of the hulls to the
    origin (N, 3), corrals, weights)."""
    rows, fresh = np.arange(len(w)), ~(weight > 0).any(axis=1)
    free = np.argmin(weight, axis=1)  # one is 0, or the origin would be inside
    corral, weight = corral.copy(), weight.copy()
    corral[rows, free] = w
    active = weight > 0
    active[rows, free] = True
    weight[rows, free] = np.where(fresh, 1.0, 0.0)
    todo = rows
    for _ in range(CORRAL):
        if not len(todo):
            break
        aim = _affine(corral[todo], active[todo])
        inside = (aim > 0) | ~active[todo]
        whole = inside.all(axis=1)
        now = weight[todo]
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(inside, 1.0, np.clip(now / (now - aim), 0.0, 1.0)).min(axis=1)
        now = np.where(whole[:, None], aim, now + step[:, None] * (aim - now))
        gone = ~inside & (now <= 1e-12)
        now = np.where(active[todo] & ~gone, np.maximum(now, 0.0), 0.0)
        weight[todo] = now
        active[todo] = now > 0
        todo = todo[~whole]
    weight /= weight.sum(axis=1, keepdims=True)
    return (weight[:, :, None] * corral).sum(axis=1), corral, weight


def _affine(corral, active):
    """(N, 4) weights, summing to 1, of the point nearest to the origin on the affine hulls of the active points."""
    n = len(corral)
    gram = corral @ corral.transpose(0, 2, 1)
    both = active[:, :, None] & active[:, None]
    system = np.zeros((n, CORRAL + 1, CORRAL + 1))
    scale = np.einsum("nii->n", gram) + 1e-300
    system[:, :CORRAL, :CORRAL] = (
        np.where(both, gram / scale[:, None, None], 0.0) + np.eye(CORRAL) * np.where(active, 1e-13, 1.0)[:, None]
    )
    system[:, :CORRAL, CORRAL] = system[:, CORRAL, :CORRAL] = active
    right = np.zeros((n, CORRAL + 1, 1))
    right[:, CORRAL] = 1.0
    return np.linalg.solve(system, right)[:, :CORRAL, 0]
