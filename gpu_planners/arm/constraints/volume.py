"""Convex volumes for a point of a link: what they are bounded by, and how far outside a point is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import ConvexHull, QhullError

from ...arguments import checked, number, numbers
from ...errors import SettingsError, shown

LEAST = 1e-4  # metres: thinner volumes are refused, since straight joint motions cannot be proven to stay in them
FARTHEST = 1e6  # metres
NEVER = 1e12  # metres: a side so far away that no point is beyond it
MARGIN = 0.5  # of a volume's half width: how deep inside it projected points lie,
MOST_MARGIN = 0.05  # metres, at most


@dataclass(frozen=True, eq=False)
@checked()
class Volume:
    """A convex volume; make one by `box`, `sphere`, `cylinder`, `cone`, `hull` or `bounded`.

    pose: (4, 4) of its frame in the root frame, metres
    planes: (F, 4) outward normals and offsets of the planes that bound it: n . p + d <= 0
    rounds: (K, 3) a, b, d of surfaces about its z axis: a |(x, y)| + b z + d <= 0, where a^2 + b^2 = 1 and a > 0
    radius: of a sphere about its origin that bounds it, or inf
    margin: metres inside that projections aim at
    """

    pose: np.ndarray
    planes: np.ndarray
    rounds: np.ndarray
    radius: float
    margin: float

    @property
    def farthest_side(self) -> float:
        """Metres from the frame's origin, of the side that is farthest from it."""
        ball = self.radius if np.isfinite(self.radius) else 0.0
        return float(np.abs([*self.planes[:, 3], *self.rounds[:, 2], ball]).max())

    @staticmethod
    def box(lower: ArrayLike, upper: ArrayLike, pose: ArrayLike = np.eye(4)) -> "Volume":
        """Between lower and upper (3,) of the frame, metres; -inf or inf where it does not end."""
        low, high = (numbers(n, v, (3,), finite=False).astype(float) for n, v in (("lower", lower), ("upper", upper)))
        if not (high - low >= LEAST).all() or not (low < FARTHEST).all() or not (high > -FARTHEST).all():
            text = f"lower is {low.tolist()} and upper is {high.tolist()}"
            raise SettingsError(f"{text}; allowed: upper above lower by {LEAST:g} m or more")
        planes = [
            [*sign * axis, -sign * end]
            for sign, ends in ((1.0, high), (-1.0, low))
            for axis, end in zip(np.eye(3), ends)
            if np.isfinite(end)
        ]
        if not planes:
            raise SettingsError("lower and upper bound nothing; allowed: a finite number among them")
        return _made(pose, planes, width=float((high - low).min()) / 2)

    @staticmethod
    def sphere(radius: float, pose: ArrayLike = np.eye(4)) -> "Volume":
        """About the frame's origin, metres."""
        return _made(pose, (), radius=_length("radius", radius), width=radius)

    @staticmethod
    def cylinder(radius: float, height: float, pose: ArrayLike = np.eye(4)) -> "Volume":
        """About the frame's z axis, from -height / 2 to height / 2, metres."""
        radius, half = _length("radius", radius), _length("height", height) / 2
        ends = [[0, 0, 1, -half], [0, 0, -1, -half]]
        return _made(pose, ends, [[1.0, 0.0, -radius]], width=min(radius, half))

    @staticmethod
    def cone(radius: float, height: float, pose: ArrayLike = np.eye(4)) -> "Volume":
        """About the frame's z axis, its base at -height / 2, its tip at height / 2, metres."""
        radius, height = _length("radius", radius), _length("height", height)
        slope = np.hypot(radius, height)
        side = [height / slope, radius / slope, -radius * height / 2 / slope]
        return _made(pose, [[0, 0, -1, -height / 2]], [side], width=radius * height / 2 / slope)

    @staticmethod
    def hull(vertices: ArrayLike, pose: ArrayLike = np.eye(4)) -> "Volume":
        """The convex hull of points (V, 3) of the frame, metres."""
        points = numbers("vertices", vertices, (None, 3)).astype(float)
        try:
            faces = ConvexHull(points).equations
        except (QhullError, ValueError) as error:
            raise SettingsError("vertices span no volume; allowed: four or more that are not in a plane") from error
        T, middle = rigid("pose", pose), points.mean(axis=0)
        faces[:, 3] += faces[:, :3] @ middle
        T[:3, 3] += T[:3, :3] @ middle
        return Volume.bounded(faces, T)

    @staticmethod
    def bounded(planes: ArrayLike, pose: ArrayLike = np.eye(4)) -> "Volume":
        """Where n . p + d <= 0 for planes (F, 4) n, d: outward unit normals, metres; the frame's origin is inside."""
        sides = np.unique(numbers("planes", planes, (None, 4)).astype(float), axis=0)
        if not len(sides) or np.abs(np.linalg.norm(sides[:, :3], axis=1) - 1).max() > 1e-6:
            raise SettingsError("planes have no unit normals; allowed: one plane or more, n of length 1")
        if (depth := float(-sides[:, 3].max())) < LEAST / 2:
            raise SettingsError(f"planes leave {2 * depth:.3g} m about the origin; allowed: {LEAST:g} m or more")
        return _made(pose, sides, width=depth)


