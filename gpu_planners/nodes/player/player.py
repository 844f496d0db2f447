"""A controller without hardware: it follows a curve, holds its end, and stops within limits."""

from typing import Any

import numpy as np

from ...arm.control.joints import Joints
from ...arm.control.spline import Spline, State
from ...arm.control.stopping import stop_along


class Exact:
    """A body whose joints are exactly where they should be.

    state: where they are, (n,) each; contacts: the `sim` package's Contacts, the deepest of each pair of shapes
    """

    contacts = ()

    def __init__(self, positions: np.ndarray) -> None:
        self.state = State(positions, np.zeros_like(positions), np.zeros_like(positions))

    def follow(self, curve: Spline, now: float) -> None:
        """Be where a curve is at a time, in seconds on the clock of the curve."""
        self.state = curve.at(now)


class Player:
    """Plays curves on a body.

    joints: with the limits that stops keep to; body: an Exact or a Physical
    curve: that is followed, over seconds; another one must pass where the joints are
    """

    def __init__(self, joints: Joints, body: Any) -> None:
        self.joints, self.body = joints, body
        self.curve = Spline([0.0], body.state.positions[None])

    def stop(self, now: float) -> None:
        """Brake along the curve."""
        if now < self.curve.end:
            limits = self.joints.acceleration, self.joints.lower, self.joints.upper
            stop = Spline.of(stop_along(self.curve, now, *limits))
            self.curve = Spline(stop.times + now, stop.positions, stop.velocities, stop.accelerations)

    def tick(self, now: float) -> None:
        self.body.follow(self.curve, now)
