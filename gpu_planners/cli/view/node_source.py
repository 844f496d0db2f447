"""Motions from a running arm_planner. Whether a configuration collides is found out here, among its obstacles."""

import time
from collections.abc import Callable

import numpy as np

from ...errors import GpuPlannersError
from ..motions import PoseGoal
from .motion_source import DRAGGED_S, Answer, LocalSource, Wish


class NodeSource(LocalSource):
    """As LocalSource. name: of the node"""

    turns_freely = False

    def __init__(self, name: str) -> None:
        from ...nodes.arm.view_client import ViewClient  # the one import of ROS

        self._client = ViewClient(name)
        super().__init__(self._client.robot, self._client.world, self._client.tip, "cpu", [])
        self.where = f"by the node {self._client.name}"
        self._on_world: Callable[[], None] = lambda: None
        self._client.on_world = self._take_world

    def listen(self, on_world: Callable[[], None]) -> None:
        self._on_world = on_world
        self._take_world()

    def plan(self, wish: Wish) -> Answer:
        began = time.monotonic()
        goal = wish.goal.T if isinstance(wish.goal, PoseGoal) else wish.goal
        limit_s = min(wish.time_s, DRAGGED_S) if wish.dragged else wish.time_s
        try:
            text, path, timed = self._client.plan(wish.start, goal, wish.planner, limit_s, wish.margin, wish.seed)
        except GpuPlannersError as error:
            return Answer(str(error), took_s=time.monotonic() - began)
        return Answer(text, timed is not None, path, timed, time.monotonic() - began)

    def measured(self) -> np.ndarray | None:
        return self._client.measured()

    def close(self) -> None:
        self._client.close()

    def _take_world(self):
        self.world = self._client.world
        self._checkers = {}
        self._on_world()
