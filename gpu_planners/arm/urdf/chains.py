"""The joints between two bodies of a robot, many pairs of bodies at a time, in NumPy.

All joints that can move do, whether they are planned or not; RobotModel's frames know only those that are planned.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .urdf_xml import Description, Joint

BEYOND = 1e-3  # rad or m that a joint may stand beyond its limits


class Chains(NamedTuple):
    """N ways of up to K joints from a body a to a body b: T_a_b = E[0] M[0] E[1] M[1] ... M[K - 1] E[K], metres.

    E: (N, K + 1, 4, 4) constant; M turns about, or slides along, axis (N, K, 3) through the origin by
        multiplier * variable + offset, rad or m
    slides: (N, K) bool; multiplier, offset: (N, K), both 0 behind the end of a shorter way
    column: (N, K) which of the way's own variables; middle, half: (N, K) of the variables' ranges
    """

    E: np.ndarray
    axis: np.ndarray
    slides: np.ndarray
    multiplier: np.ndarray
    offset: np.ndarray
    column: np.ndarray
    middle: np.ndarray
    half: np.ndarray

    def of(self, which: np.ndarray) -> "Chains":
        """Some of them, no longer than the longest of these is."""
        k = int((self.multiplier[which] != 0).any(axis=0).sum())
        return Chains(self.E[which, : k + 1], *(field[which, :k] for field in self[1:]))

    @property
    def joints(self) -> np.ndarray:
        """(N,) how many each has."""
        return (self.multiplier != 0).sum(axis=1)

    def placed(self, middle: np.ndarray, half: np.ndarray) -> "Placed":
        """The variables stand in the middle (N, K) of ranges of +-half (N, K)."""
        values = self.multiplier * np.take_along_axis(middle, self.column, 1) + self.offset
        moves = self.multiplier != 0
        spans = np.where(moves, np.take_along_axis(half, self.column, 1), 0.0) * np.abs(self.multiplier)
        angles = np.where(self.slides, 0.0, values)[..., None, None]
        cross, (x, y, z) = np.zeros((*values.shape, 3, 3)), np.moveaxis(self.axis, -1, 0)
        cross[..., 0, 1], cross[..., 0, 2], cross[..., 1, 2] = -z, y, -x
        cross -= np.swapaxes(cross, -1, -2)
        T = np.zeros((*values.shape, 4, 4))
        T[..., :3, :3] = np.eye(3) + np.sin(angles) * cross + (1 - np.cos(angles)) * (cross @ cross)  # Rodrigues
        T[..., :3, 3] = np.where(self.slides, values, 0.0)[..., None] * self.axis
        T[..., 3, 3] = 1.0
        return Placed(self.E, self.axis, self.slides, spans, T)


class Placed(NamedTuple):
    """Chains whose joints stand somewhere: M: (N, K, 4, 4) what they do there; half: (N, K) rad or m to either side
    that they may move on."""

    E: np.ndarray
    axis: np.ndarray
    slides: np.ndarray
    half: np.ndarray
    M: np.ndarray

    def pose(self) -> np.ndarray:
        """(N, 4, 4) T_a_b."""
        T = self.E[:, 0]
        for i in range(self.M.shape[1]):
            T = T @ self.M[:, i] @ self.E[:, i + 1]
        return T

    def levers(self, centre: np.ndarray, radius: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of balls at the far ends, (N, 3) and (N,) in b's frame: -> (N, K) how many metres a point of them moves for a
        rad or m of a joint, at most, wherever the joints beyond it stand; and the balls in a's frame, (N, 3) and (N,),
        that hold them wherever all joints stand."""
        levers = np.ones_like(self.half)
        for i in reversed(range(levers.shape[1])):
            centre = seen_from(self.E[:, i + 1], centre)
            levers[:, i], foot, radius = self._swung(i, centre, radius)
            centre = np.where(np.isnan(foot), seen_from(self.M[:, i], centre), foot)
        return levers, seen_from(self.E[:, 0], centre), radius

    def levers_of_near(self, centre: np.ndarray, radius: np.ndarray) -> np.ndarray:
        """(N, K): the same of balls at the near ends, in a's frame."""
        levers = np.ones_like(self.half)
        for i in range(levers.shape[1]):
            centre = _seen_in(self.E[:, i], centre)
            levers[:, i], foot, radius = self._swung(i, centre, radius)
            centre = np.where(np.isnan(foot), _seen_in(self.M[:, i], centre), foot)
        return levers

    def _swung(self, i, centre, radius):
        """Joint i moves balls: -> (their levers (N,), where their centres' feet on its axis are the better centre these
        (N, 3), else NaN, the radii (N,) of balls that hold them then)."""
        axis, slides, half = self.axis[:, i], self.slides[:, i], self.half[:, i]
        foot = np.einsum("ni,ni->n", axis, centre)[:, None] * axis
        away = np.sqrt(((centre - foot) ** 2).sum(axis=1))
        swing = np.where(slides, half, 2 * away * np.sin(np.minimum(half, np.pi) / 2))
        about = ~slides & (away < swing)
        foot[~about] = np.nan
        return np.where(slides, 1.0, away + radius), foot, radius + np.where(about, away, swing)


