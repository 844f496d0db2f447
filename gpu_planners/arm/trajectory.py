"""Time along a path, so that a joint trajectory controller can execute it.

The path is a collision-free polyline in joint space, so the motion stays on it: each straight segment is driven by a
one-dimensional jerk-limited profile (ruckig), and corners are stops. With a `deviation` above zero, corners are rounded
within that joint-space distance and passed without stopping.

Why these knots: on straight segments the position is a cubic of time between the profile's switching times, with
continuous acceleration, and on rounded corners a quartic. The quintic spline through positions, velocities and
accelerations that controllers use therefore reproduces the motion exactly from a few knots; on segments the cubic
spline through positions and velocities does too.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BPoly

from ..errors import SettingsError

JERK_TIME_S = 0.1  # default jerk limit: full acceleration is reached in this time
LONGEST_S = 1e6  # of a trajectory, twelve days: beyond, seconds in float64 no longer tell nanoseconds apart
SHORTEST_STEP_S = 1e-6  # knots closer than this are one knot: message times are whole nanoseconds


@dataclass(frozen=True)
class Trajectory:
    """A timed path.

    times: (T,) seconds from the start, strictly increasing, times[0] = 0
    positions: (T, dof) rad or m
    velocities: (T, dof) rad/s or m/s; the first and the last row are exactly zero
    accelerations: (T, dof) rad/s^2 or m/s^2; the first and the last row are exactly zero
    """

    times: np.ndarray
    positions: np.ndarray
    velocities: np.ndarray
    accelerations: np.ndarray

    @property
    def duration(self) -> float:
        """Seconds."""
        return float(self.times[-1])

    def at(self, times: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(positions, velocities, accelerations), each (N, dof), at times (N,) in seconds, held at both ends."""
        at = np.clip(np.atleast_1d(np.asarray(times, dtype=float)), 0.0, self.duration)
        if len(self.times) == 1:
            rest = np.zeros((len(at), self.positions.shape[1]))
            return rest + self.positions[0], rest, rest.copy()
        knots = np.stack([self.positions, self.velocities, self.accelerations], axis=1)
        spline = BPoly.from_derivatives(self.times, knots)
        return spline(at), spline.derivative(1)(at), spline.derivative(2)(at)


def time_parameterize(
    path: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike, jerk: ArrayLike | None = None, deviation: float = 0.0
) -> Trajectory:
    """Time a path under joint limits.

    path: (K, dof) rad or m; repeated configurations are dropped, a path of one configuration stands still
    velocity, acceleration, jerk: (dof,) limits above zero, per s, s^2, s^3; jerk defaults to acceleration / 0.1 s
    deviation: how far, in the joint-space L2 norm, the motion may leave the path at its corners; 0 stops there.
        A rounded corner has not been checked for collisions: leave 0, or check `Trajectory.positions` again.

    Raises SettingsError that names the argument, the value and what is allowed.
    """
    checked = _check_path(path)
    dof = checked.shape[1]
    speeds, accelerations = _check_limit("velocity", velocity, dof), _check_limit("acceleration", acceleration, dof)
    jerks = _check_limit("jerk", accelerations / JERK_TIME_S if jerk is None else jerk, dof)
    if not (np.isfinite(deviation) and deviation >= 0):
        raise SettingsError(f"deviation must be a finite number of at least 0, got {deviation}")

    corners = _drop_repeats_and_straight_points(checked)
    if len(corners) == 1:
        rest = np.zeros((1, dof))
        return Trajectory(np.zeros(1), corners, rest, rest.copy())
    pieces = _Pieces(corners, deviation, (speeds, accelerations, jerks))
    knots = _Knots(corners[0])
    for i in range(len(pieces.directions)):
        knots.add_line(pieces, i)
        if i + 1 < len(pieces.directions) and pieces.cut[i] > 0:
            knots.add_corner(pieces, i)
    return knots.finish(corners[-1])


