"""The planar arm of [BKF11]: links in a chain, as line segments, among axis-aligned rectangles.

A link meets a rectangle unless (III-B-3) both its ends lie beyond one of the four lines along the rectangle's edges, or
all corners lie on one side of the line along the link. The paper finds that side by the heights of the line at the
rectangle's left and right, which a vertical link does not have; here it is the sign of a cross product. Touching counts
as meeting.

A motion is cut into m equal parts and checked at their m + 1 ends: the paper's theta_j = theta_1 + (j / m) (theta_2 -
theta_1) with j = 0 .. m, both ends included, which it leaves open. Joint angles are relative to the link before. They
stay in [-pi, pi], as the paper samples them, and motions do not wrap around. As in the paper, links may cross.

Coordinates are relative to the base, and rectangles are cut off beyond twice the arm's length, where no link comes.
They grow by a quarter of a millionth of the arm's length, about what float32 misplaces its links by; a contact that is
less deep may be called free.
"""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...arm.spaces import interface
from ...arm.spaces.interface import JOINT, WORKSPACE, MotionCheck, Packed
from ...arm.spaces.plane_checker import POINT, PlaneChecker
from ...device import lean_njit
from ...errors import ObstacleError, RobotDescriptionError, SettingsError
from ...parallel.team import any_lane, lane_count
from ...ranges import GREATEST_LENGTH, ROUNDOFF

ZERO, ONE, HALF = np.float32(0), np.float32(1), np.float32(0.5)
LARGEST = np.float32(2 * np.pi)  # rad: a joint beyond is not free; `sine_cosine` is good for sums of these
MOST_LINKS = 64
# the scene: ints are the numbers of links and rectangles; floats the links' lengths, then the rectangles
LINKS, RECTANGLES = 0, 1
RECTANGLE = 4  # centre x, y, half width, half height, relative to the base
U_1, U_2, U_3 = np.uintp(1), np.uintp(2), np.uintp(3)
TWO_OVER_PI = np.float32(0.636619772)
S_3, S_5, S_7 = np.float32(-1.6666654611e-1), np.float32(8.3321608736e-3), np.float32(-1.9515295891e-4)
C_4, C_6, C_8 = np.float32(4.166664568298827e-2), np.float32(-1.388731625493765e-3), np.float32(2.443315711809948e-5)
# pi/2 in three parts
QUARTER_1, QUARTER_2, QUARTER_3 = np.float32(1.5703125), np.float32(4.837513e-4), np.float32(7.54979e-8)


@dataclass(frozen=True)
class PlanarArm:
    """lengths: (dof,) of the links, metres;  base: (2,) of the first joint, metres. Limits are -pi and pi, rad."""

    lengths: np.ndarray
    base: tuple[float, float] = (0.0, 0.0)
    lower: np.ndarray = field(init=False)
    upper: np.ndarray = field(init=False)
    continuous: np.ndarray = field(init=False)
    periodic: np.ndarray = field(init=False)

    def __post_init__(self):
        lengths = np.atleast_1d(np.asarray(self.lengths, dtype=np.float64))
        if lengths.ndim != 1 or not len(lengths) or not (np.isfinite(lengths) & (lengths > 0)).all():
            raise RobotDescriptionError(
                f"PlanarArm.lengths is {self.lengths!r}; allowed: positive numbers, one for each link"
            )
        if len(lengths) > MOST_LINKS or lengths.sum() > GREATEST_LENGTH:
            raise RobotDescriptionError(
                f"PlanarArm.lengths has {len(lengths)} links of {lengths.sum():g} m in all; "
                f"allowed: {MOST_LINKS} links, {GREATEST_LENGTH:g} m"
            )
        if np.shape(self.base) != (2,) or not (np.abs(self.base) <= GREATEST_LENGTH).all():
            raise RobotDescriptionError(
                f"PlanarArm.base is {self.base!r}; allowed: two numbers up to {GREATEST_LENGTH:g}"
            )
        full = np.full(len(lengths), np.pi)
        fields = {"lengths": lengths, "lower": -full, "upper": full, "continuous": full < 0, "periodic": full > 0}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def dof(self) -> int:
        return len(self.lengths)

    @property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(f"joint_{k + 1}" for k in range(self.dof))

    def points(self, q: ArrayLike) -> np.ndarray:
        """q: (N, dof) -> (N, dof + 1, 2) float64: the base and the outer end of each link, metres."""
        angles = np.cumsum(np.atleast_2d(q), axis=1)
        ends = np.cumsum(self.lengths[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=2), axis=1)
        return np.concatenate([np.zeros((len(angles), 1, 2)), ends], axis=1) + self.base


