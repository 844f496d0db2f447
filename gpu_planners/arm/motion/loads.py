"""Limits of the joints' torques along a curve, and the proof that a motion keeps them.

Where a curve q(s) is followed at the speed v with the acceleration a along it, the joints give the torques

    M q' a + (M q'' + C(q, q') q') v^2 + g:   `push` a + `turn` v^2 + `still`

What holds the robot, g, is there at any speed. So a motion can keep the limits where g keeps them: what is left beside
it bounds v and a (`pacing.eased`), or the change of a clock that runs faster or slower (`optimal`).

These bounds hold at samples of the curve. Whether the quintics of a motion's points keep the limits, `shares` proves
everywhere between (`dynamics.newton_euler.sharings`). Only parts that are not proven are eased, and more until they
are.
"""

from typing import NamedTuple

import numpy as np

from ...errors import SettingsError, shown
from ..dynamics.newton_euler import Sharings, sharings, torques_of
from ..dynamics.torques import TorqueLimits
from .curve import POWERS, bernstein

SHARE = 0.97  # of what is left beside the torque that holds the robot, for `optimal`: its points miss the greatest one
FIRST = 1.0  # share with which a part of a motion is eased first that is not proven to keep the limits
KEPT = 0.98  # of what would just keep a limit
LEAST_SHARE = 0.3  # of the torque before, at once
HELD = 0.99  # of a limit that holding may take; what is left moves the robot
LEAST = 1e-3  # of a limit that is always taken to be left, so that a motion that cannot be held is found by its proof
STEP = 0.05  # rad or m between samples
MOST_SAMPLES = 20_000  # of a path, which are farther apart where there would be more
LONGEST_SHOWN = 12  # joints of a configuration in an error


class Load(NamedTuple):
    """torques: the limits
    share: of what is left beside the torque that holds the robot, that moving it may take in the speeds of
        `pacing.eased`; inf: as much as it takes
    """

    torques: TorqueLimits
    share: float = np.inf

    def lightened(self, share: float) -> "Load":
        """Where moving the robot may take about `share` of what it takes now, or a little less."""
        if self.share == np.inf:
            return self._replace(share=FIRST)
        return self._replace(share=self.share * max(KEPT * share, LEAST_SHARE))


class Room(NamedTuple):
    """Torques of a motion at N places, and what is left for them.

    moving: (N, dof) beside what holds the robot; push: (N, dof) for an acceleration of 1 along the motion's velocity
    up, down: (N, dof) how far `moving` may be above and below 0
    """

    moving: np.ndarray
    push: np.ndarray
    up: np.ndarray
    down: np.ndarray

    def slower(self, factor: float) -> "Room":
        """Of the same motion in `factor` times the time."""
        return self._replace(moving=self.moving / factor**2, push=self.push / factor)


def room_of(load: Load, q: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray) -> Room:
    """Room of a motion at q, velocity, acceleration (N, dof)."""
    bodies, limits = load.torques.dynamics.bodies, load.torques.limits
    q, velocity, acceleration = (np.ascontiguousarray(x) for x in (q, velocity, acceleration))
    none = np.zeros_like(q)
    still = torques_of(bodies, q, none, none)
    moving, push = (torques_of(bodies, q, *rates) - still for rates in ((velocity, acceleration), (none, velocity)))
    up, down = (np.maximum(load.share * (limits - each), LEAST * limits) for each in (still, -still))
    return Room(moving, push, up, down)


def shares(times: np.ndarray, rows: np.ndarray, torques: TorqueLimits) -> Sharings:
    """Sharings of the quintics between points, as in `played.Timed`: times (T,), rows (T, 3, dof)."""
    lengths = np.diff(times)
    points = bernstein(lengths, rows[:-1], rows[1:])
    jerks = 60 * np.abs(np.diff(points, 3, axis=1)).max(axis=1) / lengths[:, None] ** 3
    return sharings(torques.dynamics.bodies, lengths, np.ascontiguousarray(POWERS @ points), jerks, torques.limits)


def refuse_unheld(path: np.ndarray, torques: TorqueLimits) -> None:
    """SettingsError that names the first sample of a path (K, dof) where a motor cannot hold the robot still."""
    lengths = np.linalg.norm(np.diff(path, axis=0), axis=1)
    counts = np.ceil(lengths / max(STEP, lengths.sum() / MOST_SAMPLES)).astype(int)
    between = [a + (b - a) * (np.arange(n) / n)[:, None] for a, b, n in zip(path[:-1], path[1:], counts)]
    q = np.concatenate([*between, path[-1:]])
    still, allowed = torques.dynamics.torques(q), HELD * torques.limits
    beyond = np.argwhere(np.abs(still) > allowed)
    if len(beyond):
        n, i = beyond[0]
        places = [float(f"{value:.4g}") for value in q[n][:LONGEST_SHOWN]]
        raise SettingsError(
            f"path: at {shown(places)} joint '{torques.dynamics.robot.joint_names[i]}' needs {still[n, i]:.4g} N m (or "
            f"N) only to hold still; allowed: up to {allowed[i]:.4g}, {HELD:g} of its limit {torques.limits[i]:.4g}"
        )
