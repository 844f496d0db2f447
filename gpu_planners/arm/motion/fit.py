"""Smooth curves near paths of many corners: cubic B-splines whose control points lie on the path.

A piece of such a curve lies in the hull of four control points that follow each other on the path: the nearer these are
to each other, the nearer the curve is to the path. They lie as far apart as corners may be left and as the curve is
proven free; where even the nearest do not do, the motion stops at the corners.
"""

from typing import Any, NamedTuple

import numpy as np

from ..collision.reach import joint_reach
from .curve import Curve, aside, at, bernstein

FEWEST_PIECES = 10
MOST_PIECES = 5_000
NEAREST = 1e-4  # rad or m: control points that would have to be nearer are none; the motion stops at their corners
GROWTH = 0.25  # by how much the distance of control points may change along the path, per distance
EVEN = 4  # places on both sides that their distance is a mean of
GRID = 400  # places at which the distance of control points is held, to begin with
FINEST_GRID = 20_000
ROUNDS = 120  # of placing control points, for all parts of a path
HALVINGS = 2  # of a piece, for the bound of how far it is from the path
BESIDE = 0.25  # of the path beside a part of a piece, that is looked at on both sides
NEAR = np.linspace(-0.5, 0.5, 5)  # places of the curve beside a corner that may be the nearest, in pieces
LOOKS = (-1.5, -0.5, 0.5, 1.5, 2.5)  # places beside a part of a piece whose legs may be the nearest, in its length


class Fitted(NamedTuple):
    """A curve for the corners first..last of a path.

    places: (pieces + 1,) of its control points, by the path's length
    leaves: (pieces,) bool: does a piece leave the straight leg that it belongs to? legs: (pieces, 2) those it is near
    """

    first: int
    last: int
    curve: Curve
    places: np.ndarray
    leaves: np.ndarray
    legs: np.ndarray


class _Path:
    """A polyline (K, dof) by its length. away: (K,) how far a curve may leave it beside each of its corners"""

    def __init__(self, corners, away):
        self.corners, self.away = corners, away
        self.steps = np.diff(corners, axis=0)
        self.lengths = np.linalg.norm(self.steps, axis=1)
        self.s = np.r_[0.0, np.cumsum(self.lengths)]
        self.allowed = np.minimum(away[:-1], away[1:])

    def legs(self, s):
        return np.clip(np.searchsorted(self.s, s, side="right") - 1, 0, len(self.steps) - 1)

    def at(self, s):
        legs = self.legs(s)
        return self.corners[legs] + ((s - self.s[legs]) / self.lengths[legs])[:, None] * self.steps[legs]


