"""A body in MuJoCo's physics for the node trajectory_player."""

import numpy as np

from ...arm import CollisionWorld, load_urdf
from ...arm.collision.scene_file import fixed_frames, load_scene
from ...arm.control.joints import Joints
from ...arm.control.spline import Spline, State
from ...sim.simulation import Contact, Simulation
from .parameters import PlayerParameters

LONGEST_S = 0.1  # simulated in one go


class Physical:
    """Joints that a simulation drives towards where they should be, as Exact's are."""

    def __init__(self, values: PlayerParameters, joints: Joints, positions: np.ndarray, now: float) -> None:
        robot = load_urdf(
            values.robot_description_file,
            srdf=values.srdf_file or None,
            package_dirs=values.package_dirs,
            joints=joints.names,
        )
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
