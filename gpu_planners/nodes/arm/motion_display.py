"""What a planning node shows of its motions: `~/markers` for the scene and the last motion, `~/ghost` that plays it.

Markers cost more than planning, so both are made only when someone looks. After a refusal the last motion goes.
"""

import time

import numpy as np
from scipy.spatial.transform import Rotation
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import Marker, MarkerArray

from ...arm import RobotModel
from ...arm.trajectory import Trajectory
from ..common.diagnostics import steady_clock
from ..common.fast_markers import PosedMarkers
from ..common.qos import LATCHED
from .arm_services import ArmServices, Planned
from .conversions import trajectory_of
from .markers import GHOST_COLOUR, robot_markers, scene_markers, shape_poses
from .scene_objects import SceneObjects

LOOK_S = 0.2  # between two looks at whether someone wants the scene
FRAME_S = 1 / 15  # between two places of the ghost
REST_S = 1.0  # of the ghost at the end, before it begins again


class MotionDisplay:
    """The publishers of the arm node's pictures. Methods may be called on any thread."""

    def __init__(self, arm: ArmServices) -> None:
        self._arm, node = arm, arm.node
        self._scene_publisher = node.create_publisher(MarkerArray, "~/markers", LATCHED)
        self._ghost_publisher = node.create_publisher(MarkerArray, "~/ghost", 1)
        self._waiting: tuple | None = None  # arguments of scene_markers that are not published yet
        self._motion: tuple[RobotModel, Trajectory] | None = None
        self._ghost: tuple[RobotModel, PosedMarkers] | None = None  # what it looks like, and of which robot
        self._ghost_shown, self._began = False, 0.0
        node.create_timer(LOOK_S, self._publish_scene, clock=steady_clock())
        node.create_timer(FRAME_S, self._publish_ghost, clock=steady_clock())

    def show_scene(self, robot: RobotModel, objects: SceneObjects) -> None:
        """Show the objects alone: no motion."""
        self._waiting, self._motion = (robot, objects, np.zeros((0, robot.dof)), robot.tip_link), None

    def show_motion(self, planned: Planned, timed: JointTrajectory) -> None:
        """Show a motion, and play it again and again."""
        tip_link = self._arm.values.tip_link or planned.robot.tip_link
        self._waiting = planned.robot, planned.objects, planned.path, tip_link
        self._motion, self._began = (planned.robot, trajectory_of(timed)), time.monotonic()

    def _publish_scene(self):
        if self._waiting is not None and self._scene_publisher.get_subscription_count():
            arguments, self._waiting = self._waiting, None
            self._scene_publisher.publish(scene_markers(self._arm.scene.frames.root, *arguments, self._arm.place()))

    def _publish_ghost(self):
        motion = self._motion
        if not self._ghost_publisher.get_subscription_count():
            return
        if motion is None:
            if self._ghost_shown:
                self._ghost_publisher.publish(MarkerArray(markers=[Marker(action=Marker.DELETEALL)]))
                self._ghost_shown = False
            return
        robot, trajectory = motion
        if self._ghost is None or self._ghost[0] is not robot:
            self._ghost = robot, PosedMarkers(MarkerArray(markers=_ghost_markers(robot, self._arm.scene.frames.root)))
        at = (time.monotonic() - self._began) % (trajectory.duration + REST_S)
        T = shape_poses(robot, trajectory.at(min(at, trajectory.duration))[0][0])
        self._ghost_publisher.publish(self._ghost[1].at(T[:, :3, 3], Rotation.from_matrix(T[:, :3, :3]).as_quat()))
        self._ghost_shown = True


def _ghost_markers(robot, frame):
    markers = robot_markers(robot, np.clip(np.zeros(robot.dof), robot.lower, robot.upper), "ghost", GHOST_COLOUR)
    for marker in markers:
        marker.header.frame_id = frame
    return markers
