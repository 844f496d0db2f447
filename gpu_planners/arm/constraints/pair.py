"""The parts of a constraint on the pose of one link in the frame of another, as of two hands that hold one object: a
closed kinematic chain.

Of links A and B, whose pose in A's frame should be W, seen in the frame of the joint that carries both,

    d = p - p',     p the origin of B, p' the point of A at W's position

is as long as B's origin is off in A's frame, and each of p and p' is a point of a link, whose levers are those of its
own chain: that of the other does not come in. d's second derivative along a straight motion is known at both ends of an
interval, and the third one is bounded by

    C = sum over the frames c that carry the point, of v_c (w_c^2 + 3 w_c W_c + 3 W_c^2),

v_c: the most that frame c moves it; w_c: by how much it turns; W_c: by how much all frames turn that carry c; all on
the whole interval. So in `parts` B is at most the greater of the lengths of d'' at both ends, and C / 2 more. This is
some times less than what the levers alone give, since joints work against each other.

The rotation is that of E = W' A' B, which both chains turn; see `parts.TurnPart`. The length of a convex function's
vector is convex, so `peak` holds for |d|, and for the angle of E.
"""

from collections.abc import Iterable

import numpy as np
from scipy.spatial.transform import Rotation

from ...errors import RobotDescriptionError
from ..robot.model import RobotModel, poses_of_frames
from ..robot.modified_dh import path_to_root
from .parts import Chain, JointPart, PointPart, TiltPart, TurnPart, bent, peak, vector_rates

AIM = 0.2  # of a tolerance: projected configurations have each coordinate within half of that


