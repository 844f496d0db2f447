"""Straight lines and circular arcs of the tool: the configurations that move a link along them while it turns evenly.

Below, a line may be an arc. `solve` follows it in steps. The joint rates that move the link along the line give a first
guess; joints that the line leaves free move away from their limits in it. Newton's method then puts the link back onto
the line. A step is halved until the link keeps the tolerances on the straight joint motion between two steps, and the
joints move about as the rates said, so the arm never jumps to another posture. Where the least step fails, the line
ends, and the answer says how far it came and why.

The checker proves the joint motions between the steps free for a robot that is thicker by twice `motion.played.TUBE`:
then a smooth curve through the steps is free too, and so is what a controller makes of it.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from ..arguments import checked, numbers
from ..errors import ConfigurationError, SettingsError, shown
from ..settings import Described, Setting, setting
from .motion.played import TUBE
from .motion.timing import body_checker
from .robot.inverse_kinematics import as_poses
from .robot.model import RobotModel
from .robot.tip import Tip

TURN = 2 * math.pi
FRACTION = Setting(0.0, "Part of a line", 0.0, 1.0)
EXACT = 1e-10  # metres and rad from the line at which Newton's method ends
NEWTON = 12  # steps of it, at most
BETWEEN = np.array([0.25, 0.5, 0.75])  # of a joint motion, where the link's distance from the line is looked at
KEPT = 0.8  # share of the tolerances that steps may use; the rest is for what lies between the places looked at
GROWTH = 1.5  # factor of a step's length after one that went well
FREE_GAIN = 0.5  # rad or m by which free joints move away from their limits at most, for a metre or radian of the line
STARTS = 16  # postures that are tried where only the pose of the start is given
OUTSIDE = 1e-3  # rad or m that a start may be beyond its limits; it is taken to them
NEAR_CONTACT = 8  # a step that is not free is followed again in steps so many times shorter, to find its free part
COLLINEAR = 1e-4  # rad between the directions to two points, below which they make no circle
CENTER_OFF = 1e-2  # metres that a given centre may be from the nearest one that is as far from the start as the goal


class End(Enum):
    """Why a line ends where it does."""

    REACHED = "reached"
    COLLISION = "collision"
    LIMITS = "joint limits"
    SINGULAR = "singular"
    UNREACHABLE = "unreachable"
    TIMED_OUT = "time limit reached"


@dataclass(frozen=True)
class Settings(Described):
    """Settings of straight lines and arcs."""

    tolerance: float = setting(1e-3, "Farthest that the tool may be from the line", 1e-6, 0.1, unit="metres")
    angle_tolerance: float = setting(
        1e-3, "Farthest that the tool's orientation may be from the even turn", 1e-6, 1.0, unit="rad"
    )
    step: float = setting(0.02, "Longest step along the line", 1e-4, 1.0, unit="metres")
    angle_step: float = setting(0.1, "Greatest turn of the tool in a step", 1e-3, 1.0, unit="rad")
    least_step: float = setting(1e-3, "Least step, in parts of the longest one; below, the line ends", 1e-6, 0.5)
    jump: float = setting(
        0.3, "Farthest that a joint may move in a step; more is a jump to another posture", 1e-3, 3.0, unit="rad or m"
    )
    time_limit_s: float = setting(10.0, "Longest time for a line", 1e-3, 86_400.0, unit="seconds")


@dataclass(frozen=True)
class Speeds(Described):
    """How fast the tool may move along lines and arcs; what is infinite is not limited. The direction of its speed may
    change at any rate, as it does on an arc."""

    velocity: float = setting(np.inf, "Greatest speed of the tool", 1e-6, np.inf, unit="metres per second")
    acceleration: float = setting(
        np.inf, "Greatest acceleration along the way, and deceleration", 1e-6, np.inf, unit="metres per second squared"
    )
    turning: float = setting(np.inf, "Greatest speed at which it turns", 1e-6, np.inf, unit="rad per second")
    turning_rate: float = setting(
        np.inf, "Greatest acceleration of its turning", 1e-6, np.inf, unit="rad per second squared"
    )


@dataclass(frozen=True)
class Arc:
    """A circular arc from the start to the goal: through a point, or about a centre, then the shorter of the two ways.

    through, center: (3,) metres in the root frame; one of them. A centre is moved by up to CENTER_OFF to where it is as
    far from the start as from the goal
    """

    through: ArrayLike | None = None
    center: ArrayLike | None = None


@dataclass(frozen=True)
class Line:
    """Answer of `solve`.

    end: why it ends where it does
    path: (K, dof) configurations from the start on, rad or m; straight joint motions between them are proven free and
        keep the link on the line. (0, dof) where not even the start is free
    fractions: (K,) how much of the line the link has done there, from 0 to fractions[-1]
    text: one sentence that says what stopped it; empty where it reached its end
    misses: poses (N, 4, 4) of the link -> (N,) metres from the line, and (N,) rad from the orientation that belongs
        there; None where there is no path
    """

    end: End
    path: np.ndarray
    fractions: np.ndarray
    text: str
    misses: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None

    @property
    def fraction(self) -> float:
        """How much of the line could be done, from 0 to 1."""
        return float(self.fractions[-1]) if len(self.fractions) else 0.0

    @property
    def solved(self) -> bool:
        """Does it reach its end?"""
        return self.end is End.REACHED


@checked()
def solve(
    start: Annotated[ArrayLike, ConfigurationError],
    goal: ArrayLike,
    checker: Any,
    settings: Settings = Settings(),
    link: str | None = None,
    seed: int = 0,
    arc: Arc | None = None,
) -> Line:
    """Move a link on a straight line, or on an arc, evenly turning the short way, to a pose.

    start: (dof,) configuration, rad or m, up to 1e-3 beyond the limits; or (4, 4) pose of the link, then several
        postures are tried, and the one that comes farthest counts
    goal: (4, 4) pose of the link in the root frame, metres (`shifted` makes one from a translation)
    checker: CollisionChecker; link: default: the robot's tip link; seed: of the postures that are tried
    arc: what to follow in place of the line

    Raises ConfigurationError or SettingsError that name what is wrong with start, goal, checker or arc,
    and RobotDescriptionError for an unknown link.
    """
    robot, until = body_checker(checker).robot, time.monotonic() + settings.time_limit_s
    tip = Tip(robot, robot.tip_link if link is None else link)
    T_goal = as_poses(numbers("goal", goal, (4, 4), finite=False), tip.link)[0][0]
    text = f"no posture that is free places '{tip.link}' at the start"
    best = Line(End.UNREACHABLE, np.zeros((0, robot.dof)), np.zeros(0), text)
    for given in _starts(start, tip, checker, seed, settings):
        q = tip.bounded(given)
        k = int(np.argmax(np.abs(given - q)))
        if abs(given[k] - q[k]) > OUTSIDE:
            allowed = f"allowed: {robot.lower[k]:.6g} to {robot.upper[k]:.6g}"
            text = f"at the start '{robot.joint_names[k]}' is at {given[k]:.6g}; {allowed}"
            best = replace(best, end=End.LIMITS, text=text)
            continue
        T_start = tip.pose(q[None])[0]
        way = _way(T_start, T_goal) if arc is None else _round_way(T_start, T_goal, arc)
        line = _from(q, way, tip, checker, settings, until)
        if line.solved:
            return line
        if line.fraction > best.fraction or not len(best.path):
            best = line
        if time.monotonic() > until:
            break
    return best


@checked()
def shifted(robot: RobotModel, q: ArrayLike, translation: ArrayLike, link: str | None = None, along_tool: bool = False):
    """(4, 4) pose of a link at q (dof,) moved by a translation (3,) in metres, of the root's axes or of its own."""
    tip = Tip(robot, robot.tip_link if link is None else link)
    T = tip.pose(numbers("q", q, (robot.dof,), ConfigurationError)[None])[0].copy()
    vector = numbers("translation", translation, (3,))
    T[:3, 3] += T[:3, :3] @ vector if along_tool else vector
    return T