class _Pieces:
    """Straight lines and the rounded corners between them.

    A corner takes the length `cut` off the ends of both its lines. Over it the direction turns smoothly, with
    w = 3 x^2 - 2 x^3 and x = s / (2 cut) in 0..1:   q'(s) = u + (u_next - u) w(x).
    It leaves the corner point by 3/16 cut |u_next - u|, its curvature q'' is zero at both ends and at most
    0.75 |u_next - u| / cut, and q''' at most 1.5 |u_next - u| / cut^2. It is passed at constant speed.
    """

    def __init__(self, corners, deviation, limits):
        steps = np.diff(corners, axis=0)
        lengths = np.linalg.norm(steps, axis=1)
        self.directions = steps / lengths[:, None]
        self.turns = np.diff(self.directions, axis=0)
        size = np.linalg.norm(self.turns, axis=1)
        self.cut = np.minimum(deviation * 16 / 3 / size, 0.5 * np.minimum(lengths[:-1], lengths[1:]))
        self.lengths = lengths - np.r_[0, self.cut] - np.r_[self.cut, 0]
        # limits (lines,) of the speed along each line and its derivatives: the joint that is slowest decides
        rates = np.maximum(np.abs(self.directions), 1e-12)
        self.speed_limit, self.acceleration, self.jerk = ((limit / rates).min(axis=1) for limit in limits)
        self.speeds = self._corner_speeds(limits)

    def _corner_speeds(self, limits):
        """(lines + 1,) speed at the ends of the lines: 0, corners..., 0; every line can change between its two."""
        speeds = np.zeros(len(self.lengths) + 1)
        for i in np.flatnonzero(self.cut > 0):
            turn = np.maximum(np.abs(self.turns[i]), 1e-12)
            bend = (limits[1] * self.cut[i] / (0.75 * turn)).min() ** (1 / 2)
            twist = (limits[2] * self.cut[i] ** 2 / (1.5 * turn)).min() ** (1 / 3)
            speeds[i + 1] = min(self.speed_limit[i], self.speed_limit[i + 1], bend, twist)
        for i in range(len(self.lengths)):
            speeds[i + 1] = min(speeds[i + 1], self._reachable(i, speeds[i]))
        for i in reversed(range(len(self.lengths))):
            speeds[i] = min(speeds[i], self._reachable(i, speeds[i + 1]))
        return speeds

    def _reachable(self, i, speed):
        """Highest speed that line i lets follow from `speed`, starting and ending without acceleration."""
        low, high = speed, self.speed_limit[i]
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self._ramp_length(i, speed, middle) <= self.lengths[i] else (low, middle)
        return low

    def _ramp_length(self, i, slow, fast):
        change, a, j = fast - slow, self.acceleration[i], self.jerk[i]
        time = change / a + a / j if change >= a * a / j else 2 * np.sqrt(max(change, 0.0) / j)
        return (slow + fast) / 2 * time


