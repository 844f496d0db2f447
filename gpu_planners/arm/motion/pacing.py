"""How fast a curve in joint space may be followed: s by time, under limits of velocity, acceleration and jerk.

A curve is cut into stretches. On each, bounds on the curve's first three derivatives turn the joints' limits into
limits of the speed ds/dt and its derivatives. A pass ahead and a pass back find the speeds between the stretches, and
ruckig drives s over each of them. It ends and begins each without acceleration, so they fit together. A rounded corner
is passed at constant speed. A curve that is fitted to many corners (`fit`) is one stretch from rest to rest, with a
pace of its own (`optimal`).

    dq/dt = q' v,   d2q/dt2 = q'' v^2 + q' a,   d3q/dt3 = q''' v^3 + 3 q'' v a + q' j

Where a link is limited (`tool`), what it goes and turns along the curve counts as two more joints.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...errors import SettingsError
from ..dynamics.ramps import first_that_holds
from .curve import Curve, at, is_straight, powers, third
from .loads import MOST_SAMPLES, STEP, Load, room_of
from .optimal import LEAST, Pace
from .tool import ToolLimits

SAMPLES = 17  # of a piece, where its derivatives are bounded
SURE = 1.003  # factor that covers what lies between the samples
BEND = 0.5  # share of the acceleration that the curve's bends may take where the speed changes
TWIST = 0.4  # the same of the jerk
SPARE = 1e-6  # share of a length that a ramp leaves free: where it takes all, ruckig goes back to take a run-up
NEARLY = (1.0, 1 - 1e-9, 1 - 1e-6, 1 - 1e-4)  # of an acceleration: where it is just reached, ruckig may find nothing
SLOWER = np.geomspace(1.0, 1e-4, 96)  # shares of a stretch's speed and acceleration that are tried for its torques
UNLIKE = 1.5  # a curve is cut where its greatest speed changes by more than this factor


class Limits(NamedTuple):
    """(dof,) each: velocity, acceleration and jerk of the joints."""

    velocity: np.ndarray
    acceleration: np.ndarray
    jerk: np.ndarray

    def scaled(self, velocity: float, acceleration: float) -> "Limits":
        """With fractions of velocity and acceleration; the jerk goes with the acceleration."""
        return Limits(self.velocity * velocity, self.acceleration * acceleration, self.jerk * acceleration)


class Stretch(NamedTuple):
    """From s = first to s = last of the whole curve; greatest speed, acceleration and jerk along it.

    constant: is it passed at constant speed?
    pace: of a stretch from rest to rest that is given; s from 0
    """

    first: float
    last: float
    speed: float
    acceleration: float
    jerk: float
    constant: bool
    pace: Pace | None = None


class Phases(NamedTuple):
    """s by time: P polynomials one after the other.

    time: (P + 1,); s, speed, acceleration, jerk: (P,) where each begins; fourth, fifth: (P,) coefficients of these
    powers of the time since then; stretch: (P,) number of its stretch
    """

    time: np.ndarray
    s: np.ndarray
    speed: np.ndarray
    acceleration: np.ndarray
    jerk: np.ndarray
    fourth: np.ndarray
    fifth: np.ndarray
    stretch: np.ndarray

    def at(self, time: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(s, speed, acceleration, number of the stretch), each (N,), at times (N,)."""
        k = np.clip(np.searchsorted(self.time, time, side="right") - 1, 0, len(self.s) - 1)
        t = time - self.time[k]
        s, v, a, j = self.s[k], self.speed[k], self.acceleration[k], self.jerk[k]
        c, d, square = self.fourth[k], self.fifth[k], t * t
        return (
            s + t * (v + t * (a / 2 + t * j / 6 + square * (c + t * d))),
            v + t * (a + t * j / 2 + square * (4 * c + 5 * t * d)),
            a + t * j + square * (12 * c + 20 * t * d),
            self.stretch[k],
        )