class PairPart:
    """What both parts share.

    W: (4, 4) wanted pose of `other` in `link`'s frame, metres; tolerance: m or rad; frames: those that carry either
    """

    def __init__(self, robot: RobotModel, link: str, other: str, W: np.ndarray, tolerance: float) -> None:
        self.robot, self.link, self.other, self.W, self.tolerance = robot, link, other, W, tolerance
        indices = [robot.link_index(each) for each in (link, other)]
        tips = [int(robot.link_frame[index]) for index in indices]
        paths = [path_to_root(robot.frames, tip) for tip in tips]
        self.common = next((int(frame) for frame in paths[0] if frame in paths[1]), -1)
        self.T_frame_link, self.T_frame_other = (robot.T_frame_link[index] for index in indices)
        self.held = self.T_frame_link @ W  # where `other` should be, in the frame that carries `link`
        radii = (np.linalg.norm(T[:3, 3]) for T in (self.held, self.T_frame_other))
        own = [_beyond(*both) for both in (paths, paths[::-1])]
        self.chains = [Chain(robot, frames, tip, float(radius)) for frames, tip, radius in zip(own, tips, radii)]
        self.frames = np.unique(np.concatenate([path_to_root(robot.frames, tip) for tip in tips]).astype(int))
        moved = np.concatenate([robot.frames["joint"][frames] for frames in own])
        if not len(moved):
            raise RobotDescriptionError(
                f"no planning joint of robot '{robot.name}' moves link '{other}' relative to '{link}'; allowed: two "
                "links that joints move relative to each other"
            )

    def _placed(self, q):
        """Poses (N, all frames, 4, 4); (N, 4, 4) where `other` should be, and where it is."""
        poses = poses_of_frames(self.robot, q, self.frames)
        wanted, there = ((poses[:, c.tip] if c.tip >= 0 else np.eye(4)) @ T for c, T in zip(self.chains, self.ends))
        return poses, np.broadcast_to(wanted, (len(q), 4, 4)), np.broadcast_to(there, (len(q), 4, 4))

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """(4, 4) in the frame that carries `link` where `other` should be, and its own in the frame that carries it."""
        return self.held, self.T_frame_other

    def _seen(self, poses, vectors):
        """Vectors (N, 3, ...) of the root's frame in that which carries both links."""
        return vectors if self.common < 0 else poses[:, self.common, :3, :3].transpose(0, 2, 1) @ vectors

    def _turned(self, moves):
        """(N,) rad by which one link turns at most relative to the other."""
        return sum(chain.turns(moves).sum(axis=1) for chain in self.chains)

    def measure_and_slope(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def _off(self, x):
        """(N, 3) m or rad."""
        raise NotImplementedError

    def _rates(self, x):
        """(N, 3, 3) slopes of that by what the part's Jacobian is of."""
        raise NotImplementedError

    def measure(self, q: np.ndarray) -> np.ndarray:
        return self.measure_and_slope(q)[0]

    def along(self, q: np.ndarray, way: np.ndarray) -> np.ndarray:
        """`measure`, for the proof of motions (N, dof) on which q lie."""
        return self.measure(q)

    def excess(self, x: np.ndarray) -> np.ndarray:
        return np.linalg.norm(self._off(x), axis=1) - self.tolerance

    def pull(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        off, aim = self._off(x), AIM * self.tolerance
        slopes = np.sign(off)[:, :, None] * self._rates(x)
        return np.abs(off) - aim, np.full(off.shape, aim), slopes


def _beyond(path, other):
    """(F,) frames of one path to the root that are not of another one, outermost first."""
    return np.array([frame for frame in path if frame not in other][::-1], dtype=int)


class PlacePart(PairPart):
    """How far the origin of `other` is off in `link`'s frame.

    x: (4,) d, metres; where `along` has a motion, the length of d'' of one as that whose joints move by 1 in all
    """

    @property
    def rates(self) -> np.ndarray:
        """(2, dof) by how much x changes at most for a unit of each joint, by way of each link."""
        return np.array([chain.rates() for chain in self.chains])

    def along(self, q: np.ndarray, way: np.ndarray) -> np.ndarray:
        way = way / np.maximum(np.abs(way).sum(axis=1), 1e-12)[:, None]
        poses, wanted, there = self._placed(q)
        d, both = there[:, :3, 3] - wanted[:, :3, 3], zip(self.chains, (wanted, there))
        wanted_bend, bend = (chain.acceleration(poses, T[:, :3, 3], way) for chain, T in both)
        return np.column_stack([self._seen(poses, d[:, :, None])[:, :, 0], np.linalg.norm(bend - wanted_bend, axis=1)])

    def measure_and_slope(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        poses, *ends = self._placed(q)
        moved, by = (
            chain.speeds(poses, T[:, :3, 3]).transpose(0, 2, 1) @ chain.columns for chain, T in zip(self.chains, ends)
        )
        d = ends[1][:, :3, 3] - ends[0][:, :3, 3]
        x = np.zeros((len(q), 4))
        x[:, :3] = self._seen(poses, d[:, :, None])[:, :, 0]
        return x, self._seen(poses, by - moved)

    def _off(self, x):
        return x[:, :3]

    def _rates(self, x):
        return np.broadcast_to(np.eye(3), (len(x), 3, 3))

    def bound(self, moves: np.ndarray, a: np.ndarray, b: np.ndarray, spare: float = 0.0) -> np.ndarray:
        second, third = np.sum([chain.bends(moves) for chain in self.chains], axis=0)
        known = np.maximum(a[:, 3], b[:, 3]) * moves.sum(axis=1) ** 2 + third / 2
        at_a, at_b = (np.linalg.norm(x[:, :3], axis=1) - self.tolerance for x in (a, b))
        return peak(at_a, at_b, np.minimum(second, known) / 2) + spare

    def told(self, q: np.ndarray) -> str:
        off = float(np.linalg.norm(self.measure(q[None])[0, :3]))
        return (
            f"link '{self.other}' is {off:.3g} m from where '{self.link}' should have it; allowed: {self.tolerance:g}"
        )


class AttitudePart(PairPart):
    """How far `other` is turned in `link`'s frame. x: (3,) rotation vector of E, rad"""

    @property
    def rates(self) -> np.ndarray:
        """(2, dof), as of PlacePart."""
        one = np.eye(self.robot.dof)
        return np.array([chain.turns(one).sum(axis=1) for chain in self.chains])

    def measure_and_slope(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        poses, wanted, there = self._placed(q)
        back = wanted[:, :3, :3].transpose(0, 2, 1)
        moved, by = (chain.axes(poses).transpose(0, 2, 1) @ chain.columns for chain in self.chains)
        return Rotation.from_matrix(back @ there[:, :3, :3]).as_rotvec(), back @ (by - moved)

    def _off(self, x):
        return x

    def _rates(self, x):
        return vector_rates(x)

    def bound(self, moves: np.ndarray, a: np.ndarray, b: np.ndarray, spare: float = 0.0) -> np.ndarray:
        turned, at_a, at_b = self._turned(moves), np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1)
        smooth, K = bent((at_a + at_b + turned) / 4, turned)
        convex = np.where(smooth, peak(at_a, at_b, K), np.inf)
        return np.minimum(convex, (at_a + at_b + turned) / 2) - self.tolerance + spare

    def told(self, q: np.ndarray) -> str:
        off = float(np.linalg.norm(self.measure(q[None])[0]))
        text = f"link '{self.other}' is turned by {off:.3g} rad from how '{self.link}' should have it"
        return f"{text}; allowed: {self.tolerance:g}"


Part = PointPart | TiltPart | TurnPart | JointPart | PlacePart | AttitudePart


def sides_of(part: Part) -> Iterable[np.ndarray]:
    """(dof,) `rates` of a part by way of each link that it depends on."""
    return np.atleast_2d(part.rates)