class _Knots:
    """Rows of the trajectory as it grows."""

    def __init__(self, start):
        rest = np.zeros_like(start)
        self.rows = [(0.0, start, rest, rest)]

    def _add(self, step, position, velocity, acceleration):
        row = (self.rows[-1][0] + step, position, velocity, acceleration)
        if step < SHORTEST_STEP_S and len(self.rows) > 1:
            self.rows[-1] = (self.rows[-1][0], *row[1:])
        elif step >= SHORTEST_STEP_S:
            self.rows.append(row)

    def add_line(self, pieces, i):
        start, direction = self.rows[-1][1], pieces.directions[i]
        profile = _profile(
            pieces.lengths[i],
            pieces.speeds[i],
            pieces.speeds[i + 1],
            pieces.speed_limit[i],
            pieces.acceleration[i],
            pieces.jerk[i],
        )
        for step, position, speed, acceleration in profile:
            self._add(step, start + position * direction, speed * direction, acceleration * direction)

    def add_corner(self, pieces, i):
        start, u, turn, cut, speed = (
            self.rows[-1][1],
            pieces.directions[i],
            pieces.turns[i],
            pieces.cut[i],
            pieces.speeds[i + 1],
        )
        count = 4  # so that the cubic spline of a controller without accelerations follows closely too
        for x in np.arange(1, count + 1) / count:
            position = start + 2 * cut * (u * x + turn * (x**3 - x**4 / 2))
            velocity = speed * (u + turn * (3 * x**2 - 2 * x**3))
            acceleration = speed**2 * turn * (6 * x - 6 * x**2) / (2 * cut)
            self._add(2 * cut / (count * speed), position, velocity, acceleration)

    def finish(self, goal):
        """The Trajectory; rounding of the last rows is removed: exact goal, exact rest."""
        times, positions, velocities, accelerations = (np.array(column) for column in zip(*self.rows, strict=True))
        positions[-1], velocities[-1], accelerations[-1] = goal, 0.0, 0.0
        if not times[-1] <= LONGEST_S:
            raise SettingsError(
                f"the motion would take {times[-1]:.3g} s under these velocity and acceleration limits; "
                f"allowed: up to {LONGEST_S:g} s"
            )
        if not all(np.isfinite(column).all() for column in (positions, velocities, accelerations)):
            raise SettingsError("the path and its velocity, acceleration and jerk limits lie too far apart for float64")
        return Trajectory(times, positions, velocities, accelerations)


def _profile(length, speed_from, speed_to, speed_limit, acceleration, jerk):
    """Time-optimal motion over `length` between two speeds: rows (step s, position, speed, acceleration)."""
    import ruckig

    if length <= 1e-12:
        return []
    query, result = ruckig.InputParameter(1), ruckig.Trajectory(1)
    query.current_position, query.current_velocity, query.current_acceleration = [0.0], [speed_from], [0.0]
    query.target_position, query.target_velocity, query.target_acceleration = [length], [speed_to], [0.0]
    query.max_velocity, query.max_acceleration, query.max_jerk = [speed_limit], [acceleration], [jerk]
    try:
        outcome = ruckig.Ruckig(1).calculate(query, result)
    except ruckig.RuckigError:  # its text is the whole input
        outcome = ruckig.Result.Error
    if outcome not in (ruckig.Result.Working, ruckig.Result.Finished):
        raise SettingsError(
            f"no timing found for a segment of length {length:.3g} rad (or m) at a speed up to {speed_limit:.3g}, "
            f"acceleration up to {acceleration:.3g} and jerk up to {jerk:.3g}: these lie too far apart for float64"
        )
    profile = result.profiles[0][0]
    return list(zip(profile.t, profile.p[1:], profile.v[1:], profile.a[1:], strict=True))


def _drop_repeats_and_straight_points(path):
    """Corners of a path: rows that repeat the one before, or lie straight between their neighbours, are left out."""
    keep = [path[0]]
    for q in path[1:]:
        if np.linalg.norm(q - keep[-1]) > 1e-9:
            if len(keep) > 1 and np.linalg.norm(_unit(q - keep[-1]) - _unit(keep[-1] - keep[-2])) < 1e-9:
                keep.pop()
            keep.append(q)
    return np.array(keep)


def _unit(vector):
    return vector / np.linalg.norm(vector)


def _check_path(path):
    path = np.asarray(path, dtype=np.float64)
    if path.ndim != 2 or 0 in path.shape:
        raise SettingsError(f"path must have shape (K, dof) with at least one configuration, got {path.shape}")
    if not np.isfinite(path).all():
        row = int(np.flatnonzero(~np.isfinite(path).all(axis=1))[0])
        raise SettingsError(f"path must be finite, row {row} is {path[row].tolist()}")
    return path


def _check_limit(name, limit, dof):
    limit = np.asarray(limit, dtype=np.float64)
    if limit.shape != (dof,):
        raise SettingsError(f"{name} must have one limit for each of the {dof} joints, got shape {limit.shape}")
    if not (np.isfinite(limit) & (limit > 0)).all():
        raise SettingsError(f"{name} limits must be finite and above 0, got {limit.tolist()}")
    return limit
