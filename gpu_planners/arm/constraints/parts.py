"""The parts of a constraint: what each measures at a configuration, and what it proves along a motion.

A part measures a vector x(q): the position of a point, the rotation of a link, an axis, joint values. The motion goes
straight from q0 to q1, and x is known at both ends of an interval of it. In between, where t goes from 0 to 1 along the
interval,

    |x(t) - (1 - t) x(0) - t x(1)| <= K t (1 - t),     K = B / 2,

since B bounds the second derivative. So a function s of x that is convex, and changes by no more than x does, is at
most (1 - t) s(0) + t s(1) + K t (1 - t), whose greatest value `peak` gives. Of motions near the straight one, whose x
differs from its x by a `spare` at most, s is greater by that much at most. Where that is not positive, the interval
keeps s <= 0. The error falls with the square of the interval's length.

B of a point is M of `collision.closing` for the frames that carry it. A frame's axes turn by at most w = the sum of
|dq| over the frames that turn it, and the derivative of a fixed vector of the link by the values of two frames is
z_j x (z_k x v), so B of a unit vector of the link, and of any u . E v with unit vectors u, v and the link's rotation E,
is w^2. For the rotation vector phi of E, whose angle is 2 x,

    B = w^2 x / sin x (1 + (x / sin(x)^2 - cot x) / 2),

from phi' = J v of the angular velocity v, where J = 1 - [phi] / 2 + (1 - x cot x) [phi]^2 / (4 x^2) has the norm
x / sin x, and |v| <= w, |v'| <= w^2 / 2. It grows with x, and the angle itself changes by w at most.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from ..collision.reach import carrying_levers
from ..robot.model import RobotModel, poses_of_frames
from ..robot.tip import Tip
from .volume import MARGIN, MOST_MARGIN, Volume, Volumes

CONE = 2 / np.pi  # of the rotation vector's tolerance: an axis that tilts less keeps it whatever the turn about itself
STRAIGHT = 1e-9  # a sine below it has no direction


def peak(a: np.ndarray, b: np.ndarray, K: np.ndarray) -> np.ndarray:
    """The greatest value of (1 - t) a + t b + K t (1 - t) for t from 0 to 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = (a + b) / 2 + K / 4 + (b - a) ** 2 / (4 * K)
    return np.where(np.abs(b - a) < K, inside, np.maximum(a, b))


