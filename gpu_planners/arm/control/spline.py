"""The curve that a joint trajectory controller drives through the points of a trajectory, and the rest of a motion.

Between two points it is a quintic of time where both have velocities and accelerations, a cubic where both have
velocities, else a straight line: as ros2_controllers' joint_trajectory_controller interpolates by default.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import checked, numbers, whole
from ...errors import ConfigurationError, shown
from ..motion.curve import POWERS, bernstein, cubic_bernstein, derivatives
from ..motion.played import DIGITS
from ..trajectory import Trajectory

STILL = 1e-6  # rad/s or m/s up to which a joint rests
LOOK_S = 0.005  # spacing of the times that are compared with where the robot is, at first
MOST_LOOKS = 1_000_000  # at first: they are farther apart where the times are more than 5000 s apart
ROUNDS = 4  # of looks for the nearest time
FINER = 20  # parts of what is about the nearest time, that each round but the first looks at
SAME = 1e-9  # rad or m by which distances count as different
STRAIGHT = 1e-9  # sine of the angle up to which a piece counts as straight
HALVINGS = 50  # of an interval that holds a root
SHORTEST_S = 1e-3  # between the points of two curves that follow each other
PARTS = 8  # straight lines that stand for a piece that is not


class State(NamedTuple):
    """Of joints at one time, or at several: positions, velocities, accelerations, (dof,) or (N, dof)."""

    positions: np.ndarray
    velocities: np.ndarray
    accelerations: np.ndarray


class Extremes(NamedTuple):
    """What a curve takes each joint to, (dof,) each: least and greatest position, greatest speed and acceleration.

    speed_at, acceleration_at: seconds, of the two greatest

    The curve begins and ends at rest. Where a joint changes its speed at once, as from one straight line to the next,
    the acceleration is the one that makes the change between the middles of the two pieces.
    """

    low: np.ndarray
    high: np.ndarray
    speed: np.ndarray
    acceleration: np.ndarray
    speed_at: np.ndarray
    acceleration_at: np.ndarray


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
        position, velocity, acceleration = derivatives(c, x)
        moves = ((times >= self.start) & (times < self.end))[..., None]
        length = length[..., None]
        return State(position, velocity / length * moves, acceleration / length**2 * moves)

    def until_rest(self, time: float) -> float:
        """Seconds: the first point at or after a time where no joint moves faster than STILL; else the end."""
        resting = (np.abs(self.velocities) <= STILL).all(axis=1) & (self.times >= time)
        return float(self.times[np.argmax(resting)]) if resting.any() else self.end

    def nearest_time(self, q: ArrayLike, low: float, high: float) -> float:
        """The time, between two times, at which the curve is nearest to q (dof,); the latest of several."""
        q = numbers("q", q, self.positions.shape[1:], ConfigurationError)
        if not (np.isfinite(low) and np.isfinite(high)):
            raise ConfigurationError(f"low and high are {low} and {high}; allowed: finite numbers")
        count = max(int(min(np.ceil((high - low) / LOOK_S), MOST_LOOKS)), 1)
        for _ in range(ROUNDS):
            times = np.linspace(low, high, count + 1)
            distance = np.linalg.norm(self.at(times).positions - q, axis=1)
            i = int(np.flatnonzero(distance <= distance.min() + SAME)[-1])
            low, high, count = times[max(i - 1, 0)], times[min(i + 1, len(times) - 1)], FINER
        return float(times[i])

    def extremes(self) -> Extremes:
        """What it takes each joint to, between the points too: by the roots of its derivatives."""
        if len(self.times) == 1:
            q, zero = self.positions[0], np.zeros(self.positions.shape[1])
            return Extremes(q, q.copy(), *np.repeat(zero[None], 4, axis=0))
        h, pieces, values = self._turning_points()
        speed = _greatest(np.abs(values[1][0]) / h[:, :, None], values[1][1])
        slopes = pieces[1][0] / h, pieces[1].sum(axis=0) / h  # at the beginnings and the ends of pieces
        rest, none = np.zeros_like(slopes[0][:1]), np.zeros((1, 1))
        jumps = np.abs(np.concatenate([slopes[0], rest]) - np.concatenate([rest, slopes[1]]))
        jumps /= (np.concatenate([h, none]) + np.concatenate([none, h])) / 2
        bent = np.abs(values[2][0]) / h[:, :, None] ** 2, values[2][1]
        at = np.broadcast_to(self.times[:, None, None], (*jumps.shape, 1))
        acceleration = [_greatest(*bent), _greatest(jumps[:, :, None], at)]
        most, when = (np.array([each[i] for each in acceleration]) for i in range(2))
        first, joints = most.argmax(axis=0), np.arange(most.shape[1])
        q = values[0][0]
        return Extremes(
            q.min(axis=(0, 2)), q.max(axis=(0, 2)), speed[0], most[first, joints], speed[1], when[first, joints]
        )

    def rates(self, orders: int = 2) -> tuple[np.ndarray, ...]:
        """(dof,) greatest speed, acceleration and, of 3 orders, jerk on its pieces, by the roots of their derivatives;
        unlike `extremes` without what it would take to begin and to end at rest. orders: 1, 2 or 3"""
        whole("orders", orders, 1, 3)
        if len(self.times) == 1:
            return tuple(np.zeros(self.positions.shape[1]) for _ in range(orders))
        h, _, values = self._turning_points()
        return tuple((np.abs(values[k][0]) / h[:, :, None] ** k).max(axis=(0, 2)) for k in range(1, orders + 1))

    def then(self, time: float, trajectory: Trajectory, since: float = -np.inf) -> "Spline":
        """This curve until a time, and from then on a trajectory, which begins as the curve is at that time.

        time: seconds on the curve's clock; since: the curve may begin as late as that
        """
        first = max(int(np.searchsorted(self.times, since, side="right")) - 1, 0)
        keep = slice(first, max(int(np.searchsorted(self.times, time - SHORTEST_S)), first))
        return Spline(
            np.r_[self.times[keep], time + trajectory.times],
            *(
                np.concatenate([getattr(self, name)[keep], getattr(trajectory, name)])
                for name in ("positions", "velocities", "accelerations")
            ),
        )

    def rest(self, time: float, later: float = 0.0) -> Trajectory:
        """What is left of the curve at a time, with a point there; all of its points must have accelerations.

        later: seconds after which it has a point as well
        """
        after = self.times[self.times > time + SHORTEST_S] - time
        if not len(after) and time < self.end:
            after = np.array([self.end - time])
        if SHORTEST_S < later < self.end - time - SHORTEST_S:
            after = np.sort(np.r_[after[np.abs(after - later) > SHORTEST_S], later])
        times = np.concatenate([np.zeros(1), after]).round(DIGITS)
        state = self.at(time + times)
        state.positions[-1], state.velocities[-1], state.accelerations[-1] = self.positions[-1], 0.0, 0.0
        return Trajectory(times, state.positions, state.velocities, state.accelerations)

    def remaining_path(self, time: float) -> np.ndarray:
        """(K, dof) corners of straight lines that follow the curve from a time to its end.

        A piece that runs straight is one line of them, exactly; another becomes 8.
        """
        times = [max(time, self.start)]
        for i in range(len(self.times) - 1):
            if self.times[i + 1] > times[-1]:
                begin = max(self.times[i], times[0])
                times += list(np.linspace(begin, self.times[i + 1], 2 if self._is_straight(i) else PARTS + 1)[1:])
        return self.at(np.array(times)).positions

    def _turning_points(self):
        """(T - 1, 1) lengths of the pieces, seconds; coefficients of them and of their derivatives by their own x in
        0..1, lowest power first; {order of derivative: (values, seconds)} at their ends and where they turn."""
        h = np.diff(self.times)[:, None]
        pieces = [np.moveaxis(self._coefficients, 1, 0)]  # of a curve and its derivatives by x, lowest power first
        for _ in range(4):
            pieces.append(pieces[-1][1:] * np.arange(1, len(pieces[-1]))[:, None, None])
        x = np.broadcast_to([0.0, 1.0], (*pieces[0].shape[1:], 2))
        values = {}
        for order in (3, 2, 1, 0):  # between the roots of the derivative above, one is monotone
            x = _with_roots(pieces[order + 1], x)
            values[order] = _value(pieces[order], x), self.times[:-1, None, None] + x * h[:, :, None]
        return h, pieces, values

    def _is_straight(self, i):
        """Do positions run straight from point i to the next, as velocities say?"""
        chord = self.positions[i + 1] - self.positions[i]
        length = np.linalg.norm(chord)
        for way in (*self.velocities[i : i + 2], *self.accelerations[i : i + 2]):
            if np.isnan(way).any() or length == 0:
                continue
            across = way - chord * (way @ chord) / length**2
            if np.linalg.norm(across) > STRAIGHT + 1e-7 * np.linalg.norm(way):
                return False
        return True

    def _pieces(self):
        """(T - 1, 6, dof) coefficients of 1, x, ... x^5 of each piece over its own unit of time x."""
        h, v, a, moved = np.diff(self.times), self.velocities, self.accelerations, np.diff(self.positions, axis=0)
        # positions counted from a piece's start: a joint that stands still stands still exactly
        starts = np.stack([np.zeros_like(moved), v[:-1], a[:-1]], axis=1)
        ends = np.stack([moved, v[1:], a[1:]], axis=1)
        pieces = np.zeros((len(h), 6, moved.shape[1]))
        pieces[:, 1] = moved
        for controls, given in ((cubic_bernstein, 2), (bernstein, 3)):
            fits = np.isfinite(starts[:, :given]).all(axis=(1, 2)) & np.isfinite(ends[:, :given]).all(axis=(1, 2))
            pieces[fits] = POWERS @ controls(h[fits], starts[fits], ends[fits])
        pieces[:, 0] = self.positions[:-1]
        return pieces


def _value(coefficients, x):
    """Of polynomials (P, ...), lowest power first, at x (..., N)."""
    result = np.zeros(x.shape)
    for c in coefficients[::-1]:
        result = result * x + c[..., None]
    return result


def _with_roots(coefficients, x):
    """x (..., N) in order, and between them the roots of polynomials (P, ...) that are monotone there; in order."""
    low, high = x[..., :-1].copy(), x[..., 1:].copy()
    below = _value(coefficients, low) < 0
    crosses = below != (_value(coefficients, high) < 0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        right = (_value(coefficients, middle) < 0) == below
        low, high = np.where(right, middle, low), np.where(right, high, middle)
    return np.sort(np.concatenate([x, np.where(crosses, low, x[..., :-1])], axis=-1), axis=-1)


def _greatest(values, times):
    """((dof,) greatest of values (T, dof, N), (dof,) times when they are)."""
    values, times = (np.moveaxis(each, 1, 0).reshape(each.shape[1], -1) for each in (values, times))
    joints, best = np.arange(len(values)), values.argmax(axis=1)
    return values[joints, best], times[joints, best]


def first_contact(checker: Any, path: np.ndarray) -> str:
    """What a path (K, dof) meets first, as a text; "" when all of it is proven free.

    checker: CollisionChecker
    """
    steps = path if len(path) > 1 else np.repeat(path, 2, axis=0)
    free = np.asarray(checker.motions_valid(steps[:-1], steps[1:]))
    if free.all():
        return ""
    i = int(np.argmin(free))
    for q in steps[i] + np.linspace(0.0, 1.0, 33)[:, None] * (steps[i + 1] - steps[i]):
        pairs = checker.colliding_pairs(q)
        if pairs:
            return f"'{pairs[0][0]}' would meet '{pairs[0][1]}'"
    return "it is no longer proven free"
