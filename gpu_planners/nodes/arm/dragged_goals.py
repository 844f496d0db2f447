"""A goal that is dragged in RViz: an interactive marker at the tool. The node plans to it and shows the motion.

No controller follows it until the menu of the marker publishes it. interactive_markers' server would do for the marker;
but no package index brings it as a wheel, and the protocol is short: below `~/goal`, which RViz's display takes for its
namespace, the topics `update` and `feedback`, and the service `get_interactive_markers`.
"""

import threading

import numpy as np
from geometry_msgs.msg import PoseStamped, Vector3
from std_msgs.msg import ColorRGBA
from visualization_msgs import msg
from visualization_msgs.srv import GetInteractiveMarkers

from gpu_planners_msgs.srv import PlanMotion

from ...errors import error_text
from .arm_services import ArmServices
from .conversions import joint_state, pose_message

HELD_S = 0.4  # longest search while the marker is held
SIZE = 0.12  # of the marker, as a share of the robot's height and width
NAME = "goal"
TURNS = {"x": (1.0, 0.0, 0.0), "y": (0.0, 0.0, 1.0), "z": (0.0, 1.0, 0.0)}  # a quarter turn about it takes x there
BALL_COLOUR = ColorRGBA(r=0.91, g=0.42, b=0.17, a=0.9)
PLAN_AGAIN = 1  # entry of the marker's menu
PUBLISH = 2  # entry of the marker's menu
MENU = {PLAN_AGAIN: "Plan again", PUBLISH: "Publish the motion on joint_trajectory"}


class DraggedGoals:
    """The marker of the arm node, and the motions to it."""

    def __init__(self, arm: ArmServices) -> None:
        self._arm, node = arm, arm.node
        self._wanted: tuple[PoseStamped, bool] | None = None  # the newest goal that is not planned to yet; still held?
        self._last: PlanMotion.Response | None = None
        self._lock = threading.Lock()  # of the marker, which the worker places and the executor moves
        self._marker: msg.InteractiveMarker | None = None
        self._sequence = 0
        self._updates = node.create_publisher(msg.InteractiveMarkerUpdate, "~/goal/update", 100)
        node.create_service(GetInteractiveMarkers, "~/goal/get_interactive_markers", self._answer)
        node.create_subscription(msg.InteractiveMarkerFeedback, "~/goal/feedback", self._take, 100)

    def begin(self) -> None:
        """Put the marker at the tool of the robot, where it is measured or rests. On the worker's thread."""
        robot = self._arm.scene.require_robot()
        poses = robot.link_poses(self._start())
        places = np.array([pose[0, :3, 3] for pose in poses.values()])
        size = float(max(SIZE * np.ptp(places, axis=0).max(), 0.05))
        pose = pose_message(poses[robot.tip_link][0])
        marker = msg.InteractiveMarker(name=NAME, description="goal of the tool", scale=size, pose=pose)
        marker.header.frame_id = self._arm.scene.frames.root
        marker.menu_entries = [
            msg.MenuEntry(id=number, title=title, command_type=msg.MenuEntry.FEEDBACK) for number, title in MENU.items()
        ]
        marker.controls = _controls(size)
        with self._lock:
            self._marker = marker
            self._send(markers=[marker])

    def _start(self):
        """(dof,) where a motion begins: as measured, else a state of the SRDF or the middle of the limits."""
        robot, q = self._arm.scene.require_robot(), self._arm.place()
        if q is None:
            q = next(iter(robot.named_states.values()), (robot.lower + robot.upper) / 2)
        return q

    def _take(self, feedback):
        if feedback.marker_name != NAME:
            return
        kind, entry = feedback.event_type, feedback.menu_entry_id
        held, chosen = kind == feedback.POSE_UPDATE, kind == feedback.MENU_SELECT
        if chosen and entry == PUBLISH:
            self._arm.worker.do(self._publish)
        elif held or kind == feedback.MOUSE_UP or (chosen and entry == PLAN_AGAIN):
            self._moved(feedback, held)

    def _moved(self, feedback, held):
        with self._lock:
            if self._marker is None:
                return
            self._marker.pose = feedback.pose
            # whoever drags it sees it already; other viewers follow
            self._send(poses=[msg.InteractiveMarkerPose(header=feedback.header, pose=feedback.pose, name=NAME)])
        pose = PoseStamped(header=feedback.header, pose=feedback.pose)
        waiting, self._wanted = self._wanted is not None, (pose, held)
        if not waiting:  # what waits will find the newest goal
            self._arm.worker.do(self._plan)

    def _answer(self, _request, response):
        with self._lock:
            response.sequence_number = self._sequence
            response.markers = [self._marker] if self._marker is not None else []
        return response

    def _send(self, **changes):
        self._sequence += 1
        self._updates.publish(
            msg.InteractiveMarkerUpdate(seq_num=self._sequence, type=msg.InteractiveMarkerUpdate.UPDATE, **changes)
        )

    def _plan(self):
        wanted, self._wanted = self._wanted, None
        robot = self._arm.scene.robot
        if wanted is None or robot is None:
            return
        pose, held = wanted
        start = joint_state(robot.joint_names, self._start())
        request = PlanMotion.Request(start=start, pose_goals=[pose], time_limit_s=HELD_S if held else 0.0)
        response, self._last = PlanMotion.Response(), None
        try:
            if self._arm.plan(request, response):
                self._last = response
        except Exception as error:  # whatever it is, the next goal may be planned to
            response.message = error_text(error)
        if self._last is None and not held:
            self._arm.node.get_logger().warning(f"dragged goal: {response.message}")

    def _publish(self):
        if self._last is not None:
            self._arm.trajectories.publish(self._last.trajectory, self._arm.scene.require_robot())
            self._arm.node.get_logger().info(f"dragged goal: published, {self._last.message}")


def _controls(size):
    scale = Vector3(x=0.3 * size, y=0.3 * size, z=0.3 * size)
    ball = msg.Marker(type=msg.Marker.SPHERE, scale=scale, color=BALL_COLOUR)
    ball.pose.orientation.w = 1.0
    controls = [_control("anywhere", msg.InteractiveMarkerControl.MOVE_ROTATE_3D, (0.0, 0.0, 0.0), [ball])]
    for name, turn in TURNS.items():
        controls.append(_control(f"move_{name}", msg.InteractiveMarkerControl.MOVE_AXIS, turn))
        controls.append(_control(f"turn_{name}", msg.InteractiveMarkerControl.ROTATE_AXIS, turn))
    return controls


def _control(name, mode, about, markers=()):
    """A control acts along its x axis. about: axis of the quarter turn that places it; zero: none"""
    control = msg.InteractiveMarkerControl(
        name=name, interaction_mode=mode, always_visible=bool(markers), markers=list(markers)
    )
    o, turn = control.orientation, np.array([*about, 1.0]) / np.linalg.norm([*about, 1.0])
    o.x, o.y, o.z, o.w = turn.tolist()
    return control