class Chain:
    """Frames that move a link, outermost first: all that do, or those that do not move another link too.

    tip: frame that carries the link; radius: metres from its origin, of the point that the levers are of
    """

    def __init__(self, robot: RobotModel, frames: ArrayLike, tip: int, radius: float) -> None:
        self.frames, self.tip = np.asarray(frames, dtype=int), tip
        rows = robot.frames[self.frames]
        self.joints, self.slides = rows["joint"], rows["prismatic"]
        self.multipliers = rows["multiplier"]
        self.columns = np.zeros((len(rows), robot.dof))
        self.columns[np.arange(len(rows)), rows["joint"]] = rows["multiplier"]
        carrying = carrying_levers(robot, tip, radius)
        known = {int(frame): lever for frame, lever in zip(carrying.frames, carrying.lever)}
        self.levers = np.array([known[int(frame)] for frame in self.frames])

    def turns(self, moves: np.ndarray) -> np.ndarray:
        """(N, F) rad by which each frame turns at most, of joints that move by |dq| (N, dof)."""
        return moves[:, self.joints] * np.abs(self.multipliers * ~self.slides)

    def rates(self) -> np.ndarray:
        """(dof,) metres that the point moves at most for a unit of each joint."""
        return np.eye(self.columns.shape[1])[:, self.joints] @ (np.abs(self.multipliers) * self.levers)

    def bends(self, moves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(N,) bounds of the second and the third derivative of the point."""
        turns, ways = self.turns(moves), moves[:, self.joints] * np.abs(self.multipliers) * self.levers
        outer = np.cumsum(turns, axis=1) - turns
        second = (ways * (turns + 2 * outer)).sum(axis=1)
        return second, (ways * (turns**2 + 3 * turns * outer + 3 * outer**2)).sum(axis=1)

    def speeds(self, poses: np.ndarray, p: np.ndarray) -> np.ndarray:
        """(N, F, 3) by how much each frame moves points p (N, 3). poses: (N, all frames, 4, 4)"""
        own = poses[:, self.frames]
        axes = own[:, :, :3, 2]
        return np.where(self.slides[:, None], axes, np.cross(axes, p[:, None] - own[:, :, :3, 3]))

    def axes(self, poses: np.ndarray) -> np.ndarray:
        """(N, F, 3) by how much each frame turns the link."""
        return np.where(self.slides[:, None], 0.0, poses[:, self.frames][:, :, :3, 2])

    def acceleration(self, poses: np.ndarray, p: np.ndarray, way: np.ndarray) -> np.ndarray:
        """(N, 3) second derivative of points p (N, 3) along joint motions (N, dof)."""
        rates = (way[:, self.joints] * self.multipliers)[:, :, None]
        moved, turned = rates * self.speeds(poses, p), rates * self.axes(poses)
        inner = moved[:, ::-1].cumsum(axis=1)[:, ::-1] - moved
        return np.cross(turned, moved + 2 * inner).sum(axis=1)


class LinkPart:
    """What parts that watch a link share. Measures come with the Jacobian that the part's slopes are by.

    radius: metres from the origin of the frame that carries the link, of the point that is watched
    """

    def __init__(self, robot: RobotModel, link: str, radius: float = 0.0) -> None:
        self.robot, self.link, self.tip = robot, link, Tip(robot, link)
        index = robot.link_index(link)
        self.frame, self.T_frame_link = int(robot.link_frame[index]), robot.T_frame_link[index]
        self.chain = Chain(robot, self.tip.frames, self.frame, radius)

    def _placed(self, q):
        """Poses (N, all frames, 4, 4) of the frames that carry the link, and (N, 4, 4) its own."""
        poses = poses_of_frames(self.robot, q, self.tip.frames)
        return poses, poses[:, self.frame] @ self.T_frame_link

    def _turned(self, moves):
        """(N,) rad by which the link turns at most, of joints that move by |dq| (N, dof)."""
        return self.chain.turns(moves).sum(axis=1)

    @property
    def rates(self) -> np.ndarray:
        """(dof,) by how much x changes at most for a unit of each joint."""
        return self._turned(np.eye(self.robot.dof))

    def _spin(self, poses):
        """(N, 3, dof) angular velocity of the link for a unit of each joint, root frame."""
        return self.chain.axes(poses).transpose(0, 2, 1) @ self.chain.columns


class PointPart(LinkPart):
    """A point of a link in one of some volumes. x: (3,) metres, root frame"""

    def __init__(self, robot: RobotModel, link: str, point: np.ndarray, volumes: tuple[Volume, ...]) -> None:
        index = robot.link_index(link)
        in_frame = robot.T_frame_link[index, :3, :3] @ point + robot.T_frame_link[index, :3, 3]
        super().__init__(robot, link, float(np.linalg.norm(in_frame)))
        self.point, self.volumes, self._region = point, volumes, Volumes(volumes)

    @property
    def rates(self) -> np.ndarray:
        """(dof,) by how much x changes at most for a unit of each joint."""
        return self.chain.rates()

    def measure(self, q: np.ndarray) -> np.ndarray:
        T = self._placed(q)[1]
        return T[:, :3, :3] @ self.point + T[:, :3, 3]

    def measure_and_slope(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        poses, T = self._placed(q)
        p = T[:, :3, :3] @ self.point + T[:, :3, 3]
        return p, self.chain.speeds(poses, p).transpose(0, 2, 1) @ self.chain.columns

    def excess(self, x: np.ndarray) -> np.ndarray:
        return self._region.outside(x).max(axis=2).min(axis=0)

    def bound(self, moves: np.ndarray, a: np.ndarray, b: np.ndarray, spare: float = 0.0) -> np.ndarray:
        K = self.chain.bends(moves)[0] / 2
        return peak(self._region.outside(a), self._region.outside(b), K[:, None]).max(axis=2).min(axis=0) + spare

    def pull(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        outside, rows = self._region.outside(x), np.arange(len(x))
        nearest = outside.max(axis=2).argmin(axis=0)
        values, margins = outside[nearest, rows], self._region.margins[nearest]
        return values, np.broadcast_to(margins[:, None], values.shape), self._region.slopes(x, nearest)

    def told(self, q: np.ndarray) -> str:
        away = float(self.excess(self.measure(q[None]))[0])
        return f"the constrained point of link '{self.link}' is {away:.3g} m outside of its region"


class TiltPart(LinkPart):
    """An axis of a link within an angle of a direction. x: (3,) the axis in the root frame"""

    def __init__(self, robot: RobotModel, link: str, axis: np.ndarray, direction: np.ndarray, tolerance: float) -> None:
        super().__init__(robot, link)
        self.axis, self.direction, self.tolerance = axis, direction, tolerance
        self.margin = min(MARGIN * tolerance, MOST_MARGIN)

    def measure(self, q: np.ndarray) -> np.ndarray:
        return self._placed(q)[1][:, :3, :3] @ self.axis

    def measure_and_slope(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        poses, T = self._placed(q)
        return T[:, :3, :3] @ self.axis, self._spin(poses)

    def tilts(self, x: np.ndarray) -> np.ndarray:
        return np.arctan2(np.linalg.norm(np.cross(x, self.direction), axis=1), x @ self.direction)

    def excess(self, x: np.ndarray) -> np.ndarray:
        return self.tilts(x) - self.tolerance

    def bound(self, moves: np.ndarray, a: np.ndarray, b: np.ndarray, spare: float = 0.0) -> np.ndarray:
        return tilt_bound(self._turned(moves), self.tilts(a), self.tilts(b), self.tolerance) + spare

    def pull(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        across = np.cross(self.direction, x)
        sines = np.linalg.norm(across, axis=1)[:, None]
        slopes = across / np.maximum(sines, STRAIGHT)
        return self.excess(x)[:, None], np.full((len(x), 1), self.margin), slopes[:, None]

    def told(self, q: np.ndarray) -> str:
        tilt = float(self.tilts(self.measure(q[None]))[0])
        return f"'{self.link}' tilts by {tilt:.4g} rad; allowed: {self.tolerance:g}"


def tilt_bound(turned: np.ndarray, a: np.ndarray, b: np.ndarray, tolerance: float) -> np.ndarray:
    """What a tilt exceeds a tolerance by at most, where it is a and b (N,) rad at the ends of an interval."""
    linear = (a + b + turned) / 2 - tolerance
    if tolerance >= np.pi / 2:
        return linear
    # |the part of the axis across the direction| is convex; below 1 the axis stays on the direction's side
    convex = peak(np.sin(a) - np.sin(tolerance), np.sin(b) - np.sin(tolerance), turned**2 / 2)
    return np.where(np.maximum(a, b) < np.pi / 2, np.minimum(linear, convex), linear)


def bent(half: np.ndarray, turned: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(N,) bool: do rotation vectors have a bound on their second derivative? and (N,) K of it where they do.

    half: (N,) rad, of their angles at most; turned: (N,) rad, by how much the rotation changes at most
    """
    smooth = half < np.pi / 2 * (1 - 1e-9)
    half = np.where(smooth, np.maximum(half, 1e-4), 1.0)
    bend = half / np.sin(half) * (1 + (half / np.sin(half) ** 2 - 1 / np.tan(half)) / 2)
    return smooth, turned**2 * bend / 2


class TurnPart(LinkPart):
    """A link turned from a rotation by angles within tolerances. x: (3, 3) its rotation in the wanted one's frame

    R_link_frame: (3, 3) of what is constrained, in the link's frame; wanted: (3, 3) its rotation in the root frame
    tolerances: (3,) rad about x, y and z of the wanted rotation's frame; limits: is there one that can be exceeded?
    euler: they are of its Euler angles about x, y, z in turn, else of the rotation vector
    """

    def __init__(
        self,
        robot: RobotModel,
        link: str,
        R_link_frame: np.ndarray,
        wanted: np.ndarray,
        tolerances: np.ndarray,
        euler: bool,
    ) -> None:
        super().__init__(robot, link)
        self.R_link_frame, self.wanted, self.tolerances, self.euler = R_link_frame, wanted, tolerances, euler
        self.margins = np.minimum(MARGIN * tolerances, MOST_MARGIN)
        # the middle Euler angle never exceeds a quarter turn
        self.limited = np.flatnonzero(tolerances < [np.pi, np.pi / 2 if euler else np.pi, np.pi])
        free = np.setdiff1d(np.arange(3), self.limited)
        self.limits = bool(len(self.limited))
        self.cone = None if euler or len(free) != 1 else int(free[0])

    def measure(self, q: np.ndarray) -> np.ndarray:
        return self.wanted.T @ self._placed(q)[1][:, :3, :3] @ self.R_link_frame

    def measure_and_slope(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        poses, T = self._placed(q)
        return self.wanted.T @ T[:, :3, :3] @ self.R_link_frame, self.wanted.T @ self._spin(poses)

    def angles(self, x: np.ndarray) -> np.ndarray:
        """(N, 3) rad."""
        if not self.euler:
            return Rotation.from_matrix(x).as_rotvec()
        middle = np.arcsin(np.clip(x[:, 0, 2], -1, 1))
        return np.stack([np.arctan2(-x[:, 1, 2], x[:, 2, 2]), middle, np.arctan2(-x[:, 0, 1], x[:, 0, 0])], axis=1)

    def excess(self, x: np.ndarray) -> np.ndarray:
        off = np.abs(self.angles(x)) - self.tolerances
        return off[:, self.limited].max(axis=1)

    def bound(self, moves: np.ndarray, a: np.ndarray, b: np.ndarray, spare: float = 0.0) -> np.ndarray:
        turned = self._turned(moves)
        return self._euler_bound(turned, a, b) + spare if self.euler else self._vector_bound(turned, a, b, spare)

    def _euler_bound(self, turned, a, b):
        """Of linear functions of x, one or two for each angle: r sin(angle - tolerance) and r sin(-angle - tolerance),
        where r > 0. Both are needed below a quarter turn; above it, either will do."""
        K, found = turned**2 / 2, []
        for k in self.limited:
            tolerance = self.tolerances[k]
            s, c = np.sin(tolerance), np.cos(tolerance)
            i, j, m, n = {0: (1, 2, 2, 2), 1: (0, 2, 0, 0), 2: (0, 1, 0, 0)}[int(k)]
            sides = []
            for sign in (1.0, -1.0):
                if k == 1:
                    at = [sign * x[:, 0, 2] - s for x in (a, b)]
                else:
                    at = [-sign * c * x[:, i, j] - s * x[:, m, n] for x in (a, b)]
                sides.append(peak(*at, K))
            found.append(np.minimum(*sides) if tolerance >= np.pi / 2 else np.maximum(*sides))
        return np.max(found, axis=0)

    def _vector_bound(self, turned, a, b, spare):
        at_a, at_b = self.angles(a), self.angles(b)
        half = (np.linalg.norm(at_a, axis=1) + np.linalg.norm(at_b, axis=1) + turned) / 4 + spare / 2
        smooth, bend = bent(half, turned)
        K = bend[:, None]
        some, tolerances = self.limited, self.tolerances[self.limited]
        sides = [peak(s * at_a[:, some] - tolerances, s * at_b[:, some] - tolerances, K) for s in (1.0, -1.0)]
        found = np.where(smooth, np.maximum(*sides).max(axis=1) + np.pi / 2 * spare, np.inf)  # |J| is pi / 2 at most
        if self.cone is None:
            return found
        # half a turn about the free axis: a tilt below the cone's keeps the vector there
        tilts = [np.arccos(np.clip(x[:, self.cone, self.cone], -1, 1)) for x in (a, b)]
        return np.minimum(found, tilt_bound(turned, *tilts, CONE * float(tolerances.min())) + spare)

    def pull(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        angles, some = self.angles(x), self.limited
        values = np.abs(angles[:, some]) - self.tolerances[some]
        slopes = np.sign(angles)[:, :, None] * (_euler_rates(angles) if self.euler else vector_rates(angles))
        return values, np.broadcast_to(self.margins[some], values.shape), slopes[:, some]

    def told(self, q: np.ndarray) -> str:
        angles = self.angles(self.measure(q[None]))[0]
        how = "Euler angles" if self.euler else "a rotation vector"
        allowed = [float(f"{each:.4g}") for each in self.tolerances]
        return f"link '{self.link}' is turned by {how} {angles.round(4).tolist()} rad; allowed: up to {allowed}"


def vector_rates(phi):
    """(N, 3, 3) rates of rotation vectors (N, 3) for angular velocities in the frame that they are given in."""
    half = np.linalg.norm(phi, axis=1) / 2
    small = half < 1e-4
    with np.errstate(divide="ignore", invalid="ignore"):
        third = np.where(small, 1 / 12, (1 - half / np.tan(np.minimum(half, np.pi / 2))) / (4 * half**2))
    skew = _skew(phi)
    return np.eye(3) - skew / 2 + third[:, None, None] * (skew @ skew)


def _euler_rates(angles):
    """(N, 3, 3) rates of its Euler angles about x, y, z in turn (N, 3) for angular velocities in the fixed frame."""
    sx, cx, sy, cy = (f(angles[:, k]) for k in (0, 1) for f in (np.sin, np.cos))
    cy = np.maximum(cy, 1e-3)  # near a quarter turn the rates have no bound
    zero, one = np.zeros_like(sx), np.ones_like(sx)
    rows = [[one, sx * sy / cy, -cx * sy / cy], [zero, cx, sx], [zero, -sx / cy, cx / cy]]
    return np.array(rows).transpose(2, 0, 1)


def _skew(v):
    x, y, z = v.T
    zero = np.zeros_like(x)
    return np.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]]).transpose(2, 0, 1)


