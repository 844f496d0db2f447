"""Time along a path, so that a joint trajectory controller can execute it.

The path is a collision-free polyline in joint space, so the motion stays on it: ruckig drives each straight segment by
a one-dimensional jerk-limited profile, and stops at corners. With a `deviation` above zero it rounds corners within
that joint-space distance and passes them without stopping; with a checker, only those that are proven free.

A corner takes a length `cut` off the ends of both its segments. Over it the direction turns smoothly from u to u_next,
with w = 3 x^2 - 2 x^3 and x = s / (2 cut) in 0..1:   q'(s) = u + (u_next - u) w(x).
It leaves the corner point by 3/16 cut |u_next - u|, and its curvature is zero at both ends.

Where corners take all that they may of eight legs and more, as they do on a path of many points, a smooth curve within
the distance takes the place of these legs, and is passed in about the least time (`motion.fit`, `motion.optimal`).
Where rounding corners is slower than stopping at them, the motion stops.

A few points say all: on straight segments the position is a cubic of time between the profile's switching times, with
continuous acceleration, and on rounded corners a quartic. So the quintic spline through positions, velocities and
accelerations that controllers use reproduces the motion exactly; on segments the cubic spline through positions and
velocities does too. Rounded corners get so many points that both splines stay close to the chords (`motion.timing`).
"""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked, numbers
from ..errors import SettingsError, shown
from ..settings import Setting
from .dynamics.torques import TorqueLimits
from .motion import curve
from .motion.curve import Curve, straight
from .motion.estimate import AWAY, JERK_TIME_S, NONE
from .motion.loads import Load, refuse_unheld
from .motion.pacing import Limits
from .motion.played import Leg, room
from .motion.timing import body_checker, timed
from .robot.model import RobotModel

__all__ = ("Trajectory", "time_parameterize")

DEVIATION = Setting(0.1, "How far the motion may leave its corners", 0.0, 1e6, unit="rad or m")
GREATEST_LIMIT = 1e300  # of a derived jerk
OUTSIDE = 1e-6  # rad or m that float32 may be beyond a limit; it is taken to it


@checked()
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
        times = np.clip(numbers("times", np.atleast_1d(times), (None,)).astype(float), 0.0, self.duration)
        rows = np.stack([self.positions, self.velocities, self.accelerations], axis=1)
        if len(rows) > 1:
            rows = curve.at(Curve(self.times, rows[:-1], rows[1:]), times)
        else:
            rows = np.repeat(rows, len(times), axis=0)
        return rows[:, 0], rows[:, 1], rows[:, 2]


@checked()
def time_parameterize(
    path: ArrayLike,
    velocity: ArrayLike,
    acceleration: ArrayLike,
    jerk: ArrayLike | None = None,
    deviation: float = 0.0,
    checker: Any = None,
    torques: TorqueLimits | None = None,
) -> Trajectory:
    """Time a path under joint limits.

    path: (K, dof) rad or m; repeated configurations are dropped, a path of one configuration stands still
    velocity, acceleration, jerk: (dof,) limits above zero, per s, s^2, s^3; jerk defaults to that of the checker's
        robot (`RobotModel.jerk_limits`), where it has one, else to acceleration / 0.1 s
    deviation: how far, in the joint-space L2 norm, the motion may leave the path at its corners; 0 stops there. No
        motion takes longer than with 0
    checker: CollisionChecker that found the path's segments free. A corner is then rounded only as far as the motion
        through it is proven free too, whether a controller plays straight lines, cubics or quintics between the
        points; and all of the motion keeps within the joints' limits, by 1e-12 of a limit, so that no rounding leads
        beyond; where it begins beyond a limit (`RobotModel.hard_limits`), no farther beyond. Without a checker rounded
        corners are not checked: leave `deviation` at 0, or check `Trajectory.positions` again
    torques: limits of what the motors give, with what the robot carries. Where they need more, the motion is slower.
        Of the quintics through the points, which `Trajectory.at` gives and controllers play, it is proven that the
        torques of rigid bodies keep the limits, at the points and between them, by a bound of how fast they change. It
        is not proven of cubics or straight lines between the points, nor of friction and rotors, which have no place
        in a URDF's inertias. A path on which the robot cannot even be held still is refused; for this its points are
        sampled 0.05 rad or m apart, and holding may take 0.99 of a limit. A path of many points that is followed by a
        smooth curve is near the least time under all limits; a straight segment keeps one greatest speed and
        acceleration, so it may take longer than it must

    Raises SettingsError that names the argument, the value and what is allowed.
    """
    waypoints = numbers("path", path, (None, None)).astype(np.float64)
    if not waypoints.size:
        raise SettingsError(f"path has the shape {waypoints.shape}; allowed: (K, dof), one configuration at least")
    dof = waypoints.shape[1]
    limits = joint_limits(velocity, acceleration, jerk, dof, None if checker is None else body_checker(checker).robot)
    deviation = DEVIATION.checked("deviation", deviation)
    if checker is not None:
        _check_joints(waypoints, checker.robot)
        checker = checker.around(waypoints[0])
        waypoints = _within_limits(waypoints, checker.robot)
    corners = corners_of(waypoints)
    with np.errstate(over="ignore"):
        if not np.isfinite(np.linalg.norm(np.diff(corners, axis=0), axis=1)).all():
            raise SettingsError("the path and its velocity, acceleration and jerk limits lie too far apart for float64")
    load = load_along(corners, torques, checker)
    if len(corners) == 1:
        return standing(corners)
    legs = [Leg(straight(a, b), limits, load=load) for a, b in itertools.pairwise(corners)]
    return timed_trajectory(legs, cuts_of(legs, deviation), checker, np.full(len(legs) - 1, deviation))[0]