def seen_from(T: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points (N, 3) in frames where their own frames stand at T (N, 4, 4)."""
    return np.einsum("nij,nj->ni", T[:, :3, :3], points) + T[:, :3, 3]


def _seen_in(T, points):
    """Points (N, 3) in frames that stand at T (N, 4, 4) where the points' own do not."""
    return np.einsum("nji,nj->ni", T[:, :3, :3], points - T[:, :3, 3])


class Bodies:
    """A robot's links, where those that fixed joints join are one body: -1 the root's, else the moving joint's number.

    of: {link: body}; T_body_link: {link: (4, 4) metres}
    """

    def __init__(self, description: Description) -> None:
        self.of, self.T_body_link = {description.root: -1}, {description.root: np.eye(4)}
        self._joints: list[Joint] = []
        self._parent: list[int] = []
        self._T_parent: list[np.ndarray] = []  # where the joint's value is 0
        self._drive: list[tuple[str, float, float]] = []  # (variable, multiplier, offset)
        self._neutral: list[float] = []  # the joint's value, rad or m
        self._ranges: dict[str, tuple[float, float]] = {}  # of the variables
        for joint in description.joints.values():
            body, T = self.of[joint.parent], self.T_body_link[joint.parent] @ joint.T_parent_joint
            if joint.kind.plannable:
                self._add(joint, body, T, description)
                body, T = len(self._joints) - 1, np.eye(4)
            self.of[joint.child], self.T_body_link[joint.child] = body, T

    def _add(self, joint, parent, T_parent, description):
        leader, multiplier, offset = joint.mimic or (joint.name, 1.0, 0.0)
        low, high = sorted(description.joints[leader].range)
        self._neutral.append(multiplier * float(np.clip(0.0, low, high)) + offset)
        low, high = low - BEYOND, high + BEYOND
        way = abs(multiplier) * (high - low) if multiplier else 0.0
        if way == 0 or (way >= 2 * np.pi and not joint.kind.slides):
            low, high = (offset, offset) if way == 0 else (-np.pi, np.pi)  # anywhere, whatever its leader does
            leader, multiplier, offset = f"{joint.name}, alone", 1.0, 0.0
        self._ranges[leader] = low, high
        self._drive.append((leader, multiplier, offset))
        self._joints.append(joint)
        self._parent.append(parent)
        self._T_parent.append(T_parent)

    def _up(self, body):
        """The joints from a body up to the root."""
        while body >= 0:
            yield body
            body = self._parent[body]

    def _steps(self, a, b):
        """[(joint, is it passed from the child's side?)] on the way from body a to body b."""
        up, down = list(self._up(a)), list(self._up(b))
        while up and down and up[-1] == down[-1]:
            up.pop()
            down.pop()
        return [(j, True) for j in up] + [(j, False) for j in reversed(down)]

    def chains(self, pairs: Sequence[tuple[int, int]]) -> tuple[Chains, np.ndarray]:
        """The Chains of pairs of bodies, and the variables (N, K) of the neutral pose, where each joint stands at 0 or
        at the limit nearest to 0."""
        ways = [self._steps(a, b) for a, b in pairs]
        n, k = len(pairs), max(map(len, ways), default=0)
        E = np.broadcast_to(np.eye(4), (n, k + 1, 4, 4)).copy()
        axis = np.broadcast_to([1.0, 0, 0], (n, k, 3)).copy()
        slides, column = np.zeros((n, k), bool), np.zeros((n, k), int)
        multiplier, offset, middle, half, neutral = np.zeros((5, n, k))
        T_child = [np.linalg.inv(T) for T in self._T_parent]
        for row, way in enumerate(ways):
            known: dict[str, int] = {}
            for i, (j, up) in enumerate(way):
                joint, (variable, *drive) = self._joints[j], self._drive[j]
                axis[row, i], slides[row, i] = -joint.axis if up else joint.axis, joint.kind.slides
                if up:
                    E[row, i + 1] = T_child[j]
                else:
                    E[row, i] = E[row, i] @ self._T_parent[j]
                multiplier[row, i], offset[row, i] = drive
                at = column[row, i] = known.setdefault(variable, len(known))
                low, high = self._ranges[variable]
                bounded = np.isfinite(low) and np.isfinite(high)
                middle[row, at], half[row, at] = ((low + high) / 2, (high - low) / 2) if bounded else (0.0, np.inf)
                neutral[row, at] = (self._neutral[j] - drive[1]) / drive[0]
        return Chains(E, axis, slides, multiplier, offset, column, middle, half), neutral
