"""How fast a link moves along a curve in joint space, so that its own speed and acceleration can be limited, too.

Along the way of its origin the link moves by l(s), and turns by w(s): with the speed v = ds/dt of the joints along the
curve its speed is l' v, and its acceleration along the way l'' v^2 + l' dv/dt, as of one more joint (`pacing`). What
turns the direction of its speed, as on an arc, is not part of it. l' and l'' are differences of poses.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from ..robot.tip import Tip
from .curve import Curve, at

STEP = 1e-4  # of s, rad or m, between the poses that are compared
STANDS = 1e-9  # m or rad for a unit of s, below which a link has no direction to be accelerated in


@dataclass(frozen=True, eq=False)
class ToolLimits:
    """Limits of a link. velocity, acceleration: of its origin along its way, m/s, m/s^2; turning, turning_rate: of its
    orientation, rad/s, rad/s^2; inf: none"""

    tip: Tip
    velocity: float
    acceleration: float
    turning: float
    turning_rate: float

    def scaled(self, velocity: float, acceleration: float) -> "ToolLimits":
        """With fractions of velocities and accelerations."""
        return replace(
            self,
            velocity=self.velocity * velocity,
            acceleration=self.acceleration * acceleration,
            turning=self.turning * velocity,
            turning_rate=self.turning_rate * acceleration,
        )

    def slopes(self, curve: Curve, s: np.ndarray, pieces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(N, 2) how far the link goes and turns for a unit of s, and (N, 2) how fast that changes, at s (N,)."""
        before, here, after = (self.tip.pose(at(curve, s + way * STEP, pieces)[:, 0]) for way in (-1, 0, 1))
        steps = [
            np.concatenate([b[:, :3, 3] - a[:, :3, 3], _turned(a, b)], axis=1).reshape(-1, 2, 3) / STEP
            for a, b in ((before, here), (here, after))
        ]
        rate, change = (steps[0] + steps[1]) / 2, (steps[1] - steps[0]) / STEP
        slope = np.linalg.norm(rate, axis=2)
        along = (rate * change).sum(axis=2) / np.maximum(slope, STANDS)
        return slope, np.where(slope > STANDS, along, np.linalg.norm(change, axis=2))


def _turned(a, b):
    """(N, 3) rotation vectors from poses (N, 4, 4) to others."""
    return Rotation.from_matrix(b[:, :3, :3] @ a[:, :3, :3].swapaxes(1, 2)).as_rotvec()