def line_stretches(
    curve: Curve, first: float, limits: Limits, tools: Sequence[ToolLimits | None] = ()
) -> list[Stretch]:
    """Stretches of a curve that begins at s = first, where the speed may change. tools: limits of links, too"""
    (samples, limits), s = _samples(curve, limits, tools), first + (curve.s - curve.s[0])
    v = _speeds(samples, limits, BEND, TWIST)
    stretches, begin = [], 0
    for k in range(1, len(v) + 1):
        if k == len(v) or not v[begin:k].max() / UNLIKE <= v[k] <= v[begin:k].min() * UNLIKE:
            speed = v[begin:k].min()  # NumPy's, whose powers overflow to infinity
            acceleration, jerk = _spare((each[begin:k] for each in samples), speed, limits)
            stretches.append(Stretch(s[begin], s[k], float(speed), acceleration, jerk, False))
            begin = k
    return stretches


def turn_stretch(curve: Curve, first: float, limits: Limits, tools: Sequence[ToolLimits | None] = ()) -> Stretch:
    """The stretch of a rounded corner: all of acceleration and jerk are the curve's."""
    samples, limits = _samples(curve, limits, tools)
    speed = float(_speeds(samples, limits, 1.0, 1.0).min())
    return Stretch(first, first + curve.length, speed, 0.0, 0.0, True)


def eased(stretch: Stretch, curve: Curve, first: float, load: Load | None) -> Stretch:
    """The stretch, slower where its torques ask for it: of some speeds and accelerations those that pass it soonest
    from rest to rest and keep the limits at samples of the curve, with trapezoids for the speed.

    curve: that the stretch is a part of; first: the stretch's s where the curve begins
    """
    if load is None or load.share == np.inf:
        return stretch
    length = stretch.last - stretch.first
    x = np.linspace(0.0, length, int(np.clip(np.ceil(length / STEP) + 1, SAMPLES, MOST_SAMPLES)))
    room = room_of(load, *at(curve, curve.s[0] + stretch.first - first + x).swapaxes(0, 1))
    speeds = stretch.speed * SLOWER
    a = np.zeros_like(speeds)
    if not stretch.constant:
        speeds, a = np.repeat(speeds, len(SLOWER)), np.tile(stretch.acceleration * SLOWER, len(SLOWER))
        took = (
            np.where(speeds**2 < a * length, length / speeds + speeds / a, 2 * np.sqrt(length / a)) + a / stretch.jerk
        )
        speeds, a = (each[np.argsort(took, kind="stable")] for each in (speeds, a))
    best = first_that_holds(x, speeds, a, max(stretch.jerk, LEAST), *room)
    return stretch._replace(speed=float(speeds[best]), acceleration=float(a[best]))  # the slowest where none does


def _samples(curve, limits, tools):
    """|q'|, |q''|, |q'''| at SAMPLES of each piece, (K, SAMPLES, dof) each, and a little more; and the limits. Behind
    the joints stand the links that are limited."""
    count, tools = len(curve.starts), [tool for tool in tools if tool is not None]
    if is_straight(curve) and not tools:
        slope = np.abs(curve.starts[0, 1])[None, None]
        return (slope, np.zeros_like(slope), np.zeros_like(slope)), limits
    pieces, x = np.repeat(np.arange(count), SAMPLES), np.tile(np.linspace(0, 1, SAMPLES), count)
    s = curve.s[pieces] + x * np.diff(curve.s)[pieces]
    rows = at(curve, s, pieces)
    derivatives = rows[:, 1], rows[:, 2], third(curve, pieces, x)
    for tool in tools:
        slope, bent = tool.slopes(curve, s, pieces)
        derivatives = tuple(map(np.column_stack, zip(derivatives, (slope, bent, np.zeros_like(bent)))))
        more = (tool.velocity, tool.turning), (tool.acceleration, tool.turning_rate), (np.inf, np.inf)
        limits = Limits(*map(np.append, limits, more))
    return tuple(SURE * np.abs(each).reshape(count, SAMPLES, -1) for each in derivatives), limits


def _speeds(samples, limits, bend, twist):
    """(K,) greatest speeds of the pieces, when their bends take these shares of acceleration and jerk."""
    slope, bent, twisted = samples
    with np.errstate(divide="ignore", over="ignore"):
        v = limits.velocity / slope, np.sqrt(bend * limits.acceleration / bent), np.cbrt(twist * limits.jerk / twisted)
    return np.min([each.min(axis=(1, 2)) for each in v], axis=0)


def _spare(samples, speed, limits):
    """-> the acceleration and the jerk that the curve's bends leave at a speed."""
    slope, bent, twisted = samples
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        a = ((limits.acceleration - bent * speed**2) / slope).min()
        a = min(a, (0.5 * (1 - TWIST) * limits.jerk / (3 * bent * speed)).min())
        j = ((limits.jerk - twisted * speed**3 - 3 * bent * speed * a) / slope).min()
    return float(a), float(j)


