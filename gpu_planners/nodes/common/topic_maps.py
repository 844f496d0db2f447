"""Maps and their updates that come by topics."""

import collections
from collections.abc import Callable
from functools import partial
from typing import Any

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
    """The topics map and map_updates, of the scene's kind, or a map file. What comes while the worker is busy is one
    change.

    changed: called on the worker when all that came is taken, with whether the map that is planned on has changed
    missing: why there is no map_updates; empty when there is; taken: number of messages that were looked at
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
        self._node, self._subscriptions, self.taken = node, [], 0  # type: ignore[var-annotated]
        if values.map_file:
            self._receive(scene.load_file, values.map_file)
        else:
            qos = of_durability(values.map_durability, depth=1)
            if missing := self._listen(scene.kind.map, "map", scene.take_map, qos):
                state.set_problem("map", missing)
        self.missing = self._listen(scene.kind.update, "map_updates", scene.take_update, UPDATES_DEPTH)

    def close(self) -> None:
        """Take no more maps. For the executor's thread."""
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)

    def _listen(self, kind, topic, take, qos):
        """Subscribe -> why not; empty when that is done."""
        module, missing = optional_module(kind[0], f"topic {topic} of type {kind[1]}")
        if not missing:
            receive = partial(self._receive, take)
            self._subscriptions.append(self._node.create_subscription(getattr(module, kind[1]), topic, receive, qos))
        return missing

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
