"""The robot as one group of it is planned: where its other joints stand, and what it carries."""

from collections.abc import Mapping

import numpy as np

from ...arm import RobotModel
from .scene_objects import SceneObjects


class RobotView:
    """A group's planning joints on the scene's one robot.

    described: as it was loaded, which carries nothing
    fixed: {joint: rad or m} of the joints that the group does not plan
    robot: with these there, and with all that it carries
    """

    def __init__(self, described: RobotModel, objects: SceneObjects) -> None:
        self.described = described
        self.fixed = {name: float(np.clip(0.0, *limits)) for name, limits in described.other_joints.items()}
        self._bare = described
        self.robot, self._carriage = objects.robot(described), objects.carriage

    def is_it(self, fixed: Mapping[str, float], objects: SceneObjects) -> bool:
        """Is `robot` the one with other joints there, as `others_at` has them, that carries what the objects say?"""
        return fixed is self.fixed and objects.carriage == self._carriage

    def others_at(self, positions: Mapping[str, float], tolerance: float) -> dict[str, float]:
        """{joint: rad or m} of the joints that the group does not plan, brought into their limits; `fixed` itself where
        none is elsewhere by more than the tolerance."""
        here, joints = self.fixed, self.described.other_joints
        fixed = here | {
            name: float(np.clip(positions[name], *limits)) for name, limits in joints.items() if name in positions
        }
        return fixed if any(abs(fixed[name] - here[name]) > tolerance for name in fixed) else here

    def with_others(self, fixed: dict[str, float]) -> RobotModel:
        """One that carries nothing, with the other joints there."""
        return self._bare if fixed is self.fixed else self.described.with_other_joints(fixed)

    def put(self, fixed: dict[str, float], objects: SceneObjects) -> None:
        """Have `robot` be the one that `is_it` asks for; it stays the same where it is."""
        if not self.is_it(fixed, objects):
            bare = self.with_others(fixed)
            self.robot, self._bare, self.fixed, self._carriage = objects.robot(bare), bare, fixed, objects.carriage
