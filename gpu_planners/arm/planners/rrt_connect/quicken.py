"""Changes of a path after which its motion takes less time: corners move, or straight motions take stretches' place.

The time is estimated. A corner counts as rounded only as far as its rounding is free, so paths that pass obstacles at a
distance, with corners that can be rounded, win over paths that touch them. Each round draws many changes at random,
checks those that take less time, and makes the best of them that is free.
"""

from typing import NamedTuple

import numpy as np

from ....parallel.team import clock_ns
from ...motion.estimate import NONE, distinct, estimated_durations
from ...spaces.interface import Checker
from ..query import around

DEVIATION = 0.1  # rad or m that the motion may leave a corner, as `time_parameterize` is asked by the node
SHARES = (0.1, 0.25, 0.5, 1.0)  # of DEVIATION, tried for the corners of the path as it comes
CHORDS = 4  # motions that stand for a rounded corner
DRAWN = 64  # changes of a round
CHECKED = 32  # of those that take less time
MOVES = 0.75  # share of changes that move a corner
LEAST = 0.03  # rad or m that a corner moves about
MOST = 1.0  # rad or m
NARROWER = 0.97  # factor of that after a round without a change
WIDER = 1.2  # factor after a round with one
SPREAD = 10.0 ** np.array([-1.5, 0.5])  # a corner moves by so many times that
LEAST_GAIN = 1e-3  # of the time
IDLE = 300  # rounds without a change, after which there is an end


class Route(NamedTuple):
    """path: (K, dof); away: (K,) rad or m by which its motion leaves each corner, proven; seconds: estimated"""

    path: np.ndarray
    away: np.ndarray
    seconds: float


def quicken(path: np.ndarray, checker: Checker, deadline: int, seed: int) -> np.ndarray:
    """A free path (K, dof) of the same checker -> one between the same ends whose motion takes less time, or the same.

    deadline: of clock_ns(); it ends earlier when changes help no more
    """
    check, rng, scale, most, idle = _Check(checker, deadline), np.random.default_rng(seed), MOST / 3, 1, 0
    route = _rounded(path[distinct(path)], check)
    while len(route.path) > 2 and idle < IDLE and not check.late:
        better = _better(route, scale, most, check, rng)
        idle = 0 if better else idle + 1
        route = better or route
        scale = min(max(scale * (WIDER if better else NARROWER), LEAST), MOST)
        most = min(2 * most, CHECKED)
    return route.path


class _Check:
    """Checks motions until the deadline. late: has it come, or would the latest ones have ended after it?"""

    def __init__(self, checker, deadline):
        self.robot, self._checker, self._deadline = checker.robot, checker, deadline
        self._checked, self._took_ns, self.late = 1, 0, False

    def free(self, starts, ends):
        """(N,) bool: which motions are free; when it is late, none."""
        began = clock_ns()
        self.late = self.late or began + len(starts) * self._took_ns / self._checked > self._deadline
        if self.late or not len(starts):
            return np.zeros(len(starts), dtype=bool)
        free = self._checker.motions_valid(starts, ends)
        self._checked, self._took_ns = self._checked + len(starts), self._took_ns + clock_ns() - began
        return free


def _rounded(path, check):
    """The Route along a free path (K, dof), whose roundings are tried a size at a time."""
    away = np.zeros(len(path))
    for share in SHARES:
        asked = np.full(max(len(path) - 2, 0), share * DEVIATION)
        cuts = _timed(path[None], asked[None], check.robot)[1][0]
        places = _rounding(path[:-2], path[1:-1], path[2:], cuts)
        free = check.free(*_chords(places)).reshape(-1, CHORDS).all(axis=1)
        away[1:-1] = np.where(free, asked, away[1:-1])
    return Route(path, away, float(_timed(path[None], away[None, 1:-1], check.robot)[0][0]))


def _better(route, scale, most, check, rng):
    """The best of random changes of a route, of which at most `most` are checked; None: none takes less time and is
    free."""
    paths, away, lengths, first, new = _changed(route, scale, check.robot, rng)
    seconds, cuts = _timed(paths, away[:, 1:-1], check.robot)
    asked = np.argsort(seconds)[:most]
    asked = asked[seconds[asked] < (1 - LEAST_GAIN) * route.seconds]
    leg_of, c, row = _each(asked, first, new - 1)
    legs = paths[c, row], paths[c, row + 1]
    corner_of, c, row = _each(asked, first, new)
    inner = (row > 0) & (row < lengths[c] - 1)
    corner_of, c, row = corner_of[inner], c[inner], row[inner]
    chords = _chords(_rounding(paths[c, row - 1], paths[c, row], paths[c, row + 1], cuts[c, row - 1]))
    free = check.free(*map(np.concatenate, zip(legs, chords, strict=True)))
    blocked = np.zeros(len(asked), dtype=bool)
    blocked[np.r_[leg_of, np.repeat(corner_of, CHORDS)][~free]] = True
    if blocked.all():
        return None
    won = asked[np.argmin(blocked)]
    path, away = paths[won, : lengths[won]], away[won, : lengths[won]]
    keep = distinct(path)
    return Route(path[keep], away[keep], float(seconds[won]))


