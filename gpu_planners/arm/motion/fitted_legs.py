"""Smooth legs in place of many straight ones: fitted to them (`fit`), and as quick as they allow (`optimal`)."""

from collections.abc import Callable
from functools import partial
from math import comb
from typing import Any

import numpy as np

from .curve import bernstein, is_straight
from .fit import Fitted, Proof, fitted
from .loads import LEAST, SHARE, shares
from .optimal import Bounds, quickest
from .pacing import Limits, phases
from .played import TUBE, FittedLeg, Leg, stretches_of, timed_once, within

LEAST_CUT = 1e-3  # rad or m: a corner that would be rounded less is a stop
MANY = 8  # straight legs, of which corners take all that they may, to which a smooth leg is fitted
WHOLE = 0.98  # of half a leg: what a corner takes that takes all that it may
KEPT = 1.0 + 1e-9  # how much longer a smooth leg takes than its limits demand
SLOWER = 30  # times that its pace is slowed down, at most, to keep the limits


def with_fitted(
    legs: list[Leg], cuts: np.ndarray, away: np.ndarray, checker: Any, proven: Callable
) -> tuple[list[Leg], np.ndarray]:
    """The legs and cuts, with smooth legs in place of many straight ones wherever that is quicker.

    proven: legs, cuts, checker -> (Timed, ...) as `timing` has it
    """
    lines = np.array([is_straight(leg.curve) and leg.tool is None for leg in legs])
    proof = None
    lengths = np.array([leg.curve.length for leg in legs])
    whole = cuts >= WHOLE * np.minimum(lengths[:-1], lengths[1:]) / 2
    for first, last in reversed(runs(lines[:-1] & lines[1:] & (away > 0))):
        if max((end - begin + 1 for begin, end in runs(whole[first:last])), default=0) < MANY:
            continue
        if proof is None and checker is not None:
            proof = Proof(checker, TUBE, partial(within, checker.robot))
        part, own = legs[first : last + 1], cuts[first:last]
        found = _fitted_legs(part, away[first:last], proof, None if checker is None else checker.robot)
        if found is None:
            continue
        stops, own = np.zeros(len(found) - 1), np.where(own < LEAST_CUT, 0.0, own)
        took = _duration(found, stops)
        if not quicker(took, part, np.zeros_like(own)):
            continue
        if not quicker(took, part, own) and (checker is None or took >= proven(part, own, checker)[0].times[-1]):
            continue
        legs, cuts = legs[:first] + found + legs[last + 1 :], np.r_[cuts[:first], stops, cuts[last:]]
    return legs, cuts


def _fitted_legs(legs, away, proof, robot):
    """Smooth legs, with stops between them, in place of straight ones; None where none is found."""
    corners = np.array([leg.curve.starts[0, 0] for leg in legs] + [legs[-1].curve.ends[-1, 0]])
    with np.errstate(all="ignore"):
        curves = fitted(corners, away, proof)
        if not curves:
            return None
        found, done = [], 0
        for each in curves:
            leg = _paced(each, corners, legs, robot)
            found += [*legs[done : each.first], *(legs[each.first : each.last] if leg is None else [leg])]
            done = each.last
    return found + legs[done:]


def _paced(each: Fitted, corners, legs, robot):
    """The Leg of a fitted curve; None where no pace is found that keeps the limits."""
    inside = legs[each.first : each.last]
    bounds = Bounds(*(_least(np.array(of_legs), each.legs) for of_legs in zip(*(leg.limits for leg in inside))))
    s = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(corners[each.first : each.last + 1], axis=0), axis=1))]
    ends = np.interp(s[1:-1], each.places, each.curve.s)
    limits = Limits(*(every.min(axis=0) for every in bounds))
    own = inside[0].load
    leg = Leg(each.curve, limits, corners[each.first : each.last + 1], load=own)
    for load in (None, own):  # with limits of torque only where they are not kept without
        pace = quickest(each.curve, bounds, load and load._replace(share=SHARE))
        if pace is None:
            return None
        pace = pace.through(each.curve.s[1:-1][np.diff(each.leaves.astype(int)) != 0])
        for _ in range(SLOWER):
            leg = leg._replace(fitted=FittedLeg(pace, bounds, each.leaves, ends, inside))
            motion = timed_once([leg], np.zeros(0), robot)
            slower = max(_excess(leg, motion), _overload(motion, load))
            if slower <= 1.0:
                break
            pace = pace.slower(slower * KEPT)
        else:
            return None
        if load is own or _overload(motion, own) <= 1.0:
            break
    return leg


