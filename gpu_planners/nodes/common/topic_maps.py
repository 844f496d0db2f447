"""Maps and their updates that come by topics."""

import collections
from collections.abc import Callable
from typing import Any

from nav_msgs.msg import OccupancyGrid
from rclpy.node import Node

from .diagnostics import Diagnostics
from .map_parameters import MapParameters
from .map_scene import MapScene
from .optional import optional_module
from .qos import of_durability
from .request_error import error_text
from .worker import Worker

UPDATES_DEPTH = 1000  # none of a burst may be lost: what it changed would never be known


class TopicMaps:
    """The topics map and map_updates, or a map file. What comes while the worker is busy is one change.

    state: told what is wrong with a map
    changed: called on the worker after all that has come was taken, with whether the map that is planned on has changed
    missing: why there is no map_updates; empty when there is
    taken: number of messages that were looked at
    """

    def __init__(
        self,
        node: Node,
        values: MapParameters,
        worker: Worker,
        state: Diagnostics,
        scene: MapScene,
        changed: Callable[[bool], None],
    ) -> None:
        self._worker, self._state, self._scene, self._changed = worker, state, scene, changed
        self._waiting: collections.deque[tuple[Callable[[Any], None], Any]] = collections.deque()
        self.taken = 0
        if values.map_file:
            self._receive(scene.load_file, values.map_file)
        else:
            self._listen(node, OccupancyGrid, "map", scene.take_map, of_durability(values.map_durability, depth=1))
        map_msgs, self.missing = optional_module("map_msgs.msg", "topic map_updates")
        if map_msgs:
            self._listen(node, map_msgs.OccupancyGridUpdate, "map_updates", scene.take_update, UPDATES_DEPTH)

    def _listen(self, node, kind, topic, take, qos):
        node.create_subscription(kind, topic, lambda message: self._receive(take, message), qos)

    def _receive(self, take, source):
        self._waiting.append((take, source))
        self._worker.do(self._take_all)

    def _take_all(self):
        changes, count = self._scene.changes, 0
        while self._waiting:
            take, source = self._waiting.popleft()
            count += 1
            try:
                take(source)
                self._state.set_problem("map", "")
            except Exception as error:  # whatever it is, the next map may be right
                kept = "; the map before it is used" if self._scene.grid is not None else ""
                self._state.set_problem("map", f"a map or an update of it was refused: {error_text(error)}{kept}")
        if count:
            self._scene.apply()
            self._changed(self._scene.changes != changes)
            self.taken += count
            self._state.publish()