class Volumes:
    """Volumes side by side: what has fewer sides than another one has some that no point is beyond."""

    def __init__(self, volumes: Sequence[Volume]) -> None:
        poses = np.array([volume.pose for volume in volumes])
        self._rotations, self._origins = poses[:, :3, :3], poses[:, :3, 3]
        self._planes = _padded([volume.planes for volume in volumes], 4)
        self._rounds = _padded([volume.rounds for volume in volumes], 3)
        self._radii = np.minimum([volume.radius for volume in volumes], NEVER)
        self.margins = np.array([volume.margin for volume in volumes])

    def outside(self, points: np.ndarray) -> np.ndarray:
        """(V, N, sides) metres by which points (N, 3) of the root frame are beyond each side of each volume; negative
        inside. Each is a convex function of the point that changes by no more than the point moves."""
        p = (points - self._origins[:, None]) @ self._rotations
        planes, rounds = self._planes[:, None], self._rounds[:, None]
        across, up = np.hypot(p[:, :, 0], p[:, :, 1])[:, :, None], p[:, :, 2:]
        flat = p @ self._planes[:, :, :3].transpose(0, 2, 1) + planes[..., 3]
        round_ = across * rounds[..., 0] + up * rounds[..., 1] + rounds[..., 2]
        ball = np.linalg.norm(p, axis=2)[:, :, None] - self._radii[:, None, None]
        return np.concatenate([flat, round_, ball], axis=2)

    def slopes(self, points: np.ndarray, which: np.ndarray) -> np.ndarray:
        """(N, sides, 3) gradients, root frame, of `outside` of volume which[i] at point i. which: (N,) int"""
        R, rounds = self._rotations[which], self._rounds[which]
        p = ((points - self._origins[which])[:, None] @ R)[:, 0]
        ways = p * [1.0, 1.0, 0.0]
        ways /= np.maximum(np.linalg.norm(ways, axis=1), 1e-12)[:, None]
        round_ = ways[:, None] * rounds[:, :, :1] + rounds[:, :, 1:2] * [0.0, 0.0, 1.0]
        ball = (p / np.maximum(np.linalg.norm(p, axis=1), 1e-12)[:, None])[:, None]
        return np.concatenate([self._planes[which][:, :, :3], round_, ball], axis=1) @ R.transpose(0, 2, 1)


def _padded(rows, width):
    """(V, most, width) of V arrays (k, width): those that are missing are 0, and NEVER outside."""
    found = np.zeros((len(rows), max(map(len, rows)), width))
    found[:, :, -1] = -NEVER
    for k, each in enumerate(rows):
        found[k, : len(each)] = each
    return found


def rigid(name: str, pose: ArrayLike) -> np.ndarray:
    """A pose (4, 4); SettingsError, which names it, where it is none."""
    T = numbers(name, pose, (4, 4)).astype(float)
    if not np.array_equal(T[3], [0, 0, 0, 1]) or np.abs(T).max() > FARTHEST:
        raise SettingsError(f"{name} is {shown(T.tolist())}; allowed: the last row is 0, 0, 0, 1; finite metres")
    rotation(name, T[:3, :3])
    return T


def rotation(name: str, matrix: ArrayLike) -> np.ndarray:
    """A rotation (3, 3); SettingsError, which names it, where it is none."""
    R = numbers(name, matrix, (3, 3)).astype(float)
    if np.abs(R @ R.T - np.eye(3)).max() > 1e-6 or np.linalg.det(R) < 0:
        raise SettingsError(f"{name} is {shown(R.tolist())}; allowed: a rotation, orthogonal and right-handed")
    return R


def _length(name: str, value: float) -> float:
    return number(name, value, LEAST, FARTHEST, " m")


def _made(pose: ArrayLike, planes: Any, rounds: Sequence = (), radius: float = np.inf, width: float = np.inf) -> Volume:
    flat, turned = np.array(planes, dtype=float).reshape(-1, 4), np.array(rounds, dtype=float).reshape(-1, 3)
    return Volume(rigid("pose", pose), flat, turned, radius, min(MARGIN * width, MOST_MARGIN))
