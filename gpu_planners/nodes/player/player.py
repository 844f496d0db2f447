"""A controller without hardware: it follows a curve, holds its end, and stops within limits."""

from typing import Any

import numpy as np

from ...arm import CollisionWorld, load_urdf
from ...arm.collision.scene_file import fixed_frames, load_scene
from ...arm.control.joints import Joints
from ...arm.control.spline import Spline, State
from ...arm.control.stopping import stop_along
from ...sim.simulation import Contact, Simulation
from .parameters import PlayerParameters

LONGEST_S = 0.1  # simulated in one go


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


class Physical:
    """A body whose joints MuJoCo's physics drives towards where they should be; attributes as of Exact."""

    def __init__(self, values: PlayerParameters, joints: Joints, positions: np.ndarray, now: float) -> None:
        srdf, folders = values.srdf_file or None, values.package_dirs
        robot = load_urdf(values.robot_description_file, srdf=srdf, package_dirs=folders, joints=joints.names)
        world = CollisionWorld()
        if values.scene_file:
            world = load_scene(values.scene_file, fixed_frames(robot) | {"": np.eye(4)})
        self._simulation, self._begin = Simulation(robot, world), now
        self._simulation.reset(positions)

    @property
    def state(self) -> State:
        return self._simulation.state

    @property
    def contacts(self) -> tuple[Contact, ...]:
        return self._simulation.contacts

    def follow(self, curve: Spline, now: float) -> None:
        """Simulate until then; what a slow machine cannot simulate in time is left out."""
        late = now - self._begin - self._simulation.time - LONGEST_S
        self._begin += max(late, 0.0)
        self._simulation.advance(now - self._begin, lambda times: curve.at(self._begin + times))


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
