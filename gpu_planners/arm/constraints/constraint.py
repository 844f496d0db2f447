"""Constraint: whether configurations keep it, whether whole motions are proven to, and the configuration near one that
does.

Where a task space region (Berenson, Srinivasa and Kuffner, "Task Space Regions", IJRR 2011) bounds a link's pose, a
constraint here is a list of parts, all of which must hold (`parts`). Motions are proven on intervals, which are halved
until each is (`kept`); projection is a damped Gauss-Newton method on what the parts are exceeded by (`project`).
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import checked, instance, numbers
from ...errors import ConfigurationError, RobotDescriptionError, SettingsError, shown
from ..collision.reach import joint_ranges
from ..robot.model import RobotModel
from .pair import PairPart, Part
from .parts import JointPart, PointPart, TiltPart, TurnPart
from .volume import FARTHEST, Volume, rotation

ROUNDING = 1e-9  # m and rad: what exceeds a part by less keeps it
LEAST_ANGLE = 1e-3  # rad: least tolerance
GREATEST_TILT = 3.1  # rad
HALVINGS = 9  # of a motion with others near it, before it is given up
OF_WHOLE = 12  # of a motion alone: a search gives up at 9 halvings of each of up to 8 parts
PIECE = 4096  # intervals that are looked at at once
NEWTON = 20  # steps of a projection at most
DAMPING = 1e-6  # of its normal equations
LONGEST = 1.0  # L2 of a step of a projection, rad or m
ENOUGH = 0.5  # of a part's margin: a configuration that has it is not projected further


@checked()
class Constraint:
    """What a robot keeps along a whole motion: all of some parts. Made by its subclasses, and by `all_of`.

    robot: RobotModel whose configurations it takes; parts: what must hold
    """

    def __init__(self, robot: RobotModel, parts: Sequence[Part]) -> None:
        if not parts:
            raise SettingsError("parts is empty; allowed: one or more")
        self.robot, self.parts = robot, tuple(parts)

    def _rows(self, name, q):
        return numbers(name, q, (None, self.robot.dof), ConfigurationError).astype(float)

    def excess(self, q: ArrayLike) -> np.ndarray:
        """(N,) m or rad by which configurations (N, dof) exceed the part that they exceed most; negative: how far all
        of them are kept."""
        return self._excess(self._rows("q", q))

    def _excess(self, q):
        return np.max([part.excess(part.measure(q)) for part in self.parts], axis=0)

    def satisfied(self, q: ArrayLike) -> np.ndarray:
        """(N,) bool: do configurations (N, dof) keep it?"""
        return self.excess(q) <= ROUNDING

    def kept(self, q_from: ArrayLike, q_to: ArrayLike) -> np.ndarray:
        """(N,) bool: are straight motions (N, dof) proven to keep it all along?

        False where a configuration on the way does not keep it, where a joint that slides is 1 mm beyond where it may
        stand, and where no proof is found in 2^OF_WHOLE parts.
        """
        q_from, q_to = self._rows("q_from", q_from), self._rows("q_to", q_to)
        if len(q_from) != len(q_to):
            raise ConfigurationError(f"q_from has {len(q_from)} rows, q_to {len(q_to)}; allowed: as many of each")
        return self._kept(q_from, q_to, [0.0] * len(self.parts))

    def _kept(self, q_from, q_to, spares):
        """`kept`, of all motions near the straight ones that change each part's x by its `spares` (parts,) at most."""
        way, moves = q_to - q_from, np.abs(q_to - q_from)
        ends = [self._measured(q, way) for q in (q_from, q_to)]
        least = 0.5 ** (HALVINGS if any(spares) else OF_WHOLE)
        good = self._in_ranges(q_from) & self._in_ranges(q_to)
        for end in ends:
            good &= self._greatest(end, spares) <= ROUNDING
        rows, whole = np.flatnonzero(good), int(good.sum())
        waiting = _pieces(rows, np.zeros(whole), *([x[rows] for x in end] for end in ends), 1.0)
        while waiting:  # the last one first, so that few wait
            rows, begin, a, b, length = waiting.pop()
            bounds = [part.bound(moves[rows] * length, *x, spare) for part, *x, spare in zip(self.parts, a, b, spares)]
            left = good[rows] & ~(np.max(bounds, axis=0) <= ROUNDING)
            rows, begin, a, b = rows[left], begin[left], [x[left] for x in a], [x[left] for x in b]
            if length <= least:
                good[rows] = False
            if not len(rows) or length <= least:
                continue
            length /= 2
            middle = self._measured(q_from[rows] + (begin + length)[:, None] * way[rows], way[rows])
            good[rows[self._greatest(middle, spares) > ROUNDING]] = False
            some = good[rows]
            rows, begin = np.tile(rows[some], 2), np.concatenate([begin[some], begin[some] + length])
            a, b, middle = ([x[some] for x in each] for each in (a, b, middle))
            a, b = ([np.concatenate(pair) for pair in zip(*two)] for two in ((a, middle), (middle, b)))
            waiting += _pieces(rows, begin, a, b, length)
        return good

    def _in_ranges(self, q):
        """(N,) bool: do all joints that slide lie where the levers hold?"""
        slides = self.robot.frames["joint"][self.robot.frames["prismatic"]]
        low, high = joint_ranges(self.robot)[:, slides]
        return ((q[:, slides] >= low) & (q[:, slides] <= high)).all(axis=1)

    def _measured(self, q, way):
        return [part.along(q, way) if isinstance(part, PairPart) else part.measure(q) for part in self.parts]

    def _greatest(self, measured, spares):
        return np.max([part.excess(x) + spare for part, x, spare in zip(self.parts, measured, spares)], axis=0)

    def project(self, q: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Configurations near q (N, dof), within the joint limits, that keep it -> (N, dof), and (N,) bool: was one
        found?

        They keep it by a margin, so that motions from them can; what has it stays as it is.
        """
        q = self._rows("q", q).copy()
        robot, found, going = self.robot, np.zeros(len(q), dtype=bool), np.arange(len(q))
        lower = np.where(robot.continuous, -np.inf, robot.lower)
        upper = np.where(robot.continuous, np.inf, robot.upper)
        for step in range(NEWTON + 1):
            lacks, J, enough = self._pull(q[going])
            found[going[enough]] = True
            going, lacks, J = going[~enough], lacks[~enough], J[~enough]
            if not len(going) or step == NEWTON:
                break
            system = J @ J.transpose(0, 2, 1) + DAMPING * np.eye(J.shape[1])
            move = -(J.transpose(0, 2, 1) @ np.linalg.solve(system, lacks[:, :, None]))[:, :, 0]
            size = np.linalg.norm(move, axis=1)[:, None]
            q[going] = np.clip(q[going] + move * np.minimum(1.0, LONGEST / np.maximum(size, 1e-12)), lower, upper)
        return q, found

    def _pull(self, q):
        """(N, S) by how much each side lacks its margin, 0 where it does not, (N, S, dof) its slope there, and (N,)
        bool: do all have enough of it?"""
        lacks, slopes, enough = [], [], np.ones(len(q), dtype=bool)
        for part in self.parts:
            x, J = part.measure_and_slope(q)
            values, margins, by_x = part.pull(x)
            lacking = np.maximum(values + margins, 0.0)
            enough &= (values <= -ENOUGH * margins).all(axis=1)
            lacks.append(lacking)
            slopes.append((by_x @ J) * (lacking > 0)[:, :, None])
        return np.concatenate(lacks, axis=1), np.concatenate(slopes, axis=1), enough

    def told(self, q: ArrayLike) -> str:
        """A text on each part that a configuration (dof,) does not keep, "" where it keeps all."""
        q = numbers("q", q, (self.robot.dof,), ConfigurationError).astype(float)
        return "; ".join(part.told(q) for part in self.parts if float(part.excess(part.measure(q[None]))[0]) > ROUNDING)


def _pieces(rows, begin, a, b, length):
    """Intervals (n,), which begin there, with what is measured at their ends, PIECE at a time."""
    cuts = [slice(i, i + PIECE) for i in range(0, len(rows), PIECE)]
    return [(rows[cut], begin[cut], [x[cut] for x in a], [x[cut] for x in b], length) for cut in cuts]


@checked()
class Orientation(Constraint):
    """A link turned from a rotation by no more than tolerances.

    R: (3, 3) the wanted rotation in the root frame; tolerances: (3,) rad about its x, y and z axes; pi or more: free
    angles: "vector" they limit the rotation vector from R to the link; "euler" its Euler angles about x, y, z in turn,
        as MoveIt's XYZ_EULER_ANGLES
    R_link_frame: (3, 3) rotation in the link's frame of what is constrained, if that is not the link itself
    """

    def __init__(
        self,
        robot: RobotModel,
        link: str,
        R: ArrayLike,
        tolerances: ArrayLike,
        angles: str = "vector",
        R_link_frame: ArrayLike = np.eye(3),
    ) -> None:
        if angles not in ("vector", "euler"):
            raise SettingsError(f"angles is {shown(angles)}; allowed: 'vector' or 'euler'")
        allowed = numbers("tolerances", tolerances, (3,), finite=False).astype(float)
        if not (allowed >= LEAST_ANGLE).all():
            raise SettingsError(f"tolerances is {allowed.tolist()}; allowed: {LEAST_ANGLE:g} rad or more")
        part = TurnPart(
            robot, link, rotation("R_link_frame", R_link_frame), rotation("R", R), allowed, angles == "euler"
        )
        if not part.limits:
            raise SettingsError(f"tolerances is {allowed.tolist()}, which limits nothing; allowed: one below pi")
        super().__init__(robot, [part])


@checked()
class Within(Constraint):
    """A point of a link in one of some volumes. point: (3,) in the link's frame, metres"""

    def __init__(self, robot: RobotModel, link: str, point: ArrayLike, volumes: Sequence[Volume]) -> None:
        if not len(volumes):
            raise SettingsError("volumes is empty; allowed: one Volume or more")
        at = numbers("point", point, (3,)).astype(float)
        if np.abs(at).max() > FARTHEST:
            raise SettingsError(f"point is {at.tolist()}; allowed: numbers up to {FARTHEST:g} m")
        super().__init__(robot, [PointPart(robot, link, at, tuple(volumes))])


@checked()
class Position(Within):
    """A point of a link in a box.

    point: (3,) in the link's frame, metres; pose: (4, 4) of the box's frame in the root frame
    lower, upper: (3,) metres in that frame; -inf or inf where the box does not end, so that a plane is a thin box
    """

    def __init__(
        self,
        robot: RobotModel,
        link: str,
        point: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        pose: ArrayLike = np.eye(4),
    ) -> None:
        super().__init__(robot, link, point, [Volume.box(lower, upper, pose)])


@checked()
class Tilt(Constraint):
    """An axis of a link within an angle of a direction, as of a cup that is kept upright.

    axis: (3,) in the link's frame; direction: (3,) in the root frame; tolerance: rad, less than a half turn
    """

    def __init__(self, robot: RobotModel, link: str, axis: ArrayLike, direction: ArrayLike, tolerance: float) -> None:
        if not LEAST_ANGLE <= tolerance <= GREATEST_TILT:
            text = f"allowed: a number from {LEAST_ANGLE:g} to {GREATEST_TILT:g} rad"
            raise SettingsError(f"tolerance is {shown(tolerance)}; {text}")
        self.tilt = TiltPart(robot, link, unit("axis", axis), unit("direction", direction), tolerance)
        super().__init__(robot, [self.tilt])


@checked()
class JointRange(Constraint):
    """Joints between values. ranges: {planning joint: (lower, upper)} rad or m; of a joint that turns without end the
    range holds at any number of turns"""

    def __init__(self, robot: RobotModel, ranges: Mapping[str, tuple[float, float]]) -> None:
        parts = []
        for name, (lower, upper) in ranges.items():
            if name not in robot.joint_names:
                known = ", ".join(robot.joint_names)
                raise RobotDescriptionError(f"{shown(name)} is no planning joint; allowed: {known}")
            if not upper - lower >= LEAST_ANGLE or abs(lower + upper) == np.inf and lower == upper:
                text = f"ranges['{name}'] is {lower:g} to {upper:g}"
                raise SettingsError(f"{text}; allowed: an upper value {LEAST_ANGLE:g} above the lower one, or more")
            parts.append(JointPart(robot, robot.joint_names.index(name), lower, upper))
        if not parts:
            raise SettingsError("ranges is empty; allowed: one joint or more")
        super().__init__(robot, parts)


@checked()
def all_of(constraints: Sequence[Constraint]) -> Constraint:
    """All of some constraints of one robot."""
    if not len(constraints):
        raise SettingsError("constraints is empty; allowed: one Constraint or more")
    given = [instance("constraints", each, Constraint, "Constraints") for each in constraints]
    first = given[0].robot
    if any(each.robot is not first for each in given):
        raise SettingsError("constraints are of several robots; allowed: those of one RobotModel")
    return Constraint(first, [part for each in given for part in each.parts])


def unit(name: str, vector: ArrayLike) -> np.ndarray:
    """A direction (3,) of length 1; SettingsError, which names it, where there is none."""
    given = numbers(name, vector, (3,)).astype(float)
    if not (size := np.abs(given).max()) > 1e-9:
        raise SettingsError(f"{name} is {shown(given.tolist())}; allowed: three finite numbers, not all 0")
    return given / size / np.linalg.norm(given / size)
