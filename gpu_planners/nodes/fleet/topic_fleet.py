"""What agents tell by topics: where they are, where they shall go.

Only the latest word on each agent is kept until the worker takes it, so that nothing is lost and nothing piles up.
"""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from geometry_msgs.msg import Pose
from rclpy.node import Node

from gpu_planners_msgs.msg import AgentGoals, AgentStates

from ...errors import GpuPlannersError
from ..common.diagnostics import Diagnostics
from ..common.frames import Frames
from ..common.map_messages import as_poses
from ..common.request_error import error_text, one_line
from ..common.worker import Worker
from .conversions import yaws_of
from .running import RunningFleet

DEPTH = 1000  # of messages that come in a burst


class Word(NamedTuple):
    """The latest on an agent. gone: was it said to be gone, before `pose` if there is one? now: when it came"""

    gone: bool
    pose: Pose | None
    frame: str
    now: float


class Inbox:
    """The latest word on each agent."""

    def __init__(self) -> None:
        self._latest: dict[str, Word] = {}
        self._lock = threading.Lock()

    def put(self, ids: Sequence[str], poses: Sequence[Pose], gone: Sequence[str], frame: str, now: float) -> None:
        """Take a message. GpuPlannersError, which names the offender, where it cannot be; nothing has changed then."""
        if len(ids) != len(poses):
            raise GpuPlannersError(f"it has {len(ids)} ids and {len(poses)} poses; allowed: a pose for each id")
        if "" in ids:
            raise GpuPlannersError(f"the id of pose {ids.index('')} is empty; allowed: any other text")
        both = [*ids, *gone]
        if len(set(both)) < len(both):
            twice = next(id for k, id in enumerate(both) if id in both[:k])
            raise GpuPlannersError(f"agent '{one_line(twice)}' comes twice; allowed: once")
        with self._lock:
            for id, pose in zip(ids, poses):
                before = self._latest.get(id)
                self._latest[id] = Word(before is not None and before.gone, pose, frame, now)
            self._latest |= dict.fromkeys(gone, Word(True, None, frame, now))

    def take(self) -> dict[str, Word]:
        """All that has come since the last time."""
        with self._lock:
            latest, self._latest = self._latest, {}
            return latest


class TopicFleet:
    """The topics ~/agent_states and ~/agent_goals.

    state: told what is wrong with a message
    taken: called on the worker after the fleet was told
    """

    def __init__(
        self,
        node: Node,
        worker: Worker,
        state: Diagnostics,
        fleet: RunningFleet,
        frames: Frames,
        map_frame: Callable[[], str],
        taken: Callable[[], None],
    ) -> None:
        self._node, self._worker, self._state, self._fleet, self._frames = node, worker, state, fleet, frames
        self._map_frame, self._taken = map_frame, taken
        self._inboxes = {"agent_states": Inbox(), "agent_goals": Inbox()}
        self._queued = False
        for kind, topic, gone in ((AgentStates, "agent_states", "removed"), (AgentGoals, "agent_goals", "cleared")):
            node.create_subscription(kind, f"~/{topic}", partial(self._receive, topic, gone), DEPTH)

    def now(self) -> float:
        """Seconds of the node's clock."""
        return self._node.get_clock().now().nanoseconds * 1e-9

    def _receive(self, topic, gone, message):
        try:
            self._inboxes[topic].put(
                message.ids, message.poses, getattr(message, gone), message.header.frame_id, self.now()
            )
            self._state.set_problem(topic, "")
        except Exception as error:  # whatever it is, the next message may be right
            self._state.set_problem(topic, f"a message on ~/{topic} was refused: {error_text(error)}")
            return
        if not self._queued:
            self._queued = True
            self._worker.do_aside(self._take)

    def _take(self):
        self._queued = False
        self.take()
        self._taken()

    def take(self):
        """Tell the fleet what has come; on the worker."""
        try:
            self._take_states(self._inboxes["agent_states"].take())
            self._take_goals(self._inboxes["agent_goals"].take())
            self._state.set_problem("topics", "")
        except Exception as error:  # whatever it is, the next messages may be right
            self._state.set_problem("topics", f"what agents told was not taken: {error_text(error)}")

    def _take_states(self, latest):
        self._fleet.remove([id for id, word in latest.items() if word.gone])
        for ids, poses, times, faults in self._by_frame(latest, "its pose"):
            yaws, bad = yaws_of(poses)
            points = poses.points[:, :2]
            for k in np.flatnonzero(bad | ~np.isfinite(points).all(axis=1)):
                faults.setdefault(ids[k], _fault(poses.points[k], poses.quaternions[k], bad[k]))
            self._fleet.take_states(ids, points, yaws, times, faults)

    def _take_goals(self, latest):
        self._fleet.clear_goals([id for id, word in latest.items() if word.gone])
        for ids, poses, _, faults in self._by_frame(latest, "its goal"):
            self._fleet.take_goals(ids, poses.points[:, :2], faults)

    def _by_frame(self, latest: dict[str, Word], what: str):
        """(ids, Poses in the map's frame, times, {id: what is wrong}) of the poses of each frame"""
        groups: dict[str, list[str]] = {}
        for id, word in latest.items():
            if word.pose is not None:
                groups.setdefault(word.frame, []).append(id)
        for frame, ids in groups.items():
            poses, faults = as_poses([latest[id].pose for id in ids], frame), {}
            try:
                poses = self._frames.to_map(poses, self._map_frame(), what)
            except Exception as error:  # of this frame; agents in others go on
                faults = dict.fromkeys(ids, error_text(error))
            yield ids, poses, np.array([latest[id].now for id in ids]), faults


def _fault(point, quaternion, turned):
    if turned:
        return f"its orientation is {quaternion.tolist()}; allowed: a quaternion of length 1 about z, or zeros"
    return f"its position is ({point[0]}, {point[1]}); allowed: finite numbers"