def fitted(corners: np.ndarray, away: np.ndarray, proof: "Proof | None" = None) -> list[Fitted]:
    """Curves for a path (K, dof) without repeated corners, between stops at corners.

    away: (K - 2,) how far they may leave the path beside each of its inner corners, rad or m, above 0
    proof: of what is free; None: all is. Parts of one leg are left
    out, and parts for which none is found
    """
    away = np.r_[away[0], away, away[-1]]
    todo, done, rounds = [(0, len(corners) - 1)], [], ROUNDS
    while todo:
        first, last = todo.pop()
        if last - first < 2:
            continue
        found, stops, used = _fit(_Path(corners[first : last + 1], away[first : last + 1]), proof, rounds)
        rounds -= used
        if found is not None:
            done.append(Fitted(first, last, *found))
        elif len(stops):
            ends = first + np.r_[0, stops, last - first]
            todo.extend(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
    return sorted(done, key=lambda each: each.first)


def _fit(path, proof, rounds):
    """-> (curve, places, leaves, legs) or None; without one, the corners at which it must stop; rounds that it took."""
    grid = np.union1d(path.s, np.linspace(0.0, path.s[-1], int(np.clip(4 * len(path.s), GRID, FINEST_GRID))))
    apart = np.full(len(grid), path.s[-1] / FEWEST_PIECES)
    for used in range(1, rounds + 1):
        apart = _even(grid, apart)
        places = _laid(grid, apart)
        if len(places) > MOST_PIECES:
            return None, (), used
        curve = _spline(path, places)
        less = np.sqrt(np.maximum(_off(path, curve, places), 1e-300))
        around = np.r_[places[0], places, places[-1]]
        legs = path.legs(np.stack([around[:-3], around[3:]], axis=1))
        leaves = legs[:, 0] != legs[:, 1]
        share = np.where(less > 1.0, np.clip(0.9 / less, 0.3, 0.9), 1.0)
        if proof is not None and not (less > 1.0).any():
            share[leaves] = np.where(proof(curve, leaves), 1.0, 0.5)
        bad = np.flatnonzero(share < 1.0)
        if not len(bad):
            return (curve, places, leaves, legs), (), used
        wanted = share * np.diff(places)
        close = bad[wanted[bad] < NEAREST]
        if len(close):
            inner = [np.arange(legs[i, 0] + 1, legs[i, 1] + 1) for i in close]
            return None, np.unique(np.concatenate(inner)), used
        begins, ends = np.searchsorted(grid, around[bad]), np.searchsorted(grid, around[bad + 3], side="right")
        least = np.ones(len(grid))
        for begin, end, less in zip(begins, ends, share[bad], strict=True):
            least[begin:end] = np.minimum(least[begin:end], less)
        apart = apart * least
    return None, (), rounds


def _even(grid, apart):
    """Distances (G,) no greater than `apart`, which change by no more than GROWTH times the way."""
    apart = np.minimum.accumulate(apart - GROWTH * grid) + GROWTH * grid
    return np.minimum.accumulate((apart + GROWTH * grid)[::-1])[::-1] - GROWTH * grid


def _laid(grid, apart):
    """(N,) places from the first of the grid to its last, about `apart` (G,) from each other."""
    count = np.r_[0.0, np.cumsum((1 / apart[1:] + 1 / apart[:-1]) / 2 * np.diff(grid))]
    places = np.interp(np.linspace(0.0, count[-1], max(int(np.ceil(count[-1])), FEWEST_PIECES) + 1), count, grid)
    width = min(EVEN, len(places) // 2)
    for _ in range(2):  # so that their distances change smoothly, as the curve's derivatives do with them
        around = np.r_[2 * places[0] - places[width:0:-1], places, 2 * places[-1] - places[-2 : -2 - width : -1]]
        sums = np.r_[0.0, np.cumsum(around)]
        places = (sums[2 * width + 1 :] - sums[: -2 * width - 1]) / (2 * width + 1)
    places[0], places[-1] = grid[0], grid[-1]
    return places


def _spline(path, places):
    c = path.at(places)
    c[0], c[-1] = path.corners[0], path.corners[-1]
    c = np.concatenate([2 * c[:1] - c[1:2], c, 2 * c[-1:] - c[-2:-1]])
    knots = np.stack([(c[:-2] + 4 * c[1:-1] + c[2:]) / 6, (c[2:] - c[:-2]) / 2, c[:-2] - 2 * c[1:-1] + c[2:]], axis=1)
    knots[0, 0], knots[-1, 0] = path.corners[0], path.corners[-1]
    knots[0, 2] = knots[-1, 2] = 0.0
    return Curve(np.arange(len(places), dtype=float), knots[:-1], knots[1:])


def _off(path, curve, places):
    """(pieces,) bounds of how far pieces are from the path, as shares of what is allowed.

    A part of a piece is in the hull of its control points, and the distance from a line is convex: the farthest of them
    bounds it. The lines are legs of the path; and the chord of the path beside the part, from which the path is no
    farther than its corners there.
    """
    (p, d, _), (p_end, d_end, _) = curve.starts.swapaxes(0, 1), curve.ends.swapaxes(0, 1)
    points = np.stack([p, p + d / 3, p_end - d_end / 3, p_end], axis=1)
    for _ in range(HALVINGS):
        points = _halved(points)
    parts = 2**HALVINGS
    steps = np.repeat(np.diff(places) / parts, parts)
    begins = np.repeat(places[:-1], parts) + steps * np.tile(np.arange(parts), len(p))
    low, high = (np.clip(begins + steps * x, path.s[0], path.s[-1]) for x in (-BESIDE, 1 + BESIDE))
    first, last = path.legs(low), path.legs(high)
    chord_from, chord_to = path.at(low), path.at(high)
    beside = np.zeros(len(points))
    corners = path.s[1:-1]
    own = np.clip(np.searchsorted(begins, corners, side="right") - 1, 0, len(begins) - 1)
    for number in (own - 1, own, own + 1):
        number = np.clip(number, 0, len(begins) - 1)
        there = (corners >= low[number]) & (corners <= high[number])
        k = number[there]
        np.maximum.at(beside, k, _apart(path.corners[1:-1][there][:, None], chord_from[k], chord_to[k]))
    allowed = _least_between(path.allowed, first, last)
    least = (beside + _apart(points, chord_from, chord_to)) / allowed
    for look in LOOKS:
        legs = path.legs(np.clip(begins + look * steps, path.s[0], path.s[-1]))
        least = np.minimum(least, _apart(points, path.corners[legs], path.corners[legs + 1]) / path.allowed[legs])
    found = least.reshape(-1, parts).max(axis=1)
    np.maximum.at(found, *_missed(path, curve, places))
    return found


def _missed(path, curve, places):
    """(corners,) the pieces beside the inner corners of a path; and how far these are from the curve, as shares of
    what is allowed: from chords of the curve, which are nearer to it than it is to the path."""
    p = np.interp(path.s[1:-1], places, curve.s)
    looks = np.clip(p + NEAR[:, None], curve.s[0], curve.s[-1])
    q = at(curve, looks.ravel())[:, 0].reshape(*looks.shape, -1)
    corners = path.corners[1:-1][:, None]
    far = np.min([_apart(corners, *ends) for ends in zip(q[:-1], q[1:], strict=True)], axis=0)
    pieces = np.clip(p.astype(int), 0, len(curve.starts) - 1)
    return pieces, far / np.maximum(path.allowed[:-1], path.allowed[1:])


def _apart(points, line_from, line_to):
    """(N,) the greatest distance of points (N, n, dof) from lines between two points (N, dof) each."""
    away, way = points - line_from[:, None], (line_to - line_from)[:, None]
    along = np.clip((away * way).sum(axis=2) / np.maximum((way**2).sum(axis=2), 1e-300), 0.0, 1.0)
    return np.linalg.norm(away - along[:, :, None] * way, axis=2).max(axis=1)


def _least_between(values, first, last):
    """(N,) the least of values[first : last + 1]."""
    if (values == values[0]).all():
        return np.broadcast_to(values[0], len(first))
    bounds = np.stack([first, last + 1], axis=1).ravel()
    return np.minimum.reduceat(np.append(values, np.inf), bounds)[::2]


def _halved(points):
    """(2 N, 4, dof) Bernstein coefficients of the halves of cubics (N, 4, dof)."""
    ab, bc, cd = ((points[:, k] + points[:, k + 1]) / 2 for k in range(3))
    abc, bcd = (ab + bc) / 2, (bc + cd) / 2
    middle = (abc + bcd) / 2
    halves = [[points[:, 0], ab, abc, middle], [middle, bcd, cd, points[:, 3]]]
    return np.stack([np.stack(each, axis=1) for each in halves], axis=1).reshape(-1, *points.shape[1:])


class Proof:
    """Proves pieces of curves free: their chords for a robot that is thicker by what they leave of the chords, `tube`
    metres, and by as much again for the chords between the points that are played.

    within: (N, n, dof) control points -> (N,) bool, are the curves within the joints' limits?
    """

    def __init__(self, checker: Any, tube: float, within: Any) -> None:
        self.thick, self.tube, self.within = checker.thickened(2 * tube), tube, within
        self.reach = joint_reach(checker.robot).T

    def __call__(self, curve: Curve, which: np.ndarray) -> np.ndarray:
        """(N,) bool of the pieces that are named by `which` (pieces,) bool."""
        numbers = np.flatnonzero(which)
        if not len(numbers):
            return np.ones(0, dtype=bool)
        hulls = bernstein(np.diff(curve.s)[numbers], curve.starts[numbers], curve.ends[numbers])
        off = (aside(hulls) @ self.reach).max(axis=1, initial=0.0)
        counts = np.maximum(np.ceil(np.sqrt(off / self.tube)), 1).astype(int)
        owner, first = np.repeat(np.arange(len(numbers)), counts), np.r_[0, np.cumsum(counts)[:-1]]
        begin = (np.arange(len(owner)) - first[owner]) / counts[owner]
        pieces, s = numbers[owner], curve.s[numbers[owner]]
        q_from, q_to = (at(curve, s + x, pieces)[:, 0] for x in (begin, begin + 1 / counts[owner]))
        return np.logical_and.reduceat(self.thick.motions_valid(q_from, q_to), first) & self.within(hulls)
