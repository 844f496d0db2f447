"""What a joint trajectory controller plays between the points of a trajectory, by the formulas of its source: straight
lines, cubics and quintics; where they are farthest out, from the roots of their derivatives."""

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

DENSE = np.linspace(0.0, 1.0, 17)
LOOK = 0.01  # rad or m of a limit, within which the roots are looked for


def coefficients(T, p, v, a=None):
    """(6, N) of the powers of the time since the first point: T: (N,) seconds; p, v, a: (2, N) at both points."""
    zero = np.zeros_like(T)
    if a is None:
        c2 = (-3 * p[0] + 3 * p[1] - 2 * v[0] * T - v[1] * T) / T**2
        return np.array([p[0], v[0], c2, (2 * p[0] - 2 * p[1] + v[0] * T + v[1] * T) / T**3, zero, zero])
    c3 = -20 * p[0] + 20 * p[1] - 3 * a[0] * T**2 + a[1] * T**2 - 12 * v[0] * T - 8 * v[1] * T
    c4 = 30 * p[0] - 30 * p[1] + 3 * a[0] * T**2 - 2 * a[1] * T**2 + 16 * v[0] * T + 14 * v[1] * T
    c5 = -12 * p[0] + 12 * p[1] - a[0] * T**2 + a[1] * T**2 - 6 * v[0] * T - 6 * v[1] * T
    return np.array([p[0], v[0], a[0] / 2, c3 / (2 * T**3), c4 / (2 * T**4), c5 / (2 * T**5)])


def values(c, t):
    """Of the polynomials (6, ...) at times (...)."""
    return sum(each * t**k for k, each in enumerate(c))


def beyond_limits(trajectory, lower, upper):
    """[text] of every joint that leaves its limits, compared as floats: at the points, at dense times, and at the
    extrema of cubics and quintics.

    trajectory: with times, positions, velocities, accelerations; lower, upper: (dof,)
    """
    q, v, a = trajectory.positions, trajectory.velocities, trajectory.accelerations
    found = _texts("a point", q, lower, upper)
    if len(q) == 1:
        return found
    shares = DENSE[:, None, None]
    found += _texts("a straight line", q[:-1] + shares * (q[1:] - q[:-1]), lower, upper)
    T = np.repeat(np.diff(trajectory.times)[:, None], q.shape[1], axis=1)
    for name, more in (("a cubic", ()), ("a quintic", (np.array([a[:-1], a[1:]]),))):
        c = coefficients(T, np.array([q[:-1], q[1:]]), np.array([v[:-1], v[1:]]), *more)
        dense = values(c, shares * T)
        found += _texts(name, dense, lower, upper)
        near = ((dense < lower + LOOK) | (dense > upper - LOOK)).any(axis=0)
        for i, k in np.argwhere(near):
            slope = c[1:, i, k] * np.arange(1, 6)
            roots = np.roots(slope[::-1]) if np.isfinite(slope).all() and slope.any() else np.zeros(0)
            times = roots.real[(np.abs(roots.imag) < 1e-9) & (roots.real >= 0) & (roots.real <= T[i, k])]
            found += _texts(f"the extremum of {name}", values(c[:, i, k], times)[:, None], lower[[k]], upper[[k]])
    return found


def _texts(what, q, lower, upper):
    over = np.maximum(q - upper, lower - q)
    return [f"{what} leaves the limits by {over.max():.3g}"] if over.size and over.max() > 0 else []


def least_duration(path, velocity, acceleration, count=400):
    """Seconds that a cubic spline through the points of a path (K, dof) takes at least under limits (dof,) of velocity
    and acceleration: a linear program over the squares b of the speed along it, at `count` places.

    The limits hold at these places only, so the time is a little less than the best; the sum of b is greatest where the
    time is least, since where two speeds are allowed, the greater of both is allowed at each place. Infinite where the
    path turns back, so that it stands at two places.
    """
    s = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))]
    spline, places = CubicSpline(s, path), np.linspace(0.0, s[-1], count)
    slope, bend, step = spline(places, 1), spline(places, 2), places[1]
    scaled = slope / (2 * step) / acceleration, bend / acceleration  # d2q/dt2 = q'' b + q' b' / 2
    rows, columns, values = [], [], []
    for shift in (0, 1):  # b' ahead of each place but the last, then behind each but the first
        k = np.arange(count - 1) + shift
        for joint in range(path.shape[1]):
            row = len(rows) * (count - 1) + np.arange(count - 1)
            ahead, here = scaled[0][k, joint], scaled[1][k, joint]
            rows.append(np.r_[row, row])
            columns.append(np.r_[k - shift, k + 1 - shift])
            values.append(np.r_[here * (1 - shift) - ahead, here * shift + ahead])
    table = csr_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))))
    fastest = (velocity / np.maximum(np.abs(slope), 1e-12)).min(axis=1) ** 2
    fastest[[0, -1]] = 0.0
    both = vstack([table, -table])
    found = linprog(-np.ones(count), both, np.ones(both.shape[0]), bounds=np.stack([0 * fastest, fastest], axis=1))
    assert found.status == 0, found.message
    v = np.sqrt(np.maximum(found.x, 0.0))
    with np.errstate(divide="ignore"):
        return float((2 * step / (v[1:] + v[:-1])).sum())


def greatest_rates(trajectory):
    """Three (dof,): greatest velocity, acceleration and jerk of the quintics between points, at 33 times of each."""
    T = np.repeat(np.diff(trajectory.times)[:, None], trajectory.positions.shape[1], axis=1)
    ends = (
        np.array([each[:-1], each[1:]])
        for each in (trajectory.positions, trajectory.velocities, trajectory.accelerations)
    )
    c, found = coefficients(T, *ends), []
    for _ in range(3):
        c = c[1:] * np.arange(1, len(c))[:, None, None]
        found.append(np.abs(values(c, np.linspace(0.0, 1.0, 33)[:, None, None] * T)).max(axis=(0, 1)))
    return found
