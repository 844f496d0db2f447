"""One link of a robot: its pose and Jacobian, the joints' rates that move it, and Newton's method onto a pose."""

import numpy as np

from ...errors import RobotDescriptionError
from .model import RobotModel, poses_of_frames
from .modified_dh import path_to_root

DAMPED = 0.004  # singular values of the Jacobian, in lengths of the arm, below which rates are damped
NEAR = 0.7  # of half a joint's range, from where on a free joint moves away from its limit


class Tip:
    """A link as the end of a chain of joints.

    frames: the robot's frames from the root to it; moves: (dof,) bool, joints that move it
    """

    def __init__(self, robot: RobotModel, link: str) -> None:
        self.robot, self.link = robot, link
        self._index = robot.link_index(link)
        self._frame = int(robot.link_frame[self._index])
        self.frames = path_to_root(robot.frames, self._frame)[::-1]
        rows = robot.frames[self.frames]
        self._joints, self._slides, self._multipliers = rows["joint"], rows["prismatic"], rows["multiplier"]
        self.moves = np.isin(np.arange(robot.dof), self._joints)
        if not self.moves.any():
            raise RobotDescriptionError(f"no planning joint of robot '{robot.name}' moves the link '{link}'")
        self._lower = np.where(robot.continuous, -np.inf, robot.lower)
        self._upper = np.where(robot.continuous, np.inf, robot.upper)
        scale = max(float((np.abs(rows["a"]) + np.abs(rows["d"])).sum()) / 2, 0.1)  # metres that count as a radian
        self._rows = np.repeat([1 / scale, 1.0], 3)[:, None]

    def pose(self, q: np.ndarray) -> np.ndarray:
        """(N, 4, 4) of configurations (N, dof), root frame."""
        placed = poses_of_frames(self.robot, q, self.frames)
        return placed[:, self._frame] @ self.robot.T_frame_link[self._index]

    def pose_and_jacobian(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(4, 4), and (6, dof): linear rows (m), then angular (rad), at q (dof,)."""
        frames = poses_of_frames(self.robot, q[None], self.frames)[0, self.frames]
        T = frames[-1] @ self.robot.T_frame_link[self._index]
        axes, arms = frames[:, :3, 2], T[:3, 3] - frames[:, :3, 3]
        each = np.zeros((6, len(frames)))  # np.cross takes three times as long
        each[0] = axes[:, 1] * arms[:, 2] - axes[:, 2] * arms[:, 1]
        each[1] = axes[:, 2] * arms[:, 0] - axes[:, 0] * arms[:, 2]
        each[2] = axes[:, 0] * arms[:, 1] - axes[:, 1] * arms[:, 0]
        each[3:] = axes.T
        each[:3, self._slides], each[3:, self._slides] = axes.T[:, self._slides], 0.0
        columns = np.zeros((6, self.robot.dof))
        for f, joint in enumerate(self._joints):  # followers add to their leader
            columns[:, joint] += self._multipliers[f] * each[:, f]
        return T, columns

    def rates(self, J: np.ndarray, twist: np.ndarray, held: np.ndarray | None = None) -> np.ndarray:
        """(dof,) the smallest joint motion with a twist (6,), damped where the arm is singular; held: (dof,) bool"""
        A = J * self._rows if held is None else J * self._rows * ~held
        U, size, Vt = np.linalg.svd(A, full_matrices=False)
        damping = np.where(size < DAMPED, (DAMPED**2 - size**2) / 4, 0.0)
        return Vt.T @ (size / np.maximum(size**2 + damping, 1e-18) * (U.T @ (self._rows[:, 0] * twist)))

    def away_from_limits(self, q: np.ndarray, J: np.ndarray, size: float) -> np.ndarray:
        """(dof,) a joint motion that leaves the link where it is and takes joints away from their limits."""
        half = (self._upper - self._lower) / 2
        with np.errstate(invalid="ignore"):
            place = np.where(np.isfinite(half), (q - (self._upper + self._lower) / 2) / half, 0.0)
        wish = -np.sign(place) * np.clip((np.abs(place) - NEAR) / (1 - NEAR), 0.0, 1.0) * self.moves
        if not wish.any():
            return wish
        _, singular, Vt = np.linalg.svd(J * self._rows)
        free = Vt[int((singular > DAMPED).sum()) :]
        return size * (free.T @ (free @ wish))

    def beyond(self, q: np.ndarray) -> np.ndarray:
        """(dof,) bool: which joints of q (dof,) are outside of their limits."""
        return (q < self._lower) | (q > self._upper)

    def bounded(self, q: np.ndarray) -> np.ndarray:
        """q (..., dof) within the limits."""
        return np.clip(q, self._lower, self._upper)

    def newton(self, q: np.ndarray, T_goal: np.ndarray, steps: int, exact: float) -> tuple:
        """Put the link onto a pose (4, 4) from q (dof,) -> (dof,) or None, and (dof,) bool: joints at a limit."""
        held = np.zeros(self.robot.dof, dtype=bool)
        for _ in range(steps):
            T, J = self.pose_and_jacobian(q)
            twist = pose_difference(T_goal, T)
            if np.abs(twist).max() < exact:
                return q, held
            wanted = q + self.rates(J, twist, held if held.any() else None)
            held = held | self.beyond(wanted)
            q = self.bounded(wanted)
        return None, held


def pose_difference(T_to: np.ndarray, T_from: np.ndarray) -> np.ndarray:
    """(6,) metres and rotation vector in the root frame that take one pose to another."""
    R = T_to[:3, :3] @ T_from[:3, :3].T
    vee = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2
    sine, cosine = np.linalg.norm(vee), (np.trace(R) - 1) / 2
    angle = np.arctan2(sine, cosine)
    turn = vee * (angle / sine if sine > 1e-9 else 1.0)
    return np.concatenate([T_to[:3, 3] - T_from[:3, 3], turn])