@checked()
def part_of_line(T_from: ArrayLike, T_to: ArrayLike, fraction: float) -> np.ndarray:
    """(4, 4) pose on the line from one pose (4, 4) to another, by the fraction 0..1."""
    (first,), (last,) = (as_poses(T, "of the line")[0] for T in (T_from, T_to))
    return _way(first, last).poses(np.array([FRACTION.checked("fraction", fraction)]))[0]


def _starts(start, tip, checker, seed, settings):
    """(K, dof) where the line may begin."""
    given, dof = numbers("start", start, error=ConfigurationError).astype(float), tip.robot.dof
    if given.shape == (4, 4):
        asked = {"solutions": STARTS, "seed": seed, "time_limit_s": settings.time_limit_s / 2}
        return tip.robot.inverse_kinematics(given, checker, link=tip.link, **asked).q
    if given.shape != (dof,):
        raise ConfigurationError(f"start is {shown(start)}; allowed: {dof} finite numbers, or the link's pose (4, 4)")
    return given[None]


@dataclass(frozen=True)
class _Way:
    """The line itself: poses by the fraction 0..1.

    T: (4, 4) where it begins; turn: (3,) rotation vector of all of it; length: metres; shift: (3,) metres
    """

    T: np.ndarray
    turn: np.ndarray
    length: float
    shift: np.ndarray

    def places(self, fractions: np.ndarray) -> np.ndarray:
        """(N, 3)"""
        return self.T[:3, 3] + fractions[:, None] * self.shift

    def nearest(self, places: np.ndarray) -> np.ndarray:
        """(N,) fractions that are nearest to places (N, 3)."""
        return np.clip((places - self.T[:3, 3]) @ self.shift / self.length**2, 0.0, 1.0)

    def poses(self, fractions: np.ndarray) -> np.ndarray:
        """(N, 4, 4)"""
        T = np.broadcast_to(np.eye(4), (len(fractions), 4, 4)).copy()
        T[:, :3, :3] = Rotation.from_rotvec(fractions[:, None] * self.turn).as_matrix() @ self.T[:3, :3]
        T[:, :3, 3] = self.places(fractions)
        return T

    def misses(self, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(N,) metres of (N, 4, 4) from the line, and (N,) rad from the orientation that belongs to the place."""
        turned = Rotation.from_matrix(poses[:, :3, :3] @ self.T[:3, :3].T).as_rotvec()
        if self.length > 1e-9:
            share = self.nearest(poses[:, :3, 3])
        else:
            share = np.clip(turned @ self.turn / max(float(self.turn @ self.turn), 1e-30), 0.0, 1.0)
        off = np.linalg.norm(poses[:, :3, 3] - self.places(share), axis=1)
        wanted = Rotation.from_rotvec(share[:, None] * self.turn)
        return off, (Rotation.from_rotvec(turned) * wanted.inv()).magnitude()


@dataclass(frozen=True)
class _RoundWay(_Way):
    """An arc: center + cos(a) x + sin(a) y, a from 0 to angle; x, y: (3,) perpendicular, as long as the radius."""

    center: np.ndarray
    x: np.ndarray
    y: np.ndarray
    angle: float

    def places(self, fractions: np.ndarray) -> np.ndarray:
        a = fractions[:, None] * self.angle
        return self.center + np.cos(a) * self.x + np.sin(a) * self.y

    def nearest(self, places: np.ndarray) -> np.ndarray:
        away = places - self.center
        a = np.arctan2(away @ self.y, away @ self.x) % TURN
        beyond = np.where(a - self.angle < TURN - a, 1.0, 0.0)  # off the arc, the nearer of its ends
        return np.where(a <= self.angle, a / self.angle, beyond)


def _way(T, T_goal) -> _Way:
    shift, R = T_goal[:3, 3] - T[:3, 3], T_goal[:3, :3] @ T[:3, :3].T
    return _Way(T, Rotation.from_matrix(R).as_rotvec(), float(np.linalg.norm(shift)), shift)


def _round_way(T, T_goal, arc: Arc) -> _RoundWay:
    """SettingsError where the points make no arc."""
    if not isinstance(arc, Arc) or (arc.through is None) == (arc.center is None):
        raise SettingsError(f"arc is {shown(arc)}; allowed: a cartesian.Arc with either `through` or `center`")
    name, given = ("through", arc.through) if arc.center is None else ("center", arc.center)
    point = numbers(f"arc: {name}", given, (3,))
    shift, to_point = T_goal[:3, 3] - T[:3, 3], point - T[:3, 3]
    normal, size = np.cross(to_point, shift), np.linalg.norm(to_point) * np.linalg.norm(shift)
    if not np.linalg.norm(normal) > COLLINEAR * size:
        raise SettingsError(
            f"arc: the start {shown(T[:3, 3].tolist())}, the goal {shown(T_goal[:3, 3].tolist())} and {name} "
            f"{shown(point.tolist())} lie on one line, so they make no circle; allowed: three points that do not"
        )
    if arc.center is None:
        square, cross = float(shift @ shift), float(normal @ normal)
        to_center = np.cross(float(to_point @ to_point) * shift - square * to_point, normal) / (2 * cross)
    else:
        ahead = 0.5 - float(to_point @ shift) / float(shift @ shift)  # of the chord, to its middle
        to_center, moved = to_point + ahead * shift, abs(ahead) * np.linalg.norm(shift)
        if moved > CENTER_OFF:
            raise SettingsError(
                f"arc: center is {np.linalg.norm(to_point):.6g} m from the start and "
                f"{np.linalg.norm(shift - to_point):.6g} m from the goal; allowed: a centre that is as far from both, "
                f"when it is moved by up to {CENTER_OFF:g} m"
            )
        normal = -normal  # from the start to the goal the shorter way
    x, radius = -to_center, float(np.linalg.norm(to_center))
    y = np.cross(normal / np.linalg.norm(normal), x)
    to_goal = shift - to_center
    angle = float(np.arctan2(to_goal @ y, to_goal @ x) % TURN)
    return _RoundWay(T, _way(T, T_goal).turn, radius * angle, shift, T[:3, 3] + to_center, x, y, angle)


def _from(q, way, tip, checker, settings, until) -> Line:
    """The line from a configuration."""
    path, fractions, end, text = _follow(q, way, 1.0, tip, settings, until)
    thick = checker.thickened(2 * TUBE)
    if not thick.configurations_valid(path[:1])[0]:
        text = f"the start is not free: {_met(path[0], checker)}"
        return Line(End.COLLISION, path[:0], fractions[:0], text)
    free = thick.motions_valid(path[:-1], path[1:]) if len(path) > 1 else np.ones(0, dtype=bool)
    if free.all():
        return Line(end, path, fractions, text, way.misses)
    last = int(np.argmin(free))
    finer = replace(settings, step=max(settings.step / NEAR_CONTACT, 1e-4))
    more, shares, *_ = _follow(path[last], way, fractions[last + 1], tip, finer, until, fractions[last])
    free = thick.motions_valid(more[:-1], more[1:])
    count = len(free) if free.all() else int(np.argmin(free))
    path, blocked = np.concatenate([path[: last + 1], more[1 : count + 1]]), more[min(count + 1, len(more) - 1)]
    shares = np.concatenate([fractions[: last + 1], shares[1 : count + 1]])
    return Line(End.COLLISION, path, shares, f"the way is not free: {_met(blocked, checker)}", way.misses)


def _met(q, checker):
    """What is in the way at a configuration."""
    pairs = checker.colliding_pairs(q) or checker.thickened(2 * TUBE).colliding_pairs(q)
    if not pairs:
        return f"nothing can be proven about what comes nearer than {2e3 * TUBE:g} mm"
    return f"'{pairs[0][0]}' meets '{pairs[0][1]}', or comes nearer than {2e3 * TUBE:g} mm"


def _follow(q, way, until_fraction, tip, settings, until, fraction=0.0):
    """Follow a line by its fractions from `fraction` on -> path (K, dof), fractions (K,), End, text."""
    size = max(way.length / settings.step, np.linalg.norm(way.turn) / settings.angle_step, 1.0)
    longest = 1.0 / math.ceil(size)
    path, fractions, step, ended = [q], [fraction], longest, (End.REACHED, "")
    while fractions[-1] < until_fraction - 1e-12:
        if time.monotonic() > until:
            ended = End.TIMED_OUT, f"{settings.time_limit_s:g} s are over"
            break
        left = until_fraction - fractions[-1]
        parts = max(math.ceil(left / step - 1e-9), 1)
        to = until_fraction if parts == 1 else fractions[-1] + left / parts
        found, stuck = _step(path[-1], fractions[-1], to, way, tip, settings)
        if found is not None:
            path.append(found)
            fractions.append(to)
            step = min(step * GROWTH, longest)
        elif step < settings.least_step * longest:
            ended = _stopped(path[-1], to, stuck, way, tip)
            break
        else:
            step = min(step, left) / 2
    return np.array(path), np.array(fractions), *ended


def _step(q, first, last, way, tip, settings):
    """(dof,) at the fraction `last` from q at `first`, or None; and which joints stood at their limits, (dof,) bool."""
    T_from, T_to = way.poses(np.array([first, last]))
    _, J = tip.pose_and_jacobian(q)
    rate = np.concatenate([T_to[:3, 3] - T_from[:3, 3], way.turn * (last - first)])
    moved = tip.rates(J, rate) + tip.away_from_limits(q, J, FREE_GAIN * np.linalg.norm(rate))
    held = tip.beyond(q + moved)
    if held.any():  # the other joints do it alone, if they can
        moved = tip.rates(J, rate, held)
    guess = tip.bounded(q + moved)
    found, at_limit = tip.newton(guess, T_to, NEWTON, EXACT)
    if found is None:
        return None, at_limit
    moved = np.abs(found - q)
    if moved.max() > settings.jump or np.abs(found - guess).max() > 0.5 * moved.max() + 1e-3:
        return None, at_limit
    off, angle = way.misses(tip.pose(q + BETWEEN[:, None] * (found - q)))
    if off.max() > KEPT * settings.tolerance or angle.max() > KEPT * settings.angle_tolerance:
        return None, at_limit
    return found, at_limit


def _stopped(q, fraction, at_limit, way, tip):
    """(End, text) of a line that cannot go on from q to a fraction."""
    robot, names = tip.robot, tip.robot.joint_names
    near = at_limit | (~robot.continuous & (np.minimum(q - robot.lower, robot.upper - q) < 1e-4))
    near &= tip.moves
    if near.any():
        said = ", ".join(f"'{names[k]}' at {q[k]:.4g}" for k in np.flatnonzero(near))
        return End.LIMITS, f"at a joint's limit: {said}"
    poses = way.poses(np.array([min(fraction + 1e-3, 1.0)]))
    if not len(robot.inverse_kinematics(poses, link=tip.link, seed_q=q, solutions=1, seeds=64)[0]):
        return End.UNREACHABLE, f"'{tip.link}' cannot reach the line beyond this place"
    return End.SINGULAR, "a singular posture: the line goes on only in another posture of the arm"