def _overload(motion, load):
    """How many times as long a motion must take, so that its torques keep their limits."""
    if load is None:
        return 1.0
    return float(np.maximum(shares(motion.times, motion.rows, load.torques).share, LEAST).min()) ** -0.5


def _least(limits, legs):
    """(pieces, dof) the least limits (legs, dof) of each range of legs (pieces, 2), both included."""
    if (limits == limits[0]).all():
        return np.broadcast_to(limits[0], (len(legs), limits.shape[1]))
    return np.array([limits[first : last + 1].min(axis=0) for first, last in legs])


def _excess(leg, motion):
    """How many times as long the fitted leg must take, so that the quintics of its motion keep the limits."""
    spans, count = np.diff(motion.times), len(leg.curve.starts)
    s = leg.fitted.pace.places(motion.times)
    begin, end = np.clip(s[:-1].astype(int), 0, count - 1), np.clip(np.ceil(s[1:]).astype(int) - 1, 0, count - 1)
    points = bernstein(spans, motion.rows[:-1], motion.rows[1:])
    rounding = np.abs(points).max(axis=1) * 2e-16
    worst, spans = 1.0, spans[:, None]
    for order, (factor, rounded) in enumerate(((5, 2), (20, 4), (60, 8)), start=1):
        rate = np.diff(points, order, axis=1) * factor
        most = np.maximum(*(getattr(leg.fitted.bounds, Bounds._fields[order - 1])[k] for k in (begin, end)))
        reached = _greatest(rate) - rounded * factor * rounding
        worst = max(worst, float((reached / spans**order / most).max()) ** (1 / order))
    return worst


def _greatest(points):
    """(N, dof) bounds of the absolute values of polynomials with Bernstein coefficients (N, n, dof)."""
    n = points.shape[1]
    left = np.array([[comb(i, j) / 2.0**i for j in range(n)] for i in range(n)])
    halves = (left @ points, left[::-1, ::-1] @ points)
    return np.max([np.abs(each @ half).max(axis=1) for half in halves for each in (left, left[::-1, ::-1])], axis=0)


def runs(joined):
    """[(first, last)] of legs that follow each other where `joined` (legs - 1,) bool says so, two or more."""
    ends = np.flatnonzero(np.diff(np.r_[False, joined, False].astype(int)))
    return list(zip(ends[::2].tolist(), ends[1::2].tolist(), strict=True))


def quicker(took, legs, cuts):
    """Is a motion that took so many seconds quicker than along legs with these cuts, from rest to rest?"""
    return took < _least_duration(legs, cuts) or took < _duration(legs, cuts)


def _duration(legs, cuts):
    """Seconds from rest to rest."""
    _, stretches, _, stops = stretches_of(legs, cuts)
    with np.errstate(over="ignore", invalid="ignore"):
        return phases(stretches, stops).time[-1]


def _least_duration(legs, cuts):
    """Seconds that straight legs take at least, which are passed through corners with these cuts; 0 where others are
    among them."""
    if not all(is_straight(leg.curve) for leg in legs):
        return 0.0
    slopes, lengths = np.array([leg.curve.starts[0, 1] for leg in legs]), np.array([leg.curve.length for leg in legs])
    velocity, acceleration, jerk = (np.array(each) for each in zip(*(leg.limits for leg in legs), strict=True))
    with np.errstate(divide="ignore"):
        fast, rise = (np.min(most / np.abs(slopes), axis=1) for most in (velocity, acceleration))
    way, turned = 2 * cuts[cuts > 0], np.abs(np.diff(slopes, axis=0))[cuts > 0]
    a, j = (np.minimum(each[:-1], each[1:])[cuts > 0] for each in (acceleration, jerk))
    bent = np.sqrt((1.5 * turned / a).max(axis=1, initial=0.0) / way)  # half-way through a corner
    twisted = np.cbrt((6 * turned / j).max(axis=1, initial=0.0) / way**2)  # at its ends
    corners = (way * np.maximum(bent, twisted)).sum()
    stopped = np.r_[True, cuts == 0] & np.r_[cuts == 0, True]  # at both ends of a leg
    rest = lengths - np.r_[0.0, cuts] - np.r_[cuts, 0.0]
    return corners + np.maximum(np.maximum(rest, 0.0) / fast, np.where(stopped, 2 * np.sqrt(lengths / rise), 0)).sum()
