"""The pose of one link in the frame of another, kept all along a motion, and configurations that have it."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import checked, number, numbers, whole
from ...errors import ConfigurationError, shown
from ..robot.inverse_kinematics import judge_of
from ..robot.model import RobotModel
from ..robot.tip import Tip
from .constraint import Constraint
from .pair import AttitudePart, PlacePart
from .volume import rigid

POSITION, POSITIONS = 0.002, (1e-4, 1.0)  # m: how far `other` may be off, by default, and the range of that
ROTATION, ROTATIONS = 0.02, (1e-3, 3.1)  # rad: by how much it may be turned
SOLUTIONS = 16  # of each hand, that are tried for a pose: a closed chain joins few postures, so many goals help


@checked()
class RelativePose(Constraint):
    """A link at a pose in another link's frame: a closed kinematic chain, as of two hands that hold one object.

    T_link_other: (4, 4) wanted pose of `other` in the frame of `link`, metres; `pose_between` has that of a
        configuration
    position: metres that the origin of `other` may be off; rotation: rad that `other` may be turned
    """

    def __init__(
        self,
        robot: RobotModel,
        link: str,
        other: str,
        T_link_other: ArrayLike,
        position: float = POSITION,
        rotation: float = ROTATION,
    ) -> None:
        number("position", position, *POSITIONS, " m")
        number("rotation", rotation, *ROTATIONS, " rad")
        self.link, self.other, self.pose = link, other, rigid("T_link_other", T_link_other)
        both = robot, link, other, self.pose
        super().__init__(robot, [PlacePart(*both, position), AttitudePart(*both, rotation)])

    def closed(self, q: ArrayLike, checker: Any = None, held: str | None = None) -> np.ndarray:
        """Configurations (K, dof) that keep the constraint and have one of the two links where configurations (N, dof)
        have it: the other one is brought to it, by inverse kinematics. Those nearest to their q come first.

        checker: CollisionChecker, or whatever has its `configurations_valid(q)`: only what it calls valid counts
        held: the link that stays where it is; default: `link`
        """
        q, stays = self._rows("q", q), self.link if held is None else held
        judge = judge_of(self.robot, checker)
        if stays not in (self.link, self.other):
            raise ConfigurationError(f"held is {shown(stays)}; allowed: '{self.link}' or '{self.other}'")
        brought, T = (self.other, self.pose) if stays == self.link else (self.link, np.linalg.inv(self.pose))
        if not len(q) or self.robot.link_frame[self.robot.link_index(brought)] < 0:
            found = q
        else:
            wanted = self.robot.link_poses(q)[stays] @ T
            own = Tip(self.robot, brought).moves
            if self.robot.link_frame[self.robot.link_index(stays)] >= 0:
                own = own & ~Tip(self.robot, stays).moves
            answers: Any = self.robot.inverse_kinematics(wanted, link=brought, seed_q=q, solutions=SOLUTIONS)
            rows = np.repeat(np.arange(len(q)), [len(each) for each in answers])
            found = q[rows]
            if len(found):
                found[:, own] = np.concatenate([each.q for each in answers])[:, own]
                found = found[np.argsort(np.linalg.norm(found - q[rows], axis=1), kind="stable")]
        found, good = self.project(found)
        found = found[good]
        return found if judge is None else found[np.asarray(judge(found))]

    def carrying(
        self,
        T_root_link: ArrayLike,
        checker: Any = None,
        seed_q: ArrayLike | None = None,
        solutions: int = SOLUTIONS**2,
    ) -> np.ndarray:
        """Configurations (K, dof), nearest to seed_q (dof,) first, that have `link` at a pose (4, 4) in the root frame
        and `other` at its pose to it: goals of a motion with an object in both hands.

        checker: as of `closed`; seed_q: default: the middle of the limits; solutions: how many, at most
        """
        solutions = whole("solutions", solutions, 1, SOLUTIONS**2)
        robot, T = self.robot, rigid("T_root_link", T_root_link)
        judge_of(robot, checker)
        seed = (robot.lower + robot.upper) / 2 if seed_q is None else numbers("seed_q", seed_q, (robot.dof,))
        first: Any = robot.inverse_kinematics(T, link=self.link, seed_q=seed, solutions=SOLUTIONS)
        found = self.closed(first.q, checker)
        return found[np.argsort(np.linalg.norm(found - seed, axis=1), kind="stable")][:solutions]


@checked()
def pose_between(robot: RobotModel, q: ArrayLike, link: str, other: str) -> np.ndarray:
    """(4, 4) T_link_other, metres: where a configuration (dof,) has one link in the frame of another."""
    at = numbers("q", q, (robot.dof,), ConfigurationError).astype(float)
    for name in (link, other):
        robot.link_index(name)
    poses = robot.link_poses(at)
    return np.linalg.inv(poses[link][0]) @ poses[other][0]