def equal_links(dof: int, reach: float = 1.0, base: tuple[float, float] = (0.0, 0.0)) -> PlanarArm:
    """An arm of `dof` equal links, `reach` metres long in all, as in [BKF11]."""
    return PlanarArm(np.full(dof, reach / dof), base)


def nine_link_scene() -> tuple[PlanarArm, np.ndarray, np.ndarray, np.ndarray]:
    """-> (PlanarArm, rectangles (4, 4), start (9,), goal (9,)): nine links and four obstacles as in [BKF11].

    The paper does not print its obstacles and ends: these are ours. The arm, 1 m long, lies stretched to the right and
    is to lie to the left; on the way three rectangles above or one below leave it no room unless it folds.
    """
    rectangles = np.array(
        [[0.40, 0.30, 0.60, 0.50], [-0.10, 0.45, 0.10, 0.70], [-0.60, 0.30, -0.40, 0.50], [-0.15, -0.60, 0.15, -0.40]]
    )
    start, goal = np.zeros(9), np.zeros(9)
    goal[0] = 3.0
    return equal_links(9), rectangles, start, goal


class PlanarScratch(NamedTuple):
    """Picks the space for `motion_free`; a check keeps nothing. nothing: (1,) float32"""

    nothing: np.ndarray


class PlanarChecker(PlaneChecker):
    """Checks of a PlanarArm among rectangles; `interface` says what a checker has.

    obstacles: (O, 4) xmin, ymin, xmax, ymax, metres
    device: "auto", "cpu", "cuda" or "cuda:N"
    motion: modes "count" ([BKF11]: 100 parts), "joint" (rad) and "workspace" (metres)
    """

    def __init__(
        self,
        robot: PlanarArm,
        obstacles: ArrayLike = (),
        device: str = "auto",
        motion: MotionCheck = MotionCheck("count", 100),
    ) -> None:
        if motion.mode == "continuous":
            raise SettingsError("MotionCheck.mode is 'continuous'; allowed for a planar arm: count, joint, workspace")
        self.motion = motion
        super().__init__(robot, device, interface.PLANAR, PlanarScratch(np.zeros(1, dtype=np.float32)), motion_free)
        self.set_obstacles(obstacles)

    def set_obstacles(self, obstacles: ArrayLike) -> None:
        """Replace all rectangles, (O, 4) xmin, ymin, xmax, ymax in metres."""
        given = np.asarray(obstacles, dtype=np.float64).reshape(-1, 4) if np.size(obstacles) % 4 == 0 else None
        if given is None or not np.isfinite(given).all() or (given[:, :2] > given[:, 2:]).any():
            raise ObstacleError(
                f"rectangles are {obstacles!r}; allowed: rows of xmin, ymin, xmax, ymax, "
                "with xmin <= xmax and ymin <= ymax"
            )
        self.obstacles = given
        length = self.robot.lengths.sum()
        near = np.clip(given - np.tile(self.robot.base, 2), -2 * length, 2 * length)
        skin = 4 * ROUNDOFF * length
        doubled = np.concatenate([near[:, :2] + near[:, 2:], near[:, 2:] - near[:, :2] + 2 * skin], axis=1)
        floats = np.concatenate([self.robot.lengths, doubled.ravel() / 2]).astype(np.float32)
        self._set_scene(Packed(floats, np.array([self.robot.dof, len(given)], dtype=np.int32)))

    @property
    def arguments(self) -> dict[str, Any]:
        """What makes a checker like this one, but for the device."""
        return {"robot": self.robot, "obstacles": self.obstacles, "motion": self.motion}

    @property
    def motion_args(self) -> tuple[int, np.float32]:
        """(mode, step) as the compiled code takes them."""
        return self.motion.compiled

    def colliding_pairs(self, q: ArrayLike) -> list[tuple[str, str]]:
        """q: (dof,) -> [("link_i", "obstacle_j"), ...], counted from 1: one of the first i links meets it."""
        pairs = []
        for j, rectangle in enumerate(self.obstacles):
            for i in range(self.robot.dof):
                head = PlanarArm(self.robot.lengths[: i + 1], self.robot.base)
                alone = PlanarChecker(head, [rectangle], "cpu")
                if not alone.configurations_valid(np.asarray(q)[None, : i + 1])[0]:
                    pairs.append((f"link_{i + 1}", f"obstacle_{j + 1}"))
        return pairs