def border_speeds(stretches: list[Stretch], stops: set[int]) -> np.ndarray:
    """(n + 1,) speeds between the stretches: 0 at both ends and before the stretches whose numbers are in `stops`."""
    n = len(stretches)
    speeds = np.zeros(n + 1)
    for i in range(1, n):
        speeds[i] = 0.0 if i in stops else min(stretches[i - 1].speed, stretches[i].speed)
    for i in range(n):
        speeds[i + 1] = min(speeds[i + 1], _reachable(stretches[i], speeds[i], speeds[i + 1]))
    for i in reversed(range(n)):
        speeds[i] = min(speeds[i], _reachable(stretches[i], speeds[i + 1], speeds[i]))
    return speeds


def _reachable(stretch, speed, wanted):
    """The greatest speed up to `wanted` that can be reached on a stretch from `speed`, both without acceleration."""
    length = (stretch.last - stretch.first) * (1 - SPARE)
    if stretch.constant or wanted <= speed:
        return min(speed, wanted)
    if _ramp_length(stretch, speed, wanted) <= length:
        return wanted
    low, high = speed, wanted
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _ramp_length(stretch, speed, middle) <= length else (low, middle)
    return low


def _ramp_length(stretch, slow, fast):
    change, a, j = fast - slow, stretch.acceleration, stretch.jerk
    time = change / a + a / j if change >= a * a / j else 2 * np.sqrt(max(change, 0.0) / j)
    return (slow + fast) / 2 * time


def phases(stretches: list[Stretch], stops: set[int]) -> Phases:
    """The fastest way along the stretches that stops before those whose numbers are in `stops`.

    Raises SettingsError where the limits lie too far apart for float64.
    """
    speeds = border_speeds(stretches, stops)
    rows, clock = [], 0.0
    for i, stretch in enumerate(stretches):
        for time, s, *state in _profile(stretch, speeds[i], speeds[i + 1]):
            rows.append((clock, stretch.first + s, *state, i))
            clock += time
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return Phases(np.append(columns[0], clock), *columns[1:])


def _profile(stretch, speed_from, speed_to):
    """Rows (duration, s from the stretch's start, and the rest as in Phases) of the time-optimal way over a stretch."""
    import ruckig

    length = stretch.last - stretch.first
    if stretch.pace is not None:
        return _given(stretch.pace)
    if stretch.constant:
        return [(length / speed_from, 0.0, speed_from, 0.0, 0.0, 0.0, 0.0)] if speed_from > 0 else []
    query, result = ruckig.InputParameter(1), ruckig.Trajectory(1)
    query.current_position, query.current_velocity, query.current_acceleration = [0.0], [speed_from], [0.0]
    query.target_position, query.target_velocity, query.target_acceleration = [length], [speed_to], [0.0]
    query.max_velocity, query.max_jerk = [stretch.speed], [stretch.jerk]
    for less in NEARLY:
        query.max_acceleration = [less * stretch.acceleration]
        try:
            outcome = ruckig.Ruckig(1).calculate(query, result)
        except ruckig.RuckigError:  # its text is the whole input
            continue
        if outcome in (ruckig.Result.Working, ruckig.Result.Finished):
            break
    else:
        raise SettingsError(
            f"no timing found for a segment of length {length:.3g} rad (or m) at a speed up to {stretch.speed:.3g}, "
            f"acceleration up to {stretch.acceleration:.3g} and jerk up to {stretch.jerk:.3g}: these lie too far apart "
            "for float64"
        )
    profile = result.profiles[0][0]
    rows = zip(profile.t, profile.p, profile.v, profile.a, profile.j, strict=False)
    return [(*row, 0.0, 0.0) for row in rows if row[0] > 0]


def _given(pace):
    """Rows of a pace, as of `_profile`."""
    spans = np.diff(pace.time)
    s = Curve(pace.time, pace.rows[:-1, :, None], pace.rows[1:, :, None])
    c = powers(s, np.arange(len(spans)))[:, :, 0] / spans[:, None] ** np.arange(6) * [1, 1, 2, 6, 1, 1]
    return list(np.column_stack([spans, c]))
