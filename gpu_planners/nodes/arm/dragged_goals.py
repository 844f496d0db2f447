"""Plans to the goal that is dragged in RViz and shows the motion; nothing is published that a controller would follow
until the menu says so."""

import numpy as np
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState

from gpu_planners_msgs.srv import PlanMotion

from ...errors import GpuPlannersError
from ..common.request_error import error_text
from .arm_services import ArmServices
from .goal_marker import GoalMarker

HELD_S = 0.4  # longest search while the marker is held
SIZE = 0.12  # of the marker, as a share of the robot's height and width


class DraggedGoals:
    """The marker of the arm node, and the motions to it."""

    def __init__(self, arm: ArmServices) -> None:
        self._arm, self._scene = arm, arm.scene
        self._wanted: tuple[PoseStamped, bool] | None = None  # the newest goal that is not planned to yet
        self._last: PlanMotion.Response | None = None
        self._marker = GoalMarker(arm.node, self._take, lambda: arm.worker.do(self._publish))

    def begin(self) -> None:
        """Put the marker at the tool of the robot, where it is measured or rests. On the worker's thread."""
        robot = self._scene.require_robot()
        poses = robot.link_poses(self._start())
        T = poses[self._arm.values.tip_link or robot.tip_link][0]
        places = np.array([pose[0, :3, 3] for pose in poses.values()])
        x, y, z, w = Rotation.from_matrix(T[:3, :3]).as_quat().tolist()
        px, py, pz = T[:3, 3].tolist()
        pose = Pose(position=Point(x=px, y=py, z=pz), orientation=Quaternion(x=x, y=y, z=z, w=w))
        self._marker.place(self._scene.frames.root, pose, float(max(SIZE * np.ptp(places, axis=0).max(), 0.05)))

    def _start(self):
        """(dof,) where a motion begins: as measured, else where the last one began, else a state of the SRDF or the
        middle of the limits."""
        robot = self._scene.require_robot()
        measured = self._arm.place()
        if measured is not None:
            return measured
        if robot.named_states:
            return next(iter(robot.named_states.values()))
        return (robot.lower + robot.upper) / 2

    def _take(self, pose, held):
        waiting, self._wanted = self._wanted is not None, (pose, held)
        if not waiting:  # what waits will find the newest goal
            self._arm.worker.do(self._plan)

    def _plan(self):
        wanted, self._wanted = self._wanted, None
        if wanted is None or self._scene.robot is None:
            return
        pose, held = wanted
        robot = self._scene.robot
        start = JointState(name=list(robot.joint_names), position=self._start().tolist())
        request = PlanMotion.Request(start=start, pose_goals=[pose], time_limit_s=HELD_S if held else 0.0)
        response = PlanMotion.Response()
        self._last = None
        try:
            if self._arm.plan(request, response):
                self._last = response
        except GpuPlannersError as error:
            response.message = error_text(error)
        if self._last is None and not held:
            self._arm.node.get_logger().warning(f"dragged goal: {response.message}")

    def _publish(self):
        if self._last is not None:
            self._arm.trajectories.publish(self._last.trajectory)
            self._arm.node.get_logger().info(f"dragged goal: published, {self._last.message}")