@lean_njit
def sine_cosine(x):
    """-> sin(x), cos(x) of a float32 up to some hundreds, within 2e-7: Cephes' polynomials after three-part reduction.

    The same arithmetic on both targets, and one reduction for both functions.
    """
    n = np.int32(x * TWO_OVER_PI + (HALF if x >= ZERO else -HALF))
    whole = np.float32(n)
    r = ((x - whole * QUARTER_1) - whole * QUARTER_2) - whole * QUARTER_3
    z = r * r
    s = r + r * z * (S_3 + z * (S_5 + z * S_7))
    c = ONE - HALF * z + z * z * (C_4 + z * (C_6 + z * C_8))
    if n & 1:
        s, c = c, -s
    if n & 2:
        s, c = -s, -c
    return s, c


@lean_njit
def rectangle(scene, links, i):
    """-> centre x, y, half width, half height."""
    floats, at = scene.floats, np.uintp(links + RECTANGLE * i)  # unsigned: no test for negative indices
    return floats[at], floats[at + U_1], floats[at + U_2], floats[at + U_3]


@lean_njit
def free_between(qa, qb, t, space):
    """Does no link meet a rectangle at qa + t (qb - qa)?"""
    links, rectangles = space.ints[LINKS], space.ints[RECTANGLES]
    x, y, angle = ZERO, ZERO, ZERO
    for k in range(links):
        angle += qa[k] + t * (qb[k] - qa[k])
        s, c = sine_cosine(angle)
        half = HALF * space.floats[k]
        dx, dy = half * c, half * s
        x, y = x + dx, y + dy  # the link's middle; (dx, dy): from there to its end
        wide, high = abs(dx), abs(dy)
        for i in range(rectangles):
            mx, my, hx, hy = rectangle(space, links, i)
            mx, my = mx - x, my - y
            if abs(mx) <= hx + wide and abs(my) <= hy + high and abs(mx * dy - my * dx) <= hx * high + hy * wide:
                return False
        x, y = x + dx, y + dy
    return True


@lean_njit
def motion_free(qa, qb, hint, space, lane):
    """`interface.motion_free`, whatever the hint. Points are taken from the end on, widely spread ones first."""
    for k in range(len(qa)):
        if not max(abs(qa[k]), abs(qb[k])) <= LARGEST:
            return False
    parts = motion_parts(qa, qb, space)
    turns = (parts >> 5) + 1
    for first in range(0, turns << 5, lane_count()):
        i = first + lane
        k = parts - (reversed_bits(i & 31) * turns + (i >> 5))
        if any_lane(k >= 0 and not free_between(qa, qb, np.float32(k) / np.float32(max(parts, 1)), space)):
            return False
    return True


@lean_njit
def reversed_bits(i):
    """The five bits of i in the opposite order."""
    return (i & 1) << 4 | (i & 2) << 2 | i & 4 | (i & 8) >> 2 | (i & 16) >> 4


@lean_njit
def motion_parts(qa, qb, space):
    """-> how many equal parts a motion is cut into, by the modes of MotionCheck."""
    mode, step = space.mode, space.step
    if mode == JOINT:
        length = ZERO
        for k in range(len(qa)):
            length += (qb[k] - qa[k]) * (qb[k] - qa[k])
        return max(int(math.ceil(math.sqrt(length) / step)), 1)
    if mode == WORKSPACE:  # no point moves farther than each joint's angle times what lies beyond it
        beyond, travel = ZERO, ZERO
        for i in range(space.ints[LINKS]):
            k = space.ints[LINKS] - 1 - i
            beyond += space.floats[k]
            travel += beyond * abs(qb[k] - qa[k])
        return max(int(math.ceil(travel / step)), 1)
    if mode == POINT:
        return 0
    return max(int(step), 1)


interface.register(PlanarScratch, "cpu", motion_free)
