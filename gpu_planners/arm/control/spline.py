"""The curve that a joint trajectory controller drives through the points of a trajectory.

Between two points it is a quintic of time where both have velocities and accelerations, a cubic where both have
velocities, else a straight line: as ros2_controllers' joint_trajectory_controller interpolates by default.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import checked, numbers
from ...errors import ConfigurationError, shown
from ..trajectory import Trajectory

# rows: position, velocity, acceleration at the start, then at the end, of a piece of unit length, as coefficients of
# 1, x, ... x^5
QUINTIC = np.linalg.inv(
    np.array(
        [
            [1, 0, 0, 0, 0, 0],
            [0, 1, 0, 0, 0, 0],
            [0, 0, 2, 0, 0, 0],
            [1, 1, 1, 1, 1, 1],
            [0, 1, 2, 3, 4, 5],
            [0, 0, 2, 6, 12, 20],
        ],
        dtype=float,
    )
).round(3)  # halves: a joint that stands still stands still exactly
CUBIC = np.linalg.inv(np.array([[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 1, 1], [0, 1, 2, 3]], dtype=float)).round(3)


class State(NamedTuple):
    """Of joints at one time, or at several: positions, velocities, accelerations, (dof,) or (N, dof)."""

    positions: np.ndarray
    velocities: np.ndarray
    accelerations: np.ndarray


@checked(ConfigurationError)
class Spline:
    """A curve through points.

    times: (T,) seconds, strictly increasing
    positions: (T, dof) rad or m
    velocities, accelerations: (T, dof), with NaN in the rows of points that give none; None: no point does

    Raises ConfigurationError.
    """

    def __init__(
        self,
        times: ArrayLike,
        positions: ArrayLike,
        velocities: ArrayLike | None = None,
        accelerations: ArrayLike | None = None,
    ) -> None:
        self.times = numbers("times", times, (None,), ConfigurationError).astype(float)
        n = len(self.times)
        if not (n and (np.diff(self.times) > 0).all()):
            raise ConfigurationError(f"times is {shown(times)}; allowed: one or more, strictly increasing")
        self.positions = numbers("positions", positions, (n, None), ConfigurationError).astype(float)
        none, shape = np.full_like(self.positions, np.nan), self.positions.shape
        self.velocities, self.accelerations = (
            none if rows is None else numbers(name, rows, shape, ConfigurationError, finite=False).astype(float)
            for name, rows in (("velocities", velocities), ("accelerations", accelerations))
        )
        self._coefficients = self._pieces()

    @classmethod
    def of(cls, trajectory: Trajectory) -> "Spline":
        """The curve of a Trajectory."""
        return cls(trajectory.times, trajectory.positions, trajectory.velocities, trajectory.accelerations)

    @property
    def start(self) -> float:
        """Seconds: time of the first point."""
        return float(self.times[0])

    @property
    def end(self) -> float:
        """Seconds: time of the last point."""
        return float(self.times[-1])

    def at(self, times: ArrayLike) -> State:
        """State at a time, (dof,) each, or at times (N,), (N, dof) each; at rest before the start and past the end."""
        times = np.asarray(times, dtype=float)
        if len(self.times) == 1:
            rest = np.zeros((*times.shape, self.positions.shape[1]))
            return State(rest + self.positions[0], rest, rest.copy())
        inside = np.clip(times, self.start, self.end)
        piece = np.clip(np.searchsorted(self.times, inside, side="right") - 1, 0, len(self.times) - 2)
        length = self.times[piece + 1] - self.times[piece]
        x, c = ((inside - self.times[piece]) / length)[..., None], np.moveaxis(self._coefficients[piece], -2, 0)
        position = c[0] + x * (c[1] + x * (c[2] + x * (c[3] + x * (c[4] + x * c[5]))))
        velocity = c[1] + x * (2 * c[2] + x * (3 * c[3] + x * (4 * c[4] + x * 5 * c[5])))
        acceleration = 2 * c[2] + x * (6 * c[3] + x * (12 * c[4] + x * 20 * c[5]))
        moves = ((times >= self.start) & (times < self.end))[..., None]
        length = length[..., None]
        return State(position, velocity / length * moves, acceleration / length**2 * moves)

    def until_rest(self, time: float, still: float = 1e-6) -> float:
        """Seconds: the first point at or after a time where no joint moves faster than `still`; else the end."""
        resting = (np.abs(self.velocities) <= still).all(axis=1) & (self.times >= time)
        return float(self.times[np.argmax(resting)]) if resting.any() else self.end

    def _pieces(self):
        """(T - 1, 6, dof) coefficients of each piece over its own unit of time."""
        h = np.diff(self.times)[:, None]
        q, v, a = self.positions, self.velocities, self.accelerations
        pieces = np.zeros((len(h), 6, q.shape[1]))
        pieces[:, 0], pieces[:, 1] = q[:-1], np.diff(q, axis=0)
        if len(h):
            cubic = np.stack([q[:-1], v[:-1] * h, q[1:], v[1:] * h], axis=1)
            quintic = np.stack([q[:-1], v[:-1] * h, a[:-1] * h**2, q[1:], v[1:] * h, a[1:] * h**2], axis=1)
            has_cubic, has_quintic = (np.isfinite(rows).all(axis=(1, 2)) for rows in (cubic, quintic))
            pieces[has_cubic, :4] = np.einsum("ij,njd->nid", CUBIC, cubic[has_cubic])
            pieces[has_quintic] = np.einsum("ij,njd->nid", QUINTIC, quintic[has_quintic])
        return pieces
