"""What agents tell by topics: where they are, where they shall go.

Only the latest report on each agent is kept until the worker takes it, so that nothing is lost and nothing piles up.
"""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from geometry_msgs.msg import Pose

from gpu_planners_msgs.msg import AgentGoals, AgentStates

from ...errors import GpuPlannersError
from ..common.map_messages import as_poses
from ..common.map_scene import Frames
from ..common.planner_node import PlannerNode
from ..common.request_error import error_text, one_line
from .conversions import A_QUATERNION, yaws_of
from .running import RunningFleet

DEPTH = 1000  # of messages that come in a burst


class LatestReport(NamedTuple):
    """The latest on an agent. gone: it was said to be gone, before `pose` if there is one; now: when it came"""

    gone: bool
    pose: Pose | None
    frame: str
    now: float


class LatestReports:
    """The latest report on each agent; for several threads."""

    def __init__(self) -> None:
        self._latest: dict[str, LatestReport] = {}
        self._lock = threading.Lock()

    def put(self, ids: Sequence[str], poses: Sequence[Pose], gone: Sequence[str], frame: str, now: float) -> None:
        """Take a message; GpuPlannersError where it cannot be, and then nothing has changed."""
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
                self._latest[id] = LatestReport(before is not None and before.gone, pose, frame, now)
            self._latest |= dict.fromkeys(gone, LatestReport(True, None, frame, now))

    def take(self) -> dict[str, LatestReport]:
        with self._lock:
            latest, self._latest = self._latest, {}
            return latest


class TopicFleet:
    """The topics ~/agent_states and ~/agent_goals.

    taken: called on the worker after the fleet was told
    """

    def __init__(
        self,
        node: PlannerNode,
        fleet: RunningFleet,
        frames: Frames,
        map_frame: Callable[[], str],
        taken: Callable[[], None],
    ) -> None:
        self._node, self._fleet = node, fleet
        self._frames, self._map_frame, self._taken = frames, map_frame, taken
        self._latest = {"agent_states": LatestReports(), "agent_goals": LatestReports()}
        self._queued = False
        for kind, topic, gone in ((AgentStates, "agent_states", "removed"), (AgentGoals, "agent_goals", "cleared")):
            node.create_subscription(kind, f"~/{topic}", partial(self._receive, topic, gone), DEPTH)

    def _receive(self, topic, gone, message):
        try:
            poses, frame = message.poses, message.header.frame_id
            self._latest[topic].put(message.ids, poses, getattr(message, gone), frame, self._node.now())
            self._node.state.set_problem(topic, "")
        except Exception as error:  # whatever it is, the next message may be right
            self._node.state.set_problem(topic, f"a message on ~/{topic} was refused: {error_text(error)}")
            return
        if not self._queued:
            self._queued = True
            self._node.worker.do_aside(self._take)

    def _take(self):
        self._queued = False
        self.take()
        self._taken()

    def take(self):
        try:
            self._take_states(self._latest["agent_states"].take())
            self._take_goals(self._latest["agent_goals"].take())
            self._node.state.set_problem("topics", "")
        except Exception as error:  # whatever it is, the next messages may be right
            self._node.state.set_problem("topics", f"what agents told was not taken: {error_text(error)}")

    def _take_states(self, latest):
        self._fleet.remove([id for id, report in latest.items() if report.gone])
        for ids, poses, times, faults in self._by_frame(latest, "its pose"):
            yaws, turned = yaws_of(poses)
            points = poses.points[:, :2]
            for k in np.flatnonzero(turned | ~np.isfinite(points).all(axis=1)):
                what = f"its position is ({points[k, 0]}, {points[k, 1]}); allowed: finite numbers"
                if turned[k]:
                    what = f"its orientation is {poses.quaternions[k].tolist()}; {A_QUATERNION}"
                faults.setdefault(ids[k], what)
            self._fleet.take_states(ids, points, yaws, times, faults)

    def _take_goals(self, latest):
        self._fleet.clear_goals([id for id, report in latest.items() if report.gone])
        for ids, poses, _, faults in self._by_frame(latest, "its goal"):
            self._fleet.take_goals(ids, poses.points[:, :2], faults)

    def _by_frame(self, latest, what):
        """(ids, Poses in the map's frame, times, {id: what is wrong}) of the poses in each frame"""
        groups: dict[str, list[str]] = {}
        for id, report in latest.items():
            if report.pose is not None:
                groups.setdefault(report.frame, []).append(id)
        for frame, ids in groups.items():
            poses, faults = as_poses([latest[id].pose for id in ids], frame), {}
            try:
                poses = self._frames.to_map(poses, self._map_frame(), what)
            except Exception as error:  # of this frame; agents in others go on
                faults = dict.fromkeys(ids, error_text(error))
            yield ids, poses, np.array([latest[id].now for id in ids]), faults