def _each(asked, first, counts):
    """So many rows of each asked change, from `first` on -> (N,) places in `asked`, numbers of changes, and rows."""
    places, k = np.nonzero(np.arange(counts.max()) < counts[asked, None])
    return places, asked[places], first[asked[places]] + k


def _changed(route, scale, robot, rng):
    """Random changes -> paths (DRAWN, L, dof), which repeat their ends, and how far they may be left at each row
    (DRAWN, L); (DRAWN,) their lengths, the first row that is new, and how many are: two, with a third between them if a
    corner has moved."""
    path, dof = route.path, route.path.shape[1]
    along = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))]
    moves, corner = rng.random(DRAWN) < MOVES, rng.integers(1, len(path) - 1, DRAWN)
    first, last = np.sort(np.clip(rng.uniform(-0.1, 1.1, (2, DRAWN)), 0, 1) * along[-1], axis=0)
    first, last = np.where(moves, along[corner - 1], first), np.where(moves, along[corner + 1], last)
    step = scale * 10.0 ** rng.uniform(*SPREAD, DRAWN)[:, None] / np.sqrt(dof) * rng.standard_normal((DRAWN, dof))
    rows = np.stack([_at(path, along, first), path[corner] + step, _at(path, along, last)], axis=1)
    wide = around(robot, path[0])
    lower = np.where(robot.continuous, path[0] - np.pi, wide.lower)
    upper = np.where(robot.continuous, path[0] + np.pi, wide.upper)
    rows = np.clip(rows, lower, upper)
    rows[last == along[-1], -1] = path[-1]

    where = np.concatenate([np.tile(along, (DRAWN, 1)), np.stack([first, (first + last) / 2, last], axis=1)], axis=1)
    rows = np.concatenate([np.tile(path, (DRAWN, 1, 1)), rows], axis=1)
    away = np.concatenate([np.tile(route.away, (DRAWN, 1)), np.full((DRAWN, 3), DEVIATION)], axis=1)
    gone = np.concatenate(
        [(along >= first[:, None]) & (along <= last[:, None]), np.zeros((DRAWN, 3), dtype=bool)], axis=1
    )
    gone[:, -2] = ~moves
    rows[gone] = path[-1]
    order = np.argsort(np.where(gone, np.inf, where), axis=1, kind="stable")
    lengths, each = (~gone).sum(axis=1), np.arange(DRAWN)[:, None]
    order = order[:, : lengths.max()]
    return rows[each, order], away[each, order], lengths, np.argmax(order == len(path), axis=1), 2 + moves


def _at(path, along, where):
    """(N, dof) places of a path, `where` (N,) along it."""
    i = np.clip(np.searchsorted(along, where, side="right") - 1, 0, len(path) - 2)
    return path[i] + ((where - along[i]) / (along[i + 1] - along[i]))[:, None] * (path[i + 1] - path[i])


def _rounding(before, corner, after, cut):
    """(N, CHORDS + 1, dof) places of the rounded corners that take `cut` (N,) of their legs; before, corner, after:
    (N, dof)"""
    legs = corner - before, after - corner
    u, v = (leg / np.maximum(np.linalg.norm(leg, axis=1, keepdims=True), NONE) for leg in legs)
    x = np.linspace(0, 1, CHORDS + 1)[:, None]
    start, cut = corner - cut[:, None] * u, cut[:, None, None]
    return start[:, None] + 2 * cut * (x * u[:, None] + (x**3 - x**4 / 2) * (v - u)[:, None])


def _chords(places):
    """(N, CHORDS + 1, dof) -> (N * CHORDS, dof) where the motions between them begin, and where they end"""
    return tuple(each.reshape(-1, places.shape[2]) for each in (places[:, :-1], places[:, 1:]))


def _timed(paths, away, robot):
    return estimated_durations(paths, away, robot.velocity, robot.acceleration)