def standing(q: np.ndarray) -> Trajectory:
    """The Trajectory of no duration at q (1, dof)."""
    rest = np.zeros_like(q)
    return Trajectory(np.zeros(1), q, rest, rest.copy())


def joint_limits(
    velocity: ArrayLike, acceleration: ArrayLike, jerk: ArrayLike | None, dof: int, robot: RobotModel | None = None
) -> Limits:
    """Limits of all joints; jerk None: the robot's, or acceleration / 0.1 s. SettingsError names what is not one."""
    speeds, accelerations = check_limit("velocity", velocity, dof), check_limit("acceleration", acceleration, dof)
    with np.errstate(over="ignore"):
        if jerk is not None:
            jerks = check_limit("jerk", jerk, dof)
        elif robot is None or robot.dof != dof:
            jerks = accelerations / JERK_TIME_S
        else:
            jerks = robot.jerk_limits(accelerations, JERK_TIME_S)
    return Limits(speeds, accelerations, np.minimum(jerks, GREATEST_LIMIT))


def cuts_of(legs: list[Leg], deviation: float) -> np.ndarray:
    """(legs - 1,) what corners may take of their legs, so that the motion leaves each by at most `deviation`."""
    turned = [np.linalg.norm(b.curve.starts[0, 1] - a.curve.ends[-1, 1]) for a, b in itertools.pairwise(legs)]
    return deviation * AWAY / np.maximum(turned, 1e-12)


def timed_trajectory(legs: list[Leg], cuts: ArrayLike, checker: Any, away: ArrayLike) -> tuple[Trajectory, np.ndarray]:
    """`motion.timing.timed` as a Trajectory from exactly where the legs begin; and (legs,) seconds when they end."""
    motion = timed(legs, np.asarray(cuts), checker, np.asarray(away))
    positions, velocities, accelerations = (motion.rows[:, k].copy() for k in range(3))
    positions[0], positions[-1] = legs[0].curve.starts[0, 0], legs[-1].curve.ends[-1, 0]
    return Trajectory(motion.times, positions, velocities, accelerations), motion.ends_s


def corners_of(path: np.ndarray) -> np.ndarray:
    """Corners of a path: rows that repeat the one before, or lie straight between their neighbours, are left out."""
    keep = [path[0]]
    for q in path[1:]:
        if np.linalg.norm(q - keep[-1]) > NONE:
            if len(keep) > 1 and np.linalg.norm(_unit(q - keep[-1]) - _unit(keep[-1] - keep[-2])) < 1e-9:
                keep.pop()
            keep.append(q)
    if len(keep) > 1:
        keep[-1] = path[-1]
    return np.array(keep)


def _unit(vector):
    return vector / np.linalg.norm(vector)


def _check_joints(path, robot):
    if path.shape[1] != robot.dof:
        raise SettingsError(f"path has {path.shape[1]} joints; allowed: the {robot.dof} of the checker's robot")


def _within_limits(path, robot):
    inside = np.clip(path, *room(robot))
    row, k = np.unravel_index(np.argmax(np.abs(path - inside)), path.shape)
    if abs(path[row, k] - inside[row, k]) > OUTSIDE:
        raise SettingsError(
            f"path: row {row} has {robot.joint_names[k]} = {path[row, k]:.6g}; "
            f"allowed: {robot.lower[k]:.6g} to {robot.upper[k]:.6g}"
        )
    return inside


def load_along(path: np.ndarray, torques: TorqueLimits | None, checker: Any) -> Load | None:
    """The Load of a motion along a path (K, dof), None without torques; SettingsError where they are of another robot
    than the checker's, or a pose of the path cannot be held still."""
    if torques is None:
        return None
    robot = torques.dynamics.robot
    if path.shape[1] != robot.dof:
        raise SettingsError(f"path has {path.shape[1]} joints; allowed: the {robot.dof} of the robot of torques")
    if checker is not None and checker.robot.joint_names != robot.joint_names:
        raise SettingsError(
            f"torques is of a robot with the joints {', '.join(robot.joint_names)}; allowed: those of the checker's "
            f"robot, {', '.join(checker.robot.joint_names)}"
        )
    refuse_unheld(path, torques)
    return Load(torques)


def check_limit(name: str, limit: ArrayLike, dof: int) -> np.ndarray:
    """(dof,) limits of the joints; SettingsError, which names them, where one is not above 0."""
    limits = numbers(name, limit, (dof,)).astype(np.float64)
    if not (limits > 0).all():
        raise SettingsError(f"{name} is {shown(limits.tolist())}; allowed: above 0")
    return limits
