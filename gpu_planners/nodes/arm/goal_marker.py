"""A goal that is dragged in RViz: an interactive marker at the tool, which a node plans to while it is dragged.

The protocol of interactive markers is three names below `~/goal`: the topic `update`, the service
`get_interactive_markers`, and the topic `feedback`. RViz's display takes `~/goal` for its namespace.
"""

import threading
from collections.abc import Callable

import numpy as np
from geometry_msgs.msg import Pose, PoseStamped, Vector3
from rclpy.node import Node
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import (
    InteractiveMarker,
    InteractiveMarkerControl,
    InteractiveMarkerFeedback,
    InteractiveMarkerPose,
    InteractiveMarkerUpdate,
    Marker,
    MenuEntry,
)
from visualization_msgs.srv import GetInteractiveMarkers

NAME = "goal"
TURNS = {
    "x": (1.0, 0.0, 0.0),
    "y": (0.0, 0.0, 1.0),
    "z": (0.0, 1.0, 0.0),
}  # a quarter turn about it takes x to the axis
BALL_COLOUR = ColorRGBA(r=0.91, g=0.42, b=0.17, a=0.9)
PLAN_AGAIN, PUBLISH = 1, 2  # entries of its menu
MENU = {PLAN_AGAIN: "Plan again", PUBLISH: "Publish the motion on joint_trajectory"}


class GoalMarker:
    """The marker of a node.

    plan: called with the pose when it has moved, and True while it is still held; on the executor's thread
    publish: called when the menu says so
    """

    def __init__(self, node: Node, plan: Callable[[PoseStamped, bool], None], publish: Callable[[], None]) -> None:
        self._plan, self._publish = plan, publish
        self._lock = threading.Lock()
        self._marker: InteractiveMarker | None = None
        self._sequence = 0
        self._updates = node.create_publisher(InteractiveMarkerUpdate, "~/goal/update", 100)
        node.create_service(GetInteractiveMarkers, "~/goal/get_interactive_markers", self._answer)
        node.create_subscription(InteractiveMarkerFeedback, "~/goal/feedback", self._take, 100)

    def place(self, frame: str, pose: Pose, size: float) -> None:
        """Put the marker at a pose in a frame, or move it there. size: metres across"""
        with self._lock:
            marker = InteractiveMarker(name=NAME, description="goal of the tool", scale=size, pose=pose)
            marker.header.frame_id = frame
            marker.menu_entries = [
                MenuEntry(id=number, title=title, command_type=MenuEntry.FEEDBACK) for number, title in MENU.items()
            ]
            marker.controls = _controls(size)
            self._marker = marker
            self._send(markers=[marker])

    def _take(self, feedback):
        if feedback.marker_name != NAME:
            return
        kind = feedback.event_type
        if kind in (InteractiveMarkerFeedback.POSE_UPDATE, InteractiveMarkerFeedback.MOUSE_UP):
            self._moved(feedback, held=kind == InteractiveMarkerFeedback.POSE_UPDATE)
        elif kind == InteractiveMarkerFeedback.MENU_SELECT and feedback.menu_entry_id == PUBLISH:
            self._publish()
        elif kind == InteractiveMarkerFeedback.MENU_SELECT and feedback.menu_entry_id == PLAN_AGAIN:
            self._moved(feedback, held=False)

    def _moved(self, feedback, held):
        with self._lock:
            if self._marker is None:
                return
            self._marker.pose = feedback.pose
            # whoever drags it sees it already; other viewers follow
            self._send(poses=[InteractiveMarkerPose(header=feedback.header, pose=feedback.pose, name=NAME)])
        self._plan(PoseStamped(header=feedback.header, pose=feedback.pose), held)

    def _answer(self, _request, response):
        with self._lock:
            response.sequence_number = self._sequence
            response.markers = [self._marker] if self._marker is not None else []
        return response

    def _send(self, **changes):
        self._sequence += 1
        self._updates.publish(
            InteractiveMarkerUpdate(seq_num=self._sequence, type=InteractiveMarkerUpdate.UPDATE, **changes)
        )


def _controls(size):
    ball = Marker(type=Marker.SPHERE, scale=Vector3(x=0.3 * size, y=0.3 * size, z=0.3 * size), color=BALL_COLOUR)
    ball.pose.orientation.w = 1.0
    controls = [_control("anywhere", InteractiveMarkerControl.MOVE_ROTATE_3D, (0.0, 0.0, 0.0), [ball])]
    for name, turn in TURNS.items():
        controls.append(_control(f"move_{name}", InteractiveMarkerControl.MOVE_AXIS, turn))
        controls.append(_control(f"turn_{name}", InteractiveMarkerControl.ROTATE_AXIS, turn))
    return controls


def _control(name, mode, about, markers=()):
    """A control acts along its x axis. about: what that is turned about, by a quarter turn; zero: not at all"""
    control = InteractiveMarkerControl(name=name, interaction_mode=mode, always_visible=bool(markers))
    turn = np.array([*about, 1.0]) / np.linalg.norm([*about, 1.0])
    o = control.orientation
    o.x, o.y, o.z, o.w = turn.tolist()
    control.markers = list(markers)
    return control
