"""Time along smooth curves that are given in many points, beside TOPP-RA (toppra) along the spline through them.

TOPP-RA has no limit of jerk and follows the spline; `time_parameterize` keeps one, and may leave the path a little.
"""

import time

import numpy as np

from gpu_planners.arm.trajectory import time_parameterize

from .harness import Benchmark, Row, median, progress

DEVIATION = 0.1  # rad
REPEATS = 3
GRID = 1000  # intervals of toppra's grid, at least


def sines(count):
    """Seven joints, each by a sine of its own frequency; all begin at zero, so the ends are cusps of many joints."""
    s = np.linspace(0, 2 * np.pi, count)[:, None]
    return np.hstack([np.sin(s * k) * 0.6 / k for k in range(1, 8)]), np.full(7, 0.87), np.full(7, 0.8)


def circle(count):
    """Two joints around a part of a circle, with 7 decimals."""
    s = np.linspace(0, 3, count)
    return np.stack([np.cos(s), np.sin(s)], axis=1).round(7), np.ones(2), np.ones(2)


def noisy(count):
    """Three joints by sines, each point off by 1e-3 rad."""
    s = np.linspace(0, 2 * np.pi, count)[:, None]
    path = 0.5 * np.sin(s * [1, 2, 3])
    return path + 1e-3 * np.random.default_rng(0).normal(size=path.shape), np.full(3, 2.0), np.full(3, 5.0)


CURVES = (
    ("sines, 7 joints", sines, (20, 50, 100, 384, 1000)),
    ("circle, 2 joints", circle, (24, 100, 1000)),
    ("noisy sines, 3 joints", noisy, (300,)),
)


def dense_paths(context):
    """Rows of every curve: with stops, with the deviation, and by toppra."""
    rows = []
    cases = [(name, curve, count) for name, curve, counts in CURVES for count in counts[:: 2 if context.quick else 1]]
    for name, curve, count in progress(cases, "dense paths"):
        case, (path, velocity, acceleration) = f"{name}, {count} points", curve(count)
        peer = _toppra(path, velocity, acceleration)
        best = peer if isinstance(peer, str) else peer[0]
        for who, deviation in (("stops", 0.0), ("deviation", DEVIATION)):

            def timed(deviation=deviation, path=path, velocity=velocity, acceleration=acceleration):
                return time_parameterize(path, velocity, acceleration, deviation=deviation).duration

            rows.append(_row(case, f"gpu_planners: {who}", *_measured(timed), best))
        if isinstance(peer, str):
            rows.append(Row(case, "toppra", note=peer))
        else:
            rows.append(_row(case, "toppra", *peer, best))
    return rows


def _row(case, subject, duration, milliseconds, best):
    figures = {"duration_s": duration, "time_ms": median(milliseconds)}
    if not isinstance(best, str):
        figures["over_toppra"] = duration / best
    return Row(case, subject, figures, milliseconds)


def _measured(timed):
    """-> what it returns, and [ms]."""
    took = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        duration = timed()
        took.append(1e3 * (time.perf_counter() - began))
    return duration, took


def _toppra(path, velocity, acceleration):
    """-> seconds of the motion and [ms], or why there are none."""
    try:
        import toppra
        from toppra import algorithm, constraint
    except ImportError as error:
        return f"skipped: {error.name} is not installed (extra `bench`)"
    toppra.setup_logging("ERROR")
    limits = [
        constraint.JointVelocityConstraint(np.stack([-velocity, velocity], axis=1)),
        constraint.JointAccelerationConstraint(np.stack([-acceleration, acceleration], axis=1)),
    ]

    def timed():
        spline = toppra.SplineInterpolator(np.linspace(0, 1, len(path)), path)
        grid = np.linspace(0, 1, max(GRID, 2 * len(path)) + 1)
        problem = algorithm.TOPPRA(limits, spline, gridpoints=grid, parametrizer="ParametrizeConstAccel")
        found = problem.compute_trajectory(0, 0)
        return None if found is None else found.duration

    duration, took = _measured(timed)
    return "no motion found" if duration is None else (duration, took)


BENCHMARKS = (
    Benchmark(
        "dense_paths",
        "Time along smooth curves of many points",
        "Points of smooth curves, without a checker. Duration of the motion with stops at all points, and with a "
        f"deviation of {DEVIATION:g} rad, both with a limit of jerk (full acceleration in 0.1 s); and by toppra along "
        "the cubic spline through the points, without one. Time: of the timing, the median of three.",
        {"duration_s": "length", "over_toppra": "ratio", "time_ms": "ms"},
        dense_paths,
    ),
)
