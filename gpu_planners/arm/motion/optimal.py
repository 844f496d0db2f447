"""The quickest motion along a curve from rest to rest, under limits of velocity, acceleration and jerk of the joints.

A motion s(t) is followed faster or slower: with B(t) the square of the factor by which its clock runs, and dots for
derivatives along the motion that is followed,

    dq/dt = q. B^1/2,   d2q/dt2 = q.. B + q. B./2,   d3q/dt3 = (q... B + 3/2 q.. B. + q. B../2) B^1/2

The limits of velocity and acceleration are convex in B (Verscheure et al., Time-optimal path tracking for robots: a
convex optimization approach, 2009). That of jerk is not: J B^-1/2 is replaced by its tangent at B = 1, which is nowhere
above it, so what keeps the tangent keeps the limit (Debrouwere et al., Time-optimal path following for robots with
convex-concave constraints using sequential convex programming, 2013). A barrier method with banded Newton steps finds
the best B (Lipp and Boyd, Minimum-time speed optimisation over a fixed path, 2014). The motion that follows from it is
followed next, until little is gained.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import solveh_banded

from .curve import Curve, at, third
from .loads import Load, Room, room_of

ROUNDS = 15  # of following the last motion, at most
GAINED = 0.01  # share of the duration; where a round gains less, it is the last
EARLY = 0.05  # share of the duration by which the first rounds may miss their optimum
GAP = 3e-3  # by which the last ones may
NEWTON = 25  # steps for each weight of the barrier, at most
TO_RISE = 6  # points in the time in which full acceleration is reached
FEWEST = 64  # intervals between points
MOST = 400
OF_PIECE = 2, 8  # intervals for each piece of the curve: at least, and at most where there are more than MOST
LOOKS = 4  # at each piece of the curve, for a first motion
INSIDE = 0.97  # B where a round begins: inside all limits
SHARES = 1.0, 0.97, 0.8  # of the limits of velocity, acceleration and jerk that are kept at the points
SMOOTH = 2  # times in which full acceleration is reached, over which the clock changes by its own value at most
FASTER = 4.0  # B at most
RAMP = 1e-3  # of s at both ends, where it begins with constant jerk
LEAST = 1e-12  # of what is divided by
_VALUE, _SLOPE, _BEND = np.array([[1, 4, 1], [-3, 0, 3], [6, -12, 6]]) / 6  # of a cubic spline, from its coefficients
_PLACES, _WEIGHTS = (np.polynomial.legendre.leggauss(5) + np.array([[1.0], [0.0]])) / 2  # of an integral over 0..1


class Bounds(NamedTuple):
    """(pieces, dof) each: limits of the joints on the pieces of a curve."""

    velocity: np.ndarray
    acceleration: np.ndarray
    jerk: np.ndarray

    def at(self, pieces: np.ndarray) -> "Bounds":
        return Bounds(self.velocity[pieces], self.acceleration[pieces], self.jerk[pieces])


class Pace(NamedTuple):
    """s by time, quintics one after the other. time: (T,) seconds; rows: (T, 3) s, ds/dt, d2s/dt2; both ends at rest"""

    time: np.ndarray
    rows: np.ndarray

    def slower(self, factor: float) -> "Pace":
        """The same motion in `factor` times the time."""
        return Pace(self.time * factor, self.rows / factor ** np.arange(3))

    def at(self, times: np.ndarray) -> np.ndarray:
        """(N, 4) s and its first three derivatives at times (N,)."""
        s = Curve(self.time, self.rows[:-1, :, None], self.rows[1:, :, None])
        pieces = np.clip(np.searchsorted(self.time, times, side="right") - 1, 0, len(self.time) - 2)
        share = (times - self.time[pieces]) / np.diff(self.time)[pieces]
        return np.column_stack([at(s, times, pieces)[:, :, 0], third(s, pieces, share)])

    def places(self, times: np.ndarray) -> np.ndarray:
        """(N,) s at times (N,), held at both ends."""
        return self.at(np.clip(times, 0.0, self.time[-1]))[:, 0]

    def begun(self, first: float, last: float) -> "Pace":
        """The same motion from s = first to s = last, which begins and ends with constant jerk, without the time in
        which nothing moves but by rounding."""
        s = self.rows[:, 0]
        inner = np.flatnonzero((s > first + RAMP) & (s < last - RAMP))
        time, rows = self.time[inner], self.rows[inner]
        begin = time[0] - 3 * (rows[0, 0] - first) / rows[0, 1]
        end = time[-1] + 3 * (last - rows[-1, 0]) / rows[-1, 1]
        return Pace(np.r_[begin, time, end] - begin, np.vstack([[first, 0.0, 0.0], rows, [last, 0.0, 0.0]]))

    def through(self, s: np.ndarray) -> "Pace":
        """The same motion with points where it is at s (N,) as well."""
        k = np.clip(np.searchsorted(self.rows[:, 0], s) - 1, 0, len(self.time) - 2)
        low, high = self.time[k], self.time[k + 1]
        for _ in range(60):
            middle = (low + high) / 2
            below = self.places(middle) < s
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        time = np.union1d(self.time, high)
        rows = self.at(time)[:, :3]
        rows[[0, -1]] = self.rows[[0, -1]]
        return Pace(time, rows)


def quickest(curve: Curve, bounds: Bounds, load: Load | None = None) -> Pace | None:
    """About the quickest motion along a curve; it keeps the limits at its points, between them within a few per cent.
    load: limits of torque. None where float64 does not hold it."""
    try:
        pace = _quickest(curve, bounds, load)
    except np.linalg.LinAlgError:
        return None
    ahead = np.isfinite(pace.rows).all() and np.isfinite(pace.time).all() and (np.diff(pace.rows[:, 0]) > 0).all()
    return pace if ahead and (np.diff(pace.time) > 0).all() else None


def _quickest(curve, bounds, load):
    rise = float((bounds.acceleration / bounds.jerk).min())
    bounds = Bounds(*(share * each for share, each in zip(SHARES, bounds, strict=True)))
    pace, best, gap, vain = _first(curve, bounds, rise), None, EARLY, 0
    for _ in range(ROUNDS):
        times = np.linspace(0.0, pace.time[-1], _count(pace.time[-1], rise, len(curve.starts)) + 1)
        along = pace.at(times)
        played, here = _played(curve, along), bounds.at(_pieces(curve, along[:, 0]))
        room = None if load is None else room_of(load, at(curve, along[:, 0])[:, 0], *played[:2])
        slower = _slower(played, here, room)
        times, along = times * slower, along / slower ** np.arange(4)
        played = [each / slower ** (k + 1) for k, each in enumerate(played)]
        room = room and room.slower(slower)
        pace = Pace(times, along[:, :3])
        gained = 1.0 if best is None else 1.0 - times[-1] / best.time[-1]
        vain = vain + 1 if gained < GAINED else 0
        best = pace if gained > 0 else best
        if vain == 2:
            break
        gap = GAP if gained < EARLY else gap
        pace = _followed(pace, quickened(played, here, times[1], rise, gap, room)).begun(curve.s[0], curve.s[-1])
    return best


def _count(duration, rise, pieces):
    least, most = max(OF_PIECE[0] * pieces, FEWEST), max(OF_PIECE[1] * pieces, MOST)
    return int(np.clip(TO_RISE * duration / rise, least, most))


def _pieces(curve, s):
    return np.clip(np.searchsorted(curve.s, s, side="right") - 1, 0, len(curve.starts) - 1)


def _played(curve, along):
    """First three derivatives of the joints by time, (N, dof) each, where s and its derivatives are `along` (N, 4)."""
    s, v, a, j = along.T
    s = np.clip(s, curve.s[0], curve.s[-1])
    pieces = _pieces(curve, s)
    _, d1, d2 = at(curve, s, pieces).swapaxes(0, 1)
    d3 = third(curve, pieces, (s - curve.s[pieces]) / np.diff(curve.s)[pieces])
    v, a, j = v[:, None], a[:, None], j[:, None]
    return d1 * v, d2 * v**2 + d1 * a, d3 * v**3 + 3 * d2 * v * a + d1 * j


def _slower(played, bounds, room):
    """How many times as long a motion must take to keep the limits; below 1 where it may take less."""
    over = [np.max(np.abs(each) / most) for each, most in zip(played, bounds, strict=True)]
    heavy = 0.0 if room is None else np.max(np.maximum(room.moving / room.up, -room.moving / room.down))
    return max(over[0], over[1] ** (1 / 2), over[2] ** (1 / 3), heavy ** (1 / 2), LEAST)


def _first(curve, bounds, rise):
    """A smooth motion to begin with: as fast as the bends allow, all of the acceleration for changing the speed."""
    pieces = np.repeat(np.arange(len(curve.starts)), LOOKS)
    share = (np.tile(np.arange(LOOKS), len(curve.starts)) + 0.5) / LOOKS
    lengths = np.diff(curve.s)[pieces] / LOOKS
    _, d1, d2 = np.abs(at(curve, curve.s[pieces] + LOOKS * lengths * share, pieces)).swapaxes(0, 1)
    d3, most = np.abs(third(curve, pieces, share)), bounds.at(pieces)
    with np.errstate(divide="ignore"):
        fast = most[0] / d1, np.sqrt(0.5 * most[1] / d2), np.cbrt(0.5 * most[2] / d3)
        squared = np.min(fast, axis=(0, 2)) ** 2
        gained = (most[1] / d1).min(axis=1) * lengths  # what the square of the speed gains over each length
    for _ in range(2):  # ahead, then back
        sums = np.cumsum(gained)
        squared = np.minimum(sums, np.minimum.accumulate(squared - sums) + sums)[::-1]
        gained = gained[::-1]
    time = np.r_[0.0, np.cumsum(lengths / np.sqrt(squared))]
    count = _count(time[-1], rise, len(curve.starts))
    step = time[-1] / count
    width = int(np.clip(np.ceil(rise / step), 2, count))
    s = np.interp(np.arange(-2 * width - 2, count + 2 * width + 3) * step, time, np.r_[0.0, np.cumsum(lengths)])
    box = np.ones(width) / width
    s = np.convolve(np.convolve(s, box, "valid"), box, "valid")  # control points of a cubic of time
    rows = np.stack(
        [(s[:-2] + 4 * s[1:-1] + s[2:]) / 6, (s[2:] - s[:-2]) / (2 * step), np.diff(s, 2) / step**2], axis=1
    )
    rows[0], rows[-1] = (0.0, 0.0, 0.0), (curve.length, 0.0, 0.0)
    return Pace(step * np.arange(len(rows)), rows + [curve.s[0], 0.0, 0.0])


def _followed(pace, c):
    """The motion whose clock runs faster by the roots of B, a cubic spline with coefficients c (T,)."""
    step, c = pace.time[1], np.r_[c[1], c, c[-2]]
    b, db = (c[:-2] + 4 * c[1:-1] + c[2:]) / 6, (c[2:] - c[:-2]) / (2 * step)
    rows = np.stack([b, db, np.diff(c, 2) / step**2], axis=1)
    squared = Curve(pace.time, rows[:-1, :, None], rows[1:, :, None])
    count = len(pace.time) - 1
    between = np.repeat(pace.time[:-1], len(_PLACES)) + step * np.tile(_PLACES, count)
    values = at(squared, between, np.repeat(np.arange(count), len(_PLACES)))[:, 0, 0]
    time = np.r_[0.0, np.cumsum(step * (values**-0.5).reshape(count, -1) @ _WEIGHTS)]
    s, v, a = pace.rows.T
    return Pace(time, np.stack([s, v * np.sqrt(b), a * b + v * db / 2], axis=1))


def quickened(played, bounds: Bounds, step: float, smooth: float, gap: float, room: Room | None = None) -> np.ndarray:
    """(N,) coefficients of B, a cubic spline over even times `step` seconds apart, for the derivatives `played` of the
    motion that is followed; room: of its torques."""
    q1, q2, q3 = (each[:, :, None] / most[:, :, None] for each, most in zip(played, bounds, strict=True))
    q1a, q1j, q2j = (
        played[0][:, :, None] / bounds.acceleration[:, :, None],
        played[0][:, :, None] / bounds.jerk[:, :, None],
        played[1][:, :, None] / bounds.jerk[:, :, None],
    )
    value, slope, bend = _VALUE, _SLOPE / step, _BEND / step**2
    a = q2 * value + q1a * slope / 2
    j = q3 * value + 1.5 * q2j * slope + q1j * bend / 2
    width = SMOOTH * max(smooth, 2 * step)
    same = np.broadcast_to([width * slope, -width * slope, width**2 * bend, -(width**2) * bend, value], (len(q1), 5, 3))
    rows = np.concatenate([a, -a, j + value / 2, value / 2 - j, *_torque_rows(room, value, slope), same], axis=1)
    rows[0, :, 2] += rows[0, :, 0]  # the clock does not change at the ends
    rows[-1, :, 0] += rows[-1, :, 2]
    rows[0, :, 0] = rows[-1, :, 2] = 0.0
    dof = q1.shape[1]
    most = np.ones(rows.shape[:2])
    most[:, 2 * dof : 4 * dof] = 1.5
    most[:, -1] = np.minimum(1 / np.maximum(np.abs(q1[:, :, 0]).max(axis=1), LEAST) ** 2, FASTER)
    return _barrier(rows, most, gap)


def _torque_rows(room, value, slope):
    """[(N, dof, 3)] rows that keep the limits of torque where they are no more than 1."""
    if room is None:
        return []
    torque = room.moving[:, :, None] * value + room.push[:, :, None] * slope / 2
    return [torque / room.up[:, :, None], -torque / room.down[:, :, None]]


def _barrier(rows, most, gap):
    """(N,) x that make the sum of x^-1/2 least, about, where rows (N, R, 3) @ (x before, x, x after) <= most (N, R)."""
    x = np.full(len(rows), INSIDE)
    left = most - _product(rows, x)
    weight, last = min(most.shape[1] / 0.3, most.shape[1] / gap), most.shape[1] / gap
    while True:
        for _ in range(NEWTON):
            scaled = rows / left[:, :, None]
            slope = _gathered(scaled.sum(axis=1)) - weight / 2 * x**-1.5
            bands = _bands(scaled.swapaxes(1, 2) @ scaled)
            bands[2] += 0.75 * weight * x**-2.5
            way = solveh_banded(bands, -slope, check_finite=False)
            less = -(slope @ way)
            moved = _product(rows, way)
            step = min(1.0, 0.95 / max(np.max(moved / left), 0.95), 0.95 / max(np.max(-way / x), 0.95))
            value = weight * (x**-0.5).sum() - np.log(left).sum()
            for _ in range(30):
                new, room = x + step * way, left - step * moved
                if weight * (new**-0.5).sum() - np.log(room).sum() <= value - 0.1 * step * less:
                    break
                step /= 2
            else:
                return x
            x, left = new, room
            if less < 1e-4 * len(x):
                break
        if weight >= last:
            return x
        weight = min(10 * weight, last)


def _product(rows, x):
    around = np.stack([np.r_[0.0, x[:-1]], x, np.r_[x[1:], 0.0]], axis=1)
    return (rows @ around[:, :, None])[:, :, 0]


def _gathered(each):
    """(N,) sums of what rows (N, 3) give to the one before, to themselves, and to the one after."""
    out = each[:, 1].copy()
    out[:-1] += each[1:, 0]
    out[1:] += each[:-1, 2]
    return out


def _bands(each):
    """(3, N) upper bands, for solveh_banded, of the sum of the blocks (N, 3, 3)."""
    bands = np.zeros((3, len(each)))
    bands[2] = _gathered(each[:, [0, 1, 2], [0, 1, 2]])
    bands[1, 1:] = each[:-1, 1, 2] + each[1:, 0, 1]
    bands[0, 2:] = each[1:-1, 0, 2]
    return bands