class JointPart:
    """A joint between two values; of one that turns without end, at any number of turns. x: (1,) rad or m"""

    def __init__(self, robot: RobotModel, joint: int, lower: float, upper: float) -> None:
        self.robot, self.joint = robot, joint
        self.endless = bool(robot.continuous[joint]) and upper - lower < 2 * np.pi
        if robot.continuous[joint] and not self.endless:  # each value lies between them, at some turn
            lower, upper = -np.inf, np.inf
        self.lower, self.upper = lower, upper
        self.centre = (lower + upper) / 2 if np.isfinite([lower, upper]).all() else 0.0
        self.margin = min(MARGIN * (upper - lower) / 2, MOST_MARGIN)
        self._slope = np.zeros((1, robot.dof))
        self._slope[0, joint] = 1.0
        self.rates = self._slope[0]

    def measure(self, q: np.ndarray) -> np.ndarray:
        value = q[:, self.joint]
        if self.endless:
            value = value - 2 * np.pi * np.round((value - self.centre) / (2 * np.pi))
        return value[:, None]

    def measure_and_slope(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.measure(q), np.broadcast_to(self._slope, (len(q), 1, self.robot.dof))

    def excess(self, x: np.ndarray) -> np.ndarray:
        return np.maximum(x[:, 0] - self.upper, self.lower - x[:, 0])

    def bound(self, moves: np.ndarray, a: np.ndarray, b: np.ndarray, spare: float = 0.0) -> np.ndarray:
        proven = np.maximum(self.excess(a), self.excess(b)) + spare
        if not self.endless:
            return proven
        # both ends are on the same turn where the way is shorter than the gap between two turns
        gap = 2 * np.pi - (self.upper - self.lower)
        return np.where(moves[:, self.joint] < gap, proven, np.inf)

    def pull(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        values = np.stack([x[:, 0] - self.upper, self.lower - x[:, 0]], axis=1)
        slopes = np.broadcast_to(np.array([[1.0], [-1.0]]), (len(x), 2, 1))
        return values, np.full(values.shape, self.margin), slopes

    def told(self, q: np.ndarray) -> str:
        name, value = self.robot.joint_names[self.joint], self.measure(q[None])[0, 0]
        return f"joint '{name}' is at {value:.4g}; allowed: {self.lower:g} to {self.upper:g}"
